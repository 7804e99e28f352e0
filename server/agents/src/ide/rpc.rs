//! JSON-RPC 2.0 and the handshake of the Model Context Protocol, as the IDE protocols use them.

use serde_json::{Value, json};

/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the message is not a request.
const INVALID_REQUEST: i64 = -32600;
/// The protocol version for clients that name none.
const PROTOCOL_VERSION: &str = "2025-06-18";

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming<'a> {
    /// A request. Its id is a string or a number.
    Request {
        /// Id of the request.
        id: &'a Value,
        /// Name of the method.
        method: &'a str,
        /// Params, or `null`.
        params: &'a Value,
    },
    /// A notification.
    Notification {
        /// Name of the method.
        method: &'a str,
        /// Params, or `null`.
        params: &'a Value,
    },
    /// A response to a request of ours. None is ever sent.
    Response,
    /// Not JSON-RPC.
    Invalid,
}

impl<'a> Incoming<'a> {
    /// Classifies a message.
    pub fn of(message: &'a Value) -> Self {
        let params = message.get("params").unwrap_or(&Value::Null);
        let id = message.get("id").filter(|id| !id.is_null());
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) if id.is_string() || id.is_number() => {
                Self::Request { id, method, params }
            }
            (Some(method), None) => Self::Notification { method, params },
            (None, Some(_)) => Self::Response,
            _ => Self::Invalid,
        }
    }
}

/// Returns a response with a result.
pub fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns a notification.
pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Returns the response to an unknown method.
pub fn unknown_method(id: &Value, method: &str) -> Value {
    let message = format!("unknown method {method}");
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": METHOD_NOT_FOUND, "message": message } })
}

/// Returns the response to a message that is not a request.
pub fn invalid_request() -> Value {
    json!({
        "jsonrpc": "2.0", "id": null,
        "error": { "code": INVALID_REQUEST, "message": "not a JSON-RPC message" },
    })
}

/// Returns the result of `initialize`: the version that the client names.
pub fn initialize_result(params: &Value) -> Value {
    let version = params["protocolVersion"].as_str();
    json!({
        "protocolVersion": version.unwrap_or(PROTOCOL_VERSION),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "sightline", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// Returns the result of a tool: text parts.
pub fn tool_text(texts: &[&str]) -> Value {
    let parts = texts.iter();
    let parts: Vec<Value> = parts
        .map(|text| json!({ "type": "text", "text": text }))
        .collect();
    json!({ "content": parts })
}

/// Returns the result of a tool that failed.
pub fn tool_error(message: &str) -> Value {
    let mut failed = tool_text(&[message]);
    failed["isError"] = true.into();
    failed
}

/// Describes a tool. `properties` is the JSON Schema of its arguments, all of them strings.
pub fn tool(name: &str, description: &str, properties: &[&str]) -> Value {
    let fields = properties.iter();
    let fields: serde_json::Map<String, Value> = fields
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": fields },
    })
}
