//! Attributes a change of a tracked file to the agent or the user. Holds the state of one file and its
//! transitions for each event and observation. Pure: no disk access, no clock.
//!
//! A file is compared with the content that the agent last *saw*. Any other content is the user's
//! change, unless it is a write of the agent:
//!
//! - An edit event with a content hash claims that content, whenever it appears.
//! - An edit event without a hash claims the current content if that is new. Otherwise the write is
//!   still to come, and every change observed or written within [`WINDOW_NS`] of the event counts
//!   as the agent's, including that of a formatter. Then the window closes.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::file_state::{CachedContent, ContentHash, FileContent, Observation};

/// Maximum time between the agent's edit event and its write, in nanoseconds.
pub(super) const WINDOW_NS: i64 = 2_000_000_000;

/// State of one tracked file. Stored in `tracked_files.json`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TrackedFile {
    /// Location; identifies the file.
    pub(super) uri: String,
    /// Path in results, from the first event.
    pub(super) path: String,
    /// Content that the agent last saw, if any.
    pub(super) seen: Option<FileContent>,
    /// The user's change since then.
    pub(super) noted: Option<UserChange>,
    /// The user's change, if it was not reported to the agent yet.
    pub(super) pending: Option<PendingReport>,
    /// Content announced by the agent.
    expected: Option<ExpectedWrite>,
    /// Write announced by the agent without a hash.
    window: Option<WriteWindow>,
    /// Last observation that is still valid if the file's stamp is unchanged.
    pub(super) hashed: Option<CachedContent>,
}

/// A change by the user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct UserChange {
    pub(super) content: FileContent,
    /// Date of its record.
    pub(super) date: i64,
    /// Whether it was found by an observation, not reported by the client.
    found: bool,
}

/// A change that was not reported to the agent yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingReport {
    /// Report it even if the file again holds the content that the agent saw.
    keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct ExpectedWrite {
    hash: ContentHash,
    /// Modification time of the file at the announcement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtime_ns: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct WriteWindow {
    opened_ns: i64,
    /// Content at the announcement, or of the agent's latest write.
    base: FileContent,
}

/// Earlier changes that an edit event of the agent reveals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EditFindings {
    /// The user changed the file before, which is not recorded yet.
    pub(super) user_edit: bool,
    /// Date of a recorded user edit that was in fact the agent's.
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

    /// Returns whether `content` differs from what the agent last saw.
    pub(super) fn is_changed(&self, content: FileContent) -> bool {
        self.seen.is_some_and(|seen| seen != content)
    }

    /// Returns whether the file that the agent saw was deleted.
    pub(super) fn is_gone(&self, content: FileContent) -> bool {
        content == FileContent::Absent && self.saw_a_file()
    }

    fn saw_a_file(&self) -> bool {
        self.seen.is_some_and(|seen| seen != FileContent::Absent)
    }

    /// Returns the content after the last known change by anyone.
    fn known(&self) -> Option<FileContent> {
        self.noted.map(|noted| noted.content).or(self.seen)
    }

    /// Records that the agent knows `content`.
    fn mark_seen(&mut self, content: FileContent) {
        self.seen = Some(content);
        self.settle();
    }

    /// Records that the file holds what the agent saw, which ends most pending reports.
    fn settle(&mut self) {
        self.noted = None;
        self.pending = self.pending.filter(|pending| pending.keep);
    }

    /// The agent read `content`.
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

    /// The client reports an edit by the user, after which the file holds `content`.
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

    /// The agent reports that it edited the file or is about to.
    pub(super) fn agent_edited(
        &mut self,
        hash: Option<ContentHash>,
        observation: &Observation,
        now: i64,
    ) -> EditFindings {
        let mut findings = EditFindings::default();
        // Apply earlier announcements first.
        if self.is_agent_write(observation) {
            self.mark_seen(observation.content);
        }
        self.window = None;
        self.expected = None;
        // Large files have no hash to compare with.
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
        // An observation may have come between the write and this event.
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

    /// Removes a change found by observation, and returns its date.
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

    /// Keeps an unreported change of the user pending: the agent's edit on top of it does not mean
    /// that the agent knows it.
    fn keep_pending(&mut self) {
        self.pending = self.pending.map(|_| PendingReport { keep: true });
    }

    /// Applies an observation. Returns whether it found a change of the user to record.
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
            // A file that the agent never saw was created and deleted.
            self.pending = self.pending.filter(|pending| pending.keep);
            return false;
        }
        self.pending.get_or_insert(PendingReport { keep: false });
        true
    }

    /// Returns whether the observed content is a write that the agent announced.
    fn is_agent_write(&mut self, observation: &Observation) -> bool {
        if let Some(expected) = self.expected {
            let too_large = matches!(observation.content, FileContent::Large { .. });
            if observation.content == FileContent::Hash(expected.hash) || too_large {
                self.expected = None;
                return true;
            }
            // The old content in a newer file: the announced content was written and reverted.
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

    /// The editor saved the text with the hash `text`, and the file now holds `content`. Transfers
    /// the state of the text to the file.
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

/// Returns whether the file was written near `at_ns`.
fn written_near(observation: &Observation, at_ns: i64) -> bool {
    observation
        .stamp
        .is_some_and(|stamp| is_near(stamp.mtime_ns, at_ns))
}
