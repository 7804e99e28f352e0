//! Files replaced by pipes, links and directories, to test that code refuses them at once.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use crate::watchdog::ends;

/// Returns a directory in memory if there is one: on disk, a thousand copies are slow.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Replacement for a file.
#[derive(Clone, Copy, Debug)]
pub enum SpecialFile {
    /// A named pipe.
    Pipe,
    /// A link to a pipe.
    LinkToPipe,
    /// A link to a regular file.
    LinkToFile,
    /// A directory.
    Directory,
}

const PRECIOUS: &str = "precious";

impl SpecialFile {
    /// Every replacement.
    pub const ALL: [Self; 4] = [
        Self::Pipe,
        Self::LinkToPipe,
        Self::LinkToFile,
        Self::Directory,
    ];

    fn put(self, at: &Path, base: &Path) {
        let _ = fs::remove_file(at);
        let _ = fs::remove_dir_all(at);
        let outside = base.join("outside");
        let _ = fs::remove_file(&outside);
        let pipe = |path: &Path| {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        };
        match self {
            Self::Pipe => pipe(at),
            Self::LinkToPipe => pipe(&outside),
            Self::LinkToFile => {
                fs::write(&outside, PRECIOUS).unwrap();
                fs::set_permissions(&outside, fs::Permissions::from_mode(0o644)).unwrap();
            }
            Self::Directory => fs::create_dir(at).unwrap(),
        }
        if matches!(self, Self::LinkToPipe | Self::LinkToFile) {
            symlink(outside, at).unwrap();
        }
    }

    /// Asserts that the target of a link is unchanged.
    fn check(self, what: &str, base: &Path) {
        let outside = base.join("outside");
        if let Self::LinkToFile = self {
            assert_eq!(fs::read_to_string(&outside).unwrap(), PRECIOUS, "{what}");
            let mode = fs::metadata(outside).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "{what}");
        }
    }
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Returns every file and directory below a directory.
pub fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.insert(path);
    }
    found
}

/// Replaces each of these files in turn by a special file, in a fresh copy of `from`, and runs
/// `work`.
pub fn replace_each<W>(
    base: &Path,
    from: &str,
    names: &BTreeSet<PathBuf>,
    kinds: &[SpecialFile],
    work: W,
) where
    W: Fn(&Path) + Clone + Send + 'static,
{
    for name in names {
        for special in kinds {
            let place = base.join("data");
            let _ = fs::remove_dir_all(&place);
            copy(&base.join(from), &place);
            special.put(&place.join(name), base);
            let what = format!("{special:?} at {}", name.display());
            let (work, base_of_work) = (work.clone(), base.to_path_buf());
            ends(&what, move || work(&base_of_work));
            special.check(&what, base);
        }
    }
}
