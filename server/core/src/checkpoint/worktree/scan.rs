//! Looking at the work tree: what is there, what changed since the last look.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use sightline_protocol::error::ErrorKind;

use super::{
    capture_filter::{Frozen, Judge},
    git_index::{Exempt, Tracked},
    permissions::{Restricted, restricted},
    scan_dir::{Dir, os_name},
    snapshot::{Folder, Rules},
    walk::{Outcome, Reading, Walk, dir_task::Paths},
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
const ROUNDS: usize = 4;

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
    pub(crate) rules: Arc<Frozen>,
    /// What is not for everyone to read.
    pub(crate) restricted: Arc<Vec<Restricted>>,
    /// By which rules it was judged, those in its own folders aside.
    pub(crate) judged: u128,
    /// What those did not apply to.
    pub(crate) tracked: Arc<Tracked>,
}

/// Takes the content of files as they are read, so that they are read once.
pub(crate) trait Sink: Sync {
    /// A file whose content differs from the last look's.
    fn blob(&self, oid: Oid, bytes: &[u8]) -> Result<(), Error>;
}

/// How a look is taken.
#[derive(Clone, Copy, Default)]
pub(crate) struct Look<'a> {
    /// What was seen last; saves reading what has not changed.
    pub(crate) last: Option<&'a Scan>,
    /// Takes what is read.
    pub(crate) sink: Option<&'a dyn Sink>,
    /// More than so many files or bytes are `tooLarge`, before anything is read.
    pub(crate) limits: Option<(u64, u64)>,
}

/// Looks at everything.
pub(crate) fn scan(job: &Job<'_>, judge: &Judge<'_>, look: Look<'_>) -> Result<Scan, Error> {
    job.cancel.check()?;
    let judged = judge.fingerprint();
    let looked = now();
    let Look { last, sink, limits } = look;
    let mut known = last.map(|last| last.tree.clone());
    let mut tracked = match last {
        Some(last) => Tracked::of(judge, &last.tree, &last.tracked, job.cancel)?,
        None => Arc::default(),
    };
    if known.is_none() || limits.is_some() {
        // Names and sizes first: reading can tell how far it is, and what is
        // too large is known before any of it is read.
        let (max_files, max_bytes) = limits.unwrap_or((u64::MAX, u64::MAX));
        let reading = Reading::No {
            max_files,
            max_bytes,
        };
        let found = until_tracked(job, judge, tracked, |exempt, before| {
            let walk = Walk::new(job, (judge, exempt), reading, looked, None);
            walk.run(open(judge)?, before, None, before.is_some())
        })?;
        let tree;
        (tree, tracked) = found.ok_or_else(|| too_large(job))?;
        known = known.or(Some(tree));
    }
    let total = known.as_ref().map(|known| known.files);
    let rejudge =
        last.is_some_and(|last| last.judged != judged || last.tracked.exempt != tracked.exempt);
    let found = until_tracked(job, judge, tracked, |exempt, before| {
        let walk = Walk::new(job, (judge, exempt), Reading::Yes(sink), looked, total);
        let rejudge = rejudge || before.is_some();
        walk.run(open(judge)?, before.or(known.as_ref()), None, rejudge)
    })?;
    let (tree, tracked) = found.ok_or_else(|| too_large(job))?;
    Ok(finish(judge, judged, tree, tracked, last))
}

/// A tree, and what was tracked for it.
type Found = (Arc<Folder>, Arc<Tracked>);

/// Walks, again with what the walk before found, until what is tracked is what
/// the walk went by: the rules that tell are found on the way. `None` when the
/// walk finds no tree.
fn until_tracked(
    job: &Job<'_>,
    judge: &Judge<'_>,
    tracked: Arc<Tracked>,
    mut walk: impl FnMut(&Exempt, Option<&Arc<Folder>>) -> Result<Outcome, Error>,
) -> Result<Option<Found>, Error> {
    let mut tracked = tracked;
    let mut before = None;
    for _ in 0..ROUNDS {
        let Outcome::Tree(tree) = walk(&tracked.exempt, before.as_ref())? else {
            return Ok(None);
        };
        let now = Tracked::of(judge, &tree, &tracked, job.cancel)?;
        if now.exempt == tracked.exempt {
            return Ok(Some((tree, now)));
        }
        before = Some(tree);
        tracked = now;
    }
    let Outcome::Tree(tree) = walk(&tracked.exempt, before.as_ref())? else {
        return Ok(None);
    };
    Ok(Some((tree, Arc::new(tracked.unsettled()))))
}

/// Looks at these paths only, whatever their stamps say. `None` when that would
/// not be enough: rules changed that judge other paths too.
pub(crate) fn update(
    job: &Job<'_>,
    judge: &Judge<'_>,
    last: &Scan,
    changed: &[RelPath],
    sink: Option<&dyn Sink>,
) -> Result<Option<Scan>, Error> {
    job.cancel.check()?;
    let judged = judge.fingerprint();
    if judged != last.judged || changed.iter().any(moves_rules) || !excludes_hold(judge, last) {
        return Ok(None);
    }
    let paths = Paths::new(changed.iter().filter(|path| !is_in_repository(path)));
    if paths.is_everything() {
        return Ok(None);
    }
    let tracked = Tracked::of(judge, &last.tree, &last.tracked, job.cancel)?;
    let exempt = &last.tracked.exempt;
    if tracked.exempt != *exempt {
        return Ok(None);
    }
    let total = Some(changed.len() as u64);
    let walk = Walk::new(job, (judge, exempt), Reading::Yes(sink), now(), total);
    let last_tree = Some(&last.tree);
    let Outcome::Tree(tree) = walk.run(open(judge)?, last_tree, Some(&paths), false)? else {
        return Ok(None);
    };
    // New folders may have brought rules, or a repository.
    let tracked = Tracked::of(judge, &tree, &tracked, job.cancel)?;
    let is_judged = tracked.exempt == *exempt;
    Ok(is_judged.then(|| finish(judge, judged, tree, tracked, Some(last))))
}

fn open(judge: &Judge<'_>) -> Result<Dir, Error> {
    let root = judge.place(b"");
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
fn moves_rules(path: &RelPath) -> bool {
    let name = path.name().unwrap_or_default();
    let is_rules = name == gitignore::FILE_NAME || name == ".git";
    let in_repository = is_in_repository(path) && (name == "exclude" || name == "HEAD");
    is_rules || in_repository
}

/// Do the repositories in the work tree, which no one watches, exclude what
/// they did?
fn excludes_hold(judge: &Judge<'_>, last: &Scan) -> bool {
    let mut hold = true;
    visit_notable(&last.tree, |path, folder| {
        if let Some(Rules {
            git: true,
            excludes,
            ..
        }) = folder.rules.as_deref()
        {
            let now = gitignore::excludes_of(&judge.place(path));
            hold &= now.as_deref() == excludes.as_deref();
        }
    });
    hold
}

/// Sums up what was seen, unless that is what was seen last.
fn finish(
    judge: &Judge<'_>,
    judged: u128,
    tree: Arc<Folder>,
    tracked: Arc<Tracked>,
    last: Option<&Scan>,
) -> Scan {
    let same = last.filter(|last| {
        let is_judged = last.judged == judged && last.tracked.exempt == tracked.exempt;
        is_judged && Arc::ptr_eq(&last.tree, &tree)
    });
    match same {
        Some(last) => Scan {
            tracked,
            ..last.clone()
        },
        None => sum_up(judge, judged, tree, tracked),
    }
}

/// A look, from its tree.
pub(crate) fn sum_up(
    judge: &Judge<'_>,
    judged: u128,
    tree: Arc<Folder>,
    tracked: Arc<Tracked>,
) -> Scan {
    let mut skipped = Vec::new();
    let mut ruled: Vec<(Vec<u8>, &Rules, bool)> = Vec::new();
    visit_notable(&tree, |path, folder| {
        for left in &folder.left {
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
    let rules = judge.freeze(
        ruled
            .iter()
            .map(|(path, rules, is_captured)| (path.as_slice(), *rules, *is_captured)),
        // What is denied is not even named.
        tracked
            .exempt
            .beyond(&tree)
            .filter(|path| !judge.denies_path(path)),
    );
    Scan {
        skipped: Arc::new(skipped),
        files: tree.files,
        bytes: tree.bytes,
        rules: Arc::new(rules),
        restricted: Arc::new(restricted(&tree)),
        judged,
        tracked,
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
pub(crate) fn visit_notable<'a>(tree: &'a Folder, mut visit: impl FnMut(&[u8], &'a Folder)) {
    let mut rest = vec![(Vec::new(), tree)];
    while let Some((path, folder)) = rest.pop() {
        if !folder.notable {
            continue;
        }
        visit(&path, folder);
        for entry in folder.entries() {
            if let Some(below) = entry.folder().filter(|below| below.notable) {
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
