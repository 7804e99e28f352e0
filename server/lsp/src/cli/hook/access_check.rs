//! Whether agents may see what a prompt mentions and what a tool reads.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};

use sightline_agents::hook::{self, Search, ToolCall};
use sightline_protocol::{
    access::{CheckAccessParams, CheckAccessResult},
    method::CheckAccess,
};
use sightline_workspace::{
    access::{guard_changes, guard_command},
    limits::MAX_COMMAND_BYTES,
    path::{AbsPath, uri_to_path},
};

use super::{
    super::{Workspace, offline::in_folder, requests::Attached},
    guard::HookGuard,
    with_deadline,
};

/// Time for a running server to answer. After it, the rules on disk decide.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of texts of one event that may be paths. Looking them up takes half of the time of a hook.
const MAX_TEXTS: usize = 50_000;
/// Maximum number of commands and searches of one event.
const MAX_COMMANDS: usize = 1_000;

/// Checks access in the folder of a session.
#[derive(Clone)]
pub(super) struct AccessCheck {
    pub(super) cwd: PathBuf,
    pub(super) workspace: Workspace,
}

/// What to check.
#[derive(Default)]
struct Request {
    /// As given by the user or the model, and absolute.
    paths: Vec<(String, String)>,
    /// Command lines for the folder of the session.
    commands: Vec<String>,
    /// Searches in the content of files, with their command lines.
    searches: Vec<(String, Search)>,
    /// Code that may be a command line.
    codes: Vec<String>,
    /// The paths are mentioned in a prompt.
    mentioned: bool,
    /// The existing paths among `paths`.
    existing: HashSet<PathBuf>,
    /// Number of texts that were looked up.
    texts: usize,
}

impl AccessCheck {
    /// Returns why a prompt may not be sent. `None` if it may.
    ///
    /// # Errors
    /// If the access cannot be checked.
    pub(super) fn denied_mention(&self, mentions: &[String]) -> Result<Option<String>, String> {
        let mut request = Request {
            mentioned: true,
            ..Request::default()
        };
        // Only existing files can be added to a prompt.
        for mention in mentions {
            request.add_existing(&self.cwd, mention)?;
        }
        self.first_denial(&request, hook::denied_mention)
    }

    /// Returns why a tool may not run. `None` if it may.
    ///
    /// # Errors
    /// If the access cannot be checked.
    pub(super) fn denied_tool(&self, call: &ToolCall) -> Result<Option<String>, String> {
        let mut texts = call.commands.iter().chain(&call.codes);
        if let Some(command) = texts.find(|it| it.len() > MAX_COMMAND_BYTES) {
            return Err(format!(
                "a command has {} bytes, which exceeds the limit of {MAX_COMMAND_BYTES}",
                command.len()
            ));
        }
        if let Some(refusal) = self.refused_change(call)? {
            return Ok(Some(refusal));
        }
        let starts = self.starts(call);
        let mut request = Request::default();
        for path in &call.paths {
            let full = absolute(&self.cwd, path);
            request.paths.push((path.clone(), full));
        }
        for start in &starts {
            for text in call.paths.iter().chain(&call.possible_paths) {
                request.add_existing(start, text)?;
                for reading in hook::readings(text) {
                    request.add_existing(start, &reading)?;
                }
            }
            for path in &call.paths {
                let full = absolute(start, path);
                if let Some(command) = hook::glob_command(&full)
                    && !Path::new(&full).exists()
                {
                    request.commands.push(command);
                }
            }
            let in_start = |command: &String| in_folder(start, command);
            request.commands.extend(call.commands.iter().map(in_start));
            let codes = call.codes.iter().map(|code| as_code(code));
            request.commands.extend(codes.map(|code| in_start(&code)));
            request.codes.extend(call.codes.iter().map(in_start));
            for search in &call.searches {
                let is_needed = search
                    .unless_exists
                    .as_ref()
                    .is_none_or(|path| !Path::new(&absolute(start, path)).exists());
                if is_needed {
                    let commands = search_commands(start, search);
                    let commands = commands.iter().map(in_start);
                    let commands = commands.map(|command| (command, search.clone()));
                    request.searches.extend(commands);
                }
            }
        }
        self.first_denial(&request, hook::denied_tool)
    }

    /// Returns why a tool may not run, because it would change what keeps the hooks in force.
    fn refused_change(&self, call: &ToolCall) -> Result<Option<String>, String> {
        if call.changed.is_empty() && call.commands.is_empty() && call.codes.is_empty() {
            return Ok(None);
        }
        let guard = HookGuard::new(&self.workspace, &self.cwd).map_err(|error| error.message)?;
        let changed = self.starts(call).into_iter().flat_map(|start| {
            let texts = call.changed.iter();
            let readings =
                texts.flat_map(|text| [vec![text.clone()], hook::readings(text)].concat());
            let paths = readings.map(move |text| absolute(&start, &text));
            paths.map(|path| path_of(&path))
        });
        let refusal = guard_changes(changed, call.removes, &guard);
        let refusal = refusal.or_else(|| {
            let codes = call.codes.iter().map(|code| as_code(code));
            let lines: Vec<String> = call.commands.iter().cloned().chain(codes).collect();
            let mut starts = self.starts(call).into_iter();
            starts.find_map(|start| {
                let mut lines = lines.iter();
                lines.find_map(|line| guard_command(line, &start, &guard))
            })
        });
        Ok(refusal.map(|why| format!("{why}.")))
    }

    /// Returns the folders from which the paths and commands of a call may start.
    fn starts(&self, call: &ToolCall) -> Vec<PathBuf> {
        let folders = call.folders.iter();
        let folders = folders.map(|folder| PathBuf::from(absolute(&self.cwd, folder)));
        let mut starts = vec![self.cwd.clone()];
        starts.extend(folders.filter(|folder| folder.is_dir() && *folder != self.cwd));
        starts
    }

    /// Checks a request by the rules of the workspace.
    fn first_denial(
        &self,
        request: &Request,
        denied: fn(&CheckAccessResult) -> Option<String>,
    ) -> Result<Option<String>, String> {
        let count = request.commands.len() + request.searches.len() + request.codes.len();
        if request.paths.is_empty() && count == 0 {
            return Ok(None);
        }
        if count > MAX_COMMANDS {
            return Err(format!("it has {count} commands and searches"));
        }
        let mut source = Source::Server;
        let mut paths = Some(request.paths.as_slice());
        let mut commands = request.commands.iter();
        // The first command is checked with the paths.
        loop {
            let command = commands.next();
            if paths.is_none() && command.is_none() {
                break;
            }
            let paths = paths.take().unwrap_or_default();
            let result = source.check(&self.workspace, paths, command, request.mentioned)?;
            if let Some(reason) = denied(&result) {
                return Ok(Some(reason));
            }
        }
        for code in &request.codes {
            let mut result = source.check(&self.workspace, &[], Some(code), false)?;
            // Code of another language is not parsed as a command line.
            if let Some(command) = &mut result.command {
                command.denied.retain(|denied| !denied.path.is_empty());
                command.allowed = command.denied.is_empty();
                command.instead = None;
            }
            if let Some(reason) = denied(&result) {
                return Ok(Some(reason));
            }
        }
        for (command, search) in &request.searches {
            let result = source.check(&self.workspace, &[], Some(command), false)?;
            if let Some(reason) = hook::denied_search(search, &result) {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }
}

impl Request {
    /// Adds a path if it exists. Tools that remove `..` themselves can find another file than the
    /// kernel, so both count.
    fn add_existing(&mut self, start: &Path, text: &str) -> Result<(), String> {
        self.texts += 1;
        if self.texts > MAX_TEXTS {
            return Err("it has too many texts that may be paths".to_owned());
        }
        let full = PathBuf::from(absolute(start, text));
        // A folder may be named `file:`.
        let plain = start.join(text);
        for path in [without_parents(&full), full, without_parents(&plain), plain] {
            if path.symlink_metadata().is_ok() && self.existing.insert(path.clone()) {
                let full = path.to_string_lossy().into_owned();
                self.paths.push((text.to_owned(), full));
            }
        }
        Ok(())
    }
}

/// Returns commands that read what a search reads. A path that does not exist is a pattern, or may
/// be read as the folder above it.
fn search_commands(folder: &Path, search: &Search) -> Vec<String> {
    let mut starts = BTreeSet::new();
    let mut patterns = Vec::new();
    for text in &search.paths {
        let readings = hook::readings(text);
        let full = [text].into_iter().chain(&readings);
        let full = full.flat_map(|text| {
            let full = PathBuf::from(absolute(folder, text));
            [without_parents(&full), full]
        });
        let mut existing: Vec<PathBuf> = full.filter(|path| path.exists()).collect();
        if existing.is_empty() && hook::glob_command(text).is_some() {
            patterns.push(text.clone());
            continue;
        }
        if existing.is_empty() {
            let full = without_parents(&PathBuf::from(absolute(folder, text.trim())));
            let mut above = full.ancestors();
            existing.extend(above.find(|path| path.exists()).map(Path::to_owned));
        }
        for path in existing {
            let is_file = search.in_folder_of_file && !path.is_dir();
            let start = path.parent().filter(|_| is_file).unwrap_or(&path);
            starts.insert(start.to_string_lossy().into_owned());
        }
    }
    search.commands(&starts, &patterns)
}

/// Removes each `..` of an absolute path with the name before it.
fn without_parents(path: &Path) -> PathBuf {
    AbsPath::new(path).map_or_else(|| path.to_owned(), |path| path.as_path().to_owned())
}

/// Where the checks of an event run.
#[derive(Clone, Copy)]
enum Source {
    /// In the running server, if there is one.
    Server,
    /// In this process, after the server did not answer.
    Disk,
}

impl Source {
    /// Checks paths and a command by the rules of a workspace.
    fn check(
        &mut self,
        workspace: &Workspace,
        paths: &[(String, String)],
        command: Option<&String>,
        mentioned: bool,
    ) -> Result<CheckAccessResult, String> {
        let ask = |offline: bool| {
            let workspace = workspace.clone();
            let params = CheckAccessParams {
                paths: paths.iter().map(|(_, full)| full.clone()).collect(),
                command: command.cloned(),
                mentioned,
            };
            move || {
                let answer = Attached { offline }.call::<CheckAccess>(&workspace, params);
                answer
                    .map(|(result, _)| result)
                    .map_err(|error| error.message)
            }
        };
        let answer = match self {
            Self::Server => with_deadline(SERVER_TIMEOUT, ask(false)).ok(),
            Self::Disk => None,
        };
        let mut result = match answer {
            Some(result) => result,
            None => {
                *self = Self::Disk;
                ask(true)()?
            }
        };
        if result.paths.len() != paths.len() {
            return Err("incomplete result of an access check".to_owned());
        }
        for (checked, (given, _)) in result.paths.iter_mut().zip(paths) {
            checked.path.clone_from(given);
        }
        Ok(result)
    }
}

/// Returns the path of an absolute path or a `file:` URI, without `..`.
fn path_of(text: &str) -> PathBuf {
    match uri_to_path(text) {
        Ok(Some(path)) => path.as_path().to_owned(),
        _ => without_parents(Path::new(text)),
    }
}

/// Returns an absolute path. URIs are unchanged.
pub(super) fn absolute(start: &Path, path: &str) -> String {
    if path.to_ascii_lowercase().starts_with("file:") {
        return path.to_owned();
    }
    let in_home = (path == "~").then_some("").or(path.strip_prefix("~/"));
    let in_home =
        in_home.and_then(|rest| Some(directories::BaseDirs::new()?.home_dir().join(rest)));
    let full = in_home.unwrap_or_else(|| start.join(path));
    hook::shortened(&full.to_string_lossy()).into_owned()
}

/// Returns a command that runs code of another language.
fn as_code(code: &str) -> String {
    format!("python3 -c {}", hook::quote(code))
}
