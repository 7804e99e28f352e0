//! What a path leads to when links are followed, step by step and by
//! descriptors.
//!
//! A folder is reached from the top of its area (or of the file system), each
//! name in an open folder and without following it, so exchanging a folder for a
//! link in between has no effect. A link is read, and its target is reached
//! the same way. So a [`Place`] is a name in an open folder, whose path
//! without links is known; what is opened there is what was judged.
//!
//! The system's own resolution tells only where a path ends. Here every name
//! passed on the way is kept to be judged too, dangling links are followed as far
//! as they go, and what does not exist yet is placed where it would be created.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    AccessView, Area, Denial,
    plain::{Names, plain_in},
    through_link,
};
use crate::{
    fs::dir::{Dir, Kind, is_absent},
    path::AbsPath,
};

/// Links followed for one path; Linux stops there too.
const MAX_LINKS: usize = 40;
/// Names gone through for one path, those of links included.
const MAX_STEPS: usize = 8 * 1024;
/// Entries of a folder that may be read for each one that was asked for: reading
/// one costs about a twentieth of looking at it.
const READ_PER_ASKED: usize = 32;
/// Larger folders are not read.
const MAX_READ_ENTRIES: usize = 4096;
/// Where a path leads.
#[derive(Debug)]
pub(super) struct Place {
    /// Without links.
    pub(super) real: PathBuf,
    /// `None`: nothing is there.
    pub(super) kind: Option<Kind>,
    /// Was a link followed on the way, or is it known by another path?
    pub(super) linked: bool,
    /// The folder it lies in; `None` where that is missing.
    pub(super) dir: Option<Arc<Dir>>,
    /// Its name there; `None` when it is that folder.
    pub(super) name: Option<OsString>,
    /// What it is called by each link on the way.
    passed: Vec<PathBuf>,
}

impl Place {
    pub(super) fn is_folder(&self) -> bool {
        self.kind == Some(Kind::Folder)
    }

    /// What it was called by each link on the way, and at last its path without
    /// links.
    pub(super) fn names(&self) -> impl Iterator<Item = AbsPath> {
        let names = self.passed.iter().chain([&self.real]);
        names.filter_map(|name| AbsPath::new(name))
    }
}

/// A folder on the way of a path.
#[derive(Clone, Debug)]
struct At {
    /// Without links.
    real: PathBuf,
    /// `None` when it is missing, or no folder.
    dir: Option<Arc<Dir>>,
    linked: bool,
    links: usize,
    /// What it is called by each link on the way.
    passed: Vec<PathBuf>,
}

impl At {
    fn new(real: PathBuf, dir: Option<Arc<Dir>>, linked: bool) -> Self {
        Self {
            real,
            dir,
            linked,
            links: 0,
            passed: Vec::new(),
        }
    }

    /// Some levels below, without a link on the way.
    fn below(self, path: &Path, dir: Option<Arc<Dir>>) -> Self {
        Self {
            real: self.real.join(path),
            dir,
            ..self
        }
    }

    /// The entry of this name.
    fn entry(self, name: OsString, kind: Kind) -> Place {
        Place {
            real: self.real.join(&name),
            kind: Some(kind),
            linked: self.linked,
            dir: self.dir,
            name: Some(name),
            passed: self.passed,
        }
    }

    /// The folder itself.
    fn place(self) -> Place {
        Place {
            kind: self.dir.is_some().then_some(Kind::Folder),
            real: self.real,
            linked: self.linked,
            dir: self.dir,
            name: None,
            passed: self.passed,
        }
    }
}

/// The folder asked for last, by the path it was asked for with: many paths are
/// often asked for folder by folder. It stays the folder that was reached, whatever
/// is at its path by now.
#[derive(Default)]
pub(super) struct LastFolder(Option<(PathBuf, Reached)>);

#[derive(Debug)]
enum Reached {
    /// Nothing but the whole way tells.
    ByLink,
    /// It is missing, or no folder.
    Missing,
    Open(Arc<Dir>, Entries),
}

/// What is known of a folder's entries.
#[derive(Debug)]
enum Entries {
    /// Nothing yet.
    Unread,
    /// Reading it does not pay.
    TooMany,
    /// Those that are no links.
    Plain(Names),
}

impl AccessView {
    /// Returns whether an absolute path inside an area has no link in it: the common
    /// case, decided without building the resolved path. `asked` is the number of
    /// paths of its folder that follow, this one included.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub(super) fn is_plain(
        &self,
        path: &AbsPath,
        last: &mut LastFolder,
        asked: usize,
    ) -> Result<bool, Denial> {
        // What Windows calls a file by, only the whole way tells.
        if cfg!(windows) {
            return Ok(false);
        }
        let Some((above, name)) = path.folder_and_name() else {
            return Ok(true);
        };
        if last.0.as_ref().is_none_or(|(known, _)| known != above) {
            last.0 = Some((above.to_path_buf(), self.reach(above)?));
        }
        let (dir, entries) = match &mut last.0 {
            Some((_, Reached::Open(dir, entries))) => (dir, entries),
            Some((_, Reached::Missing)) => return Ok(true),
            Some((_, Reached::ByLink)) | None => return Ok(false),
        };
        if matches!(entries, Entries::Unread) && asked > 1 {
            let most = asked.saturating_mul(READ_PER_ASKED).min(MAX_READ_ENTRIES);
            *entries = plain_in(dir, most).map_or(Entries::TooMany, Entries::Plain);
        }
        // Only the exact name counts: how a file system folds names is its own
        // affair.
        if let Entries::Plain(names) = entries
            && names.has(name.as_encoded_bytes())
        {
            return Ok(true);
        }
        match dir.look(name) {
            Ok(found) => Ok(found.is_none_or(|found| found.kind != Kind::Link)),
            Err(error) if is_absent(&error) => Ok(true),
            Err(error) => Err(cannot_follow(&error.to_string())),
        }
    }

    /// Follows every link of an absolute path.
    ///
    /// # Errors
    /// A denial when the way cannot be seen.
    pub(super) fn follow(&self, path: &AbsPath) -> Result<Place, Denial> {
        let (at, below) = self.start(path.as_path())?;
        let Some(name) = below.file_name() else {
            return Ok(at.place());
        };
        let parent = below.parent().unwrap_or(Path::new(""));
        let Some(at) = self.at_once(&at, parent)? else {
            return self.walk(at, steps(&below).collect());
        };
        self.walk(at, VecDeque::from([name.to_os_string()]))
    }

    /// Follows a path as the kernel would, where `..` behind a link is the
    /// parent of what the link leads to.
    ///
    /// # Errors
    /// A denial when a name on the way is denied, or when the way cannot be seen.
    pub(super) fn follow_physically(&self, path: &Path) -> Result<Place, Denial> {
        let mut at = top_of(path)?;
        at.linked = true;
        let place = self.walk(at, steps(path).collect())?;
        match self.passed_denial(&place) {
            Some(denial) => Err(denial),
            None => Ok(place),
        }
    }

    /// Why what was passed on the way to a place is denied, if it is.
    pub(super) fn passed_denial(&self, place: &Place) -> Option<Denial> {
        let mut passed = place.passed.iter().filter_map(|path| AbsPath::new(path));
        let denial = passed.find_map(|path| self.denial_of(&path, || place.is_folder()));
        denial.map(through_link)
    }

    /// A folder inside an area, where no link is on the way.
    fn reach(&self, path: &Path) -> Result<Reached, Denial> {
        let (at, below) = self.start(path)?;
        let reached = match at.linked {
            true => None,
            false => self.at_once(&at, &below)?,
        };
        Ok(match reached {
            None => Reached::ByLink,
            Some(At { dir: None, .. }) => Reached::Missing,
            Some(At { dir: Some(dir), .. }) => Reached::Open(dir, Entries::Unread),
        })
    }

    /// The innermost area around a path, or the top of its file system, and what
    /// of the path lies below that. Areas are where they are: links that lead
    /// there are not the business of their rules.
    fn start(&self, path: &Path) -> Result<(At, PathBuf), Denial> {
        let around = self.areas.iter().flat_map(|area| {
            let below = |base: &AbsPath| path.strip_prefix(base.as_path()).ok();
            let mut paths = area.paths.iter();
            paths.find_map(|base| Some((area, base, below(base)?)))
        });
        let innermost = around.min_by_key(|(.., below)| below.as_os_str().len());
        let Some((area, base, below)) = innermost else {
            let at = top_of(path)?;
            let below = path.strip_prefix(&at.real).unwrap_or(Path::new(""));
            return Ok((at.clone(), below.to_path_buf()));
        };
        let at = At::new(
            area.real().as_path().to_path_buf(),
            self.top_of_area(area)?,
            base != area.real(),
        );
        Ok((at, below.to_path_buf()))
    }

    /// The folder of an area, open; `None` when it is missing.
    fn top_of_area(&self, area: &Area) -> Result<Option<Arc<Dir>>, Denial> {
        let opened = area.dir.get_or_init(|| {
            let dir = Dir::without_links(area.real().as_path());
            dir.map(Arc::new).map_err(|error| error.kind())
        });
        match opened {
            Ok(dir) => Ok(Some(dir.clone())),
            Err(kind) => match io::Error::from(*kind) {
                error if is_absent(&error) => Ok(None),
                error => Err(cannot_follow(&error.to_string())),
            },
        }
    }

    /// The folder some levels below one in an area, where that can be told at
    /// once: without a link, or with nothing there.
    fn at_once(&self, at: &At, below: &Path) -> Result<Option<At>, Denial> {
        // Outside the roots, any folder may be one of them by another path.
        if !self.is_below_root(&at.real) {
            return Ok(None);
        }
        if below.as_os_str().is_empty() {
            return Ok(Some(at.clone()));
        }
        let Some(dir) = &at.dir else {
            return Ok(Some(at.clone().below(below, None)));
        };
        match dir.pass_to(below) {
            Ok(None) => Ok(None),
            Ok(Some(dir)) => Ok(Some(at.clone().below(below, Some(Arc::new(dir))))),
            Err(error) if is_absent(&error) => Ok(Some(at.clone().below(below, None))),
            Err(error) => Err(cannot_follow(&error.to_string())),
        }
    }

    /// Does a path without links lie in a root?
    fn is_below_root(&self, real: &Path) -> bool {
        let mut roots = self.areas.iter().filter(|area| area.is_root);
        roots.any(|root| {
            let mut paths = root.paths.iter();
            paths.any(|base| real.starts_with(base.as_path()))
        })
    }

    /// Goes on by these names, following links.
    fn walk(&self, from: At, mut ahead: VecDeque<OsString>) -> Result<Place, Denial> {
        let mut at = from;
        let mut steps_left = MAX_STEPS;
        while let Some(name) = ahead.pop_front() {
            if steps_left == 0 {
                return Err(cannot_follow("it takes too many steps"));
            }
            steps_left -= 1;
            if name == ".." {
                at.real.pop();
                at.dir = self.again(&at.real)?;
                continue;
            }
            let Some(dir) = at.dir.clone() else {
                at.real.push(name);
                continue;
            };
            let found = match dir.look(&name) {
                Ok(found) => found,
                Err(error) if is_absent(&error) => None,
                Err(error) => return Err(cannot_follow(&error.to_string())),
            };
            let Some(found) = found else {
                at.real.push(name);
                at.dir = None;
                continue;
            };
            if found.kind == Kind::Link {
                at = self.pass(at, &dir, name, &mut ahead)?;
                continue;
            }
            if ahead.is_empty() {
                return self.arrive(at, &dir, name, found.kind);
            }
            if found.kind != Kind::Folder {
                at.real.push(name);
                at.dir = None;
                continue;
            }
            match dir.pass(&name) {
                Ok(next) => self.enter(&mut at, name, next),
                // It was replaced this moment.
                Err(error) if is_absent(&error) => ahead.push_front(name),
                Err(error) => return Err(cannot_follow(&error.to_string())),
            }
        }
        Ok(on_windows(at.place()))
    }

    /// Puts what a link says in place of its name.
    fn pass(
        &self,
        mut at: At,
        dir: &Dir,
        name: OsString,
        ahead: &mut VecDeque<OsString>,
    ) -> Result<At, Denial> {
        let target = match dir.read_link(&name) {
            Ok(target) => PathBuf::from(os_string(target)),
            // It was replaced this moment.
            Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::InvalidInput => {
                ahead.push_front(name);
                return Ok(at);
            }
            Err(error) => return Err(cannot_follow(&error.to_string())),
        };
        at.links += 1;
        if at.links > MAX_LINKS {
            return Err(cannot_follow("too many links"));
        }
        at.linked = true;
        let mut called = at.real.join(&name);
        called.extend(ahead.iter());
        at.passed.push(called);
        if target.is_absolute() {
            let top = top_of(&target)?;
            at.real = top.real;
            at.dir = top.dir;
        }
        for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
            ahead.push_front(step);
        }
        Ok(at)
    }

    /// Goes into a folder. One that is an area by another path (upper and lower
    /// case on some file systems, a second mount) is that area.
    fn enter(&self, at: &mut At, name: OsString, dir: Dir) {
        at.real.push(name);
        if let Some(area) = self.area_of(&at.real, &dir) {
            at.real = area.real().as_path().to_path_buf();
            at.linked = true;
        }
        at.dir = Some(Arc::new(dir));
    }

    /// The area that a folder outside the roots is by another path.
    fn area_of(&self, real: &Path, dir: &Dir) -> Option<&Area> {
        if self.is_below_root(real) {
            return None;
        }
        let identity = dir.identity()?;
        let mut areas = self.areas.iter();
        areas.find(|area| area.identity == Some(identity) && area.real().as_path() != real)
    }

    /// The end of the way.
    fn arrive(&self, mut at: At, dir: &Dir, name: OsString, kind: Kind) -> Result<Place, Denial> {
        if kind == Kind::Folder && !self.is_below_root(&at.real.join(&name)) {
            match dir.pass(&name) {
                Ok(next) => {
                    self.enter(&mut at, name, next);
                    return Ok(on_windows(at.place()));
                }
                Err(error) if is_absent(&error) => {}
                // One that can't be entered is no area.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(cannot_follow(&error.to_string())),
            }
        }
        Ok(on_windows(at.entry(name, kind)))
    }

    /// The folder at a path that was gone through without a link.
    fn again(&self, real: &Path) -> Result<Option<Arc<Dir>>, Denial> {
        let (at, below) = self.start(real)?;
        let Some(dir) = at.dir else { return Ok(None) };
        match dir.pass_below(&below) {
            Ok(dir) => Ok(Some(Arc::new(dir))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(cannot_follow(&error.to_string())),
        }
    }
}

/// The top of the file system a path begins at.
fn top_of(path: &Path) -> Result<At, Denial> {
    let top = path.ancestors().last().unwrap_or(path);
    let dir = Dir::top(top).map_err(|error| cannot_follow(&error.to_string()))?;
    Ok(At::new(top.to_path_buf(), Some(Arc::new(dir)), false))
}

/// Windows knows a file by short names, too.
fn on_windows(mut place: Place) -> Place {
    if cfg!(windows)
        && let Ok(real) = std::fs::canonicalize(&place.real)
    {
        place.linked |= real != place.real;
        place.real = real;
    }
    place
}

/// What a link says, as the system has it.
fn os_string(bytes: Vec<u8>) -> OsString {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        OsString::from_vec(bytes)
    }
    #[cfg(not(unix))]
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// The names of a path in order, with `..` but without its root.
fn steps(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
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
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
