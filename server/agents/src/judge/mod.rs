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
    path::{AbsPath, on_drive, uri_to_path},
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
        // Claude Code runs Git Bash on Windows, and takes its paths.
        if let Some(path) = on_drive(path).filter(|_| !start.join(path).exists()) {
            return path;
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

#[cfg(test)]
mod tests {
    use sightline_access::Change;
    use sightline_base::limits::MAX_CHECKED_COMMANDS;
    use sightline_protocol::access::{AccessKind, CommandAccess, PathAccess};

    use super::*;

    /// Keeps files with the name `kept`.
    struct Guard;

    impl CommandGuard for Guard {
        fn places(&self) -> Vec<PathBuf> {
            Vec::new()
        }

        fn change_refusal(&self, path: &Path, _: Change) -> Option<String> {
            path.ends_with("kept")
                .then(|| "only the user may change it".to_owned())
        }

        fn run_refusal(&self, _: &[Option<&str>], _: bool) -> Option<String> {
            None
        }
    }

    /// Denies nothing.
    fn allowed(params: &CheckAccessParams) -> CheckAccessResult {
        let command = CommandAccess {
            allowed: true,
            ..CommandAccess::default()
        };
        CheckAccessResult {
            paths: vec![PathAccess::default(); params.paths.len()],
            commands: vec![command; params.commands.len()],
            ..CheckAccessResult::default()
        }
    }

    /// Returns the reason of a refusal.
    fn judged(call: &ToolCall) -> Result<Option<String>, String> {
        let judge = Judge {
            folder: if cfg!(windows) { "C:/ws" } else { "/ws" }.into(),
            home: None,
        };
        let refusal = judge.tool_call(call, || Ok(Guard), |params| Ok(allowed(params)));
        refusal.map(|refusal| refusal.map(|refusal| refusal.reason))
    }

    #[test]
    fn a_call_that_changes_a_kept_file_is_refused_whatever_names_it() {
        let texts = |text: &str| vec![text.to_owned()];
        for (kept, refused) in [("kept", true), ("other", false)] {
            for call in [
                ToolCall {
                    commands: texts(&format!("rm {kept}")),
                    ..ToolCall::default()
                },
                ToolCall {
                    codes: texts(&format!("open('{kept}', 'w')")),
                    ..ToolCall::default()
                },
                ToolCall {
                    changed: texts(kept),
                    ..ToolCall::default()
                },
            ] {
                let reason = judged(&call).unwrap();
                assert_eq!(reason.is_some(), refused, "{call:?}: {reason:?}");
            }
        }
    }

    #[test]
    fn a_call_with_too_many_commands_is_not_judged() {
        let call = |count| ToolCall {
            commands: vec!["ls".to_owned(); count],
            ..ToolCall::default()
        };
        assert_eq!(judged(&call(MAX_CHECKED_COMMANDS)), Ok(None));
        assert!(judged(&call(MAX_CHECKED_COMMANDS + 1)).is_err());
    }

    #[test]
    fn what_a_call_or_a_prompt_names_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let judge = Judge {
            folder: folder.path().to_owned(),
            home: None,
        };
        let denies = |params: &CheckAccessParams| {
            let mut result = allowed(params);
            for path in &mut result.paths {
                path.access = AccessKind::Denied;
            }
            for command in &mut result.commands {
                command.allowed = false;
            }
            Ok(result)
        };
        let names = vec!["a".to_owned()];
        for call in [
            ToolCall {
                paths: names.clone(),
                ..ToolCall::default()
            },
            ToolCall {
                commands: names.clone(),
                ..ToolCall::default()
            },
        ] {
            let refusal = judge.tool_call(&call, || Ok(Guard), denies);
            assert!(refusal.unwrap().is_some(), "{call:?}");
        }
        let refusal = judge.mentions(&names, |params| {
            assert!(params.mentioned);
            denies(params)
        });
        assert!(refusal.unwrap().is_some());
    }
}
