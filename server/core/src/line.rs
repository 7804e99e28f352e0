//! Names and commands from outside, printed on one line.
//!
//! A file name may hold a line break, and then look like two lines of a list.

use std::borrow::Cow;

/// `text` with line breaks and other control characters written out (`\n`,
/// `\u{1b}`), so that it stays on its line.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if breaks(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(one_line("a b é"), "a b é");
        assert_eq!(one_line("a\nb\r\t\u{1b}[0m"), r"a\nb\r\t\u{1b}[0m");
        assert_eq!(one_line("a\u{2028}b\u{85}"), r"a\u{2028}b\u{85}");
    }
}
