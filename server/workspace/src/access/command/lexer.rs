//! Splits shell words into parts: text, variables, substitutions.
//!
//! One pass without recursion. There are no errors: an unterminated construct ends with the word.

/// Part of a shell word. The flag is set if it is quoted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(String, bool),
    /// `$name`, or the inside of `${...}`.
    Variable(String, bool),
    /// The inside of `$(...)` or backquotes.
    Command(String, bool),
    /// The text from `~` to the next slash.
    Home(String),
}

/// Splits a word.
pub(super) fn parts(raw: &str) -> Vec<Part> {
    let mut lexer = Lexer::new(raw);
    if let Some(rest) = raw.strip_prefix('~') {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"_-+.".contains(c))
            .unwrap_or(rest.len());
        if rest[end..].is_empty() || rest[end..].starts_with(['/', ':']) {
            lexer.parts.push(Part::Home(rest[..end].to_owned()));
            lexer.at = 1 + end;
        }
    }
    lexer.unquoted();
    lexer.parts
}

/// Splits the body of a here-document, in which quotes have no meaning.
pub(super) fn here_document_parts(body: &str) -> Vec<Part> {
    let mut lexer = Lexer::new(body);
    lexer.double_quoted(None);
    lexer.parts
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    parts: Vec<Part>,
}

impl<'a> Lexer<'a> {
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
                    self.ansi_c_quoted();
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

    /// Reads `$'...'` after its opening quote.
    fn ansi_c_quoted(&mut self) {
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

    /// Reads up to the bracket that closes the current one.
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
