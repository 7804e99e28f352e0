//! Reads files and replaces them atomically. New files are readable by the user only.

#![allow(
    clippy::missing_errors_doc,
    reason = "each error is of the kind `storage` and names the operation and the path"
)]

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind as Io, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

use super::LogStamp;
use crate::{
    error::Error,
    fs::dir::{FileInfo, FileType, stat, stat_file},
    limits::MAX_STATE_FILE_BYTES,
};

/// Suffix of temporary files. Their names start with a dot.
const UNFINISHED: &str = ".unfinished";

/// Returns the first unused name `PATH.corrupt-MILLIS`, from `millis` on.
pub fn aside(path: &Path, millis: i64) -> PathBuf {
    let name = |millis: i64| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".corrupt-{millis}"));
        PathBuf::from(name)
    };
    (millis..)
        .map(name)
        .find(|free| fs::symlink_metadata(free).is_err())
        .unwrap_or_else(|| name(millis))
}

pub(crate) fn is_unfinished(name: &std::ffi::OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with('.') && name.ends_with(UNFINISHED))
}

/// Reads a state file up to the size limit. Returns `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open_to_read(path)? else {
        return Ok(None);
    };
    check_regular(path, &file)?;
    let content = up_to(file, MAX_STATE_FILE_BYTES).map_err(|error| failed("read", path, error))?;
    check_size(path, content.len())?;
    Ok(Some(content))
}

/// Reads a file that this server did not write, up to `limit`. Returns `None` if it does not exist.
///
/// # Errors
/// `tooLarge`; `storage`, if it cannot be read or is not a regular file.
pub fn read_foreign(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open_to_read(path)? else {
        return Ok(None);
    };
    let content = up_to(file, limit).map_err(|error| failed("read", path, error))?;
    if content.len() as u64 > limit {
        return Err(Error::TooLarge {
            path: path.display().to_string(),
            limit,
        });
    }
    Ok(Some(content))
}

/// Reads up to `limit` bytes, and one byte more of a larger file.
fn up_to(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)?;
    Ok(content)
}

/// Reads a text file up to the state file limit, which is larger than any file of git's state.
/// Replaces invalid UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let content = up_to(open_regular(path)?, MAX_STATE_FILE_BYTES)?;
    if content.len() as u64 > MAX_STATE_FILE_BYTES {
        return Err(Io::FileTooLarge.into());
    }
    Ok(String::from_utf8_lossy(&content).into_owned())
}

fn open_to_read(path: &Path) -> Result<Option<File>, Error> {
    match open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == Io::NotFound => Ok(None),
        Err(error) => Err(cannot_open(path, error)),
    }
}

/// Replaces a file atomically and durably: writes and flushes a temporary file, then renames it.
pub fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    prepare(path, content)?.commit()
}

/// Like [`write()`], in two steps.
pub fn prepare(path: &Path, content: &[u8]) -> Result<PreparedFile, Error> {
    // A file over the limit could not be read back.
    check_size(path, content.len())?;
    PreparedFile::write(path, content)
}

/// Like [`write()`], without the size limit, for files that are read in parts.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    PreparedFile::write(path, content)?.commit()
}

/// New content of a file, in a temporary file next to it. Removed when dropped.
pub struct PreparedFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl PreparedFile {
    fn write(path: &Path, content: &[u8]) -> Result<Self, Error> {
        let attempt = || -> io::Result<NamedTempFile> {
            let mut file = tempfile::Builder::new()
                .prefix(".")
                .suffix(UNFINISHED)
                .tempfile_in(parent(path))?;
            file.write_all(content)?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        Ok(Self {
            file: attempt().map_err(|error| failed("write", path, error))?,
            path: path.to_path_buf(),
        })
    }

    /// Replaces the file, durably.
    pub fn commit(self) -> Result<(), Error> {
        persist(self.file, &self.path).map_err(|error| failed("write", &self.path, error))?;
        sync_dir(parent(&self.path))
    }
}

/// Time to wait for readers on Windows, which does not replace a file that another thread or process has open.
const PATIENCE: Duration = Duration::from_secs(2);

/// Moves a temporary file to `path`, and replaces the file there.
pub fn persist(mut file: NamedTempFile, path: &Path) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        match file.persist(path) {
            Ok(_) => return Ok(()),
            Err(refused)
                if cfg!(windows)
                    && refused.error.kind() == Io::PermissionDenied
                    && Instant::now() < end =>
            {
                file = refused.file;
                thread::sleep(Duration::from_millis(5));
            }
            Err(refused) => return Err(refused.error),
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn check_size(path: &Path, bytes: usize) -> Result<(), Error> {
    if bytes as u64 <= MAX_STATE_FILE_BYTES {
        return Ok(());
    }
    Err(Error::StateFileTooLarge(path.to_path_buf()))
}

/// Creates a directory and its ancestors, accessible by the user only.
pub fn make_dir(dir: &Path) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(dir)
        .map_err(|error| failed("create the directory", dir, error))?;
    sync_dir(dir.parent().unwrap_or(dir))
}

/// Makes the entries of a directory durable.
pub fn sync_dir(dir: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    {
        use rustix::fs::{Mode, OFlags, open};
        // `DIRECTORY`: opening a pipe would block.
        open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|dir| File::from(dir).sync_all())
            .map_err(|error| failed("flush the directory", dir, error))?;
    }
    #[cfg(not(unix))]
    let _ = dir;
    Ok(())
}

/// Returns options that create files for the user only.
pub fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "files have no mode"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a regular file for reading, like [`open`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Opens a regular file. Does not follow a symbolic link in the last component and never blocks on
/// a pipe or device. All files of the data directory and of imported repositories are opened with
/// this function.
///
/// # Errors
/// Also if the path is not a regular file.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
    }
    #[cfg(not(unix))]
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(not_regular());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(not_regular())
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

/// Returns whether `path` is a directory and not a symbolic link to one.
///
/// # Errors
/// If it may exist and cannot be inspected.
pub fn is_dir(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks that an open file is a regular file, and restricts its permissions to the user.
pub fn check_regular(path: &Path, file: &File) -> Result<LogStamp, Error> {
    let unreadable = |error| failed("read the metadata of", path, error);
    let found = stat_file(file).map_err(unreadable)?;
    let stamp = regular(path, &found)?;
    #[cfg(unix)]
    if found.stamp.mode & 0o077 != 0 && is_ours(&file.metadata().map_err(unreadable)?) {
        use std::os::unix::fs::PermissionsExt;
        match file.set_permissions(fs::Permissions::from_mode(0o600)) {
            // A read-only copy is used with its permissions.
            Err(error) if error.kind() != Io::ReadOnlyFilesystem => {
                return Err(failed("restrict access to", path, error));
            }
            _ => {}
        }
    }
    Ok(stamp)
}

pub(crate) fn regular(path: &Path, found: &FileInfo) -> Result<LogStamp, Error> {
    if found.kind == FileType::File {
        return Ok(LogStamp::of(found));
    }
    Err(not_a_regular_file(path))
}

/// Returns the error of a file that could not be opened.
pub fn cannot_open(path: &Path, error: io::Error) -> Error {
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return not_a_regular_file(path);
    }
    failed("open", path, error)
}

/// Returns the error of a path that is not a regular file.
pub fn not_a_regular_file(path: &Path) -> Error {
    unusable(path, "is not a regular file; move it away")
}

/// Restricts a directory of the user to the user. Does not follow a symbolic link.
pub fn restrict_permissions(path: &Path, mode: u32) -> Result<(), Error> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let tightened = fs::symlink_metadata(path).and_then(|metadata| {
            if !metadata.is_dir() || !is_ours(&metadata) || metadata.mode() & 0o077 == 0 {
                return Ok(());
            }
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        });
        match tightened {
            Err(error) if !matches!(error.kind(), Io::NotFound | Io::ReadOnlyFilesystem) => {
                return Err(failed("restrict access to", path, error));
            }
            _ => {}
        }
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

#[cfg(unix)]
pub(crate) fn is_ours(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
pub(crate) fn is_ours(_: &Metadata) -> bool {
    true
}

/// Returns whether the open file is still the one at `path`.
pub fn is_same_file(file: &File, path: &Path) -> bool {
    match (stat_file(file), stat(path)) {
        (Ok(opened), Ok(there)) => opened.identity() == there.identity(),
        _ => false,
    }
}

/// Returns the error of an operation on a file of the data directory.
pub fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    Error::Storage {
        action,
        path,
        source,
    }
}

/// Returns the error of a path of the data directory with the wrong type, owner or version.
pub(crate) fn unusable(path: &Path, problem: impl Into<String>) -> Error {
    Error::Unusable {
        path: path.to_path_buf(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use sightline_protocol::error::ErrorKind;

    use super::*;

    #[test]
    fn files_over_the_limit_are_neither_read_nor_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state");
        write(&path, b"old").unwrap();
        let limit = usize::try_from(MAX_STATE_FILE_BYTES).unwrap();
        assert!(check_size(&path, limit).is_ok());
        let error = write(&path, &vec![0; limit + 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert_eq!(fs::read(&path).unwrap(), b"old");

        // As a sparse file.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(MAX_STATE_FILE_BYTES + 1).unwrap();
        assert!(read(&path).is_err());
        file.set_len(10).unwrap();
        assert_eq!(read_foreign(&path, 10).unwrap().unwrap().len(), 10);
        let error = read_foreign(&path, 9).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn a_file_is_replaced_while_another_thread_reads_it() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state");
        write(&path, b"old").unwrap();
        let opened = open_regular(&path).unwrap();
        thread::scope(|scope| {
            let writer = scope.spawn(|| write(&path, b"new"));
            thread::sleep(Duration::from_millis(50));
            drop(opened);
            writer.join().unwrap().unwrap();
        });
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let [pipe, link, folder] = ["pipe", "link", "folder"].map(|name| dir.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let file = dir.path().join("file");
        fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        fs::create_dir(&folder).unwrap();
        let device = PathBuf::from("/dev/zero");
        for path in [&pipe, &link, &folder, &device] {
            assert!(open_regular(path).is_err(), "{path:?}");
            assert!(read_text(path).is_err(), "{path:?}");
            let error = read_foreign(path, 9).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
            assert!(sync_dir(path).is_err() || path == &folder, "{path:?}");
        }
        let _ = open(&link, OpenOptions::new().write(true).truncate(true));
        assert_eq!(fs::read(&file).unwrap(), b"precious");
    }
}
