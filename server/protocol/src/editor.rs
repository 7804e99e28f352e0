//! Notifications by which a client tells the server what its editor shows, and
//! the notifications the server sends back.
//!
//! Each client notification replaces the whole of what it describes.

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
    /// True for the tab in front of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// True when it holds unsaved changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_dirty: Option<bool>,
    /// True when the user pinned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_pinned: Option<bool>,
    /// True for a preview that the next opened file replaces.
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
    /// All editors on the screen.
    pub editors: Vec<VisibleEditor>,
}

/// One editor on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VisibleEditor {
    /// URI of the document.
    pub uri: String,
    /// True for the editor with the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// The lines scrolled into view; several ranges when folds hide some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visible_ranges: Vec<Range>,
    /// The selections; an empty range is a cursor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selections: Vec<Range>,
}

/// A range of text, as in LSP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Range {
    /// First position.
    pub start: Position,
    /// Position after the last.
    pub end: Position,
}

/// A position in text, as in LSP.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub struct Position {
    /// Line, from 0.
    pub line: u32,
    /// Offset in the line, from 0, in the negotiated position encoding.
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
    /// The client's id of the terminal; a number is taken as its decimal form.
    #[serde(deserialize_with = "string_or_number")]
    #[schemars(with = "String")]
    pub id: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command that runs or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// True while a command is running.
    pub is_busy: bool,
    /// Output since the last notification; appended to what is unread.
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
    /// The focused document; absent when no editor has the focus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_document: Option<FocusedDocument>,
}

/// The document that has the focus.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FocusedDocument {
    /// Its URI.
    pub uri: String,
}

/// Params of `sightline/didChangeContext`, server to client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeContextParams {
    /// The newest revision of what the editor shows.
    pub revision: u64,
}

/// Params of `sightline/didChangeAccessRules`, server to client.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeAccessRulesParams {
    /// URI of the workspace folder whose rules changed.
    pub root: String,
}
