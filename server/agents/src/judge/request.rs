//! The access check of a call, and the judgment of its result.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
};

use sightline_base::limits::MAX_CHECKED_COMMANDS;
use sightline_protocol::access::{CheckAccessParams, CheckAccessResult, CommandAccess};

use super::{
    Judge, Refusal, as_code, in_folder,
    refusal::{denied_command, denied_mention, denied_path, denied_search},
    without_parents,
};
use crate::hook::{Search, ToolCall, glob_command, readings};

/// Maximum number of texts of one event that may be paths. Looking them up takes half of the time of a hook.
const MAX_TEXTS: usize = 50_000;

/// What to check.
#[derive(Default)]
pub(super) struct Request {
    /// As given by the user or the model, and absolute.
    paths: Vec<(String, String)>,
    /// Command lines, and the part of the call of each.
    commands: Vec<(String, Subject)>,
    /// The paths are mentioned in a prompt.
    mentioned: bool,
    /// The existing paths among `paths`.
    existing: HashSet<PathBuf>,
    /// Number of texts that were looked up.
    texts: usize,
}

/// The part of a call that a command line represents.
enum Subject {
    /// A command of the call.
    Command,
    /// Code that may be a command line.
    Code,
    /// A search in the content of files.
    Search(Search),
}

impl Request {
    /// Creates the request for a prompt. Only existing files can be added to it.
    pub(super) fn of_mentions(judge: &Judge, mentions: &[String]) -> Result<Self, String> {
        let mut request = Self {
            mentioned: true,
            ..Self::default()
        };
        for mention in mentions {
            request.add_existing(judge, &judge.folder, mention)?;
        }
        Ok(request)
    }

    /// Creates the request for a tool call, whose paths and commands may start in any of these folders.
    pub(super) fn of_tool(
        judge: &Judge,
        call: &ToolCall,
        starts: &[PathBuf],
    ) -> Result<Self, String> {
        let mut request = Self::default();
        for path in &call.paths {
            let full = judge.absolute(&judge.folder, path);
            request.paths.push((path.clone(), full));
        }
        for start in starts {
            for text in call.paths.iter().chain(&call.possible_paths) {
                request.add_existing(judge, start, text)?;
                for reading in readings(text) {
                    request.add_existing(judge, start, &reading)?;
                }
            }
            for path in &call.paths {
                let full = judge.absolute(start, path);
                if let Some(command) = glob_command(&full)
                    && !Path::new(&full).exists()
                {
                    request.commands.push((command, Subject::Command));
                }
            }
            for command in &call.commands {
                request.add_command(start, command, Subject::Command);
            }
            for code in &call.codes {
                request.add_command(start, &as_code(code), Subject::Command);
                request.add_command(start, code, Subject::Code);
            }
            for search in &call.searches {
                let is_needed = search
                    .unless_exists
                    .as_ref()
                    .is_none_or(|path| !Path::new(&judge.absolute(start, path)).exists());
                if is_needed {
                    for command in search_commands(judge, start, search) {
                        request.add_command(start, &command, Subject::Search(search.clone()));
                    }
                }
            }
        }
        if request.commands.len() > MAX_CHECKED_COMMANDS {
            let count = request.commands.len();
            return Err(format!("it has {count} commands and searches"));
        }
        Ok(request)
    }

    /// Adds a path if it exists. Tools that remove `..` themselves can find another file than the
    /// kernel, so both count.
    fn add_existing(&mut self, judge: &Judge, start: &Path, text: &str) -> Result<(), String> {
        self.texts += 1;
        if self.texts > MAX_TEXTS {
            return Err("it has too many texts that may be paths".to_owned());
        }
        let full = PathBuf::from(judge.absolute(start, text));
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

    fn add_command(&mut self, folder: &Path, command: &str, subject: Subject) {
        self.commands.push((in_folder(folder, command), subject));
    }

    /// Returns the first denial.
    pub(super) fn denial(
        self,
        mut check: impl FnMut(&CheckAccessParams) -> Result<CheckAccessResult, String>,
    ) -> Result<Option<Refusal>, String> {
        if self.paths.is_empty() && self.commands.is_empty() {
            return Ok(None);
        }
        let (commands, subjects): (Vec<String>, Vec<Subject>) = self.commands.into_iter().unzip();
        let params = CheckAccessParams {
            paths: self.paths.iter().map(|(_, full)| full.clone()).collect(),
            commands,
            mentioned: self.mentioned,
            ..CheckAccessParams::default()
        };
        let mut result = check(&params)?;
        if result.paths.len() != params.paths.len()
            || result.commands.len() != params.commands.len()
        {
            return Err("incomplete result of an access check".to_owned());
        }
        for (checked, (given, _)) in result.paths.iter_mut().zip(self.paths) {
            checked.path = given;
        }
        if self.mentioned {
            return Ok(denied_mention(&result.paths));
        }
        Ok(denied_path(&result.paths).or_else(|| {
            let mut checked = result
                .commands
                .into_iter()
                .zip(&subjects)
                .zip(&params.commands);
            checked.find_map(|((access, subject), line)| subject.denial(line, access))
        }))
    }
}

impl Subject {
    fn denial(&self, line: &str, mut access: CommandAccess) -> Option<Refusal> {
        match self {
            Self::Command => denied_command(line, &access),
            Self::Code => {
                // Code of another language is not parsed as a command line.
                access.denied.retain(|denied| !denied.path.is_empty());
                access.allowed = access.denied.is_empty();
                access.instead = None;
                denied_command(line, &access)
            }
            Self::Search(search) => denied_search(search, &access),
        }
    }
}

/// Returns commands that read what a search reads. A path that does not exist is a pattern, or may
/// be read as the folder above it.
fn search_commands(judge: &Judge, folder: &Path, search: &Search) -> Vec<String> {
    let mut starts = BTreeSet::new();
    let mut patterns = Vec::new();
    for text in &search.paths {
        let mut existing: Vec<PathBuf> = [text]
            .into_iter()
            .chain(&readings(text))
            .flat_map(|text| {
                let full = PathBuf::from(judge.absolute(folder, text));
                [without_parents(&full), full]
            })
            .filter(|path| path.exists())
            .collect();
        if existing.is_empty() && glob_command(text).is_some() {
            patterns.push(text.clone());
            continue;
        }
        if existing.is_empty() {
            let full = without_parents(&PathBuf::from(judge.absolute(folder, text.trim())));
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
