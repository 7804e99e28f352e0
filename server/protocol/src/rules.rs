//! `sightline/listRules`: the rules in force, and what they deny.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    access::AccessRule,
    files::{FileKind, is_false},
};

/// Params of `sightline/listRules`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListRulesParams {
    /// Return only the rules of this workspace folder, given by path, URI or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Maximum number of entries to return; 1000 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<i64>,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// The rule that denies it. Absent if rules that cannot be used deny everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<AccessRule>,
    /// True if the name is not UTF-8 and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path_encoded: bool,
}
