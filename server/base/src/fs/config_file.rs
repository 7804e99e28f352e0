//! A user's configuration file: replaced atomically, through symlinks, with its mode.

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use sightline_protocol::error::ErrorKind;

use crate::{error::Error, storage::atomic_file::persist};

/// Maximum size of a configuration file, in bytes. Claude Code keeps its history in
/// `~/.claude.json`.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Suffix of the backup's name, followed by a number if it is taken.
const BACKUP: &str = "before-sightline";
/// Maximum number of backups.
const MAX_BACKUPS: u32 = 1000;

/// A configuration file as read; empty if it does not exist.
#[derive(Debug)]
pub struct File {
    named: PathBuf,
    /// Target of the symlink, for users who keep their configuration in a repository.
    real: PathBuf,
    text: String,
    metadata: Option<Metadata>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "files have no mode"))]
    is_private: bool,
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// `storage` if it cannot be read, `tooLarge`, `unsupported` if it is not a regular
    /// file or not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |error: &io::Error| {
            let message = format!(
                "cannot read {}: {error}; it was not changed",
                path.display()
            );
            Error::Failed(ErrorKind::Storage, message)
        };
        let path = &std::path::absolute(path).map_err(|error| failed(&error))?;
        let real = match crate::path::canonicalize(path) {
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
                    is_private: false,
                });
            }
            Err(error) => return Err(failed(&error)),
        };
        let refuse = |kind, why: &str| {
            let message = format!("cannot read {}: {why}; it was not changed", path.display());
            Error::Failed(kind, message)
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
            is_private: false,
        })
    }

    /// Lets only the user read the file if it is new.
    #[must_use]
    pub fn private(self) -> Self {
        Self {
            is_private: true,
            ..self
        }
    }

    /// Returns its path, as named.
    pub fn path(&self) -> &Path {
        &self.named
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the file exists.
    pub fn exists(&self) -> bool {
        self.metadata.is_some()
    }

    /// Replaces the file and keeps a copy. Returns the path of the copy, if the file existed.
    ///
    /// # Errors
    /// Those of [`Self::replace`].
    pub fn replace_with_backup(self, text: &str) -> Result<Option<PathBuf>, Error> {
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
    pub fn delete(self) -> Result<(), Error> {
        self.check_unchanged()?;
        fs::remove_file(&self.named).map_err(|error| self.failed(error))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// `storage` if it cannot be written, `conflict` if it changed since it was read. The
    /// file is unchanged then.
    pub fn replace(&self, text: &str) -> Result<(), Error> {
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
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(
            if self.is_private { 0o600 } else { 0o666 },
        ));
        let mut file = builder.tempfile_in(folder).map_err(failed)?;
        if let Some(permissions) = permissions {
            file.as_file()
                .set_permissions(permissions)
                .map_err(failed)?;
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        persist(file, &self.real).map_err(failed)?;
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
        Err(Error::Failed(ErrorKind::Conflict, message))
    }

    fn failed(&self, error: io::Error) -> Error {
        let message = format!(
            "cannot write {}: {error}; the file is unchanged",
            self.named.display()
        );
        Error::Failed(ErrorKind::Storage, message)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_as_it_was_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("languages.toml");
        for (number, (old, new)) in [("", "one"), ("one", "two"), ("two", "three")]
            .into_iter()
            .enumerate()
        {
            let file = File::read(&path).unwrap();
            assert_eq!(file.text(), old);
            let backup = file.replace_with_backup(new).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), new);
            let kept = backup.map(|backup| fs::read_to_string(backup).unwrap());
            assert_eq!(kept.as_deref(), (number > 0).then_some(old));
        }
        // The three files, and no temporary file.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_changed_during_the_merge_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("languages.toml");
        fs::write(&path, "old").unwrap();
        let file = File::read(&path).unwrap();
        fs::write(&path, "edited").unwrap();
        let error = file.replace_with_backup("new").unwrap_err();
        assert!(
            error.to_string().contains("changed during the merge"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "edited");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn non_text_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        assert!(File::read(folder.path()).is_err());
        let binary = folder.path().join("binary.toml");
        fs::write(&binary, [0xff, 0xfe]).unwrap();
        assert!(File::read(&binary).is_err());
        let large = folder.path().join("large.toml");
        let file = fs::File::create(&large).unwrap();
        file.set_len(65 * 1024 * 1024).unwrap();
        assert!(File::read(&large).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_permissions_are_preserved() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let dotfiles = folder.path().join("dotfiles");
        fs::create_dir(&dotfiles).unwrap();
        let real = dotfiles.join("languages.toml");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.path().join("languages.toml");
        symlink("dotfiles/languages.toml", &link).unwrap();

        let backup = File::read(&link)
            .unwrap()
            .replace_with_backup("new")
            .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        for path in [real, backup.unwrap()] {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640, "{}", path.display());
        }

        let nowhere = folder.path().join("nowhere.toml");
        symlink("gone/languages.toml", &nowhere).unwrap();
        assert!(File::read(&nowhere).is_err());
    }
}
