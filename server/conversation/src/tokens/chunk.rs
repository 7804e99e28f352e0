//! Splits text into chunks that an encoder can process quickly.
//!
//! Encoders first split text into words by a pattern, then merge bytes inside each word.
//! Splitting at a certain word boundary does not change the count in any public encoding:
//! - after a letter and before an ASCII character other than a letter or an apostrophe (which
//!   may start a contraction), or before Chinese or Japanese punctuation;
//! - after a line feed that follows a visible character, before another visible character
//!   except `/`, which `o200k_base` joins to it.
//!
//! If a chunk has no such boundary (base64, minified data or an attack), it is split anywhere
//! and marked.

/// Maximum size of a chunk, in bytes. Takes a few milliseconds even for one repeated letter,
/// and is far below the size at which encoders fail.
pub(super) const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// A chunk of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    /// Whether its end may split a word.
    pub(super) cut: bool,
}

/// Splits `text` into chunks of at most `limit` bytes (at least 4).
pub(super) fn chunks(text: &str, limit: usize) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (end, cut) = chunk_end(rest, limit.max(4));
        let (chunk, after) = rest.split_at(end);
        rest = after;
        Some(Chunk { text: chunk, cut })
    })
}

/// Returns the end of the first chunk, and whether it may split a word.
fn chunk_end(text: &str, limit: usize) -> (usize, bool) {
    if text.len() <= limit {
        return (text.len(), false);
    }
    let limit = text.floor_char_boundary(limit);
    let mut after = text[limit..].chars().next();
    let mut chars = text[..limit].char_indices().rev().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let before = chars.peek().map(|&(_, c)| c);
        if after.is_some_and(|after| is_word_end(before, c, after)) {
            return (end, false);
        }
        after = Some(c);
    }
    (limit, true)
}

/// Returns whether a word certainly ends between `c` and `after`.
fn is_word_end(before: Option<char>, c: char, after: char) -> bool {
    if c == '\n' {
        return before.is_some_and(|before| !before.is_whitespace())
            && !after.is_whitespace()
            && after != '/';
    }
    is_letter(c) && is_non_letter(after)
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
        // Kana, CJK ideographs, Hangul: letters without case or combining marks.
        || matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn is_non_letter(c: char) -> bool {
    (c.is_ascii() && !c.is_ascii_alphabetic() && c != '\'')
        || matches!(c, '、' | '。' | '，' | '：' | '；' | '？' | '！')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, limit: usize) -> Vec<(&str, bool)> {
        chunks(text, limit).map(|p| (p.text, p.cut)).collect()
    }

    #[test]
    fn chunks_end_at_word_boundaries() {
        assert_eq!(split("", 8), []);
        assert_eq!(split("short", 8), [("short", false)]);
        assert_eq!(
            split("one two three", 8),
            [("one two", false), (" three", false)]
        );
        assert_eq!(
            split("1;\n2;\n3;\n", 5),
            [("1;\n", false), ("2;\n", false), ("3;\n", false)]
        );
        assert_eq!(split("日本。語", 10), [("日本", false), ("。語", false)]);
    }

    #[test]
    fn split_words_are_marked() {
        assert_eq!(split("aaaaaaa", 4), [("aaaa", true), ("aaa", false)]);
        assert_eq!(
            split("日本語", 4),
            [("日", true), ("本", true), ("語", false)]
        );
        assert_eq!(split("don't", 4), [("don'", true), ("t", false)]);
        assert_eq!(split("\n\n\n\n\n", 4), [("\n\n\n\n", true), ("\n", false)]);
        assert_eq!(split(";;;\n/x", 4), [(";;;\n", true), ("/x", false)]);
    }
}
