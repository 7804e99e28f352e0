//! What keeps the hooks in force, which agents may not change: the files that
//! [`crate::install`] writes, files that switch hooks off, our own configuration and
//! data, and the program. [`commands`] lists the commands that agents may run of our own program.
//!
//! An agent that could change one of these would no longer be checked, in the same session.

pub mod commands;

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use crate::{
    Agent,
    install::{self, Locations, Part, Program, Scope, switches::switches},
};

/// Files with hooks and files that switch hooks off, of the user and of a project. The first name is
/// the agent's folder, which the user can have moved. Files of a project count in every folder,
/// because an agent can be started there.
const FILES: &[(Agent, &str)] = &[
    (Agent::Claude, ".claude/settings.json"),
    (Agent::Claude, ".claude/settings.local.json"),
    (Agent::Codex, ".codex/config.toml"),
    (Agent::Codex, ".codex/hooks.json"),
    (Agent::Codex, ".codex/requirements.toml"),
    (Agent::Codex, ".codex/managed_config.toml"),
    (Agent::Gemini, ".gemini/settings.json"),
    (Agent::Gemini, ".gemini/trustedFolders.json"),
    (Agent::Gemini, ".gemini/trusted_hooks.json"),
    (Agent::Qwen, ".qwen/settings.json"),
    (Agent::Qwen, ".qwen/trustedFolders.json"),
    (Agent::Qwen, ".qwen/trusted_hooks.json"),
    (Agent::Copilot, ".copilot/config.json"),
    (Agent::Copilot, ".copilot/settings.json"),
    (Agent::Copilot, ".copilot/hooks/sightline.json"),
    (Agent::Opencode, "opencode/plugins/sightline.js"),
    (Agent::Cline, ".cline/plugins/sightline.js"),
    (Agent::Cline, ".cline/data/settings/global-settings.json"),
];
/// Files of a project whose folder has another name than that of the user.
const PROJECT_FILES: &[(Agent, &str)] = &[
    (Agent::Copilot, ".github/hooks/sightline.json"),
    (Agent::Copilot, ".github/copilot/settings.json"),
    (Agent::Copilot, ".github/copilot/settings.local.json"),
    (Agent::Opencode, ".opencode/plugins/sightline.js"),
];
/// Folders of administrators.
const MANAGED: &[(Agent, &str)] = &[
    (Agent::Claude, "/etc/claude-code"),
    (Agent::Claude, "/Library/Application Support/ClaudeCode"),
    (Agent::Claude, "C:\\Program Files\\ClaudeCode"),
    (Agent::Codex, "/etc/codex"),
    (Agent::Gemini, "/etc/gemini-cli"),
    (Agent::Gemini, "/Library/Application Support/GeminiCli"),
    (Agent::Gemini, "C:\\ProgramData\\gemini-cli"),
    (Agent::Qwen, "/etc/qwen-code"),
    (Agent::Qwen, "/Library/Application Support/QwenCode"),
    (Agent::Qwen, "C:\\ProgramData\\qwen-code"),
    (Agent::Opencode, "/etc/opencode"),
];

/// The places that agents may not change.
#[derive(Clone, Debug)]
pub struct Wiring {
    places: Vec<Place>,
}

/// A file or folder that agents may not change.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    kind: Kind,
}

/// Why agents may not change a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A configuration file, or a folder of them.
    Configuration(Agent),
    /// A file with MCP servers, which counts while it has our entry.
    Servers(Agent),
    /// Our configuration and data.
    Ours,
    /// Our program.
    Program,
}

impl Wiring {
    /// Collects the places. `ours` are the folders with our configuration and data, `programs` the paths
    /// where our program is, or would be found. `real` resolves the links of a path.
    pub fn new(
        locations: &Locations,
        ours: &[PathBuf],
        programs: &[PathBuf],
        real: impl Fn(&Path) -> PathBuf,
    ) -> Self {
        let mut places = Vec::new();
        for (agent, file) in FILES {
            let name = file.split_once('/').map_or(*file, |(_, name)| name);
            let kind = Kind::Configuration(*agent);
            places.push((locations.folder(*agent).join(name), kind));
            places.push((locations.project.join(file), kind));
        }
        for (agent, file) in PROJECT_FILES {
            places.push((locations.project.join(file), Kind::Configuration(*agent)));
        }
        for (agent, folder) in MANAGED {
            places.push((PathBuf::from(folder), Kind::Configuration(*agent)));
        }
        let program = Program::new(commands::PROGRAM);
        for agent in Agent::ALL {
            for scope in [Scope::User, Scope::Project] {
                for target in install::targets(agent, scope, &[Part::Mcp], locations, &program) {
                    places.push((target.path, Kind::Servers(agent)));
                }
            }
            // The files in which it looks for switches, also those that variables name.
            let looked_up = RefCell::new(Vec::new());
            let read = |path: &Path| {
                // Variables of a project are for its programs first, and a secret by default.
                if path.file_name().is_none_or(|name| name != install::DOTENV) {
                    looked_up.borrow_mut().push(path.to_owned());
                }
                None
            };
            switches(agent, locations, read, |_| None);
            let kind = match agent {
                // They switch only our server off.
                Agent::Opencode => Kind::Servers(agent),
                _ => Kind::Configuration(agent),
            };
            places.extend(looked_up.into_inner().into_iter().map(|path| (path, kind)));
        }
        places.extend(ours.iter().map(|path| (path.clone(), Kind::Ours)));
        places.extend(programs.iter().map(|path| (path.clone(), Kind::Program)));
        let mut found: Vec<Place> = Vec::new();
        for (path, kind) in places {
            for path in [real(&path), path] {
                if !found.iter().any(|known| known.path == path) {
                    found.push(Place { path, kind });
                }
            }
        }
        Self { places: found }
    }

    /// Returns the places, whether or not they exist.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.path.as_path())
    }

    /// Returns why agents may not copy a file, given by its absolute path. `None` if they may.
    pub fn copy_refusal(&self, path: &Path) -> Option<String> {
        let is_program = self.kind_of(path, |_| None) == Some(Kind::Program);
        (is_program || ends_with(path, commands::PROGRAM) && !path.is_dir())
            .then(|| Kind::Program.refusal(path))
    }

    /// Returns why agents may not give a program the folder of this file to change. `None` if they may.
    pub fn folder_refusal(&self, path: &Path) -> Option<String> {
        let kind = self.kind_of(path, |_| None)?;
        // The folders of administrators are in `/etc`.
        (matches!(kind, Kind::Configuration(_)) && path.extension().is_some())
            .then(|| kind.refusal(path))
    }

    /// Returns why agents may not change a file, given by its absolute path. `None` if they may.
    /// `read` returns the text of a file.
    pub fn refusal(&self, path: &Path, read: impl Fn(&Path) -> Option<String>) -> Option<String> {
        let named = [FILES, PROJECT_FILES].into_iter().flatten();
        let mut named = named.filter(|(_, file)| ends_with(path, file));
        let kind = match named.next() {
            Some((agent, _)) => Kind::Configuration(*agent),
            None => self.kind_of(path, read)?,
        };
        Some(kind.refusal(path))
    }

    fn kind_of(&self, path: &Path, read: impl Fn(&Path) -> Option<String>) -> Option<Kind> {
        let counts = |place: &&Place| {
            path.starts_with(&place.path)
                && (!matches!(place.kind, Kind::Servers(_))
                    || read(path).is_some_and(|text| text.contains(commands::PROGRAM)))
        };
        self.places.iter().find(counts).map(|place| place.kind)
    }
}

impl Kind {
    fn refusal(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Configuration(agent) | Self::Servers(agent) => format!(
                "{path} can disconnect {} from Sightline, which hides files from agents. Agents may read it, but \
                 only the user may change it: tell the user what to change",
                agent.title()
            ),
            Self::Ours => format!(
                "{path} is a file of Sightline, which hides files from agents. Only the user may change it: tell the \
                 user what to change"
            ),
            Self::Program => format!(
                "{path} is the program that hides files from agents. Only the user may change, copy or remove it, at a \
                 terminal"
            ),
        }
    }
}

/// Returns whether the last names of a path are these, in any case, as some file systems compare.
fn ends_with(path: &Path, names: &str) -> bool {
    let mut of_path = path.components().rev();
    names.rsplit('/').all(|name| {
        of_path
            .next()
            .is_some_and(|found| found.as_os_str().eq_ignore_ascii_case(name))
    })
}

/// Returns the arguments of our program: those after `--` are for another one, such as an MCP server.
pub fn own_arguments<'a>(
    arguments: impl IntoIterator<Item = Option<&'a str>>,
) -> impl Iterator<Item = &'a str> {
    let arguments = arguments.into_iter().map(Option::unwrap_or_default);
    arguments.take_while(|argument| *argument != "--")
}

/// Returns whether the program serves an editor with these arguments: editors append `--stdio` to any others.
pub fn serves_editor<'a>(arguments: impl IntoIterator<Item = Option<&'a str>>) -> bool {
    own_arguments(arguments).any(|argument| argument == "--stdio")
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Wiring;
    use crate::install::Locations;

    const MOVED: &str = if cfg!(windows) { "C:/moved" } else { "/moved" };

    fn wiring() -> Wiring {
        let locations = Locations::new(Path::new("/home/u"), Path::new("/w"), |name| {
            (name == "CLAUDE_CONFIG_DIR").then(|| MOVED.into())
        });
        let path = |text: &str| vec![PathBuf::from(text)];
        let ours = path("/home/u/.local/share/sightline");
        Wiring::new(
            &locations,
            &ours,
            &path("/bin/sightline"),
            Path::to_path_buf,
        )
    }

    #[test]
    fn files_that_keep_the_hooks_in_force_are_protected() {
        let wiring = wiring();
        let refusal = |path: &str, text: Option<&str>| {
            wiring.refusal(Path::new(path), |_| text.map(str::to_owned))
        };
        for path in [
            &*format!("{MOVED}/settings.json"),
            "/w/.claude/settings.local.json",
            "/elsewhere/.CLAUDE/settings.json",
            "/home/u/.codex/hooks.json",
            "/w/.gemini/settings.json",
            "/home/u/.qwen/settings.json",
            "/home/u/.copilot/hooks/sightline.json",
            "/w/.github/hooks/sightline.json",
            "/home/u/.config/opencode/plugins/sightline.js",
            "/home/u/.cline/plugins/sightline.js",
            "/etc/claude-code/managed-settings.d/a.json",
            "/home/u/.local/share/sightline/agents.json",
            "/bin/sightline",
        ] {
            assert!(refusal(path, None).is_some(), "{path}");
        }
        for path in [
            "/w/.claude/commands/x.md",
            "/w/.claude/skills/settings.json",
            "/w/settings.json",
            "/w/claude/settings.json",
            "/w/.github/workflows/ci.yml",
            "/bin/sightline-gateway",
        ] {
            assert_eq!(refusal(path, Some("sightline")), None, "{path}");
        }
        for (path, refused) in [
            ("/w/.claude/settings.json", true),
            ("/w/.claude/commands/x.md", false),
            ("/home/u/.local/share/sightline/agents.json", false),
            ("/etc/claude-code", false),
        ] {
            let refusal = wiring.folder_refusal(Path::new(path));
            assert_eq!(refusal.is_some(), refused, "{path}");
        }
        let moved = format!("{MOVED}/.claude.json");
        for path in ["/w/.mcp.json", &moved, "/w/opencode.json"] {
            assert_eq!(refusal(path, None), None, "{path}");
            assert_eq!(refusal(path, Some("{}")), None, "{path}");
            assert!(
                refusal(path, Some(r#"{"sightline": 1}"#)).is_some(),
                "{path}"
            );
        }
    }
}
