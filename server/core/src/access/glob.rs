//! One glob as git understands it: compiled from bytes, matched on bytes.
//!
//! Owns the syntax inside a pattern: `*`, `?`, `**`, brackets with ranges and
//! POSIX classes, backslashes. What a whole line of a rule file means is the
//! business of [`super::pattern`]. Bytes, not characters, because git matches
//! bytes and file names need not be UTF-8.

use memchr::memmem::Finder;

/// What upper and lower case mean to a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// Git's own: bytes are compared as they are.
    Sensitive,
    /// Access rules: the text was folded with [`super::fold::fold`] before, and so are
    /// the literals of the pattern.
    Folded,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Literal(Box<[u8]>),
    /// `?`: one byte that is no separator.
    Any,
    /// One character, however many bytes it has.
    AnyCharacter,
    /// Brackets: one byte of the set, never a separator.
    Set(Box<[bool; 256]>),
    /// `*`: bytes up to the next separator.
    Star,
    /// `**` where git lets it cross separators.
    Deep,
    /// `**/`: nothing, or anything that ends in a separator.
    DeepSlash,
}

/// A compiled glob.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    tokens: Box<[Token]>,
    /// The shortest text that can match.
    shortest: usize,
    /// Of the text it must start with: the first byte, then where the last stands,
    /// and the last.
    start: Option<(u8, usize, u8)>,
    /// The longest text it must hold between its first token and its last.
    inner: Option<Box<Finder<'static>>>,
}

/// What a glob is matched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// One name: `**` is `*`.
    Name,
    /// A path of several names: `**` may cross separators.
    Path,
}

impl Glob {
    /// Compiles `pattern`; `None` when it can match nothing (an unclosed
    /// bracket, a lone backslash at the end, an unknown class).
    pub(crate) fn new(pattern: &[u8], subject: Subject, case: Case) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut literal = Vec::new();
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            let token = match byte {
                b'*' => {
                    let (token, next) = stars(pattern, at, subject);
                    at = next;
                    token
                }
                b'?' => {
                    at += 1;
                    Token::Any
                }
                b'[' => {
                    let (set, next) = bracket(pattern, at + 1, case)?;
                    at = next;
                    Token::Set(set)
                }
                b'\\' => {
                    literal.push(*pattern.get(at + 1)?);
                    at += 2;
                    continue;
                }
                _ => {
                    literal.push(byte);
                    at += 1;
                    continue;
                }
            };
            flush(&mut literal, &mut tokens, case);
            tokens.push(token);
        }
        flush(&mut literal, &mut tokens, case);
        Some(Self::of(tokens))
    }

    /// With `?` meaning a character instead of a byte, as shells read it.
    pub(crate) fn by_character(mut self) -> Self {
        for token in &mut self.tokens {
            if *token == Token::Any {
                *token = Token::AnyCharacter;
            }
        }
        self
    }

    fn of(tokens: Vec<Token>) -> Self {
        let shortest = tokens
            .iter()
            .map(|token| match token {
                Token::Literal(text) => text.len(),
                Token::Any | Token::AnyCharacter | Token::Set(_) => 1,
                Token::Star | Token::Deep | Token::DeepSlash => 0,
            })
            .sum();
        let start = match tokens.first() {
            Some(Token::Literal(text)) => text
                .first()
                .zip(text.last())
                .map(|(first, last)| (*first, text.len() - 1, *last)),
            _ => None,
        };
        let inner = tokens
            .get(1..tokens.len().saturating_sub(1))
            .unwrap_or_default()
            .iter()
            .filter_map(|token| match token {
                Token::Literal(text) => Some(text),
                _ => None,
            })
            .max_by_key(|text| text.len())
            .map(|text| Box::new(Finder::new(text).into_owned()));
        Self {
            tokens: tokens.into(),
            shortest,
            start,
            inner,
        }
    }

    /// The text, when the glob is nothing but text.
    pub(crate) fn as_literal(&self) -> Option<&[u8]> {
        match &*self.tokens {
            [] => Some(b""),
            [Token::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text behind the star, when the glob is one star and text.
    pub(crate) fn as_suffix(&self) -> Option<&[u8]> {
        match &*self.tokens {
            [Token::Star, Token::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Cuts the glob of a path before its last name: the first part matches the
    /// folder with a separator behind it (nothing at the top), the second the
    /// name. `None` where no such cut exists, as in `a/**`.
    pub(crate) fn split_name(&self) -> Option<(Glob, Glob)> {
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        for (at, token) in self.tokens.iter().enumerate().rev() {
            match token {
                Token::Deep => return None,
                Token::DeepSlash if !self.starts_a_name(at) => return None,
                Token::DeepSlash => {
                    head.extend_from_slice(&self.tokens[..=at]);
                    tail.extend_from_slice(&self.tokens[at + 1..]);
                    break;
                }
                Token::Literal(text) => {
                    let Some(slash) = text.iter().rposition(|byte| *byte == b'/') else {
                        continue;
                    };
                    head.extend_from_slice(&self.tokens[..at]);
                    head.push(Token::Literal(text[..=slash].into()));
                    if slash + 1 < text.len() {
                        tail.push(Token::Literal(text[slash + 1..].into()));
                    }
                    tail.extend_from_slice(&self.tokens[at + 1..]);
                    break;
                }
                _ => {}
            }
        }
        if head.is_empty() {
            tail = self.tokens.to_vec();
        }
        Some((Self::of(head), Self::of(tail)))
    }

    /// Can the token at `at` only begin where a name begins?
    fn starts_a_name(&self, at: usize) -> bool {
        match at.checked_sub(1).map(|before| &self.tokens[before]) {
            None => true,
            Some(Token::Literal(text)) => text.ends_with(b"/"),
            Some(Token::DeepSlash) => self.starts_a_name(at - 1),
            Some(_) => false,
        }
    }

    /// Does the whole of `text` match?
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        // Most globs are done with here, and there are many for each name.
        let starts = |(first, at, last): (u8, usize, u8)| {
            text.first() == Some(&first) && text.get(at) == Some(&last)
        };
        text.len() >= self.shortest
            && self.start.is_none_or(starts)
            && self.may_end(text)
            && self
                .inner
                .as_ref()
                .is_none_or(|inner| inner.find(text).is_some())
            && self.matches_tokens(text)
    }

    /// Could the last byte be that of a match?
    fn may_end(&self, text: &[u8]) -> bool {
        match (self.tokens.last(), text.last()) {
            (Some(Token::Literal(end)), last) => end.last() == last,
            (Some(Token::Set(set)), Some(last)) => set[usize::from(*last)],
            _ => true,
        }
    }

    /// As [`Self::matches`], by the tokens alone.
    ///
    /// Two places to return to are enough: once a `**` is reached, whatever an
    /// earlier star could still give is also reachable through that `**`, and a
    /// `*` cannot help beyond the separator it stops at. So the work is bounded
    /// by the lengths and not by the number of stars.
    fn matches_tokens(&self, text: &[u8]) -> bool {
        if let (Some(Token::Literal(end)), true) = (self.tokens.last(), self.tokens.len() > 1)
            && !text.ends_with(end)
        {
            return false;
        }
        let (mut at, mut token) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        let mut deep: Option<(usize, usize, bool)> = None;
        loop {
            if token == self.tokens.len() {
                if at == text.len() {
                    return true;
                }
            } else {
                match &self.tokens[token] {
                    Token::Star => {
                        star = Some((token + 1, at));
                        token += 1;
                        continue;
                    }
                    Token::Deep => {
                        if token + 1 == self.tokens.len() {
                            return true;
                        }
                        star = None;
                        deep = Some((token + 1, at, false));
                        token += 1;
                        continue;
                    }
                    Token::DeepSlash => {
                        star = None;
                        deep = Some((token + 1, at, true));
                        token += 1;
                        continue;
                    }
                    single => {
                        if let Some(taken) = take(single, &text[at..]) {
                            at += taken;
                            token += 1;
                            continue;
                        }
                    }
                }
            }
            // A dead end: let the nearest star take one byte more.
            if let Some((next, from)) = star
                && text.get(from).is_some_and(|byte| *byte != b'/')
            {
                star = Some((next, from + 1));
                (token, at) = (next, from + 1);
                continue;
            }
            let Some((next, from, to_slash)) = deep else {
                return false;
            };
            let resume = if to_slash {
                text[from..]
                    .iter()
                    .position(|byte| *byte == b'/')
                    .map(|slash| from + slash + 1)
            } else {
                (from < text.len()).then_some(from + 1)
            };
            let Some(resume) = resume else {
                return false;
            };
            star = None;
            deep = Some((next, resume, to_slash));
            (token, at) = (next, resume);
        }
    }
}

/// How many bytes of `text` a token of fixed length takes.
fn take(token: &Token, text: &[u8]) -> Option<usize> {
    match token {
        Token::Literal(literal) => text.starts_with(literal).then_some(literal.len()),
        Token::Any => text.first().is_some_and(|byte| *byte != b'/').then_some(1),
        Token::Set(set) => text
            .first()
            .is_some_and(|byte| *byte != b'/' && set[usize::from(*byte)])
            .then_some(1),
        Token::AnyCharacter => match text.first()? {
            b'/' => None,
            byte if byte.is_ascii() => Some(1),
            _ => {
                let chunk = text.utf8_chunks().next()?;
                Some(chunk.valid().chars().next().map_or(1, char::len_utf8))
            }
        },
        Token::Star | Token::Deep | Token::DeepSlash => None,
    }
}

/// Turns the collected literal bytes into tokens. Access rules fail closed on
/// bytes that are not UTF-8 (a file saved in an old encoding): each stands for
/// any one character.
fn flush(literal: &mut Vec<u8>, tokens: &mut Vec<Token>, case: Case) {
    if literal.is_empty() {
        return;
    }
    let bytes = std::mem::take(literal);
    if case == Case::Sensitive {
        tokens.push(Token::Literal(bytes.into()));
        return;
    }
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            tokens.push(Token::Literal(
                super::fold::fold(chunk.valid().as_bytes()).into(),
            ));
        }
        tokens.extend(chunk.invalid().iter().map(|_| Token::AnyCharacter));
    }
}

/// The run of stars at `at`, and where it ends.
fn stars(pattern: &[u8], at: usize, subject: Subject) -> (Token, usize) {
    let end = pattern[at..]
        .iter()
        .position(|byte| *byte != b'*')
        .map_or(pattern.len(), |run| at + run);
    let rest = &pattern[end..];
    let bounded = end - at >= 2
        && (at == 0 || pattern[at - 1] == b'/')
        && (rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/"));
    if subject == Subject::Name || !bounded {
        return (Token::Star, end);
    }
    if rest.starts_with(b"/") {
        return (Token::DeepSlash, end + 1);
    }
    (Token::Deep, end)
}

/// The set of a bracket expression whose `[` stands before `at`, and where it
/// ends. `None` when it is never closed or names an unknown class.
fn bracket(pattern: &[u8], mut at: usize, case: Case) -> Option<(Box<[bool; 256]>, usize)> {
    let mut set = Box::new([false; 256]);
    let negated = matches!(pattern.get(at)?, b'!' | b'^');
    if negated {
        at += 1;
    }
    let first = at;
    // The last single byte, from which a range could start.
    let mut start: Option<u8> = None;
    loop {
        let byte = *pattern.get(at)?;
        if byte == b']' && at > first {
            at += 1;
            break;
        }
        let after = pattern.get(at + 1).copied();
        if byte == b'\\' {
            let escaped = after?;
            set[usize::from(escaped)] = true;
            start = Some(escaped);
            at += 2;
        } else if let (b'-', Some(low), Some(after)) = (byte, start, after)
            && after != b']'
        {
            let (high, next) = match after {
                b'\\' => (*pattern.get(at + 2)?, at + 3),
                plain => (plain, at + 2),
            };
            for member in low..=high {
                set[usize::from(member)] = true;
            }
            start = None;
            at = next;
        } else if byte == b'[' && after == Some(b':') {
            let close = at + 2 + pattern[at + 2..].iter().position(|byte| *byte == b']')?;
            if close > at + 2 && pattern[close - 1] == b':' {
                class(&pattern[at + 2..close - 1], &mut set)?;
                start = None;
                at = close + 1;
            } else {
                set[usize::from(b'[')] = true;
                start = Some(b'[');
                at += 1;
            }
        } else {
            set[usize::from(byte)] = true;
            start = Some(byte);
            at += 1;
        }
    }
    if case == Case::Folded {
        for letter in b'a'..=b'z' {
            let either = set[usize::from(letter)] || set[usize::from(letter.to_ascii_uppercase())];
            set[usize::from(letter)] = either;
        }
    }
    if negated {
        set.iter_mut().for_each(|member| *member = !*member);
    }
    Some((set, at))
}

/// Adds a POSIX class, in ASCII as git has it.
fn class(name: &[u8], set: &mut [bool; 256]) -> Option<()> {
    let belongs: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    for byte in 0..=127_u8 {
        set[usize::from(byte)] |= belongs(&byte);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(pattern: &str, text: &str) -> bool {
        Glob::new(pattern.as_bytes(), Subject::Path, Case::Sensitive)
            .is_some_and(|glob| glob.matches(text.as_bytes()))
    }

    #[test]
    fn stars_stop_at_separators_and_double_stars_do_not() {
        assert!(path("a/*/c", "a/b/c"));
        assert!(!path("a/*/c", "a/b/b/c"));
        assert!(path("a/**/c", "a/c"));
        assert!(path("a/**/c", "a/b/b/c"));
        assert!(!path("a/x**/c", "a/xb/b/c"));
        assert!(path("**/b*d/**/e", "x/b/bccd/y/z/e"));
        assert!(!path("a/**", "a"));
    }

    #[test]
    fn a_hostile_pattern_costs_little() {
        let pattern = "*a".repeat(200);
        assert!(!path(&pattern, &"a".repeat(4000).replace('a', "ab")));
        let pattern = format!("{}x", "**/*a/".repeat(200));
        assert!(!path(&pattern, &"a/".repeat(2000)));
    }

    #[test]
    fn bytes_of_an_old_encoding_stand_for_any_character() {
        let glob = Glob::new(b"geh\xe4lter.txt", Subject::Name, Case::Folded).unwrap();
        assert!(glob.matches("gehälter.txt".as_bytes()));
        assert!(glob.matches(b"geh\xe4lter.txt"));
        assert!(!glob.matches(b"gehlter.txt"));
    }

    #[test]
    fn what_git_never_matches_is_no_glob() {
        for never in ["a[b", "a[[:what:]]", "a\\", "[]"] {
            assert!(
                Glob::new(never.as_bytes(), Subject::Path, Case::Sensitive).is_none(),
                "{never}"
            );
        }
    }
}
