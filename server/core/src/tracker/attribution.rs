//! Whose change is it? The state of one tracked file, and what each event and
//! each look at the file makes of it. Pure: no disk, no clock.
//!
//! A file is compared with what the agent last *saw*; a content that is neither
//! that nor the agent's own is the user's. What the agent's own is:
//!
//! - with a content hash, that content, whenever it comes;
//! - without one, what the file holds when the agent says it edited, when that
//!   is new; else the agent has yet to write, and whatever is written or
//!   observed within [`WINDOW_NS`] of its word is its own, formatters included.
//!   Then the window closes, used or not.

use serde::{Deserialize, Serialize};

use super::file_state::{CachedContent, ContentHash, FileContent, Observation};

/// How far from the agent's word its write may be, in nanoseconds.
pub(super) const WINDOW_NS: i64 = 2_000_000_000;

/// What is known of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TrackedFile {
    /// Where it is; this is the key.
    pub(super) uri: String,
    /// What it was called first.
    pub(super) path: String,
    /// What the agent saw last; none when it never looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<FileContent>,
    /// The user's change since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) noted: Option<UserChange>,
    /// Is the user's change still to be told?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<PendingReport>,
    /// The content the agent announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected: Option<ExpectedWrite>,
    /// The agent announced some write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<WriteWindow>,
    /// The last look that may be trusted without reading the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hashed: Option<CachedContent>,
}

/// A change of the user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct UserChange {
    pub(super) content: FileContent,
    /// Date of its record.
    pub(super) date: i64,
    /// Found by looking; else the client said so.
    found: bool,
}

/// A change the agent has not been told of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingReport {
    /// Tell it even if the content is again what the agent saw.
    keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct ExpectedWrite {
    hash: ContentHash,
    /// Time of the file that was there when the agent announced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtime_ns: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct WriteWindow {
    opened_ns: i64,
    /// What the file held then, or the agent's latest write since.
    base: FileContent,
}

/// What an edit of the agent findings about earlier changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EditFindings {
    /// The user had changed the file, unnoticed so far: to be recorded.
    pub(super) user_edit: bool,
    /// What was recorded as the user's edit of this date was the agent's.
    pub(super) retracted_edit: Option<i64>,
}

impl TrackedFile {
    pub(super) fn new(uri: String, path: String) -> Self {
        Self {
            uri,
            path,
            seen: None,
            noted: None,
            pending: None,
            expected: None,
            window: None,
            hashed: None,
        }
    }

    /// Differs `content` from what the agent last saw?
    pub(super) fn is_changed(&self, content: FileContent) -> bool {
        self.seen.is_some_and(|seen| seen != content)
    }

    /// Did the agent see a file there, and is none there now?
    pub(super) fn is_gone(&self, content: FileContent) -> bool {
        content == FileContent::Absent && self.saw_a_file()
    }

    fn saw_a_file(&self) -> bool {
        self.seen.is_some_and(|seen| seen != FileContent::Absent)
    }

    /// The content of the last known change, whoever made it.
    fn known(&self) -> Option<FileContent> {
        self.noted.map(|noted| noted.content).or(self.seen)
    }

    /// The agent knows `content` now.
    fn mark_seen(&mut self, content: FileContent) {
        self.seen = Some(content);
        self.settle();
    }

    /// The file holds what the agent saw: nothing to tell, unless it must be.
    fn settle(&mut self) {
        self.noted = None;
        self.pending = self.pending.filter(|pending| pending.keep);
    }

    /// The agent was given `content`.
    pub(super) fn read(&mut self, content: FileContent) {
        self.seen = Some(content);
        self.noted = None;
        self.pending = None;
        self.rebase(content);
        self.expected = self
            .expected
            .filter(|expected| content != FileContent::Hash(expected.hash))
            .map(|expected| ExpectedWrite {
                mtime_ns: None,
                ..expected
            });
    }

    /// The client says that the user edited, and the file holds `content`.
    pub(super) fn user_edited(&mut self, content: FileContent, date: i64) {
        self.noted = Some(UserChange {
            content,
            date,
            found: false,
        });
        self.pending = Some(PendingReport { keep: true });
        self.rebase(content);
    }

    fn rebase(&mut self, content: FileContent) {
        if let Some(window) = &mut self.window {
            window.base = content;
        }
    }

    /// The agent says that it edited, or is about to.
    pub(super) fn agent_edited(
        &mut self,
        hash: Option<ContentHash>,
        observation: &Observation,
        now: i64,
    ) -> EditFindings {
        let mut findings = EditFindings::default();
        // Its earlier announcements come first.
        if self.is_agent_write(observation) {
            self.mark_seen(observation.content);
        }
        self.window = None;
        self.expected = None;
        // What is too large to be hashed can't be compared with a hash.
        let hash = hash.filter(|_| !matches!(observation.content, FileContent::Large { .. }));
        let new_content = self
            .known()
            .is_some_and(|known| known != observation.content);

        if hash.is_some_and(|hash| observation.content == FileContent::Hash(hash)) {
            findings.retracted_edit =
                self.retract_found_change(|noted| noted.content == observation.content);
            self.keep_pending();
            self.mark_seen(observation.content);
            return findings;
        }
        if let Some(hash) = hash {
            if new_content {
                findings.user_edit = self.user_changed(observation.content, now);
            }
            self.keep_pending();
            self.seen.get_or_insert(observation.content);
            let mtime_ns = observation.stamp.map(|stamp| stamp.mtime_ns);
            self.expected = Some(ExpectedWrite { hash, mtime_ns });
            return findings;
        }
        // A look may have come between the write and this word about it.
        findings.retracted_edit = self.retract_found_change(|noted| {
            noted.content == observation.content && written_near(observation, observation.at_ns)
        });
        self.keep_pending();
        if new_content || findings.retracted_edit.is_some() {
            self.mark_seen(observation.content);
            return findings;
        }
        self.seen.get_or_insert(observation.content);
        self.window = Some(WriteWindow {
            opened_ns: observation.at_ns,
            base: observation.content,
        });
        findings
    }

    /// Takes back a change found by looking; its date when there was one.
    fn retract_found_change(
        &mut self,
        is_agent_write: impl Fn(&UserChange) -> bool,
    ) -> Option<i64> {
        let noted = self
            .noted
            .filter(|noted| noted.found && is_agent_write(noted))?;
        self.settle();
        Some(noted.date)
    }

    /// An edit of the agent on top of a change it was not told of does not make
    /// that known to it.
    fn keep_pending(&mut self) {
        self.pending = self.pending.map(|_| PendingReport { keep: true });
    }

    /// Judges a look. True when it found a change of the user to be recorded.
    pub(super) fn observe(&mut self, observation: &Observation, now: i64) -> bool {
        if self.is_agent_write(observation) {
            self.mark_seen(observation.content);
            return false;
        }
        if self.seen == Some(observation.content) {
            self.settle();
            return false;
        }
        if self.known() == Some(observation.content) {
            return false;
        }
        self.user_changed(observation.content, now)
    }

    fn user_changed(&mut self, content: FileContent, date: i64) -> bool {
        self.noted = Some(UserChange {
            content,
            date,
            found: true,
        });
        if content == FileContent::Absent && !self.saw_a_file() {
            // A file the agent never saw came and went.
            self.pending = self.pending.filter(|pending| pending.keep);
            return false;
        }
        self.pending.get_or_insert(PendingReport { keep: false });
        true
    }

    /// Is what the file holds the write the agent announced?
    fn is_agent_write(&mut self, observation: &Observation) -> bool {
        if let Some(expected) = self.expected {
            let too_large = matches!(observation.content, FileContent::Large { .. });
            if observation.content == FileContent::Hash(expected.hash) || too_large {
                self.expected = None;
                return true;
            }
            // The old content in a newer file: the announced one came and went.
            let mtime_ns = observation.stamp.map(|stamp| stamp.mtime_ns);
            let rewritten =
                mtime_ns.is_some() && expected.mtime_ns.is_some() && mtime_ns != expected.mtime_ns;
            if rewritten && self.seen == Some(observation.content) {
                self.seen = Some(FileContent::Hash(expected.hash));
                self.expected = None;
            }
        }
        let Some(window) = &mut self.window else {
            return false;
        };
        let open = is_near(observation.at_ns, window.opened_ns);
        let agents = observation.content != window.base
            && (open || written_near(observation, window.opened_ns));
        window.base = observation.content;
        if !open {
            self.window = None;
        }
        agents
    }

    /// The editor saved the text of hash `text`, and the file holds `content`:
    /// what was known of the text is now known of the file.
    pub(super) fn saved(&mut self, text: ContentHash, content: FileContent) {
        let text = FileContent::Hash(text);
        let follow = |place: &mut FileContent| {
            if *place == text {
                *place = content;
            }
        };
        self.seen.iter_mut().for_each(follow);
        if let Some(noted) = &mut self.noted {
            follow(&mut noted.content);
        }
        if let Some(window) = &mut self.window {
            follow(&mut window.base);
        }
        if self
            .expected
            .is_some_and(|expected| FileContent::Hash(expected.hash) == text)
        {
            self.expected = None;
            self.mark_seen(content);
        }
    }
}

fn is_near(a_ns: i64, b_ns: i64) -> bool {
    a_ns.abs_diff(b_ns) <= WINDOW_NS.unsigned_abs()
}

/// Was the file itself written near `at_ns`?
fn written_near(observation: &Observation, at_ns: i64) -> bool {
    observation
        .stamp
        .is_some_and(|stamp| is_near(stamp.mtime_ns, at_ns))
}
