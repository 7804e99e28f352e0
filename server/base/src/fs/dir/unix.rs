//! Directory handles on Unix: every call is relative to an open file descriptor.

use std::os::{
    fd::OwnedFd,
    unix::ffi::{OsStrExt, OsStringExt},
};

use rustix::fs::{self, AtFlags, Mode, OFlags, Stat};

use super::{
    Access, File, FileInfo, FileType, OsStr, OsString, Path, RelPath, SpecialFile, Stamp, io,
};

/// An open directory.
#[derive(Debug)]
pub struct Dir(OwnedFd);

const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Flags for a directory that is only traversed: needs search permission, not read permission.
#[cfg(target_os = "linux")]
const TRAVERSE_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const TRAVERSE_FLAGS: OFlags = DIR_FLAGS;

impl Dir {
    /// Opens the file system root of `path`.
    pub fn open_fs_root(path: &Path) -> io::Result<Self> {
        let top = path.ancestors().last().unwrap_or(path);
        Ok(Self(fs::open(top, TRAVERSE_FLAGS, Mode::empty())?))
    }

    /// Opens the subdirectory `name` for traversal; read permission is not needed.
    pub fn traverse(&self, name: &OsStr) -> io::Result<Self> {
        let flags = TRAVERSE_FLAGS | OFlags::NOFOLLOW;
        match fs::openat(&self.0, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
            passed => Ok(Self(passed?)),
        }
    }

    /// Opens a directory several levels below for traversal. Returns `None` if a component is a
    /// symbolic link.
    pub fn traverse_no_symlinks(&self, path: &Path) -> io::Result<Option<Self>> {
        #[cfg(target_os = "linux")]
        {
            use rustix::{fs::ResolveFlags, io::Errno};
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match fs::openat2(&self.0, path, TRAVERSE_FLAGS, Mode::empty(), beneath) {
                Ok(dir) => return Ok(Some(Self(dir))),
                Err(Errno::LOOP) => return Ok(None),
                Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => {
                    return Err(error.into());
                }
                // An older kernel, a sandbox, or a path too long for one call.
                Err(_) => {}
            }
        }
        self.traverse_stepwise(path)
    }

    /// Reopens the directory for listing.
    pub fn open_for_listing(&self) -> io::Result<OwnedFd> {
        Ok(fs::openat(&self.0, c".", DIR_FLAGS, Mode::empty())?)
    }

    /// Returns the identity of the directory.
    pub fn identity(&self) -> Option<(u64, u64)> {
        Some(file_info(&fs::fstat(&self.0).ok()?).identity())
    }

    /// Returns whether the entry opened as `name` is still the file at `path`. Always true with
    /// file descriptors.
    pub fn is_same_file(&self, _name: &OsStr, _path: &Path) -> bool {
        true
    }

    /// Calls `each` with the name and, if known, the kind of every entry, in no order, until it
    /// returns false.
    pub fn entries(
        &self,
        mut each: impl FnMut(&OsStr, Option<FileType>) -> bool,
    ) -> io::Result<()> {
        for entry in fs::Dir::new(self.open_for_listing()?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                fs::FileType::Unknown => None,
                known => Some(file_type(known)),
            };
            if !each(OsStr::from_bytes(name), kind) {
                break;
            }
        }
        Ok(())
    }

    /// Opens a directory, unless it is a symbolic link.
    pub fn open_root(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::open(
            path,
            DIR_FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        )?))
    }

    /// Does not follow a symbolic link at `path`.
    pub fn is_same_dir(&self, path: &Path) -> bool {
        let id = |stat: Stat| (stat.st_dev, stat.st_ino);
        match (fs::fstat(&self.0), fs::lstat(path)) {
            (Ok(ours), Ok(there)) => id(ours) == id(there),
            _ => false,
        }
    }

    /// Returns the stamp of the directory itself.
    pub fn stamp(&self) -> io::Result<Stamp> {
        Ok(file_info(&fs::fstat(&self.0)?).stamp)
    }

    /// Writes the file system of the directory to the disk.
    pub fn flush(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        fs::syncfs(&self.0)?;
        Ok(())
    }

    /// Opens a subdirectory, unless it is a symbolic link.
    pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        let flags = DIR_FLAGS | OFlags::NOFOLLOW;
        let opened = fs::openat(&self.0, name, flags, Mode::empty());
        match opened {
            // Some systems return this error for a symbolic link.
            Err(rustix::io::Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
            opened => Ok(Self(opened?)),
        }
    }

    /// Opens a directory several levels below without following symbolic links. Returns `None`
    /// if the system cannot do this in one call.
    #[cfg(target_os = "linux")]
    pub fn open_dir_below(&self, path: &RelPath) -> io::Result<Option<Self>> {
        use rustix::{fs::ResolveFlags, io::Errno};
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let path = path.as_path();
        match fs::openat2(&self.0, path, DIR_FLAGS, Mode::empty(), beneath) {
            Ok(dir) => Ok(Some(Self(dir))),
            Err(Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
            Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => Err(error.into()),
            // An older kernel, a sandbox, or a path too long for one call.
            Err(_) => Ok(None),
        }
    }

    /// Not available in one call.
    #[cfg(not(target_os = "linux"))]
    pub fn open_dir_below(&self, _path: &RelPath) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Creates a subdirectory. Succeeds if it exists.
    pub fn create_dir(&self, name: &OsStr) -> io::Result<()> {
        match fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Err(rustix::io::Errno::EXIST) => Ok(()),
            made => Ok(made?),
        }
    }

    /// Returns the metadata of an entry, or `None` if it does not exist.
    pub fn stat(&self, name: &OsStr) -> io::Result<Option<FileInfo>> {
        match fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(file_info(&stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file, unless it is a symbolic link.
    pub fn open(&self, name: &OsStr, access: Access) -> io::Result<File> {
        // Opening a pipe must not block.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (flags, mode) = match access {
            Access::Read => (flags | OFlags::RDONLY, 0),
            Access::Write => (flags | OFlags::RDWR, 0),
            Access::Create {
                executable,
                withheld,
            } => {
                let mode = if executable { 0o777 } else { 0o666 };
                let flags = flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                (flags, mode & !withheld)
            }
            Access::CreatePrivate => (flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, 0o600),
        };
        crate::fs::retry_while_leased(|| {
            // The type of modes differs between systems.
            let file = fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode as _))?;
            Ok(File::from(file))
        })
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Creates a symbolic link.
    pub fn create_symlink(&self, target: &[u8], name: &OsStr) -> io::Result<()> {
        Ok(fs::symlinkat(OsStr::from_bytes(target), &self.0, name)?)
    }

    /// Renames an entry, and replaces an existing one.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Renames `from` to an unused name. Fails with `AlreadyExists` if `to` exists.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        use rustix::io::Errno;
        #[cfg(target_os = "linux")]
        {
            let flags = fs::RenameFlags::NOREPLACE;
            match fs::renameat_with(&self.0, from, &self.0, to, flags) {
                Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => {}
                renamed => return Ok(renamed?),
            }
        }
        match fs::linkat(&self.0, from, &self.0, to, AtFlags::empty()) {
            Ok(()) => self.unlink(from),
            // A file system without hard links: check, then rename.
            Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::MLINK) => {
                match self.stat(to)? {
                    None => self.rename(from, to),
                    Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a hard link.
    pub fn hard_link(&self, name: &OsStr, second: &OsStr) -> io::Result<()> {
        Ok(fs::linkat(
            &self.0,
            name,
            &self.0,
            second,
            AtFlags::empty(),
        )?)
    }

    /// Swaps two entries atomically. Returns false if that is not supported.
    pub fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        {
            use rustix::io::Errno;
            let flags = fs::RenameFlags::EXCHANGE;
            match fs::renameat_with(&self.0, one, &self.0, other, flags) {
                Ok(()) => Ok(true),
                Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (one, other);
            Ok(false)
        }
    }

    /// Removes an entry that is not a directory.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Returns the names of all entries, in no order.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }
}

/// Returns the metadata of what is at `path`. Follows symbolic links.
pub fn stat(path: &Path) -> io::Result<FileInfo> {
    Ok(file_info(&fs::stat(path)?))
}

/// Returns the metadata of the entry at `path`.
pub fn lstat(path: &Path) -> io::Result<FileInfo> {
    Ok(file_info(&fs::lstat(path)?))
}

/// Returns the metadata of an open file.
pub fn stat_file(file: &File) -> io::Result<FileInfo> {
    Ok(file_info(&fs::fstat(file)?))
}

fn file_type(found: fs::FileType) -> FileType {
    match found {
        fs::FileType::RegularFile => FileType::File,
        fs::FileType::Symlink => FileType::Symlink,
        fs::FileType::Directory => FileType::Directory,
        fs::FileType::Fifo => FileType::Special(SpecialFile::Pipe),
        fs::FileType::Socket => FileType::Special(SpecialFile::Socket),
        _ => FileType::Special(SpecialFile::Device),
    }
}

// The field types differ between systems.
#[allow(clippy::unnecessary_cast, trivial_numeric_casts)]
fn file_info(stat: &Stat) -> FileInfo {
    // A file system may return any timestamp.
    let time = |seconds: i64, nanos: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
    FileInfo {
        kind: file_type(fs::FileType::from_raw_mode(stat.st_mode as _)),
        stamp: Stamp {
            mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            size: stat.st_size as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
        },
        device: stat.st_dev as u64,
        links: stat.st_nlink as u64,
    }
}
