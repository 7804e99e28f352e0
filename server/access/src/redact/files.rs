//! Finds the denied files of the workspace.

use std::{
    collections::VecDeque,
    fs::{self, OpenOptions},
    io::Read,
    path::{Path, PathBuf},
};

use sightline_base::path::{Location, RelPath};
use zeroize::Zeroizing;

use crate::{AccessView, Denial};

/// Maximum bytes of a file that are read. The rest of a larger one is not recognized.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Folders of version control, installed packages and caches: their files are not the user's secrets.
const SKIPPED: [&str; 6] = [
    ".git",
    ".hg",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
];
/// Marks a cache: <https://bford.info/cachedir/>.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// A denied file.
pub(super) struct DeniedFile {
    /// Relative to the first root.
    pub(super) shown: String,
    /// Relative to its own root.
    pub(super) rel: RelPath,
    pub(super) path: PathBuf,
    pub(super) denial: Denial,
    depth: usize,
}

/// Lists the denied files below the roots, those of built-in rules and of upper folders first. `None` if there are more than
/// `max_entries` files and folders.
pub(super) fn denied_files(view: &AccessView, max_entries: usize) -> (Vec<DeniedFile>, bool) {
    let mut left = max_entries;
    let mut found = Vec::new();
    for (number, root) in view.roots().as_slice().iter().enumerate() {
        let mut folders = VecDeque::from([(RelPath::default(), None::<Denial>)]);
        while let Some((folder, inherited)) = folders.pop_front() {
            let path = root.canonical.join(&folder).as_path().to_owned();
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                if left == 0 {
                    return (sorted(found), false);
                }
                left -= 1;
                let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                    continue;
                };
                let rel = folder.child(&name);
                let denial = inherited
                    .clone()
                    .or_else(|| view.judge_entry(number, &rel, kind.is_dir()));
                if kind.is_dir() {
                    if !is_skipped(&entry.path()) {
                        folders.push_back((rel, denial));
                    }
                } else if let Some(denial) = denial {
                    let location = Location::Inside {
                        root: number,
                        rel: rel.clone(),
                    };
                    found.push(DeniedFile {
                        shown: view.roots().block_path(&location).0,
                        depth: rel.components().count(),
                        path: entry.path(),
                        rel,
                        denial,
                    });
                }
            }
        }
    }
    (sorted(found), true)
}

fn sorted(mut files: Vec<DeniedFile>) -> Vec<DeniedFile> {
    files.sort_by_key(|file| {
        let rule = file.denial.rule.as_ref();
        let is_built_in = rule.is_some_and(|rule| rule.source.starts_with("built-in"));
        (!is_built_in, file.depth)
    });
    files
}

/// Returns whether denied files are not looked for in a folder: version control, installed packages, caches.
pub fn is_skipped(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    SKIPPED.iter().any(|skipped| name == *skipped) || folder.join(CACHE_TAG).exists()
}

/// Reads the start of a file. `None` if it is not a regular file, cannot be read, or is not text.
pub(super) fn read(path: &Path) -> Option<Zeroizing<String>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe may have taken the place of the file.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    // No part is left behind by a growing buffer.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES as usize + 1));
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let valid = match str::from_utf8(&bytes) {
        Ok(text) => text,
        // The last character is cut.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    Some(Zeroizing::new(valid.to_owned()))
}
