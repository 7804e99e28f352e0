//! What a path leads to when links are followed, step by step.
//!
//! The system's own resolution tells only where a path ends. Here every name
//! passed on the way is judged too, dangling links are followed as far as they
//! go, and what does not exist yet is placed where it would be created.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{AccessView, Denial, through_link};
use crate::path::AbsPath;

/// Links followed for one path; Linux stops there too.
const MAX_LINKS: usize = 40;
/// Names gone through for one path, those of links included.
const MAX_STEPS: usize = 8 * 1024;
/// Folders remembered by one view.
const MEMO_FOLDERS: usize = 16 * 1024;

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
pub(super) struct Links(Mutex<HashMap<PathBuf, Step>>);

type Step = Result<Arc<Followed>, Arc<Denial>>;

impl AccessView {
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
            return known.map_or_else(|why| Err(why.as_ref().clone()), |at| Ok((*at).clone()));
        }
        let above = self
            .folder(above)
            .map_err(|denial| denial.as_ref().clone())?;
        self.walk(&above, VecDeque::from([name.to_os_string()]))
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
                    break Ok(Arc::new(Followed {
                        real: at.to_path_buf(),
                        kind: Kind::Folder,
                        linked: false,
                        links: 0,
                    }));
                }
            }
        };
        while let (Some(below), Ok(above)) = (todo.pop(), &known) {
            if above.kind == Kind::Missing {
                // So is everything below, which is not worth remembering.
                let rest = path.strip_prefix(below).unwrap_or(Path::new(""));
                let name = below.file_name().unwrap_or_default();
                let mut missing = above.as_ref().clone();
                missing.real.push(name);
                missing.real.extend(rest);
                return Ok(Arc::new(missing));
            }
            let name = below.file_name().unwrap_or_default().to_os_string();
            known = self
                .walk(above, VecDeque::from([name]))
                .map(Arc::new)
                .map_err(Arc::new);
            let mut memo = self.links.0.lock().unwrap_or_else(PoisonError::into_inner);
            if memo.len() >= MEMO_FOLDERS {
                memo.clear();
            }
            memo.insert(below.to_path_buf(), known.clone());
        }
        known
    }

    /// A folder resolved before. The roots are where they are: links that lead
    /// there are not the business of their rules.
    fn known(&self, path: &Path) -> Option<Step> {
        let area = self.areas.iter().find(|area| area.path().as_path() == path);
        if let Some(area) = area {
            return Some(Ok(Arc::new(Followed {
                real: area.real().as_path().to_path_buf(),
                kind: Kind::Folder,
                linked: area.path() != area.real(),
                links: 0,
            })));
        }
        let memo = self.links.0.lock().unwrap_or_else(PoisonError::into_inner);
        memo.get(path).cloned()
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
