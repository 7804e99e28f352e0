//! The `.gitignore` files that apply in a directory, without running git and also outside of repositories.
//!
//! [`IgnoreRules`] is a stack of rule files, the deepest first: the directory's own `.gitignore`, those of the
//! directories above it up to the top of the repository (of the workspace root where there is no repository), and
//! the repository's `info/exclude`. The first file with a matching pattern decides; within a file the last
//! pattern. [`crate::gitignore`] matches them.
//!
//! Unlike git, this module:
//!
//! - does not read the user's global excludes, so that listings and checkpoints do not depend on a home directory;
//! - applies the rules to tracked files too, because only git's index knows which files are tracked.
//!
//! Callers do not descend into ignored directories, so entries below them are not checked. When an ignored
//! directory is listed explicitly, the rules from above it do not apply.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use ignore::Match;

use crate::gitignore::{self, PatternSet, bytes_of};
use sightline_base::{
    fs::dir::{Access, Dir},
    limits,
};

/// The name of a rule file.
pub const FILE_NAME: &str = ".gitignore";
/// Largest rule file that is read, in bytes. A larger one is treated as missing.
pub const MAX_BYTES: u64 = limits::MAX_GITIGNORE_BYTES;

/// The rules that apply in a directory.
#[derive(Clone, Default)]
pub struct IgnoreRules(Option<Arc<Layer>>);

/// The text of a rule file, and the directory its patterns are relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreFile {
    /// The directory.
    pub base: PathBuf,
    /// The text.
    pub text: Vec<u8>,
}

struct Layer {
    base: PathBuf,
    text: Box<[u8]>,
    /// Compiled on first use. A checkpoint after one changed file uses few of the rule files of a project.
    patterns: OnceLock<PatternSet>,
    above: IgnoreRules,
}

impl Layer {
    fn patterns(&self) -> &PatternSet {
        self.patterns
            .get_or_init(|| PatternSet::gitignore(FILE_NAME, &self.text))
    }
}

impl IgnoreRules {
    /// Reads the rules that reach `directory` from above. Both paths are canonical, and `directory` is `root` or
    /// below it.
    pub fn above(root: &Path, directory: &Path) -> Self {
        Self::default().with_files(&files_above(root, directory))
    }

    /// Adds rule files, the deepest last.
    pub fn with_files(self, files: &[IgnoreFile]) -> Self {
        files
            .iter()
            .fold(self, |rules, file| rules.with_file(&file.base, &file.text))
    }

    /// Adds a rule file whose patterns are relative to `base`.
    pub fn with_file(self, base: &Path, text: &[u8]) -> Self {
        if gitignore::lines(text).all(|(_, line)| gitignore::is_blank(line)) {
            return self;
        }
        Self(Some(Arc::new(Layer {
            base: base.to_path_buf(),
            text: text.into(),
            patterns: OnceLock::new(),
            above: self,
        })))
    }

    /// Returns the rules that apply in `directory`, given those that reach it from above. `has_git` is whether
    /// the directory contains `.git`, and `gitignore` is the text of its rule file.
    pub fn enter(&self, directory: &Path, has_git: bool, gitignore: Option<Vec<u8>>) -> Self {
        // The rules of an outer repository do not apply in an inner one.
        let is_repository = has_git && repository(directory).is_some();
        let rules = if is_repository {
            Self::default()
        } else {
            self.clone()
        };
        rules.with_files(&files_of(directory, has_git, gitignore))
    }

    /// Returns a matcher for the entries of `directory`.
    pub fn within(&self, directory: &Path) -> DirMatcher<'_> {
        let mut layers = Vec::new();
        let mut next = self.0.as_ref();
        while let Some(layer) = next {
            if let Ok(below) = directory.strip_prefix(&layer.base) {
                layers.push((below.to_path_buf(), &**layer));
            }
            next = layer.above.0.as_ref();
        }
        DirMatcher(layers)
    }
}

/// Matches the entries of one directory. Holds the layers, the deepest first, each with the path of the directory
/// below the layer's base.
pub struct DirMatcher<'a>(Vec<(PathBuf, &'a Layer)>);

impl DirMatcher<'_> {
    /// Returns whether the entry `name` is ignored.
    pub fn ignores(&mut self, name: &OsStr, is_dir: bool) -> bool {
        let matched = self.0.iter_mut().find_map(|(path, layer)| {
            path.push(name);
            let matched = layer.patterns().last_match(&bytes_of(path), is_dir);
            path.pop();
            (!matched.is_none()).then_some(matched)
        });
        matches!(matched, Some(Match::Ignore(_)))
    }
}

/// Reads the rule files that reach `directory` from above, the deepest last. They start at the top of its
/// repository (at `root` where there is none), or below the deepest ignored directory on the way.
pub fn files_above(root: &Path, directory: &Path) -> Vec<IgnoreFile> {
    let top = directory
        .ancestors()
        .find(|above| repository(above).is_some())
        .unwrap_or(root);
    let Ok(below) = directory.strip_prefix(top) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut rules = IgnoreRules::default();
    let mut above = top.to_path_buf();
    for name in below {
        let gitignore = Dir::open_no_symlinks(&above)
            .ok()
            .and_then(|dir| read_in(&dir));
        let own = files_of(&above, above == top, gitignore);
        rules = rules.with_files(&own);
        files.extend(own);
        if rules.within(&above).ignores(name, true) {
            rules = IgnoreRules::default();
            files.clear();
        }
        above.push(name);
    }
    files
}

/// Reads the `.gitignore` of a directory. Like git, this does not follow a symlink, and treats an unreadable file as
/// missing.
pub fn read_in(dir: &Dir) -> Option<Vec<u8>> {
    let file = dir.open(FILE_NAME.as_ref(), Access::Read).ok()?;
    read_regular(file, MAX_BYTES)
}

/// Returns the rule files of one directory. The last one takes precedence.
fn files_of(directory: &Path, has_git: bool, gitignore: Option<Vec<u8>>) -> Vec<IgnoreFile> {
    let excludes = has_git.then(|| excludes_of(directory)).flatten();
    [excludes, gitignore]
        .into_iter()
        .flatten()
        .map(|text| IgnoreFile {
            base: directory.to_path_buf(),
            text,
        })
        .collect()
}

/// Reads `info/exclude` of the repository whose work tree is `directory`; empty if that file is missing. Returns
/// `None` if `directory` is not a work tree.
pub fn excludes_of(directory: &Path) -> Option<Vec<u8>> {
    let file = repository(directory)?.join("info/exclude");
    let text = open(&file).ok();
    let text = text.and_then(|file| read_regular(file, MAX_BYTES));
    Some(text.unwrap_or_default())
}

/// The repository of a work tree.
pub struct WorkTree {
    /// Its own git directory.
    pub git: PathBuf,
    /// The git directory that all its work trees share, with `config` and `info/exclude`.
    pub common: PathBuf,
}

impl WorkTree {
    /// Returns the repository of the work tree `top`. Returns `None` if `top` is not a work tree.
    ///
    /// # Errors
    /// The reason, if it is one and its repository cannot be used, such as that of a work tree in a container.
    pub fn of(top: &Path) -> Option<Result<Self, String>> {
        let dot_git = top.join(".git");
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => "its repository is missing".to_owned(),
            _ => format!("its repository cannot be opened: {error}"),
        };
        let found = match fs::metadata(&dot_git) {
            Ok(found) => found,
            Err(error) => {
                let exists = fs::symlink_metadata(&dot_git).is_ok();
                return exists.then(|| Err(failed(error)));
            }
        };
        let is_pointer = !found.is_dir();
        let git = if is_pointer {
            // In a worktree or a submodule, `.git` is a file that names the directory.
            top.join(read_pointer(&dot_git, "gitdir:")?)
        } else {
            dot_git
        };
        match fs::symlink_metadata(git.join("HEAD")) {
            Ok(_) => {}
            Err(error) if !is_pointer && error.kind() == io::ErrorKind::NotFound => {
                let has_index = fs::symlink_metadata(git.join("index")).is_ok();
                return has_index.then(|| Err("its repository has no HEAD".to_owned()));
            }
            Err(error) => return Some(Err(failed(error))),
        }
        let common = match read_pointer(&git.join("commondir"), "") {
            Some(common) => git.join(common),
            None => git.clone(),
        };
        Some(Ok(Self { git, common }))
    }
}

/// Returns the git directory that contains `info/exclude` of the work tree `top`.
fn repository(top: &Path) -> Option<PathBuf> {
    Some(WorkTree::of(top)?.ok()?.common)
}

/// Reads the path in a one-line file, after `label`.
fn read_pointer(file: &Path, label: &str) -> Option<PathBuf> {
    let text = read_regular(open(file).ok()?, limits::MAX_PATH_BYTES as u64)?;
    let text = String::from_utf8(text).ok()?;
    let path = text.strip_prefix(label)?.trim();
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// Reads a regular file. Returns `None` for anything else, and for a file over the limit.
fn read_regular(file: File, limit: u64) -> Option<Vec<u8>> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a file of git without blocking if it is a named pipe.
///
/// # Errors
/// That of the system call.
#[cfg(unix)]
pub fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = fs::OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    sightline_base::fs::retry_while_leased(|| options.open(path))
}

/// Opens a file of git.
///
/// # Errors
/// That of the system call.
#[cfg(not(unix))]
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
