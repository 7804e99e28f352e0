//! Words of a shell command: quotes, variables, substitutions, braces.
//!
//! A word becomes one or several [`Field`]s: what it can stand for, each
//! character knowing whether it was quoted, with marks where something cannot
//! be known. Everything is linear in the input, with caps on what multiplies.

use std::collections::HashSet;

use super::{Audit, shell::Scope};

/// Alternatives kept for one word.
const MAX_FIELDS: usize = 64;
/// Characters a word can grow to by its variables; beyond, they are unknown.
const MAX_GROWN: usize = 4096;
/// Longest piece of a word that is taken for a path, in bytes: what Linux takes.
const MAX_PIECE: usize = 4096;
/// Words one brace expansion may make.
const MAX_BRACES: usize = 256;

/// A character of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Not quoted: may be part of a pattern.
    Plain(char),
    Quoted(char),
    /// Something that cannot be known.
    Unknown,
}

/// One thing a word can stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    units: Vec<Unit>,
    /// The word with its backslashes, as other shells would read it.
    slanted: Option<String>,
}

impl Field {
    pub(super) fn unquoted(text: &str) -> Self {
        Self {
            units: text.chars().map(Unit::Plain).collect(),
            slanted: None,
        }
    }

    /// The text; what is unknown is left out.
    pub(super) fn text(&self) -> String {
        self.units
            .iter()
            .filter_map(|unit| match unit {
                Unit::Plain(c) | Unit::Quoted(c) => Some(*c),
                Unit::Unknown => None,
            })
            .collect()
    }

    /// The text, when all of it is known.
    pub(super) fn known(&self) -> Option<String> {
        (!self.units.contains(&Unit::Unknown)).then(|| self.text())
    }

    /// Would the shell look for files that match?
    pub(super) fn has_pattern(&self) -> bool {
        self.units
            .iter()
            .any(|unit| matches!(unit, Unit::Plain('*' | '?' | '[')))
            || self
                .units
                .windows(2)
                .any(|pair| matches!(pair, [Unit::Plain('@' | '!' | '+'), Unit::Plain('(')]))
    }

    /// The names between slashes.
    pub(super) fn names(&self) -> Vec<Field> {
        self.units
            .split(|unit| matches!(unit, Unit::Plain('/') | Unit::Quoted('/')))
            .filter(|name| !name.is_empty())
            .map(|name| Field {
                units: name.to_vec(),
                slanted: None,
            })
            .collect()
    }

    /// As a glob: quoted characters escaped, extended patterns and what is
    /// unknown widened to `*`.
    pub(super) fn pattern(&self) -> Vec<u8> {
        let mut pattern = String::new();
        let mut at = 0;
        while let Some(unit) = self.units.get(at) {
            match (unit, self.units.get(at + 1)) {
                (Unit::Plain('@' | '!' | '+' | '?' | '*'), Some(Unit::Plain('('))) => {
                    pattern.push('*');
                    at = closing(&self.units, at + 1);
                    continue;
                }
                (Unit::Plain(c), _) => pattern.push(*c),
                (Unit::Quoted(c), _) => {
                    if !c.is_alphanumeric() {
                        pattern.push('\\');
                    }
                    pattern.push(*c);
                }
                (Unit::Unknown, _) => pattern.push('*'),
            }
            at += 1;
        }
        pattern.into_bytes()
    }

    /// Everything in the word that could be a path: the whole, the value of an
    /// option or assignment, what stands behind `@` or `:`, the rest behind
    /// something unknown.
    pub(super) fn pieces(&self) -> Vec<String> {
        let mut pieces = Pieces::default();
        let text = self.text();
        pieces.add_all(&text);
        if let Some(slanted) = &self.slanted {
            pieces.add_all(slanted);
        }
        if text.contains(['^', '`']) {
            pieces.add_all(&text.replace(['^', '`'], ""));
        }
        if let Some(last) = self.units.iter().rposition(|unit| *unit == Unit::Unknown) {
            let rest = Field {
                units: self.units[last + 1..].to_vec(),
                slanted: None,
            };
            pieces.add_all(rest.text().trim_start_matches('/'));
            // Something below a denied folder.
            let filled: String = self
                .units
                .iter()
                .map(|unit| match unit {
                    Unit::Plain(c) | Unit::Quoted(c) => *c,
                    Unit::Unknown => char::REPLACEMENT_CHARACTER,
                })
                .collect();
            pieces.add(&filled);
        }
        pieces.list
    }
}

fn closing(units: &[Unit], open: usize) -> usize {
    let mut depth = 0;
    for (at, unit) in units.iter().enumerate().skip(open) {
        match unit {
            Unit::Plain('(') => depth += 1,
            Unit::Plain(')') => {
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
struct Pieces {
    list: Vec<String>,
    seen: HashSet<String>,
}

impl Pieces {
    fn add(&mut self, piece: &str) {
        if !piece.is_empty() && piece.len() <= MAX_PIECE && self.seen.insert(piece.to_owned()) {
            self.list.push(piece.to_owned());
        }
    }

    fn add_all(&mut self, text: &str) {
        let Some((before, rest)) = text.split_once("://") else {
            self.add_parts(text);
            return;
        };
        // An address is no path, unless it is one of a file.
        let scheme_start = before
            .rfind(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .map_or(0, |at| at + 1);
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
            // A short option with its value: `-f.env`.
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

/// A word of the shell as written, in parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(String, bool),
    /// `$name` or the inside of `${...}`.
    Variable(String, bool),
    /// The inside of `$(...)` or backquotes.
    Command(String, bool),
    /// `~` and what follows up to a slash.
    Home(String),
}

/// Takes a word apart. Nothing is an error: what is left open ends with the word.
pub(super) fn parts(raw: &str) -> Vec<Part> {
    let mut reader = Reader::new(raw);
    if let Some(rest) = raw.strip_prefix('~') {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"_-+.".contains(c))
            .unwrap_or(rest.len());
        if rest[end..].is_empty() || rest[end..].starts_with(['/', ':']) {
            reader.parts.push(Part::Home(rest[..end].to_owned()));
            reader.at = 1 + end;
        }
    }
    reader.unquoted();
    reader.parts
}

/// Takes the body of a here-document apart, where quotes mean nothing.
pub(super) fn parts_of_document(body: &str) -> Vec<Part> {
    let mut reader = Reader::new(body);
    reader.double_quoted(None);
    reader.parts
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    parts: Vec<Part>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            parts: Vec::new(),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn push(&mut self, c: char, quoted: bool) {
        if let Some(Part::Text(text, was_quoted)) = self.parts.last_mut()
            && *was_quoted == quoted
        {
            text.push(c);
            return;
        }
        self.parts.push(Part::Text(c.to_string(), quoted));
    }

    fn unquoted(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped, true),
                },
                '\'' => {
                    while let Some(c) = self.next() {
                        if c == '\'' {
                            break;
                        }
                        self.push(c, true);
                    }
                }
                '"' => self.double_quoted(Some('"')),
                '$' if self.peek() == Some('\'') => {
                    self.next();
                    self.c_quoted();
                }
                '$' if self.peek() == Some('"') => {
                    self.next();
                    self.double_quoted(Some('"'));
                }
                '$' => self.dollar(false),
                '`' => self.backquoted(false),
                c => self.push(c, false),
            }
        }
    }

    fn double_quoted(&mut self, end: Option<char>) {
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => return,
                '\\' => match self.peek() {
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        self.next();
                        self.push(escaped, true);
                    }
                    Some('\n') => {
                        self.next();
                    }
                    _ => self.push('\\', true),
                },
                '$' => self.dollar(true),
                '`' => self.backquoted(true),
                c => self.push(c, true),
            }
        }
    }

    /// `$'...'`, behind its quote.
    fn c_quoted(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => {
                    let Some(escape) = self.next() else { return };
                    let decoded = match escape {
                        'n' => Some('\n'),
                        't' => Some('\t'),
                        'r' => Some('\r'),
                        'x' => self.number(16, 2),
                        'u' => self.number(16, 4),
                        'U' => self.number(16, 8),
                        '0'..='7' => {
                            self.at -= 1;
                            self.number(8, 3)
                        }
                        other => Some(other),
                    };
                    if let Some(c) = decoded {
                        self.push(c, true);
                    }
                }
                c => self.push(c, true),
            }
        }
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<char> {
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.next();
            value = value.wrapping_mul(radix).wrapping_add(digit);
        }
        char::from_u32(value)
    }

    fn dollar(&mut self, quoted: bool) {
        match self.peek() {
            Some('(') => {
                self.next();
                let body = self.enclosed('(', ')');
                self.parts.push(Part::Command(body, quoted));
            }
            Some('{') => {
                self.next();
                let body = self.enclosed('{', '}');
                self.parts.push(Part::Variable(body, quoted));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = &self.text[self.at..];
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                self.at += end;
                self.parts
                    .push(Part::Variable(rest[..end].to_owned(), quoted));
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.next();
                self.parts.push(Part::Variable(c.to_string(), quoted));
            }
            _ => self.push('$', quoted),
        }
    }

    /// What stands before the bracket that closes the one just read.
    fn enclosed(&mut self, open: char, close: char) -> String {
        let start = self.at;
        let mut depth = 1;
        let mut quote = None;
        while let Some(c) = self.next() {
            match (quote, c) {
                (Some('\''), '\'') => quote = None,
                (Some('\''), _) => {}
                (_, '\\') => {
                    self.next();
                }
                (Some('"'), '"') => quote = None,
                (Some('"'), '(' | ')' | '{' | '}') => {}
                (None, '\'' | '"') => quote = Some(c),
                (_, c) if c == open => depth += 1,
                (_, c) if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        return self.text[start..self.at - c.len_utf8()].to_owned();
                    }
                }
                _ => {}
            }
        }
        self.text[start..].to_owned()
    }

    fn backquoted(&mut self, quoted: bool) {
        let mut body = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => break,
                '\\' => match self.next() {
                    Some(escaped @ ('`' | '\\' | '$')) => body.push(escaped),
                    Some('"') if quoted => body.push('"'),
                    Some(other) => body.extend(['\\', other]),
                    None => {}
                },
                c => body.push(c),
            }
        }
        self.parts.push(Part::Command(body, quoted));
    }
}

impl Audit<'_> {
    /// What a word can stand for. Commands in it are noted as scripts.
    pub(super) fn expand(&mut self, raw: &str, scope: &Scope) -> Vec<Field> {
        let mut fields = Vec::new();
        for word in braces(raw) {
            if self.is_exhausted() {
                break;
            }
            let slanted = word.contains('\\').then(|| word.replace(['"', '\''], ""));
            for mut field in self.combine(&parts(&word), scope) {
                field.slanted.clone_from(&slanted);
                if fields.len() < MAX_BRACES && !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
        fields
    }

    /// What the parts of a word can stand for together.
    pub(super) fn combine(&mut self, parts: &[Part], scope: &Scope) -> Vec<Field> {
        let mut fields = vec![Field::default()];
        for part in parts {
            if self.is_exhausted() {
                break;
            }
            let options = self.options(part, scope);
            // Variables made of variables could grow without end.
            let grows = !matches!(part, Part::Text(..));
            let mut longer = Vec::new();
            for field in &fields {
                for option in &options {
                    if longer.len() < MAX_FIELDS {
                        let mut field: Field = field.clone();
                        if grows && field.units.len() + option.len() > MAX_GROWN {
                            if field.units.last() != Some(&Unit::Unknown) {
                                field.units.push(Unit::Unknown);
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

    fn options(&mut self, part: &Part, scope: &Scope) -> Vec<Vec<Unit>> {
        match part {
            Part::Text(text, quoted) => vec![units(text, *quoted)],
            Part::Home(user) => match user.as_str() {
                "" => self.home_options(),
                "+" => dirs(scope),
                _ => vec![vec![Unit::Unknown]],
            },
            Part::Variable(inside, quoted) => self.variable(inside, *quoted, scope),
            Part::Command(body, quoted) => match self.printed(body, scope) {
                Some(text) => values(&[text], *quoted),
                None => {
                    let mut scope = scope.clone();
                    scope.output_used = true;
                    self.script(body, &scope);
                    vec![vec![Unit::Unknown]]
                }
            },
        }
    }

    fn home_options(&self) -> Vec<Vec<Unit>> {
        match self.home.as_ref().and_then(|home| home.to_str()) {
            Some(home) => vec![units(home, true)],
            None => vec![vec![Unit::Unknown]],
        }
    }

    /// What `$name` or `${inside}` can stand for.
    fn variable(&mut self, inside: &str, quoted: bool, scope: &Scope) -> Vec<Vec<Unit>> {
        let name_end = inside
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(inside.len());
        let (name, rest) = inside.split_at(name_end);
        // `${array[i]}` can be any element.
        let rest = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((_, rest)) => rest,
            None => rest,
        };
        let mut options = match (name, scope.values(name)) {
            ("PWD", _) => dirs(scope),
            ("HOME", None) => self.home_options(),
            (_, Some(known)) => values(known, quoted),
            (_, None) => vec![vec![Unit::Unknown]],
        };
        if name.is_empty() {
            // `${!name}`, `${#name}` and the like; commands may still hide in it.
            self.combine(&parts_of_document(rest), scope);
            return options;
        }
        let test = rest.strip_prefix(':').unwrap_or(rest);
        match test.chars().next() {
            Some('-' | '=' | '+') => {
                let word = &test[1..];
                for field in self.combine(&parts(word), scope) {
                    options.push(field.units);
                }
            }
            Some(operator @ ('%' | '#')) => {
                let pattern = test.trim_start_matches(operator);
                let cut: Vec<String> = scope
                    .values(name)
                    .into_iter()
                    .flatten()
                    .filter_map(|value| {
                        let cut = match operator {
                            '%' => value.strip_suffix(pattern),
                            _ => value.strip_prefix(pattern),
                        };
                        cut.map(str::to_owned)
                    })
                    .collect();
                options.extend(values(&cut, quoted));
            }
            Some(_) => {
                self.combine(&parts_of_document(rest), scope);
                options.push(vec![Unit::Unknown]);
            }
            None => {}
        }
        options.truncate(MAX_FIELDS);
        options
    }

    /// What a substitution prints, when it is a plain `echo` or `printf`.
    fn printed(&mut self, body: &str, scope: &Scope) -> Option<String> {
        let words = simple_words(body)?;
        let (name, operands) = words.split_first()?;
        let mut texts = Vec::new();
        for operand in operands {
            let fields = self.combine(&parts(operand), scope);
            let [field] = fields.as_slice() else {
                return None;
            };
            if field.has_pattern() {
                return None;
            }
            texts.push(field.known()?);
        }
        let text = match name.as_str() {
            "echo" => printed_by_echo(&texts),
            "printf" => printed_by_printf(&texts),
            "pwd" => scope.dirs.first()?.to_str()?.to_owned(),
            _ => return None,
        };
        Some(text.trim_end_matches('\n').to_owned())
    }
}

/// What `echo` prints.
pub(super) fn printed_by_echo(operands: &[String]) -> String {
    let skipped = operands
        .iter()
        .take_while(|word| matches!(word.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en"))
        .count();
    operands[skipped..].join(" ")
}

/// Roughly what `printf` prints: its operands, or its format when it has none.
pub(super) fn printed_by_printf(operands: &[String]) -> String {
    let clean = |text: &str| text.replace("\\n", "\n").replace("\\t", "\t");
    match operands {
        [] => String::new(),
        [format] => clean(format),
        [format, rest @ ..] if format.matches('%').count() == rest.len() => {
            // Placeholders in order: `printf '%s.%s' a b`.
            let mut text = String::new();
            let mut rest = rest.iter();
            let mut pieces = format.split('%');
            text.push_str(pieces.next().unwrap_or_default());
            for piece in pieces {
                text.push_str(rest.next().map_or("", String::as_str));
                text.push_str(piece.get(1..).unwrap_or_default());
            }
            clean(&text)
        }
        [_, rest @ ..] => rest.join("\n"),
    }
}

/// The words of a command that is nothing but words.
fn simple_words(body: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut chars = body.trim().chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t') => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            (None, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '\n' | '#') => return None,
            (None | Some('"'), '`') => return None,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                word.push(c);
                word.extend(chars.next());
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    Some(words)
}

fn units(text: &str, quoted: bool) -> Vec<Unit> {
    text.chars()
        .map(if quoted { Unit::Quoted } else { Unit::Plain })
        .collect()
}

fn dirs(scope: &Scope) -> Vec<Vec<Unit>> {
    scope
        .dirs
        .iter()
        .filter_map(|dir| dir.to_str())
        .map(|dir| units(dir, true))
        .collect()
}

/// The values of a variable: quoted whole, else also their words one by one.
fn values(values: &[String], quoted: bool) -> Vec<Vec<Unit>> {
    let mut options = Vec::new();
    for value in values {
        options.push(units(value, quoted));
        if !quoted && value.contains(char::is_whitespace) {
            options.extend(value.split_whitespace().map(|word| units(word, quoted)));
        }
    }
    options.truncate(MAX_FIELDS);
    options
}

/// The words a word with braces makes: `{a,b}` and `{1..3}`. Quoted braces and
/// those of `${...}` stay; so does the whole when it would make too many.
fn braces(raw: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut todo = vec![raw.to_owned()];
    while let Some(word) = todo.pop() {
        match brace(&word) {
            Some(alternatives) => todo.extend(alternatives.into_iter().rev()),
            None => done.push(word),
        }
        if todo.len() + done.len() > MAX_BRACES {
            return vec![raw.to_owned()];
        }
    }
    done
}

/// Replaces the first brace expression of a word by its alternatives.
fn brace(word: &str) -> Option<Vec<String>> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut quote: Option<char> = None;
    let mut chars = word.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                chars.next();
            }
            (Some('"'), '"') => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '$') if chars.peek().is_some_and(|(_, c)| *c == '{') => {
                // Not a brace expression; its end must not end one either.
                chars.next();
                let mut depth = 1;
                for (_, c) in chars.by_ref() {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    if depth == 0 {
                        break;
                    }
                }
            }
            (None, '{') => open.push((at, Vec::new())),
            (None, ',') => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            (None, '}') => {
                let Some((start, commas)) = open.pop() else {
                    continue;
                };
                let (before, after) = (&word[..start], &word[at + 1..]);
                let members = if commas.is_empty() {
                    sequence(&word[start + 1..at])
                } else {
                    let mut edges = vec![start];
                    edges.extend(commas);
                    edges.push(at);
                    let members = edges
                        .windows(2)
                        .map(|pair| word[pair[0] + 1..pair[1]].to_owned());
                    Some(members.collect())
                };
                if let Some(members) = members {
                    let members: Vec<String> = members;
                    return Some(
                        members
                            .iter()
                            .map(|member| format!("{before}{member}{after}"))
                            .collect(),
                    );
                }
            }
            _ => {}
        }
    }
    None
}

/// `1..9` or `a..e`.
fn sequence(inside: &str) -> Option<Vec<String>> {
    let (from, to) = inside.split_once("..")?;
    let to = to.split("..").next()?;
    if let (Ok(from), Ok(to)) = (from.parse::<i32>(), to.parse::<i32>()) {
        let (low, high) = (from.min(to), from.max(to));
        if i64::from(high) - i64::from(low) > 200 {
            return None;
        }
        return Some((low..=high).map(|number| number.to_string()).collect());
    }
    let mut letters = [from, to].into_iter().map(|end| {
        let mut chars = end.chars();
        let letter = chars.next().filter(char::is_ascii)?;
        chars.next().is_none().then_some(letter)
    });
    let (from, to) = (letters.next()??, letters.next()??);
    Some((from.min(to)..=from.max(to)).map(String::from).collect())
}

/// Everything that could be a word, for text the grammar does not take: cut at
/// every character that means something to a shell, and cut at blanks only with
/// quotes and escapes taken out.
pub(super) fn rough(text: &str) -> Vec<String> {
    let cut = |c: char| c.is_whitespace() || ";|&<>(){}$`'\"".contains(c);
    let quotes = |c: char| "'\"`^".contains(c);
    let mut words = Pieces::default();
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
