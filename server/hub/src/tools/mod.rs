//! Our own tools: each is a request of the dispatch table of `engine`, with its result as text for a model.
//! `text` formats results, and `page` cuts long ones.

pub mod page;
#[cfg(test)]
mod tests;
pub mod text;

use sightline_base::plural::plural;
use std::{path::Path, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sightline_access::{CommandGuard, guard_changes};
use sightline_agents::{
    hook,
    mcp::{self, Tool},
};
use sightline_base::{
    decision_log,
    path::{Root, uri_to_path},
};
use sightline_engine::{dispatch::Handler, error::Error};
use sightline_protocol::{
    access::CheckAccessParams,
    checkpoint::{
        CreateCheckpointParams, DiffCheckpointsParams, ListCheckpointsParams, PreviewRestoreParams,
        PreviewRestoreResult, RestoreCheckpointParams, RestoreCheckpointResult, RestoreConflict,
        UndoRestoreParams,
    },
    decision::{Decision, RedactParams},
    editor::{DiagnosticsParams, OpenFileParams, SelectionParams},
    environment::{EnvironmentDetailsParams, EnvironmentDetailsResult, ModelRef, SectionId},
    error::ErrorKind,
    files::{ListFilesParams, ReadFileParams, ReadFileResult},
    method::{
        CheckAccess, CountTokens, CreateCheckpoint, Diagnostics, DiffCheckpoints, ListCheckpoints,
        ListFiles, OpenFile, PreviewRestore, Redact, RestoreCheckpoint, Selection, UndoRestore,
    },
    tokens::CountTokensParams,
};

use self::page::{PageArguments, cut};
use crate::{hub::OwnTools, message::tool_result};

/// Name of the tools in the log of decisions.
const DOOR: &str = "mcp";
/// What only an editor knows.
const NO_EDITOR: &str = "No editor is running for this folder.";
/// Checkpoints in a list without `limit`.
const LISTED_CHECKPOINTS: u32 = 20;
/// Maximum size of a character in UTF-8, in bytes.
const MAX_CHARACTER_BYTES: usize = 4;

/// Source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The running server, which knows open tabs and unsaved text.
    Editor,
    /// This process, from disk.
    Disk,
}

/// Result of a request, with its source.
pub type Answered<T> = Result<(T, AnsweredBy), Error>;

/// Answers the requests of the tools: in the running server of the workspace, or in this process.
pub trait Requests: Send + Sync {
    /// Runs a request.
    ///
    /// # Errors
    /// The request's errors.
    fn call<M: Handler>(&self, params: M::Params) -> Answered<M::Result>;

    /// Builds the block. It lists the unsaved files of all running servers.
    ///
    /// # Errors
    /// Those of `sightline/environmentDetails`.
    fn environment_details(
        &self,
        params: EnvironmentDetailsParams,
    ) -> Answered<EnvironmentDetailsResult>;

    /// Reads a file. The unsaved text of any running server precedes the disk.
    ///
    /// # Errors
    /// Those of `sightline/readFile`.
    fn read_file(&self, params: ReadFileParams) -> Answered<ReadFileResult>;

    /// Returns what keeps the hooks in force.
    ///
    /// # Errors
    /// If there is no home directory.
    fn guard(&self, folder: &Path) -> Result<Box<dyn CommandGuard>, Error>;

    /// Adds decisions to the log.
    fn record(&self, decisions: &[Decision]);
}

/// The tools of a workspace.
pub struct Tools<R> {
    /// Those that are offered.
    pub offered: Vec<Tool>,
    /// Answers their requests.
    pub requests: Arc<R>,
    /// The workspace folder.
    pub root: Root,
}

impl<R: Requests> OwnTools for Tools<R> {
    fn list(&self) -> Vec<Value> {
        self.offered.iter().map(Tool::to_json).collect()
    }

    fn call(&self, name: &str, arguments: Map<String, Value>, agent: &str) -> Option<Value> {
        let tool = self.offered.iter().find(|tool| tool.name == name)?;
        Some(match self.call_tool(tool, arguments, agent) {
            Ok(Answer { text, structured }) => {
                let mut result = tool_result(&text, false);
                if let Some(data) = structured {
                    result["structuredContent"] = data;
                }
                result
            }
            Err(error) => tool_result(&cut(&error.message), true),
        })
    }
}

/// Result of a tool.
struct Answer {
    text: String,
    /// The same as data, for clients that show it.
    structured: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenArguments {
    text: Option<String>,
    path: Option<String>,
    model: Option<String>,
}

impl<R: Requests> Tools<R> {
    /// Runs a tool. Denied names and contents are taken out of its result.
    fn call_tool(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        agent: &str,
    ) -> Result<Answer, Error> {
        let answer = self.answer(tool, arguments);
        let mut decisions = Vec::new();
        let answer = match answer {
            Ok(answer) => {
                let params = RedactParams {
                    texts: vec![answer.text],
                    cwd: None,
                };
                let redacted = self.request::<Redact>(params)?.0;
                decisions.extend(decision_log::redactions(DOOR, &redacted.hidden));
                Ok(Answer {
                    text: redacted.texts.concat(),
                    structured: answer.structured,
                })
            }
            Err(error) => {
                decisions.extend(error.refusal(DOOR, tool.name));
                Err(error)
            }
        };
        for decision in &mut decisions {
            decision.tool = Some(tool.name.to_owned());
            decision.agent = (!agent.is_empty()).then(|| agent.to_owned());
        }
        self.requests.record(&decisions);
        answer
    }

    fn answer(&self, tool: &Tool, arguments: Map<String, Value>) -> Result<Answer, Error> {
        let arguments = mcp::checked(tool, arguments).map_err(invalid_arguments)?;
        let arguments = Value::Object(arguments);
        let page: PageArguments = parsed(&arguments)?;
        if tool.name == "checkpoint_list" {
            return self.list_checkpoints(parsed(&arguments)?, page);
        }
        let text = self.call_for_text(tool.name, &arguments, page)?;
        Ok(Answer {
            text,
            structured: None,
        })
    }

    fn call_for_text(
        &self,
        tool: &str,
        arguments: &Value,
        page: PageArguments,
    ) -> Result<String, Error> {
        match tool {
            "environment_details" => self.environment_details(parsed(arguments)?),
            "read_file" => return self.read_file(parsed(arguments)?, page),
            "list_files" => self.list_files(parsed(arguments)?),
            "check_access" => self.check_access(parsed(arguments)?),
            "selection" => self.selection(parsed(arguments)?),
            "diagnostics" => self.diagnostics(parsed(arguments)?),
            "open_file" => self.open_file(parsed(arguments)?),
            "checkpoint_create" => return self.create_checkpoint(parsed(arguments)?),
            "checkpoint_diff" => self.diff_checkpoints(parsed(arguments)?),
            "checkpoint_restore" => return self.restore(parsed(arguments)?, page),
            "checkpoint_undo" => return self.undo(parsed(arguments)?, page),
            "count_tokens" => self.count_tokens(parsed(arguments)?),
            _ => Err(Error::invalid(format!("there is no tool {tool}"))),
        }
        .map(|text| page.page(&text))
    }

    fn environment_details(&self, mut params: EnvironmentDetailsParams) -> Result<String, Error> {
        params.consume = false;
        if params.sections.is_none() {
            params.sections = Some(default_sections(params.include_files));
        }
        let (result, from) = self.requests.environment_details(params)?;
        let has_editor = from == AnsweredBy::Editor;
        let text = hook::text_without_mode(result.sections, has_editor);
        Ok(if has_editor {
            text
        } else {
            format!("{NO_EDITOR}\n\n{text}").trim_end().to_owned()
        })
    }

    fn read_file(&self, mut params: ReadFileParams, page: PageArguments) -> Result<String, Error> {
        let path = params.path;
        let (start_line, end_line) = (page.start_line(), params.end_line);
        let max_bytes = page.max_characters().saturating_mul(MAX_CHARACTER_BYTES);
        params.path = self.absolute(&path);
        params.start_line = Some(start_line);
        params.max_bytes = Some(max_bytes as u64);
        let (result, from) = self.requests.read_file(params)?;
        let total = result.total_lines;
        if start_line > total.max(1) {
            return Err(Error::invalid(format!(
                "startLine is after the end: {path} has {}",
                plural(total, "line")
            )));
        }
        let is_editor_running = from == AnsweredBy::Editor;
        Ok(text::file(
            &path,
            &result,
            is_editor_running,
            end_line,
            page,
        ))
    }

    fn list_files(&self, mut params: ListFilesParams) -> Result<String, Error> {
        params.path = params.path.map(|path| self.absolute(&path));
        params.work_done_token = None;
        Ok(text::files(&self.request::<ListFiles>(params)?.0))
    }

    fn check_access(&self, mut params: CheckAccessParams) -> Result<String, Error> {
        let asked = std::mem::take(&mut params.paths);
        params.paths = asked.iter().map(|path| self.absolute(path)).collect();
        let mut result = self.request::<CheckAccess>(params)?.0;
        for (verdict, asked) in result.paths.iter_mut().zip(asked) {
            verdict.path = asked;
        }
        Ok(text::access(&result))
    }

    fn selection(&self, params: SelectionParams) -> Result<String, Error> {
        let (result, from) = self.request::<Selection>(params)?;
        Ok(match from {
            AnsweredBy::Editor => text::selection(&result),
            AnsweredBy::Disk => NO_EDITOR.to_owned(),
        })
    }

    fn diagnostics(&self, mut params: DiagnosticsParams) -> Result<String, Error> {
        params.paths = self.absolute_paths(params.paths);
        let (result, from) = self.request::<Diagnostics>(params)?;
        Ok(match from {
            AnsweredBy::Editor => text::diagnostics(&result),
            AnsweredBy::Disk => NO_EDITOR.to_owned(),
        })
    }

    fn open_file(&self, mut params: OpenFileParams) -> Result<String, Error> {
        params.path = self.absolute(&params.path);
        let shown = self.request::<OpenFile>(params)?.0;
        Ok(format!("The editor was asked to show {}.", shown.path))
    }

    fn create_checkpoint(&self, arguments: CreateCheckpointParams) -> Result<String, Error> {
        let params = CreateCheckpointParams {
            label: arguments.label,
            root: self.root_uri(),
            ..CreateCheckpointParams::default()
        };
        let created = self.request::<CreateCheckpoint>(params)?.0;
        Ok(cut(&text::created(&created)))
    }

    fn list_checkpoints(
        &self,
        arguments: ListCheckpointsParams,
        page: PageArguments,
    ) -> Result<Answer, Error> {
        let params = ListCheckpointsParams {
            limit: arguments.limit.or(Some(LISTED_CHECKPOINTS)),
            root: self.root_uri(),
            ..ListCheckpointsParams::default()
        };
        let listed = self.request::<ListCheckpoints>(params)?.0;
        Ok(Answer {
            text: page.page(&text::checkpoints(&listed)),
            structured: text::checkpoints_as_json(&listed),
        })
    }

    fn diff_checkpoints(&self, mut params: DiffCheckpointsParams) -> Result<String, Error> {
        params.paths = self.absolute_paths(params.paths);
        params.root = self.root_uri();
        params.patch = true;
        let result = self.request::<DiffCheckpoints>(params)?.0;
        Ok(text::difference(&result))
    }

    fn restore(
        &self,
        mut params: RestoreCheckpointParams,
        page: PageArguments,
    ) -> Result<String, Error> {
        let (preview, seen) = self.preview(PreviewRestoreParams {
            id: params.id.clone(),
            paths: self.absolute_paths(params.paths),
            only: params.only,
            undo: Some(false),
            ..PreviewRestoreParams::default()
        })?;
        if params.token.is_none() {
            return Ok(page.page(&text::preview(&preview, "checkpoint_restore")));
        }
        params.paths = seen.paths;
        params.root = seen.root;
        let restored = self.request::<RestoreCheckpoint>(params)?.0;
        Ok(restored_text(restored, preview))
    }

    fn undo(&self, mut params: UndoRestoreParams, page: PageArguments) -> Result<String, Error> {
        let (preview, seen) = self.preview(PreviewRestoreParams {
            id: params.undo_id.clone().unwrap_or_else(|| "last".to_owned()),
            undo: Some(true),
            ..PreviewRestoreParams::default()
        })?;
        if params.token.is_none() {
            return Ok(page.page(&text::preview(&preview, "checkpoint_undo")));
        }
        params.paths = seen.paths;
        params.root = seen.root;
        let restored = self.request::<UndoRestore>(params)?.0;
        Ok(restored_text(restored, preview))
    }

    /// Previews a restore. What keeps the hooks in force is left alone: it is among the conflicts, and not
    /// below the paths of the params that are returned.
    fn preview(
        &self,
        mut params: PreviewRestoreParams,
    ) -> Result<(PreviewRestoreResult, PreviewRestoreParams), Error> {
        params.root = self.root_uri();
        let preview = self.request::<PreviewRestore>(params.clone())?.0;
        let guard = self.requests.guard(self.root.path.as_path())?;
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        for change in &preview.changes {
            let path = uri_to_path(&change.uri).ok().flatten();
            let places = path.iter().map(|path| path.as_path().to_owned());
            match guard_changes(places, true, &*guard) {
                Some(reason) => kept.push(RestoreConflict {
                    path: change.path.clone(),
                    reason,
                    ..RestoreConflict::default()
                }),
                None => others.push(change.uri.clone()),
            }
        }
        if kept.is_empty() {
            return Ok((preview, params));
        }
        if others.is_empty() {
            let reasons: Vec<String> = kept.into_iter().map(|kept| kept.reason).collect();
            return Err(Error::new(ErrorKind::AccessDenied, reasons.join(". ")));
        }
        params.paths = Some(others);
        let mut preview = self.request::<PreviewRestore>(params.clone())?.0;
        preview.conflicts.extend(kept);
        Ok((preview, params))
    }

    fn count_tokens(&self, arguments: TokenArguments) -> Result<String, Error> {
        let text = match (arguments.text, arguments.path) {
            (Some(text), None) => text,
            (None, Some(path)) => {
                let params = ReadFileParams {
                    path: self.absolute(&path),
                    max_bytes: Some(u64::MAX),
                    ..ReadFileParams::default()
                };
                let file = self.requests.read_file(params)?.0;
                if file.truncated {
                    return Err(Error::new(
                        ErrorKind::TooLarge,
                        format!("{path} is too large to be counted"),
                    ));
                }
                file.text
            }
            _ => return Err(Error::invalid("give either text or path")),
        };
        let params = CountTokensParams {
            texts: vec![text],
            model: arguments.model.map(ModelRef::Id),
            ..CountTokensParams::default()
        };
        Ok(text::tokens(&self.request::<CountTokens>(params)?.0))
    }

    fn request<M: Handler>(&self, params: M::Params) -> Answered<M::Result> {
        self.requests.call::<M>(params)
    }

    fn root_uri(&self) -> Option<String> {
        Some(self.root.canonical.to_uri())
    }

    /// Makes a path absolute, relative to the workspace folder. URIs are unchanged, and so is an empty
    /// path, which is refused.
    fn absolute(&self, path: &str) -> String {
        let is_uri = path.to_ascii_lowercase().starts_with("file:");
        if path.is_empty() || is_uri || Path::new(path).is_absolute() {
            return path.to_owned();
        }
        self.root
            .path
            .as_path()
            .join(path)
            .to_string_lossy()
            .into_owned()
    }

    fn absolute_paths(&self, paths: Option<Vec<String>>) -> Option<Vec<String>> {
        paths.map(|paths| paths.iter().map(|path| self.absolute(path)).collect())
    }
}

/// Returns the sections with the file list, without those that tell a model nothing new.
fn default_sections(include_files: bool) -> Vec<SectionId> {
    // The mode of the agent is not known here.
    const LEFT_OUT: [SectionId; 4] = [
        SectionId::WorkspaceConfiguration,
        SectionId::CliTools,
        SectionId::Diagnostics,
        SectionId::Mode,
    ];
    let mut sections = SectionId::ALL.to_vec();
    sections.retain(|id| !LEFT_OUT.contains(id) && (include_files || *id != SectionId::Files));
    sections
}

/// Returns what a restore changed, with what its preview left out of the request.
fn restored_text(mut restored: RestoreCheckpointResult, preview: PreviewRestoreResult) -> String {
    for conflict in preview.conflicts {
        let mut known = restored.conflicts.iter();
        if !known.any(|known| known.path == conflict.path) {
            restored.conflicts.push(conflict);
        }
    }
    cut(&text::restored(&restored))
}

/// Reads the arguments of a tool. Other arguments are ignored.
fn parsed<T: DeserializeOwned>(arguments: &Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(arguments).map_err(invalid_arguments)
}

fn invalid_arguments(why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("invalid arguments: {why}"))
}
