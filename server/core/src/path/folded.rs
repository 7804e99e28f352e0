//! Paths with nothing left to fold: absolute ones, and those below a root.
//! What a client wrote becomes one of them in [`super::Roots::locate`].

use std::{
    borrow::Cow,
    ffi::OsStr,
    fmt,
    path::{Component, Path, PathBuf},
};

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use url::Url;

/// An absolute path without `.`, `..` or a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(pub(super) PathBuf);

impl AbsPath {
    /// Folds `.` and `..` without looking at the disk. `None` when `path` is
    /// not absolute. `..` at the filesystem root stays there, as in POSIX.
    pub fn new(path: &Path) -> Option<Self> {
        if !path.is_absolute() {
            return None;
        }
        if cfg!(unix) && is_folded(path.as_os_str().as_encoded_bytes()) {
            return Some(Self(path.to_path_buf()));
        }
        let mut folded = PathBuf::with_capacity(path.as_os_str().len());
        for component in path.components() {
            match component {
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    folded.push(component);
                }
                Component::CurDir => {}
                Component::ParentDir => {
                    folded.pop();
                }
            }
        }
        Some(Self(folded))
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The folder it lies in and its name there; `None` for the root of a file
    /// system.
    pub(crate) fn folder_and_name(&self) -> Option<(&Path, &OsStr)> {
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;

            // It is folded, so its bytes tell.
            let path = self.0.as_os_str().as_bytes();
            let slash = memchr::memrchr(b'/', path)?;
            let name = OsStr::from_bytes(&path[slash + 1..]);
            let folder = OsStr::from_bytes(&path[..slash.max(1)]);
            (!name.is_empty()).then_some((Path::new(folder), name))
        }
        #[cfg(not(unix))]
        self.0.parent().zip(self.0.file_name())
    }

    /// What `self` is below `base`, by whole components.
    pub fn relative_to(&self, base: &AbsPath) -> Option<RelPath> {
        self.below(base).map(|rel| RelPath(rel.to_path_buf()))
    }

    /// As [`Self::relative_to`], borrowed.
    #[cfg(unix)]
    pub(super) fn below(&self, base: &AbsPath) -> Option<&Path> {
        use std::os::unix::ffi::OsStrExt;

        // Both are folded, so their bytes tell.
        let base = base.0.as_os_str().as_bytes();
        let rest = self.0.as_os_str().as_bytes().strip_prefix(base)?;
        let rest = if rest.is_empty() || base.ends_with(b"/") {
            rest
        } else {
            rest.strip_prefix(b"/")?
        };
        Some(Path::new(OsStr::from_bytes(rest)))
    }

    /// As [`Self::relative_to`], borrowed.
    #[cfg(not(unix))]
    pub(super) fn below(&self, base: &AbsPath) -> Option<&Path> {
        self.0.strip_prefix(&base.0).ok()
    }

    /// `self` with `rel` below it.
    #[must_use]
    pub fn join(&self, rel: &RelPath) -> AbsPath {
        if rel.is_root() {
            return self.clone();
        }
        let mut path =
            PathBuf::with_capacity(self.0.as_os_str().len() + 1 + rel.0.as_os_str().len());
        path.push(&self.0);
        path.push(&rel.0);
        Self(path)
    }

    /// The `file:` URI of this path.
    pub fn to_uri(&self) -> String {
        Url::from_file_path(&self.0).map_or_else(|()| String::new(), String::from)
    }

    /// For people: with `/`, lossy where the bytes are not UTF-8.
    pub fn display(&self) -> String {
        with_slashes(&self.0.to_string_lossy()).into_owned()
    }
}

/// Is an absolute path of a Unix system without anything to fold?
fn is_folded(path: &[u8]) -> bool {
    path == b"/" || path.strip_prefix(b"/").is_some_and(is_folded_below)
}

/// As [`is_folded`], for a relative path that names something.
fn is_folded_below(path: &[u8]) -> bool {
    // Nearly always one pass without a branch tells.
    let joins = path.iter().zip(path.get(1..).unwrap_or_default());
    let odd = joins.fold(0, |odd, (before, byte)| {
        odd | u8::from((*before == b'/') & ((*byte == b'/') | (*byte == b'.')))
    });
    let ends = [path.first(), path.last()];
    if odd == 0
        && ends
            .iter()
            .all(|end| end.is_some_and(|byte| !matches!(byte, b'/' | b'.')))
    {
        return true;
    }
    let mut names = path.split(|byte| *byte == b'/');
    names.all(|name| !matches!(name, b"" | b"." | b".."))
}

/// A path below a root: only normal components, possibly none (the root itself).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(pub(super) PathBuf);

impl RelPath {
    /// A relative path of normal components; `.` is dropped, anything else
    /// (`..`, a root, a drive) gives `None`.
    pub fn new(path: &Path) -> Option<Self> {
        if cfg!(unix) && is_folded_below(path.as_os_str().as_encoded_bytes()) {
            return Some(Self(path.to_path_buf()));
        }
        let mut normal = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => normal.push(name),
                Component::CurDir => {}
                _ => return None,
            }
        }
        Some(Self(normal))
    }

    /// The path, with the platform's separators.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Is this the root itself?
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// This directory's entry `name`.
    #[must_use]
    pub fn child(&self, name: &OsStr) -> RelPath {
        Self(self.0.join(name))
    }

    /// The directory it stands in; `None` for the root itself.
    pub fn parent(&self) -> Option<RelPath> {
        if self.is_root() {
            return None;
        }
        self.0.parent().map(|parent| Self(parent.to_path_buf()))
    }

    /// The last component.
    pub fn name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// The components, from the top.
    pub fn components(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter()
    }

    /// As it goes over the wire: with `/`; percent-encoded, and then `true`,
    /// where the bytes are not UTF-8.
    pub fn to_wire(&self) -> (String, bool) {
        to_wire(&self.0)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_wire().0)
    }
}

/// What is encoded in a path that is not UTF-8: everything outside ASCII is by
/// itself, and `%` so that the result can be decoded.
const NOT_UTF8: &AsciiSet = &CONTROLS.add(b'%');

pub(super) fn to_wire(path: &Path) -> (String, bool) {
    match path.to_str() {
        Some(text) => (with_slashes(text).into_owned(), false),
        None => {
            let bytes = path.as_os_str().as_encoded_bytes();
            (percent_encode(bytes, NOT_UTF8).to_string(), true)
        }
    }
}

/// Backslashes become slashes where they separate: on Windows, except in
/// extended-length paths, which mean their backslashes literally.
pub(super) fn with_slashes(text: &str) -> Cow<'_, str> {
    if cfg!(windows) && !text.starts_with(r"\\?\") {
        return Cow::Owned(text.replace('\\', "/"));
    }
    Cow::Borrowed(text)
}
