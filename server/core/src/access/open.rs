//! Opening a file for reading so that what was judged is what is read.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use sightline_protocol::error::ErrorKind;

use super::{AccessView, Verdict};
use crate::{error::Error, path::Location};

/// Attempts when the file is replaced between opening and judging it.
const ATTEMPTS: usize = 4;

/// A file that may be read.
#[derive(Debug)]
pub struct OpenedFile {
    /// Open for reading, at its start.
    pub file: File,
    /// Of the open file.
    pub metadata: Metadata,
    /// The file's path without links.
    pub real: PathBuf,
}

impl AccessView {
    /// Opens a regular file for reading. The open file itself is judged, by the
    /// name it really has: replacing the path by a link between the check and
    /// the opening gains nothing.
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
        self.require(location, outside_allowed)?;
        let path = self.roots().absolute(location);
        let shown = self.roots().result_path(location).0;
        for _ in 0..ATTEMPTS {
            let (file, metadata) = match open_without_waiting(path.as_path()) {
                Ok(opened) => opened,
                Err(error) => return Err(cannot_open(&shown, &error)),
            };
            if !metadata.is_file() {
                let kind = if metadata.is_dir() {
                    "a folder"
                } else {
                    "not a regular file"
                };
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{shown} is {kind} and cannot be read as a file"),
                )
                .with_path(shown));
            }
            let Ok(real) = fs::canonicalize(path.as_path()) else {
                continue;
            };
            let Ok(named) = fs::symlink_metadata(&real) else {
                continue;
            };
            if !is_same_file(&metadata, &named) {
                continue;
            }
            self.admit(self.check_real(&real), &shown, outside_allowed)?;
            return Ok(OpenedFile {
                file,
                metadata,
                real,
            });
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("{shown} was replaced again and again while it was opened; try again"),
        )
        .with_path(shown))
    }

    /// [`Self::check`] as a condition.
    ///
    /// # Errors
    /// `accessDenied`, with the rule when one decided; for a place outside every
    /// root too, unless `outside_allowed`.
    pub fn require(&self, location: &Location, outside_allowed: bool) -> Result<(), Error> {
        let shown = self.roots().result_path(location).0;
        self.admit(self.check(location), &shown, outside_allowed)
    }

    fn admit(&self, verdict: Verdict, path: &str, outside_allowed: bool) -> Result<(), Error> {
        match verdict {
            Verdict::Allowed => Ok(()),
            Verdict::Outside if outside_allowed => Ok(()),
            Verdict::Outside => Err(Error::new(
                ErrorKind::AccessDenied,
                format!(
                    "{path} lies outside every workspace folder; open its folder, or set `access.outsideWorkspace` to \"allow\""
                ),
            )
            .with_path(path)),
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

/// Opens for reading without ever waiting for a writer (a pipe) or becoming the
/// owner of a terminal.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

#[cfg(unix)]
fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Without file numbers, what can be told: type, length and times.
#[cfg(not(unix))]
fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    a.file_type() == b.file_type()
        && a.len() == b.len()
        && a.modified().ok() == b.modified().ok()
        && a.created().ok() == b.created().ok()
}
