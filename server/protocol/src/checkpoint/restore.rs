//! Restores of checkpoints: `sightline/previewRestore`, `restoreCheckpoint` and `undoRestore`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::turns::short_id;
use crate::files::{ProgressToken, is_false};

/// Restricts a restore to a part of the differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreOnly {
    /// Reverts the turn, and keeps later changes. Lines are merged; a file that cannot be
    /// merged is a conflict and left unchanged.
    Turn,
}

/// Hunks of a file to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileHunks {
    /// Path of the file.
    pub path: String,
    /// Numbers of the hunks, as `sightline/diffCheckpoints` with `contents` and the same `id` as `from`
    /// lists them.
    pub hunks: Vec<u32>,
}

/// Params of `sightline/previewRestore`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRestoreParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`. With `undo`, `last` is the undo
    /// point of the last restore.
    pub id: String,
    /// Limits the operation to these paths and everything below them.
    pub paths: Option<Vec<String>>,
    /// Include the checkpoints of other workspace folders from the same group. Fails
    /// with `conflict` if one of those folders is not open.
    #[serde(default)]
    pub all_roots: bool,
    /// Preview `sightline/undoRestore`, with its changes in every folder, or a restore. By default,
    /// an undo if `id` is the undo point of a restore of files and there are no `paths`.
    pub undo: Option<bool>,
    /// Revert the turn, and keep later changes. `id` is the name of a turn, or one of its
    /// checkpoints.
    pub only: Option<RestoreOnly>,
    /// Restore only these hunks of files, and `paths` besides. Fails if one of them does not exist. If `id`
    /// is the name of a turn, they are reverted as with `only`.
    pub hunks: Option<Vec<FileHunks>>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    pub root: Option<String>,
    /// Token for `$/progress` notifications, as in LSP.
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/previewRestore`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRestoreResult {
    /// Changes the restore would make.
    pub changes: Vec<RestoreChange>,
    /// Differences the restore would leave unchanged.
    pub conflicts: Vec<RestoreConflict>,
    /// Token of this preview. A restore with this token makes exactly these changes, or none.
    pub token: String,
    /// Id of the undo point, with `undo`.
    pub undo_id: Option<String>,
    /// Task whose conversation would be restored as well, with `undo`.
    pub task_id: Option<String>,
    /// The state that would be restored.
    pub target: Option<RestoreTarget>,
    /// What the user may not expect, as text: another branch is checked out now, the checkpoint is from
    /// another folder, another turn ran at the same time as this one and changed the same files, or this
    /// undoes an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The state that a restore leads to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreTarget {
    /// Id of the checkpoint.
    pub id: String,
    /// Name of the turn whose state before, or with a `+` after it this is.
    pub name: Option<String>,
    /// Label of the checkpoint.
    pub label: Option<String>,
    /// Creation time, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Branch of the user's repository.
    pub branch: Option<String>,
}

/// Action of a restore on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreAction {
    /// Write the saved content, mode or type.
    #[default]
    Write,
    /// Delete the path.
    Delete,
}

/// A change a restore would make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreChange {
    /// Path relative to a workspace folder.
    pub path: String,
    /// Action on the path.
    pub action: RestoreAction,
    /// Reason, as text for the user.
    pub reason: String,
    /// URI of the file.
    pub uri: String,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// A difference that a restore leaves unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreConflict {
    /// Path relative to a workspace folder.
    pub path: String,
    /// Reason, as text for the user.
    pub reason: String,
    /// True if this is an undo and the path was changed after the restore. With `force`,
    /// the undo discards that change.
    #[serde(default, skip_serializing_if = "is_false")]
    pub changed_since: bool,
    /// True if the path is open with unsaved text. With `force`, the text is replaced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unsaved: bool,
    /// URI of the file.
    pub uri: String,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// What to restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreMode {
    /// Files.
    #[default]
    Files,
    /// The conversation of the task, including one on a branch that was abandoned
    /// later. Fails with `conflict` if the log does not contain that state.
    Task,
    /// Files and conversation.
    FilesAndTask,
}

/// Params of `sightline/restoreCheckpoint`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`.
    pub id: String,
    /// Limits the operation to these paths and everything below them.
    pub paths: Option<Vec<String>>,
    /// Revert the turn, and keep later changes. `id` is the name of a turn, or one of its
    /// checkpoints.
    pub only: Option<RestoreOnly>,
    /// Restore only these hunks of files, and `paths` besides. Fails if one of them does not exist. If `id`
    /// is the name of a turn, they are reverted as with `only`.
    pub hunks: Option<Vec<FileHunks>>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    pub root: Option<String>,
    /// What to restore.
    #[serde(default)]
    pub mode: RestoreMode,
    /// Id of the task. Defaults to the task of the checkpoint.
    pub task_id: Option<String>,
    /// Token of a preview. If the preview is out of date, nothing is changed and the
    /// error is `conflict`.
    pub token: Option<String>,
    /// Also replace unsaved text in open documents.
    #[serde(default)]
    pub force: bool,
    /// Include the checkpoints of other workspace folders from the same group. Fails
    /// with `conflict` if one of those folders is not open.
    #[serde(default)]
    pub all_roots: bool,
    /// Token for `$/progress` notifications, as in LSP.
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointResult {
    /// Outcome of each planned change.
    pub outcomes: Vec<RestoreOutcome>,
    /// Differences that were left unchanged. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<RestoreConflict>,
    /// Id of the checkpoint created before the restore, for `sightline/undoRestore`.
    /// Absent if there was nothing to do; the last undo point then stays the same.
    pub undo_id: Option<String>,
    /// The restored conversation, if any.
    pub task: Option<RestoredTask>,
}

impl RestoreCheckpointResult {
    /// Returns the command that undoes the restore, if there is anything to undo.
    pub fn undo_command(&self) -> Option<String> {
        let is_unsaved = self.outcomes.iter().any(|one| one.replaced_unsaved);
        let force = if is_unsaved { " --force" } else { "" };
        let id = short_id(self.undo_id.as_ref()?);
        Some(format!("sightline checkpoint undo {id}{force}"))
    }
}

/// Outcome of one change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreOutcome {
    /// Path relative to a workspace folder.
    pub path: String,
    /// Planned action.
    pub action: RestoreAction,
    /// True if the action succeeded.
    pub ok: bool,
    /// Reason for the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the path was open with unsaved text, which was replaced. The document is
    /// still unsaved, so undoing this needs `force`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replaced_unsaved: bool,
    /// URI of the file.
    pub uri: String,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// A conversation that was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredTask {
    /// Id of the task.
    pub task_id: String,
    /// Number of messages in its conversation now.
    pub messages: u64,
}

/// Params of `sightline/undoRestore`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UndoRestoreParams {
    /// `undoId` of the restore to undo, or at least 4 digits of it. Defaults to `last`.
    pub undo_id: Option<String>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    pub root: Option<String>,
    /// Limits the undo to these paths and everything below them.
    pub paths: Option<Vec<String>>,
    /// Token of a preview of the undo. If the preview is out of date, nothing is
    /// changed and the error is `conflict`.
    pub token: Option<String>,
    /// Also revert paths that were changed after the restore, and replace unsaved text in
    /// open documents.
    pub force: bool,
    /// Token for `$/progress` notifications, as in LSP.
    pub work_done_token: Option<ProgressToken>,
}
