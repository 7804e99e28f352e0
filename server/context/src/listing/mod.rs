//! Lists directories for agents.
//!
//! [`list`] walks breadth first, with each directory in byte order. So a listing that reaches its limit shows the top
//! of the tree and is the same on every run. Symlinks are not followed. A recursive listing excludes what `.gitignore`
//! ignores (`sightline_access::gitignore_stack`) and directories of dependencies and build results (`default_excludes`). Denied
//! entries are left out or marked. [`mod@format`] prints a listing.

mod default_excludes;
pub mod format;

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rayon::prelude::*;
use sightline_protocol::{
    access::AccessKind,
    error::ErrorKind,
    files::{FileEntry, FileKind, ListFilesResult},
    settings::IgnoredFiles,
};

use sightline_access::{
    AccessView, OpenedFolder, Verdict,
    gitignore_stack::{self, IgnoreRules},
};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    fs::dir::FileType,
    limits,
    path::{AbsPath, Location, RelPath, Roots},
    thread_pool,
};

pub use self::format::format;

/// Default time limit of a walk.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(10);
/// Number of entries between two checks of the clock and of the cancel flag.
const STRIDE: usize = 512;
/// Number of directories read together.
const MAX_BATCH: usize = 256;
/// Number of directories from which on several threads read them.
const MIN_PARALLEL_DIRS: usize = 4;

/// Options of a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListOptions {
    /// Whether to list subdirectories too.
    pub recursive: bool,
    /// Maximum number of entries.
    pub limit: u32,
    /// Whether denied entries are left out or marked.
    pub ignored: IgnoredFiles,
    /// List only denied entries, also those that a recursive listing excludes. Excluded directories are not searched.
    pub only_denied: bool,
    /// Time limit.
    pub budget: Duration,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            recursive: true,
            limit: 200,
            ignored: IgnoredFiles::Hide,
            only_denied: false,
            budget: DEFAULT_BUDGET,
        }
    }
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the workspace root, not to the listed directory.
    pub rel: RelPath,
    /// The kind. Symlinks are not resolved.
    pub kind: FileKind,
    /// Whether the entry is denied. Only listed with [`IgnoredFiles::Lock`].
    pub denied: bool,
}

/// A listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries, breadth first, with each directory in byte order.
    pub entries: Vec<Entry>,
    /// Whether the walk stopped at its limit or at its time limit. Also set if there are exactly as many entries as the
    /// limit, because the walk stops there.
    pub truncated: bool,
    /// Number of denied entries that were left out.
    pub omitted: u32,
    /// Number of symlinks that were left out because their targets are outside of the workspace.
    pub outside: u32,
}

/// Lists the directory `dir` of a root.
///
/// # Errors
/// `accessDenied` for a denied directory, `notFound`, `invalidParams` if it is not a directory, `unsupported` for the
/// home directory, for the root of the file system and if it cannot be read, `cancelled`.
pub fn list(
    view: &AccessView,
    root: usize,
    dir: &RelPath,
    options: &ListOptions,
    cancel: &Cancel,
) -> Result<Listing, Error> {
    list_with(view, root, dir, options, cancel, &mut |_| {})
}

/// [`list`] that calls `progress` with the number of entries after each directory.
///
/// # Errors
/// As [`list`].
pub fn list_with(
    view: &AccessView,
    root: usize,
    dir: &RelPath,
    options: &ListOptions,
    cancel: &Cancel,
    progress: &mut dyn FnMut(usize),
) -> Result<Listing, Error> {
    let target = Target::new(view, root, dir)?;
    let mut walk = Walk {
        view,
        root,
        options,
        limit: options.limit.min(limits::MAX_LIST_ENTRIES) as usize,
        show_hidden: target.is_hidden,
        alias_root: target.alias_root,
        top: target.top,
        cancel,
        deadline: Instant::now() + options.budget,
        queue: VecDeque::new(),
        found: Listing::default(),
    };
    if walk.limit == 0 {
        walk.found.truncated = true;
        return Ok(walk.found);
    }
    let mut batch = vec![target.directory];
    let mut width = 1;
    let mut is_top = true;
    'walk: while !batch.is_empty() {
        let read = walk.read_all(&batch);
        let count = batch.len();
        for (at, (directory, read)) in batch.iter().zip(read).enumerate() {
            match read {
                Ok(read) => {
                    let complete = read.complete;
                    walk.visit(directory, read, is_top)?;
                    walk.found.truncated |= !complete;
                }
                // Subdirectories that cannot be read are skipped.
                Err(error) if is_top => {
                    return Err(unreadable(&display_name(view, root, dir), error));
                }
                Err(_) => {}
            }
            is_top = false;
            progress(walk.found.entries.len());
            if at + 1 < count || !walk.queue.is_empty() {
                walk.check_time()?;
            }
            if walk.found.truncated {
                break 'walk;
            }
        }
        // Starts small, so that a small limit reads few directories in vain.
        width = (width * 2).min(MAX_BATCH);
        batch = walk.queue.drain(..width.min(walk.queue.len())).collect();
    }
    Ok(walk.found)
}

/// The listed directory, checked.
struct Target {
    /// The open directory. Subdirectories are opened below it.
    top: OpenedFolder,
    directory: Directory,
    /// The root that contains the real directory, if the written path is a symlink.
    alias_root: Option<usize>,
    /// Whether it is hidden or inside a hidden directory of the workspace.
    is_hidden: bool,
}

impl Target {
    fn new(view: &AccessView, root: usize, dir: &RelPath) -> Result<Self, Error> {
        let roots = view.roots();
        let Some(workspace) = roots.get(root) else {
            return Err(Error::invalid(format!(
                "no workspace folder has the number {root}"
            )));
        };
        let location = Location::Inside {
            root,
            rel: dir.clone(),
        };
        let name = display_name(view, root, dir);
        let top = match view.open_folder(&location, false) {
            Ok(Some(top)) => top,
            Ok(None) => {
                return Err(Error::NotADirectory(name));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(unreadable(&name, io::ErrorKind::NotFound.into()));
            }
            Err(error) => return Err(error),
        };
        let real = top.real().to_path_buf();
        refuse_huge(&real, &name)?;

        let mut alias = None;
        let mut rules_root = workspace.canonical.as_path();
        if real != workspace.canonical.join(dir).as_path() {
            // Behind a symlink, entries are checked by both of their paths.
            match AbsPath::new(&real).map(|real| roots.place(real)) {
                Some(Location::Inside { root, rel }) => alias = Some((root, rel)),
                _ => return Err(Error::LinkToOutside(name)),
            }
        }
        if let Some(other) = alias.as_ref().and_then(|(root, _)| roots.get(*root)) {
            rules_root = other.canonical.as_path();
        }
        let rules = IgnoreRules::above(rules_root, &real);
        let is_hidden = workspace
            .path
            .as_path()
            .file_name()
            .into_iter()
            .chain(dir.components())
            .any(default_excludes::is_hidden);
        let (alias_root, alias) = alias.unzip();
        Ok(Self {
            top,
            directory: Directory {
                rel: dir.clone(),
                alias,
                real,
                rules,
            },
            alias_root,
            is_hidden,
        })
    }
}

/// A directory to visit.
struct Directory {
    rel: RelPath,
    /// The path relative to the root that contains it, if that is another one.
    alias: Option<RelPath>,
    real: PathBuf,
    /// The rules from the directories above.
    rules: IgnoreRules,
}

struct Walk<'a> {
    view: &'a AccessView,
    root: usize,
    options: &'a ListOptions,
    limit: usize,
    show_hidden: bool,
    alias_root: Option<usize>,
    top: OpenedFolder,
    cancel: &'a Cancel,
    deadline: Instant,
    queue: VecDeque<Directory>,
    found: Listing,
}

impl Walk<'_> {
    fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Checks the cancel flag and the time limit.
    fn check_time(&mut self) -> Result<(), Error> {
        self.cancel.check()?;
        if Instant::now() >= self.deadline {
            self.found.truncated = true;
        }
        Ok(())
    }

    /// [`Self::read`] for several directories, on several threads.
    fn read_all(&self, directories: &[Directory]) -> Vec<io::Result<Read>> {
        let read = |directory: &Directory| self.read(&directory.real);
        if directories.len() < MIN_PARALLEL_DIRS {
            return directories.iter().map(read).collect();
        }
        thread_pool::in_request_pool(|| directories.par_iter().map(read).collect())
    }

    /// Reads a directory. Opens it below the listed one without following symlinks, so that it is the one that was
    /// checked.
    fn read(&self, directory: &Path) -> io::Result<Read> {
        let below = directory.strip_prefix(self.top.real());
        let dir = self.top.below(below.unwrap_or(Path::new("")))?;
        let mut names = Vec::new();
        let mut complete = true;
        let mut index = 0;
        dir.entries(|name, kind| {
            index += 1;
            if index % STRIDE == 0 && self.is_over() {
                complete = false;
                return false;
            }
            // Entries deleted during the walk are skipped.
            let kind = kind.or_else(|| Some(dir.stat(name).ok()??.kind));
            names.extend(kind.map(|kind| Name {
                name: name.to_os_string(),
                kind: match kind {
                    FileType::Symlink => FileKind::Symlink,
                    FileType::Directory => FileKind::Directory,
                    FileType::File | FileType::Special(_) => FileKind::File,
                },
            }));
            true
        })?;
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let has_rules = self.options.recursive
            && find(&names, gitignore_stack::FILE_NAME)
                .is_some_and(|entry| entry.kind == FileKind::File);
        Ok(Read {
            gitignore: has_rules.then(|| gitignore_stack::read_in(&dir)).flatten(),
            names,
            complete,
        })
    }

    fn visit(&mut self, directory: &Directory, read: Read, is_top: bool) -> Result<(), Error> {
        let recursive = self.options.recursive;
        let names = read.names;
        let rules = if recursive {
            let git = find(&names, ".git").is_some();
            directory.rules.enter(&directory.real, git, read.gitignore)
        } else {
            IgnoreRules::default()
        };
        if read.complete {
            let names = names.iter().map(|entry| entry.name.as_encoded_bytes());
            self.view.note_names(self.root, &directory.rel, names);
        }
        let mut scope = rules.within(&directory.real);
        let parent = if is_top { None } else { directory.rel.name() };
        for (index, Name { name, kind }) in names.into_iter().enumerate() {
            if index % STRIDE == STRIDE - 1 {
                self.check_time()?;
                if self.found.truncated {
                    return Ok(());
                }
            }
            let is_dir = kind == FileKind::Directory;
            let left_out = recursive
                && (default_excludes::is_excluded(parent, &name)
                    || (is_dir && !self.show_hidden && default_excludes::is_hidden(&name))
                    || scope.ignores(&name, is_dir));
            if left_out && !self.options.only_denied {
                continue;
            }
            let rel = directory.rel.child(&name);
            let alias = directory.alias.as_ref().map(|alias| alias.child(&name));
            let access = self.check(&rel, alias.as_ref(), kind);
            let denied = access != AccessKind::Allowed;
            if denied && !self.options.only_denied && self.options.ignored == IgnoredFiles::Hide {
                let count = match access {
                    AccessKind::Outside => &mut self.found.outside,
                    _ => &mut self.found.omitted,
                };
                *count = count.saturating_add(1);
                continue;
            }
            if recursive && is_dir && !denied && !left_out {
                self.queue.push_back(Directory {
                    rel: rel.clone(),
                    alias,
                    real: directory.real.join(&name),
                    rules: rules.clone(),
                });
            }
            if denied || !self.options.only_denied {
                self.found.entries.push(Entry { rel, kind, denied });
            }
            if self.found.entries.len() >= self.limit {
                self.found.truncated = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Checks an entry: its name, and the target of a symlink.
    fn check(&self, rel: &RelPath, alias: Option<&RelPath>, kind: FileKind) -> AccessKind {
        let is_dir = kind == FileKind::Directory;
        let is_denied = |root, rel| self.view.judge_entry(root, rel, is_dir).is_some();
        let mut names = self
            .alias_root
            .zip(alias)
            .into_iter()
            .chain([(self.root, rel)]);
        if names.any(|(root, rel)| is_denied(root, rel)) {
            return AccessKind::Denied;
        }
        if kind != FileKind::Symlink {
            return AccessKind::Allowed;
        }
        let location = Location::Inside {
            root: self.root,
            rel: rel.clone(),
        };
        match self.view.check(&location) {
            Verdict::Allowed => AccessKind::Allowed,
            Verdict::Outside => AccessKind::Outside,
            Verdict::Denied(_) => AccessKind::Denied,
        }
    }
}

struct Name {
    name: OsString,
    kind: FileKind,
}

/// The content of a directory.
struct Read {
    /// Sorted in byte order.
    names: Vec<Name>,
    /// The text of its `.gitignore`.
    gitignore: Option<Vec<u8>>,
    /// Whether `names` is complete. It is not if the walk reached its time limit.
    complete: bool,
}

fn find<'n>(names: &'n [Name], wanted: &str) -> Option<&'n Name> {
    let at = names.binary_search_by(|entry| entry.name.as_os_str().cmp(OsStr::new(wanted)));
    at.ok().and_then(|at| names.get(at))
}

/// Returns the name of the listed directory in messages.
fn display_name(view: &AccessView, root: usize, dir: &RelPath) -> String {
    let name = view
        .roots()
        .result_path(&Location::Inside {
            root,
            rel: dir.clone(),
        })
        .0;
    if name.is_empty() {
        return "the workspace folder".to_owned();
    }
    name
}

fn unreadable(name: &str, source: io::Error) -> Error {
    let path = name.to_owned();
    Error::List { path, source }
}

/// Refuses the home directory and the root of the file system. They are opened by mistake, and listing them reveals
/// unrelated files.
fn refuse_huge(real: &Path, name: &str) -> Result<(), Error> {
    let what = if real.parent().is_none() {
        "the root of the file system"
    } else if is_home(real) {
        "the home directory"
    } else {
        return Ok(());
    };
    Err(Error::Unsupported {
        action: "list",
        path: name.to_owned(),
        what: format!("{what}; open or name a folder inside it"),
    })
}

fn is_home(real: &Path) -> bool {
    sightline_base::path::home_dir()
        .and_then(|home| sightline_base::path::canonicalize(home).ok())
        .is_some_and(|home| home == real)
}

/// Converts a listing to the result of a request.
pub fn list_result(
    roots: &Roots,
    root: usize,
    dir: &RelPath,
    listing: &Listing,
) -> ListFilesResult {
    let entries = listing
        .entries
        .iter()
        .map(|entry| {
            let (path, path_encoded) = roots.result_path(&Location::Inside {
                root,
                rel: entry.rel.clone(),
            });
            FileEntry {
                path,
                kind: entry.kind,
                access: if entry.denied {
                    AccessKind::Denied
                } else {
                    AccessKind::Allowed
                },
                path_encoded,
            }
        })
        .collect();
    ListFilesResult {
        entries,
        truncated: listing.truncated,
        text: format(listing, dir),
        omitted: listing.omitted,
        outside: listing.outside,
    }
}
