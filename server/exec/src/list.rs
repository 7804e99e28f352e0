//! Lists what is hidden: denied entries of the workspace that git does not track.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sightline_access::{AccessView, PROJECT_FILE, RULE_FILE};
use sightline_base::path::{RelPath, Root, os_name};

use crate::CannotHide;

/// Maximum length of paths in a command line, in bytes; Linux accepts 2 MiB with the environment.
const MAX_ARGUMENTS: usize = 512 << 10;

/// A file or folder to hide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HiddenPath {
    /// The absolute path, without symbolic links below the workspace folder.
    pub path: PathBuf,
    /// What the command finds there.
    pub cover: Cover,
}

/// What a command finds at a hidden path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// A file that cannot be opened.
    File,
    /// An empty folder.
    Folder,
    /// The file itself, which cannot be written: a file with access rules or settings. Git would
    /// fail to add an untracked file that it cannot read.
    ReadOnly,
}

impl HiddenPath {
    fn new(path: PathBuf, is_dir: bool) -> Self {
        let is_rule_file = || {
            let name = path.file_name();
            name.is_some_and(|name| name == RULE_FILE || name == PROJECT_FILE)
        };
        let cover = if is_dir {
            Cover::Folder
        } else if is_rule_file() {
            Cover::ReadOnly
        } else {
            Cover::File
        };
        Self { path, cover }
    }
}

/// Lists the denied files and folders of all roots that git does not track. A denied folder is
/// listed without its contents, unless git tracks a part of it.
///
/// The contents of `.git` are not listed: git commands need them. Git is asked which files are
/// tracked. If it cannot answer, none is: its commands fail in such a repository.
///
/// # Errors
/// If rules of a root cannot be used, or a folder cannot be read.
pub fn hidden_paths(view: &AccessView) -> Result<Vec<HiddenPath>, CannotHide> {
    let mut found = Vec::new();
    for (index, root) in view.roots().as_slice().iter().enumerate() {
        if let Some(why) = view.unusable(index) {
            return Err(CannotHide::new(format!(
                "cannot tell what is denied: {why}"
            )));
        }
        let mut walk = Walk {
            view,
            index,
            root,
            repositories: BTreeMap::new(),
        };
        walk.folder(&RelPath::default(), None)?;
        for (repository, denied) in walk.repositories {
            found.extend(untracked(repository.as_deref(), denied)?);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

struct Walk<'a> {
    view: &'a AccessView,
    index: usize,
    root: &'a Root,
    /// Denied entries by the innermost folder with a `.git`.
    repositories: BTreeMap<Option<PathBuf>, Vec<HiddenPath>>,
}

impl Walk<'_> {
    /// Walks a folder, without following symbolic links.
    fn folder(&mut self, folder: &RelPath, repository: Option<&Path>) -> Result<(), CannotHide> {
        let path = self.root.canonical.join(folder).as_path().to_owned();
        let own = path.join(".git").symlink_metadata().is_ok();
        let above = || path.ancestors().find(|path| path.join(".git").exists());
        let repository = match repository {
            _ if own => Some(&*path),
            None if folder.is_root() => above(),
            other => other,
        };
        for entry in entries(&path)? {
            let entry = entry.map_err(|error| cannot_read(&path, &error))?;
            let (name, kind) = (entry.file_name(), entry.file_type());
            let kind = kind.map_err(|error| cannot_read(&entry.path(), &error))?;
            let rel = folder.child(&name);
            let is_denied = || {
                let denial = self.view.judge_entry(self.index, &rel, kind.is_dir());
                denial.is_some()
            };
            if name == OsStr::new(".git") {
                continue;
            } else if kind.is_symlink() {
                self.link(&entry.path(), is_denied());
            } else if is_denied() {
                self.add(repository, entry.path(), kind.is_dir());
            } else if kind.is_dir() {
                self.folder(&rel, repository)?;
            }
        }
        Ok(())
    }

    /// Adds the target of a denied link to a place outside of all roots. Targets inside of them
    /// are judged by their own names.
    fn link(&mut self, link: &Path, is_denied: bool) {
        if !is_denied {
            return;
        }
        let Ok(target) = sightline_base::path::canonicalize(link) else {
            return;
        };
        let roots = self.view.roots().as_slice();
        let is_inside = roots
            .iter()
            .any(|root| target.starts_with(root.canonical.as_path()));
        let contains_root = roots
            .iter()
            .any(|root| root.canonical.as_path().starts_with(&target));
        // Devices, such as `/dev/null`, have no content to hide.
        let is_file_or_dir = target.is_file() || target.is_dir();
        if !is_inside && !contains_root && is_file_or_dir {
            let is_dir = target.is_dir();
            self.add(None, target, is_dir);
        }
    }

    fn add(&mut self, repository: Option<&Path>, path: PathBuf, is_dir: bool) {
        let repository = repository.map(Path::to_owned);
        let denied = self.repositories.entry(repository).or_default();
        denied.push(HiddenPath::new(path, is_dir));
    }
}

fn entries(
    folder: &Path,
) -> Result<impl Iterator<Item = std::io::Result<fs::DirEntry>>, CannotHide> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        // The command cannot read it either, or it is gone.
        Err(error) if is_unreachable(&error) => Ok(None.into_iter().flatten()),
        Err(error) => Err(cannot_read(folder, &error)),
    }
}

fn is_unreachable(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> CannotHide {
    CannotHide::new(format!("cannot read {}: {error}", path.display()))
}

/// Returns the entries that git does not track. A folder with tracked files is replaced by its
/// other entries.
fn untracked(
    repository: Option<&Path>,
    denied: Vec<HiddenPath>,
) -> Result<Vec<HiddenPath>, CannotHide> {
    let tracked = repository
        .and_then(|repository| tracked_below(repository, &denied))
        .unwrap_or_default();
    let mut hidden = Vec::new();
    let mut left = denied;
    while let Some(entry) = left.pop() {
        let from = tracked.range(entry.path.clone()..).next();
        if !from.is_some_and(|first| first.starts_with(&entry.path)) {
            hidden.push(entry);
        } else if entry.cover == Cover::Folder {
            for child in entries(&entry.path)? {
                let child = child.map_err(|error| cannot_read(&entry.path, &error))?;
                let kind = child.file_type();
                let kind = kind.map_err(|error| cannot_read(&child.path(), &error))?;
                if !kind.is_symlink() && child.file_name() != OsStr::new(".git") {
                    left.push(HiddenPath::new(child.path(), kind.is_dir()));
                }
            }
        }
    }
    Ok(hidden)
}

/// Returns the tracked files at or below the entries, as git lists them. `None` if git cannot be
/// asked.
fn tracked_below(repository: &Path, denied: &[HiddenPath]) -> Option<BTreeSet<PathBuf>> {
    let below = denied
        .iter()
        .filter_map(|entry| entry.path.strip_prefix(repository).ok());
    let asked: Vec<&Path> = below.collect();
    let length: usize = asked.iter().map(|path| path.as_os_str().len()).sum();
    let output = Command::new("git")
        // Nothing of the repository's configuration runs a program.
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(["--literal-pathspecs", "ls-files", "-z", "--cached", "--"])
        // Without paths, git lists all tracked files.
        .args(if length > MAX_ARGUMENTS {
            Vec::new()
        } else {
            asked
        })
        .current_dir(repository)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let names = output
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let tracked = names.map(|name| repository.join(os_name(name))).collect();
    output.status.success().then_some(tracked)
}
