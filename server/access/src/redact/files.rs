//! The denied files of the workspace, found again by the versions of folders and files.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::{self, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io::Read,
    path::{Path, PathBuf},
};

use sightline_base::{
    fs::dir::{Version, is_absent},
    path::RelPath,
};
use sightline_protocol::access::AccessRule;
use zeroize::Zeroizing;

use crate::{AccessView, Denial, RULE_FILE};

/// Maximum bytes of a file that are read. The rest of a larger one is not recognized.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Folders of version control, installed packages and caches: their files are not the user's secrets.
const SKIPPED: [&str; 6] = [
    ".git",
    ".hg",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
];
/// Names of folders of build tools that may be caches.
const CACHES: [&str; 8] = [
    "target",
    "build",
    ".cache",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
];
/// Marks a cache: <https://bford.info/cachedir/>. Anyone can create one, so the name of the folder counts too.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// A file that is denied, or whose content decides.
pub(super) struct Candidate {
    /// Number of its root.
    pub(super) root: usize,
    /// Relative to its root.
    pub(super) rel: RelPath,
    pub(super) path: PathBuf,
    denial: Option<Denial>,
    version: Version,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.denial, self.version) == (&other.path, &other.denial, other.version)
    }
}

/// The folders below the roots.
pub(super) struct Tree {
    folders: BTreeMap<(usize, RelPath), Folder>,
    /// Those that have or had a rule file. Removed rules apply for a while.
    with_rules: BTreeSet<(usize, RelPath)>,
    /// Number of entries that may still be read.
    entries_left: usize,
}

struct Folder {
    path: PathBuf,
    version: Version,
    /// Why everything below it is denied.
    denial: Option<Denial>,
    entries: usize,
    files: Vec<Candidate>,
}

impl Folder {
    fn is_current(&self) -> bool {
        let mut files = self.files.iter();
        self.version == Version::of(&self.path)
            && files.all(|file| file.version == Version::of(&file.path))
    }
}

impl Tree {
    /// Creates a tree of which at most `max_entries` files and folders are read.
    pub(super) fn new(max_entries: usize) -> Self {
        Self {
            folders: BTreeMap::new(),
            with_rules: BTreeSet::new(),
            entries_left: max_entries,
        }
    }

    /// Forgets the folders: other rules may deny other files.
    pub(super) fn clear(&mut self) {
        let folders = std::mem::take(&mut self.folders);
        self.entries_left += folders.values().map(|it| it.entries).sum::<usize>();
    }

    /// Reads the folders that have changed. Returns whether other files are denied, or may have other contents.
    pub(super) fn refresh(&mut self, view: &AccessView) -> bool {
        let mut is_changed = self.folders.is_empty();
        let mut todo: VecDeque<(usize, RelPath, Option<Denial>)> = VecDeque::new();
        for ((root, rel), folder) in &self.folders {
            if !folder.is_current() {
                todo.push_back((*root, rel.clone(), folder.denial.clone()));
            }
        }
        if is_changed {
            let roots = 0..view.roots().as_slice().len();
            todo.extend(roots.map(|root| (root, RelPath::default(), None)));
        }
        while let Some((root, rel, denial)) = todo.pop_front() {
            let key = (root, rel);
            let before = self.folders.remove(&key);
            self.entries_left += before.as_ref().map_or(0, |it| it.entries);
            let now = self.read(view, &key, denial, &mut todo);
            let before = before.as_ref().map_or(&[][..], |it| &it.files);
            is_changed |= before != now.as_ref().map_or(&[][..], |it| &it.files);
            self.folders.extend(now.map(|now| (key, now)));
        }
        is_changed
    }

    /// Reads a folder, and adds those in it that are not known to `todo`. `None` if it is gone.
    fn read(
        &mut self,
        view: &AccessView,
        key: &(usize, RelPath),
        denial: Option<Denial>,
        todo: &mut VecDeque<(usize, RelPath, Option<Denial>)>,
    ) -> Option<Folder> {
        let (root, rel) = (key.0, &key.1);
        let path = view
            .roots()
            .get(root)?
            .canonical
            .as_path()
            .join(rel.as_path());
        let version = Version::of(&path);
        let entries = match fs::read_dir(&path) {
            Err(error) if is_absent(&error) => return None,
            entries => entries.into_iter().flatten().flatten(),
        };
        let mut folder = Folder {
            path,
            version,
            denial,
            entries: 0,
            files: Vec::new(),
        };
        for entry in entries.take(self.entries_left) {
            folder.entries += 1;
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                continue;
            };
            if name == RULE_FILE {
                self.with_rules.insert(key.clone());
            }
            let (rel, path) = (rel.child(&name), entry.path());
            let inherited = || folder.denial.clone();
            let judge = || inherited().or_else(|| view.judge_entry(root, &rel, kind.is_dir()));
            if kind.is_dir() {
                let is_known = self.folders.contains_key(&(root, rel.clone()));
                if !is_known && !is_skipped(&path) {
                    let denial = judge();
                    todo.push_back((root, rel, denial));
                }
            } else if inherited().is_some() || view.check_entry(root, &rel, false).is_some() {
                folder.files.push(Candidate {
                    version: Version::of(&path),
                    denial: judge(),
                    root,
                    rel,
                    path,
                });
            }
        }
        folder.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.entries_left -= folder.entries;
        Some(folder)
    }

    /// Returns the denied files, those of built-in rules and of upper folders first, each with the rule.
    pub(super) fn denied(&self) -> Vec<(&Candidate, Option<&AccessRule>)> {
        let files = self.folders.values().flat_map(|folder| &folder.files);
        let denied = files.filter_map(|file| Some((file, file.denial.as_ref()?.rule.as_ref())));
        let mut denied: Vec<_> = denied.collect();
        denied.sort_by_key(|(file, rule)| {
            let is_built_in = rule.is_some_and(|rule| rule.source.starts_with("built-in"));
            (!is_built_in, file.rel.components().count())
        });
        denied
    }

    /// Returns whether all folders were read.
    pub(super) fn is_complete(&self) -> bool {
        self.entries_left > 0
    }

    /// Returns a hash of the roots and of the rules that apply in them, the same in each process.
    pub(super) fn rules(&self, view: &AccessView) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (number, root) in view.roots().as_slice().iter().enumerate() {
            root.canonical.as_path().hash(&mut hasher);
            format!("{:?}", view.entry_rules(number)).hash(&mut hasher);
        }
        for (root, folder) in &self.with_rules {
            (root, folder, view.folder_rules(*root, folder)).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Returns whether denied files are not looked for in a folder: version control, installed packages, caches.
pub(super) fn is_skipped(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    let is_one_of = |names: &[&str]| names.iter().any(|known| name == *known);
    is_one_of(&SKIPPED) || is_one_of(&CACHES) && folder.join(CACHE_TAG).exists()
}

/// Reads the start of a file. `None` if it is not a regular file, cannot be read, or is not text.
pub(super) fn read(path: &Path) -> Option<Zeroizing<String>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe may have taken the place of the file.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    // No part is left behind by a growing buffer.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES as usize + 1));
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    // Characters in another encoding, or a cut one at the end, only spoil the words around them.
    let is_text = !bytes.contains(&0);
    is_text.then(|| Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned()))
}
