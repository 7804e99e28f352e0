//! Test utilities: stores in temporary folders, filled without a work tree, and checks with git.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use tempfile::TempDir;

use super::{
    checkpoints::Checkpoints,
    job::Job,
    metadata::{Checkpoint, CheckpointMetadata, commit_of, is_checkpoint},
    store::{
        lock::{self, StoreLock},
        object::{Kind, Mode, Oid, encode_tree, name_of, name_order},
        pack::writer::PackWriter,
        repair::{self, Rebuilt},
        repository::Repository,
    },
};
use crate::error::Error;

/// A git command that ignores the machine's configuration.
pub(super) fn git_command(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir.parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .arg("--git-dir")
        .arg(dir);
    git
}

pub(super) fn git(dir: &Path, arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = git_command(dir).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "git {arguments:?}: {text}");
    format!("{}{text}", String::from_utf8_lossy(&stdout))
}

/// Asserts that `git fsck` finds no problem.
pub(super) fn fsck(dir: &Path) {
    let text = git(dir, &["fsck", "--strict", "--full", "--no-dangling"]);
    // The missing branch is only a notice.
    let mut faults = text.lines().filter(|line| !line.starts_with("notice: "));
    assert_eq!(faults.next(), None);
}

/// Asserts that only the user can access anything below `folder`.
pub(super) fn assert_private(folder: &Path) {
    // On Windows, the profile folder protects its files.
    #[cfg(not(unix))]
    let _ = folder;
    #[cfg(unix)]
    for entry in fs::read_dir(folder).unwrap().flatten() {
        use std::os::unix::fs::PermissionsExt;
        let metadata = entry.metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{:?}: {mode:o}", entry.path());
        if metadata.is_dir() {
            assert_private(&entry.path());
        }
    }
}

/// The checkpoints of an empty work tree in a temporary folder.
pub(super) struct Scratch {
    pub(super) folder: Folder,
    pub(super) storage: Storage,
    pub(super) checkpoints: Checkpoints,
}

/// Path, content and mode of a file.
pub(super) type TestFile<'a> = (&'a [u8], &'a [u8], Mode);

/// A temporary folder, or one that is owned elsewhere.
pub(super) enum Folder {
    Ours(TempDir),
    Theirs(PathBuf),
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Ours(folder) => folder.path(),
            Self::Theirs(path) => path,
        }
    }
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self::within(Folder::Ours(tempfile::tempdir().unwrap()))
    }

    /// Opens the same store again, as another process would.
    pub(super) fn at(folder: &Path) -> Self {
        Self::within(Folder::Theirs(folder.to_path_buf()))
    }

    fn within(folder: Folder) -> Self {
        let work_tree = folder.path().join("ws");
        fs::create_dir_all(&work_tree).unwrap();
        let storage = Storage::open(&folder.path().join("data")).unwrap();
        let root = Root::new(AbsPath::new(&work_tree).unwrap(), None);
        let checkpoints = Checkpoints::new(&storage, &root);
        Self {
            folder,
            storage,
            checkpoints,
        }
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.checkpoints.git_dir()
    }

    pub(super) fn lock(&self) -> StoreLock {
        let state = self.checkpoints.state_dir();
        lock::acquire(&self.storage, &state, &Cancel::default()).unwrap()
    }

    /// Opens the store, and creates or rebuilds it if needed.
    pub(super) fn open(&self) -> Result<(Repository, Option<Rebuilt>), Error> {
        repair::open_or_create(&self.storage, &self.dir(), is_checkpoint)
    }

    pub(super) fn repository(&self) -> Repository {
        self.open().unwrap().0
    }

    /// Opens the store, and returns the report if it was damaged.
    pub(super) fn rebuilt(&self) -> Option<Rebuilt> {
        self.open().unwrap().1
    }

    /// Creates a checkpoint of `files`, with creation time `created`.
    pub(super) fn checkpoint(&self, created: u64, files: &[TestFile<'_>]) -> Oid {
        self.checkpoint_with(
            CheckpointMetadata {
                created,
                ..CheckpointMetadata::default()
            },
            files,
        )
    }

    pub(super) fn checkpoint_with(
        &self,
        metadata: CheckpointMetadata,
        files: &[TestFile<'_>],
    ) -> Oid {
        let _lock = self.lock();
        let repository = self.repository();
        let reader = repository.odb();
        let pack = PackWriter::new(repository.dir()).unwrap();
        let put = |kind, bytes: &[u8]| {
            let oid = name_of(kind, bytes);
            if !reader.contains(oid).unwrap() {
                pack.put(kind, oid, bytes).unwrap();
            }
            oid
        };
        let mut blobs = BTreeMap::new();
        for (path, content, mode) in files {
            let entry = match mode {
                Mode::Folder => (put(Kind::Tree, b""), *mode),
                mode => (put(Kind::Blob, content), *mode),
            };
            blobs.insert(path.to_vec(), entry);
        }
        let tree = tree_of(&blobs, &mut |bytes| put(Kind::Tree, bytes));
        repository
            .write_checkpoint(pack, &commit_of(tree, &metadata))
            .unwrap()
    }

    /// Runs `act` with the current access rules.
    pub(super) fn job<R>(&self, cancel: &Cancel, act: impl FnOnce(&Job<'_>) -> R) -> R {
        let roots = Roots::new(vec![self.checkpoints.root().clone()]);
        act(&Job {
            view: &Access::new(roots.into(), Vec::new(), Secrets::Allow)
                .view()
                .0,
            root: 0,
            settings: &CheckpointSettings::default(),
            cancel,
            progress: &|_| {},
        })
    }

    pub(super) fn verify(&self) -> Vec<String> {
        let cancel = Cancel::default();
        self.job(&cancel, |job| self.checkpoints.verify(job))
            .unwrap()
    }

    pub(super) fn fetch(
        &self,
        remote: &str,
        cancel: &Cancel,
    ) -> Result<(usize, Vec<String>), Error> {
        self.job(cancel, |job| self.checkpoints.fetch(remote, job))
    }

    pub(super) fn ids(&self) -> Vec<Oid> {
        let checkpoints = self.checkpoints.list(&super::Filter::default()).unwrap();
        checkpoints.iter().map(|checkpoint| checkpoint.id).collect()
    }

    pub(super) fn get(&self, id: Oid) -> Arc<Checkpoint> {
        self.checkpoints.get(id).unwrap()
    }
}

/// Files by path with `/`.
type Files = BTreeMap<Vec<u8>, (Oid, Mode)>;

/// Builds tree objects from paths.
fn tree_of(files: &Files, put: &mut impl FnMut(&[u8]) -> Oid) -> Oid {
    let mut entries: Vec<(Mode, Vec<u8>, Oid)> = Vec::new();
    let mut folders: BTreeMap<Vec<u8>, Files> = BTreeMap::new();
    for (path, (oid, mode)) in files {
        match path.iter().position(|byte| *byte == b'/') {
            Some(at) => {
                let folder = folders.entry(path[..at].to_vec()).or_default();
                folder.insert(path[at + 1..].to_vec(), (*oid, *mode));
            }
            None => entries.push((*mode, path.clone(), *oid)),
        }
    }
    for (name, files) in folders {
        let oid = tree_of(&files, put);
        entries.push((Mode::Folder, name, oid));
    }
    entries.sort_by(|left, right| {
        name_order(
            &left.1,
            left.0 == Mode::Folder,
            &right.1,
            right.0 == Mode::Folder,
        )
    });
    let entries = entries
        .iter()
        .map(|(mode, name, oid)| (*mode, name.as_slice(), *oid));
    put(&encode_tree(entries))
}

/// Incompressible bytes, equal for equal seeds.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}
