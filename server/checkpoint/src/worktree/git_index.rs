//! Files that git tracks although ignore rules match them. They are captured.
//!
//! Every repository that overlaps the work tree has an index that lists its tracked files. An index
//! is only read when ignore rules match a name in its repository, or when it changed since the last
//! scan. A missing index tracks nothing in a repository without objects, and cannot be read in others.
//! While an index cannot be read, the paths that it tracked before are kept, and a skipped path says so.

mod repository;

use std::{collections::BTreeMap, iter, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sightline_access::gitignore::bytes_of;
use sightline_base::{cancel::Cancel, path::RelPath};
use sightline_context::git::index::GitIndex;
use twox_hash::XxHash3_128;

use super::{
    capture_filter::CaptureFilter,
    snapshot::{ExclusionReason, Folder, Stamp, below},
};
use crate::{error::Error, metadata::Skipped};
pub(crate) use repository::Repository;

/// Sorted paths relative to the root, with `/`. A submodule ends with `/`; only its own rules apply
/// in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrackedPaths(Vec<Box<[u8]>>);

impl TrackedPaths {
    pub(crate) fn new(mut paths: Vec<Box<[u8]>>) -> Self {
        paths.sort_unstable();
        paths.dedup();
        Self(paths)
    }

    pub(crate) fn paths(&self) -> &[Box<[u8]>] {
        &self.0
    }

    /// Returns the file, or the paths in the folder.
    fn at(&self, path: &[u8], is_dir: bool) -> &[Box<[u8]>] {
        if !is_dir {
            let found = self.0.binary_search_by(|other| (**other).cmp(path));
            return found.map_or(&[], |at| &self.0[at..=at]);
        }
        let start = [path, b"/"].concat();
        let rest = &self.0[self.0.partition_point(|other| **other < *start)..];
        &rest[..rest.partition_point(|other| other.starts_with(&start))]
    }
}

/// What a scan found out about tracked files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GitIndexState {
    /// Fingerprint of the indexes. `None` if one of them is too recent to trust its stamp, or cannot
    /// be read.
    pub(crate) fingerprint: Option<u128>,
    /// The tracked paths because of which ignored entries are captured.
    pub(crate) tracked: TrackedPaths,
    /// Repositories that have ignored files, and whose tracked files are not all known. Not saved:
    /// they are read again every time.
    #[serde(skip)]
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
}

/// The repositories of one scan. The walk adds those in folders as it enters them.
pub(crate) struct Repositories<'a> {
    filter: &'a CaptureFilter<'a>,
    last: Arc<GitIndexState>,
    /// By their top folder, which is empty for the repository that contains the root.
    found: Mutex<BTreeMap<Vec<u8>, Arc<Repository>>>,
    tracked: Mutex<Vec<Box<[u8]>>>,
    unreadable: Mutex<BTreeMap<Vec<u8>, String>>,
}

impl<'a> Repositories<'a> {
    pub(crate) fn new(filter: &'a CaptureFilter<'a>, last: Option<&Arc<GitIndexState>>) -> Self {
        let base = filter.place(b"");
        let above = base.ancestors().find_map(|top| {
            let index = GitIndex::of(top)?;
            let below = bytes_of(base.strip_prefix(top).ok()?).into_owned();
            Some(Arc::new(Repository::new(Vec::new(), below, index)))
        });
        Self {
            filter,
            last: last.cloned().unwrap_or_default(),
            found: Mutex::new(above.map(|above| (Vec::new(), above)).into_iter().collect()),
            tracked: Mutex::default(),
            unreadable: Mutex::default(),
        }
    }

    /// Adds the repository of a folder with `.git`.
    pub(crate) fn enter(&self, folder: &[u8]) {
        let mut found = self.found.lock();
        if !found.contains_key(folder)
            && let Some(index) = GitIndex::of(&self.filter.place(folder))
        {
            let repository = Repository::new(folder.to_vec(), Vec::new(), index);
            found.insert(folder.to_vec(), Arc::new(repository));
        }
    }

    /// Returns the repositories that contain a folder, the innermost first.
    pub(crate) fn around(&self, folder: &[u8]) -> Vec<Arc<Repository>> {
        let found = self.found.lock();
        let ends = memchr::memrchr_iter(b'/', folder);
        let all = iter::once(folder.len()).chain(ends);
        all.chain((!folder.is_empty()).then_some(0))
            .map(|end| &folder[..end])
            .filter_map(|folder| found.get(folder).cloned())
            .collect()
    }

    /// Returns whether one of the `repositories` tracks the file, or a path in the folder that access
    /// rules do not deny. Remembers that path, which captures an ignored entry.
    pub(crate) fn track(
        &self,
        repositories: &[Arc<Repository>],
        path: &[u8],
        is_dir: bool,
    ) -> Option<Tracked> {
        let found = self.find(repositories, path, is_dir)?;
        let is_submodule = found.len() == path.len() + 1;
        self.tracked.lock().push(found);
        Some(Tracked { is_submodule })
    }

    fn find(
        &self,
        repositories: &[Arc<Repository>],
        path: &[u8],
        is_dir: bool,
    ) -> Option<Box<[u8]>> {
        // The names of denied files must not be written to the stat cache.
        let is_allowed = |tracked: &[u8]| !self.denies_below(path.len() + 1, tracked);
        for (at, repository) in repositories.iter().enumerate() {
            match repository.find(path, is_dir, &is_allowed) {
                Ok(None) => {}
                Ok(found) => return found,
                Err(why) => {
                    let mut unreadable = self.unreadable.lock();
                    unreadable.insert(repository.top.clone(), why);
                    let known = self.last.tracked.at(path, is_dir).first();
                    if at == 0 && known.is_some() {
                        return known.cloned();
                    }
                }
            }
        }
        None
    }

    /// Returns whether access rules deny a tracked path, or a folder above it. Begins with the name
    /// at `start`.
    fn denies_below(&self, start: usize, path: &[u8]) -> bool {
        let slashes = (start..path.len()).filter(|at| path[*at] == b'/');
        let whole = (start < path.len() && !path.ends_with(b"/")).then_some(path.len());
        slashes.chain(whole).any(|end| {
            let slash = memchr::memrchr(b'/', &path[..end]);
            let (folder, name) = match slash {
                Some(slash) => (&path[..slash], &path[slash + 1..end]),
                None => (&b""[..], &path[..end]),
            };
            self.filter.denies(folder, name, end < path.len())
        })
    }

    /// Returns whether the indexes still capture and ignore the same entries of the last scan.
    pub(crate) fn hold(&self, tree: &Folder, cancel: &Cancel) -> Result<bool, Error> {
        let fingerprint = fingerprint(&self.of(tree));
        if fingerprint.is_some() && fingerprint == self.last.fingerprint {
            return Ok(true);
        }
        let finds = |path: &[u8], is_dir| self.find(&self.around(path), path, is_dir).is_some();
        for path in self.last.tracked.paths() {
            cancel.check()?;
            let folder = path.strip_suffix(b"/");
            if !finds(folder.unwrap_or(path), folder.is_some()) {
                return Ok(false);
            }
        }
        let mut hold = true;
        tree.visit(Folder::has_exclusions, |path, folder| {
            for name in ignored(folder) {
                let path = joined(path, name);
                hold =
                    hold && !cancel.is_cancelled() && !finds(&path, false) && !finds(&path, true);
            }
        });
        cancel.check()?;
        Ok(hold)
    }

    /// Returns what the scan found out. `keeps_last` adds the tracked paths of the last scan.
    pub(crate) fn state(&self, tree: &Folder, keeps_last: bool) -> Arc<GitIndexState> {
        let mut tracked = std::mem::take(&mut *self.tracked.lock());
        if keeps_last {
            tracked.extend_from_slice(self.last.tracked.paths());
        }
        let mut unreadable = std::mem::take(&mut *self.unreadable.lock());
        let is_readable = unreadable.is_empty();
        if !is_readable {
            // Nothing is missing if nothing is ignored.
            let mut ignoring = Vec::new();
            tree.visit(Folder::has_exclusions, |path, folder| {
                if ignored(folder).next().is_some() {
                    ignoring.push(path.to_vec());
                }
            });
            unreadable.retain(|top, _| ignoring.iter().any(|path| is_below(path, top)));
        }
        let now = GitIndexState {
            fingerprint: fingerprint(&self.of(tree)).filter(|_| is_readable),
            tracked: TrackedPaths::new(tracked),
            unreadable: unreadable
                .into_iter()
                .map(|(top, why)| UnreadableIndex { top, why })
                .collect(),
        };
        if now == *self.last {
            self.last.clone()
        } else {
            Arc::new(now)
        }
    }

    /// Returns the repositories of a tree, and the one that contains the root.
    fn of(&self, tree: &Folder) -> Vec<Arc<Repository>> {
        let mut tops = vec![Vec::new()];
        tree.visit(Folder::has_rules, |path, folder| {
            if folder.rules.as_ref().is_some_and(|rules| rules.git) && !path.is_empty() {
                self.enter(path);
                tops.push(path.to_vec());
            }
        });
        tops.sort_unstable();
        let found = self.found.lock();
        tops.iter()
            .filter_map(|top| found.get(top).cloned())
            .collect()
    }
}

/// Returns the ignored names in a folder.
fn ignored(folder: &Folder) -> impl Iterator<Item = &[u8]> {
    folder
        .excluded
        .iter()
        .filter(|entry| entry.reason == ExclusionReason::Ignored)
        .map(|entry| &*entry.name)
}

pub(crate) fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let separator: &[u8] = if folder.is_empty() { b"" } else { b"/" };
    [folder, separator, name].concat()
}

/// A tracked entry that ignore rules match.
pub(crate) struct Tracked {
    pub(crate) is_submodule: bool,
}

fn fingerprint(repositories: &[Arc<Repository>]) -> Option<u128> {
    let mut hash = XxHash3_128::new();
    let mut add = |bytes: &[u8]| {
        hash.write(&(bytes.len() as u64).to_le_bytes());
        hash.write(bytes);
    };
    for repository in repositories {
        let Stamp {
            mtime,
            ctime,
            size,
            inode,
            ..
        } = repository.stamp;
        add(&repository.top);
        let path = repository
            .index
            .as_ref()
            .map(|index| index.path.as_os_str());
        add(path.unwrap_or_default().as_encoded_bytes());
        for number in [mtime, ctime, size.cast_signed(), inode.cast_signed()] {
            add(&number.to_le_bytes());
        }
    }
    let is_settled = repositories.iter().all(|repository| repository.settled);
    is_settled.then(|| hash.finish_128())
}

/// Returns whether the path is the folder `top` or in it. Everything is in the empty one.
fn is_below(path: &[u8], top: &[u8]) -> bool {
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| top.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
}
