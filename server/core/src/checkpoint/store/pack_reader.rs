//! Reads objects from packs.
//!
//! Each object is inflated with libdeflate in one call, several times faster than libgit2's
//! streaming zlib. [`PackSet::object`] also resolves the deltas that `git gc` writes; the fast
//! paths only handle undeltified objects.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use libdeflater::Decompressor;

use super::{
    object::{Kind, Oid, name_of},
    object_reader::Unreadable,
    pack_index::Index,
    pack_writer,
};
use crate::storage::atomic_file::{is_dir, open_regular};

/// Maximum compression ratio of deflate.
pub(crate) const MAX_RATIO: u64 = 1032;
/// Maximum length of a delta chain. git writes at most 4095.
const MAX_DELTA_CHAIN: usize = 4096;
/// Type codes of deltas: with a base at an offset before it, and with the id of the base.
const OFFSET_DELTA: u8 = 6;
const REF_DELTA: u8 = 7;

/// The packs of a store at one time, shared by threads.
#[derive(Debug)]
pub(crate) struct PackSet {
    /// Newest first.
    packs: Vec<Arc<PackFile>>,
    /// Index of the pack that had the last object, searched first.
    last: AtomicUsize,
}

#[derive(Debug)]
struct PackFile {
    path: PathBuf,
    index: OnceLock<Option<Index>>,
}

impl PackFile {
    /// Returns the index of the pack, read on first use, or `None` if it cannot be read.
    fn index(&self) -> Option<&Index> {
        let read = || {
            let mut file = open_regular(&self.path).ok()?;
            let length = file.metadata().ok()?.len();
            let index = Index::read(&self.path.with_extension("idx"), length).ok()?;
            // A pack that was truncated or overwritten is not used.
            let mut checksum = [0; 20];
            file.seek(SeekFrom::End(-20)).ok()?;
            file.read_exact(&mut checksum).ok()?;
            (checksum == *index.pack_checksum()?).then_some(index)
        };
        self.index.get_or_init(read).as_ref()
    }
}

/// The current list of packs, read on first use.
#[derive(Debug, Default)]
pub(crate) struct PackList(Mutex<Option<Arc<PackSet>>>);

impl PackList {
    pub(crate) fn get(&self, dir: &Path) -> Arc<PackSet> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(list.get_or_insert_with(|| Arc::new(PackSet::list(dir, None))))
    }

    /// Lists the packs again, if they were listed before.
    pub(crate) fn refresh(&self, dir: &Path) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = list.take() {
            *list = Some(Arc::new(PackSet::list(dir, Some(&before))));
        }
    }
}

/// Maximum number of packs a thread keeps open.
const MAX_OPEN_PACKS: usize = 8;

/// Open packs and buffers of a thread.
pub(crate) struct PackHandles {
    files: Vec<(usize, File)>,
    raw: Vec<u8>,
    inflate: Decompressor,
    /// Maximum size of an object, in bytes.
    largest: u64,
}

impl Default for PackHandles {
    fn default() -> Self {
        Self::with_limit(u64::MAX)
    }
}

impl PackHandles {
    pub(crate) fn with_limit(largest: u64) -> Self {
        Self {
            files: Vec::new(),
            raw: Vec::new(),
            inflate: Decompressor::new(),
            largest,
        }
    }

    /// Inflates the entry in `raw`.
    fn inflated(&mut self, kind: Kind) -> Option<Vec<u8>> {
        let (length, header) = pack_writer::header(&self.raw, kind)?;
        self.inflate_from(header, length).ok()
    }

    /// Inflates `length` bytes of `raw`, from offset `start`.
    fn inflate_from(&mut self, start: usize, length: u64) -> Result<Vec<u8>, Unreadable> {
        let deflated = self.raw.get(start..).ok_or(Unreadable::Damaged)?;
        if length > (deflated.len() as u64).saturating_mul(MAX_RATIO) {
            return Err(Unreadable::Damaged);
        }
        if length > self.largest {
            return Err(Unreadable::TooLarge(length));
        }
        let length = usize::try_from(length).map_err(|_| Unreadable::Damaged)?;
        let mut bytes = vec![0; length];
        match self.inflate.zlib_decompress(deflated, &mut bytes) {
            Ok(inflated) if inflated == length => Ok(bytes),
            _ => Err(Unreadable::Damaged),
        }
    }
}

impl PackSet {
    /// Lists the packs of a folder without opening them. Reuses the indexes that `before` has
    /// already read.
    pub(crate) fn list(dir: &Path, before: Option<&Self>) -> Self {
        let entries = is_dir(dir).then(|| fs::read_dir(dir).ok()).flatten();
        let entries = entries.into_iter().flatten().flatten();
        let indexes = entries.map(|entry| entry.path());
        let indexes = indexes.filter(|path| path.extension().is_some_and(|kind| kind == "idx"));
        let mut packs: Vec<(SystemTime, PathBuf)> = indexes
            .map(|path| {
                let changed = fs::metadata(&path).and_then(|found| found.modified());
                (changed.unwrap_or(SystemTime::UNIX_EPOCH), path)
            })
            .collect();
        packs.sort_unstable_by(|a, b| b.cmp(a));
        let known: HashMap<&Path, &Arc<PackFile>> = before
            .into_iter()
            .flat_map(|before| &before.packs)
            .map(|listed| (&*listed.path, listed))
            .collect();
        let listed = |(_, index): (SystemTime, PathBuf)| {
            let path = index.with_extension("pack");
            // The name of a pack is a hash of its content.
            known.get(&*path).map_or_else(
                || {
                    let index = OnceLock::new();
                    Arc::new(PackFile { path, index })
                },
                |listed| Arc::clone(listed),
            )
        };
        Self {
            packs: packs.into_iter().map(listed).collect(),
            last: AtomicUsize::new(0),
        }
    }

    /// Reads an object. Its id is not verified.
    pub(crate) fn read(&self, open: &mut PackHandles, kind: Kind, oid: Oid) -> Option<Vec<u8>> {
        self.raw(open, oid)?;
        open.inflated(kind)
    }

    /// Like [`Self::matches_checksum`], with `None` for no match. Returns the content of an object
    /// of at most `most` bytes instead of comparing the checksum; its id is not verified.
    pub(crate) fn verify_and_read(
        &self,
        open: &mut PackHandles,
        (kind, oid): (Kind, Oid),
        most: usize,
    ) -> Option<Option<Vec<u8>>> {
        let crc = self.raw(open, oid)?;
        let (length, _) = pack_writer::header(&open.raw, kind)?;
        if length <= most as u64 {
            return open.inflated(kind).map(Some);
        }
        (crc32fast::hash(&open.raw) == crc).then_some(None)
    }

    /// Returns whether the entry of an object matches its checksum in the index.
    pub(crate) fn matches_checksum(&self, open: &mut PackHandles, kind: Kind, oid: Oid) -> bool {
        let crc = self.raw(open, oid);
        crc.is_some_and(|crc| crc32fast::hash(&open.raw) == crc)
            && pack_writer::header(&open.raw, kind).is_some()
    }

    /// Returns whether any pack has the object.
    pub(crate) fn has(&self, oid: Oid) -> bool {
        let mut indexes = self.packs.iter().filter_map(|listed| listed.index());
        indexes.any(|index| index.has(oid))
    }

    /// Reads an object, resolves deltas, and verifies its id. If one pack has a damaged copy, tries
    /// the others.
    pub(crate) fn object(
        &self,
        open: &mut PackHandles,
        oid: Oid,
    ) -> Result<(Kind, Vec<u8>), Unreadable> {
        let mut problem = Unreadable::Missing;
        for at in 0..self.packs.len() {
            let Some(range) = self.index(at).and_then(|index| index.find(oid)) else {
                continue;
            };
            problem = match self.resolve(open, at, range) {
                Ok((kind, bytes)) if name_of(kind, &bytes) == oid => return Ok((kind, bytes)),
                Ok(_) => Unreadable::Damaged,
                Err(problem) => problem,
            };
        }
        Err(problem)
    }

    /// Returns the kind and length of an object that is not a delta, as its entry states them.
    pub(crate) fn header(&self, open: &mut PackHandles, oid: Oid) -> Option<(Kind, u64)> {
        let (at, range) =
            (0..self.packs.len()).find_map(|at| Some((at, self.index(at)?.find(oid)?)))?;
        // A header has at most ten bytes.
        let end = range.end.min(range.start.saturating_add(10));
        self.load(open, at, range.start..end)?;
        let (code, length, _) = pack_writer::any_header(&open.raw)?;
        Some((pack_writer::kind_of_code(code)?, length))
    }

    /// Reads the object of a pack entry, and applies its deltas.
    fn resolve(
        &self,
        open: &mut PackHandles,
        at: usize,
        mut range: Range<u64>,
    ) -> Result<(Kind, Vec<u8>), Unreadable> {
        let mut deltas = Vec::new();
        let mut seen = Vec::new();
        let mut room = open.largest;
        let (kind, mut bytes) = loop {
            let start = range.start;
            // Bases given by id can form a cycle.
            if deltas.len() > MAX_DELTA_CHAIN || seen.contains(&start) {
                return Err(Unreadable::Damaged);
            }
            seen.push(start);
            self.load(open, at, range).ok_or(Unreadable::Damaged)?;
            let (code, length, header) =
                pack_writer::any_header(&open.raw).ok_or(Unreadable::Damaged)?;
            if let Some(kind) = pack_writer::kind_of_code(code) {
                break (kind, open.inflate_from(header, length)?);
            }
            let index = self.index(at).ok_or(Unreadable::Damaged)?;
            let (base, deflated) =
                base_of(code, &open.raw, header, start, index).ok_or(Unreadable::Damaged)?;
            room = room
                .checked_sub(length)
                .ok_or(Unreadable::TooLarge(length))?;
            deltas.push(open.inflate_from(deflated, length)?);
            range = base;
        };
        for delta in deltas.iter().rev() {
            bytes = apply(delta, &bytes, open.largest)?;
        }
        Ok((kind, bytes))
    }

    /// Reads the entry of an object into `open.raw`, and returns its checksum from the index.
    fn raw(&self, open: &mut PackHandles, oid: Oid) -> Option<u32> {
        let last = self.last.load(Ordering::Relaxed);
        let order = std::iter::once(last).chain((0..self.packs.len()).filter(|at| *at != last));
        for at in order {
            let found = self.index(at).and_then(|index| index.find_with_crc(oid));
            let Some((range, crc)) = found else {
                continue;
            };
            self.last.store(at, Ordering::Relaxed);
            self.load(open, at, range)?;
            return Some(crc);
        }
        None
    }

    fn index(&self, at: usize) -> Option<&Index> {
        self.packs.get(at)?.index()
    }

    /// Reads a range of a pack into `open.raw`.
    fn load(&self, open: &mut PackHandles, at: usize, range: Range<u64>) -> Option<()> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        open.raw.resize(length, 0);
        if !open.files.iter().any(|(opened, _)| *opened == at) {
            let file = open_regular(&self.packs.get(at)?.path).ok()?;
            open.files.truncate(MAX_OPEN_PACKS - 1);
            open.files.insert(0, (at, file));
        }
        let (_, file) = open.files.iter().find(|(opened, _)| *opened == at)?;
        read_at(file, &mut open.raw, range.start).ok()
    }
}

/// Returns the range of a delta's base in the pack, and the offset of its compressed bytes.
fn base_of(
    code: u8,
    entry: &[u8],
    header: usize,
    start: u64,
    index: &Index,
) -> Option<(Range<u64>, usize)> {
    match code {
        OFFSET_DELTA => {
            let mut at = header;
            let mut byte = *entry.get(at)?;
            let mut back = u64::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                at += 1;
                byte = *entry.get(at)?;
                // git's offset encoding: each continuation byte also adds one.
                back = back.checked_add(1)?.checked_mul(128)? + u64::from(byte & 0x7f);
            }
            Some((index.range_from(start.checked_sub(back)?)?, at + 1))
        }
        REF_DELTA => {
            let name = entry.get(header..header + 20)?.try_into().ok()?;
            Some((index.find(Oid(name))?, header + 20))
        }
        _ => None,
    }
}

/// Applies a delta: instructions that copy ranges of `base` or insert new bytes.
fn apply(mut delta: &[u8], base: &[u8], largest: u64) -> Result<Vec<u8>, Unreadable> {
    let from = delta_length(&mut delta).ok_or(Unreadable::Damaged)?;
    let length = delta_length(&mut delta).ok_or(Unreadable::Damaged)?;
    if length > largest {
        return Err(Unreadable::TooLarge(length));
    }
    let mut bytes = Vec::new();
    while let Some(code) = delta.split_off_first() {
        let piece = match code & 0x80 {
            // Instruction 0 is reserved.
            0 => delta
                .split_off(..usize::from(*code))
                .filter(|piece| !piece.is_empty()),
            _ => copied(*code, &mut delta, base),
        };
        let piece = piece.ok_or(Unreadable::Damaged)?;
        if (bytes.len() + piece.len()) as u64 > length {
            return Err(Unreadable::Damaged);
        }
        bytes.extend_from_slice(piece);
    }
    let is_whole = bytes.len() as u64 == length && base.len() as u64 == from;
    is_whole.then_some(bytes).ok_or(Unreadable::Damaged)
}

/// Decodes a little-endian base-128 number.
fn delta_length(delta: &mut &[u8]) -> Option<u64> {
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = *delta.split_off_first()?;
        length |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
}

/// Decodes a copy instruction: up to four bytes of offset and three of size. The bits of `code`
/// tell which bytes are present.
fn copied<'a>(code: u8, delta: &mut &[u8], base: &'a [u8]) -> Option<&'a [u8]> {
    let mut number = |bits: Range<u8>| {
        let first = bits.start;
        let mut there = bits.filter(|bit| (code >> bit) & 1 != 0);
        there.try_fold(0, |number, bit| {
            let byte = usize::from(*delta.split_off_first()?);
            Some(number | (byte << (8 * (bit - first))))
        })
    };
    let (start, size) = (number(0..4)?, number(4..7)?);
    let size = if size == 0 { 0x10000 } else { size };
    base.get(start..start.checked_add(size)?)
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
        store::{
            object::{Mode, name_of},
            packs,
        },
        testing::{Scratch, git, noise},
    };

    #[test]
    fn objects_are_read_and_damage_is_detected() {
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
        let packed = PackSet::list(&dir, None);
        let mut open = PackHandles::default();
        for content in &contents {
            let oid = name_of(Kind::Blob, content);
            assert_eq!(
                packed.read(&mut open, Kind::Blob, oid).as_ref(),
                Some(content)
            );
            assert!(packed.matches_checksum(&mut open, Kind::Blob, oid));
            let mut keep = |kind, most| packed.verify_and_read(&mut open, (kind, oid), most);
            let length = content.len();
            assert_eq!(keep(Kind::Blob, length), Some(Some(content.clone())));
            if let Some(less) = length.checked_sub(1) {
                assert_eq!(keep(Kind::Blob, less), Some(None));
            }
            assert_eq!(keep(Kind::Tree, length), None);
            assert_eq!(packed.read(&mut open, Kind::Tree, oid), None);
            assert!(!packed.matches_checksum(&mut open, Kind::Tree, oid));
        }
        let absent = name_of(Kind::Blob, b"absent");
        assert_eq!(packed.read(&mut open, Kind::Blob, absent), None);
        assert!(!packed.matches_checksum(&mut open, Kind::Blob, absent));

        let oid = name_of(Kind::Blob, &contents[3]);
        let packs = packs::all(&scratch.repository()).unwrap();
        let (pack, range) = packs
            .iter()
            .find_map(|pack| Some((pack, pack.index.find(oid)?)))
            .unwrap();
        let mut bytes = fs::read(&pack.path).unwrap();
        bytes[range.start as usize + 1000] ^= 1;
        fs::write(&pack.path, &bytes).unwrap();
        let damaged = PackSet::list(&dir, None);
        assert!(!damaged.matches_checksum(&mut PackHandles::default(), Kind::Blob, oid));
        let kept = damaged.verify_and_read(&mut PackHandles::default(), (Kind::Blob, oid), 1000);
        assert_eq!(kept, None);
        // Same length, but overwritten: the pack is not used.
        bytes.fill(0);
        fs::write(&pack.path, &bytes).unwrap();
        assert!(packed.has(oid));
        assert!(!PackSet::list(&dir, None).has(oid));
    }

    #[test]
    fn deltas_are_resolved() {
        let scratch = Scratch::new();
        let base = noise(1, 100_000);
        let mut other = base.clone();
        other[50_000] ^= 1;
        for (at, content) in [&base, &other].into_iter().enumerate() {
            let file = (&b"file"[..], &content[..], Mode::File);
            scratch.checkpoint(at as u64 + 1, &[file]);
        }
        git(&scratch.dir(), &["repack", "-adfq"]);
        let packed = PackSet::list(&scratch.repository().pack_dir(), None);
        let reader = scratch.repository().reader();
        let mut whole = 0;
        for content in [base, other] {
            let oid = name_of(Kind::Blob, &content);
            whole += usize::from(
                packed
                    .read(&mut PackHandles::default(), Kind::Blob, oid)
                    .is_some(),
            );
            assert_eq!(reader.blob(oid).unwrap(), content);
            reader.verify(Kind::Blob, oid).unwrap();
        }
        assert_eq!(whole, 1, "git made one a difference to the other");
    }

    #[test]
    fn deltas_stay_within_their_bounds() {
        let base = b"0123456789";
        let read = |delta: &[u8], largest| apply(delta, base, largest);
        // Two copies of the base, with one inserted byte in between.
        let copy = [0x90, 10];
        let whole = [&[10, 21][..], &copy, &[1, b'-'], &copy].concat();
        assert_eq!(read(&whole, 21).unwrap(), b"0123456789-0123456789");
        assert_eq!(read(&whole, 20), Err(Unreadable::TooLarge(21)));
        for (at, byte) in [
            (0, 9),
            (0, 11),
            (1, 20),
            (1, 22),
            (3, 11),
            (4, 0),
            (4, 9),
            (7, 255),
        ] {
            let mut delta = whole.clone();
            delta[at] = byte;
            assert_eq!(read(&delta, 99), Err(Unreadable::Damaged), "{at}: {byte}");
        }
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], 99), Err(Unreadable::Damaged), "{end}");
        }
        let endless = [0xff; 20];
        assert_eq!(read(&endless, u64::MAX), Err(Unreadable::Damaged));
    }
}
