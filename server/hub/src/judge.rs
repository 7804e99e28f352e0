//! Judges what passes between an agent and a server: requests before they are sent, and what the
//! server sends, before the agent sees it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json, value::RawValue};
use sightline_access::{AccessView, redact::KeptContents};
use sightline_agents::{hook::ToolCall, judge::Refusal};
use sightline_base::{decision_log, json_repair};
use sightline_protocol::decision::{Decision, HiddenFile};

use crate::{
    message::{Message, Object, error_response, response, tool_error, unambiguous},
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

/// Other requests whose params name no files.
const PLAIN: &[&str] = &["resources/list", "resources/templates/list"];

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

    /// Returns whether that is done for this turn.
    fn is_saved(&self) -> bool;

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

/// A request that was read, and not judged yet.
pub struct Asked {
    request: Request,
    /// What it names. `None` if it cannot name files.
    call: Option<ToolCall>,
    /// Whether the workspace is saved before it.
    may_write: bool,
}

impl Asked {
    /// Returns whether it is judged without any work: it names nothing, and no checkpoint is needed.
    pub fn is_quick(&self, rules: &dyn Rules) -> bool {
        let names_nothing = |call: &ToolCall| {
            let lists = [
                &call.paths,
                &call.possible_paths,
                &call.commands,
                &call.codes,
            ];
            lists.iter().all(|list| list.is_empty())
                && call.searches.is_empty()
                && call.changed.is_empty()
        };
        self.call.as_ref().is_none_or(names_nothing) && (!self.may_write || rules.is_saved())
    }

    /// Returns its method.
    pub fn method(&self) -> &str {
        &self.request.method
    }
}

/// Judges for one server.
#[derive(Clone)]
pub struct Judge {
    /// The access rules.
    pub rules: Arc<dyn Rules>,
    /// The contents of denied files.
    pub contents: Arc<KeptContents>,
    /// Folder of the server.
    pub folder: Arc<Path>,
    /// Whether texts of results are not judged.
    pub passes_text: bool,
    /// Name of the server in the log.
    pub server: Arc<str>,
    /// The agent, if it is known.
    pub agent: Option<Arc<str>>,
}

impl Judge {
    /// Reads a request of the agent. `method` and `params` may be those that the server gets, `reads_only`:
    /// the tool says that it changes nothing.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn read(
        &self,
        method: &str,
        params: &Object<'_>,
        reads_only: bool,
    ) -> Result<Asked, String> {
        let mut request = self.request(method);
        let named =
            arguments(method, params).map_err(|why| sightline_agents::judge::unchecked(&why))?;
        let call = match named {
            Some((tool, arguments)) => {
                let call = ToolCall::of_mcp_tool(&tool, &arguments);
                request.tool = Some(tool);
                Some(call.map_err(|error| self.unchecked(&request, &error))?)
            }
            None => None,
        };
        Ok(Asked {
            may_write: method == "tools/call" && !reads_only,
            request,
            call,
        })
    }

    /// Judges a request, and saves the workspace before it if that is needed.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn decide(&self, asked: Asked) -> Result<Request, String> {
        let mut request = asked.request;
        if let Some(call) = asked.call {
            self.check(&mut request, call)?;
        }
        if asked.may_write {
            self.rules.save_before_change();
        }
        Ok(request)
    }

    fn check(&self, request: &mut Request, mut call: ToolCall) -> Result<(), String> {
        let refusal = |call: &ToolCall| {
            let checked = self.rules.refusal(&self.folder, call);
            checked.map_err(|why| self.unchecked(request, &why))
        };
        let searches = std::mem::take(&mut call.searches);
        if let Some(refusal) = refusal(&call)? {
            self.record(request, vec![self.rules.denied(DOOR, &refusal)]);
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
        Ok(())
    }

    /// Returns what is known of a request that names nothing.
    fn request(&self, method: &str) -> Request {
        Request {
            method: method.to_owned(),
            tool: None,
            scope: Scope {
                folders: vec![self.folder.to_path_buf()],
                passes_text: self.passes_text,
                only_names: None,
            },
        }
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
            decision.agent = self.agent.as_deref().map(str::to_owned);
        }
        if !decisions.is_empty() {
            self.rules.record(&decisions);
        }
    }

    fn record_hidden(&self, request: &Request, hidden: &[HiddenFile]) {
        self.record(request, decision_log::redactions(DOOR, hidden).collect());
    }

    /// Takes denied files out of a value. Returns it with whether it changed.
    fn clean(&self, request: &Request, raw: &RawValue) -> Result<(bool, Value), String> {
        let scope = &request.scope;
        let parsed = json_repair::parse(raw.get());
        let mut value = parsed.map_err(|error| unjudged(&error.to_string()))?;
        let view = self.rules.view().map_err(|why| unjudged(&why))?;
        let contents = self.contents.get(&view);
        match clean(&view, &contents, scope, &mut value) {
            Ok(cleaned) => {
                self.record_hidden(request, &cleaned.hidden);
                Ok((cleaned.changed, value))
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
            let names = Names::new(&view, [self.folder.to_path_buf()]);
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
        let (changed, value) = self.clean(&self.request(&message.method), params)?;
        if !changed {
            return Ok(None);
        }
        message
            .members
            .set("params", &value)
            .map_err(|error| error.to_string())?;
        Ok(Some(message.members.line()))
    }

    /// Judges the response to a request.
    pub fn response(&self, request: &Request, message: &mut Message<'_>) -> Judged {
        let mut judged = Judged::default();
        for name in ["result", "error"] {
            let Some(raw) = message.members.raw(name) else {
                continue;
            };
            judged.is_error |= name == "error";
            if name == "result" && DESCRIPTIONS.contains(&request.method.as_str()) {
                continue;
            }
            let written = self.clean(request, raw).and_then(|(changed, value)| {
                judged.is_error |= value["isError"] == true;
                if !changed {
                    return Ok(false);
                }
                let written = message.members.set(name, &value);
                written.map_err(|error| unjudged(&error.to_string()))?;
                Ok(true)
            });
            match written {
                Ok(true) => judged.changed = Some(message.members.line()),
                Ok(false) => {}
                Err(why) => {
                    return Judged {
                        changed: Some(refused(message.id(), &request.method, &why)),
                        is_error: true,
                    };
                }
            }
        }
        judged
    }
}

/// A response that was judged.
#[derive(Debug, Default)]
pub struct Judged {
    /// The response as one line, if it must be changed.
    pub changed: Option<Vec<u8>>,
    /// Whether it says that the request failed.
    pub is_error: bool,
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
        let Some(raw) = params.raw(name) else {
            return Ok(json!({}));
        };
        serde_json::from_str::<Value>(raw.get())
            .and_then(|value| unambiguous(raw).map(|()| value))
            .map_err(|error| format!("invalid {name}: {error}"))
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
        _ if DESCRIPTIONS.contains(&method) || PLAIN.contains(&method) => return Ok(None),
        // Whatever it does: its params are judged as the arguments of a tool.
        _ => {
            let mut all = Map::new();
            for name in params.names().filter(|name| *name != "_meta") {
                all.insert(name.to_owned(), value(name)?);
            }
            (method.to_owned(), Value::Object(all))
        }
    }))
}

/// Returns a folder, or the folder of a file.
fn folder_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    path.is_file().then(|| path.parent().map(Path::to_owned))?
}
