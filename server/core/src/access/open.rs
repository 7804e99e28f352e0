//! Opening files and folders so that what was judged is what is read.
//!
//! [`OpenedFile`] and [`OpenedFolder`] are made here only. A path is followed by
//! descriptors to a name in an open folder (`links`), judged by every name it has
//! on the way, and opened there without following: whatever is exchanged
//! meanwhile, what is read lay at a path that was judged.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sightline_protocol::error::ErrorKind;

use super::{AccessView, Verdict, symlinks::ResolvedPath};
use crate::{
    error::Error,
    fs::dir::{Access, Dir, Kind, is_absent},
    path::{AbsPath, Location},
};

/// Attempts when the file is replaced between judging and opening it.
const ATTEMPTS: usize = 64;

/// A file that may be read.
#[derive(Debug)]
pub struct OpenedFile {
    file: File,
    metadata: Metadata,
    real: PathBuf,
}

impl OpenedFile {
    /// Open for reading, at its start.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// As [`Self::file`], to be kept.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Of the open file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The file's path without links.
    pub fn real(&self) -> &Path {
        &self.real
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing, as far as may be seen.
    Missing,
    /// A folder.
    Folder,
    /// A file, or what else is no folder.
    File,
}

/// A folder that may be seen, open.
#[derive(Debug)]
pub(crate) struct OpenedFolder {
    dir: Arc<Dir>,
    real: PathBuf,
}

impl OpenedFolder {
    /// The folder's path without links.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// The folder at `path` below it, where no link is on the way. The caller has
    /// judged the names of that path.
    pub(crate) fn below(&self, path: &Path) -> io::Result<Dir> {
        self.dir.pass_below(path)
    }
}

impl AccessView {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// `accessDenied` (also for a file outside every root, unless
    /// `outside_allowed`), `notFound`, `unsupported` for what is no regular
    /// file, `conflict` when the file keeps being replaced, `storage` when it
    /// cannot be opened.
    pub fn open_for_read(
        &self,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<OpenedFile, Error> {
        for _ in 0..ATTEMPTS {
            let place = self.admitted(location, outside_allowed)?;
            let opened = match (place.kind, &place.dir, &place.name) {
                (Some(Kind::File), Some(dir), Some(name)) => open_in(dir, name, &place),
                (Some(Kind::Folder), ..) => return Err(self.no_file(location, "a folder")),
                (Some(_), ..) => return Err(self.no_file(location, "not a regular file")),
                (None, ..) => Err(io::ErrorKind::NotFound.into()),
            };
            match opened {
                Ok(Some(opened)) => return Ok(opened),
                // It was replaced this moment.
                Ok(None) => {}
                Err(error) => return Err(self.cannot_open(location, &error)),
            }
        }
        Err(self.replaced(location))
    }

    /// Opens a file wherever it lies, as [`Self::open_for_read`]: denied where any
    /// rule denies it.
    ///
    /// # Errors
    /// As [`Self::open_for_read`].
    pub(crate) fn open_anywhere(&self, path: &AbsPath) -> Result<OpenedFile, Error> {
        self.open_for_read(&self.roots().place(path.clone()), true)
    }

    /// Opens a folder; `None` for what is none.
    ///
    /// # Errors
    /// As [`Self::open_for_read`].
    pub(crate) fn open_folder(
        &self,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<Option<OpenedFolder>, Error> {
        for _ in 0..ATTEMPTS {
            let place = self.admitted(location, outside_allowed)?;
            let dir = match (place.kind, place.dir, &place.name) {
                (Some(Kind::Folder), Some(dir), None) => dir,
                (Some(Kind::Folder), Some(dir), Some(name)) => match dir.pass(name) {
                    Ok(dir) => Arc::new(dir),
                    // It was replaced this moment.
                    Err(error) if is_absent(&error) => continue,
                    Err(error) => return Err(self.cannot_open(location, &error)),
                },
                (Some(_), ..) => return Ok(None),
                (None, ..) => {
                    return Err(self.cannot_open(location, &io::ErrorKind::NotFound.into()));
                }
            };
            let real = place.real;
            return Ok(Some(OpenedFolder { dir, real }));
        }
        Err(self.replaced(location))
    }

    /// Judges a location, and says what is there unless it is denied.
    pub fn check_kind(&self, location: &Location) -> (Verdict, PathKind) {
        let (verdict, place) = self.look(location);
        let there = match place.and_then(|place| place.kind) {
            None => PathKind::Missing,
            Some(Kind::Folder) => PathKind::Folder,
            Some(_) => PathKind::File,
        };
        (verdict, there)
    }

    /// What lies at a location that may be seen.
    fn admitted(&self, location: &Location, outside_allowed: bool) -> Result<ResolvedPath, Error> {
        let (verdict, place) = self.look(location);
        self.admit(verdict, location, outside_allowed)?;
        place.ok_or_else(|| self.replaced(location))
    }

    fn no_file(&self, location: &Location, kind: &str) -> Error {
        let shown = self.roots().result_path(location).0;
        let message = format!("{shown} is {kind} and cannot be read as a file");
        Error::new(ErrorKind::Unsupported, message).with_path(shown)
    }

    fn replaced(&self, location: &Location) -> Error {
        let shown = self.roots().result_path(location).0;
        let message =
            format!("{shown} was replaced again and again while it was opened; try again");
        Error::new(ErrorKind::Conflict, message).with_path(shown)
    }

    fn cannot_open(&self, location: &Location, error: &io::Error) -> Error {
        cannot_open(&self.roots().result_path(location).0, error)
    }

    /// [`Self::check`] as a condition.
    ///
    /// # Errors
    /// `accessDenied`, with the rule when one decided; for a place outside every
    /// root too, unless `outside_allowed`.
    pub fn require(&self, location: &Location, outside_allowed: bool) -> Result<(), Error> {
        self.admit(self.check(location), location, outside_allowed)
    }

    pub(super) fn admit(
        &self,
        verdict: Verdict,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        let is_admitted = match verdict {
            Verdict::Allowed => true,
            Verdict::Outside => outside_allowed,
            Verdict::Denied(_) => false,
        };
        if is_admitted {
            return Ok(());
        }
        let path = self.roots().result_path(location).0;
        match verdict {
            Verdict::Allowed => Ok(()),
            Verdict::Outside => Err(Error::new(
                ErrorKind::AccessDenied,
                format!(
                    "{path} lies outside every workspace folder; open its folder, or set `access.outsideWorkspace` to \"allow\""
                ),
            ).with_path(path)),
            Verdict::Denied(denial) => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("{path} may not be seen: {}", denial.reason),
            )
            .with_path(path)
            .with_rule(denial.rule)),
        }
    }
}

fn cannot_open(path: &str, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::AccessDenied,
        io::ErrorKind::IsADirectory => ErrorKind::Unsupported,
        _ => ErrorKind::Storage,
    };
    // A socket or a device without a driver.
    #[cfg(unix)]
    let kind = if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
        ErrorKind::Unsupported
    } else {
        kind
    };
    Error::new(kind, format!("{path} cannot be opened: {error}")).with_path(path)
}

/// Opens a file in an open folder; `None` when it is another by now than was
/// judged.
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
    let is_same = metadata.is_file() && dir.still_leads_to(name, &place.real);
    Ok(is_same.then(|| OpenedFile {
        file,
        metadata,
        real: place.real.clone(),
    }))
}

/// Was a link found where none may be?
fn is_link(error: &io::Error) -> bool {
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

/// Opens a rule file without ever waiting for a writer (a pipe) or becoming the
/// owner of a terminal. What others read is opened by a view.
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
