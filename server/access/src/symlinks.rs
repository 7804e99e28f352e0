//! Resolves symlinks component by component, by file descriptors.
//!
//! Resolution starts at the directory of a scope (or at the root of the file system) and opens each component in
//! its open parent without following it. So replacing a directory with a symlink at the same time has no effect.
//! Symlinks are read, and their targets are resolved in the same way. A [`ResolvedPath`] is a name in an open
//! directory, so the file opened there is the one that was checked.
//!
//! `realpath` returns only the final path. This also returns the names of all symlinks on the way, which are
//! checked too, follows dangling symlinks as far as possible, and resolves paths that do not exist yet.

use std::{
    collections::{HashMap, VecDeque},
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    AccessView, Denial, RuleScope,
    non_links::{NonLinks, non_links_in},
    strictest, through_link,
};
use sightline_base::{
    fs::dir::{Dir, FileType, is_absent, stat},
    path::AbsPath,
};

/// Number of symlinks followed for one path, as on Linux.
const MAX_LINKS: usize = 40;
/// Number of components resolved for one path, including those of symlinks.
const MAX_STEPS: usize = 8 * 1024;
/// Number of directory entries that may be read for each checked path. Reading an entry costs about a twentieth of
/// a stat.
const ENTRIES_PER_PATH: usize = 32;
/// Largest directory that is read, in entries.
const MAX_READ_ENTRIES: usize = 4096;

/// Number of links whose targets a view remembers.
const MAX_REMEMBERED_LINKS: usize = 100_000;

/// The targets of links that views have followed: the real directory of the target and its name, by the path of the link.
/// Links of a chain are followed once, not once for each link before them.
#[derive(Debug, Default)]
pub(super) struct KnownLinks(Mutex<HashMap<PathBuf, (PathBuf, OsString)>>);

impl KnownLinks {
    fn target(&self, link: &Path) -> Option<(PathBuf, OsString)> {
        self.0.lock().get(link).cloned()
    }

    fn remember(&self, link: PathBuf, dir: &Path, name: &OsStr) {
        let mut known = self.0.lock();
        if known.len() < MAX_REMEMBERED_LINKS {
            known.insert(link, (dir.to_path_buf(), name.to_os_string()));
        }
    }
}

/// The result of resolving a path.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The path without symlinks.
    pub(super) real: PathBuf,
    /// `None` if nothing exists there.
    pub(super) kind: Option<FileType>,
    /// Whether `real` differs from the given path: because of a symlink, or because a scope has several paths.
    pub(super) linked: bool,
    /// The parent directory, or the directory itself if `name` is `None`. `None` if it is missing.
    pub(super) dir: Option<Arc<Dir>>,
    /// The name in `dir`. `None` if the path is that directory.
    pub(super) name: Option<OsString>,
    /// The path for each symlink on the way, with the symlink not yet resolved.
    link_paths: Vec<PathBuf>,
}

impl ResolvedPath {
    pub(super) fn is_folder(&self) -> bool {
        self.kind == Some(FileType::Directory)
    }

    pub(super) fn has_links(&self) -> bool {
        !self.link_paths.is_empty()
    }

    /// Returns the path for each symlink on the way, then the path without symlinks.
    pub(super) fn names(&self) -> impl Iterator<Item = AbsPath> {
        let names = self.link_paths.iter().chain([&self.real]);
        names.filter_map(|name| AbsPath::new(name))
    }
}

/// The current directory of a resolution.
#[derive(Clone, Debug)]
struct Cursor {
    /// The path without symlinks.
    real: PathBuf,
    /// `None` if it is missing or not a directory.
    dir: Option<Arc<Dir>>,
    linked: bool,
    links: usize,
    /// See [`ResolvedPath`].
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

    /// Descends along a path without symlinks.
    fn descend(self, path: &Path, dir: Option<Arc<Dir>>) -> Self {
        Self {
            real: self.real.join(path),
            dir,
            ..self
        }
    }

    /// Counts a link. Fails if there are too many.
    fn note_link(&mut self, path: PathBuf) -> Result<(), Denial> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(unresolvable("too many links"));
        }
        self.linked = true;
        self.link_paths.push(path);
        Ok(())
    }

    fn into_entry(self, name: OsString, kind: FileType) -> ResolvedPath {
        ResolvedPath {
            real: self.real.join(&name),
            kind: Some(kind),
            linked: self.linked,
            dir: self.dir,
            name: Some(name),
            link_paths: self.link_paths,
        }
    }

    /// Returns the directory itself.
    fn into_dir(self) -> ResolvedPath {
        ResolvedPath {
            kind: self.dir.is_some().then_some(FileType::Directory),
            real: self.real,
            linked: self.linked,
            dir: self.dir,
            name: None,
            link_paths: self.link_paths,
        }
    }
}

/// The parent directory of the previous path and its written path. Many paths are often checked directory by
/// directory. It remains the opened directory even if its path changes.
#[derive(Default)]
pub(super) struct ParentCache(Option<(PathBuf, Parent)>);

#[derive(Debug)]
enum Parent {
    /// There is a symlink on the way, so the path needs full resolution.
    ByLink,
    /// It is missing or not a directory.
    Missing,
    Open(Arc<Dir>, Entries),
}

/// The known entries of a directory.
#[derive(Debug)]
enum Entries {
    /// Not read yet.
    Unread,
    /// Too many to read.
    TooMany,
    /// The entries that are not symlinks.
    NonLinks(NonLinks),
}

impl AccessView {
    /// Returns whether an absolute path inside a scope contains no symlink. This is the common case and does not build
    /// the resolved path. `remaining` is the number of paths in the same directory that are still to check, including
    /// this one.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub(super) fn has_no_links(
        &self,
        path: &AbsPath,
        last: &mut ParentCache,
        remaining: usize,
    ) -> Result<bool, Denial> {
        // On Windows a file can have several names, so the path needs full resolution.
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
        if matches!(entries, Entries::Unread) && remaining > 1 {
            let most = remaining
                .saturating_mul(ENTRIES_PER_PATH)
                .min(MAX_READ_ENTRIES);
            *entries = non_links_in(dir, most).map_or(Entries::TooMany, Entries::NonLinks);
        }
        // Other spellings of a name need a stat, because file systems fold names differently.
        if let Entries::NonLinks(names) = entries
            && names.has(name.as_encoded_bytes())
        {
            return Ok(true);
        }
        match dir.stat(name) {
            Ok(found) => Ok(found.is_none_or(|found| found.kind != FileType::Symlink)),
            Err(error) if is_absent(&error) => Ok(true),
            Err(error) => Err(unresolvable(&error.to_string())),
        }
    }

    /// Resolves all symlinks of an absolute path.
    ///
    /// # Errors
    /// A denial if the path cannot be resolved.
    pub(super) fn resolve(&self, path: &AbsPath) -> Result<ResolvedPath, Denial> {
        let (at, below) = self.split_at_scope(path.as_path())?;
        let Some(name) = below.file_name() else {
            return Ok(at.into_dir());
        };
        let parent = below.parent().unwrap_or(Path::new(""));
        let Some(at) = self.without_links(&at, parent)? else {
            return self.resolve_components(at, components(&below).collect());
        };
        self.resolve_components(at, VecDeque::from([name.to_os_string()]))
    }

    /// Resolves a path like the kernel: `..` after a symlink is the parent of the symlink's target.
    ///
    /// # Errors
    /// A denial if the name of a symlink is denied or if the path cannot be resolved.
    pub(super) fn resolve_physically(&self, path: &Path) -> Result<ResolvedPath, Denial> {
        let mut at = top_of(path)?;
        at.linked = true;
        let place = self.resolve_components(at, components(path).collect())?;
        match self.denial_of_links(&place) {
            Some(denial) => Err(denial),
            None => Ok(place),
        }
    }

    /// Checks the paths of all symlinks on the way.
    pub(super) fn denial_of_links(&self, place: &ResolvedPath) -> Option<Denial> {
        let link_paths = place
            .link_paths
            .iter()
            .filter_map(|path| AbsPath::new(path));
        let denials = link_paths.filter_map(|path| self.denial_of(&path, || place.is_folder()));
        strictest(denials).map(through_link)
    }

    /// Opens a directory inside a scope.
    fn open_parent(&self, path: &Path) -> Result<Parent, Denial> {
        let (at, below) = self.split_at_scope(path)?;
        let parent = if at.linked {
            None
        } else {
            self.without_links(&at, &below)?
        };
        Ok(match parent {
            None => Parent::ByLink,
            Some(Cursor { dir: None, .. }) => Parent::Missing,
            Some(Cursor { dir: Some(dir), .. }) => Parent::Open(dir, Entries::Unread),
        })
    }

    /// Returns the innermost scope that contains a path, or the root of its file system, and the rest of the path.
    /// Symlinks above a scope are not relevant for its rules.
    fn split_at_scope(&self, path: &Path) -> Result<(Cursor, PathBuf), Denial> {
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

    /// Opens the directory of a scope. Returns `None` if it is missing.
    fn open_scope(&self, scope: &RuleScope) -> Result<Option<Arc<Dir>>, Denial> {
        let opened = scope.dir.get_or_init(|| {
            let dir = Dir::open_no_symlinks(scope.real().as_path());
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

    /// Descends along `below` at once. Returns `None` if that contains a symlink, or if `at` is outside of the roots.
    fn without_links(&self, at: &Cursor, below: &Path) -> Result<Option<Cursor>, Denial> {
        // Outside of the roots, any directory may be a root with another path.
        if !self.is_below_root(&at.real) {
            return Ok(None);
        }
        if below.as_os_str().is_empty() {
            return Ok(Some(at.clone()));
        }
        let Some(dir) = &at.dir else {
            return Ok(Some(at.clone().descend(below, None)));
        };
        match dir.traverse_no_symlinks(below) {
            Ok(None) => Ok(None),
            Ok(Some(dir)) => Ok(Some(at.clone().descend(below, Some(Arc::new(dir))))),
            Err(error) if is_absent(&error) => Ok(Some(at.clone().descend(below, None))),
            Err(error) => Err(unresolvable(&error.to_string())),
        }
    }

    /// Returns whether a path without symlinks is inside a root.
    fn is_below_root(&self, real: &Path) -> bool {
        let mut roots = self.scopes.iter().filter(|scope| scope.is_root);
        roots.any(|root| {
            let mut paths = root.paths.iter();
            paths.any(|base| real.starts_with(base.as_path()))
        })
    }

    /// Resolves the components in `ahead`.
    fn resolve_components(
        &self,
        from: Cursor,
        mut ahead: VecDeque<OsString>,
    ) -> Result<ResolvedPath, Denial> {
        let mut at = from;
        let mut steps_left = MAX_STEPS;
        // The last link, if it was the end of the path, and whether its target is not opened yet.
        let mut followed: Option<PathBuf> = None;
        let mut is_unopened = false;
        while let Some(name) = ahead.pop_front() {
            if steps_left == 0 {
                return Err(unresolvable("it has too many components"));
            }
            steps_left -= 1;
            if name == ".." {
                at.real.pop();
                at.dir = self.reopen(&at.real)?;
                continue;
            }
            if ahead.is_empty() {
                if let Some(link) = followed.take().filter(|_| at.dir.is_some()) {
                    self.links.remember(link, &at.real, &name);
                }
                let link = at.real.join(&name);
                if let Some((dir, target)) = self.links.target(&link) {
                    at.note_link(link)?;
                    (at.real, at.dir) = (dir, None);
                    is_unopened = true;
                    ahead.push_front(target);
                    continue;
                }
            }
            if std::mem::take(&mut is_unopened) {
                at.dir = self.reopen(&at.real)?;
            }
            let Some(dir) = at.dir.clone() else {
                at.real.push(name);
                continue;
            };
            let found = match dir.stat(&name) {
                Ok(found) => found,
                Err(error) if is_absent(&error) => None,
                Err(error) => return Err(unresolvable(&error.to_string())),
            };
            let Some(found) = found else {
                at.real.push(name);
                at.dir = None;
                continue;
            };
            if found.kind == FileType::Symlink {
                followed = ahead.is_empty().then(|| at.real.join(&name));
                at = self.follow_link(at, &dir, name, &mut ahead)?;
                continue;
            }
            if ahead.is_empty() {
                return self.finish(at, &dir, name, found.kind);
            }
            if found.kind != FileType::Directory {
                at.real.push(name);
                at.dir = None;
                continue;
            }
            match dir.traverse(&name) {
                Ok(next) => self.enter(&mut at, name, next),
                // It was replaced after the stat.
                Err(error) if is_absent(&error) => ahead.push_front(name),
                Err(error) => return Err(unresolvable(&error.to_string())),
            }
        }
        Ok(with_long_names(at.into_dir()))
    }

    /// Replaces the name of a symlink with its target.
    fn follow_link(
        &self,
        mut at: Cursor,
        dir: &Dir,
        name: OsString,
        ahead: &mut VecDeque<OsString>,
    ) -> Result<Cursor, Denial> {
        let target = match dir.read_link(&name) {
            Ok(target) => PathBuf::from(os_string(target)),
            // It was replaced after the stat.
            Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::InvalidInput => {
                ahead.push_front(name);
                return Ok(at);
            }
            Err(error) => return Err(unresolvable(&error.to_string())),
        };
        let mut link_path = at.real.join(&name);
        link_path.extend(ahead.iter());
        at.note_link(link_path)?;
        if target.is_absolute() {
            let top = top_of(&target)?;
            at.real = top.real;
            at.dir = top.dir;
        }
        for step in components(&target).collect::<Vec<_>>().into_iter().rev() {
            ahead.push_front(step);
        }
        Ok(at)
    }

    /// Enters a directory. If it is the directory of a scope with another path (another case on some file systems, a
    /// second mount), continues at the path of that scope.
    fn enter(&self, at: &mut Cursor, name: OsString, dir: Dir) {
        at.real.push(name);
        if let Some(scope) = self.scope_at(&at.real, &dir) {
            at.real = scope.real().as_path().to_path_buf();
            at.linked = true;
        }
        at.dir = Some(Arc::new(dir));
    }

    /// Returns the scope whose directory has another path outside of the roots.
    fn scope_at(&self, real: &Path, dir: &Dir) -> Option<&RuleScope> {
        if self.is_below_root(real) {
            return None;
        }
        let identity = dir.identity()?;
        let mut scopes = self.scopes.iter();
        scopes.find(|scope| scope.identity == Some(identity) && scope.real().as_path() != real)
    }

    /// Resolves the last component.
    fn finish(
        &self,
        mut at: Cursor,
        dir: &Dir,
        name: OsString,
        kind: FileType,
    ) -> Result<ResolvedPath, Denial> {
        if kind == FileType::Directory && !self.is_below_root(&at.real.join(&name)) {
            match dir.traverse(&name) {
                Ok(next) => {
                    self.enter(&mut at, name, next);
                    return Ok(with_long_names(at.into_dir()));
                }
                Err(error) if is_absent(&error) => {}
                // A directory that cannot be entered is not a scope.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(unresolvable(&error.to_string())),
            }
        }
        Ok(with_long_names(at.into_entry(name, kind)))
    }

    /// Opens a directory again whose path contains no symlink.
    fn reopen(&self, real: &Path) -> Result<Option<Arc<Dir>>, Denial> {
        let (at, below) = self.split_at_scope(real)?;
        let Some(dir) = at.dir else { return Ok(None) };
        match dir.traverse_below(&below) {
            Ok(dir) => Ok(Some(Arc::new(dir))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(unresolvable(&error.to_string())),
        }
    }
}

/// Opens the root of the file system of a path.
fn top_of(path: &Path) -> Result<Cursor, Denial> {
    let top = path.ancestors().last().unwrap_or(path);
    let dir = Dir::open_fs_root(top).map_err(|error| unresolvable(&error.to_string()))?;
    Ok(Cursor::new(top.to_path_buf(), Some(Arc::new(dir)), false))
}

/// Replaces short file names of Windows.
fn with_long_names(mut place: ResolvedPath) -> ResolvedPath {
    if cfg!(windows)
        && let Ok(real) = sightline_base::path::canonicalize(&place.real)
    {
        place.linked |= real != place.real;
        place.real = real;
    }
    place
}

fn os_string(bytes: Vec<u8>) -> OsString {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        OsString::from_vec(bytes)
    }
    #[cfg(not(unix))]
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Returns the components of a path, including `..` but without its root.
fn components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

fn unresolvable(why: &str) -> Denial {
    Denial::new(format!("its symlinks cannot be resolved: {why}"))
}

/// Returns the identity of what is at a path.
pub(super) fn file_id(path: &Path) -> Option<(u64, u64)> {
    Some(stat(path).ok()?.identity())
}
