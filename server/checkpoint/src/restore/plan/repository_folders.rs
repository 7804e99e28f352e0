//! Finds the own data of version control systems among the paths of a restore: on disk, and in
//! checkpoints that contain it, because an earlier version or another program created them.

use std::collections::HashMap;

use sightline_base::{
    fs::dir::{DirWalker, FileType},
    path::RelPath,
};

use crate::{
    job::Job,
    store::{object::Oid, odb::Odb},
    tree_diff::{Leaf, find, has_folder},
    worktree::{
        capture_filter::repository_data::{
            OwnRepository, VersionControl, is_fossil_database, is_fossil_file, is_fossil_name,
            is_known_name, system_of, system_of_dir, system_of_link,
        },
        linked_repositories::{RepositoryPath, linked_repositories},
    },
};

/// Checks folders, and remembers them.
pub(in crate::restore) struct RepositoryFolders<'a> {
    reader: &'a Odb,
    /// Tree of the checkpoint that is restored.
    target: Oid,
    walker: DirWalker,
    /// The repository of the root, and the path of the root.
    own: Option<(OwnRepository, &'a std::path::Path)>,
    /// Folders to which links lead.
    linked: Vec<RepositoryPath>,
    known: HashMap<RelPath, Option<RepositoryPath>>,
}

impl<'a> RepositoryFolders<'a> {
    pub(in crate::restore) fn new(
        job: &Job<'a>,
        reader: &'a Odb,
        target: Oid,
        walker: &DirWalker,
        skipped: &[RepositoryPath],
    ) -> Self {
        let root = job.view.roots().get(job.root);
        let root = root.map(|root| root.canonical.as_path());
        Self {
            reader,
            target,
            walker: walker.clone_root(),
            linked: root.map_or_else(Vec::new, |root| linked_repositories(skipped, root)),
            own: root.map(|root| (OwnRepository::new(root), root)),
            known: HashMap::new(),
        }
    }

    /// Returns the folder above `path`, or the file or link itself, that contains the data of a system.
    pub(super) fn find(&mut self, path: &RelPath) -> Option<RepositoryPath> {
        let parent = path.parent()?;
        if let Some(found) = self.find_folder(&parent) {
            return Some(found);
        }
        if self.is_fossil(&parent, path) {
            return Some((path.clone(), VersionControl::Fossil));
        }
        let name = path.name()?.as_encoded_bytes();
        let (_, root) = self.own.as_ref()?;
        let system = system_of_link(name, || root.join(path.as_path()))?;
        Some((path.clone(), system))
    }

    fn find_folder(&mut self, folder: &RelPath) -> Option<RepositoryPath> {
        let parent = folder.parent()?;
        if let Some(known) = self.known.get(folder) {
            return known.clone();
        }
        let found = self.find_folder(&parent).or_else(|| {
            if let Some(linked) = self.linked.iter().find(|(path, _)| path == folder) {
                return Some(linked.clone());
            }
            let system = self.system_on_disk(folder);
            let system = system.or_else(|| self.system_in_target(folder))?;
            Some((folder.clone(), system))
        });
        self.known.insert(folder.clone(), found.clone());
        found
    }

    fn system_on_disk(&mut self, folder: &RelPath) -> Option<VersionControl> {
        let name = folder.name()?.as_encoded_bytes();
        let dir = self.walker.open_dir(folder).ok()?;
        let (own, root) = self.own.as_ref()?;
        system_of_dir(name, dir).or_else(|| {
            let git = dir.stat(".git".as_ref()).ok()??;
            let is_worktree =
                git.kind != FileType::Directory && own.has_worktree(&root.join(folder.as_path()));
            is_worktree.then_some(VersionControl::GitWorktree)
        })
    }

    fn system_in_target(&self, folder: &RelPath) -> Option<VersionControl> {
        let name = folder.name()?.as_encoded_bytes();
        if !is_known_name(name) {
            return None;
        }
        system_of(name, |entry| {
            let path = folder.child(entry.as_ref());
            // A damaged tree is reported when it is restored.
            let is_folder = has_folder(self.reader, self.target, &path).unwrap_or_default();
            let is_file = || self.leaf(&path).is_some();
            let kind = is_folder.then_some(FileType::Directory);
            kind.or_else(|| is_file().then_some(FileType::File))
                .map(Some)
        })
    }

    fn is_fossil(&mut self, parent: &RelPath, path: &RelPath) -> bool {
        let Some(name) = path.name().map(std::ffi::OsStr::as_encoded_bytes) else {
            return false;
        };
        if !is_fossil_name(name) {
            return false;
        }
        let dir = self.walker.open_dir(parent);
        dir.is_ok_and(|dir| is_fossil_file(dir, name))
            || self
                .leaf(path)
                .and_then(|leaf| self.reader.blob(leaf.oid).ok())
                .is_some_and(|content| is_fossil_database(name, &content))
    }

    fn leaf(&self, path: &RelPath) -> Option<Leaf> {
        find(self.reader, self.target, path).ok()?
    }
}
