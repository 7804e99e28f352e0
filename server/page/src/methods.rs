//! The requests that the page may send.

use serde_json::{Value, json};
use sightline_engine::{
    error::Error,
    error_response::{METHOD_NOT_FOUND, error_object},
};
use sightline_protocol::error::ErrorKind;

use crate::Source;

/// Requests that change nothing.
const READING: &[&str] = &[
    "page/agents",
    "page/checkAgents",
    "page/doctor",
    "page/nextBlock",
    "page/state",
    "sightline/blame",
    "sightline/checkAccess",
    "sightline/checkpointStats",
    "sightline/connectedAgents",
    "sightline/diffCheckpoints",
    "sightline/environmentDetails",
    "sightline/listCheckpoints",
    "sightline/listDecisions",
    "sightline/listFiles",
    "sightline/listMcpServers",
    "sightline/listRules",
    "sightline/listTasks",
    "sightline/listTurns",
    "sightline/mcpServerLog",
    "sightline/previewRestore",
    "sightline/readFile",
    "sightline/selection",
    "sightline/taskContext",
    "sightline/unsavedFiles",
    "sightline/verifyCheckpoints",
];

/// Requests that change something: refused by a page that only reads.
const CHANGING: &[&str] = &[
    "sightline/commitCheckpoint",
    "sightline/createCheckpoint",
    "sightline/labelCheckpoint",
    "sightline/openFile",
    "sightline/restartMcpServer",
    "sightline/restoreCheckpoint",
    "sightline/setMcpServerEnabled",
    "sightline/trustMcpServer",
    "sightline/undoRestore",
];

/// Requests that need the token of a preview.
const PREVIEWED: &[&str] = &["sightline/restoreCheckpoint", "sightline/undoRestore"];

/// Answers a request with a JSON object that has a `result` or an `error`.
pub(crate) fn answer(source: &dyn Source, read_only: bool, method: &str, params: Value) -> String {
    let is_allowed = READING.contains(&method) || CHANGING.contains(&method);
    if !is_allowed || !source.has(method) {
        let error = Error::new(
            ErrorKind::Unsupported,
            format!("{method:?} is not available on the page"),
        );
        return json!({ "error": error_object(METHOD_NOT_FOUND, &error) }).to_string();
    }
    let result =
        accepted(read_only, method, params).and_then(|params| source.call(method, &params));
    match result {
        Ok(result) => format!("{{\"result\":{result}}}"),
        Err(error) => json!({ "error": error_object(error.kind.code(), &error) }).to_string(),
    }
}

/// Returns whether a request changes something.
pub(crate) fn changes(method: &str, params: &Value) -> bool {
    // It is also asked for the state.
    let pauses = method == "sightline/connectedAgents" && params.get("isPaused").is_some();
    pauses || CHANGING.contains(&method)
}

/// Returns the params as they are sent on.
fn accepted(read_only: bool, method: &str, mut params: Value) -> Result<Value, Error> {
    if params.is_null() {
        params = json!({});
    }
    let is_changing = changes(method, &params);
    let Some(fields) = params.as_object_mut() else {
        return Err(Error::invalid(format!(
            "{method}: params must be an object"
        )));
    };
    if read_only && is_changing {
        return Err(Error::new(
            ErrorKind::AccessDenied,
            format!("{method}: this page only reads; start `sightline ui` without --read-only"),
        ));
    }
    if PREVIEWED.contains(&method) && !fields.get("token").is_some_and(Value::is_string) {
        return Err(Error::invalid(format!(
            "{method}: `token` is required on the page; preview the restore first"
        )));
    }
    // No progress is shown, and nothing is marked as delivered to an agent.
    fields.remove("workDoneToken");
    if method == "sightline/environmentDetails" {
        fields.insert("consume".to_owned(), json!(false));
    }
    Ok(params)
}
