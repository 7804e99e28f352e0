//! Reads objects from packs and loose files, and verifies their ids.

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

/// Time in which a folder can change twice without changing its modification time.
const TIMESTAMP_TICK: Duration = Duration::from_millis(50);

/// Reads objects; each thread needs its own.
///
/// libgit2 is not used: it loops forever on a truncated loose object, and blocks on a pipe in place
/// of a file.
pub(crate) struct ObjectReader {
    objects: PathBuf,
    list: Arc<PackList>,
    packed: RefCell<Option<Arc<PackSet>>>,
    open: RefCell<PackHandles>,
    /// Modification time of the pack folder when a missing object last caused a listing. `None` if
    /// it was too recent to notice the next pack.
    stamp: Cell<Option<SystemTime>>,
    largest: u64,
}

/// Why an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The object does not exist.
    Missing,
    /// The content does not match the id, or cannot be decoded.
    Damaged,
    /// The object, or the base of its delta, exceeds the size limit; its size in bytes.
    TooLarge(u64),
}

impl Unreadable {
    /// Describes the problem as a predicate of the object.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Missing => "is missing".to_owned(),
            Self::Damaged => "is damaged".to_owned(),
            Self::TooLarge(length) => format!("is too large ({length} bytes)"),
        }
    }
}

impl ObjectReader {
    /// Creates a reader without opening files.
    pub(crate) fn new(dir: &Path, list: &Arc<PackList>) -> Self {
        Self::with_limit(u64::MAX, dir, list)
    }

    /// Creates a reader that refuses objects of more than `largest` bytes.
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
    /// `storage` if the object is missing or damaged. The same holds for the other methods.
    pub(crate) fn blob(&self, oid: Oid) -> Result<Vec<u8>, Error> {
        self.read(Kind::Blob, oid)
    }

    /// Returns the length in bytes without reading the content.
    pub(crate) fn blob_len(&self, oid: Oid) -> Result<u64, Error> {
        match self.header(oid) {
            Ok((Kind::Blob, length)) => Ok(length),
            Ok(_) => Err(self.unreadable(Kind::Blob, oid, Unreadable::Damaged)),
            Err(why) => Err(self.unreadable(Kind::Blob, oid, why)),
        }
    }

    /// Returns the length that the header of an object states, in bytes, or `None` if it cannot be
    /// read.
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

    /// Returns whether the object exists, including one that was just written.
    pub(crate) fn contains(&self, oid: Oid) -> bool {
        let has = || self.packed().has(oid) || loose::exists(&self.objects, oid);
        has() || (self.refresh() && has())
    }

    /// Reads an object of any kind.
    pub(crate) fn read_any(&self, oid: Oid) -> Result<(Kind, Vec<u8>), Unreadable> {
        self.retry_after_refresh(|| self.find(oid))
    }

    /// Reads an object of a known kind.
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

    /// Verifies an object. In a pack, its checksum is enough; otherwise it is inflated and hashed.
    pub(crate) fn verify(&self, kind: Kind, oid: Oid) -> Result<(), Unreadable> {
        let mut open = self.open.borrow_mut();
        if self.packed().matches_checksum(&mut open, kind, oid) {
            return Ok(());
        }
        drop(open);
        self.try_read(kind, oid).map(drop)
    }

    /// Like [`Self::verify`]. Returns the content if the object is in a pack and has at most `most`
    /// bytes.
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

    /// Searches the known packs, then the loose objects.
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

    /// A concurrent repack moves objects to another pack.
    fn retry_after_refresh<T>(
        &self,
        look: impl Fn() -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        look().or_else(|why| if self.refresh() { look() } else { Err(why) })
    }

    /// Lists the packs again. Returns false if they cannot have changed since the last time.
    fn refresh(&self) -> bool {
        let packs = self.objects.join("pack");
        // Read before listing, so that packs added in between are noticed.
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
            Unreadable::Missing => format!("is missing from the checkpoint store {dir}"),
            Unreadable::Damaged => format!("is damaged in the checkpoint store {dir}"),
            Unreadable::TooLarge(_) => format!("of the checkpoint store {dir} {}", why.describe()),
        };
        Error::storage(format!(
            "the {} {oid} {what}; verify the checkpoints to see which are intact",
            kind.name(),
        ))
    }
}

/// Returns the modification time of the pack folder, or `None` if it is too recent.
fn settled_stamp(packs: &Path) -> Option<SystemTime> {
    let stamp = fs::metadata(packs).ok()?.modified().ok()?;
    let age = stamp.elapsed().ok()?;
    (age > TIMESTAMP_TICK).then_some(stamp)
}
