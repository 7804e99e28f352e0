//! Files below a root directory, reached directory by directory without following symbolic links.
//! The file that was checked is the file that is read or changed, even if a concurrent process
//! moves directories.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use super::Stamp;
use crate::path::RelPath;

/// Metadata of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) stamp: Stamp,
    /// Number of hard links.
    pub(crate) links: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
    Folder,
    /// A pipe, socket or device.
    Other,
}

/// Opens directories below a root. Keeps the last one open.
#[derive(Debug)]
pub(crate) struct Walker {
    root: Arc<Dir>,
    last: Option<(RelPath, Dir)>,
}

impl Walker {
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Arc::new(Dir::root(root)?),
            last: None,
        })
    }

    /// Returns a walker that starts at the same directory, even if that was moved.
    pub(crate) fn again(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            last: None,
        }
    }

    /// Returns whether the root directory is still the one at `path`.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.root.is_at(path)
    }

    /// Flushes the file system of the root directory to disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.root.flush()
    }

    /// Opens the directory at `path`.
    pub(crate) fn folder(&mut self, path: &RelPath) -> io::Result<&Dir> {
        self.go(path, false)
    }

    /// Opens the directory at `path`, creating missing ones.
    pub(crate) fn make_folder(&mut self, path: &RelPath) -> io::Result<&Dir> {
        self.go(path, true)
    }

    fn go(&mut self, path: &RelPath, make: bool) -> io::Result<&Dir> {
        if path.is_root() {
            return Ok(&self.root);
        }
        if self.last.as_ref().is_none_or(|(at, _)| at != path) {
            let dir = match self.root.reach(path) {
                Ok(Some(dir)) => Some(dir),
                Err(error) if !make || error.kind() != io::ErrorKind::NotFound => {
                    return Err(error);
                }
                _ => self.go_by_steps(path, make)?,
            };
            self.last = dir.map(|dir| (path.clone(), dir));
        }
        Ok(self.last.as_ref().map_or(&*self.root, |(_, dir)| dir))
    }

    fn go_by_steps(&self, path: &RelPath, make: bool) -> io::Result<Option<Dir>> {
        let mut dir: Option<Dir> = None;
        for name in path.components() {
            let from = dir.as_ref().unwrap_or(&*self.root);
            let next = match from.enter(name) {
                Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                    from.make(name)?;
                    from.enter(name)?
                }
                next => next?,
            };
            dir = Some(next);
        }
        Ok(dir)
    }

    /// Looks up `path`. Returns `None` if it does not exist, or if an ancestor is missing or not a
    /// directory.
    pub(crate) fn look(&mut self, path: &RelPath) -> io::Result<Option<Found>> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(None);
        };
        let looked = self.folder(&parent).and_then(|dir| dir.look(name));
        match looked {
            Err(error) if is_absent(&error) => Ok(None),
            looked => looked,
        }
    }

    /// Reads the file or link at `path`. Also returns its metadata from just before the read.
    pub(crate) fn read(&mut self, path: &RelPath) -> io::Result<(Found, Vec<u8>)> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        self.folder(&parent)?.read(name)
    }
}

/// Returns whether the error means that the file does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl Dir {
    /// Opens the directory at an absolute path. Fails if a component is a symbolic link.
    pub(crate) fn without_links(path: &Path) -> io::Result<Self> {
        let top = Self::top(path)?;
        let below = path.ancestors().last().map(|top| path.strip_prefix(top));
        top.pass_below(below.and_then(Result::ok).unwrap_or(Path::new("")))
    }

    /// Opens the directory at `path` below this one. Fails if a component is a symbolic link.
    pub(crate) fn pass_below(&self, path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return self.pass(OsStr::new("."));
        }
        let passed = self.pass_to(path)?;
        passed.ok_or_else(|| io::ErrorKind::NotADirectory.into())
    }

    fn pass_by_steps(&self, path: &Path) -> io::Result<Option<Self>> {
        let mut dir: Option<Self> = None;
        for name in path {
            let from = dir.as_ref().unwrap_or(self);
            match from.pass(name) {
                Ok(next) => dir = Some(next),
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return match from.look(name)?.map(|found| found.kind) {
                        // It may have been replaced since the failed call.
                        Some(Kind::Link | Kind::Folder) => Ok(None),
                        _ => Err(error),
                    };
                }
                Err(error) => return Err(error),
            }
        }
        Ok(dir)
    }

    /// Reads a file or link. Also returns its metadata from just before the read.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<(Found, Vec<u8>)> {
        let found = self.look(name)?.ok_or(io::ErrorKind::NotFound)?;
        match found.kind {
            Kind::Link => Ok((found, self.read_link(name)?)),
            Kind::File => {
                let mut file = self.open(name, Access::Read)?;
                let opened = found_of(&file)?;
                if opened.kind != Kind::File {
                    return Err(io::Error::other("no longer a regular file"));
                }
                let mut bytes = Vec::with_capacity(usize::try_from(opened.stamp.size).unwrap_or(0));
                file.read_to_end(&mut bytes)?;
                Ok((opened, bytes))
            }
            Kind::Folder => Err(io::ErrorKind::IsADirectory.into()),
            Kind::Other => Err(io::Error::other("not a file, link or directory")),
        }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// For reading and writing an existing file.
    Write,
    /// For reading and writing; fails if it exists.
    Create {
        executable: bool,
        /// Permission bits to clear.
        withheld: u32,
    },
    /// Like `Create`, with permissions for the owner only.
    CreatePrivate,
}

#[cfg(unix)]
pub(crate) use unix::{Dir, found_of};

#[cfg(unix)]
mod unix {
    use std::os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    };

    use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};

    use super::{Access, File, Found, Kind, OsStr, OsString, Path, RelPath, Stamp, io};

    /// An open directory.
    #[derive(Debug)]
    pub(crate) struct Dir(OwnedFd);

    const FOLDER: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);

    /// Flags for a directory that is only traversed: needs search permission, not read permission.
    #[cfg(target_os = "linux")]
    const PASSED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    const PASSED: OFlags = FOLDER;

    impl Dir {
        /// Opens the file system root of `path`.
        pub(crate) fn top(path: &Path) -> io::Result<Self> {
            let top = path.ancestors().last().unwrap_or(path);
            Ok(Self(fs::open(top, PASSED, Mode::empty())?))
        }

        /// Opens the subdirectory `name` for traversal; read permission is not needed.
        pub(crate) fn pass(&self, name: &OsStr) -> io::Result<Self> {
            let flags = PASSED | OFlags::NOFOLLOW;
            match fs::openat(&self.0, name, flags, Mode::empty()) {
                Err(rustix::io::Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
                passed => Ok(Self(passed?)),
            }
        }

        /// Opens a directory several levels below for traversal. Returns `None` if a component is a
        /// symbolic link.
        pub(crate) fn pass_to(&self, path: &Path) -> io::Result<Option<Self>> {
            #[cfg(target_os = "linux")]
            {
                use rustix::{fs::ResolveFlags, io::Errno};
                let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                match fs::openat2(&self.0, path, PASSED, Mode::empty(), beneath) {
                    Ok(dir) => return Ok(Some(Self(dir))),
                    Err(Errno::LOOP) => return Ok(None),
                    Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => {
                        return Err(error.into());
                    }
                    // An older kernel, a sandbox, or a path too long for one call.
                    Err(_) => {}
                }
            }
            self.pass_by_steps(path)
        }

        /// Reopens the directory for listing.
        pub(crate) fn to_list(&self) -> io::Result<OwnedFd> {
            Ok(fs::openat(&self.0, c".", FOLDER, Mode::empty())?)
        }

        /// Returns device and inode.
        #[allow(clippy::unnecessary_cast, trivial_numeric_casts)]
        pub(crate) fn identity(&self) -> Option<(u64, u64)> {
            let stat = fs::fstat(&self.0).ok()?;
            Some((stat.st_dev as u64, stat.st_ino as u64))
        }

        /// Returns whether the entry opened as `name` is still the file at `path`. Always true with
        /// file descriptors.
        pub(crate) fn still_leads_to(&self, _name: &OsStr, _path: &Path) -> bool {
            true
        }

        /// Calls `each` with the name and, if known, the kind of every entry, in no order, until it
        /// returns false.
        pub(crate) fn entries(
            &self,
            mut each: impl FnMut(&OsStr, Option<Kind>) -> bool,
        ) -> io::Result<()> {
            for entry in fs::Dir::new(self.to_list()?)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                let kind = match entry.file_type() {
                    FileType::Unknown => None,
                    known => Some(kind(known)),
                };
                if !each(OsStr::from_bytes(name), kind) {
                    break;
                }
            }
            Ok(())
        }

        pub(crate) fn root(path: &Path) -> io::Result<Self> {
            Ok(Self(fs::open(
                path,
                FOLDER | OFlags::NOFOLLOW,
                Mode::empty(),
            )?))
        }

        /// Does not follow a symbolic link at `path`.
        pub(crate) fn is_at(&self, path: &Path) -> bool {
            let id = |stat: Stat| (stat.st_dev, stat.st_ino);
            match (fs::fstat(&self.0), fs::lstat(path)) {
                (Ok(ours), Ok(there)) => id(ours) == id(there),
                _ => false,
            }
        }

        pub(crate) fn flush(&self) -> io::Result<()> {
            #[cfg(target_os = "linux")]
            fs::syncfs(&self.0)?;
            Ok(())
        }

        pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
            let flags = FOLDER | OFlags::NOFOLLOW;
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
        pub(crate) fn reach(&self, path: &RelPath) -> io::Result<Option<Self>> {
            use rustix::{fs::ResolveFlags, io::Errno};
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let path = path.as_path();
            match fs::openat2(&self.0, path, FOLDER, Mode::empty(), beneath) {
                Ok(dir) => Ok(Some(Self(dir))),
                Err(Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
                Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => Err(error.into()),
                // An older kernel, a sandbox, or a path too long for one call.
                Err(_) => Ok(None),
            }
        }

        #[cfg(not(target_os = "linux"))]
        pub(crate) fn reach(&self, _path: &RelPath) -> io::Result<Option<Self>> {
            Ok(None)
        }

        /// Creates a subdirectory. Succeeds if it exists.
        pub(crate) fn make(&self, name: &OsStr) -> io::Result<()> {
            match fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
                Err(rustix::io::Errno::EXIST) => Ok(()),
                made => Ok(made?),
            }
        }

        pub(crate) fn look(&self, name: &OsStr) -> io::Result<Option<Found>> {
            match fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(Some(found(&stat))),
                Err(rustix::io::Errno::NOENT) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }

        pub(crate) fn open(&self, name: &OsStr, access: Access) -> io::Result<File> {
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
                Access::CreatePrivate => {
                    (flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, 0o600)
                }
            };
            crate::fs::retry_while_leased(|| {
                let file = fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?;
                Ok(File::from(file))
            })
        }

        pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
            Ok(fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
        }

        pub(crate) fn make_link(&self, target: &[u8], name: &OsStr) -> io::Result<()> {
            Ok(fs::symlinkat(OsStr::from_bytes(target), &self.0, name)?)
        }

        pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            Ok(fs::renameat(&self.0, from, &self.0, to)?)
        }

        /// Renames `from` to an unused name. Fails with `AlreadyExists` if `to` exists.
        pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
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
                Ok(()) => self.remove(from),
                // A file system without hard links: check, then rename.
                Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::MLINK) => {
                    match self.look(to)? {
                        None => self.rename(from, to),
                        Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
                    }
                }
                Err(error) => Err(error.into()),
            }
        }

        /// Creates a hard link.
        pub(crate) fn link(&self, name: &OsStr, second: &OsStr) -> io::Result<()> {
            Ok(fs::linkat(
                &self.0,
                name,
                &self.0,
                second,
                AtFlags::empty(),
            )?)
        }

        /// Swaps two entries atomically. Returns false if that is not supported.
        pub(crate) fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<bool> {
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
        pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
            Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
        }

        /// Removes an empty directory.
        pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
        }

        pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
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

    pub(crate) fn found_of(file: &File) -> io::Result<Found> {
        Ok(found(&fs::fstat(file)?))
    }

    fn kind(found: FileType) -> Kind {
        match found {
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Link,
            FileType::Directory => Kind::Folder,
            _ => Kind::Other,
        }
    }

    // The field types differ between systems.
    #[allow(clippy::unnecessary_cast, trivial_numeric_casts)]
    fn found(stat: &Stat) -> Found {
        // A file system may return any timestamp.
        let time =
            |seconds: i64, nanos: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
        Found {
            kind: kind(FileType::from_raw_mode(stat.st_mode as _)),
            stamp: Stamp {
                mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
                size: stat.st_size as u64,
                inode: stat.st_ino as u64,
                mode: stat.st_mode as u32,
            },
            links: stat.st_nlink as u64,
        }
    }
}

#[cfg(not(unix))]
pub(crate) use elsewhere::{Dir, found_of};

/// For systems without directory handles: each directory is checked just before it is used.
#[cfg(not(unix))]
mod elsewhere {
    use std::{fs, path::PathBuf, time::UNIX_EPOCH};

    use super::{Access, File, Found, Kind, OsStr, OsString, Path, RelPath, Stamp, io};

    #[derive(Debug)]
    pub(crate) struct Dir(PathBuf);

    impl Dir {
        /// Returns the file system root of `path`.
        pub(crate) fn top(path: &Path) -> io::Result<Self> {
            Ok(Self(path.ancestors().last().unwrap_or(path).to_path_buf()))
        }

        /// Opens the subdirectory `name` for traversal.
        pub(crate) fn pass(&self, name: &OsStr) -> io::Result<Self> {
            self.enter(name)
        }

        /// Opens a directory several levels below for traversal. Returns `None` if a component is a
        /// symbolic link.
        pub(crate) fn pass_to(&self, path: &Path) -> io::Result<Option<Self>> {
            self.pass_by_steps(path)
        }

        /// Directories have no portable identity here.
        pub(crate) fn identity(&self) -> Option<(u64, u64)> {
            None
        }

        /// Returns whether the entry opened as `name` is still the file at `path`.
        pub(crate) fn still_leads_to(&self, name: &OsStr, path: &Path) -> bool {
            let real = |path: &Path| fs::canonicalize(path).ok();
            real(&self.0.join(name)).is_some_and(|now| real(path).is_some_and(|then| now == then))
        }

        /// Calls `each` with the name and, if known, the kind of every entry, in no order, until it
        /// returns false.
        pub(crate) fn entries(
            &self,
            mut each: impl FnMut(&OsStr, Option<Kind>) -> bool,
        ) -> io::Result<()> {
            for entry in fs::read_dir(&self.0)? {
                let entry = entry?;
                if !each(&entry.file_name(), entry.file_type().ok().map(kind)) {
                    break;
                }
            }
            Ok(())
        }

        pub(crate) fn root(path: &Path) -> io::Result<Self> {
            if fs::symlink_metadata(path)?.is_dir() {
                Ok(Self(path.to_path_buf()))
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }

        pub(crate) fn is_at(&self, path: &Path) -> bool {
            self.0 == path && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
        }

        pub(crate) fn flush(&self) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
            let path = self.0.join(name);
            if fs::symlink_metadata(&path)?.is_dir() {
                Ok(Self(path))
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }

        pub(crate) fn reach(&self, _path: &RelPath) -> io::Result<Option<Self>> {
            Ok(None)
        }

        /// Creates a subdirectory. Succeeds if it exists.
        pub(crate) fn make(&self, name: &OsStr) -> io::Result<()> {
            match fs::create_dir(self.0.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            }
        }

        pub(crate) fn look(&self, name: &OsStr) -> io::Result<Option<Found>> {
            match fs::symlink_metadata(self.0.join(name)) {
                Ok(metadata) => Ok(Some(found(&metadata))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }

        pub(crate) fn open(&self, name: &OsStr, access: Access) -> io::Result<File> {
            let path = self.0.join(name);
            let mut options = fs::OpenOptions::new();
            options.read(true).write(access != Access::Read);
            options.create_new(matches!(
                access,
                Access::Create { .. } | Access::CreatePrivate
            ));
            if fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
                return Err(io::Error::other("not a regular file"));
            }
            options.open(path)
        }

        pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
            let target = fs::read_link(self.0.join(name))?;
            Ok(target.into_os_string().into_encoded_bytes())
        }

        pub(crate) fn make_link(&self, _: &[u8], _: &OsStr) -> io::Result<()> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "symbolic links are not supported on this system",
            ))
        }

        pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        /// Renames `from` to an unused name.
        pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            match self.look(to)? {
                None => self.rename(from, to),
                Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            }
        }

        /// Creates a hard link.
        pub(crate) fn link(&self, name: &OsStr, second: &OsStr) -> io::Result<()> {
            fs::hard_link(self.0.join(name), self.0.join(second))
        }

        /// Not supported.
        #[allow(clippy::unnecessary_wraps)]
        pub(crate) fn exchange(&self, _: &OsStr, _: &OsStr) -> io::Result<bool> {
            Ok(false)
        }

        /// Removes an entry that is not a directory.
        pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        /// Removes an empty directory.
        pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_dir(self.0.join(name))
        }

        pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
            fs::read_dir(&self.0)?
                .map(|entry| Ok(entry?.file_name()))
                .collect()
        }
    }

    pub(crate) fn found_of(file: &File) -> io::Result<Found> {
        Ok(found(&file.metadata()?))
    }

    fn kind(found: fs::FileType) -> Kind {
        match found {
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_file() => Kind::File,
            _ => Kind::Other,
        }
    }

    fn found(metadata: &fs::Metadata) -> Found {
        let since = metadata.modified().ok();
        let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mtime = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0));
        Found {
            kind: kind(metadata.file_type()),
            stamp: Stamp {
                mtime,
                ctime: 0,
                size: metadata.len(),
                inode: 0,
                mode: 0,
            },
            links: 1,
        }
    }
}
