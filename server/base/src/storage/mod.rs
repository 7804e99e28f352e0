//! The data directory: layout, permissions, atomic writes, locks.
//!
//! ```text
//! <data directory>/version          1
//! <data directory>/tasks/<taskId>/  one directory per task
//! ```
//!
//! Nothing is created before the first write. Directories have mode 0700 and files 0600; wider
//! permissions of the user's own ones are restricted on access. Files are replaced atomically, so a
//! process killed at any moment leaves the old or the new content. Only logs are appended to
//! (`append_log`).
//!
//! A writer below a task holds its [`TaskLock`], which excludes other threads and processes.
//! Readers need no lock. The tracker and the task store define what the files contain.
//! `atomic_file` reads and replaces a file, `tasks` lists and deletes tasks.

mod append_log;
pub mod atomic_file;
mod runtime_dir;
mod task_dir;
mod tasks;

use std::{
    ffi::{OsStr, OsString},
    fmt, fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

pub use append_log::{LogStamp, UnsyncedWrite};
pub use atomic_file::read_foreign;
pub use task_dir::{TaskDir, TaskLock};

use crate::{error::Error, escape::hex, path::Root};
use atomic_file::{
    failed, is_ours, is_unfinished, make_dir, read, restrict_permissions, unusable, write,
};
use entries::{GATEWAY, PROJECTS, RESULTS, RUN, TASKS};

/// Version of all formats below the data directory: stores, logs and records. A format that earlier
/// versions would misread needs a new one; they refuse the directory then.
const VERSION: u32 = 1;

/// Names of the entries of the data directory. Others belong to other programs.
pub mod entries {
    /// The version file.
    pub const VERSION: &str = "version";
    pub(super) const TASKS: &str = "tasks";
    pub(super) const PROJECTS: &str = "projects";
    pub(super) const RESULTS: &str = "results";
    pub(super) const RUN: &str = "run";
    pub(super) const GATEWAY: &str = "gateway";
    /// State of MCP servers.
    pub const MCP: &str = "mcp";
    /// The log of decisions.
    pub const DECISIONS: &str = "decisions";
    /// State of the sessions of agents.
    pub const SESSIONS: &str = "agent-sessions";
    /// The record of what `agents install` changed.
    pub const AGENTS: &str = "agents.json";
    /// Locked while the configuration of agents is changed.
    pub const AGENTS_LOCK: &str = "agents.lock";
    /// All names.
    pub const ALL: [&str; 11] = [
        VERSION,
        TASKS,
        PROJECTS,
        RESULTS,
        RUN,
        GATEWAY,
        MCP,
        DECISIONS,
        SESSIONS,
        AGENTS,
        AGENTS_LOCK,
    ];
}

/// Id of a task, safe as a directory name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(String);

impl TaskId {
    /// Accepts 1 to 128 characters of `A-Z a-z 0-9 . _ -` that do not start with a dot.
    ///
    /// # Errors
    /// `invalidParams`, with the rejected id.
    pub fn new(id: &str) -> Result<Self, Error> {
        let fits = (1..=128).contains(&id.len());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if fits && !id.starts_with('.') && id.chars().all(plain) {
            return Ok(Self(id.to_owned()));
        }
        let shown: String = id.chars().take(128).collect();
        Err(Error::invalid(format!(
            "invalid taskId {shown:?}: use 1 to 128 of A-Z a-z 0-9 . _ - and do not start with a dot"
        )))
    }

    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A data directory, which may not exist yet.
#[derive(Clone, Debug)]
pub struct Storage {
    dir: PathBuf,
}

impl Storage {
    /// Uses `dir` as the data directory. Creates nothing.
    ///
    /// # Errors
    /// `storage`, if `dir` is not a directory, belongs to another user, or was written by a newer
    /// version.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let storage = Self {
            dir: std::path::absolute(dir)
                .map_err(|error| failed("open the data directory", dir, error))?,
        };
        match fs::metadata(&storage.dir) {
            Ok(metadata) if !metadata.is_dir() => Err(unusable(
                dir,
                "is not a directory; set storage.path to a directory",
            )),
            Ok(metadata) if !is_ours(&metadata) => Err(unusable(
                dir,
                "belongs to another user; set storage.path to a directory that you own",
            )),
            Ok(_) => {
                storage.check_version()?;
                Ok(storage)
            }
            Err(error) if error.kind() == Io::NotFound => Ok(storage),
            Err(error) => Err(failed("open the data directory", dir, error)),
        }
    }

    /// Returns the data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory of a task, which may not exist.
    pub fn task(&self, id: &TaskId) -> TaskDir {
        TaskDir {
            storage: self.clone(),
            id: id.clone(),
            dir: self.dir.join(TASKS).join(id.as_str()),
        }
    }

    /// Returns the directory of a workspace root's data, which may not exist. Its name consists of
    /// the root's name and a hash of its canonical path.
    pub fn project(&self, root: &Root) -> PathBuf {
        let path = root.canonical.as_path().as_os_str().as_encoded_bytes();
        let hash = hex(&Sha256::digest(path)[..8]);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = root.canonical.as_path().file_name().unwrap_or_default();
        let name: String = name
            .to_string_lossy()
            .chars()
            .take(64)
            .map(|c| if plain(c) { c } else { '_' })
            .collect();
        self.dir.join(PROJECTS).join(format!("{name}-{hash}"))
    }

    /// Returns the directory of the gateway, which may not exist.
    pub fn gateway(&self) -> PathBuf {
        self.dir.join(GATEWAY)
    }

    /// Creates a directory below the data directory, accessible by the user only.
    ///
    /// # Errors
    /// `storage`.
    pub fn make_dir(&self, dir: &Path) -> Result<(), Error> {
        self.create()?;
        make_dir(dir)
    }

    /// Returns the directory of generated documents, creating it if needed.
    ///
    /// # Errors
    /// `storage`, if it cannot be created.
    pub fn results(&self) -> Result<PathBuf, Error> {
        self.create()?;
        let results = self.dir.join(RESULTS);
        make_dir(&results)?;
        restrict_permissions(&results, 0o700)?;
        Ok(results)
    }

    /// Returns whether this is the path of a result document.
    pub fn is_result(&self, path: &Path) -> bool {
        path.parent() == Some(&self.dir.join(RESULTS))
    }

    /// Returns the names of the entries that Sightline created, the version file last.
    ///
    /// # Errors
    /// `storage`, if the data directory cannot be listed.
    pub fn own_entries(&self) -> Result<Vec<OsString>, Error> {
        let mut own = self.entries()?;
        own.retain(|name| is_own(name));
        own.sort_by_key(|name| name == entries::VERSION);
        Ok(own)
    }

    /// Returns the names in the data directory.
    fn entries(&self) -> Result<Vec<OsString>, Error> {
        fs::read_dir(&self.dir)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
            .map_err(|error| failed("list", &self.dir, error))
    }

    /// Returns whether the version file exists. Fails if its version is not supported.
    fn check_version(&self) -> Result<bool, Error> {
        let path = self.dir.join(entries::VERSION);
        let Some(text) = read(&path)? else {
            return Ok(false);
        };
        let version = String::from_utf8_lossy(&text);
        match version.trim().parse::<u32>() {
            Ok(VERSION) => Ok(true),
            Ok(newer) if newer > VERSION => Err(unusable(
                &path,
                format!(
                    "has version {newer}, but this program supports {VERSION}; update Sightline or set storage.path to another directory"
                ),
            )),
            _ => Err(unusable(
                &path,
                "has an invalid version; set storage.path to another directory",
            )),
        }
    }

    /// Creates the data directory with its version file and `tasks`.
    fn create(&self) -> Result<(), Error> {
        make_dir(&self.dir)?;
        // A directory with other contents is shared with another program, whose users may need its
        // permissions.
        if self.entries()?.iter().all(|name| is_own(name)) {
            restrict_permissions(&self.dir, 0o700)?;
        }
        if !self.check_version()? {
            let text = format!("{VERSION}\n");
            write(&self.dir.join(entries::VERSION), text.as_bytes())?;
        }
        let tasks = self.dir.join(TASKS);
        make_dir(&tasks)?;
        restrict_permissions(&tasks, 0o700)
    }
}

/// Returns whether an entry of the data directory belongs to Sightline.
fn is_own(name: &OsStr) -> bool {
    entries::ALL.iter().any(|own| name == *own) || is_unfinished(name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sightline_protocol::error::ErrorKind;

    use super::{atomic_file::aside, *};

    fn task(storage: &Storage) -> TaskDir {
        storage.task(&TaskId::new("t1").unwrap())
    }

    #[test]
    fn task_ids_are_validated() {
        let long = "a".repeat(128);
        for good in ["a", "0", "A.b_c-9", "-", "_", "a..b", &long] {
            assert_eq!(TaskId::new(good).unwrap().as_str(), good);
        }
        let longer = "a".repeat(129);
        for bad in [
            "", ".", "..", ".hidden", "a/b", "../x", "a\\b", "C:x", "a b", "a\0", "a\n", "ä", "а",
            "a%2e", "~", "$HOME", &longer,
        ] {
            let error = TaskId::new(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidParams, "{bad:?}");
            let shown: String = bad.chars().take(128).collect();
            assert!(error.to_string().contains(&format!("{shown:?}")), "{error}");
        }
    }

    #[test]
    fn nothing_is_created_before_the_first_write() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("not/yet");
        let storage = Storage::open(&dir).unwrap();
        assert_eq!(task(&storage).read("x").unwrap(), None);
        assert!(!task(&storage).exists());
        assert!(!scratch.path().join("not").exists());
        task(&storage).lock().unwrap().write("x", b"1").unwrap();
        assert_eq!(fs::read_to_string(dir.join("version")).unwrap(), "1\n");
        assert_eq!(fs::read(dir.join("tasks/t1/x")).unwrap(), b"1");
        assert_eq!(task(&storage).read("x").unwrap().unwrap(), b"1");
    }

    #[test]
    fn each_root_has_its_own_project_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(&scratch.path().join("data")).unwrap();
        let project = |path: &str| {
            let path = crate::path::AbsPath::new(&scratch.path().join(path)).unwrap();
            storage.project(&Root::new(path, None))
        };
        assert_eq!(project("a/x"), project("a/x"));
        assert_ne!(project("a/x"), project("b/x"));
        assert!(project("a/x").starts_with(storage.dir().join("projects")));
        let name = project("a/x").file_name().unwrap().to_owned();
        assert!(name.to_string_lossy().starts_with("x-"), "{name:?}");
    }

    #[test]
    fn unsupported_versions_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        for (text, part) in [
            ("2\n", "version 2"),
            ("1.2.3", "invalid version"),
            ("", "invalid version"),
        ] {
            fs::write(scratch.path().join("version"), text).unwrap();
            let error = Storage::open(scratch.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Storage);
            assert!(error.to_string().contains(part), "{error}");
        }
        fs::write(scratch.path().join("version"), "1").unwrap();
        Storage::open(scratch.path()).unwrap();
        let error = Storage::open(&scratch.path().join("version")).unwrap_err();
        assert!(error.to_string().contains("not a directory"), "{error}");
    }

    #[test]
    fn temporary_files_of_killed_writers_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        task(&storage).lock().unwrap().write("x", b"old").unwrap();
        let torn = task(&storage).path().join(".a1b2.unfinished");
        fs::write(&torn, "ne").unwrap();
        assert_eq!(task(&storage).read("x").unwrap().unwrap(), b"old");
        task(&storage).lock().unwrap().write("x", b"new").unwrap();
        assert!(!torn.exists());
        assert_eq!(task(&storage).read("x").unwrap().unwrap(), b"new");
    }

    #[test]
    fn set_aside_never_overwrites() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        let lock = task(&storage).lock().unwrap();
        lock.write("x.json", b"torn").unwrap();
        let kept = lock.set_aside("x.json").unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"torn");
        assert_eq!(task(&storage).read("x.json").unwrap(), None);
        let name = |millis| {
            task(&storage)
                .path()
                .join(format!("x.json.corrupt-{millis}"))
        };
        fs::write(name(7), "").unwrap();
        fs::write(name(8), "").unwrap();
        assert_eq!(aside(&task(&storage).path().join("x.json"), 7), name(9));
    }

    #[test]
    fn a_second_writer_waits_then_fails_with_busy() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        let held = task(&storage).lock().unwrap();
        let error = task(&storage)
            .lock_within(Duration::from_millis(30))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        // Like a child process between `fork` and `exec`.
        let _inherited = held.file.try_clone().unwrap();
        drop(held);
        task(&storage).lock_within(Duration::ZERO).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_on_a_deleted_task_is_reacquired() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        let task = task(&storage);
        let path = task.path().join(task_dir::LOCK_FILE);
        let opened = || {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let links = open.filter_map(|fd| fs::read_link(fd.path()).ok());
            links.filter(|link| *link == path).count()
        };
        let held = task.lock().unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| task.lock().unwrap().write("x", b"1"));
            while opened() < 2 {
                std::thread::yield_now();
            }
            fs::rename(task.path(), scratch.path().join("deleted")).unwrap();
            drop(held);
            waiter.join().unwrap().unwrap();
        });
        assert_eq!(task.read("x").unwrap().unwrap(), b"1");
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_of_another_user_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(scratch.path(), Some(1), None).unwrap();
        }
        let foreign = if is_root {
            scratch.path()
        } else {
            Path::new("/")
        };
        let error = Storage::open(foreign).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().contains("another user"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_has_access() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("data");
        let wide = fs::Permissions::from_mode(0o755);
        fs::create_dir_all(dir.join("tasks/t1")).unwrap();
        fs::write(dir.join("tasks/t1/x"), "1").unwrap();
        fs::write(dir.join(entries::AGENTS), "{}").unwrap();
        for path in ["", "tasks", "tasks/t1", "tasks/t1/x"] {
            fs::set_permissions(dir.join(path), wide.clone()).unwrap();
        }
        let storage = Storage::open(&dir).unwrap();
        task(&storage).read("x").unwrap();
        assert_eq!(mode(&dir.join("tasks/t1/x")), 0o600);
        task(&storage).lock().unwrap().write("y", b"1").unwrap();
        let other = storage.task(&TaskId::new("t2").unwrap());
        other.lock().unwrap().write("x", b"1").unwrap();
        for path in ["", "tasks", "tasks/t1", "tasks/t2"] {
            assert_eq!(mode(&dir.join(path)), 0o700, "{path}");
        }
        let results = storage.results().unwrap();
        fs::set_permissions(&results, wide).unwrap();
        assert_eq!(mode(&storage.results().unwrap()), 0o700);
        for path in ["version", "tasks/t1/y", "tasks/t1/.lock", "tasks/t2/x"] {
            assert_eq!(mode(&dir.join(path)), 0o600, "{path}");
        }
    }

    #[test]
    fn all_entries_are_documented() {
        let text = include_str!("../../../../docs/data.md");
        let layout = text.split("```").nth(1).unwrap();
        let lines = layout.lines().filter(|line| !line.starts_with(' '));
        let mut documented: Vec<_> = lines
            .flat_map(|line| line.split("  ").next().unwrap().split(", "))
            .filter_map(|path| path.split('/').next())
            .filter(|name| !matches!(*name, "" | "text"))
            .collect();
        documented.sort_unstable();
        documented.dedup();
        let mut known = entries::ALL.to_vec();
        known.sort_unstable();
        assert_eq!(documented, known);
    }

    #[cfg(unix)]
    #[test]
    fn a_shared_directory_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("notes.md"), "mine").unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        for id in ["t1", "t2"] {
            storage.task(&TaskId::new(id).unwrap()).lock().unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(scratch.path()), 0o755);
        assert_eq!(mode(&scratch.path().join("tasks")), 0o700);
    }

    #[cfg(unix)]
    #[test]
    fn a_failed_write_keeps_the_old_content() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        let lock = task(&storage).lock().unwrap();
        // A directory cannot be replaced by a file, even by root.
        fs::create_dir(task(&storage).path().join("x")).unwrap();
        let error = lock.write("x", b"new").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().contains("tasks/t1/x"), "{error}");
        let left: Vec<_> = fs::read_dir(task(&storage).path()).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_in_place_of_our_files_are_refused() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(&scratch.path().join("data")).unwrap();
        task(&storage).lock().unwrap().write("x", b"1").unwrap();
        let foreign = scratch.path().join("foreign");
        fs::write(&foreign, "mine").unwrap();
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o644)).unwrap();
        let dir = task(&storage).path().to_path_buf();

        fs::remove_file(dir.join("x")).unwrap();
        symlink(&foreign, dir.join("x")).unwrap();
        assert!(task(&storage).read("x").is_err());
        fs::remove_file(dir.join("x")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(dir.join("x"))
            .status();
        assert!(made.unwrap().success());
        assert!(task(&storage).read("x").is_err());

        fs::remove_file(dir.join(task_dir::LOCK_FILE)).unwrap();
        symlink(&foreign, dir.join(task_dir::LOCK_FILE)).unwrap();
        assert!(task(&storage).lock().is_err());
        let other = storage.task(&TaskId::new("t2").unwrap());
        symlink(scratch.path(), other.path()).unwrap();
        assert!(!other.exists() && other.lock().is_err());
        assert_eq!(fs::metadata(&foreign).unwrap().mode() & 0o777, 0o644);
        assert_eq!(fs::read(&foreign).unwrap(), b"mine");
    }

    #[test]
    fn unrelated_directories_are_not_tasks() {
        let scratch = tempfile::tempdir().unwrap();
        let storage = Storage::open(scratch.path()).unwrap();
        let mine = scratch.path().join("tasks/my-project");
        fs::create_dir_all(&mine).unwrap();
        fs::write(mine.join("thesis.tex"), "years").unwrap();
        let kept = scratch.path().join("tasks/.deleted-me");
        fs::create_dir(&kept).unwrap();
        let lock = task(&storage).lock().unwrap();
        lock.write("conversation.jsonl", b"").unwrap();
        assert_eq!(storage.task_ids().unwrap(), [TaskId::new("t1").unwrap()]);
        storage.sweep_deleted().unwrap();
        assert!(mine.join("thesis.tex").exists() && kept.exists());
    }
}
