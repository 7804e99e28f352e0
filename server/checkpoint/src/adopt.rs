//! Stores of folders that were moved: a store records its folder, and the store of a folder that
//! is gone can be adopted by the folder at the new path.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sightline_workspace::{
    cancel::Cancel,
    git,
    path::{AbsPath, uri_to_path},
    storage::atomic_file::{self, failed, sync_dir},
};

use super::{
    checkpoints::Checkpoints,
    store::{labels, lock, refs},
};
use crate::error::Error;

/// Commits followed to find the first one of a repository. With more, the folder is recognized by
/// its device and inode only.
const MAX_HISTORY: usize = 50_000;

const STORE: &str = "checkpoints.git";
const STATE: &str = "state";
const RECORDS: &str = "restores";
const JOURNAL: &str = "journal.json";

/// What identifies the folder of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FolderRecord {
    uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inode: Option<Inode>,
    /// First commit of the user's repository. Empty if its history is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root_commit: Option<String>,
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

    /// Returns whether both describe the same folder, at different places.
    fn matches(&self, other: &Self) -> bool {
        let known = |record: &Self| record.root_commit.clone().filter(|id| !id.is_empty());
        match (known(self), known(other)) {
            (Some(commit), Some(other)) => commit == other,
            _ => self.inode.is_some() && self.inode == other.inode,
        }
    }
}

/// Store whose folder no longer exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedStore {
    /// Name of its directory in the data directory.
    pub name: String,
    /// Directory with the store and its state.
    pub dir: PathBuf,
    /// Folder that the store belonged to. `None` if an older version created it.
    pub folder: Option<PathBuf>,
    /// Number of checkpoints.
    pub checkpoints: usize,
}

impl Checkpoints {
    /// Returns the stores of folders that no longer exist and may be this folder, at another place.
    pub fn moved_stores(&self) -> Vec<MovedStore> {
        let gone: Vec<_> = self
            .other_stores()
            .filter(|dir| dir.join(STORE).is_dir())
            .filter_map(|dir| Some((read_record(&dir)?, dir)))
            .filter(|(record, _)| record.path().is_some_and(|path| !path.as_path().is_dir()))
            .collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let here = self.folder_record();
        gone.into_iter()
            .filter(|(record, _)| record.matches(&here))
            .map(|(record, dir)| moved_store(dir, Some(&record)))
            .filter(|store| store.checkpoints > 0)
            .collect()
    }

    /// Finds the store with this name or path.
    ///
    /// # Errors
    /// `notFound` if there is none; `conflict` if its folder still exists.
    pub fn find_store(&self, named: &Path) -> Result<MovedStore, Error> {
        let wanted = named.file_name().filter(|name| *name != OsStr::new(STORE));
        let wanted = wanted.or_else(|| named.parent().and_then(Path::file_name));
        let dir = self
            .other_stores()
            .find(|dir| dir.file_name() == wanted && dir.join(STORE).is_dir());
        let dir = dir.ok_or_else(|| {
            Error::NotFound(format!("no store {} of another folder", named.display()))
        })?;
        let record = read_record(&dir);
        let folder = record.as_ref().and_then(FolderRecord::path);
        if let Some(folder) = folder.filter(|folder| folder.as_path().is_dir()) {
            return Err(Error::Conflict(format!(
                "the store {} belongs to {}, which still exists; copy its checkpoints with `sightline checkpoint fetch {}`",
                named.display(),
                folder.display(),
                dir.join(STORE).display()
            )));
        }
        Ok(moved_store(dir, record.as_ref()))
    }

    /// Adds the checkpoints of another store to this one, and removes that store. If it is killed,
    /// the other store is complete until all of it is here, and the next call continues.
    ///
    /// # Errors
    /// `busy`; `cancelled`; `storage`.
    pub fn adopt(&self, from: &MovedStore, cancel: &Cancel) -> Result<(), Error> {
        let _theirs = lock::acquire(&self.storage, &from.dir.join(STATE), cancel)?;
        let _ours = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        let store = from.dir.join(STORE);
        let ids = refs::ids(&store)?;
        cancel.commit()?;
        link_objects(&store.join("objects"), &repository.dir().join("objects"))?;
        *self.verified() = None;
        repository.odb().refresh();
        let mut all = labels::all(&store)?;
        all.extend(labels::all(repository.dir())?);
        if !all.is_empty() {
            labels::write_all(repository.dir(), &all)?;
        }
        for id in ids {
            if !refs::exists(repository.dir(), id)? {
                refs::publish(repository.dir(), id)?;
            }
        }
        self.adopt_state(&from.dir.join(STATE))?;
        self.record_folder();
        fs::remove_dir_all(&from.dir)
            .map_err(|error| failed("remove the adopted store", &from.dir, error))?;
        Ok(())
    }

    /// Takes over what undos and an interrupted restore need.
    fn adopt_state(&self, from: &Path) -> Result<(), Error> {
        let rename = |from: &Path, to: &Path| -> Result<(), Error> {
            fs::rename(from, to).map_err(|error| failed("move", from, error).into())
        };
        let (theirs, ours) = (from.join(RECORDS), self.state_dir().join(RECORDS));
        if let Ok(entries) = fs::read_dir(&theirs) {
            self.storage.make_dir(&ours)?;
            for entry in entries.flatten() {
                rename(&entry.path(), &ours.join(entry.file_name()))?;
            }
        }
        let journal = from.join(JOURNAL);
        if journal.exists() && !self.has_journal() {
            rename(&journal, &self.state_dir().join(JOURNAL))?;
            sync_dir(&self.state_dir())?;
        }
        Ok(())
    }

    /// Records the folder of the store if it is not recorded, or was replaced. Failures are ignored:
    /// the next maintenance tries again.
    pub(super) fn record_folder(&self) {
        let known = read_record(&self.project);
        let inode = inode_of(self.work_tree());
        let is_current = known
            .as_ref()
            .is_some_and(|known| known.inode == inode && known.root_commit.is_some());
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

    fn folder_record(&self) -> FolderRecord {
        FolderRecord {
            uri: self.root.canonical.to_uri(),
            inode: inode_of(self.work_tree()),
            root_commit: root_commit(self.work_tree()),
        }
    }

    /// Returns the directories of all other stores.
    fn other_stores(&self) -> impl Iterator<Item = PathBuf> {
        let projects = self.project.parent().map(fs::read_dir);
        let entries = projects.and_then(Result::ok).into_iter().flatten();
        let own = self.project.clone();
        entries
            .flatten()
            .map(|entry| entry.path())
            .filter(move |dir| *dir != own)
    }
}

fn moved_store(dir: PathBuf, record: Option<&FolderRecord>) -> MovedStore {
    let folder = record.and_then(FolderRecord::path);
    MovedStore {
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
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(folder).ok()?;
        let created = metadata.created().ok();
        let created = created.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        Some(Inode {
            device: metadata.dev(),
            number: metadata.ino(),
            created: created.and_then(|age| u64::try_from(age.as_nanos()).ok()),
        })
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Returns the first commit of the repository of a folder, along first parents. `None` without a
/// commit, empty if the history is too long.
fn root_commit(folder: &Path) -> Option<String> {
    git::isolate();
    let repository = git2::Repository::open(folder).ok()?;
    let mut commit = repository.head().ok()?.peel_to_commit().ok()?;
    for _ in 0..MAX_HISTORY {
        if commit.parent_count() == 0 {
            return Some(commit.id().to_string());
        }
        commit = commit.parent(0).ok()?;
    }
    Some(String::new())
}

/// Links the files of an object directory into another one, packs before their indexes.
fn link_objects(from: &Path, to: &Path) -> Result<(), Error> {
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
            link_objects(&source, &target)?;
        } else if is_object && fs::symlink_metadata(&target).is_err() {
            fs::hard_link(&source, &target).map_err(|error| failed("link", &source, error))?;
        }
    }
    Ok(sync_dir(to)?)
}
