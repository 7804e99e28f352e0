//! Stores of folders that were moved: a store records its folder, and the store of a folder that
//! is gone can be adopted by the folder at the new path.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use sightline_base::{
    cancel::Cancel,
    fs::dir::stat,
    path::{AbsPath, uri_to_path},
    storage::atomic_file::{self, failed, sync_dir},
};
use sightline_context::git;

use super::{
    checkpoints::Checkpoints,
    store::{annotations::LABELS, lock, odb::Odb, refs},
    turns::log::Log,
};
use crate::error::Error;

/// Commits followed to find the first one of a repository. With more, the folder is recognized by
/// its device and inode only.
const MAX_HISTORY: usize = 50_000;

const STORE: &str = "checkpoints.git";
/// Suffix of the directory of a store whose checkpoints are all in another one.
const ADOPTED: &str = ".adopted";
const STATE: &str = "state";
const RECORDS: &str = "restores";
const JOURNAL: &str = "journal.json";

/// What identifies the folder of a store.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FolderRecord {
    uri: String,
    inode: Option<Inode>,
    /// First commit of the user's repository. Empty if its history is too long.
    root_commit: Option<String>,
    /// Name of a linked worktree, which has the first commit of its repository. Empty for the main one.
    /// `None` if an older version recorded it.
    worktree: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Inode {
    device: u64,
    number: u64,
    /// Creation time in nanoseconds since the epoch, as numbers are reused. `None` if the file
    /// system does not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
}

impl FolderRecord {
    fn path(&self) -> Option<AbsPath> {
        uri_to_path(&self.uri).ok().flatten()
    }

    /// Returns whether the folder has left its path. The store of a path with another folder belongs to
    /// that one, unless `here` is the folder of the record. A path that cannot be inspected may still lead
    /// to it.
    fn has_left(&self, here: Option<Inode>) -> bool {
        let Some(path) = self.path() else {
            return true;
        };
        match fs::symlink_metadata(path.as_path()) {
            Ok(found) if found.is_dir() => {
                here.is_some() && self.inode == here && self.inode != inode_of(path.as_path())
            }
            Ok(_) => true,
            Err(error) => matches!(error.kind(), Io::NotFound | Io::NotADirectory),
        }
    }

    /// Returns whether `here` is the same folder at another place: it was moved, or copied after
    /// `newest`, the time of the last checkpoint, in seconds since the epoch. Other clones and worktrees
    /// of the repository have the same first commit.
    fn is_now(&self, here: &Self, newest: u64) -> bool {
        if self.inode.is_some() && self.inode == here.inode {
            return true;
        }
        let first_commit = self.root_commit.as_ref().filter(|id| !id.is_empty());
        let worktrees = [&self.worktree, &here.worktree];
        let created = here.inode.and_then(|inode| inode.created);
        let is_newer = created.is_none_or(|created| created / 1_000_000_000 >= newest);
        first_commit.is_some()
            && first_commit == here.root_commit.as_ref()
            && (worktrees.contains(&&None) || self.worktree == here.worktree)
            && is_newer
    }
}

/// Store of the checkpoints of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderStore {
    /// Name of its directory in the data directory.
    pub name: String,
    /// Directory with the store and its state.
    pub dir: PathBuf,
    /// Folder that the store belongs or belonged to. `None` if an older version created it.
    pub folder: Option<PathBuf>,
    /// Number of checkpoints.
    pub checkpoints: usize,
}

impl FolderStore {
    /// Returns the time of the newest checkpoint, in seconds since the epoch. 0 if none can be read.
    pub fn newest(&self) -> i64 {
        i64::try_from(newest(&self.dir.join(STORE))).unwrap_or(i64::MAX)
    }
}

impl Checkpoints {
    /// Returns the stores of folders that no longer exist and may be this folder, at another place.
    pub fn moved_stores(&self) -> Vec<FolderStore> {
        let gone: Vec<_> = self
            .other_stores()
            .filter(|dir| dir.join(STORE).is_dir())
            .filter_map(|dir| Some((read_record(&dir)?, dir)))
            .filter(|(record, _)| record.has_left(self.inode()))
            .collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let here = self.folder_record();
        gone.into_iter()
            .filter(|(record, dir)| record.is_now(&here, newest(&dir.join(STORE))))
            .map(|(record, dir)| folder_store(dir, Some(&record)))
            .filter(|store| store.checkpoints > 0)
            .collect()
    }

    /// Returns the stores of all folders, the newest first.
    pub fn all_stores(&self) -> Vec<FolderStore> {
        let stores = self.projects().filter(|dir| !is_adopted(dir));
        let mut found: Vec<_> = stores
            .map(|dir| folder_store(dir.clone(), read_record(&dir).as_ref()))
            .filter(|store| store.checkpoints > 0)
            .collect();
        found.sort_by_key(|store| (-store.newest(), store.name.clone()));
        found
    }

    /// Finds the store with this name or path.
    ///
    /// # Errors
    /// `notFound` if there is none; `conflict` if its folder still exists.
    pub fn find_store(&self, named: &Path) -> Result<FolderStore, Error> {
        let wanted = named.file_name().filter(|name| *name != OsStr::new(STORE));
        let wanted = wanted.or_else(|| named.parent().and_then(Path::file_name));
        let dir = self
            .other_stores()
            .find(|dir| dir.file_name() == wanted && dir.join(STORE).is_dir());
        let dir = dir.ok_or_else(|| {
            Error::NotFound(format!("no store {} of another folder", named.display()))
        })?;
        let record = read_record(&dir);
        if let Some(record) = record
            .as_ref()
            .filter(|record| !record.has_left(self.inode()))
            && let Some(folder) = record.path()
        {
            return Err(Error::conflict(format!(
                "the store {} belongs to {}, which still exists; copy its checkpoints with `sightline checkpoint fetch {}`",
                named.display(),
                folder.display(),
                dir.join(STORE).display()
            )));
        }
        Ok(folder_store(dir, record.as_ref()))
    }

    /// Adds the checkpoints of another store to this one, and removes that store. If it is killed, this
    /// store has none of them, or all. The next call continues.
    ///
    /// # Errors
    /// `busy`; `cancelled`; `storage`.
    pub fn adopt(&self, from: &FolderStore, cancel: &Cancel) -> Result<(), Error> {
        let state = from.dir.join(STATE);
        let _theirs = lock::acquire(&self.storage, &state, cancel)?;
        let _ours = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        let store = from.dir.join(STORE);
        let ids = refs::ids(&store)?;
        cancel.commit()?;
        link_files(&store.join("objects"), &repository.dir().join("objects"))?;
        *self.verified() = None;
        repository.odb().refresh();
        let mut all = LABELS.all(&store)?;
        all.extend(LABELS.all(repository.dir())?);
        if !all.is_empty() {
            LABELS.write_all(repository.dir(), &all)?;
        }
        let records = state.join(RECORDS);
        if records.is_dir() {
            link_files(&records, &self.state_dir().join(RECORDS))?;
        }
        let turns = Log::read(&state)?;
        if !turns.is_empty() {
            self.turn_writer()?.append_all(&turns)?;
        }
        refs::publish_all(repository.dir(), ids)?;
        // Needs the refs. It is moved, because it must not be used twice.
        let journal = state.join(JOURNAL);
        if journal.exists() && !self.has_journal() {
            rename(&journal, &self.state_dir().join(JOURNAL))?;
            sync_dir(&self.state_dir())?;
        }
        self.record_folder();
        self.remove_adopted();
        let adopted = from.dir.with_file_name(format!("{}{ADOPTED}", from.name));
        rename(&from.dir, &adopted)?;
        fs::remove_dir_all(&adopted)
            .map_err(|error| failed("remove the adopted store", &adopted, error))?;
        Ok(())
    }

    /// Removes stores that a killed process has adopted.
    pub(super) fn remove_adopted(&self) {
        for dir in self.projects().filter(|dir| is_adopted(dir)) {
            let _ = fs::remove_dir_all(&dir);
        }
    }

    /// Records the folder of the store if it is not recorded, or was replaced. Failures are ignored:
    /// the next maintenance tries again.
    pub(super) fn record_folder(&self) {
        let known = read_record(&self.project);
        let inode = self.inode();
        let is_current = known.as_ref().is_some_and(|known| {
            known.inode == inode && known.root_commit.is_some() && known.worktree.is_some()
        });
        if is_current {
            return;
        }
        let record = self.folder_record();
        if known.as_ref() != Some(&record)
            && let Ok(text) = serde_json::to_vec(&record)
        {
            let _ = atomic_file::write(&record_path(&self.project), &text);
        }
    }

    fn inode(&self) -> Option<Inode> {
        inode_of(self.work_tree())
    }

    fn folder_record(&self) -> FolderRecord {
        git::isolate();
        let repository = git2::Repository::open(self.work_tree()).ok();
        FolderRecord {
            uri: self.root.canonical.to_uri(),
            inode: self.inode(),
            root_commit: repository.as_ref().and_then(root_commit),
            worktree: repository.as_ref().map(worktree),
        }
    }

    /// Returns the directories of all other stores.
    fn other_stores(&self) -> impl Iterator<Item = PathBuf> {
        let own = self.project.clone();
        self.projects()
            .filter(move |dir| *dir != own && !is_adopted(dir))
    }

    fn projects(&self) -> impl Iterator<Item = PathBuf> {
        let projects = self.project.parent().map(fs::read_dir);
        let entries = projects.and_then(Result::ok).into_iter().flatten();
        entries.flatten().map(|entry| entry.path())
    }
}

fn is_adopted(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().ends_with(ADOPTED)
}

fn folder_store(dir: PathBuf, record: Option<&FolderRecord>) -> FolderStore {
    let folder = record.and_then(FolderRecord::path);
    FolderStore {
        name: dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        folder: folder.map(|folder| folder.as_path().to_path_buf()),
        checkpoints: refs::ids(&dir.join(STORE)).map_or(0, |ids| ids.len()),
        dir,
    }
}

fn record_path(project: &Path) -> PathBuf {
    project.join(STATE).join("folder.json")
}

fn read_record(project: &Path) -> Option<FolderRecord> {
    let text = atomic_file::read(&record_path(project)).ok()??;
    serde_json::from_slice(&text).ok()
}

fn inode_of(folder: &Path) -> Option<Inode> {
    let (device, number) = stat(folder).ok()?.identity();
    let created = fs::metadata(folder).and_then(|folder| folder.created());
    let created = created
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Some(Inode {
        device,
        number,
        created: created.and_then(|age| u64::try_from(age.as_nanos()).ok()),
    })
}

/// Returns the first commit of a repository, along first parents. `None` without a commit, empty if the
/// history is too long.
fn root_commit(repository: &git2::Repository) -> Option<String> {
    let mut commit = repository.head().ok()?.peel_to_commit().ok()?;
    for _ in 0..MAX_HISTORY {
        if commit.parent_count() == 0 {
            return Some(commit.id().to_string());
        }
        commit = commit.parent(0).ok()?;
    }
    Some(String::new())
}

/// Returns the name of a linked worktree. Empty for the main one.
fn worktree(repository: &git2::Repository) -> String {
    let name = repository.path().file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    if repository.is_worktree() {
        name.into_owned()
    } else {
        String::new()
    }
}

/// Returns the time of the newest checkpoint of a store, in seconds since the epoch. 0 if none can be
/// read.
fn newest(store: &Path) -> u64 {
    let reader = Odb::new(store, u64::MAX);
    let ids = refs::ids(store).unwrap_or_default().into_iter();
    let times = ids.filter_map(|id| Some(reader.commit(id).ok()?.time));
    times.max().unwrap_or_default()
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| failed("move", from, error).into())
}

/// Links the files of a directory into another one, packs before their indexes.
fn link_files(from: &Path, to: &Path) -> Result<(), Error> {
    atomic_file::make_dir(to)?;
    let entries = fs::read_dir(from).map_err(|error| failed("read", from, error))?;
    let mut entries = entries
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed("read", from, error))?;
    entries.sort_by_key(|entry| {
        let path = entry.path();
        (path.extension() != Some(OsStr::new("pack")), path)
    });
    for entry in entries {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry
            .file_type()
            .map_err(|error| failed("inspect", &source, error))?;
        let is_object = kind.is_file() && target.extension() != Some(OsStr::new("keep"));
        if kind.is_dir() {
            link_files(&source, &target)?;
        } else if is_object && fs::symlink_metadata(&target).is_err() {
            fs::hard_link(&source, &target).map_err(|error| failed("link", &source, error))?;
        }
    }
    Ok(sync_dir(to)?)
}
