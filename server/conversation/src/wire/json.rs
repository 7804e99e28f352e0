//! Scans valid JSON in place, without building a tree.
//!
//! A conversation of 23 MB is scanned for every request, and only a few keys matter. The
//! scanner makes one pass, skips strings by searching for their end, and decodes only what is
//! requested. It does not recurse. Invalid JSON yields meaningless results, but never a panic
//! or an endless loop.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr, memchr_iter, memmem};

/// A position in a JSON text.
pub struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Returns the current offset; after [`Self::peek`], the start of the next value.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the first byte of the next value.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.position) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.position += 1;
        }
        None
    }

    /// Enters the next object or array, if it starts with `open`.
    pub fn enter(&mut self, open: u8) -> bool {
        let found = self.peek() == Some(open);
        self.position += usize::from(found);
        found
    }

    /// Returns the quoted key of the next member of the current object, and moves to its value.
    /// Returns `None` at the end of the object.
    pub fn next_member(&mut self) -> Option<&'a str> {
        if !self.next_item(b'}') {
            return None;
        }
        if self.peek() != Some(b'"') {
            self.position = self.text.len();
            return None;
        }
        let key = self.skip_value();
        self.enter(b':');
        self.text.get(key)
    }

    /// Returns whether the current array has another element. `close` is `]`. Leaves the array at
    /// its end.
    pub fn next_item(&mut self, close: u8) -> bool {
        self.enter(b',');
        match self.peek() {
            None => false,
            Some(byte) if byte == close => {
                self.position += 1;
                false
            }
            Some(_) => true,
        }
    }

    /// Skips the next value and returns its range.
    pub fn skip_value(&mut self) -> Range<usize> {
        let first = self.peek();
        let start = self.position;
        match first {
            None => {}
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') => self.skip_nested(),
            Some(_) => {
                let rest = self.text.as_bytes().get(start..).unwrap_or_default();
                let end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':') || *byte <= b' ';
                let length = rest.iter().position(end).unwrap_or(rest.len());
                self.position += length.max(1);
            }
        }
        start..self.position
    }

    fn skip_nested(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(self.position) {
            match byte {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.position += 1;
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_string(&mut self) {
        let bytes = self.text.as_bytes();
        let start = self.position + 1;
        self.position = start;
        while let Some(quote) = bytes
            .get(self.position..)
            .and_then(|rest| memchr(b'"', rest))
        {
            let quote = self.position + quote;
            // Each run of backslashes is counted once, because the quote after it ends the run.
            let before = bytes.get(self.position..quote).unwrap_or_default();
            let slashes = before.iter().rev().take_while(|b| **b == b'\\').count();
            self.position = quote + 1;
            if slashes % 2 == 0 {
                return;
            }
        }
        self.position = self.text.len();
    }
}

/// Returns the member `name` of a JSON object; the last one if there are several.
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut cursor = Cursor::new(object);
    if !cursor.enter(b'{') {
        return None;
    }
    let mut found = None;
    while let Some(key) = cursor.next_member() {
        let value = cursor.skip_value();
        if string_equals(key, name) {
            found = object.get(value);
        }
    }
    found
}

/// Removes the quotes of a JSON string.
pub fn unquoted(string: &str) -> &str {
    let inner = string.strip_prefix('"').unwrap_or(string);
    inner.strip_suffix('"').unwrap_or(inner)
}

/// Returns whether the JSON string decodes to `text`.
pub fn string_equals(string: &str, text: &str) -> bool {
    let inner = unquoted(string);
    let may_have_escapes = inner.len() > text.len();
    inner == text
        || (may_have_escapes
            && memchr(b'\\', inner.as_bytes()).is_some()
            && UnescapedChars(inner).eq(text.chars()))
}

/// Decodes a JSON string.
pub fn decode(string: &str) -> Cow<'_, str> {
    let mut rest = unquoted(string);
    let Some(mut slash) = memchr(b'\\', rest.as_bytes()) else {
        return Cow::Borrowed(rest);
    };
    let mut text = String::with_capacity(rest.len());
    loop {
        let (plain, escape) = rest.split_at_checked(slash).unwrap_or((rest, ""));
        text.push_str(plain);
        let common = match escape.as_bytes() {
            [_, b'n', ..] => Some('\n'),
            [_, b'"', ..] => Some('"'),
            [_, b't', ..] => Some('\t'),
            [_, b'\\', ..] => Some('\\'),
            _ => None,
        };
        if let Some(common) = common {
            text.push(common);
            rest = escape.get(2..).unwrap_or_default();
        } else {
            let mut characters = UnescapedChars(escape);
            text.extend(characters.next());
            rest = characters.0;
        }
        match memchr(b'\\', rest.as_bytes()) {
            Some(next) => slash = next,
            None => break,
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Iterates over the decoded characters of a JSON string without its quotes.
pub struct UnescapedChars<'a>(pub(crate) &'a str);

impl Iterator for UnescapedChars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let mut characters = self.0.chars();
        let first = characters.next()?;
        if first != '\\' {
            self.0 = characters.as_str();
            return Some(first);
        }
        let escaped = characters.next();
        self.0 = characters.as_str();
        Some(match escaped {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => self.unicode_escape(),
            Some(other) => other,
            None => char::REPLACEMENT_CHARACTER,
        })
    }
}

impl UnescapedChars<'_> {
    /// Decodes the characters after `\u`. An unpaired surrogate becomes U+FFFD, because a Rust
    /// string cannot hold it.
    fn unicode_escape(&mut self) -> char {
        let first = self.hex_unit().unwrap_or(0xfffd);
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.0.starts_with("\\u") {
            let after = self.0;
            self.0 = after.get(2..).unwrap_or_default();
            match self.hex_unit() {
                Some(second) if (0xdc00..0xe000).contains(&second) => units.push(second),
                _ => self.0 = after,
            }
        }
        let decoded = char::decode_utf16(units).next();
        decoded
            .and_then(Result::ok)
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn hex_unit(&mut self) -> Option<u16> {
        let (digits, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        u16::from_str_radix(digits, 16).ok()
    }
}

/// Returns the length of a JSON string in UTF-16 code units, without decoding it.
pub fn string_utf16_len(string: &str) -> usize {
    let inner = unquoted(string);
    let bytes = inner.as_bytes();
    // An escape is one code unit but several characters. Most escapes are a backslash and a
    // letter; then counting backslashes is enough.
    let is_plain = memmem::find(bytes, br"\\").is_none() && memmem::find(bytes, br"\u").is_none();
    let overhead = if is_plain {
        count(bytes, |byte| u8::from(byte == b'\\'))
    } else {
        escape_overhead(bytes)
    };
    utf16_len(inner).saturating_sub(overhead)
}

/// Returns by how much the escapes are longer than one code unit each.
fn escape_overhead(bytes: &[u8]) -> usize {
    let mut overhead = 0;
    let mut after_escape = 0;
    for slash in memchr_iter(b'\\', bytes) {
        if slash < after_escape {
            continue;
        }
        let digits = if bytes.get(slash + 1) == Some(&b'u') {
            4
        } else {
            0
        };
        overhead += 1 + digits;
        after_escape = slash + 2 + digits;
    }
    overhead
}

/// Returns the length of a text in UTF-16 code units: two for characters of four bytes in
/// UTF-8, one for all others.
pub fn utf16_len(text: &str) -> usize {
    count(text.as_bytes(), |byte| {
        u8::from(byte & 0xc0 != 0x80) + u8::from(byte >= 0xf0)
    })
}

/// Sums `what`, at most 2 per byte, over all bytes.
fn count(bytes: &[u8], weight: impl Fn(u8) -> u8) -> usize {
    // Sums of 127 bytes fit in a `u8`, so the compiler can vectorize the loop.
    bytes
        .chunks(127)
        .map(|chunk| usize::from(chunk.iter().map(|byte| weight(*byte)).sum::<u8>()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(&str, &str)> {
        let mut cursor = Cursor::new(text);
        assert!(cursor.enter(b'{'));
        let mut members = Vec::new();
        while let Some(key) = cursor.next_member() {
            members.push((key, &text[cursor.skip_value()]));
        }
        members
    }

    #[test]
    fn members_of_an_object() {
        let text = r#" { "a" : [1, {"x": "]}"}] ,"b\"":"\\","c":-1.5e3, "d":true,"e":{}} "#;
        assert_eq!(
            members(text),
            [
                ("\"a\"", r#"[1, {"x": "]}"}]"#),
                (r#""b\"""#, r#""\\""#),
                ("\"c\"", "-1.5e3"),
                ("\"d\"", "true"),
                ("\"e\"", "{}"),
            ]
        );
    }

    #[test]
    fn decodes_as_serde_does() {
        for text in [
            "",
            "plain",
            "a\"b\\c\nd\te/f",
            "漢字 🚀 é\u{0}\u{1f}",
            "\\\\\\\"",
        ] {
            let string = serde_json::to_string(text).unwrap();
            assert_eq!(decode(&string), text);
            assert!(string_equals(&string, text));
            assert!(!string_equals(&string, "other"));
            assert_eq!(string_utf16_len(&string), text.encode_utf16().count());
            assert_eq!(utf16_len(text), text.encode_utf16().count());
        }
        let escaped = r#""\u005b\u00e9\ud83d\ude80\/\b\f\r""#;
        assert_eq!(decode(escaped), "[é🚀/\u{8}\u{c}\r");
        assert_eq!(string_utf16_len(escaped), 8);
    }

    #[test]
    fn unpaired_surrogates_are_replaced() {
        assert_eq!(decode(r#""a\ud83db""#), "a\u{fffd}b");
        assert_eq!(decode(r#""\ud83d\u0041""#), "\u{fffd}A");
        assert_eq!(decode(r#""\ude80\ud83d""#), "\u{fffd}\u{fffd}");
        assert_eq!(string_utf16_len(r#""\ud83d\u0041""#), 2);
    }

    #[test]
    fn invalid_json_does_not_loop() {
        for text in [
            "",
            "{",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{a:1}",
            "{]",
            "[",
            "{\"a\":\"\\",
            "{,,}",
            "\u{fffd}",
        ] {
            let mut cursor = Cursor::new(text);
            cursor.enter(b'{');
            for _ in 0..10 {
                if cursor.next_member().is_none() {
                    break;
                }
                cursor.skip_value();
            }
            let mut cursor = Cursor::new(text);
            cursor.enter(b'[');
            for _ in 0..10 {
                cursor.next_item(b']');
                cursor.skip_value();
            }
        }
        assert_eq!(decode("\"\\"), "\u{fffd}");
        assert_eq!(decode(r#""\u12"#), "\u{fffd}12");
    }

    #[test]
    fn deep_nesting_does_not_recurse() {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert_eq!(members(&text).len(), 1);
    }
}
