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
    repository: RefCell<git2::Repository>,
    /// The stamp of the folder of packs when it was last read, unless it was
    /// so young that the next pack may get the same.
    packs: Cell<Option<SystemTime>>,
    list: Arc<PackList>,
    packed: OnceCell<Arc<Packed>>,
    open: RefCell<Open>,
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
    pub(super) fn new(dir: &Path, list: &Arc<PackList>) -> Result<Self, Error> {
        let repository = open(dir)?;
        let reader = Self {
            dir: dir.to_path_buf(),
            packs: Cell::new(None),
            repository: RefCell::new(repository),
            list: Arc::clone(list),
            packed: OnceCell::new(),
            open: RefCell::default(),
        };
        let stamp = reader.stamp();
        reader
            .repository
            .borrow()
            .odb()
            .map_err(|error| cannot_open(dir, &error))?;
        reader.packs.set(stamp);
        Ok(reader)
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
        let repository = self.repository.borrow();
        let Ok(odb) = repository.odb() else {
            return false;
        };
        let oid = oid.to_git();
        if odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH) {
            return true;
        }
        // libgit2 would list the folder anew for each object there is not.
        let stamp = self.stamp();
        if stamp.is_some() && stamp == self.packs.get() {
            return false;
        }
        if odb.refresh().is_err() {
            return false;
        }
        self.packs.set(stamp);
        odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH)
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
        if let Ok(found) = read(&self.repository.borrow()) {
            return Ok(found);
        }
        if let Ok(again) = open(&self.dir) {
            self.packs.set(None);
            self.repository.replace(again);
        }
        read(&self.repository.borrow()).map_err(|error| match error.code() {
            git2::ErrorCode::NotFound => Unreadable::Missing,
            _ => Unreadable::Damaged,
        })
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
    fn stamp(&self) -> Option<SystemTime> {
        let stamp = fs::metadata(self.dir.join("objects/pack"))
            .ok()?
            .modified()
            .ok()?;
        let age = stamp.elapsed().ok()?;
        (age > TICK).then_some(stamp)
    }
}

fn open(dir: &Path) -> Result<git2::Repository, Error> {
    crate::git::isolate();
    git2::opts::strict_hash_verification(false);
    git2::Repository::open_bare(dir).map_err(|error| cannot_open(dir, &error))
}

fn cannot_open(dir: &Path, error: &git2::Error) -> Error {
    Error::storage(format!(
        "could not open the store of checkpoints {}: {}; the next checkpoint rebuilds it from what is whole",
        dir.display(),
        error.message()
    ))
}
