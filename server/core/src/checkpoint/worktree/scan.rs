//! Looking at the work tree: what is there, what changed since the last look.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use sightline_protocol::error::ErrorKind;

use super::{
    capture_filter::{CaptureFilter, SavedRules},
    git_index::{GitIndexState, TrackedPaths},
    permissions::{RestrictedPath, restricted},
    scan_dir::{Dir, os_name},
    snapshot::{Folder, FolderRules},
    walk::{ContentMode, Walk, WalkOutcome, dir_task::PathTree},
};
use crate::{
    checkpoint::{
        Job, Skipped,
        store::object::{Mode, Oid},
    },
    error::Error,
    gitignore,
    path::RelPath,
};

/// How often it is walked again because other files turned out to be tracked:
/// each round may find one more repository in what the one before found.
const MAX_ROUNDS: usize = 4;

/// The work tree at one look.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// What may be captured.
    pub(crate) tree: Arc<Folder>,
    /// What is there and is not captured, with the reason; sorted.
    pub(crate) skipped: Arc<Vec<Skipped>>,
    /// Captured files and their bytes.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) rules: Arc<SavedRules>,
    /// What is not for everyone to read.
    pub(crate) restricted: Arc<Vec<RestrictedPath>>,
    /// By which rules it was judged, those in its own folders aside.
    pub(crate) filter_fingerprint: u128,
    /// What those did not apply to.
    pub(crate) git_index: Arc<GitIndexState>,
}

/// Takes the content of files as they are read, so that they are read once.
pub(crate) trait BlobSink: Sync {
    /// A file whose content differs from the last look's.
    fn blob(&self, oid: Oid, bytes: &[u8]) -> Result<(), Error>;
}

/// How a look is taken.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScanOptions<'a> {
    /// What was seen last; saves reading what has not changed.
    pub(crate) last: Option<&'a Scan>,
    /// Takes what is read.
    pub(crate) sink: Option<&'a dyn BlobSink>,
    /// More than so many files or bytes are `tooLarge`, before anything is read.
    pub(crate) limits: Option<(u64, u64)>,
}

/// Looks at everything.
pub(crate) fn scan(
    job: &Job<'_>,
    filter: &CaptureFilter<'_>,
    look: ScanOptions<'_>,
) -> Result<Scan, Error> {
    job.cancel.check()?;
    let filter_fingerprint = filter.fingerprint();
    let started_at = now();
    let ScanOptions { last, sink, limits } = look;
    let mut known = last.map(|last| last.tree.clone());
    let mut git_index = match last {
        Some(last) => GitIndexState::load(filter, &last.tree, &last.git_index, job.cancel)?,
        None => Arc::default(),
    };
    if known.is_none() || limits.is_some() {
        // Names and sizes first: reading can tell how far it is, and what is
        // too large is known before any of it is read.
        let (max_files, max_bytes) = limits.unwrap_or((u64::MAX, u64::MAX));
        let content_mode = ContentMode::Measure {
            max_files,
            max_bytes,
        };
        let found = walk_until_stable(job, filter, git_index, |tracked, before| {
            let walk = Walk::new(job, (filter, tracked), content_mode, started_at, None);
            walk.run(open(filter)?, before, None, before.is_some())
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
        let walk = Walk::new(
            job,
            (filter, tracked),
            ContentMode::Read(sink),
            started_at,
            total,
        );
        let reevaluate = reevaluate || before.is_some();
        walk.run(open(filter)?, before.or(known.as_ref()), None, reevaluate)
    })?;
    let (tree, git_index) = found.ok_or_else(|| too_large(job))?;
    Ok(reuse_or_build(
        filter,
        filter_fingerprint,
        tree,
        git_index,
        last,
    ))
}

/// A tree, and what was tracked for it.
type WalkResult = (Arc<Folder>, Arc<GitIndexState>);

/// Walks, again with what the walk before found, until what is tracked is what
/// the walk went by: the rules that tell are found on the way. `None` when the
/// walk finds no tree.
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

/// Looks at these paths only, whatever their stamps say. `None` when that would
/// not be enough: rules changed that judge other paths too.
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
        || !are_excludes_unchanged(filter, last)
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
    let total = Some(changed.len() as u64);
    let walk = Walk::new(
        job,
        (filter, tracked),
        ContentMode::Read(sink),
        now(),
        total,
    );
    let last_tree = Some(&last.tree);
    let WalkOutcome::Tree(tree) = walk.run(open(filter)?, last_tree, Some(&paths), false)? else {
        return Ok(None);
    };
    // New folders may have brought rules, or a repository.
    let git_index = GitIndexState::load(filter, &tree, &git_index, job.cancel)?;
    let is_judged = git_index.tracked == *tracked;
    Ok(is_judged.then(|| reuse_or_build(filter, filter_fingerprint, tree, git_index, Some(last))))
}

fn open(filter: &CaptureFilter<'_>) -> Result<Dir, Error> {
    let root = filter.place(b"");
    Dir::open(&root).map_err(|error| {
        Error::new(
            ErrorKind::NotFound,
            format!(
                "the workspace folder {} cannot be looked at: {error}",
                root.display()
            ),
        )
    })
}

fn too_large(job: &Job<'_>) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!(
            "the workspace has more than {} files (setting checkpoints.maxFiles) or {} bytes (checkpoints.maxTotalSize) to capture; add what is not needed to .gitignore or checkpoints.exclude, or confirm it (confirmLarge)",
            job.settings.max_files, job.settings.max_total_size
        ),
    )
}

/// Nanoseconds since the epoch.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Is it in what git keeps a repository in? Nothing there is captured.
fn is_in_repository(path: &RelPath) -> bool {
    path.components().any(|name| name == ".git")
}

/// Does a change of this path change what is captured elsewhere?
fn affects_rules(path: &RelPath) -> bool {
    let name = path.name().unwrap_or_default();
    let is_rules = name == gitignore::FILE_NAME || name == ".git";
    let in_repository = is_in_repository(path) && (name == "exclude" || name == "HEAD");
    is_rules || in_repository
}

/// Do the repositories in the work tree, which no one watches, exclude what
/// they did?
fn are_excludes_unchanged(filter: &CaptureFilter<'_>, last: &Scan) -> bool {
    let mut hold = true;
    visit_annotated(&last.tree, |path, folder| {
        if let Some(FolderRules {
            git: true,
            excludes,
            ..
        }) = folder.rules.as_deref()
        {
            let now = gitignore::excludes_of(&filter.place(path));
            hold &= now.as_deref() == excludes.as_deref();
        }
    });
    hold
}

/// Sums up what was seen, unless that is what was seen last.
fn reuse_or_build(
    filter: &CaptureFilter<'_>,
    filter_fingerprint: u128,
    tree: Arc<Folder>,
    git_index: Arc<GitIndexState>,
    last: Option<&Scan>,
) -> Scan {
    let same = last.filter(|last| {
        let is_judged = last.filter_fingerprint == filter_fingerprint
            && last.git_index.tracked == git_index.tracked;
        is_judged && Arc::ptr_eq(&last.tree, &tree)
    });
    match same {
        Some(last) => Scan {
            git_index,
            ..last.clone()
        },
        None => build_scan(filter, filter_fingerprint, tree, git_index),
    }
}

/// A look, from its tree.
pub(crate) fn build_scan(
    filter: &CaptureFilter<'_>,
    filter_fingerprint: u128,
    tree: Arc<Folder>,
    git_index: Arc<GitIndexState>,
) -> Scan {
    let mut skipped = Vec::new();
    let mut ruled: Vec<(Vec<u8>, &FolderRules, bool)> = Vec::new();
    visit_annotated(&tree, |path, folder| {
        for left in &folder.skipped {
            let (path, encoded) = below(path, &left.name).to_wire();
            skipped.push(Skipped {
                path,
                encoded,
                reason: left.reason.to_string(),
            });
        }
        if let Some(rules) = &folder.rules {
            let file = folder.get(gitignore::FILE_NAME.as_bytes());
            let is_captured =
                file.is_some_and(|file| matches!(file.mode, Mode::File | Mode::Executable));
            ruled.push((path.to_vec(), rules, is_captured));
        }
    });
    skipped.sort_unstable();
    let rules = filter.save_rules(
        ruled
            .iter()
            .map(|(path, rules, is_captured)| (path.as_slice(), *rules, *is_captured)),
        // What is denied is not even named.
        git_index
            .tracked
            .missing_from(&tree)
            .filter(|path| !filter.denies_path(path)),
    );
    Scan {
        skipped: Arc::new(skipped),
        files: tree.files,
        bytes: tree.bytes,
        rules: Arc::new(rules),
        restricted: Arc::new(restricted(&tree)),
        filter_fingerprint,
        git_index,
        tree,
    }
}

/// The path of what is called `name` in a folder; without a name, of the folder.
pub(crate) fn below(folder: &[u8], name: &[u8]) -> RelPath {
    let names = folder.split(|byte| *byte == b'/').chain([name]);
    let names = names.filter(|name| !name.is_empty());
    names.fold(RelPath::default(), |path, name| path.child(os_name(name)))
}

/// Shows every folder that has something left or rules, with its path.
pub(crate) fn visit_annotated<'a>(tree: &'a Folder, mut visit: impl FnMut(&[u8], &'a Folder)) {
    let mut rest = vec![(Vec::new(), tree)];
    while let Some((path, folder)) = rest.pop() {
        if !folder.is_annotated {
            continue;
        }
        visit(&path, folder);
        for entry in folder.entries() {
            if let Some(below) = entry.folder().filter(|below| below.is_annotated) {
                let mut path = path.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(entry.name);
                rest.push((path, below));
            }
        }
    }
}
