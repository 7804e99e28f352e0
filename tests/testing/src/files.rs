//! A folder's files as data, to compare or to put back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Files by their paths below a folder.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// All files below a folder; links and others are passed over.
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

/// Writes a file, and the folders it lies in.
pub fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
