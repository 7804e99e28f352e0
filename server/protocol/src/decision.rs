//! `sightline/redact`, `sightline/listDecisions`: what was hidden from agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::access::AccessRule;

/// Params of `sightline/redact`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RedactParams {
    /// Texts for an agent, such as the output of a program.
    pub texts: Vec<String>,
    /// Directory of the program, which names in diffs may be relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Result of `sightline/redact`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedactResult {
    /// The texts in the same order, with notices in place of the contents of denied files.
    pub texts: Vec<String>,
    /// The files whose contents were replaced.
    pub hidden: Vec<HiddenFile>,
}

/// A file whose contents were replaced.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HiddenFile {
    /// The file.
    pub path: String,
    /// The rule that denies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<AccessRule>,
    /// Number of values, lines and parts of diffs that were replaced.
    pub count: u32,
}

/// Params of `sightline/listDecisions`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListDecisionsParams {
    /// Only those about this agent.
    pub agent: Option<String>,
    /// Only those since this time, in milliseconds since the Unix epoch.
    pub since: Option<i64>,
    /// Also those that allowed something, if the setting `log.allowed` kept them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub all: bool,
    /// Maximum number of decisions.
    pub limit: Option<u32>,
}

/// Result of `sightline/listDecisions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListDecisionsResult {
    /// The decisions, newest first.
    pub decisions: Vec<Decision>,
}

/// Something that an agent was refused, that was hidden from it, or that it was allowed.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Time, in milliseconds since the Unix epoch.
    pub at: i64,
    /// The agent, such as `claude`, or the client of the MCP server.
    pub agent: Option<String>,
    /// The session, as the agent names it.
    pub session: Option<String>,
    /// Where it was decided: `hook`, `block`, `mcp` (our tools), `hub` (tools of other
    /// servers), `bridge`, `lsp`, `cli` or `gateway`.
    pub door: String,
    /// The tool, event or method.
    pub tool: Option<String>,
    /// The file, or the first word of a command and a hash of it.
    pub subject: String,
    /// The decision.
    pub verdict: DecisionVerdict,
    /// The rule that decided.
    pub rule: Option<AccessRule>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DecisionVerdict {
    /// Refused.
    Denied,
    /// Contents were replaced in a text.
    Redacted,
    /// Allowed.
    Allowed,
}
