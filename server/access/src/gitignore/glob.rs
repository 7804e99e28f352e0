//! Translates a git pattern into a glob of ripgrep's `globset`.
//!
//! Only the syntax inside one pattern is handled here; [`super`] reads whole lines. Both libraries
//! match bytes, but `globset` takes patterns as text, has braces, and reads brackets in another way: without
//! backslashes, with other members of POSIX classes, and with errors for what git accepts. So brackets are
//! parsed as git parses them and written again, and everything else is escaped.

use std::borrow::Cow;

use globset::{Candidate, Glob, GlobBuilder, GlobSet};

use crate::casefold::fold;

/// Longest pattern that is translated, in bytes. Git never matches paths over 4,096 bytes.
const MAX_PATTERN_BYTES: usize = 8 * 1024;
/// Longest regular expression a glob may become, in bytes. Bounds the time and memory of hostile patterns.
const MAX_EXPRESSION_BYTES: usize = 64 * 1024;
/// Any one character, or one byte of text that is not UTF-8: a byte and up to three continuation bytes.
/// (`globset` writes a class as the bytes of its characters, so 0xC2 cannot be left out of this one.)
const ANY_CHARACTER: &str = "{?,?[\u{80}-\u{bf}],?[\u{80}-\u{bf}][\u{80}-\u{bf}],?[\u{80}-\u{bf}][\u{80}-\u{bf}][\u{80}-\u{bf}]}";
/// Any one byte that is not ASCII.
const ANY_NON_ASCII_BYTE: &str = "[!\0-\u{7f}]";
/// All characters that are not ASCII, as members of a class.
const NON_ASCII_MEMBERS: &str = "\u{80}-\u{10ffff}";

/// How a pattern treats letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// Bytes are compared as they are, like git with `core.ignorecase=false`.
    Sensitive,
    /// Paths are folded with [`fold`] before matching, and so are the literals of the pattern.
    Folded,
}

/// What a pattern is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The last component of a path. `**` means `*`.
    Name,
    /// The whole path. `**` can match separators.
    Path,
}

/// Why a pattern has no glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoGlob {
    /// Git accepts the pattern and never matches it: an unclosed bracket, an unknown class, a trailing backslash.
    NeverMatches,
    /// The pattern exceeds a size limit.
    TooLarge,
}

/// The pattern language of a translation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syntax {
    case: Case,
    /// The translation of `?`.
    question_mark: &'static str,
}

impl Syntax {
    /// Git's syntax, in which `?` matches one byte.
    pub(crate) fn git(case: Case) -> Self {
        Self {
            case,
            question_mark: "?",
        }
    }

    /// The syntax of shells, in which `?` matches one character.
    pub(crate) fn shell(case: Case) -> Self {
        Self {
            case,
            question_mark: ANY_CHARACTER,
        }
    }

    /// Translates `pattern`.
    pub(crate) fn glob(self, pattern: &[u8], subject: Subject) -> Result<Glob, NoGlob> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(NoGlob::TooLarge);
        }
        let units = units(pattern);
        let glob = Translator::new(self, subject)
            .translate(&units)
            .ok_or(NoGlob::NeverMatches)?;
        GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .ok()
            .filter(|glob| glob.regex().len() <= MAX_EXPRESSION_BYTES)
            .ok_or(NoGlob::TooLarge)
    }

    /// Translates `pattern` and compiles it for matching one text after another.
    pub(crate) fn matcher(self, pattern: &[u8], subject: Subject) -> Result<Matcher, NoGlob> {
        let glob = self.glob(pattern, subject)?;
        let set = GlobSet::new([glob]).map_err(|_| NoGlob::TooLarge)?;
        Ok(Matcher(set))
    }
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Matcher(GlobSet);

impl Matcher {
    /// Returns whether the whole of `text` matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.0.is_match_candidate(&Candidate::from_bytes(text))
    }
}

/// A character of a pattern, or a byte that is not part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Char(char),
    Byte(u8),
}

const SLASH: Unit = Unit::Char('/');

impl Unit {
    fn first_byte(self) -> u8 {
        match self {
            Self::Char(char) => char.encode_utf8(&mut [0; 4]).as_bytes()[0],
            Self::Byte(byte) => byte,
        }
    }

    fn last_byte(self) -> u8 {
        match self {
            Self::Char(char) => {
                let mut buffer = [0; 4];
                let bytes = char.encode_utf8(&mut buffer).as_bytes();
                bytes[bytes.len() - 1]
            }
            Self::Byte(byte) => byte,
        }
    }
}

fn units(pattern: &[u8]) -> Vec<Unit> {
    let chunks = pattern.utf8_chunks().flat_map(|chunk| {
        let chars = chunk.valid().chars().map(Unit::Char);
        chars.chain(chunk.invalid().iter().copied().map(Unit::Byte))
    });
    chunks.collect()
}

struct Translator {
    syntax: Syntax,
    subject: Subject,
    glob: String,
    /// Literal text that is not yet part of `glob`. It is folded as a whole.
    literal: String,
}

impl Translator {
    fn new(syntax: Syntax, subject: Subject) -> Self {
        let glob = match subject {
            Subject::Name => "**/",
            Subject::Path => "",
        };
        Self {
            syntax,
            subject,
            glob: glob.to_owned(),
            literal: String::new(),
        }
    }

    /// Returns the glob, or `None` for a pattern that git never matches.
    fn translate(mut self, pattern: &[Unit]) -> Option<String> {
        let mut at = 0;
        while let Some(&unit) = pattern.get(at) {
            at += 1;
            match unit {
                Unit::Char('*') => {
                    self.flush();
                    at = self.stars(pattern, at - 1);
                }
                Unit::Char('?') => {
                    self.flush();
                    self.glob.push_str(self.syntax.question_mark);
                }
                Unit::Char('[') => {
                    self.flush();
                    at += self.bracket(&pattern[at..])?;
                }
                Unit::Char('\\') => {
                    self.push_literal(*pattern.get(at)?);
                    at += 1;
                }
                plain => self.push_literal(plain),
            }
        }
        self.flush_end();
        Some(self.glob)
    }

    /// Translates the run of stars at `start` and returns where the pattern continues.
    fn stars(&mut self, pattern: &[Unit], start: usize) -> usize {
        let count = pattern[start..]
            .iter()
            .take_while(|unit| **unit == Unit::Char('*'))
            .count();
        let end = start + count;
        let rest = &pattern[end..];
        let is_recursive = self.subject == Subject::Path
            && count >= 2
            && (start == 0 || pattern[start - 1] == SLASH)
            && (rest.is_empty()
                || rest.starts_with(&[SLASH])
                || rest.starts_with(&[Unit::Char('\\'), SLASH]));
        if !is_recursive {
            self.glob.push('*');
            return end;
        }
        if rest.starts_with(&[SLASH]) {
            // Nothing, or anything that ends in `/`. Alone, `**/` would match every path.
            let is_prefix = self.glob.is_empty() && rest.len() > 1;
            self.glob.push_str(if is_prefix { "**/" } else { "{**/}" });
            return end + 1;
        }
        let is_suffix = rest.is_empty() && self.glob.ends_with('/');
        self.glob.push_str(if is_suffix { "**" } else { "{**/}*" });
        end
    }

    fn push_literal(&mut self, unit: Unit) {
        match (unit, self.syntax.case) {
            (Unit::Char(char), _) => self.literal.push(char),
            (Unit::Byte(_), Case::Sensitive) => {
                self.flush();
                self.glob.push_str(ANY_NON_ASCII_BYTE);
            }
            // A file saved in an old encoding: access rules must cover the name it was written for.
            (Unit::Byte(_), Case::Folded) => {
                self.flush();
                self.glob.push_str(ANY_CHARACTER);
            }
        }
    }

    fn flush(&mut self) {
        let literal = self.take_literal();
        self.push_escaped(&literal);
    }

    /// Flushes the literal text at the end of the pattern.
    ///
    /// `globset` tries globs with wildcards that end in an extension one by one (its `RequiredExtension`
    /// strategy), which is three times slower than trying them all at once. A dot in brackets avoids that.
    fn flush_end(&mut self) {
        let literal = self.take_literal();
        let is_literal_or_suffix = matches!(&*self.glob, "" | "**/" | "**/*");
        match literal.rsplit_once('.') {
            Some((before, extension)) if !is_literal_or_suffix => {
                self.push_escaped(before);
                self.glob.push_str("[.]");
                self.push_escaped(extension);
            }
            _ => self.push_escaped(&literal),
        }
    }

    fn take_literal(&mut self) -> String {
        let literal = std::mem::take(&mut self.literal);
        match self.syntax.case {
            Case::Sensitive => literal,
            Case::Folded => match fold(literal.as_bytes()) {
                Cow::Borrowed(_) => literal,
                Cow::Owned(folded) => String::from_utf8_lossy(&folded).into_owned(),
            },
        }
    }

    fn push_escaped(&mut self, literal: &str) {
        for char in literal.chars() {
            if matches!(char, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
                self.glob.push('\\');
            }
            self.glob.push(char);
        }
    }

    /// Translates a bracket expression whose text follows its `[`. Returns its length, or `None` when git never
    /// matches it.
    fn bracket(&mut self, text: &[Unit]) -> Option<usize> {
        let is_negated = matches!(text.first()?, Unit::Char('!' | '^'));
        let start = usize::from(is_negated);
        let mut at = start;
        let mut members = Members::default();
        // The last single member, at which a range could start.
        let mut low: Option<Unit> = None;
        loop {
            let unit = *text.get(at)?;
            let next = text.get(at + 1).copied();
            if unit == Unit::Char(']') && at > start {
                members.write(is_negated, self.syntax.case, &mut self.glob);
                return Some(at + 1);
            }
            if let (Unit::Char('-'), Some(from), Some(mut to)) = (unit, low, next)
                && to != Unit::Char(']')
            {
                at += 2;
                if to == Unit::Char('\\') {
                    to = *text.get(at)?;
                    at += 1;
                }
                members.add_range(from, to);
                // The bytes after the first one of `to` are separate members.
                low = (to.last_byte() != to.first_byte()).then_some(to);
                continue;
            }
            if unit == Unit::Char('[') && next == Some(Unit::Char(':')) {
                let name = &text[at + 2..];
                let end = name.iter().position(|unit| *unit == Unit::Char(']'))?;
                if let Some((Unit::Char(':'), name)) = name[..end].split_last() {
                    members.add_class(name)?;
                    low = None;
                    at += end + 3;
                    continue;
                }
            }
            let member = if unit == Unit::Char('\\') {
                at += 1;
                next?
            } else {
                unit
            };
            members.add(member);
            low = Some(member);
            at += 1;
        }
    }
}

/// The members of a bracket expression.
struct Members {
    ascii: [bool; 128],
    /// The others, as characters and ranges of a class of `globset`. It replaces each character with its bytes,
    /// which is how git reads brackets.
    others: String,
    /// Whether there are bytes that are not UTF-8.
    has_raw_bytes: bool,
}

impl Default for Members {
    fn default() -> Self {
        Self {
            ascii: [false; 128],
            others: String::new(),
            has_raw_bytes: false,
        }
    }
}

impl Members {
    fn add(&mut self, unit: Unit) {
        match unit {
            Unit::Char(char) if char.is_ascii() => self.ascii[char as usize] = true,
            Unit::Char(char) => self.others.push(char),
            Unit::Byte(_) => self.has_raw_bytes = true,
        }
    }

    /// Adds a range of bytes, from the last one of `from` to the first one of `to`, and the rest of `to`.
    fn add_range(&mut self, from: Unit, to: Unit) {
        let (low, high) = (from.last_byte(), to.first_byte());
        for byte in low..=high.min(127) {
            self.ascii[usize::from(byte)] = true;
        }
        if to.first_byte().is_ascii() {
            return;
        }
        let (Unit::Char(_), Unit::Char(to)) = (from, to) else {
            self.has_raw_bytes = true;
            return;
        };
        // Characters of a range must ascend. This one ends in the byte `low` and starts with 0xC2, which is in the range.
        let from = char::from(low.max(0x80));
        self.others.extend([from, '-', to.max('\u{bf}'), to]);
    }

    /// Adds a POSIX class, which git reads as ASCII. Returns `None` for an unknown one.
    fn add_class(&mut self, name: &[Unit]) -> Option<()> {
        let name: String = name
            .iter()
            .map(|unit| match unit {
                Unit::Char(char) => *char,
                Unit::Byte(_) => char::REPLACEMENT_CHARACTER,
            })
            .collect();
        let is_member: fn(&u8) -> bool = match &*name {
            "alnum" => u8::is_ascii_alphanumeric,
            "alpha" => u8::is_ascii_alphabetic,
            "blank" => |byte| matches!(byte, b' ' | b'\t'),
            "cntrl" => u8::is_ascii_control,
            "digit" => u8::is_ascii_digit,
            "graph" => u8::is_ascii_graphic,
            "lower" => u8::is_ascii_lowercase,
            "print" => |byte| matches!(byte, b' '..=b'~'),
            "punct" => u8::is_ascii_punctuation,
            "space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
            "upper" => u8::is_ascii_uppercase,
            "xdigit" => u8::is_ascii_hexdigit,
            _ => return None,
        };
        for byte in 0..128_u8 {
            self.ascii[usize::from(byte)] |= is_member(&byte);
        }
        Some(())
    }

    /// Writes the bracket expression as a class of `globset`, which never matches `/`.
    ///
    /// `]` is literal as the first member, `-` as the last one. A NUL, which no path contains, precedes the rest,
    /// so that `!` and `^` are literal too.
    fn write(mut self, is_negated: bool, case: Case, glob: &mut String) {
        if case == Case::Folded {
            for letter in b'a'..=b'z' {
                self.ascii[usize::from(letter)] |=
                    self.ascii[usize::from(letter.to_ascii_uppercase())];
            }
        }
        if self.has_raw_bytes {
            // Matches more than git does: all bytes that are not ASCII.
            self.others.clear();
            if !is_negated {
                self.others.push_str(NON_ASCII_MEMBERS);
            }
        }
        let has = |byte: u8| self.ascii[usize::from(byte)];
        glob.push_str(if is_negated { "[!" } else { "[" });
        glob.push_str(if has(b']') { "]\0" } else { "\0" });
        glob.extend(
            (1..128_u8)
                .filter(|byte| has(*byte) && !matches!(byte, b']' | b'-'))
                .map(char::from),
        );
        glob.push_str(&self.others);
        glob.push_str(if has(b'-') { "-]" } else { "]" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(case: Case, pattern: &[u8], text: &[u8]) -> bool {
        Syntax::git(case)
            .matcher(pattern, Subject::Path)
            .is_ok_and(|matcher| matcher.is_match(text))
    }

    fn path(pattern: &str, text: &str) -> bool {
        matches(Case::Sensitive, pattern.as_bytes(), text.as_bytes())
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
    fn hostile_patterns_match_in_linear_time() {
        let pattern = "*a".repeat(200);
        assert!(!path(&pattern, &"a".repeat(4000).replace('a', "ab")));
        let pattern = format!("{}x", "**/*a/".repeat(200));
        assert!(!path(&pattern, &"a/".repeat(2000)));
    }

    #[test]
    fn a_byte_of_an_old_encoding_matches_any_character_in_access_rules() {
        let denied = |text: &[u8]| matches(Case::Folded, b"geh\xe4lter.txt", text);
        assert!(denied("gehälter.txt".as_bytes()));
        assert!(denied(b"geh\xe4lter.txt"));
        assert!(!denied(b"gehlter.txt"));
        // In `.gitignore` it matches one byte, as in git, although that can be another one.
        let ignored = |text: &[u8]| matches(Case::Sensitive, b"geh\xe4lter.txt", text);
        assert!(ignored(b"geh\xe4lter.txt"));
        assert!(!ignored("gehälter.txt".as_bytes()));
        assert!(!ignored(b"gehalter.txt"));
    }

    #[test]
    fn patterns_that_git_never_matches_have_no_glob() {
        for pattern in ["a[b", "a[[:what:]]", "a\\", "[]"] {
            let glob = Syntax::git(Case::Sensitive).glob(pattern.as_bytes(), Subject::Path);
            assert_eq!(glob.err(), Some(NoGlob::NeverMatches), "{pattern}");
        }
    }

    #[test]
    fn large_patterns_are_errors() {
        for pattern in [
            "a".repeat(MAX_PATTERN_BYTES + 1).into_bytes(),
            vec![0xe9; 4096],
        ] {
            let glob = Syntax::git(Case::Folded).glob(&pattern, Subject::Name);
            assert_eq!(glob.err(), Some(NoGlob::TooLarge));
        }
    }

    /// Brackets are sets of bytes: compares them with sets computed byte by byte.
    #[test]
    fn brackets_match_the_bytes_git_matches() {
        let range = |low: u8, high: u8| move |byte: u8| (low..=high).contains(&byte);
        type Expected<'a> = &'a dyn Fn(u8) -> bool;
        let cases: [(&str, Expected<'_>); 10] = [
            ("[é]", &|byte| matches!(byte, 0xc3 | 0xa9)),
            ("[à-é]", &|byte| {
                byte == 0xc3 || range(0xa0, 0xc3)(byte) || byte == 0xa9
            }),
            ("[a-é]", &|byte| range(b'a', 0xc3)(byte)),
            ("[ÿ-é]", &|byte| {
                byte == 0xc3 || range(0xbf, 0xc3)(byte) || byte == 0xa9
            }),
            ("[é-é]", &|byte| range(0xa9, 0xc3)(byte)),
            ("[©-©]", &|byte| range(0xa9, 0xc2)(byte)),
            ("[日]", &|byte| "日".bytes().any(|member| member == byte)),
            ("[é-z]", &|byte| matches!(byte, 0xc3 | 0xa9)),
            ("[a-é-z]", &|byte| range(b'a', 0xc3)(byte)),
            ("[]^!-]", &|byte| b"]^!-".contains(&byte)),
        ];
        for (pattern, is_member) in cases {
            for byte in 1..=u8::MAX {
                let expected = is_member(byte) && byte != b'/';
                assert_eq!(
                    matches(Case::Sensitive, pattern.as_bytes(), &[byte]),
                    expected,
                    "{pattern} on {byte:#x}"
                );
            }
        }
    }

    /// See [`Translator::flush_end`].
    #[test]
    fn globs_with_wildcards_never_end_in_a_literal_extension() {
        let glob = |pattern: &str, subject| {
            let glob = Syntax::git(Case::Folded).glob(pattern.as_bytes(), subject);
            glob.unwrap().glob().to_owned()
        };
        assert_eq!(glob("file_1*.rs", Subject::Name), "**/file_1*[.]rs");
        assert_eq!(glob("a/**/*.min.js", Subject::Path), "a/{**/}*.min[.]js");
        assert_eq!(
            glob("*[0-9].d.ts", Subject::Name),
            "**/*[\u{0}0123456789].d[.]ts"
        );
        // These are looked up in tables.
        assert_eq!(glob("main.rs", Subject::Name), "**/main.rs");
        assert_eq!(glob("src/main.rs", Subject::Path), "src/main.rs");
        assert_eq!(glob("*.rs", Subject::Name), "**/*.rs");
    }
}
