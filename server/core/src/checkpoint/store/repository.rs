//! The bare repository of one root.
//!
//! Writers hold the lock, readers need none. Objects are flushed before the ref that names them is
//! written, and refs are removed before their objects. A killed process therefore leaves the state
//! before or after its change.

use std::{
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    git_config,
    object::{Commit, Kind, Oid, name_of},
    object_reader::ObjectReader,
    pack_writer::{PackWriter, UNFINISHED},
    packs, refs, repair,
};
use crate::{
    checkpoint::{CheckpointMetadata, metadata},
    clock::now_millis,
    error::Error,
    escape::one_line,
    storage::{
        Storage,
        atomic_file::{
            failed, is_dir, make_dir, read, read_text, restrict_permissions, sync_dir, write,
        },
    },
};

const HEAD: &str = "ref: refs/heads/main\n";
/// Disables hooks, and the automatic `git gc` that would compete with [`crate::checkpoint::prune`].
const CONFIG: &str = "[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
\thooksPath = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
";
const GENERATION: &str = "generation";
/// File that describes damage found by `verify`; removed by the rebuild.
const DAMAGE: &str = "damage";

/// Report of a damaged store that was rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Where the damaged store was moved.
    pub kept: PathBuf,
    /// What was damaged.
    pub reason: String,
    /// Checkpoints that could not be read completely and were dropped.
    pub lost: Vec<Oid>,
}

/// Handle of the bare repository of one root.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    dir: PathBuf,
    rebuilt: Option<Arc<Rebuilt>>,
    reader: ObjectReader,
}

impl Repository {
    /// Opens the repository without changing it. Returns `None` if it does not exist.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, Error> {
        match fs::symlink_metadata(dir) {
            Ok(found) if found.is_dir() => Ok(Some(Self::at(dir))),
            Ok(_) => Err(Error::storage(format!(
                "not a directory: {}; move it away",
                dir.display()
            ))),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(failed("open", dir, &error)),
        }
    }

    /// Opens the repository, or creates it. The caller holds the lock. A damaged repository is
    /// renamed and rebuilt from the intact checkpoints.
    pub(crate) fn open_or_create(storage: &Storage, dir: &Path) -> Result<Self, Error> {
        let Some(repository) = Self::open(dir)? else {
            if repair::finish_rebuild(dir)? {
                return Ok(Self::at(dir));
            }
            storage.make_dir(dir.parent().unwrap_or(dir))?;
            let unfinished = repair::sibling(dir, "unfinished");
            Self::make(&unfinished)?;
            fs::rename(&unfinished, dir).map_err(|error| failed("create", dir, &error))?;
            sync_dir(dir.parent().unwrap_or(dir))?;
            return Ok(Self::at(dir));
        };
        restrict_permissions(dir, 0o700)?;
        repository.remove_leftovers();
        match repair::find_problem(&repository)? {
            None => {
                refs::repair(dir)?;
                Ok(repository)
            }
            Some(reason) => {
                let rebuilt = repair::rebuild(&repository, reason)?;
                Ok(Self {
                    rebuilt: Some(Arc::new(rebuilt)),
                    ..Self::at(dir)
                })
            }
        }
    }

    fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            rebuilt: None,
            reader: ObjectReader::new(dir, u64::MAX),
        }
    }

    /// Creates an empty repository at `dir`, replacing the leftovers of a killed process.
    pub(crate) fn make(dir: &Path) -> Result<Self, Error> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != Io::NotFound => {
                return Err(failed("remove", dir, &error));
            }
            _ => {}
        }
        for folder in ["objects/pack", "objects/info", "refs/heads", refs::PREFIX] {
            make_dir(&dir.join(folder))?;
        }
        write(&dir.join("config"), CONFIG.as_bytes())?;
        let repository = Self::at(dir);
        repository.set_generation(0)?;
        write(&dir.join("HEAD"), HEAD.as_bytes())?;
        Ok(repository)
    }

    /// Returns why git cannot open the repository, if it cannot.
    pub(crate) fn open_problem(&self) -> Option<String> {
        for folder in ["objects", "refs"] {
            if !is_dir(&self.dir.join(folder)) {
                return Some(format!("{folder} is not a directory"));
            }
        }
        let path = self.dir.join("config");
        if read_text(&path).is_ok_and(|config| config == CONFIG) {
            return None;
        }
        // Users may change other settings.
        git_config::read(&path).err()
    }

    pub(crate) fn without_rebuilt(self) -> Self {
        Self {
            rebuilt: None,
            ..self
        }
    }

    /// Report of the rebuild that opening this repository caused.
    pub(crate) fn rebuilt(&self) -> Option<&Arc<Rebuilt>> {
        self.rebuilt.as_ref()
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("objects/pack")
    }

    /// Returns the object reader.
    pub(crate) fn reader(&self) -> ObjectReader {
        self.reader.clone()
    }

    /// Ids of the checkpoints, sorted.
    pub(crate) fn ids(&self) -> Result<Vec<Oid>, Error> {
        refs::ids(&self.dir)
    }

    /// Writes and flushes the ref of a commit whose objects are already flushed.
    pub(crate) fn publish(&self, id: Oid) -> Result<(), Error> {
        refs::publish(&self.dir, id)
    }

    /// Creates a checkpoint of a tree whose objects are in `pack` or in the store.
    pub(crate) fn write_checkpoint(
        &self,
        pack: PackWriter<'_>,
        tree: Oid,
        metadata: &CheckpointMetadata,
    ) -> Result<Oid, Error> {
        let id = put_commit(&pack, tree, metadata)?;
        let name = refs::PendingRef::write(&self.dir, id)?;
        let kept = pack.finish_with(|| name.flush())?;
        self.reader.refresh();
        name.publish_with(&self.pack_dir())?;
        drop(kept);
        // A concurrent `git gc` may have removed objects before the ref existed.
        self.reader.commit(id)?;
        Ok(id)
    }

    /// Returns the generation, which changes whenever objects may have been removed. Knowledge
    /// about stored objects is only valid within one generation.
    pub(crate) fn generation(&self) -> Result<u64, Error> {
        let path = self.dir.join(GENERATION);
        let text = read(&path)?.unwrap_or_default();
        let number = String::from_utf8_lossy(&text).trim().parse();
        number.map_err(|_| {
            Error::storage(format!(
                "{} does not contain a number; the next checkpoint rebuilds the store",
                path.display()
            ))
        })
    }

    /// Records and flushes a description of damage. The next writer rebuilds the store.
    pub(crate) fn record_damage(&self, what: &str) -> Result<(), Error> {
        write(&self.dir.join(DAMAGE), one_line(what).as_bytes())
    }

    /// Returns the recorded damage, if any.
    pub(crate) fn damage(&self) -> Result<Option<String>, Error> {
        let noted = read(&self.dir.join(DAMAGE))?;
        Ok(noted.map(|noted| String::from_utf8_lossy(&noted).into_owned()))
    }

    /// Starts a new generation; called before objects are removed.
    pub(crate) fn next_generation(&self) -> Result<(), Error> {
        self.set_generation(self.generation().unwrap_or_default().saturating_add(1))
    }

    /// Includes the time, so that a recreated store never repeats an earlier generation.
    fn set_generation(&self, at_least: u64) -> Result<(), Error> {
        let next = at_least.max(now_millis().cast_unsigned());
        write(&self.dir.join(GENERATION), format!("{next}\n").as_bytes())
    }

    /// Removes the temporary files of killed writers. A live writer would hold the lock.
    fn remove_leftovers(&self) {
        refs::sweep(&self.dir);
        packs::remove_stale_keeps(self);
        let Ok(entries) = fs::read_dir(self.pack_dir()) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Adds the commit of a checkpoint to a pack. It has no ref yet.
pub(crate) fn put_commit(
    pack: &PackWriter<'_>,
    tree: Oid,
    metadata: &CheckpointMetadata,
) -> Result<Oid, Error> {
    let commit = Commit {
        tree,
        time: metadata.created / 1000,
        message: metadata::message(metadata),
    };
    let bytes = commit.encode();
    let id = name_of(Kind::Commit, &bytes);
    pack.put(Kind::Commit, id, &bytes)?;
    Ok(id)
}
