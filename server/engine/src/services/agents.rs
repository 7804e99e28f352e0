//! What requests need of the agents that are connected by their IDE protocols.

use std::path::PathBuf;

use sightline_protocol::editor::Range;

use crate::session::Snapshot;

/// Lines of a file that the user sends to the agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The absolute path.
    pub path: PathBuf,
    /// The first and the last line, from 0. `None` for the whole file.
    pub lines: Option<(u32, u32)>,
}

/// The agents of a session.
pub trait Agents: Send + Sync {
    /// Shows the agents what they may see of a changed session, debounced.
    fn session_changed(&self, snapshot: &Snapshot);

    /// Returns whether an agent can connect.
    fn is_open(&self) -> bool;

    /// Returns the names of the connected agents, oldest connection first.
    fn names(&self) -> Vec<String>;

    /// Returns whether agents get no editor state.
    fn is_paused(&self) -> bool;

    /// Pauses or resumes all agents, until the setting changes. They forget the focus at once. Reads
    /// the disk to resume.
    fn set_paused(&self, is_paused: bool);

    /// Returns whether an agent is connected that can show mentions.
    fn can_mention(&self) -> bool;

    /// Sends lines of a file to the agents. Returns the number of agents.
    fn mention(&self, mention: Mention) -> usize;

    /// Derives the selection from a request of a client that does not send its selections.
    fn derive_selection(&self, snapshot: &Snapshot, uri: &str, range: Range);
}
