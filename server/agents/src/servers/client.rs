//! The programs whose configuration has MCP servers.

use crate::Agent;

/// A program with MCP servers in its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A coding agent.
    Agent(Agent),
    /// Cursor.
    Cursor,
    /// mcphub.nvim and mcp-hub.
    Mcphub,
    /// Zed.
    Zed,
}

impl Client {
    /// Returns all of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let agents = Agent::ALL.into_iter().map(Self::Agent);
        agents.chain([Self::Cursor, Self::Mcphub, Self::Zed])
    }

    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent(agent) => agent.name(),
            Self::Cursor => "cursor",
            Self::Mcphub => "mcphub",
            Self::Zed => "zed",
        }
    }

    /// Returns the name of the product.
    pub fn title(self) -> &'static str {
        match self {
            Self::Agent(agent) => agent.title(),
            Self::Cursor => "Cursor",
            Self::Mcphub => "mcphub.nvim",
            Self::Zed => "Zed",
        }
    }

    /// Returns the client with this command line name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|client| client.name() == name)
    }
}
