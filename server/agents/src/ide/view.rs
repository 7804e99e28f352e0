//! The editor state that agents may see.
//!
//! The server builds an [`EditorView`] after each change, leaves out what the access rules deny, and
//! publishes it. A connection always sends the newest view.

use std::path::PathBuf;

use serde_json::Value;
use sightline_protocol::editor::Range;

/// The editor state that agents may see. Denied files and files outside the workspace are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditorView {
    /// The focused file. None if no file has the focus or agents may not see it.
    pub focus: Option<Focus>,
    /// The open files, most recently focused first. Contains the focused file.
    pub open_files: Vec<OpenFile>,
    /// The diagnostics of the client, in the order of their URIs.
    pub diagnostics: Vec<FileDiagnostics>,
}

/// The focused file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// The absolute path.
    pub path: PathBuf,
    /// The `file:` URI.
    pub uri: String,
    /// The selection, or the cursor if nothing is selected.
    pub selection: Selection,
}

/// A selected range. It is empty at the cursor if nothing is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The range. Characters are UTF-16 units.
    pub range: Range,
    /// The selected text of the buffer. Empty if nothing is selected or `bridges.selection` is false.
    pub text: String,
}

/// An open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The absolute path.
    pub path: PathBuf,
    /// When it last had the focus, or was opened: milliseconds since the Unix epoch.
    pub focused_at: i64,
}

/// The diagnostics of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileDiagnostics {
    /// The absolute path.
    pub path: PathBuf,
    /// The `file:` URI.
    pub uri: String,
    /// LSP `Diagnostic` objects with UTF-16 positions.
    pub diagnostics: Vec<Value>,
}
