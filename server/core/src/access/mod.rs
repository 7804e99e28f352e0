//! May this be seen? The one place that decides.
//!
//! [`Access`] holds the compiled rules of every root and looks, each time it is
//! asked for an [`AccessView`], whether a rule file changed. A view is
//! immutable: one request works with one view, and several threads may share it.
//!
//! A path is denied by the name it is written with, or by any name it has on the
//! way when links are followed, in any root that contains it; and it is denied
//! when that cannot be found out. Only `.clineignore` and what it includes deny.
//! Hard links and bind mounts inside a root have names of their own and are not
//! seen through.
//!
//! Read next: `rules` (one root's files), `pattern` and `glob` (their
//! syntax), `links` (what a path leads to), `open` (reading without a gap), `origin` (what an editor opened),
//! `command` (shell commands, advice only).

mod casefold;
mod command;
mod git_glob;
pub(crate) mod gitignore;
pub mod lint;
mod non_links;
mod open;
mod origin;
mod rule_file;
mod rules;
mod symlinks;

#[cfg(test)]
mod git_parity;

use std::{
    cell::{LazyCell, OnceCell},
    fs, io,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use ignore::Match;
use rayon::prelude::*;
use sightline_protocol::access::{AccessKind, AccessRule, PathAccess};

pub(crate) use self::open::OpenedFolder;
use self::{
    gitignore::{Decision, bytes_of},
    rule_file::included_paths,
    rules::{RuleFiles, Rules, SourceNaming},
    symlinks::{ParentCache, ResolvedPath},
};
pub use self::{
    open::{OpenedFile, PathKind},
    origin::Origin,
    rules::{HOLD, Now, RULE_FILE},
};
use crate::{
    cancel::Cancel,
    error::Error,
    fs::dir::Dir,
    path::{AbsPath, Location, RelPath, Roots},
    thread_pool,
};

/// So many paths are shared out among threads.
const MANY_PATHS: usize = 1024;
/// So many of them at once.
const PATHS_AT_ONCE: usize = 512;

/// Why something is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// In words.
    pub reason: String,
    /// The rule that decided, when one did.
    pub rule: Option<AccessRule>,
}

/// The answer to "may this path be seen".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside a root and not denied.
    Allowed,
    /// Outside every root.
    Outside,
    /// Denied.
    Denied(Denial),
}

/// The rules of all roots, kept current.
#[derive(Debug)]
pub struct Access {
    roots: Arc<Roots>,
    loose: Arc<[AbsPath]>,
    /// One for each root, in their order; then one for each folder of a loose file
    /// and each folder above any of these.
    files: Mutex<Vec<RuleFiles>>,
}

impl Access {
    /// Rules for `roots`. `loose` are files opened without any root: allowed
    /// unless a `.clineignore` beside or above them denies them.
    pub fn new(roots: Arc<Roots>, loose: Vec<AbsPath>) -> Self {
        Self::with(roots, loose, &[])
    }

    /// The same for other roots and files, where rules that still hold go on to.
    #[must_use]
    pub fn renewed(&self, roots: Arc<Roots>, loose: Vec<AbsPath>) -> Self {
        Self::with(roots, loose, &self.files())
    }

    fn with(roots: Arc<Roots>, loose: Vec<AbsPath>, known: &[RuleFiles]) -> Self {
        let now = Now::system();
        let loose = if roots.is_empty() {
            with_real_paths(loose)
        } else {
            Vec::new()
        };
        let read = |folder: &AbsPath, naming| {
            let known = known.iter().find(|known| known.folder() == folder);
            match known {
                Some(known) => known.named(naming),
                None => RuleFiles::read(folder.clone(), naming, now),
            }
        };
        let mut files: Vec<RuleFiles> = roots
            .as_slice()
            .iter()
            .map(|root| read(&root.path, SourceNaming::Relative))
            .collect();
        let mut add = |folder: Option<AbsPath>, naming| {
            if let Some(folder) = folder
                && files.iter().all(|files| *files.folder() != folder)
            {
                files.push(read(&folder, naming));
            }
        };
        for file in &loose {
            add(folder_above(file), SourceNaming::Relative);
        }
        let roots_as_known = roots
            .as_slice()
            .iter()
            .flat_map(|root| [&root.path, &root.canonical]);
        for path in roots_as_known.chain(&*loose) {
            for above in path.as_path().ancestors().skip(1) {
                add(AbsPath::new(above), SourceNaming::Absolute);
            }
        }
        Self {
            loose: loose.into(),
            files: Mutex::new(files),
            roots,
        }
    }

    /// The rules as they stand on disk at this moment, and the roots whose
    /// rules changed since the last call.
    pub fn view(&self) -> (AccessView, Vec<usize>) {
        self.view_at(Now::system())
    }

    /// As [`Self::view`], at a time that a test chooses.
    pub fn view_at(&self, now: Now) -> (AccessView, Vec<usize>) {
        let mut files = self.files();
        let mut changed = Vec::new();
        let mut scopes: Vec<RuleScope> = Vec::with_capacity(files.len());
        for (index, files) in files.iter_mut().enumerate() {
            if files.refresh(now) {
                changed.extend(self.roots_below(index, files.folder()));
            }
            // Above the roots most folders have no rules.
            if files.naming() == SourceNaming::Relative || !matches!(files.rules(), Rules::None) {
                scopes.push(RuleScope::new(
                    files.folder(),
                    self.roots.get(index),
                    files.rules().clone(),
                ));
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for index in 0..scopes.len() {
            scopes[index].overlaps = scopes
                .iter()
                .enumerate()
                .any(|(other, scope)| other != index && scopes[index].touches(scope));
        }
        let rule_files = files.iter().flat_map(RuleFiles::paths);
        let rule_files: Vec<PathBuf> = rule_files.map(Path::to_path_buf).collect();
        let view = AccessView {
            roots: self.roots.clone(),
            loose: self.loose.clone(),
            scopes: scopes.into(),
            rule_files: rule_files.into(),
        };
        (view, changed)
    }

    /// The files whose change changes the rules; some may not exist yet.
    pub fn watched_files(&self) -> Vec<PathBuf> {
        self.files()
            .iter()
            .flat_map(RuleFiles::watched)
            .map(Path::to_path_buf)
            .collect()
    }

    /// Returns whether rules hold that the files no longer have: they end with the
    /// first view after [`HOLD`].
    pub fn is_holding(&self) -> bool {
        self.files().iter().any(RuleFiles::is_holding)
    }

    fn files(&self) -> MutexGuard<'_, Vec<RuleFiles>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The roots that the rule files of this number decide on, which are those of
    /// `folder`.
    fn roots_below(&self, number: usize, folder: &AbsPath) -> Vec<usize> {
        if number < self.roots.as_slice().len() {
            return vec![number];
        }
        let roots = self.roots.as_slice().iter().enumerate();
        let below = roots.filter(|(_, root)| {
            let mut paths = [&root.path, &root.canonical].into_iter();
            paths.any(|path| path.relative_to(folder).is_some())
        });
        below.map(|(index, _)| index).collect()
    }
}

fn folder_above(path: &AbsPath) -> Option<AbsPath> {
    path.as_path().parent().and_then(AbsPath::new)
}

/// Loose files under the path they were opened with and the one they lead to.
fn with_real_paths(loose: Vec<AbsPath>) -> Vec<AbsPath> {
    let mut all: Vec<AbsPath> = Vec::new();
    for file in loose {
        let real = fs::canonicalize(file.as_path())
            .ok()
            .and_then(|real| AbsPath::new(&real));
        for path in std::iter::once(file).chain(real) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    all
}

/// A folder with rules of its own: a root, or the folder of a loose file.
#[derive(Debug)]
struct RuleScope {
    /// The paths it is known by, without repeats; the written one first, the
    /// one without links last.
    paths: Vec<AbsPath>,
    /// What tells the folder from others however its path is spelled.
    identity: Option<(u64, u64)>,
    is_root: bool,
    /// Does another scope lie in it, or it in another?
    overlaps: bool,
    rules: Rules,
    /// The folder at its path without links, once it was needed.
    dir: OnceLock<Result<Arc<Dir>, io::ErrorKind>>,
}

impl RuleScope {
    fn new(path: &AbsPath, root: Option<&crate::path::Root>, rules: Rules) -> Self {
        let real = fs::canonicalize(path.as_path())
            .ok()
            .and_then(|real| AbsPath::new(&real));
        let mut paths = vec![path.clone()];
        for other in root
            .map(|root| root.canonical.clone())
            .into_iter()
            .chain(real)
        {
            // What is known last must stand last.
            paths.retain(|known| *known != other || *known == *path);
            if !paths.contains(&other) {
                paths.push(other);
            }
        }
        Self {
            identity: symlinks::file_id(path.as_path()),
            is_root: root.is_some(),
            overlaps: false,
            paths,
            rules,
            dir: OnceLock::new(),
        }
    }

    fn path(&self) -> &AbsPath {
        &self.paths[0]
    }

    fn real(&self) -> &AbsPath {
        self.paths.last().unwrap_or(&self.paths[0])
    }

    fn relative(&self, path: &AbsPath) -> Option<RelPath> {
        self.paths.iter().find_map(|base| path.relative_to(base))
    }

    fn touches(&self, other: &RuleScope) -> bool {
        self.paths.iter().any(|path| other.relative(path).is_some())
            || other.paths.iter().any(|path| self.relative(path).is_some())
    }

    /// The denial of `rel` by this scope's rules. `is_dir` is asked only when the
    /// answer depends on it.
    fn denial(&self, rel: &RelPath, is_dir: impl FnOnce() -> bool) -> Option<Denial> {
        let versions = match &self.rules {
            Rules::None => return None,
            Rules::Broken(why) => {
                return Some(Denial {
                    reason: why.to_string(),
                    rule: None,
                });
            }
            Rules::Patterns(versions) => versions,
        };
        let path = bytes_of(rel.as_path());
        let is_dir = LazyCell::new(is_dir);
        let rule = versions.iter().find_map(|version| {
            let Decision { as_file, as_dir } = version.patterns.deciding(&path);
            let depends_on_kind = as_file.is_ignore() != as_dir.is_ignore();
            match if depends_on_kind && *is_dir {
                as_dir
            } else {
                as_file
            } {
                Match::Ignore(rule) => Some(rule),
                Match::Whitelist(_) | Match::None => None,
            }
        })?;
        Some(Denial {
            reason: if rule.line == 0 {
                "rule files are hidden".to_owned()
            } else {
                format!("{} line {} denies it", rule.source, rule.line)
            },
            rule: Some(AccessRule {
                source: rule.source.to_string(),
                line: rule.line,
                pattern: rule.pattern.clone(),
            }),
        })
    }
}

/// Rules that deny entries of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryRules {
    /// What their patterns are relative to.
    pub(crate) place: RuleBase,
    /// The lines of the rule file, or why everything is denied.
    pub(crate) says: Result<Vec<u8>, String>,
}

/// Where rules stand, seen from a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleBase {
    /// Cursor the root or above it; the root's path below that place.
    Above(RelPath),
    /// Below the root, at this path.
    Below(RelPath),
}

/// The rules of one moment, and the folders they are for, held open from the
/// first look at one: so a view is for one request. By default nothing is open, and
/// everything outside.
#[derive(Clone, Debug, Default)]
pub struct AccessView {
    roots: Arc<Roots>,
    loose: Arc<[AbsPath]>,
    /// The roots in their order, then the folders of loose files.
    scopes: Arc<[RuleScope]>,
    /// The files the rules come from; some may not exist.
    rule_files: Arc<[PathBuf]>,
}

impl AccessView {
    /// The roots these rules are for.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// Judges a place: its written path, and what it resolves to.
    pub fn check(&self, location: &Location) -> Verdict {
        self.judge(location, &mut ParentCache::default(), 1)
    }

    /// As [`Self::check`], of the first of so many in one folder.
    fn judge(&self, location: &Location, last: &mut ParentCache, asked: usize) -> Verdict {
        let path = self.roots.absolute(location);
        let followed = OnceCell::new();
        let is_dir = || {
            let followed = followed.get_or_init(|| self.resolve(&path));
            followed.as_ref().is_ok_and(ResolvedPath::is_folder)
        };
        if let Some(denial) = self.denial_of_name(location, &path, is_dir) {
            return Verdict::Denied(denial);
        }
        let inside = matches!(location, Location::Inside { .. }) || self.is_inside(&path);
        if inside && followed.get().is_none() {
            match self.has_no_links(&path, last, asked) {
                Ok(true) => return Verdict::Allowed,
                Ok(false) => {}
                Err(denial) => return Verdict::Denied(denial),
            }
        }
        match followed.into_inner().unwrap_or_else(|| self.resolve(&path)) {
            Ok(place) => self.judge_place(&path, &place),
            Err(denial) => Verdict::Denied(denial),
        }
    }

    /// Judges a place, and says what lies there unless it is denied: what that was
    /// judged by, and what may be opened.
    fn look(&self, location: &Location) -> (Verdict, Option<ResolvedPath>) {
        let path = self.roots.absolute(location);
        let followed = self.resolve(&path);
        let is_dir = || followed.as_ref().is_ok_and(ResolvedPath::is_folder);
        if let Some(denial) = self.denial_of_name(location, &path, is_dir) {
            return (Verdict::Denied(denial), None);
        }
        match followed {
            Err(denial) => (Verdict::Denied(denial), None),
            Ok(place) => match self.judge_place(&path, &place) {
                Verdict::Denied(denial) => (Verdict::Denied(denial), None),
                verdict => (verdict, Some(place)),
            },
        }
    }

    /// Understands and judges a path as a client wrote it. A path that makes no
    /// sense is denied, with the reason.
    pub fn check_written(&self, written: &str) -> (Option<Location>, PathAccess) {
        self.check_one_of(1, written, &mut ParentCache::default())
    }

    /// As [`Self::check_written`], of the first of so many in one folder.
    fn check_one_of(
        &self,
        asked: usize,
        written: &str,
        last: &mut ParentCache,
    ) -> (Option<Location>, PathAccess) {
        let answer = |access, denial: Option<Denial>| {
            let (reason, rule) = match denial {
                Some(Denial {
                    rule: Some(rule), ..
                }) => (None, Some(rule)),
                Some(Denial { reason, rule: None }) => (Some(reason), None),
                None => (None, None),
            };
            PathAccess {
                path: written.to_owned(),
                access,
                rule,
                reason,
            }
        };
        let location = match self.roots.locate(written) {
            Ok(location) => location,
            Err(error) => {
                let denial = Denial {
                    reason: error.message,
                    rule: None,
                };
                return (None, answer(AccessKind::Denied, Some(denial)));
            }
        };
        let mut verdict = self.judge(&location, last, asked);
        if !matches!(verdict, Verdict::Denied(_))
            && names_folder(written)
            && let Some(denial) = self.denial_as_folder(&location)
        {
            verdict = Verdict::Denied(denial);
        }
        let access = match verdict {
            Verdict::Allowed => answer(AccessKind::Allowed, None),
            Verdict::Outside => answer(AccessKind::Outside, None),
            Verdict::Denied(denial) => answer(AccessKind::Denied, Some(denial)),
        };
        (Some(location), access)
    }

    /// As [`Self::check_written`] for many paths, shared out among threads. `note`
    /// is given each verdict, and what to note it in: one for some hundreds of paths
    /// that follow each other. Those are given back, in the order of the paths.
    ///
    /// # Errors
    /// Kind `cancelled`, and those of `note`.
    pub fn check_all<P: AsRef<str> + Sync, T: Default + Send>(
        &self,
        written: &[P],
        cancel: &Cancel,
        note: impl Fn(&mut T, PathAccess) -> Result<(), Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let check = |written: &[P]| {
            let mut noted = T::default();
            let mut last = ParentCache::default();
            let in_folders =
                written.chunk_by(|a, b| folder_of(a.as_ref()) == folder_of(b.as_ref()));
            for paths in in_folders {
                for (at, path) in paths.iter().enumerate() {
                    cancel.check()?;
                    let left = paths.len() - at;
                    note(
                        &mut noted,
                        self.check_one_of(left, path.as_ref(), &mut last).1,
                    )?;
                }
            }
            Ok(noted)
        };
        // A few are done before another thread has woken up.
        if written.len() < MANY_PATHS {
            return Ok(vec![check(written)?]);
        }
        let parts = written.par_chunks(PATHS_AT_ONCE);
        thread_pool::in_request_pool(|| parts.map(check).collect())
    }

    /// Judges an entry met while walking below `root`, by name only: the caller
    /// knows what kind it is and came there without following a link.
    pub fn check_entry(&self, root: usize, rel: &RelPath, is_dir: bool) -> Option<Denial> {
        let Some(scope) = self.scopes.get(root) else {
            return Some(Denial {
                reason: format!("there is no workspace folder number {root}"),
                rule: None,
            });
        };
        if !scope.overlaps {
            return scope.denial(rel, || is_dir);
        }
        // Another root may lie around it by its written or by its real path.
        let denial = self.denial_of(&scope.path().join(rel), || is_dir);
        denial.or_else(|| self.denial_of(&scope.real().join(rel), || is_dir))
    }

    /// Why everything in `root`, or in a folder that lies in it or around it and
    /// has rules of its own, is denied: its rules can't be used.
    pub fn unusable(&self, root: usize) -> Option<&str> {
        let own = self.scopes.get(root)?;
        let mut scopes = self.scopes.iter();
        scopes.find_map(|scope| match &scope.rules {
            Rules::Broken(why) if std::ptr::eq(scope, own) || own.touches(scope) => Some(&**why),
            _ => None,
        })
    }

    /// Files below `root` that access rules come from, now or when a rule file has
    /// the text that `then` returns for it; links on the way are named too.
    pub(crate) fn rule_files(
        &self,
        root: usize,
        then: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    ) -> Vec<RelPath> {
        let Some(own) = self.scopes.get(root) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = self.rule_files.to_vec();
        for folder in self.scopes.iter().flat_map(|scope| &scope.paths) {
            if let Some(below) = own.relative(folder) {
                paths.push(folder.as_path().join(RULE_FILE));
                let text = then(&below.child(RULE_FILE.as_ref()));
                paths.extend(
                    text.into_iter()
                        .flat_map(|text| included_paths(folder, text)),
                );
            }
        }
        let real = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
        let real: Vec<PathBuf> = real.collect();
        let all = paths.into_iter().chain(real);
        let below = all.filter_map(|path| own.relative(&AbsPath::new(&path)?));
        let mut files: Vec<RelPath> = below.collect();
        files.sort();
        files.dedup();
        files
    }

    /// The rules that [`Self::check_entry`] judges entries of `root` by, as
    /// text: equal rules judge equally.
    pub(crate) fn entry_rules(&self, root: usize) -> Vec<EntryRules> {
        let Some(own) = self.scopes.get(root) else {
            return Vec::new();
        };
        let scopes = self
            .scopes
            .iter()
            .filter(|scope| std::ptr::eq(*scope, own) || own.overlaps);
        let mut rules = Vec::new();
        for scope in scopes {
            let says: Vec<Result<Vec<u8>, String>> = match &scope.rules {
                Rules::None => continue,
                Rules::Broken(why) => vec![Err(why.to_string())],
                Rules::Patterns(versions) => versions
                    .iter()
                    .map(|version| Ok(version.lines.to_vec()))
                    .collect(),
            };
            // As `check_entry` places entries: by the root's written and by its
            // real path.
            let mut places: Vec<RuleBase> = Vec::new();
            for root in [own.path(), own.real()] {
                let place = if let Some(rel) = scope.relative(root) {
                    Some(RuleBase::Above(rel))
                } else {
                    scope
                        .paths
                        .iter()
                        .find_map(|base| base.relative_to(root))
                        .map(RuleBase::Below)
                };
                places.extend(place.filter(|place| !places.contains(place)));
            }
            for place in places {
                rules.extend(says.iter().map(|says| EntryRules {
                    place: place.clone(),
                    says: says.clone(),
                }));
            }
        }
        rules
    }

    /// Judges an absolute path by all rules and all it leads to.
    fn check_absolute(&self, path: &AbsPath) -> Verdict {
        self.check(&self.roots.place(path.clone()))
    }

    /// What rules say about a location by its name, and by how else that could be
    /// read. `is_dir` is asked only when the answer depends on it.
    fn denial_of_name(
        &self,
        location: &Location,
        path: &AbsPath,
        is_dir: impl Fn() -> bool,
    ) -> Option<Denial> {
        let denial = match location {
            Location::Inside { root, rel } => match self.scopes.get(*root) {
                Some(scope) if !scope.overlaps => scope.denial(rel, &is_dir),
                _ => self.denial_of(path, &is_dir),
            },
            Location::Outside(_) => self.denial_of(path, &is_dir),
        };
        denial.or_else(|| {
            let other = other_reading(path)?;
            let denial = self.denial_of(&other, || false);
            denial.or_else(|| self.denial_of(&other, || true))
        })
    }

    /// What rules say about a location that is written as a folder, which need not be
    /// there yet.
    fn denial_as_folder(&self, location: &Location) -> Option<Denial> {
        let path = self.roots.absolute(location);
        if let Some(denial) = self.denial_of_name(location, &path, || true) {
            return Some(denial);
        }
        match self.resolve(&path) {
            Ok(place) if place.linked => {
                let denial = self.denial_of(&AbsPath::new(&place.real)?, || true);
                denial.map(through_link)
            }
            Ok(_) => None,
            Err(denial) => Some(denial),
        }
    }

    /// Judges what a path leads to, when its name was judged.
    fn judge_place(&self, path: &AbsPath, place: &ResolvedPath) -> Verdict {
        if let Some(denial) = self.denial_of_links(place) {
            return Verdict::Denied(denial);
        }
        let allowed_if = |inside: bool| match inside {
            true => Verdict::Allowed,
            false => Verdict::Outside,
        };
        if !place.linked {
            return allowed_if(self.is_inside(path) || self.loose.contains(path));
        }
        let Some(real) = AbsPath::new(&place.real) else {
            return Verdict::Outside;
        };
        if let Some(denial) = self.denial_of(&real, || place.is_folder()) {
            return Verdict::Denied(through_link(denial));
        }
        let is_loose = [path, &real].iter().any(|path| self.loose.contains(path));
        allowed_if(is_loose || self.is_inside(&real))
    }

    fn is_inside(&self, path: &AbsPath) -> bool {
        self.scopes
            .iter()
            .any(|scope| scope.is_root && scope.relative(path).is_some())
    }

    /// What any rules say about a path, by name only.
    fn denial_of(&self, path: &AbsPath, is_dir: impl Fn() -> bool) -> Option<Denial> {
        self.scopes
            .iter()
            .find_map(|scope| scope.denial(&scope.relative(path)?, &is_dir))
    }
}

/// The folder in a path as somebody wrote it, to tell what belongs together.
fn folder_of(written: &str) -> &[u8] {
    let bytes = written.as_bytes();
    &bytes[..memchr::memrchr(b'/', bytes).unwrap_or(0)]
}

/// Returns whether a path is written so that only a folder can be meant.
fn names_folder(written: &str) -> bool {
    let last = written.rsplit(['/', '\\']).next();
    matches!(last, Some("" | "." | ".."))
}

/// Says so when it is not the written name that is denied, without telling the
/// name that is.
fn through_link(denial: Denial) -> Denial {
    Denial {
        reason: format!("it leads to a path that is denied: {}", denial.reason),
        ..denial
    }
}

/// How else a path could be read. Backslashes separate for Windows, for its
/// tools elsewhere, and for agents that write paths the same way everywhere.
/// Windows itself also drops dots and spaces at the end of a name and takes
/// what follows a colon as a stream of the file.
fn other_reading(path: &AbsPath) -> Option<AbsPath> {
    if !cfg!(windows) {
        let bytes = path.as_path().as_os_str().as_encoded_bytes();
        memchr::memchr(b'\\', bytes)?;
        let text = path.as_path().to_str()?;
        return AbsPath::new(Path::new(&text.replace('\\', "/")));
    }
    let mut plain = PathBuf::new();
    for part in path.as_path().components() {
        match part {
            Component::Normal(name) => {
                let name = name.to_str()?.split(':').next()?;
                plain.push(name.trim_end_matches(['.', ' ']));
            }
            start => plain.push(start),
        }
    }
    let plain = AbsPath::new(&plain)?;
    (plain != *path).then_some(plain)
}
