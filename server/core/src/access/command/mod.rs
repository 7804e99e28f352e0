//! What would this shell command read, and may it?
//!
//! Advice, not a sandbox: the command is understood as a POSIX shell would
//! understand it, and whatever names a denied file is reported, as are known
//! programs that read whole folders. What a program does by itself (a script, an
//! encoded string) cannot be known here.
//!
//! [`guard`] keeps input from the grammar that it cannot take, [`shell`] walks
//! the parsed command, [`word`] finds what words can stand for (with [`quote`],
//! [`braces`] and [`mod@print`]), [`wildcard`] finds what a pattern matches. [`program`]
//! judges the words of an [`invocation`]; [`programs`] is the table of what is known of programs,
//! [`options`] takes their words apart by it, [`readers`] looks into the folders they
//! read, with [`filter`], [`find`] and [`sed`] for what they leave out. This module holds
//! what they share: the questions asked of the rules, and the list of what was denied.

mod brace_expansion;
mod expansion;
mod find;
mod invocation;
mod lexer;
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

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use sightline_protocol::{
    access::{CommandAccess, DeniedOperand},
    settings::RecursiveReaders,
};

use self::{expansion::ExpandedWord, shell::ShellState};
use super::{AccessView, Denial, Verdict, through_link};
use crate::{limits::MAX_COMMAND_BYTES, path::AbsPath};

/// Paths judged for one command; more than any honest one names.
const MAX_PATHS: usize = 20_000;
/// Scripts within a command: substitutions, `sh -c`, `eval`.
const MAX_SCRIPTS: usize = 200;
/// Of these, within each other.
const MAX_DEPTH: usize = 8;
/// Characters of a file name; every file system takes as many or fewer.
const MAX_NAME: usize = 255;
/// Denied operands told of.
const MAX_DENIED: usize = 200;
/// Time spent on one command; honest ones take milliseconds.
const MAX_TIME: Duration = Duration::from_secs(2);

impl AccessView {
    /// Judges a command line for a POSIX shell, with the readers of PowerShell
    /// known as well. The answer is advice: a command that is allowed may still
    /// read denied files, for instance from a script.
    pub fn check_command(&self, text: &str) -> CommandAccess {
        self.check_command_with(text, RecursiveReaders::Deny)
    }

    /// As [`Self::check_command`]. `readers` says whether programs that read whole
    /// folders are refused where a folder holds denied files.
    pub fn check_command_with(&self, text: &str, readers: RecursiveReaders) -> CommandAccess {
        self.run_checker(text, CommandChecker::new(self, readers))
    }

    /// Returns whether a command line may be shown: it names no denied file, not even
    /// as a pattern. What it reads of folders does not matter.
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
                    "the command has {} bytes, which is over the limit of {}; run it from a script, or in parts",
                    text.len(),
                    MAX_COMMAND_BYTES
                ),
            );
        } else {
            // Lines of a script that was written on Windows.
            checker.run(&text.replace("\r\n", "\n").replace('\r', "\n"));
        }
        CommandAccess {
            allowed: checker.denied.is_empty(),
            denied: checker.denied,
        }
    }
}

/// A piece of shell still to be judged.
struct PendingScript {
    text: String,
    state: ShellState,
    depth: usize,
}

/// The judging of one command.
struct CommandChecker<'a> {
    view: &'a AccessView,
    readers: RecursiveReaders,
    /// Are words judged that are no paths?
    checks_all_words: bool,
    home: Option<PathBuf>,
    denied: Vec<DeniedOperand>,
    known: HashMap<PathBuf, Option<Denial>>,
    scripts: VecDeque<PendingScript>,
    seen_scripts: HashSet<(String, Vec<PathBuf>)>,
    depth: usize,
    /// Folder entries that patterns may still look at.
    entries_left: usize,
    /// Those that programs which read folders may still have us look at.
    tree_left: usize,
    /// Containers the command being judged runs in.
    containers: usize,
    started: Instant,
    exhausted: bool,
}

impl Denial {
    /// The part of `path` that the rule names itself. Other names are not told: they
    /// are not to be found out by asking for all of a folder.
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
            known: HashMap::new(),
            scripts: VecDeque::new(),
            seen_scripts: HashSet::new(),
            depth: 0,
            entries_left: wildcard::MAX_ENTRIES,
            tree_left: recursive_readers::MAX_ENTRIES,
            containers: 0,
            started: Instant::now(),
            exhausted: false,
        }
    }

    /// The folders a command may be run in: any root. Without a root, those of the
    /// files that are open.
    fn start(&self) -> ShellState {
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
        self.script(text, &self.start());
        while let Some(script) = self.scripts.pop_front() {
            if self.is_exhausted() {
                return;
            }
            self.depth = script.depth;
            self.parse(&script.text, script.state);
        }
    }

    /// Notes a script that runs as part of the command.
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

    /// Parses and walks a script on a thread of its own: the parser needs stack
    /// by the depth of its input, and panics on some.
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
                    .map_err(|_| "there is no thread to parse it on")?
                    .join()
                    .unwrap_or(Err("the parser gave up"))
            }),
        };
        if let Err(why) = outcome {
            self.check_rough_words(text, &state, why);
        }
    }

    /// The way out when a command is not understood: everything in it that could
    /// be a path is judged.
    fn check_rough_words(&mut self, text: &str, state: &ShellState, why: &str) {
        let how = format!("the command names it (every word was judged, because {why})");
        for word in expansion::rough_words(text) {
            if self.is_exhausted() {
                return;
            }
            self.check_word(&ExpandedWord::unquoted(&word), &state.dirs, &how);
        }
    }

    /// Judges everything a word could name.
    fn check_word(&mut self, field: &ExpandedWord, dirs: &[PathBuf], how: &str) {
        if field.has_pattern() {
            self.check_matches(field, dirs, how);
        }
        for piece in field.path_candidates() {
            self.check_path(&piece, dirs, how);
        }
    }

    /// Judges one path as written, seen from each folder the command may be in.
    fn check_path(&mut self, written: &str, dirs: &[PathBuf], how: &str) {
        let impossible = |name: &str| name.chars().nth(MAX_NAME).is_some();
        if written.is_empty() || written.contains('\0') || written.split('/').any(impossible) {
            return;
        }
        let path = working_folder(written).unwrap_or(Path::new(written));
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

    /// Why a path is denied, if it is. Only rules deny here, not the outside.
    fn denial(&mut self, path: &Path) -> Option<Denial> {
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

    /// Is all spent that one command is worth? Then it is refused, once.
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
                "the command holds more than can be judged; run it in parts".to_owned(),
            );
        }
        self.exhausted
    }

    fn denial_of(&self, path: &Path) -> Option<Denial> {
        let folded = AbsPath::new(path)?;
        if let Verdict::Denied(denial) = self.view.check_absolute(&folded) {
            return Some(denial);
        }
        // Behind a link, `..` is not where the text says.
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

/// What follows `/proc/self/cwd/`, of any process: it is taken for the one that runs.
fn working_folder(written: &str) -> Option<&Path> {
    let (_, rest) = written.strip_prefix("/proc/")?.split_once('/')?;
    let rest = rest.strip_prefix("cwd")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| Path::new(rest.trim_start_matches('/')))
}
