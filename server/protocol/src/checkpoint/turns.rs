//! Turns of agents, and what checkpoints say about them: `sightline/listTurns`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Name of the turn, such as `claude-2.3`. Accepted wherever a checkpoint id is expected, for the state
    /// before the turn; with a `+`, for the state after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first characters of the prompt, if the setting `checkpoints.turnNames` stores them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Time of the prompt, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// End of the turn, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
