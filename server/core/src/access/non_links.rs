//! The names in a folder that are no links, read at once: cheaper than to look at
//! each when many are asked for.

use std::{ffi::OsStr, ops::Range};

use crate::fs::dir::Dir;
#[cfg(not(target_os = "linux"))]
use crate::fs::dir::Kind;

/// Bytes of a folder read at once.
#[cfg(target_os = "linux")]
const READ_BYTES: usize = 16 * 1024;

/// NonLinks of one folder, without an allocation for each.
#[derive(Debug, Default)]
pub(super) struct NonLinks {
    text: Vec<u8>,
    /// Where each stands, in the order of their bytes once all are there.
    places: Vec<Range<usize>>,
    /// What follows the one found last: who asks for many often asks in this order.
    next: usize,
}

impl NonLinks {
    fn push(&mut self, name: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.places.push(start..self.text.len());
    }

    fn sort(&mut self) {
        let text = &self.text;
        let name = |place: &Range<usize>| &text[place.clone()];
        self.places.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    }

    pub(super) fn has(&mut self, name: &[u8]) -> bool {
        let order = |place: &Range<usize>| self.text[place.clone()].cmp(name);
        let at = match self.places.get(self.next) {
            Some(next) if order(next).is_eq() => self.next,
            _ => match self.places.binary_search_by(order) {
                Ok(at) => at,
                Err(_) => return false,
            },
        };
        self.next = at + 1;
        true
    }
}

/// The names in a folder that are no links, for sure; `None` when there are more
/// than `most` entries, or they cannot be looked at: who may list a folder need
/// not be allowed to look at what is in it.
#[cfg(target_os = "linux")]
pub(super) fn non_links_in(folder: &Dir, most: usize) -> Option<NonLinks> {
    use std::mem::MaybeUninit;

    use rustix::fs::{FileType, RawDir};

    folder.look(OsStr::new(".")).ok()?;
    let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
    let mut entries = RawDir::new(folder.to_list().ok()?, &mut buffer);
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

/// The names in a folder that are no links, for sure; `None` when there are more
/// than `most` entries, or they cannot be looked at: who may list a folder need
/// not be allowed to look at what is in it.
#[cfg(not(target_os = "linux"))]
pub(super) fn non_links_in(folder: &Dir, most: usize) -> Option<NonLinks> {
    folder.look(OsStr::new(".")).ok()?;
    let mut plain = NonLinks::default();
    let mut count = 0;
    let each = |name: &OsStr, kind: Option<Kind>| {
        count += 1;
        if kind.is_some_and(|kind| kind != Kind::Link) {
            plain.push(name.as_encoded_bytes());
        }
        count <= most
    };
    folder.entries(each).ok()?;
    plain.sort();
    (count <= most).then_some(plain)
}
