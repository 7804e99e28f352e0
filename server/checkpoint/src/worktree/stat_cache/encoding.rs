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
    store::object::{Mode, Oid},
    worktree::{
        exclusions::{PathHash, PathSalt},
        git_index::{GitIndexState, TrackedPaths},
        snapshot::{ExcludedEntry, ExclusionReason, File, Folder, FolderRules, Node, Parts},
    },
};

const MAGIC: &[u8] = b"SLTREE\0\x06";
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

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    filter_fingerprint: u128,
    salt: PathSalt,
    stored: Option<u64>,
    index_fingerprint: Option<u128>,
    #[serde(borrow)]
    tracked: Vec<&'a [u8]>,
}

#[derive(Serialize, Deserialize)]
struct SavedFolder<'a> {
    stamp: Stamp,
    settled: bool,
    denied: Vec<PathHash>,
    #[serde(borrow)]
    excluded: Vec<(&'a [u8], ExclusionReason)>,
    rules: Option<SavedRules<'a>>,
    /// In git's order.
    entries: Vec<(&'a [u8], SavedEntry)>,
}

#[derive(Serialize, Deserialize)]
struct SavedRules<'a> {
    git: bool,
    excludes: Option<&'a [u8]>,
    gitignore: Option<&'a [u8]>,
    access: Option<u128>,
}

#[derive(Serialize, Deserialize)]
enum SavedEntry {
    File {
        stamp: Stamp,
        settled: bool,
        oid: [u8; 20],
        mode: Mode,
    },
    /// One of the folders before this one.
    Folder,
}

/// Encodes the file.
///
/// # Errors
/// If a number is out of range.
pub(crate) fn encode(saved: &CacheFile) -> Result<Vec<u8>, postcard::Error> {
    let header = Header {
        filter_fingerprint: saved.filter_fingerprint,
        salt: saved.salt,
        stored: saved.stored,
        index_fingerprint: saved.git_index.fingerprint,
        tracked: saved
            .git_index
            .tracked
            .paths()
            .iter()
            .map(|path| &**path)
            .collect(),
    };
    let mut out = postcard::to_extend(&header, MAGIC.to_vec())?;
    let mut rest = vec![(&*saved.tree, false)];
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
    let excluded = folder.excluded.iter();
    SavedFolder {
        stamp: folder.stamp,
        settled: folder.settled,
        denied: folder.denied.to_vec(),
        excluded: excluded
            .map(|entry| (&*entry.name, entry.reason.clone()))
            .collect(),
        rules: folder.rules.as_deref().map(|rules| SavedRules {
            git: rules.git,
            excludes: rules.excludes.as_deref(),
            gitignore: rules.gitignore.as_deref(),
            access: rules.access,
        }),
        entries: folder
            .entries()
            .map(|entry| {
                let saved = entry
                    .file()
                    .map_or(SavedEntry::Folder, |file| SavedEntry::File {
                        stamp: file.stamp,
                        settled: file.settled,
                        oid: file.oid.0,
                        mode: file.mode,
                    });
                (entry.name, saved)
            })
            .collect(),
    }
}

/// Decodes the file. Returns `None` if it is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<CacheFile> {
    let (bytes, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    if XxHash3_128::oneshot(bytes).to_le_bytes() != checksum {
        return None;
    }
    let bytes = bytes.strip_prefix(MAGIC)?;
    let (header, mut rest) = postcard::take_from_bytes::<Header<'_>>(bytes).ok()?;
    let mut folders = Vec::new();
    while !rest.is_empty() {
        let (saved, after) = postcard::take_from_bytes(rest).ok()?;
        rest = after;
        let folder = read_folder(saved, &mut folders)?;
        folders.push(Arc::new(folder));
    }
    let tree = folders.pop()?;
    let tracked = header.tracked.into_iter().map(Box::from).collect();
    folders.is_empty().then(|| CacheFile {
        tree,
        filter_fingerprint: header.filter_fingerprint,
        salt: header.salt,
        git_index: Arc::new(GitIndexState {
            fingerprint: header.index_fingerprint,
            tracked: TrackedPaths::new(tracked),
            unreadable: Vec::new(),
        }),
        stored: header.stored,
    })
}

/// Builds a folder. Its subfolders are taken from the end of `folders`.
fn read_folder(saved: SavedFolder<'_>, folders: &mut Vec<Arc<Folder>>) -> Option<Folder> {
    let is_folder = |entry: &(&[u8], SavedEntry)| matches!(entry.1, SavedEntry::Folder);
    let below = saved
        .entries
        .iter()
        .filter(|entry| is_folder(entry))
        .count();
    let first = folders.len().checked_sub(below)?;
    let mut below = folders.drain(first..);
    let mut entries = Vec::with_capacity(saved.entries.len());
    for (name, entry) in saved.entries {
        let node = match entry {
            SavedEntry::Folder => Node::Folder(below.next()?),
            SavedEntry::File {
                mode: Mode::Folder, ..
            } => return None,
            SavedEntry::File {
                stamp,
                settled,
                oid,
                mode,
            } => Node::File(File {
                stamp,
                oid: Oid(oid),
                mode,
                settled,
            }),
        };
        entries.push((name.into(), node));
    }
    drop(below);
    let excluded = saved.excluded.into_iter();
    Some(Folder::new(Parts {
        stamp: saved.stamp,
        settled: saved.settled,
        entries,
        excluded: excluded
            .map(|(name, reason)| ExcludedEntry {
                name: name.into(),
                reason,
            })
            .collect(),
        denied: saved.denied,
        rules: saved.rules.map(|rules| FolderRules {
            git: rules.git,
            excludes: rules.excludes.map(Arc::from),
            gitignore: rules.gitignore.map(Arc::from),
            access: rules.access,
        }),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::{
        capture_filter::repository_data::VersionControl, exclusions::Hex16, snapshot::SpecialFile,
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

    fn sample() -> CacheFile {
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
        CacheFile {
            tree: Arc::new(Folder::new(parts)),
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
        }
    }

    #[test]
    fn the_cache_file_round_trips() {
        let saved = sample();
        let bytes = encode(&saved).unwrap();
        let read = decode(&bytes).unwrap();
        assert_eq!(read.tree.oid, saved.tree.oid);
        assert_eq!((read.filter_fingerprint, read.stored), (5, Some(9)));
        assert_eq!(read.git_index.fingerprint, Some(7));
        assert_eq!(read.git_index.tracked, saved.git_index.tracked);
        assert_eq!((read.tree.files, read.tree.bytes), (3, 301));
        assert_eq!(encode(&read).unwrap(), bytes);
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let bytes = encode(&sample()).unwrap();
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
