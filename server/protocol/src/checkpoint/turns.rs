//! Turns of agents, and what checkpoints say about them: `sightline/listTurns`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::DifferenceStatus;
use crate::files::is_false;

/// One turn of an agent: a prompt and the edits that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTurn {
    /// Name of the agent.
    pub agent: String,
    /// Session of the agent.
    pub session: String,
    /// Turn of the session, as the agent calls it, or its name.
    pub turn: String,
}

/// Why a checkpoint was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckpointKind {
    /// Before the first edit of a turn of an agent.
    TurnStart,
    /// At the end of a turn of an agent.
    TurnEnd,
    /// On request.
    #[default]
    Manual,
    /// Before a restore.
    UndoPoint,
    /// Imported from the store of another tool.
    Imported,
    /// Automatically, outside a turn.
    Automatic,
}

/// Turn of an agent that a checkpoint belongs to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointTurn {
    /// Name of the agent.
    pub agent: String,
    /// Session of the agent.
    pub session: String,
    /// The turn as stored with the checkpoint: its name or, by an older version or for a fetched
    /// checkpoint, what the agent called it.
    pub turn: String,
    /// Number of the prompt in the session, from 1. The fields from here on are absent if the turn was not
    /// recorded here: by an older version, or on another machine.
    pub number: Option<u64>,
    /// Name of the turn, such as `claude-2.3`. Accepted wherever a checkpoint id is expected, for the state
    /// before the turn; with a `+`, for the state after it.
    pub name: Option<String>,
    /// The first characters of the prompt, if the setting `checkpoints.turnNames` stores them.
    pub prompt: Option<String>,
    /// Time of the prompt, in milliseconds since the Unix epoch.
    pub started_at: Option<i64>,
    /// End of the turn, in milliseconds since the Unix epoch.
    pub ended_at: Option<i64>,
}

/// Branch and commit of the user's repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointHead {
    /// Name of the branch. Absent if a commit was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Id of the commit.
    pub commit: String,
}

/// Length of an abbreviated checkpoint id.
const SHORT_ID_DIGITS: usize = 8;

/// Returns an abbreviated checkpoint id, as all output for people shows it.
pub fn short_id(id: &str) -> &str {
    id.get(..SHORT_ID_DIGITS).unwrap_or(id)
}

/// Params of `sightline/listTurns`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListTurnsParams {
    /// Return only turns of this workspace folder, given by path, URI or name.
    pub root: Option<String>,
    /// Return only turns of this session: its name, such as `claude-2`, or what the agent calls it.
    pub session: Option<String>,
    /// Maximum number of turns to return, newest first; 100 by default, at most 1000.
    pub limit: Option<u32>,
    /// Return only turns that began before this one, to continue a list.
    pub before: Option<String>,
}

/// Result of `sightline/listTurns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTurnsResult {
    /// Turns, newest first.
    pub turns: Vec<ListedTurn>,
}

/// A turn of an agent: a prompt, and what followed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedTurn {
    /// Name of the turn, such as `claude-2.3`.
    pub name: String,
    /// URI of the workspace folder.
    pub root: String,
    /// Name of the agent.
    pub agent: String,
    /// Session, as the agent calls it.
    pub session: String,
    /// Number of the prompt in the session, from 1.
    pub number: u64,
    /// The first characters of the prompt, if the setting `checkpoints.turnNames` stores them.
    pub prompt: Option<String>,
    /// Time of the prompt, in milliseconds since the Unix epoch.
    pub started_at: i64,
    /// End of the turn, in milliseconds since the Unix epoch.
    pub ended_at: Option<i64>,
    /// True if the turn has not ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub running: bool,
    /// Branch and commit of the user's repository at the prompt.
    pub head: Option<CheckpointHead>,
    /// Id of the checkpoint before the first edit. Absent if the turn edited nothing.
    pub before: Option<String>,
    /// Id of the checkpoint at the end.
    pub after: Option<String>,
    /// Files that changed in the turn, sorted by path. At most 200.
    pub files: Vec<TurnFile>,
    /// Number of changed files that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// What changed between the end of the turn before and the first edit.
    pub outside: Option<OutsideChanges>,
}

/// A file that a turn changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnFile {
    /// Path relative to the workspace folder.
    pub path: String,
    /// Kind of change.
    pub status: DifferenceStatus,
    /// Number of added lines; 0 if the contents were not compared.
    pub additions: u64,
    /// Number of deleted lines; 0 if the contents were not compared.
    pub deletions: u64,
    /// Names of turns that ran at the same time and also have the file. What changed while both ran is
    /// listed for both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_with: Vec<String>,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// What changed between two turns: by the user, another program, or another agent.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutsideChanges {
    /// Files, sorted by path. At most 200. Their contents are not compared.
    pub files: Vec<TurnFile>,
    /// Number of changed files that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// Names of other turns that ran then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// Branch and commit before, if they changed.
    pub from: Option<CheckpointHead>,
    /// Branch and commit after, if they changed.
    pub to: Option<CheckpointHead>,
}

/// Params of `sightline/blame`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlameParams {
    /// File.
    pub path: String,
    /// Path, URI or name of the workspace folder, if several have the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Result of `sightline/blame`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlameResult {
    /// Each line of the file on disk, in order.
    pub lines: Vec<BlameLine>,
}

/// Author of a line.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlameLine {
    /// Number of the line, from 1.
    pub line: u64,
    /// Author.
    pub by: BlameAuthor,
    /// Name of the turn in which it was written. Absent if several turns ran then.
    pub turn: Option<String>,
    /// Name of the agent. Absent if several agents had a turn then.
    pub agent: Option<String>,
    /// Names of the turns, if several ran when it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// Time of the first checkpoint with the line, in milliseconds since the Unix epoch. Absent if no
    /// checkpoint has it yet, and for `unknown`.
    pub at: Option<i64>,
}

/// Author of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BlameAuthor {
    /// An agent: the line appeared in a turn.
    Agent,
    /// The user or another program: the line appeared outside every turn.
    User,
    /// The line is older than the checkpoints, or a state around its change was not saved.
    #[default]
    Unknown,
}

/// Params of `sightline/commitCheckpoint`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitCheckpointParams {
    /// Checkpoint, named as in `sightline/diffCheckpoints`: the name of a turn with a `+` is the state
    /// after it.
    pub id: String,
    /// Name of the new branch.
    pub branch: String,
    /// Commit message. By default the label of the checkpoint, or the prompt of the turn that ends with it.
    pub message: Option<String>,
    /// Path, URI or name of the only workspace folder to search, unless the id is whole.
    pub root: Option<String>,
}

/// Result of `sightline/commitCheckpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitCheckpointResult {
    /// Id of the commit.
    pub commit: String,
    /// Name of the branch.
    pub branch: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "for serde")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
