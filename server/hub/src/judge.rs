//! Judges what passes between an agent and a server: requests before they are sent, and what the
//! server sends, before the agent sees it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json, value::RawValue};
use sightline_access::{AccessView, redact::KeptContents};
use sightline_agents::{hook::ToolCall, judge::Refusal};
use sightline_base::{decision_log, json_repair};
use sightline_protocol::decision::{Decision, HiddenFile};

use crate::{
    message::{Message, Object, error_response, response, tool_error},
    names::Names,
    result::{Left, Scope, clean},
};

/// Results that describe the server and contain no data.
const DESCRIPTIONS: &[&str] = &[
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/list",
    "server/discover",
    "tools/list",
];

/// Name of servers in the log of decisions.
const DOOR: &str = "mcp";

/// The access rules of the workspace, and what is kept of what happens.
pub trait Rules: Send + Sync {
    /// Returns why a tool may not run, for a server in a folder. `None` if it may.
    ///
    /// # Errors
    /// If the call cannot be checked.
    fn refusal(&self, folder: &Path, call: &ToolCall) -> Result<Option<Refusal>, String>;

    /// Returns what the log keeps of a refusal.
    fn denied(&self, door: &str, refusal: &Refusal) -> Decision;

    /// Adds decisions to the log.
    fn record(&self, decisions: &[Decision]);

    /// Saves the workspace before the first call of a turn that may write.
    fn save_before_change(&self);

    /// Returns the rules for results.
    ///
    /// # Errors
    /// If they cannot be read.
    fn view(&self) -> Result<AccessView, String>;
}

/// What is known of a request when its result comes.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its tool, if it is a call.
    tool: Option<String>,
    scope: Scope,
}

/// Judges for one server.
#[derive(Clone)]
pub struct Judge<'a> {
    /// The access rules.
    pub rules: &'a dyn Rules,
    /// The contents of denied files.
    pub contents: &'a KeptContents,
    /// Folder of the server.
    pub folder: &'a Path,
    /// Whether texts of results are not judged.
    pub passes_text: bool,
    /// Name of the server in the log.
    pub server: &'a str,
    /// The agent, if it is known.
    pub agent: Option<&'a str>,
}

impl Judge<'_> {
    /// Judges a request of the agent. `method` and `params` may be those that the server gets.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn request(&self, method: &str, params: &Object<'_>) -> Result<Request, String> {
        let cannot = |why: String| sightline_agents::judge::unchecked(&why);
        let mut request = Request {
            method: method.to_owned(),
            tool: None,
            scope: Scope {
                folders: vec![self.folder.to_owned()],
                passes_text: self.passes_text,
                only_names: None,
            },
        };
        let Some((tool, arguments)) = arguments(method, params).map_err(cannot)? else {
            return Ok(request);
        };
        request.tool = Some(tool.clone());
        let refusal = |call: &ToolCall| {
            let checked = self.rules.refusal(self.folder, call);
            checked.map_err(|why| self.unchecked(&request, &why))
        };
        let mut call = ToolCall::of_mcp_tool(&tool, &arguments)
            .map_err(|error| self.unchecked(&request, &error.to_string()))?;
        let searches = std::mem::take(&mut call.searches);
        if let Some(refusal) = refusal(&call)? {
            self.record(&request, vec![self.rules.denied(DOOR, &refusal)]);
            return Err(refusal.reason);
        }
        // Whether a search prints contents is seen in its result.
        let only_names = if searches.is_empty() {
            None
        } else {
            refusal(&ToolCall {
                searches,
                folders: call.folders.clone(),
                ..ToolCall::default()
            })?
        };
        request.scope.only_names = only_names.map(Box::new);
        let paths = call
            .paths
            .iter()
            .chain(&call.folders)
            .chain(&call.possible_paths);
        request
            .scope
            .folders
            .extend(paths.filter_map(|path| folder_of(&self.folder.join(path))));
        Ok(request)
    }

    /// Records that a call could not be checked. Returns why it is refused.
    fn unchecked(&self, request: &Request, why: &str) -> String {
        let subject = "(could not be checked)".to_owned();
        self.record(request, vec![decision_log::denied(DOOR, subject, None)]);
        sightline_agents::judge::unchecked(why)
    }

    fn record(&self, request: &Request, mut decisions: Vec<Decision>) {
        for decision in &mut decisions {
            let tool = request.tool.as_ref().unwrap_or(&request.method);
            decision.tool = Some(format!("{}__{tool}", self.server));
            decision.agent = self.agent.map(str::to_owned);
        }
        if !decisions.is_empty() {
            self.rules.record(&decisions);
        }
    }

    fn record_hidden(&self, request: &Request, hidden: &[HiddenFile]) {
        self.record(request, decision_log::redactions(DOOR, hidden).collect());
    }

    /// Judges a result of the server. Returns it if it must be changed.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn result(&self, request: &Request, result: &RawValue) -> Result<Option<Value>, String> {
        if DESCRIPTIONS.contains(&request.method.as_str()) {
            return Ok(None);
        }
        self.clean(request, result)
    }

    /// Judges params of a request or notification of the server. Returns them if they must be changed.
    ///
    /// # Errors
    /// Why it is refused.
    fn params(&self, method: &str, params: &RawValue) -> Result<Option<Value>, String> {
        let request = Request {
            method: method.to_owned(),
            tool: None,
            scope: Scope {
                folders: vec![self.folder.to_owned()],
                passes_text: self.passes_text,
                only_names: None,
            },
        };
        self.clean(&request, params)
    }

    fn clean(&self, request: &Request, raw: &RawValue) -> Result<Option<Value>, String> {
        let scope = &request.scope;
        let parsed = serde_json::from_str(raw.get()).or_else(|error| {
            let repaired = json_repair::replace_lone_surrogates(raw.get()).ok_or(error)?;
            serde_json::from_str(&repaired)
        });
        let mut value: Value = parsed.map_err(|error| unjudged(&error.to_string()))?;
        let view = self.rules.view().map_err(|why| unjudged(&why))?;
        let contents = self.contents.get(&view);
        match clean(&view, &contents, scope, &mut value) {
            Ok(cleaned) => {
                self.record_hidden(request, &cleaned.hidden);
                Ok(cleaned.changed.then_some(value))
            }
            Err(Left::Denied(refusal)) => {
                self.record(request, vec![self.rules.denied(DOOR, &refusal)]);
                Err(refusal.reason)
            }
            Err(Left::Unjudged(why)) => {
                self.unchecked(request, &why);
                Err(unjudged(&why))
            }
        }
    }

    /// Returns whether a URI is that of a denied file.
    pub fn hides(&self, uri: &str) -> bool {
        self.rules.view().map_or(true, |view| {
            let names = Names::new(&view, [self.folder.to_owned()]);
            names.denial(uri).is_some()
        })
    }

    /// Judges a message that the server sends on its own. Returns it as one line if it must be changed.
    ///
    /// # Errors
    /// Why it is left out.
    pub fn unasked(&self, message: &mut Message<'_>) -> Result<Option<Vec<u8>>, String> {
        let Some(params) = message.members.raw("params") else {
            return Ok(None);
        };
        let Some(changed) = self.params(&message.method, params)? else {
            return Ok(None);
        };
        message
            .members
            .set("params", &changed)
            .map_err(|error| error.to_string())?;
        Ok(Some(message.members.line()))
    }

    /// Judges the response to a request. Returns it as one line if it must be changed.
    pub fn response(&self, request: &Request, message: &mut Message<'_>) -> Option<Vec<u8>> {
        let mut is_changed = false;
        for name in ["result", "error"] {
            let Some(raw) = message.members.raw(name) else {
                continue;
            };
            let judged = match name {
                "result" => self.result(request, raw),
                _ => self.clean(request, raw),
            };
            let written = judged.and_then(|changed| {
                let Some(changed) = changed else {
                    return Ok(());
                };
                is_changed = true;
                let written = message.members.set(name, &changed);
                written.map_err(|error| unjudged(&error.to_string()))
            });
            if let Err(why) = written {
                return Some(refused(message.id(), &request.method, &why));
            }
        }
        is_changed.then(|| message.members.line())
    }
}

/// Returns the response to a request that is refused, as one line.
pub fn refused(id: &str, method: &str, why: &str) -> Vec<u8> {
    match method {
        "tools/call" => response(id, &tool_error(why)),
        _ => error_response(id, -32603, &format!("sightline: {why}")),
    }
}

fn unjudged(why: &str) -> String {
    format!("the result is left out, because it could not be judged: {why}. Ask for less.")
}

/// Returns the name and the arguments of a request that names files. `None` if it names none.
fn arguments(method: &str, params: &Object<'_>) -> Result<Option<(String, Value)>, String> {
    let value = |name: &str| {
        let raw = params.raw(name).map_or("{}", RawValue::get);
        serde_json::from_str::<Value>(raw).map_err(|error| format!("invalid {name}: {error}"))
    };
    Ok(Some(match method {
        "tools/call" => {
            let name = params.text("name").ok_or("the call names no tool")?;
            (name, value("arguments")?)
        }
        "prompts/get" => ("prompt".to_owned(), value("arguments")?),
        "resources/read" | "resources/subscribe" => {
            let uri = params.text("uri").ok_or("the request has no uri")?;
            ("resource".to_owned(), json!({ "uri": uri, "path": uri }))
        }
        "completion/complete" => {
            let mut names = Map::new();
            for part in [value("argument")?, value("context")?["arguments"].take()] {
                match part {
                    Value::Object(mut part) if part.contains_key("value") => {
                        names.insert("path".to_owned(), part["value"].take());
                    }
                    Value::Object(part) => names.extend(part),
                    _ => {}
                }
            }
            ("complete".to_owned(), Value::Object(names))
        }
        _ => return Ok(None),
    }))
}

/// Returns a folder, or the folder of a file.
fn folder_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    path.is_file().then(|| path.parent().map(Path::to_owned))?
}
