//! Resolves paths from clients: to which workspace root does a path belong?
//!
//! A path from a client (a URI, an absolute path, a path relative to a root) is turned into a
//! [`Location`] here and nowhere else: it is percent-decoded, made absolute, normalized lexically,
//! and placed below a [`Root`] by whole components. The disk is only accessed to find the root that
//! contains a relative path. The crate `sightline-access` resolves symbolic links.

mod drives;
mod normalized;

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use url::Url;

pub use drives::{on_drive, posix_drive};
use normalized::to_wire;
pub use normalized::{AbsPath, RelPath};

use crate::{error::Error, limits};

/// A workspace root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Name from the editor, else the directory's name.
    pub name: String,
    /// Path as the editor sent it.
    pub path: AbsPath,
    /// Path with symbolic links resolved; same as `path` if that fails.
    pub canonical: AbsPath,
}

impl Root {
    /// Creates a root at `path`, which need not exist.
    pub fn new(path: AbsPath, name: Option<String>) -> Self {
        let canonical = without_links(&path).unwrap_or_else(|| path.clone());
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
            path.as_path().file_name().map_or_else(
                || path.display(),
                |name| name.to_string_lossy().into_owned(),
            )
        });
        Self {
            name,
            path,
            canonical,
        }
    }

    /// Resolves the links again, which may have changed. Returns the same root if its folder is
    /// missing.
    pub fn resolved_again(&self) -> Self {
        Self {
            canonical: without_links(&self.path).unwrap_or_else(|| self.canonical.clone()),
            ..self.clone()
        }
    }
}

fn without_links(path: &AbsPath) -> Option<AbsPath> {
    AbsPath::new(&canonicalize(path.as_path()).ok()?)
}

/// Resolves symbolic links, like [`std::fs::canonicalize`], but to the form of an [`AbsPath`].
///
/// # Errors
/// As [`std::fs::canonicalize`].
pub fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let real = std::fs::canonicalize(path)?;
    if cfg!(unix) {
        return Ok(real);
    }
    Ok(AbsPath::new(&real).map_or(real, |plain| plain.0))
}

/// Location of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Below a root; the innermost one if roots are nested.
    Inside {
        /// Index of the root in [`Roots`].
        root: usize,
        /// Path below the root.
        rel: RelPath,
    },
    /// Outside every root.
    Outside(AbsPath),
}

/// Workspace roots, the primary one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots(Vec<Root>);

impl Roots {
    /// Keeps the given order and drops duplicates.
    pub fn new(roots: Vec<Root>) -> Self {
        let mut kept: Vec<Root> = Vec::new();
        for root in roots {
            if kept.iter().all(|other| other.path != root.path) {
                kept.push(root);
            }
        }
        Self(kept)
    }

    /// Returns all roots, the primary one first.
    pub fn as_slice(&self) -> &[Root] {
        &self.0
    }

    /// Returns the primary root.
    pub fn primary(&self) -> Option<&Root> {
        self.0.first()
    }

    /// Returns the root with this index.
    pub fn get(&self, index: usize) -> Option<&Root> {
        self.0.get(index)
    }

    /// Returns whether there is no root, as when a single file is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds the innermost root that contains an absolute path, by the root's written or canonical
    /// path.
    pub fn place(&self, path: AbsPath) -> Location {
        let mut best: Option<(usize, &Path)> = None;
        for (index, root) in self.0.iter().enumerate() {
            for base in [&root.path, &root.canonical] {
                // The shortest remaining path means the innermost root.
                if let Some(below) = path.below(base)
                    && best.is_none_or(|(_, shortest)| {
                        shortest.as_os_str().len() > below.as_os_str().len()
                    })
                {
                    best = Some((index, below));
                }
            }
        }
        let inside = best.map(|(root, below)| (root, RelPath(below.to_path_buf())));
        match inside {
            Some((root, rel)) => Location::Inside { root, rel },
            None => Location::Outside(path),
        }
    }

    /// Resolves a path from a client: a `file:` URI, an absolute path, or a path relative to the
    /// first root in which it exists, else to the primary root.
    ///
    /// # Errors
    /// `invalidParams` for a path that cannot exist on this machine: another scheme, a remote host,
    /// bad percent-encoding, a NUL byte, a relative path without any root.
    pub fn locate(&self, written: &str) -> Result<Location, Error> {
        let location = self.resolve(written)?;
        let bytes = self.absolute_len(&location);
        if bytes > limits::MAX_ABSOLUTE_PATH_BYTES {
            return Err(Error::invalid(format!(
                "a path of {bytes} bytes exceeds the limit of {}",
                limits::MAX_ABSOLUTE_PATH_BYTES
            )));
        }
        Ok(location)
    }

    fn resolve(&self, written: &str) -> Result<Location, Error> {
        let refuse = |why: &str| Error::InvalidPath {
            path: written.to_owned(),
            why: why.to_owned(),
        };
        if written.len() > limits::MAX_PATH_BYTES {
            return Err(Error::invalid(format!(
                "a path of {} bytes exceeds the limit of {}",
                written.len(),
                limits::MAX_PATH_BYTES
            )));
        }
        if memchr::memchr(0, written.as_bytes()).is_some() {
            return Err(refuse("contains a NUL byte"));
        }
        if let Some(path) = uri_to_path(written).map_err(|why| refuse(&why))? {
            return Ok(self.place(path));
        }
        let path = Path::new(written);
        if let Some(path) = AbsPath::new(path) {
            return Ok(self.place(path));
        }
        if has_drive(written) && !cfg!(windows) {
            return Err(refuse(
                "has a drive letter, which this system does not support",
            ));
        }
        // With one root, no disk access is needed.
        if let [root] = &*self.0
            && root.path == root.canonical
            && let Some(rel) = RelPath::new(path)
        {
            return Ok(Location::Inside { root: 0, rel });
        }
        let mut first = None;
        for root in &self.0 {
            let Some(path) = AbsPath::new(&root.path.as_path().join(path)) else {
                continue;
            };
            if self.0.len() == 1 || std::fs::symlink_metadata(path.as_path()).is_ok() {
                return Ok(self.place(path));
            }
            first.get_or_insert(path);
        }
        first
            .map(|path| self.place(path))
            .ok_or_else(|| refuse("is relative, but no folder is open; use an absolute path"))
    }

    /// Returns the absolute path of a location.
    pub fn absolute(&self, location: &Location) -> AbsPath {
        match location {
            Location::Inside { root, rel } => match self.0.get(*root) {
                Some(root) => root.path.join(rel),
                None => AbsPath(rel.as_path().to_path_buf()),
            },
            Location::Outside(path) => path.clone(),
        }
    }

    /// Returns the length of [`Self::absolute`] in bytes.
    fn absolute_len(&self, location: &Location) -> usize {
        let len = |path: &Path| path.as_os_str().len();
        match location {
            Location::Inside { root, rel } => {
                let Some(root) = self.0.get(*root) else {
                    return len(rel.as_path());
                };
                let root = root.path.as_path();
                // The root of a file system ends with a separator.
                let separates = !rel.is_root() && root.parent().is_some();
                len(root) + usize::from(separates) + len(rel.as_path())
            }
            Location::Outside(path) => len(path.as_path()),
        }
    }

    /// Returns the path of a location for results: relative to its root, as accepted by
    /// [`Self::locate`]; relative to the primary root (`../other/file`) if an earlier root contains
    /// the same relative path; absolute outside the roots. The flag is set if the path is
    /// percent-encoded.
    pub fn result_path(&self, location: &Location) -> (String, bool) {
        match location {
            Location::Outside(path) => to_wire(path.as_path()),
            Location::Inside { root, rel } => {
                let shadowed = self.0[..(*root).min(self.0.len())].iter().any(|earlier| {
                    std::fs::symlink_metadata(earlier.path.join(rel).as_path()).is_ok()
                });
                if shadowed {
                    return self.block_path(location);
                }
                rel.to_wire()
            }
        }
    }

    /// Returns the path of a location for the environment block: relative to the primary root, with
    /// `..` for other roots, or absolute if that is impossible. The flag is set if the path is
    /// percent-encoded.
    pub fn block_path(&self, location: &Location) -> (String, bool) {
        let absolute = self.absolute(location);
        match self.primary() {
            Some(primary) => to_wire(&relative_through_parents(
                absolute.as_path(),
                primary.path.as_path(),
            )),
            None => to_wire(absolute.as_path()),
        }
    }
}

/// Returns `path` relative to `base`, both absolute and normalized.
fn relative_through_parents(path: &Path, base: &Path) -> PathBuf {
    let mut path_parts = path.components().peekable();
    let mut base_parts = base.components().peekable();
    let mut shared = 0;
    while let (Some(a), Some(b)) = (path_parts.peek(), base_parts.peek()) {
        if a != b {
            break;
        }
        shared += 1;
        path_parts.next();
        base_parts.next();
    }
    if shared == 0 {
        return path.to_path_buf();
    }
    let mut relative: PathBuf = base_parts.map(|_| Component::ParentDir).collect();
    relative.extend(path_parts);
    relative
}

/// Returns the home directory of the user, as agents find it: the variable `HOME`, `USERPROFILE` on Windows, or that
/// of the account.
pub fn home_dir() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// Returns the path of a `file:` URI, or `None` if `text` is not a URI.
///
/// # Errors
/// A description of the invalid part of the URI.
pub fn uri_to_path(text: &str) -> Result<Option<AbsPath>, String> {
    let Some(scheme) = scheme_of(text) else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(format!("scheme `{scheme}` is not supported; use `file:`"));
    }
    // Neovim's URI of an unnamed buffer.
    if text.len() == "file://".len() {
        return Err("has no path".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not a valid URI ({error})"))?;
    if url.host_str().is_some_and(|host| !host.is_empty()) && !cfg!(windows) {
        return Err("refers to another host".to_owned());
    }
    let path = url
        .to_file_path()
        .map_err(|()| "does not refer to a local file".to_owned())?;
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err("contains a NUL byte".to_owned());
    }
    AbsPath::new(&path)
        .map(Some)
        .ok_or_else(|| "is not absolute".to_owned())
}

/// Returns the scheme of a URI. It has at least two letters, so that `C:` is a drive.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let valid = scheme.len() >= 2
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let known = rest.starts_with('/') || scheme.eq_ignore_ascii_case("untitled");
    (valid && known).then_some(scheme)
}

fn has_drive(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 3
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'/' | b'\\')
}

/// Converts the bytes of a name or path to the system's form.
#[cfg(unix)]
pub fn os_name(name: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

/// Converts the bytes of a name or path to the system's form. A name that is not Unicode, which
/// listings never return, becomes one that no directory contains.
#[cfg(not(unix))]
pub fn os_name(name: &[u8]) -> &std::ffi::OsStr {
    std::ffi::OsStr::new(std::str::from_utf8(name).unwrap_or("\u{fffd}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a path of Unix, on a drive if this is Windows.
    fn native(path: &str) -> String {
        if cfg!(windows) && path.starts_with('/') {
            return format!("C:{path}");
        }
        path.to_owned()
    }

    fn abs(path: &str) -> AbsPath {
        AbsPath::new(Path::new(&native(path))).unwrap()
    }

    fn roots(paths: &[&str]) -> Roots {
        Roots::new(
            paths
                .iter()
                .map(|path| Root::new(abs(path), None))
                .collect(),
        )
    }

    fn inside(root: usize, rel: &str) -> Location {
        Location::Inside {
            root,
            rel: RelPath::new(Path::new(rel)).unwrap(),
        }
    }

    #[test]
    fn dots_are_normalized() {
        assert_eq!(abs("/a/./b/../c/"), abs("/a/c"));
        assert_eq!(abs("/../../x"), abs("/x"));
        assert!(AbsPath::new(Path::new("a")).is_none());
        assert!(RelPath::new(Path::new("a/../b")).is_none());
    }

    #[cfg(windows)]
    #[test]
    fn a_path_of_a_drive_or_share_has_one_form() {
        let form = |path: &str| {
            Some(
                AbsPath::new(Path::new(path))?
                    .as_path()
                    .to_str()?
                    .to_owned(),
            )
        };
        for path in [
            r"C:\ws\.env",
            "c:/ws/.env",
            r"\\?\C:\ws\.env",
            r"\\?\c:\ws\x/../.env",
            r"\\.\C:\ws\.env",
            "//?/C:/ws/.env",
            "//./c:/ws/sub/../.env",
        ] {
            assert_eq!(form(path).as_deref(), Some(r"C:\ws\.env"), "{path}");
        }
        for path in [r"\\host\share\a", "//host/share/a", r"\\?\UNC\host\share\a"] {
            assert_eq!(form(path).as_deref(), Some(r"\\host\share\a"), "{path}");
        }
        for path in ["C:a", r"\a", r"\\?\C:", "a"] {
            assert_eq!(form(path), None, "{path}");
        }
        let scratch = tempfile::tempdir().unwrap();
        let root = Root::new(AbsPath::new(scratch.path()).unwrap(), None);
        assert!(!root.canonical.display().contains('?'), "{root:?}");
    }

    #[test]
    fn absolute_len_equals_the_length_of_absolute() {
        let roots = roots(&["/", "/ws"]);
        for (root, rel) in [(0, ""), (0, "a/b"), (1, ""), (1, "a/b")] {
            let location = inside(root, rel);
            let made = roots.absolute(&location);
            let made = made.as_path().as_os_str().len();
            assert_eq!(roots.absolute_len(&location), made, "{root} {rel:?}");
        }
    }

    /// Paths are compared as bytes, so each must have one normalized form.
    #[test]
    fn normalized_paths_have_one_form() {
        let text = |path: &str| {
            let text = abs(path).display();
            let text = if cfg!(windows) {
                text.strip_prefix("C:")
            } else {
                Some(&*text)
            };
            text.map(str::to_owned)
        };
        for path in [
            "/a/b",
            "//a//b",
            "/./a/b",
            "/a/./b",
            "/a/b/",
            "/a/b/.",
            "/a/b//",
            "/a/c/../b",
            "/../a/b",
        ] {
            assert_eq!(text(path).as_deref(), Some("/a/b"), "{path}");
        }
        for path in ["/", "//", "/.", "/..", "/a/.."] {
            assert_eq!(text(path).as_deref(), Some("/"), "{path}");
        }
        assert_eq!(text("/.a/..b/c..").as_deref(), Some("/.a/..b/c.."));
    }

    #[test]
    fn relative_to_compares_whole_components() {
        let below = |path: &str, base: &str| Some(abs(path).relative_to(&abs(base))?.to_wire().0);
        for (path, base, expected) in [
            ("/a/b/c", "/a", Some("b/c")),
            ("/a/b", "/", Some("a/b")),
            ("/a", "/a", Some("")),
            ("/", "/", Some("")),
            ("/ab", "/a", None),
            ("/a", "/a/b", None),
            ("/", "/a", None),
        ] {
            assert_eq!(below(path, base).as_deref(), expected, "{path} {base}");
        }
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_outside() {
        let roots = roots(&["/nowhere/ws"]);
        assert_eq!(
            roots.locate(&native("/nowhere/ws-backup/a")).unwrap(),
            Location::Outside(abs("/nowhere/ws-backup/a"))
        );
        assert_eq!(
            roots.locate("../ws-backup/a").unwrap(),
            Location::Outside(abs("/nowhere/ws-backup/a"))
        );
        assert_eq!(roots.locate("b/../../ws/a").unwrap(), inside(0, "a"));
        assert_eq!(roots.locate("").unwrap(), inside(0, ""));
    }

    #[test]
    fn uris_are_decoded_before_normalization() {
        let roots = roots(&["/nowhere/ws"]);
        let uri = |path: &str| format!("file://{}{path}", if cfg!(windows) { "/C:" } else { "" });
        for uri in [
            uri("/nowhere/ws/a%20b"),
            uri("/nowhere/ws/x/%2e%2e/a%20b").replace("file", "FILE"),
        ] {
            assert_eq!(roots.locate(&uri).unwrap(), inside(0, "a b"), "{uri}");
        }
        assert_eq!(
            roots
                .locate(&uri("/nowhere/ws/x/%2e%2e%2f%2e%2e/etc"))
                .unwrap(),
            Location::Outside(abs("/nowhere/etc"))
        );
    }

    #[test]
    fn unusable_paths_are_errors() {
        let roots = roots(&["/nowhere/ws"]);
        for bad in [
            "untitled:Untitled-1",
            "vscode-remote://ssh/x",
            "file://",
            "a\0b",
            "file:///a%00b",
        ] {
            assert!(roots.locate(bad).is_err(), "{bad}");
        }
        assert!(Roots::default().locate("a").is_err());
        // Only Windows opens files of other hosts.
        let share = roots.locate("file://host/share/a");
        assert_eq!(share.is_err(), cfg!(unix), "{share:?}");
    }

    #[test]
    fn the_innermost_root_wins() {
        let roots = roots(&["/nowhere/ws", "/nowhere/ws/sub"]);
        assert_eq!(
            roots.locate(&native("/nowhere/ws/sub/a")).unwrap(),
            inside(1, "a")
        );
        assert_eq!(
            roots.locate(&native("/nowhere/ws/a")).unwrap(),
            inside(0, "a")
        );
    }

    #[test]
    fn block_paths_are_relative_to_the_primary_root() {
        let roots = roots(&["/nowhere/ws", "/nowhere/other"]);
        let there = inside(1, "src/x");
        assert_eq!(roots.block_path(&there).0, "../other/src/x");
        assert_eq!(roots.result_path(&there).0, "src/x");
    }
}
