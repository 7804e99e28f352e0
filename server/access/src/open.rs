//! Opens files and directories so that the opened object is the one that was checked.
//!
//! Only this module creates [`OpenedFile`] and [`OpenedFolder`]. `symlinks` resolves a path to a name in an open
//! directory, every name on the way is checked, and the name is opened there without following symlinks. A
//! concurrent exchange of files cannot make this open a path that was not checked.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{AccessView, Verdict, symlinks::ResolvedPath};
use crate::{
    error::Error,
    fs::dir::{Access, Dir, FileType, is_absent},
    path::{AbsPath, Location},
};

/// Number of attempts if the file is replaced between the check and opening it.
const ATTEMPTS: usize = 64;

/// An open file that may be read.
#[derive(Debug)]
pub struct OpenedFile {
    file: File,
    metadata: Metadata,
    real: PathBuf,
}

impl OpenedFile {
    /// Returns the file, open for reading at its start.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the owned file.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Returns the metadata of the open file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the path of the file without symlinks.
    pub fn real(&self) -> &Path {
        &self.real
    }
}

/// The kind of what exists at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing, or nothing that may be seen.
    Missing,
    /// A directory.
    Folder,
    /// A file, or anything else that is not a directory.
    File,
}

/// An open directory that may be listed.
#[derive(Debug)]
pub struct OpenedFolder {
    dir: Arc<Dir>,
    real: PathBuf,
}

impl OpenedFolder {
    /// Returns the path of the directory without symlinks.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Opens the directory at `path` below this one. Fails if a symlink is on the way. The caller has checked the
    /// names of `path`.
    ///
    /// # Errors
    /// That of the system call.
    pub fn below(&self, path: &Path) -> io::Result<Dir> {
        self.dir.traverse_below(path)
    }
}

impl AccessView {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// `accessDenied` (also for a file outside of all roots, unless `outside_allowed`), `notFound`, `unsupported` if
    /// it is not a regular file, `conflict` if it is replaced repeatedly, `storage` if it cannot be opened.
    pub fn open_for_read(
        &self,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<OpenedFile, Error> {
        for _ in 0..ATTEMPTS {
            let place = self.require_resolved(location, outside_allowed)?;
            let opened = match (place.kind, &place.dir, &place.name) {
                (Some(FileType::File), Some(dir), Some(name)) => open_in(dir, name, &place),
                (Some(FileType::Directory), ..) => {
                    return Err(self.not_a_file(location, "a directory"));
                }
                (Some(_), ..) => return Err(self.not_a_file(location, "not a regular file")),
                (None, ..) => Err(io::ErrorKind::NotFound.into()),
            };
            match opened {
                Ok(Some(opened)) => return Ok(opened),
                // It was replaced after the check.
                Ok(None) => {}
                Err(error) => return Err(self.cannot_open(location, error)),
            }
        }
        Err(self.replaced(location))
    }

    /// [`Self::open_for_read`] for an absolute path, inside or outside of the roots.
    ///
    /// # Errors
    /// As [`Self::open_for_read`].
    pub fn open_anywhere(&self, path: &AbsPath) -> Result<OpenedFile, Error> {
        self.open_for_read(&self.roots().place(path.clone()), true)
    }

    /// Opens a directory. Returns `None` for anything else.
    ///
    /// # Errors
    /// As [`Self::open_for_read`].
    pub fn open_folder(
        &self,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<Option<OpenedFolder>, Error> {
        for _ in 0..ATTEMPTS {
            let place = self.require_resolved(location, outside_allowed)?;
            let dir = match (place.kind, place.dir, &place.name) {
                (Some(FileType::Directory), Some(dir), None) => dir,
                (Some(FileType::Directory), Some(dir), Some(name)) => match dir.traverse(name) {
                    Ok(dir) => Arc::new(dir),
                    // It was replaced after the check.
                    Err(error) if is_absent(&error) => continue,
                    Err(error) => return Err(self.cannot_open(location, error)),
                },
                (Some(_), ..) => return Ok(None),
                (None, ..) => {
                    return Err(self.cannot_open(location, io::ErrorKind::NotFound.into()));
                }
            };
            let real = place.real;
            return Ok(Some(OpenedFolder { dir, real }));
        }
        Err(self.replaced(location))
    }

    /// Checks a location and returns the kind of what exists there, unless it is denied.
    pub fn check_kind(&self, location: &Location) -> (Verdict, PathKind) {
        let (verdict, place) = self.check_resolved(location);
        let there = match place.and_then(|place| place.kind) {
            None => PathKind::Missing,
            Some(FileType::Directory) => PathKind::Folder,
            Some(_) => PathKind::File,
        };
        (verdict, there)
    }

    /// Resolves a location that may be read.
    fn require_resolved(
        &self,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<ResolvedPath, Error> {
        let (verdict, place) = self.check_resolved(location);
        self.require_verdict(verdict, location, outside_allowed)?;
        place.ok_or_else(|| self.replaced(location))
    }

    fn not_a_file(&self, location: &Location, kind: &str) -> Error {
        Error::Unsupported {
            action: "read",
            path: self.roots().result_path(location).0,
            what: kind.to_owned(),
        }
    }

    fn replaced(&self, location: &Location) -> Error {
        Error::Replaced(self.roots().result_path(location).0)
    }

    fn cannot_open(&self, location: &Location, source: io::Error) -> Error {
        let path = self.roots().result_path(location).0;
        Error::Open { path, source }
    }

    /// Requires that a location may be read.
    ///
    /// # Errors
    /// `accessDenied`, with the deciding rule. Also for a location outside of all roots, unless `outside_allowed`.
    pub fn require(&self, location: &Location, outside_allowed: bool) -> Result<(), Error> {
        self.require_verdict(self.check(location), location, outside_allowed)
    }

    pub(super) fn require_verdict(
        &self,
        verdict: Verdict,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        let is_allowed = match verdict {
            Verdict::Allowed => true,
            Verdict::Outside => outside_allowed,
            Verdict::Denied(_) => false,
        };
        if is_allowed {
            return Ok(());
        }
        let path = self.roots().result_path(location).0;
        match verdict {
            Verdict::Allowed => Ok(()),
            Verdict::Outside => Err(Error::Outside(path)),
            Verdict::Denied(denial) => Err(Error::AccessDenied {
                path,
                reason: denial.reason,
                rule: denial.rule,
            }),
        }
    }
}

/// Opens a file in an open directory. Returns `None` if it is no longer the file that was checked.
fn open_in(
    dir: &Dir,
    name: &std::ffi::OsStr,
    place: &ResolvedPath,
) -> io::Result<Option<OpenedFile>> {
    let file = match dir.open(name, Access::Read) {
        Ok(file) => file,
        Err(error) if is_absent(&error) || is_link(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    let is_same = metadata.is_file() && dir.is_same_file(name, &place.real);
    Ok(is_same.then(|| OpenedFile {
        file,
        metadata,
        real: place.real.clone(),
    }))
}

/// Returns whether opening failed because of a symlink.
pub(super) fn is_link(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

/// Opens a rule file. Does not wait for the writer of a pipe and does not acquire a terminal.
pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    crate::fs::retry_while_leased(|| options.open(path))
}
