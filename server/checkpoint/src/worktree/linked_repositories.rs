//! Folders with the data of a version control system to which a link with its name leads, such as
//! `.hg -> ../meta`. Their own names and entries may not show what they are.

use std::{fs, path::Path};

use sightline_base::path::RelPath;

use super::{
    capture_filter::repository_data::VersionControl,
    snapshot::{ExclusionReason, Folder, below},
};

/// A path with the data of a system.
pub(crate) type RepositoryPath = (RelPath, VersionControl);

/// Returns the paths of a tree that are skipped because they contain the data of a system.
pub(crate) fn skipped_repositories(tree: &Folder) -> Vec<RepositoryPath> {
    let mut found = Vec::new();
    tree.visit(Folder::has_exclusions, |path, folder| {
        for entry in &folder.excluded {
            if let ExclusionReason::RepositoryData(system) = entry.reason {
                found.push((below(path, &entry.name), system));
            }
        }
    });
    found.sort();
    found
}

/// Returns the folders of the work tree at `base` to which those of the paths lead that are links.
pub(crate) fn linked_repositories(skipped: &[RepositoryPath], base: &Path) -> Vec<RepositoryPath> {
    let target = |(link, system): &RepositoryPath| {
        let place = base.join(link.as_path());
        place
            .symlink_metadata()
            .ok()
            .filter(fs::Metadata::is_symlink)?;
        let target = sightline_base::path::canonicalize(place).ok()?;
        let target = RelPath::new(target.strip_prefix(base).ok()?)?;
        // A folder with the link in it is the project.
        let is_above = link.as_path().starts_with(target.as_path());
        (!is_above).then_some((target, *system))
    };
    let mut found: Vec<RepositoryPath> = skipped.iter().filter_map(target).collect();
    found.sort();
    found.dedup();
    found
}
