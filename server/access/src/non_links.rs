//! Reads the names in a directory that are not symlinks. If many entries are checked, this is cheaper than a stat
//! of each.

use std::{ffi::OsStr, ops::Range};

use sightline_base::fs::dir::Dir;
#[cfg(not(target_os = "linux"))]
use sightline_base::fs::dir::FileType;

/// Size of the buffer for directory entries, in bytes.
#[cfg(target_os = "linux")]
const READ_BYTES: usize = 16 * 1024;

/// Names of entries that are not symlinks, in one allocation.
#[derive(Debug, Default)]
pub(super) struct NonLinks {
    text: Vec<u8>,
    /// The range of each name in `text`, sorted by name.
    ranges: Vec<Range<usize>>,
    /// The index after the last name found. Names are often checked in sorted order.
    next: usize,
}

impl NonLinks {
    fn push(&mut self, name: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.ranges.push(start..self.text.len());
    }

    fn sort(&mut self) {
        let text = &self.text;
        let name = |range: &Range<usize>| &text[range.clone()];
        self.ranges.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    }

    pub(super) fn has(&mut self, name: &[u8]) -> bool {
        let order = |range: &Range<usize>| self.text[range.clone()].cmp(name);
        let at = match self.ranges.get(self.next) {
            Some(next) if order(next).is_eq() => self.next,
            _ => match self.ranges.binary_search_by(order) {
                Ok(at) => at,
                Err(_) => return false,
            },
        };
        self.next = at + 1;
        true
    }
}

/// Reads the names that are certainly not symlinks. Returns `None` if there are more than `most` entries or if they
/// cannot be examined: permission to list a directory does not include permission to stat its entries.
#[cfg(target_os = "linux")]
pub(super) fn non_links_in(folder: &Dir, most: usize) -> Option<NonLinks> {
    use std::mem::MaybeUninit;

    use rustix::fs::{FileType, RawDir};

    folder.stat(OsStr::new(".")).ok()?;
    let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
    let mut entries = RawDir::new(folder.open_for_listing().ok()?, &mut buffer);
    let mut plain = NonLinks::default();
    let mut count = 0;
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        count += 1;
        if count > most {
            return None;
        }
        match entry.file_type() {
            FileType::Symlink | FileType::Unknown => {}
            _ => plain.push(name),
        }
    }
    plain.sort();
    Some(plain)
}

/// Reads the names that are certainly not symlinks. Returns `None` if there are more than `most` entries or if they
/// cannot be examined: permission to list a directory does not include permission to stat its entries.
#[cfg(not(target_os = "linux"))]
pub(super) fn non_links_in(folder: &Dir, most: usize) -> Option<NonLinks> {
    folder.stat(OsStr::new(".")).ok()?;
    let mut plain = NonLinks::default();
    let mut count = 0;
    let each = |name: &OsStr, kind: Option<FileType>| {
        count += 1;
        if kind.is_some_and(|kind| kind != FileType::Symlink) {
            plain.push(name.as_encoded_bytes());
        }
        count <= most
    };
    folder.entries(each).ok()?;
    plain.sort();
    (count <= most).then_some(plain)
}
