//! Access to folders of the work tree through open handles, for scans.
//!
//! Entries are addressed by name within an open folder, so a folder that is replaced by a link
//! cannot redirect an access. Nothing here follows links or blocks on pipes.

use std::{fs, io, path::Path};

use super::snapshot::{SpecialFile, Stamp};

/// Type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Link,
    Folder,
    #[cfg_attr(
        not(unix),
        expect(
            dead_code,
            reason = "only a reparse tag tells these from files there, which the standard \
                      library does not show; opening one fails, and that is reported"
        )
    )]
    Special(SpecialFile),
}

/// Names of entries, and their types if known.
pub(crate) type Names = Vec<(Box<[u8]>, Option<EntryKind>)>;

#[cfg(unix)]
pub(crate) use unix::ScanDir;

#[cfg(unix)]
mod unix {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use rustix::{
        fd::OwnedFd,
        fs::{AtFlags, FileType, Mode, OFlags, Stat},
    };

    use super::{EntryKind, Names, Path, SpecialFile, Stamp, fs, io};

    /// An open folder.
    #[derive(Debug)]
    pub(crate) struct ScanDir(OwnedFd);

    const FOLDER: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    impl ScanDir {
        /// Opens a folder by its path, which must not be a link.
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(rustix::fs::open(path, FOLDER, Mode::empty())?))
        }

        /// Opens the subfolder `name`.
        pub(crate) fn enter(&self, name: &[u8]) -> io::Result<Self> {
            Ok(Self(rustix::fs::openat(
                &self.0,
                name,
                FOLDER,
                Mode::empty(),
            )?))
        }

        /// Returns the stamp of the folder.
        pub(crate) fn stamp(&self) -> io::Result<Stamp> {
            Ok(stamp(&rustix::fs::fstat(&self.0)?))
        }

        /// Lists the entries, unsorted, with their types if known.
        pub(crate) fn names(&self) -> io::Result<Names> {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&self.0)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if !matches!(name, b"." | b"..") {
                    names.push((name.into(), kind(entry.file_type())));
                }
            }
            Ok(names)
        }

        /// Returns type and stamp of the entry `name`.
        pub(crate) fn stat(&self, name: &[u8]) -> io::Result<(EntryKind, Stamp)> {
            let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
            kind_and_stamp(&stat)
        }

        /// Returns the target of the link `name`.
        pub(crate) fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
            let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
            Ok(target.into_bytes())
        }

        /// Opens the file `name` for reading, and returns the type of what was opened.
        pub(crate) fn open_file(&self, name: &[u8]) -> io::Result<(fs::File, EntryKind, Stamp)> {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = crate::fs::retry_while_leased(|| {
                Ok(rustix::fs::openat(&self.0, name, flags, Mode::empty())?)
            })?;
            let (kind, stamp) = kind_and_stamp(&rustix::fs::fstat(&file)?)?;
            Ok((file.into(), kind, stamp))
        }

        /// Returns the stamp of an open file.
        pub(crate) fn stamp_of(file: &fs::File) -> io::Result<Stamp> {
            Ok(stamp(&rustix::fs::fstat(file)?))
        }
    }

    fn kind_and_stamp(stat: &Stat) -> io::Result<(EntryKind, Stamp)> {
        let kind = kind(FileType::from_raw_mode(stat.st_mode)).ok_or(io::ErrorKind::Unsupported)?;
        Ok((kind, stamp(stat)))
    }

    fn kind(file_type: FileType) -> Option<EntryKind> {
        Some(match file_type {
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => EntryKind::Link,
            FileType::Directory => EntryKind::Folder,
            FileType::Fifo => EntryKind::Special(SpecialFile::Pipe),
            FileType::Socket => EntryKind::Special(SpecialFile::Socket),
            FileType::CharacterDevice | FileType::BlockDevice => {
                EntryKind::Special(SpecialFile::Device)
            }
            FileType::Unknown => return None,
        })
    }

    /// The widths of these fields differ between systems.
    fn stamp(stat: &Stat) -> Stamp {
        fn number<T: TryInto<U>, U: Default>(value: T) -> U {
            value.try_into().unwrap_or_default()
        }
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000) + nanos;
        Stamp {
            mtime: nanos(number(stat.st_mtime), number(stat.st_mtime_nsec)),
            ctime: nanos(number(stat.st_ctime), number(stat.st_ctime_nsec)),
            size: number(stat.st_size),
            inode: number(stat.st_ino),
            mode: number(stat.st_mode),
        }
    }

    /// Converts a name to the system's form.
    pub(crate) fn os_name(name: &[u8]) -> &OsStr {
        OsStr::from_bytes(name)
    }
}

#[cfg(unix)]
pub(crate) use unix::os_name;

#[cfg(not(unix))]
pub(crate) use portable::{ScanDir, os_name};

/// Addresses entries by path, and checks for links first: the best the standard library offers.
#[cfg(not(unix))]
mod portable {
    use std::{ffi::OsStr, path::PathBuf, time::SystemTime};

    use super::{EntryKind, Names, Path, Stamp, fs, io};

    /// A folder, by its path.
    #[derive(Debug)]
    pub(crate) struct ScanDir(PathBuf);

    impl ScanDir {
        /// Opens a folder by its path, which must not be a link.
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            if !fs::symlink_metadata(path)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok(Self(path.to_path_buf()))
        }

        /// Opens the subfolder `name`.
        pub(crate) fn enter(&self, name: &[u8]) -> io::Result<Self> {
            Self::open(&self.0.join(os_name(name)))
        }

        /// Returns the stamp of the folder.
        pub(crate) fn stamp(&self) -> io::Result<Stamp> {
            Ok(stamp(&fs::symlink_metadata(&self.0)?))
        }

        /// Lists the entries, unsorted, with their types if known.
        pub(crate) fn names(&self) -> io::Result<Names> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.0)? {
                let entry = entry?;
                let kind = entry.file_type().ok().map(kind);
                names.push((entry.file_name().as_encoded_bytes().into(), kind));
            }
            Ok(names)
        }

        /// Returns type and stamp of the entry `name`.
        pub(crate) fn stat(&self, name: &[u8]) -> io::Result<(EntryKind, Stamp)> {
            let metadata = fs::symlink_metadata(self.0.join(os_name(name)))?;
            Ok((kind(metadata.file_type()), stamp(&metadata)))
        }

        /// Returns the target of the link `name`.
        pub(crate) fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
            let target = fs::read_link(self.0.join(os_name(name)))?;
            Ok(target.as_os_str().as_encoded_bytes().to_vec())
        }

        /// Opens the file `name` for reading, and returns the type of what was opened.
        pub(crate) fn open_file(&self, name: &[u8]) -> io::Result<(fs::File, EntryKind, Stamp)> {
            let path = self.0.join(os_name(name));
            let found = kind(fs::symlink_metadata(&path)?.file_type());
            if found != EntryKind::File {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let file = fs::File::open(path)?;
            let stamp = Self::stamp_of(&file)?;
            Ok((file, found, stamp))
        }

        /// Returns the stamp of an open file.
        pub(crate) fn stamp_of(file: &fs::File) -> io::Result<Stamp> {
            Ok(stamp(&file.metadata()?))
        }
    }

    fn kind(file_type: fs::FileType) -> EntryKind {
        if file_type.is_symlink() {
            EntryKind::Link
        } else if file_type.is_dir() {
            EntryKind::Folder
        } else {
            EntryKind::File
        }
    }

    fn stamp(metadata: &fs::Metadata) -> Stamp {
        let nanos = |time: io::Result<SystemTime>| {
            time.ok()
                .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok())
                .and_then(|since| i64::try_from(since.as_nanos()).ok())
                .unwrap_or(0)
        };
        Stamp {
            mtime: nanos(metadata.modified()),
            ctime: nanos(metadata.created()),
            size: metadata.len(),
            inode: 0,
            mode: u32::from(metadata.is_dir()),
        }
    }

    /// Converts a name to the system's form. A name that is not Unicode, which listings never
    /// return, becomes one that no folder contains.
    pub(crate) fn os_name(name: &[u8]) -> &OsStr {
        OsStr::new(std::str::from_utf8(name).unwrap_or("\u{fffd}"))
    }
}
