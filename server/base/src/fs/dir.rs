//! Files below a root directory, reached directory by directory without following symbolic links.
//! The file that was checked is the file that is read or changed, even if a concurrent process
//! moves directories.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use super::Stamp;
use crate::clock::now_nanos;
pub use crate::error::is_absent;
use crate::path::RelPath;
#[cfg(unix)]
pub use unix::{Dir, lstat, stat, stat_file};
#[cfg(windows)]
pub use windows::{Dir, lstat, stat, stat_file};

/// Metadata of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Type of the entry.
    pub kind: FileType,
    /// Result of `lstat`.
    pub stamp: Stamp,
    /// Device or volume.
    pub device: u64,
    /// Number of hard links.
    pub links: u64,
}

impl FileInfo {
    /// Identifies the file among all files of the machine, as long as it exists.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.stamp.inode)
    }
}

/// What is at a path, to be compared with what is there later. Not even equal to itself while it could change
/// without other metadata.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The entry, and what a symbolic link leads to.
    found: [Option<FileInfo>; 2],
    is_settled: bool,
}

impl Version {
    /// Returns the current version of what is at `path`, also of nothing.
    pub fn of(path: &Path) -> Self {
        let entry = lstat(path).ok();
        let is_link = entry.is_some_and(|entry| entry.kind == FileType::Symlink);
        let found = [entry, is_link.then(|| stat(path).ok()).flatten()];
        let now = now_nanos();
        let mut known = found.iter().flatten();
        let is_settled = known.all(|it| it.stamp.is_settled(now));
        Self { found, is_settled }
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.is_settled && other.is_settled && self.found == other.found
    }
}

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// Any other type.
    Special(SpecialFile),
}

/// Type of a special file. Only Unix distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SpecialFile {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// Opens directories below a root. Keeps the last one open.
#[derive(Debug)]
pub struct DirWalker {
    root: Arc<Dir>,
    last: Option<(RelPath, Dir)>,
}

impl DirWalker {
    /// Opens the root.
    pub fn new(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Arc::new(Dir::open_root(root)?),
            last: None,
        })
    }

    /// Returns a walker that starts at the same directory, even if that was moved.
    pub fn clone_root(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            last: None,
        }
    }

    /// Returns whether the root directory is still the one at `path`.
    pub fn is_same_dir(&self, path: &Path) -> bool {
        self.root.is_same_dir(path)
    }

    /// Flushes the file system of the root directory to disk.
    pub fn flush(&self) -> io::Result<()> {
        self.root.flush()
    }

    /// Opens the directory at `path`.
    pub fn open_dir(&mut self, path: &RelPath) -> io::Result<&Dir> {
        self.open(path, false)
    }

    /// Opens the directory at `path`, creating missing ones.
    pub fn create_dir_all(&mut self, path: &RelPath) -> io::Result<&Dir> {
        self.open(path, true)
    }

    fn open(&mut self, path: &RelPath, create: bool) -> io::Result<&Dir> {
        if path.is_root() {
            return Ok(&self.root);
        }
        if self.last.as_ref().is_none_or(|(at, _)| at != path) {
            let dir = match self.root.open_dir_below(path) {
                Ok(Some(dir)) => Some(dir),
                Err(error) if !create || error.kind() != io::ErrorKind::NotFound => {
                    return Err(error);
                }
                _ => self.open_stepwise(path, create)?,
            };
            self.last = dir.map(|dir| (path.clone(), dir));
        }
        Ok(self.last.as_ref().map_or(&*self.root, |(_, dir)| dir))
    }

    fn open_stepwise(&self, path: &RelPath, create: bool) -> io::Result<Option<Dir>> {
        let mut dir: Option<Dir> = None;
        for name in path.components() {
            let from = dir.as_ref().unwrap_or(&*self.root);
            let next = match from.open_dir(name) {
                Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                    from.create_dir(name)?;
                    from.open_dir(name)?
                }
                next => next?,
            };
            dir = Some(next);
        }
        Ok(dir)
    }

    /// Looks up `path`. Returns `None` if it does not exist, or if an ancestor is missing or not a
    /// directory.
    pub fn stat(&mut self, path: &RelPath) -> io::Result<Option<FileInfo>> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(None);
        };
        let result = self.open_dir(&parent).and_then(|dir| dir.stat(name));
        match result {
            Err(error) if is_absent(&error) => Ok(None),
            result => result,
        }
    }

    /// Reads the file or link at `path`. Also returns its metadata from just before the read.
    pub fn read(&mut self, path: &RelPath) -> io::Result<(FileInfo, Vec<u8>)> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        self.open_dir(&parent)?.read(name)
    }
}

impl Dir {
    /// Opens the directory at an absolute path. Fails if a component is a symbolic link.
    pub fn open_no_symlinks(path: &Path) -> io::Result<Self> {
        let top = Self::open_fs_root(path)?;
        let below = path.ancestors().last().map(|top| path.strip_prefix(top));
        top.traverse_below(below.and_then(Result::ok).unwrap_or(Path::new("")))
    }

    /// Opens the directory at `path` below this one. Fails if a component is a symbolic link.
    pub fn traverse_below(&self, path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return self.traverse(OsStr::new("."));
        }
        let passed = self.traverse_no_symlinks(path)?;
        passed.ok_or_else(|| io::ErrorKind::NotADirectory.into())
    }

    fn traverse_stepwise(&self, path: &Path) -> io::Result<Option<Self>> {
        let mut dir: Option<Self> = None;
        for name in path {
            let from = dir.as_ref().unwrap_or(self);
            match from.traverse(name) {
                Ok(next) => dir = Some(next),
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return match from.stat(name)?.map(|found| found.kind) {
                        // It may have been replaced since the failed call.
                        Some(FileType::Symlink | FileType::Directory) => Ok(None),
                        _ => Err(error),
                    };
                }
                Err(error) => return Err(error),
            }
        }
        Ok(dir)
    }

    /// Reads a file or link. Also returns its metadata from just before the read.
    pub fn read(&self, name: &OsStr) -> io::Result<(FileInfo, Vec<u8>)> {
        let found = self.stat(name)?.ok_or(io::ErrorKind::NotFound)?;
        match found.kind {
            FileType::Symlink => Ok((found, self.read_link(name)?)),
            FileType::File => {
                let mut file = self.open(name, Access::Read)?;
                let opened = stat_file(&file)?;
                if opened.kind != FileType::File {
                    return Err(io::Error::other("no longer a regular file"));
                }
                let mut bytes = Vec::with_capacity(usize::try_from(opened.stamp.size).unwrap_or(0));
                file.read_to_end(&mut bytes)?;
                Ok((opened, bytes))
            }
            FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
            FileType::Special(_) => Err(io::Error::other("not a file, link or directory")),
        }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For reading and writing an existing file.
    Write,
    /// For reading and writing; fails if it exists.
    Create {
        /// Whether the file is executable.
        executable: bool,
        /// Permission bits to clear.
        withheld: u32,
    },
    /// Like `Create`, with permissions for the owner only.
    CreatePrivate,
}
