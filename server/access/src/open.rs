//! Opens files and directories so that the opened object is the one that was checked.
//!
//! Only this module creates [`OpenedFile`] and [`OpenedFolder`]. `symlinks` resolves a path to a name in an open
//! directory, every name on the way is checked, and the name is opened there without following symlinks. A
//! concurrent exchange of files cannot make this open a path that was not checked.

use std::{
    fs::{File, OpenOptions},
    io::{self, Cursor, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    AccessView, Content, Denial, Verdict, secrets::content::MAX_BYTES, symlinks::ResolvedPath,
};
use sightline_base::{
    error::Error,
    fs::dir::{Access, Dir, FileInfo, FileType, is_absent, stat_file},
    path::{AbsPath, Location},
};

/// Number of attempts if the file is replaced between the check and opening it.
const ATTEMPTS: usize = 64;

/// An open file that may be read.
#[derive(Debug)]
pub struct OpenedFile {
    source: Source,
    info: FileInfo,
    real: PathBuf,
}

/// Where the bytes of an opened file come from.
#[derive(Debug)]
enum Source {
    File(File),
    /// The content that was checked. The file may change.
    Checked(Cursor<Vec<u8>>),
}

impl OpenedFile {
    /// Returns the file, unless its content decided that it may be read.
    pub(super) fn into_file(self) -> Option<File> {
        match self.source {
            Source::File(file) => Some(file),
            Source::Checked(_) => None,
        }
    }

    /// Returns the metadata of the open file.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Returns the path of the file without symlinks.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Reads the content and checks it. Later reads return the content that was checked.
    fn with_content(mut self, denial: Denial) -> Result<Self, Denial> {
        let mut content = Vec::new();
        let read = self
            .by_ref()
            .take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut content);
        let denial = match read {
            Ok(_) => denial.of_content(&content),
            Err(error) => Some(denial.unreadable(&error)),
        };
        let source = Source::Checked(Cursor::new(content));
        denial.map_or(Ok(Self { source, ..self }), Err)
    }
}

impl Read for OpenedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::File(file) => file.read(buffer),
            Source::Checked(content) => content.read(buffer),
        }
    }
}

impl Seek for OpenedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.source {
            Source::File(file) => file.seek(to),
            Source::Checked(content) => content.seek(to),
        }
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

/// What a path resolves to that may be read, unless its content is secret.
#[derive(Debug)]
pub(super) struct CheckedPath {
    pub(super) place: ResolvedPath,
    /// Whether it leads into a root.
    pub(super) is_inside: bool,
    /// The denial if the content is secret.
    pub(super) by_content: Option<Denial>,
}

impl CheckedPath {
    /// Returns the verdict for a version of the file.
    pub(super) fn verdict(self, content: Content<'_>) -> Verdict {
        let outcome = match content {
            Content::OnDisk => self
                .by_content_on_disk()
                .and_then(|denial| self.open_checked(denial).err()),
            Content::Text(text) => self
                .by_content
                .clone()
                .and_then(|denial| denial.of_text(text)),
        };
        match outcome {
            Some(denial) => Verdict::Denied(denial),
            None if self.is_inside => Verdict::Allowed,
            None => Verdict::Outside,
        }
    }

    /// Returns the denial if the content on the disk is secret. A file that does not exist has none.
    fn by_content_on_disk(&self) -> Option<Denial> {
        let is_missing = self.place.kind.is_none() && !self.place.has_links();
        self.by_content.clone().filter(|_| !is_missing)
    }

    /// Opens a regular file. Returns `None` if it is no longer the file that was checked.
    fn open(&self) -> io::Result<Option<OpenedFile>> {
        match (self.place.kind, &self.place.dir, &self.place.name) {
            (Some(FileType::File), Some(dir), Some(name)) => open_in(dir, name, &self.place),
            (Some(_), ..) => Err(io::Error::other("it is not a regular file")),
            (None, ..) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// [`Self::open`] if the content decides.
    fn open_checked(&self, denial: Denial) -> Result<OpenedFile, Denial> {
        let replaced = || io::Error::other("it is being replaced");
        match self.open().and_then(|opened| opened.ok_or_else(replaced)) {
            Ok(opened) => opened.with_content(denial),
            Err(error) => Err(denial.unreadable(&error)),
        }
    }
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
            let checked = self.require_resolved(location, outside_allowed)?;
            if let Some(denial) = checked.by_content_on_disk() {
                let opened = checked.open_checked(denial);
                return opened.map_err(|denial| self.denied(location, denial));
            }
            match checked.place.kind {
                Some(FileType::File) | None => {}
                Some(FileType::Directory) => {
                    return Err(self.not_a_file(location, "a directory"));
                }
                Some(_) => return Err(self.not_a_file(location, "not a regular file")),
            }
            match checked.open() {
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
            let place = self.require_resolved(location, outside_allowed)?.place;
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

    /// Checks a version of a location, and returns the kind of what exists there unless its name is denied.
    pub fn check_kind(&self, location: &Location, content: Content<'_>) -> (Verdict, PathKind) {
        match self.check_resolved(location) {
            Ok(checked) => {
                let kind = match checked.place.kind {
                    None => PathKind::Missing,
                    Some(FileType::Directory) => PathKind::Folder,
                    Some(_) => PathKind::File,
                };
                (checked.verdict(content), kind)
            }
            Err(denial) => (Verdict::Denied(denial), PathKind::Missing),
        }
    }

    /// Resolves a location that may be read.
    fn require_resolved(
        &self,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<CheckedPath, Error> {
        match self.check_resolved(location) {
            Ok(checked) if checked.is_inside || outside_allowed => Ok(checked),
            Ok(_) => Err(Error::Outside(self.roots().result_path(location).0)),
            Err(denial) => Err(self.denied(location, denial)),
        }
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

    /// [`Self::require`] for a version of the file.
    ///
    /// # Errors
    /// As [`Self::require`].
    pub fn require_content(
        &self,
        location: &Location,
        content: Content<'_>,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        let (verdict, _) = self.check_kind(location, content);
        self.require_verdict(verdict, location, outside_allowed)
    }

    pub(super) fn require_verdict(
        &self,
        verdict: Verdict,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        match verdict {
            Verdict::Denied(denial) => Err(self.denied(location, denial)),
            Verdict::Outside if !outside_allowed => {
                Err(Error::Outside(self.roots().result_path(location).0))
            }
            Verdict::Outside | Verdict::Allowed => Ok(()),
        }
    }

    fn denied(&self, location: &Location, denial: Denial) -> Error {
        Error::AccessDenied {
            path: self.roots().result_path(location).0,
            reason: denial.reason,
            rule: denial.rule,
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
    let info = stat_file(&file)?;
    let is_same = info.kind == FileType::File && dir.is_same_file(name, &place.real);
    Ok(is_same.then(|| OpenedFile {
        source: Source::File(file),
        info,
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
    sightline_base::fs::retry_while_leased(|| options.open(path))
}
