//! `find`: which of the denied files below its folders reach one of its actions.
//!
//! Only tests of names, paths and kinds are evaluated. Every other test may be true or false.

use std::path::Path;

use super::{
    expand::Field,
    judge::Judge,
    programs::{Use, has},
    syntax::{DeniedName, Fix},
    tree::{Entry, Search, Visit, joined, search},
};
use crate::git_glob::{Case, Matcher, Subject, Syntax};

/// Maximum nesting of parentheses.
const MAX_DEPTH: usize = 30;
/// Options that apply to the whole command, without a value and with one.
const GLOBAL_FLAGS: &str =
    "-depth -d -mount -xdev -noleaf -ignore_readdir_race -warn -nowarn -daystart -follow";
const GLOBAL_VALUES: &str = "-maxdepth -mindepth -regextype";
/// Tests without a value.
const FLAGS: &str =
    "-empty -executable -readable -writable -nouser -nogroup -true -false -H -L -P -E -X -s -x";

/// What `find` does with a file.
#[derive(Debug)]
pub(super) enum Action {
    Print,
    Delete,
    /// `-exec`: a command, with `{}` for the file.
    Run(Vec<Field>),
}

/// A `find` command.
#[derive(Default)]
pub(super) struct Find {
    pub(super) roots: Vec<Field>,
    /// Patterns of names that it looks for.
    pub(super) patterns: Vec<Field>,
    pub(super) uses: Vec<(Field, Use)>,
    pub(super) actions: Vec<Action>,
    /// The operands of `-o`. An entry reaches the first one whose tests are true.
    branches: Vec<Branch>,
    max_depth: Option<usize>,
    /// Where to insert tests in the command line, or 0.
    tests_at: usize,
}

/// Tests of which all must be true, and what follows them.
#[derive(Default)]
struct Branch {
    tests: Vec<Test>,
    /// Whether there are tests that are not evaluated.
    is_unknown: bool,
    prunes: bool,
    actions: Vec<usize>,
    /// Followed by a comma: later branches are evaluated too.
    passes_on: bool,
}

struct Test {
    kind: TestKind,
    is_negated: bool,
}

enum TestKind {
    /// Any of these patterns matches the name or the path.
    Names(Vec<Pattern>),
    /// `-type`
    Type(String),
}

struct Pattern {
    /// `None` if its matches are unknown.
    matcher: Option<Matcher>,
    is_path: bool,
    ignores_case: bool,
}

impl Find {
    pub(super) fn new(words: &[Field]) -> Self {
        let mut find = Self {
            tests_at: words[0].span.end,
            ..Self::default()
        };
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let text = word.text();
            if !has("-H -L -P", &text) {
                if text.starts_with(['-', '(', '!', ',']) {
                    break;
                }
                find.tests_at = word.span.end;
                find.roots
                    .extend((!word.has_unknown()).then(|| word.clone()));
            }
            at += 1;
        }
        // Tests follow options that apply to the whole command.
        let mut options = at;
        while let Some(word) = words.get(options) {
            options += match word.text().as_str() {
                text if has(GLOBAL_VALUES, text) => 2,
                text if has(GLOBAL_FLAGS, text) => 1,
                _ => break,
            };
            find.tests_at = words.get(options - 1).unwrap_or(word).span.end;
        }
        // A word that is not known may be empty.
        let empty = || words[1..at].iter().filter(|word| word.can_vanish());
        let may_be_empty = |word: &Field| empty().any(|empty| empty.span == word.span);
        if words[1..at].iter().all(may_be_empty) {
            find.roots.push(Field::quoted("."));
        }
        find.branches = find.or(&mut words[at..].iter(), MAX_DEPTH);
        if find.actions.is_empty() {
            find.actions.push(Action::Print);
            find.branches
                .iter_mut()
                .for_each(|branch| branch.actions.push(0));
        }
        find
    }

    /// Returns whether an action may be reached for a file or folder.
    pub(super) fn reaches(&self, path: &str, is_dir: bool) -> bool {
        (0..self.actions.len()).any(|action| self.reaches_action(action, path, is_dir))
    }

    /// Returns whether it does not descend into a folder.
    fn prunes(&self, path: &str) -> bool {
        self.branches
            .iter()
            .any(|branch| branch.prunes && branch.is_true(path, true) == Some(true))
    }

    fn reaches_action(&self, action: usize, path: &str, is_dir: bool) -> bool {
        for branch in &self.branches {
            let is_true = branch.is_true(path, is_dir);
            if branch.actions.contains(&action) && is_true != Some(false) {
                return true;
            }
            if is_true == Some(true) && !branch.passes_on {
                return false;
            }
        }
        false
    }

    /// Parses tests up to a closing parenthesis.
    fn or(&mut self, words: &mut std::slice::Iter<'_, Field>, depth: usize) -> Vec<Branch> {
        let mut branches = vec![Branch::default()];
        let mut is_negated = false;
        while let Some(word) = words.next() {
            let text = word.text();
            let Some(branch) = branches.last_mut() else {
                break;
            };
            match text.as_str() {
                ")" => break,
                "-a" | "-and" => continue,
                "!" | "-not" => {
                    is_negated = !is_negated;
                    continue;
                }
                "-o" | "-or" => branches.push(Branch::default()),
                "," => {
                    branches
                        .iter_mut()
                        .for_each(|branch| branch.passes_on = true);
                    branches.push(Branch::default());
                }
                "(" if depth > 0 => {
                    let group = self.or(words, depth - 1);
                    branch.add_group(group, is_negated);
                }
                _ => self.test(&text, words, branch, is_negated),
            }
            is_negated = false;
        }
        branches
    }

    fn test(
        &mut self,
        text: &str,
        words: &mut std::slice::Iter<'_, Field>,
        branch: &mut Branch,
        is_negated: bool,
    ) {
        let mut value = || words.next().cloned().unwrap_or_default();
        let mut add = |kind| branch.tests.push(Test { kind, is_negated });
        match text {
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" => {
                let value = value();
                add(TestKind::Names(vec![Pattern::new(text, &value)]));
                self.patterns.push(value);
            }
            "-type" => add(TestKind::Type(
                value().known().unwrap_or_else(|| "dfl".to_owned()),
            )),
            "-maxdepth" => self.max_depth = value().text().parse().ok(),
            "-prune" => branch.prunes = true,
            "-print" | "-print0" | "-ls" => self.add_action(branch, Action::Print),
            "-printf" => {
                value();
                self.add_action(branch, Action::Print);
            }
            "-delete" => self.add_action(branch, Action::Delete),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let mut command: Vec<Field> = Vec::new();
                while let Some(word) = words.next().filter(|word| word.text() != ";") {
                    if word.text() == "+" && command.last().is_some_and(|it| it.text() == "{}") {
                        break;
                    }
                    command.push(word.clone());
                }
                self.add_action(branch, Action::Run(command));
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                self.uses.push((value(), Use::Write));
                if text == "-fprintf" {
                    value();
                }
                self.add_action(branch, Action::Print);
            }
            "-files0-from" => self.uses.push((value(), Use::Read)),
            _ if has(GLOBAL_FLAGS, text) => {}
            _ if has(GLOBAL_VALUES, text) => {
                value();
            }
            _ => {
                branch.is_unknown = true;
                let is_value = |word: &Field| !word.text().starts_with(['-', '(', ')', '!']);
                if !has(FLAGS, text) && words.as_slice().first().is_some_and(is_value) {
                    words.next();
                }
            }
        }
    }

    fn add_action(&mut self, branch: &mut Branch, action: Action) {
        branch.actions.push(self.actions.len());
        self.actions.push(action);
    }
}

/// Returns the denied files below a folder that reach an action.
pub(super) fn find(
    judge: &mut Judge<'_>,
    find: &Find,
    action: usize,
    folder: &Path,
    written: &str,
) -> Vec<DeniedName> {
    let visit = |entry: &Entry<'_>| {
        let is_in_depth = find.max_depth.is_none_or(|max| entry.depth <= max);
        Visit {
            uses: is_in_depth && find.reaches_action(action, entry.path, entry.is_dir),
            is_wanted: false,
            enters: is_in_depth && !find.prunes(entry.path),
        }
    };
    let all = Search {
        skips_hidden: false,
        skips_ignored: false,
        with_folders: judge.guarded.is_some(),
        visit: &visit,
    };
    let mut found = search(judge, &all, folder, written);
    if find.tests_at > 0 {
        for name in found.iter_mut().filter(|name| name.is_file()) {
            name.fix = Some(Fix {
                at: find.tests_at,
                opening: "",
                file: "-not -name '{}'",
                folder: "-not -path '*/{}/*'",
                by_name: true,
            });
        }
    }
    found
}

impl Branch {
    /// Returns whether all tests are true, `None` if that is unknown.
    fn is_true(&self, path: &str, is_dir: bool) -> Option<bool> {
        let values = || self.tests.iter().map(|test| test.is_true(path, is_dir));
        if values().any(|value| value == Some(false)) {
            return Some(false);
        }
        (!self.is_unknown && values().all(|value| value.is_some())).then_some(true)
    }

    /// Adds tests in parentheses. A list of names is one test, other alternatives are unknown.
    fn add_group(&mut self, mut group: Vec<Branch>, is_negated: bool) {
        self.prunes |= group.iter().any(|branch| branch.prunes);
        self.actions
            .extend(group.iter().flat_map(|branch| &branch.actions));
        if group.len() == 1 && !is_negated {
            let branch = group.remove(0);
            self.is_unknown |= branch.is_unknown;
            self.tests.extend(branch.tests);
            return;
        }
        let mut names = Vec::new();
        for mut branch in group {
            match (branch.tests.pop(), branch.tests.is_empty()) {
                (
                    Some(Test {
                        kind: TestKind::Names(patterns),
                        is_negated: false,
                    }),
                    true,
                ) if !branch.is_unknown => names.extend(patterns),
                _ => {
                    self.is_unknown = true;
                    return;
                }
            }
        }
        self.tests.push(Test {
            kind: TestKind::Names(names),
            is_negated,
        });
    }
}

impl Test {
    fn is_true(&self, path: &str, is_dir: bool) -> Option<bool> {
        let value = match &self.kind {
            TestKind::Names(patterns) => {
                let mut values = patterns.iter().map(|pattern| pattern.matches(path));
                if values.clone().any(|value| value == Some(true)) {
                    Some(true)
                } else {
                    values.all(|value| value.is_some()).then_some(false)
                }
            }
            TestKind::Type(kinds) if is_dir => Some(kinds.contains('d')),
            TestKind::Type(kinds) => Some(kinds.contains(['f', 'l'])),
        };
        value.map(|value| value != self.is_negated)
    }
}

impl Pattern {
    fn new(test: &str, value: &Field) -> Self {
        let ignores_case = test.starts_with("-i");
        let is_path = !test.ends_with("-name") && !test.ends_with("-iname");
        let matcher = value.known().and_then(|text| {
            let text = if is_path { joined(&text) } else { text };
            let text = if ignores_case {
                text.to_lowercase()
            } else {
                text
            };
            let syntax = Syntax::git(Case::Sensitive);
            syntax.matcher(text.as_bytes(), Subject::Name).ok()
        });
        Self {
            matcher,
            is_path,
            ignores_case,
        }
    }

    fn matches(&self, path: &str) -> Option<bool> {
        let matcher = self.matcher.as_ref()?;
        let text = if self.is_path {
            joined(path)
        } else {
            path.rsplit('/').next().unwrap_or(path).to_owned()
        };
        let text = if self.ignores_case {
            text.to_lowercase()
        } else {
            text
        };
        Some(matcher.is_match(text.as_bytes()))
    }
}
