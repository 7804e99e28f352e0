//! Encodes and decodes git objects: object ids, modes, trees and commits. Does no I/O.

use std::{fmt, str::FromStr};

use gix_hash::ObjectId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha1::{Digest, Sha1};
use sightline_protocol::error::ErrorKind;

use crate::error::Error;

pub(crate) use gix_object::{Kind, tree::name_order};

/// Id of a git object: SHA-1 of its kind, length and content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub(crate) [u8; 20]);

impl Oid {
    /// The empty tree.
    pub(crate) const EMPTY_TREE: Oid = Oid([
        0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92,
        0x88, 0xfb, 0xee, 0x49, 0x04,
    ]);

    /// Parses exactly forty lower-case hexadecimal digits.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let is_digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 40 && text.bytes().all(is_digit))
            .then(|| text.parse().ok())
            .flatten()
    }

    pub(crate) fn from_gix(oid: &ObjectId) -> Option<Self> {
        oid.as_slice().try_into().ok().map(Self)
    }

    /// Returns the id of a file with this content.
    pub fn of_file(content: &[u8]) -> Self {
        name_of(Kind::Blob, content)
    }

    /// The 20 bytes of the id.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ObjectId::from(self.0), f)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Oid {
    type Err = Error;

    /// Parses 40 hexadecimal digits, optionally after `HEAD `: Cline's stored tasks contain both
    /// forms.
    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text.strip_prefix("HEAD ").unwrap_or(text);
        let oid = ObjectId::from_hex(digits.as_bytes()).ok();
        oid.as_ref().and_then(Self::from_gix).ok_or_else(|| {
            let shown: String = text.chars().take(60).collect();
            Error::new(
                ErrorKind::InvalidParams,
                format!("{shown:?} is not a checkpoint id; an id has 40 hexadecimal digits"),
            )
        })
    }
}

impl Serialize for Oid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Oid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Deserialize::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error: Error| serde::de::Error::custom(error))
    }
}

/// Why an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The object does not exist.
    Missing,
    /// The content does not match the id, or cannot be decoded.
    Damaged,
    /// No copy was found, and a file could not be opened that may have one.
    Unavailable,
    /// The object, or the base of its delta, exceeds the size limit; its size in bytes.
    TooLarge(u64),
}

impl Unreadable {
    /// Describes the problem as a predicate of the object.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Missing => "is missing".to_owned(),
            Self::Damaged => "is damaged".to_owned(),
            Self::Unavailable => "is unavailable".to_owned(),
            Self::TooLarge(length) => format!("is too large ({length} bytes)"),
        }
    }
}

/// Returns the id of an object.
pub(crate) fn name_of(kind: Kind, bytes: &[u8]) -> Oid {
    let mut hash = Hasher::new(kind, bytes.len() as u64);
    hash.update(bytes);
    hash.finish()
}

/// Computes the id of an object in pieces. Its length must be known first.
pub(crate) struct Hasher(Sha1);

impl Hasher {
    pub(crate) fn new(kind: Kind, length: u64) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("{kind} {length}\0"));
        Self(hash)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Oid {
        Oid(self.0.finalize().into())
    }
}

/// Mode of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Regular file.
    File,
    /// Executable file.
    Executable,
    /// Symbolic link; its blob is the target.
    Link,
    /// Folder.
    Folder,
}

impl Mode {
    /// The mode as tree objects spell it.
    pub(crate) fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Folder => "40000",
        }
    }

    fn from_octal(octal: &[u8]) -> Option<Self> {
        match octal {
            // Very old versions of git write group-writable files this way.
            b"100644" | b"100664" => Some(Self::File),
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Link),
            b"40000" | b"040000" => Some(Self::Folder),
            // 160000 is a submodule; its commit is in another repository.
            _ => None,
        }
    }
}

/// Entry of a tree object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) mode: Mode,
    pub(crate) name: Box<[u8]>,
    pub(crate) oid: Oid,
}

/// Encodes a tree. The entries must be in [`name_order`].
pub(crate) fn encode_tree<'a>(entries: impl Iterator<Item = (Mode, &'a [u8], Oid)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (mode, name, oid) in entries {
        bytes.extend_from_slice(mode.octal().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(&oid.0);
    }
    bytes
}

/// Tree entry whose mode may be unsupported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) mode: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) oid: Oid,
}

impl RawEntry<'_> {
    /// Returns `None` for an unsupported mode.
    pub(crate) fn mode(&self) -> Option<Mode> {
        Mode::from_octal(self.mode)
    }

    /// Returns whether the entry is a submodule.
    pub(crate) fn is_repository(&self) -> bool {
        self.mode == b"160000"
    }
}

/// Decodes every entry of a tree. Returns `None` if the bytes are not a tree.
pub(crate) fn raw_entries(mut bytes: &[u8]) -> Option<Vec<RawEntry<'_>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = memchr::memchr(b' ', bytes)?;
        let end = space + 1 + memchr::memchr(0, &bytes[space + 1..])?;
        let oid = bytes.get(end + 1..end + 21)?;
        entries.push(RawEntry {
            mode: &bytes[..space],
            name: &bytes[space + 1..end],
            oid: Oid(oid.try_into().ok()?),
        });
        bytes = &bytes[end + 21..];
    }
    Some(entries)
}

/// Decodes the entries of a tree that have a supported mode. Returns `None` if the bytes are not a
/// tree.
pub(crate) fn decode_tree(bytes: &[u8]) -> Option<Vec<TreeEntry>> {
    let usable = |entry: &RawEntry<'_>| {
        Some(TreeEntry {
            mode: entry.mode()?,
            name: entry.name.into(),
            oid: entry.oid,
        })
    };
    Some(raw_entries(bytes)?.iter().filter_map(usable).collect())
}

/// A commit without parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) tree: Oid,
    /// Commit time, in seconds since the epoch.
    pub(crate) time: u64,
    pub(crate) message: String,
}

/// Author and committer of every commit.
const AUTHOR: &str = "Sightline <sightline@localhost>";

impl Commit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self {
            tree,
            time,
            message,
        } = self;
        format!("tree {tree}\nauthor {AUTHOR} {time} +0000\ncommitter {AUTHOR} {time} +0000\n\n{message}")
            .into_bytes()
    }

    /// Decodes a commit. Returns `None` if the bytes are not a commit. Ignores parents and other
    /// headers that foreign commits have.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (headers, message) = text.split_once("\n\n")?;
        let mut lines = headers.lines();
        let tree = lines.next()?.strip_prefix("tree ")?.parse().ok()?;
        let committer = lines.find_map(|line| line.strip_prefix("committer "))?;
        let time = committer.rsplit(' ').nth(1)?.parse().ok()?;
        Some(Self {
            tree,
            time,
            message: message.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use proptest::prelude::*;

    use super::*;

    /// Returns the output of git for `input`, in an empty repository.
    fn git(arguments: &[&str], input: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str], input: &[u8]| {
            let mut child = Command::new("git")
                .args(arguments)
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("HOME", folder.path())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(input).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        run(&["init", "-q", "--bare"], b"");
        run(arguments, input)
    }

    #[test]
    fn object_ids_match_git() {
        for content in [&b""[..], b"a\r\n", &[0, 255, 10]] {
            let output = git(&["hash-object", "--stdin"], content);
            assert_eq!(name_of(Kind::Blob, content).to_string(), output);
        }
        assert_eq!(name_of(Kind::Tree, b""), Oid::EMPTY_TREE);
    }

    #[test]
    fn ids_parse_with_and_without_a_prefix() {
        let id = Oid::EMPTY_TREE;
        for text in [
            id.to_string(),
            format!("HEAD {id}"),
            id.to_string().to_uppercase(),
        ] {
            let same = text.strip_prefix("HEAD ").unwrap_or(&text);
            assert_eq!(text.parse::<Oid>().unwrap(), id, "{same}");
        }
        for wrong in [
            "",
            "4b82",
            "head 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            &"g".repeat(40),
            &"é".repeat(20),
        ] {
            assert!(wrong.parse::<Oid>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn commits_round_trip() {
        let commit = Commit {
            tree: Oid::EMPTY_TREE,
            time: 1_700_000_000,
            message: "subject\n\nbody\n\nmore\n".to_owned(),
        };
        assert_eq!(Commit::decode(&commit.encode()), Some(commit.clone()));
        let bytes = commit.encode();
        assert_eq!(
            name_of(Kind::Commit, &bytes).to_string(),
            git(&["hash-object", "-t", "commit", "--stdin"], &bytes)
        );
        for end in 0..bytes.len() {
            Commit::decode(&bytes[..end]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn trees_are_in_gits_order(
            names in proptest::collection::btree_map("[a.0-]{1,4}", any::<bool>(), 0..12),
        ) {
            let blob = name_of(Kind::Blob, b"");
            let mut entries: Vec<(Mode, &[u8], Oid)> = names
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "." | ".."))
                .map(|(name, is_folder)| if *is_folder {
                    (Mode::Folder, name.as_bytes(), Oid::EMPTY_TREE)
                } else {
                    (Mode::File, name.as_bytes(), blob)
                })
                .collect();
            let key = |entry: &(Mode, &[u8], Oid)| entry.0 == Mode::Folder;
            entries.sort_by(|left, right| name_order(left.1, key(left), right.1, key(right)));
            let bytes = encode_tree(entries.iter().copied());
            let lines: String = entries
                .iter()
                .rev()
                .map(|(mode, name, oid)| {
                    let kind = if *mode == Mode::Folder { "tree" } else { "blob" };
                    let name = String::from_utf8_lossy(name);
                    format!("{} {kind} {oid}\t{name}\n", mode.octal())
                })
                .collect();
            let output = git(&["mktree", "--missing"], lines.as_bytes());
            prop_assert_eq!(name_of(Kind::Tree, &bytes).to_string(), output);
            let decoded = decode_tree(&bytes).unwrap();
            let same = decoded.iter().map(|entry| (entry.mode, &*entry.name, entry.oid));
            prop_assert!(same.eq(entries));
        }

        #[test]
        fn arbitrary_objects_do_not_panic(bytes: Vec<u8>) {
            decode_tree(&bytes);
            Commit::decode(&bytes);
        }
    }
}
