//! What a path leads to when links are followed, step by step.
//!
//! The system's own resolution tells only where a path ends. Here every name
//! passed on the way is judged too, dangling links are followed as far as they
//! go, and what does not exist yet is placed where it would be created.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    path::{Component, Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{AccessView, Denial, through_link};
use crate::path::AbsPath;

/// Links followed for one path; Linux stops there too.
const MAX_LINKS: usize = 40;
/// Names gone through for one path, those of links included.
const MAX_STEPS: usize = 8 * 1024;
/// Folders remembered by one view, and the longest path remembered.
const MEMO_FOLDERS: usize = 16 * 1024;
const MEMO_PATH_BYTES: usize = 1024;
/// Entries asked for one by one before their folder is read, and entries read
/// before that is given up.
const ASKED_OFTEN: usize = 6;
const MAX_READ_ENTRIES: usize = 4096;

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    Folder,
    Other,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    /// Without links.
    pub(super) real: PathBuf,
    pub(super) kind: Kind,
    /// Was a link followed on the way?
    pub(super) linked: bool,
    /// How many were.
    links: usize,
}

/// Folders a view has resolved, by their absolute path.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<HashMap<OsString, Step>>);

type Step = Result<Arc<Folder>, Arc<Denial>>;

/// A folder of a path, and what in it is no link once it was asked for often.
#[derive(Debug)]
struct Folder {
    at: Followed,
    asked: AtomicUsize,
    plain: OnceLock<Option<HashSet<OsString>>>,
}

impl Folder {
    fn new(at: Followed) -> Self {
        Self {
            at,
            asked: AtomicUsize::new(0),
            plain: OnceLock::new(),
        }
    }

    /// Is the entry of this name there and no link, for sure? Reading a folder
    /// once is cheaper than asking for each of its entries. Only the exact name
    /// counts: how a file system folds names is its own affair.
    fn has_plain(&self, name: &OsStr) -> bool {
        if self.asked.fetch_add(1, Ordering::Relaxed) < ASKED_OFTEN {
            return false;
        }
        let plain = self.plain.get_or_init(|| plain_in(&self.at.real));
        plain.as_ref().is_some_and(|names| names.contains(name))
    }
}

/// The names in a folder that are no links; `None` when it is too large or its
/// entries cannot be looked at.
fn plain_in(folder: &Path) -> Option<HashSet<OsString>> {
    // Who may list a folder need not be allowed to look at what is in it.
    fs::symlink_metadata(folder.join(".")).ok()?;
    let mut plain = Vec::new();
    for (count, entry) in fs::read_dir(folder).ok()?.enumerate() {
        let entry = entry.ok()?;
        if count >= MAX_READ_ENTRIES {
            return None;
        }
        if !entry.file_type().ok()?.is_symlink() {
            plain.push(entry.file_name());
        }
    }
    Some(plain.into_iter().collect())
}

impl AccessView {
    /// Is there no link in an absolute path? The common case, and told without
    /// building the path it leads to.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub(super) fn is_plain(&self, path: &AbsPath) -> Result<bool, Denial> {
        // What Windows calls a file by, only the whole way tells.
        if cfg!(windows) {
            return Ok(false);
        }
        let path = path.as_path();
        let Some(above) = path.parent() else {
            return Ok(true);
        };
        let above = self
            .folder(above)
            .map_err(|denial| denial.as_ref().clone())?;
        if above.at.linked {
            return Ok(false);
        }
        if above.at.kind != Kind::Folder {
            return Ok(true);
        }
        if path.file_name().is_some_and(|name| above.has_plain(name)) {
            return Ok(true);
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(!metadata.is_symlink()),
            Err(error) if is_missing(&error) => Ok(true),
            Err(error) => Err(cannot_follow(&error.to_string())),
        }
    }

    /// Follows every link of an absolute path.
    ///
    /// # Errors
    /// A denial when a name on the way is denied, or when the way cannot be seen.
    pub(super) fn follow(&self, path: &AbsPath) -> Result<Followed, Denial> {
        let path = path.as_path();
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Followed {
                real: path.to_path_buf(),
                kind: Kind::Folder,
                linked: false,
                links: 0,
            });
        };
        if let Some(known) = self.known(path) {
            return known
                .map(|folder| folder.at.clone())
                .map_err(|denial| denial.as_ref().clone());
        }
        let above = self
            .folder(above)
            .map_err(|denial| denial.as_ref().clone())?;
        self.walk(&above.at, VecDeque::from([name.to_os_string()]))
    }

    /// Follows a path as the kernel would, where `..` behind a link is the
    /// parent of what the link leads to.
    pub(super) fn follow_physically(&self, path: &Path) -> Result<Followed, Denial> {
        let start = Followed {
            real: path.ancestors().last().unwrap_or(path).to_path_buf(),
            kind: Kind::Folder,
            linked: true,
            links: 0,
        };
        self.walk(&start, steps(path).collect())
    }

    /// A folder, from memory or by resolving what of it is not yet known.
    fn folder(&self, path: &Path) -> Step {
        let mut todo = Vec::new();
        let mut at = path;
        let mut known = loop {
            if let Some(known) = self.known(at) {
                break known;
            }
            match (at.parent(), at.file_name()) {
                (Some(parent), Some(_)) => {
                    todo.push(at);
                    at = parent;
                }
                _ => {
                    break Ok(Arc::new(Folder::new(Followed {
                        real: at.to_path_buf(),
                        kind: Kind::Folder,
                        linked: false,
                        links: 0,
                    })));
                }
            }
        };
        while let (Some(below), Ok(above)) = (todo.pop(), &known) {
            let name = below.file_name().unwrap_or_default();
            if above.at.kind == Kind::Missing {
                // So is everything below, without looking.
                let mut missing = above.at.clone();
                missing.real.push(name);
                missing
                    .real
                    .extend(path.strip_prefix(below).unwrap_or(Path::new("")));
                known = Ok(Arc::new(Folder::new(missing)));
                self.remember(path, &known);
                break;
            }
            known = self
                .walk(&above.at, VecDeque::from([name.to_os_string()]))
                .map(|at| Arc::new(Folder::new(at)))
                .map_err(Arc::new);
            self.remember(below, &known);
        }
        known
    }

    /// A folder resolved before. The roots are where they are: links that lead
    /// there are not the business of their rules.
    fn known(&self, path: &Path) -> Option<Step> {
        let memo = self.links.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = memo.get(path.as_os_str()) {
            return Some(step.clone());
        }
        drop(memo);
        let area = self
            .areas
            .iter()
            .find(|area| area.path().as_path() == path)?;
        let root = Ok(Arc::new(Folder::new(Followed {
            real: area.real().as_path().to_path_buf(),
            kind: Kind::Folder,
            linked: area.path() != area.real(),
            links: 0,
        })));
        self.remember(path, &root);
        Some(root)
    }

    fn remember(&self, path: &Path, step: &Step) {
        if path.as_os_str().len() > MEMO_PATH_BYTES {
            return;
        }
        let mut memo = self.links.0.lock().unwrap_or_else(PoisonError::into_inner);
        if memo.len() >= MEMO_FOLDERS {
            memo.clear();
        }
        memo.insert(path.as_os_str().to_owned(), step.clone());
    }

    fn walk(&self, from: &Followed, mut ahead: VecDeque<OsString>) -> Result<Followed, Denial> {
        let mut at = from.clone();
        let mut steps_left = MAX_STEPS;
        while let Some(name) = ahead.pop_front() {
            if steps_left == 0 {
                return Err(cannot_follow("it takes too many steps"));
            }
            steps_left -= 1;
            if name == ".." {
                at.real.pop();
                at.kind = Kind::Folder;
                continue;
            }
            if at.kind == Kind::Missing {
                at.real.push(name);
                continue;
            }
            let entry = at.real.join(&name);
            let metadata = match fs::symlink_metadata(&entry) {
                Ok(metadata) => metadata,
                Err(error) if is_missing(&error) => {
                    at.real = entry;
                    at.kind = Kind::Missing;
                    continue;
                }
                Err(error) => return Err(cannot_follow(&error.to_string())),
            };
            if !metadata.is_symlink() {
                at.real = entry;
                at.kind = if metadata.is_dir() {
                    Kind::Folder
                } else {
                    Kind::Other
                };
                continue;
            }
            at.links += 1;
            if at.links > MAX_LINKS {
                return Err(cannot_follow("too many links"));
            }
            at.linked = true;
            self.judge_passed(&entry, &ahead)?;
            let target =
                fs::read_link(&entry).map_err(|error| cannot_follow(&error.to_string()))?;
            if target.is_absolute() {
                at.real = target.ancestors().last().unwrap_or(&target).to_path_buf();
            }
            at.kind = Kind::Folder;
            for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(step);
            }
        }
        // Windows knows a file by short names, too.
        if cfg!(windows)
            && let Ok(real) = fs::canonicalize(&at.real)
        {
            at.linked |= real != at.real;
            at.real = real;
        }
        Ok(at)
    }

    /// Judges a link that is passed, under its own name.
    fn judge_passed(&self, link: &Path, ahead: &VecDeque<OsString>) -> Result<(), Denial> {
        let whole: PathBuf = std::iter::once(link.as_os_str())
            .chain(ahead.iter().map(OsString::as_os_str))
            .collect();
        for path in [link, &whole] {
            let denial = AbsPath::new(path)
                .and_then(|path| self.denial_of(&path, || path.as_path().is_dir()));
            if let Some(denial) = denial {
                return Err(through_link(denial));
            }
        }
        Ok(())
    }
}

/// The names of a path in order, with `..` but without its root.
fn steps(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn cannot_follow(why: &str) -> Denial {
    Denial {
        reason: format!("what it leads to cannot be found out ({why})"),
        rule: None,
    }
}

/// What tells a folder from every other, whatever its path is.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
