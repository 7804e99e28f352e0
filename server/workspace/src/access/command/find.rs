//! Evaluates the expression of a `find` command for the entries of its directories.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use sightline_protocol::settings::RecursiveReaders;

use super::{
    CommandChecker,
    invocation::Invocation,
    name_filter::{NamePattern, TreeEntry},
    options::ProgramUse,
    program_table::{NON_READING_COMMANDS, PatternStyle, has},
    recursive_readers::{EntryAction, TreeSearch, reads_folders},
    shell::ShellState,
};

/// Maximum nesting of an expression. Deeper parts count as unknown.
const MAX_DEPTH: usize = 50;
/// Maximum directories that a command of `-exec` reads recursively.
const MAX_RECURSIVE_DIRS: usize = 1_000;

/// Part of an expression.
enum Expr {
    /// Evaluated in order while true.
    All(Vec<Expr>),
    /// Evaluated in order until one is true.
    Any(Vec<Expr>),
    Not(Box<Expr>),
    Matches(NamePattern),
    /// `-type`: whether it is `d`.
    Folder(bool),
    Prune,
    /// A test that cannot be evaluated.
    Unknown,
    /// An action.
    Action {
        reads: bool,
    },
}

/// Effect of an expression on an entry.
#[derive(Default)]
struct ExprOutcome {
    /// Whether an action may read the entry.
    read: bool,
    /// Whether an action may print the entry.
    printed: bool,
    /// Whether the entry is certainly not descended into.
    pruned: bool,
}

/// A literal name or path in a test.
struct LiteralTest {
    text: String,
    is_name: bool,
}

/// A parsed `find` command.
pub(super) struct Find {
    /// Indices of the words of its directories.
    starts: Vec<usize>,
    expr: Expr,
    has_action: bool,
    /// Whether one of the actions reads.
    has_reader: bool,
    max_depth: usize,
    /// Names and paths without patterns in tests.
    literals: Vec<LiteralTest>,
    /// Indices of words that are not paths.
    pub(super) non_paths: Vec<usize>,
    /// Indices of words that start the commands of `-exec`.
    pub(super) commands: Vec<usize>,
    /// Whether one of these commands reads directories itself.
    runs_reader: bool,
}

struct ExprParser<'a> {
    invocation: &'a Invocation,
    at: usize,
    find: Find,
}

impl Find {
    pub(super) fn read(invocation: &Invocation, at: usize) -> Self {
        let mut parser = ExprParser {
            invocation,
            at: at + 1,
            find: Self {
                starts: Vec::new(),
                expr: Expr::Unknown,
                has_action: false,
                has_reader: false,
                max_depth: usize::MAX,
                literals: Vec::new(),
                non_paths: Vec::new(),
                commands: Vec::new(),
                runs_reader: false,
            },
        };
        while parser.at < invocation.len() {
            match invocation.exact(parser.at) {
                Some("-H" | "-L" | "-P") => {}
                Some("-D") => parser.at += 1,
                Some(word) if word.starts_with('-') || matches!(word, "(" | "!") => break,
                _ => parser.find.starts.push(parser.at),
            }
            parser.at += 1;
        }
        let mut parts = Vec::new();
        while parser.at < invocation.len() {
            // An unmatched closing parenthesis ends nothing.
            parts.push(parser.any(0));
            parser.at += 1;
        }
        Self {
            expr: Expr::All(parts),
            ..parser.find
        }
    }

    fn judge(&self, entry: &TreeEntry<'_>) -> ExprOutcome {
        let mut outcome = ExprOutcome::default();
        if entry.depth <= self.max_depth {
            let (may_hold, _) = evaluate(&self.expr, entry, true, &mut outcome);
            outcome.printed |= may_hold && !self.has_action;
        }
        outcome
    }
}

/// Returns whether an expression can be true and whether it can be false for an entry. `is_sure` is
/// false if it may not be evaluated at all.
fn evaluate(
    expr: &Expr,
    entry: &TreeEntry<'_>,
    is_sure: bool,
    outcome: &mut ExprOutcome,
) -> (bool, bool) {
    let exactly = |holds: bool| (holds, !holds);
    match expr {
        Expr::All(parts) | Expr::Any(parts) => {
            // The chain ends at the first false part of `All`, or the first true part of `Any`.
            let is_all = matches!(expr, Expr::All(_));
            let (mut goes_on, mut ends) = (true, false);
            for part in parts {
                if !goes_on {
                    break;
                }
                let (holds, fails) = evaluate(part, entry, is_sure && !ends, outcome);
                (goes_on, ends) = if is_all {
                    (holds, ends || fails)
                } else {
                    (fails, ends || holds)
                };
            }
            if is_all {
                (goes_on, ends)
            } else {
                (ends, goes_on)
            }
        }
        Expr::Not(inner) => {
            let (holds, fails) = evaluate(inner, entry, is_sure, outcome);
            (fails, holds)
        }
        Expr::Matches(pattern) => exactly(pattern.matches(entry)),
        Expr::Folder(wanted) => exactly(entry.is_dir == *wanted),
        Expr::Prune => {
            outcome.pruned |= is_sure;
            (true, false)
        }
        Expr::Unknown => (true, true),
        Expr::Action { reads } => {
            outcome.printed = true;
            outcome.read |= reads;
            (true, *reads)
        }
    }
}

impl ExprParser<'_> {
    fn word(&self) -> Option<&str> {
        self.invocation.exact(self.at)
    }

    /// Parses up to a closing parenthesis or the end.
    fn any(&mut self, depth: usize) -> Expr {
        let mut alternatives = vec![self.all(depth)];
        while matches!(self.word(), Some("-o" | "-or" | ",")) {
            if self.word() == Some(",") {
                // The result of the left side is discarded.
                let never = Expr::Not(Box::new(Expr::All(Vec::new())));
                alternatives = vec![Expr::All(vec![Expr::Any(alternatives), never])];
            }
            self.at += 1;
            alternatives.push(self.all(depth));
        }
        Expr::Any(alternatives)
    }

    fn all(&mut self, depth: usize) -> Expr {
        let mut parts = Vec::new();
        while self.at < self.invocation.len() {
            match self.word() {
                Some("-o" | "-or" | "," | ")") => break,
                Some("-a" | "-and") => self.at += 1,
                _ => parts.push(self.primary(depth)),
            }
        }
        Expr::All(parts)
    }

    fn primary(&mut self, depth: usize) -> Expr {
        let Some(word) = self.word().map(str::to_owned) else {
            self.at += 1;
            return Expr::Unknown;
        };
        self.at += 1;
        match word.as_str() {
            "(" | "!" | "-not" if depth >= MAX_DEPTH => Expr::Unknown,
            "(" => {
                let inner = self.any(depth + 1);
                self.at += 1;
                inner
            }
            "!" | "-not" => {
                if self.at >= self.invocation.len() {
                    return Expr::Unknown;
                }
                Expr::Not(Box::new(self.primary(depth + 1)))
            }
            "-name" => self.pattern(PatternStyle::Name, NamePattern::new),
            "-iname" => self.pattern(PatternStyle::Name, NamePattern::ignoring_case),
            "-path" | "-wholename" => self.pattern(PatternStyle::Exact, NamePattern::new),
            "-ipath" | "-iwholename" => {
                self.pattern(PatternStyle::Exact, NamePattern::ignoring_case)
            }
            "-regex" | "-iregex" | "-lname" | "-ilname" => {
                self.find.non_paths.push(self.at);
                self.at += 1;
                Expr::Unknown
            }
            "-type" => {
                let kind = self.word().map(str::to_owned);
                self.at += 1;
                match kind.as_deref() {
                    Some("d") => Expr::Folder(true),
                    Some("f") => Expr::Folder(false),
                    _ => Expr::Unknown,
                }
            }
            "-maxdepth" => {
                let depth = self.word().and_then(|word| word.parse().ok());
                self.find.max_depth = depth.unwrap_or(usize::MAX);
                self.at += 1;
                Expr::All(Vec::new())
            }
            "-mindepth" => {
                self.at += 1;
                Expr::Unknown
            }
            "-true" | "-depth" | "-d" | "-xdev" | "-mount" | "-noleaf" => Expr::All(Vec::new()),
            "-prune" => Expr::Prune,
            "-exec" | "-execdir" | "-ok" | "-okdir" => self.command(),
            "-print" | "-print0" | "-ls" | "-delete" => self.action(false),
            "-printf" | "-fprint" | "-fprint0" | "-fls" => {
                self.at += 1;
                self.action(false)
            }
            "-fprintf" => {
                self.at += 2;
                self.action(false)
            }
            "-empty" | "-readable" | "-writable" | "-executable" | "-nouser" | "-nogroup"
            | "-false" | "-quit" | "-follow" | "-daystart" => Expr::Unknown,
            word if word.starts_with('-') => {
                // Any other test, with its value.
                self.at += 1;
                Expr::Unknown
            }
            _ => Expr::Unknown,
        }
    }

    fn action(&mut self, reads: bool) -> Expr {
        self.find.has_action = true;
        self.find.has_reader |= reads;
        Expr::Action { reads }
    }

    fn pattern(&mut self, style: PatternStyle, new: fn(&str, PatternStyle) -> NamePattern) -> Expr {
        let at = self.at;
        self.at += 1;
        let Some(text) = self.invocation.exact(at) else {
            return Expr::Unknown;
        };
        self.find.non_paths.push(at);
        if !text.contains(['*', '?', '[', '\\']) {
            self.find.literals.push(LiteralTest {
                text: text.to_owned(),
                is_name: style == PatternStyle::Name,
            });
        }
        let pattern = new(text, style);
        if pattern.is_too_large() {
            return Expr::Unknown;
        }
        Expr::Matches(pattern)
    }

    /// Parses the command of an `-exec`.
    fn command(&mut self) -> Expr {
        let start = self.at;
        while self.at < self.invocation.len() {
            self.at += 1;
            if matches!(self.invocation.exact(self.at - 1), Some(";" | "+")) {
                break;
            }
        }
        self.find.commands.push(start);
        let inner = ProgramUse::at(self.invocation, start);
        self.find.runs_reader |= inner.is_some_and(|inner| {
            let reader = inner.program.reader.as_ref();
            reader.is_some_and(|reader| reader.when.is_empty() || reads_folders(reader, &inner))
        });
        let reads = !has(NON_READING_COMMANDS, &self.invocation.program(start));
        self.action(reads)
    }
}

impl CommandChecker<'_> {
    /// Checks what a `find` command reads, and the names in its tests.
    pub(super) fn check_find(&mut self, invocation: &Invocation, find: &Find, state: &ShellState) {
        let fields: Vec<_> = find
            .starts
            .iter()
            .flat_map(|at| invocation.fields(*at))
            .collect();
        let mut starts: Vec<(PathBuf, String)> = Vec::new();
        // The directories are unknown; literal names below them are still checked.
        let mut unknown: Vec<(PathBuf, String)> = Vec::new();
        for field in &fields {
            if field.has_pattern() {
                let places = self.matches(field, &state.dirs);
                starts.extend(places.into_iter().map(|place| {
                    let path = place.to_string_lossy().into_owned();
                    (place, path)
                }));
            } else if let Some(text) = field.known() {
                starts.extend(state.dirs.iter().map(|dir| (dir.join(&text), text.clone())));
            } else {
                unknown.extend(state.dirs.iter().map(|dir| (dir.clone(), ".".to_owned())));
            }
        }
        if fields.is_empty() {
            starts.extend(state.dirs.iter().map(|dir| (dir.clone(), ".".to_owned())));
        }
        for literal in &find.literals {
            for (place, start) in starts.iter().chain(&unknown) {
                self.check_literal(find, literal, place, start);
            }
        }
        if self.readers == RecursiveReaders::Allow || !(find.has_reader || state.list_used) {
            return;
        }
        // Directories that a command of `-exec` reads recursively.
        let whole: RefCell<Vec<String>> = RefCell::default();
        let is_read = |entry: &TreeEntry<'_>, outcome: &ExprOutcome| {
            let mut whole = whole.borrow_mut();
            let is_below = |folder: &String| {
                let rest = entry.path.strip_prefix(folder.as_str());
                rest.is_some_and(|rest| rest.starts_with('/'))
            };
            if find.runs_reader && outcome.read && entry.is_dir && whole.len() < MAX_RECURSIVE_DIRS
            {
                whole.push(entry.path.to_owned());
            }
            outcome.read || whole.iter().any(is_below)
        };
        let search = TreeSearch {
            program: "find",
            hint: "`-path PATH -prune -o` or `-not -path PATH`",
            skips_hidden: false,
            skips_ignored: false,
            visit: &|entry| {
                let outcome = find.judge(entry);
                let reads = is_read(entry, &outcome);
                EntryAction {
                    reads: reads || (outcome.printed && state.list_used),
                    enters: (!outcome.pruned && entry.depth < find.max_depth)
                        || (find.runs_reader && reads),
                }
            },
        };
        for (place, start) in starts {
            let path = start.trim_end_matches('/');
            let top = TreeEntry {
                path,
                is_dir: true,
                depth: 0,
            };
            is_read(&top, &find.judge(&top));
            self.check_tree(&place, &start, &search);
        }
    }

    /// Checks a literal name in a test, even if no such file exists.
    fn check_literal(&mut self, find: &Find, literal: &LiteralTest, place: &Path, start: &str) {
        if self.is_exhausted() {
            return;
        }
        let start = start.trim_end_matches('/');
        let (path, depth) = if literal.is_name {
            (format!("{start}/{}", literal.text), 1)
        } else {
            let below = literal.text.strip_prefix(start);
            let Some(below) = below.and_then(|below| below.strip_prefix('/')) else {
                return;
            };
            (literal.text.clone(), 1 + below.matches('/').count())
        };
        let is_taken = [true, false].into_iter().any(|is_dir| {
            let path = &path;
            let outcome = find.judge(&TreeEntry {
                path,
                is_dir,
                depth,
            });
            outcome.read || outcome.printed
        });
        if !is_taken {
            return;
        }
        let place = place.join(path[start.len()..].trim_start_matches('/'));
        if let Some(denial) = self.denial(&place) {
            self.deny(&literal.text, "`find` would match it", denial);
        }
    }
}
