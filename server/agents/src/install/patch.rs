//! The difference of two texts, as saved in the record of an installation: enough to get the
//! earlier text back from the later one.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sightline_base::escape::hex;
use similar::{Algorithm, DiffTag, TextDiff, capture_diff_slices};

/// How to turn a text into the earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReversePatch {
    /// SHA-256 of the later text, hexadecimal.
    pub after: String,
    /// Ranges of the later text in order, and what stood there. Added text has an empty
    /// `before`.
    pub changes: Vec<ReverseChange>,
}

/// One changed range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReverseChange {
    /// Offset in bytes.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
    /// The earlier text.
    pub before: String,
}

impl ReversePatch {
    /// Compares two texts.
    pub fn new(before: &str, after: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (tokens(before), tokens(after));
        let mut offsets = vec![0];
        for token in &new {
            offsets.push(offsets[offsets.len() - 1] + token.len());
        }
        let changes = capture_diff_slices(Algorithm::Myers, &old, &new)
            .into_iter()
            .filter(|op| op.tag() != DiffTag::Equal)
            .map(|op| {
                let (old_range, new_range) = (op.old_range(), op.new_range());
                let offset = offsets[new_range.start];
                ReverseChange {
                    offset,
                    length: offsets[new_range.end] - offset,
                    before: old[old_range].concat(),
                }
            })
            .collect();
        Self {
            after: digest(after),
            changes,
        }
    }

    /// Returns the earlier text, if `text` is the later one.
    pub fn apply(&self, text: &str) -> Option<String> {
        if digest(text) != self.after {
            return None;
        }
        let mut earlier = String::new();
        let mut position = 0;
        for change in &self.changes {
            earlier.push_str(text.get(position..change.offset)?);
            earlier.push_str(&change.before);
            position = change.offset.checked_add(change.length)?;
        }
        earlier.push_str(text.get(position..)?);
        Some(earlier)
    }
}

/// Splits a text into words and single other characters, so that a patch holds as little of
/// the user's text as possible.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    for (index, c) in text.char_indices() {
        if !(c.is_alphanumeric() || c == '_' || c == '-') {
            if start < index {
                tokens.push(&text[start..index]);
            }
            start = index + c.len_utf8();
            tokens.push(&text[index..start]);
        }
    }
    if start < text.len() {
        tokens.push(&text[start..]);
    }
    tokens
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Formats the change of a file as a unified diff. `None` is a file that does not exist.
pub fn unified_diff(path: &Path, before: Option<&str>, after: Option<&str>) -> String {
    let name = |text: Option<&str>| match text {
        Some(_) => path.display().to_string(),
        None => "/dev/null".to_owned(),
    };
    TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default())
        .unified_diff()
        .context_radius(3)
        .header(&name(before), &name(after))
        .to_string()
}
