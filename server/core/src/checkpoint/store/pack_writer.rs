//! Objects of one checkpoint, written as one pack that git reads.
//!
//! The objects go, each deflated by itself, into a file with an unfinished
//! name in the place of packs; [`PackWriter::finish`] makes it a pack. Its index
//! gets its name last: git and we see a pack by its index.

use std::{
    cell::RefCell,
    collections::HashSet,
    fs,
    io::{self, ErrorKind as Io, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use libdeflater::{CompressionLvl, Compressor};
use sha1::{Digest, Sha1};
use tempfile::NamedTempFile;

use super::{
    object::{Kind, Oid},
    pack_index::{self, PackIndexEntry},
    repository::Repository,
};
use crate::{
    error::Error,
    storage::files::{failed, sync_dir},
    threads::both,
};

/// How unfinished files of ours begin: `tmp_` is swept by git as well.
pub(crate) const UNFINISHED: &str = "tmp_sightline_";
/// So many bytes are gathered before they are written. A pack that stays below
/// costs one write.
const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// What is larger than this is tried before it is compressed as a whole.
const PROBE_THRESHOLD: usize = 16 * 1024;
/// So much of it is tried.
const PROBE_BYTES: usize = 4096;
/// So many bytes of contents a writer in a hurry leaves as they are: as much as is
/// soon written, and no loss of room that lasts ([`super::uncompressed_packs`]).
const MAX_STORED_BYTES: usize = 16 << 20;
/// Thread-local space is given back beyond this.
const MAX_RETAINED_BYTES: usize = 4 << 20;

/// What a `.keep` of ours holds. It tells git to leave a pack alone that no
/// name leads to yet.
pub(crate) const KEEP: &[u8] = b"sightline is about to name what is in this pack\n";

/// A pack that is whole. git leaves it alone until this is dropped, which is to
/// be when names lead to its objects.
#[derive(Debug)]
#[must_use]
pub(crate) struct KeepGuard {
    pub(crate) path: PathBuf,
    /// So many bytes of contents in it are not deflated.
    pub(crate) stored_bytes: usize,
    /// Someone else's stays.
    is_ours: bool,
}

impl Drop for KeepGuard {
    fn drop(&mut self) {
        if self.is_ours {
            // One that stays is swept by the next who holds the lock.
            let _ = fs::remove_file(self.path.with_extension("keep"));
        }
    }
}

/// Tells git to leave a pack alone; one that is told so already stays so.
fn keep(path: &Path) -> io::Result<KeepGuard> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let is_ours = match options.open(path.with_extension("keep")) {
        Ok(mut file) => {
            file.write_all(KEEP)?;
            true
        }
        Err(error) if error.kind() == Io::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    Ok(KeepGuard {
        path: path.to_path_buf(),
        stored_bytes: 0,
        is_ours,
    })
}

/// Collects objects from several threads into one unfinished pack; dropped
/// without [`PackWriter::finish`], nothing remains.
pub(crate) struct PackWriter<'a> {
    repository: &'a Repository,
    names: Mutex<HashSet<Oid>>,
    pack: Mutex<PackBuffer>,
    /// Is somebody waiting?
    is_uncompressed: bool,
    /// Bytes that may still go in without being deflated.
    stored_bytes: AtomicUsize,
}

struct PackBuffer {
    /// Made when the first bytes are written.
    file: Option<NamedTempFile>,
    buffer: Vec<u8>,
    written: u64,
    entries: Vec<PackIndexEntry>,
    /// An object is missing: this must not become a pack.
    failed: bool,
}

/// A pack and its index, written in full, without their names.
struct FinishedPack {
    pack: NamedTempFile,
    index: NamedTempFile,
    name: Oid,
}

impl FinishedPack {
    /// Gives them their names.
    fn rename_into_place(self, dir: &Path) -> io::Result<KeepGuard> {
        let path = dir.join(format!("pack-{}.pack", self.name));
        // First this: git takes out what nothing leads to once it sees it.
        let kept = keep(&path)?;
        self.pack.persist(&path).map_err(|error| error.error)?;
        let index = path.with_extension("idx");
        self.index.persist(index).map_err(|error| error.error)?;
        Ok(kept)
    }
}

impl<'a> PackWriter<'a> {
    /// Begins a pack. Creates nothing yet.
    ///
    /// # Errors
    /// `storage` when the store has no place for packs.
    pub(crate) fn new(repository: &'a Repository) -> Result<Self, Error> {
        let dir = repository.pack_dir();
        let place = fs::symlink_metadata(&dir);
        let place = place.map_err(|error| failed("store in", &dir, &error))?;
        if !place.is_dir() {
            return Err(failed("store in", &dir, &Io::NotADirectory.into()));
        }
        let mut buffer = b"PACK\0\0\0\x02".to_vec();
        // The number of objects, known in the end.
        buffer.extend_from_slice(&[0; 4]);
        Ok(Self {
            repository,
            names: Mutex::default(),
            is_uncompressed: false,
            stored_bytes: AtomicUsize::new(0),
            pack: Mutex::new(PackBuffer {
                file: None,
                buffer,
                written: 0,
                entries: Vec::new(),
                failed: false,
            }),
        })
    }

    /// Somebody waits for what comes after this pack.
    pub(crate) fn store_uncompressed(self) -> Self {
        Self {
            is_uncompressed: true,
            stored_bytes: AtomicUsize::new(MAX_STORED_BYTES),
            ..self
        }
    }

    /// Takes an object whose name is known. Compresses outside the lock.
    /// An object that is in this pack already costs nothing; whether it is in
    /// the store already is the caller's to know.
    ///
    /// # Errors
    /// `storage` when it can't be written; the pack can't be finished then.
    pub(crate) fn put(&self, kind: Kind, oid: Oid, bytes: &[u8]) -> Result<(), Error> {
        if !lock(&self.names).insert(oid) {
            return Ok(());
        }
        let take = |left: usize| left.checked_sub(bytes.len());
        let relaxed = Ordering::Relaxed;
        let leave = kind == Kind::Blob
            && self
                .stored_bytes
                .fetch_update(relaxed, relaxed, take)
                .is_ok();
        COMPRESSION.with_borrow_mut(|space| {
            space.fill(kind, bytes, !leave);
            let appended = self.append(oid, &space.entry);
            space.entry.clear();
            space.entry.shrink_to(MAX_RETAINED_BYTES);
            appended
        })
    }

    /// Takes an object as it stands in another pack, which is not a difference
    /// to another object.
    pub(crate) fn put_raw_entry(&self, oid: Oid, entry: &[u8]) -> Result<(), Error> {
        if !lock(&self.names).insert(oid) {
            return Ok(());
        }
        self.append(oid, entry)
    }

    /// Is it in this pack?
    pub(crate) fn has(&self, oid: Oid) -> bool {
        lock(&self.names).contains(&oid)
    }

    fn append(&self, oid: Oid, entry: &[u8]) -> Result<(), Error> {
        let crc = crc32fast::hash(entry);
        let mut pack = lock(&self.pack);
        let appended = pack.append(oid, (entry, crc), &self.dir());
        if appended.is_err() {
            pack.failed = true;
        }
        appended.map_err(|error| self.failed(&error))
    }

    /// Makes the pack durable and visible; hold what is given until names lead
    /// to its objects. Without objects it does nothing.
    ///
    /// # Errors
    /// `storage`; nothing is visible then.
    pub(crate) fn finish(self) -> Result<Option<KeepGuard>, Error> {
        let dir = self.dir();
        let kept = self.finish_with(|| Ok(()))?;
        if kept.is_some() {
            sync_dir(&dir)?;
        }
        Ok(kept)
    }

    /// As [`Self::finish`], but the folder of packs is the caller's to flush; what
    /// `flush` flushes goes to the disk with the pack, and the pack does not become
    /// visible when it fails.
    pub(crate) fn finish_with(
        self,
        flush: impl Fn() -> Result<(), Error> + Sync,
    ) -> Result<Option<KeepGuard>, Error> {
        let dir = self.dir();
        let left = self.stored_bytes.into_inner();
        let stored_bytes = if self.is_uncompressed {
            MAX_STORED_BYTES - left
        } else {
            0
        };
        let pack = self
            .pack
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if pack.failed {
            return Err(Error::storage(format!(
                "could not store in {}: an object could not be written; see to its free space and try again",
                dir.display()
            )));
        }
        if pack.entries.is_empty() {
            return flush().map(|()| None);
        }
        let to_error = |error: io::Error| failed("store in", self.repository.dir(), &error);
        let finished = pack.seal(&dir).map_err(to_error)?;
        // One wait for the disk instead of three.
        let (flushed, (index_flushed, pack_flushed)) = both(flush, || {
            let index = || finished.index.as_file().sync_all();
            both(index, || finished.pack.as_file().sync_all())
        });
        flushed?;
        pack_flushed.and(index_flushed).map_err(to_error)?;
        let mut kept = finished.rename_into_place(&dir).map_err(to_error)?;
        kept.stored_bytes = stored_bytes;
        Ok(Some(kept))
    }

    fn dir(&self) -> PathBuf {
        self.repository.pack_dir()
    }

    fn failed(&self, error: &io::Error) -> Error {
        failed("store in", self.repository.dir(), error)
    }
}

impl PackBuffer {
    fn append(&mut self, oid: Oid, (entry, crc): (&[u8], u32), dir: &Path) -> io::Result<()> {
        self.entries.push(PackIndexEntry {
            oid,
            crc,
            offset: self.written + self.buffer.len() as u64,
        });
        if entry.len() >= WRITE_BUFFER_BYTES {
            self.flush_buffer(dir)?;
            return self.write(entry, dir);
        }
        self.buffer.extend_from_slice(entry);
        if self.buffer.len() < WRITE_BUFFER_BYTES {
            return Ok(());
        }
        self.flush_buffer(dir)
    }

    fn flush_buffer(&mut self, dir: &Path) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer, dir);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    fn write(&mut self, bytes: &[u8], dir: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(unfinished(dir)?),
        };
        file.as_file_mut().write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes all that is left; nothing is flushed or visible yet.
    fn seal(mut self, dir: &Path) -> io::Result<FinishedPack> {
        let count = u32::try_from(self.entries.len())
            .map_err(|_| io::Error::other("over four thousand million objects"))?
            .to_be_bytes();
        let checksum: [u8; 20] = if self.file.is_none() {
            self.buffer[8..12].copy_from_slice(&count);
            Sha1::digest(&self.buffer).into()
        } else {
            self.flush_buffer(dir)?;
            self.count_and_hash(count)?
        };
        self.buffer.extend_from_slice(&checksum);
        self.flush_buffer(dir)?;
        let Some(pack) = self.file.take() else {
            return Err(io::Error::other("the pack has no file"));
        };
        let mut index = unfinished(dir)?;
        index
            .as_file_mut()
            .write_all(&pack_index::encode(&mut self.entries, &checksum))?;
        Ok(FinishedPack {
            pack,
            index,
            name: Oid(checksum),
        })
    }

    /// Puts the number of objects into what is written, and gives its SHA-1.
    fn count_and_hash(&mut self, count: [u8; 4]) -> io::Result<[u8; 20]> {
        let Some(file) = &self.file else {
            return Err(io::Error::other("the pack has no file"));
        };
        let file = file.as_file();
        let mut writer = file;
        writer.seek(SeekFrom::Start(8))?;
        writer.write_all(&count)?;
        writer.seek(SeekFrom::Start(0))?;
        let hash = || {
            let mut hash = Sha1::new();
            let mut piece = vec![0; WRITE_BUFFER_BYTES];
            let mut reader = file;
            loop {
                match reader.read(&mut piece) {
                    Ok(0) => return Ok(hash.finalize().into()),
                    Ok(count) => hash.update(&piece[..count]),
                    Err(error) if error.kind() == Io::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        };
        // What is written goes to the disk while it is hashed. That it did not get
        // there is told once only, not again when the checksum is in.
        let (flushed, hash) = both(|| file.sync_data(), hash);
        flushed?;
        hash
    }
}

fn unfinished(dir: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(dir)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static COMPRESSION: RefCell<Compression> = RefCell::new(Compression {
        fast: Compressor::new(level(1)),
        raw: Compressor::new(level(0)),
        entry: Vec::new(),
        probe: vec![0; PROBE_BYTES],
    });
}

/// 0 stores, 1 is the fastest that compresses.
fn level(level: i32) -> CompressionLvl {
    CompressionLvl::new(level).unwrap_or_default()
}

/// What a thread compresses with.
struct Compression {
    fast: Compressor,
    raw: Compressor,
    entry: Vec<u8>,
    probe: Vec<u8>,
}

impl Compression {
    /// Makes `entry` the object as it stands in a pack.
    fn fill(&mut self, kind: Kind, bytes: &[u8], deflate: bool) {
        self.entry.clear();
        push_header(&mut self.entry, kind, bytes.len() as u64);
        let deflate = deflate && may_be_compressible(kind, bytes) && self.is_compressible(bytes);
        let compressor = if deflate {
            &mut self.fast
        } else {
            &mut self.raw
        };
        let header = self.entry.len();
        let bound = compressor.zlib_compress_bound(bytes.len());
        self.entry.resize(header + bound, 0);
        // The bound is what it says: there is room.
        let length = compressor
            .zlib_compress(bytes, &mut self.entry[header..])
            .unwrap_or(0);
        self.entry.truncate(header + length);
    }

    /// Tries a piece from the middle: what is packed already often begins with
    /// a header that is not.
    fn is_compressible(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() < PROBE_THRESHOLD {
            return true;
        }
        let start = (bytes.len() - PROBE_BYTES) / 2;
        let piece = &bytes[start..start + PROBE_BYTES];
        // Without room for it, it did not get smaller.
        let room = &mut self.probe[..PROBE_BYTES - PROBE_BYTES / 16];
        self.fast.zlib_compress(piece, room).is_ok()
    }
}

/// A folder is mostly names of objects, which do not get smaller: deflating a
/// small one costs more than it saves.
fn may_be_compressible(kind: Kind, bytes: &[u8]) -> bool {
    kind != Kind::Tree || bytes.len() >= PROBE_THRESHOLD
}

/// What stands for a kind in a header.
fn type_code(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// The length an entry of that kind says its object has, and where its deflated
/// bytes begin; `None` for one of another kind, and for a difference.
pub(crate) fn header(entry: &[u8], kind: Kind) -> Option<(u64, usize)> {
    let (code_of_entry, length, at) = any_header(entry)?;
    (code_of_entry == type_code(kind)).then_some((length, at))
}

/// What stands for the kind in the header of an entry, the length it tells, and where
/// it ends.
pub(crate) fn any_header(entry: &[u8]) -> Option<(u8, u64, usize)> {
    let first = *entry.first()?;
    let (mut length, mut shift, mut at) = (u64::from(first & 15), 4, 1);
    let mut goes_on = first & 0x80 != 0;
    while goes_on {
        let byte = *entry.get(at)?;
        let bits = u64::from(byte & 0x7f);
        if shift > 57 {
            return None;
        }
        length |= bits << shift;
        (shift, at) = (shift + 7, at + 1);
        goes_on = byte & 0x80 != 0;
    }
    Some(((first >> 4) & 7, length, at))
}

/// The kind that a header has `type_code` for; `None` for a difference.
pub(crate) fn kind_of_code(wanted: u8) -> Option<Kind> {
    [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag]
        .into_iter()
        .find(|kind| type_code(*kind) == wanted)
}

/// Is it a content that was left as it is, for want of time or because it does not
/// get smaller?
pub(crate) fn is_stored(entry: &[u8]) -> bool {
    // Two bytes of zlib, then that of the first block: its kind is 0.
    let block = header(entry, Kind::Blob).and_then(|(_, begin)| entry.get(begin + 2));
    block.is_some_and(|block| block & 0b110 == 0)
}

/// Kind and length, seven bits a byte, the first one four.
fn push_header(entry: &mut Vec<u8>, kind: Kind, length: u64) {
    let mut rest = length >> 4;
    let mut byte = (type_code(kind) << 4) | (length & 15) as u8;
    while rest > 0 {
        entry.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    entry.push(byte);
}
