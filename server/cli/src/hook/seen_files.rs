//! The files that a session has read and written, so that it can be told what changed from outside.
//!
//! A change that is found before a tool runs, or at a prompt, was made by others: the user, another
//! program, another agent. A change that is found after a tool was made by the tool. Contents are
//! compared, not times.

use serde::{Deserialize, Serialize};
use sightline_agents::hook::{KnownSections, ToolCall};
use sightline_base::{
    clock::now_millis,
    path::{AbsPath, uri_to_path},
};
use sightline_context::tracker::SeenContent;

/// Maximum number of files. The one that was used longest ago is forgotten.
const MAX_FILES: usize = 500;

/// What the file of a session holds.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct SeenFiles {
    /// The file used last is the last one.
    files: Vec<SeenFile>,
    /// A tool that may change files has begun, and its end was not reported.
    running: Option<RunningTool>,
    /// Whether the agent reports the ends of tools.
    reports_ends: bool,
    /// Time of the last restore that the session knows, in milliseconds since the Unix epoch.
    pub(super) known_restore: i64,
    /// URIs of files whose unsaved text the session was told of when it edited them.
    pub(super) told_unsaved: Vec<String>,
    /// Whether the next prompt gets the working context.
    pub(super) is_compacted: bool,
    /// What the model knows of the block.
    pub(super) known: KnownSections,
    /// When a block was delivered last, in milliseconds since the epoch.
    pub(super) delivered: Option<i64>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct SeenFile {
    pub(super) uri: String,
    /// The content that the session knows, or the last one that was found.
    seen: SeenContent,
    /// Whether others changed it, and the session was not told yet.
    #[serde(default)]
    is_changed: bool,
    /// Whether the session changed it.
    #[serde(default)]
    pub(super) is_edited: bool,
    /// Whether others changed it after the session used it last.
    #[serde(default)]
    pub(super) is_stale: bool,
}

/// How a tool changes files.
#[derive(Clone, Copy, Deserialize, PartialEq, Serialize)]
pub(super) enum RunningTool {
    /// It edits the named files, or fails and changes none.
    Edit,
    /// It runs a command, which may also fail after it changed files.
    Command,
}

impl RunningTool {
    pub(super) fn of(call: &ToolCall) -> Self {
        if call.commands.is_empty() {
            Self::Edit
        } else {
            Self::Command
        }
    }
}

impl SeenFiles {
    /// Returns the state of a new session, which earlier restores do not concern.
    pub(super) fn new() -> Self {
        Self {
            known_restore: now_millis(),
            ..Self::default()
        }
    }

    /// The session reads a file.
    pub(super) fn read(&mut self, path: &AbsPath) {
        let uri = path.to_uri();
        let at = self.files.iter().position(|file| file.uri == uri);
        let known = at.map(|at| self.files.remove(at));
        let is_edited = known.as_ref().is_some_and(|known| known.is_edited);
        let known = known.map(|known| known.seen);
        if let Some(seen) = SeenContent::of(path, known.as_ref()) {
            self.push(uri, seen, is_edited);
        }
    }

    fn push(&mut self, uri: String, seen: SeenContent, is_edited: bool) {
        if self.files.len() >= MAX_FILES {
            self.files.remove(0);
        }
        self.files.push(SeenFile {
            uri,
            seen,
            is_changed: false,
            is_edited,
            is_stale: false,
        });
    }

    /// Returns the files, the one used last first.
    pub(super) fn used(&mut self) -> impl Iterator<Item = &SeenFile> {
        self.find_changes();
        self.files.iter().rev()
    }

    /// A tool begins that may change files, these among others.
    pub(super) fn begin_change(&mut self, tool: RunningTool, paths: &[AbsPath]) {
        self.find_changes();
        self.add(paths, false);
        self.running = Some(tool);
    }

    /// A tool ended that may have changed files, these among others.
    pub(super) fn end_change(&mut self, tool: RunningTool, paths: &[AbsPath]) {
        self.reports_ends = true;
        self.running = None;
        self.update(false);
        self.add(paths, tool == RunningTool::Edit);
    }

    fn add(&mut self, paths: &[AbsPath], is_edited: bool) {
        for path in paths {
            let uri = path.to_uri();
            if self.files.iter().all(|file| file.uri != uri)
                && let Some(seen) = SeenContent::of(path, None)
            {
                self.push(uri, seen, is_edited);
            }
        }
    }

    /// Returns the URIs of the files that others changed since the last call or since the session
    /// used them.
    pub(super) fn take_changes(&mut self) -> Vec<String> {
        self.find_changes();
        let changed = self.files.iter_mut().filter(|file| file.is_changed);
        changed
            .map(|file| {
                file.is_changed = false;
                file.uri.clone()
            })
            .collect()
    }

    /// Marks the files that others changed.
    fn find_changes(&mut self) {
        // An edit whose end was not reported was refused or failed.
        let by_tool = match self.running.take() {
            Some(RunningTool::Edit) => !self.reports_ends,
            Some(RunningTool::Command) => true,
            None => false,
        };
        self.update(!by_tool);
    }

    /// Compares each file. Changes are those of others if `by_others`.
    fn update(&mut self, by_others: bool) {
        for file in &mut self.files {
            let path = uri_to_path(&file.uri).ok().flatten();
            // A file that cannot be read counts as unchanged.
            let now = path.and_then(|path| SeenContent::of(&path, Some(&file.seen)));
            if let Some(now) = now {
                if !now.is_same(&file.seen) {
                    file.is_changed |= by_others;
                    file.is_stale = by_others;
                    file.is_edited |= !by_others;
                }
                file.seen = now;
            }
        }
    }
}
