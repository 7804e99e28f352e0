//! Checkpoints of the workspace: `sightline/createCheckpoint`,
//! `listCheckpoints`, `diffCheckpoints`, `previewRestore`, `restoreCheckpoint`,
//! `undoRestore`, `checkpointStats`, `labelCheckpoint`, `pruneCheckpoints` and
//! `verifyCheckpoints`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::{ProgressToken, is_false};

/// A checkpoint: the saved state of a workspace folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Id of the checkpoint: a git commit id of 40 hexadecimal digits.
    pub id: String,
    /// URI of the workspace folder.
    pub root: String,
    /// Task the checkpoint belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Label chosen by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Creation time, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Files added since the previous checkpoint.
    pub added: u64,
    /// Files whose content or mode changed since the previous checkpoint.
    pub modified: u64,
    /// Files deleted since the previous checkpoint.
    pub deleted: u64,
    /// Paths in the workspace that are not in the checkpoint. Ignored paths are not listed.
    pub skipped: Vec<SkippedPath>,
    /// Time taken to create the checkpoint, in milliseconds.
    pub duration_ms: u64,
    /// Number of files in the checkpoint.
    pub files: u64,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Purpose of a checkpoint that was not requested by a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<CheckpointPurpose>,
    /// Number of messages in the conversation of the task when the checkpoint was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Checkpoints created together, one per workspace folder. Absent if there is one folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<GroupMember>>,
    /// Id in the store the checkpoint was imported from. Accepted wherever a checkpoint
    /// id is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Turn of an agent before which the checkpoint was created automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<AgentTurn>,
}

/// Length of an abbreviated checkpoint id.
const SHORT_ID_DIGITS: usize = 8;

/// Returns an abbreviated checkpoint id, as all output for people shows it.
pub fn short_id(id: &str) -> &str {
    id.get(..SHORT_ID_DIGITS).unwrap_or(id)
}

/// One turn of an agent: a prompt and the edits that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTurn {
    /// Name of the agent.
    pub agent: String,
    /// Session of the agent.
    pub session: String,
    /// Turn of the session.
    pub turn: String,
}

/// Purpose of a checkpoint that was not requested by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckpointPurpose {
    /// Undo point, created before a restore.
    Undo,
    /// Imported from the store of another tool.
    Imported,
}

/// One checkpoint of a group created together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupMember {
    /// URI of the workspace folder.
    pub root: String,
    /// Id of its checkpoint.
    pub id: String,
}

/// A path that is not in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedPath {
    /// Path relative to the workspace folder of the checkpoint, with `/`.
    pub path: String,
    /// Reason, as text for the user.
    pub reason: String,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Params of `sightline/createCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CreateCheckpointParams {
    /// Task the checkpoint belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Label chosen by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Path, URI or name of a workspace folder. If absent, creates a group with one
    /// checkpoint per folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Create the first checkpoint even if the workspace exceeds the size limits.
    pub confirm_large: bool,
    /// Turn of an agent that is about to edit. The checkpoint is automatic: it counts for
    /// the setting `checkpoints.keepAutomatic`, unless it has a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<AgentTurn>,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Params of `sightline/listCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListCheckpointsParams {
    /// Return only checkpoints of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Return only checkpoints of this workspace folder, given by path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Return only this checkpoint, named as in `sightline/diffCheckpoints`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Maximum number of checkpoints to return, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `sightline/listCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListCheckpointsResult {
    /// Checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
}

/// Params of `sightline/diffCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffCheckpointsParams {
    /// Checkpoint on the old side: an id, at least 4 digits of one, `last` for the newest that
    /// is not an undo point, or `#3` for the third of the newest session of an agent. A leading
    /// `HEAD ` is ignored.
    pub from: String,
    /// Checkpoint on the new side, as in `from`. Defaults to the current workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Limits the operation to these paths and everything below them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Include the file contents.
    #[serde(default)]
    pub contents: bool,
    /// Include a unified diff in `text`.
    #[serde(default)]
    pub patch: bool,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/diffCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffCheckpointsResult {
    /// Changed files, sorted by path.
    pub files: Vec<FileDifference>,
    /// Unified diff, if requested with `patch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Kind of difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DifferenceStatus {
    /// The file is new.
    Added,
    /// The content or the executable bit changed.
    #[default]
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file was moved, with the same content.
    Renamed,
    /// The file type changed, for example from a file to a symbolic link.
    TypeChanged,
}

/// A changed file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDifference {
    /// Path relative to a workspace folder. For a deleted file, its old path.
    pub path: String,
    /// Old path of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// Kind of difference.
    pub status: DifferenceStatus,
    /// True if either side is not text.
    pub binary: bool,
    /// Number of added lines; 0 for a binary file.
    pub additions: u64,
    /// Number of deleted lines; 0 for a binary file.
    pub deletions: u64,
    /// Old text, if requested with `contents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// New text, if requested with `contents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Reason why requested contents are missing, or why the file was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<String>,
    /// Old git file mode, such as `100644`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// New git file mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    /// URI of the file.
    pub uri: String,
    /// True if a name is not UTF-8 and `path` and `oldPath` are percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Params of `sightline/previewRestore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRestoreParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`. With `undo`, `last` is the undo
    /// point of the last restore.
    pub id: String,
    /// Limits the operation to these paths and everything below them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Include the checkpoints of other workspace folders from the same group. Fails
    /// with `conflict` if one of those folders is not open.
    #[serde(default)]
    pub all_roots: bool,
    /// Preview `sightline/undoRestore`, with its changes in every folder, or a restore. By default,
    /// an undo if `id` is the undo point of a restore of files and there are no `paths`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<bool>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/previewRestore`.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
    /// Task whose conversation would be restored as well, with `undo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`.
    pub id: String,
    /// Limits the operation to these paths and everything below them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What to restore.
    #[serde(default)]
    pub mode: RestoreMode,
    /// Id of the task. Defaults to the task of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Token of a preview. If the preview is out of date, nothing is changed and the
    /// error is `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Also replace unsaved text in open documents.
    #[serde(default)]
    pub force: bool,
    /// Include the checkpoints of other workspace folders from the same group. Fails
    /// with `conflict` if one of those folders is not open.
    #[serde(default)]
    pub all_roots: bool,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
    /// The restored conversation, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UndoRestoreParams {
    /// `undoId` of the restore to undo, or at least 4 digits of it. Defaults to `last`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Limits the undo to these paths and everything below them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Token of a preview of the undo. If the preview is out of date, nothing is
    /// changed and the error is `conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Also revert paths that were changed after the restore, and replace unsaved text in
    /// open documents.
    pub force: bool,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Params of `sightline/checkpointStats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CheckpointStatsParams {
    /// Limits the operation to this workspace folder, given by path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Result of `sightline/checkpointStats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointStatsResult {
    /// Number of stored checkpoints, including undo points.
    pub count: u64,
    /// Disk usage, in bytes.
    pub bytes: u64,
    /// Creation time of the oldest checkpoint, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<i64>,
    /// Creation time of the newest checkpoint, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<i64>,
}

/// Params of `sightline/pruneCheckpoints`. Without a limit, nothing is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PruneCheckpointsParams {
    /// Number of newest checkpoints to keep per workspace folder. Undo points are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// Remove checkpoints created before this time, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<i64>,
    /// Remove the oldest checkpoints until each workspace folder uses at most this many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Remove these checkpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Also remove checkpoints with a label. Those in `ids` are removed in any case.
    pub labelled: bool,
    /// Report what would be removed without removing it.
    pub dry_run: bool,
    /// Limits the operation to this workspace folder, given by path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/pruneCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneCheckpointsResult {
    /// Number of removed checkpoints. With `dryRun`, the number that would be removed.
    pub removed: u64,
    /// Freed disk space, in bytes. With `dryRun`, an estimate.
    pub freed_bytes: u64,
    /// Number of checkpoints that were kept only because of their label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_labelled: Option<u64>,
    /// With `dryRun`, the ids of the checkpoints that would be removed, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<String>,
}

/// Params of `sightline/labelCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelCheckpointParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`.
    pub id: String,
    /// The new label. If absent or empty, the label is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Params of `sightline/verifyCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct VerifyCheckpointsParams {
    /// Limits the operation to this workspace folder, given by path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Token for `$/progress` notifications, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// Result of `sightline/verifyCheckpoints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyCheckpointsResult {
    /// True if every checkpoint is intact.
    pub ok: bool,
    /// Problems, as text for the user.
    pub problems: Vec<String>,
}

/// Params of `sightline/didCreateCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidCreateCheckpointParams {
    /// The new checkpoint.
    pub checkpoint: Checkpoint,
}
