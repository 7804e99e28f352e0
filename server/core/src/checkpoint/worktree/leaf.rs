//! Reads entries of the work tree as leaves of a git tree.

use std::{ffi::OsStr, io};

use crate::{
    checkpoint::{
        store::object::{Kind as Object, Mode, Oid, name_of},
        tree_diff::Leaf,
    },
    fs::dir::{Dir, FileInfo, FileType},
};

impl FileInfo {
    /// Returns the git mode, or `None` for a type that git does not store.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self.kind {
            FileType::File if self.stamp.mode & 0o100 != 0 => Some(Mode::Executable),
            FileType::File => Some(Mode::File),
            FileType::Symlink => Some(Mode::Link),
            FileType::Directory => Some(Mode::Folder),
            FileType::Special(_) => None,
        }
    }
}

impl Dir {
    /// Reads an entry. Returns `None` if it does not exist, or git does not store its type.
    pub(in crate::checkpoint) fn read_leaf(
        &self,
        name: &OsStr,
    ) -> io::Result<Option<(Leaf, Vec<u8>)>> {
        let found = match self.stat(name) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        };
        match found.mode() {
            Some(Mode::Folder) => Ok(Some((Leaf::FOLDER, Vec::new()))),
            Some(_) => {
                let (found, bytes) = self.read(name)?;
                let oid: Oid = name_of(Object::Blob, &bytes);
                Ok(found.mode().map(|mode| {
                    let seen = Some((found.stamp, false));
                    (Leaf { mode, oid, seen }, bytes)
                }))
            }
            None => Ok(None),
        }
    }
}
