//! `sightline/listMcpServers` and other requests about the MCP servers that agents get through
//! `sightline mcp`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Params of `sightline/listMcpServers`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMcpServersParams {
    /// Workspace folder: its URI, path or name. Defaults to all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Lists the servers in the configuration of agents instead, which `sightline mcp adopt` moves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub found: bool,
}

/// Result of `sightline/listMcpServers`: the servers of the user and of the project.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ListMcpServersResult(pub Vec<McpServer>);

/// Params of `sightline/setMcpServerEnabled`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetMcpServerEnabledParams {
    /// Name of the server.
    pub name: String,
    /// Whether agents get it.
    pub enabled: bool,
    /// Workspace folder. Defaults to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Params of the other requests about one MCP server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerParams {
    /// Name of the server.
    pub name: String,
    /// Workspace folder. Defaults to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Result of `sightline/mcpServerLog`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerLogResult {
    /// What the server printed, without the values of its variables. At most 256 KiB.
    pub text: String,
}

/// Params of `sightline/didChangeMcpServers`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeMcpServersParams {
    /// Number of the change.
    pub revision: u64,
}

/// A configured MCP server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// The file with its entry.
    pub source: String,
    /// The workspace folder, if it is a server of a project.
    pub root: Option<String>,
    /// The agent in whose configuration it is, if that was asked for.
    pub agent: Option<String>,
    /// What it does: in the session of an agent that uses it, or without one.
    pub state: McpServerState,
    /// Why it failed, or is not offered.
    pub reason: Option<String>,
    /// Process id, if it is running.
    pub pid: Option<u32>,
    /// When it was started, in milliseconds since the Unix epoch.
    pub started_at: Option<i64>,
    /// Number of calls in this session.
    #[serde(default)]
    pub calls: u64,
    /// Number of calls that failed or were refused.
    #[serde(default)]
    pub errors: u64,
    /// Its tools, if they are known.
    #[serde(default)]
    pub tools: Vec<McpTool>,
    /// Program and arguments as configured, or the address.
    #[serde(default)]
    pub command: Vec<String>,
    /// Names of its variables.
    #[serde(default)]
    pub env: Vec<String>,
    /// Members of its entry that have no effect.
    #[serde(default)]
    pub ignored_fields: Vec<String>,
}

/// What an MCP server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum McpServerState {
    /// Agents do not get it.
    Disabled,
    /// It is a server of the project that the user has not trusted. It is never started.
    Untrusted,
    /// It is started by the next call.
    #[default]
    Idle,
    /// It is starting.
    Starting,
    /// It is running.
    Ready,
    /// Its entry is invalid, or it cannot be started.
    Failed,
    /// The definition of a tool differs from the one that was first seen.
    Changed,
}

/// A tool of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpTool {
    /// Its name.
    pub name: String,
    /// Its name for agents.
    pub exposed_as: String,
    /// Approximate number of tokens of its definition.
    pub tokens: u64,
    /// Whether agents get it.
    pub enabled: bool,
    /// Whether its definition differs from the one that was first seen.
    pub changed: bool,
}
