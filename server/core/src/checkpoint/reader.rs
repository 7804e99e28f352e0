//! Reads objects of a store, and believes none whose bytes do not have its name.

use std::{
    cell::{Cell, OnceCell, RefCell},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use git2::{ObjectType, OdbLookupFlags};

use super::{
    object::{Commit, Kind, Oid, TreeEntry, decode_tree, name_of},
    packed::{Open, PackList, Packed},
};
use crate::error::Error;

/// Within so much time a folder may change twice and keep its stamp.
const TICK: Duration = Duration::from_millis(50);

/// Reads objects. Not shared between threads.
pub(super) struct Reader {
    dir: PathBuf,
    list: Arc<PackList>,
    packed: OnceCell<Arc<Packed>>,
    open: RefCell<Open>,
    /// Opened for what is not found in a pack.
    git: RefCell<Option<git2::Repository>>,
    /// The stamp of the folder of packs when libgit2 last read it, unless it was
    /// so young that the next pack may get the same.
    stamp: Cell<Option<SystemTime>>,
}

/// Why an object can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// There is no such object.
    Missing,
    /// Its bytes are not what its name says, or make no sense.
    Damaged,
}

impl Reader {
    /// Opens nothing yet.
    pub(super) fn new(dir: &Path, list: &Arc<PackList>) -> Self {
        Self {
            dir: dir.to_path_buf(),
            list: Arc::clone(list),
            packed: OnceCell::new(),
            open: RefCell::default(),
            git: RefCell::new(None),
            stamp: Cell::new(None),
        }
    }

    /// Can git read the store?
    ///
    /// # Errors
    /// `storage`, with the reason.
    pub(super) fn require_git(&self) -> Result<(), Error> {
        self.with_git(|_| Ok(()))
            .map_err(|error| cannot_open(&self.dir, &error))
    }

    /// # Errors
    /// `storage` when it is missing or damaged; so in all of these.
    pub(super) fn blob(&self, oid: Oid) -> Result<Vec<u8>, Error> {
        self.read(Kind::Blob, oid)
    }

    /// Length in bytes without reading it all.
    pub(super) fn blob_len(&self, oid: Oid) -> Result<u64, Error> {
        let header = self.twice(|repository| {
            let (length, kind) = repository.odb()?.read_header(oid.to_git())?;
            Ok((length as u64, kind))
        });
        match header {
            Ok((length, ObjectType::Blob)) => Ok(length),
            Ok(_) => Err(self.unreadable(Kind::Blob, oid, Unreadable::Damaged)),
            Err(why) => Err(self.unreadable(Kind::Blob, oid, why)),
        }
    }

    /// What an object of whatever kind says its length is, in bytes; `None` when
    /// it can't be read.
    pub(super) fn len(&self, oid: Oid) -> Option<u64> {
        let header = self.twice(|repository| repository.odb()?.read_header(oid.to_git()));
        header.ok().map(|(length, _)| length as u64)
    }

    pub(super) fn tree(&self, oid: Oid) -> Result<Vec<TreeEntry>, Error> {
        if oid == Oid::EMPTY_TREE {
            return Ok(Vec::new());
        }
        decode_tree(&self.read(Kind::Tree, oid)?)
            .ok_or_else(|| self.unreadable(Kind::Tree, oid, Unreadable::Damaged))
    }

    pub(super) fn commit(&self, oid: Oid) -> Result<Commit, Error> {
        Commit::decode(&self.read(Kind::Commit, oid)?)
            .ok_or_else(|| self.unreadable(Kind::Commit, oid, Unreadable::Damaged))
    }

    /// Is there such an object? One that was written a moment ago is seen.
    pub(super) fn contains(&self, oid: Oid) -> bool {
        if self.contained(oid) {
            return true;
        }
        // libgit2 would list the folder anew for each object there is not.
        let stamp = self.settled_stamp();
        if stamp.is_some() && stamp == self.stamp.get() {
            return false;
        }
        let refreshed = self.with_git(|git| git.odb()?.refresh());
        self.stamp.set(stamp);
        refreshed.is_ok() && self.contained(oid)
    }

    /// Was there such an object when this was first asked?
    fn contained(&self, oid: Oid) -> bool {
        let flags = OdbLookupFlags::NO_REFRESH;
        let found = self.with_git(|git| Ok(git.odb()?.exists_ext(oid.to_git(), flags)));
        found.unwrap_or(false)
    }

    /// The bytes of an object of whatever kind.
    pub(super) fn any(&self, oid: Oid) -> Result<(ObjectType, Vec<u8>), Unreadable> {
        self.twice(|repository| {
            let odb = repository.odb()?;
            let object = odb.read(oid.to_git())?;
            Ok((object.kind(), object.data().to_vec()))
        })
    }

    /// The bytes of an object, or what is wrong with it.
    pub(super) fn try_read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Unreadable> {
        let read = self.packed().read(&mut self.open.borrow_mut(), kind, oid);
        if let Some(bytes) = read.filter(|bytes| name_of(kind, bytes) == oid) {
            return Ok(bytes);
        }
        let (found, bytes) = self.any(oid)?;
        // libgit2 is told not to hash what it reads: it is four times slower.
        if found != kind.to_git() || name_of(kind, &bytes) != oid {
            return Err(Unreadable::Damaged);
        }
        Ok(bytes)
    }

    /// Is an object whole, or what is wrong with it? In a pack it is when its bytes
    /// there are those that were written; only others are inflated and hashed.
    pub(super) fn check(&self, kind: Kind, oid: Oid) -> Result<(), Unreadable> {
        let mut open = self.open.borrow_mut();
        if self.packed().is_as_written(&mut open, kind, oid) {
            return Ok(());
        }
        drop(open);
        self.try_read(kind, oid).map(drop)
    }

    /// As [`Self::check`]; gives the bytes of an object in a pack that has no more than
    /// `most`.
    pub(super) fn check_and_keep(
        &self,
        kind: Kind,
        oid: Oid,
        most: usize,
    ) -> Result<Option<Vec<u8>>, Unreadable> {
        let mut open = self.open.borrow_mut();
        let found = self.packed().check_and_keep(&mut open, (kind, oid), most);
        drop(open);
        match found {
            Some(None) => Ok(None),
            Some(Some(bytes)) if name_of(kind, &bytes) == oid => Ok(Some(bytes)),
            _ => self.try_read(kind, oid).map(|_| None),
        }
    }

    fn packed(&self) -> &Packed {
        self.packed
            .get_or_init(|| self.list.get(&self.dir.join("objects/pack")))
    }

    fn read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Error> {
        self.try_read(kind, oid)
            .map_err(|why| self.unreadable(kind, oid, why))
    }

    /// What another process packs anew while we read moves elsewhere once.
    fn twice<T>(
        &self,
        read: impl Fn(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Result<T, Unreadable> {
        let first = self.with_git(&read);
        if let Ok(found) = first {
            return Ok(found);
        }
        self.git.replace(None);
        self.with_git(read).map_err(|error| match error.code() {
            git2::ErrorCode::NotFound => Unreadable::Missing,
            _ => Unreadable::Damaged,
        })
    }

    fn with_git<T>(
        &self,
        act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Result<T, git2::Error> {
        if self.git.borrow().is_none() {
            // Before it is looked at, so that what comes meanwhile is seen.
            self.stamp.set(self.settled_stamp());
            self.git.replace(Some(open(&self.dir)?));
        }
        match &*self.git.borrow() {
            Some(git) => act(git),
            None => Err(git2::Error::from_str("it is not open")),
        }
    }

    pub(super) fn unreadable(&self, kind: Kind, oid: Oid, why: Unreadable) -> Error {
        let what = match why {
            Unreadable::Missing => "is missing from",
            Unreadable::Damaged => "is damaged in",
        };
        Error::storage(format!(
            "the {} {oid} {what} the store of checkpoints {}; verify the checkpoints to see which can still be used",
            kind.name(),
            self.dir.display()
        ))
    }

    /// When packs last came or went; `None` where that can't be told.
    fn settled_stamp(&self) -> Option<SystemTime> {
        let stamp = fs::metadata(self.dir.join("objects/pack"))
            .ok()?
            .modified()
            .ok()?;
        let age = stamp.elapsed().ok()?;
        (age > TICK).then_some(stamp)
    }
}

fn open(dir: &Path) -> Result<git2::Repository, git2::Error> {
    crate::git::isolate();
    git2::opts::strict_hash_verification(false);
    let repository = git2::Repository::open_bare(dir)?;
    repository.odb()?;
    Ok(repository)
}

fn cannot_open(dir: &Path, error: &git2::Error) -> Error {
    Error::storage(format!(
        "could not open the store of checkpoints {}: {}; the next checkpoint rebuilds it from what is whole",
        dir.display(),
        error.message()
    ))
}
