//! A user's configuration file: replaced atomically, through symlinks, with its mode.

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use sightline_engine::error::Error;
use sightline_protocol::error::ErrorKind;

/// Maximum size of a configuration file, in bytes. Claude Code keeps its history in
/// `~/.claude.json`.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Suffix of the backup's name, followed by a number if it is taken.
const BACKUP: &str = "before-sightline";
/// Maximum number of backups.
const MAX_BACKUPS: u32 = 1000;

/// A configuration file as read; empty if it does not exist.
pub(super) struct File {
    named: PathBuf,
    /// Target of the symlink, for users who keep their configuration in a repository.
    real: PathBuf,
    text: String,
    metadata: Option<Metadata>,
}

impl File {
    /// # Errors
    /// `storage` if it cannot be read, `tooLarge`, `unsupported` if it is not a regular
    /// file or not UTF-8.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let failed = |error: &io::Error| {
            Error::storage(format!(
                "cannot read {}: {error}; it was not changed",
                path.display()
            ))
        };
        let path = &std::path::absolute(path).map_err(|error| failed(&error))?;
        let real = match sightline_base::path::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A dangling symlink is not replaced.
                if fs::symlink_metadata(path).is_ok() {
                    return Err(failed(&error));
                }
                return Ok(Self {
                    named: path.to_owned(),
                    real: path.to_owned(),
                    text: String::new(),
                    metadata: None,
                });
            }
            Err(error) => return Err(failed(&error)),
        };
        let refuse = |kind, why: &str| {
            let message = format!("cannot read {}: {why}; it was not changed", path.display());
            Error::new(kind, message)
        };
        let metadata = fs::metadata(&real).map_err(|error| failed(&error))?;
        if !metadata.is_file() {
            return Err(refuse(ErrorKind::Unsupported, "not a regular file"));
        }
        let mut bytes = Vec::new();
        fs::File::open(&real)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| failed(&error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(refuse(ErrorKind::TooLarge, "larger than 64 MiB"));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| refuse(ErrorKind::Unsupported, "not UTF-8"))?;
        Ok(Self {
            named: path.to_owned(),
            real,
            text,
            metadata: Some(metadata),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.named
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the file exists.
    pub(super) fn exists(&self) -> bool {
        self.metadata.is_some()
    }

    /// Replaces the file and keeps a copy. Returns the path of the copy, if the file existed.
    ///
    /// # Errors
    /// Those of [`Self::replace`].
    pub(super) fn replace_with_backup(self, text: &str) -> Result<Option<PathBuf>, Error> {
        self.check_unchanged()?;
        let backup = match &self.metadata {
            Some(metadata) => Some(self.back_up(metadata).map_err(|error| self.failed(error))?),
            None => None,
        };
        self.replace(text)?;
        Ok(backup)
    }

    /// Deletes the file.
    ///
    /// # Errors
    /// Those of [`Self::replace`].
    pub(super) fn delete(self) -> Result<(), Error> {
        self.check_unchanged()?;
        fs::remove_file(&self.named).map_err(|error| self.failed(error))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// `storage` if it cannot be written, `conflict` if it changed since it was read. The
    /// file is unchanged then.
    pub(super) fn replace(&self, text: &str) -> Result<(), Error> {
        let failed = |error: io::Error| self.failed(error);
        #[cfg(unix)]
        if let Some(metadata) = &self.metadata
            && std::os::unix::fs::MetadataExt::nlink(metadata) > 1
        {
            return Err(failed(io::Error::other(
                "it has several names (hard links), which a replacement would separate",
            )));
        }
        let folder = self.real.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        self.check_unchanged()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".").suffix(".unfinished");
        let permissions = self.metadata.as_ref().map(Metadata::permissions);
        // The user's umask applies to a new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder).map_err(failed)?;
        if let Some(permissions) = permissions {
            file.as_file()
                .set_permissions(permissions)
                .map_err(failed)?;
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        file.persist(&self.real)
            .map_err(|error| failed(error.error))?;
        sync(folder).map_err(failed)
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        if Self::read(&self.named)?.text == self.text {
            return Ok(());
        }
        let message = format!(
            "{} changed during the merge; run the command again",
            self.named.display()
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::storage(format!(
            "cannot write {}: {error}; the file is unchanged",
            self.named.display()
        ))
    }

    /// Copies the previous text to a free name next to the file.
    fn back_up(&self, metadata: &Metadata) -> io::Result<PathBuf> {
        for number in 1..=MAX_BACKUPS {
            let mut name = self.real.clone().into_os_string();
            name.push(format!(".{BACKUP}"));
            if number > 1 {
                name.push(format!("-{number}"));
            }
            let backup = PathBuf::from(name);
            let mut file = match OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&backup)
            {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            file.set_permissions(metadata.permissions())?;
            file.write_all(self.text.as_bytes())?;
            file.sync_all()?;
            return Ok(backup);
        }
        Err(io::Error::other("too many backup files"))
    }
}

#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
