//! What a path leads to when links are followed, step by step and by
//! descriptors.
//!
//! A folder is reached from the top of its scope (or of the file system), each
//! name in an open folder and without following it, so exchanging a folder for a
//! link in between has no effect. A link is read, and its target is reached
//! the same way. So a [`ResolvedPath`] is a name in an open folder, whose path
//! without links is known; what is opened there is what was judged.
//!
//! The system's own resolution tells only where a path ends. Here every name
//! link_paths on the way is kept to be judged too, dangling links are followed as far
//! as they go, and what does not exist yet is placed where it would be created.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    AccessView, Denial, RuleScope,
    non_links::{NonLinks, non_links_in},
    through_link,
};
use crate::{
    fs::dir::{Dir, Kind, is_absent},
    path::AbsPath,
};

/// Links followed for one path; Linux stops there too.
const MAX_LINKS: usize = 40;
/// NonLinks gone through for one path, those of links included.
const MAX_STEPS: usize = 8 * 1024;
/// Entries of a folder that may be read for each one that was asked for: reading
/// one costs about a twentieth of looking at it.
const READ_PER_ASKED: usize = 32;
/// Larger folders are not read.
const MAX_READ_ENTRIES: usize = 4096;
/// Where a path leads.
#[derive(Debug)]
pub(super) struct ResolvedPath {
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
    link_paths: Vec<PathBuf>,
}

impl ResolvedPath {
    pub(super) fn is_folder(&self) -> bool {
        self.kind == Some(Kind::Folder)
    }

    /// What it was called by each link on the way, and at last its path without
    /// links.
    pub(super) fn names(&self) -> impl Iterator<Item = AbsPath> {
        let names = self.link_paths.iter().chain([&self.real]);
        names.filter_map(|name| AbsPath::new(name))
    }
}

/// A folder on the way of a path.
#[derive(Clone, Debug)]
struct Cursor {
    /// Without links.
    real: PathBuf,
    /// `None` when it is missing, or no folder.
    dir: Option<Arc<Dir>>,
    linked: bool,
    links: usize,
    /// What it is called by each link on the way.
    link_paths: Vec<PathBuf>,
}

impl Cursor {
    fn new(real: PathBuf, dir: Option<Arc<Dir>>, linked: bool) -> Self {
        Self {
            real,
            dir,
            linked,
            links: 0,
            link_paths: Vec::new(),
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
    fn entry(self, name: OsString, kind: Kind) -> ResolvedPath {
        ResolvedPath {
            real: self.real.join(&name),
            kind: Some(kind),
            linked: self.linked,
            dir: self.dir,
            name: Some(name),
            link_paths: self.link_paths,
        }
    }

    /// The folder itself.
    fn place(self) -> ResolvedPath {
        ResolvedPath {
            kind: self.dir.is_some().then_some(Kind::Folder),
            real: self.real,
            linked: self.linked,
            dir: self.dir,
            name: None,
            link_paths: self.link_paths,
        }
    }
}

/// The folder asked for last, by the path it was asked for with: many paths are
/// often asked for folder by folder. It stays the folder that was reached, whatever
/// is at its path by now.
#[derive(Default)]
pub(super) struct ParentCache(Option<(PathBuf, Parent)>);

#[derive(Debug)]
enum Parent {
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
    NonLinks(NonLinks),
}

impl AccessView {
    /// Returns whether an absolute path inside an scope has no link in it: the common
    /// case, decided without building the resolved path. `asked` is the number of
    /// paths of its folder that follow, this one included.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub(super) fn has_no_links(
        &self,
        path: &AbsPath,
        last: &mut ParentCache,
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
            last.0 = Some((above.to_path_buf(), self.open_parent(above)?));
        }
        let (dir, entries) = match &mut last.0 {
            Some((_, Parent::Open(dir, entries))) => (dir, entries),
            Some((_, Parent::Missing)) => return Ok(true),
            Some((_, Parent::ByLink)) | None => return Ok(false),
        };
        if matches!(entries, Entries::Unread) && asked > 1 {
            let most = asked.saturating_mul(READ_PER_ASKED).min(MAX_READ_ENTRIES);
            *entries = non_links_in(dir, most).map_or(Entries::TooMany, Entries::NonLinks);
        }
        // Only the exact name counts: how a file system folds names is its own
        // affair.
        if let Entries::NonLinks(names) = entries
            && names.has(name.as_encoded_bytes())
        {
            return Ok(true);
        }
        match dir.look(name) {
            Ok(found) => Ok(found.is_none_or(|found| found.kind != Kind::Link)),
            Err(error) if is_absent(&error) => Ok(true),
            Err(error) => Err(unresolvable(&error.to_string())),
        }
    }

    /// Follows every link of an absolute path.
    ///
    /// # Errors
    /// A denial when the way cannot be seen.
    pub(super) fn resolve(&self, path: &AbsPath) -> Result<ResolvedPath, Denial> {
        let (at, below) = self.start(path.as_path())?;
        let Some(name) = below.file_name() else {
            return Ok(at.place());
        };
        let parent = below.parent().unwrap_or(Path::new(""));
        let Some(at) = self.without_links(&at, parent)? else {
            return self.walk(at, steps(&below).collect());
        };
        self.walk(at, VecDeque::from([name.to_os_string()]))
    }

    /// Follows a path as the kernel would, where `..` behind a link is the
    /// parent of what the link leads to.
    ///
    /// # Errors
    /// A denial when a name on the way is denied, or when the way cannot be seen.
    pub(super) fn resolve_physically(&self, path: &Path) -> Result<ResolvedPath, Denial> {
        let mut at = top_of(path)?;
        at.linked = true;
        let place = self.walk(at, steps(path).collect())?;
        match self.denial_of_links(&place) {
            Some(denial) => Err(denial),
            None => Ok(place),
        }
    }

    /// Why what was link_paths on the way to a place is denied, if it is.
    pub(super) fn denial_of_links(&self, place: &ResolvedPath) -> Option<Denial> {
        let mut link_paths = place
            .link_paths
            .iter()
            .filter_map(|path| AbsPath::new(path));
        let denial = link_paths.find_map(|path| self.denial_of(&path, || place.is_folder()));
        denial.map(through_link)
    }

    /// A folder inside an scope, where no link is on the way.
    fn open_parent(&self, path: &Path) -> Result<Parent, Denial> {
        let (at, below) = self.start(path)?;
        let reached = match at.linked {
            true => None,
            false => self.without_links(&at, &below)?,
        };
        Ok(match reached {
            None => Parent::ByLink,
            Some(Cursor { dir: None, .. }) => Parent::Missing,
            Some(Cursor { dir: Some(dir), .. }) => Parent::Open(dir, Entries::Unread),
        })
    }

    /// The innermost scope around a path, or the top of its file system, and what
    /// of the path lies below that. Areas are where they are: links that lead
    /// there are not the business of their rules.
    fn start(&self, path: &Path) -> Result<(Cursor, PathBuf), Denial> {
        let around = self.scopes.iter().flat_map(|scope| {
            let below = |base: &AbsPath| path.strip_prefix(base.as_path()).ok();
            let mut paths = scope.paths.iter();
            paths.find_map(|base| Some((scope, base, below(base)?)))
        });
        let innermost = around.min_by_key(|(.., below)| below.as_os_str().len());
        let Some((scope, base, below)) = innermost else {
            let at = top_of(path)?;
            let below = path.strip_prefix(&at.real).unwrap_or(Path::new(""));
            return Ok((at.clone(), below.to_path_buf()));
        };
        let at = Cursor::new(
            scope.real().as_path().to_path_buf(),
            self.open_scope(scope)?,
            base != scope.real(),
        );
        Ok((at, below.to_path_buf()))
    }

    /// The folder of an scope, open; `None` when it is missing.
    fn open_scope(&self, scope: &RuleScope) -> Result<Option<Arc<Dir>>, Denial> {
        let opened = scope.dir.get_or_init(|| {
            let dir = Dir::without_links(scope.real().as_path());
            dir.map(Arc::new).map_err(|error| error.kind())
        });
        match opened {
            Ok(dir) => Ok(Some(dir.clone())),
            Err(kind) => match io::Error::from(*kind) {
                error if is_absent(&error) => Ok(None),
                error => Err(unresolvable(&error.to_string())),
            },
        }
    }

    /// The folder some levels below one in an scope, where that can be told at
    /// once: without a link, or with nothing there.
    fn without_links(&self, at: &Cursor, below: &Path) -> Result<Option<Cursor>, Denial> {
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
            Err(error) => Err(unresolvable(&error.to_string())),
        }
    }

    /// Does a path without links lie in a root?
    fn is_below_root(&self, real: &Path) -> bool {
        let mut roots = self.scopes.iter().filter(|scope| scope.is_root);
        roots.any(|root| {
            let mut paths = root.paths.iter();
            paths.any(|base| real.starts_with(base.as_path()))
        })
    }

    /// Goes on by these names, following links.
    fn walk(&self, from: Cursor, mut ahead: VecDeque<OsString>) -> Result<ResolvedPath, Denial> {
        let mut at = from;
        let mut steps_left = MAX_STEPS;
        while let Some(name) = ahead.pop_front() {
            if steps_left == 0 {
                return Err(unresolvable("it takes too many steps"));
            }
            steps_left -= 1;
            if name == ".." {
                at.real.pop();
                at.dir = self.reopen(&at.real)?;
                continue;
            }
            let Some(dir) = at.dir.clone() else {
                at.real.push(name);
                continue;
            };
            let found = match dir.look(&name) {
                Ok(found) => found,
                Err(error) if is_absent(&error) => None,
                Err(error) => return Err(unresolvable(&error.to_string())),
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
                return self.finish(at, &dir, name, found.kind);
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
                Err(error) => return Err(unresolvable(&error.to_string())),
            }
        }
        Ok(with_long_names(at.place()))
    }

    /// Puts what a link says in place of its name.
    fn pass(
        &self,
        mut at: Cursor,
        dir: &Dir,
        name: OsString,
        ahead: &mut VecDeque<OsString>,
    ) -> Result<Cursor, Denial> {
        let target = match dir.read_link(&name) {
            Ok(target) => PathBuf::from(os_string(target)),
            // It was replaced this moment.
            Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::InvalidInput => {
                ahead.push_front(name);
                return Ok(at);
            }
            Err(error) => return Err(unresolvable(&error.to_string())),
        };
        at.links += 1;
        if at.links > MAX_LINKS {
            return Err(unresolvable("too many links"));
        }
        at.linked = true;
        let mut called = at.real.join(&name);
        called.extend(ahead.iter());
        at.link_paths.push(called);
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

    /// Goes into a folder. One that is an scope by another path (upper and lower
    /// case on some file systems, a second mount) is that scope.
    fn enter(&self, at: &mut Cursor, name: OsString, dir: Dir) {
        at.real.push(name);
        if let Some(scope) = self.scope_at(&at.real, &dir) {
            at.real = scope.real().as_path().to_path_buf();
            at.linked = true;
        }
        at.dir = Some(Arc::new(dir));
    }

    /// The scope that a folder outside the roots is by another path.
    fn scope_at(&self, real: &Path, dir: &Dir) -> Option<&RuleScope> {
        if self.is_below_root(real) {
            return None;
        }
        let identity = dir.identity()?;
        let mut scopes = self.scopes.iter();
        scopes.find(|scope| scope.identity == Some(identity) && scope.real().as_path() != real)
    }

    /// The end of the way.
    fn finish(
        &self,
        mut at: Cursor,
        dir: &Dir,
        name: OsString,
        kind: Kind,
    ) -> Result<ResolvedPath, Denial> {
        if kind == Kind::Folder && !self.is_below_root(&at.real.join(&name)) {
            match dir.pass(&name) {
                Ok(next) => {
                    self.enter(&mut at, name, next);
                    return Ok(with_long_names(at.place()));
                }
                Err(error) if is_absent(&error) => {}
                // One that can't be entered is no scope.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(unresolvable(&error.to_string())),
            }
        }
        Ok(with_long_names(at.entry(name, kind)))
    }

    /// The folder at a path that was gone through without a link.
    fn reopen(&self, real: &Path) -> Result<Option<Arc<Dir>>, Denial> {
        let (at, below) = self.start(real)?;
        let Some(dir) = at.dir else { return Ok(None) };
        match dir.pass_below(&below) {
            Ok(dir) => Ok(Some(Arc::new(dir))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(unresolvable(&error.to_string())),
        }
    }
}

/// The top of the file system a path begins at.
fn top_of(path: &Path) -> Result<Cursor, Denial> {
    let top = path.ancestors().last().unwrap_or(path);
    let dir = Dir::top(top).map_err(|error| unresolvable(&error.to_string()))?;
    Ok(Cursor::new(top.to_path_buf(), Some(Arc::new(dir)), false))
}

/// Windows knows a file by short names, too.
fn with_long_names(mut place: ResolvedPath) -> ResolvedPath {
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

fn unresolvable(why: &str) -> Denial {
    Denial {
        reason: format!("what it leads to cannot be found out ({why})"),
        rule: None,
    }
}

/// What tells a folder from every other, whatever its path is.
pub(super) fn file_id(path: &Path) -> Option<(u64, u64)> {
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
