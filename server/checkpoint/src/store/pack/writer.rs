//! Writes the objects of one checkpoint as a pack that git can read.
//!
//! Each object is compressed separately and appended to a temporary file among the packs.
//! [`PackWriter::finish`] renames it into place, the index last: git and the server find a pack by
//! its index.

use std::{
    cell::RefCell,
    collections::HashSet,
    fs,
    io::{self, ErrorKind as Io, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use gix_pack::data::entry::Header;
use libdeflater::{CompressionLvl, Compressor};
use parking_lot::Mutex;
use sha1::{Digest, Sha1};
use sightline_base::{
    storage::atomic_file::{failed, read_text, sync_dir},
    thread_pool::join,
};
use tempfile::NamedTempFile;

use super::index_writer::{self, PackIndexEntry};
use crate::{
    error::Error,
    store::object::{Commit, Kind, Oid, name_of},
};

/// Prefix of temporary files. git also removes old files that start with `tmp_`.
const UNFINISHED: &str = "tmp_sightline_";
/// Size of the write buffer, in bytes. A smaller pack takes a single write.
const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// Size from which a sample decides whether an object is compressed, in bytes.
const PROBE_THRESHOLD: usize = 16 * 1024;
/// Size of the sample, in bytes.
const PROBE_BYTES: usize = 4096;
/// Maximum capacity of the thread-local buffer between objects, in bytes.
const MAX_RETAINED_BYTES: usize = 4 << 20;

/// Content of the server's `.keep` files. They make git keep a pack that no ref reaches yet.
pub(crate) const KEEP: &[u8] = b"sightline is about to name what is in this pack\n";

/// Keeps git from removing a new pack. Dropped once refs reach its objects.
#[derive(Debug)]
#[must_use]
pub(crate) struct KeepGuard {
    pub(crate) path: PathBuf,
    /// Whether the `.keep` file was created by this guard.
    is_ours: bool,
}

impl Drop for KeepGuard {
    fn drop(&mut self) {
        if self.is_ours {
            // The next writer removes a file that stays.
            let _ = fs::remove_file(self.path.with_extension("keep"));
        }
    }
}

/// Creates the `.keep` file of a pack, unless it exists.
fn keep(path: &Path) -> io::Result<KeepGuard> {
    let mut options = sightline_base::storage::atomic_file::private_options();
    options.write(true).create_new(true);
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
        is_ours,
    })
}

/// Removes the temporary files of writers.
pub(crate) fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes the `.keep` files of killed writers. The caller holds the lock.
pub(crate) fn remove_stale_keeps(pack_dir: &Path) {
    for entry in fs::read_dir(pack_dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_keep = path.extension().is_some_and(|kind| kind == "keep");
        // git's own files are empty or name their writer. One of ours may be truncated.
        let is_ours = || {
            let is_short = entry.metadata().is_ok_and(|found| found.len() <= 64);
            let is_start = |text: String| !text.is_empty() && KEEP.starts_with(text.as_bytes());
            is_short && read_text(&path).is_ok_and(is_start)
        };
        if is_keep && is_ours() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Collects objects from several threads into one pack. Removes its files on drop unless
/// [`PackWriter::finish`] is called.
#[derive(Debug)]
pub(crate) struct PackWriter {
    /// Folder of the packs.
    dir: PathBuf,
    /// Folder of temporary files.
    folder: PathBuf,
    names: Mutex<HashSet<Oid>>,
    pack: Mutex<PackBuffer>,
}

#[derive(Debug)]
struct PackBuffer {
    /// Created by the first write.
    file: Option<NamedTempFile>,
    buffer: Vec<u8>,
    written: u64,
    entries: Vec<PackIndexEntry>,
    /// Whether an object could not be written, so that the pack is incomplete.
    failed: bool,
    /// Hash of what was written, if the number of objects was known before.
    hash: Option<Sha1>,
}

/// A complete pack and index in temporary files.
struct FinishedPack {
    pack: NamedTempFile,
    index: NamedTempFile,
    name: Oid,
}

impl FinishedPack {
    /// Renames both into place.
    fn rename_into_place(self, dir: &Path) -> io::Result<KeepGuard> {
        let path = dir.join(format!("pack-{}.pack", self.name));
        // First, because git removes unreachable objects as soon as it sees the pack.
        let kept = keep(&path)?;
        self.pack.persist(&path).map_err(|error| error.error)?;
        let index = path.with_extension("idx");
        self.index.persist(index).map_err(|error| error.error)?;
        Ok(kept)
    }
}

impl PackWriter {
    /// Starts a pack in the repository `dir`. Creates no file yet.
    ///
    /// # Errors
    /// `storage` if the store has no pack folder.
    pub(crate) fn new(dir: &Path) -> Result<Self, Error> {
        let dir = dir.join("objects/pack");
        let place = fs::symlink_metadata(&dir);
        let place = place.map_err(|error| failed("write a pack in", &dir, error))?;
        if !place.is_dir() {
            return Err(failed("write a pack in", &dir, Io::NotADirectory.into()).into());
        }
        Ok(Self::with_header(dir.clone(), dir, (0, None)))
    }

    /// Starts a pack that will have `count` objects, so that finishing it does not read it again. Its
    /// temporary files are in `folder`, where the next open of the store does not remove them.
    ///
    /// # Errors
    /// `storage` if the store has no pack folder.
    pub(crate) fn with_count(dir: &Path, folder: &Path, count: u32) -> Result<Self, Error> {
        let writer = Self::new(dir)?;
        let counted = (count, Some(Sha1::new()));
        Ok(Self::with_header(writer.dir, folder.to_path_buf(), counted))
    }

    /// `count` is filled in at the end without a hash.
    fn with_header(dir: PathBuf, folder: PathBuf, (count, hash): (u32, Option<Sha1>)) -> Self {
        let mut buffer = b"PACK\0\0\0\x02".to_vec();
        buffer.extend_from_slice(&count.to_be_bytes());
        Self {
            dir,
            folder,
            names: Mutex::default(),
            pack: Mutex::new(PackBuffer {
                file: None,
                buffer,
                written: 0,
                entries: Vec::new(),
                failed: false,
                hash,
            }),
        }
    }

    /// Flushes what was written to disk, so that finishing the pack flushes little. Returns whether the
    /// file is still there.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) fn flush(&self) -> Result<bool, Error> {
        let pack = self.pack.lock();
        let Some(file) = &pack.file else {
            return Ok(true);
        };
        let flushed = file.as_file().sync_data();
        flushed.map_err(|error| self.failed(error))?;
        Ok(file.path().exists())
    }

    /// Adds an object, and compresses it outside the lock. An object that this pack already has is
    /// ignored. The caller checks whether the store already has it.
    ///
    /// # Errors
    /// `storage` if it cannot be written; the pack cannot be finished then.
    pub(crate) fn put(&self, kind: Kind, oid: Oid, bytes: &[u8]) -> Result<(), Error> {
        if !self.names.lock().insert(oid) {
            return Ok(());
        }
        COMPRESSION.with_borrow_mut(|space| {
            space.fill(kind, bytes);
            let appended = self.append(oid, &space.entry);
            space.entry.clear();
            space.entry.shrink_to(MAX_RETAINED_BYTES);
            appended
        })
    }

    /// Adds a commit, and returns its id.
    pub(crate) fn put_commit(&self, commit: &Commit) -> Result<Oid, Error> {
        let bytes = commit.encode();
        let id = name_of(Kind::Commit, &bytes);
        self.put(Kind::Commit, id, &bytes)?;
        Ok(id)
    }

    /// Returns whether this pack has the object.
    pub(crate) fn has(&self, oid: Oid) -> bool {
        self.names.lock().contains(&oid)
    }

    fn append(&self, oid: Oid, entry: &[u8]) -> Result<(), Error> {
        let crc = crc32fast::hash(entry);
        let mut pack = self.pack.lock();
        let appended = pack.append(oid, (entry, crc), &self.folder);
        if appended.is_err() {
            pack.failed = true;
        }
        appended.map_err(|error| self.failed(error))
    }

    /// Flushes the pack and renames it into place. The caller holds the guard until refs reach the
    /// objects. Returns `None` if the pack is empty.
    ///
    /// # Errors
    /// `storage`; no pack is added then.
    pub(crate) fn finish(self) -> Result<Option<KeepGuard>, Error> {
        let dir = self.dir.clone();
        let kept = self.finish_with(|| Ok(()))?;
        if kept.is_some() {
            sync_dir(&dir)?;
        }
        Ok(kept)
    }

    /// Like [`Self::finish`], but the caller flushes the pack folder. `flush` runs in parallel with
    /// flushing the pack; if it fails, no pack is added.
    pub(crate) fn finish_with(
        self,
        flush: impl Fn() -> Result<(), Error> + Sync,
    ) -> Result<Option<KeepGuard>, Error> {
        let dir = self.dir;
        let pack = self.pack.into_inner();
        if pack.failed {
            return Err(Error::damaged(format!(
                "cannot write a pack in {}: an object could not be written; check the free space and try again",
                dir.display()
            )));
        }
        if pack.entries.is_empty() {
            return flush().map(|()| None);
        }
        let to_error = |error: io::Error| failed("write a pack in", &dir, error);
        let finished = pack.seal(&self.folder).map_err(to_error)?;
        // Three flushes in parallel.
        let (flushed, (index_flushed, pack_flushed)) = join(flush, || {
            let index = || finished.index.as_file().sync_all();
            join(index, || finished.pack.as_file().sync_all())
        });
        flushed?;
        pack_flushed.and(index_flushed).map_err(to_error)?;
        Ok(finished
            .rename_into_place(&dir)
            .map(Some)
            .map_err(to_error)?)
    }

    fn failed(&self, error: io::Error) -> Error {
        failed("write a pack in", &self.dir, error).into()
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
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes the rest of the pack and the index. Nothing is flushed or renamed yet.
    fn seal(mut self, dir: &Path) -> io::Result<FinishedPack> {
        let count = u32::try_from(self.entries.len())
            .map_err(|_| io::Error::other("more than 4294967295 objects"))?
            .to_be_bytes();
        let checksum: [u8; 20] = if self.file.is_none() {
            self.buffer[8..12].copy_from_slice(&count);
            Sha1::digest(&self.buffer).into()
        } else {
            self.flush_buffer(dir)?;
            match self.hash.take() {
                Some(hash) => hash.finalize().into(),
                None => self.count_and_hash(count)?,
            }
        };
        self.buffer.extend_from_slice(&checksum);
        self.flush_buffer(dir)?;
        let Some(pack) = self.file.take() else {
            return Err(io::Error::other("the pack has no file"));
        };
        let mut index = unfinished(dir)?;
        index
            .as_file_mut()
            .write_all(&index_writer::encode(&mut self.entries, &checksum))?;
        Ok(FinishedPack {
            pack,
            index,
            name: Oid(checksum),
        })
    }

    /// Writes the number of objects into the header, and returns the SHA-1 of the pack.
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
        // Flushes while hashing. A failed flush must be checked here: the kernel reports it only
        // once.
        let (flushed, hash) = join(|| file.sync_data(), hash);
        flushed?;
        hash
    }
}

fn unfinished(dir: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(dir)
}

thread_local! {
    static COMPRESSION: RefCell<Compression> = RefCell::new(Compression {
        fast: Compressor::new(level(1)),
        raw: Compressor::new(level(0)),
        entry: Vec::new(),
        probe: vec![0; PROBE_BYTES],
    });
}

/// 0 stores, 1 is the fastest level that compresses.
fn level(level: i32) -> CompressionLvl {
    CompressionLvl::new(level).unwrap_or_default()
}

/// Compressors and buffers of a thread.
struct Compression {
    fast: Compressor,
    raw: Compressor,
    entry: Vec<u8>,
    probe: Vec<u8>,
}

impl Compression {
    /// Encodes an object as a pack entry in `entry`.
    fn fill(&mut self, kind: Kind, bytes: &[u8]) {
        self.entry.clear();
        // Writing to memory cannot fail.
        let _ = header(kind).write_to(bytes.len() as u64, &mut self.entry);
        let deflate = may_be_compressible(kind, bytes) && self.is_compressible(bytes);
        let compressor = if deflate {
            &mut self.fast
        } else {
            &mut self.raw
        };
        let header = self.entry.len();
        let bound = compressor.zlib_compress_bound(bytes.len());
        self.entry.resize(header + bound, 0);
        // The buffer has the size of the bound, so this cannot fail.
        let length = compressor
            .zlib_compress(bytes, &mut self.entry[header..])
            .unwrap_or(0);
        self.entry.truncate(header + length);
    }

    /// Compresses a sample from the middle, because compressed formats often begin with an
    /// uncompressed header.
    fn is_compressible(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() < PROBE_THRESHOLD {
            return true;
        }
        let start = (bytes.len() - PROBE_BYTES) / 2;
        let piece = &bytes[start..start + PROBE_BYTES];
        // Fails if the sample does not shrink by a sixteenth.
        let room = &mut self.probe[..PROBE_BYTES - PROBE_BYTES / 16];
        self.fast.zlib_compress(piece, room).is_ok()
    }
}

/// Small trees consist mostly of hashes, which do not compress.
fn may_be_compressible(kind: Kind, bytes: &[u8]) -> bool {
    kind != Kind::Tree || bytes.len() >= PROBE_THRESHOLD
}

/// Header of a pack entry.
fn header(kind: Kind) -> Header {
    match kind {
        Kind::Commit => Header::Commit,
        Kind::Tree => Header::Tree,
        Kind::Blob => Header::Blob,
        Kind::Tag => Header::Tag,
    }
}
