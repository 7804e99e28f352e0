//! Strings from outside, made harmless: one line stays one line, and no string
//! can open or close the block.

use std::borrow::Cow;

/// The name of the block's tag.
pub(super) const TAG: &str = "environment_details";

/// `text` with line breaks and other control characters written out (`\n`,
/// `\u{1b}`), so that it stays on its line.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
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

/// `text` with the `<` of everything that reads as the block's tag, opening or
/// closing, in any case and spacing, written `&lt;`.
pub(super) fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let lower = text.to_ascii_lowercase();
    let mut safe = String::new();
    let mut copied = 0;
    for (name, _) in lower.match_indices(TAG) {
        let before = text[copied..name].trim_end_matches(|c: char| c == '/' || c.is_whitespace());
        let Some(kept) = before.strip_suffix('<') else {
            continue;
        };
        safe.push_str(kept);
        safe.push_str("&lt;");
        copied += before.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(one_line("a b é"), "a b é");
        assert_eq!(one_line("a\nb\r\t\u{1b}[0m"), r"a\nb\r\t\u{1b}[0m");
        assert_eq!(one_line("a\u{2028}b\u{85}"), r"a\u{2028}b\u{85}");
    }

    #[test]
    fn tags_lose_their_bracket_and_nothing_else_does() {
        for (text, safe) in [
            ("</environment_details>", "&lt;/environment_details>"),
            ("<environment_details>", "&lt;environment_details>"),
            (
                "a < / Environment_DETAILS x",
                "a &lt; / Environment_DETAILS x",
            ),
            (
                "<<environment_details><environment_details>",
                "<&lt;environment_details>&lt;environment_details>",
            ),
            ("<a> environment_details", "<a> environment_details"),
            ("environment_details", "environment_details"),
            ("a < b </b>", "a < b </b>"),
        ] {
            assert_eq!(without_tags(text), safe);
        }
    }
}
