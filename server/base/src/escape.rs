//! Escapes untrusted text for printing: file names, commands, terminal output.
//!
//! A file name may contain line breaks, a tag of the environment block, or invisible characters,
//! and so pass for something else. [`one_line`] escapes a single name or command, [`printable`]
//! text of several lines.

use std::borrow::Cow;

/// Tags that structure the messages to a model. Untrusted text must not contain them.
const TAGS: &str = "environment_details file_content final_file_content folder_content url_content compacted_conversation \
     left_out_messages explicit_instructions task feedback answer user_message system system-reminder \
     function_calls function_results tool_use tool_result";

/// Formats bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes octal escapes such as `\040` for a space.
pub fn decode_octal(written: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written;
    while let [byte, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *byte == b'\\');
        let decoded =
            digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(decoded.unwrap_or(*byte));
        rest = if decoded.is_some() {
            &after[3..]
        } else {
            after
        };
    }
    bytes
}

/// Escapes line breaks, invisible characters and tags.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_unprintable)
}

/// Escapes like [`one_line`], but keeps line breaks and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |c| !matches!(c, '\n' | '\t') && is_unprintable(c))
}

/// Returns whether `c` is a control character, is invisible, or changes the text direction.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// Returns whether `c` is an invisible format character. Emoji variation selectors (U+FE00 to
/// U+FE0F) are excluded, because they are part of ordinary names.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escape(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Fast path: most names are plain ASCII.
    if text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~') && byte != b'<')
    {
        return Cow::Borrowed(text);
    }
    let mut safe = String::new();
    let mut copied = 0;
    for (at, c) in text.char_indices() {
        if is_bad(c) {
            safe.push_str(&text[copied..at]);
            safe.extend(c.escape_default());
        } else if c == '<' && is_tag(&text[at + 1..]) {
            safe.push_str(&text[copied..at]);
            safe.push_str("&lt;");
        } else {
            continue;
        }
        copied = at + c.len_utf8();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

/// Returns whether one of [`TAGS`], opening or closing, follows a `<`. Ignores case and spaces.
fn is_tag(after: &str) -> bool {
    let name = after.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
        .unwrap_or(name.len());
    TAGS.split(' ')
        .any(|tag| name[..end].eq_ignore_ascii_case(tag))
}

#[cfg(test)]
mod tests {
    use super::{one_line, printable};

    #[test]
    fn names_are_escaped_to_one_line() {
        assert_eq!(one_line("a b é"), "a b é");
        assert_eq!(one_line("a\nb\r\t\u{1b}[0m"), r"a\nb\r\t\u{1b}[0m");
        assert_eq!(one_line("a\u{2028}b\u{85}"), r"a\u{2028}b\u{85}");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let ranges = [
            0x00..=0x1f,
            0x7f..=0x9f,
            0x61c..=0x61c,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2060..=0x2060,
            0x2066..=0x2069,
            0xfeff..=0xfeff,
            0xe0000..=0xe007f,
        ];
        for c in ranges.into_iter().flatten().filter_map(char::from_u32) {
            let name = format!("a{c}b");
            let shown = one_line(&name);
            assert!(
                shown.chars().all(|c| c.is_ascii() && !c.is_control()),
                "{name:?}"
            );
            let kept = matches!(c, '\n' | '\t');
            assert_eq!(printable(&name) == name, kept, "{name:?}");
        }
        // An emoji with its variation selector, combining accents, right-to-left letters.
        for name in ["❤\u{fe0f}.md", "e\u{301}", "שלום"] {
            assert_eq!(one_line(name), name);
        }
    }

    #[test]
    fn only_the_bracket_of_a_tag_is_escaped() {
        for (text, safe) in [
            ("</environment_details>", "&lt;/environment_details>"),
            ("<environment_details>", "&lt;environment_details>"),
            ("<environment_details", "&lt;environment_details"),
            (
                "a < / Environment_DETAILS x",
                "a &lt; / Environment_DETAILS x",
            ),
            (
                "<<environment_details><environment_details>",
                "<&lt;environment_details>&lt;environment_details>",
            ),
            ("<file_content path=\"a\">", "&lt;file_content path=\"a\">"),
            ("</task>", "&lt;/task>"),
            ("<a> environment_details", "<a> environment_details"),
            ("environment_details", "environment_details"),
            ("a < b </b>", "a < b </b>"),
            ("<tasks> <taskbar>", "<tasks> <taskbar>"),
            ("Vec<String>", "Vec<String>"),
            ("<", "<"),
        ] {
            assert_eq!(printable(text), safe);
            assert_eq!(one_line(text), safe);
            assert_eq!(one_line(&one_line(text)), safe);
        }
    }
}
