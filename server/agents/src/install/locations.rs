//! Where agents keep their configuration.

use std::path::{Path, PathBuf};

use super::Scope;
use crate::Agent;

/// The folders that hold the agents' configuration.
#[derive(Clone, Debug)]
pub struct Locations {
    /// The user's home.
    pub home: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// `XDG_CONFIG_HOME`, if set.
    pub xdg_config: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, if set.
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`, if set.
    pub codex: Option<PathBuf>,
    /// `COPILOT_HOME`, if set.
    pub copilot: Option<PathBuf>,
}

impl Locations {
    /// Returns the folder that exists if the user has used an agent.
    pub fn folder(&self, agent: Agent) -> PathBuf {
        let or =
            |set: &Option<PathBuf>, name: &str| set.clone().unwrap_or_else(|| self.home.join(name));
        match agent {
            Agent::Claude => or(&self.claude, ".claude"),
            Agent::Codex => or(&self.codex, ".codex"),
            Agent::Gemini => self.home.join(".gemini"),
            Agent::Qwen => self.home.join(".qwen"),
            Agent::Copilot => or(&self.copilot, ".copilot"),
            Agent::Opencode => or(&self.xdg_config, ".config").join("opencode"),
            Agent::Cline => self.home.join(".cline"),
        }
    }

    /// Returns the file with the MCP servers of an agent.
    pub(super) fn mcp(&self, agent: Agent, scope: Scope) -> Option<PathBuf> {
        let folder = self.folder(agent);
        let project = &self.project;
        Some(match (agent, scope) {
            (Agent::Claude, Scope::User) => match &self.claude {
                Some(folder) => folder.join(".claude.json"),
                None => self.home.join(".claude.json"),
            },
            (Agent::Claude | Agent::Copilot, Scope::Project) => project.join(".mcp.json"),
            (Agent::Codex, Scope::User) => folder.join("config.toml"),
            (Agent::Codex, Scope::Project) => project.join(".codex/config.toml"),
            (Agent::Gemini | Agent::Qwen, _) => return self.hooks(agent, scope),
            (Agent::Copilot, Scope::User) => folder.join("mcp-config.json"),
            (Agent::Opencode, Scope::User) => opencode_file(&folder),
            (Agent::Opencode, Scope::Project) => opencode_file(project),
            (Agent::Cline, Scope::User) => folder.join("data/settings/cline_mcp_settings.json"),
            (Agent::Cline, Scope::Project) => return None,
        })
    }

    /// Returns the file with the hooks of an agent, or its plugin.
    pub(super) fn hooks(&self, agent: Agent, scope: Scope) -> Option<PathBuf> {
        let folder = self.folder(agent);
        let project = &self.project;
        Some(match (agent, scope) {
            (Agent::Claude | Agent::Gemini | Agent::Qwen, Scope::User) => {
                folder.join("settings.json")
            }
            (Agent::Claude, Scope::Project) => project.join(".claude/settings.json"),
            (Agent::Gemini, Scope::Project) => project.join(".gemini/settings.json"),
            (Agent::Qwen, Scope::Project) => project.join(".qwen/settings.json"),
            (Agent::Codex, Scope::User) => folder.join("hooks.json"),
            (Agent::Codex, Scope::Project) => project.join(".codex/hooks.json"),
            (Agent::Copilot, Scope::User) => folder.join("hooks/sightline.json"),
            (Agent::Copilot, Scope::Project) => project.join(".github/hooks/sightline.json"),
            (Agent::Opencode, Scope::User) => folder.join("plugins/sightline.js"),
            (Agent::Opencode, Scope::Project) => project.join(".opencode/plugins/sightline.js"),
            (Agent::Cline, Scope::User) => folder.join("plugins/sightline.js"),
            (Agent::Cline, Scope::Project) => return None,
        })
    }
}

/// opencode reads both names.
fn opencode_file(folder: &Path) -> PathBuf {
    let commented = folder.join("opencode.jsonc");
    if commented.exists() {
        commented
    } else {
        folder.join("opencode.json")
    }
}
