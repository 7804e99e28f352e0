//! Checkpoints of the workspace: `sightline/createCheckpoint`,
//! `listCheckpoints`, `diffCheckpoints`, `previewRestore`, `restoreCheckpoint`,
//! `undoRestore`, `checkpointStats`, `pruneCheckpoints` and
//! `verifyCheckpoints`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::{ProgressToken, is_false};

/// The workspace as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Its id, that of a git commit: 40 hexadecimal digits.
    pub id: String,
    /// URI of the workspace folder it is of.
    pub root: String,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was taken, milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Files that were not in the one before.
    pub added: u64,
    /// Files that were in it with other content or mode.
    pub modified: u64,
    /// Files of the one before that are not in it.
    pub deleted: u64,
    /// What is in the workspace and not in the checkpoint. What the ignore
    /// rules leave out is not named.
    pub skipped: Vec<SkippedPath>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Files it holds.
    pub files: u64,
    /// Their sizes, in bytes.
    pub bytes: u64,
    /// Why it was taken, when nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<CheckpointPurpose>,
    /// How many messages the conversation of its task had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// The checkpoints that were taken together, one of each workspace folder;
    /// absent when there is one folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<GroupMember>>,
    /// The id it had in the store it was imported from. Wherever the id of a
    /// checkpoint is wanted, this one is understood too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
}

/// Why a checkpoint was taken that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckpointPurpose {
    /// Before a restore, to be able to undo it.
    Undo,
    /// It came from another tool's store.
    Imported,
}

/// One of the checkpoints that were taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupMember {
    /// URI of the workspace folder.
    pub root: String,
    /// Its checkpoint.
    pub id: String,
}

/// Something that is not in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedPath {
    /// Path below the workspace folder of the checkpoint, with `/`.
    pub path: String,
    /// Why, for people.
    pub reason: String,
    /// True when the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Params of `sightline/createCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CreateCheckpointParams {
    /// The task it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A workspace folder: its path, URI or name. One checkpoint of each folder,
    /// as a group, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Go ahead however large the workspace is.
    pub confirm_large: bool,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Params of `sightline/listCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListCheckpointsParams {
    /// Only those of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Only those of this workspace folder: its path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// At most so many, the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `sightline/listCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListCheckpointsResult {
    /// The checkpoints, the newest first.
    pub checkpoints: Vec<Checkpoint>,
}

/// Params of `sightline/diffCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffCheckpointsParams {
    /// The older side: id of a checkpoint.
    pub from: String,
    /// The newer side; the workspace as it is now when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Only these paths and what is below them; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Also give the contents.
    #[serde(default)]
    pub contents: bool,
    /// Also give the differences as unified text, in `text`.
    #[serde(default)]
    pub patch: bool,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/diffCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffCheckpointsResult {
    /// The files that differ, in order of path.
    pub files: Vec<FileDifference>,
    /// The differences as unified text, when that was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// How a file differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DifferenceStatus {
    /// It is new.
    Added,
    /// Its content, or whether it may be executed.
    #[default]
    Modified,
    /// It is gone.
    Deleted,
    /// It is elsewhere, its content the same or similar.
    Renamed,
    /// A file became a link, or a link a file; or it became neither.
    TypeChanged,
}

/// A file that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDifference {
    /// Where it is, or was when it is gone: relative to a workspace folder.
    pub path: String,
    /// Where it was, when it is elsewhere now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// How it differs.
    pub status: DifferenceStatus,
    /// One of the sides is no text.
    pub binary: bool,
    /// Lines that are new; 0 when binary.
    pub additions: u64,
    /// Lines that are gone; 0 when binary.
    pub deletions: u64,
    /// The old text, when contents were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The new text, when contents were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why contents that were wanted are not here; also without that, why the
    /// file was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<String>,
    /// git's mode before, as `100644`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// git's mode after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    /// The file, to be opened.
    pub uri: String,
    /// True when a name is not UTF-8 and `path` and `oldPath` are percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Params of `sightline/previewRestore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRestoreParams {
    /// The checkpoint; the word `HEAD ` in front of it is passed over. With `undo` an
    /// undo point, or `last` for that of the last restore.
    pub id: String,
    /// Only these paths and what is below them; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Also the checkpoints of other workspace folders taken with it; a
    /// `conflict` when one of those folders is not open.
    #[serde(default)]
    pub all_roots: bool,
    /// Preview `sightline/undoRestore`: all that it would change, in every folder.
    #[serde(default)]
    pub undo: bool,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/previewRestore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRestoreResult {
    /// What would be changed.
    pub changes: Vec<RestoreChange>,
    /// What differs and would be left alone.
    pub conflicts: Vec<RestoreConflict>,
    /// Names this preview: a restore with it does just this, or nothing.
    pub token: String,
    /// With `undo`: the undo point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
    /// With `undo`: the task whose conversation would be put back as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

/// What a restore does to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreAction {
    /// It gets the content, mode or type it had.
    #[default]
    Write,
    /// It goes.
    Delete,
}

/// Something a restore would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreChange {
    /// Path relative to a workspace folder.
    pub path: String,
    /// What would be done.
    pub action: RestoreAction,
    /// Why, for people.
    pub reason: String,
    /// True when this is an undo point and the path was changed after the restore: the
    /// undo takes that change away too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub changed_since: bool,
    /// The file, to be opened.
    pub uri: String,
    /// True when the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Something that differs and is left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreConflict {
    /// Path relative to a workspace folder.
    pub path: String,
    /// Why, for people.
    pub reason: String,
    /// The file, to be opened.
    pub uri: String,
    /// True when the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// What is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreMode {
    /// The files.
    #[default]
    Files,
    /// The conversation of the task, to what it was, also on a branch that was
    /// left since; a `conflict` when its log does not hold that.
    Task,
    /// Both.
    FilesAndTask,
}

/// Params of `sightline/restoreCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointParams {
    /// The checkpoint; the word `HEAD ` in front of it is passed over.
    pub id: String,
    /// Only these paths and what is below them; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// What is restored.
    #[serde(default)]
    pub mode: RestoreMode,
    /// The task; that of the checkpoint when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The preview this must still be true of; else nothing is done, and the
    /// error is a `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Also replace unsaved text of open documents.
    #[serde(default)]
    pub force: bool,
    /// Also the checkpoints of other workspace folders taken with it; a
    /// `conflict` when one of those folders is not open.
    #[serde(default)]
    pub all_roots: bool,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointResult {
    /// What became of each path that was to be changed.
    pub outcomes: Vec<RestoreOutcome>,
    /// What differs and was left alone; absent when nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<RestoreConflict>,
    /// The checkpoint taken just before: give it to `sightline/undoRestore`. Absent when
    /// there was nothing to do: the undo of the restore before stays the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
    /// What became of the conversation, when that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RestoredTask>,
}

/// What became of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreOutcome {
    /// Path relative to a workspace folder.
    pub path: String,
    /// What was to be done.
    pub action: RestoreAction,
    /// Was it done?
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The file, to be opened.
    pub uri: String,
    /// True when the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// A conversation that was taken back, or forth again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredTask {
    /// The task.
    pub task_id: String,
    /// Messages its conversation has now.
    pub messages: u64,
}

/// Params of `sightline/undoRestore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UndoRestoreParams {
    /// What the restore returned; the last restore when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
    /// The preview of the undo point this must still be true of; else nothing is done,
    /// and the error is a `conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Also replace unsaved text of open documents.
    pub force: bool,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Params of `sightline/checkpointStats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CheckpointStatsParams {
    /// Only this workspace folder: its path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Result of `sightline/checkpointStats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointStatsResult {
    /// Checkpoints that are stored, undo points included.
    pub count: u64,
    /// What they take on disk, in bytes.
    pub bytes: u64,
    /// When the oldest was taken, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<i64>,
    /// When the newest was taken, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<i64>,
}

/// Params of `sightline/pruneCheckpoints`. Without any limit nothing is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PruneCheckpointsParams {
    /// Keep the newest so many of each workspace folder; undo points are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// Remove those taken before this time, milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<i64>,
    /// Remove the oldest until each workspace folder's take so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Only tell what would be removed.
    pub dry_run: bool,
    /// Only this workspace folder: its path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/pruneCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneCheckpointsResult {
    /// Checkpoints that were removed; with `dryRun` those that would be.
    pub removed: u64,
    /// Bytes on disk given back; with `dryRun` an estimate.
    pub freed_bytes: u64,
    /// With `dryRun`: the ids of those that would be removed, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<String>,
}

/// Params of `sightline/verifyCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct VerifyCheckpointsParams {
    /// Only this workspace folder: its path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/verifyCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyCheckpointsResult {
    /// Is every checkpoint whole?
    pub ok: bool,
    /// What is wrong, for people.
    pub problems: Vec<String>,
}

/// Params of `sightline/didCreateCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidCreateCheckpointParams {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
}
