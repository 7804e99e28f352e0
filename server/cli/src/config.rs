//! `sightline config`: the settings in effect without an editor, and where each comes from.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;
use sightline_base::{escape, storage::Storage};
use sightline_engine::{
    error::Error,
    settings::{
        DEFAULTS, Problem,
        config_file::{self, ConfigFile, ConfigFiles},
        sources::{Origin, SettingsSources, Source},
        values::all_leaves,
    },
};
use sightline_ipc as ipc;

use super::{NEGATIVE, Workspace, offline, print_as, print_message};

/// The output of `sightline config --json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    files: Vec<FileReport>,
    problems: Vec<ProblemReport>,
    /// Servers of the workspace, whose editors can have other settings.
    running_servers: usize,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct FileReport {
    exists: bool,
    path: PathBuf,
    scope: Scope,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Scope {
    Default,
    User,
    Project,
    CommandLine,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::CommandLine => "command line",
        }
    }
}

#[derive(Serialize)]
struct ProblemReport {
    file: Option<PathBuf>,
    key: String,
    line: Option<usize>,
    message: String,
}

#[derive(Serialize)]
struct Setting {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    origin: Scope,
    value: Value,
}

/// Prints the configuration files and all settings. Returns 1 if a setting is invalid.
pub(super) fn run(workspace: &Workspace) -> Result<i32, Error> {
    let root = offline::root(workspace)?;
    let files = ConfigFiles::read(config_file::user_file(), std::slice::from_ref(&root));
    let mut sources = SettingsSources::default();
    let mut problems = sources.set_files(files.into()).1;
    if let Some(storage) = &workspace.storage {
        let setting = offline::storage_setting(storage)?;
        problems.extend(sources.update(Source::InitializationOptions, &setting).1);
    }
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    let storage_dir = offline::storage_dir(workspace.storage.as_deref());
    let storage = storage_dir.as_ref().ok().map(|dir| Storage::open(dir));
    let running = storage.and_then(Result::ok);
    let report = Report {
        files: file_reports(sources.files()),
        problems: problems.into_iter().map(ProblemReport::new).collect(),
        running_servers: running.map_or(0, |storage| ipc::client::running(&storage, Some(&root))),
        settings: settings(&sources, storage_dir.ok().as_deref()),
    };
    let done = print_as(workspace, &report, Report::text)?;
    if report.problems.is_empty() {
        return Ok(done);
    }
    if !workspace.json {
        for problem in &report.problems {
            print_message(&escape::one_line(&problem.message));
        }
    }
    Ok(NEGATIVE)
}

fn file_reports(files: &ConfigFiles) -> Vec<FileReport> {
    let report = |scope| {
        move |file: &ConfigFile| FileReport {
            exists: file.exists,
            path: file.path.clone(),
            scope,
        }
    };
    let user = files.user.iter().map(report(Scope::User));
    user.chain(files.projects.iter().map(report(Scope::Project)))
        .collect()
}

/// Returns all settings in effect, sorted by key.
fn settings(sources: &SettingsSources, storage_dir: Option<&Path>) -> Vec<Setting> {
    let defaults = all_leaves(&DEFAULTS).into_iter();
    let mut settings: BTreeMap<String, Setting> = defaults
        // Limits of sections are listed if they are set.
        .filter(|(key, _)| !key.starts_with("environment.sections.") || key.ends_with(".enabled"))
        .map(|(key, value)| {
            let setting = Setting {
                file: None,
                key: key.clone(),
                line: None,
                origin: Scope::Default,
                value: value.clone(),
            };
            (key, setting)
        })
        .collect();
    if let (Some(dir), Some(setting)) = (storage_dir, settings.get_mut("storage.path")) {
        setting.value = Value::String(dir.to_string_lossy().into_owned());
    }
    let merged = sources.merged();
    for (key, origin) in &merged.origins {
        let Some(value) = merged.at(key) else {
            continue;
        };
        let files = sources.files();
        let (scope, file) = match origin {
            Origin::User => (Scope::User, files.user.as_ref()),
            Origin::Project(path) => {
                let mut projects = files.projects.iter();
                (Scope::Project, projects.find(|file| file.path == *path))
            }
            Origin::Client => (Scope::CommandLine, None),
        };
        let setting = Setting {
            file: file.map(|file| file.path.clone()),
            line: file.and_then(|file| file.line(key)),
            origin: scope,
            value: value.clone(),
            key: key.clone(),
        };
        settings.insert(key.clone(), setting);
    }
    settings.into_values().collect()
}

impl ProblemReport {
    fn new(problem: Problem) -> Self {
        Self {
            message: problem.to_string(),
            file: problem.file,
            key: problem.path,
            line: problem.line,
        }
    }
}

impl Report {
    fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let state = if file.exists { "" } else { " (does not exist)" };
            let path = file.path.to_string_lossy();
            let path = escape::one_line(&path);
            text.push_str(&format!("{}: {path}{state}\n", file.scope.name()));
        }
        text.push('\n');
        let line = |setting: &Setting| {
            let value = match &setting.value {
                Value::Null => "(not set)".to_owned(),
                value => format!("= {value}"),
            };
            let line = format!("{} {value}", setting.key);
            escape::one_line(&line).into_owned()
        };
        let lines: Vec<String> = self.settings.iter().map(line).collect();
        let widths = lines.iter().map(|line| line.chars().count());
        let width = widths.filter(|width| *width <= 60).max().unwrap_or(0);
        for (line, setting) in lines.iter().zip(&self.settings) {
            let origin = setting.origin.name();
            text.push_str(&format!("{line:<width$}  {origin}"));
            if let Some(file) = &setting.file {
                let file = file.to_string_lossy();
                text.push_str(&format!(" {}", escape::one_line(&file)));
            }
            if let Some(line) = setting.line {
                text.push_str(&format!(":{line}"));
            }
            text.push('\n');
        }
        if self.running_servers > 0 {
            text.push_str(
                "\nAn editor is running for this folder. Its own settings take precedence there.\n",
            );
        }
        text
    }
}
