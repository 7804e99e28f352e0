//! What a client says about itself in `initialize`.
//!
//! The params are read leniently from JSON: capabilities this server does not use may have
//! any shape, and none of them prevents the server from starting.

use serde_json::Value;
use sightline_base::path::{AbsPath, Root, Roots, uri_to_path};
use sightline_context::{document::PositionEncoding, environment};

/// Properties of the client, from the params of `initialize`.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    /// `clientInfo.name`.
    pub name: String,
    /// `clientInfo.version`.
    pub version: String,
    /// Display name of the editor.
    pub host: String,
    /// Negotiated position encoding.
    pub encoding: PositionEncoding,
    /// Supports `workspace/configuration`.
    pub configuration: bool,
    /// Supports dynamic registration of `workspace/didChangeWatchedFiles`.
    pub watches_files: bool,
    /// Supports dynamic registration of `textDocument/hover`.
    pub registers_hover: bool,
    /// Supports dynamic registration of `textDocument/completion`.
    pub registers_completion: bool,
    /// Supports `workspace/applyEdit`.
    pub applies_edits: bool,
    /// Supports `window/showDocument`.
    pub shows_documents: bool,
    /// Supports code action literals, not only commands.
    pub action_literals: bool,
    /// Renders markdown in hovers.
    pub markdown_hover: bool,
    /// The client is one of our plugins, which presents results itself.
    pub plugin: bool,
    /// Shows the changes that agents propose.
    pub opens_diffs: bool,
    /// Supports versioned document edits.
    pub versioned_edits: bool,
}

impl ClientInfo {
    /// Reads the params of `initialize`.
    pub fn new(initialize: &Value) -> Self {
        let text = |pointer: &str| {
            let found = initialize.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let flag =
            |pointer: &str| initialize.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let name = text("/clientInfo/name");
        Self {
            host: environment::display_name(&name),
            version: text("/clientInfo/version"),
            encoding: encoding(initialize),
            configuration: flag("/capabilities/workspace/configuration"),
            watches_files: flag(
                "/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration",
            ),
            registers_hover: flag("/capabilities/textDocument/hover/dynamicRegistration"),
            registers_completion: flag("/capabilities/textDocument/completion/dynamicRegistration"),
            applies_edits: flag("/capabilities/workspace/applyEdit"),
            shows_documents: flag("/capabilities/window/showDocument/support"),
            action_literals: initialize
                .pointer("/capabilities/textDocument/codeAction/codeActionLiteralSupport")
                .is_some_and(Value::is_object),
            markdown_hover: initialize
                .pointer("/capabilities/textDocument/hover/contentFormat")
                .and_then(Value::as_array)
                .is_some_and(|formats| formats.iter().any(|format| format == "markdown")),
            plugin: initialize
                .pointer("/capabilities/experimental/sightline")
                .is_some_and(|value| value.is_object() || *value == true),
            opens_diffs: flag("/capabilities/experimental/sightline/openDiff"),
            versioned_edits: flag("/capabilities/workspace/workspaceEdit/documentChanges"),
            name,
        }
    }

    /// Returns whether the client discards command results, as Helix does.
    pub fn drops_results(&self) -> bool {
        self.name.eq_ignore_ascii_case("helix")
    }
}

/// UTF-8 if the client offers it, else UTF-16, which every client supports.
fn encoding(initialize: &Value) -> PositionEncoding {
    let offered = initialize
        .pointer("/capabilities/general/positionEncodings")
        .and_then(Value::as_array);
    let offers = |name: &str| offered.is_some_and(|all| all.iter().any(|one| one == name));
    if offers("utf-8") {
        PositionEncoding::Utf8
    } else if offers("utf-32") && !offers("utf-16") {
        PositionEncoding::Utf32
    } else {
        PositionEncoding::Utf16
    }
}

/// Returns the workspace folders of `initialize`: `workspaceFolders`, else `rootUri`,
/// else `rootPath`. Folders that are not local are skipped.
pub fn initial_roots(initialize: &Value) -> Roots {
    if let Some(folders) = initialize.get("workspaceFolders").and_then(Value::as_array) {
        let roots: Vec<Root> = folders.iter().filter_map(folder).collect();
        if !roots.is_empty() {
            return Roots::new(roots);
        }
    }
    let uri = initialize.get("rootUri").and_then(Value::as_str);
    let path = initialize.get("rootPath").and_then(Value::as_str);
    let root = uri
        .and_then(|uri| uri_to_path(uri).ok().flatten())
        .or_else(|| AbsPath::new(path?.as_ref()));
    Roots::new(root.map(|path| Root::new(path, None)).into_iter().collect())
}

/// Reads a `WorkspaceFolder`. Uses the client's name for it unless that is a path.
pub fn folder(folder: &Value) -> Option<Root> {
    let path = uri_to_path(folder.get("uri")?.as_str()?).ok().flatten()?;
    let name = folder.get("name").and_then(Value::as_str);
    let name = name.filter(|name| !name.contains(['/', '\\']));
    Some(Root::new(path, name.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_initialize_params_are_accepted() {
        for odd in [
            json!(null),
            json!([]),
            json!({ "capabilities": 5, "clientInfo": "x", "workspaceFolders": [null, 3] }),
            json!({ "rootUri": null, "rootPath": "relative" }),
        ] {
            let client = ClientInfo::new(&odd);
            assert_eq!(client.encoding, PositionEncoding::Utf16);
            assert!(initial_roots(&odd).is_empty());
        }
    }

    #[test]
    fn a_folder_whose_name_is_its_path_is_named_by_its_last_component() {
        let root =
            folder(&json!({ "uri": "file:///c:/nowhere/ws", "name": "/nowhere/ws" })).unwrap();
        assert_eq!(root.name, "ws");
        let root = folder(&json!({ "uri": "file:///c:/nowhere/ws", "name": "Shop" })).unwrap();
        assert_eq!(root.name, "Shop");
    }
}
