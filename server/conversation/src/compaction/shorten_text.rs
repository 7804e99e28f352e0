//! Shortens texts and notes what was removed. All limits are in bytes, which also limits
//! characters and tokens.

use std::borrow::Cow;

use sightline_base::plural::plural;

/// Minimum length of a base64 run that is treated as data, in bytes. Text written by people has
/// no such runs.
const MIN_BASE64_BYTES: usize = 256;
/// Minimum length of a base64 line that may continue on the next line, in bytes.
const MIN_BASE64_LINE_BYTES: usize = 60;

/// Keeps the first and last lines of a text longer than `max`, with a note between them.
pub(super) fn elide_middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(max / 3 * 2)];
    let head = match head.rfind('\n') {
        Some(end) if end >= head.len() / 2 => &head[..=end],
        _ => head,
    };
    let tail = &text[text.ceil_char_boundary(text.len() - max / 3)..];
    let tail = match tail.find('\n') {
        Some(end) if end < tail.len() / 2 => &tail[end + 1..],
        _ => tail,
    };
    let left_out = &text[head.len()..text.len() - tail.len()];
    let lines = left_out.lines().count();
    let characters = left_out.chars().count();
    let newline = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Cow::Owned(format!(
        "{head}{newline}[left out here: {}, {}]\n{tail}",
        plural(lines, "line"),
        plural(characters, "character")
    ))
}

/// Keeps the start of a text longer than `max`, with a note after it.
pub(super) fn keep_start(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(max));
    let characters = rest.chars().count();
    Cow::Owned(format!(
        "{head}\n[left out here: {} at the end of this text]",
        plural(characters, "character")
    ))
}

/// Truncates a one-line text to `max` bytes and appends an ellipsis.
pub(super) fn with_ellipsis(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(max)]))
}

/// Returns the complete lines of `text` that fit, and their number.
pub(super) fn first_lines(text: &str, max_lines: u64, max: usize) -> (&str, u64) {
    let (mut end, mut lines) = (0, 0);
    for line in text.split_inclusive('\n') {
        if lines == max_lines || end + line.len() > max {
            break;
        }
        end += line.len();
        lines += 1;
    }
    (&text[..end], lines)
}

/// Replaces base64 data in a text with a note.
pub(super) fn elide_base64(text: &str) -> Cow<'_, str> {
    if text.len() < MIN_BASE64_BYTES {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut safe = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_base64(bytes, at);
        if end - at >= MIN_BASE64_BYTES {
            safe.push_str(&text[copied..at]);
            safe.push_str(&format!(
                "[left out here: {} of data]",
                plural(end - at, "character")
            ));
            copied = end;
        }
        at = end.max(at + 1);
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

/// Returns the end of the base64 run at `start`, which may include line breaks after long
/// lines.
fn end_of_base64(bytes: &[u8], start: usize) -> usize {
    let is_data = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
    let mut end = start;
    loop {
        let line = bytes[end..].iter().take_while(|byte| is_data(byte)).count();
        let after = end + line;
        let is_break = |byte: Option<&u8>| matches!(byte, Some(b'\n' | b'\r'));
        let rest_of_line = bytes.get(after);
        // The next line starts with a word of text, not with data.
        if end > start && line > 0 && rest_of_line.is_some_and(|byte| *byte == b' ') {
            return end;
        }
        if line < MIN_BASE64_LINE_BYTES || !is_break(rest_of_line) {
            return after;
        }
        end = after + 1;
        if bytes.get(after) == Some(&b'\r') && bytes.get(end) == Some(&b'\n') {
            end += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_lines_stay() {
        let text: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let short = elide_middle(&text, 300);
        assert!(short.starts_with("line 0\nline 1\n"), "{short}");
        assert!(short.ends_with("\nline 998\nline 999\n"), "{short}");
        assert!(short.len() < 400);
        let kept = short.lines().count() - 1;
        let note = format!("[left out here: {} lines, ", 1000 - kept);
        assert!(short.contains(&note), "{short}");
        assert_eq!(elide_middle("short", 5), "short");
    }

    #[test]
    fn cuts_are_at_character_boundaries() {
        let text = "日本語😀é".repeat(50);
        for max in 0..100 {
            assert!(elide_middle(&text, max).contains("[left out here: 1 line, "));
            assert!(keep_start(&text, max).len() <= max + 80);
            assert!(with_ellipsis(&text, max).len() <= max + 3);
        }
        assert_eq!(
            elide_middle("abcdef", 3),
            "ab\n[left out here: 1 line, 3 characters]\nf"
        );
        assert_eq!(
            keep_start("abcd", 3),
            "abc\n[left out here: 1 character at the end of this text]"
        );
    }

    #[test]
    fn first_lines_that_fit() {
        assert_eq!(first_lines("a\nb\nc", 2, 100), ("a\nb\n", 2));
        assert_eq!(first_lines("a\nb\nc", 9, 4), ("a\nb\n", 2));
        assert_eq!(first_lines("a\nb\nc", 9, 5), ("a\nb\nc", 3));
        assert_eq!(first_lines("abc", 9, 2), ("", 0));
        assert_eq!(first_lines("", 9, 2), ("", 0));
    }

    #[test]
    fn base64_is_elided_and_prose_is_not() {
        let data = "QUJD".repeat(100);
        assert_eq!(
            elide_base64(&format!("see data:image/png;base64,{data}, it")),
            "see data:image/png;base64,[left out here: 400 characters of data], it"
        );
        let lines = format!("{}\n", "A".repeat(76)).repeat(5);
        assert_eq!(
            elide_base64(&format!("x\n{lines}QQ==\nand more")),
            "x\n[left out here: 389 characters of data]\nand more"
        );
        assert_eq!(
            elide_base64(&format!("{lines}the end")),
            "[left out here: 385 characters of data]the end"
        );
        for prose in [
            "word ".repeat(200),
            "é".repeat(400),
            lines[..200].to_owned(),
        ] {
            assert_eq!(elide_base64(&prose), prose);
        }
    }
}
