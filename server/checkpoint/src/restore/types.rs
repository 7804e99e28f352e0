//! Parameters and results of restores.

use std::collections::HashMap;

use sightline_base::path::RelPath;
pub use sightline_protocol::checkpoint::RestoreAction as Action;

use super::super::{metadata::Request, store::object::Oid, tree_diff::Side};

/// Checkpoint and paths to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreTarget {
    /// The checkpoint to restore.
    pub id: Oid,
    /// Only these paths and everything below them; empty means all.
    pub paths: Vec<RelPath>,
    /// Which differences to revert.
    pub scope: Scope,
}

impl RestoreTarget {
    /// Returns the checkpoints that are read.
    pub(super) fn ids(&self) -> Vec<Oid> {
        let until = match &self.scope {
            Scope::Part(part) => part.until.checkpoint(),
            Scope::All | Scope::Undo => None,
        };
        [self.id].into_iter().chain(until).collect()
    }
}

/// Which differences a restore reverts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All.
    #[default]
    All,
    /// Those that the restore with this undo point made. Paths that changed since are left as they
    /// are, unless forced.
    Undo,
    /// A part of them.
    Part(Part),
}

/// Changes of files that are reverted, while later ones are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// End of the changes, which begin at the restored checkpoint.
    pub until: Side,
    /// Of these files only these hunks, by their numbers from 1.
    pub hunks: Vec<(RelPath, Vec<u32>)>,
}

/// Planned change of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Path to change.
    pub path: RelPath,
    /// Kind of change.
    pub action: Action,
    /// Why the path is changed, as user-visible text.
    pub reason: String,
}

/// Path that differs, but is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Path that is left as it is; the root for denied paths, which are only counted.
    pub path: RelPath,
    /// Why the path is left as it is, as user-visible text.
    pub reason: String,
    /// Whether a forced restore changes it.
    pub cause: ConflictCause,
}

/// Cause of a conflict, which decides whether a forced restore changes the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictCause {
    /// The path cannot be changed.
    #[default]
    Obstacle,
    /// The editor has unsaved text. Replaced if forced.
    Unsaved,
    /// The path changed after the restore that is undone. Reverted if forced.
    ChangedSince,
}

impl Conflict {
    pub(super) fn new(path: RelPath, reason: impl Into<String>) -> Self {
        Self {
            path,
            reason: reason.into(),
            cause: ConflictCause::Obstacle,
        }
    }
}

/// Changes that a restore would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Planned changes, sorted by path.
    pub changes: Vec<Change>,
    /// Differences that would be left as they are: unsaved text, paths that changed after the
    /// restore to undo, skipped or ignored files in the way, and denied paths, which are only
    /// counted.
    pub conflicts: Vec<Conflict>,
    /// Identifies this preview. A restore with this token makes exactly these changes, or none.
    pub token: String,
}

/// Options of a restore.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Token of a preview. The restore fails if the preview is out of date.
    pub token: Option<String>,
    /// Whether to replace unsaved editor text, and in an undo paths that changed since, instead of
    /// reporting conflicts. The caller replaces the text, see [`Restored::texts`]. A token must be
    /// from a preview with the same unsaved documents.
    pub force: bool,
    /// What is stored with the undo point; its label, purpose and turn are ignored.
    pub undo: Request,
}

/// Result for one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Path of the planned change.
    pub path: RelPath,
    /// Kind of change.
    pub action: Action,
    /// Why the path was not changed; `None` on success.
    pub error: Option<String>,
}

/// Open documents with unsaved text, by path. The ids are those of files with these texts, or
/// `None` where the text is not known.
pub type UnsavedTexts = HashMap<RelPath, Option<Oid>>;

/// Open document with unsaved text whose file was restored. The client must replace the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorText {
    /// Path of the document.
    pub path: RelPath,
    /// New text; `None` if the file was deleted or is not text.
    pub content: Option<String>,
}

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Result of each planned change, sorted by path.
    pub outcomes: Vec<Outcome>,
    /// Differences that were left as they are, as in a preview.
    pub conflicts: Vec<Conflict>,
    /// The undo point. `None` if there was nothing to do, so that the undo point of an earlier
    /// restore remains the last one.
    pub undo: Option<Oid>,
    /// Documents whose unsaved text must be replaced.
    pub texts: Vec<EditorText>,
}

/// Interrupted restore that was completed or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The checkpoint that was being restored.
    pub restoring: Oid,
    /// The undo point of that restore.
    pub undo: Oid,
    /// Whether the restore was completed. Otherwise it was rolled back.
    pub completed: bool,
    /// Paths that were left as they are, with the reason. Paths that access rules deny now are only
    /// counted, in one conflict for the root.
    pub problems: Vec<Conflict>,
}
