//! Scans the work tree, completely or only changed paths.

use std::sync::Arc;

use sightline_workspace::{
    access::RULE_FILE, clock::now_nanos, fs::dir::Dir, gitignore_stack, path::RelPath,
};

use super::{
    capture_filter::CaptureFilter,
    exclusions::{PathSalt, SavedExclusions},
    git_index::{GitIndexState, TrackedPaths, UnreadableIndex},
    permissions::RestrictedPath,
    saved_paths,
    snapshot::Folder,
    walk::{
        dir_task::PathTree,
        state::{BlobSink, ContentMode, Walk, WalkOptions, WalkOutcome},
    },
};
use crate::{error::Error, job::Job, metadata::Skipped};

/// Maximum number of walks until the tracked paths are stable. Each walk can discover a repository
/// in what the previous one found.
const MAX_ROUNDS: usize = 4;

/// Result of a scan.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// The captured entries.
    pub(crate) tree: Arc<Folder>,
    /// Skipped paths with reasons, sorted.
    pub(crate) skipped: Arc<Vec<Skipped>>,
    /// Number of captured files, and their total size in bytes.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Ignored and denied paths. `None` if there are too many to save.
    pub(crate) exclusions: Arc<Option<SavedExclusions>>,
    /// Salt of the hashes of denied paths in the tree.
    pub(crate) salt: PathSalt,
    /// Files with restricted read permissions.
    pub(crate) restricted: Arc<Vec<RestrictedPath>>,
    /// Fingerprint of the rules, without the ignore files in folders.
    pub(crate) filter_fingerprint: u128,
    /// Tracked paths, which ignore rules do not exclude.
    pub(crate) git_index: Arc<GitIndexState>,
}

impl Scan {
    /// Derives a scan from its tree.
    pub(crate) fn of(
        tree: Arc<Folder>,
        git_index: Arc<GitIndexState>,
        filter_fingerprint: u128,
        salt: PathSalt,
    ) -> Self {
        let mut skipped = saved_paths::skipped(&tree);
        if !git_index.unreadable.is_empty() {
            skipped.extend(git_index.unreadable.iter().map(UnreadableIndex::skipped));
            skipped.sort_unstable();
        }
        Self {
            skipped: Arc::new(skipped),
            files: tree.files,
            bytes: tree.bytes,
            exclusions: Arc::new(saved_paths::exclusions(&tree, salt)),
            restricted: Arc::new(saved_paths::restricted(&tree)),
            filter_fingerprint,
            salt,
            git_index,
            tree,
        }
    }

    /// Returns the scan that follows this one: the same if nothing changed.
    fn next(
        &self,
        tree: Arc<Folder>,
        git_index: Arc<GitIndexState>,
        filter_fingerprint: u128,
    ) -> Self {
        let is_judged = self.filter_fingerprint == filter_fingerprint
            && self.git_index.tracked == git_index.tracked
            && self.git_index.unreadable == git_index.unreadable;
        if is_judged && Arc::ptr_eq(&self.tree, &tree) {
            Self {
                git_index,
                ..self.clone()
            }
        } else {
            Self::of(tree, git_index, filter_fingerprint, self.salt)
        }
    }
}

/// Options of a scan.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScanOptions<'a> {
    /// Last scan; unchanged files are not read again.
    pub(crate) last: Option<&'a Scan>,
    /// Receives the content of changed files.
    pub(crate) sink: Option<&'a dyn BlobSink>,
    /// Maximum number of files and bytes. Above them, the scan fails with `tooLarge` before any
    /// file is read.
    pub(crate) limits: Option<(u64, u64)>,
}

/// Scans the whole work tree.
pub(crate) fn scan(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    look: ScanOptions<'_>,
) -> Result<Scan, Error> {
    job.cancel.check()?;
    let filter_fingerprint = filter.fingerprint();
    let started_at = now_nanos();
    let ScanOptions { last, sink, limits } = look;
    let salt = last.map_or_else(PathSalt::random, |last| last.salt);
    let mut known = last.map(|last| last.tree.clone());
    let mut git_index = match last {
        Some(last) => GitIndexState::load(filter, &last.tree, &last.git_index, job.cancel)?,
        None => Arc::default(),
    };
    if known.is_none() || limits.is_some() {
        // A first walk without reading gives the total for the progress, and checks the limits.
        let (max_files, max_bytes) = limits.unwrap_or((u64::MAX, u64::MAX));
        let content_mode = ContentMode::Measure {
            max_files,
            max_bytes,
        };
        let found = walk_until_stable(job, filter, git_index, |tracked, before| {
            let options = WalkOptions {
                job,
                filter,
                tracked,
                salt,
                content_mode,
                started_at,
                total: None,
            };
            Walk::new(options).run(open(filter)?, before, None, before.is_some())
        })?;
        let tree;
        (tree, git_index) = found.ok_or_else(|| too_large(job))?;
        known = known.or(Some(tree));
    }
    let total = known.as_ref().map(|known| known.files);
    let reevaluate = last.is_some_and(|last| {
        last.filter_fingerprint != filter_fingerprint || last.git_index.tracked != git_index.tracked
    });
    let found = walk_until_stable(job, filter, git_index, |tracked, before| {
        let options = WalkOptions {
            job,
            filter,
            tracked,
            salt,
            content_mode: ContentMode::Read(sink),
            started_at,
            total,
        };
        let reevaluate = reevaluate || before.is_some();
        let last = before.or(known.as_ref());
        Walk::new(options).run(open(filter)?, last, None, reevaluate)
    })?;
    let (tree, git_index) = found.ok_or_else(|| too_large(job))?;
    Ok(match last {
        Some(last) => last.next(tree, git_index, filter_fingerprint),
        None => Scan::of(tree, git_index, filter_fingerprint, salt),
    })
}

/// A tree, and the tracked paths it was built with.
type WalkResult = (Arc<Folder>, Arc<GitIndexState>);

/// Repeats the walk until it finds the same tracked paths it was run with, because the walk itself
/// finds the rules. Returns `None` if the walk finds no tree.
fn walk_until_stable(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    git_index: Arc<GitIndexState>,
    mut walk: impl FnMut(&TrackedPaths, Option<&Arc<Folder>>) -> Result<WalkOutcome, Error>,
) -> Result<Option<WalkResult>, Error> {
    let mut git_index = git_index;
    let mut before = None;
    for _ in 0..MAX_ROUNDS {
        let WalkOutcome::Tree(tree) = walk(&git_index.tracked, before.as_ref())? else {
            return Ok(None);
        };
        let now = GitIndexState::load(filter, &tree, &git_index, job.cancel)?;
        if now.tracked == git_index.tracked {
            return Ok(Some((tree, now)));
        }
        before = Some(tree);
        git_index = now;
    }
    let WalkOutcome::Tree(tree) = walk(&git_index.tracked, before.as_ref())? else {
        return Ok(None);
    };
    Ok(Some((tree, Arc::new(git_index.unsettled()))))
}

/// Scans only the paths in `changed`, without trusting their stamps. Returns `None` if that is not
/// enough because rules for other paths changed.
pub(crate) fn update(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    last: &Scan,
    changed: &[RelPath],
    sink: Option<&dyn BlobSink>,
) -> Result<Option<Scan>, Error> {
    job.cancel.check()?;
    let filter_fingerprint = filter.fingerprint();
    if filter_fingerprint != last.filter_fingerprint
        || changed.iter().any(affects_rules)
        || !are_folder_rules_unchanged(filter, last)
    {
        return Ok(None);
    }
    let paths = PathTree::new(changed.iter().filter(|path| !is_in_repository(path)));
    if paths.is_everything() {
        return Ok(None);
    }
    let git_index = GitIndexState::load(filter, &last.tree, &last.git_index, job.cancel)?;
    let tracked = &last.git_index.tracked;
    if git_index.tracked != *tracked {
        return Ok(None);
    }
    let walk = Walk::new(WalkOptions {
        job,
        filter,
        tracked,
        salt: last.salt,
        content_mode: ContentMode::Read(sink),
        started_at: now_nanos(),
        total: Some(changed.len() as u64),
    });
    let last_tree = Some(&last.tree);
    let WalkOutcome::Tree(tree) = walk.run(open(filter)?, last_tree, Some(&paths), false)? else {
        return Ok(None);
    };
    // New folders may contain rules or a repository.
    let git_index = GitIndexState::load(filter, &tree, &git_index, job.cancel)?;
    let is_judged = git_index.tracked == *tracked;
    Ok(is_judged.then(|| last.next(tree, git_index, filter_fingerprint)))
}

fn open(filter: &CaptureFilter<'_>) -> Result<Dir, Error> {
    let root = filter.place(b"");
    Dir::open_root(&root).map_err(|source| Error::Scan { root, source })
}

fn too_large(job: &Job<'_>) -> Error {
    Error::TooLarge {
        max_files: job.settings.max_files,
        max_total_size: job.settings.max_total_size,
    }
}

/// Returns whether the path is inside `.git`, which is never captured.
fn is_in_repository(path: &RelPath) -> bool {
    path.components().any(|name| name == ".git")
}

/// Returns whether a change of this path affects other paths.
fn affects_rules(path: &RelPath) -> bool {
    let name = path.name().unwrap_or_default();
    let is_rules = name == gitignore_stack::FILE_NAME || name == RULE_FILE || name == ".git";
    let in_repository = is_in_repository(path) && (name == "exclude" || name == "HEAD");
    is_rules || in_repository
}

/// Returns whether the rules of folders are unchanged that changed paths do not show: `info/exclude` of the repositories,
/// which the watcher does not cover, and access rules, which can include files and apply for a while after their removal.
fn are_folder_rules_unchanged(filter: &CaptureFilter<'_>, last: &Scan) -> bool {
    let mut hold = true;
    last.tree.visit(Folder::has_rules, |path, folder| {
        let Some(rules) = folder.rules.as_deref() else {
            return;
        };
        if rules.git {
            let now = gitignore_stack::excludes_of(&filter.place(path));
            hold &= now.as_deref() == rules.excludes.as_deref();
        }
        if rules.access.is_some() {
            hold &= filter.access_rules_of(path) == Ok(rules.access);
        }
    });
    hold
}
