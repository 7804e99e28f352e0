//! The capabilities this server announces.

use serde_json::{Value, json};
use sightline_context::document::PositionEncoding;
use sightline_engine::session::client_info::ClientInfo;
use sightline_local::process::version;
use sightline_protocol::{PROTOCOL_VERSION, method::METHODS};

use crate::{editor_features::code_actions::CODE_ACTION_KIND, editor_requests};

/// Glob pattern of the rule files.
const RULE_FILES: &str = "**/.clineignore";

/// Returns the names of the commands for users.
pub fn user_commands() -> Vec<String> {
    let names = editor_requests::COMMANDS.iter().map(|route| route.name);
    names.map(|name| name.replacen('/', ".", 1)).collect()
}

/// Returns the commands to announce. Editors list them by name, so those that need params are only for our plugins.
/// `workspace/executeCommand` accepts them from every client.
fn announced_commands(client: &ClientInfo) -> Vec<String> {
    let mut commands = user_commands();
    if client.plugin {
        commands.extend(METHODS.iter().filter_map(|method| method.command()));
    }
    commands
}

/// Builds the registrations for after `initialize`. Hover and completion are only for rule files:
/// announced for all documents, they would replace the editor's own, such as `K` in Neovim. With
/// `blame_hover`, hover is for all files.
pub fn registrations(client: &ClientInfo, blame_hover: bool) -> Vec<Value> {
    let files = json!({ "documentSelector": [{ "scheme": "file" }] });
    let selector = json!({ "documentSelector": [{ "pattern": RULE_FILES }] });
    let watchers = json!({ "watchers": [{ "globPattern": RULE_FILES }] });
    [
        (client.watches_files, "workspace/didChangeWatchedFiles", &watchers),
        (
            client.registers_hover,
            "textDocument/hover",
            if blame_hover { &files } else { &selector },
        ),
        (client.registers_completion, "textDocument/completion", &selector),
    ]
    .into_iter()
    .filter(|(supported, _, _)| *supported)
    .map(|(_, method, options)| {
        json!({ "id": format!("sightline {method}"), "method": method, "registerOptions": options })
    })
    .collect()
}

/// Builds the result of `initialize`.
pub fn initialize_result(client: &ClientInfo) -> Value {
    let encoding = match client.encoding {
        PositionEncoding::Utf8 => "utf-8",
        PositionEncoding::Utf16 => "utf-16",
        PositionEncoding::Utf32 => "utf-32",
    };
    let methods: Vec<&str> = METHODS
        .iter()
        .filter(|method| method.direction.is_from_client())
        .map(|method| method.name)
        .collect();
    json!({
        "capabilities": {
            "positionEncoding": encoding,
            "textDocumentSync": {
                "openClose": true,
                "change": 2,
                "save": { "includeText": false },
            },
            "workspace": {
                "workspaceFolders": { "supported": true, "changeNotifications": true },
            },
            "codeActionProvider": { "codeActionKinds": [CODE_ACTION_KIND] },
            "executeCommandProvider": { "commands": announced_commands(client), "workDoneProgress": true },
            "experimental": {
                "sightline": { "protocolVersion": PROTOCOL_VERSION, "methods": methods },
            },
        },
        "serverInfo": { "name": "sightline", "version": version::VERSION },
    })
}
