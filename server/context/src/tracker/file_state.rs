//! Content of a file in comparable form: a hash.
//!
//! A file is hashed again only if its [`FileStamp`] indicates a possible change. Files above
//! [`limits::MAX_HASHED_FILE_BYTES`] are compared by size and modification time alone.

use std::{
    fmt,
    io::{ErrorKind as Io, Read},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sightline_protocol::error::ErrorKind;

use sightline_access::{AccessView, OpenedFile};
use sightline_base::{
    cancel::Cancel, clock::now_nanos, error::Error, escape, limits, path::AbsPath,
};

/// Minimum age of a file's timestamps, in nanoseconds, for an equal stamp to prove equal content.
/// Some file systems have a resolution of 2 s.
const SETTLED_NS: i64 = 2_000_000_000;

/// SHA-256 of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes a text in chunks, such as those of a rope.
    pub fn of_chunks<'a>(chunks: impl Iterator<Item = &'a str>) -> Self {
        let mut hasher = Sha256::new();
        chunks.for_each(|chunk| hasher.update(chunk));
        Self(hasher.finalize().into())
    }

    /// Parses 64 hexadecimal digits.
    ///
    /// # Errors
    /// `invalidParams`.
    pub fn parse(hex: &str) -> Result<Self, Error> {
        let refuse = || {
            let shown: String = hex.chars().take(80).collect();
            Error::invalid(format!(
                "invalid contentHash {shown:?}: use the 64 hexadecimal digits of a SHA-256"
            ))
        };
        if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (half, digits) in bytes.chunks_mut(16).zip([&hex[..32], &hex[32..]]) {
            let number = u128::from_str_radix(digits, 16).map_err(|_| refuse())?;
            half.copy_from_slice(&number.to_be_bytes());
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape::hex(&self.0))
    }
}

impl From<[u8; 32]> for ContentHash {
    /// Wraps a digest that was computed incrementally.
    fn from(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for ContentHash {
    type Error = Error;

    fn try_from(hex: String) -> Result<Self, Error> {
        Self::parse(&hex)
    }
}

/// Comparable content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileContent {
    /// The file does not exist.
    Absent,
    Hash(ContentHash),
    /// A file too large to hash.
    Large {
        size: u64,
        mtime_ns: i64,
    },
}

/// Metadata of a file that changes with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    size: u64,
    pub(super) mtime_ns: i64,
    ctime_ns: i64,
    ino: u64,
}

impl FileStamp {
    fn of(file: &OpenedFile) -> Self {
        let stamp = file.info().stamp;
        Self {
            size: stamp.size,
            mtime_ns: stamp.mtime,
            ctime_ns: stamp.ctime,
            ino: stamp.inode,
        }
    }

    /// Returns whether a file with this stamp is unchanged since `at_ns`.
    fn is_settled(&self, at_ns: i64) -> bool {
        self.mtime_ns.max(self.ctime_ns) <= at_ns.saturating_sub(SETTLED_NS)
    }
}

/// A content, and the file's stamp at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedContent {
    pub(super) content: FileContent,
    pub(super) stamp: FileStamp,
}

/// The state of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) content: FileContent,
    /// `None` if the file does not exist, or for unsaved text.
    pub(super) stamp: Option<FileStamp>,
    /// Time in nanoseconds since the Unix epoch.
    pub(super) at_ns: i64,
}

impl Observation {
    /// Observes text that the editor has not saved.
    pub(super) fn of_text(hash: ContentHash, at_ns: i64) -> Self {
        Self {
            content: FileContent::Hash(hash),
            stamp: None,
            at_ns,
        }
    }

    /// Observes the file on disk. Does not read it if it has the stamp of `known`. Returns `None`
    /// if the file cannot be read or keeps changing.
    ///
    /// # Errors
    /// `cancelled`.
    pub(super) fn of_disk(
        view: &AccessView,
        path: &AbsPath,
        known: Option<&CachedContent>,
        at_ns: i64,
        cancel: &Cancel,
    ) -> Result<Option<Self>, Error> {
        for _ in 0..3 {
            cancel.check()?;
            let Ok(file) = open(view, path) else {
                return Ok(None);
            };
            let stamp = file.as_ref().map(FileStamp::of);
            let observation = |content| Self {
                content,
                stamp,
                at_ns,
            };
            let (Some(file), Some(stamp)) = (file, stamp) else {
                return Ok(Some(observation(FileContent::Absent)));
            };
            if let Some(known) = known.filter(|known| known.stamp == stamp) {
                return Ok(Some(observation(known.content)));
            }
            if stamp.size > limits::MAX_HASHED_FILE_BYTES {
                let FileStamp { size, mtime_ns, .. } = stamp;
                return Ok(Some(observation(FileContent::Large { size, mtime_ns })));
            }
            let Some(hash) = hash_file(file, cancel)? else {
                return Ok(None);
            };
            if stamp_of(view, path) == Ok(Some(stamp)) {
                return Ok(Some(observation(FileContent::Hash(hash))));
            }
        }
        Ok(None)
    }

    /// Returns whether the file is unchanged since. Always true for unsaved text.
    pub(super) fn is_current(&self, view: &AccessView, path: &AbsPath) -> bool {
        match (self.stamp, self.content) {
            (None, FileContent::Hash(_)) => true,
            (stamp, _) => stamp_of(view, path) == Ok(stamp),
        }
    }

    /// Returns the content if a later observation may rely on its stamp.
    pub(super) fn settled(&self) -> Option<CachedContent> {
        let stamp = self.stamp.filter(|stamp| stamp.is_settled(self.at_ns))?;
        Some(CachedContent {
            content: self.content,
            stamp,
        })
    }
}

/// What a file held at one moment, for a later comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenContent {
    content: FileContent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<CachedContent>,
}

impl SeenContent {
    /// Returns the content of a file, which is read again only if it may differ from `known`. Checks no access:
    /// the content is only compared. Returns `None` if it cannot be read.
    pub fn of(path: &AbsPath, known: Option<&Self>) -> Option<Self> {
        let settled = known.and_then(|known| known.settled.as_ref());
        let at_ns = now_nanos();
        let view = AccessView::default();
        let observed = Observation::of_disk(&view, path, settled, at_ns, &Cancel::default());
        let observed = observed.ok().flatten()?;
        Some(Self {
            content: observed.content,
            settled: observed.settled(),
        })
    }

    /// Returns whether both are the same content.
    pub fn is_same(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

/// Opens a regular file. Returns `None` if it does not exist, an error if it cannot be opened.
fn open(view: &AccessView, path: &AbsPath) -> Result<Option<OpenedFile>, ()> {
    match view.open_anywhere(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
            Ok(None)
        }
        Err(_) => Err(()),
    }
}

fn stamp_of(view: &AccessView, path: &AbsPath) -> Result<Option<FileStamp>, ()> {
    Ok(open(view, path)?.as_ref().map(FileStamp::of))
}

/// Returns `None` if the file cannot be read.
fn hash_file(file: OpenedFile, cancel: &Cancel) -> Result<Option<ContentHash>, Error> {
    // Bounds the read of a growing file.
    let mut file = file.take(limits::MAX_HASHED_FILE_BYTES + 1);
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        cancel.check()?;
        match file.read(&mut chunk) {
            Ok(0) => return Ok(Some(ContentHash(hasher.finalize().into()))),
            Ok(read) => hasher.update(chunk.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == Io::Interrupted => {}
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn abs(path: &Path) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn observation(path: &Path, known: Option<&CachedContent>, at_ns: i64) -> Option<Observation> {
        Observation::of_disk(
            &AccessView::default(),
            &abs(path),
            known,
            at_ns,
            &Cancel::default(),
        )
        .unwrap()
    }

    #[test]
    fn hashes_are_parsed_strictly() {
        let hash = ContentHash::of(b"abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), hex);
        assert_eq!(ContentHash::parse(&hex.to_uppercase()).unwrap(), hash);
        assert_eq!(ContentHash::of_chunks(["a", "bc"].into_iter()), hash);
        let wide = format!("{}é", &hex[..62]);
        for bad in ["", "ba78", &hex[1..], &format!("{}g", &hex[1..]), &wide] {
            let error = ContentHash::parse(bad).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn only_an_old_stamp_is_trusted() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, "1").unwrap();
        let stamp = stamp_of(&AccessView::default(), &abs(&path))
            .unwrap()
            .unwrap();
        let written = stamp.mtime_ns.max(stamp.ctime_ns);
        assert_eq!(observation(&path, None, written).unwrap().settled(), None);
        let late = observation(&path, None, written + SETTLED_NS).unwrap();
        let trusted = late.settled().unwrap();
        assert_eq!(trusted.content, FileContent::Hash(ContentHash::of(b"1")));
        // A cached content is trusted even if wrong, so it must not come from a recently changed
        // file.
        let wrong = CachedContent {
            content: FileContent::Absent,
            stamp,
        };
        assert_eq!(
            observation(&path, Some(&wrong), 0).unwrap().content,
            FileContent::Absent
        );
        fs::write(&path, "22").unwrap();
        assert_eq!(
            observation(&path, Some(&wrong), 0).unwrap().content,
            FileContent::Hash(ContentHash::of(b"22"))
        );
        assert!(!late.is_current(&AccessView::default(), &abs(&path)));
    }

    #[test]
    fn missing_files_are_absent_and_large_files_are_not_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        for gone in [path.clone(), path.join("b"), scratch.path().to_path_buf()] {
            let observation = observation(&gone, None, 0).unwrap();
            assert_eq!(
                (observation.content, observation.stamp),
                (FileContent::Absent, None)
            );
            assert!(observation.is_current(&AccessView::default(), &abs(&gone)));
        }
        let file = fs::File::create(&path).unwrap();
        assert!(observation(&path, None, 0).unwrap().stamp.is_some());
        file.set_len(limits::MAX_HASHED_FILE_BYTES + 1).unwrap();
        let large = observation(&path, None, 0).unwrap();
        assert!(matches!(large.content, FileContent::Large { .. }));
    }

    #[test]
    fn hashing_stops_when_cancelled() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, "1").unwrap();
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(
            Observation::of_disk(&AccessView::default(), &abs(&path), None, 0, &cancel).is_err()
        );
    }
}
