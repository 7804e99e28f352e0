//! The files by which agents find a socket and its token. They are private, written once the
//! socket listens, and removed with the bridge.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sightline_agents::{Agent, install::Locations};
use sightline_base::{fs::dir::lstat, storage::atomic_file};
use sightline_engine::error::Error;

/// Begins the name by which agents and we recognize our files.
pub const IDE_NAME: &str = "Sightline";
/// Maximum size of a file that may be ours, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A file or a socket that is removed when it is dropped.
pub struct DiscoveryFile {
    path: PathBuf,
    /// Device and inode of a socket, which another server may replace.
    socket: Option<(u64, u64)>,
}

impl DiscoveryFile {
    /// Writes a file into a folder, which [`make_private`] returned.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(path: PathBuf, content: &Value) -> Result<Self, Error> {
        atomic_file::write(&path, content.to_string().as_bytes())?;
        Ok(Self { path, socket: None })
    }

    /// Returns the file of a socket that was just bound.
    ///
    /// # Errors
    /// The socket is gone.
    #[cfg(unix)]
    pub fn socket(path: PathBuf) -> io::Result<Self> {
        let socket = Some(inode(&path)?);
        Ok(Self { path, socket })
    }
}

impl Drop for DiscoveryFile {
    fn drop(&mut self) {
        if self.socket.is_some() && inode(&self.path).ok() != self.socket {
            return;
        }
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns what identifies a file.
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    Ok(lstat(path)?.identity())
}

/// Writes the files by which several agents find a bridge, each a folder and a name. `pid` is the
/// field with our process. Returns those that were written, and why the others were not.
///
/// # Errors
/// If none can be written.
pub fn write_all(
    files: impl IntoIterator<Item = (PathBuf, String)>,
    pid: &str,
    content: &Value,
) -> Result<(Vec<DiscoveryFile>, Vec<Error>), Error> {
    let mut written = Vec::new();
    let mut failures = Vec::new();
    for (folder, name) in files {
        let file = make_private(&folder).and_then(|folder| {
            remove_stale(&folder, pid);
            DiscoveryFile::write(folder.join(name), content)
        });
        match file {
            Ok(file) => written.push(file),
            Err(error) => failures.push(error),
        }
    }
    if written.is_empty()
        && let Some(error) = failures.pop()
    {
        return Err(error);
    }
    let unreachable = |error| Error::storage(format!("an agent cannot find this editor: {error}"));
    Ok((written, failures.into_iter().map(unreachable).collect()))
}

/// Creates a folder for the user only. Its parent must be the user's too, unless it is the
/// temporary folder of all users. Returns the folder without links, so that links cannot be
/// exchanged later.
///
/// # Errors
/// The folder cannot be created, or others can change it.
pub fn make_private(folder: &Path) -> Result<PathBuf, Error> {
    let check = |folder: &Path| {
        check_private(folder)
            .map_err(|why| Error::storage(format!("cannot use {}: {why}", folder.display())))
    };
    let mut folder = folder.to_owned();
    let parent = folder.parent().map(Path::to_owned);
    if let (Some(parent), Some(name)) = (parent, folder.file_name().map(ToOwned::to_owned))
        && parent != std::env::temp_dir()
    {
        // Nothing is created through a link that leads nowhere.
        if !parent.is_symlink() {
            atomic_file::make_dir(&parent)?;
        }
        folder = check(&parent)?.join(name);
    }
    atomic_file::make_dir(&folder)?;
    check(&folder)
}

/// Checks that no other user can create or exchange files in a folder, or in the one to which a link
/// of the user leads. Returns it without links, or what is wrong.
fn check_private(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error: io::Error| error.to_string();
    let target =
        sightline_base::path::canonicalize(folder).map_err(|error| match folder.read_link() {
            Ok(target) => format!("it is a link to {}: {error}", target.display()),
            Err(_) => error.to_string(),
        })?;
    let found = fs::metadata(&target).map_err(failed)?;
    if !found.is_dir() {
        return Err("it is not a folder".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let user = rustix::process::geteuid().as_raw();
        let link = fs::symlink_metadata(folder).map_err(failed)?;
        let leads = match link.is_symlink() {
            true => format!("it is a link to {}, which", target.display()),
            false => "it".to_owned(),
        };
        if link.uid() != user {
            return Err("it belongs to another user".to_owned());
        }
        if found.uid() != user {
            return Err(format!("{leads} belongs to another user"));
        }
        if found.mode() & 0o022 != 0 {
            let target = target.display();
            return Err(format!(
                "{leads} can be written by other users; run `chmod go-w {target}`"
            ));
        }
        // Only what leads away from the folders of the user.
        let above = target.ancestors().skip(1).filter(|_| link.is_symlink());
        for above in above {
            let found = fs::metadata(above).map_err(failed)?;
            let is_sticky = found.mode() & 0o1000 != 0;
            if ![user, 0].contains(&found.uid()) || (found.mode() & 0o022 != 0 && !is_sticky) {
                let above = above.display();
                return Err(format!("{leads} other users can replace through {above}"));
            }
        }
    }
    Ok(target)
}

/// Removes files that a server left behind which was killed: those that name Sightline and a
/// process that has ended. `pid` is the field with its id.
pub fn remove_stale(folder: &Path, pid: &str) {
    // Others could exchange a file while it is read.
    if check_private(folder).is_err() {
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

/// Returns the folder of an agent.
///
/// # Errors
/// There is no home directory.
pub fn agent_folder(agent: Agent) -> Result<PathBuf, Error> {
    let home = home()?;
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Ok(Locations::new(&home, &home, variable).folder(agent))
}

/// Returns the home of the user.
///
/// # Errors
/// There is no home directory.
pub fn home() -> Result<PathBuf, Error> {
    sightline_base::path::home_dir().ok_or_else(|| Error::storage("there is no home directory"))
}
