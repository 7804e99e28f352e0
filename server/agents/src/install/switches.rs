//! What keeps an agent from running our entries although they are in its configuration: settings of
//! the user, of a project and of an administrator.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Locations, NAME, Part, json, toml};
use crate::Agent;

/// A setting that switches our entries off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Name of the setting or variable.
    pub setting: String,
    /// The file with the setting; `None` for a variable.
    pub path: Option<PathBuf>,
    /// Whether it switches off the MCP server; the hooks otherwise.
    pub is_mcp: bool,
}

impl Switch {
    /// Returns whether it concerns a part.
    pub fn concerns(&self, part: Part) -> bool {
        self.is_mcp == (part == Part::Mcp)
    }
}

impl std::fmt::Display for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if self.is_mcp { "MCP server" } else { "hooks" };
        write!(f, "{what} switched off by `{}`", self.setting)?;
        match &self.path {
            Some(path) => write!(f, " in {}", path.display()),
            None => f.write_str(" in the environment"),
        }
    }
}

/// Variables with which agents run no hooks, in the environment and in `env` of their settings.
pub(crate) const SWITCH_VARIABLES: &[(Agent, &str)] = &[
    (Agent::Claude, "CLAUDE_CODE_RESTRICTED"),
    (Agent::Claude, "CLAUDE_CODE_SAFE_MODE"),
    (Agent::Claude, "CLAUDE_CODE_SIMPLE"),
    (Agent::Cline, PLUGIN_TIMEOUT),
    (Agent::Opencode, "OPENCODE_PURE"),
    (Agent::Qwen, "QWEN_CODE_SAFE_MODE"),
    (Agent::Qwen, "QWEN_CODE_SIMPLE"),
];
/// How long Cline waits for a plugin, in milliseconds, and its default. Less may be too short for ours.
const PLUGIN_TIMEOUT: &str = "CLINE_PLUGIN_IMPORT_TIMEOUT_MS";
const MIN_PLUGIN_TIMEOUT: u64 = 4000;
/// Name of the files with variables for the programs of a folder.
pub(crate) const DOTENV: &str = ".env";
/// The values with which such a variable is not set.
const OFF: &[&str] = &["", "0", "false", "no", "off"];

/// The settings of an agent, weakest file first.
struct Settings<'a> {
    files: Vec<(PathBuf, Value)>,
    found: &'a mut Vec<Switch>,
}

/// Returns the settings that switch our entries off. `read` returns the text of a file, and `variable` the
/// value of a variable.
pub fn switches(
    agent: Agent,
    locations: &Locations,
    read: impl Fn(&Path) -> Option<String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<Switch> {
    let set = switch_variables(agent)
        .filter(|name| variable(name).is_some_and(|value| switches_off(name, &value)));
    let mut found: Vec<Switch> = set
        .map(|name| Switch {
            setting: name.to_owned(),
            path: None,
            is_mcp: false,
        })
        .collect();
    let folder = locations.folder(agent);
    let project = &locations.project;
    let settings = |paths: Vec<PathBuf>| {
        let parsed = paths.into_iter().filter_map(|path| {
            let text = read(&path)?;
            let value = match path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                true => toml::value(&text),
                false => json::value_for(&text, agent),
            };
            Some((path, value?))
        });
        parsed.collect::<Vec<_>>()
    };
    match agent {
        Agent::Claude => {
            let managed = managed_folder("ClaudeCode", "claude-code");
            let mut files = vec![managed.join("managed-settings.json")];
            files.extend(json_files(&managed.join("managed-settings.d")));
            let managed = settings(files);
            let mut files = settings(vec![
                folder.join("settings.json"),
                project.join(".claude/settings.json"),
                project.join(".claude/settings.local.json"),
            ]);
            files.extend(managed.clone());
            let mut all = Settings {
                files,
                found: &mut found,
            };
            all.flag(&["disableAllHooks"], true, false);
            all.list(&["disabledMcpjsonServers"], NAME, true);
            all.environment(agent);
            let mut managed = Settings {
                files: managed,
                found: &mut found,
            };
            managed.flag(&["allowManagedHooksOnly"], true, false);
            managed.flag(&["strictPluginOnlyCustomization"], true, false);
            managed.list(&["strictPluginOnlyCustomization"], "hooks", false);
            let state = locations.mcp(agent, super::Scope::User);
            let files = settings(state.into_iter().collect());
            let project = project.to_string_lossy();
            let mut state = Settings {
                files,
                found: &mut found,
            };
            state.list(&["projects", &project, "disabledMcpServers"], NAME, true);
            state.environment(agent);
        }
        Agent::Gemini | Agent::Qwen => {
            let (name, title, variables) = match agent {
                Agent::Gemini => (
                    ".gemini",
                    ("GeminiCli", "gemini-cli"),
                    [
                        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
                        "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
                    ],
                ),
                _ => (
                    ".qwen",
                    ("QwenCode", "qwen-code"),
                    [
                        "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
                        "QWEN_CODE_SYSTEM_SETTINGS_PATH",
                    ],
                ),
            };
            let system = managed_folder(title.0, title.1);
            let file = |variable, name| {
                let set = locations.variable(variable);
                set.map_or_else(|| system.join(name), Path::to_owned)
            };
            let files = settings(vec![
                file(variables[0], "system-defaults.json"),
                folder.join("settings.json"),
                project.join(name).join("settings.json"),
                file(variables[1], "settings.json"),
            ]);
            let enablement = settings(vec![folder.join("mcp-server-enablement.json")]);
            let mut all = Settings {
                files,
                found: &mut found,
            };
            if agent == Agent::Gemini {
                all.flag(&["hooksConfig", "enabled"], false, false);
                all.list(&["hooksConfig", "disabled"], NAME, false);
                all.flag(&["admin", "mcp", "enabled"], false, true);
            } else {
                all.flag(&["disableAllHooks"], true, false);
                all.environment(agent);
                all.dotenv(agent, [&locations.home, project, &folder], &read);
            }
            all.list(&["mcp", "excluded"], NAME, true);
            all.missing(&["mcp", "allowed"], NAME, true);
            Settings {
                files: enablement,
                found: &mut found,
            }
            .flag(&[NAME, "enabled"], false, true);
        }
        Agent::Codex => {
            let managed = Path::new("/etc/codex");
            let files = settings(vec![
                managed.join("config.toml"),
                folder.join("config.toml"),
                project.join(".codex/config.toml"),
                managed.join("managed_config.toml"),
            ]);
            let requirements = settings(vec![managed.join("requirements.toml")]);
            let mut all = Settings {
                files,
                found: &mut found,
            };
            all.flag(&["features", "hooks"], false, false);
            // Its name in earlier versions.
            all.flag(&["features", "codex_hooks"], false, false);
            all.flag(&["mcp_servers", NAME, "enabled"], false, true);
            Settings {
                files: requirements,
                found: &mut found,
            }
            .flag(&["allow_managed_hooks_only"], true, false);
        }
        Agent::Opencode => {
            let folders = [
                Some(folder.as_path()),
                Some(project.as_path()),
                locations.variable("OPENCODE_CONFIG_DIR"),
            ];
            let mut paths: Vec<PathBuf> = folders
                .into_iter()
                .flatten()
                .flat_map(|folder| {
                    ["opencode.json", "opencode.jsonc"].map(|name| folder.join(name))
                })
                .collect();
            paths.extend(locations.variable("OPENCODE_CONFIG").map(Path::to_owned));
            let files = settings(paths);
            Settings {
                files,
                found: &mut found,
            }
            .flag(&["mcp", NAME, "enabled"], false, true);
        }
        Agent::Cline => {
            let global = match locations.variable("CLINE_GLOBAL_SETTINGS_PATH") {
                Some(file) => file.to_owned(),
                None => locations.cline_data().join("settings/global-settings.json"),
            };
            let plugin = locations.hooks(agent, super::Scope::User);
            let plugin = plugin.unwrap_or_default();
            let global = settings(vec![global]);
            let servers = settings(
                locations
                    .mcp(agent, super::Scope::User)
                    .into_iter()
                    .collect(),
            );
            Settings {
                files: global,
                found: &mut found,
            }
            .list(&["disabledPlugins"], &plugin.to_string_lossy(), false);
            Settings {
                files: servers,
                found: &mut found,
            }
            .flag(&["mcpServers", NAME, "disabled"], true, true);
        }
        // Its configuration has no such setting.
        Agent::Copilot => {}
    }
    found
}

fn switch_variables(agent: Agent) -> impl Iterator<Item = &'static str> {
    let of_agent = move |(of, name): &(Agent, &'static str)| (*of == agent).then_some(*name);
    SWITCH_VARIABLES.iter().filter_map(of_agent)
}

fn switches_off(name: &str, value: &str) -> bool {
    if name == PLUGIN_TIMEOUT {
        return value
            .trim()
            .parse()
            .is_ok_and(|millis: u64| millis < MIN_PLUGIN_TIMEOUT);
    }
    !OFF.contains(&value.trim().to_lowercase().as_str())
}

/// Returns the value of a variable in a file of variables.
fn dotenv_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.lines().rev();
    lines
        .filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("export ").unwrap_or(line).split_once('=')
        })
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']))
}

/// Returns where administrators put the settings of an agent.
fn managed_folder(title: &str, name: &str) -> PathBuf {
    if cfg!(target_os = "macos") {
        Path::new("/Library/Application Support").join(title)
    } else if cfg!(windows) && name == "claude-code" {
        Path::new(r"C:\Program Files").join(title)
    } else if cfg!(windows) {
        Path::new(r"C:\ProgramData").join(name)
    } else {
        Path::new("/etc").join(name)
    }
}

/// Returns the JSON files of a folder, in the order in which agents read them.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    files
}

impl Settings<'_> {
    /// A switch that is on if the strongest file that has the setting has this value.
    fn flag(&mut self, names: &[&str], off: bool, is_mcp: bool) {
        self.strongest(names, is_mcp, |value| Some(value.as_bool()? == off));
    }

    /// The variables that the agent sets for its processes, and reads afterwards.
    fn environment(&mut self, agent: Agent) {
        for name in switch_variables(agent) {
            self.strongest(&["env", name], false, |value| match value {
                Value::String(value) => Some(switches_off(name, value)),
                value => Some(switches_off(name, &value.to_string())),
            });
        }
    }

    /// The variables in the files with variables that the agent reads, strongest first.
    fn dotenv(
        &mut self,
        agent: Agent,
        [home, project, folder]: [&Path; 3],
        read: impl Fn(&Path) -> Option<String>,
    ) {
        let folders = [&project.join(".qwen"), project, folder, home];
        let files: Vec<(PathBuf, String)> = folders
            .into_iter()
            .map(|folder| folder.join(DOTENV))
            .filter_map(|path| Some((path.clone(), read(&path)?)))
            .collect();
        for name in switch_variables(agent) {
            let found = files
                .iter()
                .find_map(|(path, text)| Some((path, dotenv_value(text, name)?)));
            if let Some((path, value)) = found
                && switches_off(name, value)
            {
                self.push(&[name], path.clone(), false);
            }
        }
    }

    /// A switch that is on if `is_off` says so of the strongest file that has the setting.
    fn strongest(&mut self, names: &[&str], is_mcp: bool, is_off: impl Fn(&Value) -> Option<bool>) {
        let mut strongest = self.files.iter().rev();
        let found = strongest.find_map(|(path, value)| Some((path, is_off(at(value, names)?)?)));
        if let Some((path, true)) = found {
            let path = path.clone();
            self.push(names, path, is_mcp);
        }
    }

    /// A switch that is on if a list in any file has a word.
    fn list(&mut self, names: &[&str], word: &str, is_mcp: bool) {
        self.lists(names, is_mcp, |words| has(words, word));
    }

    /// A switch that is on if a list in any file lacks a word.
    fn missing(&mut self, names: &[&str], word: &str, is_mcp: bool) {
        self.lists(names, is_mcp, |words| !has(words, word) && !has(words, "*"));
    }

    fn lists(&mut self, names: &[&str], is_mcp: bool, is_off: impl Fn(&[Value]) -> bool) {
        let off = |value: &Value| {
            let words = at(value, names).and_then(Value::as_array);
            words.is_some_and(|words| is_off(words))
        };
        let found = self.files.iter().find(|(_, value)| off(value));
        if let Some(path) = found.map(|(path, _)| path.clone()) {
            self.push(names, path, is_mcp);
        }
    }

    fn push(&mut self, names: &[&str], path: PathBuf, is_mcp: bool) {
        self.found.push(Switch {
            setting: names.join("."),
            path: Some(path),
            is_mcp,
        });
    }
}

/// Returns the value at the end of a chain of names.
fn at<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().try_fold(value, |value, name| value.get(name))
}

/// Returns whether a list has a word, or a line of our hooks, as lists of hooks without names have.
fn has(words: &[Value], word: &str) -> bool {
    words
        .iter()
        .filter_map(Value::as_str)
        .any(|found| found.trim().eq_ignore_ascii_case(word) || found.contains("sightline hook "))
}
