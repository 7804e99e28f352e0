//! What a path leads to when links are followed, step by step.
//!
//! The system's own resolution tells only where a path ends. Here every name
//! passed on the way is judged too, dangling links are followed as far as they
//! go, and what does not exist yet is placed where it would be created.

use std::{
    collections::{HashMap, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    ops::Range,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;

use foldhash::quality::RandomState;

use super::{AccessView, Denial, through_link};
use crate::path::AbsPath;

/// Links followed for one path; Linux stops there too.
const MAX_LINKS: usize = 40;
/// Names gone through for one path, those of links included.
const MAX_STEPS: usize = 8 * 1024;
/// Folders remembered by one view, and the longest path remembered.
const MEMO_FOLDERS: usize = 16 * 1024;
const MEMO_PATH_BYTES: usize = 1024;
/// Entries of a folder that may be read for each one that was asked for: reading
/// one costs about a twentieth of looking at it.
const READ_PER_ASKED: usize = 32;
/// Larger folders are not read.
const MAX_READ_ENTRIES: usize = 4096;
/// Bytes of a folder read at once.
#[cfg(target_os = "linux")]
const READ_BYTES: usize = 16 * 1024;

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
pub(super) struct Links {
    folders: RwLock<HashMap<OsString, Step, RandomState>>,
}

type Step = Result<Arc<Folder>, Arc<Denial>>;

/// A folder of a path, and what in it is no link once it was asked for often.
#[derive(Debug)]
struct Folder {
    at: Followed,
    entries: Mutex<Entries>,
}

/// What is known of a folder's entries.
#[derive(Debug)]
enum Entries {
    /// So many were asked for; from `read_at` on it pays to read the folder.
    Asked { count: usize, read_at: usize },
    /// Those that are no links.
    Plain(Names),
}

impl Folder {
    /// A folder whose entries nobody asked for yet. A single one is looked at.
    fn unread(at: Followed) -> Arc<Self> {
        let entries = Entries::Asked {
            count: 0,
            read_at: 2,
        };
        Arc::new(Self {
            at,
            entries: Mutex::new(entries),
        })
    }

    /// The kind of the entry of this name, when it is there and no link, for
    /// sure. Reading a folder once is cheaper than looking at each of its
    /// entries. Only the exact name counts: how a file system folds names is its
    /// own affair. With this one so many are asked for next.
    fn plain(&self, name: &OsStr, asked: usize) -> Option<Kind> {
        // What Windows calls a file by, only the whole way tells.
        if cfg!(windows) || self.at.kind != Kind::Folder {
            return None;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entries::Asked { count, read_at } = &mut *entries {
            *count += 1;
            let asked = count.saturating_add(asked.saturating_sub(1));
            if asked < *read_at {
                return None;
            }
            *read_at = asked.saturating_mul(2);
            let most = asked.saturating_mul(READ_PER_ASKED).min(MAX_READ_ENTRIES);
            *entries = Entries::Plain(plain_in(&self.at.real, most)?);
        }
        match &mut *entries {
            Entries::Plain(names) => names.kind(name.as_encoded_bytes()),
            Entries::Asked { .. } => None,
        }
    }
}

/// Names of one folder with what they are, without an allocation for each.
#[derive(Debug, Default)]
struct Names {
    text: Vec<u8>,
    /// Where each stands, in the order of their bytes once all are there.
    places: Vec<(Range<usize>, Kind)>,
    /// What follows the one found last: who asks for many often asks in this order.
    next: usize,
}

impl Names {
    fn push(&mut self, name: &[u8], kind: Kind) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.places.push((start..self.text.len(), kind));
    }

    fn sort(&mut self) {
        let text = &self.text;
        let name = |place: &Range<usize>| &text[place.clone()];
        self.places
            .sort_unstable_by(|(a, _), (b, _)| name(a).cmp(name(b)));
    }

    fn kind(&mut self, name: &[u8]) -> Option<Kind> {
        let order = |(place, _): &(Range<usize>, Kind)| self.text[place.clone()].cmp(name);
        let at = match self.places.get(self.next) {
            Some(next) if order(next).is_eq() => self.next,
            _ => self.places.binary_search_by(order).ok()?,
        };
        self.next = at + 1;
        Some(self.places[at].1)
    }
}

/// The names in a folder that are no links, for sure; `None` when there are more
/// than `most` entries, or they cannot be looked at: who may list a folder need
/// not be allowed to look at what is in it.
#[cfg(target_os = "linux")]
fn plain_in(folder: &Path, most: usize) -> Option<Names> {
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, open, statat};

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty()).ok()?;
    statat(&folder, c".", AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
    let mut entries = RawDir::new(folder, &mut buffer);
    let mut plain = Names::default();
    let mut count = 0;
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        count += 1;
        if count > most {
            return None;
        }
        match entry.file_type() {
            FileType::Symlink | FileType::Unknown => {}
            FileType::Directory => plain.push(name, Kind::Folder),
            _ => plain.push(name, Kind::Other),
        }
    }
    plain.sort();
    Some(plain)
}

/// The names in a folder that are no links, for sure; `None` when there are more
/// than `most` entries, or they cannot be looked at: who may list a folder need
/// not be allowed to look at what is in it.
#[cfg(not(target_os = "linux"))]
fn plain_in(folder: &Path, most: usize) -> Option<Names> {
    fs::symlink_metadata(folder.join(".")).ok()?;
    let mut plain = Names::default();
    for (count, entry) in fs::read_dir(folder).ok()?.enumerate() {
        let entry = entry.ok()?;
        if count >= most {
            return None;
        }
        let kind = match entry.file_type().ok()? {
            kind if kind.is_symlink() => continue,
            kind if kind.is_dir() => Kind::Folder,
            _ => Kind::Other,
        };
        plain.push(entry.file_name().as_encoded_bytes(), kind);
    }
    plain.sort();
    Some(plain)
}

impl AccessView {
    /// Is there no link in an absolute path? The common case, and told without
    /// building the path it leads to. With it so many of its folder are asked for
    /// next.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub(super) fn is_plain(&self, path: &AbsPath, asked: usize) -> Result<bool, Denial> {
        // What Windows calls a file by, only the whole way tells.
        if cfg!(windows) {
            return Ok(false);
        }
        let Some((above, name)) = path.folder_and_name() else {
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
        if above.plain(name, asked).is_some() {
            return Ok(true);
        }
        match fs::symlink_metadata(path.as_path()) {
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
        let Some((above, name)) = path.folder_and_name() else {
            return Ok(Followed {
                real: path.as_path().to_path_buf(),
                kind: Kind::Folder,
                linked: false,
                links: 0,
            });
        };
        if let Some(known) = self.known(path.as_path()) {
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
                    break Ok(Folder::unread(Followed {
                        real: at.to_path_buf(),
                        kind: Kind::Folder,
                        linked: false,
                        links: 0,
                    }));
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
                known = Ok(Folder::unread(missing));
                self.remember(path, &known);
                break;
            }
            known = match above.plain(name, 1) {
                Some(kind) => Ok(Followed {
                    real: above.at.real.join(name),
                    kind,
                    ..above.at
                }),
                None => self.walk(&above.at, VecDeque::from([name.to_os_string()])),
            }
            .map(Folder::unread)
            .map_err(Arc::new);
            self.remember(below, &known);
        }
        known
    }

    /// A folder resolved before. The roots are where they are: links that lead
    /// there are not the business of their rules.
    fn known(&self, path: &Path) -> Option<Step> {
        let memo = self
            .links
            .folders
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = memo.get(path.as_os_str()) {
            return Some(step.clone());
        }
        drop(memo);
        let area = self
            .areas
            .iter()
            .find(|area| area.path().as_path() == path)?;
        let root = Ok(Folder::unread(Followed {
            real: area.real().as_path().to_path_buf(),
            kind: Kind::Folder,
            linked: area.path() != area.real(),
            links: 0,
        }));
        self.remember(path, &root);
        Some(root)
    }

    fn remember(&self, path: &Path, step: &Step) {
        if path.as_os_str().len() > MEMO_PATH_BYTES {
            return;
        }
        let mut memo = self
            .links
            .folders
            .write()
            .unwrap_or_else(PoisonError::into_inner);
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
