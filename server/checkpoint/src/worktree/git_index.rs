//! Files that git tracks although ignore rules match them. They are captured.
//!
//! Every repository that overlaps the work tree has an index that lists its tracked files. Only the
//! ignored ones are kept here. They are computed again when an index or the rules change. A missing
//! index tracks nothing. While an index cannot be read, the paths that it tracked before are kept, and
//! a skipped path says so.

mod repository;

use std::{collections::HashMap, sync::Arc};

use rayon::prelude::*;
use sightline_workspace::{
    access::gitignore::bytes_of,
    cancel::Cancel,
    clock::now_nanos,
    git::index::GitIndex,
    gitignore_stack,
    path::{RelPath, os_name},
    thread_pool,
};
use twox_hash::XxHash3_128;

use super::{
    capture_filter::{CaptureFilter, Decision, with_own},
    snapshot::{ExclusionReason, Folder, FolderRules, Stamp, below},
};
use crate::{error::Error, metadata::Skipped};
use repository::{ListedPaths, Repository, has_ignored, is_below};

/// Paths per parallel work item.
const CHUNK: usize = 1024;

/// Sorted paths that are captured despite ignore rules, relative to the root, with `/`. A path that
/// ends with `/` is a whole folder: a submodule, in which only its own rules apply, or a folder
/// skipped for another reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackedPaths(Vec<Box<[u8]>>);

impl TrackedPaths {
    pub(crate) fn new(mut paths: Vec<Box<[u8]>>) -> Self {
        paths.sort_unstable();
        paths.dedup();
        Self(paths)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn paths(&self) -> &[Box<[u8]>] {
        &self.0
    }

    /// Returns whether a file is tracked, or a folder contains a tracked path.
    pub(crate) fn contains(&self, path: &[u8], is_dir: bool) -> bool {
        if is_dir {
            self.begins(path).is_some()
        } else {
            self.0.binary_search_by(|other| (**other).cmp(path)).is_ok()
        }
    }

    /// Like [`Self::contains`], for an entry of a folder.
    pub(crate) fn contains_in(&self, folder: &[u8], name: &[u8], is_dir: bool) -> bool {
        if self.is_empty() || folder.is_empty() {
            return self.contains(name, is_dir);
        }
        self.contains(&[folder, b"/", name].concat(), is_dir)
    }

    /// Returns whether the folder is listed as a whole.
    pub(crate) fn is_whole_folder(&self, path: &[u8]) -> bool {
        self.begins(path)
            .is_some_and(|first| first.len() == path.len() + 1)
    }

    /// Returns the first path that is in this folder, or is the folder.
    fn begins(&self, folder: &[u8]) -> Option<&[u8]> {
        if self.is_empty() {
            return None;
        }
        let start = [folder, b"/"].concat();
        let at = self.0.partition_point(|other| **other < *start);
        let first = self.0.get(at)?;
        first.starts_with(&start).then_some(&**first)
    }
}

/// The tracked paths, and a fingerprint of their sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitIndexState {
    /// The paths are valid as long as the fingerprint is equal. `None` if a source is too recent to
    /// trust its stamp.
    pub(crate) fingerprint: Option<u128>,
    pub(crate) tracked: TrackedPaths,
    /// Repositories whose tracked files are not all known, and that have ignored files. Not saved:
    /// they are read again every time.
    pub(crate) unreadable: Vec<UnreadableIndex>,
}

/// A repository whose tracked files are not all known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadableIndex {
    /// Its top folder, relative to the root; empty if that is above the root.
    top: Vec<u8>,
    why: String,
}

impl UnreadableIndex {
    /// Returns the entry for the list of skipped paths.
    pub(crate) fn skipped(&self) -> Skipped {
        let (path, encoded) = below(&self.top, b".git").to_wire();
        let reason = format!(
            "the git index cannot be read ({}); tracked files that ignore rules match may be missing",
            self.why
        );
        Skipped {
            path,
            encoded,
            reason,
        }
    }
}

impl GitIndexState {
    /// Finds the tracked paths for a scanned tree. Returns `last` if the sources are unchanged.
    pub(crate) fn load(
        filter: &CaptureFilter<'_>,
        tree: &Folder,
        last: &Arc<Self>,
        cancel: &Cancel,
    ) -> Result<Arc<Self>, Error> {
        let started_at = now_nanos();
        let mut hash = Hash::new();
        hash.add(&filter.fingerprint().to_le_bytes());
        let base = filter.place(b"");
        let above = base.ancestors().find_map(|top| {
            let index = GitIndex::of(top)?;
            let below = bytes_of(base.strip_prefix(top).ok()?).into_owned();
            Some(Repository::new(Vec::new(), below, index))
        });
        let mut repositories = Vec::from_iter(above);
        tree.visit(Folder::has_rules, |path, folder| {
            let Some(rules) = folder.rules.as_deref() else {
                return;
            };
            hash.add(path);
            for text in [&rules.excludes, &rules.gitignore] {
                hash.add(&[u8::from(text.is_some())]);
                hash.add(text.as_deref().unwrap_or_default());
            }
            if !path.is_empty()
                && rules.git
                && let Some(index) = GitIndex::of(&filter.place(path))
            {
                repositories.push(Repository::new(path.to_vec(), Vec::new(), index));
            }
        });
        // An outer repository comes before the ones inside it.
        repositories.sort_by(|left, right| left.top.cmp(&right.top));
        let mut is_settled = true;
        for Repository {
            top, index, stamp, ..
        } in &repositories
        {
            let Stamp {
                mtime,
                ctime,
                size,
                inode,
                ..
            } = *stamp;
            is_settled &= stamp.is_settled(started_at);
            hash.add(top);
            let path = index.as_ref().map(|index| index.path.as_os_str());
            hash.add(path.unwrap_or_default().as_encoded_bytes());
            for number in [mtime, ctime, size.cast_signed(), inode.cast_signed()] {
                hash.add(&number.to_le_bytes());
            }
        }
        let fingerprint = is_settled.then(|| hash.0.finish_128());
        if fingerprint.is_some() && fingerprint == last.fingerprint {
            return Ok(last.clone());
        }
        let found = find_tracked(filter, tree, &repositories, &last.tracked, cancel)?;
        let FoundPaths {
            tracked,
            mut unreadable,
            is_sparse,
        } = found;
        let is_final = unreadable.is_empty() && !is_sparse;
        unreadable.retain(|index| has_ignored(tree, &index.top));
        Ok(Arc::new(Self {
            fingerprint: fingerprint.filter(|_| is_final),
            tracked,
            unreadable,
        }))
    }

    /// Returns why a path that ignore rules match is not captured.
    pub(crate) fn why_ignored(&self, path: &RelPath) -> &'static str {
        let path = bytes_of(path.as_path());
        let is_in = |index: &UnreadableIndex| is_below(&path, &index.top);
        if self.unreadable.iter().any(is_in) {
            "it is ignored, and whether git tracks it is unknown"
        } else {
            "it is ignored"
        }
    }

    /// Copies the state so that it is computed again next time.
    pub(crate) fn unsettled(&self) -> Self {
        Self {
            fingerprint: None,
            ..self.clone()
        }
    }
}

struct Hash(XxHash3_128);

impl Hash {
    fn new() -> Self {
        Self(XxHash3_128::new())
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.write(&(bytes.len() as u64).to_le_bytes());
        self.0.write(bytes);
    }
}

/// The ignored ones of all tracked paths.
struct FoundPaths {
    tracked: TrackedPaths,
    unreadable: Vec<UnreadableIndex>,
    /// Whether the paths also depend on which folders exist.
    is_sparse: bool,
}

/// Decision about a folder.
struct FolderState {
    rules: gitignore_stack::IgnoreRules,
    inclusion: Inclusion,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inclusion {
    /// The ignore rules decide about its entries.
    ByRules,
    /// It is ignored, with everything in it.
    Ignored,
    /// It is skipped even if tracked, and reported.
    Skipped,
    /// Tracking has no effect in it.
    Excluded,
}

/// Folders decided so far.
struct FolderStates<'a> {
    filter: &'a CaptureFilter<'a>,
    tree: &'a Folder,
    known: HashMap<Vec<u8>, FolderState>,
}

fn find_tracked(
    filter: &CaptureFilter<'_>,
    tree: &Folder,
    repositories: &[Repository],
    before: &TrackedPaths,
    cancel: &Cancel,
) -> Result<FoundPaths, Error> {
    let mut folders = FolderStates {
        filter,
        tree,
        known: HashMap::new(),
    };
    let root = FolderState {
        rules: own(filter.above(), filter, tree.rules.as_deref(), b""),
        inclusion: Inclusion::ByRules,
    };
    folders.known.insert(Vec::new(), root);
    let mut tracked = Vec::new();
    let mut unreadable = Vec::new();
    let mut is_sparse = false;
    for repository in repositories {
        cancel.check()?;
        let ListedPaths {
            paths: found,
            problem,
            is_sparse: has_sparse,
        } = repository.tracked_paths(tree);
        is_sparse |= has_sparse;
        let mut files = Vec::new();
        let mut submodules = Vec::new();
        for (path, is_submodule) in found {
            if is_submodule {
                submodules.push(path)
            } else {
                files.push(path)
            }
        }
        if let Some(why) = problem {
            let is_innermost = |path: &[u8]| {
                let inner = repositories
                    .iter()
                    .filter(|other| is_below(path, &other.top));
                inner
                    .max_by_key(|other| other.top.len())
                    .is_some_and(|innermost| innermost.top == repository.top)
            };
            for path in before.paths().iter().filter(|path| is_innermost(path)) {
                match path.strip_suffix(b"/") {
                    Some(folder) => submodules.push(folder.to_vec()),
                    None => files.push(path.to_vec()),
                }
            }
            unreadable.push(UnreadableIndex {
                top: repository.top.clone(),
                why,
            });
        }
        for path in submodules {
            if folders.submodule(&path) {
                tracked.push([&*path, b"/"].concat().into());
            }
        }
        for path in &files {
            cancel.check()?;
            folders.enter(split(path).0);
        }
        thread_pool::start();
        let found = files.par_chunks(CHUNK).map(|files| {
            cancel.check()?;
            Ok(folders.ignored(files))
        });
        let found: Vec<Vec<Box<[u8]>>> = found.collect::<Result<_, Error>>()?;
        tracked.extend(found.into_iter().flatten());
    }
    let left = folders.known.into_iter();
    let left = left.filter(|(_, place)| place.inclusion == Inclusion::Skipped);
    tracked.extend(left.map(|(path, _)| [&*path, b"/"].concat().into()));
    Ok(FoundPaths {
        tracked: TrackedPaths::new(tracked),
        unreadable,
        is_sparse,
    })
}

impl FolderStates<'_> {
    /// Decides about the folders down to `folder`.
    fn enter(&mut self, folder: &[u8]) {
        if self.known.contains_key(folder) {
            return;
        }
        let mut end = 0;
        while end < folder.len() {
            let start = if end == 0 { 0 } else { end + 1 };
            let length = folder[start..].iter().position(|byte| *byte == b'/');
            end = length.map_or(folder.len(), |length| start + length);
            if !self.known.contains_key(&folder[..end]) {
                let place = self.decide(&folder[..end], false);
                self.known.insert(folder[..end].to_vec(), place);
            }
        }
    }

    /// Decides about a folder whose parent is known.
    fn decide(&self, path: &[u8], is_tracked: bool) -> FolderState {
        let (folder, name) = split(path);
        let without_rules = |inclusion| FolderState {
            rules: gitignore_stack::IgnoreRules::default(),
            inclusion,
        };
        let Some(above) = self.known.get(folder) else {
            return without_rules(Inclusion::Excluded);
        };
        let verdict = self.filter.decide(folder, name, (true, false), || false);
        if matches!(above.inclusion, Inclusion::Excluded | Inclusion::Skipped)
            || matches!(verdict, Decision::Omit | Decision::Deny)
            || verdict == Decision::Exclude(ExclusionReason::Ignored)
        {
            return without_rules(Inclusion::Excluded);
        }
        let scope = || above.rules.within(&self.filter.place(folder));
        let is_ignored =
            above.inclusion == Inclusion::Ignored || scope().ignores(os_name(name), true);
        if verdict != Decision::Capture {
            let inclusion = if is_ignored {
                Inclusion::Skipped
            } else {
                Inclusion::Excluded
            };
            return without_rules(inclusion);
        }
        let inclusion = if is_ignored && !is_tracked {
            Inclusion::Ignored
        } else {
            Inclusion::ByRules
        };
        let rules = find(self.tree, path).and_then(|folder| folder.rules.as_deref());
        FolderState {
            rules: own(above.rules.clone(), self.filter, rules, path),
            inclusion,
        }
    }

    /// Records a submodule. Returns whether it is ignored.
    fn submodule(&mut self, path: &[u8]) -> bool {
        self.enter(path);
        let is_ignored = self
            .known
            .get(path)
            .is_some_and(|place| place.inclusion == Inclusion::Ignored);
        if is_ignored {
            let place = self.decide(path, true);
            self.known.insert(path.to_vec(), place);
        }
        is_ignored
    }

    /// Returns the files that are ignored. Their folders must be known.
    fn ignored(&self, files: &[Vec<u8>]) -> Vec<Box<[u8]>> {
        let mut ignored = Vec::new();
        let mut last: Option<(&[u8], Inclusion, gitignore_stack::DirMatcher<'_>)> = None;
        for path in files {
            let (folder, name) = split(path);
            if last.as_ref().is_none_or(|(last, ..)| *last != folder) {
                last = self.known.get(folder).map(|place| {
                    let scope = place.rules.within(&self.filter.place(folder));
                    (folder, place.inclusion, scope)
                });
            }
            let is_ignored = match &mut last {
                Some((_, Inclusion::ByRules, scope)) => scope.ignores(os_name(name), false),
                Some((_, inclusion, _)) => *inclusion == Inclusion::Ignored,
                None => false,
            };
            // The names of denied files must not be written to the stat cache.
            if is_ignored && !self.filter.denies(folder, name, false) {
                ignored.push(path.as_slice().into());
            }
        }
        ignored
    }
}

fn own(
    above: gitignore_stack::IgnoreRules,
    filter: &CaptureFilter<'_>,
    rules: Option<&FolderRules>,
    folder: &[u8],
) -> gitignore_stack::IgnoreRules {
    match rules {
        Some(rules) => with_own(above, &filter.place(folder), rules),
        None => above,
    }
}

/// Splits a path into folder and name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

fn find<'a>(tree: &'a Folder, path: &[u8]) -> Option<&'a Folder> {
    if path.is_empty() {
        return Some(tree);
    }
    let mut names = path.split(|byte| *byte == b'/');
    names.try_fold(tree, |folder, name| {
        folder.get(name)?.folder().map(|folder| &**folder)
    })
}
