//! The store of one root: a bare repository of our own that git reads.
//!
//! Whoever writes holds the lock; reading needs no lock. Objects are
//! on the disk before a name of theirs is, and names are gone before their
//! objects are: a process killed anywhere leaves what was or what is to be.

use std::{
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    git_config,
    object::{Commit, Kind, Oid, name_of},
    object_reader::ObjectReader,
    pack_reader::{PackList, PackSet},
    pack_writer::{PackWriter, UNFINISHED},
    packs, refs, repair, uncompressed_packs,
};
use crate::{
    checkpoint::{CheckpointMetadata, metadata},
    error::Error,
    line::one_line,
    storage::{
        Storage,
        files::{failed, is_dir, make_dir, read, read_text, sync_dir, tighten, write},
    },
};

const HEAD: &str = "ref: refs/heads/main\n";
/// git is not to do by itself what [`crate::checkpoint::prune`] does, nor to run anything.
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
/// What was found damaged in it, until it is rebuilt.
const DAMAGE: &str = "damage";

/// What became of a store that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Where the broken one is kept.
    pub kept: PathBuf,
    /// What was wrong with it.
    pub reason: String,
    /// Checkpoints that could not be read in full and are no more.
    pub lost: Vec<Oid>,
}

/// The bare repository of one root.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    dir: PathBuf,
    rebuilt: Option<Arc<Rebuilt>>,
    packs: Arc<PackList>,
}

impl Repository {
    /// `None` when there is none. Never changes anything.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, Error> {
        match fs::symlink_metadata(dir) {
            Ok(found) if found.is_dir() => Ok(Some(Self::at(dir))),
            Ok(_) => Err(Error::storage(format!(
                "{} is a link or no directory; move it away",
                dir.display()
            ))),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(failed("open", dir, &error)),
        }
    }

    /// Opens it, or makes a new one. The caller holds the lock. A repository
    /// that is broken is quarantined (renamed) and rebuilt from what is whole.
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
        tighten(dir, 0o700)?;
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
            packs: Arc::default(),
        }
    }

    /// Makes an empty one at `dir`, in place of what a killed one left there.
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

    /// Why git can't open it; `None` when it can.
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
        // Others may set what they like in it.
        git_config::read(&path).err()
    }

    /// As one that was opened whole.
    pub(crate) fn without_rebuilt(self) -> Self {
        Self {
            rebuilt: None,
            ..self
        }
    }

    /// What became of it when this was opened.
    pub(crate) fn rebuilt(&self) -> Option<&Arc<Rebuilt>> {
        self.rebuilt.as_ref()
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("objects/pack")
    }

    /// Readers from now on look into packs that came since the first of them.
    pub(crate) fn refresh_packs(&self) {
        self.packs.refresh(&self.pack_dir());
    }

    /// The packs there are now.
    pub(crate) fn current_packs(&self) -> Arc<PackSet> {
        self.refresh_packs();
        self.packs.get(&self.pack_dir())
    }

    /// Reads objects; one per thread.
    pub(crate) fn reader(&self) -> ObjectReader {
        ObjectReader::new(&self.dir, &self.packs)
    }

    /// As [`Self::reader`], for objects of at most `largest` bytes.
    pub(crate) fn reader_with_limit(&self, largest: u64) -> ObjectReader {
        ObjectReader::with_limit(largest, &self.dir, &self.packs)
    }

    /// The checkpoints' commits, in no order.
    pub(crate) fn ids(&self) -> Result<Vec<Oid>, Error> {
        refs::ids(&self.dir)
    }

    /// Names a commit, durably; its objects are on the disk already.
    pub(crate) fn publish(&self, id: Oid) -> Result<(), Error> {
        refs::publish(&self.dir, id)
    }

    /// Makes a checkpoint of a tree whose objects are in `pack` or in the store.
    pub(crate) fn write_checkpoint(
        &self,
        pack: PackWriter<'_>,
        tree: Oid,
        metadata: &CheckpointMetadata,
    ) -> Result<Oid, Error> {
        let id = put_commit(&pack, tree, metadata)?;
        let name = refs::PendingRef::write(&self.dir, id)?;
        let kept = pack.finish_with(|| name.flush())?;
        self.refresh_packs();
        name.publish_with(&self.pack_dir())?;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.stored_bytes > 0) {
            uncompressed_packs::record(&self.dir, &kept.path, kept.stored_bytes);
        }
        drop(kept);
        // Someone may run git in the store, which takes out what it thinks unused.
        self.reader().commit(id)?;
        Ok(id)
    }

    /// Another number whenever objects may have been taken out of the store:
    /// who knows what was stored at one generation knows nothing at another.
    pub(crate) fn generation(&self) -> Result<u64, Error> {
        let path = self.dir.join(GENERATION);
        let text = read(&path)?.unwrap_or_default();
        let number = String::from_utf8_lossy(&text).trim().parse();
        number.map_err(|_| {
            Error::storage(format!(
                "{} holds no number; the next checkpoint rebuilds the store",
                path.display()
            ))
        })
    }

    /// Says, durably, that something in it is damaged: the next writer rebuilds it.
    pub(crate) fn record_damage(&self, what: &str) -> Result<(), Error> {
        write(&self.dir.join(DAMAGE), one_line(what).as_bytes())
    }

    /// What was noted, if anything was.
    pub(crate) fn damage(&self) -> Result<Option<String>, Error> {
        let noted = read(&self.dir.join(DAMAGE))?;
        Ok(noted.map(|noted| String::from_utf8_lossy(&noted).into_owned()))
    }

    /// Counts up, before objects are taken out.
    pub(crate) fn next_generation(&self) -> Result<(), Error> {
        self.set_generation(self.generation().unwrap_or_default().saturating_add(1))
    }

    /// The time is a part of it: a store made anew never has a generation of
    /// the one before it.
    fn set_generation(&self, at_least: u64) -> Result<(), Error> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        let next = at_least.max(u64::try_from(millis).unwrap_or_default());
        write(&self.dir.join(GENERATION), format!("{next}\n").as_bytes())
    }

    /// Removes what killed writers left: every live one holds the lock.
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

/// Puts the commit of a checkpoint into a pack; it has no name yet.
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
