//! `find`: which of the denied files below its folders reach one of its actions.
//!
//! Only tests of names, paths and kinds are evaluated. Every other test may be true or false.

use std::path::Path;

use super::{
    expand::Field,
    judge::Judge,
    programs::{Use, has},
    syntax::{DeniedName, Fix},
    tree::{Entry, Search, Visit, search},
};
use crate::git_glob::{Case, Matcher, Subject, Syntax};

/// Maximum nesting of parentheses.
const MAX_DEPTH: usize = 30;
/// Tests without a value.
const FLAGS: &str = "-empty -executable -readable -writable -nouser -nogroup -true -false -mount -xdev -depth -d -daystart \
                     -follow -noleaf -ignore_readdir_race -warn -nowarn -print -print0 -ls -H -L -P -E -X -s -x";

/// Options without a value that apply to the whole command.
const GLOBAL_FLAGS: &str =
    "-depth -d -mount -xdev -noleaf -ignore_readdir_race -warn -nowarn -daystart -follow";

/// What `find` does with a file.
#[derive(Debug)]
pub(super) enum Action {
    Print,
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
    expression: Node,
    max_depth: Option<usize>,
    /// Where to insert tests in the command line, or 0.
    tests_at: usize,
}

enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Name(Pattern),
    Path(Pattern),
    Kind(String),
    Prune,
    Action(usize),
    Unknown,
}

/// A pattern; `None` if its matches are unknown.
struct Pattern {
    matcher: Option<Matcher>,
    ignores_case: bool,
}

/// What the evaluation of an entry found.
#[derive(Default)]
struct Reached {
    actions: Vec<usize>,
    prunes: bool,
}

struct Parser<'a> {
    words: std::iter::Peekable<std::slice::Iter<'a, Field>>,
    find: Find,
    depth: usize,
}

impl Find {
    pub(super) fn new(words: &[Field]) -> Self {
        let mut find = Self {
            roots: Vec::new(),
            patterns: Vec::new(),
            uses: Vec::new(),
            actions: Vec::new(),
            expression: Node::Unknown,
            max_depth: None,
            tests_at: words[0].span.end,
        };
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let text = word.text();
            if has("-H -L -P", &text) {
                at += 1;
                continue;
            }
            if text.starts_with(['-', '(', '!', ',']) {
                break;
            }
            find.tests_at = word.span.end;
            find.roots
                .extend((!word.has_unknown()).then(|| word.clone()));
            at += 1;
        }
        // Tests follow options that apply to the whole command.
        let mut options = at;
        while let Some(word) = words.get(options) {
            options += match word.text().as_str() {
                "-maxdepth" | "-mindepth" | "-regextype" => 2,
                text if has(GLOBAL_FLAGS, text) => 1,
                _ => break,
            };
            let last = words.get(options - 1).unwrap_or(word);
            find.tests_at = last.span.end;
        }
        // A word that is not known may be empty.
        let is_default = words[1..at].iter().all(Field::can_vanish);
        if find.roots.is_empty() && is_default {
            find.roots.push(Field::quoted("."));
        }
        let mut parser = Parser {
            words: words[at..].iter().peekable(),
            find,
            depth: 0,
        };
        let expression = parser.or();
        let mut find = parser.find;
        if find.actions.is_empty() {
            find.actions.push(Action::Print);
            find.expression = Node::And(vec![expression, Node::Action(0)]);
        } else {
            find.expression = expression;
        }
        find
    }
}

impl Find {
    /// Returns whether an action may be reached for a file or folder.
    pub(super) fn reaches(&self, path: &str, is_dir: bool) -> bool {
        !self.reached(path, is_dir).actions.is_empty()
    }

    /// Returns whether it does not descend into a folder.
    pub(super) fn prunes(&self, path: &str) -> bool {
        self.reached(path, true).prunes
    }

    /// Returns the words that may be changed by an action: folders that it starts from, words of commands,
    /// and files that it writes.
    pub(super) fn changed_words(&self) -> Vec<&Field> {
        let is_reached = |root: &&Field| self.reaches(&root.text(), true);
        let roots = self.roots.iter().filter(is_reached);
        let commands = self.actions.iter().flat_map(|action| match action {
            Action::Run(command) => command.as_slice(),
            _ => &[],
        });
        let uses = self.uses.iter().map(|(word, _)| word);
        roots.chain(commands).chain(uses).collect()
    }

    fn reached(&self, path: &str, is_dir: bool) -> Reached {
        let mut reached = Reached::default();
        let entry = Entry {
            path,
            below: "",
            is_dir,
            depth: 0,
        };
        self.expression.evaluate(&entry, true, &mut reached);
        reached
    }
}

/// Returns the denied files below a folder that reach an action.
pub(super) fn find(
    judge: &mut Judge<'_>,
    find: &Find,
    action: &Action,
    folder: &Path,
    written: &str,
) -> Vec<DeniedName> {
    let index = find
        .actions
        .iter()
        .position(|known| std::ptr::eq(known, action))
        .unwrap_or(0);
    let visit = |entry: &Entry<'_>| {
        let mut reached = Reached::default();
        let is_in_depth = find.max_depth.is_none_or(|max| entry.depth <= max);
        find.expression.evaluate(entry, true, &mut reached);
        Visit {
            uses: is_in_depth && reached.actions.contains(&index),
            is_wanted: false,
            enters: is_in_depth && !reached.prunes,
        }
    };
    let all = Search {
        skips_hidden: false,
        skips_ignored: false,
        with_folders: false,
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

impl Node {
    /// Returns whether the expression is true for an entry, `None` if that is unknown. `is_certain`:
    /// it is certainly evaluated.
    fn evaluate(&self, entry: &Entry<'_>, is_certain: bool, reached: &mut Reached) -> Option<bool> {
        match self {
            Self::And(nodes) | Self::Or(nodes) => {
                let stops_at = matches!(self, Self::Or(_));
                let mut result = Some(!stops_at);
                for node in nodes {
                    let value =
                        node.evaluate(entry, is_certain && result == Some(!stops_at), reached);
                    if value == Some(stops_at) {
                        return if result == Some(!stops_at) || stops_at == (value == Some(true)) {
                            value
                        } else {
                            result
                        };
                    }
                    if value.is_none() {
                        result = None;
                    }
                }
                result
            }
            Self::Not(node) => node
                .evaluate(entry, is_certain, reached)
                .map(|value| !value),
            Self::Name(pattern) => {
                let name = entry.path.rsplit('/').next().unwrap_or(entry.path);
                pattern.matches(name)
            }
            Self::Path(pattern) => pattern.matches(&entry.path.replace('/', "\u{1}")),
            Self::Kind(kinds) => Some(if entry.is_dir {
                kinds.contains('d')
            } else {
                kinds.contains(['f', 'l'])
            }),
            Self::Prune => {
                reached.prunes |= is_certain;
                Some(true)
            }
            Self::Action(index) => {
                reached.actions.push(*index);
                None
            }
            Self::Unknown => None,
        }
    }
}

impl Pattern {
    fn new(text: &str, ignores_case: bool) -> Self {
        let text = if ignores_case {
            text.to_lowercase()
        } else {
            text.to_owned()
        };
        Self {
            matcher: Syntax::git(Case::Sensitive)
                .matcher(text.as_bytes(), Subject::Name)
                .ok(),
            ignores_case,
        }
    }

    fn matches(&self, text: &str) -> Option<bool> {
        let matcher = self.matcher.as_ref()?;
        Some(if self.ignores_case {
            matcher.is_match(text.to_lowercase().as_bytes())
        } else {
            matcher.is_match(text.as_bytes())
        })
    }
}

impl Parser<'_> {
    fn or(&mut self) -> Node {
        let mut nodes = vec![self.and()];
        while let Some(word) = self.words.peek() {
            match word.text().as_str() {
                "-o" | "-or" => {
                    self.words.next();
                    nodes.push(self.and());
                }
                // Both sides of a comma are evaluated.
                "," => {
                    self.words.next();
                    let node = self.and();
                    let before = Node::Or(std::mem::take(&mut nodes));
                    nodes.push(Node::Or(vec![
                        Node::And(vec![before, Node::Not(Box::new(Node::Unknown))]),
                        node,
                    ]));
                }
                _ => break,
            }
        }
        Node::Or(nodes)
    }

    fn and(&mut self) -> Node {
        let mut nodes = Vec::new();
        let mut is_negated = false;
        while let Some(word) = self.words.peek() {
            let text = word.text();
            if has("-o -or , )", &text) {
                break;
            }
            self.words.next();
            let node = match text.as_str() {
                "-a" | "-and" => continue,
                "!" | "-not" => {
                    is_negated = !is_negated;
                    continue;
                }
                "(" if self.depth < MAX_DEPTH => {
                    self.depth += 1;
                    let node = self.or();
                    self.depth -= 1;
                    self.words.next_if(|word| word.text() == ")");
                    node
                }
                _ => self.test(&text),
            };
            nodes.push(if is_negated {
                Node::Not(Box::new(node))
            } else {
                node
            });
            is_negated = false;
        }
        Node::And(nodes)
    }

    fn value(&mut self) -> Field {
        self.words.next().cloned().unwrap_or_default()
    }

    fn pattern(&mut self, joins: bool, ignores_case: bool) -> Pattern {
        let value = self.value();
        self.find.patterns.push(value.clone());
        match value.known() {
            Some(text) if joins => Pattern::new(&text.replace('/', "\u{1}"), ignores_case),
            Some(text) => Pattern::new(&text, ignores_case),
            None => Pattern {
                matcher: None,
                ignores_case,
            },
        }
    }

    fn test(&mut self, text: &str) -> Node {
        match text {
            "-name" | "-iname" => Node::Name(self.pattern(false, text == "-iname")),
            "-path" | "-wholename" | "-ipath" | "-iwholename" => {
                Node::Path(self.pattern(true, text.starts_with("-i")))
            }
            "-type" => Node::Kind(self.value().known().unwrap_or_else(|| "dfl".to_owned())),
            "-maxdepth" => {
                self.find.max_depth = self.value().text().parse().ok();
                Node::And(Vec::new())
            }
            "-mindepth" => {
                self.value();
                Node::And(Vec::new())
            }
            "-prune" => Node::Prune,
            "-print" | "-print0" | "-ls" => self.action(Action::Print),
            "-printf" => {
                self.value();
                self.action(Action::Print)
            }
            "-delete" => self.action(Action::Delete),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let mut command = Vec::new();
                while let Some(word) = self.words.next().filter(|word| word.text() != ";") {
                    let is_end = word.text() == "+"
                        && command
                            .last()
                            .is_some_and(|last: &Field| last.text() == "{}");
                    if is_end {
                        break;
                    }
                    command.push(word.clone());
                }
                self.action(Action::Run(command))
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                let value = self.value();
                self.find.uses.push((value, Use::Write));
                if text == "-fprintf" {
                    self.value();
                }
                self.action(Action::Print)
            }
            "-files0-from" => {
                let value = self.value();
                self.find.uses.push((value, Use::Read));
                Node::Unknown
            }
            _ if has(FLAGS, text) => Node::Unknown,
            _ if text.starts_with('-') => {
                // The value of an unknown test.
                self.words
                    .next_if(|word| !word.text().starts_with(['-', '(', ')', '!']));
                Node::Unknown
            }
            _ => Node::Unknown,
        }
    }

    fn action(&mut self, action: Action) -> Node {
        self.find.actions.push(action);
        Node::Action(self.find.actions.len() - 1)
    }
}
