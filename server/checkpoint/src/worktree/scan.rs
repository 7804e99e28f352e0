//! Scans the work tree, completely or only changed paths.

use std::sync::Arc;

use sightline_access::{RULE_FILE, gitignore_stack};
use sightline_base::{clock::now_nanos, fs::dir::Dir, path::RelPath};
use sightline_protocol::error::ErrorKind;

use super::{
    capture_filter::CaptureFilter,
    exclusions::{PathSalt, SavedExclusions},
    git_index::{GitIndexState, Repositories, UnreadableIndex},
    linked_repositories::{RepositoryPath, skipped_repositories},
    permissions::RestrictedPath,
    saved_paths,
    snapshot::Folder,
    walk::{
        dir_task::PathTree,
        state::{BlobSink, ContentMode, Walk, WalkOptions, WalkOutcome},
    },
};
use crate::{error::Error, job::Job, metadata::Skipped};

/// Maximum scans until all links to the data of version control systems are known.
const MAX_SCANS: usize = 3;

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
    /// Tracked paths that ignore rules do not exclude.
    pub(crate) git_index: Arc<GitIndexState>,
    /// Paths with the data of version control systems.
    pub(crate) repositories: Arc<Vec<RepositoryPath>>,
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
            repositories: Arc::new(skipped_repositories(&tree)),
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
    /// Paths that changed since. If that is enough, only they are scanned, without trusting their stamps.
    pub(crate) changed: Option<&'a [RelPath]>,
    /// Receives the content of changed files.
    pub(crate) sink: Option<&'a dyn BlobSink>,
    /// Maximum number of files and bytes. Above them, the scan fails with `tooLarge` before any
    /// file is read.
    pub(crate) limits: Option<(u64, u64)>,
}

/// Scans the work tree.
pub(crate) fn scan(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    look: ScanOptions<'_>,
) -> Result<Scan, Error> {
    if let (Some(last), Some(changed), None) = (look.last, look.changed, look.limits)
        && let Some(scan) = update(job, filter, last, changed, look.sink)?
    {
        return Ok(scan);
    }
    let mut known = look.last.map(|last| last.repositories.clone());
    let mut scans = 1;
    loop {
        let filter = filter.with_linked(known.as_deref().map_or(&[], Vec::as_slice));
        let is_last = scans == MAX_SCANS;
        match scan_once(job, &filter, look, is_last)? {
            Ok(scan) if is_last || filter.excludes_linked(&scan.repositories) => return Ok(scan),
            // A link to data was found, or is gone.
            Ok(scan) => known = Some(scan.repositories),
            Err(found) => known = Some(found),
        }
        scans += 1;
    }
}

/// Returns the paths with the data of version control systems instead if links among them lead to other folders than those
/// that the filter excludes, and no file was read yet. `is_last`: never.
fn scan_once(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    look: ScanOptions<'_>,
    is_last: bool,
) -> Result<Result<Scan, Arc<Vec<RepositoryPath>>>, Error> {
    job.cancel.check()?;
    let filter_fingerprint = filter.fingerprint();
    let started_at = now_nanos();
    let ScanOptions {
        last, sink, limits, ..
    } = look;
    let salt = last.map_or_else(PathSalt::random, |last| last.salt);
    let mut known = last.map(|last| last.tree.clone());
    let repositories = Repositories::new(filter, last.map(|last| &last.git_index));
    let walk = |content_mode, before: Option<&Arc<Folder>>, reevaluate| {
        let options = WalkOptions {
            job,
            filter,
            repositories: &repositories,
            salt,
            content_mode,
            started_at,
            total: before.map(|before| before.files),
        };
        match Walk::new(options).run(open(filter)?, before, None, reevaluate)? {
            WalkOutcome::Tree(tree) => Ok(tree),
            WalkOutcome::TooLarge | WalkOutcome::RulesMoved => Err(too_large(job)),
        }
    };
    if known.is_none() || limits.is_some() {
        // A first walk without reading gives the total for the progress, and checks the limits.
        let (max_files, max_bytes) = limits.unwrap_or((u64::MAX, u64::MAX));
        let content_mode = ContentMode::Measure {
            max_files,
            max_bytes,
        };
        let tree = walk(content_mode, None, false)?;
        let found = skipped_repositories(&tree);
        if !is_last && !filter.excludes_linked(&found) {
            return Ok(Err(Arc::new(found)));
        }
        known = known.or(Some(tree));
    }
    let is_judged = match last {
        Some(last) => {
            last.filter_fingerprint == filter_fingerprint
                && repositories.hold(&last.tree, job.cancel)?
        }
        None => true,
    };
    let tree = walk(ContentMode::Read(sink), known.as_ref(), !is_judged)?;
    let git_index = repositories.state(&tree, is_judged);
    Ok(Ok(match last {
        Some(last) => last.next(tree, git_index, filter_fingerprint),
        None => Scan::of(tree, git_index, filter_fingerprint, salt),
    }))
}

/// Scans only the paths in `changed`, without trusting their stamps. Returns `None` if that is not
/// enough because rules for other paths changed.
fn update(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    last: &Scan,
    changed: &[RelPath],
    sink: Option<&dyn BlobSink>,
) -> Result<Option<Scan>, Error> {
    job.cancel.check()?;
    let filter = &filter.with_linked(&last.repositories);
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
    let repositories = Repositories::new(filter, Some(&last.git_index));
    if !repositories.hold(&last.tree, job.cancel)? {
        return Ok(None);
    }
    let walk = Walk::new(WalkOptions {
        job,
        filter,
        repositories: &repositories,
        salt: last.salt,
        content_mode: ContentMode::Read(sink),
        started_at: now_nanos(),
        total: Some(changed.len() as u64),
    });
    let last_tree = Some(&last.tree);
    let WalkOutcome::Tree(tree) = walk.run(open(filter)?, last_tree, Some(&paths), false)? else {
        return Ok(None);
    };
    let git_index = repositories.state(&tree, true);
    let scan = last.next(tree, git_index, filter_fingerprint);
    Ok(filter.excludes_linked(&scan.repositories).then_some(scan))
}

fn open(filter: &CaptureFilter<'_>) -> Result<Dir, Error> {
    Dir::open_root(&filter.place(b"")).map_err(|error| cannot_scan(filter, &error))
}

pub(super) fn cannot_scan(filter: &CaptureFilter<'_>, error: &std::io::Error) -> Error {
    let root = filter.place(b"");
    let why = format!(
        "cannot scan the workspace folder {}: {error}",
        root.display()
    );
    Error::new(ErrorKind::NotFound, why)
}

fn too_large(job: &Job<'_>) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!(
            "the first checkpoint would contain more than {} files (setting checkpoints.maxFiles) or {} bytes (checkpoints.maxTotalSize); exclude files with .gitignore or checkpoints.exclude, or confirm the size (`confirmLarge`, or --confirm-large on the command line)",
            job.settings.max_files, job.settings.max_total_size
        ),
    )
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
