//! Open `.clineignore` files, and positions in their text.

use serde::Deserialize;
use sightline_access::RULE_FILE;
use sightline_base::{
    limits,
    path::{AbsPath, uri_to_path},
};
use sightline_context::document::PositionEncoding;
use sightline_engine::{
    error::Error,
    params_compat,
    session::{Snapshot, normalize_uri},
};
use sightline_protocol::editor::Position;

/// An open rule file: the folder it applies to, and its text.
pub(super) struct RuleFile {
    pub(super) folder: AbsPath,
    pub(super) text: String,
}

impl RuleFile {
    /// Returns the open document `uri` if it is a rule file in effect.
    pub(super) fn open(snapshot: &Snapshot, uri: &str) -> Option<Self> {
        let uri = normalize_uri(uri);
        let path = uri_to_path(&uri).ok().flatten()?;
        if path.as_path().file_name()? != RULE_FILE {
            return None;
        }
        let folder = AbsPath::new(path.as_path().parent()?)?;
        let roots = snapshot.access.roots();
        let mut all = roots.as_slice().iter();
        // In effect are files at the top of a root or above, and those next to a file that
        // is in no root.
        let counts = all.any(|root| {
            [&root.path, &root.canonical]
                .into_iter()
                .any(|path| path.as_path().starts_with(folder.as_path()))
        });
        let text = snapshot.editor.document(&uri)?.document.text();
        let is_small = text.len_bytes() as u64 <= limits::MAX_RULE_FILE_BYTES;
        (is_small && (counts || roots.is_empty())).then(|| Self {
            folder,
            text: text.to_string(),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
/// A position in a document.
pub struct At {
    pub(super) text_document: Document,
    pub(super) position: Position,
}

#[derive(Default, Deserialize)]
#[serde(default)]
/// A document.
pub struct Document {
    pub(super) uri: String,
}

impl At {
    /// Returns whether the document may be a rule file.
    pub fn is_in_rule_file(&self) -> bool {
        self.text_document.uri.ends_with(RULE_FILE)
    }
}

/// Parses the params of a request about a position.
///
/// # Errors
/// `invalidParams`.
pub fn at(method: &str, params: &str) -> Result<At, Error> {
    let params = params_compat::parse_object(method, Some(params))?;
    serde_json::from_value(params).map_err(|error| Error::invalid(format!("{method}: {error}")))
}

/// Returns the part of a line before a position.
pub(super) fn text_before(line: &str, character: u32, encoding: PositionEncoding) -> &str {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut passed = 0;
    for (at, c) in line.char_indices() {
        if passed >= character {
            return &line[..at];
        }
        passed += width(c, encoding);
    }
    line
}

/// Returns the length of a text in the units of the position encoding.
pub(super) fn text_units(text: &str, encoding: PositionEncoding) -> u32 {
    text.chars().map(|c| width(c, encoding)).sum()
}

fn width(c: char, encoding: PositionEncoding) -> u32 {
    let width = match encoding {
        PositionEncoding::Utf8 => c.len_utf8(),
        PositionEncoding::Utf16 => c.len_utf16(),
        PositionEncoding::Utf32 => 1,
    };
    u32::try_from(width).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_in_every_encoding() {
        for (encoding, character) in [
            (PositionEncoding::Utf8, 6),
            (PositionEncoding::Utf16, 3),
            (PositionEncoding::Utf32, 2),
        ] {
            assert_eq!(text_before("é😀x\r", character, encoding), "é😀");
            assert_eq!(text_units("é😀", encoding), character);
            assert_eq!(text_before("é", 99, encoding), "é");
        }
    }
}
