//! `sightline/checkAccess`: may an agent see this path, may it run this command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `sightline/checkAccess`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CheckAccessParams {
    /// Paths to judge: `file:` URIs, absolute, or relative to a workspace root.
    pub paths: Vec<String>,
    /// A shell command line to judge. The answer is advice, not a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Result of `sightline/checkAccess`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckAccessResult {
    /// One verdict for each asked path, in the order asked.
    pub paths: Vec<PathAccess>,
    /// The verdict on the command, when one was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandAccess>,
}

/// What an agent may do with a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AccessKind {
    /// Inside a workspace root and not denied.
    #[default]
    Allowed,
    /// Denied by a rule, or because the question could not be decided.
    Denied,
    /// Outside every workspace root.
    Outside,
}

/// The verdict on one path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathAccess {
    /// The path as it was asked.
    pub path: String,
    /// The verdict.
    pub access: AccessKind,
    /// The rule that decided, when a rule did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<AccessRule>,
    /// Why, when no rule decided (a path that makes no sense, rules that cannot be read).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The line of a rule file that decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRule {
    /// The file the line stands in, relative to its root, or its whole path when it
    /// stands above the root; `built-in` for the rule that hides the rule file itself.
    pub source: String,
    /// Line number, from 1; 0 for a built-in rule.
    pub line: u32,
    /// The pattern as written.
    pub pattern: String,
}

/// The verdict on a command line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandAccess {
    /// False when any operand is denied.
    pub allowed: bool,
    /// Every denied operand found.
    pub denied: Vec<DeniedOperand>,
}

/// An operand of a command that names a denied file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeniedOperand {
    /// The operand, as the shell would see it after quotes are removed.
    pub path: String,
    /// What the command would do with it, in words.
    pub reason: String,
    /// The rule that decided, when a rule did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<AccessRule>,
}
