//! Where agents keep their configuration.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::Scope;
use crate::Agent;

/// Variables that move the configuration of an agent.
pub(crate) const VARIABLES: &str = "CLAUDE_CONFIG_DIR CLINE_DATA_DIR CLINE_DIR CLINE_GLOBAL_SETTINGS_PATH CLINE_LOG_PATH CLINE_MCP_SETTINGS_PATH \
     CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME GEMINI_CLI_SYSTEM_DEFAULTS_PATH GEMINI_CLI_SYSTEM_SETTINGS_PATH \
     OPENCODE_CONFIG OPENCODE_CONFIG_DIR QWEN_CODE_SYSTEM_DEFAULTS_PATH QWEN_CODE_SYSTEM_SETTINGS_PATH QWEN_HOME \
     XDG_CONFIG_HOME";

/// The folders that hold the agents' configuration.
#[derive(Clone, Debug)]
pub struct Locations {
    /// The user's home.
    pub home: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// Variables that are set.
    variables: BTreeMap<&'static str, PathBuf>,
}

impl Locations {
    /// Creates it with the values of variables. Agents read a relative path from their own folder, which is
    /// not known, so it is ignored like an empty one.
    pub fn new(home: &Path, project: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let value = |name: &'static str| {
            let path = variable(name)?;
            let path = match path.strip_prefix("~") {
                // Only Qwen Code resolves it.
                Ok(below) if name == "QWEN_HOME" => home.join(below),
                _ => path,
            };
            path.is_absolute().then_some((name, path))
        };
        Self {
            home: home.to_owned(),
            project: project.to_owned(),
            variables: VARIABLES.split(' ').filter_map(value).collect(),
        }
    }

    /// Returns the path in a variable, if it is set.
    pub(super) fn variable(&self, name: &str) -> Option<&Path> {
        self.variables.get(name).map(PathBuf::as_path)
    }

    /// Returns the folder that exists if the user has used an agent.
    pub fn folder(&self, agent: Agent) -> PathBuf {
        let home = &self.home;
        let or = |name, default: &str| {
            self.variable(name)
                .map_or_else(|| home.join(default), Path::to_owned)
        };
        match agent {
            Agent::Claude => or("CLAUDE_CONFIG_DIR", ".claude"),
            Agent::Codex => or("CODEX_HOME", ".codex"),
            // Replaces the home.
            Agent::Gemini => or("GEMINI_CLI_HOME", "").join(".gemini"),
            Agent::Qwen => or("QWEN_HOME", ".qwen"),
            Agent::Copilot => or("COPILOT_HOME", ".copilot"),
            Agent::Opencode => self.config().join("opencode"),
            Agent::Cline => or("CLINE_DIR", ".cline"),
        }
    }

    /// Returns the folder with configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.variable("XDG_CONFIG_HOME")
            .map_or_else(|| self.home.join(".config"), Path::to_owned)
    }

    /// Returns the file of the user with the addresses of providers.
    pub fn addresses(&self, agent: Agent) -> Option<PathBuf> {
        match agent {
            Agent::Claude | Agent::Qwen => self.hooks(agent, Scope::User),
            Agent::Codex | Agent::Opencode => self.mcp(agent, Scope::User),
            Agent::Gemini | Agent::Copilot | Agent::Cline => None,
        }
    }

    /// Returns the user's configuration file of Sightline.
    pub(super) fn own_settings(&self) -> PathBuf {
        self.config().join("sightline/config.toml")
    }

    /// Returns the folder with the user's units of systemd.
    pub(crate) fn units(&self) -> PathBuf {
        self.config().join("systemd/user")
    }

    /// Returns the folder with the data of Cline.
    pub(super) fn cline_data(&self) -> PathBuf {
        self.variable("CLINE_DATA_DIR")
            .map_or_else(|| self.folder(Agent::Cline).join("data"), Path::to_owned)
    }

    /// Returns the files with tokens in folders that variables move: the folder, and the path in it. The built-in secrets deny
    /// those in folders with the usual names.
    pub fn moved_tokens(&self) -> Vec<(PathBuf, &'static str)> {
        let is_set = |names: &[&str]| names.iter().any(|name| self.variable(name).is_some());
        [
            (
                &["CLAUDE_CONFIG_DIR"][..],
                self.folder(Agent::Claude),
                ".credentials.json",
            ),
            (&["CODEX_HOME"], self.folder(Agent::Codex), "auth.json"),
            (
                &["GEMINI_CLI_HOME"],
                self.folder(Agent::Gemini),
                "oauth_creds.json",
            ),
            (&["QWEN_HOME"], self.folder(Agent::Qwen), "oauth_creds.json"),
            (
                &["CLINE_DIR", "CLINE_DATA_DIR"],
                self.cline_data(),
                "settings/providers.json",
            ),
        ]
        .into_iter()
        .filter(|(names, ..)| is_set(names))
        .map(|(_, folder, file)| (folder, file))
        .collect()
    }

    /// Returns the log of Cline.
    pub fn cline_log(&self) -> PathBuf {
        self.variable("CLINE_LOG_PATH")
            .map_or_else(|| self.cline_data().join("logs/cline.log"), Path::to_owned)
    }

    /// Returns the file with the MCP servers of an agent.
    pub fn mcp(&self, agent: Agent, scope: Scope) -> Option<PathBuf> {
        let folder = self.folder(agent);
        let project = &self.project;
        Some(match (agent, scope) {
            (Agent::Claude, Scope::User) => match self.variable("CLAUDE_CONFIG_DIR") {
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
            (Agent::Cline, Scope::User) => match self.variable("CLINE_MCP_SETTINGS_PATH") {
                Some(file) => file.to_owned(),
                None => self.cline_data().join("settings/cline_mcp_settings.json"),
            },
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
