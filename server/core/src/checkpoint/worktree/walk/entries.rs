//! Looking at the entries of a folder on a walk.

use std::{
    cell::RefCell,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use rayon::Scope;
use sightline_protocol::error::ErrorKind;

use super::{
    End, Reading, Walk,
    dir_task::{Change, Frame, Paths},
};
use crate::{
    checkpoint::{
        store::object::{Mode, Oid},
        worktree::{
            capture_filter::{Chain, Judge, Verdict},
            git_index::Exempt,
            read_file::{self, Found},
            scan_dir::{Dir, Kind, os_name},
            snapshot::{File, Folder, Node, Reason},
        },
    },
    error::Error,
    gitignore,
};

/// Entries of one folder that one thread looks at.
const CHUNK: usize = 512;
/// How often a name that becomes something else under our eyes is looked at.
const ATTEMPTS: usize = 3;

/// Thread-local space is given back beyond this.
const SPACE_KEPT: usize = 1 << 20;

thread_local! {
    /// What a thread reads files into, when it reads none.
    static SPACE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A folder that is open.
pub(crate) struct Open {
    pub(crate) dir: Arc<Dir>,
    /// The rules in it.
    pub(crate) chain: Chain,
    /// Those of the last look do not hold.
    pub(crate) rejudge: bool,
    /// Its names, when they had to be read.
    pub(crate) names: Option<Vec<Name>>,
}

pub(crate) struct Name {
    pub(crate) name: Box<[u8]>,
    /// Where that is known already.
    pub(crate) kind: Option<Kind>,
}

/// What the pieces of work on one folder share.
pub(crate) struct Here<'a> {
    pub(crate) frame: Arc<Frame<'a>>,
    pub(crate) dir: Arc<Dir>,
    pub(crate) chain: Chain,
    pub(crate) rejudge: bool,
}

/// Judges the entries of one folder; prepared when the first one is judged.
struct Judging<'j> {
    judge: &'j Judge<'j>,
    exempt: &'j Exempt,
    here: &'j Here<'j>,
    prepared: Option<Prepared<'j>>,
}

struct Prepared<'j> {
    path: Vec<u8>,
    scope: gitignore::Scope<'j>,
    /// Of the folder.
    is_ignored: bool,
}

impl<'j> Judging<'j> {
    fn new(walk: &'j Walk<'j>, here: &'j Here<'j>) -> Self {
        Self {
            judge: walk.judge,
            exempt: walk.exempt,
            here,
            prepared: None,
        }
    }

    fn judge(&mut self, name: &[u8], kind: Kind) -> Verdict {
        let (judge, exempt, here) = (self.judge, self.exempt, self.here);
        let Prepared {
            path,
            scope,
            is_ignored,
        } = self.prepared.get_or_insert_with(|| {
            let path = here.frame.path();
            Prepared {
                scope: here.chain.rules().within(&judge.place(&path)),
                is_ignored: here.frame.is_ignored(judge, exempt),
                path,
            }
        });
        let is_dir = kind == Kind::Folder;
        judge.judge(path, name, (is_dir, kind == Kind::Link), || {
            let is_ignored = *is_ignored || scope.ignores(os_name(name), is_dir);
            is_ignored && !exempt.holds_in(path, name, is_dir)
        })
    }
}

impl Walk<'_> {
    /// Looks at the entries of a folder.
    pub(crate) fn look<'s>(&'s self, scope: &Scope<'s>, frame: &Arc<Frame<'s>>, open: Open) {
        let Open {
            dir,
            chain,
            rejudge,
            names,
        } = open;
        let here = Here {
            frame: frame.clone(),
            dir,
            chain,
            rejudge,
        };
        if let Some(paths) = frame.paths {
            let mut judging = Judging::new(self, &here);
            for (name, paths) in &paths.names {
                self.consider(scope, &here, &mut judging, name, None, Some(paths));
            }
        } else if let Some(names) = names {
            self.share(scope, frame, names.len(), move |walk, scope, range| {
                let mut judging = Judging::new(walk, &here);
                for Name { name, kind } in &names[range] {
                    if walk.is_over() {
                        return;
                    }
                    walk.consider(scope, &here, &mut judging, name, *kind, None);
                }
            });
        } else if let Some(known) = frame.last.clone() {
            self.share(scope, frame, known.len(), move |walk, scope, range| {
                walk.look_again(scope, &here, &known, range);
            });
        }
    }

    /// Does work on `count` entries, in pieces where they are many.
    fn share<'s>(
        &'s self,
        scope: &Scope<'s>,
        frame: &Arc<Frame<'s>>,
        count: usize,
        work: impl Fn(&'s Self, &Scope<'s>, Range<usize>) + Send + Sync + 's,
    ) {
        if count <= CHUNK {
            return work(self, scope, 0..count);
        }
        let work = Arc::new(work);
        for start in (0..count).step_by(CHUNK) {
            let (work, frame) = (work.clone(), frame.clone());
            frame.pending.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move |scope| {
                work(self, scope, start..count.min(start + CHUNK));
                self.complete(frame);
            });
        }
    }

    /// Looks at known entries of a folder whose names and rules did not change.
    fn look_again<'s>(
        &'s self,
        scope: &Scope<'s>,
        here: &Here<'s>,
        known: &Folder,
        range: Range<usize>,
    ) {
        let mut judging = Judging::new(self, here);
        if range.start == 0 {
            for left in known.left.iter().filter(|left| left.reason.may_pass()) {
                self.consider(scope, here, &mut judging, &left.name, None, None);
            }
        }
        for index in range {
            if self.is_over() {
                return;
            }
            let entry = known.entry(index);
            let file = match entry.node {
                Node::Folder(folder) => {
                    self.descend(scope, here, entry.name, Some(folder), None);
                    continue;
                }
                Node::File(file) => file,
            };
            self.count_one();
            if file.settled
                && matches!(here.dir.stat(entry.name), Ok((_, stamp)) if stamp == file.stamp)
            {
                continue;
            }
            let kind = match file.mode {
                Mode::Link => Kind::Link,
                _ => Kind::File,
            };
            match self.content(here, entry.name, kind, Some(file)) {
                Some(change) => here.frame.note(entry.name, change),
                None => self.consider(scope, here, &mut judging, entry.name, None, None),
            }
        }
    }

    /// Judges an entry, and looks at it when it is captured.
    fn consider<'s>(
        &'s self,
        scope: &Scope<'s>,
        here: &Here<'s>,
        judging: &mut Judging<'_>,
        name: &[u8],
        kind: Option<Kind>,
        paths: Option<&'s Paths>,
    ) {
        let last = here.frame.last.as_ref().and_then(|last| last.get(name));
        let mut kind = kind;
        for _ in 0..ATTEMPTS {
            let found = match kind {
                Some(kind) => Ok(kind),
                None => here.dir.stat(name).map(|(kind, _)| kind),
            };
            let found = match found {
                Ok(kind) => kind,
                Err(error) => match read_file::failed(&error) {
                    Found::Left(reason) => return here.frame.note(name, Change::Left(reason)),
                    _ => break,
                },
            };
            match judging.judge(name, found) {
                Verdict::Capture => {}
                Verdict::Ignored => break,
                Verdict::Left(reason) => return here.frame.note(name, Change::Left(reason)),
            }
            match found {
                Kind::Special(special) => {
                    let reason = Reason::Special(special);
                    return here.frame.note(name, Change::Left(reason));
                }
                Kind::Folder => {
                    let last = last.and_then(|last| last.folder());
                    return self.descend(scope, here, name, last, paths);
                }
                Kind::File | Kind::Link => {
                    self.count_one();
                    let last = last.and_then(|last| last.file());
                    let is_wanted = paths.is_some_and(|paths| paths.whole);
                    let known = last.filter(|last| {
                        let is_clean = |(kind, stamp)| kind == found && stamp == last.stamp;
                        !is_wanted && last.settled && here.dir.stat(name).is_ok_and(is_clean)
                    });
                    if let Some(known) = known {
                        return here
                            .frame
                            .note(name, Change::Node(Node::File(known.clone())));
                    }
                    match self.content(here, name, found, last) {
                        Some(change) => return here.frame.note(name, change),
                        None => kind = None,
                    }
                }
            }
        }
        here.frame.note(name, Change::Gone);
    }

    /// Reads a file or link; `None` when it is something else by now.
    fn content(
        &self,
        here: &Here<'_>,
        name: &[u8],
        kind: Kind,
        last: Option<&File>,
    ) -> Option<Change> {
        let sink = match self.reading {
            Reading::Yes(sink) => sink,
            Reading::No {
                max_files,
                max_bytes,
            } => return self.measure(here, name, kind, max_files, max_bytes),
        };
        let mut buffer = SPACE.take();
        let found = match kind {
            Kind::Link => read_file::link(&here.dir, name, self.looked, &mut buffer),
            _ => {
                let mode = last.map(|last| last.mode);
                let limit = self.max_file_size;
                read_file::file(&here.dir, name, limit, self.looked, mode, &mut buffer)
            }
        };
        let change = match found {
            Found::Other => return None,
            Found::Left(Reason::Unreadable(number)) if is_our_fault(number) => {
                self.stop(End::Failed(out_of_means(number)));
                Change::Gone
            }
            Found::Left(reason) => Change::Left(reason),
            Found::File(file) => {
                if let Some(sink) = sink
                    && last.is_none_or(|last| last.oid != file.oid)
                    && let Err(error) = sink.blob(file.oid, &buffer)
                {
                    self.stop(End::Failed(error));
                }
                Change::Node(Node::File(file))
            }
        };
        if buffer.capacity() <= SPACE_KEPT {
            SPACE.set(buffer);
        }
        Some(change)
    }

    /// What stands for the content of a file that is not read.
    fn measure(
        &self,
        here: &Here<'_>,
        name: &[u8],
        kind: Kind,
        max_files: u64,
        max_bytes: u64,
    ) -> Option<Change> {
        let (found, stamp) = here.dir.stat(name).ok()?;
        if found != kind {
            return None;
        }
        if kind == Kind::File && stamp.size > self.max_file_size {
            return Some(Change::Left(Reason::TooLarge(stamp.size)));
        }
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(stamp.size, Ordering::Relaxed) + stamp.size;
        if files > max_files || bytes > max_bytes {
            self.stop(End::TooLarge);
        }
        Some(Change::Node(Node::File(File {
            stamp,
            oid: Oid::EMPTY_TREE,
            mode: match kind {
                Kind::Link => Mode::Link,
                _ => Mode::File,
            },
            settled: false,
        })))
    }
}

/// Did it fail for want of memory or open files, which says nothing of the entry?
pub(crate) fn is_our_fault(number: i32) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        [Errno::MFILE, Errno::NFILE, Errno::NOMEM]
            .iter()
            .any(|errno| errno.raw_os_error() == number)
    }
    #[cfg(not(unix))]
    {
        let _ = number;
        false
    }
}

pub(crate) fn out_of_means(number: i32) -> Error {
    let error = std::io::Error::from_raw_os_error(number);
    Error::new(
        ErrorKind::Internal,
        format!("looking at the workspace failed: {error}; try again"),
    )
}
