//! Normalized paths: absolute ones ([`AbsPath`]), and those relative to a root ([`RelPath`]).
//! [`super::Roots::locate`] creates them from client input.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fmt,
    path::{Component, Path, PathBuf, Prefix},
};

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use url::Url;

/// An absolute path without `.`, `..` or a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(pub(super) PathBuf);

impl AbsPath {
    /// Normalizes `path` lexically, without disk access. Returns `None` if it is not absolute. `..`
    /// at the file system root is dropped, as in POSIX. A path of a drive or share of Windows has one
    /// form: `C:\name` for `c:/name` and `\\?\C:\name`.
    pub fn new(path: &Path) -> Option<Self> {
        if !path.is_absolute() {
            return None;
        }
        if cfg!(unix) && is_normalized(path.as_os_str().as_encoded_bytes()) {
            return Some(Self(path.to_path_buf()));
        }
        let path = without_device_prefix(path);
        if !path.is_absolute() {
            return None;
        }
        let mut normalized = PathBuf::with_capacity(path.as_os_str().len());
        for component in path.components() {
            match component {
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    normalized.push(component);
                }
                Component::CurDir => {}
                Component::ParentDir => {
                    normalized.pop();
                }
            }
        }
        Some(Self(normalized))
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Returns the parent directory and the file name, or `None` for the root of a file system.
    pub fn folder_and_name(&self) -> Option<(&Path, &OsStr)> {
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;

            // The path is normalized, so its bytes can be split directly.
            let path = self.0.as_os_str().as_bytes();
            let slash = memchr::memrchr(b'/', path)?;
            let name = OsStr::from_bytes(&path[slash + 1..]);
            let folder = OsStr::from_bytes(&path[..slash.max(1)]);
            (!name.is_empty()).then_some((Path::new(folder), name))
        }
        #[cfg(not(unix))]
        self.0.parent().zip(self.0.file_name())
    }

    /// Returns `self` relative to `base`, compared by whole components.
    pub fn relative_to(&self, base: &AbsPath) -> Option<RelPath> {
        self.below(base).map(|rel| RelPath(rel.to_path_buf()))
    }

    /// Returns `self` relative to the root directory of its file system or drive.
    pub fn below_file_system_root(&self) -> Option<RelPath> {
        let names = self.0.components();
        let names = names.filter(|part| matches!(part, Component::Normal(_)));
        RelPath::new(&names.collect::<PathBuf>())
    }

    /// Like [`Self::relative_to`], without allocation.
    #[cfg(unix)]
    pub(super) fn below(&self, base: &AbsPath) -> Option<&Path> {
        use std::os::unix::ffi::OsStrExt;

        // Both paths are normalized, so their bytes can be compared directly.
        let base = base.0.as_os_str().as_bytes();
        let rest = self.0.as_os_str().as_bytes().strip_prefix(base)?;
        let rest = if rest.is_empty() || base.ends_with(b"/") {
            rest
        } else {
            rest.strip_prefix(b"/")?
        };
        Some(Path::new(OsStr::from_bytes(rest)))
    }

    /// Like [`Self::relative_to`], without allocation.
    #[cfg(not(unix))]
    pub(super) fn below(&self, base: &AbsPath) -> Option<&Path> {
        self.0.strip_prefix(&base.0).ok()
    }

    /// Returns `rel` below `self`.
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

    /// Returns the `file:` URI.
    pub fn to_uri(&self) -> String {
        Url::from_file_path(&self.0).map_or_else(|()| String::new(), String::from)
    }

    /// Returns the path for display: with `/`, and lossy if it is not UTF-8.
    pub fn display(&self) -> String {
        with_slashes(&self.0.to_string_lossy()).into_owned()
    }
}

/// Returns the form of a path that people and programs write, if it has a prefix of Windows that means a
/// drive or share, such as `\\?\`. After some of these, `/` and `..` are part of a name.
fn without_device_prefix(path: &Path) -> Cow<'_, Path> {
    let mut components = path.components();
    let Some(Component::Prefix(prefix)) = components.next() else {
        return Cow::Borrowed(path);
    };
    let is_drive = |name: &OsStr| matches!(name.as_encoded_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    let mut plain = match prefix.kind() {
        Prefix::Disk(letter) | Prefix::VerbatimDisk(letter) => {
            OsString::from(format!("{}:", char::from(letter.to_ascii_uppercase())))
        }
        Prefix::DeviceNS(drive) if is_drive(drive) => drive.to_ascii_uppercase(),
        // `//?/C:/name`.
        Prefix::UNC(host, drive) if is_drive(drive) && (host == "?" || host == ".") => {
            drive.to_ascii_uppercase()
        }
        Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
            [OsStr::new(r"\\"), server, OsStr::new(r"\"), share]
                .into_iter()
                .collect()
        }
        _ => return Cow::Borrowed(path),
    };
    plain.push(components.as_path());
    Cow::Owned(plain.into())
}

fn is_normalized(path: &[u8]) -> bool {
    path == b"/" || path.strip_prefix(b"/").is_some_and(is_normalized_relative)
}

fn is_normalized_relative(path: &[u8]) -> bool {
    // Fast path without branches: no `//`, `/.` and no `/` or `.` at either end.
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

/// A normalized path relative to a root. Empty for the root itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(pub(super) PathBuf);

impl RelPath {
    /// Drops `.` components. Returns `None` if `path` contains `..`, a root or a drive.
    pub fn new(path: &Path) -> Option<Self> {
        if cfg!(unix) && is_normalized_relative(path.as_os_str().as_encoded_bytes()) {
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

    /// Returns the path with the platform's separators.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Returns whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// Returns the path of the entry `name` in this directory.
    #[must_use]
    pub fn child(&self, name: &OsStr) -> RelPath {
        Self(self.0.join(name))
    }

    /// Returns this path and the directories above it, the root last.
    pub fn ancestors(&self) -> impl Iterator<Item = RelPath> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// Returns the directories above it, without the root.
    pub fn above(&self) -> impl Iterator<Item = RelPath> {
        self.ancestors().skip(1).filter(|path| !path.is_root())
    }

    /// Returns the parent directory, or `None` for the root itself.
    pub fn parent(&self) -> Option<RelPath> {
        if self.is_root() {
            return None;
        }
        self.0.parent().map(|parent| Self(parent.to_path_buf()))
    }

    /// Returns the last component.
    pub fn name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// Returns the components from the top.
    pub fn components(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter()
    }

    /// Returns the path with `/` separators. A path that is not UTF-8 is percent-encoded, and the
    /// flag is set.
    pub fn to_wire(&self) -> (String, bool) {
        to_wire(&self.0)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_wire().0)
    }
}

/// Characters encoded in a path that is not UTF-8. Includes `%`, so that the result can be decoded;
/// bytes outside ASCII are always encoded.
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

/// Replaces backslashes by slashes on Windows, except in extended-length paths, where backslashes
/// are literal.
pub(super) fn with_slashes(text: &str) -> Cow<'_, str> {
    if cfg!(windows) && !text.starts_with(r"\\?\") {
        return Cow::Owned(text.replace('\\', "/"));
    }
    Cow::Borrowed(text)
}
