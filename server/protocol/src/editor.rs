//! Editor state notifications of the client, and notifications of the server.
//!
//! Each client notification replaces the whole state it describes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `sightline/didChangeTabs`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeTabsParams {
    /// All tabs, in editor order.
    pub tabs: Vec<Tab>,
}

/// One tab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tab {
    /// URI of the document in the tab.
    pub uri: String,
    /// True for the active tab of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// True if the document has unsaved changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_dirty: Option<bool>,
    /// True if the tab is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_pinned: Option<bool>,
    /// True for a preview tab that is replaced by the next opened file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_preview: Option<bool>,
    /// Number of the tab group or window column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<i64>,
}

/// Params of `sightline/didChangeVisibleEditors`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeVisibleEditorsParams {
    /// All visible editors.
    pub editors: Vec<VisibleEditor>,
}

/// One visible editor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VisibleEditor {
    /// URI of the document.
    pub uri: String,
    /// True for the focused editor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Visible lines. Folded code splits them into several ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visible_ranges: Vec<Range>,
    /// Selections. An empty range is a cursor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selections: Vec<Range>,
}

/// A range of text, as in LSP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Range {
    /// Start position.
    pub start: Position,
    /// End position, exclusive.
    pub end: Position,
}

/// A position in text, as in LSP.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub struct Position {
    /// Line, starting at 0.
    pub line: u32,
    /// Offset in the line, starting at 0, in the negotiated position encoding.
    pub character: u32,
}

/// Params of `sightline/didChangeTerminals`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeTerminalsParams {
    /// All terminals.
    pub terminals: Vec<Terminal>,
}

/// One terminal.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Terminal {
    /// Id of the terminal, chosen by the client. A number is converted to its decimal
    /// form.
    #[serde(deserialize_with = "string_or_number")]
    #[schemars(with = "String")]
    pub id: String,
    /// Title of the terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The running command, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// True while a command is running.
    pub is_busy: bool,
    /// Output since the last notification. Appended to the unread output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_output: Option<String>,
    /// Exit code of the last command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

fn string_or_number<'de, D>(deserializer: D) -> Result<String, D::Error>
where
    D: serde::Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a string or a whole number")]
    enum Id {
        Text(String),
        Number(serde_json::Number),
    }
    Ok(match Id::deserialize(deserializer)? {
        Id::Text(text) => text,
        Id::Number(number) => number.to_string(),
    })
}

/// Params of `textDocument/didFocus`: the active editor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DidFocusParams {
    /// The focused document. Absent if no editor has the focus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_document: Option<FocusedDocument>,
}

/// The focused document.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FocusedDocument {
    /// URI of the document.
    pub uri: String,
}

/// Params of `sightline/didChangeContext`, server to client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeContextParams {
    /// Latest revision of the editor state.
    pub revision: u64,
}

/// Params of `sightline/didChangeAccessRules`, server to client.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeAccessRulesParams {
    /// URI of the workspace folder whose rules changed.
    pub root: String,
}
