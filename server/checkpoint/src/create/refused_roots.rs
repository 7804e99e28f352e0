//! Folders that checkpoints refuse: the home directory, the filesystem root, Desktop and similar.
//!
//! They are often opened by mistake, and a restore would change all of a user's files.

use sightline_protocol::error::ErrorKind;
use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::error::Error;

/// Folders of the home directory that are not projects, unless the desktop configures others.
const USER_FOLDERS: [&str; 3] = ["Desktop", "Documents", "Downloads"];
/// Their keys in the desktop configuration.
const USER_DIR_KEYS: [&str; 3] = ["XDG_DESKTOP_DIR", "XDG_DOCUMENTS_DIR", "XDG_DOWNLOAD_DIR"];

/// Refuses these folders, and the data directory. `root` contains no links.
///
/// # Errors
/// `unsupported`, and which folder to open instead.
pub(super) fn check(root: &Path, data: &Path) -> Result<(), Error> {
    let home = sightline_base::path::home_dir();
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let in_data = sightline_base::path::canonicalize(data).is_ok_and(|data| root.starts_with(data));
    let what = if in_data {
        Some("the server's data directory")
    } else {
        refused_kind(root, home.as_deref(), config.as_deref())
    };
    match what {
        None => Ok(()),
        Some(what) => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "cannot create checkpoints of {what} ({}); open another folder, or a subfolder",
                root.display()
            ),
        )),
    }
}

fn refused_kind(root: &Path, home: Option<&Path>, config: Option<&Path>) -> Option<&'static str> {
    if root.parent().is_none() {
        return Some("the filesystem root");
    }
    let written = home?;
    let home =
        sightline_base::path::canonicalize(written).unwrap_or_else(|_| written.to_path_buf());
    if home == root {
        return Some("the home directory");
    }
    if home.starts_with(root) {
        return Some("a folder that contains the home directory");
    }
    let config = config.map_or_else(|| written.join(".config"), Path::to_path_buf);
    let named = fs::read_to_string(config.join("user-dirs.dirs")).unwrap_or_default();
    let named = named.lines().filter_map(|line| user_dir(line, written));
    let usual = USER_FOLDERS.iter().map(|name| written.join(name));
    let is_root = |folder: PathBuf| {
        folder == root
            || sightline_base::path::canonicalize(&folder).is_ok_and(|folder| folder == root)
    };
    usual
        .chain(named)
        .any(is_root)
        .then_some("a personal folder")
}

/// Parses a line of `user-dirs.dirs` such as `XDG_DESKTOP_DIR="$HOME/Desktop"`.
fn user_dir(line: &str, home: &Path) -> Option<PathBuf> {
    let (key, value) = line.trim().split_once('=')?;
    if !USER_DIR_KEYS.contains(&key) {
        return None;
    }
    let value = value.trim().trim_matches('"');
    match value.strip_prefix("$HOME") {
        Some(below) => Some(home.join(below.trim_start_matches('/'))),
        None => Some(PathBuf::from(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_home_directory_are_recognized() {
        let scratch = tempfile::tempdir().unwrap();
        let top = sightline_base::path::canonicalize(scratch.path()).unwrap();
        let home = top.join("home");
        for folder in [
            "home/Desktop",
            "home/Bureau",
            "home/work/Desktop",
            "home/.config",
        ] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        let named =
            "# made by hand\nXDG_DESKTOP_DIR=\"$HOME/Bureau\"\nXDG_MUSIC_DIR=\"$HOME/work\"\n";
        fs::write(home.join(".config/user-dirs.dirs"), named).unwrap();
        let refused = |path: &Path| refused_kind(path, Some(&home), None).is_some();
        assert!(refused(Path::new("/")) && refused(&top) && refused(&home));
        assert!(refused(&home.join("Desktop")) && refused(&home.join("Bureau")));
        assert!(!refused(&home.join("work")) && !refused(&home.join("work/Desktop")));
        assert!(refused_kind(&top, None, None).is_none());
    }
}
