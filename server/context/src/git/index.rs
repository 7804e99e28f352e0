//! Reads the index of a git work tree: the list of its tracked files.
//!
//! Reads what git reads: versions 2 to 4, split indexes, sparse indexes, and repositories with SHA-1
//! or SHA-256. libgit2 reads neither split nor sparse indexes, nor SHA-256. Checksums are not
//! verified, as git does not verify them either.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::config::Config;
use sightline_access::gitignore_stack::{self, WorkTree};
use sightline_base::{escape::hex, limits::MAX_GIT_FILE_BYTES};

/// Size of the fields of an entry before its object id, in bytes.
const STAT_BYTES: usize = 40;
/// Offset of the mode in an entry.
const MODE_OFFSET: usize = 24;
/// Flag of an entry with more flags.
const EXTENDED: u16 = 0x4000;
/// The part of the flags that contains the length of the path.
const LENGTH_MASK: u16 = 0x0fff;
/// Bits of a mode that contain the type.
const TYPE_MASK: u32 = 0o170_000;
const SUBMODULE: u32 = 0o160_000;
const FOLDER: u32 = 0o040_000;

/// A path in an index, relative to the work tree, with `/`. An index can contain arbitrary bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedPath {
    /// The path, without a `/` at its end.
    pub path: Vec<u8>,
    /// What is tracked there.
    pub kind: TrackedKind,
}

/// What is tracked at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackedKind {
    /// A file or link.
    File,
    /// A submodule.
    Submodule,
    /// A folder of a sparse index, which does not list the files in it; the id of its tree.
    SparseFolder(Vec<u8>),
}

/// The index file of a work tree, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitIndex {
    /// Path of the file.
    pub path: PathBuf,
    /// The directory that contains the configuration.
    common: PathBuf,
}

impl GitIndex {
    /// Finds the index of the work tree `top`. Returns `None` if `top` is not a work tree.
    ///
    /// # Errors
    /// The reason, if its repository is missing or cannot be opened.
    pub fn of(top: &Path) -> Option<Result<Self, String>> {
        Some(WorkTree::of(top)?.map(|WorkTree { git, common }| Self {
            path: git.join("index"),
            common,
        }))
    }

    /// Returns whether this is an additional worktree of the same repository.
    pub fn is_worktree_of(&self, other: &Self) -> bool {
        let real = |path: &Path| sightline_base::path::canonicalize(path).ok();
        self.path.parent() != Some(&*self.common)
            && real(&self.common).is_some_and(|common| real(&other.common) == Some(common))
    }

    /// Returns whether the repository may have commits.
    fn has_objects(&self) -> bool {
        let objects = self.common.join("objects");
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().len())
        };
        names(&objects).any(|length| length == 2)
            || names(&objects.join("pack")).next().is_some()
            || objects.join("info/alternates").exists()
    }

    /// Opens the file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self) -> io::Result<Option<File>> {
        match gitignore_stack::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the tracked paths, sorted as git does, except those added to a split index.
    ///
    /// # Errors
    /// The reason, if it cannot be read: it is missing in a repository with objects, has more than `max_bytes`, is damaged, or has a format
    /// that git would refuse too.
    pub fn tracked_paths(&self, max_bytes: u64) -> Result<Vec<TrackedPath>, String> {
        let Some(file) = self.open().map_err(|error| error.to_string())? else {
            return if self.has_objects() {
                Err("it is missing".to_owned())
            } else {
                Ok(Vec::new())
            };
        };
        let hash_bytes = self.hash_bytes()?;
        let index = parse(&read(file, max_bytes)?, hash_bytes)?;
        let Some(link) = index.link else {
            return Ok(index.entries);
        };
        let name = format!("sharedindex.{}", link.base);
        let shared = gitignore_stack::open(&self.path.with_file_name(&name))
            .map_err(|error| format!("cannot open {name}: {error}"))?;
        let shared = parse(&read(shared, max_bytes)?, hash_bytes)?;
        link.apply(shared.entries, index.entries)
            .ok_or_else(|| damaged("its link to the shared index"))
    }

    /// Returns the files and submodules in a sparse folder, from the objects of the repository.
    ///
    /// # Errors
    /// The reason, if a tree cannot be read, or there are more than `limit` files.
    pub fn files_in_sparse_folder(
        &self,
        folder: &TrackedPath,
        limit: usize,
    ) -> Result<Vec<TrackedPath>, String> {
        let TrackedKind::SparseFolder(tree) = &folder.kind else {
            return Ok(vec![folder.clone()]);
        };
        let objects = self.common.join("objects");
        files_in_tree(&objects, tree, &folder.path, limit)
            .map_err(|error| error.message().to_owned())?
            .ok_or_else(|| format!("it contains more than {limit} files"))
    }

    /// Returns the size of the object ids, in bytes.
    fn hash_bytes(&self) -> Result<usize, String> {
        let config = gitignore_stack::open(&self.common.join("config"));
        let config = match config {
            Ok(file) => read(file, MAX_GIT_FILE_BYTES)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(format!("cannot open the git configuration: {error}")),
        };
        let config = Config::parse(&config).ok_or("the git configuration is invalid")?;
        let format = config.get("extensions", "objectformat");
        match format.map(str::to_ascii_lowercase).as_deref() {
            None | Some("sha1") => Ok(20),
            Some("sha256") => Ok(32),
            Some(other) => Err(format!("its object format is {other}")),
        }
    }
}

/// Lists the files in a tree, or returns `None` above the limit.
fn files_in_tree(
    objects: &Path,
    tree: &[u8],
    path: &[u8],
    limit: usize,
) -> Result<Option<Vec<TrackedPath>>, git2::Error> {
    super::isolate();
    let odb = git2::Odb::new()?;
    odb.add_disk_alternate(&objects.to_string_lossy())?;
    let repository = git2::Repository::from_odb(odb)?;
    let mut files = Vec::new();
    let mut folders = vec![(git2::Oid::from_bytes(tree)?, path.to_vec())];
    while let Some((tree, path)) = folders.pop() {
        for entry in &repository.find_tree(tree)? {
            let path = [&*path, b"/", entry.name_bytes()].concat();
            let kind = match entry.filemode().cast_unsigned() & TYPE_MASK {
                FOLDER => {
                    folders.push((entry.id(), path));
                    continue;
                }
                SUBMODULE => TrackedKind::Submodule,
                _ => TrackedKind::File,
            };
            files.push(TrackedPath { path, kind });
            if files.len() > limit {
                return Ok(None);
            }
        }
    }
    Ok(Some(files))
}

fn read(file: File, max_bytes: u64) -> Result<Vec<u8>, String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() > max_bytes {
        let length = metadata.len();
        return Err(format!(
            "it has {length} bytes, above the limit {max_bytes}"
        ));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn damaged(what: &str) -> String {
    format!("{what} is damaged")
}

/// An index file.
struct Parsed {
    entries: Vec<TrackedPath>,
    link: Option<Link>,
}

/// The difference of a split index to its shared index.
struct Link {
    /// Hash in the name of the shared index.
    base: String,
    /// Numbers of the deleted and replaced entries, as compressed bitmaps.
    bitmaps: Vec<u8>,
}

impl Link {
    /// Combines the shared entries and those of the split index: first replacements, which have no
    /// path, then additional entries. Returns `None` if they do not fit.
    fn apply(&self, shared: Vec<TrackedPath>, own: Vec<TrackedPath>) -> Option<Vec<TrackedPath>> {
        let (deleted, rest) = bits(&self.bitmaps, shared.len())?;
        let (replaced, rest) = bits(rest, shared.len())?;
        let mut shared: Vec<Option<TrackedPath>> = shared.into_iter().map(Some).collect();
        let mut own = own.into_iter();
        for at in replaced {
            let TrackedPath { path, kind } = own.next()?;
            if !path.is_empty() {
                return None;
            }
            shared[at].as_mut()?.kind = kind;
        }
        for at in deleted {
            shared[at] = None;
        }
        let mut entries: Vec<TrackedPath> = shared.into_iter().flatten().collect();
        entries.extend(own);
        let is_whole = rest.is_empty() && entries.iter().all(|entry| !entry.path.is_empty());
        is_whole.then_some(entries)
    }
}

/// Decodes a compressed bitmap (EWAH). Returns the numbers of the set bits, which are below `limit`,
/// and the data after it.
fn bits(data: &[u8], limit: usize) -> Option<(Vec<usize>, &[u8])> {
    if data.is_empty() {
        return Some((Vec::new(), data));
    }
    let (_size, data) = data.split_at_checked(4)?;
    let (count, data) = data.split_at_checked(4)?;
    let bytes = usize::try_from(number(count)?).ok()?.checked_mul(8)?;
    let (words, data) = data.split_at_checked(bytes)?;
    let (_last_marker, data) = data.split_at_checked(4)?;
    let mut words = words.chunks_exact(8).map(|word| word.try_into().ok());
    let mut next = move || Some(u64::from_be_bytes(words.next()??));
    let mut set = Vec::new();
    let mut at = 0_usize;
    while let Some(marker) = next() {
        let run = usize::try_from((marker >> 1) & 0xffff_ffff).ok()?;
        let end = at.checked_add(run.checked_mul(64)?)?;
        if marker & 1 == 1 {
            if end > limit {
                return None;
            }
            set.extend(at..end);
        }
        at = end;
        for _ in 0..marker >> 33 {
            let word = next()?;
            let ones = (0..64).filter(|bit| word >> bit & 1 == 1);
            set.extend(ones.map(|bit| at + bit));
            at += 64;
        }
    }
    let is_valid = set.last().is_none_or(|last| *last < limit);
    is_valid.then_some((set, data))
}

/// Reads a number of four bytes.
fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

fn parse(bytes: &[u8], hash_bytes: usize) -> Result<Parsed, String> {
    let (Some(b"DIRC"), Some(version), Some(count)) = (
        bytes.get(..4),
        bytes.get(4..).and_then(number),
        bytes.get(8..).and_then(number),
    ) else {
        return Err(damaged("its header"));
    };
    if !(2..=4).contains(&version) {
        return Err(format!("its version is {version}"));
    }
    let mut entries: Vec<TrackedPath> = Vec::new();
    let mut rest = &bytes[12..];
    for _ in 0..count {
        let last = entries.last().map_or(&b""[..], |last| &last.path);
        let (entry, after) =
            entry(rest, version, hash_bytes, last).ok_or_else(|| damaged("an entry"))?;
        entries.push(entry);
        rest = after;
    }
    for entry in &mut entries {
        if matches!(entry.kind, TrackedKind::SparseFolder(_)) && entry.path.ends_with(b"/") {
            entry.path.pop();
        }
    }
    let link = link(rest, hash_bytes)?;
    Ok(Parsed { entries, link })
}

/// Parses the entry at the start of `data`. Returns it with the data after it. `last` is the path
/// of the entry before it.
fn entry<'d>(
    data: &'d [u8],
    version: u32,
    hash_bytes: usize,
    last: &[u8],
) -> Option<(TrackedPath, &'d [u8])> {
    let mode = number(data.get(MODE_OFFSET..)?)?;
    let flags_at = STAT_BYTES + hash_bytes;
    let flags = u16::from_be_bytes(data.get(flags_at..flags_at + 2)?.try_into().ok()?);
    let path_at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
    let rest = data.get(path_at..)?;
    let (path, after) = if version == 4 {
        let (removed, suffix) = varint(rest)?;
        let kept = last.get(..last.len().checked_sub(removed)?)?;
        let end = memchr::memchr(0, suffix)?;
        ([kept, &suffix[..end]].concat(), &suffix[end + 1..])
    } else {
        let length = match flags & LENGTH_MASK {
            LENGTH_MASK => memchr::memchr(0, rest)?,
            length => usize::from(length),
        };
        // One to eight zeros, up to a multiple of eight.
        let padded = (path_at + length + 8) & !7;
        (rest.get(..length)?.to_vec(), data.get(padded..)?)
    };
    let kind = match mode & TYPE_MASK {
        SUBMODULE => TrackedKind::Submodule,
        FOLDER => TrackedKind::SparseFolder(data.get(STAT_BYTES..flags_at)?.to_vec()),
        _ => TrackedKind::File,
    };
    Some((TrackedPath { path, kind }, after))
}

/// Decodes a number of variable length. Returns it with the data after it.
fn varint(data: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (at, byte) in data.iter().enumerate() {
        value = value
            .checked_mul(128)?
            .checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((value, &data[at + 1..]));
        }
        value = value.checked_add(1)?;
    }
    None
}

/// Reads the extensions after the entries. Returns the link to a shared index, if there is one.
fn link(extensions: &[u8], hash_bytes: usize) -> Result<Option<Link>, String> {
    let mut link = None;
    let mut rest = extensions;
    // The checksum of the file comes last.
    while rest.len() >= hash_bytes + 8 {
        let (name, after) = rest.split_at(4);
        let length = number(after).and_then(|length| usize::try_from(length).ok());
        let data = length.and_then(|length| after.get(4..)?.get(..length));
        let data = data.ok_or_else(|| damaged("an extension"))?;
        match name {
            b"link" => {
                let (base, bitmaps) = data
                    .split_at_checked(hash_bytes)
                    .ok_or_else(|| damaged("its link to the shared index"))?;
                if base.iter().any(|byte| *byte != 0) {
                    link = Some(Link {
                        base: hex(base),
                        bitmaps: bitmaps.to_vec(),
                    });
                }
            }
            // Sparse folders are entries.
            b"sdir" => {}
            // git ignores unknown extensions whose name begins with a capital letter.
            [b'A'..=b'Z', ..] => {}
            _ => {
                let name = name.escape_ascii();
                return Err(format!("it has the unknown extension {name}"));
            }
        }
        rest = &after[4 + data.len()..];
    }
    if rest.len() < hash_bytes {
        return Err(damaged("its end"));
    }
    Ok(link)
}

#[cfg(test)]
mod tests;
