//! Reads entries of the work tree as leaves of a git tree.

use std::{ffi::OsStr, io};

use sightline_base::{
    fs::dir::{Dir, DirWalker, FileInfo, FileType},
    path::RelPath,
};

use super::Leaf;
use crate::{
    error::Error,
    store::{
        object::{Kind as Object, Mode, Oid, name_of},
        odb::Odb,
    },
};

impl Mode {
    /// Returns the git mode of a file, or `None` for a type that git does not store.
    pub(crate) fn of(file: &FileInfo) -> Option<Self> {
        match file.kind {
            FileType::File if file.stamp.mode & 0o100 != 0 => Some(Self::Executable),
            FileType::File => Some(Self::File),
            FileType::Symlink => Some(Self::Link),
            FileType::Directory => Some(Self::Folder),
            FileType::Special(_) => None,
        }
    }
}

impl Leaf {
    /// Reads an entry. Returns `None` if it does not exist, or git does not store its type.
    pub(crate) fn read(dir: &Dir, name: &OsStr) -> io::Result<Option<(Self, Vec<u8>)>> {
        let found = match dir.stat(name) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        };
        match Mode::of(&found) {
            Some(Mode::Folder) => Ok(Some((Self::FOLDER, Vec::new()))),
            Some(_) => {
                let (found, bytes) = dir.read(name)?;
                let oid: Oid = name_of(Object::Blob, &bytes);
                Ok(Mode::of(&found).map(|mode| {
                    let seen = Some((found.stamp, false));
                    (Self { mode, oid, seen }, bytes)
                }))
            }
            None => Ok(None),
        }
    }

    /// Reads the content from the store, or from the work tree if it is not stored.
    ///
    /// # Errors
    /// `conflict` if the file changed; `storage`.
    pub(crate) fn content(
        &self,
        reader: &Odb,
        walker: &mut DirWalker,
        path: &RelPath,
    ) -> Result<Vec<u8>, Error> {
        if self.seen.is_none() {
            return reader.blob(self.oid);
        }
        let changed = |how: String| Error::Changed {
            path: path.clone(),
            how,
        };
        let (found, content) = walker
            .read(path)
            .map_err(|error| changed(format!("could not be read ({error})")))?;
        let is_link = Mode::of(&found) == Some(Mode::Link);
        if is_link != (self.mode == Mode::Link) || name_of(Object::Blob, &content) != self.oid {
            return Err(changed("changed".to_owned()));
        }
        Ok(content)
    }
}
