//! Going through the work tree, on all cores, without recursion.
//!
//! Each folder is a [`Frame`]: it is opened, its entries are judged and looked
//! at (`entries`), its folders become frames of their own. Whoever completes the last piece
//! of a frame puts the folder together and hands it to the frame above.
//!
//! A folder whose stamp did not move is not read again: its known entries are
//! looked at. Where only some paths are wanted ([`Paths`]), only they are.

pub(crate) mod dir_task;
mod entries;

use std::{
    io::Read as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use rayon::Scope;
use sightline_protocol::error::ErrorKind;

use super::{
    capture_filter::{Chain, Judge},
    git_index::Exempt,
    read_file::{self, Found},
    reserved_names::GIT_DIRECTORY,
    scan::Sink,
    scan_dir::{Dir, Kind},
    snapshot::{Folder, Node, Reason, Rules, Stamp},
    walk::{
        dir_task::{Change, Frame, Paths, assemble},
        entries::{Here, Name, Open, is_our_fault, out_of_means},
    },
};
use crate::{
    cancel::Cancel,
    checkpoint::{Job, Progress},
    error::Error,
    gitignore,
};

/// Files between two words about how far it is.
const STRIDE: u64 = 256;
/// Below this many levels a folder is not opened from the one above it: that
/// would keep more folders open than a process may.
const OPEN_LEVELS: usize = 64;
/// What a walk does with files.
#[derive(Clone, Copy)]
pub(crate) enum Reading<'a> {
    /// Nothing: what it finds has no content, and is read by the next walk.
    No { max_files: u64, max_bytes: u64 },
    /// Reads what may have changed.
    Yes(Option<&'a dyn Sink>),
}

/// One walk.
pub(crate) struct Walk<'a> {
    pub(crate) judge: &'a Judge<'a>,
    /// What ignore rules do not apply to.
    pub(crate) exempt: &'a Exempt,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) reading: Reading<'a>,
    /// Larger files are left, in bytes.
    pub(crate) max_file_size: u64,
    /// When it began, in nanoseconds since the epoch.
    pub(crate) looked: i64,
    /// How many files there are, where that is known.
    pub(crate) total: Option<u64>,
    pub(crate) done: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    is_over: AtomicBool,
    end: Mutex<End>,
}

/// What came of a walk.
#[derive(Debug)]
pub(crate) enum Outcome {
    Tree(Arc<Folder>),
    /// Only some paths were wanted, and rules moved that judge others too.
    RulesMoved,
    /// There is more than [`Reading::No`] allows.
    TooLarge,
}

/// How a walk ended.
#[derive(Debug, Default)]
pub(crate) enum End {
    #[default]
    Nowhere,
    Tree(Arc<Folder>),
    /// Rules moved that also judge paths nobody looks at in this walk.
    RulesMoved,
    /// It found more than is allowed.
    TooLarge,
    Failed(Error),
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        job: &Job<'a>,
        (judge, exempt): (&'a Judge<'a>, &'a Exempt),
        reading: Reading<'a>,
        looked: i64,
        total: Option<u64>,
    ) -> Self {
        Self {
            judge,
            exempt,
            cancel: job.cancel,
            progress: job.progress,
            reading,
            max_file_size: job.settings.max_file_size,
            looked,
            total,
            done: AtomicU64::new(0),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            end: Mutex::default(),
        }
    }

    /// Goes. `rejudge` says that the rules of the last look no longer hold.
    pub(crate) fn run(
        &self,
        root: Dir,
        last: Option<&Arc<Folder>>,
        paths: Option<&Paths>,
        rejudge: bool,
    ) -> Result<Outcome, Error> {
        let frame = Arc::new(Frame {
            parent: None,
            name: Box::default(),
            depth: 0,
            anchor: Arc::new(root),
            way: Vec::new(),
            last: last.cloned(),
            paths,
            above: Chain::start(self.judge),
            rejudge,
            pending: AtomicUsize::new(1),
            work: Mutex::default(),
        });
        rayon::scope(|scope| scope.spawn(|scope| self.visit(scope, frame)));
        self.cancel.check()?;
        match std::mem::take(&mut *self.end()) {
            End::Tree(tree) => Ok(Outcome::Tree(tree)),
            End::RulesMoved => Ok(Outcome::RulesMoved),
            End::TooLarge => Ok(Outcome::TooLarge),
            End::Failed(error) => Err(error),
            End::Nowhere => Err(Error::cancelled()),
        }
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, end: End) {
        let mut first = self.end();
        if matches!(*first, End::Nowhere) {
            *first = end;
        }
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    fn visit<'s>(&'s self, scope: &Scope<'s>, frame: Arc<Frame<'s>>) {
        if !self.is_over() {
            match self.open(&frame) {
                Ok(Some(open)) => self.look(scope, &frame, open),
                Ok(None) => {}
                Err(end) => self.stop(end),
            }
        }
        self.complete(frame);
    }

    /// Opens a folder, and finds out whether its names and rules are known.
    /// `None` when it cannot be opened.
    fn open(&self, frame: &Frame<'_>) -> Result<Option<Open>, End> {
        let lost = |error: &std::io::Error| {
            let number = error.raw_os_error().unwrap_or(0);
            if is_our_fault(number) {
                return Err(End::Failed(out_of_means(number)));
            }
            frame.work().lost = Some(match read_file::failed(error) {
                Found::Left(reason) => Change::Left(reason),
                _ => Change::Gone,
            });
            Ok(None)
        };
        let mut entered: Option<Dir> = None;
        for name in &frame.way {
            match entered.as_ref().unwrap_or(&frame.anchor).enter(name) {
                Ok(next) => entered = Some(next),
                Err(error) => return lost(&error),
            }
        }
        let dir = entered.map_or_else(|| frame.anchor.clone(), Arc::new);
        let stamp = match dir.stamp() {
            Ok(stamp) => stamp,
            Err(error) => return lost(&error),
        };
        if becomes_git_directory(frame, &dir) {
            frame.work().lost = Some(Change::Left(Reason::GitDirectory));
            return Ok(None);
        }
        let known = frame.last.as_ref().filter(|last| {
            let is_known = is_same_folder(&last.stamp, &stamp) && last.settled && !frame.rejudge;
            frame.paths.is_some() || is_known
        });
        if let Some(known) = known {
            let before = known.rules.as_deref();
            let now = before.map(|before| self.rules_again(frame, &dir, known, before));
            if before == now.as_ref() {
                let mut work = frame.work();
                work.stamp = known.stamp;
                work.settled = known.settled;
                work.base = Some(known.clone());
                let chain = self.chain(frame, before);
                work.rules = now;
                return Ok(Some(Open {
                    dir,
                    chain,
                    rejudge: false,
                    names: None,
                }));
            }
            if frame.paths.is_some() {
                return Err(End::RulesMoved);
            }
        }
        let names = match self.names(&dir) {
            Ok(names) => names,
            Err(error) => return lost(&error),
        };
        if is_git_directory(&names) {
            frame.work().lost = Some(Change::Left(Reason::GitDirectory));
            return Ok(None);
        }
        let rules = self.rules(frame, &dir, &names);
        let before = frame.last.as_ref().map(|last| last.rules.as_deref());
        let chain = self.chain(frame, rules.as_ref());
        let rejudge = frame.rejudge || before.is_some_and(|before| before != rules.as_ref());
        let mut work = frame.work();
        work.stamp = stamp;
        work.settled = stamp.is_settled(self.looked);
        work.rules = rules;
        Ok(Some(Open {
            dir,
            chain,
            rejudge,
            names: Some(names),
        }))
    }

    /// The names in a folder, sorted, with their kinds where the system tells.
    fn names(&self, dir: &Dir) -> std::io::Result<Vec<Name>> {
        let mut names: Vec<Name> = dir
            .names()?
            .into_iter()
            .map(|(name, kind)| Name { name, kind })
            .collect();
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }

    /// The rules a folder with these names adds.
    fn rules(&self, frame: &Frame<'_>, dir: &Dir, names: &[Name]) -> Option<Rules> {
        let find = |wanted: &[u8]| {
            let index = names.binary_search_by(|name| (*name.name).cmp(wanted));
            index.ok().map(|index| &names[index])
        };
        let git = find(b".git").is_some();
        let gitignore = find(gitignore::FILE_NAME.as_bytes())
            .filter(|entry| matches!(entry.kind, Some(Kind::File) | None));
        let rules = Rules {
            git,
            excludes: git.then(|| self.excludes(frame)).flatten(),
            gitignore: gitignore.and_then(|_| read_rules(dir)),
        };
        rules.is_something().then_some(rules)
    }

    /// The same for a folder whose names are known.
    fn rules_again(&self, frame: &Frame<'_>, dir: &Dir, known: &Folder, before: &Rules) -> Rules {
        let name = gitignore::FILE_NAME.as_bytes();
        let is_clean = || {
            let file = known.get(name)?.file()?.clone();
            let (_, stamp) = dir.stat(name).ok()?;
            Some(file.settled && file.stamp == stamp)
        };
        let gitignore = match &before.gitignore {
            Some(text) if is_clean() == Some(true) => Some(text.clone()),
            Some(_) => read_rules(dir),
            None => None,
        };
        Rules {
            git: before.git,
            excludes: before.git.then(|| self.excludes(frame)).flatten(),
            gitignore,
        }
    }

    fn excludes(&self, frame: &Frame<'_>) -> Option<Arc<[u8]>> {
        let place = self.judge.place(&frame.path());
        gitignore::excludes_of(&place).map(Arc::from)
    }

    /// The rules in force in a folder.
    fn chain(&self, frame: &Frame<'_>, own: Option<&Rules>) -> Chain {
        match own {
            Some(own) if own.excludes.is_some() || own.gitignore.is_some() => {
                frame.above.enter(self.judge.place(&frame.path()), own)
            }
            _ => frame.above.clone(),
        }
    }

    /// Makes a folder a frame of its own.
    pub(crate) fn descend<'s>(
        &'s self,
        scope: &Scope<'s>,
        here: &Here<'s>,
        name: &[u8],
        last: Option<&Arc<Folder>>,
        paths: Option<&'s Paths>,
    ) {
        let above = &here.frame;
        let is_near = above.depth < OPEN_LEVELS || above.way.len() >= OPEN_LEVELS;
        let (anchor, mut way) = match is_near {
            true => (here.dir.clone(), Vec::new()),
            false => (above.anchor.clone(), above.way.clone()),
        };
        way.push(name.into());
        let frame = Arc::new(Frame {
            parent: Some(above.clone()),
            name: name.into(),
            depth: above.depth + 1,
            anchor,
            way,
            last: last.cloned(),
            // All of it, when it is new.
            paths: paths.filter(|paths| !paths.whole && last.is_some()),
            above: here.chain.clone(),
            rejudge: here.rejudge,
            pending: AtomicUsize::new(1),
            work: Mutex::default(),
        });
        above.pending.fetch_add(1, Ordering::Relaxed);
        scope.spawn(|scope| self.visit(scope, frame));
    }

    pub(crate) fn count_one(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(STRIDE) {
            (self.progress)(Progress {
                stage: "looking at files",
                done,
                total: self.total,
            });
        }
    }

    /// A piece of work on a folder is complete; with the last one the folder is,
    /// which is a piece of work on the one above.
    pub(crate) fn complete(&self, frame: Arc<Frame<'_>>) {
        let mut frame = frame;
        while frame.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.is_over() {
                return;
            }
            let change = assemble(&frame);
            let Some(parent) = frame.parent.clone() else {
                return self.arrive(change);
            };
            let mut work = parent.work();
            let is_known = matches!((&work.base, &frame.last, &change),
                (Some(_), Some(last), Change::Node(Node::Folder(now))) if Arc::ptr_eq(last, now));
            if !is_known {
                work.changes.push((frame.name.clone(), change));
            }
            drop(work);
            frame = parent;
        }
    }

    fn arrive(&self, change: Change) {
        self.stop(match change {
            Change::Node(Node::Folder(tree)) => End::Tree(tree),
            Change::Left(reason) => End::Failed(no_root(&reason.to_string())),
            _ => End::Failed(no_root("it is not there")),
        });
    }
}

/// Are these the names in a git directory? (Its two folders may be links.)
fn is_git_directory(names: &[Name]) -> bool {
    GIT_DIRECTORY.iter().all(|wanted| {
        let found = names.binary_search_by(|name| (*name.name).cmp(wanted.as_bytes()));
        found.is_ok_and(|index| is_git_part(wanted, names[index].kind))
    })
}

/// Is it one by now, where only some paths are looked at?
fn becomes_git_directory(frame: &Frame<'_>, dir: &Dir) -> bool {
    let is_wanted = |name: &&str| {
        frame
            .paths
            .is_some_and(|paths| paths.names.contains_key(name.as_bytes()))
    };
    GIT_DIRECTORY.iter().any(is_wanted)
        && GIT_DIRECTORY.iter().all(|name| {
            dir.stat(name.as_bytes())
                .is_ok_and(|(kind, _)| is_git_part(name, Some(kind)))
        })
}

fn is_git_part(name: &str, kind: Option<Kind>) -> bool {
    match kind {
        Some(Kind::File) => name == "HEAD",
        Some(Kind::Folder) => name != "HEAD",
        Some(Kind::Link) | None => true,
        Some(Kind::Special(_)) => false,
    }
}

/// The text of a `.gitignore`; nothing when it cannot be read.
fn read_rules(dir: &Dir) -> Option<Arc<[u8]>> {
    let name = gitignore::FILE_NAME.as_bytes();
    let mut text = Vec::new();
    match dir.open_file(name) {
        Ok((file, Kind::File, stamp)) if stamp.size <= gitignore::MAX_BYTES => {
            if file
                .take(gitignore::MAX_BYTES)
                .read_to_end(&mut text)
                .is_err()
            {
                text.clear();
            }
        }
        Ok((_, Kind::File, _)) => {}
        Err(error) if !read_file::is_gone(&error) => {}
        // Git does not follow a link here.
        Ok(_) | Err(_) => return None,
    }
    Some(text.into())
}

/// The names in it are the same as long as these are. (How many links or bytes
/// it has tells nothing more.)
fn is_same_folder(left: &Stamp, right: &Stamp) -> bool {
    (left.mtime, left.ctime, left.inode) == (right.mtime, right.ctime, right.inode)
}

fn no_root(why: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("the workspace folder cannot be looked at: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_modification_time_was_put_back_is_another() {
        let stamp = Stamp {
            mtime: 1,
            ctime: 2,
            inode: 3,
            ..Stamp::default()
        };
        let same = |change: fn(&mut Stamp)| {
            let mut other = stamp;
            change(&mut other);
            is_same_folder(&stamp, &other)
        };
        assert!(same(|stamp| stamp.size += 1));
        assert!(!same(|stamp| stamp.mtime += 1));
        assert!(!same(|stamp| stamp.ctime += 1));
        assert!(!same(|stamp| stamp.inode += 1));
    }
}
