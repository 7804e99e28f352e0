//! `.gitignore` as git applies it, without git: works outside repositories too.
//!
//! The rules in force in a directory are a chain of layers, the deepest first:
//! its own `.gitignore`, those of the directories above it up to the top of the
//! repository (of the workspace root where there is no repository), and at the
//! end the repository's `info/exclude`. The first layer with a matching pattern
//! decides, in a layer the last one. The user's global excludes are not read:
//! what is listed or captured does not depend on whose home directory it is
//! done in. Git never applies them to what it tracks, which only its index tells;
//! here that is judged like everything else.
//!
//! An ignored directory is not descended, so nothing below it needs judging.
//! What is listed on purpose is never ignored: below an ignored directory the
//! rules from above it have no say.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use ignore::Match;

use crate::{
    access::gitignore::{self, PatternSet, bytes_of},
    fs::dir::{Access, Dir},
    limits,
};

/// The rule file of a directory.
pub(crate) const FILE_NAME: &str = ".gitignore";
/// A larger rule file is none.
pub(crate) const MAX_BYTES: u64 = limits::MAX_GITIGNORE_BYTES;

/// The rules in force in a directory.
#[derive(Clone, Default)]
pub(crate) struct Rules(Option<Arc<Layer>>);

/// A rule file, and the directory its patterns are relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleText {
    pub(crate) base: PathBuf,
    pub(crate) text: Vec<u8>,
}

struct Layer {
    /// The directory the patterns are relative to.
    base: PathBuf,
    text: Box<[u8]>,
    /// Compiled when first used: most rule files of a project decide about no path that is looked at again.
    patterns: OnceLock<PatternSet>,
    above: Rules,
}

impl Layer {
    fn patterns(&self) -> &PatternSet {
        self.patterns
            .get_or_init(|| PatternSet::gitignore(FILE_NAME, &self.text))
    }
}

impl Rules {
    /// The rules that reach `directory` from above. Both paths are canonical,
    /// and `directory` is `root` or below it.
    pub(crate) fn above(root: &Path, directory: &Path) -> Self {
        Self::default().with_texts(&texts_above(root, directory))
    }

    /// These rules, and then those texts, the deepest last.
    pub(crate) fn with_texts(self, texts: &[RuleText]) -> Self {
        texts
            .iter()
            .fold(self, |rules, text| rules.with_text(&text.base, &text.text))
    }

    /// These rules, and then the patterns of `text`, relative to `base`.
    pub(crate) fn with_text(self, base: &Path, text: &[u8]) -> Self {
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

    /// The rules in force in `directory`, given those that reach it from above:
    /// does it hold something called `.git`, and what does its rule file say?
    pub(crate) fn enter(&self, directory: &Path, git: bool, gitignore: Option<Vec<u8>>) -> Self {
        // A repository inside another one: the outer rules end here.
        let begins = git && repository(directory).is_some();
        let rules = if begins {
            Self::default()
        } else {
            self.clone()
        };
        rules.with_texts(&texts_of(directory, git, gitignore))
    }

    /// These rules, ready to judge the entries of `directory`.
    pub(crate) fn within(&self, directory: &Path) -> Scope<'_> {
        let mut layers = Vec::new();
        let mut next = self.0.as_ref();
        while let Some(layer) = next {
            if let Ok(below) = directory.strip_prefix(&layer.base) {
                layers.push((below.to_path_buf(), &**layer));
            }
            next = layer.above.0.as_ref();
        }
        Scope(layers)
    }
}

/// The layers that judge one directory, the deepest first, each with the
/// directory's path below the layer's base.
pub(crate) struct Scope<'a>(Vec<(PathBuf, &'a Layer)>);

impl Scope<'_> {
    /// Is the entry `name` of this directory ignored?
    pub(crate) fn ignores(&mut self, name: &OsStr, is_dir: bool) -> bool {
        let matched = self.0.iter_mut().find_map(|(path, layer)| {
            path.push(name);
            let matched = layer.patterns().last_match(&bytes_of(path), is_dir);
            path.pop();
            (!matched.is_none()).then_some(matched)
        });
        matches!(matched, Some(Match::Ignore(_)))
    }
}

/// The rule files that reach `directory` from above, the deepest last: from the
/// top of its repository (of `root` where there is none), or from below the
/// deepest directory on the way that is ignored.
pub(crate) fn texts_above(root: &Path, directory: &Path) -> Vec<RuleText> {
    let top = directory
        .ancestors()
        .find(|above| repository(above).is_some())
        .unwrap_or(root);
    let Ok(below) = directory.strip_prefix(top) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    let mut rules = Rules::default();
    let mut above = top.to_path_buf();
    for name in below {
        let dir = Dir::without_links(&above).ok();
        let gitignore = dir.and_then(|dir| text_in(&dir));
        let own = texts_of(&above, above == top, gitignore);
        rules = rules.with_texts(&own);
        texts.extend(own);
        if rules.within(&above).ignores(name, true) {
            rules = Rules::default();
            texts.clear();
        }
        above.push(name);
    }
    texts
}

/// What the rule file of a directory says; `None` where it has none. Git does not
/// follow a link here.
pub(crate) fn text_in(dir: &Dir) -> Option<Vec<u8>> {
    let file = dir.open(FILE_NAME.as_ref(), Access::Read).ok()?;
    read_regular(file, MAX_BYTES)
}

/// The rule files of one directory, the one that decides last.
fn texts_of(directory: &Path, git: bool, gitignore: Option<Vec<u8>>) -> Vec<RuleText> {
    let excludes = git.then(|| excludes_of(directory)).flatten();
    [excludes, gitignore]
        .into_iter()
        .flatten()
        .map(|text| RuleText {
            base: directory.to_path_buf(),
            text,
        })
        .collect()
}

/// What `info/exclude` of the repository that begins at `directory` says,
/// nothing where it has none; `None` when none begins there.
pub(crate) fn excludes_of(directory: &Path) -> Option<Vec<u8>> {
    let file = repository(directory)?.join("info/exclude");
    let text = open(&file).and_then(|file| read_regular(file, MAX_BYTES));
    Some(text.unwrap_or_default())
}

/// Where the repository whose work tree begins at `top` has its index, which
/// need not be there; `None` when none begins there.
pub(crate) fn index_of(top: &Path) -> Option<PathBuf> {
    Some(git_directory(top)?.join("index"))
}

/// The git directory that holds `info/exclude` of the repository whose work
/// tree begins at `top`; `None` when none begins there.
fn repository(top: &Path) -> Option<PathBuf> {
    let git = git_directory(top)?;
    match pointer(&git.join("commondir"), "") {
        Some(common) => Some(git.join(common)),
        None => Some(git),
    }
}

/// The git directory of the work tree that begins at `top`, its own where
/// several share a repository.
fn git_directory(top: &Path) -> Option<PathBuf> {
    let mut git = top.join(".git");
    if !fs::metadata(&git).ok()?.is_dir() {
        // A worktree or a submodule: a file that names the directory.
        git = top.join(pointer(&git, "gitdir:")?);
    }
    is_git_directory(&git).then_some(git)
}

fn is_git_directory(path: &Path) -> bool {
    fs::symlink_metadata(path.join("HEAD")).is_ok()
}

/// The path in a one-line file, after `label`.
fn pointer(file: &Path, label: &str) -> Option<PathBuf> {
    let text = read_regular(open(file)?, limits::MAX_PATH_BYTES as u64)?;
    let text = String::from_utf8(text).ok()?;
    let path = text.strip_prefix(label)?.trim();
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// The bytes of a regular file; `None` for anything else, and for a file over
/// the limit.
fn read_regular(file: File, limit: u64) -> Option<Vec<u8>> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a file of git; never waits, as opening a named pipe would.
#[cfg(unix)]
pub(crate) fn open(path: &Path) -> Option<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = fs::OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    crate::fs::retry_while_leased(|| options.open(path)).ok()
}

#[cfg(not(unix))]
pub(crate) fn open(path: &Path) -> Option<File> {
    File::open(path).ok()
}
