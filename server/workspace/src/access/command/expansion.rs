//! Word expansion: the possible values of a shell word.
//!
//! [`super::words`] splits a word into parts. Each combination of their possible values is an [`ExpandedWord`]. Its characters record whether they were quoted;
//! unknown parts are marked. The work is linear in the input, with caps on the number of
//! combinations.

use std::collections::HashSet;

use super::{
    CommandChecker,
    shell::ShellState,
    words::{Part, expand_braces, here_document_parts, parts},
};

/// Maximum alternatives of one word.
const MAX_ALTERNATIVES: usize = 64;
/// Maximum characters of a word with variables. Longer values become unknown.
const MAX_EXPANDED_CHARS: usize = 4096;
/// Maximum length of a path candidate, in bytes: Linux's PATH_MAX.
const MAX_PATH_BYTES: usize = 4096;
/// Maximum alternatives of one word with braces.
const MAX_BRACE_ALTERNATIVES: usize = 256;

/// A character of an expanded word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordChar {
    /// Unquoted, so it may be part of a pattern.
    Plain(char),
    Quoted(char),
    /// An unknown string.
    Unknown,
}

/// A possible value of a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExpandedWord {
    units: Vec<WordChar>,
    /// The word with its backslashes, as shells of Windows read it.
    with_backslashes: Option<String>,
}

impl ExpandedWord {
    pub(super) fn unquoted(text: &str) -> Self {
        Self {
            units: text.chars().map(WordChar::Plain).collect(),
            with_backslashes: None,
        }
    }

    pub(super) fn quoted(text: &str) -> Self {
        Self {
            units: text.chars().map(WordChar::Quoted).collect(),
            with_backslashes: None,
        }
    }

    /// Splits unquoted characters at blanks and `separators`, as a shell does.
    pub(super) fn split(&self, separators: &str) -> Vec<ExpandedWord> {
        let cuts = |unit: &WordChar| matches!(unit, WordChar::Plain(c) if c.is_whitespace() || separators.contains(*c));
        if !self.units.iter().any(cuts) {
            return vec![self.clone()];
        }
        self.units
            .split(cuts)
            .filter(|units| !units.is_empty())
            .map(|units| Self {
                units: units.to_vec(),
                with_backslashes: None,
            })
            .collect()
    }

    /// Returns the text without unknown parts.
    pub(super) fn text(&self) -> String {
        self.units
            .iter()
            .filter_map(|unit| match unit {
                WordChar::Plain(c) | WordChar::Quoted(c) => Some(*c),
                WordChar::Unknown => None,
            })
            .collect()
    }

    /// Returns the text if all of it is known.
    pub(super) fn known(&self) -> Option<String> {
        (!self.units.contains(&WordChar::Unknown)).then(|| self.text())
    }

    /// Returns whether the shell would apply pathname expansion.
    pub(super) fn has_pattern(&self) -> bool {
        self.units
            .iter()
            .any(|unit| matches!(unit, WordChar::Plain('*' | '?' | '[')))
            || self.units.windows(2).any(|pair| {
                matches!(
                    pair,
                    [WordChar::Plain('@' | '!' | '+'), WordChar::Plain('(')]
                )
            })
    }

    /// Splits the word at slashes.
    pub(super) fn names(&self) -> Vec<ExpandedWord> {
        self.units
            .split(|unit| matches!(unit, WordChar::Plain('/') | WordChar::Quoted('/')))
            .filter(|name| !name.is_empty())
            .map(|name| ExpandedWord {
                units: name.to_vec(),
                with_backslashes: None,
            })
            .collect()
    }

    /// Returns the word as a glob. Quoted characters are escaped; extended patterns and unknown
    /// parts become `*`.
    pub(super) fn pattern(&self) -> Vec<u8> {
        let mut pattern = String::new();
        let mut at = 0;
        while let Some(unit) = self.units.get(at) {
            match (unit, self.units.get(at + 1)) {
                (WordChar::Plain('@' | '!' | '+' | '?' | '*'), Some(WordChar::Plain('('))) => {
                    pattern.push('*');
                    at = closing(&self.units, at + 1);
                    continue;
                }
                (WordChar::Plain(c), _) => pattern.push(*c),
                (WordChar::Quoted(c), _) => {
                    if !c.is_alphanumeric() {
                        pattern.push('\\');
                    }
                    pattern.push(*c);
                }
                (WordChar::Unknown, _) => pattern.push('*'),
            }
            at += 1;
        }
        pattern.into_bytes()
    }

    /// Returns everything in the word that could be a path: the whole word, the value of an option
    /// or assignment, the part after `@` or `:`, the part after something unknown.
    pub(super) fn path_candidates(&self) -> Vec<String> {
        let mut pieces = PathCandidates::default();
        let text = self.text();
        pieces.add_all(&text);
        if let Some(with_backslashes) = &self.with_backslashes {
            pieces.add_all(with_backslashes);
        }
        if text.contains(['^', '`']) {
            pieces.add_all(&text.replace(['^', '`'], ""));
        }
        if let Some(last) = self
            .units
            .iter()
            .rposition(|unit| *unit == WordChar::Unknown)
        {
            let rest = ExpandedWord {
                units: self.units[last + 1..].to_vec(),
                with_backslashes: None,
            };
            pieces.add_all(rest.text().trim_start_matches('/'));
            // A path below a denied directory.
            let filled: String = self
                .units
                .iter()
                .map(|unit| match unit {
                    WordChar::Plain(c) | WordChar::Quoted(c) => *c,
                    WordChar::Unknown => char::REPLACEMENT_CHARACTER,
                })
                .collect();
            pieces.add(&filled);
        }
        pieces.list
    }
}

fn closing(units: &[WordChar], open: usize) -> usize {
    let mut depth = 0;
    for (at, unit) in units.iter().enumerate().skip(open) {
        match unit {
            WordChar::Plain('(') => depth += 1,
            WordChar::Plain(')') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    units.len()
}

#[derive(Default)]
struct PathCandidates {
    list: Vec<String>,
    seen: HashSet<String>,
}

impl PathCandidates {
    fn add(&mut self, piece: &str) {
        if !piece.is_empty() && piece.len() <= MAX_PATH_BYTES && self.seen.insert(piece.to_owned())
        {
            self.list.push(piece.to_owned());
        }
    }

    fn add_all(&mut self, text: &str) {
        let Some((before, rest)) = text.split_once("://") else {
            self.add_parts(text);
            return;
        };
        // A URL is not a path, except a `file:` URL.
        let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme_start = before.trim_end_matches(of_scheme).len();
        self.add_parts(&before[..scheme_start]);
        if before[scheme_start..].eq_ignore_ascii_case("file") {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            self.add(path);
            self.add(&percent_encoding::percent_decode_str(path).decode_utf8_lossy());
        }
    }

    fn add_parts(&mut self, text: &str) {
        self.add(text);
        if let Some(option) = text.strip_prefix('-') {
            // A short option with a value: `-f.env`.
            let mut letters = option.chars();
            if letters.next().is_some_and(|c| c != '-') {
                self.add(letters.as_str());
            }
        }
        let separators = ['=', ':', ',', '@', '<', '>', ';', '|', '&', '(', ')'];
        for (at, _) in text.match_indices(separators) {
            self.add(&text[at + 1..]);
        }
        for piece in text.split(separators) {
            self.add(piece);
            self.add(piece.trim_start_matches(['-', '+', '?', '!', '%', '#']));
        }
    }
}

impl CommandChecker<'_> {
    /// Expands a word. Queues its command substitutions as scripts.
    pub(super) fn expand(&mut self, raw: &str, state: &ShellState) -> Vec<ExpandedWord> {
        let mut fields = Vec::new();
        for word in self.words(raw) {
            if self.is_exhausted() {
                break;
            }
            let with_backslashes = word.contains('\\').then(|| word.replace(['"', '\''], ""));
            for mut field in self.expand_parts(parts(&word), &word, state) {
                field.with_backslashes.clone_from(&with_backslashes);
                if fields.len() < MAX_BRACE_ALTERNATIVES && !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
        fields
    }

    /// Expands a word with braces into words, each with its possible values.
    pub(super) fn expand_all(&mut self, raw: &str, state: &ShellState) -> Vec<Vec<ExpandedWord>> {
        let words = self.words(raw);
        words.iter().map(|word| self.expand(word, state)).collect()
    }

    /// Expands the braces of a word.
    fn words(&mut self, raw: &str) -> Vec<String> {
        expand_braces(raw).unwrap_or_else(|| {
            self.refuse_word(raw);
            vec![raw.to_owned()]
        })
    }

    /// Denies a command with a word that cannot be parsed.
    fn refuse_word(&mut self, raw: &str) {
        self.check_rough_words(raw, &self.initial_state(), "a word cannot be parsed");
        let reason =
            "a word of the command cannot be parsed, or is too complex to check; simplify it";
        if self.denied.iter().all(|denied| denied.reason != reason) {
            self.refuse("", reason.to_owned());
        }
    }

    /// Expands the body of a here-document, an arithmetic expression or a similar text.
    pub(super) fn expand_text(&mut self, text: &str, state: &ShellState) -> Vec<ExpandedWord> {
        self.expand_parts(here_document_parts(text), text, state)
    }

    /// Returns the combinations of the possible values of the parts of `raw`.
    pub(super) fn expand_parts(
        &mut self,
        parts: Option<Vec<Part>>,
        raw: &str,
        state: &ShellState,
    ) -> Vec<ExpandedWord> {
        let Some(parts) = parts else {
            self.refuse_word(raw);
            return vec![ExpandedWord::unquoted(raw)];
        };
        let mut fields = vec![ExpandedWord::default()];
        for part in &parts {
            if self.is_exhausted() {
                break;
            }
            let options = self.options(part, state);
            // Nested variables could grow without bound.
            let grows = !matches!(part, Part::Text(..));
            let mut longer = Vec::new();
            for field in &fields {
                for option in &options {
                    if longer.len() < MAX_ALTERNATIVES {
                        let mut field: ExpandedWord = field.clone();
                        if grows && field.units.len() + option.len() > MAX_EXPANDED_CHARS {
                            if field.units.last() != Some(&WordChar::Unknown) {
                                field.units.push(WordChar::Unknown);
                            }
                        } else {
                            field.units.extend(option);
                        }
                        longer.push(field);
                    }
                }
            }
            fields = longer;
        }
        fields
    }

    fn options(&mut self, part: &Part, state: &ShellState) -> Vec<Vec<WordChar>> {
        match part {
            Part::Text(text, quoted) => vec![units(text, *quoted)],
            Part::Home(user) => match user.as_str() {
                "" => self.home_options(),
                "+" => dirs(state),
                _ => vec![vec![WordChar::Unknown]],
            },
            Part::Unknown => vec![vec![WordChar::Unknown]],
            Part::Variable(inside, quoted) => self.variable(inside, *quoted, state),
            Part::Command(body, quoted) => match self.printed(body, state) {
                Some(text) => values(&[text], *quoted),
                None => {
                    let mut state = state.clone();
                    state.output_used = true;
                    state.list_used = true;
                    self.script(body, &state);
                    vec![vec![WordChar::Unknown]]
                }
            },
        }
    }

    fn home_options(&self) -> Vec<Vec<WordChar>> {
        match self.home.as_ref().and_then(|home| home.to_str()) {
            Some(home) => vec![units(home, true)],
            None => vec![vec![WordChar::Unknown]],
        }
    }

    /// Returns the possible values of `$name` or `${inside}`.
    fn variable(&mut self, inside: &str, quoted: bool, state: &ShellState) -> Vec<Vec<WordChar>> {
        // `${!name}` is the value of the variable that `name` names.
        let indirect = inside.strip_prefix('!').filter(|name| !name.is_empty());
        let inside = indirect.unwrap_or(inside);
        let name_end = match inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            // `$@` and similar names have one character.
            Some(0) => usize::from(inside.starts_with(['@', '*', '#', '?', '$', '!', '-'])),
            end => end.unwrap_or(inside.len()),
        };
        let (name, rest) = inside.split_at(name_end);
        // `${array[i]}` may be any element.
        let rest = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((_, rest)) => rest,
            None => rest,
        };
        let known = if indirect.is_some() {
            Some(state.pointed_at(name))
        } else {
            state.values(name)
        };
        let mut options = match (name, &known) {
            ("PWD", _) => dirs(state),
            ("HOME", None) => self.home_options(),
            (_, Some(known)) if !known.is_empty() => values(known, quoted),
            _ => vec![vec![WordChar::Unknown]],
        };
        let known = known.unwrap_or_default();
        let test = rest.strip_prefix(':').unwrap_or(rest);
        match test.chars().next() {
            Some('-' | '=' | '+') => {
                let word = &test[1..];
                for field in self.expand_parts(parts(word), word, state) {
                    options.push(field.units);
                }
            }
            Some(operator @ ('%' | '#')) => {
                let pattern = test.trim_start_matches(operator);
                let cut = known.iter().filter_map(|value| match operator {
                    '%' => value.strip_suffix(pattern),
                    _ => value.strip_prefix(pattern),
                });
                options.extend(values(&cut.map(str::to_owned).collect::<Vec<_>>(), quoted));
            }
            Some(_) => {
                self.expand_text(rest, state);
                let changed: Vec<String> = known
                    .iter()
                    .filter_map(|value| changed(value, rest))
                    .collect();
                options.extend(values(&changed, quoted));
                options.push(vec![WordChar::Unknown]);
            }
            None => {}
        }
        options.truncate(MAX_ALTERNATIVES);
        options
    }
}

/// Applies `${name/old/new}` or `${name:start:length}` to a value.
fn changed(value: &str, operation: &str) -> Option<String> {
    if let Some(replace) = operation.strip_prefix('/') {
        let (all, replace) = match replace.strip_prefix('/') {
            Some(replace) => (true, replace),
            None => (false, replace),
        };
        let (old, new) = replace.split_once('/').unwrap_or((replace, ""));
        return match (old, all) {
            ("", _) => None,
            (old, true) => Some(value.replace(old, new)),
            (old, false) => Some(value.replacen(old, new, 1)),
        };
    }
    let (start, length) = match operation.strip_prefix(':')?.split_once(':') {
        Some((start, length)) => (start, Some(length)),
        None => (&operation[1..], None),
    };
    let count = value.chars().count();
    let place = |text: &str, from: usize| -> Option<usize> {
        let number: isize = text.trim().parse().ok()?;
        match usize::try_from(number) {
            Ok(number) => Some(from + number),
            Err(_) => count.checked_sub(number.unsigned_abs()),
        }
    };
    let start = place(start, 0)?;
    let end = length.map_or(Some(count), |length| place(length, start))?;
    Some(
        value
            .chars()
            .skip(start)
            .take(end.saturating_sub(start))
            .collect(),
    )
}

fn units(text: &str, quoted: bool) -> Vec<WordChar> {
    text.chars()
        .map(if quoted {
            WordChar::Quoted
        } else {
            WordChar::Plain
        })
        .collect()
}

fn dirs(state: &ShellState) -> Vec<Vec<WordChar>> {
    state
        .dirs
        .iter()
        .filter_map(|dir| dir.to_str())
        .map(|dir| units(dir, true))
        .collect()
}

/// Returns the values of a variable, and if unquoted also each of their words.
fn values(values: &[String], quoted: bool) -> Vec<Vec<WordChar>> {
    let mut options = Vec::new();
    for value in values {
        options.push(units(value, quoted));
        if !quoted && value.contains(char::is_whitespace) {
            options.extend(value.split_whitespace().map(|word| units(word, quoted)));
        }
    }
    options.truncate(MAX_ALTERNATIVES);
    options
}

/// Splits text that cannot be parsed: at every shell metacharacter, and at blanks with quotes and
/// escapes removed.
pub(super) fn rough_words(text: &str) -> Vec<String> {
    let cut = |c: char| c.is_whitespace() || ";|&<>(){}$`'\"".contains(c);
    let quotes = |c: char| "'\"`^".contains(c);
    let mut words = PathCandidates::default();
    for word in text.split(cut) {
        words.add(word);
    }
    for word in text.split_whitespace() {
        let plain = word.replace(quotes, "");
        words.add(&plain);
        words.add(&plain.replace('\\', ""));
        for part in plain.split(|c: char| ";|&<>()".contains(c)) {
            words.add(part);
        }
    }
    words.list
}
