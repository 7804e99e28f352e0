//! The bare repository of one root.
//!
//! Writers hold the lock, readers need none. Objects are flushed before the ref that names them is
//! written, and refs are removed before their objects. A killed process therefore leaves the state
//! before or after its change.

use std::{
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
};

use sightline_base::{
    clock::now_millis,
    error::Error as WorkspaceError,
    escape::one_line,
    limits::MAX_STATE_FILE_BYTES,
    storage::atomic_file::{failed, is_dir, make_dir, read, read_foreign, read_text, write},
};
use sightline_context::git::config::Config;

use super::{
    object::{Commit, Oid},
    odb::Odb,
    pack::{
        Pack,
        writer::{self, PackWriter},
    },
    refs,
};
use crate::error::Error;

const HEAD: &str = "ref: refs/heads/main\n";
/// Disables hooks, and the automatic `git gc` that would compete with [`crate::prune`].
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

/// Handle of the bare repository of one root.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    dir: PathBuf,
    odb: Odb,
}

impl Repository {
    /// Opens the repository without changing it. Returns `None` if it does not exist.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, Error> {
        match fs::symlink_metadata(dir) {
            Ok(found) if found.is_dir() => Ok(Some(Self::at(dir))),
            Ok(_) => Err(Error::damaged(format!(
                "not a directory: {}; move it away",
                dir.display()
            ))),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(failed("open", dir, error).into()),
        }
    }

    /// Returns the repository at `dir`, which exists.
    pub(crate) fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            odb: Odb::new(dir, u64::MAX),
        }
    }

    /// Creates an empty repository at `dir`, replacing the leftovers of a killed process.
    pub(crate) fn make(dir: &Path) -> Result<Self, Error> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != Io::NotFound => {
                return Err(failed("remove", dir, error).into());
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
    ///
    /// # Errors
    /// `storage` if that cannot be determined.
    pub(crate) fn open_problem(&self) -> Result<Option<String>, Error> {
        for folder in ["objects", "refs"] {
            let path = self.dir.join(folder);
            if !is_dir(&path).map_err(|error| failed("inspect", &path, error))? {
                return Ok(Some(format!("{folder} is not a directory")));
            }
        }
        let path = self.dir.join("config");
        match state_file(&path)? {
            Some(config) if config == CONFIG.as_bytes() => Ok(None),
            // Users may change other settings.
            _ => Ok(check_config(&path).err()),
        }
    }

    /// Returns why the file that names the current branch is invalid, if it is.
    ///
    /// # Errors
    /// `storage` if that cannot be determined.
    pub(crate) fn head_problem(&self) -> Result<Option<String>, Error> {
        let head = state_file(&self.dir.join("HEAD"))?.unwrap_or_default();
        let head = String::from_utf8_lossy(&head);
        let is_valid = head.starts_with("ref: refs/") || Oid::from_hex(head.trim_end()).is_some();
        Ok((!is_valid).then(|| "HEAD is invalid".to_owned()))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("objects/pack")
    }

    /// Returns the objects.
    pub(crate) fn odb(&self) -> Odb {
        self.odb.clone()
    }

    /// Opens every pack.
    ///
    /// # Errors
    /// `storage` if one cannot be read.
    pub(crate) fn packs(&self) -> Result<Vec<Pack>, Error> {
        let dir = self.pack_dir();
        let entries = fs::read_dir(&dir).map_err(|error| failed("list", &dir, error))?;
        entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "idx"))
            .map(|index| Pack::open(&index.with_extension("pack"), u64::MAX))
            .collect()
    }

    /// Returns the total size of all files, in bytes.
    pub(crate) fn size(&self) -> u64 {
        let mut total = 0;
        let mut folders = vec![self.dir.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => folders.push(entry.path()),
                    Ok(found) => total += found.len(),
                    Err(_) => {}
                }
            }
        }
        total
    }

    /// Ids of the checkpoints, sorted.
    pub(crate) fn ids(&self) -> Result<Vec<Oid>, Error> {
        refs::ids(&self.dir)
    }

    /// Writes and flushes the ref of a commit whose objects are already flushed.
    pub(crate) fn publish(&self, id: Oid) -> Result<(), Error> {
        refs::publish(&self.dir, id)
    }

    /// Creates a checkpoint whose tree and contents are in `pack` or in the store.
    pub(crate) fn write_checkpoint(&self, pack: PackWriter, commit: &Commit) -> Result<Oid, Error> {
        let id = pack.put_commit(commit)?;
        let name = refs::PendingRef::write(&self.dir, id)?;
        let kept = pack.finish_with(|| name.flush())?;
        self.odb.refresh();
        name.publish_with(&self.pack_dir())?;
        drop(kept);
        // A concurrent `git gc` may have removed objects before the ref existed.
        self.odb.commit(id)?;
        Ok(id)
    }

    /// Returns the generation, which changes whenever objects may have been removed.
    pub(crate) fn generation(&self) -> Result<u64, Error> {
        let path = self.dir.join(GENERATION);
        let text = read(&path)?.unwrap_or_default();
        let number = String::from_utf8_lossy(&text).trim().parse();
        number.map_err(|_| {
            Error::damaged(format!(
                "{} does not contain a number; the next checkpoint rebuilds the store",
                path.display()
            ))
        })
    }

    /// Records and flushes a description of damage. The next writer rebuilds the store.
    pub(crate) fn record_damage(&self, what: &str) -> Result<(), Error> {
        Ok(write(&self.dir.join(DAMAGE), one_line(what).as_bytes())?)
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
        let text = format!("{next}\n");
        Ok(write(&self.dir.join(GENERATION), text.as_bytes())?)
    }

    /// Removes the temporary files of killed writers. A live writer would hold the lock.
    pub(crate) fn remove_leftovers(&self) {
        refs::sweep(&self.dir);
        writer::remove_stale_keeps(&self.pack_dir());
        writer::remove_unfinished(&self.pack_dir());
    }
}

/// Checks a configuration file without its includes.
///
/// # Errors
/// Why git cannot open a repository with this configuration.
fn check_config(path: &Path) -> Result<(), String> {
    let cannot = |cause: &str| format!("cannot read {}: {cause}", path.display());
    let text = read_text(path).map_err(|error| cannot(&error.to_string()))?;
    let config = Config::parse(text.as_bytes()).ok_or_else(|| cannot("it is malformed"))?;
    let version = config.get("core", "repositoryformatversion");
    let format = config.get("extensions", "objectformat");
    if !matches!(version, None | Some("0" | "1")) || !matches!(format, None | Some("sha1")) {
        return Err(cannot("unsupported repository format"));
    }
    Ok(())
}

/// Reads a file of the repository. Returns `None` if it is missing, too large, or not a regular
/// file.
fn state_file(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match read_foreign(path, MAX_STATE_FILE_BYTES) {
        Err(error @ WorkspaceError::Storage { .. }) => Err(error.into()),
        content => Ok(content.ok().flatten()),
    }
}
