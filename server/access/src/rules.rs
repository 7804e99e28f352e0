//! The access rules of one directory: its `.clineignore` and the files that it includes.
//!
//! Compiles the files and detects changes. Programs save a file in steps: it is empty, incomplete or missing for a
//! moment. So new rules apply immediately, and removed rules still apply until the files have been unchanged for
//! [`REMOVAL_DELAY`].

pub(crate) mod built_in;
pub(crate) mod file;
pub(crate) mod scope;

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use sightline_protocol::settings::Secrets;

pub use self::file::RULE_FILE;
use self::file::{Content, FileState, RulePart, Source, read_rule_files, rule_parts};
use super::{
    gitignore::{self, CompileError, Origin, PatternSet, RuleLine},
    secrets,
};
use sightline_base::{
    limits::{MAX_INCLUDES, MAX_PATTERNS},
    path::{AbsPath, RelPath},
};

/// How long removed rules still apply.
pub const REMOVAL_DELAY: Duration = Duration::from_millis(500);
/// Age from which the timestamps of files prove that they have been unchanged for [`REMOVAL_DELAY`]. Longer than that,
/// because file systems round timestamps.
const SETTLED: Duration = Duration::from_secs(1);
/// How far file timestamps can be behind the system clock: kernels update theirs once per tick.
const TICK: Duration = Duration::from_millis(20);
/// Number of versions of changing rules that apply together. More deny everything.
const MAX_HELD: usize = 16;

/// A point in time, by two clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// Measures waiting.
    pub monotonic: Instant,
    /// Is compared with file timestamps.
    pub wall: SystemTime,
}

impl ClockReading {
    /// Reads the clocks of the system.
    pub fn system() -> Self {
        Self {
            monotonic: Instant::now(),
            wall: SystemTime::now(),
        }
    }
}

/// The rules of a directory.
#[derive(Clone, Debug, Default)]
pub(super) enum Rules {
    /// No rules. Nothing is denied.
    #[default]
    None,
    /// The current rules, and earlier versions that still apply. A path is denied if any of them denies it.
    Patterns(Vec<Arc<Compiled>>),
    /// Everything is denied for this reason.
    Broken(Arc<str>),
}

impl Rules {
    /// Returns whether there are rules.
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns the lines of all versions, or why everything is denied.
    pub(super) fn contents(&self) -> Vec<Result<Vec<u8>, String>> {
        match self {
            Self::None => Vec::new(),
            Self::Broken(why) => vec![Err(why.to_string())],
            Self::Patterns(versions) => versions
                .iter()
                .map(|version| Ok(version.lines.to_vec()))
                .collect(),
        }
    }

    /// Returns whether these are the rules `before`, followed only by lines that deny more.
    fn extend(&self, before: &Self) -> bool {
        let (Self::Patterns(now), Self::Patterns(before)) = (self, before) else {
            return false;
        };
        let ([now], [before]) = (&**now, &**before) else {
            return false;
        };
        let lines = &before.lines;
        let before = lines.strip_suffix(secrets::LAST_LINES).unwrap_or(lines);
        let end = before.iter().rposition(|byte| *byte != b'\n');
        let before = &before[..end.map_or(0, |end| end + 1)];
        let Some(rest) = now.lines.strip_prefix(before) else {
            return false;
        };
        let mut lines = gitignore::lines(rest);
        // The first line is the rest of the last line of `before`.
        lines.next().is_some_and(|(_, line)| line.is_empty())
            && lines.all(|(_, line)| !line.starts_with(b"!"))
    }
}

/// Compiled rules and their lines. Included lines replace the line that includes them.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) patterns: PatternSet,
    pub(super) lines: Box<[u8]>,
}

/// The place of a directory with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    /// A root, or the directory of an open file. Built-in rules may apply, and rules name their source file by its
    /// path relative to the directory.
    Workspace(Secrets),
    /// Another directory, above or below these.
    Above,
}

/// The rules of a directory as last read, and the state needed to detect a change.
#[derive(Clone, Debug)]
pub(super) struct RuleFiles {
    folder: AbsPath,
    kind: ScopeKind,
    /// The directory from which rules name their source files. Without one, by their absolute paths.
    names_from: Option<AbsPath>,
    /// The current content of the files.
    current: Version,
    /// Earlier contents since the files were last unchanged for [`REMOVAL_DELAY`].
    held: Vec<Version>,
    /// When `current` was first seen with the states in `states`.
    since: Instant,
    states: Vec<FileState>,
    /// State of the folder when `states` were seen, if versions were held: a file that is missing
    /// at two checks may have been there in between.
    folder_state: Option<FileState>,
    read_at: SystemTime,
    checked_at: SystemTime,
    /// The union of all versions.
    rules: Rules,
}

/// A rule file in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFileStatus {
    /// The path.
    pub path: PathBuf,
    /// Name of the file in its rules.
    pub source: String,
    /// Time of the last change, if it is known.
    pub changed_at: Option<SystemTime>,
    /// Number of its rules.
    pub rules: usize,
    /// Whether removed rules of its folder still apply.
    pub is_held: bool,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// A version of the rule files, with its compiled rules.
#[derive(Clone, Debug)]
struct Version {
    sources: Vec<Source>,
    rules: Rules,
}

impl RuleFiles {
    /// Reads the rules of a root, of the directory of an open file or of one above these.
    pub(super) fn read(folder: AbsPath, kind: ScopeKind, now: ClockReading) -> Self {
        let names_from = names_from(&folder, kind);
        Self::read_named(folder, kind, names_from, now)
    }

    /// Reads the rules of `folder`. Rules name their source files by the path from `names_from`.
    pub(super) fn read_named(
        folder: AbsPath,
        kind: ScopeKind,
        names_from: Option<AbsPath>,
        now: ClockReading,
    ) -> Self {
        let (sources, states) = read_rule_files(&folder);
        let current = Version {
            rules: compile(&folder, kind, names_from.as_ref(), &sources),
            sources,
        };
        Self {
            folder,
            kind,
            names_from,
            rules: current.rules.clone(),
            current,
            held: Vec::new(),
            since: now.monotonic,
            states,
            folder_state: None,
            read_at: now.wall,
            checked_at: now.wall,
        }
    }

    /// Returns a copy for a directory of another kind.
    pub(super) fn with_kind(&self, kind: ScopeKind) -> Self {
        let mut changed = self.clone();
        if kind == self.kind {
            return changed;
        }
        changed.kind = kind;
        changed.names_from = names_from(&self.folder, kind);
        let names_from = changed.names_from.as_ref();
        let versions = std::iter::once(&mut changed.current).chain(&mut changed.held);
        for version in versions.filter(|version| !version.sources.is_empty()) {
            version.rules = compile(&self.folder, kind, names_from, &version.sources);
        }
        changed.update_rules();
        changed
    }

    pub(super) fn folder(&self) -> &AbsPath {
        &self.folder
    }

    pub(super) fn kind(&self) -> ScopeKind {
        self.kind
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns whether any rules apply, including removed ones.
    pub(super) fn has_rules(&self) -> bool {
        self.is_holding() || !matches!(self.rules, Rules::None)
    }

    /// Returns whether removed rules still apply.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the files to watch for changes. Some may not exist.
    pub(super) fn watched(&self) -> impl Iterator<Item = &Path> {
        self.current
            .sources
            .iter()
            .map(|source| source.path.as_path())
    }

    /// Returns all files with rules that apply, including removed ones.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let versions = std::iter::once(&self.current).chain(&self.held);
        let sources = versions.flat_map(|version| &version.sources);
        sources.map(|source| source.path.as_path())
    }

    /// Returns the files that exist or whose removed rules still apply.
    pub(super) fn statuses(&self) -> impl Iterator<Item = RuleFileStatus> {
        let current = self
            .current
            .sources
            .iter()
            .zip(&self.states)
            .map(|(source, seen)| (source, seen.changed_at(&source.path)));
        let held = self.held.iter().flat_map(|held| &held.sources);
        let removed = held.filter(|held| {
            let now = self
                .current
                .sources
                .iter()
                .find(|now| now.path == held.path);
            now.is_none_or(|now| now.content == Content::None)
        });
        current
            .chain(removed.map(|source| (source, None)))
            .filter_map(|(source, changed_at)| {
                let (rules, problem) = match &source.content {
                    Content::None => return None,
                    Content::Text(text) => (gitignore::count_rules(text), None),
                    Content::Unusable(why) => (0, Some(why.clone())),
                };
                Some(RuleFileStatus {
                    source: source_name(self.names_from.as_ref(), &source.path),
                    path: source.path.clone(),
                    changed_at,
                    rules,
                    is_held: self.is_holding(),
                    problem,
                })
            })
    }

    /// Reads the files again if they may have changed. Returns whether the rules changed.
    pub(super) fn refresh(&mut self, now: ClockReading) -> bool {
        let checked_at = std::mem::replace(&mut self.checked_at, now.wall);
        if self.is_current() {
            return false;
        }
        let (sources, states) = read_rule_files(&self.folder);
        self.read_at = now.wall;
        let is_changed = sources != self.current.sources;
        let is_holding = is_changed || !self.held.is_empty();
        let folder_state = is_holding.then(|| FileState::of(self.folder.as_path()));
        let may_have_returned =
            folder_state != self.folder_state && states.iter().any(FileState::is_missing);
        self.folder_state = folder_state;
        if is_changed || states != self.states || may_have_returned {
            self.since = now.monotonic;
            self.states = states;
        }
        let mut is_settled = now.monotonic.saturating_duration_since(self.since) >= REMOVAL_DELAY;
        if is_changed {
            let before = self.switch_to(sources);
            is_settled |= self.is_settled(&before, checked_at, now.wall);
        }
        if is_settled {
            self.held.clear();
        }
        self.update_rules()
    }

    /// Returns whether the files seem unchanged and no removed rules apply.
    pub(super) fn is_current(&self) -> bool {
        self.held.is_empty() && !self.may_have_changed()
    }

    fn may_have_changed(&self) -> bool {
        let mut seen = self.current.sources.iter().zip(&self.states);
        seen.any(|(source, seen)| {
            seen.is_racy(self.read_at) || FileState::of(&source.path) != *seen
        })
    }

    /// Makes `sources` the current version and holds the previous one. Returns the sources of the previous one.
    fn switch_to(&mut self, sources: Vec<Source>) -> Vec<Source> {
        let known = self.held.iter().position(|held| held.sources == sources);
        let version = match known {
            Some(index) => self.held.remove(index),
            None => Version {
                rules: compile(&self.folder, self.kind, self.names_from.as_ref(), &sources),
                sources,
            },
        };
        let before = std::mem::replace(&mut self.current, version);
        let sources = before.sources.clone();
        if !matches!(before.rules, Rules::None) {
            self.held.push(before);
        }
        if self.held.len() > MAX_HELD {
            self.held.clear();
            self.held.push(Version {
                sources: Vec::new(),
                rules: Rules::Broken(
                    format!(
                        "the access rules of {} keep changing; everything in this folder is denied until they have been unchanged for half a second",
                        self.folder.display()
                    )
                    .into(),
                ),
            });
        }
        sources
    }

    /// Returns whether file timestamps prove that the files have not changed for [`SETTLED`]. A timestamp before the
    /// previous check, which found other content, proves nothing: the file was moved here, or its timestamps come from
    /// another clock.
    fn is_settled(&self, before: &[Source], checked_at: SystemTime, now: SystemTime) -> bool {
        let sources = self.current.sources.iter().zip(&self.states);
        let mut changed = sources.filter(|(source, _)| !before.contains(source));
        changed.all(|(source, seen)| {
            let is_settled = |at: SystemTime| {
                at.checked_add(TICK).is_some_and(|at| at >= checked_at)
                    && now.duration_since(at).is_ok_and(|age| age >= SETTLED)
            };
            seen.changed_at(&source.path).is_some_and(is_settled)
        })
    }

    /// Sets the rules to the union of all versions. Returns whether they changed.
    fn update_rules(&mut self) -> bool {
        let mut patterns = Vec::new();
        let mut broken = None;
        let current = &self.current;
        let mut versions: Vec<&Version> = self.held.iter().collect();
        versions.retain(|held| !current.rules.extend(&held.rules));
        if !versions
            .iter()
            .any(|held| held.rules.extend(&current.rules))
        {
            versions.insert(0, current);
        }
        for version in versions {
            match &version.rules {
                Rules::None => {}
                Rules::Patterns(compiled) => patterns.extend(compiled.iter().cloned()),
                Rules::Broken(why) => broken = broken.or(Some(why.clone())),
            }
        }
        let rules = match broken {
            Some(why) => Rules::Broken(why),
            None if patterns.is_empty() => Rules::None,
            None => Rules::Patterns(patterns),
        };
        let is_changed = match (&self.rules, &rules) {
            (Rules::None, Rules::None) => false,
            (Rules::Broken(a), Rules::Broken(b)) => a != b,
            (Rules::Patterns(a), Rules::Patterns(b)) => {
                a.len() != b.len() || !a.iter().all(|a| b.iter().any(|b| Arc::ptr_eq(a, b)))
            }
            _ => true,
        };
        self.rules = rules;
        is_changed
    }
}

fn names_from(folder: &AbsPath, kind: ScopeKind) -> Option<AbsPath> {
    (kind != ScopeKind::Above).then(|| folder.clone())
}

/// Returns the name of a file in its rules.
fn source_name(names_from: Option<&AbsPath>, path: &Path) -> String {
    let below = names_from.and_then(|base| path.strip_prefix(base.as_path()).ok());
    match below.and_then(RelPath::new) {
        Some(rel) => rel.to_wire().0,
        None => path.display().to_string(),
    }
}

fn compile(
    folder: &AbsPath,
    kind: ScopeKind,
    names_from: Option<&AbsPath>,
    sources: &[Source],
) -> Rules {
    let name = |path: &Path| source_name(names_from, path);
    let broken = |why: String| Rules::Broken(why.into());
    if sources.len() > MAX_INCLUDES + 1 {
        return broken(format!(
            "cannot use the access rules of {}: `{RULE_FILE}` includes more than {MAX_INCLUDES} files; everything in this folder is denied until it includes fewer",
            folder.display()
        ));
    }
    for source in sources {
        if let Content::Unusable(why) = &source.content {
            return broken(format!(
                "cannot use the access rules of {}: `{}` {why}; everything in this folder is denied until this is fixed",
                folder.display(),
                name(&source.path)
            ));
        }
    }
    let denies_secrets = kind == ScopeKind::Workspace(Secrets::Deny);
    let Some((main, includes)) = sources.split_first() else {
        return Rules::None;
    };
    let text = match &main.content {
        Content::Text(text) if !text.is_empty() => text,
        _ if denies_secrets => return built_in::rules().clone(),
        _ => return Rules::None,
    };
    let source: Arc<str> = name(&main.path).into();
    let built_in = denies_secrets.then(secrets::rule_lines);
    let mut rule_lines: Vec<RuleLine<'_>> = built_in.into_iter().flatten().collect();
    for part in rule_parts(folder, text, includes) {
        match part {
            RulePart::Line(number, text) => rule_lines.push(RuleLine {
                source: source.clone(),
                number,
                text,
                origin: if built_in::lifts(text) {
                    Origin::Lifting
                } else {
                    Origin::User
                },
            }),
            RulePart::Include(_, path, text) => {
                rule_lines.extend(gitignore::rule_lines(&name(path), text));
            }
        }
    }
    rule_lines.extend(secrets::last_lines());
    compile_lines(rule_lines, |error| match error {
        CompileError::TooManyPatterns => format!(
            "cannot use the access rules of {}: they have more than {MAX_PATTERNS} patterns; everything in this folder is denied until they have fewer",
            folder.display()
        ),
        CompileError::TooLarge { source, line } => format!(
            "cannot use the access rules of {}: the pattern in line {line} of {source} is too large; everything in this folder is denied until it is shorter",
            folder.display()
        ),
    })
}

/// Compiles lines. If they cannot be compiled, they deny everything for the reason that `explain` returns.
fn compile_lines(
    rule_lines: Vec<RuleLine<'_>>,
    explain: impl FnOnce(CompileError) -> String,
) -> Rules {
    // The same line can lift built-in rules in one file and not in another.
    let lines = rule_lines.iter().map(|line| match line.origin {
        Origin::Lifting => Cow::Owned([line.text, b"\0lifts"].concat()),
        _ => Cow::Borrowed(line.text),
    });
    let lines = lines.collect::<Vec<_>>().join(&b'\n').into();
    match PatternSet::access_rules(rule_lines) {
        Ok(patterns) => Rules::Patterns(vec![Arc::new(Compiled { patterns, lines })]),
        Err(error) => Rules::Broken(explain(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{file::RACY, *};

    const WORKSPACE: ScopeKind = ScopeKind::Workspace(Secrets::Allow);

    fn denied(files: &RuleFiles, path: &str) -> bool {
        match files.rules() {
            Rules::Patterns(versions) => versions.iter().any(|version| {
                let decision = version.patterns.deciding(path.as_bytes());
                decision.as_file.is_ignore()
            }),
            Rules::None => false,
            Rules::Broken(_) => true,
        }
    }

    /// A change that is visible neither in timestamps nor in the size is only possible while the file is young. The
    /// file is read again until then.
    #[test]
    fn a_young_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RULE_FILE);
        fs::write(&path, "a\n").unwrap();
        let now = ClockReading::system();
        let folder = AbsPath::new(dir.path()).unwrap();
        let mut files = RuleFiles::read(folder, WORKSPACE, now);
        let change_unseen = |files: &mut RuleFiles, text: &str| {
            fs::write(&path, text).unwrap();
            files.held.clear();
            files.update_rules();
            files.states = vec![FileState::of(&path)];
        };
        change_unseen(&mut files, "b\n");
        assert!(files.refresh(now));
        assert!(!files.refresh(now));
        change_unseen(&mut files, "c\n");
        files.read_at = now.wall + 2 * RACY;
        assert!(!files.refresh(now));
        // A file with a timestamp in the future stays young.
        let future = now.wall + 100 * RACY;
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(future).unwrap();
        files.states = vec![FileState::of(&path)];
        assert!(files.refresh(now));
        assert!(denied(&files, "c"));
    }

    /// This does not depend on the age of the file or of the symlink.
    #[cfg(unix)]
    #[test]
    fn a_change_of_the_target_of_a_symlink_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "a\n").unwrap();
        std::os::unix::fs::symlink("target", dir.path().join(RULE_FILE)).unwrap();
        let now = ClockReading::system();
        let folder = AbsPath::new(dir.path()).unwrap();
        let mut files = RuleFiles::read(folder, WORKSPACE, now);
        files.read_at = now.wall + 2 * RACY;
        assert!(!files.refresh(now));
        fs::write(&target, "longer\n").unwrap();
        assert!(files.refresh(now));
        assert!(denied(&files, "longer"));
    }
}
