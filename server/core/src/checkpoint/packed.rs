//! Objects read from packs by the index, each inflated at once: several times
//! as fast as libgit2, which inflates with zlib, piece by piece.
//!
//! What is rare is left to libgit2, see [`super::reader`]: objects in files of
//! their own, differences to other objects (`git gc`), packs that came since the
//! list was made. `None` here means: ask there.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use libdeflater::Decompressor;

use super::{
    index::Index,
    object::{Kind, Oid},
    pack,
};

/// Deflate makes nothing smaller than this part of it.
const MAX_RATIO: u64 = 1032;

/// The packs of a store when they were listed. Shared by the threads of one piece
/// of work.
#[derive(Debug)]
pub(super) struct Packed {
    /// The newest first.
    packs: Vec<Arc<Listed>>,
    /// Where the last object was found: the next one is likely there too.
    last: AtomicUsize,
}

#[derive(Debug)]
struct Listed {
    path: PathBuf,
    index: OnceLock<Option<Index>>,
}

impl Listed {
    /// Read when it is first asked for; `None` when it can't be.
    fn index(&self) -> Option<&Index> {
        let read = || {
            let mut file = File::open(&self.path).ok()?;
            let length = file.metadata().ok()?.len();
            let index = Index::read(&self.path.with_extension("idx"), length).ok()?;
            // Of a pack that was cut or written over, nothing is believed.
            let mut checksum = [0; 20];
            file.seek(SeekFrom::End(-20)).ok()?;
            file.read_exact(&mut checksum).ok()?;
            (checksum == *index.pack_checksum()?).then_some(index)
        };
        self.index.get_or_init(read).as_ref()
    }
}

/// The list of packs, made when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct PackList(Mutex<Option<Arc<Packed>>>);

impl PackList {
    pub(super) fn get(&self, dir: &Path) -> Arc<Packed> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(list.get_or_insert_with(|| Arc::new(Packed::list(dir, None))))
    }

    /// Packs came: who asks from now on sees them.
    pub(super) fn refresh(&self, dir: &Path) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = list.take() {
            *list = Some(Arc::new(Packed::list(dir, Some(&before))));
        }
    }
}

/// So many packs a thread has open.
const OPEN: usize = 8;

/// The packs a thread reads from, and what it reads with.
pub(super) struct Open {
    files: Vec<(usize, File)>,
    raw: Vec<u8>,
    inflate: Decompressor,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            raw: Vec::new(),
            inflate: Decompressor::new(),
        }
    }
}

impl Open {
    /// The object that was read last.
    fn inflated(&mut self, kind: Kind) -> Option<Vec<u8>> {
        let (length, header) = pack::header(&self.raw, kind)?;
        let deflated = &self.raw[header..];
        if length > (deflated.len() as u64).saturating_mul(MAX_RATIO) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let inflated = self.inflate.zlib_decompress(deflated, &mut bytes);
        (inflated.ok()? == bytes.len()).then_some(bytes)
    }
}

impl Packed {
    /// Lists the packs in a folder; opens none, and keeps what is known of those
    /// that were there before.
    pub(super) fn list(dir: &Path, before: Option<&Self>) -> Self {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let indexes = entries.map(|entry| entry.path());
        let indexes = indexes.filter(|path| path.extension().is_some_and(|kind| kind == "idx"));
        let mut packs: Vec<(SystemTime, PathBuf)> = indexes
            .map(|path| {
                let changed = fs::metadata(&path).and_then(|found| found.modified());
                (changed.unwrap_or(SystemTime::UNIX_EPOCH), path)
            })
            .collect();
        packs.sort_unstable_by(|a, b| b.cmp(a));
        let known: HashMap<&Path, &Arc<Listed>> = before
            .into_iter()
            .flat_map(|before| &before.packs)
            .map(|listed| (&*listed.path, listed))
            .collect();
        let listed = |(_, index): (SystemTime, PathBuf)| {
            let path = index.with_extension("pack");
            // What is in a pack is in its name.
            known.get(&*path).map_or_else(
                || {
                    let index = OnceLock::new();
                    Arc::new(Listed { path, index })
                },
                |listed| Arc::clone(listed),
            )
        };
        Self {
            packs: packs.into_iter().map(listed).collect(),
            last: AtomicUsize::new(0),
        }
    }

    /// The bytes of an object, which are not compared with its name yet.
    pub(super) fn read(&self, open: &mut Open, kind: Kind, oid: Oid) -> Option<Vec<u8>> {
        self.raw(open, oid)?;
        open.inflated(kind)
    }

    /// As [`Self::is_as_written`], `None` for no; gives the bytes of an object that has
    /// no more than `most`, instead, which are not compared with its name yet.
    pub(super) fn check_and_keep(
        &self,
        open: &mut Open,
        (kind, oid): (Kind, Oid),
        most: usize,
    ) -> Option<Option<Vec<u8>>> {
        let crc = self.raw(open, oid)?;
        let (length, _) = pack::header(&open.raw, kind)?;
        if length <= most as u64 {
            return open.inflated(kind).map(Some);
        }
        (crc32fast::hash(&open.raw) == crc).then_some(None)
    }

    /// Does it stand in its pack byte by byte as it was written, by the checksum
    /// in the index?
    pub(super) fn is_as_written(&self, open: &mut Open, kind: Kind, oid: Oid) -> bool {
        let crc = self.raw(open, oid);
        crc.is_some_and(|crc| crc32fast::hash(&open.raw) == crc)
            && pack::header(&open.raw, kind).is_some()
    }

    /// Is there such an object in any of them?
    pub(super) fn has(&self, oid: Oid) -> bool {
        let mut indexes = self.packs.iter().filter_map(|listed| listed.index());
        indexes.any(|index| index.has(oid))
    }

    /// Reads an object as it stands in a pack, and gives its checksum.
    fn raw(&self, open: &mut Open, oid: Oid) -> Option<u32> {
        let last = self.last.load(Ordering::Relaxed);
        let order = std::iter::once(last).chain((0..self.packs.len()).filter(|at| *at != last));
        for at in order {
            let Some(listed) = self.packs.get(at) else {
                continue;
            };
            let found = listed.index().and_then(|index| index.find_with_crc(oid));
            let Some((range, crc)) = found else {
                continue;
            };
            self.last.store(at, Ordering::Relaxed);
            let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
            open.raw.resize(length, 0);
            if !open.files.iter().any(|(opened, _)| *opened == at) {
                open.files.truncate(OPEN - 1);
                open.files.insert(0, (at, File::open(&listed.path).ok()?));
            }
            let (_, file) = open.files.iter().find(|(opened, _)| *opened == at)?;
            read_at(file, &mut open.raw, range.start).ok()?;
            return Some(crc);
        }
        None
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{
        object::{Mode, name_of},
        packs,
        testing::{Scratch, git, noise},
    };

    #[test]
    fn objects_are_read_as_libgit2_reads_them_and_damage_is_seen() {
        let scratch = Scratch::new();
        let contents = [
            Vec::new(),
            b"text\n".repeat(40),
            noise(1, 15),
            noise(2, 300_000),
            vec![0; 5_000_000],
        ];
        for (at, content) in contents.iter().enumerate() {
            let file = (&b"file"[..], &content[..], Mode::File);
            scratch.checkpoint(at as u64 + 1, &[file]);
        }
        let dir = scratch.repository().pack_dir();
        let packed = Packed::list(&dir, None);
        let mut open = Open::default();
        for content in &contents {
            let oid = name_of(Kind::Blob, content);
            assert_eq!(
                packed.read(&mut open, Kind::Blob, oid).as_ref(),
                Some(content)
            );
            assert!(packed.is_as_written(&mut open, Kind::Blob, oid));
            let mut keep = |kind, most| packed.check_and_keep(&mut open, (kind, oid), most);
            let length = content.len();
            assert_eq!(keep(Kind::Blob, length), Some(Some(content.clone())));
            if let Some(less) = length.checked_sub(1) {
                assert_eq!(keep(Kind::Blob, less), Some(None));
            }
            assert_eq!(keep(Kind::Tree, length), None);
            assert_eq!(packed.read(&mut open, Kind::Tree, oid), None);
            assert!(!packed.is_as_written(&mut open, Kind::Tree, oid));
        }
        let absent = name_of(Kind::Blob, b"absent");
        assert_eq!(packed.read(&mut open, Kind::Blob, absent), None);
        assert!(!packed.is_as_written(&mut open, Kind::Blob, absent));

        let oid = name_of(Kind::Blob, &contents[3]);
        let packs = packs::all(&scratch.repository()).unwrap();
        let (pack, range) = packs
            .iter()
            .find_map(|pack| Some((pack, pack.index.find(oid)?)))
            .unwrap();
        let mut bytes = fs::read(&pack.path).unwrap();
        bytes[range.start as usize + 1000] ^= 1;
        fs::write(&pack.path, &bytes).unwrap();
        let damaged = Packed::list(&dir, None);
        assert!(!damaged.is_as_written(&mut Open::default(), Kind::Blob, oid));
        let kept = damaged.check_and_keep(&mut Open::default(), (Kind::Blob, oid), 1000);
        assert_eq!(kept, None);
        // Of the same length, and written over: it has nothing.
        bytes.fill(0);
        fs::write(&pack.path, &bytes).unwrap();
        assert!(packed.has(oid));
        assert!(!Packed::list(&dir, None).has(oid));
    }

    #[test]
    fn differences_are_left_to_libgit2() {
        let scratch = Scratch::new();
        let base = noise(1, 100_000);
        let mut other = base.clone();
        other[50_000] ^= 1;
        for (at, content) in [&base, &other].into_iter().enumerate() {
            let file = (&b"file"[..], &content[..], Mode::File);
            scratch.checkpoint(at as u64 + 1, &[file]);
        }
        git(&scratch.dir(), &["repack", "-adfq"]);
        let packed = Packed::list(&scratch.repository().pack_dir(), None);
        let reader = scratch.repository().reader();
        let mut whole = 0;
        for content in [base, other] {
            let oid = name_of(Kind::Blob, &content);
            whole += usize::from(packed.read(&mut Open::default(), Kind::Blob, oid).is_some());
            assert_eq!(reader.blob(oid).unwrap(), content);
            reader.check(Kind::Blob, oid).unwrap();
        }
        assert_eq!(whole, 1, "git made one a difference to the other");
    }
}
