//! What an installation or removal does, as text or JSON.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use serde::Serialize;
use sightline_access::RULE_FILE;
use sightline_agents::{
    Agent,
    install::{Part, Scope, Target},
};
use sightline_base::fs::find_program;
use sightline_engine::error::Error;

use super::{
    super::{checkpoints::colorize, print, print_message, print_sorted_json, print_styled},
    status::scope_name,
};

/// The changes of all agents. Printed by `--json`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) agents: Vec<AgentReport>,
    /// What concerns no agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Whether the changes were made.
    pub(super) written: bool,
}

/// The changes of an agent.
#[derive(Serialize)]
pub(super) struct AgentReport {
    agent: &'static str,
    title: &'static str,
    scope: &'static str,
    /// The parts that are added or removed.
    parts: Vec<&'static str>,
    /// The files to change.
    pub(super) files: Vec<FileChange>,
    /// What the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Why files stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The change of a file.
#[derive(Serialize)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    pub(super) diff: String,
    /// What of ours is in the file, such as `3 hooks`.
    pub(super) content: Vec<String>,
    /// What was done, such as `written`.
    #[serde(skip)]
    pub(super) done: Option<&'static str>,
}

impl AgentReport {
    pub(super) fn new(agent: Agent, scope: Scope, parts: &[Part]) -> Self {
        // In their order, once.
        let parts = Part::ALL.iter().filter(|part| parts.contains(part));
        Self {
            agent: agent.name(),
            title: agent.title(),
            scope: scope_name(scope),
            parts: parts.map(|part| part.name()).collect(),
            files: Vec::new(),
            notes: Vec::new(),
            problem: None,
        }
    }

    pub(super) fn add_problem(&mut self, problem: &str) {
        self.problem = Some(match self.problem.take() {
            Some(earlier) => format!("{earlier}\n{problem}"),
            None => problem.to_owned(),
        });
    }

    pub(super) fn add_error(&mut self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.add_problem(&error.message);
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.problem.is_some()
    }

    /// Returns one line: what is changed, and in which files.
    fn summary(&self, home: &Path) -> String {
        let content: Vec<&str> = self
            .files
            .iter()
            .flat_map(|file| &file.content)
            .map(String::as_str)
            .collect();
        let paths: Vec<String> = self
            .files
            .iter()
            .map(|file| match file.path.strip_prefix(home) {
                Ok(below) => Path::new("~").join(below).display().to_string(),
                Err(_) => file.path.display().to_string(),
            })
            .collect();
        let (title, content) = (self.title, content.join(", "));
        format!("{title}: {content} -> {}\n", paths.join(", "))
    }
}

impl FileChange {
    pub(super) fn new(target: &Target, diff: String) -> Self {
        Self {
            path: target.path.clone(),
            diff,
            content: target.content.summary(),
            done: None,
        }
    }
}

impl Report {
    /// Returns whether no agent was found, and the user was told.
    pub(super) fn is_empty(&self) -> bool {
        self.agents.is_empty() && !self.notes.is_empty()
    }

    /// Returns whether a file differs from what it should be.
    pub(super) fn is_pending(&self) -> bool {
        self.agents.iter().any(|agent| !agent.files.is_empty())
    }

    pub(super) fn has_failed(&self) -> bool {
        self.agents.iter().any(AgentReport::has_failed)
    }

    pub(super) fn print(&self, is_json: bool, has_diffs: bool, home: &Path) -> Result<(), Error> {
        if is_json {
            return print_sorted_json(self);
        }
        let has_diffs = has_diffs || !io::stdout().is_terminal();
        let changed = || self.agents.iter().filter(|agent| !agent.files.is_empty());
        let mut text = String::new();
        if self.written {
            for file in changed().flat_map(|agent| &agent.files) {
                if let Some(done) = file.done {
                    text.push_str(&format!("{}: {done}\n", file.path.display()));
                }
            }
        } else {
            text.extend(changed().map(|agent| agent.summary(home)));
            let diffs = changed().flat_map(|agent| &agent.files);
            text.extend(diffs.filter(|_| has_diffs).map(|file| {
                let diff = colorize(file.diff.as_bytes());
                format!("\n{}", String::from_utf8_lossy(&diff))
            }));
        }
        print_styled(&text)?;
        for agent in &self.agents {
            for message in agent.notes.iter().chain(&agent.problem) {
                print_message(message);
            }
        }
        for note in &self.notes {
            print_message(note);
        }
        if !self.is_pending() && !self.has_failed() && !self.is_empty() {
            print("Nothing to do.\n")?;
        } else if self.is_pending() && !self.written {
            let show = if has_diffs { "" } else { "--diff to see or " };
            print_message(&format!(
                "nothing was written; add {show}--yes to write these changes"
            ));
        }
        Ok(())
    }
}

/// Returns what is denied to agents in a folder.
pub(super) fn about_rules(project: &Path) -> String {
    let secrets = "built-in secrets (.env, private keys, ...)";
    if fs::symlink_metadata(project.join(RULE_FILE)).is_ok() {
        format!("{secrets} and files that {RULE_FILE} names are denied to agents")
    } else {
        format!("{secrets} are denied to agents; `sightline init` writes a file for your own rules")
    }
}

/// Returns what to do if no agent has been used.
pub(super) fn nothing_found() -> String {
    let on_path = Agent::ALL
        .into_iter()
        .find(|agent| find_program(agent.name()).is_some());
    match on_path {
        Some(agent) => format!(
            "{} was not started yet; name it with `--agent {}`",
            agent.title(),
            agent.name()
        ),
        None => "no agent was found; name one with `--agent`, such as `--agent claude`".to_owned(),
    }
}
