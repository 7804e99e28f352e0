//! Reads loose objects, which only git writes. git does not always flush them, so a power failure
//! can truncate them: every object is verified. (The reader of `gix-odb` blocks on a pipe, and
//! accepts a truncated checksum and bytes behind the end.)

use std::{
    fs::{self, File},
    io::{self, ErrorKind as Io, Read},
    path::{Path, PathBuf},
};

use gix_zlib::{Inflate, Status};

use super::{
    object::{Kind, Oid, Unreadable, name_of},
    pack::MAX_RATIO,
};
use sightline_base::{
    error::Error as WorkspaceError,
    storage::atomic_file::{cannot_open, is_dir, open_regular},
};

/// Number of bytes read to find the header.
const START: u64 = 128;
/// Maximum length of a header, in bytes: `commit`, a space, 20 digits and a zero byte fit.
const MAX_HEADER: usize = 32;

/// An object file whose header was parsed.
struct Opened {
    file: File,
    /// Compressed bytes read so far.
    deflated: Vec<u8>,
    /// Length of the inflated header, in bytes.
    header: usize,
    kind: Kind,
    length: u64,
}

/// Requires that the object has a file. Does not read it.
pub(crate) fn find(objects: &Path, oid: Oid) -> Result<(), Unreadable> {
    match fs::symlink_metadata(path(objects, oid)?) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Unreadable::Damaged),
        Err(error) if error.kind() == Io::NotFound => Err(Unreadable::Missing),
        Err(_) => Err(Unreadable::Unavailable),
    }
}

/// Lists the loose objects. Leaves out what cannot be listed.
pub(crate) fn all(objects: &Path) -> Vec<(Oid, PathBuf)> {
    let mut found = Vec::new();
    for folder in fs::read_dir(objects).into_iter().flatten().flatten() {
        let start = folder.file_name();
        let Some(start) = start.to_str().filter(|name| name.len() == 2) else {
            continue;
        };
        if !is_dir(&folder.path()).unwrap_or_default() {
            continue;
        }
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let rest = entry.file_name();
            let name = rest.to_str().map(|rest| format!("{start}{rest}"));
            let oid = name.and_then(|name| Oid::from_hex(&name));
            found.extend(oid.map(|oid| (oid, entry.path())));
        }
    }
    found
}

/// Returns the kind and length that the file states.
pub(crate) fn header(objects: &Path, oid: Oid) -> Result<(Kind, u64), Unreadable> {
    let opened = open(objects, oid)?;
    Ok((opened.kind, opened.length))
}

/// Reads an object of at most `largest` bytes, and verifies its id.
pub(crate) fn read(objects: &Path, oid: Oid, largest: u64) -> Result<(Kind, Vec<u8>), Unreadable> {
    let opened = open(objects, oid)?;
    if opened.length > largest {
        return Err(Unreadable::TooLarge(opened.length));
    }
    let kind = opened.kind;
    let inflated = opened.inflate().map_err(|_| Unreadable::Unavailable)?;
    match inflated {
        Some(bytes) if name_of(kind, &bytes) == oid => Ok((kind, bytes)),
        _ => Err(Unreadable::Damaged),
    }
}

fn open(objects: &Path, oid: Oid) -> Result<Opened, Unreadable> {
    let path = path(objects, oid)?;
    let mut file = open_regular(&path).map_err(|error| match error.kind() {
        Io::NotFound => Unreadable::Missing,
        _ => match cannot_open(&path, error) {
            WorkspaceError::Storage { .. } => Unreadable::Unavailable,
            _ => Unreadable::Damaged,
        },
    })?;
    let mut deflated = Vec::new();
    let read = file.by_ref().take(START).read_to_end(&mut deflated);
    read.map_err(|_| Unreadable::Unavailable)?;
    let mut start = [0xff; MAX_HEADER];
    // Errors after the header are found when the content is read.
    let _ = Inflate::default().prefix(&deflated, &mut start);
    let (kind, length, header) = decode_header(&start).ok_or(Unreadable::Damaged)?;
    Ok(Opened {
        file,
        deflated,
        header,
        kind,
        length,
    })
}

impl Opened {
    /// Inflates the content. Returns `None` unless the file holds exactly what its header states.
    fn inflate(mut self) -> io::Result<Option<Vec<u8>>> {
        let stored = self.file.metadata()?.len();
        // Bounds both directions: deflate hardly enlarges data, and compresses it by a limited
        // ratio.
        let most = self.length.saturating_add(self.length / 64 + 1024);
        if stored > most || self.length > stored.saturating_mul(MAX_RATIO) {
            return Ok(None);
        }
        self.file.take(most).read_to_end(&mut self.deflated)?;
        let length = usize::try_from(self.length).ok();
        let Some(whole) = length.and_then(|length| length.checked_add(self.header)) else {
            return Ok(None);
        };
        let mut bytes = vec![0; whole];
        let inflated = Inflate::default().once(&self.deflated, &mut bytes);
        let is_whole = inflated
            .is_ok_and(|inflated| inflated == (Status::StreamEnd, self.deflated.len(), whole));
        Ok(is_whole.then(|| bytes.split_off(self.header)))
    }
}

/// Parses `KIND LENGTH` and the zero byte. Also returns the length of the header.
fn decode_header(start: &[u8]) -> Option<(Kind, u64, usize)> {
    let end = memchr::memchr(0, start)?;
    let (kind, digits) = str::from_utf8(&start[..end]).ok()?.split_once(' ')?;
    let kind = Kind::from_bytes(kind.as_bytes()).ok()?;
    let length: u64 = digits.parse().ok()?;
    // The length is canonical: no sign, no leading zeros.
    (length.to_string() == digits).then_some((kind, length, end + 1))
}

/// Returns the path of an object. It is missing if its folder is missing or a link.
fn path(objects: &Path, oid: Oid) -> Result<PathBuf, Unreadable> {
    let name = oid.to_string();
    let (folder, file) = name.split_at(2);
    let folder = objects.join(folder);
    match is_dir(&folder) {
        Ok(true) => Ok(folder.join(file)),
        Ok(false) => Err(Unreadable::Missing),
        Err(_) => Err(Unreadable::Unavailable),
    }
}
