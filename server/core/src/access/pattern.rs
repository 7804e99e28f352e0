//! Rule files in gitignore syntax: what a line means, and which line decides.
//!
//! Shared by the access rules and by whoever honours `.gitignore`. Answers are
//! those of `git check-ignore`: the last line that matches wins, paths are
//! judged from the first component down, and below an ignored folder nothing
//! can be let in again. Globs themselves are in [`super::glob`].

use std::{
    borrow::Cow,
    collections::HashMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use foldhash::quality::RandomState;

pub(crate) use super::glob::Case;
use super::{
    fold::{fold, without_ignorable},
    glob::{Glob, Subject},
};

/// Folders whose verdict is remembered per set of rules, and the longest path remembered.
const MEMO_FOLDERS: usize = 16 * 1024;
const MEMO_PATH_BYTES: usize = 1024;
/// Globs remembered for all folders together.
const MEMO_GLOBS: usize = 1024 * 1024;

/// A relative path as rules see it: bytes, with `/`.
pub(crate) fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) {
        return bytes
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect();
    }
    Cow::Borrowed(bytes)
}

/// One line of a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The file the line stands in, as its reader named it.
    pub(crate) source: Arc<str>,
    /// From 1; 0 for a rule no file holds.
    pub(crate) line: u32,
    /// The pattern as written.
    pub(crate) pattern: String,
    /// Starts with `!`: lets in again.
    pub(crate) negated: bool,
    dirs_only: bool,
}

/// Compiled rules of one folder. Paths are relative to that folder, with `/`.
#[derive(Debug)]
pub(crate) struct PatternSet {
    case: Case,
    rules: Vec<Rule>,
    /// Rules by the kind of test they need; each list names rules in order.
    names: HashMap<Box<[u8]>, Vec<u32>, RandomState>,
    paths: HashMap<Box<[u8]>, Vec<u32>, RandomState>,
    extensions: HashMap<Box<[u8]>, Vec<u32>, RandomState>,
    /// The rest, in order.
    name_globs: Vec<(u32, Glob)>,
    path_globs: Vec<PathGlob>,
    memo: RwLock<Memo>,
}

#[derive(Debug, Default)]
struct Memo {
    folders: HashMap<Box<[u8]>, Arc<Folder>, RandomState>,
    globs: usize,
}

/// A glob for whole paths.
#[derive(Debug)]
struct PathGlob {
    rule: u32,
    whole: Glob,
    /// What the folder and what the name must match, where that can be told apart.
    parts: Option<(Glob, Glob)>,
}

/// What is known of a folder, so that its entries are judged by their names.
#[derive(Debug)]
struct Folder {
    /// The rule that ignores it or a folder above it.
    ignored: Option<u32>,
    /// The path globs that can match an entry of it.
    globs: Box<[u32]>,
}

impl PatternSet {
    /// An empty set.
    pub(crate) fn new(case: Case) -> Self {
        Self {
            case,
            rules: Vec::new(),
            names: HashMap::default(),
            paths: HashMap::default(),
            extensions: HashMap::default(),
            name_globs: Vec::new(),
            path_globs: Vec::new(),
            memo: RwLock::default(),
        }
    }

    /// Adds all lines of a rule file. `source` is what its rules report.
    pub(crate) fn add_text(&mut self, source: &str, text: &[u8]) {
        let source = Arc::from(source);
        for (line, text) in lines(text) {
            self.add_line(&source, line, text);
        }
    }

    /// Adds one line, as [`lines`] gives it. Blank lines, comments and patterns
    /// that can match nothing add nothing.
    pub(crate) fn add_line(&mut self, source: &Arc<str>, line: u32, text: &[u8]) {
        let Some((rule, test)) = compile(text, self.case) else {
            return;
        };
        let index = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
        match test {
            Test::Name(name) => self.names.entry(name).or_default().push(index),
            Test::Path(path) => self.paths.entry(path).or_default().push(index),
            Test::Extension(end) => self.extensions.entry(end).or_default().push(index),
            Test::Glob(Subject::Name, glob) => self.name_globs.push((index, glob)),
            Test::Glob(Subject::Path, whole) => self.path_globs.push(PathGlob {
                rule: index,
                parts: whole.split_name(),
                whole,
            }),
        }
        self.rules.push(Rule {
            source: source.clone(),
            line,
            ..rule
        });
        *self.memo.get_mut().unwrap_or_else(PoisonError::into_inner) = Memo::default();
    }

    /// The number of rules.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Is there no rule?
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The last rule that matches this very path, whatever its parents are.
    /// For rule files in nested folders, whose reader walks from the top itself.
    pub(crate) fn last_match(&self, path: &[u8], is_dir: bool) -> Option<&Rule> {
        let path = self.fold(path);
        let folder = self.folder(parent(&path));
        self.rule(self.last_matches_in(&folder, &path)[usize::from(is_dir)])
    }

    /// The rules that decide on this path, were it a file and were it a folder:
    /// what ignores a folder above it, else the last match, which may be one
    /// that lets in.
    pub(crate) fn deciding(&self, path: &[u8]) -> [Option<&Rule>; 2] {
        let path = self.fold(path);
        let folder = self.folder(parent(&path));
        if folder.ignored.is_some() {
            return [self.rule(folder.ignored); 2];
        }
        self.last_matches_in(&folder, &path)
            .map(|rule| self.rule(rule))
    }

    fn fold<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        match self.case {
            Case::Sensitive => path.into(),
            Case::Folded => fold(path),
        }
    }

    fn rule(&self, index: Option<u32>) -> Option<&Rule> {
        self.rules.get(usize::try_from(index?).ok()?)
    }

    /// What is known of a folder (nothing: the top), worked out from the top down.
    fn folder(&self, path: &[u8]) -> Arc<Folder> {
        if let Some(known) = self.remembered(path) {
            return known;
        }
        let mut known = self.remembered(b"").unwrap_or_else(|| {
            let top = self.describe(b"", None);
            self.remember(b"", &top);
            top
        });
        for end in separators(path) {
            let below = &path[..end];
            known = self.remembered(below).unwrap_or_else(|| {
                let ignored = known.ignored.or_else(|| {
                    self.last_matches_in(&known, below)[1]
                        .filter(|rule| self.rule(Some(*rule)).is_some_and(|rule| !rule.negated))
                });
                let described = self.describe(below, ignored);
                self.remember(below, &described);
                described
            });
        }
        known
    }

    fn describe(&self, path: &[u8], ignored: Option<u32>) -> Arc<Folder> {
        let mut slashed = path.to_vec();
        if !path.is_empty() {
            slashed.push(b'/');
        }
        let globs = (0_u32..)
            .zip(&self.path_globs)
            .filter(|(_, glob)| match &glob.parts {
                Some((folder, _)) => folder.matches(&slashed),
                None => true,
            })
            .map(|(index, _)| index)
            .collect();
        Arc::new(Folder { ignored, globs })
    }

    fn remembered(&self, folder: &[u8]) -> Option<Arc<Folder>> {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        memo.folders.get(folder).cloned()
    }

    fn remember(&self, path: &[u8], folder: &Arc<Folder>) {
        if path.len() > MEMO_PATH_BYTES {
            return;
        }
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        if memo.folders.len() >= MEMO_FOLDERS || memo.globs >= MEMO_GLOBS {
            *memo = Memo::default();
        }
        memo.globs += folder.globs.len();
        memo.folders.insert(path.into(), folder.clone());
    }

    /// The last rules that match `path`, an entry of `folder`, were it a file and
    /// were it a folder.
    fn last_matches_in(&self, folder: &Folder, path: &[u8]) -> [Option<u32>; 2] {
        let name = &path[path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1)..];
        if name.is_empty() {
            return [None; 2];
        }
        let mut last = [None; 2];
        let dot = name.iter().rposition(|byte| *byte == b'.');
        let literals = [
            self.names.get(name),
            self.paths.get(path),
            dot.and_then(|dot| self.extensions.get(&name[dot..])),
        ];
        for rules in literals.into_iter().flatten() {
            self.note_last(&mut last, rules.iter().map(|rule| (*rule, ())), |()| true);
        }
        let by_name = self.name_globs.iter().map(|(rule, glob)| (*rule, glob));
        self.note_last(&mut last, by_name, |glob| glob.matches(name));
        let by_path = folder
            .globs
            .iter()
            .filter_map(|index| self.path_globs.get(usize::try_from(*index).ok()?))
            .map(|glob| (glob.rule, glob));
        self.note_last(&mut last, by_path, |glob| match &glob.parts {
            Some((_, own)) => own.matches(name),
            None => glob.whole.matches(path),
        });
        last
    }

    /// Goes through rules from the last to the first until none that is left can
    /// be the last that matches.
    fn note_last<T>(
        &self,
        [as_file, as_dir]: &mut [Option<u32>; 2],
        rules: impl DoubleEndedIterator<Item = (u32, T)>,
        matches: impl Fn(T) -> bool,
    ) {
        for (rule, test) in rules.rev() {
            // What matches a file matches a folder too.
            if *as_file >= Some(rule) {
                return;
            }
            let dirs_only = self.is_dirs_only(rule);
            if dirs_only && *as_dir >= Some(rule) || !matches(test) {
                continue;
            }
            *as_dir = (*as_dir).max(Some(rule));
            if !dirs_only {
                *as_file = Some(rule);
                return;
            }
        }
    }

    fn is_dirs_only(&self, index: u32) -> bool {
        self.rule(Some(index)).is_some_and(|rule| rule.dirs_only)
    }
}

/// How a rule is tested.
enum Test {
    /// The name is this.
    Name(Box<[u8]>),
    /// The whole path is this.
    Path(Box<[u8]>),
    /// The name ends in this, which starts with its only dot.
    Extension(Box<[u8]>),
    Glob(Subject, Glob),
}

/// The lines of a rule file with their numbers, as git splits them: a byte order
/// mark and the carriage return of a line end are dropped.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            (u32::try_from(index + 1).unwrap_or(u32::MAX), line)
        })
}

/// Does the pattern of a line let in again? `None` when it can match nothing.
pub(crate) fn negation(line: &[u8]) -> Option<bool> {
    compile(line, Case::Folded).map(|(rule, _)| rule.negated)
}

/// What a line means; `None` when it can match nothing.
fn compile(line: &[u8], case: Case) -> Option<(Rule, Test)> {
    if line.starts_with(b"#") {
        return None;
    }
    // For git the line is a C string.
    let line = line.split(|byte| *byte == 0).next()?;
    let line = without_trailing_spaces(line);
    let negated = line.starts_with(b"!");
    let mut pattern = if negated { &line[1..] } else { line };
    let dirs_only = pattern.ends_with(b"/");
    if dirs_only {
        pattern = &pattern[..pattern.len() - 1];
    }
    let subject = if pattern.contains(&b'/') {
        Subject::Path
    } else {
        Subject::Name
    };
    if subject == Subject::Path {
        pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
    }
    if pattern.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(pattern);
    let shown = match (case, text) {
        (Case::Folded, Ok(text)) => without_ignorable(text),
        _ => Cow::Borrowed(""),
    };
    // What cannot be read must not let anything in.
    if case == Case::Folded && negated && text != Ok(&*shown) {
        return None;
    }
    if let Cow::Owned(shown) = &shown {
        pattern = shown.as_bytes();
    }
    let glob = Glob::new(pattern, subject, case)?;
    let test = if let Some(text) = glob.as_literal() {
        match subject {
            Subject::Name => Test::Name(text.into()),
            Subject::Path => Test::Path(text.into()),
        }
    } else if let (Subject::Name, Some(end)) = (subject, glob.as_suffix())
        && end.starts_with(b".")
        && !end[1..].contains(&b'.')
    {
        Test::Extension(end.into())
    } else {
        Test::Glob(subject, glob)
    };
    let rule = Rule {
        source: "".into(),
        line: 0,
        pattern: String::from_utf8_lossy(line).into_owned(),
        negated,
        dirs_only,
    };
    Some((rule, test))
}

/// Spaces at the end do not count, unless a backslash keeps the first of them.
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

/// The folder an entry stands in; empty at the top.
fn parent(path: &[u8]) -> &[u8] {
    let at = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    &path[..at]
}

/// Where each folder on the way to (and including) `folder` ends.
fn separators(folder: &[u8]) -> impl Iterator<Item = usize> {
    folder
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at)
        .chain((!folder.is_empty()).then_some(folder.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deciding<'a>(set: &'a PatternSet, path: &str, is_dir: bool) -> Option<&'a Rule> {
        set.deciding(path.as_bytes())[usize::from(is_dir)]
    }

    fn ignoring<'a>(set: &'a PatternSet, path: &str, is_dir: bool) -> Option<&'a Rule> {
        deciding(set, path, is_dir).filter(|rule| !rule.negated)
    }

    fn set(text: &str) -> PatternSet {
        let mut set = PatternSet::new(Case::Folded);
        set.add_text("rules", text.as_bytes());
        set
    }

    #[test]
    fn the_deciding_line_is_named() {
        let set = set("# first\n*.log  \n!keep.log\r\nbuild/\n");
        let rule = ignoring(&set, "a/X.LOG", false).unwrap();
        assert_eq!(
            (&*rule.source, rule.line, rule.pattern.as_str()),
            ("rules", 2, "*.log")
        );
        let rule = deciding(&set, "keep.log", false).unwrap();
        assert_eq!((rule.line, rule.negated), (3, true));
        assert_eq!(ignoring(&set, "build/keep.log", false).unwrap().line, 4);
        assert!(ignoring(&set, "build", false).is_none());
        assert!(ignoring(&set, "build", true).is_some());
    }

    #[test]
    fn memory_of_folders_changes_no_answer() {
        let set = set("a/*\n!a/b\nc\n");
        for _ in 0..2 {
            assert!(ignoring(&set, "a/x/y", false).is_some());
            assert!(ignoring(&set, "a/b/y", false).is_none());
            assert!(ignoring(&set, "a/b/c/d/e", false).is_some());
            assert!(ignoring(&set, "", true).is_none());
        }
    }

    #[test]
    fn characters_that_show_nothing_deny_more_and_never_less() {
        let set = set(".e\u{200b}nv\n*\u{200d}.k\n\u{200b}\n!a\u{200b}.k\n!b.k\n");
        for denied in [
            ".env",
            ".ENV",
            ".en\u{fe0f}v",
            "a.k",
            "x\u{200d}.k",
            "\u{200b}",
        ] {
            assert!(ignoring(&set, denied, false).is_some(), "{denied:?}");
        }
        assert!(ignoring(&set, "b.k", false).is_none());
    }

    /// As git does from 2.52 on. Before, it cut the literal start off, and took what
    /// was left for the start of a path.
    #[test]
    fn double_stars_behind_text_are_a_star() {
        let set = set("foo**/bar\n");
        for (path, expected) in [
            ("foobar", false),
            ("foo/bar", true),
            ("foox/bar", true),
            ("foo/x/bar", false),
            ("foox/y/bar", false),
        ] {
            assert_eq!(ignoring(&set, path, false).is_some(), expected, "{path}");
        }
    }

    #[test]
    fn unreadable_bytes_deny_more_and_never_less() {
        let mut set = PatternSet::new(Case::Folded);
        set.add_text("rules", b"*.k\xe9y\n!\xe9.k\xe9y\n");
        assert!(ignoring(&set, "a.kéy", false).is_some());
        assert!(ignoring(&set, "é.kéy", false).is_some());
    }
}
