//! Checks shell commands: would a command read a denied file?
//!
//! The result is advice, not a sandbox: what a program does internally, such as names that code
//! builds, is not checked. What cannot be parsed or checked completely is denied.
//!
//! [`mod@parse`] parses the text. This module walks the commands, follows both branches of a
//! condition, and keeps the variables, the working directories, and the text that flows through
//! pipes. [`expand`] expands words; [`programs`] is the table of what programs do with them.
//! [`guard`] checks what a command changes and runs, instead of what it reads. [`judge`] checks paths, [`tree`] searches folders, [`names`] follows the names that outputs contain, and [`git`] asks git which files it would print.

mod deny;
mod expand;
mod find;
mod flow;
mod git;
mod guard;
mod judge;
mod names;
mod parse;
mod programs;
mod run;
mod scripts;
mod syntax;
mod tree;
mod values;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    rc::Rc,
};

use sightline_protocol::{access::CommandAccess, settings::RecursiveReaders};

pub(crate) use self::git::output_of;
use self::{
    deny::LeftOut,
    expand::{Field, Output, expand, expand_whole},
    git::{Changes, Git},
    guard::Guarded,
    judge::Judge,
    programs::{Arguments, Use, has},
    scripts::powershell,
    syntax::{Body, Command, Part, Place, Redirect, RedirectKind, Simple, Word},
};
pub use self::{
    guard::{Change, CommandGuard, guard_changes, guard_command},
    programs::starts_with_command,
};
use super::AccessView;
use sightline_base::{limits::MAX_COMMAND_BYTES, path::AbsPath};

/// Maximum scripts in a command: `sh -c`, `eval`, interpreters.
const MAX_SCRIPTS: usize = 200;
/// Maximum nesting of scripts, compound commands, and commands that run others. Bounds the use of
/// the stack.
const MAX_NESTING: usize = 64;
/// Maximum possible working directories.
const MAX_DIRS: usize = 128;

/// Programs that assign their operands to variables.
pub(super) const DECLARATIONS: &str = "export declare typeset local readonly alias";
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
        let mut checker = Checker::new(self, readers);
        checker.check(text);
        let instead = checker.instead(self, text);
        CommandAccess {
            allowed: checker.judge.denied.is_empty(),
            denied: checker.judge.denied,
            instead,
            written: checker.judge.written.into_iter().collect(),
        }
    }

    /// Returns whether a command line may be shown: it names no denied file, not even in a pattern.
    /// Recursive reads do not matter.
    pub fn may_show_command(&self, text: &str) -> bool {
        let mut checker = Checker {
            checks_all_words: true,
            ..Checker::new(self, RecursiveReaders::Allow)
        };
        checker.check(text);
        checker.judge.denied.is_empty()
    }
}

/// State of the shell that runs a command.
#[derive(Clone, Default)]
struct State {
    /// Possible working directories.
    dirs: Vec<PathBuf>,
    first_dirs: Vec<PathBuf>,
    /// The directories if a `cd` fails, after which `&&` follows.
    left: Vec<PathBuf>,
    variables: HashMap<String, Vec<Field>>,
    /// Standard input.
    stdin: Output,
    /// Whether the input is a pipe or file.
    is_fed: bool,
    /// Whether the output goes to another command.
    is_consumed: bool,
    /// Whether the output goes to commands that only count it.
    is_counted: bool,
    dotglob: bool,
    /// Whether a program is only perhaps the one that runs: a word of `docker` and the like.
    is_guess: bool,
}

impl State {
    fn assign(&mut self, name: &str, values: impl IntoIterator<Item = Field>) {
        let known = self.variables.remove(name).unwrap_or_default();
        let mut seen = HashSet::new();
        let is_new = |value: &Field| !value.names.is_empty() || seen.insert(value.units.clone());
        let values = values.into_iter().chain(known).filter(is_new).collect();
        self.variables.insert(name.to_owned(), values);
    }

    /// Changes the directory like `cd`; `None` if the directory is unknown.
    fn enter(&mut self, folder: Option<&str>) {
        let Some(folder) = folder else {
            let first = self.first_dirs.clone();
            self.add_dirs(first);
            return;
        };
        let mut entered = Vec::new();
        for dir in &self.dirs {
            let Some(target) = AbsPath::new(&dir.join(folder)) else {
                continue;
            };
            if !target.as_path().is_dir() {
                self.left.push(dir.clone());
            }
            entered.push(target.as_path().to_path_buf());
        }
        self.dirs.clear();
        self.add_dirs(entered);
    }

    /// Adds the directories in which commands run if a `cd` failed.
    fn settle(&mut self) {
        let left = std::mem::take(&mut self.left);
        self.add_dirs(left);
    }

    fn add_dirs(&mut self, dirs: Vec<PathBuf>) {
        for dir in dirs {
            if self.dirs.len() < MAX_DIRS && !self.dirs.contains(&dir) {
                self.dirs.push(dir);
            }
        }
    }
}

/// The check of one command line.
struct Checker<'a> {
    judge: Judge<'a>,
    /// Also check words that are known not to be paths.
    checks_all_words: bool,
    home: Option<PathBuf>,
    /// Contents of files that the command writes.
    files: HashMap<PathBuf, Output>,
    /// The bodies of functions.
    functions: BTreeMap<String, Vec<Rc<Body>>>,
    /// The functions that run, and those that ran.
    calls: Vec<String>,
    called: HashSet<String>,
    scripts_left: usize,
    /// The command line.
    text: String,
    /// Where the current script is in it. `None` if the command makes it.
    place: Option<Place>,
    /// Nesting of commands.
    nesting: usize,
    /// The files that a command to run instead leaves out, and whether that is sufficient.
    fixes: Vec<LeftOut>,
    is_fixable: bool,
    /// What earlier commands change of what git prints.
    changes: Changes,
    /// Whether the current program reads folders among its operands.
    reads_folders: bool,
    /// Whether words without `/` are names of other things than files for the current program.
    takes_names: bool,
    /// Whether outputs of the command line are followed to programs that count them.
    follows_counts: bool,
    /// Decides instead of the access rules.
    guard: Option<Guarded<'a>>,
}

/// A state for expansions.
struct Scope<'c, 'a> {
    checker: &'c mut Checker<'a>,
    state: &'c State,
}

impl Scope<'_, '_> {
    /// Returns the possible values of a variable. `None` if it is not set in the text.
    fn variable(&self, name: &str) -> Option<Vec<Field>> {
        self.state.variables.get(name).cloned()
    }

    fn dirs(&self) -> Vec<String> {
        let dirs = self.state.dirs.iter();
        dirs.map(|dir| dir.to_string_lossy().into_owned()).collect()
    }

    fn home(&self) -> Option<String> {
        Some(self.checker.home.as_ref()?.to_str()?.to_owned())
    }

    /// Runs the commands of a substitution.
    fn output(&mut self, body: &[Command]) -> Output {
        let mut state = self.state.clone();
        (state.is_consumed, state.is_counted) = (true, false);
        self.checker.list(body, &mut state)
    }

    /// Refuses the command: a word is too complex.
    fn refuse_word(&mut self) {
        self.checker
            .refuse("a word of the command is too complex to check; simplify it");
    }

    /// Counts characters of a value. The check ends if there are too many of them.
    fn spend(&mut self, chars: usize) {
        self.checker.judge.spend(chars);
    }

    /// Returns whether a limit of the check is reached.
    fn is_exhausted(&mut self) -> bool {
        self.checker.judge.is_exhausted()
    }
}

impl<'a> Checker<'a> {
    fn new(view: &'a AccessView, readers: RecursiveReaders) -> Self {
        Self {
            judge: Judge::new(view, readers),
            checks_all_words: false,
            home: sightline_base::path::home_dir(),
            files: HashMap::new(),
            functions: BTreeMap::new(),
            calls: Vec::new(),
            called: HashSet::new(),
            scripts_left: MAX_SCRIPTS,
            text: String::new(),
            place: None,
            nesting: 0,
            fixes: Vec::new(),
            is_fixable: true,
            changes: Changes::default(),
            reads_folders: true,
            takes_names: false,
            follows_counts: false,
            guard: None,
        }
    }

    fn check(&mut self, text: &str) {
        if text.len() > MAX_COMMAND_BYTES {
            let reason = format!(
                "the command has {} bytes, which exceeds the limit of {MAX_COMMAND_BYTES}; split it or run it from a script",
                text.len()
            );
            self.refuse(&reason);
            return;
        }
        // A command starts in a root, or without one in the folder of an open file.
        let scopes = &self.judge.view.scopes;
        let has_root = scopes.iter().any(|scope| scope.is_root);
        let scopes = scopes.iter().filter(|scope| scope.is_root || !has_root);
        let dirs: Vec<PathBuf> = scopes
            .map(|scope| scope.path().as_path().to_path_buf())
            .collect();
        let guarded = self.guard.as_ref().map(|guard| vec![guard.folder.clone()]);
        let dirs = guarded.unwrap_or(dirs);
        let mut state = State {
            first_dirs: dirs.clone(),
            dirs,
            ..State::default()
        };
        let first = state.dirs.iter().map(|dir| dir.to_string_lossy());
        let first: Vec<Field> = first.map(|dir| Field::quoted(&dir)).collect();
        state.assign("OLDPWD", first);
        // Scripts written on Windows.
        let plain = text.replace("\r\n", "\n").replace('\r', "\n");
        self.is_fixable = plain == text;
        self.text.clone_from(&plain);
        let place = Some(Place::default());
        self.follows_counts = names::may_follow_counts(text);
        self.script_at(&plain, place, &mut state);
        self.run_uncalled(&mut state);
    }

    fn refuse(&mut self, reason: &str) {
        self.is_fixable = false;
        self.judge.refuse("", reason);
    }

    fn list(&mut self, commands: &[Command], state: &mut State) -> Output {
        let mut output = Output::default();
        let outer = std::mem::take(&mut state.left);
        let first = state.dirs.clone();
        let mut start = first.clone();
        // Of commands that `&&` and `||` join: whether the next one may not run, and others after it do.
        let (mut may_skip, mut is_expected, mut has_or) = (false, true, false);
        let mut joins = false;
        for command in commands {
            if self.judge.is_exhausted() {
                break;
            }
            match command {
                Command::And => may_skip |= !is_expected,
                Command::Or => {
                    (may_skip, has_or) = (true, true);
                    state.settle();
                }
                Command::Background => state.add_dirs(start.clone()),
                Command::Branch => state.add_dirs(first.clone()),
                _ => {
                    if !joins {
                        state.settle();
                        start.clone_from(&state.dirs);
                        (may_skip, has_or) = (false, false);
                    }
                    let dirs = state.dirs.clone();
                    output.append(self.command(command, state));
                    if may_skip && state.dirs != dirs {
                        state.left.extend(dirs);
                    }
                    if has_or {
                        state.settle();
                    }
                    is_expected = command.is_expected();
                }
            }
            joins = matches!(command, Command::And | Command::Or);
            if state.dirs.len() >= MAX_DIRS {
                return self.give_up();
            }
        }
        state.settle();
        state.left = outer;
        output
    }

    /// Refuses a command that exceeds a limit.
    fn give_up(&mut self) -> Output {
        self.is_fixable = false;
        self.judge.exhaust();
        Output::default()
    }

    /// Checks a command inside another one.
    fn nested(&mut self, check: impl FnOnce(&mut Self) -> Output) -> Output {
        if self.nesting >= MAX_NESTING {
            return self.give_up();
        }
        self.nesting += 1;
        let output = check(self);
        self.nesting -= 1;
        output
    }

    fn nested_command(&mut self, command: &Command, state: &mut State) -> Output {
        match command {
            Command::Simple(simple) => self.simple(simple, state),
            Command::And | Command::Or | Command::Background | Command::Branch => Output::default(),
            Command::Pipeline(stages) => {
                let mut passed = state.stdin.clone();
                let mut counted = names::counted(stages, state.is_counted);
                for (at, command) in stages.iter().enumerate() {
                    let mut stage = state.clone();
                    stage.is_counted = counted.next().unwrap_or(false);
                    stage.is_fed |= at > 0;
                    stage.is_consumed |= at + 1 < stages.len();
                    stage.stdin = passed;
                    passed = self.command(command, &mut stage);
                }
                passed
            }
            Command::Group {
                body,
                redirects,
                is_subshell,
            } => self.redirected(redirects, state, |checker, state| {
                if *is_subshell {
                    return checker.list(body, &mut state.clone());
                }
                // Its commands may not run.
                let dirs = state.dirs.clone();
                let output = checker.list(body, state);
                state.add_dirs(dirs);
                output
            }),
            Command::For {
                name,
                words,
                body,
                redirects,
            } => {
                let fields = match words.as_slice() {
                    // `for f; do`
                    [] => state.variables.get("@").cloned().unwrap_or_default(),
                    words => self.expand_words(words, state),
                };
                let values = self.listed_values(fields, state);
                state.assign(name, values);
                let dirs = state.dirs.clone();
                let output =
                    self.redirected(redirects, state, |checker, state| checker.list(body, state));
                state.add_dirs(dirs);
                output
            }
            Command::Function { name, body } => {
                let known = self.functions.entry(name.to_lowercase()).or_default();
                known.push(Rc::clone(body));
                Output::default()
            }
            Command::Test(words) => {
                let fields = self.expand_words(words, state);
                if self.checks_all_words {
                    for field in fields {
                        self.use_field(&field, Use::Read, "test", state);
                    }
                }
                Output::default()
            }
            Command::Arithmetic(words) => {
                for field in self.expand_words(words, state) {
                    self.use_field(&field, Use::Read, "an expression", state);
                }
                Output::default()
            }
        }
    }

    fn expand_words(&mut self, words: &[Word], state: &State) -> Vec<Field> {
        let mut scope = Scope {
            checker: self,
            state,
        };
        words
            .iter()
            .flat_map(|word| expand(word, &mut scope))
            .collect()
    }

    /// Runs commands with redirections.
    fn redirected(
        &mut self,
        redirects: &[Redirect],
        state: &mut State,
        run: impl FnOnce(&mut Self, &mut State) -> Output,
    ) -> Output {
        let outer = (state.stdin.clone(), state.is_fed);
        let targets = self.redirects(redirects, state, Use::Read);
        let is_consumed = state.is_consumed;
        state.is_consumed |= !targets.is_empty();
        let output = run(self, state);
        state.is_consumed = is_consumed;
        self.keep_files(&targets, &output, state);
        (state.stdin, state.is_fed) = outer;
        output
    }

    /// Checks redirections and sets the input. Returns the files that get the output.
    fn redirects(&mut self, redirects: &[Redirect], state: &mut State, reads: Use) -> Vec<Field> {
        let mut targets = Vec::new();
        for redirect in redirects {
            let Some(word) = redirect.target.get() else {
                continue;
            };
            if redirect.kind == RedirectKind::Text {
                let mut scope = Scope {
                    checker: self,
                    state,
                };
                let fields = expand_whole(word, &mut scope);
                let texts: Vec<String> = fields.iter().map(Field::text).collect();
                state.stdin = Output {
                    text: Some(texts.join("\n")),
                    names: fields
                        .iter()
                        .flat_map(|field| field.names.to_vec())
                        .collect(),
                    ..Output::default()
                };
                state.is_fed = true;
                continue;
            }
            for field in self.expand_words(std::slice::from_ref(word), state) {
                let text = field.text();
                let is_number = text == "-" || text.bytes().all(|byte| byte.is_ascii_digit());
                match redirect.kind {
                    RedirectKind::Duplicate if is_number => {}
                    RedirectKind::Read => {
                        let places = state.dirs.iter().map(|dir| dir.join(&text));
                        let written = places.filter_map(|place| self.files.get(&place)).next();
                        if let Some(file) = field.file.as_deref().or(written) {
                            state.stdin = file.clone();
                        } else if !text.starts_with("/dev/") {
                            state.stdin = Output {
                                path: Some(text.clone()),
                                ..Output::default()
                            };
                        }
                        self.guard_copy(std::slice::from_ref(&field), &state.dirs);
                        state.is_fed = text != "/dev/null";
                        self.use_field(&field, reads, "a redirection", state);
                    }
                    _ => {
                        self.guard_redirection(&field, state);
                        self.use_field(&field, Use::Write, "a redirection", state);
                        targets.extend(redirect.is_output.then_some(field));
                    }
                }
            }
        }
        targets
    }

    fn simple(&mut self, simple: &Simple, state: &mut State) -> Output {
        let outer = (state.stdin.clone(), state.is_fed);
        let mut words = self.expand_words(&simple.words, state);
        if words.first().is_some_and(powershell::is_for_each) {
            // `$_` is an item there.
            state.variables.remove("_");
            state.assign("_", flow::fields_of(&state.stdin));
            words = self.expand_words(&simple.words, state);
        }
        if let Some([Part::Variable { name, .. }]) = simple.words.first().map(|it| &it.parts[..])
            && words.get(1).is_some_and(|word| word.text() == "=")
        {
            // `$x = 'a'` of PowerShell
            state.assign(name, words[2..].to_vec());
        }
        for assignment in &simple.assignments {
            let fields = self.assign(assignment, state);
            // A program may read files named in its environment. `DEBUG=*` names none.
            let is_choice = |it: &Field| it.has_glob() && !it.text().contains(['.', '/']);
            let first = words.first().map(Field::text).unwrap_or_default();
            let is_declaration = has(DECLARATIONS, &first) && first != "export";
            for field in fields
                .iter()
                .filter(|it| !words.is_empty() && !is_declaration && !is_choice(it))
            {
                self.takes_names = true;
                self.use_field(field, Use::Read, "the environment", state);
                self.takes_names = false;
            }
        }
        let arguments = Arguments::new(&words);
        let is_stat = match words.first().map(Field::text).as_deref() {
            Some("git") => Git::new(&words, |_| None).only_index(),
            _ => arguments
                .program
                .is_some_and(|program| program.operands() == Use::Stat),
        };
        let is_counted = state.is_counted;
        // zsh also passes the output to a pipe.
        state.is_counted |= !state.is_consumed && simple.redirects.iter().any(names::is_discarded);
        let is_stat = is_stat || self.only_counts(&words, state);
        let reads = if is_stat { Use::Stat } else { Use::Read };
        let targets = self.redirects(&simple.redirects, state, reads);
        let is_consumed = state.is_consumed;
        state.is_consumed |= !targets.is_empty();
        let output = self.run(&words, state);
        (state.is_consumed, state.is_counted) = (is_consumed, is_counted);
        self.keep_files(&targets, &output, state);
        state.assign("_", words.last().cloned());
        (state.stdin, state.is_fed) = outer;
        if targets.is_empty() {
            output
        } else {
            Output::default()
        }
    }
}
