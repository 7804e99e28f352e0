//! The files by which agents find a socket and its token. They are private, written once the
//! socket listens, and removed with the bridge.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sightline_workspace::storage::atomic_file;

use crate::error::Error;

/// Begins the name by which agents and we recognize our files.
pub(super) const IDE_NAME: &str = "Sightline";
/// Maximum size of a file that may be ours, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A file or a socket that is removed when it is dropped.
pub(super) struct DiscoveryFile {
    path: PathBuf,
    /// Device and inode of a socket, which another server may replace.
    socket: Option<(u64, u64)>,
}

impl DiscoveryFile {
    /// Writes a file. Creates its folder for the user only.
    pub(super) fn write(path: PathBuf, content: &Value) -> Result<Self, Error> {
        make_private(path.parent().unwrap_or(Path::new("/")))?;
        atomic_file::write(&path, content.to_string().as_bytes())?;
        Ok(Self { path, socket: None })
    }

    /// Returns the file of a socket that was just bound.
    #[cfg(unix)]
    pub(super) fn socket(path: PathBuf) -> io::Result<Self> {
        let socket = Some(inode(&path)?);
        Ok(Self { path, socket })
    }
}

impl Drop for DiscoveryFile {
    fn drop(&mut self) {
        #[cfg(unix)]
        if self.socket.is_some() && inode(&self.path).ok() != self.socket {
            return;
        }
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns what identifies a file.
#[cfg(unix)]
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Creates a folder for the user only. Its parent must be the user's too, unless it is the
/// temporary folder of all users.
pub(super) fn make_private(folder: &Path) -> Result<(), Error> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::storage(format!("cannot use {}: {why}", folder.display()))
    };
    atomic_file::make_dir(folder)?;
    let parent = folder
        .parent()
        .filter(|parent| *parent != std::env::temp_dir());
    for folder in parent.into_iter().chain([folder]) {
        if !is_private(folder).map_err(|error| failed(&error))? {
            return Err(failed(
                &"it belongs to another user, or others can write to it",
            ));
        }
    }
    Ok(())
}

/// Returns whether no other user can create or exchange files in a folder.
fn is_private(folder: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(folder)?;
    #[cfg(unix)]
    let is_closed = {
        use std::os::unix::fs::MetadataExt;
        found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
    };
    #[cfg(not(unix))]
    let is_closed = true;
    Ok(found.is_dir() && is_closed)
}

/// Removes files that a server left behind which was killed: those that name Sightline and a
/// process that has ended. `pid` is the field with its id.
pub(super) fn remove_stale(folder: &Path, pid: &str) {
    // Others could exchange a file while it is read.
    if !is_private(folder).unwrap_or(false) {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_small = entry
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
        let content = is_small.then(|| fs::read(&path).ok()).flatten();
        let content: Option<Value> = content.and_then(|text| serde_json::from_slice(&text).ok());
        let Some(content) = content else { continue };
        let is_ours = content["ideName"].as_str().is_some_and(|name| {
            let rest = name.strip_prefix(IDE_NAME);
            rest.is_some_and(|rest| rest.starts_with(" ("))
        });
        let pid = content[pid]
            .as_i64()
            .and_then(|pid| i32::try_from(pid).ok());
        if is_ours && pid.is_some_and(has_ended) {
            let socket = content["socketPath"].as_str().map(Path::new);
            if let Some(socket) = socket.filter(|socket| socket.parent() == Some(folder)) {
                let _ = fs::remove_file(socket);
            }
            let _ = fs::remove_file(path);
        }
    }
}

fn has_ended(pid: i32) -> bool {
    #[cfg(unix)]
    {
        let pid = rustix::process::Pid::from_raw(pid);
        pid.is_some_and(|pid| {
            rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        })
    }
    #[cfg(not(unix))]
    {
        let _ = pid;
        false
    }
}

/// Returns the home of the user.
pub(super) fn home() -> Result<PathBuf, Error> {
    let dirs = directories::BaseDirs::new();
    let home = dirs.map(|dirs| dirs.home_dir().to_owned());
    home.ok_or_else(|| Error::storage("there is no home directory"))
}
