//! A simple command: its words with their possible values, and the program that it runs.

use std::collections::BTreeSet;

use super::{
    expansion::ExpandedWord,
    find::Find,
    options::ProgramUse,
    program_table::{self, has},
    simple_command::{PREFIXES, PRINTERS},
};

/// Maximum length of a word after mapping mounts, in bytes.
const MAX_MAPPED_BYTES: usize = 4096;
/// Maximum mounts of one command.
const MAX_MOUNTS: usize = 20;

/// A simple command.
pub(super) struct Invocation {
    pub(super) words: Vec<Vec<ExpandedWord>>,
    /// Text of each word, if it has exactly one known value.
    exact: Vec<Option<String>>,
}

impl Invocation {
    /// Splits the unquoted expansions of the words at blanks and `separators`.
    pub(super) fn new(words: Vec<Vec<ExpandedWord>>, separators: &str) -> Self {
        let mut all: Vec<Vec<ExpandedWord>> = Vec::new();
        for word in words {
            let start = all.len();
            for field in word {
                for (at, piece) in field.split(separators).into_iter().enumerate() {
                    if all.len() <= start + at {
                        all.push(Vec::new());
                    }
                    all[start + at].push(piece);
                }
            }
        }
        let is_empty = |word: &&Vec<ExpandedWord>| {
            word.iter()
                .all(|field| field.known().as_deref() == Some(""))
        };
        let nothing = all.iter().take_while(is_empty).count();
        Self::of(all.split_off(nothing))
    }

    fn of(words: Vec<Vec<ExpandedWord>>) -> Self {
        let exact = words
            .iter()
            .map(|word| match word.as_slice() {
                [field] if !field.has_pattern() => field.known(),
                _ => None,
            })
            .collect();
        Self { words, exact }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the text of a word if it has exactly one known value.
    pub(super) fn exact(&self, at: usize) -> Option<&str> {
        self.exact.get(at)?.as_deref()
    }

    /// Returns the possible values of a word.
    pub(super) fn fields(&self, at: usize) -> &[ExpandedWord] {
        self.words.get(at).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a word follows `--`.
    pub(super) fn is_behind_dashes(&self, at: usize) -> bool {
        self.exact
            .iter()
            .take(at)
            .any(|word| word.as_deref() == Some("--"))
    }

    /// Returns the program name of a word, in lower case and without directory and extension.
    pub(super) fn program(&self, at: usize) -> String {
        let Some(field) = self.words.get(at).and_then(|word| word.first()) else {
            return String::new();
        };
        program_name(&field.text())
    }

    /// Returns the possible values of all words after the first.
    pub(super) fn operands(&self) -> impl Iterator<Item = &ExpandedWord> {
        self.words.iter().skip(1).flatten()
    }

    /// Returns the texts of the words from `from` on.
    pub(super) fn texts(&self, from: usize) -> Vec<String> {
        let words = self.words.iter().skip(from);
        words
            .filter_map(|word| word.first())
            .map(ExpandedWord::text)
            .collect()
    }

    /// Like [`Self::texts`], without some of the words.
    pub(super) fn texts_but(&self, from: usize, non_paths: &BTreeSet<usize>) -> Vec<String> {
        let words = self.words.iter().enumerate().skip(from);
        let words = words.filter(|(at, _)| !non_paths.contains(at));
        words
            .filter_map(|(_, word)| word.first())
            .map(ExpandedWord::text)
            .collect()
    }

    /// Returns the known program: the first word, or the program that it runs.
    pub(super) fn uses(&self) -> (Option<ProgramUse>, Option<Find>) {
        let is_runner = has(program_table::RUNNERS, &self.program(0));
        let mut places = 0..if is_runner {
            self.len()
        } else {
            1.min(self.len())
        };
        let found = places.find_map(|at| {
            if self.program(at) == "find" {
                return Some((None, Some(Find::read(self, at))));
            }
            Some((Some(ProgramUse::at(self, at)?), None))
        });
        found.unwrap_or_default()
    }

    /// Maps the paths inside a container, mounted with `-v HOST:INSIDE`, to paths of the host.
    pub(super) fn without_mounts(&self) -> Option<Self> {
        let mut mounts: Vec<(String, String)> = Vec::new();
        let program = (0..self.len()).find(|at| {
            !has(program_table::RUNNERS, &self.program(*at)) || {
                let name = self.program(*at);
                has(program_table::CONTAINERS, &name) || matches!(name.as_str(), "chroot" | "bwrap")
            }
        })?;
        let name = self.program(program);
        let mut from = program + 1;
        let mut at = program + 1;
        while at < self.len() && mounts.len() < MAX_MOUNTS {
            let word = self.words[at][0].text();
            let next = |by: usize| self.words.get(at + by).map(|word| word[0].text());
            let mount = match name.as_str() {
                "chroot" if !word.starts_with('-') => Some((word, "/".to_owned())),
                "bwrap" if word.starts_with("--") && word.contains("bind") => next(1).zip(next(2)),
                "chroot" | "bwrap" => None,
                name if has(program_table::CONTAINERS, name) => match word.as_str() {
                    "-v" | "--volume" | "--mount" => next(1).as_deref().and_then(mount_of),
                    _ => word
                        .strip_prefix("--volume=")
                        .or_else(|| word.strip_prefix("--mount="))
                        .or_else(|| word.strip_prefix("-v"))
                        .and_then(mount_of),
                },
                _ => return None,
            };
            at += 1;
            if let Some(mount) = mount {
                mounts.push(mount);
                from = at;
                if name == "chroot" {
                    break;
                }
            }
        }
        if mounts.is_empty() {
            return None;
        }
        let words = self.words.get(from..)?.iter().map(|word| {
            let fields = word
                .iter()
                .map(|field| mounts.iter().fold(field.text(), with_mount));
            fields.map(|text| ExpandedWord::quoted(&text)).collect()
        });
        let runner = vec![ExpandedWord::quoted("env")];
        Some(Self::of(std::iter::once(runner).chain(words).collect()))
    }

    /// Returns the program and its first operand, if the program prints its operands.
    pub(super) fn printer(&self) -> Option<(String, usize)> {
        let mut at = 0;
        loop {
            let name = self.program(at);
            if PRINTERS.contains(&name.as_str()) {
                return Some((name, at + 1));
            }
            if !PREFIXES.contains(&name.as_str()) {
                return None;
            }
            at += 1;
        }
    }
}

/// Returns the name of a program, in lower case and without directory and extension.
pub(super) fn program_name(text: &str) -> String {
    let text = text.to_lowercase();
    let name = text.rsplit(['/', '\\']).next().unwrap_or(&text);
    name.strip_suffix(".exe").unwrap_or(name).to_owned()
}

/// Parses `HOST:INSIDE[:OPTIONS]` or `type=bind,source=HOST,target=INSIDE`.
fn mount_of(text: &str) -> Option<(String, String)> {
    let of = |names: [&str; 3]| {
        let parts = text.split(',').filter_map(|part| part.split_once('='));
        parts
            .into_iter()
            .find(|(name, _)| names.contains(name))
            .map(|(_, value)| value)
    };
    let (host, inside) =
        match of(["source", "src", "src"]).zip(of(["target", "destination", "dst"])) {
            Some(pair) => pair,
            None => {
                let mut parts = text.split(':');
                (parts.next()?, parts.next()?)
            }
        };
    (inside.starts_with('/') && !host.is_empty()).then(|| (host.to_owned(), inside.to_owned()))
}

/// Maps a path inside a container to the path of the host.
fn with_mount(text: String, (host, inside): &(String, String)) -> String {
    let (host, inside) = (host.trim_end_matches('/'), inside.trim_end_matches('/'));
    if inside.is_empty() {
        // The root directory of the container.
        return match text.strip_prefix('/') {
            Some(rest) => format!("{host}/{rest}"),
            None => text,
        };
    }
    let mut mapped = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest
        .find(inside)
        .filter(|_| mapped.len() < MAX_MAPPED_BYTES)
    {
        let (before, found) = rest.split_at(at);
        let after = &found[inside.len()..];
        let is_path = |c: char| c.is_alphanumeric() || "._-/".contains(c);
        let is_whole =
            !before.ends_with(is_path) && !after.starts_with(|c: char| is_path(c) && c != '/');
        mapped.push_str(before);
        mapped.push_str(if is_whole { host } else { inside });
        rest = after;
    }
    mapped + rest
}
