//! Programs on a search path.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Returns the programs with this name in the folders of a search path such as `PATH`, in order. Skips
/// relative folders, because their meaning depends on the working directory.
pub fn find_programs(path: &OsStr, name: &str) -> impl Iterator<Item = PathBuf> {
    let files: Vec<String> = extensions()
        .iter()
        .map(|extension| format!("{name}{extension}"))
        .collect();
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    folders
        .into_iter()
        .filter(|folder| folder.is_absolute())
        .flat_map(move |folder| {
            let files = files.iter().map(|file| folder.join(file));
            files.collect::<Vec<_>>()
        })
        .filter(|file| is_program(file))
}

/// Returns the program with this name on the `PATH` of this process.
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_programs(&std::env::var_os("PATH")?, name).next()
}

/// Returns the file extensions of programs.
#[cfg(windows)]
fn extensions() -> Vec<String> {
    std::env::var("PATHEXT")
        .unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned())
        .split(';')
        .filter(|ending| !ending.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the file extensions of programs.
#[cfg(not(windows))]
fn extensions() -> Vec<String> {
    vec![String::new()]
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
