//! Format of the stat cache file.
//!
//! ```text
//! "SLTREE" version, fingerprint of the rules (u128), salt (16 bytes), generation (flag, u64)
//! tracked paths: fingerprint (flag, u128), number, paths
//! folders, each after its subfolders
//! checksum of all of this (XXH3, u128)
//! ```
//!
//! Tree ids are not stored but computed when reading, so a folder's id always matches its entries.
//! A file that is damaged or of another version is ignored.

use std::sync::Arc;

use twox_hash::XxHash3_128;

use crate::{
    store::object::{Mode, Oid},
    worktree::{
        exclusions::{Hex16, PathHash, PathSalt},
        git_index::{GitIndexState, TrackedPaths},
        snapshot::{
            ExcludedEntry, ExclusionReason, File, Folder, FolderRules, Node, Parts, SpecialFile,
            Stamp,
        },
    },
};

const MAGIC: &[u8] = b"SLTREE\0\x03";
const CHECKSUM_BYTES: usize = 16;

/// Content of the file.
#[derive(Clone, Debug)]
pub(crate) struct CacheFile {
    pub(crate) tree: Arc<Folder>,
    /// See [`super::super::scan::Scan`].
    pub(crate) filter_fingerprint: u128,
    /// See [`super::super::scan::Scan`].
    pub(crate) salt: PathSalt,
    /// See [`super::super::scan::Scan`].
    pub(crate) git_index: Arc<GitIndexState>,
    /// Generation of the store when it held the whole tree, if it did.
    pub(crate) stored: Option<u64>,
}

/// Encodes the file.
pub(crate) fn encode(saved: &CacheFile) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&saved.filter_fingerprint.to_le_bytes());
    out.extend_from_slice(&saved.salt.0.0);
    out.push(u8::from(saved.stored.is_some()));
    number(&mut out, saved.stored.unwrap_or(0));
    let GitIndexState {
        fingerprint,
        tracked,
    } = &*saved.git_index;
    out.push(u8::from(fingerprint.is_some()));
    out.extend_from_slice(&fingerprint.unwrap_or(0).to_le_bytes());
    number(&mut out, tracked.paths().len() as u64);
    for path in tracked.paths() {
        text(&mut out, path);
    }
    let mut rest = vec![(&*saved.tree, false)];
    while let Some((folder, is_below_written)) = rest.pop() {
        if is_below_written {
            write_folder(&mut out, folder);
            continue;
        }
        rest.push((folder, true));
        let below = folder.entries().filter_map(|entry| entry.folder());
        let from = rest.len();
        rest.extend(below.map(|folder| (&**folder, false)));
        rest[from..].reverse();
    }
    let checksum = XxHash3_128::oneshot(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

fn write_folder(out: &mut Vec<u8>, folder: &Folder) {
    write_stamp(out, &folder.stamp);
    out.push(u8::from(folder.settled));
    number(out, folder.denied.len() as u64);
    for hash in &folder.denied {
        out.extend_from_slice(&hash.0.0);
    }
    number(out, folder.excluded.len() as u64);
    for ExcludedEntry { name, reason } in &folder.excluded {
        text(out, name);
        let (tag, value) = reason_number(reason);
        out.push(tag);
        number(out, value);
    }
    let rules = folder.rules.as_deref();
    out.push(u8::from(rules.is_some()));
    if let Some(rules) = rules {
        out.push(u8::from(rules.git));
        for file in [&rules.excludes, &rules.gitignore] {
            out.push(u8::from(file.is_some()));
            text(out, file.as_deref().unwrap_or_default());
        }
    }
    number(out, folder.len() as u64);
    for entry in folder.entries() {
        text(out, entry.name);
        out.push(mode_number(entry.mode));
        if let Some(file) = entry.file() {
            write_stamp(out, &file.stamp);
            out.push(u8::from(file.settled));
            out.extend_from_slice(file.oid.as_bytes());
        }
    }
}

fn write_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    out.extend_from_slice(&stamp.mtime.to_le_bytes());
    out.extend_from_slice(&stamp.ctime.to_le_bytes());
    number(out, stamp.size);
    number(out, stamp.inode);
    number(out, stamp.mode.into());
}

/// Base-128 encoding, because most numbers are small.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    number(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn mode_number(mode: Mode) -> u8 {
    match mode {
        Mode::File => 0,
        Mode::Executable => 1,
        Mode::Link => 2,
        Mode::Folder => 3,
    }
}

fn reason_number(reason: &ExclusionReason) -> (u8, u64) {
    match reason {
        ExclusionReason::BySettings => (0, 0),
        ExclusionReason::TooLarge(bytes) => (1, *bytes),
        ExclusionReason::Special(SpecialFile::Pipe) => (2, 0),
        ExclusionReason::Special(SpecialFile::Socket) => (2, 1),
        ExclusionReason::Special(SpecialFile::Device) => (2, 2),
        ExclusionReason::Unreadable(error) => (3, u64::from(error.cast_unsigned())),
        ExclusionReason::Unstable => (4, 0),
        ExclusionReason::InvalidName => (5, 0),
        ExclusionReason::TooLong => (6, 0),
        ExclusionReason::OwnData => (7, 0),
        ExclusionReason::GitDirectory => (8, 0),
        ExclusionReason::Ignored => (9, 0),
    }
}

/// Decodes the file. Returns `None` if it is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<CacheFile> {
    let (bytes, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    if XxHash3_128::oneshot(bytes).to_le_bytes() != checksum {
        return None;
    }
    let mut input = Input(bytes.strip_prefix(MAGIC)?);
    let filter_fingerprint = u128::from_le_bytes(input.array()?);
    let salt = PathSalt(Hex16(input.array()?));
    let is_stored = input.flag()?;
    let generation = input.number()?;
    let is_settled = input.flag()?;
    let fingerprint = u128::from_le_bytes(input.array()?);
    let mut tracked = Vec::new();
    for _ in 0..input.number()? {
        tracked.push(input.text()?.into());
    }
    let git_index = Arc::new(GitIndexState {
        fingerprint: is_settled.then_some(fingerprint),
        tracked: TrackedPaths::new(tracked),
    });
    let mut folders = Vec::new();
    while !input.0.is_empty() {
        let folder = read_folder(&mut input, &mut folders)?;
        folders.push(Arc::new(folder));
    }
    let tree = folders.pop()?;
    folders.is_empty().then_some(CacheFile {
        tree,
        filter_fingerprint,
        salt,
        git_index,
        stored: is_stored.then_some(generation),
    })
}

/// Reads a folder. Its subfolders are taken from the end of `folders`.
fn read_folder(input: &mut Input<'_>, folders: &mut Vec<Arc<Folder>>) -> Option<Folder> {
    let mut parts = Parts {
        stamp: input.stamp()?,
        settled: input.flag()?,
        ..Parts::default()
    };
    for _ in 0..input.number()? {
        parts.denied.push(PathHash(Hex16(input.array()?)));
    }
    for _ in 0..input.number()? {
        parts.excluded.push(ExcludedEntry {
            name: input.text()?.into(),
            reason: input.reason()?,
        });
    }
    if input.flag()? {
        parts.rules = Some(FolderRules {
            git: input.flag()?,
            excludes: input.rules()?,
            gitignore: input.rules()?,
        });
    }
    // Entries were written in order, so they need no sorting.
    let mut entries: Vec<(Box<[u8]>, Option<File>)> = Vec::new();
    for _ in 0..input.number()? {
        let name = input.text()?.into();
        let mode = match input.byte()? {
            0 => Mode::File,
            1 => Mode::Executable,
            2 => Mode::Link,
            3 => {
                entries.push((name, None));
                continue;
            }
            _ => return None,
        };
        let file = File {
            stamp: input.stamp()?,
            settled: input.flag()?,
            oid: Oid(input.array()?),
            mode,
        };
        entries.push((name, Some(file)));
    }
    let below = entries.iter().filter(|(_, file)| file.is_none()).count();
    let first = folders.len().checked_sub(below)?;
    let mut below = folders.drain(first..);
    for (name, file) in entries {
        let node = match file {
            Some(file) => Node::File(file),
            None => Node::Folder(below.next()?),
        };
        parts.entries.push((name, node));
    }
    drop(below);
    Some(Folder::new(parts))
}

/// The remaining bytes.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    fn rules(&mut self) -> Option<Option<Arc<[u8]>>> {
        let is_there = self.flag()?;
        let text = self.text()?;
        Some(is_there.then(|| text.into()))
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            mtime: i64::from_le_bytes(self.array()?),
            ctime: i64::from_le_bytes(self.array()?),
            size: self.number()?,
            inode: self.number()?,
            mode: u32::try_from(self.number()?).ok()?,
        })
    }

    fn reason(&mut self) -> Option<ExclusionReason> {
        let tag = self.byte()?;
        let value = self.number()?;
        Some(match (tag, value) {
            (0, _) => ExclusionReason::BySettings,
            (1, bytes) => ExclusionReason::TooLarge(bytes),
            (2, 0) => ExclusionReason::Special(SpecialFile::Pipe),
            (2, 1) => ExclusionReason::Special(SpecialFile::Socket),
            (2, 2) => ExclusionReason::Special(SpecialFile::Device),
            (3, error) => ExclusionReason::Unreadable(u32::try_from(error).ok()?.cast_signed()),
            (4, _) => ExclusionReason::Unstable,
            (5, _) => ExclusionReason::InvalidName,
            (6, _) => ExclusionReason::TooLong,
            (7, _) => ExclusionReason::OwnData,
            (8, _) => ExclusionReason::GitDirectory,
            (9, _) => ExclusionReason::Ignored,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64) -> Node {
        let stamp = Stamp {
            mtime: -1,
            ctime: 2,
            size,
            inode: u64::MAX,
            mode: 0o100_755,
        };
        Node::File(File {
            stamp,
            oid: Oid([7; 20]),
            mode: Mode::Executable,
            settled: true,
        })
    }

    fn sample() -> CacheFile {
        let folder = |parts| Node::Folder(Arc::new(Folder::new(parts)));
        let reasons = [
            ExclusionReason::BySettings,
            ExclusionReason::TooLarge(1 << 40),
            ExclusionReason::Special(SpecialFile::Socket),
            ExclusionReason::Unreadable(13),
            ExclusionReason::Unstable,
            ExclusionReason::GitDirectory,
            ExclusionReason::Ignored,
        ];
        let named = |(reason, name): (ExclusionReason, u8)| ExcludedEntry {
            name: [name].into(),
            reason,
        };
        let deep = folder(Parts {
            entries: vec![(b"x\xff".as_slice().into(), file(300))],
            excluded: reasons.into_iter().zip(b'a'..).map(named).collect(),
            denied: vec![PathHash(Hex16([8; 16])), PathHash(Hex16([9; 16]))],
            ..Parts::default()
        });
        let rules = FolderRules {
            git: true,
            excludes: Some(Arc::from(b"*.o\n".as_slice())),
            gitignore: None,
        };
        let middle = folder(Parts {
            entries: vec![(b"deep".as_slice().into(), deep)],
            ..Parts::default()
        });
        let empty = folder(Parts::default());
        let entries: [(&[u8], Node); 4] = [
            (b"b", middle),
            (b"a", empty),
            (b"b.c", file(1)),
            (b"b-", file(0)),
        ];
        let entries = entries.map(|(name, node)| (name.into(), node));
        let parts = Parts {
            entries: entries.into(),
            rules: Some(rules),
            settled: true,
            ..Parts::default()
        };
        CacheFile {
            tree: Arc::new(Folder::new(parts)),
            filter_fingerprint: 5,
            salt: PathSalt(Hex16([1; 16])),
            git_index: Arc::new(GitIndexState {
                fingerprint: Some(7),
                tracked: TrackedPaths::new(vec![
                    b"out/k".as_slice().into(),
                    b"a.log".as_slice().into(),
                ]),
            }),
            stored: Some(9),
        }
    }

    #[test]
    fn the_cache_file_round_trips() {
        let saved = sample();
        let bytes = encode(&saved);
        let read = decode(&bytes).unwrap();
        assert_eq!(read.tree.oid, saved.tree.oid);
        assert_eq!((read.filter_fingerprint, read.stored), (5, Some(9)));
        assert_eq!(read.git_index.fingerprint, Some(7));
        assert_eq!(read.git_index.tracked, saved.git_index.tracked);
        assert_eq!((read.tree.files, read.tree.bytes), (3, 301));
        assert_eq!(encode(&read), bytes);
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let bytes = encode(&sample());
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at]).is_none());
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            assert!(decode(&bent).is_none());
        }
        // A forged file with a valid checksum does not cause a panic either.
        for at in MAGIC.len()..bytes.len() - CHECKSUM_BYTES {
            let mut bent = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
            bent[at] = bent[at].wrapping_add(0x41);
            let checksum = XxHash3_128::oneshot(&bent);
            bent.extend_from_slice(&checksum.to_le_bytes());
            let _ = decode(&bent);
        }
    }
}
