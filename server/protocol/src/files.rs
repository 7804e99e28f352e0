//! `sightline/listFiles` and `sightline/readFile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::access::{AccessKind, AccessRule};

/// Params of `sightline/listFiles`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListFilesParams {
    /// Directory to list: a `file:` URI, an absolute path, or a path relative to a
    /// workspace root. Defaults to the first workspace root.
    pub path: Option<String>,
    /// List subdirectories recursively.
    pub recursive: bool,
    /// Maximum number of entries to return.
    pub limit: u32,
    /// Token for `$/progress` notifications, as in LSP.
    pub work_done_token: Option<ProgressToken>,
}

/// Token of `$/progress` notifications: a string or an integer.
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
    /// Entries in breadth-first order, each directory sorted by bytes.
    pub entries: Vec<FileEntry>,
    /// True if the list was cut at the limit or the time budget.
    pub truncated: bool,
    /// The list as printed in the `files` section of the environment block.
    pub text: String,
    /// Number of entries left out because `.clineignore` denies them.
    pub omitted: u32,
    /// Number of symbolic links left out because they lead outside the workspace
    /// folders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside: u32,
}

/// Kind of a list entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// A regular file, or anything other than a directory or a symbolic link.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link. Links are never followed.
    Symlink,
}

/// One list entry.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// Path relative to the workspace root, with `/`, without a trailing slash.
    pub path: String,
    /// Kind of the entry.
    pub kind: FileKind,
    /// Access to the entry. `denied` entries are listed only with the setting
    /// `environment.ignoredFiles: "lock"`.
    pub access: AccessKind,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}

/// Params of `sightline/readFile`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileParams {
    /// File to read: a `file:` URI, an absolute path, or a path relative to a workspace
    /// root.
    pub path: String,
    /// Id of a task for which the read is recorded, as with `sightline/trackFile`.
    pub task_id: Option<String>,
    /// First line to return, starting at 1.
    pub start_line: Option<u64>,
    /// Last line to return, inclusive.
    pub end_line: Option<u64>,
    /// Maximum number of UTF-8 bytes to return, cut at a character boundary.
    pub max_bytes: Option<u64>,
}

/// Source of the text of a `readFile` result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TextSource {
    /// The buffer of the editor.
    Buffer,
    /// The file on disk.
    #[default]
    Disk,
}

/// Result of `sightline/readFile`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileResult {
    /// The requested text, with its original line endings.
    pub text: String,
    /// Source of the text.
    pub source: TextSource,
    /// True if the editor has unsaved changes to this file.
    pub is_dirty: bool,
    /// True if the file on disk has changed too since the editor read or saved it. `text` is that of the
    /// editor.
    #[serde(default, skip_serializing_if = "is_false")]
    pub changed_on_disk: bool,
    /// Number of lines in the whole file. A last line without a line ending counts.
    pub total_lines: u64,
    /// True if the text was cut at `maxBytes`.
    pub truncated: bool,
    /// Estimated tokens of `text`.
    pub tokens: u64,
    /// Encoding of the file on disk, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Params of `sightline/listRules`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListRulesParams {
    /// Return only the rules of this workspace folder, given by path, URI or name.
    pub root: Option<String>,
    /// Maximum number of entries to return; 1000 by default.
    pub limit: Option<u32>,
}

/// Result of `sightline/listRules`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListRulesResult {
    /// Rule files, sorted by path. The built-in rules for secrets are not in a file.
    pub files: Vec<RuleFile>,
    /// Denied entries of the workspace, without what is below a denied folder.
    pub entries: Vec<DeniedEntry>,
    /// True if there may be more entries.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Why the entries of a folder could not be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// State of a rule file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuleFileState {
    /// Its lines apply.
    #[default]
    InForce,
    /// It is being saved: lines that were removed still apply, for half a second after the last change.
    Held,
    /// It cannot be used, so everything in its folder is denied.
    Unusable,
}

/// A rule file in force.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleFile {
    /// Name of the file in the `rule` of a denial.
    pub source: String,
    /// URI of the file.
    pub uri: String,
    /// State of the file.
    pub state: RuleFileState,
    /// Number of its rules.
    pub rules: u32,
    /// Time of the last change, in milliseconds since the Unix epoch.
    pub modified_at: Option<i64>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// A denied file or folder.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeniedEntry {
    /// Path relative to its workspace folder.
    pub path: String,
    /// URI of the entry.
    pub uri: String,
    /// Kind of the entry.
    pub kind: FileKind,
    /// The rule that denies it, or what a link leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<AccessRule>,
    /// Why it is denied, if no rule decides, such as a link that leads outside the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}
