//! Finds the objects that refs reach, which must not be removed.

use std::collections::HashSet;

use sightline_base::cancel::Cancel;

use super::{
    object::{Kind, Mode, Oid, Unreadable, raw_entries},
    odb::Odb,
};
use crate::error::Error;

/// The objects found so far.
pub(crate) struct ReachableSet<'a> {
    reader: &'a Odb,
    objects: HashSet<Oid>,
}

impl<'a> ReachableSet<'a> {
    pub(crate) fn new(reader: &'a Odb) -> Self {
        Self {
            reader,
            objects: HashSet::new(),
        }
    }

    /// Returns all objects found.
    pub(crate) fn into_objects(self) -> HashSet<Oid> {
        self.objects
    }

    /// Removes objects from the set.
    pub(crate) fn forget(&mut self, objects: &[Oid]) {
        for oid in objects {
            self.objects.remove(oid);
        }
    }

    /// Adds everything reachable from `tip`. Returns the objects that were new, each folder before
    /// its entries.
    ///
    /// # Errors
    /// `storage` for an object that exists and cannot be read, because its references are unknown.
    /// A missing object has none. `cancelled`.
    pub(crate) fn add(&mut self, tip: Oid, cancel: &Cancel) -> Result<Vec<Oid>, Error> {
        let mut reached = Vec::new();
        let mut waiting = vec![tip];
        while let Some(oid) = waiting.pop() {
            if !self.objects.insert(oid) {
                continue;
            }
            reached.push(oid);
            cancel.check()?;
            let (kind, bytes) = match self.reader.read_any(oid) {
                Ok(found) => found,
                Err(Unreadable::Missing) => continue,
                Err(why) => return Err(self.reader.unreadable(Kind::Tree, oid, why)),
            };
            if kind == Kind::Tree {
                let entries = raw_entries(&bytes).ok_or_else(|| self.damaged(oid))?;
                for entry in entries {
                    match entry.mode() {
                        Some(Mode::File | Mode::Executable | Mode::Link) => {
                            if self.objects.insert(entry.oid) {
                                reached.push(entry.oid);
                            }
                        }
                        _ if entry.is_repository() => {}
                        _ => waiting.push(entry.oid),
                    }
                }
            } else if kind != Kind::Blob {
                waiting.extend(named_by_headers(&bytes, &["tree", "parent", "object"]));
            }
        }
        Ok(reached)
    }

    fn damaged(&self, oid: Oid) -> Error {
        self.reader.unreadable(Kind::Tree, oid, Unreadable::Damaged)
    }
}

/// Returns the ids in these headers of a commit or tag.
fn named_by_headers(bytes: &[u8], headers: &[&str]) -> Vec<Oid> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().take_while(|line| !line.is_empty());
    let named = lines.filter_map(|line| {
        let (header, oid) = line.split_once(' ')?;
        headers.contains(&header).then(|| Oid::from_hex(oid))?
    });
    named.collect()
}
