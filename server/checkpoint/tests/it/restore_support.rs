//! Test utilities: a workspace with checkpoints, and its content.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, RelPath, Root, Roots},
    storage::Storage,
};
use sightline_checkpoint::{
    Checkpoints, Filter, Job, Oid, Request, Side,
    diff::{DiffOptions, FileDiff},
    error::Error,
    restore::{Action, Conflict, Options, Outcome, Preview, RestoreTarget, Restored, Scope},
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use tempfile::TempDir;

pub(crate) struct Ground {
    /// Removed on drop. `None` for the workspace of another process.
    _parent: Option<TempDir>,
    base: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) settings: CheckpointSettings,
    /// Whether the built-in access rules apply.
    pub(crate) secrets: Secrets,
}

impl Ground {
    /// Creates a workspace with these files. A name that ends with `/` is a directory.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let base = sightline_base::path::canonicalize(parent.path()).unwrap();
        fs::create_dir(base.join("ws")).unwrap();
        let mut ground = Self::at(&base);
        ground._parent = Some(parent);
        ground.write(files);
        ground
    }

    /// Opens the workspace of another process.
    pub(crate) fn at(base: &Path) -> Self {
        let root = base.join("ws");
        let storage = Storage::open(&base.join("data")).unwrap();
        Self {
            _parent: None,
            base: base.to_path_buf(),
            checkpoints: Checkpoints::new(&storage, &workspace_root(&root)),
            root,
            settings: CheckpointSettings::default(),
            secrets: Secrets::Allow,
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns a path next to the workspace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.base.join("data")
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.root.join(path);
            if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                fs::create_dir_all(path).unwrap();
                continue;
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    pub(crate) fn link(&self, target: &str, at: &str) {
        std::os::unix::fs::symlink(target, self.path(at)).unwrap();
    }

    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.path(path)).unwrap().mode() & 0o7777
    }

    /// Runs `act` with the current access rules.
    pub(crate) fn job<R>(&self, act: impl FnOnce(&Job<'_>) -> R) -> R {
        self.job_with(&Cancel::default(), act)
    }

    pub(crate) fn job_with<R>(&self, cancel: &Cancel, act: impl FnOnce(&Job<'_>) -> R) -> R {
        let roots = Roots::new(vec![workspace_root(&self.root)]);
        let view = Access::new(roots.into(), Vec::new(), self.secrets).view().0;
        act(&Job {
            view: &view,
            root: 0,
            settings: &self.settings,
            cancel,
            progress: &|_| {},
        })
    }

    pub(crate) fn create(&self) -> Oid {
        let created = self.job(|job| self.checkpoints.create(job, &Request::default(), None));
        created.unwrap().id
    }

    /// Returns the skipped paths of a checkpoint.
    pub(crate) fn skipped(&self, id: Oid) -> Vec<String> {
        let checkpoint = self.checkpoints.get(id).unwrap();
        let skipped = checkpoint.metadata.skipped.iter();
        skipped.map(|skipped| skipped.path.clone()).collect()
    }

    pub(crate) fn preview(&self, wanted: &RestoreTarget, unsaved: &[&str]) -> Preview {
        let unsaved = unsaved.iter().map(|path| (rel(path), None)).collect();
        self.job(|job| self.checkpoints.preview(job, wanted, &unsaved))
            .unwrap()
    }

    pub(crate) fn try_restore(
        &self,
        wanted: &RestoreTarget,
        unsaved: &[&str],
        options: &Options,
    ) -> Result<Restored, Error> {
        let unsaved = unsaved.iter().map(|path| (rel(path), None)).collect();
        self.job(|job| self.checkpoints.restore(job, wanted, &unsaved, options))
    }

    /// Restores all of a checkpoint, and asserts that nothing fails.
    pub(crate) fn restore(&self, id: Oid) -> Restored {
        let restored = self
            .try_restore(&all(id), &[], &Options::default())
            .unwrap();
        for outcome in &restored.outcomes {
            assert_eq!(outcome.error, None, "{}", outcome.path);
        }
        restored
    }

    pub(crate) fn diff(&self, from: &Side, to: &Side) -> Vec<FileDiff> {
        self.try_diff(from, to, &with_contents()).unwrap()
    }

    pub(crate) fn try_diff(
        &self,
        from: &Side,
        to: &Side,
        options: &DiffOptions,
    ) -> Result<Vec<FileDiff>, Error> {
        self.job(|job| self.checkpoints.diff(job, from, to, options))
    }

    /// Returns the content of the workspace.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Thing> {
        tree(&self.root)
    }

    /// Returns the content of a directory with all metadata, except for access times.
    pub(crate) fn stamps(&self, below: &Path) -> BTreeMap<PathBuf, (Thing, [i64; 6])> {
        let mut all = BTreeMap::new();
        for (path, thing) in tree(below) {
            let of = fs::symlink_metadata(below.join(&path)).unwrap();
            let stamp = [
                of.mtime(),
                of.mtime_nsec(),
                of.ctime(),
                of.ctime_nsec(),
                i64::try_from(of.ino()).unwrap(),
                i64::from(of.mode()),
            ];
            all.insert(path, (thing, stamp));
        }
        all
    }

    /// Runs git in the workspace, without the machine's configuration.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.root, arguments)
    }
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let home = folder.parent().unwrap();
    let output = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", home)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn workspace_root(path: &Path) -> Root {
    Root::new(AbsPath::new(path).unwrap(), None)
}

pub(crate) fn rel(path: &str) -> RelPath {
    RelPath::new(Path::new(path)).unwrap()
}

pub(crate) fn all(id: Oid) -> RestoreTarget {
    some(id, &[])
}

pub(crate) fn some(id: Oid, paths: &[&str]) -> RestoreTarget {
    RestoreTarget {
        id,
        paths: paths.iter().map(|path| rel(path)).collect(),
        scope: Scope::All,
    }
}

/// The undo of the restore with this undo point.
pub(crate) fn undo_of(id: Oid, paths: &[&str]) -> RestoreTarget {
    RestoreTarget {
        scope: Scope::Undo,
        ..some(id, paths)
    }
}

pub(crate) fn with_contents() -> DiffOptions {
    DiffOptions {
        paths: Vec::new(),
        contents: true,
        max_file_bytes: u64::MAX,
        max_total_bytes: u64::MAX,
    }
}

pub(crate) fn named(conflicts: &[Conflict]) -> Vec<String> {
    let conflicts = conflicts.iter();
    conflicts
        .map(|conflict| conflict.path.to_string())
        .collect()
}

pub(crate) fn done(outcomes: &[Outcome]) -> Vec<(String, Action)> {
    let outcomes = outcomes.iter();
    outcomes
        .map(|outcome| (outcome.path.to_string(), outcome.action))
        .collect()
}

pub(crate) fn counted(ground: &Ground) -> usize {
    ground.checkpoints.list(&Filter::default()).unwrap().len()
}

/// Content of a path, as far as checkpoints record it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    File { executable: bool, content: Vec<u8> },
    Link(PathBuf),
    Folder,
    Other,
}

pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut all = BTreeMap::new();
    let mut todo = vec![PathBuf::new()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            let metadata = fs::symlink_metadata(root.join(&path)).unwrap();
            let thing = if metadata.is_dir() {
                todo.push(path.clone());
                Thing::Folder
            } else if metadata.is_symlink() {
                Thing::Link(fs::read_link(root.join(&path)).unwrap())
            } else if metadata.is_file() {
                Thing::File {
                    executable: metadata.mode() & 0o100 != 0,
                    content: fs::read(root.join(&path)).unwrap(),
                }
            } else {
                Thing::Other
            };
            all.insert(path, thing);
        }
    }
    all
}
