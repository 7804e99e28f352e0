//! Whether a tool call may run, and why not: one answer for hooks, for tools that are hosted, for IDE
//! protocols and for pages.
//!
//! Everything that a call may read goes into one `sightline/checkAccess` request. The caller runs it, in a
//! running server or from disk.

mod refusal;
mod request;

use std::path::{Path, PathBuf};

use sightline_access::{CommandGuard, guard_changes, guard_command};
use sightline_base::{
    limits::MAX_COMMAND_BYTES,
    path::{AbsPath, uri_to_path},
};
use sightline_protocol::access::{CheckAccessParams, CheckAccessResult};

use crate::hook::{ToolCall, quote, readings, shortened};
pub use refusal::{Refusal, Subject, unchecked, without_folder};
use request::Request;

/// The session whose calls are judged.
#[derive(Clone, Debug)]
pub struct Judge {
    /// Folder of the session.
    pub folder: PathBuf,
    /// Home directory of the user.
    pub home: Option<PathBuf>,
}

impl Judge {
    /// Returns why a tool may not run. `None` if it may. `guard` returns what keeps the hooks in force, if
    /// the call may change files, and `check` runs a request.
    ///
    /// # Errors
    /// If the call cannot be checked.
    pub fn tool_call<G: CommandGuard>(
        &self,
        call: &ToolCall,
        guard: impl FnOnce() -> Result<G, String>,
        check: impl FnMut(&CheckAccessParams) -> Result<CheckAccessResult, String>,
    ) -> Result<Option<Refusal>, String> {
        let mut texts = call.commands.iter().chain(&call.codes);
        if let Some(command) = texts.find(|it| it.len() > MAX_COMMAND_BYTES) {
            return Err(format!(
                "a command has {} bytes, which exceeds the limit of {MAX_COMMAND_BYTES}",
                command.len()
            ));
        }
        let starts = self.starts(call);
        let has_commands = !call.commands.is_empty() || !call.codes.is_empty();
        if (has_commands || !call.changed.is_empty())
            && let Some(why) = self.refused_change(call, &call.changed, &guard()?)
        {
            let changed = call.changed.first().cloned().unwrap_or_default();
            let command = call.commands.first().or(call.codes.first());
            return Ok(Some(Refusal {
                reason: format!("{why}."),
                subject: command.map_or(Subject::Path(changed), |command| {
                    Subject::Command(command.clone())
                }),
                rule: None,
            }));
        }
        Request::of_tool(self, call, &starts)?.denial(check)
    }

    /// Returns why a prompt that mentions files may not be sent. `None` if it may.
    ///
    /// # Errors
    /// If the access cannot be checked.
    pub fn mentions(
        &self,
        mentions: &[String],
        check: impl FnMut(&CheckAccessParams) -> Result<CheckAccessResult, String>,
    ) -> Result<Option<Refusal>, String> {
        Request::of_mentions(self, mentions)?.denial(check)
    }

    /// Returns why the guard does not let a tool run, which would change the files `changed` and those of
    /// its commands. `None` if it may run.
    pub fn refused_change(
        &self,
        call: &ToolCall,
        changed: &[String],
        guard: &dyn CommandGuard,
    ) -> Option<String> {
        let starts = self.starts(call);
        let changed = starts.iter().flat_map(|start| {
            changed
                .iter()
                .flat_map(|text| [vec![text.clone()], readings(text)].concat())
                .map(|text| path_of(&self.absolute(start, &text)))
        });
        guard_changes(changed, call.removes, guard).or_else(|| {
            let lines: Vec<String> = call
                .commands
                .iter()
                .cloned()
                .chain(call.codes.iter().map(|code| as_code(code)))
                .collect();
            starts.iter().find_map(|start| {
                lines
                    .iter()
                    .find_map(|line| guard_command(line, start, guard))
            })
        })
    }

    /// Returns the folders from which the paths and commands of a call may start.
    fn starts(&self, call: &ToolCall) -> Vec<PathBuf> {
        let mut starts = vec![self.folder.clone()];
        starts.extend(
            call.folders
                .iter()
                .map(|folder| PathBuf::from(self.absolute(&self.folder, folder)))
                .filter(|folder| folder.is_dir() && *folder != self.folder),
        );
        starts
    }

    /// Returns an absolute path. URIs are unchanged.
    pub fn absolute(&self, start: &Path, path: &str) -> String {
        if path.to_ascii_lowercase().starts_with("file:") {
            return path.to_owned();
        }
        let full = (path == "~")
            .then_some("")
            .or(path.strip_prefix("~/"))
            .and_then(|rest| Some(self.home.as_ref()?.join(rest)))
            .unwrap_or_else(|| start.join(path));
        shortened(&full.to_string_lossy()).into_owned()
    }
}

/// Returns the path of an absolute path or a `file:` URI, without `..`.
fn path_of(text: &str) -> PathBuf {
    match uri_to_path(text) {
        Ok(Some(path)) => path.as_path().to_owned(),
        _ => without_parents(Path::new(text)),
    }
}

/// Removes each `..` of an absolute path with the name before it.
fn without_parents(path: &Path) -> PathBuf {
    AbsPath::new(path).map_or_else(|| path.to_owned(), |path| path.as_path().to_owned())
}

/// Returns a command as run in a folder. Commands are checked as run in the root.
pub fn in_folder(folder: &Path, command: &str) -> String {
    format!("cd {}\n{command}", quote(&folder.to_string_lossy()))
}

/// Returns a command that runs code of another language.
fn as_code(code: &str) -> String {
    format!("python3 -c {}", quote(code))
}
