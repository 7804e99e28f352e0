//! Splits shell words into parts and expands their braces, with `brush_parser::word`.
//!
//! The parser takes exponential time on some nested constructs, so [`limits`] decides which words
//! it gets. A command with a word that cannot be parsed is denied.

use brush_parser::{
    ParserOptions,
    word::{
        BraceExpressionMember, BraceExpressionOrText, TildeExpr, WordPiece, WordPieceWithSource,
        parse, parse_brace_expansions, parse_heredoc,
    },
};

use super::limits;

/// Maximum words from the braces of one word.
const MAX_WORDS: usize = 256;
/// Maximum members of a sequence such as `{1..9}`.
const MAX_SEQUENCE: usize = 200;

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
    Unknown,
}

/// Splits a word. Returns `None` if it cannot be parsed.
pub(super) fn parts(raw: &str) -> Option<Vec<Part>> {
    if !raw.contains(['\'', '"', '\\', '$', '`', '~']) {
        return Some(vec![Part::Text(raw.to_owned(), false)]);
    }
    let pieces = limits::is_parsable_word(raw).then(|| parse(raw, &ParserOptions::default()))?;
    Some(collect(raw, &pieces.ok()?, false))
}

/// Splits the body of a here-document, in which quotes have no meaning.
pub(super) fn here_document_parts(body: &str) -> Option<Vec<Part>> {
    if !body.contains(['\\', '$', '`']) {
        return Some(vec![Part::Text(body.to_owned(), true)]);
    }
    let pieces =
        limits::is_parsable_word(body).then(|| parse_heredoc(body, &ParserOptions::default()))?;
    Some(collect(body, &pieces.ok()?, true))
}

fn collect(raw: &str, pieces: &[WordPieceWithSource], is_quoted: bool) -> Vec<Part> {
    let mut collector = Collector {
        raw,
        parts: Vec::new(),
        has_unknown_syntax: false,
    };
    collector.add(pieces, is_quoted);
    collector.parts
}

struct Collector<'a> {
    raw: &'a str,
    parts: Vec<Part>,
    /// Whether a `${` that is not understood may still be open.
    has_unknown_syntax: bool,
}

impl Collector<'_> {
    fn add(&mut self, pieces: &[WordPieceWithSource], is_quoted: bool) {
        for piece in pieces {
            let source = self.raw.get(piece.start_index..piece.end_index);
            let rest = self.raw.get(piece.end_index..);
            let (Some(source), Some(rest)) = (source, rest) else {
                self.parts.push(Part::Unknown);
                continue;
            };
            let part = match &piece.piece {
                // A construct that the parser does not understand.
                WordPiece::Text(text) if text == "$" && rest.starts_with(['(', '{', '[']) => {
                    if let Some(script) = rest.strip_prefix('(') {
                        self.parts.push(Part::Command(script.to_owned(), is_quoted));
                    }
                    self.has_unknown_syntax = true;
                    Part::Unknown
                }
                WordPiece::Text(text) => {
                    self.text(text, is_quoted);
                    continue;
                }
                WordPiece::SingleQuotedText(text) => Part::Text(text.clone(), true),
                WordPiece::AnsiCQuotedText(text) => Part::Text(ansi_c_text(text), true),
                WordPiece::DoubleQuotedSequence(inner)
                | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.add(inner, true);
                    continue;
                }
                WordPiece::EscapeSequence(text) => match text.strip_prefix('\\').unwrap_or(text) {
                    "\n" => continue,
                    escaped => Part::Text(escaped.to_owned(), true),
                },
                WordPiece::TildeExpansion(TildeExpr::Home) => Part::Home(String::new()),
                WordPiece::TildeExpansion(TildeExpr::WorkingDir) => Part::Home("+".to_owned()),
                WordPiece::TildeExpansion(_) => Part::Unknown,
                WordPiece::ParameterExpansion(_) => {
                    let inside = source
                        .strip_prefix("${")
                        .and_then(|it| it.strip_suffix('}'));
                    let inside = inside.unwrap_or_else(|| source.trim_start_matches('$'));
                    // `$$` is a name, too.
                    let inside = if inside.is_empty() { "$" } else { inside };
                    Part::Variable(inside.to_owned(), is_quoted)
                }
                WordPiece::CommandSubstitution(script) => Part::Command(script.clone(), is_quoted),
                WordPiece::BackquotedCommandSubstitution(_) => {
                    Part::Command(backquoted(source, is_quoted), is_quoted)
                }
                // Parentheses may also contain commands.
                WordPiece::ArithmeticExpression(expression) => {
                    Part::Command(format!("({})", expression.value), is_quoted)
                }
            };
            self.parts.push(part);
        }
    }

    fn text(&mut self, text: &str, is_quoted: bool) {
        let text = if is_quoted {
            text.replace("\\\n", "")
        } else {
            text.strip_suffix('\\').unwrap_or(text).to_owned()
        };
        if !self.has_unknown_syntax {
            self.parts.push(Part::Text(text, is_quoted));
            return;
        }
        let rest = match text.split_once('}') {
            Some((inside, rest)) => {
                let inside = inside.trim_start_matches('{');
                if !inside.is_empty() {
                    self.parts
                        .push(Part::Variable(inside.to_owned(), is_quoted));
                }
                self.has_unknown_syntax = false;
                rest
            }
            None => &text,
        };
        self.parts.push(Part::Unknown);
        self.parts.push(Part::Text(rest.to_owned(), is_quoted));
    }
}

/// Returns the script of a backquoted substitution. The parser keeps some of its escapes.
fn backquoted(source: &str, is_quoted: bool) -> String {
    let mut script = String::new();
    let inside = source.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
    let mut chars = inside.unwrap_or(source).chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            script.push(c);
            continue;
        }
        match chars.next() {
            Some(escaped @ ('`' | '\\' | '$')) => script.push(escaped),
            Some('"') if is_quoted => script.push('"'),
            other => {
                script.push('\\');
                script.extend(other);
            }
        }
    }
    script
}

/// Decodes the escapes of `$'...'`.
fn ansi_c_text(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else {
            break;
        };
        rest = &rest[escape.len_utf8()..];
        let (radix, most) = match escape {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => {
                decoded.push(match escape {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
                continue;
            }
        };
        let digits = if radix == 8 {
            &text[text.len() - rest.len() - 1..]
        } else {
            rest
        };
        let count = digits
            .chars()
            .take(most)
            .take_while(|c| c.is_digit(radix))
            .count();
        decoded.extend(
            u32::from_str_radix(&digits[..count], radix)
                .ok()
                .and_then(char::from_u32),
        );
        rest = &digits[count..];
    }
    decoded + rest
}

/// Expands `{a,b}` and `{1..3}`. Returns `None` if the word cannot be parsed.
pub(super) fn expand_braces(raw: &str) -> Option<Vec<String>> {
    match limits::count_braces(raw) {
        0 => return Some(vec![raw.to_owned()]),
        limits::MAX_BRACES.. => return None,
        _ if !limits::is_parsable_word(raw) => return None,
        _ => {}
    }
    let pieces = parse_brace_expansions(raw, &ParserOptions::default()).ok()?;
    let words = pieces.map_or_else(|| vec![raw.to_owned()], |pieces| combined(&pieces));
    // An expansion that is too large is checked as written.
    Some(if words.len() > MAX_WORDS {
        vec![raw.to_owned()]
    } else {
        words
    })
}

/// Returns the combinations of the pieces: at most one more than [`MAX_WORDS`].
fn combined(pieces: &[BraceExpressionOrText]) -> Vec<String> {
    pieces.iter().fold(vec![String::new()], |words, piece| {
        let ends = match piece {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => members.iter().flat_map(member).collect(),
        };
        let longer = words
            .iter()
            .flat_map(|word| ends.iter().map(move |end| format!("{word}{end}")));
        longer.take(MAX_WORDS + 1).collect()
    })
}

fn member(member: &BraceExpressionMember) -> Vec<String> {
    match member {
        BraceExpressionMember::Child(pieces) => combined(pieces),
        BraceExpressionMember::NumberSequence { start, end, .. } => {
            let (low, high) = (*start.min(end), *start.max(end));
            if high.saturating_sub(low) > MAX_SEQUENCE as i64 {
                return vec![format!("{{{start}..{end}}}")];
            }
            (low..=high).map(|number| number.to_string()).collect()
        }
        // Escaped, because there are other characters between `Z` and `a`.
        BraceExpressionMember::CharSequence { start, end, .. } => (*start.min(end)
            ..=*start.max(end))
            .map(|c| {
                if c.is_alphabetic() {
                    c.to_string()
                } else {
                    format!("\\{c}")
                }
            })
            .collect(),
    }
}
