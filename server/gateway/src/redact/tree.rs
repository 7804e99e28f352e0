//! Notices new denied files and changed rules of folders, by the times of folders.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use sightline_access::{AccessView, RULE_FILE, redact::is_skipped};
use sightline_base::path::RelPath;

/// Maximum number of folders that are watched. In larger workspaces, new files in other folders are
/// noticed when the contents are read again.
const MAX_FOLDERS: usize = 20_000;
/// A time that is not older may stay the same after another change.
const UNSETTLED: Duration = Duration::from_millis(100);

/// The folders of the roots.
#[derive(Default)]
pub(crate) struct Tree {
    folders: HashMap<(usize, RelPath), Folder>,
    /// Those that have or had a rule file. Removed rules apply for a while.
    with_rules: HashSet<(usize, RelPath)>,
}

#[derive(Default)]
struct Folder {
    /// `None` if it may have changed since without another time.
    changed: Option<SystemTime>,
    names: HashSet<OsString>,
    /// Everything below a denied folder is denied.
    is_denied: bool,
}

impl Tree {
    /// Reads the folders again that changed. Returns whether a denied entry came.
    pub(crate) fn refresh(&mut self, view: &AccessView) -> bool {
        if self.folders.is_empty() {
            for root in 0..view.roots().as_slice().len() {
                self.read(view, root, &RelPath::default(), false);
            }
            return true;
        }
        let known: Vec<(usize, RelPath)> = self.folders.keys().cloned().collect();
        let mut is_denied_new = false;
        for (root, folder) in known {
            let path = path(view, root, &folder);
            let Ok(changed) = path.metadata().and_then(|found| found.modified()) else {
                self.folders.remove(&(root, folder));
                continue;
            };
            match self.folders.get(&(root, folder.clone())) {
                Some(entry) if entry.changed != Some(changed) => {
                    is_denied_new |= self.read(view, root, &folder, entry.is_denied);
                }
                _ => {}
            }
        }
        is_denied_new
    }

    /// Reads a folder and the new ones below it. Returns whether a denied entry came.
    fn read(&mut self, view: &AccessView, root: usize, folder: &RelPath, is_denied: bool) -> bool {
        if self.folders.len() >= MAX_FOLDERS {
            return false;
        }
        let path = path(view, root, folder);
        let Ok(changed) = path.metadata().and_then(|found| found.modified()) else {
            return false;
        };
        let is_settled = changed.elapsed().is_ok_and(|elapsed| elapsed > UNSETTLED);
        let key = (root, folder.clone());
        let before = self.folders.remove(&key).unwrap_or_default();
        let mut now = Folder {
            changed: is_settled.then_some(changed),
            is_denied,
            ..Folder::default()
        };
        let mut is_denied_new = false;
        let mut below = Vec::new();
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                continue;
            };
            if name == RULE_FILE {
                self.with_rules.insert(key.clone());
            }
            if !before.names.contains(&name) {
                let rel = folder.child(&name);
                let is_denied = is_denied || view.judge_entry(root, &rel, kind.is_dir()).is_some();
                is_denied_new |= is_denied;
                if kind.is_dir() && !is_skipped(&entry.path()) {
                    below.push((rel, is_denied));
                }
            }
            now.names.insert(name);
        }
        self.folders.insert(key, now);
        for (folder, is_denied) in below {
            is_denied_new |= self.read(view, root, &folder, is_denied);
        }
        is_denied_new
    }

    /// Returns a hash of the rules of the folders below the roots, as they apply now.
    pub(crate) fn rules(&self, view: &AccessView) -> u64 {
        let mut folders: Vec<&(usize, RelPath)> = self.with_rules.iter().collect();
        folders.sort_unstable();
        let texts: Vec<_> = folders
            .iter()
            .map(|(root, folder)| (root, folder, view.folder_rules(*root, folder)))
            .collect();
        hash_of(&texts)
    }
}

fn path(view: &AccessView, root: usize, folder: &RelPath) -> PathBuf {
    let root = view
        .roots()
        .get(root)
        .map(|root| root.canonical.join(folder));
    root.map_or_else(PathBuf::new, |path| Path::to_owned(path.as_path()))
}

/// Returns a hash that is the same in each process.
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
