//! `sightline/checkAccess`: whether an agent may see a path or run a command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Params of `sightline/checkAccess`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CheckAccessParams {
    /// Paths to check: `file:` URIs, absolute paths, or paths relative to a workspace
    /// root.
    pub paths: Vec<String>,
    /// Shell command line to check. The answer is advice, not a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// More command lines to check, independently of each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = []))]
    pub commands: Vec<String>,
    /// The user mentions the paths in a prompt. Setting `access.mentions` can allow them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub mentioned: bool,
}

/// Result of `sightline/checkAccess`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckAccessResult {
    /// One result per requested path, in the same order.
    pub paths: Vec<PathAccess>,
    /// Result for the command, if the request has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandAccess>,
    /// One result per command of `commands`, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = []))]
    pub commands: Vec<CommandAccess>,
}

/// Access of an agent to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AccessKind {
    /// Inside a workspace root and not denied.
    #[default]
    Allowed,
    /// Denied by a rule, or because access could not be determined.
    Denied,
    /// Outside every workspace root.
    Outside,
}

/// Access to one path.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathAccess {
    /// The path as requested.
    pub path: String,
    /// Access to the path.
    pub access: AccessKind,
    /// The matching rule, if a rule decided.
    pub rule: Option<AccessRule>,
    /// Reason when no rule decided, such as an invalid path or rules that cannot be
    /// read.
    pub reason: Option<String>,
    /// The path that it leads to, if symlinks decided that it is not the written one.
    pub resolved: Option<String>,
    /// For an allowed path: the line of the user that lifts a built-in rule for secrets.
    pub allowed_by: Option<AccessRule>,
}

/// A line of a rule file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRule {
    /// Rule file, relative to its workspace root; an absolute path for a file above the
    /// root; `built-in` for the rule that hides the rule file.
    pub source: String,
    /// Line number, starting at 1; 0 for a built-in rule.
    pub line: u32,
    /// The pattern as written.
    pub pattern: String,
}

/// Access of a command line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandAccess {
    /// False if any operand is denied.
    pub allowed: bool,
    /// Denied operands.
    pub denied: Vec<DeniedOperand>,
    /// A command that does the same without the denied files, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Absolute paths that the command would write, create, move, link or remove, as far as its
    /// words show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = []))]
    pub written: Vec<String>,
}

/// A command operand that names a denied file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeniedOperand {
    /// The operand after shell quote removal.
    pub path: String,
    /// What the command would do with the file, as text.
    pub reason: String,
    /// The matching rule, if a rule decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<AccessRule>,
}

/// Params of `sightline/hiddenPaths`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HiddenPathsParams {
    /// The workspace folders that the server must have, and no others: `file:` URIs without symbolic links. Empty: any.
    pub roots: Vec<String>,
    /// The mount namespace that the server must be in, as `/proc/self/ns/mnt` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounts: Option<String>,
}

/// Result of `sightline/hiddenPaths`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HiddenPathsResult {
    /// What is hidden, sorted by path.
    pub paths: Vec<HiddenPath>,
}

/// A path that is hidden from commands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HiddenPath {
    /// The absolute path, without symbolic links below the workspace folder.
    pub path: String,
    /// What a command finds there.
    pub cover: Cover,
}

/// What a command finds at a hidden path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Cover {
    /// A file that cannot be opened.
    File,
    /// An empty folder.
    Folder,
    /// The file itself, which cannot be written: a file with access rules or settings. Git would fail to add an
    /// untracked file that it cannot read.
    ReadOnly,
}
