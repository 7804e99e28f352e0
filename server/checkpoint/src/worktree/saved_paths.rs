//! The paths that a checkpoint saves in its metadata: skipped, ignored, denied and restricted ones.

use sightline_base::path::RelPath;

use super::{
    exclusions::{ENTRY_BYTES, MAX_BYTES, PathSalt, SavedExclusions},
    permissions::{MAX_RESTRICTED, ReadPermission, RestrictedPath},
    snapshot::{ExclusionReason, File, Folder, below},
};
use crate::{metadata::Skipped, named_path::NamedPath};

/// Returns the skipped paths of a tree with reasons, sorted. Ignored and denied paths are not
/// included.
pub(crate) fn skipped(tree: &Folder) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    tree.visit(Folder::has_exclusions, |path, folder| {
        let entries = folder
            .excluded
            .iter()
            .filter(|entry| entry.reason != ExclusionReason::Ignored);
        for entry in entries {
            let (path, encoded) = below(path, &entry.name).to_wire();
            skipped.push(Skipped {
                path,
                encoded,
                reason: entry.reason.to_string(),
            });
        }
    });
    skipped.sort_unstable();
    skipped
}

/// Returns the ignored and denied paths of a tree, or `None` if there are too many to save.
pub(crate) fn exclusions(tree: &Folder, salt: PathSalt) -> Option<SavedExclusions> {
    let mut saved = SavedExclusions {
        ignored: Vec::new(),
        denied: Vec::new(),
        salt,
    };
    let mut room = Some(MAX_BYTES);
    tree.visit(Folder::has_exclusions, |path, folder| {
        let mut take = |size: usize| {
            room = room.and_then(|room| room.checked_sub(size));
            room.is_some()
        };
        if take(folder.denied.len() * ENTRY_BYTES) {
            saved.denied.extend_from_slice(&folder.denied);
        }
        let ignored = folder
            .excluded
            .iter()
            .filter(|entry| entry.reason == ExclusionReason::Ignored)
            .take_while(|entry| take(path.len() + entry.name.len() + ENTRY_BYTES))
            .map(|entry| NamedPath::of(&below(path, &entry.name)));
        saved.ignored.extend(ignored);
    });
    room?;
    saved.ignored.sort_unstable();
    saved.denied.sort_unstable();
    Some(saved)
}

/// Returns the restricted paths of a tree, combined by folder.
pub(crate) fn restricted(tree: &Folder) -> Vec<RestrictedPath> {
    let mut found = Vec::new();
    let restricted = |path: &RelPath, readers| RestrictedPath {
        path: NamedPath::of(path),
        readers,
    };
    let mut rest = vec![(Vec::new(), tree)];
    while let Some((path, folder)) = rest.pop() {
        match folder.read_permissions.only() {
            Some(ReadPermission::All) => continue,
            Some(readers) => {
                found.push(restricted(&below(&path, b""), readers));
                continue;
            }
            None => {}
        }
        for entry in folder.entries() {
            let readers = entry
                .file()
                .map_or(ReadPermission::All, File::read_permission);
            if let Some(folder) = entry.folder() {
                rest.push(([&path, entry.name, b"/"].concat(), folder));
            } else if readers != ReadPermission::All {
                found.push(restricted(&below(&path, entry.name), readers));
            }
        }
        if found.len() > MAX_RESTRICTED {
            found.truncate(MAX_RESTRICTED);
            found.push(restricted(&RelPath::default(), ReadPermission::Owner));
            break;
        }
    }
    found
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        store::object::{Mode, Oid},
        worktree::{
            permissions::ReadPermissionMap,
            snapshot::{Node, Parts, Stamp},
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
