//! Reads objects from packs and loose files, and verifies their ids.
//!
//! The list of packs is our own: alternates and links are never followed, and a damaged copy of an
//! object is replaced by an intact one in another pack.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use parking_lot::Mutex;
use sightline_base::storage::atomic_file::{failed, is_dir};

use super::{
    loose,
    object::{Commit, Kind, Oid, TreeEntry, Unreadable, decode_tree},
    pack::Pack,
};
use crate::error::Error;

/// The objects of a store or of a foreign repository. Clones share the list of packs.
#[derive(Clone, Debug)]
pub(crate) struct Odb(Arc<Inner>);

struct Inner {
    /// Path of the folder `objects`.
    objects: PathBuf,
    /// Maximum size of an object, in bytes.
    largest: u64,
    packs: Mutex<PackList>,
}

/// The packs when they were last listed, newest first. `None` before the first read.
type PackList = Option<Arc<Vec<Arc<ListedPack>>>>;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Odb").field(&self.objects).finish()
    }
}

/// A pack that is opened on first use.
struct ListedPack {
    path: PathBuf,
    /// `None` if it is damaged.
    pack: OnceLock<Option<Pack>>,
}

impl Odb {
    /// Returns the objects of the repository `dir`, without opening files. Objects of more than
    /// `largest` bytes are not read.
    pub(crate) fn new(dir: &Path, largest: u64) -> Self {
        Self(Arc::new(Inner {
            objects: dir.join("objects"),
            largest,
            packs: Mutex::default(),
        }))
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

    fn read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Error> {
        self.try_read(kind, oid)
            .map_err(|why| self.unreadable(kind, oid, why))
    }

    /// Reads an object of a known kind.
    pub(crate) fn try_read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Unreadable> {
        match self.read_any(oid)? {
            (found, bytes) if found == kind => Ok(bytes),
            _ => Err(Unreadable::Damaged),
        }
    }

    /// Reads an object of any kind.
    pub(crate) fn read_any(&self, oid: Oid) -> Result<(Kind, Vec<u8>), Unreadable> {
        let largest = self.0.largest;
        self.find(
            |pack| pack.read(oid, largest),
            |objects| loose::read(objects, oid, largest),
        )
    }

    /// Returns the kind and length of an object without reading its content.
    pub(crate) fn header(&self, oid: Oid) -> Result<(Kind, u64), Unreadable> {
        self.find(
            |pack| pack.header(oid),
            |objects| loose::header(objects, oid),
        )
    }

    /// Returns whether the object exists, including one that was just written.
    ///
    /// # Errors
    /// If it cannot be determined.
    pub(crate) fn contains(&self, oid: Oid) -> Result<bool, Error> {
        let in_pack = |pack: &Pack| pack.has(oid).then_some(Ok(()));
        match self.find(in_pack, |objects| loose::find(objects, oid)) {
            Err(why @ Unreadable::Unavailable) => Err(self.unreadable(Kind::Blob, oid, why)),
            found => Ok(found.is_ok()),
        }
    }

    /// Returns whether a pack that is already listed has the object.
    pub(crate) fn is_packed(&self, oid: Oid) -> bool {
        self.packs().is_ok_and(|packs| {
            packs.iter().any(|listed| {
                let pack = listed.open(self.0.largest);
                pack.is_ok_and(|pack| pack.is_some_and(|pack| pack.has(oid)))
            })
        })
    }

    /// Opens all packs, which then stay open.
    ///
    /// # Errors
    /// `storage` if they cannot be listed, or one cannot be opened. Damaged packs are left out.
    pub(crate) fn open_packs(&self) -> Result<(), Error> {
        let packs = self
            .packs()
            .map_err(|error| failed("list the packs in", &self.0.objects, error))?;
        let mut opened = packs.iter().map(|listed| listed.open(self.0.largest));
        opened.try_for_each(|pack| pack.map(drop))
    }

    /// Searches the packs, then the loose objects, until one copy can be read. A concurrent repack
    /// moves objects to another pack, so the packs are listed again before the search fails.
    fn find<T>(
        &self,
        in_pack: impl Fn(&Pack) -> Option<Result<T, Unreadable>>,
        loose: impl Fn(&Path) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        let look = |packs: &[Arc<ListedPack>]| {
            let mut problem = Unreadable::Missing;
            let mut is_unavailable = false;
            for listed in packs {
                let Ok(pack) = listed.open(self.0.largest) else {
                    is_unavailable = true;
                    continue;
                };
                match pack.and_then(&in_pack) {
                    Some(Ok(found)) => return Ok(found),
                    Some(Err(why)) => problem = why,
                    None => {}
                }
            }
            loose(&self.0.objects).map_err(|why| match why {
                _ if is_unavailable => Unreadable::Unavailable,
                Unreadable::Missing => problem,
                why => why,
            })
        };
        let unavailable = |_| Unreadable::Unavailable;
        let packs = self.packs().map_err(unavailable)?;
        look(&packs).or_else(|why| {
            let now = self.list_again().map_err(unavailable)?;
            // Another thread may have listed them since.
            let is_same = packs
                .iter()
                .map(Arc::as_ptr)
                .eq(now.iter().map(Arc::as_ptr));
            if is_same { Err(why) } else { look(&now) }
        })
    }

    fn packs(&self) -> io::Result<Arc<Vec<Arc<ListedPack>>>> {
        let mut packs = self.0.packs.lock();
        if let Some(known) = &*packs {
            return Ok(Arc::clone(known));
        }
        let listed = Arc::new(self.list(&[])?);
        *packs = Some(Arc::clone(&listed));
        Ok(listed)
    }

    /// Lists the packs again, now or at the next read.
    pub(crate) fn refresh(&self) {
        let _ = self.list_again();
    }

    /// Lists the packs again.
    fn list_again(&self) -> io::Result<Arc<Vec<Arc<ListedPack>>>> {
        let mut packs = self.0.packs.lock();
        let before = packs.take().unwrap_or_default();
        let now = Arc::new(self.list(&before)?);
        *packs = Some(Arc::clone(&now));
        Ok(now)
    }

    /// Closes all packs until the next read.
    pub(crate) fn close(&self) {
        *self.0.packs.lock() = None;
    }

    /// Lists the packs without opening them. Reuses those that are already open.
    fn list(&self, before: &[Arc<ListedPack>]) -> io::Result<Vec<Arc<ListedPack>>> {
        let dir = self.0.objects.join("pack");
        if !is_dir(&self.0.objects)? || !is_dir(&dir)? {
            return Ok(Vec::new());
        }
        let mut packs: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|kind| kind == "idx") {
                let changed = entry.metadata().and_then(|found| found.modified());
                let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
                packs.push((changed, entry.path().with_extension("pack")));
            }
        }
        packs.sort_unstable_by(|a, b| b.cmp(a));
        // The name of a pack is a hash of its content.
        let known = |path: &Path| before.iter().find(|listed| listed.path == path);
        Ok(packs
            .into_iter()
            .map(|(_, path)| match known(&path) {
                Some(listed) => Arc::clone(listed),
                None => Arc::new(ListedPack {
                    path,
                    pack: OnceLock::new(),
                }),
            })
            .collect())
    }

    pub(crate) fn unreadable(&self, kind: Kind, oid: Oid, why: Unreadable) -> Error {
        let objects = &self.0.objects;
        let dir = objects.parent().unwrap_or(objects).display();
        let what = match why {
            Unreadable::Missing => format!("is missing from the checkpoint store {dir}"),
            Unreadable::Damaged => format!("is damaged in the checkpoint store {dir}"),
            Unreadable::Unavailable => {
                return Error::Unavailable(format!(
                    "cannot read the {kind} {oid}: a file of the checkpoint store {dir} that may have it cannot be opened; try again, and check the permissions of the store"
                ));
            }
            Unreadable::TooLarge(_) => format!("of the checkpoint store {dir} {}", why.describe()),
        };
        Error::damaged(format!(
            "the {kind} {oid} {what}; verify the checkpoints to see which are intact"
        ))
    }
}

impl ListedPack {
    /// Returns the pack, or `None` if it is damaged. Tries again after an error.
    fn open(&self, largest: u64) -> Result<Option<&Pack>, Error> {
        if let Some(opened) = self.pack.get() {
            return Ok(opened.as_ref());
        }
        let opened = match Pack::open(&self.path, largest) {
            Ok(pack) => Some(pack),
            Err(Error::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(self.pack.get_or_init(|| opened).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{
            object::{Mode, name_of},
            pack::writer::PackWriter,
        },
        testing::{Scratch, git, noise},
    };

    #[test]
    fn an_intact_copy_replaces_a_damaged_one() {
        let scratch = Scratch::new();
        let content = noise(1, 5000);
        let oid = name_of(Kind::Blob, &content);
        scratch.checkpoint(1, &[]);
        let repository = scratch.repository();
        for other in [&b"first"[..], b"second"] {
            let pack = PackWriter::new(repository.dir()).unwrap();
            pack.put(Kind::Blob, oid, &content).unwrap();
            pack.put(Kind::Blob, name_of(Kind::Blob, other), other)
                .unwrap();
            drop(pack.finish().unwrap());
        }
        let mut packs = repository.packs().unwrap();
        packs.retain(|pack| pack.has(oid));
        assert_eq!(packs.len(), 2);
        let place = |pack: Pack| {
            let at = pack.entry_range(oid).unwrap().start as usize + 100;
            (pack.path().to_owned(), at)
        };
        // Windows does not write to a file that is mapped.
        let places: Vec<_> = packs.into_iter().map(place).collect();
        drop(repository);
        for (path, at) in places {
            let mut bytes = fs::read(&path).unwrap();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let damaged = Odb::new(&scratch.dir(), u64::MAX);
            assert!(damaged.blob(oid).unwrap() == content);
            drop(damaged);
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
        }
    }

    #[test]
    fn an_object_is_found_although_another_thread_listed_its_pack() {
        let scratch = Scratch::new();
        scratch.checkpoint(1, &[]);
        let repository = scratch.repository();
        let odb = repository.odb();
        let oid = name_of(Kind::Blob, b"late");
        let found = odb.find(
            |pack| pack.has(oid).then_some(Ok(())),
            // Between the search of the packs and the next list of them.
            |_| {
                let pack = PackWriter::new(repository.dir()).unwrap();
                pack.put(Kind::Blob, oid, b"late").unwrap();
                drop(pack.finish().unwrap());
                odb.refresh();
                Err(Unreadable::Missing)
            },
        );
        assert_eq!(found, Ok(()));
    }

    #[test]
    fn a_repacked_object_is_found_again() {
        let scratch = Scratch::new();
        scratch.checkpoint(1, &[(b"f", b"1", Mode::File)]);
        scratch.checkpoint(2, &[(b"f", b"2", Mode::File)]);
        let odb = scratch.repository().odb();
        let oid = name_of(Kind::Blob, b"1");
        assert!(odb.is_packed(oid));
        let absent = name_of(Kind::Blob, b"absent");
        assert_eq!(odb.read_any(absent), Err(Unreadable::Missing));
        git(&scratch.dir(), &["repack", "-adfq"]);
        let last = name_of(Kind::Blob, b"2");
        assert_eq!(odb.blob(last).unwrap(), b"2");
        assert_eq!(odb.blob(oid).unwrap(), b"1");
    }

    #[test]
    fn alternates_and_links_are_not_followed() {
        let other = Scratch::new();
        let id = other.checkpoint(1, &[(b"f", b"1", Mode::File)]);
        let theirs = other.dir().join("objects");
        let scratch = Scratch::new();
        scratch.checkpoint(2, &[]);
        let ours = scratch.dir().join("objects");
        let read = || Odb::new(&scratch.dir(), u64::MAX).read_any(id);
        let alternates = format!("{}\n", theirs.display());
        fs::write(ours.join("info/alternates"), alternates).unwrap();
        assert_eq!(read(), Err(Unreadable::Missing));
        #[cfg(unix)]
        for name in ["objects/pack", "objects"] {
            let dir = scratch.dir().join(name);
            fs::rename(&dir, scratch.folder.path().join("aside")).unwrap();
            std::os::unix::fs::symlink(other.dir().join(name), &dir).unwrap();
            assert_eq!(read(), Err(Unreadable::Missing));
            fs::remove_file(&dir).unwrap();
            fs::rename(scratch.folder.path().join("aside"), &dir).unwrap();
        }
        assert!(Odb::new(&other.dir(), u64::MAX).read_any(id).is_ok());
    }
}
