//! Checks shell commands: would a command read a denied file?
//!
//! The result is advice, not a sandbox. A command is interpreted as by a POSIX shell. Each word
//! that may name a denied file is reported, and each known program that would read one in a
//! directory. What a program does internally (a script, an encoded string) is not checked.
//!
//! [`mod@limits`] refuses input that the parser cannot handle. [`shell`] walks the parsed command.
//! [`expansion`] expands words, with [`words`] and [`mod@printf`]; [`wildcard`] expands patterns. [`simple_command`] checks an [`invocation`] of a program:
//! [`options`] splits its words by the data in [`program_table`], and [`recursive_readers`] walks
//! the directories that it reads, with [`name_filter`], [`find`] and [`sed`] for what it skips.
//! [`guard`] checks what a command changes and runs, instead of what it reads.
//! This module contains the [`CommandChecker`] with the state that they share.

mod expansion;
mod find;
mod guard;
mod invocation;
mod limits;
mod name_filter;
mod options;
mod printf;
mod program_table;
mod recursive_readers;
mod sed;
mod shell;
mod simple_command;
mod wildcard;
mod words;

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use sightline_protocol::{
    access::{CommandAccess, DeniedOperand},
    settings::RecursiveReaders,
};

pub use self::guard::{Change, CommandGuard, guard_changes, guard_command};
use self::{expansion::ExpandedWord, guard::Guarded, shell::ShellState};
use super::{AccessView, Denial, Verdict, through_link};
use crate::{limits::MAX_COMMAND_BYTES, path::AbsPath};

/// Maximum paths checked per command.
const MAX_PATHS: usize = 20_000;
/// Maximum scripts in a command: substitutions, `sh -c`, `eval`.
const MAX_SCRIPTS: usize = 200;
/// Maximum nesting of scripts.
const MAX_DEPTH: usize = 8;
/// Maximum file name, in characters. No file system allows more.
const MAX_NAME: usize = 255;
/// Maximum written paths reported.
const MAX_WRITTEN: usize = 1_000;
/// Maximum denied operands reported.
const MAX_DENIED: usize = 200;
/// Maximum time for one command. Ordinary commands take milliseconds.
const MAX_TIME: Duration = Duration::from_secs(2);

impl AccessView {
    /// Checks a command line for a POSIX shell. Programs of PowerShell that read files are known,
    /// too. The result is advice: an allowed command may still read denied files, for instance in a
    /// script.
    pub fn check_command(&self, text: &str) -> CommandAccess {
        self.check_command_with(text, RecursiveReaders::Deny)
    }

    /// Like [`Self::check_command`]. `readers` selects whether programs that read directories
    /// recursively are denied if a directory contains denied files.
    pub fn check_command_with(&self, text: &str, readers: RecursiveReaders) -> CommandAccess {
        self.run_checker(text, CommandChecker::new(self, readers))
    }

    /// Returns whether a command line may be shown: it names no denied file, not even in a pattern.
    /// Recursive reads do not matter.
    pub fn may_show_command(&self, text: &str) -> bool {
        let checker = CommandChecker {
            checks_all_words: true,
            ..CommandChecker::new(self, RecursiveReaders::Allow)
        };
        self.run_checker(text, checker).allowed
    }

    fn run_checker(&self, text: &str, mut checker: CommandChecker<'_>) -> CommandAccess {
        if text.len() > MAX_COMMAND_BYTES {
            checker.refuse(
                "",
                format!(
                    "the command has {} bytes, which exceeds the limit of {}; split it or run it from a script",
                    text.len(),
                    MAX_COMMAND_BYTES
                ),
            );
        } else {
            // Scripts written on Windows.
            checker.run(&text.replace("\r\n", "\n").replace('\r', "\n"));
        }
        CommandAccess {
            allowed: checker.denied.is_empty(),
            denied: checker.denied,
            instead: None,
            written: checker.written.into_iter().collect(),
        }
    }
}

/// A script that is not checked yet.
struct PendingScript {
    text: String,
    state: ShellState,
    depth: usize,
}

/// State of the check of one command.
struct CommandChecker<'a> {
    view: &'a AccessView,
    readers: RecursiveReaders,
    /// Also check words that are known not to be paths.
    checks_all_words: bool,
    home: Option<PathBuf>,
    denied: Vec<DeniedOperand>,
    /// Absolute paths that the command writes.
    written: BTreeSet<String>,
    known: HashMap<PathBuf, Option<Denial>>,
    scripts: VecDeque<PendingScript>,
    seen_scripts: HashSet<(String, Vec<PathBuf>)>,
    depth: usize,
    /// Remaining directory entries for pathname expansion.
    entries_left: usize,
    /// Remaining directory entries for recursive reads.
    tree_left: usize,
    /// Nesting of containers of the current command.
    containers: usize,
    /// Decides instead of the access rules.
    guard: Option<Guarded<'a>>,
    started: Instant,
    exhausted: bool,
}

impl Denial {
    /// Returns the part of `path` that the rule names literally. Other names are not reported, so
    /// that checking a directory does not disclose its denied files.
    fn named_in<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rule = self.rule.as_ref()?;
        let name = rule.pattern.trim_end_matches('/').rsplit('/').next()?;
        let ends = path.match_indices('/').map(|(at, _)| at);
        ends.chain([path.len()])
            .map(|end| &path[..end])
            .find(|part| part.rsplit('/').next() == Some(name))
    }
}

impl<'a> CommandChecker<'a> {
    fn new(view: &'a AccessView, readers: RecursiveReaders) -> Self {
        Self {
            view,
            readers,
            checks_all_words: false,
            home: std::env::home_dir(),
            denied: Vec::new(),
            written: BTreeSet::new(),
            known: HashMap::new(),
            scripts: VecDeque::new(),
            seen_scripts: HashSet::new(),
            depth: 0,
            entries_left: wildcard::MAX_ENTRIES,
            tree_left: recursive_readers::MAX_ENTRIES,
            containers: 0,
            guard: None,
            started: Instant::now(),
            exhausted: false,
        }
    }

    /// Returns the directories in which a command may start: all roots, or without a root those of
    /// the open files.
    fn initial_state(&self) -> ShellState {
        if let Some(guard) = &self.guard {
            return ShellState::new(vec![guard.folder.clone()]);
        }
        let scopes = &self.view.scopes;
        let has_root = scopes.iter().any(|scope| scope.is_root);
        let scopes = scopes.iter().filter(|scope| scope.is_root || !has_root);
        ShellState::new(
            scopes
                .map(|scope| scope.path().as_path().to_path_buf())
                .collect(),
        )
    }

    fn run(&mut self, text: &str) {
        self.script(text, &self.initial_state());
        while let Some(script) = self.scripts.pop_front() {
            if self.is_exhausted() {
                return;
            }
            self.depth = script.depth;
            self.parse(&script.text, script.state);
        }
    }

    /// Queues a script that runs as part of the command.
    fn script(&mut self, text: &str, state: &ShellState) {
        if text.trim().is_empty() || self.is_exhausted() {
            return;
        }
        let new = self
            .seen_scripts
            .insert((text.to_owned(), state.dirs.clone()));
        if !new {
            return;
        }
        if self.depth >= MAX_DEPTH {
            self.check_rough_words(text, state, "it is nested too deeply");
            return;
        }
        self.scripts.push_back(PendingScript {
            text: text.to_owned(),
            state: state.clone(),
            depth: self.depth + 1,
        });
    }

    /// Parses and checks a script on a separate thread, because the parser needs stack proportional
    /// to the nesting and panics on some input.
    fn parse(&mut self, text: &str, state: ShellState) {
        let outcome = match limits::stack_for(text) {
            None => Err("it is nested too deeply"),
            Some(stack) => thread::scope(|threads| {
                thread::Builder::new()
                    .name("command".to_owned())
                    .stack_size(stack)
                    .spawn_scoped(threads, || {
                        let mut state = state.clone();
                        match shell::parse(text) {
                            Ok(program) => {
                                self.program(&program, &mut state);
                                Ok(())
                            }
                            Err(why) => Err(why),
                        }
                    })
                    .map_err(|_| "no thread could be started to parse it")?
                    .join()
                    .unwrap_or(Err("the parser failed"))
            }),
        };
        if let Err(why) = outcome {
            self.check_rough_words(text, &state, why);
        }
    }

    /// Fallback for a command that cannot be parsed: checks everything that could be a path.
    fn check_rough_words(&mut self, text: &str, state: &ShellState, why: &str) {
        let how = format!("the command names it (every word was checked, because {why})");
        let words = expansion::rough_words(text);
        self.guard_rough_words(&words, &state.dirs);
        for word in words {
            if self.is_exhausted() {
                return;
            }
            self.check_word(&ExpandedWord::unquoted(&word), &state.dirs, &how);
        }
    }

    /// Checks everything that a word could name.
    fn check_word(&mut self, field: &ExpandedWord, dirs: &[PathBuf], how: &str) {
        if field.has_pattern() {
            self.check_matches(field, dirs, how);
        }
        for piece in field.path_candidates() {
            self.check_path(&piece, dirs, how);
        }
    }

    /// Records that the command writes the paths of a word.
    fn add_written(&mut self, field: &ExpandedWord, dirs: &[PathBuf]) {
        let mut paths: Vec<PathBuf> = dirs.iter().map(|dir| dir.join(field.text())).collect();
        if field.has_pattern() {
            paths.extend(self.matches(field, dirs));
        }
        for path in paths.iter().filter_map(|path| AbsPath::new(path)) {
            if self.written.len() < MAX_WRITTEN {
                let path = path.as_path().to_string_lossy();
                self.written.insert(path.into_owned());
            }
        }
    }

    /// Checks a path, relative to each possible working directory.
    fn check_path(&mut self, written: &str, dirs: &[PathBuf], how: &str) {
        let impossible = |name: &str| name.chars().nth(MAX_NAME).is_some();
        if written.is_empty() || written.contains('\0') || written.split('/').any(impossible) {
            return;
        }
        let path = strip_proc_cwd(written).unwrap_or(Path::new(written));
        let places: Vec<PathBuf> = if path.is_absolute() {
            vec![path.to_path_buf()]
        } else {
            dirs.iter().map(|dir| dir.join(path)).collect()
        };
        for place in places {
            if let Some(denial) = self.denial(&place) {
                self.deny(written, how, denial);
                return;
            }
        }
    }

    /// Returns why a path is denied. Paths outside the workspace are denied by rules only.
    fn denial(&mut self, path: &Path) -> Option<Denial> {
        if self.guard.is_some() {
            return None;
        }
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        if self.is_exhausted() {
            return None;
        }
        let denial = self.denial_of(path);
        self.known.insert(path.to_path_buf(), denial.clone());
        denial
    }

    /// Returns whether a limit for this command is reached. Then the command is denied once.
    fn is_exhausted(&mut self) -> bool {
        if self.exhausted {
            return true;
        }
        self.exhausted = self.known.len() >= MAX_PATHS
            || self.seen_scripts.len() >= MAX_SCRIPTS
            || self.started.elapsed() > MAX_TIME;
        if self.exhausted {
            self.refuse(
                "",
                "the command is too complex to check; split it".to_owned(),
            );
        }
        self.exhausted
    }

    fn denial_of(&self, path: &Path) -> Option<Denial> {
        let folded = AbsPath::new(path)?;
        if let Verdict::Denied(denial) = self.view.check_absolute(&folded) {
            return Some(denial);
        }
        // After a symbolic link, `..` is not the lexical parent.
        let climbs = path
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        if !climbs {
            return None;
        }
        match self.view.resolve_physically(path) {
            Err(denial) => Some(denial),
            Ok(followed) => match self.view.check_absolute(&AbsPath::new(&followed.real)?) {
                Verdict::Denied(denial) => Some(through_link(denial)),
                _ => None,
            },
        }
    }

    fn deny(&mut self, path: &str, how: &str, denial: Denial) {
        let entry = DeniedOperand {
            path: path.to_owned(),
            reason: format!("{how}; {}", denial.reason),
            rule: denial.rule,
        };
        let known = self
            .denied
            .iter()
            .any(|other| other.path == entry.path && other.rule == entry.rule);
        if !known && self.denied.len() < MAX_DENIED {
            self.denied.push(entry);
        }
    }

    fn refuse(&mut self, path: &str, reason: String) {
        self.denied.push(DeniedOperand {
            path: path.to_owned(),
            reason,
            rule: None,
        });
    }
}

/// Returns the path after `/proc/PID/cwd/`, which is taken as the command's working directory.
fn strip_proc_cwd(written: &str) -> Option<&Path> {
    let (_, rest) = written.strip_prefix("/proc/")?.split_once('/')?;
    let rest = rest.strip_prefix("cwd")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| Path::new(rest.trim_start_matches('/')))
}
