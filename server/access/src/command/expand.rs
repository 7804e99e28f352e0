//! Expands words into the values that a command can get.
//!
//! A [`Field`] is one value. Its characters record whether they were quoted; parts that the text
//! does not show are unknown. Numbers of values and lengths are limited, so the work is linear.

use std::{collections::HashSet, ops::Range, path::Path, rc::Rc};

use sightline_base::path::posix_drive;

use super::{
    Scope,
    syntax::{Command, DeniedName, Part, Word},
};

/// Maximum words that one word with braces expands to.
const MAX_WORDS: usize = 4096;
/// Maximum bytes of an output that are known, except those of its last command.
const MAX_OUTPUT: usize = 64 << 10;
/// Maximum opening braces in a word that is expanded.
const MAX_BRACES: usize = 24;

/// Marks words that a command decodes. Unicode assigns no character to it.
pub(super) const DECODED: &str = "\u{fdd0}";

/// A character of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    /// Unquoted, so it may be part of a pattern.
    Plain(char),
    Quoted(char),
    /// Unknown text. `can_vanish`: the word may be empty and then does not exist.
    Unknown {
        can_vanish: bool,
    },
}

/// Output of a command, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub(super) text: Option<String>,
    /// Denied files whose names the output contains.
    pub(super) names: Rc<[DeniedName]>,
    /// The file whose content it is, as written.
    pub(super) path: Option<String>,
    /// Whether the text names commits, which a filter that changes them makes others.
    pub(super) names_commits: bool,
    /// Whether there is a word in it, of a text that is not known.
    pub(super) has_words: bool,
}

impl Output {
    pub(super) fn of_text(text: String) -> Self {
        Self {
            text: Some(text),
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_none() && self.names.is_empty()
    }

    /// Marks the words of a text that is decoded: it cannot be checked as a script.
    pub(super) fn mark_decoded(&mut self) {
        self.text = self.text.take().map(|text| {
            let words = text.split_inclusive(char::is_whitespace);
            words.flat_map(|word| [DECODED, word]).collect()
        });
    }

    /// Adds the output of the next command.
    pub(super) fn append(&mut self, other: Self) {
        self.has_words |= other.has_words;
        match (&mut self.text, other.text) {
            (Some(text), Some(more)) if text.len() < MAX_OUTPUT => text.push_str(&more),
            (text @ None, Some(more)) => *text = Some(more),
            _ => {}
        }
        if self.names.is_empty() {
            self.names = other.names;
        } else if !other.names.is_empty() {
            // `cat l l > l` does not repeat them.
            let mut seen = HashSet::new();
            let all = self.names.iter().chain(&*other.names);
            let new = all.filter(|name| seen.insert((&name.place, &name.path, name.form)));
            self.names = new.cloned().collect();
        }
    }
}

/// A value of a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Field {
    pub(super) units: Vec<Unit>,
    /// The word with its backslashes, as shells of Windows read it.
    pub(super) with_backslashes: Option<String>,
    /// Denied files that the unknown text may name.
    pub(super) names: Rc<[DeniedName]>,
    /// Output that is read as a file: `<(…)`.
    pub(super) file: Option<Rc<Output>>,
    /// Place of the word in the command line; empty if it has none.
    pub(super) span: Range<usize>,
}

impl Field {
    pub(super) fn quoted(text: &str) -> Self {
        Self {
            units: text.chars().map(Unit::Quoted).collect(),
            ..Self::default()
        }
    }

    pub(super) fn unknown(can_vanish: bool) -> Self {
        Self {
            units: vec![Unit::Unknown { can_vanish }],
            ..Self::default()
        }
    }

    /// An unknown value that may be one of these names.
    pub(super) fn named(names: Rc<[DeniedName]>) -> Self {
        Self {
            names,
            ..Self::unknown(false)
        }
    }

    /// Returns the text without unknown parts.
    pub(super) fn text(&self) -> String {
        let known = self.units.iter().filter_map(|unit| match unit {
            Unit::Plain(c) | Unit::Quoted(c) => Some(*c),
            Unit::Unknown { .. } => None,
        });
        known.collect()
    }

    /// Returns the text if all of it is known.
    pub(super) fn known(&self) -> Option<String> {
        (!self.has_unknown()).then(|| self.text().replace(DECODED, ""))
    }

    pub(super) fn has_unknown(&self) -> bool {
        let is_unknown = |unit: &Unit| matches!(unit, Unit::Unknown { .. });
        self.units.iter().any(is_unknown)
    }

    /// Returns whether the word may be empty and unquoted, so that the command does not get it.
    pub(super) fn can_vanish(&self) -> bool {
        let vanishes = |unit: &Unit| matches!(unit, Unit::Unknown { can_vanish: true });
        !self.units.is_empty() && self.units.iter().all(vanishes)
    }

    /// Returns whether the shell would expand it to the names of files.
    pub(super) fn has_glob(&self) -> bool {
        let is_glob = |unit: &Unit| matches!(unit, Unit::Plain('*' | '?'));
        let opens = self.units.iter().position(|unit| *unit == Unit::Plain('['));
        let has_class = opens.is_some_and(|at| self.units[at..].contains(&Unit::Plain(']')));
        has_class
            || self.units.iter().any(is_glob)
            || self
                .units
                .windows(2)
                .any(|pair| matches!(pair, [Unit::Plain('@' | '!' | '+'), Unit::Plain('(')]))
    }

    /// Returns the path in `/c/x` of Git Bash as `c:/x`, on Windows.
    fn on_drive(&self) -> Option<Self> {
        let known = self.units.iter().map_while(|unit| match unit {
            Unit::Plain(c) | Unit::Quoted(c) => Some(*c),
            Unit::Unknown { .. } => None,
        });
        let known: String = known.collect();
        let ends = known.chars().count() == self.units.len();
        let (letter, length) = posix_drive(&known).filter(|(_, at)| ends || *at < known.len())?;
        let root = [letter, ':', '/'].map(Unit::Plain);
        let below = self.units.get(length + 1..).unwrap_or_default();
        Some(Self {
            units: [&root, below].concat(),
            with_backslashes: None,
            ..self.clone()
        })
    }

    /// Returns the word as another shell reads it on Windows: PowerShell, where `\` separates names, with
    /// slashes.
    pub(super) fn slashed(&self) -> Option<Self> {
        if self.with_backslashes.is_none() {
            return self.on_drive();
        }
        let written = self.with_backslashes.as_ref().filter(|_| cfg!(windows))?;
        let units = written
            .replace('\\', "/")
            .chars()
            .map(Unit::Plain)
            .collect();
        Some(Self {
            units,
            with_backslashes: None,
            ..self.clone()
        })
    }

    /// Returns the word with patterns also in quotes.
    pub(super) fn with_quoted_globs(&self) -> Self {
        let mut word = self.clone();
        for unit in &mut word.units {
            if let Unit::Quoted(c @ ('*' | '?')) = *unit {
                *unit = Unit::Plain(c);
            }
        }
        word
    }

    /// Returns the word without its first `count` characters, none of which is written with a backslash.
    pub(super) fn skip(&self, count: usize) -> Self {
        Self {
            units: self.units[count.min(self.units.len())..].to_vec(),
            names: Rc::clone(&self.names),
            file: self.file.clone(),
            with_backslashes: (self.with_backslashes.as_ref())
                .map(|written| written.chars().skip(count).collect()),
            ..Self::default()
        }
    }

    /// Splits the word at slashes.
    pub(super) fn names_of_path(&self) -> Vec<Self> {
        let parts = self
            .units
            .split(|unit| matches!(unit, Unit::Plain('/') | Unit::Quoted('/')));
        let names = parts.filter(|name| !name.is_empty()).map(|name| Self {
            units: name.to_vec(),
            ..Self::default()
        });
        names.collect()
    }

    /// Returns the word as a glob. Quoted characters are escaped; extended patterns and unknown
    /// parts become `*`.
    pub(super) fn glob(&self) -> Vec<u8> {
        let mut pattern = String::new();
        let mut skipped_until = 0;
        for (at, unit) in self.units.iter().enumerate() {
            if at < skipped_until {
                continue;
            }
            match (unit, self.units.get(at + 1)) {
                (Unit::Plain('@' | '!' | '+' | '?' | '*'), Some(Unit::Plain('('))) => {
                    pattern.push('*');
                    let close = self.units[at..]
                        .iter()
                        .position(|it| *it == Unit::Plain(')'));
                    skipped_until = close.map_or(self.units.len(), |close| at + close + 1);
                }
                (Unit::Plain(c), _) => pattern.push(*c),
                (Unit::Quoted(c), _) => {
                    if !c.is_alphanumeric() {
                        pattern.push('\\');
                    }
                    pattern.push(*c);
                }
                (Unit::Unknown { .. }, _) => pattern.push('*'),
            }
        }
        pattern.into_bytes()
    }

    /// Returns the texts that could be a path: the text, and if a part is unknown, the text without
    /// it, the text after it and a path below a known folder.
    pub(super) fn paths(&self) -> Vec<String> {
        let is_unknown = |unit: &Unit| matches!(unit, Unit::Unknown { .. });
        let mut paths = Vec::new();
        match self.units.iter().rposition(is_unknown) {
            None => paths.push(self.text()),
            Some(last) => {
                let rest = self.skip(last + 1).text();
                paths.push(rest.trim_start_matches('/').to_owned());
                paths.push(self.text());
                let filled = self.units.iter().map(|unit| match unit {
                    Unit::Plain(c) | Unit::Quoted(c) => *c,
                    Unit::Unknown { .. } => '*',
                });
                paths.push(filled.collect());
            }
        }
        paths.extend(self.with_backslashes.clone());
        // The end of a block of PowerShell: `&{gc .env}`.
        let ends: Vec<_> = paths
            .iter()
            .filter(|path| !path.contains('{'))
            .filter_map(|path| path.strip_suffix('}'))
            .map(|path| path.trim_end_matches('}').to_owned())
            .collect();
        paths.extend(ends);
        paths.retain(|path| !path.is_empty());
        paths
    }

    /// Splits unquoted text at blanks, as a shell does.
    fn split(self) -> Vec<Self> {
        let is_separator = |unit: &Unit| matches!(unit, Unit::Plain(c) if c.is_whitespace());
        if !self.units.iter().any(is_separator) {
            return vec![self];
        }
        let parts = self.units.split(is_separator);
        let fields = parts.filter(|units| !units.is_empty()).map(|units| Self {
            units: units.to_vec(),
            names: Rc::clone(&self.names),
            ..Self::default()
        });
        fields.collect()
    }
}

/// Expands a word. Returns all of its fields, and all possible values of each.
pub(super) fn expand(word: &Word, environment: &mut Scope<'_, '_>) -> Vec<Field> {
    let mut fields = Vec::new();
    let Some(words) = braces(&word.parts) else {
        environment.refuse_word();
        return fields;
    };
    for parts in words {
        for mut field in values(&parts, environment) {
            field.with_backslashes.clone_from(&word.with_backslashes);
            if field.units.is_empty() && field.file.is_none() {
                // An empty word remains only if it is quoted.
                let is_quoted = |part: &Part| match part {
                    Part::Text { is_quoted, .. }
                    | Part::Variable { is_quoted, .. }
                    | Part::Command { is_quoted, .. } => *is_quoted,
                    _ => true,
                };
                if !parts.iter().any(is_quoted) {
                    continue;
                }
            }
            for mut field in field.split() {
                if let Some(other) = field.on_drive() {
                    // An option of cmd.exe, or a folder of the current drive for PowerShell.
                    let text = field.text();
                    let is_other = |(_, at): (char, usize)| {
                        at == text.len() || Path::new(&text[..at]).exists()
                    };
                    if !posix_drive(&text).is_some_and(is_other) {
                        field = other;
                    }
                }
                field.span = word.span.clone();
                fields.push(field);
            }
        }
    }
    fields
}

/// Expands a word without splitting it: a variable's value, or a here-document.
pub(super) fn expand_whole(word: &Word, environment: &mut Scope<'_, '_>) -> Vec<Field> {
    values(&word.parts, environment)
}

/// Returns the possible values of joined parts.
fn values(parts: &[Part], environment: &mut Scope<'_, '_>) -> Vec<Field> {
    let mut fields = vec![Field::default()];
    for part in parts {
        let options = options(part, environment);
        let mut longer = Vec::new();
        for field in &fields {
            for option in &options {
                environment.spend(field.units.len() + option.units.len());
                if environment.is_exhausted() {
                    return Vec::new();
                }
                let mut joined = field.clone();
                joined.units.extend(&option.units);
                if !option.names.is_empty() {
                    joined.names = Rc::clone(&option.names);
                }
                joined.file = joined.file.or_else(|| option.file.clone());
                longer.push(joined);
            }
        }
        fields = longer;
    }
    fields
}

fn options(part: &Part, environment: &mut Scope<'_, '_>) -> Vec<Field> {
    match part {
        Part::Text { text, is_quoted } => vec![literal(text, *is_quoted)],
        Part::Tilde(user) => match user.as_str() {
            "" => {
                let home = environment.home();
                vec![home.map_or(Field::unknown(false), |home| Field::quoted(&home))]
            }
            "+" => {
                let dirs = environment.dirs();
                dirs.iter().map(|dir| Field::quoted(dir)).collect()
            }
            "-" => environment.variable("OLDPWD").unwrap_or_default(),
            _ => vec![Field::unknown(false)],
        },
        Part::Process(body) => {
            let output = environment.output(body);
            vec![Field {
                file: Some(Rc::new(output)),
                ..Field::unknown(false)
            }]
        }
        Part::Command { body, is_quoted } => {
            let output = environment.output(body);
            // Any command of a list may be the one that does not run.
            let is_single = matches!(body.as_slice(), [Command::Simple(_) | Command::Pipeline(_)]);
            match output.text {
                Some(text) => {
                    let mut field = literal(text.trim_end_matches('\n'), *is_quoted);
                    field.names = output.names;
                    // A later command of a list, or a filter, may print nothing.
                    let is_certain = *is_quoted || matches!(body.as_slice(), [Command::Simple(_)]);
                    let nothing = (!is_certain).then(|| Field::unknown(true));
                    std::iter::once(field).chain(nothing).collect()
                }
                None => vec![Field {
                    names: output.names,
                    ..Field::unknown(!(*is_quoted || output.has_words && is_single))
                }],
            }
        }
        Part::Variable {
            name,
            operator,
            argument,
            is_quoted,
        } => {
            let argument = (!argument.is_empty() || !operator.is_empty())
                .then(|| values(argument, environment));
            variable(name, (operator, argument), *is_quoted, environment)
        }
    }
}

/// Returns the possible values of `${name OPERATOR argument}`.
fn variable(
    name: &str,
    (operator, argument): (&str, Option<Vec<Field>>),
    is_quoted: bool,
    environment: &Scope<'_, '_>,
) -> Vec<Field> {
    // `"$@"` and `"${a[@]}"` have no words without arguments.
    let mut index = argument.iter().flatten().map(Field::text);
    let is_all = name == "@" || operator.is_empty() && index.any(|index| index == "@");
    let requote = |field: &Field| {
        let mut field = field.clone();
        // Patterns of an array are expanded when it is assigned.
        let is_element = operator.is_empty() && argument.is_some();
        for unit in &mut field.units {
            *unit = match *unit {
                Unit::Plain(c) if is_element && "*?[]".contains(c) => Unit::Plain(c),
                Unit::Plain(c) | Unit::Quoted(c) if is_quoted => Unit::Quoted(c),
                Unit::Plain(c) | Unit::Quoted(c) => Unit::Plain(c),
                Unit::Unknown { can_vanish } => Unit::Unknown {
                    can_vanish: can_vanish && (!is_quoted || is_all),
                },
            };
        }
        field
    };
    let known = environment.variable(name);
    let mut fields: Vec<Field> = match (name, &known) {
        ("PWD", _) => environment
            .dirs()
            .iter()
            .map(|dir| Field::quoted(dir))
            .collect(),
        ("HOME", None) => environment
            .home()
            .iter()
            .map(|home| Field::quoted(home))
            .collect(),
        (_, Some(known)) if !known.is_empty() => known.iter().map(requote).collect(),
        _ => {
            let unknown = Field::unknown(!is_quoted || is_all);
            // A path in the environment of this process, such as `$CODEX_HOME`, is probably that of the shell. But
            // `$_` is the path of this program there.
            let is_path = |it: &String| it.starts_with('/') && !it.contains(':') && name != "_";
            let given = std::env::var(name).ok().filter(is_path);
            let mut fields = given.map_or_else(Vec::new, |it| vec![Field::quoted(&it)]);
            fields.push(unknown);
            fields
        }
    };
    let argument = argument.unwrap_or_default();
    // The result of other operators is computed.
    if operator
        .trim_start_matches(':')
        .starts_with(['-', '=', '+'])
    {
        fields.extend(argument);
    }
    fields
}

pub(super) fn literal(text: &str, is_quoted: bool) -> Field {
    let unit = if is_quoted { Unit::Quoted } else { Unit::Plain };
    Field {
        units: text.chars().map(unit).collect(),
        ..Field::default()
    }
}

/// Expands `{a,b}`, not `{1..3}`. Returns the parts of each word, or `None` if there are too many
/// braces or words.
fn braces(parts: &[Part]) -> Option<Vec<Vec<Part>>> {
    let opened = parts.iter().map(|part| match part {
        Part::Text {
            text,
            is_quoted: false,
        } => text.matches('{').count(),
        _ => 0,
    });
    match opened.sum() {
        0 => return Some(vec![parts.to_vec()]),
        1..=MAX_BRACES => {}
        _ => return None,
    }
    // One part for each unquoted character.
    let mut units = Vec::new();
    for part in parts {
        match part {
            Part::Text {
                text,
                is_quoted: false,
            } => units.extend(text.chars().map(|c| plain(&c.to_string()))),
            other => units.push(other.clone()),
        }
    }
    let words = expand_braces(&units);
    (words.len() < MAX_WORDS).then_some(words)
}

fn expand_braces(units: &[Part]) -> Vec<Vec<Part>> {
    let mut search_from = 0;
    while let Some(open) = (search_from..units.len()).find(|at| is_char(&units[*at], '{')) {
        let mut depth = 0;
        let mut commas = Vec::new();
        let mut close = None;
        for (at, unit) in units.iter().enumerate().skip(open) {
            if is_char(unit, '{') {
                depth += 1;
            } else if is_char(unit, '}') {
                depth -= 1;
                if depth == 0 {
                    close = Some(at);
                    break;
                }
            } else if depth == 1 && is_char(unit, ',') {
                commas.push(at);
            }
        }
        // Without a closing brace, no other one before it expands either.
        let Some(close) = close else { break };
        let mut members: Vec<Vec<Part>> = Vec::new();
        if !commas.is_empty() {
            let mut start = open + 1;
            for end in commas.into_iter().chain([close]) {
                members.extend(expand_braces(&units[start..end]));
                start = end + 1;
            }
        }
        if members.is_empty() {
            search_from = open + 1;
            continue;
        }
        let ends = expand_braces(&units[close + 1..]);
        let mut words = Vec::new();
        for member in &members {
            for end in &ends {
                if words.len() < MAX_WORDS {
                    words.push([&units[..open], member.as_slice(), end.as_slice()].concat());
                }
            }
        }
        return words;
    }
    vec![units.to_vec()]
}

fn plain(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
        is_quoted: false,
    }
}

fn is_char(part: &Part, c: char) -> bool {
    matches!(part, Part::Text { text, is_quoted: false } if text.len() == c.len_utf8() && text.starts_with(c))
}
