//! Sources of settings, and their precedence.
//!
//! Later ones win: the user's configuration file, `initializationOptions`, the response to
//! `workspace/configuration`, `workspace/didChangeConfiguration`. The files of projects come after
//! the user's, and only make settings stricter.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    Problem, Settings,
    config_file::ConfigFiles,
    project::ProjectRule,
    resolve,
    values::{expand_dotted_keys, get, leaves, merge, set},
};

/// The settings of each source, and the problems already reported.
#[derive(Clone, Debug, Default)]
pub struct SettingsSources {
    files: Arc<ConfigFiles>,
    initialization_options: Value,
    configuration: Value,
    did_change: Value,
    reported: BTreeSet<Problem>,
}

/// A source of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `initialize`.
    InitializationOptions,
    /// The response to `workspace/configuration`.
    Configuration,
    /// `workspace/didChangeConfiguration`.
    DidChange,
}

/// Where the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's configuration file.
    User,
    /// The configuration file of a project.
    Project(PathBuf),
    /// The client, or an argument of the command line.
    Client,
}

/// Merged settings.
#[derive(Debug, Default, PartialEq)]
pub struct Merged {
    /// The settings, without defaults.
    pub values: Value,
    /// Where each comes from, by dotted path.
    pub origins: BTreeMap<String, Origin>,
}

impl SettingsSources {
    /// Replaces the value of one source and resolves all of them. Each problem is
    /// reported once per process. `null` changes nothing.
    pub fn update(&mut self, source: Source, value: &Value) -> (Settings, Vec<Problem>) {
        // Some clients nest the settings under the section's name.
        let value = value.get("sightline").unwrap_or(value);
        let mut layer = expand_dotted_keys(value);
        // Others prefix every key with it.
        if let Some(prefixed) = layer
            .as_object_mut()
            .and_then(|all| all.remove("sightline"))
        {
            merge(&mut layer, prefixed);
        }
        if layer.as_array().is_some_and(Vec::is_empty) {
            layer = Value::Object(Map::new());
        }
        let mut problems = Vec::new();
        match (source, layer) {
            (_, Value::Null) => {}
            (Source::InitializationOptions, layer @ Value::Object(_)) => {
                self.initialization_options = layer;
            }
            (Source::Configuration, layer @ Value::Object(_)) => {
                self.configuration = layer;
                // Requested after the last change notification, so it is newer.
                self.did_change = Value::Null;
            }
            (Source::DidChange, layer @ Value::Object(_)) => self.did_change = layer,
            (_, other) => {
                problems.push(Problem::of_value("sightline", "must be an object", &other));
            }
        }
        self.resolve(problems)
    }

    /// Replaces the configuration files and resolves all sources, like [`Self::update`].
    pub fn set_files(&mut self, files: Arc<ConfigFiles>) -> (Settings, Vec<Problem>) {
        let problems = files.problems().cloned().collect();
        self.files = files;
        self.resolve(problems)
    }

    /// Returns the configuration files.
    pub fn files(&self) -> &Arc<ConfigFiles> {
        &self.files
    }

    /// Merges all sources.
    pub fn merged(&self) -> Merged {
        let client = [
            &self.initialization_options,
            &self.configuration,
            &self.did_change,
        ];
        merge_sources(&self.files, &client)
    }

    fn resolve(&mut self, mut problems: Vec<Problem>) -> (Settings, Vec<Problem>) {
        let (settings, more) = resolve(&self.merged().values);
        problems.extend(more);
        let fresh = problems
            .into_iter()
            .filter(|problem| self.reported.insert(problem.clone()))
            .collect();
        (settings, fresh)
    }
}

/// Merges configuration files and the settings of a client.
fn merge_sources(files: &ConfigFiles, client: &[&Value]) -> Merged {
    let mut merged = Merged {
        values: Value::Object(Map::new()),
        origins: BTreeMap::new(),
    };
    if let Some(user) = &files.user {
        merged.add(&user.values, &Origin::User);
    }
    for project in &files.projects {
        for (path, value) in leaves(&project.values) {
            let Some(rule) = ProjectRule::of(&path) else {
                continue;
            };
            if let Some(stricter) = rule.stricter(&path, merged.at(&path), value) {
                set(&mut merged.values, &path, stricter);
                let origin = Origin::Project(project.path.clone());
                merged.origins.insert(path, origin);
            }
        }
    }
    for layer in client {
        merged.add(layer, &Origin::Client);
    }
    merged
}

impl Merged {
    /// Returns the value of a setting.
    pub fn at(&self, path: &str) -> Option<&Value> {
        get(&self.values, path)
    }

    fn add(&mut self, layer: &Value, origin: &Origin) {
        merge(&mut self.values, layer.clone());
        for (path, _) in leaves(layer) {
            self.origins.insert(path, origin.clone());
        }
    }
}
