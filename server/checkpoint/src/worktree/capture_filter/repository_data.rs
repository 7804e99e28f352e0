//! Recognizes the own data of version control systems, which checkpoints neither capture nor restore:
//! a restore of the files must not remove commits.
//!
//! A folder is recognized by its name and by entries in it, so that a folder of the user that is called
//! `CVS` is captured. A git directory can have any name; entries called `.git` are never captured.

use std::{
    ffi::OsStr,
    fmt,
    io::Read,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};
use sightline_base::{
    fs::dir::{Access, Dir, FileType},
    path::os_name,
};
use sightline_context::git::index::GitIndex;

/// A version control system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum VersionControl {
    Git,
    /// Another git worktree of the repository that the root belongs to.
    GitWorktree,
    Mercurial,
    Sapling,
    Subversion,
    Bazaar,
    Jujutsu,
    Darcs,
    Pijul,
    Cvs,
    Fossil,
    Monotone,
    Got,
}

/// Completes the sentence `NAME is …`.
impl fmt::Display for VersionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::GitWorktree => return f.write_str("another git worktree of the same repository"),
            Self::Git => "git",
            Self::Mercurial => "Mercurial",
            Self::Sapling => "Sapling",
            Self::Subversion => "Subversion",
            Self::Bazaar => "Bazaar",
            Self::Jujutsu => "Jujutsu",
            Self::Darcs => "Darcs",
            Self::Pijul => "Pijul",
            Self::Cvs => "CVS",
            Self::Fossil => "Fossil",
            Self::Monotone => "Monotone",
            Self::Got => "Got",
        };
        write!(f, "a {name} repository's own data")
    }
}

/// An entry of a folder.
#[derive(Clone, Copy)]
enum Marker {
    File(&'static str),
    Folder(&'static str),
    Either(&'static str),
}

use Marker::{Either, File, Folder};
use VersionControl as Vcs;

impl Marker {
    fn name(self) -> &'static str {
        match self {
            File(name) | Folder(name) | Either(name) => name,
        }
    }

    /// Returns whether an entry of this type fits. It may be a link, or of a type that is not known.
    fn fits(self, kind: Option<FileType>) -> bool {
        match kind {
            Some(FileType::File) => !matches!(self, Folder(_)),
            Some(FileType::Directory) => !matches!(self, File(_)),
            Some(FileType::Symlink) | None => true,
            Some(FileType::Special(_)) => false,
        }
    }
}

/// A folder with the data of a system.
struct Layout {
    system: VersionControl,
    /// Its name, unless it can have any.
    name: Option<&'static str>,
    /// The entries it has.
    entries: &'static [Marker],
}

const fn layout(system: VersionControl, name: &'static str, entries: &'static [Marker]) -> Layout {
    Layout {
        system,
        name: Some(name),
        entries,
    }
}

const fn unnamed(system: VersionControl, entries: &'static [Marker]) -> Layout {
    Layout {
        system,
        name: None,
        entries,
    }
}

/// The known folders. One row must match. Rows without a name also find the folder that a link with
/// the name leads to, and copies.
const LAYOUTS: &[Layout] = &[
    unnamed(Vcs::Git, &[File("HEAD"), Folder("objects"), Folder("refs")]),
    layout(Vcs::Mercurial, ".hg", &[File("requires")]),
    layout(Vcs::Mercurial, ".hg", &[Folder("store")]),
    layout(Vcs::Mercurial, ".hg", &[File("00changelog.i")]),
    layout(Vcs::Sapling, ".sl", &[File("requires")]),
    layout(Vcs::Sapling, ".sl", &[Folder("store")]),
    layout(Vcs::Subversion, ".svn", &[File("wc.db")]),
    layout(Vcs::Subversion, ".svn", &[File("entries")]),
    // With SVN_ASP_DOT_NET_HACK, on Windows.
    layout(Vcs::Subversion, "_svn", &[File("wc.db")]),
    layout(Vcs::Subversion, "_svn", &[File("entries")]),
    layout(Vcs::Bazaar, ".bzr", &[File("branch-format")]),
    layout(Vcs::Bazaar, ".bzr", &[Folder("repository")]),
    layout(Vcs::Bazaar, ".bzr", &[Folder("checkout")]),
    layout(Vcs::Jujutsu, ".jj", &[Folder("working_copy")]),
    // A file in additional workspaces.
    layout(Vcs::Jujutsu, ".jj", &[Either("repo")]),
    layout(Vcs::Darcs, "_darcs", &[File("format")]),
    layout(Vcs::Darcs, "_darcs", &[File("hashed_inventory")]),
    layout(Vcs::Darcs, "_darcs", &[File("inventory")]),
    layout(Vcs::Pijul, ".pijul", &[Folder("pristine")]),
    layout(Vcs::Pijul, ".pijul", &[Folder("changes")]),
    layout(Vcs::Cvs, "CVS", &[File("Entries")]),
    layout(Vcs::Monotone, "_MTN", &[File("revision")]),
    layout(Vcs::Got, ".got", &[File("file-index")]),
    unnamed(Vcs::Mercurial, &[File("requires"), Folder("store")]),
    unnamed(Vcs::Mercurial, &[File("00changelog.i"), Folder("store")]),
    unnamed(Vcs::Subversion, &[File("wc.db"), Folder("pristine")]),
    unnamed(Vcs::Bazaar, &[File("branch-format"), Folder("branch")]),
    unnamed(Vcs::Bazaar, &[File("branch-format"), Folder("repository")]),
    unnamed(Vcs::Jujutsu, &[Either("repo"), Folder("working_copy")]),
    unnamed(Vcs::Darcs, &[File("format"), File("hashed_inventory")]),
    unnamed(Vcs::Darcs, &[File("inventory"), Folder("patches")]),
    unnamed(
        Vcs::Pijul,
        &[File("config"), Folder("changes"), Folder("pristine")],
    ),
    unnamed(
        Vcs::Cvs,
        &[File("Entries"), File("Repository"), File("Root")],
    ),
    unnamed(
        Vcs::Monotone,
        &[File("format"), File("options"), File("revision")],
    ),
    unnamed(Vcs::Got, &[File("base-commit"), File("file-index")]),
];

/// Names of the database of a Fossil check-out.
const FOSSIL_CHECKOUTS: [&[u8]; 3] = [b".fslckout", b"_FOSSIL_", b".fos"];
/// End of the usual name of a Fossil repository.
const FOSSIL_REPOSITORY: &[u8] = b".fossil";
/// Endings of the files that SQLite writes next to a database.
const SQLITE_FILES: [&[u8]; 3] = [b"-journal", b"-wal", b"-shm"];
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
/// Application id of a Fossil repository, and its offset.
const FOSSIL_ID: (usize, [u8; 4]) = (68, 0x0f05_5111_u32.to_be_bytes());
/// Bytes of a database that are read.
const HEADER_BYTES: u64 = 100;

fn layouts_of(name: &[u8]) -> impl Iterator<Item = &'static Layout> {
    let fits = move |layout: &&Layout| layout.name.is_none_or(|wanted| wanted.as_bytes() == name);
    LAYOUTS.iter().filter(fits)
}

/// Returns the system whose data the folder `name` contains. `find` returns the type of an entry, if
/// that is known, or `None` if there is no such entry.
pub(crate) fn system_of(
    name: &[u8],
    find: impl Fn(&str) -> Option<Option<FileType>>,
) -> Option<VersionControl> {
    let has = |marker: &Marker| find(marker.name()).is_some_and(|kind| marker.fits(kind));
    let mut layouts = layouts_of(name);
    let found = layouts.find(|layout| layout.entries.iter().all(has));
    found.map(|layout| layout.system)
}

/// Same as [`system_of`], for an open folder.
pub(crate) fn system_of_dir(name: &[u8], dir: &Dir) -> Option<VersionControl> {
    system_of(name, |entry| {
        let found = dir.stat(OsStr::new(entry)).ok()??;
        Some(Some(found.kind))
    })
}

/// Same as [`system_of`], for the folder that the link `name` at a path leads to.
pub(crate) fn system_of_link(
    name: &[u8],
    link: impl FnOnce() -> PathBuf,
) -> Option<VersionControl> {
    if !is_known_name(name) {
        return None;
    }
    let link = link();
    system_of(name, |entry| {
        let found = link.join(entry).symlink_metadata().ok()?.file_type();
        let kind = found.is_dir().then_some(FileType::Directory);
        Some(kind.or_else(|| found.is_file().then_some(FileType::File)))
    })
}

/// Returns whether some folders with this name can contain the data of a system. A git directory has
/// no such name.
pub(crate) fn is_known_name(name: &[u8]) -> bool {
    layouts_of(name).any(|layout| layout.name.is_some())
}

/// Returns whether the folder `name` may become one with the data of a system by this entry.
pub(crate) fn is_marker(name: &[u8], entry: &[u8]) -> bool {
    let mut markers = layouts_of(name).flat_map(|layout| layout.entries);
    markers.any(|marker| marker.name().as_bytes() == entry)
}

/// Returns whether a file can be the data of Fossil by its name.
pub(crate) fn is_fossil_name(name: &[u8]) -> bool {
    FOSSIL_CHECKOUTS.contains(&database_of(name)) || database_of(name).ends_with(FOSSIL_REPOSITORY)
}

/// Returns the name of the database that a file of SQLite belongs to.
fn database_of(name: &[u8]) -> &[u8] {
    let ends = SQLITE_FILES.iter();
    ends.filter_map(|end| name.strip_suffix(*end))
        .next()
        .unwrap_or(name)
}

/// Returns whether the file `name` is the data of Fossil, without reading a whole file: it has a name of Fossil, or is
/// next to a database.
pub(crate) fn is_fossil_file(dir: &Dir, name: &[u8]) -> bool {
    let database = database_of(name);
    if !is_fossil_name(name) && database == name {
        return false;
    }
    let header = dir.open(os_name(database), Access::Read).and_then(|file| {
        let mut header = Vec::new();
        file.take(HEADER_BYTES).read_to_end(&mut header)?;
        Ok(header)
    });
    header.is_ok_and(|header| is_fossil_database(database, &header))
}

/// Returns whether the content of a file is a database of Fossil.
pub(crate) fn is_fossil_database(name: &[u8], content: &[u8]) -> bool {
    let (at, id) = FOSSIL_ID;
    content.starts_with(SQLITE_MAGIC)
        && (FOSSIL_CHECKOUTS.contains(&name) || content.get(at..at + id.len()) == Some(&id))
}

/// The repository that a root belongs to. Finds its other worktrees.
#[derive(Debug)]
pub(crate) struct OwnRepository {
    /// Path of the root, without links.
    root: PathBuf,
    /// Read on first use: most folders contain no worktree.
    index: OnceLock<Option<GitIndex>>,
}

impl OwnRepository {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            index: OnceLock::new(),
        }
    }

    /// Returns whether the folder at `path`, which contains a file called `.git`, is another worktree
    /// of the repository.
    pub(crate) fn has_worktree(&self, path: &Path) -> bool {
        let own = self.index.get_or_init(|| {
            let mut above = self.root.ancestors();
            above.find_map(GitIndex::of)?.ok()
        });
        let other = || GitIndex::of(path)?.ok();
        own.as_ref()
            .is_some_and(|own| other().is_some_and(|other| other.is_worktree_of(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(name: &str, entries: &[&str]) -> Option<VersionControl> {
        system_of(name.as_bytes(), |wanted| {
            let file = entries.contains(&wanted).then_some(FileType::File);
            let folder = || {
                let folder = format!("{wanted}/");
                let is_folder = entries.contains(&&*folder);
                is_folder.then_some(FileType::Directory)
            };
            file.or_else(folder).map(Some)
        })
    }

    #[test]
    fn a_folder_is_recognized_by_name_and_content() {
        for (name, entries, wanted) in [
            (
                "x",
                &["HEAD", "objects/", "refs/"][..],
                Some(VersionControl::Git),
            ),
            ("x", &["HEAD", "objects/"], None),
            ("x", &["HEAD/", "objects/", "refs/"], None),
            (".hg", &["requires"], Some(VersionControl::Mercurial)),
            (".hg", &[], None),
            (".hg", &["notes"], None),
            ("hg", &["requires"], None),
            (".svn", &["wc.db"], Some(VersionControl::Subversion)),
            ("CVS", &["Entries", "Root"], Some(VersionControl::Cvs)),
            ("CVS", &["ada.pdf", "Entries/"], None),
            (".jj", &["repo"], Some(VersionControl::Jujutsu)),
            (".jj", &["repo/"], Some(VersionControl::Jujutsu)),
            // Where a link leads to.
            (
                "x",
                &["requires", "store/"],
                Some(VersionControl::Mercurial),
            ),
            (
                "x",
                &["wc.db", "pristine/"],
                Some(VersionControl::Subversion),
            ),
            ("x", &["wc.db"], None),
            ("x", &["requires/", "store/"], None),
        ] {
            assert_eq!(system(name, entries), wanted, "{name} {entries:?}");
        }
        assert!(is_marker(b".hg", b"store") && is_marker(b"x", b"refs"));
        assert!(!is_marker(b"x", b"checkout"));
        assert!(is_known_name(b"CVS") && !is_known_name(b"src"));
    }

    #[test]
    fn fossil_is_recognized_by_name_and_content() {
        let mut database = SQLITE_MAGIC.to_vec();
        database.resize(100, 0);
        assert!(is_fossil_database(b"_FOSSIL_", &database));
        assert!(!is_fossil_database(b"_FOSSIL_", b"text"));
        // Any program can write such a name.
        assert!(!is_fossil_database(b"ammonite.fossil", &database));
        database[68..72].copy_from_slice(&252_006_673_u32.to_be_bytes());
        assert!(is_fossil_database(b"x.fossil", &database));
        for name in [".fslckout-journal", "x.fossil-wal", "_FOSSIL_"] {
            assert!(is_fossil_name(name.as_bytes()), "{name}");
        }
        assert!(!is_fossil_name(b"fossil") && !is_fossil_name(b".fossil-settings"));
    }
}
