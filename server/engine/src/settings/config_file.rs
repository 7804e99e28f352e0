//! Configuration files: `config.toml` of the user, and `.sightline.toml` of projects.
//!
//! Both have the keys of the settings. The file of a project may have been written by others: it is
//! read like a rule file, and only makes settings stricter (`project`). What is invalid is
//! reported and left out; a project file that cannot be used denies.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};
use sightline_access::{PROJECT_FILE, read_project_file, read_small_file};
use sightline_base::path::{AbsPath, Root};
use toml_edit::{Document, Item, Key, TableLike};

use super::{
    Problem, Settings, problems_in_file,
    project::{ProjectRule, strict_settings},
    resolve,
    values::{expand_dotted_keys, join, leaves, remove, set},
};

/// Maximum number of problems that are reported of one file.
const MAX_PROBLEMS: usize = 20;

/// The configuration files of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigFiles {
    /// The user's.
    pub user: Option<ConfigFile>,
    /// Those in the workspace folders and the existing ones above, outermost first.
    pub projects: Vec<ConfigFile>,
    /// The workspace folders they were read for.
    roots: Vec<AbsPath>,
}

/// A configuration file as read.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFile {
    /// The path.
    pub path: PathBuf,
    /// Whether the file exists.
    pub exists: bool,
    /// The valid settings.
    pub values: Value,
    /// What is invalid.
    pub problems: Vec<Problem>,
    lines: Lines,
}

/// Returns the path of the user's configuration file. `None` without a home directory.
pub fn user_file() -> Option<PathBuf> {
    let places = directories::ProjectDirs::from("", "", "sightline")?;
    let path = places.config_dir().join("config.toml");
    path.is_absolute().then_some(path)
}

/// Returns the settings of the user's configuration file.
pub fn user_settings() -> Settings {
    let values = user_file().map(|path| ConfigFile::of_user(path).values);
    resolve(&values.unwrap_or_default()).0
}

impl ConfigFiles {
    /// Reads the user's file, and the files of the workspace folders and of all folders above them.
    pub fn read(user: Option<PathBuf>, roots: &[Root]) -> Self {
        let mut folders = BTreeSet::new();
        for root in roots {
            let above = root.canonical.as_path().ancestors();
            folders.extend(above.map(|folder| (folder.components().count(), folder)));
        }
        let is_root = |folder: &AbsPath| roots.iter().any(|root| root.canonical == *folder);
        Self {
            user: user.map(ConfigFile::of_user),
            projects: folders
                .into_iter()
                .filter_map(|(_, folder)| AbsPath::new(folder))
                .map(|folder| (is_root(&folder), ConfigFile::of_project(&folder)))
                .filter(|(is_root, file)| file.exists || *is_root)
                .map(|(_, file)| file)
                .collect(),
            roots: roots.iter().map(|root| root.canonical.clone()).collect(),
        }
    }

    /// Reads the files again, for these workspace folders.
    pub fn read_again(&self, roots: &[Root]) -> Self {
        let user = self.user.as_ref().map(|file| file.path.clone());
        Self::read(user, roots)
    }

    /// Returns whether the files were read for these workspace folders.
    pub fn are_for(&self, roots: &[Root]) -> bool {
        self.roots
            .iter()
            .eq(roots.iter().map(|root| &root.canonical))
    }

    /// Returns whether a path is that of a configuration file.
    pub fn contains(&self, path: &Path) -> bool {
        path.ends_with(PROJECT_FILE) || self.all().any(|file| file.path == path)
    }

    /// Returns all files, in order of precedence.
    pub fn all(&self) -> impl Iterator<Item = &ConfigFile> {
        self.user.iter().chain(&self.projects)
    }

    /// Returns what is invalid.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.all().flat_map(|file| &file.problems)
    }
}

impl ConfigFile {
    fn of_user(path: PathBuf) -> Self {
        let text = read_small_file(&path);
        let mut file = Self::parse(path, text);
        for problem in problems_in_file(&file.values) {
            file.leave_out(&problem.path, problem.message);
        }
        file
    }

    fn of_project(folder: &AbsPath) -> Self {
        let path = folder.as_path().join(PROJECT_FILE);
        let text = read_project_file(folder);
        let mut file = Self::parse(path, text);
        if !file.problems.is_empty() {
            file.values = strict_settings();
        }
        for problem in problems_in_file(&file.values) {
            // The file can hold anything, and its problems are shown to agents.
            file.leave_out(&problem.path, problem.without_value().to_owned());
            // What an invalid value was to deny is denied.
            if let Some(ProjectRule::Only(strict)) = ProjectRule::of(&problem.path) {
                set(&mut file.values, &problem.path, strict);
            }
        }
        for (path, why) in file.refused() {
            file.leave_out(&path, why);
        }
        file
    }

    fn parse(path: PathBuf, text: Result<Option<Arc<[u8]>>, String>) -> Self {
        let mut file = Self {
            path,
            exists: !matches!(text, Ok(None)),
            values: Value::Object(Map::new()),
            problems: Vec::new(),
            lines: Lines::default(),
        };
        let bytes = match &text {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return file,
            Err(why) => {
                file.report("", why.clone());
                return file;
            }
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            file.report("", "is not UTF-8 text".to_owned());
            return file;
        };
        let text = text.trim_start_matches('\u{feff}');
        file.lines = Lines::new(text);
        match Document::parse(text) {
            Ok(document) => {
                let values = file.lines.table(document.as_table(), "");
                file.values = expand_dotted_keys(&values);
            }
            Err(error) => {
                file.lines.add("", error.span());
                file.report("", format!("is not TOML: {}", error.message().trim()));
            }
        }
        file
    }

    /// Returns what a project may not set, and why.
    fn refused(&self) -> Vec<(String, String)> {
        let refused = leaves(&self.values)
            .into_iter()
            .filter_map(|(path, value)| {
                let why = match ProjectRule::of(&path) {
                    None => "cannot be set by a project".to_owned(),
                    Some(ProjectRule::Only(strict)) if *value != strict => {
                        format!("can only be {strict} in a project")
                    }
                    Some(_) => return None,
                };
                Some((path, why))
            });
        refused.collect()
    }

    /// Removes an invalid setting, and reports it.
    fn leave_out(&mut self, path: &str, why: String) {
        remove(&mut self.values, path);
        self.report(path, why);
    }

    fn report(&mut self, path: &str, message: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem {
                path: path.to_owned(),
                message,
                file: Some(self.path.clone()),
                line: self.line(path),
            });
        }
    }

    /// Returns the line of a setting, or of the nearest table above it.
    pub fn line(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.by_path.get(path) {
                return Some(*line);
            }
            path = path.rsplit_once('.')?.0;
        }
    }
}

/// The lines of the keys of a file.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lines {
    /// Offsets of the line breaks.
    breaks: Vec<usize>,
    by_path: BTreeMap<String, usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        Self {
            breaks: text.match_indices('\n').map(|(at, _)| at).collect(),
            by_path: BTreeMap::new(),
        }
    }

    fn add(&mut self, path: &str, span: Option<Range<usize>>) {
        if let Some(span) = span {
            let line = self.breaks.partition_point(|at| *at < span.start) + 1;
            self.by_path.insert(path.to_owned(), line);
        }
    }

    /// Converts a table, and adds the lines of its keys.
    fn table(&mut self, table: &dyn TableLike, path: &str) -> Value {
        let mut fields = Map::new();
        for (name, item) in table.iter() {
            let path = join(path, name);
            self.add(&path, table.key(name).and_then(Key::span));
            fields.insert(name.to_owned(), self.item(item, &path));
        }
        Value::Object(fields)
    }

    fn item(&mut self, item: &Item, path: &str) -> Value {
        match item {
            Item::None => Value::Null,
            Item::Table(table) => self.table(table, path),
            Item::ArrayOfTables(tables) => tables.iter().map(|one| self.table(one, path)).collect(),
            Item::Value(value) => self.value(value, path),
        }
    }

    fn value(&mut self, value: &toml_edit::Value, path: &str) -> Value {
        match value {
            toml_edit::Value::String(text) => text.value().clone().into(),
            toml_edit::Value::Integer(number) => (*number.value()).into(),
            toml_edit::Value::Float(number) => (*number.value()).into(),
            toml_edit::Value::Boolean(flag) => (*flag.value()).into(),
            toml_edit::Value::Datetime(time) => time.value().to_string().into(),
            toml_edit::Value::Array(items) => {
                items.iter().map(|item| self.value(item, path)).collect()
            }
            toml_edit::Value::InlineTable(table) => self.table(table, path),
        }
    }
}
