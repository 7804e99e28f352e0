//! Allows one writer of a store at a time, among threads and processes.
//!
//! The lock is an operating system lock on a file, so the kernel releases it when a process ends.
//! The content of the file names the holder for error messages.

use std::{
    fs::{File, TryLockError},
    io::{ErrorKind as Io, Seek, SeekFrom, Write},
    path::Path,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use sightline_base::{
    cancel::Cancel,
    clock::now_millis,
    storage::{
        Storage,
        atomic_file::{
            cannot_open, check_regular, failed, is_same_file, open, private_options, read,
            restrict_permissions,
        },
    },
};

use crate::error::Error;

const LOCK_FILE: &str = "lock";
/// How long to wait for another holder.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Holder of the lock.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Owner {
    pid: u32,
    /// Tells machines apart that share a data directory.
    host: String,
    /// Time of the acquisition, in milliseconds since the epoch.
    since: u64,
}

/// Permission to change the store, its state and the work tree. Released on drop.
#[derive(Debug)]
pub(crate) struct StoreLock {
    file: File,
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Keeps error messages from naming a holder that is gone.
        let _ = self.file.set_len(0);
        // Closing the file is not enough: a child process between `fork` and `exec` shares it.
        let _ = self.file.unlock();
    }
}

/// Acquires the lock, and waits a few seconds for another holder.
///
/// # Errors
/// `busy` names the holder; `cancelled`; `storage` if the lock file cannot be created, or the file
/// system does not support locks.
pub(crate) fn acquire(
    storage: &Storage,
    state_dir: &Path,
    cancel: &Cancel,
) -> Result<StoreLock, Error> {
    acquire_within(storage, state_dir, cancel, TIMEOUT)
}

fn acquire_within(
    storage: &Storage,
    state_dir: &Path,
    cancel: &Cancel,
    timeout: Duration,
) -> Result<StoreLock, Error> {
    let path = state_dir.join(LOCK_FILE);
    let deadline = Instant::now() + timeout;
    loop {
        storage.make_dir(state_dir)?;
        restrict_permissions(state_dir, 0o700)?;
        let mut options = private_options();
        options.read(true).write(true).create(true);
        let file = open(&path, &mut options).map_err(|error| cannot_open(&path, error))?;
        check_regular(&path, &file)?;
        wait(&file, &path, cancel, deadline)?;
        // The previous holder may have removed the folder together with the file.
        if is_same_file(&file, &path) {
            let mut lock = StoreLock { file };
            lock.write_owner();
            return Ok(lock);
        }
        cancel.check()?;
    }
}

/// Waits for a lock on an open file.
pub(crate) fn wait(
    file: &File,
    path: &Path,
    cancel: &Cancel,
    deadline: Instant,
) -> Result<(), Error> {
    let mut pause = Duration::from_millis(1);
    loop {
        cancel.check()?;
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => return Err(busy(path)),
            Err(TryLockError::Error(error)) if error.kind() == Io::Unsupported => {
                return Err(Error::storage(format!(
                    "the file system of {} does not support locks; set storage.path to a directory on another file system",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", path, error).into()),
        }
    }
}

fn busy(path: &Path) -> Error {
    let project = path.parent().and_then(Path::parent).unwrap_or(path);
    let owner = read(path).ok().flatten();
    let owner: Option<Owner> = owner.and_then(|text| serde_json::from_slice(&text).ok());
    let holder = owner.map_or_else(
        || "another process".to_owned(),
        |Owner { pid, host, since }| {
            let at = i64::try_from(since).ok();
            let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
            let since = at.map_or_else(String::new, |at| format!(" since {at:.0}"));
            let host = if host == this_host() || host.is_empty() {
                String::new()
            } else {
                format!(" on {host:?}")
            };
            format!("process {pid}{host}{since}")
        },
    );
    Error::Locked(format!(
        "the checkpoints in {} are locked by {holder}; try again",
        project.display()
    ))
}

impl StoreLock {
    /// Writes the holder to the lock file. Errors are ignored: it only serves error messages.
    fn write_owner(&mut self) {
        let owner = Owner {
            pid: std::process::id(),
            host: this_host(),
            since: now_millis().cast_unsigned(),
        };
        let text = serde_json::to_vec(&owner).unwrap_or_default();
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(&text));
    }
}

#[cfg(unix)]
fn this_host() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn this_host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sightline_protocol::error::ErrorKind;

    use super::*;

    fn scratch() -> (tempfile::TempDir, Storage, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(&folder.path().join("data")).unwrap();
        let state = storage.dir().join("projects/x-1/state");
        (folder, storage, state)
    }

    #[test]
    fn a_second_writer_gets_an_error_that_names_the_first() {
        let (_folder, storage, state) = scratch();
        let cancel = Cancel::default();
        let now = |timeout| acquire_within(&storage, &state, &cancel, timeout);
        let held = now(Duration::ZERO).unwrap();
        let error = now(Duration::from_millis(5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        let pid = format!("process {}", std::process::id());
        assert!(error.to_string().contains(&pid), "{error}");
        assert!(error.to_string().contains("since 20"), "{error}");
        drop(held);
        let held = now(Duration::ZERO).unwrap();
        // An unreadable holder must not cause an error.
        fs::write(state.join(LOCK_FILE), "{").unwrap();
        let error = now(Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        drop(held);
        assert_eq!(fs::read(state.join(LOCK_FILE)).unwrap(), b"");
    }

    /// Simulates a process between `fork` and `exec`.
    #[test]
    fn a_lock_is_released_while_a_child_has_its_file_open() {
        let (_folder, storage, state) = scratch();
        let cancel = Cancel::default();
        let held = acquire(&storage, &state, &cancel).unwrap();
        let _inherited = held.file.try_clone().unwrap();
        drop(held);
        acquire_within(&storage, &state, &cancel, Duration::ZERO).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn lock_file_and_folder_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (_folder, storage, state) = scratch();
        let path = state.join(LOCK_FILE);
        drop(acquire(&storage, &state, &Cancel::default()).unwrap());
        for path in [&state, &path] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        drop(acquire(&storage, &state, &Cancel::default()).unwrap());
        assert_eq!((mode(&state), mode(&path)), (0o700, 0o600));
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = acquire(&storage, &state, &Cancel::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
    }

    #[test]
    fn waiting_can_be_cancelled() {
        let (_folder, storage, state) = scratch();
        let cancel = Cancel::default();
        let _held = acquire(&storage, &state, &cancel).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| acquire(&storage, &state, &cancel).map(|_| ()));
            cancel.cancel();
            let error = waiter.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_whose_file_was_removed_is_acquired_again() {
        let (folder, storage, state) = scratch();
        let cancel = Cancel::default();
        let path = state.join(LOCK_FILE);
        let opened = || {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let links = open.filter_map(|fd| fs::read_link(fd.path()).ok());
            links.filter(|link| *link == path).count()
        };
        let held = acquire(&storage, &state, &cancel).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| acquire(&storage, &state, &cancel));
            // Wait until both have opened the file that is removed below.
            while opened() < 2 {
                std::thread::yield_now();
            }
            fs::rename(&state, folder.path().join("away")).unwrap();
            drop(held);
            let lock = waiter.join().unwrap().unwrap();
            assert!(is_same_file(&lock.file, &state.join(LOCK_FILE)));
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_lock_file_is_not_followed() {
        let (folder, storage, state) = scratch();
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "mine").unwrap();
        fs::create_dir_all(&state).unwrap();
        std::os::unix::fs::symlink(&foreign, state.join(LOCK_FILE)).unwrap();
        let error = acquire(&storage, &state, &Cancel::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert_eq!(fs::read(&foreign).unwrap(), b"mine");
    }
}
