//! Test utilities: workspaces to capture, and checks with git.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use sha2::{Digest, Sha256};
use sightline_access::{Access, AccessView, ClockReading, REMOVAL_DELAY};
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_checkpoint::{ChangeSource, Checkpoint, Checkpoints, Job, Request, error::Error};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use tempfile::TempDir;

/// A workspace `ws` and a data directory `data`, side by side.
pub(crate) struct Bench {
    _parent: TempDir,
    pub(crate) parent: PathBuf,
    pub(crate) ws: PathBuf,
    pub(crate) settings: CheckpointSettings,
    pub(crate) cancel: Cancel,
    pub(crate) checkpoints: Checkpoints,
    access: Access,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::at("ws")
    }

    /// Creates the workspace at a path below the temporary directory.
    pub(crate) fn at(place: &str) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let path = sightline_base::path::canonicalize(parent.path()).unwrap();
        let ws = path.join(place);
        fs::create_dir_all(&ws).unwrap();
        let root = root(&ws);
        let storage = Storage::open(&path.join("data")).unwrap();
        Self {
            checkpoints: Checkpoints::new(&storage, &root),
            access: Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow),
            settings: CheckpointSettings::default(),
            cancel: Cancel::default(),
            parent: path,
            ws,
            _parent: parent,
        }
    }

    /// Opens the store as another process would.
    pub(crate) fn reopened(&self) -> Checkpoints {
        let storage = Storage::open(&self.parent.join("data")).unwrap();
        Checkpoints::new(&storage, &root(&self.ws))
    }

    /// Returns the access rules, after earlier rules have expired.
    pub(crate) fn view(&self) -> AccessView {
        self.access.view();
        self.access.refresh_nested();
        let ClockReading { monotonic, wall } = ClockReading::system();
        let later = ClockReading {
            monotonic: monotonic + REMOVAL_DELAY,
            wall: wall + REMOVAL_DELAY,
        };
        self.access.view_at(later).0
    }

    /// Waits until rules of a deleted rule file no longer apply.
    pub(crate) fn settle_rules(&self) {
        self.access.view();
        let ClockReading { monotonic, wall } = ClockReading::system();
        self.access.view_at(ClockReading {
            monotonic: monotonic + REMOVAL_DELAY,
            wall: wall + REMOVAL_DELAY,
        });
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.ws.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn try_create(
        &self,
        request: &Request,
        changes: Option<&dyn ChangeSource>,
    ) -> Result<Arc<Checkpoint>, Error> {
        self.create_by(&self.checkpoints, request, changes)
    }

    pub(crate) fn create_by(
        &self,
        checkpoints: &Checkpoints,
        request: &Request,
        changes: Option<&dyn ChangeSource>,
    ) -> Result<Arc<Checkpoint>, Error> {
        let view = self.view();
        let job = Job {
            view: &view,
            root: 0,
            settings: &self.settings,
            cancel: &self.cancel.clone(),
            progress: &|_| {},
        };
        checkpoints.create(&job, request, changes)
    }

    pub(crate) fn create(&self) -> Arc<Checkpoint> {
        self.try_create(&Request::default(), None).unwrap()
    }

    /// Lists a checkpoint with git: path, then mode and object.
    pub(crate) fn paths(&self, checkpoint: &Checkpoint) -> BTreeMap<String, String> {
        let tree = checkpoint.tree.to_string();
        let out = self.git_store(&["ls-tree", "-r", "-t", "-z", &tree]);
        out.split('\0')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (what, path) = line.split_once('\t').unwrap();
                (path.to_owned(), what.to_owned())
            })
            .collect()
    }

    /// Lists the files and links of a checkpoint with git.
    pub(crate) fn files(&self, checkpoint: &Checkpoint) -> Vec<String> {
        let paths = self.paths(checkpoint);
        let files = paths.iter().filter(|(_, what)| !what.starts_with("040000"));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// Reads a file of a checkpoint with git.
    pub(crate) fn content(&self, checkpoint: &Checkpoint, path: &str) -> Vec<u8> {
        let name = format!("{}:{path}", checkpoint.tree);
        let mut git = git(&self.parent);
        git.arg("--git-dir").arg(self.checkpoints.git_dir());
        let out = git.args(["cat-file", "blob", &name]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        out.stdout
    }

    pub(crate) fn git_store(&self, args: &[&str]) -> String {
        let mut git = git(&self.parent);
        git.arg("--git-dir").arg(self.checkpoints.git_dir());
        run(git.args(args))
    }

    /// Asserts that `git fsck` finds no problem.
    pub(crate) fn fsck(&self) {
        let mut git = git(&self.parent);
        git.arg("--git-dir").arg(self.checkpoints.git_dir());
        let out = git.args(["fsck", "--full", "--strict"]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        let text = text.replace("notice: HEAD points to an unborn branch (main)\n", "");
        assert!(out.status.success() && text.is_empty(), "{out:?}");
    }
}

fn root(path: &Path) -> Root {
    Root::new(AbsPath::new(path).unwrap(), None)
}

/// A git command without user settings.
pub(crate) fn git(home: &Path) -> Command {
    let mut git = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            git.env_remove(name);
        }
    }
    git.env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@b")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@b")
        .env("XDG_CONFIG_HOME", home.join("none"));
    git
}

pub(crate) fn run(git: &mut Command) -> String {
    let out = git.output().unwrap();
    assert!(out.status.success(), "{git:?}: {out:?}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    run(git(dir.parent().unwrap()).current_dir(dir).args(args))
}

/// Describes a directory completely, except for access times.
#[cfg(unix)]
pub(crate) fn fingerprint(dir: &Path) -> BTreeMap<PathBuf, String> {
    use std::os::unix::fs::MetadataExt;

    let mut seen = BTreeMap::new();
    let mut rest = vec![dir.to_path_buf()];
    while let Some(path) = rest.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_file() {
            format!("{:?}", fs::read(&path).ok())
        } else if metadata.is_symlink() {
            format!("{:?}", fs::read_link(&path).unwrap())
        } else {
            String::new()
        };
        let stamp = (
            metadata.mode(),
            metadata.ino(),
            metadata.nlink(),
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.ctime(), metadata.ctime_nsec()),
        );
        seen.insert(path.clone(), format!("{stamp:?} {content}"));
        if metadata.is_dir() {
            rest.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    seen
}

/// Returns a file name with these bytes.
#[cfg(unix)]
pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Returns the ignored and denied paths of a checkpoint. Finds the names of denied paths among the
/// paths that exist.
pub(crate) fn exclusions(ws: &Path, checkpoint: &Checkpoint) -> BTreeSet<String> {
    let saved = serde_json::to_value(&checkpoint.metadata.exclusions).unwrap();
    let list = |name: &str| saved[name].as_array().cloned().unwrap_or_default();
    let salt = u128::from_str_radix(saved["salt"].as_str().unwrap(), 16).unwrap();
    let mut names = BTreeMap::new();
    let mut rest = vec![ws.to_path_buf()];
    while let Some(folder) = rest.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                rest.push(path.clone());
            }
            let name = path.strip_prefix(ws).unwrap().as_os_str();
            let digest = Sha256::new()
                .chain_update(salt.to_be_bytes())
                .chain_update(name.as_encoded_bytes())
                .finalize();
            let hash: String = digest[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            names.insert(hash, name.to_string_lossy().into_owned());
        }
    }
    let denied = list("denied").into_iter().map(|hash| {
        let name = names.get(hash.as_str().unwrap());
        format!("denied {}", name.map_or("unknown", |name| name))
    });
    let ignored = list("ignored").into_iter();
    ignored
        .map(|path| format!("ignored {}", path["path"].as_str().unwrap()))
        .chain(denied)
        .collect()
}
