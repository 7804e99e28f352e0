//! Parses words: quotes and expansions.

use std::rc::Rc;

use super::{ParseError, Parser, is_name, text};
use crate::command::syntax::{Assignment, Command, Part, Word};

impl Parser<'_> {
    pub(super) fn word(&mut self) -> Result<Word, ParseError> {
        let start = self.at;
        let parts = self.parts("", false)?;
        if self.at == start {
            return Err("it contains an unexpected character");
        }
        let written = &self.text[start..self.at];
        Ok(Word {
            parts,
            span: self
                .place
                .map_or(0..0, |place| place + start..place + self.at),
            with_backslashes: written
                .contains('\\')
                .then(|| written.replace(['"', '\''], "")),
        })
    }

    /// Parses the parts of an unquoted text up to one of `ends`, or without any to the end of a
    /// word. `is_quoted` is whether the text is part of a quoted one.
    pub(super) fn parts(&mut self, ends: &str, is_quoted: bool) -> Result<Vec<Part>, ParseError> {
        let mut parts = Vec::new();
        let start = self.at;
        while let Some(next) = self.peek() {
            let is_word_end = next.is_whitespace() || ";&|()<>".contains(next);
            match next {
                _ if ends.contains(next) => break,
                '\\' => {
                    self.at += 1;
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(escaped) => push(&mut parts, escaped, true),
                    }
                }
                '\'' => {
                    let rest = &self.rest()[1..];
                    let end = rest.find('\'').ok_or("a quote is not closed")?;
                    parts.push(text(rest[..end].to_owned(), true));
                    self.at += end + 2;
                }
                '"' => {
                    self.at += 1;
                    let inner = self.nested(|parser| parser.quoted(Some('"')))?;
                    parts.extend(inner);
                }
                '$' if self.rest().starts_with("$'") && !is_quoted => {
                    let rest = &self.rest()[2..];
                    let end = end_of_ansi_c(rest).ok_or("a quote is not closed")?;
                    parts.push(text(ansi_c(&rest[..end]), true));
                    self.at += end + 3;
                }
                '$' if self.rest().starts_with("$\"") && !is_quoted => self.at += 1,
                '$' | '`' => parts.extend(self.nested(|parser| parser.dollar(is_quoted))?),
                '<' | '>' if ends.is_empty() && self.rest()[1..].starts_with('(') => {
                    self.at += 1;
                    parts.push(Part::Process(Rc::new(self.parenthesized()?)));
                }
                '~' if self.at == start && ends.is_empty() => {
                    let rest = &self.rest()[1..];
                    let end = rest
                        .find(|c: char| !c.is_alphanumeric() && !"+-_".contains(c))
                        .unwrap_or(rest.len());
                    parts.push(Part::Tilde(rest[..end].to_owned()));
                    self.at += 1 + end;
                }
                '(' if ends.is_empty() && ends_extended_glob(&parts) => {
                    let rest = self.rest();
                    let end = rest.find(')').ok_or("a pattern is not closed")?;
                    for c in rest[..=end].chars() {
                        push(&mut parts, c, false);
                    }
                    self.at += end + 1;
                }
                _ if ends.is_empty() && is_word_end => break,
                _ => {
                    self.at += next.len_utf8();
                    push(&mut parts, next, is_quoted);
                }
            }
        }
        if parts.is_empty() && self.at > start {
            parts.push(text(String::new(), true));
        }
        Ok(parts)
    }

    /// Parses text in double quotes up to `end`, or the body of a here-document.
    pub(super) fn quoted(&mut self, end: Option<char>) -> Result<Vec<Part>, ParseError> {
        let mut parts = vec![text(String::new(), true)];
        loop {
            let Some(next) = self.peek() else {
                return if end.is_none() {
                    Ok(parts)
                } else {
                    Err("a quote is not closed")
                };
            };
            if Some(next) == end {
                self.at += 1;
                return Ok(parts);
            }
            match next {
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                            self.at += 1;
                            push(&mut parts, escaped, true);
                        }
                        _ => push(&mut parts, '\\', true),
                    }
                }
                '$' | '`' => parts.extend(self.nested(|parser| parser.dollar(true))?),
                _ => {
                    self.at += next.len_utf8();
                    push(&mut parts, next, true);
                }
            }
        }
    }

    /// Parses an expansion that starts with `$` or a backquote.
    fn dollar(&mut self, is_quoted: bool) -> Result<Vec<Part>, ParseError> {
        let rest = self.rest();
        if rest.starts_with('`') {
            return self.backquoted(is_quoted);
        }
        if let Some(body) = self.substitution()? {
            let body = Rc::new(body);
            return Ok(vec![Part::Command { body, is_quoted }]);
        }
        if rest.starts_with("$[") {
            self.at += 2;
            let argument = self.parts("]", is_quoted)?;
            self.eat("]");
            return Ok(vec![Part::Variable {
                name: String::new(),
                operator: String::new(),
                argument,
                is_quoted: true,
            }]);
        }
        if rest.starts_with("${") {
            self.at += 2;
            return self.braced_variable(is_quoted).map(|part| vec![part]);
        }
        self.at += 1;
        let rest = self.rest();
        let name_end = match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len()),
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
            _ => return Ok(vec![text("$".to_owned(), true)]),
        };
        let name = rest[..name_end].to_owned();
        self.at += name_end;
        Ok(vec![Part::Variable {
            name,
            operator: String::new(),
            argument: Vec::new(),
            is_quoted,
        }])
    }

    /// Parses `$(…)` or `$((…))`.
    fn substitution(&mut self) -> Result<Option<Vec<Command>>, ParseError> {
        let rest = self.rest();
        if rest.starts_with("$((") && self.is_arithmetic(3) {
            self.at += 3;
            let words = self.words_until("))", true)?;
            return Ok(Some(vec![Command::Arithmetic(words)]));
        }
        if rest.starts_with("$(") {
            self.at += 1;
            return self.parenthesized().map(Some);
        }
        Ok(None)
    }

    fn braced_variable(&mut self, is_quoted: bool) -> Result<Part, ParseError> {
        let is_length = self.rest().starts_with('#') && !self.rest().starts_with("#}");
        if is_length {
            self.at += 1;
        }
        // The name in another variable is computed.
        let is_indirect = self.eat("!");
        let rest = self.rest();
        let mut name_end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if name_end == 0 {
            name_end = usize::from(rest.starts_with(['@', '*', '#', '?', '$', '!', '-']));
        }
        let name = if is_indirect { "" } else { &rest[..name_end] }.to_owned();
        self.at += name_end;
        let mut argument = Vec::new();
        if self.eat("[") {
            argument = self.parts("]}", is_quoted)?;
            self.eat("]");
        }
        let rest = self.rest();
        let operator_end = rest
            .find(|c: char| !":-=+?%#/^,@".contains(c))
            .unwrap_or(rest.len());
        let operator = rest[..operator_end].to_owned();
        self.at += operator_end;
        argument.extend(self.parts("}", is_quoted)?);
        if !self.eat("}") {
            return Err("an expansion is not closed");
        }
        Ok(Part::Variable {
            name,
            operator: if is_length { "#".to_owned() } else { operator },
            argument,
            is_quoted,
        })
    }

    fn backquoted(&mut self, is_quoted: bool) -> Result<Vec<Part>, ParseError> {
        self.at += 1;
        let mut script = String::new();
        loop {
            match self.bump().ok_or("a backquote is not closed")? {
                '`' => break,
                '\\' => match self.bump().ok_or("a backquote is not closed")? {
                    escaped @ ('`' | '\\' | '$') => script.push(escaped),
                    '"' if is_quoted => script.push('"'),
                    other => script.extend(['\\', other]),
                },
                other => script.push(other),
            }
        }
        let mut inner = Parser::new(&script, self.depth);
        let body = Rc::new(inner.list(&[])?);
        Ok(vec![Part::Command { body, is_quoted }])
    }

    /// Parses `name=value` before the first word, and `name=(…)` anywhere.
    pub(super) fn assignment(&mut self) -> Result<Option<Assignment>, ParseError> {
        let rest = self.rest();
        let name_end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let name = &rest[..name_end];
        let mut after = &rest[name_end..];
        let mut values = Vec::new();
        if !is_name(name) {
            return Ok(None);
        }
        let start = self.at;
        if after.starts_with('[') {
            self.at += name_end + 1;
            let index = self.nested(|parser| parser.parts("]", false))?;
            if !self.eat("]") {
                self.at = start;
                return Ok(None);
            }
            after = self.rest();
            values.push(Word {
                parts: index,
                ..Word::default()
            });
        } else {
            self.at += name_end;
        }
        let appends = after.starts_with("+=");
        if !(appends || after.starts_with('=')) {
            self.at = start;
            return Ok(None);
        }
        self.at += if appends { 2 } else { 1 };
        let is_array = self.eat("(");
        if is_array {
            loop {
                self.skip_blanks();
                match self.peek() {
                    None => return Err("an array is not finished"),
                    Some(')') => break,
                    Some('\n') => self.line_break()?,
                    Some(';' | '&' | '|' | '<' | '>' | '(') => self.at += 1,
                    Some(_) => values.push(self.nested(Self::word)?),
                }
            }
            self.at += 1;
        } else if self
            .peek()
            .is_some_and(|c| !c.is_whitespace() && !";&|()<>".contains(c))
            || self.rest().starts_with("<(")
        {
            values.push(self.word()?);
        } else {
            values.push(Word::default());
        }
        Ok(Some(Assignment {
            name: name.to_owned(),
            values,
            appends: appends && !is_array,
        }))
    }
}

fn push(parts: &mut Vec<Part>, c: char, quoted: bool) {
    match parts.last_mut() {
        Some(Part::Text { text, is_quoted }) if *is_quoted == quoted => text.push(c),
        _ => parts.push(text(c.to_string(), quoted)),
    }
}

fn ends_extended_glob(parts: &[Part]) -> bool {
    matches!(parts.last(), Some(Part::Text { text, is_quoted: false }) if text.ends_with(['@', '!', '+', '?', '*']))
}

/// Returns the end of the text in `$'…'`.
fn end_of_ansi_c(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.find(|c: char| {
        let ends = c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })
}

/// Decodes the text in `$'…'`.
fn ansi_c(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (radix, most, skip) = match rest.chars().next() {
            Some('x') => (16, 2, 1),
            Some('u') => (16, 4, 1),
            Some('U') => (16, 8, 1),
            Some('0'..='7') => (8, 3, 0),
            Some(other) => {
                decoded.push(match other {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
                rest = &rest[other.len_utf8()..];
                continue;
            }
            None => break,
        };
        rest = &rest[skip..];
        let digits = rest
            .chars()
            .take(most)
            .take_while(|c| c.is_digit(radix))
            .count();
        let code = u32::from_str_radix(&rest[..digits], radix).ok();
        decoded.extend(code.and_then(char::from_u32));
        rest = &rest[digits..];
    }
    decoded + rest
}
