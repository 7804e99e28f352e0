//! Checkpoints of the workspace: `sightline/createCheckpoint`,
//! `listCheckpoints`, `diffCheckpoints`, `previewRestore`, `restoreCheckpoint`,
//! `undoRestore`, `checkpointStats`, `labelCheckpoint`, `pruneCheckpoints` and
//! `verifyCheckpoints`.

mod restore;
mod turns;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::files::{ProgressToken, is_false};

pub use restore::{
    FileHunks, PreviewRestoreParams, PreviewRestoreResult, RestoreAction, RestoreChange,
    RestoreCheckpointParams, RestoreCheckpointResult, RestoreConflict, RestoreMode, RestoreOnly,
    RestoreOutcome, RestoreTarget, RestoredTask, UndoRestoreParams,
};
pub use turns::{
    AgentTurn, BlameAuthor, BlameLine, BlameParams, BlameResult, CheckpointHead, CheckpointKind,
    CheckpointTurn, CommitCheckpointParams, CommitCheckpointResult, ListTurnsParams,
    ListTurnsResult, ListedTurn, OutsideChanges, TurnFile, short_id,
};

/// A checkpoint: the saved state of a workspace folder.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Id of the checkpoint: a git commit id of 40 hexadecimal digits.
    pub id: String,
    /// URI of the workspace folder.
    pub root: String,
    /// Task the checkpoint belongs to.
    pub task_id: Option<String>,
    /// Label chosen by the user.
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
    pub purpose: Option<CheckpointPurpose>,
    /// Number of messages in the conversation of the task when the checkpoint was created.
    pub messages: Option<u64>,
    /// Checkpoints created together, one per workspace folder. Absent if there is one folder.
    pub group: Option<Vec<GroupMember>>,
    /// Id in the store the checkpoint was imported from. Accepted wherever a checkpoint
    /// id is expected.
    pub imported: Option<String>,
    /// Why the checkpoint was created.
    #[serde(default)]
    pub kind: CheckpointKind,
    /// Turn of an agent at whose first edit or end the checkpoint was created automatically.
    pub turn: Option<CheckpointTurn>,
    /// Branch and commit of the user's repository. Absent without a commit, and for a checkpoint of an
    /// older version.
    pub head: Option<CheckpointHead>,
    /// Id of the checkpoint that was about to be restored, for an undo point of files.
    pub restored_id: Option<String>,
    /// Id of the undo point of the undo, for an undo point whose restore was undone.
    pub undone_by: Option<String>,
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CreateCheckpointParams {
    /// Task the checkpoint belongs to.
    pub task_id: Option<String>,
    /// Label chosen by the user.
    pub label: Option<String>,
    /// Path, URI or name of a workspace folder. If absent, creates a group with one
    /// checkpoint per folder.
    pub root: Option<String>,
    /// Create the first checkpoint even if the workspace exceeds the size limits.
    pub confirm_large: bool,
    /// Turn of an agent that is about to edit. If it is not known yet, it begins and gets a name. The
    /// checkpoint is automatic: it counts for the setting `checkpoints.keepAutomatic`, unless it has a label.
    pub turn: Option<AgentTurn>,
    /// The turn ends. If nothing changed since the newest checkpoint, that one is returned, and none is
    /// created.
    pub turn_end: bool,
    /// Created without a request of the user, outside a turn.
    pub automatic: bool,
    /// Only the first checkpoint of the folder is created: if there is one, the newest is returned.
    pub first: bool,
    /// Token for `$/progress` notifications, as in LSP.
    pub work_done_token: Option<ProgressToken>,
}

/// Params of `sightline/listCheckpoints`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListCheckpointsParams {
    /// Return only checkpoints of this task.
    pub task_id: Option<String>,
    /// Return only checkpoints of this workspace folder, given by path, URI or name.
    pub root: Option<String>,
    /// Return only this checkpoint, named as in `sightline/diffCheckpoints`.
    pub id: Option<String>,
    /// Return only checkpoints in which this file differs from the checkpoint before.
    pub path: Option<String>,
    /// Maximum number of checkpoints to return, newest first.
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffCheckpointsParams {
    /// Checkpoint on the old side: an id, at least 4 digits of one, `last` for the newest that
    /// is not an undo point, or the name of a turn such as `claude-2.3`: the state before it, or with a
    /// `+` the state after it. A leading `HEAD ` is ignored.
    pub from: String,
    /// Checkpoint on the new side, as in `from`; `NAME+` of a running turn is the current workspace. By
    /// default the current workspace or, if `from` is the name of a turn, the state after that turn.
    pub to: Option<String>,
    /// Limits the operation to these paths and everything below them.
    pub paths: Option<Vec<String>>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    pub root: Option<String>,
    /// Include the file contents.
    #[serde(default)]
    pub contents: bool,
    /// Include a unified diff in `text`.
    #[serde(default)]
    pub patch: bool,
    /// Token for `$/progress` notifications, as in LSP.
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDifference {
    /// Path relative to a workspace folder. For a deleted file, its old path.
    pub path: String,
    /// Old path of a renamed file.
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
    pub before: Option<String>,
    /// New text, if requested with `contents`.
    pub after: Option<String>,
    /// Changed parts of a text file, as the unified diff shows them, with `contents`. Absent if there are
    /// none, and without contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// Reason why requested contents are missing, or why the file was not compared.
    pub omitted: Option<String>,
    /// Old git file mode, such as `100644`.
    pub old_mode: Option<String>,
    /// New git file mode.
    pub new_mode: Option<String>,
    /// URI of the file.
    pub uri: String,
    /// True if a name is not UTF-8 and `path` and `oldPath` are percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// A changed part of a file, with the lines around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// Number in the file, from 1.
    pub number: u32,
    /// First line, from 1, and number of lines on the old side. With 0 lines, the first one is the line
    /// before.
    pub before: Vec<u64>,
    /// The same on the new side.
    pub after: Vec<u64>,
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointStatsResult {
    /// Number of stored checkpoints, including undo points.
    pub count: u64,
    /// Disk usage, in bytes.
    pub bytes: u64,
    /// Creation time of the oldest checkpoint, in milliseconds since the Unix epoch.
    pub oldest: Option<i64>,
    /// Creation time of the newest checkpoint, in milliseconds since the Unix epoch.
    pub newest: Option<i64>,
    /// Time of the last verification, if it found no problem, in milliseconds since the Unix epoch.
    pub verified_at: Option<i64>,
}

/// Params of `sightline/pruneCheckpoints`. Without a limit, nothing is removed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PruneCheckpointsParams {
    /// Number of newest checkpoints to keep per workspace folder. Undo points are not counted.
    pub keep: Option<u32>,
    /// Remove checkpoints created before this time, in milliseconds since the Unix epoch.
    pub older_than: Option<i64>,
    /// Remove the oldest checkpoints until each workspace folder uses at most this many bytes.
    pub max_bytes: Option<u64>,
    /// Remove these checkpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Also remove checkpoints with a label. Those in `ids` are removed in any case.
    pub labelled: bool,
    /// Report what would be removed without removing it.
    pub dry_run: bool,
    /// Limits the operation to this workspace folder, given by path, URI or name.
    pub root: Option<String>,
    /// Token for `$/progress` notifications, as in LSP.
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelCheckpointParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`.
    pub id: String,
    /// The new label. If absent or empty, the label is removed.
    pub label: Option<String>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    pub root: Option<String>,
}

/// Params of `sightline/verifyCheckpoints`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct VerifyCheckpointsParams {
    /// Limits the operation to this workspace folder, given by path, URI or name.
    pub root: Option<String>,
    /// Token for `$/progress` notifications, as in LSP.
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
