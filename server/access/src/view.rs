//! Checks paths against the rules at one point in time.

use std::{
    cell::OnceCell,
    mem,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rayon::prelude::*;
use sightline_protocol::access::{AccessKind, AccessRule, PathAccess};

use super::{
    Content, Denial, Verdict,
    nested::NestedRules,
    open::CheckedPath,
    or_stricter,
    rules::{RULE_FILE, Rules, ScopeKind},
    rules::{
        file::{PROJECT_FILE, included_paths},
        scope::RuleScope,
    },
    strictest,
    symlinks::{KnownLinks, ParentCache, ResolvedPath},
    through_link,
};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::{AbsPath, Location, RelPath, Roots},
    thread_pool,
};

/// Number of paths from which on several threads check them.
const MIN_PARALLEL_PATHS: usize = 1024;
/// Number of paths in one unit of parallel work.
const PATHS_PER_CHUNK: usize = 512;

/// Rules that deny entries of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRules {
    /// The directory to which the patterns are relative.
    pub base: RuleBase,
    /// The lines of the rules, or the reason why everything is denied.
    pub content: Result<Vec<u8>, String>,
}

/// The directory of rules, relative to a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleBase {
    /// The root or a directory above it. Contains the path from there to the root.
    Above(RelPath),
    /// A directory below the root, at this path.
    Below(RelPath),
}

/// The rules at one point in time. Holds the directories of the rules open once they were used, so a view must not
/// outlive its request. The default view has no roots; every path is outside.
#[derive(Clone, Debug, Default)]
pub struct AccessView {
    pub(super) roots: Arc<Roots>,
    pub(super) open_files: Arc<[AbsPath]>,
    /// The roots in their order, then the directories of open files and those above.
    pub(super) scopes: Arc<[RuleScope]>,
    /// The files that contain the rules. Some may not exist.
    pub(super) rule_files: Arc<[PathBuf]>,
    /// The rules for paths outside of the roots.
    pub(super) outside: Rules,
    /// The rules of the directories between a root and a file.
    pub(super) nested: Option<Arc<NestedRules>>,
    /// The links that were followed.
    pub(super) links: Arc<KnownLinks>,
}

impl AccessView {
    /// Returns the roots of these rules.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// Checks a location: its written path and everything it resolves to, and the content of the file there if it
    /// decides.
    pub fn check(&self, location: &Location) -> Verdict {
        self.check_next(location, &mut ParentCache::default(), 1).0
    }

    /// [`Self::check`] for the first of `remaining` paths in the same directory, with the path that symlinks lead to.
    fn check_next(
        &self,
        location: &Location,
        last: &mut ParentCache,
        remaining: usize,
    ) -> (Verdict, Option<PathBuf>) {
        let path = self.roots.absolute(location);
        let followed = OnceCell::new();
        let is_dir = || {
            let followed = followed.get_or_init(|| self.resolve(&path));
            followed.as_ref().is_ok_and(ResolvedPath::is_folder)
        };
        let denial = match self.denial_of_name(location, &path, is_dir) {
            Some(denial) if !denial.by_content => return (Verdict::Denied(denial), None),
            denial => denial,
        };
        let inside = matches!(location, Location::Inside { .. }) || self.is_inside(&path);
        if inside && denial.is_none() && followed.get().is_none() {
            match self.has_no_links(&path, last, remaining) {
                Ok(true) => return (Verdict::Allowed, None),
                Ok(false) => {}
                Err(denial) => return (Verdict::Denied(denial), None),
            }
        }
        let followed = followed.into_inner().unwrap_or_else(|| self.resolve(&path));
        let real = match &followed {
            Ok(place) if place.has_links() => Some(place.real.clone()),
            _ => None,
        };
        let verdict = match followed.and_then(|place| self.check_target(&path, place, denial)) {
            Ok(checked) => checked.verdict(Content::OnDisk),
            Err(denial) => Verdict::Denied(denial),
        };
        (verdict, real)
    }

    /// Checks a location, except its content, and returns what it resolves to.
    ///
    /// # Errors
    /// The denial.
    pub(super) fn check_resolved(&self, location: &Location) -> Result<CheckedPath, Denial> {
        let path = self.roots.absolute(location);
        let followed = self.resolve(&path);
        let is_dir = || followed.as_ref().is_ok_and(ResolvedPath::is_folder);
        match self.denial_of_name(location, &path, is_dir) {
            Some(denial) if !denial.by_content => Err(denial),
            denial => self.check_target(&path, followed?, denial),
        }
    }

    /// Checks a path as a client wrote it. A path that cannot be parsed is denied.
    pub fn check_written(&self, written: &str) -> (Option<Location>, PathAccess) {
        self.check_next_written(1, written.to_owned(), &mut ParentCache::default())
    }

    /// [`Self::check_written`] for the first of `remaining` paths in the same directory.
    fn check_next_written(
        &self,
        remaining: usize,
        written: String,
        last: &mut ParentCache,
    ) -> (Option<Location>, PathAccess) {
        let (location, verdict, real) = match self.roots.locate(&written) {
            Ok(location) => {
                let (mut verdict, real) = self.check_next(&location, last, remaining);
                if !matches!(verdict, Verdict::Denied(_))
                    && names_folder(&written)
                    && let Some(denial) = self.denial_as_folder(&location)
                {
                    verdict = Verdict::Denied(denial);
                }
                (Some(location), verdict, real)
            }
            Err(error) => {
                let denial = Denial::new(error.to_string());
                (None, Verdict::Denied(denial), None)
            }
        };
        let mut answer = PathAccess {
            path: written,
            resolved: real.map(|real| real.to_string_lossy().into_owned()),
            ..PathAccess::default()
        };
        match verdict {
            Verdict::Allowed => {
                answer.access = AccessKind::Allowed;
                answer.allowed_by = location.as_ref().and_then(|at| self.lifting_rule(at));
            }
            Verdict::Outside => answer.access = AccessKind::Outside,
            Verdict::Denied(denial) => {
                answer.access = AccessKind::Denied;
                let is_explained = denial.rule.is_some() && !denial.by_content;
                answer.reason = (!is_explained).then_some(denial.reason);
                answer.rule = denial.rule;
            }
        }
        (location, answer)
    }

    /// [`Self::check_written`] for many paths, on several threads. Returns the results in the order of the paths.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check_all(
        &self,
        written: Vec<String>,
        cancel: &Cancel,
    ) -> Result<Vec<PathAccess>, Error> {
        let unchecked = |path| PathAccess {
            path,
            access: AccessKind::Denied,
            ..PathAccess::default()
        };
        let mut answers: Vec<PathAccess> = written.into_iter().map(unchecked).collect();
        let check = |answers: &mut [PathAccess]| {
            let mut last = ParentCache::default();
            let in_folders = answers.chunk_by_mut(|a, b| folder_of(&a.path) == folder_of(&b.path));
            for answers in in_folders {
                let count = answers.len();
                for (at, answer) in answers.iter_mut().enumerate() {
                    cancel.check()?;
                    let path = mem::take(&mut answer.path);
                    *answer = self.check_next_written(count - at, path, &mut last).1;
                }
            }
            Ok(())
        };
        // Waking other threads would take longer.
        if answers.len() < MIN_PARALLEL_PATHS {
            check(&mut answers)?;
        } else {
            let parts = answers.par_chunks_mut(PATHS_PER_CHUNK);
            thread_pool::in_request_pool(|| parts.try_for_each(check))?;
        }
        Ok(answers)
    }

    /// Returns the lines that lift built-in rules for secrets in a root.
    pub fn lifting_rules(&self, root: usize) -> Vec<AccessRule> {
        self.scopes
            .get(root)
            .map_or_else(Vec::new, |scope| scope.rules.lifting())
    }

    /// Returns the line that lifts a built-in rule for an allowed path.
    fn lifting_rule(&self, location: &Location) -> Option<AccessRule> {
        let Location::Inside { root, rel } = location else {
            return None;
        };
        self.scopes.get(*root)?.rules.lifted_by(rel)
    }

    /// Checks an entry found by a walk below `root`. Reads it if its content decides.
    pub fn judge_entry(&self, root: usize, rel: &RelPath, is_dir: bool) -> Option<Denial> {
        let denial = self.check_entry(root, rel, is_dir)?;
        if !denial.by_content {
            return Some(denial);
        }
        let rel = rel.clone();
        match self.check(&Location::Inside { root, rel }) {
            Verdict::Denied(denial) => Some(denial),
            Verdict::Allowed | Verdict::Outside => None,
        }
    }

    /// Checks an entry found by a walk below `root`, by name only: a content that could decide counts as secret. The
    /// caller knows its kind and did not follow symlinks.
    pub fn check_entry(&self, root: usize, rel: &RelPath, is_dir: bool) -> Option<Denial> {
        let Some(scope) = self.scopes.get(root) else {
            let reason = format!("no workspace folder has the number {root}");
            return Some(Denial::new(reason));
        };
        if !scope.overlaps {
            let denial = scope.denial(rel, || is_dir);
            return or_stricter(denial, || {
                self.nested.as_ref()?.denial_in(root, rel, || is_dir)
            });
        }
        // Other roots may contain it by its written path or by its path without symlinks.
        let denial = self.denial_of(&scope.path().join(rel), || is_dir);
        or_stricter(denial, || {
            self.denial_of(&scope.real().join(rel), || is_dir)
        })
    }

    /// Returns why everything in `root` is denied: rules that cannot be used, of the root itself or of a directory
    /// inside it or above it.
    pub fn unusable(&self, root: usize) -> Option<Arc<str>> {
        let own = self.scopes.get(root)?;
        let broken = self.scopes.iter().find_map(|scope| match &scope.rules {
            Rules::Broken(why) if std::ptr::eq(scope, own) || own.touches(scope) => {
                Some(why.clone())
            }
            _ => None,
        });
        broken.or_else(|| {
            let mut above = self.rules_above(root).into_iter();
            above.find_map(|(_, rules)| match rules {
                Rules::Broken(why) => Some(why),
                _ => None,
            })
        })
    }

    /// Returns the files below `root` that contain access rules or settings, including symlinks to them: now, and when each
    /// rule file has the text that `then` returns.
    pub fn rule_files(
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
                paths.extend([RULE_FILE, PROJECT_FILE].map(|name| folder.as_path().join(name)));
                let text = then(&below.child(RULE_FILE.as_ref()));
                paths.extend(
                    text.into_iter()
                        .flat_map(|text| included_paths(folder, text)),
                );
            }
        }
        let real = paths
            .iter()
            .filter_map(|path| sightline_base::path::canonicalize(path).ok());
        let real: Vec<PathBuf> = real.collect();
        let all = paths.into_iter().chain(real);
        let below = all.filter_map(|path| own.relative(&AbsPath::new(&path)?));
        let mut files: Vec<RelPath> = below.collect();
        files.sort();
        files.dedup();
        files
    }

    /// Returns the texts of the rules that [`Self::check_entry`] applies to `root`. Equal texts give equal results.
    pub fn entry_rules(&self, root: usize) -> Vec<EntryRules> {
        let Some(own) = self.scopes.get(root) else {
            return Vec::new();
        };
        let scopes = self
            .scopes
            .iter()
            .filter(|scope| std::ptr::eq(*scope, own) || own.overlaps);
        let mut rules = Vec::new();
        for scope in scopes {
            let contents = scope.rules.contents();
            // As in `check_entry`: the written path of the root, and the one without symlinks.
            let mut bases: Vec<RuleBase> = Vec::new();
            for root in [own.path(), own.real()] {
                let base = if let Some(rel) = scope.relative(root) {
                    Some(RuleBase::Above(rel))
                } else {
                    scope
                        .paths
                        .iter()
                        .find_map(|base| base.relative_to(root))
                        .map(RuleBase::Below)
                };
                bases.extend(base.filter(|base| !bases.contains(base)));
            }
            for base in bases {
                rules.extend(contents.iter().map(|content| EntryRules {
                    base: base.clone(),
                    content: content.clone(),
                }));
            }
        }
        // Rules of a main working tree, which apply to the root or to a directory above it.
        for (base, above) in self.rules_above(root) {
            let base = own.real().relative_to(&base).unwrap_or_default();
            rules.extend(above.contents().into_iter().map(|content| EntryRules {
                base: RuleBase::Above(base.clone()),
                content,
            }));
        }
        rules
    }

    /// Returns the lines of the rule files that begin to apply in a directory below `root`, or why they cannot be used.
    /// They are not part of [`Self::entry_rules`].
    pub fn folder_rules(&self, root: usize, dir: &RelPath) -> Vec<Result<Vec<u8>, String>> {
        let nested = self.nested.as_ref();
        nested.map_or_else(Vec::new, |nested| nested.lines_of(root, dir))
    }

    /// Saves looking for a rule file in a directory below `root` that has these names.
    pub fn note_names<'n>(
        &self,
        root: usize,
        dir: &RelPath,
        mut names: impl Iterator<Item = &'n [u8]>,
    ) {
        let is_known = |name: &[u8]| {
            let known = [RULE_FILE, ".git"];
            known
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        };
        if let Some(nested) = &self.nested
            && !names.any(is_known)
        {
            nested.note_plain(root, dir);
        }
    }

    /// Returns whether a file below `root` contains rules that apply in directories below the root.
    pub fn is_nested_rule_file(&self, root: usize, rel: &RelPath) -> bool {
        rel.name().is_some_and(|name| name == RULE_FILE)
            || self
                .nested
                .as_ref()
                .is_some_and(|nested| nested.is_rule_file(root, rel))
    }

    /// Returns whether there are built-in rules, or rules of the roots or above them.
    pub(super) fn has_rules(&self) -> bool {
        let mut rules = self.scopes.iter().map(|scope| &scope.rules);
        rules.any(Rules::is_some) || self.outside.is_some()
    }

    fn rules_above(&self, root: usize) -> Vec<(AbsPath, Rules)> {
        let nested = self.nested.as_ref();
        nested.map_or_else(Vec::new, |nested| nested.above(root))
    }

    /// [`Self::check`] for an absolute path.
    pub(super) fn check_absolute(&self, path: &AbsPath) -> Verdict {
        self.check(&self.roots.place(path.clone()))
    }

    /// Checks the written name of a location and its alternative reading. `is_dir` is called only if the result
    /// depends on it.
    fn denial_of_name(
        &self,
        location: &Location,
        path: &AbsPath,
        is_dir: impl Fn() -> bool,
    ) -> Option<Denial> {
        let denial = match location {
            Location::Inside { root, rel } => match self.scopes.get(*root) {
                Some(scope) if !scope.overlaps => {
                    let denial = scope.denial(rel, &is_dir);
                    or_stricter(denial, || {
                        self.nested.as_ref()?.denial_in(*root, rel, &is_dir)
                    })
                }
                _ => self.denial_of(path, &is_dir),
            },
            Location::Outside(_) => self.denial_of(path, &is_dir),
        };
        or_stricter(denial, || {
            let other = alternative_reading(path)?;
            let denial = self.denial_of(&other, || false);
            or_stricter(denial, || self.denial_of(&other, || true))
        })
    }

    /// Checks a location as a directory, which need not exist yet.
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

    /// Checks what a path resolves to, except its content. `denial` is the result for its written name, if the content
    /// decides.
    fn check_target(
        &self,
        path: &AbsPath,
        place: ResolvedPath,
        denial: Option<Denial>,
    ) -> Result<CheckedPath, Denial> {
        let real = AbsPath::new(&place.real).filter(|_| place.linked);
        let denial = or_stricter(denial, || self.denial_of_links(&place));
        let denial = or_stricter(denial, || {
            let denial = self.denial_of(real.as_ref()?, || place.is_folder());
            denial.map(through_link)
        });
        match denial {
            Some(denial) if !denial.by_content => Err(denial),
            by_content => Ok(CheckedPath {
                is_inside: self.leads_inside(path, &place, real.as_ref()),
                place,
                by_content,
            }),
        }
    }

    /// Returns whether a path leads into a root. `real` is its path without symlinks, if that differs.
    fn leads_inside(&self, path: &AbsPath, place: &ResolvedPath, real: Option<&AbsPath>) -> bool {
        let is_open = |path: &AbsPath| self.open_files.contains(path);
        match real {
            Some(real) => is_open(path) || is_open(real) || self.is_inside(real),
            None => !place.linked && (self.is_inside(path) || is_open(path)),
        }
    }

    pub(super) fn is_inside(&self, path: &AbsPath) -> bool {
        self.scopes
            .iter()
            .any(|scope| scope.is_root && scope.relative(path).is_some())
    }

    /// Checks the name of a path against all rules.
    pub(super) fn denial_of(&self, path: &AbsPath, is_dir: impl Fn() -> bool) -> Option<Denial> {
        let mut is_outside = true;
        let denial = strictest(self.scopes.iter().filter_map(|scope| {
            let rel = scope.relative(path)?;
            is_outside &= scope.kind == ScopeKind::Above;
            scope.denial(&rel, &is_dir)
        }));
        let denial = or_stricter(denial, || {
            let rel = is_outside.then(|| path.below_file_system_root())??;
            self.outside.denial(&rel, &is_dir)
        });
        or_stricter(denial, || self.nested_denial(path, &is_dir))
    }

    fn nested_denial(&self, path: &AbsPath, is_dir: impl Fn() -> bool) -> Option<Denial> {
        let nested = self.nested.as_ref()?;
        let mut roots = self
            .scopes
            .iter()
            .take_while(|scope| scope.is_root)
            .enumerate();
        match roots.find_map(|(root, scope)| Some((root, scope.relative(path)?))) {
            Some((root, rel)) => nested.denial_in(root, &rel, is_dir),
            None => nested.denial_outside(path, is_dir),
        }
    }
}

/// Returns the directory part of a written path.
fn folder_of(written: &str) -> &[u8] {
    let bytes = written.as_bytes();
    &bytes[..memchr::memrchr(b'/', bytes).unwrap_or(0)]
}

/// Returns whether a written path can only mean a directory.
fn names_folder(written: &str) -> bool {
    let last = written.rsplit(['/', '\\']).next();
    matches!(last, Some("" | "." | ".."))
}

/// Returns another path that the written one could mean. Windows, its tools on other systems and agents use
/// backslashes as separators. Windows also drops dots and spaces at the end of a name, and reads the text after
/// a colon as the name of a stream.
fn alternative_reading(path: &AbsPath) -> Option<AbsPath> {
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
