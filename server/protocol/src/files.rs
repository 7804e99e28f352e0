//! `sightline/listFiles` and `sightline/readFile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::AccessKind;

/// Params of `sightline/listFiles`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListFilesParams {
    /// The directory to list: a `file:` URI, absolute, or relative to a workspace root. The
    /// first workspace root when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Also list what is below its directories.
    pub recursive: bool,
    /// Stop after this many entries.
    pub limit: u32,
    /// Report `$/progress` under this token, as in LSP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<ProgressToken>,
}

/// The token of `$/progress`: a string or a whole number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a whole number")]
pub enum ProgressToken {
    /// A string.
    Text(String),
    /// A number.
    Number(i64),
}

impl Default for ListFilesParams {
    fn default() -> Self {
        Self {
            path: None,
            recursive: true,
            limit: 200,
            work_done_token: None,
        }
    }
}

/// Result of `sightline/listFiles`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListFilesResult {
    /// The entries, breadth first, each directory in byte order.
    pub entries: Vec<FileEntry>,
    /// True when the list stopped at the limit or at its time budget.
    pub truncated: bool,
    /// The list as the `files` section of the environment block prints it.
    pub text: String,
    /// Entries left out because `.clineignore` denies them.
    pub omitted: u32,
    /// Links left out because they lead outside the workspace folders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside: u32,
}

/// What an entry of a listing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// A regular file (or anything that is none of the other two).
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link; never followed.
    Symlink,
}

/// One entry of a listing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// Path relative to the workspace root, with `/`, without a trailing slash.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// `denied` entries are present only with the setting
    /// `environment.ignoredFiles: "lock"`.
    pub access: AccessKind,
    /// True when the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Params of `sightline/readFile`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileParams {
    /// The file: a `file:` URI, absolute, or relative to a workspace root.
    pub path: String,
    /// Also record the read for the task of this id, as `sightline/trackFile` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// First line wanted, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u64>,
    /// Last line wanted, inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    /// Return at most this many bytes of UTF-8 text; cut at a character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Where the text of a `readFile` answer came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TextSource {
    /// The editor's buffer.
    Buffer,
    /// The file on disk.
    #[default]
    Disk,
}

/// Result of `sightline/readFile`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileResult {
    /// The text, or the lines asked for, line endings as they are.
    pub text: String,
    /// Where it came from.
    pub source: TextSource,
    /// True when the editor holds unsaved changes of this file.
    pub is_dirty: bool,
    /// Lines of the whole file; a last line without line ending counts.
    pub total_lines: u64,
    /// True when `maxBytes` cut the text.
    pub truncated: bool,
    /// Estimated tokens of `text`.
    pub tokens: u64,
    /// The encoding the bytes on disk were read as, when it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
