//! Directories on Windows, which are paths: each directory is checked just before it is used.

use std::{
    ffi::c_void,
    fs,
    mem::MaybeUninit,
    os::windows::{fs::OpenOptionsExt, io::AsRawHandle},
    path::PathBuf,
};

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES, FileBasicInfo, GetFileInformationByHandle,
    GetFileInformationByHandleEx,
};

use super::{
    Access, File, FileInfo, FileType, OsStr, OsString, Path, RelPath, SpecialFile, Stamp, io,
};

/// A directory.
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

    /// Returns the identity of the directory.
    pub fn identity(&self) -> Option<(u64, u64)> {
        Some(lstat(&self.0).ok()?.identity())
    }

    /// Returns whether the entry opened as `name` is still the file at `path`.
    pub fn is_same_file(&self, name: &OsStr, path: &Path) -> bool {
        let real = |path: &Path| crate::path::canonicalize(path).ok();
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

    /// Returns whether there is still a directory at `path`, from which this one was opened.
    pub fn is_same_dir(&self, path: &Path) -> bool {
        self.0 == path && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
    }

    /// Returns the stamp of the directory itself.
    pub fn stamp(&self) -> io::Result<Stamp> {
        Ok(lstat(&self.0)?.stamp)
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

    /// Not available in one call.
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
        match lstat(&self.0.join(name)) {
            Ok(found) => Ok(Some(found)),
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
        // Opens a symbolic link itself, so that it can be refused.
        options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a regular file",
            ));
        }
        Ok(file)
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

/// Returns the metadata of what is at `path`. Follows symbolic links.
pub fn stat(path: &Path) -> io::Result<FileInfo> {
    stat_file(&open_for_attributes(path, 0)?)
}

/// Returns the metadata of the entry at `path`.
pub fn lstat(path: &Path) -> io::Result<FileInfo> {
    stat_file(&open_for_attributes(path, FILE_FLAG_OPEN_REPARSE_POINT)?)
}

/// Opens a file or directory for its metadata, which works while others have it open.
fn open_for_attributes(path: &Path, flags: u32) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options
        .access_mode(FILE_READ_ATTRIBUTES)
        // Without it, directories cannot be opened.
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags)
        .open(path)
}

/// Returns the metadata of an open file.
pub fn stat_file(file: &File) -> io::Result<FileInfo> {
    let metadata = file.metadata()?;
    let (by_handle, times) = handle_information(file)?;
    let modified = unix_nanos(times.LastWriteTime).unwrap_or(0);
    // FAT has none.
    let changed = unix_nanos(times.ChangeTime);
    Ok(FileInfo {
        kind: file_type(metadata.file_type()),
        stamp: Stamp {
            mtime: modified,
            ctime: changed.unwrap_or(modified),
            size: metadata.len(),
            inode: u64::from(by_handle.nFileIndexHigh) << 32 | u64::from(by_handle.nFileIndexLow),
            mode: u32::from(metadata.is_dir()),
        },
        device: u64::from(by_handle.dwVolumeSerialNumber),
        links: u64::from(by_handle.nNumberOfLinks),
    })
}

/// Returns what the standard library does not: the identity, the number of links, and the time of the
/// last change.
#[expect(unsafe_code, reason = "no maintained crate wraps the change time")]
fn handle_information(file: &File) -> io::Result<(BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO)> {
    let handle = file.as_raw_handle();
    let mut by_handle = MaybeUninit::<BY_HANDLE_FILE_INFORMATION>::uninit();
    let mut times = MaybeUninit::<FILE_BASIC_INFO>::uninit();
    let times_pointer = times.as_mut_ptr().cast::<c_void>();
    // SAFETY: the handle is open for as long as `file` is borrowed. Each call writes the whole struct
    // that it gets a pointer to, if it succeeds, and only then is it read.
    unsafe {
        if GetFileInformationByHandle(handle, by_handle.as_mut_ptr()) == 0
            || GetFileInformationByHandleEx(handle, FileBasicInfo, times_pointer, TIMES_SIZE) == 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok((by_handle.assume_init(), times.assume_init()))
    }
}

/// Size of the struct of times, in bytes.
const TIMES_SIZE: u32 = size_of::<FILE_BASIC_INFO>() as u32;

/// Converts a time of Windows, in units of 100 ns since 1601, to nanoseconds since the Unix epoch.
/// Returns `None` for 0, the time that a file system does not store.
fn unix_nanos(time: i64) -> Option<i64> {
    const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
    (time != 0).then(|| time.saturating_sub(UNIX_EPOCH).saturating_mul(100))
}

fn file_type(found: fs::FileType) -> FileType {
    match found {
        kind if kind.is_symlink() => FileType::Symlink,
        kind if kind.is_dir() => FileType::Directory,
        kind if kind.is_file() => FileType::File,
        _ => FileType::Special(SpecialFile::Device),
    }
}
