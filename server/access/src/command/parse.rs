//! Parses shell text into commands.
//!
//! The parser serves the check, not execution: it keeps what a command can read and drops the rest.
//! Branches and loops become lists, because any of their commands may run. It takes linear time,
//! and accepts what bash would reject unless text could hide in it: unfinished quotes, substitutions
//! and compound commands are errors.

mod braces;
mod words;

use std::{cell::OnceCell, rc::Rc};

use super::syntax::{Body, Command, Part, Redirect, RedirectKind, Simple, Word};

/// Maximum nesting of substitutions and compound commands.
const MAX_DEPTH: usize = 40;
/// Reserved words that separate commands within a compound command.
const SEPARATORS: &[&str] = &["then", "elif", "else", "do", "!", "time", "coproc", "in"];

/// Keywords of statements that PowerShell writes with braces.
const BRACED: &[&str] = &["if", "while", "until", "for", "foreach", "switch"];

/// Why text cannot be parsed.
pub(super) type ParseError = &'static str;

/// Parses a script that begins at `place` in the command line.
pub(super) fn parse(text: &str, place: usize) -> Result<Vec<Command>, ParseError> {
    let mut parser = Parser::new(text, 0);
    parser.place = Some(place);
    let commands = parser.list(&[])?;
    if parser.at < parser.text.len() {
        return Err("it contains an unexpected character");
    }
    Ok(commands)
}

struct HereDocument {
    delimiter: String,
    is_quoted: bool,
    strips_tabs: bool,
    body: Rc<OnceCell<Word>>,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    pending: Vec<HereDocument>,
    /// Nesting of parentheses, in which `)` ends a list.
    parens: usize,
    /// Where the text begins in the command line. `None` if its words have no places.
    place: Option<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            pending: Vec::new(),
            parens: 0,
            place: None,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Runs a parser of a nested construct.
    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(blank) = self.peek().filter(|c| *c != '\n' && c.is_whitespace()) {
                self.at += blank.len_utf8();
            } else {
                return;
            }
        }
    }

    /// Consumes a line break and the here-documents after it.
    fn line_break(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        for document in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while self.at < self.text.len() {
                let rest = self.rest();
                let end = rest.find('\n').unwrap_or(rest.len());
                let mut line = &rest[..end];
                if document.strips_tabs {
                    line = line.trim_start_matches('\t');
                }
                // In a substitution, the delimiter may be followed by its end.
                let is_end = line == document.delimiter
                    || (self.parens > 0 && line.strip_prefix(&*document.delimiter) == Some(")"));
                if is_end {
                    self.at += if line == document.delimiter {
                        (end + 1).min(rest.len())
                    } else {
                        end - 1
                    };
                    break;
                }
                body.push_str(line);
                body.push('\n');
                self.at += (end + 1).min(rest.len());
            }
            let parts = if document.is_quoted {
                vec![text(body, true)]
            } else {
                let mut inner = Parser::new(&body, self.depth);
                inner.nested(|parser| parser.quoted(None))?
            };
            let _ = document.body.set(Word {
                parts,
                ..Word::default()
            });
        }
        Ok(())
    }

    /// The word at this place, if it is written without quotes and expansions.
    fn reserved(&self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || ";&|()<>'\"\\$`".contains(c))
            .unwrap_or(rest.len());
        &rest[..end]
    }

    /// Parses commands up to one of the reserved words in `ends`, or to `)` in parentheses.
    fn list(&mut self, ends: &[&str]) -> Result<Vec<Command>, ParseError> {
        let mut commands = Vec::new();
        let mut is_negated = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => break,
                Some('\n') => self.line_break()?,
                Some(';') if ends.contains(&";;") && self.eat(";;") => {
                    self.eat("&");
                    return Ok(commands);
                }
                Some('&' | '|') if self.eat("&&") || self.eat("||") => {
                    let is_and = self.text[..self.at].ends_with('&') && !is_negated;
                    commands.push(if is_and { Command::And } else { Command::Or });
                    is_negated = false;
                }
                Some('&') if !self.rest().starts_with("&>") => {
                    self.at += 1;
                    commands.push(Command::Background);
                }
                Some(';' | '|') => self.at += 1,
                Some(')') if self.parens > 0 => break,
                Some(')') => self.at += 1,
                Some(_) => {
                    let word = self.reserved();
                    if ends.contains(&word) {
                        self.at += word.len();
                        return Ok(commands);
                    }
                    if SEPARATORS.contains(&word) {
                        self.at += word.len();
                        is_negated |= word == "!";
                        if matches!(word, "else" | "elif") {
                            commands.push(Command::Branch);
                        }
                        continue;
                    }
                    let before = self.at;
                    commands.extend(self.pipeline()?);
                    if self.at == before {
                        return Err("it contains an unexpected character");
                    }
                    self.skip_blanks();
                    is_negated &= self.rest().starts_with("&&");
                }
            }
        }
        if ends.is_empty() {
            Ok(commands)
        } else {
            Err("a compound command is not finished")
        }
    }

    fn pipeline(&mut self) -> Result<Option<Command>, ParseError> {
        let mut stages = Vec::new();
        loop {
            stages.push(self.command()?);
            self.skip_blanks();
            let rest = self.rest();
            if !rest.starts_with('|') || rest.starts_with("||") {
                break;
            }
            self.at += if rest.starts_with("|&") { 2 } else { 1 };
            self.skip_blanks();
            while self.peek() == Some('\n') {
                self.line_break()?;
                self.skip_blanks();
            }
        }
        Ok(match stages.len() {
            1 => stages.pop(),
            _ => Some(Command::Pipeline(stages)),
        })
    }

    fn command(&mut self) -> Result<Command, ParseError> {
        self.skip_blanks();
        let word = self.reserved();
        if BRACED.contains(&word)
            && let Some(statement) = self.nested(|parser| parser.braced(word))?
        {
            return Ok(statement);
        }
        let body = match word {
            "!" | "time" | "coproc" => {
                self.at += word.len();
                return self.nested(Self::command);
            }
            "if" => self.compound(word, &["fi"])?,
            "while" | "until" => self.compound(word, &["done"])?,
            "{" => self.compound(word, &["}"])?,
            "for" | "select" => return self.nested(|parser| parser.for_loop(word)),
            "case" => self.nested(Self::case)?,
            "function" => {
                self.at += word.len();
                self.skip_blanks();
                let name = self.reserved();
                self.at += name.len();
                return self.nested(|parser| parser.function(name));
            }
            "[[" => {
                self.at += 2;
                return Ok(Command::Test(self.words_until("]]", false)?));
            }
            _ if self.rest().starts_with("((") && self.is_arithmetic(2) => {
                self.at += 2;
                return Ok(Command::Arithmetic(self.words_until("))", true)?));
            }
            _ if self.rest().starts_with('(') => {
                let body = self.parenthesized()?;
                return Ok(Command::Group {
                    body,
                    redirects: self.redirects()?,
                    is_subshell: true,
                });
            }
            _ => return self.simple(),
        };
        Ok(Command::Group {
            body,
            redirects: self.redirects()?,
            is_subshell: false,
        })
    }

    fn compound(&mut self, word: &str, ends: &[&str]) -> Result<Vec<Command>, ParseError> {
        self.at += word.len();
        let parens = std::mem::take(&mut self.parens);
        let body = self.nested(|parser| parser.list(ends));
        self.parens = parens;
        body
    }

    /// Parses `( … )` and the contents of `$( … )`.
    fn parenthesized(&mut self) -> Result<Vec<Command>, ParseError> {
        self.at += 1;
        self.parens += 1;
        let body = self.nested(|parser| parser.list(&[]));
        self.parens -= 1;
        if self.eat(")") {
            body
        } else {
            body.and(Err("a parenthesis is not closed"))
        }
    }

    fn function(&mut self, name: &str) -> Result<Command, ParseError> {
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            self.eat(")");
        }
        self.skip_blanks();
        while self.peek() == Some('\n') {
            self.line_break()?;
            self.skip_blanks();
        }
        let start = self.at;
        let command = self.command()?;
        Ok(Command::Function {
            name: name.to_owned(),
            body: Rc::new(Body::new(command, &self.text[start..self.at])),
        })
    }

    fn for_loop(&mut self, word: &str) -> Result<Command, ParseError> {
        self.at += word.len();
        self.skip_blanks();
        let mut body = Vec::new();
        if self.rest().starts_with("((") {
            self.at += 2;
            body.push(Command::Arithmetic(self.words_until("))", true)?));
        }
        let name = self.reserved().to_owned();
        self.at += name.len();
        self.skip_separators()?;
        let mut words = Vec::new();
        if self.reserved() == "in" {
            self.at += 2;
            loop {
                self.skip_blanks();
                match self.peek() {
                    None | Some('\n' | ';' | '&' | '|' | ')') => break,
                    Some('(') => self.at += 1,
                    Some(_) => words.push(self.word()?),
                }
            }
        }
        self.skip_separators()?;
        // `for f in a b { … }` is accepted by some shells.
        let (start, end) = if self.reserved() == "{" {
            ("{", "}")
        } else {
            ("", "done")
        };
        body.extend(self.compound(start, &[end])?);
        Ok(Command::For {
            name,
            words,
            body,
            redirects: self.redirects()?,
        })
    }

    fn skip_separators(&mut self) -> Result<(), ParseError> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('\n') => self.line_break()?,
                Some(';') => self.at += 1,
                _ => return Ok(()),
            }
        }
    }

    fn case(&mut self) -> Result<Vec<Command>, ParseError> {
        self.at += "case".len();
        self.skip_blanks();
        let mut tests = vec![self.word()?];
        self.skip_separators()?;
        if self.reserved() != "in" {
            return Err("a compound command is not finished");
        }
        self.at += 2;
        let mut body = Vec::new();
        loop {
            self.skip_separators()?;
            self.eat("(");
            if self.reserved() == "esac" {
                self.at += "esac".len();
                break;
            }
            while !self.eat(")") {
                self.skip_blanks();
                match self.peek() {
                    None => return Err("a compound command is not finished"),
                    Some('|' | '(' | ';' | '&' | '<' | '>') => self.at += 1,
                    Some('\n') => self.line_break()?,
                    Some(')') => {}
                    Some(_) => tests.push(self.word()?),
                }
            }
            body.push(Command::Branch);
            // `;;` is optional after the last commands.
            body.extend(self.compound("", &[";;", "esac"])?);
            if self.text[..self.at].ends_with("esac") {
                break;
            }
        }
        body.insert(0, Command::Test(tests));
        Ok(body)
    }

    /// Returns whether the parenthesis after `skip` bytes closes with `))`.
    fn is_arithmetic(&self, skip: usize) -> bool {
        let mut depth = 0;
        let mut quote = None;
        let rest = self.rest().as_bytes();
        let mut at = skip;
        while let Some(&byte) = rest.get(at) {
            match (byte, quote) {
                (b'\\', None | Some(b'"')) => at += 1,
                (byte, Some(open)) if byte == open => quote = None,
                (_, Some(_)) => {}
                (b'\'' | b'"' | b'`', None) => quote = Some(byte),
                (b'(', None) => depth += 1,
                (b')', None) if depth == 0 => return rest.get(at + 1) == Some(&b')'),
                (b')', None) => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// Parses words without regard to operators, up to `end`.
    fn words_until(&mut self, end: &str, splits: bool) -> Result<Vec<Word>, ParseError> {
        let mut words = Vec::new();
        loop {
            while self.peek().is_some_and(char::is_whitespace) {
                self.at += self.peek().map_or(0, char::len_utf8);
            }
            if self.eat(end) {
                return Ok(words);
            }
            match self.peek() {
                None => return Err("a test or an expression is not finished"),
                Some('(' | ')' | '<' | '>' | '&' | '|' | ';' | '#') => self.at += 1,
                Some('*' | '+' | '/' | '=' | ',' | '?' | ':' | '!' | '%' | '^') if splits => {
                    self.at += 1;
                }
                Some(_) => words.push(self.nested(Self::word)?),
            }
        }
    }

    fn redirects(&mut self) -> Result<Vec<Redirect>, ParseError> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// Parses a redirection, if there is one.
    fn redirect(&mut self) -> Result<Option<Redirect>, ParseError> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let named = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .filter(|(name, after)| is_name(name) && after.starts_with(['<', '>']))
            .map_or(0, |(name, _)| name.len() + 2);
        let operator = &rest[digits.max(named)..];
        let forms = [
            ("<<<", RedirectKind::Text),
            ("<<-", RedirectKind::Text),
            ("<<", RedirectKind::Text),
            ("<>", RedirectKind::ReadWrite),
            ("<&", RedirectKind::Duplicate),
            ("<(", RedirectKind::Duplicate),
            (">(", RedirectKind::Duplicate),
            ("<", RedirectKind::Read),
            ("&>>", RedirectKind::Write),
            ("&>", RedirectKind::Write),
            (">&", RedirectKind::Duplicate),
            (">>", RedirectKind::Write),
            (">|", RedirectKind::Write),
            (">", RedirectKind::Write),
        ];
        let Some((form, kind)) = forms.iter().find(|(form, _)| operator.starts_with(form)) else {
            return Ok(None);
        };
        if form.ends_with('(') {
            return Ok(None);
        }
        let descriptor = &rest[..digits.max(named)];
        let is_output = descriptor.is_empty() || descriptor.parse() == Ok(1);
        self.at += digits.max(named) + form.len();
        self.skip_blanks();
        let target = Rc::new(OnceCell::new());
        if matches!(*form, "<<" | "<<-") {
            let start = self.at;
            let word = self.word()?;
            let written = &self.text[start..self.at];
            self.pending.push(HereDocument {
                delimiter: literal(&word),
                is_quoted: written.contains(['\'', '"', '\\']),
                strips_tabs: *form == "<<-",
                body: Rc::clone(&target),
            });
        } else {
            let is_missing = self
                .peek()
                .is_none_or(|c| c.is_whitespace() || ";&|)".contains(c));
            let word = if is_missing {
                Word::default()
            } else {
                self.word()?
            };
            let _ = target.set(word);
        }
        Ok(Some(Redirect {
            kind: *kind,
            is_output,
            target,
        }))
    }

    fn simple(&mut self) -> Result<Command, ParseError> {
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            let Some(next) = self.peek() else { break };
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            if matches!(next, '\n' | ';' | '&' | '|' | ')') {
                break;
            }
            if next == '(' {
                // A function, or syntax of another shell.
                let is_name = |word: &Word| !literal(word).contains('{');
                let is_skipped = |c: char| c.is_whitespace() || c == '\\';
                if let [name] = &simple.words[..]
                    && is_name(name)
                    && (self.rest()[1..].trim_start_matches(is_skipped)).starts_with(')')
                {
                    let name = literal(name);
                    return self.nested(|parser| parser.function(&name));
                }
                break;
            }
            if let Some(assignment) = self.assignment()? {
                // `declare a=b` has a word and an assignment.
                if !simple.words.is_empty() {
                    simple.words.extend(assignment.values.iter().cloned());
                }
                simple.assignments.push(assignment);
                continue;
            }
            simple.words.push(self.word()?);
        }
        Ok(Command::Simple(simple))
    }
}

fn text(text: String, is_quoted: bool) -> Part {
    Part::Text { text, is_quoted }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the text of a word without expansions.
fn literal(word: &Word) -> String {
    let texts = word.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
