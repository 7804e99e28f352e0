//! An agent's activity in a conversation: files changed, read and mentioned, and commands run.

/// Activity on one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FileActivity {
    /// Name in results.
    pub(super) path: String,
    /// Whether the agent changed it.
    pub(super) changed: bool,
    /// Whether the user changed it.
    pub(super) changed_by_user: bool,
    pub(super) read: bool,
    pub(super) mentions: u64,
    /// Last message that names it.
    pub(super) position: Option<usize>,
    /// Last time in the tracker records, in milliseconds since the Unix epoch.
    pub(super) time: Option<i64>,
}

impl FileActivity {
    /// Adds the activity recorded under another name of the same file.
    pub(super) fn merge(&mut self, other: &Self) {
        self.changed |= other.changed;
        self.changed_by_user |= other.changed_by_user;
        self.read |= other.read;
        self.mentions += other.mentions;
        self.position = self.position.max(other.position);
        self.time = self.time.max(other.time);
    }
}

/// Activity of a conversation.
#[derive(Debug, Default)]
pub(super) struct Activity {
    pub(super) files: Vec<FileActivity>,
    /// Distinct commands, ordered by their last run.
    pub(super) commands: Vec<String>,
}
