//! Reads objects of a store, and believes none whose bytes do not have its name.

use std::{
    cell::{Cell, RefCell},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    loose,
    object::{Commit, Kind, Oid, TreeEntry, decode_tree, name_of},
    pack_reader::{PackHandles, PackList, PackSet},
};
use crate::error::Error;

/// Within so much time a folder may change twice and keep its stamp.
const TIMESTAMP_TICK: Duration = Duration::from_millis(50);

/// Reads objects. Not shared between threads.
///
/// libgit2 reads none of them: a torn file makes it inflate for ever, and a pipe in a
/// file's place makes it wait.
pub(crate) struct ObjectReader {
    objects: PathBuf,
    list: Arc<PackList>,
    packed: RefCell<Option<Arc<PackSet>>>,
    open: RefCell<PackHandles>,
    /// The stamp of the folder of packs when they were last listed for an object that was
    /// not found, unless it was so young that the next pack may get the same.
    stamp: Cell<Option<SystemTime>>,
    largest: u64,
}

/// Why an object can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// There is no such object.
    Missing,
    /// Its bytes are not what its name says, or make no sense.
    Damaged,
    /// It, or what it is stored as a difference to, has more bytes than are read.
    TooLarge(u64),
}

impl Unreadable {
    /// What is wrong, said of the object.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Missing => "is missing".to_owned(),
            Self::Damaged => "is damaged".to_owned(),
            Self::TooLarge(length) => format!("has {length} bytes, which is too large"),
        }
    }
}

impl ObjectReader {
    /// Opens nothing yet.
    pub(crate) fn new(dir: &Path, list: &Arc<PackList>) -> Self {
        Self::with_limit(u64::MAX, dir, list)
    }

    /// Reads no object of more than `largest` bytes.
    pub(crate) fn with_limit(largest: u64, dir: &Path, list: &Arc<PackList>) -> Self {
        Self {
            objects: dir.join("objects"),
            list: Arc::clone(list),
            packed: RefCell::new(None),
            open: RefCell::new(PackHandles::with_limit(largest)),
            stamp: Cell::new(None),
            largest,
        }
    }

    /// # Errors
    /// `storage` when it is missing or damaged; so in all of these.
    pub(crate) fn blob(&self, oid: Oid) -> Result<Vec<u8>, Error> {
        self.read(Kind::Blob, oid)
    }

    /// Length in bytes without reading it all.
    pub(crate) fn blob_len(&self, oid: Oid) -> Result<u64, Error> {
        match self.header(oid) {
            Ok((Kind::Blob, length)) => Ok(length),
            Ok(_) => Err(self.unreadable(Kind::Blob, oid, Unreadable::Damaged)),
            Err(why) => Err(self.unreadable(Kind::Blob, oid, why)),
        }
    }

    /// What an object of whatever kind says its length is, in bytes; `None` when
    /// it can't be read.
    pub(crate) fn len(&self, oid: Oid) -> Option<u64> {
        self.header(oid).ok().map(|(_, length)| length)
    }

    fn header(&self, oid: Oid) -> Result<(Kind, u64), Unreadable> {
        self.retry_after_refresh(|| {
            if let Some(header) = self.packed().header(&mut self.open.borrow_mut(), oid) {
                return Ok(header);
            }
            loose::header(&self.objects, oid).or_else(|_| {
                let (kind, bytes) = self.find(oid)?;
                Ok((kind, bytes.len() as u64))
            })
        })
    }

    pub(crate) fn tree(&self, oid: Oid) -> Result<Vec<TreeEntry>, Error> {
        if oid == Oid::EMPTY_TREE {
            return Ok(Vec::new());
        }
        decode_tree(&self.read(Kind::Tree, oid)?)
            .ok_or_else(|| self.unreadable(Kind::Tree, oid, Unreadable::Damaged))
    }

    pub(crate) fn commit(&self, oid: Oid) -> Result<Commit, Error> {
        Commit::decode(&self.read(Kind::Commit, oid)?)
            .ok_or_else(|| self.unreadable(Kind::Commit, oid, Unreadable::Damaged))
    }

    /// Is there such an object? One that was written a moment ago is seen.
    pub(crate) fn contains(&self, oid: Oid) -> bool {
        let has = || self.packed().has(oid) || loose::exists(&self.objects, oid);
        has() || (self.refresh() && has())
    }

    /// The bytes of an object of whatever kind.
    pub(crate) fn read_any(&self, oid: Oid) -> Result<(Kind, Vec<u8>), Unreadable> {
        self.retry_after_refresh(|| self.find(oid))
    }

    /// The bytes of an object, or what is wrong with it.
    pub(crate) fn try_read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Unreadable> {
        let read = self.packed().read(&mut self.open.borrow_mut(), kind, oid);
        if let Some(bytes) = read.filter(|bytes| name_of(kind, bytes) == oid) {
            return Ok(bytes);
        }
        match self.read_any(oid)? {
            (found, bytes) if found == kind => Ok(bytes),
            _ => Err(Unreadable::Damaged),
        }
    }

    /// Is an object whole, or what is wrong with it? In a pack it is when its bytes
    /// there are those that were written; only others are inflated and hashed.
    pub(crate) fn verify(&self, kind: Kind, oid: Oid) -> Result<(), Unreadable> {
        let mut open = self.open.borrow_mut();
        if self.packed().matches_checksum(&mut open, kind, oid) {
            return Ok(());
        }
        drop(open);
        self.try_read(kind, oid).map(drop)
    }

    /// As [`Self::check`]; gives the bytes of an object in a pack that has no more than
    /// `most`.
    pub(crate) fn verify_and_read(
        &self,
        kind: Kind,
        oid: Oid,
        most: usize,
    ) -> Result<Option<Vec<u8>>, Unreadable> {
        let mut open = self.open.borrow_mut();
        let found = self.packed().verify_and_read(&mut open, (kind, oid), most);
        drop(open);
        match found {
            Some(None) => Ok(None),
            Some(Some(bytes)) if name_of(kind, &bytes) == oid => Ok(Some(bytes)),
            _ => self.try_read(kind, oid).map(|_| None),
        }
    }

    fn packed(&self) -> Arc<PackSet> {
        let mut packed = self.packed.borrow_mut();
        Arc::clone(packed.get_or_insert_with(|| self.list.get(&self.objects.join("pack"))))
    }

    fn read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Error> {
        self.try_read(kind, oid)
            .map_err(|why| self.unreadable(kind, oid, why))
    }

    /// Looks through the packs there were, and the files of single objects.
    fn find(&self, oid: Oid) -> Result<(Kind, Vec<u8>), Unreadable> {
        let packed = self.packed().object(&mut self.open.borrow_mut(), oid);
        packed.or_else(|why| {
            let loose = loose::read(&self.objects, oid, self.largest);
            loose.map_err(|loose| {
                if loose == Unreadable::Missing {
                    why
                } else {
                    loose
                }
            })
        })
    }

    /// What another process packs anew while we read moves elsewhere once.
    fn retry_after_refresh<T>(
        &self,
        look: impl Fn() -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        look().or_else(|why| if self.refresh() { look() } else { Err(why) })
    }

    /// Lists the packs again; false when none can have come or gone since the last time.
    fn refresh(&self) -> bool {
        let packs = self.objects.join("pack");
        // Before it is looked at, so that what comes meanwhile is seen.
        let stamp = settled_stamp(&packs);
        if stamp.is_some() && stamp == self.stamp.get() {
            return false;
        }
        self.stamp.set(stamp);
        self.list.refresh(&packs);
        self.packed.replace(Some(self.list.get(&packs)));
        self.open.replace(PackHandles::with_limit(self.largest));
        true
    }

    pub(crate) fn unreadable(&self, kind: Kind, oid: Oid, why: Unreadable) -> Error {
        let dir = self.objects.parent().unwrap_or(&self.objects).display();
        let what = match why {
            Unreadable::Missing => format!("is missing from the store of checkpoints {dir}"),
            Unreadable::Damaged => format!("is damaged in the store of checkpoints {dir}"),
            Unreadable::TooLarge(_) => format!("of the store {dir} {}", why.describe()),
        };
        Error::storage(format!(
            "the {} {oid} {what}; verify the checkpoints to see which can still be used",
            kind.name(),
        ))
    }
}

/// When packs last came or went; `None` where that can't be told.
fn settled_stamp(packs: &Path) -> Option<SystemTime> {
    let stamp = fs::metadata(packs).ok()?.modified().ok()?;
    let age = stamp.elapsed().ok()?;
    (age > TIMESTAMP_TICK).then_some(stamp)
}
