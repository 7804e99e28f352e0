//! `find`: which of the denied files below its folders reach one of its actions.
//!
//! Only tests of names, paths and kinds are evaluated. Every other test may be true or false.

use std::{cell::Cell, path::Path};

use super::{
    expand::Field,
    judge::Judge,
    programs::{Use, has},
    syntax::DeniedName,
    tree::{Entry, Search, Visit, joined, search},
};
use crate::gitignore::glob::{Case, Matcher, Subject, Syntax};

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
    /// Prints names: only those, or with other text; to a file that is named.
    Print {
        is_plain: bool,
        target: Option<Field>,
    },
    Delete,
    /// `-exec`: a command, with `{}` for the file.
    Run(Vec<Field>),
}

/// A `find` command.
pub(super) struct Find {
    pub(super) roots: Vec<Field>,
    /// Patterns of names that it looks for.
    pub(super) patterns: Vec<Field>,
    pub(super) uses: Vec<(Field, Use)>,
    pub(super) actions: Vec<Action>,
    expression: Expression,
    max_depth: Option<usize>,
    /// Whether there are tests that are not evaluated.
    pub(super) has_unknown: bool,
    /// Where to insert tests in the command line, or 0.
    pub(super) tests_at: usize,
}

enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Name(Pattern),
    /// `-type`
    Type(String),
    Prune,
    Action(usize),
    Unknown,
}

struct Pattern {
    /// `None` if its matches are unknown.
    matcher: Option<Matcher>,
    is_path: bool,
    ignores_case: bool,
}

/// An entry that an expression is evaluated for.
struct Candidate<'p> {
    path: &'p str,
    is_dir: bool,
    action: usize,
    reaches: Cell<bool>,
    is_pruned: Cell<bool>,
}

impl Find {
    pub(super) fn new(words: &[Field]) -> Self {
        let mut find = Self {
            roots: Vec::new(),
            patterns: Vec::new(),
            uses: Vec::new(),
            actions: Vec::new(),
            expression: Expression::Unknown,
            max_depth: None,
            has_unknown: false,
            tests_at: words[0].span.end,
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
        // A word that is not known may be empty.
        let empty = || words[1..at].iter().filter(|word| word.can_vanish());
        let may_be_empty = |word: &Field| empty().any(|empty| empty.span == word.span);
        if words[1..at].iter().all(may_be_empty) {
            find.roots.push(Field::quoted("."));
        }
        // Tests follow options that apply to the whole command, and the last `-o`.
        let mut depth = 0;
        let mut before = "";
        let texts: Vec<String> = words[at..].iter().map(Field::text).collect();
        for (word, text) in words[at..].iter().zip(&texts) {
            depth += i32::from(text == "(") - i32::from(text == ")");
            let is_global =
                has(GLOBAL_FLAGS, text) || has(GLOBAL_VALUES, text) || has(GLOBAL_VALUES, before);
            if is_global || depth == 0 && has("-o -or", text) {
                find.tests_at = word.span.end;
            }
            before = text;
        }
        let expression = find.or(&mut words[at..].iter(), MAX_DEPTH);
        find.expression = if find.actions.is_empty() {
            find.actions.push(Action::Print {
                is_plain: true,
                target: None,
            });
            Expression::And(vec![expression, Expression::Action(0)])
        } else {
            expression
        };
        find
    }

    /// Returns whether any action may be reached for a file or folder.
    pub(super) fn reaches(&self, path: &str, is_dir: bool) -> bool {
        (0..self.actions.len()).any(|action| self.visits(action, path, is_dir).0)
    }

    /// Returns whether an action may be reached, and whether `find` does not descend into a folder.
    fn visits(&self, action: usize, path: &str, is_dir: bool) -> (bool, bool) {
        let candidate = Candidate {
            path,
            is_dir,
            action,
            reaches: Cell::new(false),
            is_pruned: Cell::new(false),
        };
        self.expression.is_true(&candidate, true);
        (candidate.reaches.get(), candidate.is_pruned.get())
    }

    /// Parses tests up to a closing parenthesis.
    fn or(&mut self, words: &mut std::slice::Iter<'_, Field>, depth: usize) -> Expression {
        let mut branches = vec![Vec::new()];
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
                "-o" | "-or" => branches.push(Vec::new()),
                "," => {
                    branch.push(Expression::Unknown);
                    branches.push(Vec::new());
                }
                _ => {
                    let test = if text == "(" && depth > 0 {
                        Some(self.or(words, depth - 1))
                    } else {
                        self.test(&text, words)
                    };
                    branch.extend(test.map(|test| match is_negated {
                        true => Expression::Not(Box::new(test)),
                        false => test,
                    }));
                }
            }
            is_negated = false;
        }
        Expression::Or(branches.into_iter().map(Expression::And).collect())
    }

    fn test(&mut self, text: &str, words: &mut std::slice::Iter<'_, Field>) -> Option<Expression> {
        let mut value = || words.next().cloned().unwrap_or_default();
        let action = match text {
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" => {
                let value = value();
                self.has_unknown |= value.has_unknown();
                let pattern = Pattern::new(text, &value);
                self.patterns.push(value);
                return Some(Expression::Name(pattern));
            }
            "-type" => {
                let kinds = value().known();
                return Some(Expression::Type(kinds.unwrap_or_else(|| "dfl".to_owned())));
            }
            "-maxdepth" => {
                self.max_depth = value().text().parse().ok();
                return None;
            }
            "-prune" => return Some(Expression::Prune),
            "-print" | "-print0" | "-ls" | "-printf" => {
                if text == "-printf" {
                    value();
                }
                Action::Print {
                    is_plain: !has("-ls -printf", text),
                    target: None,
                }
            }
            "-delete" => Action::Delete,
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let mut command: Vec<Field> = Vec::new();
                while let Some(word) = words.next().filter(|word| word.text() != ";") {
                    if word.text() == "+" && command.last().is_some_and(|it| it.text() == "{}") {
                        break;
                    }
                    command.push(word.clone());
                }
                Action::Run(command)
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                let target = value();
                self.uses.push((target.clone(), Use::Write));
                if text == "-fprintf" {
                    value();
                }
                Action::Print {
                    is_plain: text.starts_with("-fprint") && text != "-fprintf",
                    target: Some(target),
                }
            }
            "-files0-from" => {
                self.uses.push((value(), Use::Read));
                return None;
            }
            _ if has(GLOBAL_FLAGS, text) => return None,
            _ => {
                self.has_unknown = true;
                let is_value = |word: &Field| !word.text().starts_with(['-', '(', ')', '!']);
                if !has(FLAGS, text) && words.as_slice().first().is_some_and(is_value) {
                    words.next();
                }
                let is_option = has(GLOBAL_VALUES, text);
                return (!is_option).then_some(Expression::Unknown);
            }
        };
        self.actions.push(action);
        Some(Expression::Action(self.actions.len() - 1))
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
        let (reaches, is_pruned) = find.visits(action, entry.path, entry.is_dir);
        Visit {
            uses: is_in_depth && reaches,
            is_wanted: false,
            enters: is_in_depth && !is_pruned,
        }
    };
    let all = Search {
        skips_hidden: false,
        skips_ignored: false,
        with_folders: judge.guarded.is_some(),
        for_names: matches!(find.actions[action], Action::Print { .. }),
        visit: &visit,
    };
    search(judge, &all, folder, written)
}

impl Expression {
    /// Returns whether it is true, `None` if that is unknown. `is_certain`: it is evaluated, not only perhaps.
    fn is_true(&self, candidate: &Candidate<'_>, mut is_certain: bool) -> Option<bool> {
        match self {
            Self::And(all) | Self::Or(all) => {
                let ends = matches!(self, Self::Or(_));
                let mut value = Some(!ends);
                for one in all {
                    let result = one.is_true(candidate, is_certain);
                    if result == Some(ends) {
                        return result;
                    }
                    is_certain &= result.is_some();
                    value = value.and(result);
                }
                value
            }
            Self::Not(one) => one.is_true(candidate, is_certain).map(|value| !value),
            Self::Name(pattern) => pattern.matches(candidate.path),
            Self::Type(kinds) if candidate.is_dir => Some(kinds.contains('d')),
            Self::Type(kinds) => Some(kinds.contains(['f', 'l'])),
            Self::Prune => {
                candidate
                    .is_pruned
                    .set(candidate.is_pruned.get() || is_certain);
                Some(true)
            }
            Self::Action(action) => {
                candidate
                    .reaches
                    .set(candidate.reaches.get() || *action == candidate.action);
                Some(true)
            }
            Self::Unknown => None,
        }
    }
}

impl Pattern {
    fn new(test: &str, value: &Field) -> Self {
        let ignores_case = test.starts_with("-i");
        let is_path = !test.ends_with("name") || test.ends_with("wholename");
        let text = value.known().map(|text| match (is_path, ignores_case) {
            (true, true) => joined(&text).to_lowercase(),
            (true, false) => joined(&text),
            (false, true) => text.to_lowercase(),
            (false, false) => text,
        });
        let syntax = Syntax::git(Case::Sensitive);
        Self {
            matcher: text.and_then(|text| syntax.matcher(text.as_bytes(), Subject::Name).ok()),
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
