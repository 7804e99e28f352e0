//! The metadata of a checkpoint, stored in the message of its commit.

pub(crate) mod cache;
pub(crate) mod excluded;
pub(crate) mod head;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use sightline_access::AccessView;
use sightline_base::escape::one_line;
use sightline_protocol::checkpoint::AgentTurn;
use uuid::Uuid;

use head::Head;

use super::{
    named_path::NamedPath,
    store::object::{Commit, Oid},
    worktree::{exclusions::SavedExclusions, permissions::RestrictedPath},
};

/// Maximum length of a commit subject, in characters. The metadata holds the whole label.
const MAX_SUBJECT_CHARS: usize = 100;

/// Why a checkpoint was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Purpose {
    /// On request.
    #[default]
    Asked,
    /// Before a restore, so that it can be undone.
    Undo {
        /// Checkpoint that was about to be restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restoring: Option<Oid>,
        /// Restored paths, with everything below them. Empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<NamedPath>,
    },
    /// Imported from another tool's store.
    Imported,
}

/// Position in a task's conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMark {
    /// Number of messages since the last compaction.
    pub messages: u64,
    /// Number of compactions; each one restarts the message count.
    pub compactions: u64,
    /// Newest entry of the task's log, which identifies the conversation. `None` if the log is
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Uuid>,
}

/// A workspace path that a checkpoint does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Path relative to the root, with `/`; percent-encoded if `encoded`.
    pub path: String,
    /// Whether `path` is percent-encoded because its bytes are not UTF-8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
    /// Human-readable reason.
    pub reason: String,
}

impl Skipped {
    pub(crate) fn named(&self) -> NamedPath {
        NamedPath {
            path: self.path.clone(),
            encoded: self.encoded,
        }
    }

    /// Returns whether `view` allows showing the path. The rules may have changed since, or the
    /// checkpoint may come from another machine. The entry that counts unlisted paths has an empty
    /// path.
    pub fn may_be_shown(&self, view: &AccessView, root: usize) -> bool {
        let Some(path) = self.named().to_path() else {
            return false;
        };
        let denied = |is_dir| view.check_entry(root, &path, is_dir).is_some();
        path.is_root() || !(denied(false) || denied(true))
    }
}

/// Number of files that differ from the previous checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// New files.
    pub added: u64,
    /// Files with another content, mode or type.
    pub modified: u64,
    /// Removed files.
    pub deleted: u64,
}

/// Metadata of a checkpoint, stored as JSON in the commit message.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckpointMetadata {
    /// Creation time, in milliseconds since the epoch.
    pub created: u64,
    /// Orders checkpoints created in the same millisecond.
    pub sequence: u64,
    /// Task it belongs to.
    pub task: Option<String>,
    /// Label chosen by the user.
    pub label: Option<String>,
    /// Why it was created.
    pub purpose: Purpose,
    /// Turn of an agent at whose first edit or end it was created automatically.
    pub turn: Option<AgentTurn>,
    /// Whether it was created at the end of the turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub turn_end: bool,
    /// Whether it was created automatically outside a turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// Branch and commit of the user's repository.
    pub head: Option<Head>,
    /// Commit of another tool that it was imported from.
    pub imported: Option<String>,
    /// Position in the task's conversation.
    pub messages: Option<ConversationMark>,
    /// Identifier shared by checkpoints created together, one of each root.
    pub group: Option<String>,
    /// URIs of the roots in the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_roots: Vec<String>,
    /// Conversation rewind that restoring this checkpoint also undoes.
    pub rewind: Option<String>,
    /// Differences to the previous checkpoint.
    pub counts: Counts,
    /// Number of files.
    pub files: u64,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Skipped paths, with reasons.
    pub skipped: Vec<Skipped>,
    /// Ignored and denied paths. `None` if they are unknown: there were too many, or an older
    /// version or another tool created the checkpoint.
    pub exclusions: Option<SavedExclusions>,
    /// Files with restricted read permissions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted: Vec<RestrictedPath>,
    /// Time it took to create, in milliseconds.
    pub duration_ms: u64,
    /// Whether it was fetched from a remote. Known locally, not part of the commit.
    #[serde(skip)]
    pub fetched: bool,
}

impl CheckpointMetadata {
    /// Returns whether it is that of an undo point.
    pub fn is_undo(&self) -> bool {
        matches!(self.purpose, Purpose::Undo { .. })
    }
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Commit id.
    pub id: Oid,
    /// Tree of the commit.
    pub tree: Oid,
    /// Its metadata.
    pub metadata: CheckpointMetadata,
}

/// When a checkpoint is created. Otherwise the newest one is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreateIf {
    /// Always.
    #[default]
    Always,
    /// If files differ from the newest checkpoint.
    Changed,
    /// If there is no checkpoint.
    First,
}

/// Parameters of a new checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What is known of it before the work tree is scanned: its purpose, task, turn and group.
    pub metadata: CheckpointMetadata,
    /// When it is created.
    pub create_if: CreateIf,
    /// Skips the confirmation for large work trees.
    pub confirm_large: bool,
}

impl Request {
    /// Returns the request for an undo point: of a restore of files, or only of a conversation.
    #[must_use]
    pub fn of_undo_point(&self, restoring: Option<Oid>, paths: Vec<NamedPath>) -> Self {
        Self {
            create_if: CreateIf::Always,
            confirm_large: true,
            metadata: CheckpointMetadata {
                label: None,
                turn: None,
                turn_end: false,
                automatic: false,
                purpose: Purpose::Undo { restoring, paths },
                ..self.metadata.clone()
            },
        }
    }
}

/// Builds the commit message: the label as subject, then the metadata as JSON.
pub(crate) fn message(metadata: &CheckpointMetadata) -> String {
    let label: String = metadata
        .label
        .iter()
        .flat_map(|label| label.chars())
        .take(MAX_SUBJECT_CHARS)
        .collect();
    let label = one_line(label.trim());
    let subject = match label.as_ref() {
        "" => "checkpoint",
        label => label,
    };
    // Plain data with string keys always serializes.
    let json = serde_json::to_string(metadata).unwrap_or_default();
    format!("{subject}\n\n{json}\n")
}

/// Returns the commit of a checkpoint.
pub(crate) fn commit_of(tree: Oid, metadata: &CheckpointMetadata) -> Commit {
    Commit {
        tree,
        time: metadata.created / 1000,
        message: message(metadata),
    }
}

/// Parses the metadata of a commit. Returns `None` if the commit is not a checkpoint.
pub(crate) fn metadata_of(commit: &Commit) -> Option<CheckpointMetadata> {
    let (_, json) = commit.message.split_once("\n\n")?;
    let metadata: CheckpointMetadata = serde_json::from_str(json).ok()?;
    (metadata.created > 0).then_some(metadata)
}

/// Returns whether a commit has the metadata of a checkpoint.
pub(crate) fn is_checkpoint(commit: &Commit) -> bool {
    metadata_of(commit).is_some()
}

/// Converts a time in milliseconds since the Unix epoch to that of the protocol.
pub fn to_i64(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
