//! The changes of turns, as recorded.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use sightline_base::path::RelPath;

use super::TurnName;
use crate::{diff::Status, metadata::head::Head, named_path::NamedPath, store::object::Oid};

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    #[serde(flatten)]
    pub(super) path: NamedPath,
    /// How it changed.
    pub status: Status,
    /// Number of added lines; 0 if it was not compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub additions: u64,
    /// Number of deleted lines; 0 if it was not compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deletions: u64,
    /// Other turns that ran at the same time and changed it, too.
    #[serde(skip)]
    pub shared_with: Vec<TurnName>,
}

impl ChangedFile {
    /// Its path.
    pub fn path(&self) -> Option<RelPath> {
        self.path.to_path()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "for serde")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Changed files, sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFiles {
    /// The first files.
    pub files: Vec<ChangedFile>,
    /// Number of files that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// What changed between the end of the turn before and the first edit of a turn.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// The files.
    #[serde(flatten)]
    pub files: ChangedFiles,
    /// Other turns that ran then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnName>,
    /// Branch and commit at the end of the turn before.
    pub from: Option<Head>,
    /// Branch and commit at the first edit.
    pub to: Option<Head>,
}

/// The changes of an ended turn, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedChanges {
    /// The states that were compared.
    pub(super) before: Oid,
    pub(super) after: Oid,
    pub(super) own: ChangedFiles,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outside: Option<Outside>,
}
