//! Rule files in gitignore syntax: what a line means, and which line decides about a path.
//!
//! Used for access rules and for `.gitignore`. Answers equal those of `git check-ignore`: the last matching
//! line wins, paths are checked from the first component down, and nothing below an ignored directory can be
//! re-included. `glob` translates the patterns.

pub(crate) mod glob;
#[cfg(test)]
mod parity_tests;

use std::{borrow::Cow, collections::HashMap, path::Path, sync::Arc};

use foldhash::quality::RandomState;
use globset::{Candidate, Glob, GlobSet};
use ignore::Match;
use parking_lot::RwLock;

pub(crate) use self::glob::Case;
use self::glob::{NoGlob, Subject, Syntax};
use super::{
    casefold::{fold, without_ignorable},
    copies,
};
use sightline_base::limits::MAX_PATTERNS;

/// Number of directories whose verdict a set remembers.
const MAX_REMEMBERED: usize = 16 * 1024;
/// Longest path of a remembered directory, in bytes.
const MAX_REMEMBERED_PATH_BYTES: usize = 1024;
/// Number of globs compiled into one `GlobSet`, and the total length of their regular expressions in bytes.
/// Larger sets hit the size limit of `globset`, which fails the whole set.
const MAX_SET_GLOBS: usize = 256;
const MAX_SET_BYTES: usize = 16 * 1024;

/// Returns a relative path as patterns match it: bytes, separated by `/`.
pub fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) {
        return bytes
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect();
    }
    Cow::Borrowed(bytes)
}

/// A line of a rule file, without its line end.
#[derive(Clone, Debug)]
pub struct RuleLine<'a> {
    /// The file, as its reader named it.
    pub(crate) source: Arc<str>,
    /// Counted from 1; 0 for the rule that denies the rule files.
    pub(crate) number: u32,
    pub(crate) text: &'a [u8],
    pub(crate) origin: Origin,
}

/// Where a line comes from, which tells what it decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A line of the user.
    User,
    /// A line of the user that lifts built-in rules.
    Lifting,
    /// A built-in rule for secrets. Only [`Self::Lifting`] lines lift it.
    Secret,
    /// Like [`Self::Secret`], for files only and only if their content is secret.
    SecretContent,
    /// A built-in rule that no line lifts.
    Fixed,
}

impl Origin {
    fn is_built_in(self) -> bool {
        matches!(self, Self::Secret | Self::SecretContent | Self::Fixed)
    }

    /// Returns whether the line decides in the rules of the user, and in those for secrets.
    fn tracks(self) -> [bool; 2] {
        match self {
            Self::User | Self::Fixed => [true, false],
            Self::Lifting => [true, true],
            Self::Secret | Self::SecretContent => [false, true],
        }
    }
}

/// A pattern of a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) source: Arc<str>,
    pub(crate) line: u32,
    /// The pattern as written.
    pub(crate) pattern: String,
    is_negated: bool,
    is_dir_only: bool,
    origin: Origin,
    /// Whether the last name of the pattern is written without wildcards.
    is_literal: bool,
}

impl Rule {
    /// Returns whether this line of the user lifts built-in rules.
    pub(crate) fn is_lifting(&self) -> bool {
        self.origin == Origin::Lifting
    }

    /// Returns whether this rule denies a file only if its content is secret.
    pub(crate) fn is_by_content(&self) -> bool {
        self.origin == Origin::SecretContent
    }
}

/// The rules that decide about a path.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    pub(crate) as_file: Match<&'a Rule>,
    pub(crate) as_dir: Match<&'a Rule>,
}

impl<'a> Decision<'a> {
    /// Returns the match for a file or a directory.
    pub fn of(self, is_dir: bool) -> Match<&'a Rule> {
        if is_dir { self.as_dir } else { self.as_file }
    }
}

/// Why access rules cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// There are more than [`MAX_PATTERNS`].
    TooManyPatterns,
    /// A pattern exceeds a size limit.
    TooLarge {
        /// Name of the rule file.
        source: Arc<str>,
        /// Line of the pattern, from 1.
        line: u32,
    },
}

/// The compiled patterns of a directory. Paths are relative to that directory and separated by `/`.
#[derive(Debug)]
pub struct PatternSet {
    case: Case,
    rules: Vec<Rule>,
    /// Number of rules that are built in.
    built_in: usize,
    /// Whether any rule is one for secrets.
    has_secrets: bool,
    /// Whether rules for a file also decide about its copies.
    covers_copies: bool,
    chunks: Vec<Chunk>,
    /// The rule that ignores a directory or one above it.
    ignored_dirs: RwLock<HashMap<Box<[u8]>, Option<usize>, RandomState>>,
}

/// Consecutive rules whose globs are matched together.
#[derive(Debug)]
struct Chunk {
    first_rule: usize,
    globs: GlobSet,
}

impl PatternSet {
    /// Compiles access rules. They ignore letter case, and all of them must compile: a dropped rule would allow
    /// what it denies.
    ///
    /// # Errors
    /// If there are too many patterns, or one is too large.
    pub fn access_rules<'a>(
        lines: impl IntoIterator<Item = RuleLine<'a>>,
    ) -> Result<Self, CompileError> {
        let mut set = Self::new(Case::Folded);
        set.covers_copies = true;
        let mut globs = Vec::new();
        for line in lines {
            let (source, number) = (line.source.clone(), line.number);
            let origin = line.origin;
            match parse(line, Case::Folded) {
                Ok((rule, glob)) => {
                    set.built_in += usize::from(origin.is_built_in());
                    set.has_secrets |= origin.tracks()[1] && origin.is_built_in();
                    set.rules.push(rule);
                    globs.push(glob);
                }
                Err(NoGlob::NeverMatches) => {}
                Err(NoGlob::TooLarge) => {
                    let line = number;
                    return Err(CompileError::TooLarge { source, line });
                }
            }
            if set.rules.len() > MAX_PATTERNS + set.built_in {
                return Err(CompileError::TooManyPatterns);
            }
        }
        match set.compile(&globs) {
            None => Ok(set),
            Some(rule) => Err(CompileError::TooLarge {
                source: set.rules[rule].source.clone(),
                line: set.rules[rule].line,
            }),
        }
    }

    /// Compiles a `.gitignore` named `source`. Patterns that exceed a size limit match nothing.
    pub(crate) fn gitignore(source: &str, text: &[u8]) -> Self {
        Self::gitignore_with_case(source, text, Case::Sensitive)
    }

    pub(super) fn gitignore_with_case(source: &str, text: &[u8], case: Case) -> Self {
        let mut set = Self::new(case);
        let parsed = rule_lines(source, text).filter_map(|line| parse(line, case).ok());
        let (rules, globs): (_, Vec<Glob>) = parsed.unzip();
        set.rules = rules;
        set.compile(&globs);
        set
    }

    fn new(case: Case) -> Self {
        Self {
            case,
            rules: Vec::new(),
            built_in: 0,
            has_secrets: false,
            covers_copies: false,
            chunks: Vec::new(),
            ignored_dirs: RwLock::default(),
        }
    }

    /// Compiles the globs of all rules, in their order. Returns the first rule whose glob exceeds a size limit;
    /// such rules match nothing.
    fn compile(&mut self, globs: &[Glob]) -> Option<usize> {
        let mut too_large = None;
        let mut first_rule = 0;
        while first_rule < globs.len() {
            let mut bytes = 0;
            let count = globs[first_rule..]
                .iter()
                .take(MAX_SET_GLOBS)
                .take_while(|glob| {
                    bytes += glob.regex().len();
                    bytes <= MAX_SET_BYTES
                })
                .count()
                .max(1);
            let globs = &globs[first_rule..first_rule + count];
            if let Ok(globs) = GlobSet::new(globs) {
                self.chunks.push(Chunk { first_rule, globs });
            } else {
                for (rule, glob) in (first_rule..).zip(globs) {
                    match GlobSet::new([glob]) {
                        Ok(globs) => self.chunks.push(Chunk {
                            first_rule: rule,
                            globs,
                        }),
                        Err(_) => too_large = too_large.or(Some(rule)),
                    }
                }
            }
            first_rule += count;
        }
        too_large
    }

    /// Returns the lines of the user that lift built-in rules.
    pub(super) fn lifting(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.is_lifting())
    }

    /// Returns whether there is no pattern.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the last rule that matches `path` itself, whatever its parents are. For nested rule files, whose
    /// reader walks down from the top.
    pub(crate) fn last_match(&self, path: &[u8], is_dir: bool) -> Match<&Rule> {
        let [as_file, as_dir] = self.last_matches(&self.fold(path));
        self.matched(if is_dir { as_dir } else { as_file })
    }

    /// Returns the rule that decides about `path`: one that ignores a directory above it, else the last match. Access
    /// rules for a file also decide about its copies.
    pub fn deciding(&self, path: &[u8]) -> Decision<'_> {
        let path = self.fold(path);
        let parent_end = memchr::memrchr(b'/', &path).unwrap_or(0);
        let [as_file, as_dir] = match self.ignoring(&path[..parent_end]) {
            Some(rule) => [Some(rule); 2],
            None => {
                let [as_file, as_dir] = self.last_matches(&path);
                let of_original = || self.ignoring_original(&path, as_file);
                [of_original().or(as_file), as_dir]
            }
        };
        Decision {
            as_file: self.matched(as_file),
            as_dir: self.matched(as_dir),
        }
    }

    /// Returns the rule that ignores a file of which `path` may be a copy, unless a rule decides about the copy.
    fn ignoring_original(&self, path: &[u8], deciding: Option<usize>) -> Option<usize> {
        let is_decided = deciding.is_some_and(|rule| {
            let rule = &self.rules[rule];
            !rule.is_by_content() && (!rule.is_negated || rule.is_literal)
        });
        if !self.covers_copies || is_decided {
            return None;
        }
        let name_start = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
        let (parent, name) = path.split_at(name_start);
        let originals = copies::originals(name).into_iter();
        let mut by_content = None;
        for original in originals {
            let [rule, _] = self.last_matches(&[parent, &original].concat());
            // A copy of a rule file decides nothing. Line 0 is the rule that denies rule files.
            let rule =
                rule.filter(|rule| !self.rules[*rule].is_negated && self.rules[*rule].line != 0);
            match rule {
                Some(rule) if self.rules[rule].is_by_content() => {
                    by_content = by_content.or(Some(rule));
                }
                Some(rule) => return Some(rule),
                None => {}
            }
        }
        // The rule for the name of the copy decides as well.
        by_content.filter(|_| deciding.is_none_or(|rule| self.rules[rule].is_negated))
    }

    fn matched(&self, rule: Option<usize>) -> Match<&Rule> {
        match rule.and_then(|rule| self.rules.get(rule)) {
            None => Match::None,
            Some(rule) if rule.is_negated => Match::Whitelist(rule),
            Some(rule) => Match::Ignore(rule),
        }
    }

    fn fold<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        match self.case {
            Case::Sensitive => path.into(),
            Case::Folded => fold(path),
        }
    }

    /// Returns the rule that ignores a directory or the topmost one above it.
    fn ignoring(&self, dir: &[u8]) -> Option<usize> {
        if dir.is_empty() {
            return None;
        }
        if let Some(rule) = self.remembered(dir) {
            return rule;
        }
        let mut ignoring = None;
        for end in memchr::memchr_iter(b'/', dir).chain([dir.len()]) {
            let dir = &dir[..end];
            ignoring = self.remembered(dir).unwrap_or_else(|| {
                let rule = ignoring.or_else(|| {
                    let [_, rule] = self.last_matches(dir);
                    rule.filter(|rule| !self.rules[*rule].is_negated)
                });
                self.remember(dir, rule);
                rule
            });
        }
        ignoring
    }

    fn remembered(&self, dir: &[u8]) -> Option<Option<usize>> {
        let dirs = self.ignored_dirs.read();
        dirs.get(dir).copied()
    }

    fn remember(&self, dir: &[u8], rule: Option<usize>) {
        if dir.len() > MAX_REMEMBERED_PATH_BYTES {
            return;
        }
        let mut dirs = self.ignored_dirs.write();
        if dirs.len() >= MAX_REMEMBERED {
            dirs.clear();
        }
        dirs.insert(dir.into(), rule);
    }

    /// Returns the last rules that match a path as a file and as a directory.
    fn last_matches(&self, path: &[u8]) -> [Option<usize>; 2] {
        // `*` would match the empty path, which is the directory of the rules itself.
        if path.is_empty() {
            return [None; 2];
        }
        let candidate = Candidate::from_bytes(path);
        let mut hits = Vec::new();
        // The rules of the user and those for secrets.
        let mut found = [[None; 2]; 2];
        for chunk in self.chunks.iter().rev() {
            chunk.globs.matches_candidate_into(&candidate, &mut hits);
            for rule in hits.iter().rev().map(|hit| chunk.first_rule + hit) {
                let Rule {
                    origin,
                    is_dir_only,
                    ..
                } = self.rules[rule];
                for ([as_file, as_dir], is_in) in found.iter_mut().zip(origin.tracks()) {
                    if is_in && as_file.is_none() {
                        if origin != Origin::SecretContent {
                            *as_dir = as_dir.or(Some(rule));
                        }
                        // What matches a file matches a directory too.
                        *as_file = (!is_dir_only).then_some(rule);
                    }
                }
            }
            if found[0][0].is_some() && (found[1][0].is_some() || !self.has_secrets) {
                break;
            }
        }
        let [users, secrets] = found;
        [0, 1].map(|kind| self.stricter(users[kind], secrets[kind]))
    }

    /// Returns the one of two rules that ignores, if one does.
    fn stricter(&self, users: Option<usize>, secrets: Option<usize>) -> Option<usize> {
        let ignores = |rule: &usize| !self.rules[*rule].is_negated;
        users
            .filter(ignores)
            .or(secrets.filter(ignores))
            .or(users)
            .or(secrets)
    }
}

/// Splits a rule file into numbered lines as git does: without a byte order mark and carriage returns.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            (u32::try_from(index + 1).unwrap_or(u32::MAX), line)
        })
}

/// Returns the number of lines that are neither empty nor comments.
pub(super) fn count_rules(text: &[u8]) -> usize {
    lines(text)
        .filter(|(_, line)| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))
        .count()
}

/// Returns the lines of a rule file named `source`.
pub fn rule_lines<'a>(
    source: &str,
    text: &'a [u8],
) -> impl Iterator<Item = RuleLine<'a>> + use<'a> {
    let source: Arc<str> = source.into();
    lines(text).map(move |(number, text)| RuleLine {
        source: source.clone(),
        number,
        text,
        origin: Origin::User,
    })
}

/// Returns whether a line is blank or a comment.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.starts_with(b"#") || line.iter().all(|byte| *byte == b' ')
}

/// Returns whether the pattern of an access rule is negated.
pub(crate) fn is_negated(line: &[u8]) -> Result<bool, NoGlob> {
    let line = RuleLine {
        source: "".into(),
        number: 0,
        text: line,
        origin: Origin::User,
    };
    parse(line, Case::Folded).map(|(rule, _)| rule.is_negated)
}

/// Parses a line. Blank lines and comments never match.
fn parse(line: RuleLine<'_>, case: Case) -> Result<(Rule, Glob), NoGlob> {
    if line.text.starts_with(b"#") {
        return Err(NoGlob::NeverMatches);
    }
    // Git treats a line as a C string.
    let text_end = memchr::memchr(0, line.text).unwrap_or(line.text.len());
    let text = without_trailing_spaces(&line.text[..text_end]);
    let mut pattern = text.strip_prefix(b"!").unwrap_or(text);
    let is_negated = pattern.len() < text.len();
    let is_dir_only = pattern.ends_with(b"/");
    if is_dir_only {
        pattern = &pattern[..pattern.len() - 1];
    }
    let subject = if pattern.contains(&b'/') {
        Subject::Path
    } else {
        Subject::Name
    };
    pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
    let visible = match case {
        Case::Sensitive => Cow::Borrowed(pattern),
        Case::Folded => {
            let visible = visible(pattern);
            // A negated pattern with invisible characters must not allow anything.
            if is_negated && visible.as_deref() != Some(pattern) {
                return Err(NoGlob::NeverMatches);
            }
            visible.unwrap_or(Cow::Borrowed(pattern))
        }
    };
    if visible.is_empty() {
        return Err(NoGlob::NeverMatches);
    }
    let glob = Syntax::git(case).glob(&visible, subject)?;
    let rule = Rule {
        source: line.source,
        line: line.number,
        pattern: String::from_utf8_lossy(text).into_owned(),
        is_negated,
        is_dir_only,
        origin: line.origin,
        is_literal: !visible
            .rsplit(|byte| *byte == b'/')
            .next()
            .is_some_and(|name| name.iter().any(|byte| b"*?[".contains(byte))),
    };
    Ok((rule, glob))
}

/// Returns a pattern without characters that file systems ignore, or `None` when it is not UTF-8.
fn visible(pattern: &[u8]) -> Option<Cow<'_, [u8]>> {
    Some(
        match without_ignorable(std::str::from_utf8(pattern).ok()?) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
    )
}

/// Drops trailing spaces. A backslash protects the space after it.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        at += 1;
        if byte == b'\\' {
            at += 1;
        }
        if byte != b' ' {
            end = at.min(line.len());
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests;
