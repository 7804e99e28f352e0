//! The text of an open document, edited incrementally in any position encoding.
//!
//! Only `\n`, `\r\n` and `\r` end a line, as LSP specifies. A position past the end of a line is
//! clamped to that end, a position past the last line to the end of the text, a position inside a
//! character to its start. So every edit from a client can be applied.

use ropey::{Rope, RopeSlice};
use sightline_protocol::editor::{Position, Range};

/// Unit in which a client counts the `character` of a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionEncoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, LSP's default.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

/// One element of `contentChanges`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The replaced range; `None` replaces the whole text.
    pub range: Option<Range>,
    /// The new text.
    pub text: String,
}

/// An open document.
#[derive(Clone, Debug, Default)]
pub struct Document {
    text: Rope,
    saved: Rope,
    version: i32,
}

impl Document {
    /// Creates a document from `didOpen`. Its text counts as saved.
    pub fn new(text: &str, version: i32) -> Self {
        let text = Rope::from_str(text);
        Self {
            saved: text.clone(),
            text,
            version,
        }
    }

    /// Returns the text. Cloning it is cheap.
    pub fn text(&self) -> &Rope {
        &self.text
    }

    /// Returns the last opened or saved text.
    pub fn saved(&self) -> &Rope {
        &self.saved
    }

    /// Returns the client's latest version number. Versions may have gaps and may restart.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// Returns whether the text differs from the last opened or saved text.
    pub fn is_dirty(&self) -> bool {
        !self.text.is_instance(&self.saved) && self.text != self.saved
    }

    /// Applies `contentChanges` in order.
    pub fn change(&mut self, changes: &[Change], version: i32, encoding: PositionEncoding) {
        for change in changes {
            let Some(range) = change.range else {
                self.text = Rope::from_str(&change.text);
                continue;
            };
            let a = char_index(&self.text, range.start, encoding);
            let b = char_index(&self.text, range.end, encoding);
            let (start, end) = (a.min(b), a.max(b));
            self.text.remove(start..end);
            self.text.insert(start, &change.text);
        }
        self.version = version;
    }

    /// Returns the text in a range, up to `max_bytes` and a character boundary.
    pub fn slice(&self, range: Range, encoding: PositionEncoding, max_bytes: usize) -> String {
        let a = char_index(&self.text, range.start, encoding);
        let b = char_index(&self.text, range.end, encoding);
        let slice = self.text.slice(a.min(b)..a.max(b));
        let end = slice.byte_to_char(max_bytes.min(slice.len_bytes()));
        slice.slice(..end).to_string()
    }

    /// Returns a position in UTF-16 units, clamped into the text.
    pub fn utf16_position(&self, position: Position, encoding: PositionEncoding) -> Position {
        let at = char_index(&self.text, position, encoding);
        let line = self.text.char_to_line(at);
        let start = self.text.line_to_char(line);
        let units = self.text.slice(start..at).len_utf16_cu();
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Position {
            line: count(line),
            character: count(units),
        }
    }

    /// Marks the current text as saved.
    pub fn save(&mut self) {
        self.saved = self.text.clone();
    }
}

/// Returns the character index of a position, clamped into the text.
fn char_index(text: &Rope, position: Position, encoding: PositionEncoding) -> usize {
    let line = position.line as usize;
    if line >= text.len_lines() {
        return text.len_chars();
    }
    let slice = text.line(line);
    let content = slice.slice(..content_chars(slice));
    let wanted = position.character as usize;
    let within = match encoding {
        PositionEncoding::Utf8 => content.byte_to_char(wanted.min(content.len_bytes())),
        PositionEncoding::Utf16 => content.utf16_cu_to_char(wanted.min(content.len_utf16_cu())),
        PositionEncoding::Utf32 => wanted.min(content.len_chars()),
    };
    text.line_to_char(line) + within
}

/// Returns the number of characters of a line, without its line ending.
fn content_chars(line: RopeSlice<'_>) -> usize {
    let mut chars = line.len_chars();
    while chars > 0 && matches!(line.char(chars - 1), '\n' | '\r') {
        chars -= 1;
    }
    chars
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    fn replace(start: Position, end: Position, text: &str) -> Change {
        Change {
            range: Some(Range { start, end }),
            text: text.to_owned(),
        }
    }

    fn changed(text: &str, change: Change, encoding: PositionEncoding) -> String {
        let mut document = Document::new(text, 0);
        document.change(&[change], 1, encoding);
        document.text().to_string()
    }

    #[test]
    fn the_same_place_in_three_encodings() {
        // `é` is 2 bytes, 1 unit; `😀` is 4 bytes, 2 units.
        let text = "é😀x\nsecond";
        for (encoding, character) in [
            (PositionEncoding::Utf8, 6),
            (PositionEncoding::Utf16, 3),
            (PositionEncoding::Utf32, 2),
        ] {
            let change = replace(at(0, character), at(0, character + 1), "Y");
            assert_eq!(changed(text, change, encoding), "é😀Y\nsecond");
        }
    }

    #[test]
    fn a_position_is_converted_to_utf16() {
        let document = Document::new("x\né😀y", 0);
        for (encoding, character) in [
            (PositionEncoding::Utf8, 6),
            (PositionEncoding::Utf16, 3),
            (PositionEncoding::Utf32, 2),
        ] {
            assert_eq!(
                document.utf16_position(at(1, character), encoding),
                at(1, 3)
            );
            assert_eq!(document.utf16_position(at(9, 9), encoding), at(1, 4));
        }
    }

    #[test]
    fn positions_out_of_bounds_are_clamped() {
        let far = at(9, 9);
        assert_eq!(
            changed("a\nb", replace(far, far, "!"), PositionEncoding::Utf16),
            "a\nb!"
        );
        let past_line = at(0, 99);
        assert_eq!(
            changed(
                "a\r\nb",
                replace(past_line, past_line, "!"),
                PositionEncoding::Utf16
            ),
            "a!\r\nb"
        );
        // The second half of a surrogate pair is clamped to the start of the character.
        assert_eq!(
            changed(
                "😀",
                replace(at(0, 1), at(0, 1), "!"),
                PositionEncoding::Utf16
            ),
            "!😀"
        );
        assert_eq!(
            changed(
                "ab",
                replace(at(0, 2), at(0, 0), ""),
                PositionEncoding::Utf16
            ),
            ""
        );
    }

    #[test]
    fn only_lsp_line_endings_end_a_line() {
        let text = "a\u{2028}b\u{b}c\rd";
        let change = replace(at(1, 0), at(1, 1), "D");
        assert_eq!(
            changed(text, change, PositionEncoding::Utf16),
            "a\u{2028}b\u{b}c\rD"
        );
    }

    #[test]
    fn undoing_to_the_saved_text_is_clean_again() {
        let mut document = Document::new("a", 1);
        document.change(
            &[replace(at(0, 1), at(0, 1), "b")],
            2,
            PositionEncoding::Utf16,
        );
        assert!(document.is_dirty());
        document.change(
            &[replace(at(0, 1), at(0, 2), "")],
            3,
            PositionEncoding::Utf16,
        );
        assert!(!document.is_dirty());
    }

    /// Reference implementation: applies a change to a plain string.
    fn reference(text: &str, change: &Change, encoding: PositionEncoding) -> String {
        let Some(range) = change.range else {
            return change.text.clone();
        };
        let byte_of = |position: Position| {
            let mut start = 0;
            for _ in 0..position.line {
                let rest = &text[start..];
                match rest.find(['\n', '\r']) {
                    Some(end) if rest[end..].starts_with("\r\n") => start += end + 2,
                    Some(end) => start += end + 1,
                    None => return text.len(),
                }
            }
            let mut units = 0;
            for (offset, c) in text[start..].char_indices() {
                if matches!(c, '\n' | '\r') {
                    return start + offset;
                }
                units += match encoding {
                    PositionEncoding::Utf8 => c.len_utf8(),
                    PositionEncoding::Utf16 => c.len_utf16(),
                    PositionEncoding::Utf32 => 1,
                };
                if units > position.character as usize {
                    return start + offset;
                }
            }
            text.len()
        };
        let (a, b) = (byte_of(range.start), byte_of(range.end));
        format!("{}{}{}", &text[..a.min(b)], change.text, &text[a.max(b)..])
    }

    fn small_text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "é", "日", "😀", "\n", "\r\n", "\r", "\u{2028}"]),
            0..24,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn changes_equal_the_plain_string_model(
            text in small_text(),
            edits in prop::collection::vec(
                ((0u32..6, 0u32..8), (0u32..6, 0u32..8), small_text()), 1..6),
            encoding in prop::sample::select(vec![
                PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32]),
        ) {
            let mut document = Document::new(&text, 0);
            let mut model = text;
            for (version, ((l1, c1), (l2, c2), new)) in edits.into_iter().enumerate() {
                let change = replace(at(l1, c1), at(l2, c2), &new);
                model = reference(&model, &change, encoding);
                document.change(&[change], version as i32, encoding);
                prop_assert_eq!(document.text().to_string(), model.clone());
            }
        }
    }
}
