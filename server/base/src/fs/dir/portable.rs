//! Directories on systems without directory handles: each directory is checked just before it is
//! used.

use std::{
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Access, File, FileInfo, FileType, OsStr, OsString, Path, RelPath, SpecialFile, Stamp, io,
};

#[derive(Debug)]
pub struct Dir(PathBuf);

impl Dir {
    /// Returns the file system root of `path`.
    pub fn open_fs_root(path: &Path) -> io::Result<Self> {
        Ok(Self(path.ancestors().last().unwrap_or(path).to_path_buf()))
    }

    /// Opens the subdirectory `name` for traversal.
    pub fn traverse(&self, name: &OsStr) -> io::Result<Self> {
        self.open_dir(name)
    }

    /// Opens a directory several levels below for traversal. Returns `None` if a component is a
    /// symbolic link.
    pub fn traverse_no_symlinks(&self, path: &Path) -> io::Result<Option<Self>> {
        self.traverse_stepwise(path)
    }

    /// Directories have no portable identity here.
    pub fn identity(&self) -> Option<(u64, u64)> {
        None
    }

    /// Returns whether the entry opened as `name` is still the file at `path`.
    pub fn is_same_file(&self, name: &OsStr, path: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(&self.0.join(name)).is_some_and(|now| real(path).is_some_and(|then| now == then))
    }

    /// Calls `each` with the name and, if known, the kind of every entry, in no order, until it
    /// returns false.
    pub fn entries(
        &self,
        mut each: impl FnMut(&OsStr, Option<FileType>) -> bool,
    ) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if !each(&entry.file_name(), entry.file_type().ok().map(file_type)) {
                break;
            }
        }
        Ok(())
    }

    /// Opens a directory, unless it is a symbolic link.
    pub fn open_root(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path)?.is_dir() {
            Ok(Self(path.to_path_buf()))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    pub fn is_same_dir(&self, path: &Path) -> bool {
        self.0 == path && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
    }

    /// Returns the stamp of the directory itself.
    pub fn stamp(&self) -> io::Result<Stamp> {
        Ok(file_info(&fs::symlink_metadata(&self.0)?).stamp)
    }

    /// Writes the file system of the directory to the disk.
    pub fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    /// Opens a subdirectory, unless it is a symbolic link.
    pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.0.join(name);
        if fs::symlink_metadata(&path)?.is_dir() {
            Ok(Self(path))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    pub fn open_dir_below(&self, _path: &RelPath) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Creates a subdirectory. Succeeds if it exists.
    pub fn create_dir(&self, name: &OsStr) -> io::Result<()> {
        match fs::create_dir(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Returns the metadata of an entry, or `None` if it does not exist.
    pub fn stat(&self, name: &OsStr) -> io::Result<Option<FileInfo>> {
        match fs::symlink_metadata(self.0.join(name)) {
            Ok(metadata) => Ok(Some(file_info(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file, unless it is a symbolic link.
    pub fn open(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let path = self.0.join(name);
        let mut options = fs::OpenOptions::new();
        options.read(true).write(access != Access::Read);
        options.create_new(matches!(
            access,
            Access::Create { .. } | Access::CreatePrivate
        ));
        if fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a regular file",
            ));
        }
        options.open(path)
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        let target = fs::read_link(self.0.join(name))?;
        Ok(target.into_os_string().into_encoded_bytes())
    }

    /// Creates a symbolic link.
    pub fn create_symlink(&self, _: &[u8], _: &OsStr) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "symbolic links are not supported on this system",
        ))
    }

    /// Renames an entry, and replaces an existing one.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// Renames `from` to an unused name.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.stat(to)? {
            None => self.rename(from, to),
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Creates a hard link.
    pub fn hard_link(&self, name: &OsStr, second: &OsStr) -> io::Result<()> {
        fs::hard_link(self.0.join(name), self.0.join(second))
    }

    /// Not supported.
    #[allow(clippy::unnecessary_wraps)]
    pub fn exchange(&self, _: &OsStr, _: &OsStr) -> io::Result<bool> {
        Ok(false)
    }

    /// Removes an entry that is not a directory.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    /// Returns the names of all entries, in no order.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.0)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }
}

/// Returns the metadata of an open file.
pub fn stat_file(file: &File) -> io::Result<FileInfo> {
    Ok(file_info(&file.metadata()?))
}

fn file_type(found: fs::FileType) -> FileType {
    match found {
        kind if kind.is_symlink() => FileType::Symlink,
        kind if kind.is_dir() => FileType::Directory,
        kind if kind.is_file() => FileType::File,
        _ => FileType::Special(SpecialFile::Device),
    }
}

fn file_info(metadata: &fs::Metadata) -> FileInfo {
    let nanos = |time: io::Result<SystemTime>| {
        time.ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|since| i64::try_from(since.as_nanos()).ok())
            .unwrap_or(0)
    };
    FileInfo {
        kind: file_type(metadata.file_type()),
        stamp: Stamp {
            mtime: nanos(metadata.modified()),
            ctime: nanos(metadata.created()),
            size: metadata.len(),
            inode: 0,
            mode: u32::from(metadata.is_dir()),
        },
        links: 1,
    }
}
