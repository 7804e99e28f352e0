//! Read permissions of files, which git does not record. A restore must not create a file that more
//! users can read than before.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sightline_base::{fs::Stamp, path::RelPath};

use crate::{named_path::NamedPath, store::object::Mode};

/// Maximum number of paths saved with a checkpoint. If there are more, the others are readable only
/// by their owner.
pub(crate) const MAX_RESTRICTED: usize = 10_000;

/// Which users besides the owner may read a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadPermission {
    /// Everyone.
    #[default]
    All,
    /// The group.
    Group,
    /// Everyone except the group.
    Others,
    /// No other user.
    Owner,
}

impl ReadPermission {
    /// Derives the permission from the mode bits of a file or link.
    pub(crate) fn of(mode: Mode, stamp: &Stamp) -> Self {
        if !cfg!(unix) || mode == Mode::Link {
            return Self::All;
        }
        match (stamp.mode & 0o040 != 0, stamp.mode & 0o004 != 0) {
            (true, true) => Self::All,
            (true, false) => Self::Group,
            (false, true) => Self::Others,
            (false, false) => Self::Owner,
        }
    }

    /// Mode bits that the file must not have.
    pub(crate) fn withheld(self) -> u32 {
        match self {
            Self::All => 0,
            Self::Group => 0o007,
            Self::Others => 0o070,
            Self::Owner => 0o077,
        }
    }
}

/// The set of permissions that occur below a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadPermissionSet(u8);

impl ReadPermissionSet {
    pub(crate) fn add(&mut self, permission: ReadPermission) {
        self.0 |= 1 << permission as u8;
    }

    pub(crate) fn add_all(&mut self, below: Self) {
        self.0 |= below.0;
    }

    /// Returns the permission if it is the same for all files.
    pub(crate) fn only(self) -> Option<ReadPermission> {
        use ReadPermission::{All, Group, Others, Owner};
        let each = [All, Group, Others, Owner].into_iter();
        let mut seen = each.filter(|permission| self.0 & (1 << *permission as u8) != 0);
        let first = seen.next().unwrap_or_default();
        seen.next().is_none().then_some(first)
    }
}

/// A file, or all files below a folder, with restricted read permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestrictedPath {
    /// The path, which may be the root.
    #[serde(flatten)]
    pub path: NamedPath,
    /// Read permissions of the entry.
    pub readers: ReadPermission,
}

/// Read permissions of the files of a checkpoint.
#[derive(Debug)]
pub(crate) struct ReadPermissionMap<'a>(HashMap<(&'a str, bool), ReadPermission>);

impl<'a> ReadPermissionMap<'a> {
    pub(crate) fn new(restricted: &'a [RestrictedPath]) -> Self {
        let each = restricted.iter();
        Self(
            each.map(|it| ((it.path.path.as_str(), it.path.encoded), it.readers))
                .collect(),
        )
    }

    pub(crate) fn of(&self, path: &RelPath) -> ReadPermission {
        let mut above = path.ancestors().filter(|_| !self.0.is_empty());
        let found = above.find_map(|at| {
            let (text, encoded) = at.to_wire();
            self.0.get(&(text.as_str(), encoded)).copied()
        });
        found.unwrap_or_default()
    }
}
