//! Splits the words of a known program into options, their values, and operands.

use std::collections::BTreeSet;

use super::{
    invocation::Invocation,
    program_table::{self, PROGRAMS, Program, has},
};

/// Minimum length of an abbreviated long option.
const MIN_ABBREVIATION: usize = 5;

/// An invocation of a known program.
pub(super) struct ProgramUse {
    pub(super) program: &'static Program,
    /// Index of the program's word.
    pub(super) at: usize,
    pub(super) options: Vec<SetOption>,
    /// Indices of the operands.
    pub(super) operands: Vec<usize>,
    /// Indices of words that are not paths.
    pub(super) non_paths: BTreeSet<usize>,
}

/// An option with its value.
pub(super) struct SetOption {
    pub(super) name: String,
    pub(super) value: Option<String>,
    /// Number of operands before it.
    pub(super) behind: usize,
}

impl ProgramUse {
    /// Looks up the known program at a word.
    pub(super) fn at(invocation: &Invocation, at: usize) -> Option<Self> {
        let name = invocation.program(at);
        let candidates = PROGRAMS
            .iter()
            .filter(|program| has(program.names, &name))
            .collect::<Vec<_>>();
        let sub = subcommand(invocation, at);
        let (program, from) = candidates.into_iter().find_map(|program| {
            if program.subcommands.is_empty() {
                return Some((program, at + 1));
            }
            let sub = sub?;
            has(program.subcommands, invocation.exact(sub)?).then_some((program, sub + 1))
        })?;
        let mut used = Self {
            program,
            at,
            options: Vec::new(),
            operands: Vec::new(),
            non_paths: BTreeSet::new(),
        };
        used.read(invocation, from);
        Some(used)
    }

    /// Returns whether one of these options is given.
    pub(super) fn is_set(&self, names: &str) -> bool {
        self.options
            .iter()
            .any(|set| names.split_ascii_whitespace().any(|name| name == set.name))
    }

    fn read(&mut self, invocation: &Invocation, from: usize) {
        let mut at = from;
        if has(self.program.names, "tar")
            && let Some(bundle) = invocation.exact(from)
            && !bundle.starts_with('-')
        {
            // `tar czf FILE`: the values of all letters follow in order.
            at += 1;
            for letter in bundle.chars() {
                let name = format!("-{letter}");
                let has_value = has(self.program.values, &name) || has(self.program.texts, &name);
                let value = has_value.then(|| invocation.exact(at).map(str::to_owned));
                at += usize::from(has_value);
                self.set(name, value.flatten());
            }
        }
        // After a word with unknown value, the meaning of the following words is uncertain.
        let mut is_sure = true;
        let mut ended = false;
        while at < invocation.len() {
            let Some(word) = invocation.exact(at) else {
                self.operand(at, is_sure, invocation);
                is_sure = false;
                at += 1;
                continue;
            };
            if ended || word == "-" || !word.starts_with('-') {
                self.operand(at, is_sure, invocation);
            } else if word == "--" {
                ended = true;
            } else {
                at = self.option(word, at, is_sure, invocation);
                if runs_rest_as_command(self.program, &self.options) {
                    // The remaining words are another command.
                    break;
                }
            }
            at += 1;
        }
        if self.is_set(self.program.replaces_leading) {
            // The leading operands are paths.
            for at in self.operands.iter().take(self.program.leading) {
                self.non_paths.remove(at);
            }
        }
    }

    /// Returns the operands without leading patterns.
    pub(super) fn paths(&self) -> &[usize] {
        let leading = if self.is_set(self.program.replaces_leading) {
            0
        } else {
            self.program.leading
        };
        self.operands.get(leading..).unwrap_or_default()
    }

    fn operand(&mut self, at: usize, is_sure: bool, invocation: &Invocation) {
        let is_leading = is_sure && self.operands.len() < self.program.leading;
        let is_pattern = |word: &str| self.program.is_text.is_none_or(|is_text| is_text(word));
        if self.program.only_stats || (is_leading && invocation.exact(at).is_some_and(is_pattern)) {
            self.non_paths.insert(at);
        }
        self.operands.push(at);
    }

    /// Parses the option at a word. Returns the index of its last word.
    fn option(&mut self, word: &str, at: usize, is_sure: bool, invocation: &Invocation) -> usize {
        if word.starts_with("--") {
            let (given, attached) = match word.split_once('=') {
                Some((given, value)) => (given, Some(value)),
                None => (word, None),
            };
            let name = self.known(given);
            return self.valued(name, attached, at, is_sure, invocation);
        }
        for (start, letter) in word.char_indices().skip(1) {
            let name = format!("-{letter}");
            let rest = &word[start + letter.len_utf8()..];
            let kinds = [self.program.texts, self.program.values, self.program.lists];
            if kinds.iter().any(|kind| has(kind, &name)) {
                let attached = (!rest.is_empty()).then_some(rest);
                return self.valued(name, attached, at, is_sure, invocation);
            }
            if has(self.program.numbers, &name) {
                if rest.is_empty() {
                    return self.valued(name, None, at, is_sure, invocation);
                }
                if rest.starts_with(|c: char| c.is_ascii_digit()) {
                    self.set(name, Some(rest.to_owned()));
                    return at;
                }
            }
            self.set(name, None);
        }
        at
    }

    /// Records an option and its value. Returns the index of the value's last word.
    fn valued(
        &mut self,
        name: String,
        attached: Option<&str>,
        at: usize,
        is_sure: bool,
        invocation: &Invocation,
    ) -> usize {
        let program = self.program;
        let is_list = has(program.lists, &name);
        let is_text = has(program.texts, &name) || is_list;
        let is_glob = program
            .reader
            .as_ref()
            .is_some_and(|reader| has(reader.globs, &name));
        let is_non_path = |value: &str| {
            let named =
                is_text && (program.is_text.is_none() || !has(program.replaces_leading, &name));
            named
                || (is_glob && value.starts_with('!'))
                || (has(program.replaces_leading, &name)
                    && program.is_text.is_some_and(|is_text| is_text(value)))
        };
        if let Some(value) = attached {
            if is_non_path(value) || program_table::leaves_out(&format!("{name}={value}")) {
                self.non_paths.insert(at);
            }
            self.set(name, Some(value.to_owned()));
            return at;
        }
        let mut last = at;
        if is_text || has(program.values, &name) {
            while let Some(value) = invocation.exact(last + 1) {
                if is_list && value.starts_with('-') {
                    break;
                }
                last += 1;
                if is_sure && is_non_path(value) {
                    self.non_paths.insert(last);
                }
                self.set(name.clone(), Some(value.to_owned()));
                // `git stash list -m -p`: there, `-m` has no value.
                let reader = program.reader.as_ref();
                if reader.is_some_and(|reader| has(reader.when, value)) {
                    self.set(value.to_owned(), None);
                }
                if !is_list {
                    return last;
                }
            }
            if !is_list && last + 1 < invocation.len() {
                // The value is unknown.
                last += 1;
            }
        } else if has(program.numbers, &name)
            && let Some(value) = invocation.exact(at + 1)
            && value.parse::<u64>().is_ok()
        {
            last += 1;
        }
        self.set(name, None);
        last
    }

    fn set(&mut self, name: String, value: Option<String>) {
        self.options.push(SetOption {
            name,
            value,
            behind: self.operands.len(),
        });
    }

    /// Returns the full name of a long option, which may be abbreviated.
    fn known(&self, given: &str) -> String {
        let program = self.program;
        let reader = program.reader.as_ref();
        let of_reader = reader.map_or([""; 11], |reader| {
            [
                reader.when,
                reader.never,
                reader.reenabled_by,
                reader.lists,
                reader.target,
                reader.exclude,
                reader.exclude_files,
                reader.exclude_folders,
                reader.include_files,
                reader.shows_hidden,
                reader.shows_ignored,
            ]
        });
        let lists = [
            program.replaces_leading,
            program.texts,
            program.numbers,
            program.values,
            program.lists,
        ];
        let names = || {
            lists
                .iter()
                .chain(&of_reader)
                .flat_map(|names| names.split_ascii_whitespace())
        };
        let name = names().find(|name| *name == given).or_else(|| {
            names().find(|name| given.len() >= MIN_ABBREVIATION && name.starts_with(given))
        });
        name.unwrap_or(given).to_owned()
    }
}

/// Returns whether the last option runs the following words as a command.
fn runs_rest_as_command(program: &Program, options: &[SetOption]) -> bool {
    let is_last = |names: &str| {
        options
            .last()
            .is_some_and(|set| names.split_ascii_whitespace().any(|name| name == set.name))
    };
    has(program.names, "fd")
        && program
            .reader
            .as_ref()
            .is_some_and(|reader| is_last(reader.when))
}

/// Returns the index of the subcommand, after the program's global options.
fn subcommand(invocation: &Invocation, at: usize) -> Option<usize> {
    let mut next = at + 1;
    loop {
        let word = invocation.exact(next)?;
        if has(program_table::GLOBAL_VALUES, word) {
            next += 2;
        } else if word.starts_with('-') {
            next += 1;
        } else {
            return Some(next);
        }
    }
}

/// Returns the path that a git pathspec excludes (`:!path`, `:^path`, `:(exclude)path`), and
/// whether it is relative to the top of the work tree.
pub(super) fn excluded_path(word: &str) -> Option<(&str, bool)> {
    let rest = word.strip_prefix(':')?;
    if let Some(magic) = rest.strip_prefix('(') {
        let (magic, path) = magic.split_once(')')?;
        let mut words = magic.split(',');
        return words
            .clone()
            .any(|word| word == "exclude")
            .then(|| (path, words.any(|word| word == "top")));
    }
    let path = rest.trim_start_matches(['!', '^', '/']);
    let magic = &rest[..rest.len() - path.len()];
    magic
        .contains(['!', '^'])
        .then(|| (path.trim_start_matches(':'), magic.contains('/')))
}
