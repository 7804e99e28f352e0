//! Editor state notifications of the client, and notifications of the server.
//!
//! Each client notification replaces the whole state it describes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Params of `sightline/didChangeTabs`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeTabsParams {
    /// All tabs, in editor order.
    pub tabs: Vec<Tab>,
}

/// One tab.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tab {
    /// URI of the document in the tab.
    pub uri: String,
    /// True for the active tab of its group.
    pub is_active: Option<bool>,
    /// True if the document has unsaved changes.
    pub is_dirty: Option<bool>,
    /// True if the tab is pinned.
    pub is_pinned: Option<bool>,
    /// True for a preview tab that is replaced by the next opened file.
    pub is_preview: Option<bool>,
    /// Number of the tab group or window column.
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Terminal {
    /// Id of the terminal, chosen by the client. A number is converted to its decimal
    /// form.
    #[serde(deserialize_with = "string_or_number")]
    #[schemars(with = "String")]
    pub id: String,
    /// Title of the terminal.
    pub name: Option<String>,
    /// The running command, or the last one.
    pub command: Option<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// True while a command is running.
    pub is_busy: bool,
    /// Output since the last notification. Appended to the unread output.
    pub new_output: Option<String>,
    /// Exit code of the last command.
    pub exit_code: Option<i64>,
    /// Process id of the first process, usually the shell. An agent does not get the output of the
    /// terminal in which it runs.
    pub pid: Option<u32>,
    /// True while a program uses the alternate screen. What it shows is not output.
    pub alternate_screen: Option<bool>,
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

/// Params of `sightline/didChangeDiagnostics`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeDiagnosticsParams {
    /// URI of the document.
    pub uri: String,
    /// All diagnostics of the document, of all language servers. At most 200 are kept, the most
    /// severe ones.
    pub diagnostics: Vec<Diagnostic>,
}

/// A diagnostic of a language server, as in LSP. Other fields are ignored.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Where it is.
    pub range: Range,
    /// 1 is an error, 2 a warning, 3 an information and 4 a hint. Defaults to an error.
    pub severity: Option<u32>,
    /// Code of the rule.
    pub code: Option<DiagnosticCode>,
    /// Name of the tool.
    pub source: Option<String>,
    /// The message.
    pub message: String,
}

/// Code of a diagnostic: a string or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a whole number")]
pub enum DiagnosticCode {
    /// A string.
    Text(String),
    /// A number.
    Number(i64),
}

/// Params of `sightline/diagnostics`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DiagnosticsParams {
    /// Only of these files: `file:` URIs, absolute paths, or paths relative to a workspace root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
}

/// Result of `sightline/diagnostics`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsResult {
    /// Files with diagnostics, sorted by path.
    pub files: Vec<FileDiagnostics>,
    /// Number of files left out because agents may not see them.
    pub omitted: u32,
    /// The diagnostics as printed in the `diagnostics` section of the environment block, one line
    /// each.
    pub text: String,
}

/// The diagnostics of one file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiagnostics {
    /// Path relative to the workspace root, with `/`.
    pub path: String,
    /// The diagnostics, most severe first.
    pub diagnostics: Vec<Diagnostic>,
}

/// Params of `sightline/selection`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectionParams {
    /// Maximum text to return, in UTF-8 bytes: at most 16384, the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Result of `sightline/selection`. Without a `path` if no file has the focus, or agents may not
/// see it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectionResult {
    /// The active file: relative to the workspace root, with `/`.
    pub path: Option<String>,
    /// LSP language id.
    pub language_id: Option<String>,
    /// Selections and cursors, in the order of the editor. Empty if the client does not send them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selections: Vec<Selection>,
    /// True if text was left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
}

/// A selection or a cursor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// Where it is.
    pub range: Range,
    /// The selected text, with unsaved changes. Empty for a cursor.
    pub text: String,
}

/// Params of `sightline/unsavedFiles`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UnsavedFilesParams {
    /// Only files below this folder: a `file:` URI, an absolute path, or a path relative to a
    /// workspace root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Result of `sightline/unsavedFiles`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnsavedFilesResult {
    /// Their `file:` URIs, without those of files that agents may not see.
    pub uris: Vec<String>,
    /// Name of the editor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editor: Option<String>,
    /// Time of the last change that the editor reported, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<i64>,
}

/// Params of `sightline/connectedAgents`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ConnectedAgentsParams {
    /// Pauses or resumes the IDE protocols of agents first, until the setting `bridges.pause` changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_paused: Option<bool>,
}

/// Params of `sightline/openFile`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenFileParams {
    /// File to show: a `file:` URI, an absolute path, or a path relative to a workspace root.
    pub path: String,
    /// Line to show, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Result of `sightline/openFile`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenFileResult {
    /// The file that the editor was asked to show: relative to the workspace root, with `/`.
    pub path: String,
}

fn is_false(value: &bool) -> bool {
    !*value
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

/// Params of `sightline/didChangeFiles`, server to client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeFilesParams {
    /// URIs of the open documents whose files changed.
    pub uris: Vec<String>,
}

/// Params of `sightline/openDiff`, server to client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenDiffParams {
    /// Identifies the diff in `sightline/closeDiff`. If an accepted change cannot be used, because no
    /// checkpoint can be created or the file has changed, a message says so, and the request is sent
    /// again with the same id and the text that the user accepted.
    pub diff_id: String,
    /// URI of the file. It may not exist yet.
    pub uri: String,
    /// Path of the file, as results of requests name it.
    pub path: String,
    /// Proposed text of the whole file.
    pub contents: String,
    /// Title for the user, on one line.
    pub title: String,
}

/// Result of `sightline/openDiff`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenDiffResult {
    /// True if the user accepted the change. The agent writes the file, not the editor.
    pub accepted: bool,
    /// The text that the user accepted, if it differs from the proposed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
}

/// Params of `sightline/closeDiff`, server to client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloseDiffParams {
    /// The diff. A later result of its `sightline/openDiff` is ignored.
    pub diff_id: String,
}

/// Params of `sightline/didChangeBridges`, server to client, and result of `sightline/connectedAgents`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeBridgesParams {
    /// Names of the agents that are connected by their IDE protocol, oldest connection first.
    pub agents: Vec<String>,
    /// True if they get no editor state.
    pub is_paused: bool,
    /// Environment variables for terminals of the editor, by which agents find this server without an option.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}
