//! Judges what passes between an agent and a server: requests before they are sent, and what the
//! server sends, before the agent sees it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json, value::RawValue};
use sightline_access::{AccessView, redact::KeptContents};
use sightline_agents::hook::ToolCall;
use sightline_base::json_repair;

use crate::{
    message::{Message, Object, error_response, response, tool_error},
    names::Names,
    result::{Scope, clean},
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

/// The access rules of the workspace.
pub trait Rules: Send + Sync {
    /// Returns why a tool may not run, for a server in a folder. `None` if it may.
    ///
    /// # Errors
    /// If the call cannot be checked.
    fn refusal(&self, folder: &Path, call: &ToolCall) -> Result<Option<String>, String>;

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
            scope: Scope {
                folders: vec![self.folder.to_owned()],
                passes_text: self.passes_text,
                only_names: None,
            },
        };
        let Some((tool, arguments)) = arguments(method, params).map_err(cannot)? else {
            return Ok(request);
        };
        let mut call =
            ToolCall::of_mcp_tool(&tool, &arguments).map_err(|error| cannot(error.to_string()))?;
        let searches = std::mem::take(&mut call.searches);
        let refusal = |call: &ToolCall| self.rules.refusal(self.folder, call).map_err(cannot);
        if let Some(why) = refusal(&call)? {
            return Err(why);
        }
        // Whether a search prints contents is seen in its result.
        if !searches.is_empty() {
            request.scope.only_names = refusal(&ToolCall {
                searches,
                folders: call.folders.clone(),
                ..ToolCall::default()
            })?;
        }
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

    /// Judges a result of the server. Returns it if it must be changed.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn result(&self, request: &Request, result: &RawValue) -> Result<Option<Value>, String> {
        if DESCRIPTIONS.contains(&request.method.as_str()) {
            return Ok(None);
        }
        self.clean(&request.scope, result)
    }

    /// Judges params of a request or notification of the server. Returns them if they must be changed.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn params(&self, params: &RawValue) -> Result<Option<Value>, String> {
        let scope = Scope {
            folders: vec![self.folder.to_owned()],
            passes_text: self.passes_text,
            only_names: None,
        };
        self.clean(&scope, params)
    }

    fn clean(&self, scope: &Scope, raw: &RawValue) -> Result<Option<Value>, String> {
        let parsed = serde_json::from_str(raw.get()).or_else(|error| {
            let repaired = json_repair::replace_lone_surrogates(raw.get()).ok_or(error)?;
            serde_json::from_str(&repaired)
        });
        let mut value: Value = parsed.map_err(|error| unjudged(&error.to_string()))?;
        let view = self.rules.view().map_err(|why| unjudged(&why))?;
        let contents = self.contents.get(&view);
        let changed =
            clean(&view, &contents, scope, &mut value).map_err(|why| match &scope.only_names {
                Some(refusal) if *refusal == why => why,
                _ => unjudged(&why),
            })?;
        Ok(changed.then_some(value))
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
        let Some(changed) = self.params(params)? else {
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
                _ => self.params(raw),
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
