//! Read permissions of files, which git does not record. A restore must not create a file that more
//! users can read than before.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sightline_workspace::{fs::Stamp, path::RelPath};

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
        let mut place = Some(path.clone()).filter(|_| !self.0.is_empty());
        while let Some(at) = place {
            let (text, encoded) = at.to_wire();
            if let Some(readers) = self.0.get(&(text.as_str(), encoded)) {
                return *readers;
            }
            place = at.parent();
        }
        ReadPermission::All
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        store::object::Oid,
        worktree::{
            saved_paths::restricted,
            snapshot::{File, Folder, Node, Parts, below},
        },
    };

    fn file(mode: u32) -> Node {
        Node::File(File {
            stamp: Stamp {
                mode,
                ..Stamp::default()
            },
            oid: Oid::EMPTY_TREE,
            mode: Mode::File,
            settled: true,
        })
    }

    fn folder(entries: impl IntoIterator<Item = (String, Node)>) -> Arc<Folder> {
        let entries = entries.into_iter();
        Arc::new(Folder::new(Parts {
            entries: entries
                .map(|(name, node)| (name.into_bytes().into(), node))
                .collect(),
            ..Parts::default()
        }))
    }

    fn readers_of(restricted: &[RestrictedPath], path: &str) -> ReadPermission {
        ReadPermissionMap::new(restricted).of(&below(path.as_bytes(), b""))
    }

    #[test]
    fn permissions_are_combined_by_folder() {
        let of = |modes: &[u32]| {
            let files = modes.iter().enumerate();
            folder(files.map(|(at, mode)| (at.to_string(), file(0o100_000 | mode))))
        };
        let entry = |name: &str, folder| (name.to_owned(), Node::Folder(folder));
        let tree = folder([
            entry("keys", folder([entry("deep", of(&[0o600, 0o700]))])),
            entry("mixed", of(&[0o644, 0o640, 0o755, 0o604])),
            entry("open", of(&[0o644, 0o664])),
            entry("empty", folder([])),
        ]);
        let mut kept = restricted(&tree);
        kept.sort_by(|a, b| a.path.path.cmp(&b.path.path));
        let kept_as: Vec<_> = kept.iter().map(|it| (&*it.path.path, it.readers)).collect();
        assert_eq!(
            kept_as,
            [
                ("keys", ReadPermission::Owner),
                ("mixed/1", ReadPermission::Group),
                ("mixed/3", ReadPermission::Others),
            ]
        );
        assert_eq!(readers_of(&kept, "keys/deep/1"), ReadPermission::Owner);
        assert_eq!(readers_of(&kept, "mixed/0"), ReadPermission::All);
        assert_eq!(readers_of(&kept, "keys2"), ReadPermission::All);
        assert_eq!(restricted(&of(&[0o644])), Vec::new());
        let all = restricted(&of(&[0o600, 0o600]));
        assert_eq!(all.len(), 1);
        assert_eq!(readers_of(&all, "anything"), ReadPermission::Owner);
    }

    #[test]
    fn unlisted_files_are_readable_by_their_owner_only() {
        let private = (0..MAX_RESTRICTED + 5).map(|at| (format!("p{at:06}"), file(0o100_640)));
        let tree = folder(private.chain([("z".to_owned(), file(0o100_644))]));
        let kept = restricted(&tree);
        assert_eq!(kept.len(), MAX_RESTRICTED + 1);
        assert_eq!(readers_of(&kept, "p000001"), ReadPermission::Group);
        assert_eq!(readers_of(&kept, "p010003"), ReadPermission::Owner);
        assert_eq!(readers_of(&kept, "z"), ReadPermission::Owner);
    }
}
