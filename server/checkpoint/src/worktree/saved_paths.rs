//! The paths that a checkpoint saves in its metadata: skipped, ignored, denied and restricted ones.

use sightline_workspace::path::RelPath;

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
