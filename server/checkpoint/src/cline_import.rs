//! Imports checkpoints from Cline 3.
//!
//! Cline's shadow repository has one commit per checkpoint, on one branch. It contains the files
//! that its exclusions left, and nested repositories as submodules without content. It is never
//! changed. Denied files are not imported, and only counted. Which files Cline excluded is unknown,
//! so restoring an imported checkpoint keeps every file that it does not hold.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use sightline_workspace::{
    cancel::Cancel,
    clock::now_millis,
    path::RelPath,
    storage::{
        TaskId,
        atomic_file::{failed, is_dir},
    },
};

use super::{
    checkpoints::Checkpoints,
    job::{Job, Progress},
    list::Filter,
    metadata::{Checkpoint, CheckpointMetadata, Counts, Purpose, Skipped, commit_of},
    store::{
        fsck::{UNSAFE_NAME, UNSORTED, is_unsafe_name},
        git_config, lock,
        object::{
            Commit, Kind, Mode, Oid, RawEntry, Unreadable, encode_tree, name_of, raw_entries,
            tree_order,
        },
        odb::Odb,
        pack_writer::PackWriter,
        reachable::named_by_headers,
        refs,
    },
};
use crate::error::Error;

/// Name that Cline gives to `.git` folders of nested repositories during a commit.
const DISABLED_GIT_NAME: &[u8] = b".git_disabled";
/// Maximum depth of an imported tree. Real work trees are flatter, and the import is recursive.
const MAX_DEPTH: usize = 400;
/// Maximum number of entries in a tree. A few small trees that name each other repeatedly can claim
/// more.
const MAX_ENTRIES: u64 = 1_000_000;
/// Maximum size of an object, in bytes. Cline leaves out large files.
const MAX_OBJECT_BYTES: u64 = 1 << 30;
/// Maximum clock difference between machines, in milliseconds.
const CLOCK_SKEW: u64 = 24 * 3600 * 1000;
/// Maximum number of skipped paths listed for one checkpoint.
const MAX_SKIPPED: usize = 10_000;

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Cline's commits and the new checkpoints, oldest first.
    pub checkpoints: Vec<(Oid, Oid)>,
    /// Number of commits that were imported before.
    pub known: u64,
    /// Number of files and folders that access rules deny.
    pub denied: u64,
    /// Commits that could not be imported, with reasons.
    pub problems: Vec<String>,
}

/// Returns the folder name of a workspace's shadow repository: a hash of the UTF-16 units of its
/// path, in decimal.
pub fn cwd_hash(path: &str) -> String {
    let step = |hash: u32, unit: u16| hash.wrapping_mul(31).wrapping_add(u32::from(unit));
    path.encode_utf16().fold(0, step).to_string()
}

impl Checkpoints {
    /// Finds the shadow repository of this root in Cline's global storage folder.
    pub fn shadow_repository(&self, storage: &Path) -> Option<PathBuf> {
        let paths = [self.root.path.as_path(), self.root.canonical.as_path()];
        let names = paths
            .iter()
            .filter_map(|path| Some(cwd_hash(path.to_str()?)));
        let mut folders = names.map(|name| storage.join("checkpoints").join(name));
        folders.find(|folder| folder.join(".git").is_dir())
    }

    /// Returns the checkpoint that was imported from a commit.
    ///
    /// # Errors
    /// `storage`.
    pub fn imported_from(&self, original: Oid) -> Result<Option<Arc<Checkpoint>>, Error> {
        let original = original.to_string();
        let checkpoints = self.list(&Filter::default())?.into_iter();
        let mut imported = checkpoints.filter(|checkpoint| {
            let from = checkpoint.metadata.imported.as_deref();
            from.is_some_and(|from| from.eq_ignore_ascii_case(&original))
        });
        Ok(imported.next())
    }

    /// Imports every checkpoint of a shadow repository.
    ///
    /// # Errors
    /// `notFound` if there is no repository; `conflict` if it belongs to another folder;
    /// `accessDenied` while the access rules cannot be used; `busy`; `cancelled`; `storage`.
    /// Nothing is imported then.
    pub fn import(&self, job: &Job<'_>, shadow: &Path) -> Result<Imported, Error> {
        let shadow = ShadowRepository::open(shadow)?;
        shadow.check_work_tree(&self.root.path.display(), self.work_tree())?;
        job.require_rules()?;
        let mut imported = Imported::default();
        let commits = shadow.commits(&mut imported.problems, job.cancel)?;
        if commits.is_empty() {
            return Ok(imported);
        }
        let _lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        let repository = self.open_or_create()?;
        let checkpoints = self.list(&Filter::default())?;
        let known: HashSet<&str> = checkpoints
            .iter()
            .filter_map(|checkpoint| checkpoint.metadata.imported.as_deref())
            .collect();
        let mut import = Importer {
            job,
            shadow: &shadow,
            stored: repository.odb(),
            pack: PackWriter::new(repository.dir())?,
            trees: HashMap::new(),
            entries: HashMap::new(),
            denied: HashSet::new(),
        };
        let latest = now_millis().cast_unsigned().saturating_add(CLOCK_SKEW);
        let total = commits.len() as u64;
        let mut before = None;
        for (done, (original, commit)) in (0..).zip(commits) {
            job.cancel.check()?;
            (job.progress)(Progress {
                stage: "importing",
                done,
                total: Some(total),
            });
            let tree = commit.tree;
            let sound = import.check_size(tree)?;
            if known.contains(original.to_string().as_str()) {
                imported.known += 1;
                before = sound.ok().map(|()| tree).or(before);
                continue;
            }
            let taken = match sound {
                Ok(()) => import.tree(tree, &RelPath::default(), 0)?,
                Err(problem) => Err(problem),
            };
            let taken = match taken {
                Ok(taken) => taken,
                Err(problem) => {
                    let problem = format!("cannot import Cline's checkpoint {original}: {problem}");
                    imported.problems.push(problem);
                    continue;
                }
            };
            let last = before.replace(tree);
            let metadata = CheckpointMetadata {
                created: commit.time.max(1).saturating_mul(1000).min(latest),
                sequence: done,
                task: task_of(&commit.message),
                label: Some(format!("imported from Cline {:.7}", original.to_string())),
                purpose: Purpose::Imported,
                imported: Some(original.to_string()),
                counts: import.counts(last, tree)?,
                files: taken.files,
                bytes: taken.bytes,
                skipped: taken.skipped,
                ..CheckpointMetadata::default()
            };
            let id = import.pack.put_commit(&commit_of(taken.oid, &metadata))?;
            imported.checkpoints.push((original, id));
        }
        imported.denied = import.denied.len() as u64;
        job.cancel.commit()?;
        let kept = import.pack.finish()?;
        for (_, id) in &imported.checkpoints {
            repository.publish(*id)?;
        }
        drop(kept);
        Ok(imported)
    }
}

/// Parses the task in `checkpoint-{hash}-{task}`.
fn task_of(message: &str) -> Option<String> {
    let line = message.lines().next()?;
    let (_, task) = line.strip_prefix("checkpoint-")?.split_once('-')?;
    TaskId::new(task.trim()).ok()?;
    Some(task.trim().to_owned())
}

/// A shadow repository. Not opened with libgit2, which blocks on pipes and loops forever on
/// truncated objects.
struct ShadowRepository {
    dir: PathBuf,
    reader: Odb,
}

impl ShadowRepository {
    /// `path` is the repository or its parent folder.
    fn open(path: &Path) -> Result<Self, Error> {
        let within = path.join(".git");
        let inspect = |path: &Path| is_dir(path).map_err(|error| failed("inspect", path, error));
        let dir = if inspect(&within)? {
            within
        } else {
            path.to_path_buf()
        };
        let is_repository = inspect(&dir.join("objects"))?
            && inspect(&dir.join("refs"))?
            && dir.join("HEAD").is_file();
        if !is_repository {
            return Err(Error::NotFound(format!(
                "not a repository of Cline checkpoints: {}; pass a folder below `checkpoints` in Cline's global storage",
                path.display()
            )));
        }
        let reader = Odb::new(&dir, MAX_OBJECT_BYTES);
        Ok(Self { dir, reader })
    }

    /// Different folders can have the same hash.
    fn check_work_tree(&self, written: &str, work_tree: &Path) -> Result<(), Error> {
        let config = git_config::read(&self.dir.join("config")).map_err(Error::Damaged)?;
        let named = config.get("core", "worktree").unwrap_or_default();
        let is_same = || fs::canonicalize(named).is_ok_and(|named| named == work_tree);
        if named == written || (!named.is_empty() && is_same()) {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "{} contains checkpoints of {named:?}, not of {written}; open that folder to import them",
            self.dir.display()
        )))
    }

    /// Returns the commits that are checkpoints, oldest first. Unreadable commits and their
    /// ancestors are reported as problems.
    fn commits(
        &self,
        problems: &mut Vec<String>,
        cancel: &Cancel,
    ) -> Result<Vec<(Oid, Commit)>, Error> {
        let Some(head) = refs::resolve_head(&self.dir)? else {
            return Ok(Vec::new());
        };
        let mut commits = Vec::new();
        let mut seen = HashSet::new();
        // A commit is added after all its ancestors.
        let mut waiting = vec![(head, None)];
        while let Some((id, read)) = waiting.pop() {
            cancel.check()?;
            if let Some(commit) = read {
                commits.push((id, commit));
                continue;
            }
            if !seen.insert(id) {
                continue;
            }
            match self.commit(id) {
                Ok((commit, parents)) => {
                    waiting.push((id, Some(commit)));
                    waiting.extend(parents.into_iter().map(|parent| (parent, None)));
                }
                Err(what) if id == head => {
                    return Err(Error::damaged(format!(
                        "cannot read Cline's checkpoints in {}: the commit {id} {what}; run `git fsck` there for details",
                        self.dir.display()
                    )));
                }
                Err(what) => problems.push(format!(
                    "cannot import Cline's checkpoint {id} and earlier ones: its commit {what}"
                )),
            }
        }
        commits.retain(|(_, commit)| {
            commit.message.starts_with("checkpoint-")
                || commit.message.trim_end() == "initial commit"
        });
        Ok(commits)
    }

    /// Reads a commit and its parents.
    fn commit(&self, id: Oid) -> Result<(Commit, Vec<Oid>), String> {
        let bytes = self.reader.try_read(Kind::Commit, id);
        let bytes = bytes.map_err(Unreadable::describe)?;
        let commit = Commit::decode(&bytes).ok_or("is malformed")?;
        Ok((commit, named_by_headers(&bytes, &["parent"])))
    }
}

/// An imported tree.
#[derive(Clone, Debug)]
struct ImportedTree {
    oid: Oid,
    files: u64,
    bytes: u64,
    /// Skipped paths, up to a limit.
    skipped: Vec<Skipped>,
}

/// Why an entry is not imported.
enum Omission {
    /// Denied by access rules, so it must not be named.
    Denied,
    Because(&'static str),
}

struct Importer<'a> {
    job: &'a Job<'a>,
    shadow: &'a ShadowRepository,
    stored: Odb,
    pack: PackWriter,
    /// Consecutive checkpoints share most trees.
    trees: HashMap<(Oid, RelPath), ImportedTree>,
    /// Total number of entries in a tree.
    entries: HashMap<Oid, u64>,
    /// Paths that access rules deny.
    denied: HashSet<RelPath>,
}

impl Importer<'_> {
    /// Checks that the tree of a commit is small enough.
    fn check_size(&mut self, tree: Oid) -> Result<Result<(), String>, Error> {
        Ok(match self.count(tree, 0)? {
            Ok(entries) if entries > MAX_ENTRIES => {
                Err(format!("it has more than {MAX_ENTRIES} files and folders"))
            }
            counted => counted.map(|_| ()),
        })
    }

    /// Counts the entries of a tree. Reads each tree once.
    fn count(&mut self, oid: Oid, depth: usize) -> Result<Result<u64, String>, Error> {
        if let Some(entries) = self.entries.get(&oid) {
            return Ok(Ok(*entries));
        }
        self.job.cancel.check()?;
        if depth > MAX_DEPTH {
            return Ok(Err("its folders are nested too deeply".to_owned()));
        }
        // Errors are reported later, with the path.
        let bytes = self.read(Kind::Tree, oid).unwrap_or_default();
        let raw = raw_entries(&bytes).unwrap_or_default();
        let mut entries = raw.len() as u64;
        for entry in raw {
            if entry.mode() == Some(Mode::Folder) {
                match self.count(entry.oid, depth + 1)? {
                    Ok(below) => entries = entries.saturating_add(below),
                    Err(problem) => return Ok(Err(problem)),
                }
            }
        }
        self.entries.insert(oid, entries);
        Ok(Ok(entries))
    }

    /// Imports a tree. Returns a message if something in it cannot be read.
    fn tree(
        &mut self,
        oid: Oid,
        path: &RelPath,
        depth: usize,
    ) -> Result<Result<ImportedTree, String>, Error> {
        let key = (oid, path.clone());
        if let Some(taken) = self.trees.get(&key) {
            return Ok(Ok(taken.clone()));
        }
        self.job.cancel.check()?;
        if depth > MAX_DEPTH {
            return Ok(Err(format!("{path} is nested too deeply")));
        }
        let bytes = match self.read(Kind::Tree, oid) {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(format!("the tree of {path:?} {}", why.describe()))),
        };
        let Some(raw) = raw_entries(&bytes) else {
            return Ok(Err(format!("the tree of {path:?} is malformed")));
        };
        let (mut files, mut size) = (0, 0);
        let mut skipped = Vec::new();
        let mut entries: Vec<(Mode, &[u8], Oid)> = Vec::with_capacity(raw.len());
        let mut last: Option<RawEntry<'_>> = None;
        for entry in raw {
            if let Some(last) = last.replace(entry) {
                let is_folder = |entry: &RawEntry<'_>| entry.mode() == Some(Mode::Folder);
                let sides = [&last, &entry].map(|entry| (entry.name, is_folder(entry)));
                if last.name == entry.name || tree_order(sides[0], sides[1]).is_ge() {
                    return Ok(Err(format!("{path:?} has {UNSORTED}")));
                }
            }
            if is_unsafe_name(entry.name) {
                return Ok(Err(format!("{path:?} has {UNSAFE_NAME}")));
            }
            let below = path.child(&os_name(entry.name));
            let mode = match self.check_entry(&entry, &below) {
                Ok(mode) => mode,
                Err(Omission::Denied) => {
                    self.denied.insert(below);
                    continue;
                }
                Err(Omission::Because(reason)) => {
                    skipped.push(skip(&below, reason));
                    continue;
                }
            };
            let oid = entry.oid;
            if mode == Mode::Folder {
                let taken = match self.tree(oid, &below, depth + 1)? {
                    Ok(taken) => taken,
                    Err(problem) => return Ok(Err(problem)),
                };
                files += taken.files;
                size += taken.bytes;
                skipped.extend(taken.skipped);
                entries.push((mode, entry.name, taken.oid));
                continue;
            }
            let length = match self.blob(oid)? {
                Ok(length) => length,
                Err(why) => return Ok(Err(format!("the file {below} {}", why.describe()))),
            };
            files += 1;
            size += length;
            entries.push((mode, entry.name, entry.oid));
        }
        skipped.truncate(MAX_SKIPPED);
        let ours = encode_tree(entries.into_iter());
        let taken = ImportedTree {
            oid: name_of(Kind::Tree, &ours),
            files,
            bytes: size,
            skipped,
        };
        if !self.stored.is_packed(taken.oid) {
            self.pack.put(Kind::Tree, taken.oid, &ours)?;
        }
        self.trees.insert(key, taken.clone());
        Ok(Ok(taken))
    }

    /// Returns the mode of an entry, or why it is not imported.
    fn check_entry(&self, entry: &RawEntry<'_>, path: &RelPath) -> Result<Mode, Omission> {
        let mode = entry.mode();
        // First, because the other reasons name the path.
        let is_folder = mode.is_none_or(|mode| mode == Mode::Folder);
        if self.denies(path, is_folder) || (mode.is_none() && self.denies(path, false)) {
            return Err(Omission::Denied);
        }
        if entry.name == DISABLED_GIT_NAME {
            return Err(Omission::Because("a nested repository that Cline renamed"));
        }
        mode.ok_or(Omission::Because(
            "a nested repository, which Cline did not capture",
        ))
    }

    fn denies(&self, path: &RelPath, is_dir: bool) -> bool {
        let denial = self.job.view.check_entry(self.job.root, path, is_dir);
        denial.is_some()
    }

    /// Counts the differences between the imported files of two trees. Unreadable trees count as
    /// empty.
    fn counts(&self, before: Option<Oid>, after: Oid) -> Result<Counts, Error> {
        let mut counts = Counts::default();
        let mut waiting = vec![(RelPath::default(), [before, Some(after)])];
        while let Some((path, trees)) = waiting.pop() {
            self.job.cancel.check()?;
            let trees = trees.map(|tree| self.read(Kind::Tree, tree?).ok());
            let mut names: BTreeMap<&[u8], [Option<RawEntry<'_>>; 2]> = BTreeMap::new();
            for (side, tree) in trees.iter().enumerate() {
                for entry in raw_entries(tree.as_deref().unwrap_or_default()).unwrap_or_default() {
                    names.entry(entry.name).or_default()[side] = Some(entry);
                }
            }
            for (name, sides) in names {
                let known = |side: &RawEntry<'_>| (side.mode(), side.oid);
                if sides[0].as_ref().map(known) == sides[1].as_ref().map(known) {
                    continue;
                }
                let below = path.child(&os_name(name));
                let sides = sides.map(|side| {
                    let side = side?;
                    Some((self.check_entry(&side, &below).ok()?, side.oid))
                });
                let is_folder = |(mode, _): &(Mode, Oid)| *mode == Mode::Folder;
                match sides.map(|side| side.is_some_and(|side| !is_folder(&side))) {
                    [true, true] => counts.modified += 1,
                    [true, false] => counts.deleted += 1,
                    [false, true] => counts.added += 1,
                    [false, false] => {}
                }
                let folders = sides.map(|side| side.filter(is_folder).map(|(_, oid)| oid));
                if folders != [None, None] {
                    waiting.push((below, folders));
                }
            }
        }
        Ok(counts)
    }

    /// Imports a blob, and returns its length.
    fn blob(&self, oid: Oid) -> Result<Result<u64, Unreadable>, Error> {
        if self.pack.has(oid) || self.stored.is_packed(oid) {
            return Ok(self.shadow.reader.header(oid).map(|(_, length)| length));
        }
        let bytes = match self.read(Kind::Blob, oid) {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(why)),
        };
        self.pack.put(Kind::Blob, oid, &bytes)?;
        Ok(Ok(bytes.len() as u64))
    }

    fn read(&self, kind: Kind, oid: Oid) -> Result<Vec<u8>, Unreadable> {
        self.shadow.reader.try_read(kind, oid)
    }
}

fn skip(path: &RelPath, reason: &str) -> Skipped {
    let (path, encoded) = path.to_wire();
    Skipped {
        path,
        encoded,
        reason: reason.to_owned(),
    }
}

#[cfg(unix)]
fn os_name(name: &[u8]) -> std::ffi::OsString {
    <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name).to_owned()
}

/// Without byte names, invalid Unicode can only be displayed.
#[cfg(not(unix))]
fn os_name(name: &[u8]) -> std::ffi::OsString {
    String::from_utf8_lossy(name).into_owned().into()
}
