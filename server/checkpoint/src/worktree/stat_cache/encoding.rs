//! Format of the stat cache file.
//!
//! ```text
//! "SLTREE" version
//! header, then the folders, each after its subfolders: postcard
//! checksum of all of this (XXH3, u128)
//! ```
//!
//! Tree ids are not stored but computed when reading, so a folder's id always matches its entries.
//! A file that is damaged or of another version is ignored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sightline_base::fs::Stamp;
use twox_hash::XxHash3_128;

use crate::{
    store::object::Mode,
    worktree::{
        exclusions::{PathHash, PathSalt},
        git_index::GitIndexState,
        snapshot::{Entry, ExcludedEntry, File, Folder, FolderRules, Node, Parts},
    },
};

const MAGIC: &[u8] = b"SLTREE\0\x06";
const CHECKSUM_BYTES: usize = 16;

/// What the file states before the folders.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// See [`super::super::scan::Scan`].
    pub(crate) filter_fingerprint: u128,
    /// See [`super::super::scan::Scan`].
    pub(crate) salt: PathSalt,
    /// Not used. An older version saved a generation of the store.
    pub(crate) stored: Option<u64>,
    /// See [`super::super::scan::Scan`].
    pub(crate) git_index: Arc<GitIndexState>,
}

#[derive(Serialize, Deserialize)]
struct SavedFolder<'a> {
    stamp: Stamp,
    settled: bool,
    denied: Vec<PathHash>,
    excluded: Vec<ExcludedEntry>,
    rules: Option<FolderRules>,
    /// In git's order.
    #[serde(borrow)]
    entries: Vec<(&'a [u8], SavedEntry)>,
}

#[derive(Serialize, Deserialize)]
enum SavedEntry {
    File(File),
    /// One of the folders before this one.
    Folder,
}

/// Encodes the file.
///
/// # Errors
/// If a number is out of range.
pub(crate) fn encode(header: &Header, tree: &Folder) -> Result<Vec<u8>, postcard::Error> {
    let mut out = postcard::to_extend(header, MAGIC.to_vec())?;
    let mut rest = vec![(tree, false)];
    while let Some((folder, is_below_written)) = rest.pop() {
        if is_below_written {
            out = postcard::to_extend(&saved_folder(folder), out)?;
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
    Ok(out)
}

fn saved_folder(folder: &Folder) -> SavedFolder<'_> {
    let entry = |entry: Entry<'_>| {
        let file = entry.file().cloned();
        file.map_or(SavedEntry::Folder, SavedEntry::File)
    };
    SavedFolder {
        stamp: folder.stamp,
        settled: folder.settled,
        denied: folder.denied.to_vec(),
        excluded: folder.excluded.to_vec(),
        rules: folder.rules.as_deref().cloned(),
        entries: folder.entries().map(|one| (one.name, entry(one))).collect(),
    }
}

/// Decodes the file. Returns `None` if it is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Header, Arc<Folder>)> {
    let (bytes, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    if XxHash3_128::oneshot(bytes).to_le_bytes() != checksum {
        return None;
    }
    let bytes = bytes.strip_prefix(MAGIC)?;
    let (header, mut rest) = postcard::take_from_bytes(bytes).ok()?;
    let mut folders = Vec::new();
    while !rest.is_empty() {
        let (saved, after) = postcard::take_from_bytes(rest).ok()?;
        rest = after;
        let folder = read_folder(saved, &mut folders)?;
        folders.push(Arc::new(folder));
    }
    let tree = folders.pop()?;
    folders.is_empty().then_some((header, tree))
}

/// Builds a folder. Its subfolders are taken from the end of `folders`.
fn read_folder(saved: SavedFolder<'_>, folders: &mut Vec<Arc<Folder>>) -> Option<Folder> {
    let is_folder = |entry: &&(&[u8], SavedEntry)| matches!(entry.1, SavedEntry::Folder);
    let below = saved.entries.iter().filter(is_folder).count();
    let mut below = folders.drain(folders.len().checked_sub(below)?..);
    let mut entries = Vec::with_capacity(saved.entries.len());
    for (name, entry) in saved.entries {
        let node = match entry {
            SavedEntry::Folder => Node::Folder(below.next()?),
            SavedEntry::File(file) if file.mode == Mode::Folder => return None,
            SavedEntry::File(file) => Node::File(file),
        };
        entries.push((name.into(), node));
    }
    Some(Folder::new(Parts {
        stamp: saved.stamp,
        settled: saved.settled,
        entries,
        excluded: saved.excluded,
        denied: saved.denied,
        rules: saved.rules,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::object::Oid,
        worktree::{
            capture_filter::repository_data::VersionControl,
            exclusions::Hex16,
            git_index::TrackedPaths,
            snapshot::{ExclusionReason, SpecialFile},
        },
    };

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

    fn sample() -> (Header, Arc<Folder>) {
        let folder = |parts| Node::Folder(Arc::new(Folder::new(parts)));
        let reasons = [
            ExclusionReason::BySettings,
            ExclusionReason::TooLarge(1 << 40),
            ExclusionReason::Special(SpecialFile::Socket),
            ExclusionReason::Unreadable(13),
            ExclusionReason::Unstable,
            ExclusionReason::RepositoryData(VersionControl::Mercurial),
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
            access: Some(7),
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
        let header = Header {
            filter_fingerprint: 5,
            salt: PathSalt(Hex16([1; 16])),
            git_index: Arc::new(GitIndexState {
                fingerprint: Some(7),
                unreadable: Vec::new(),
                tracked: TrackedPaths::new(vec![
                    b"out/k".as_slice().into(),
                    b"a.log".as_slice().into(),
                ]),
            }),
            stored: Some(9),
        };
        (header, Arc::new(Folder::new(parts)))
    }

    #[test]
    fn the_cache_file_round_trips() {
        let (header, tree) = sample();
        let bytes = encode(&header, &tree).unwrap();
        // The checksum of this file as earlier versions wrote it.
        let checksum = sightline_base::escape::hex(&bytes[bytes.len() - CHECKSUM_BYTES..]);
        assert_eq!(checksum, "d250b67fe7850233e1aa13b4e6f560b8");
        let (read, read_tree) = decode(&bytes).unwrap();
        assert_eq!(read_tree.oid, tree.oid);
        assert_eq!((read.filter_fingerprint, read.stored), (5, Some(9)));
        assert_eq!(read.git_index.fingerprint, Some(7));
        assert_eq!(read.git_index.tracked, header.git_index.tracked);
        assert_eq!((read_tree.files, read_tree.bytes), (3, 301));
        assert_eq!(encode(&read, &read_tree).unwrap(), bytes);
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let (header, tree) = sample();
        let bytes = encode(&header, &tree).unwrap();
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
