//! The directory of the sockets of running servers: accessible by the user only, with names by
//! workspace root and data directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{
    RUN, Storage,
    atomic_file::{failed, is_ours, make_dir, restrict_permissions, unusable},
};
use crate::{error::Error, escape::hex, path::Root};

impl Storage {
    /// Returns the socket directory, which may not exist: `sightline` in the user's runtime
    /// directory, else `run` in the data directory.
    pub fn run_dir(&self, runtime: Option<&Path>) -> PathBuf {
        match runtime.filter(|dir| is_private(dir)) {
            Some(runtime) => runtime.join("sightline"),
            None => self.dir.join(RUN),
        }
    }

    /// Returns the socket directory, creating it if needed.
    ///
    /// # Errors
    /// `storage`, if it cannot be created or belongs to another user.
    pub fn make_run_dir(&self, runtime: Option<&Path>) -> Result<PathBuf, Error> {
        let dir = self.run_dir(runtime);
        if dir.starts_with(&self.dir) {
            self.create()?;
        }
        make_dir(&dir)?;
        let metadata =
            fs::symlink_metadata(&dir).map_err(|error| failed("inspect", &dir, error))?;
        if !metadata.is_dir() || !is_ours(&metadata) {
            return Err(unusable(&dir, "is not a directory that you own; remove it"));
        }
        restrict_permissions(&dir, 0o700)?;
        Ok(dir)
    }

    /// Returns the prefix of socket names for `root`. It differs between data directories.
    pub fn run_key(&self, root: &Root) -> String {
        let data = crate::path::canonicalize(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let mut hash = Sha256::new();
        hash.update(data.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(root.canonical.as_path().as_os_str().as_encoded_bytes());
        hex(&hash.finalize()[..8])
    }
}

/// Returns whether only the user can enter a directory.
fn is_private(dir: &Path) -> bool {
    let Ok(metadata) = fs::metadata(dir) else {
        return false;
    };
    #[cfg(unix)]
    let is_closed = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 == 0;
    #[cfg(not(unix))]
    let is_closed = false;
    dir.is_absolute() && metadata.is_dir() && is_ours(&metadata) && is_closed
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_runtime_directory_open_to_others_is_not_used() {
        let temp = tempfile::tempdir().unwrap();
        let storage = Storage::open(&temp.path().join("data")).unwrap();
        let runtime = temp.path().join("runtime");
        fs::create_dir(&runtime).unwrap();
        let mode = |mode| fs::set_permissions(&runtime, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        let own = storage.make_run_dir(Some(&runtime)).unwrap();
        assert_eq!(own, storage.dir().join("run"));
        mode(0o700);
        let theirs = storage.make_run_dir(Some(&runtime)).unwrap();
        assert_eq!(theirs, runtime.join("sightline"));
        for dir in [own, theirs] {
            assert_eq!(
                fs::metadata(dir).unwrap().permissions().mode() & 0o777,
                0o700
            );
        }
        let relative = storage.run_dir(Some(Path::new("runtime")));
        assert_eq!(relative, storage.dir().join("run"));
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let storage = Storage::open(&temp.path().join("data")).unwrap();
        storage.make_run_dir(None).unwrap();
        let run = storage.dir().join("run");
        fs::remove_dir(&run).unwrap();
        std::os::unix::fs::symlink(temp.path(), &run).unwrap();
        assert!(storage.make_run_dir(None).is_err());
    }
}
