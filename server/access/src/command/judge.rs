//! Checks the paths of one command against the rules, within limits of time and number.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Component, Path, PathBuf},
    time::{Duration, Instant},
};

use sightline_protocol::{access::DeniedOperand, settings::RecursiveReaders};

use super::expand::{DECODED, Field, Unit};
use crate::{
    AccessView, Denial, Verdict,
    casefold::fold,
    gitignore::glob::{Case, Matcher, NoGlob, Subject, Syntax},
    through_link,
};
use sightline_base::path::AbsPath;

/// Maximum paths checked per command.
const MAX_PATHS: usize = 20_000;
/// Maximum file name, in characters. No file system allows more.
const MAX_NAME: usize = 255;
/// Maximum characters of the values of all words, with [`VALUE_CHARS`] for each value.
const MAX_CHARS: usize = 8 << 20;
/// Counted for a value besides its characters.
const VALUE_CHARS: usize = 16;
/// Maximum length of a path, in bytes: Linux's PATH_MAX.
const MAX_PATH_BYTES: usize = 4096;
/// Maximum denied operands reported.
const MAX_DENIED: usize = 200;
/// Maximum written paths reported.
const MAX_WRITTEN: usize = 1_000;
/// Maximum directory entries that patterns are compared with.
const MAX_ENTRIES: usize = 100_000;
/// Maximum files that a pattern is replaced with.
const MAX_MATCHES: usize = 2_000;
/// Maximum time for one command. Ordinary commands take milliseconds.
pub(super) const MAX_TIME: Duration = Duration::from_secs(2);

/// File names compare as the file system does.
const CASE: Case = if cfg!(any(windows, target_os = "macos")) {
    Case::Folded
} else {
    Case::Sensitive
};

/// What earlier commands of a line may have written, besides the paths that they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Writes {
    Nothing,
    /// A program that is not known may write files; few do.
    Unknown,
    /// Git changed the work tree to contents that it has.
    Versions,
    /// Files with any names and contents.
    Files,
}

/// The verdict on one command, as far as it is known.
pub(super) struct Judge<'a> {
    pub(super) view: &'a AccessView,
    pub(super) readers: RecursiveReaders,
    pub(super) denied: Vec<DeniedOperand>,
    pub(super) written: BTreeSet<String>,
    /// What the commands so far may have written.
    pub(super) writes: Writes,
    /// Paths whose contents they change.
    rewritten: BTreeSet<PathBuf>,
    /// Folders that they copy, move or link to others.
    pub(super) copied: Vec<PathBuf>,
    /// Files and folders that a guard protects, of which names are followed instead of denied files.
    pub(super) guarded: Option<Vec<PathBuf>>,
    known: HashMap<PathBuf, Option<Denial>>,
    /// The allowed files that searches found.
    pub(super) seen: Seen,
    entries_left: usize,
    chars_left: usize,
    started: Instant,
    is_exhausted: bool,
}

/// Allowed files, as hashes.
#[derive(Default)]
pub(super) struct Seen {
    /// Names of the files, and of the folders above them.
    names: HashSet<u64>,
    /// Sum of their paths.
    pub(super) files: u64,
}

impl Seen {
    /// Adds a file of a folder. `below`: the path of the folder, if it is new.
    pub(super) fn add(&mut self, file: &Path, below: Option<&str>) {
        self.files = self.files.wrapping_add(hash(file));
        let names = below.into_iter().flat_map(|path| path.split('/'));
        self.names.extend(names.map(|name| hash(OsStr::new(name))));
        self.names.extend(file.file_name().map(hash));
    }

    /// Returns whether one of the files, or a folder above one, has a name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(&hash(OsStr::new(name)))
    }
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// One name of a pattern.
enum Step {
    Name(String),
    Pattern {
        matcher: Matcher,
        shows_hidden: bool,
    },
    /// `**`, which some shells let match any depth.
    AnyDepth,
}

impl<'a> Judge<'a> {
    pub(super) fn new(view: &'a AccessView, readers: RecursiveReaders) -> Self {
        Self {
            view,
            readers,
            denied: Vec::new(),
            written: BTreeSet::new(),
            writes: Writes::Nothing,
            rewritten: BTreeSet::new(),
            copied: Vec::new(),
            guarded: None,
            known: HashMap::new(),
            seen: Seen::default(),
            entries_left: MAX_ENTRIES,
            chars_left: MAX_CHARS,
            started: Instant::now(),
            is_exhausted: false,
        }
    }

    /// Returns whether a limit for this command is reached. Then the command is denied once.
    pub(super) fn is_exhausted(&mut self) -> bool {
        if !self.is_exhausted
            && (self.known.len() >= MAX_PATHS
                || self.chars_left == 0
                || self.started.elapsed() > MAX_TIME)
        {
            self.exhaust();
        }
        self.is_exhausted
    }

    /// Counts the characters of a value.
    pub(super) fn spend(&mut self, chars: usize) {
        self.chars_left = self.chars_left.saturating_sub(chars + VALUE_CHARS);
    }

    /// Returns the time since the check began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Denies the command because its check cannot be completed.
    pub(super) fn exhaust(&mut self) {
        if !self.is_exhausted {
            self.is_exhausted = true;
            self.refuse("", "the command is too complex to check; split it");
        }
    }

    /// Checks a path, relative to each possible working directory. Returns whether it is denied.
    pub(super) fn check_path(&mut self, written: &str, dirs: &[PathBuf], how: &str) -> bool {
        self.check_path_as(written, dirs, how, true)
    }

    /// [`Self::check_path`]. `reads`: what earlier commands wrote there counts.
    pub(super) fn check_path_as(
        &mut self,
        written: &str,
        dirs: &[PathBuf],
        how: &str,
        reads: bool,
    ) -> bool {
        let mut places = self.places(written, dirs);
        if reads && !self.copied.is_empty() && places.iter().all(|place| !place.exists()) {
            // In a folder that the line makes of others.
            let names: Vec<_> = Path::new(written).components().collect();
            let below = (1..names.len()).map(|at| names[at..].iter().collect::<PathBuf>());
            let copies = below.flat_map(|below| self.copied.iter().map(move |it| it.join(&below)));
            places.extend(copies.filter(|place| place.exists()));
        }
        for place in places {
            let denial = if reads {
                self.denial(&place)
            } else {
                self.denial_now(&place)
            };
            if let Some(denial) = denial {
                self.deny(written, how, denial);
                return true;
            }
        }
        false
    }

    /// Returns whether a path exists, or will when the command gets it.
    pub(super) fn exists(&self, written: &str, dirs: &[PathBuf]) -> bool {
        let places = self.places(written, dirs);
        let mut places = places.iter();
        places.any(|place| place.symlink_metadata().is_ok() || self.rewritten.contains(place))
    }

    /// Returns whether a path is that of a file, or will be when the command gets it.
    pub(super) fn is_file(&self, written: &str, dirs: &[PathBuf]) -> bool {
        self.exists(written, dirs) && !self.places(written, dirs).iter().all(|it| it.is_dir())
    }

    /// Returns the paths that a written one means.
    fn places(&self, written: &str, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let impossible = |name: &str| name.chars().nth(MAX_NAME).is_some();
        if written.is_empty()
            || written.len() > MAX_PATH_BYTES
            || written.contains('\0')
            || written.split('/').any(impossible)
        {
            return Vec::new();
        }
        let written = &*written.replace(DECODED, "");
        let path = strip_proc_cwd(written).unwrap_or(Path::new(written));
        if path.is_absolute() {
            vec![path.to_path_buf()]
        } else {
            dirs.iter().map(|dir| dir.join(path)).collect()
        }
    }

    /// Returns why a path is denied. Paths outside the workspace are denied by rules only.
    pub(super) fn denial(&mut self, path: &Path) -> Option<Denial> {
        let denial = self.denial_now(path);
        denial.or_else(|| self.denial_of_changed(path, Writes::Unknown))
    }

    /// [`Self::denial`], as if earlier commands wrote nothing.
    fn denial_now(&mut self, path: &Path) -> Option<Denial> {
        if self.guarded.is_some() {
            return self.may_hold_guarded(path).then(Denial::of_guard);
        }
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        if self.is_exhausted() {
            return None;
        }
        let denial = self.denial_of(path);
        self.known.insert(path.to_path_buf(), denial.clone());
        denial
    }

    /// Returns a denial if the content of a file decides, and earlier commands may have changed it: they
    /// have written it, or `least` or more.
    pub(super) fn denial_of_changed(&self, path: &Path, least: Writes) -> Option<Denial> {
        let is_guard = self.guarded.is_some();
        if is_guard || self.writes < least && self.rewritten.is_empty() {
            return None;
        }
        let may_differ = |path: &Path| self.writes >= least || self.rewrites(path);
        let real = sightline_base::path::canonicalize(path).ok();
        let mut paths = [Some(path.to_path_buf()), real].into_iter().flatten();
        paths
            .any(|path| {
                may_differ(&path)
                    && AbsPath::new(&path)
                        .and_then(|path| self.view.denial_of(&path, || false))
                        .is_some_and(|denial| denial.by_content)
            })
            .then(|| {
                Denial::new(
                    "whose content an earlier part of the line may change; \
                     read it in a separate command"
                        .to_owned(),
                )
            })
    }

    /// Returns whether earlier commands wrote a path, or a folder above it.
    fn rewrites(&self, path: &Path) -> bool {
        !self.rewritten.is_empty()
            && AbsPath::new(path).is_some_and(|path| {
                let mut above = path.as_path().ancestors();
                above.any(|path| self.rewritten.contains(path))
            })
    }

    /// Returns the roots of the workspace.
    pub(super) fn roots(&self) -> impl Iterator<Item = PathBuf> {
        let scopes = self.view.scopes.iter().filter(|scope| scope.is_root);
        scopes.map(|scope| scope.path().as_path().to_path_buf())
    }

    /// Returns why a path is denied by its name, or with a guard whether it is one of its places.
    pub(super) fn denial_by_name(&self, path: &AbsPath) -> Option<Denial> {
        let Some(places) = &self.guarded else {
            return self.view.denial_of(path, || false);
        };
        let is_place = |place: &PathBuf| path.as_path().starts_with(place);
        places.iter().any(is_place).then(Denial::of_guard)
    }

    /// Returns whether a folder may contain what is searched for: with a guard, one of its places.
    /// A place itself counts too.
    pub(super) fn may_hold(&self, folder: &Path) -> bool {
        self.guarded.is_none() || self.may_hold_guarded(folder)
    }

    fn may_hold_guarded(&self, path: &Path) -> bool {
        let path = AbsPath::new(path);
        let touches =
            |path: &Path, place: &PathBuf| place.starts_with(path) || path.starts_with(place);
        let mut places = self.guarded.iter().flatten();
        path.is_some_and(|path| places.any(|place| touches(path.as_path(), place)))
    }

    /// [`Self::denial`], without keeping the result.
    pub(super) fn denial_of(&self, path: &Path) -> Option<Denial> {
        let folded = AbsPath::new(path)?;
        if let Verdict::Denied(denial) = self.view.check_absolute(&folded) {
            return Some(denial);
        }
        // After a symbolic link, `..` is not the lexical parent.
        if !path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        match self.view.resolve_physically(path) {
            Err(denial) => Some(denial),
            Ok(followed) => match self.view.check_absolute(&AbsPath::new(&followed.real)?) {
                Verdict::Denied(denial) => Some(through_link(denial)),
                _ => None,
            },
        }
    }

    /// Denies the command because of a path. `how` says what the command does with it.
    pub(super) fn deny(&mut self, path: &str, how: &str, denial: Denial) {
        // What a guard protects can be read.
        if self.guarded.is_some() {
            return;
        }
        let path = &*path.replace(DECODED, "");
        let why = match &denial.rule {
            Some(_) if denial.by_content => format!("which is hidden because {}", denial.reason),
            Some(rule) if rule.line > 0 => {
                format!(
                    "which {} line {} hides ({})",
                    rule.source, rule.line, rule.pattern
                )
            }
            Some(_) => "which is hidden because it contains access rules".to_owned(),
            None => denial.reason,
        };
        let entry = DeniedOperand {
            path: path.to_owned(),
            reason: format!("{how} `{path}`, {why}"),
            rule: denial.rule,
        };
        let is_known = |known: &DeniedOperand| known.path == entry.path && known.rule == entry.rule;
        if !self.denied.iter().any(is_known) && self.denied.len() < MAX_DENIED {
            self.denied.push(entry);
        }
    }

    /// Denies the command for a reason other than a rule.
    pub(super) fn refuse(&mut self, path: &str, reason: &str) {
        let is_known = |known: &DeniedOperand| known.path == path && known.reason == reason;
        if !self.denied.iter().any(is_known) {
            self.denied.push(DeniedOperand {
                path: path.to_owned(),
                reason: reason.to_owned(),
                rule: None,
            });
        }
    }

    /// Records that the command writes a path. `rewrites`: its content, or those of files below it.
    pub(super) fn add_written(&mut self, written: &str, dirs: &[PathBuf], rewrites: bool) {
        for place in self.places(written, dirs) {
            if let Some(path) = AbsPath::new(&place)
                && self.written.len() < MAX_WRITTEN
            {
                let path = path.as_path();
                self.written.insert(path.to_string_lossy().into_owned());
                self.rewritten.extend(rewrites.then(|| path.to_path_buf()));
            }
        }
    }

    /// Returns whether the commands so far may have changed contents.
    pub(super) fn writes_any(&self) -> bool {
        self.writes > Writes::Nothing || !self.rewritten.is_empty()
    }

    /// Records what a command may write besides the paths that it names.
    pub(super) fn add_writes(&mut self, writes: Writes) {
        self.writes = self.writes.max(writes);
    }

    /// Returns the paths that a word means, as written and in each folder: the matches of a pattern, or
    /// the word itself.
    pub(super) fn named(
        &mut self,
        field: &Field,
        dirs: &[PathBuf],
        dotglob: bool,
    ) -> Vec<(String, PathBuf)> {
        if field.has_glob() {
            return self.matches(field, dirs, dotglob);
        }
        let path = field.text();
        let places = dirs.iter().map(|dir| (path.clone(), dir.join(&path)));
        let mut places: Vec<_> = places.collect();
        if let Some(slashed) = field.slashed() {
            places.extend(self.named(&slashed, dirs, dotglob));
        }
        places
    }

    /// Returns the files that a pattern matches, as the shell would write them, and their paths.
    /// `dotglob`: `*` also matches hidden files.
    pub(super) fn matches(
        &mut self,
        field: &Field,
        dirs: &[PathBuf],
        dotglob: bool,
    ) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        if let Some(slashed) = field.slashed() {
            found = self.matches(&slashed, dirs, dotglob);
        }
        let text = field.text();
        if matches!(field.units.first(), Some(Unit::Unknown { .. })) && text.starts_with('/') {
            // In a folder that is not known, such as `$(mktemp -d)/*`.
            return found;
        }
        let mut names = field.names_of_path();
        let is_in_dir = strip_proc_cwd(&text).is_some();
        if is_in_dir {
            names.drain(..PROC_CWD_NAMES);
        }
        let drive = drive_of(&text);
        if drive.is_some() {
            names.drain(..1);
        }
        let Some(steps) = names.iter().map(step).collect::<Option<Vec<Step>>>() else {
            self.refuse(&text, "a pattern is too large to check; name the files");
            return found;
        };
        let is_absolute = (text.starts_with('/') || drive.is_some()) && !is_in_dir;
        let only_folders = matches!(
            field.units.last(),
            Some(Unit::Plain('/') | Unit::Quoted('/'))
        );
        let starts = if is_absolute {
            vec![PathBuf::from(drive.unwrap_or("/"))]
        } else {
            dirs.to_vec()
        };
        for start in starts {
            let mut todo = vec![(start.clone(), 0_usize)];
            while let Some((at, index)) = todo.pop() {
                if found.len() >= MAX_MATCHES || self.entries_left == 0 || self.is_exhausted() {
                    self.refuse(
                        &text,
                        "a pattern matches too many files to check; use a narrower one",
                    );
                    return found;
                }
                let shown = |at: &Path| {
                    let below = if is_absolute {
                        at
                    } else {
                        at.strip_prefix(&start).unwrap_or(at)
                    };
                    let shown = below.to_string_lossy();
                    if cfg!(windows) {
                        shown.replace('\\', "/")
                    } else {
                        shown.into_owned()
                    }
                };
                let Some(step) = steps.get(index) else {
                    if !only_folders || at.is_dir() {
                        found.push((shown(&at), at));
                    }
                    continue;
                };
                if let Step::Name(name) = step {
                    let next = at.join(name);
                    // A pattern matches only existing files.
                    if index + 1 < steps.len() || next.symlink_metadata().is_ok() {
                        todo.push((next, index + 1));
                    }
                } else {
                    let is_last = index + 1 == steps.len();
                    self.read_step(&at, step, (index, is_last), dotglob, &mut todo);
                }
            }
        }
        found
    }

    /// Reads a folder and adds what matches.
    fn read_step(
        &mut self,
        folder: &Path,
        step: &Step,
        (index, is_last): (usize, bool),
        dotglob: bool,
        todo: &mut Vec<(PathBuf, usize)>,
    ) {
        if !self.may_hold(folder) {
            return;
        }
        if matches!(step, Step::AnyDepth) {
            todo.push((folder.to_path_buf(), index + 1));
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if self.entries_left == 0 {
                return;
            }
            self.entries_left -= 1;
            let name = entry.file_name();
            let bytes = name.as_encoded_bytes();
            let is_visible = dotglob || !bytes.starts_with(b".");
            match step {
                Step::Pattern {
                    matcher,
                    shows_hidden,
                } => {
                    let matches = match CASE {
                        Case::Sensitive => matcher.is_match(bytes),
                        Case::Folded => matcher.is_match(&fold(bytes)),
                    };
                    if matches && (*shows_hidden || is_visible) {
                        todo.push((entry.path(), index + 1));
                    }
                }
                Step::AnyDepth if is_visible => {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        todo.push((entry.path(), index));
                    } else if is_last {
                        todo.push((entry.path(), index + 1));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns `None` for a pattern over a size limit.
fn step(name: &Field) -> Option<Step> {
    let text = name.text();
    if !name.has_glob() && !name.has_unknown() {
        return Some(Step::Name(text));
    }
    if text == "**" {
        return Some(Step::AnyDepth);
    }
    match Syntax::shell(CASE).matcher(&name.glob(), Subject::Name) {
        Ok(matcher) => Some(Step::Pattern {
            matcher,
            shows_hidden: text.starts_with('.'),
        }),
        Err(NoGlob::NeverMatches) => Some(Step::Name(text)),
        Err(NoGlob::TooLarge) => None,
    }
}

/// Number of names in `/proc/PID/cwd`.
const PROC_CWD_NAMES: usize = 3;

/// Returns the root of the drive of an absolute path of Windows with slashes, such as `C:/`.
fn drive_of(path: &str) -> Option<&str> {
    let is_drive = cfg!(windows)
        && matches!(path.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    is_drive.then(|| &path[..3])
}

/// Returns the path after `/proc/PID/cwd/`, which is taken as the command's working directory.
fn strip_proc_cwd(written: &str) -> Option<&Path> {
    let (_, rest) = written.strip_prefix("/proc/")?.split_once('/')?;
    let rest = rest.strip_prefix("cwd")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| Path::new(rest.trim_start_matches('/')))
}
