//! The files of a folder as data, to compare or restore.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Files by path relative to a folder.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Reads all regular files below a folder.
pub fn read(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            match fs::symlink_metadata(&path).unwrap() {
                metadata if metadata.is_dir() => todo.push(path),
                metadata if metadata.is_file() => {
                    let name = path.strip_prefix(folder).unwrap().to_path_buf();
                    files.insert(name, fs::read(&path).unwrap());
                }
                _ => {}
            }
        }
    }
    files
}

/// Writes a file and its parent folders.
pub fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
