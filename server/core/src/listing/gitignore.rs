//! `.gitignore` as git applies it, without git: works outside repositories too.
//!
//! The rules in force in a directory are a chain of layers, the deepest first:
//! its own `.gitignore`, those of the directories above it up to the top of the
//! repository (of the workspace root where there is no repository), and at the
//! end the repository's `info/exclude`. The first layer with a matching pattern
//! decides, in a layer the last one. The user's global excludes are not read:
//! a listing does not depend on whose home directory it is made in.
//!
//! An ignored directory is not descended, so nothing below it needs judging.
//! What is listed on purpose is never ignored: below an ignored directory the
//! rules from above it have no say.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    access::pattern::{Case, PatternSet, bytes_of},
    limits,
};

const FILE_NAME: &str = ".gitignore";

/// What a directory holds that changes the rules.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    /// Something called `.git`.
    pub(super) git: bool,
    /// A regular file `.gitignore`.
    pub(super) gitignore: bool,
}

/// The rules in force in a directory.
#[derive(Clone, Default)]
pub(super) struct Rules(Option<Arc<Layer>>);

struct Layer {
    /// The directory the patterns are relative to.
    base: PathBuf,
    patterns: PatternSet,
    above: Rules,
}

impl Rules {
    /// The rules that reach `directory` from above. Both paths are canonical,
    /// and `directory` is `root` or below it.
    pub(super) fn above(root: &Path, directory: &Path) -> Self {
        let top = directory
            .ancestors()
            .find(|above| repository(above).is_some())
            .unwrap_or(root);
        let Ok(below) = directory.strip_prefix(top) else {
            return Self::default();
        };
        let mut rules = Self::default();
        let mut above = top.to_path_buf();
        for name in below {
            let marks = Marks {
                git: above == top,
                gitignore: true,
            };
            rules = rules.enter(&above, marks);
            if rules.within(&above).ignores(name, true) {
                rules = Self::default();
            }
            above.push(name);
        }
        rules
    }

    /// The rules in force in `directory`, given those that reach it from above.
    pub(super) fn enter(&self, directory: &Path, marks: Marks) -> Self {
        let mut rules = self.clone();
        if marks.git
            && let Some(git) = repository(directory)
        {
            // A repository inside another one: the outer rules end here.
            rules = Self::default().with(directory, &git.join("info/exclude"), true);
        }
        if marks.gitignore {
            rules = rules.with(directory, &directory.join(FILE_NAME), false);
        }
        rules
    }

    fn with(self, base: &Path, file: &Path, follow_link: bool) -> Self {
        let text = read_regular(file, limits::MAX_RULE_FILE_BYTES, follow_link);
        let Some(patterns) = text.as_deref().and_then(compile) else {
            return self;
        };
        Self(Some(Arc::new(Layer {
            base: base.to_path_buf(),
            patterns,
            above: self,
        })))
    }

    /// These rules, ready to judge the entries of `directory`.
    pub(super) fn within(&self, directory: &Path) -> Scope<'_> {
        let mut layers = Vec::new();
        let mut next = self.0.as_ref();
        while let Some(layer) = next {
            if let Ok(below) = directory.strip_prefix(&layer.base) {
                layers.push((below.to_path_buf(), &layer.patterns));
            }
            next = layer.above.0.as_ref();
        }
        Scope(layers)
    }
}

/// The layers that judge one directory, the deepest first, each with the
/// directory's path below the layer's base.
pub(super) struct Scope<'a>(Vec<(PathBuf, &'a PatternSet)>);

impl Scope<'_> {
    /// Is the entry `name` of this directory ignored?
    pub(super) fn ignores(&mut self, name: &OsStr, is_dir: bool) -> bool {
        for (path, patterns) in &mut self.0 {
            path.push(name);
            let verdict = decide(patterns, path, is_dir);
            path.pop();
            if let Some(ignored) = verdict {
                return ignored;
            }
        }
        false
    }
}

/// Compiles a rule file; `None` when it holds no pattern.
fn compile(text: &[u8]) -> Option<PatternSet> {
    let mut patterns = PatternSet::new(Case::Sensitive);
    patterns.add_text(FILE_NAME, text);
    (!patterns.is_empty()).then_some(patterns)
}

/// What the patterns say about a path below their base: ignored, expressly not
/// ignored, or nothing.
fn decide(patterns: &PatternSet, path: &Path, is_dir: bool) -> Option<bool> {
    let rule = patterns.last_match(&bytes_of(path), is_dir)?;
    Some(!rule.negated)
}

/// The git directory that holds `info/exclude` of the repository whose work
/// tree begins at `top`; `None` when none begins there.
fn repository(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if fs::metadata(&git).ok()?.is_dir() {
        return is_git_directory(&git).then_some(git);
    }
    // A worktree or a submodule: a file that names the directory.
    let git = top.join(pointer(&git, "gitdir:")?);
    if !is_git_directory(&git) {
        return None;
    }
    match pointer(&git.join("commondir"), "") {
        Some(common) => Some(git.join(common)),
        None => Some(git),
    }
}

fn is_git_directory(path: &Path) -> bool {
    fs::symlink_metadata(path.join("HEAD")).is_ok()
}

/// The path in a one-line file, after `label`.
fn pointer(file: &Path, label: &str) -> Option<PathBuf> {
    let text = read_regular(file, limits::MAX_PATH_BYTES as u64, true)?;
    let text = String::from_utf8(text).ok()?;
    let path = text.strip_prefix(label)?.trim();
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// The bytes of a regular file; `None` for anything else, and for a file over
/// the limit. Never waits: opening a named pipe would.
fn read_regular(path: &Path, limit: u64, follow_link: bool) -> Option<Vec<u8>> {
    let file = open(path, follow_link)?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(unix)]
fn open(path: &Path, follow_link: bool) -> Option<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;

    let mut flags = OFlags::NONBLOCK;
    if !follow_link {
        flags |= OFlags::NOFOLLOW;
    }
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()
}

#[cfg(not(unix))]
fn open(path: &Path, follow_link: bool) -> Option<File> {
    if !follow_link && fs::symlink_metadata(path).ok()?.is_symlink() {
        return None;
    }
    File::open(path).ok()
}
