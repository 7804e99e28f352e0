//! What is in a directory, as an agent may see it.
//!
//! [`list`] walks breadth first, each directory in byte order, so that a list
//! that stops at its limit shows the top of the tree and is the same on every
//! run. Links are never followed. A recursive walk leaves out what `.gitignore`
//! ignores (`crate::ignore_files`) and folders no one wants to read (`default_excludes`); denied
//! entries are left out or marked in both kinds. [`format`] prints a listing.

mod default_excludes;
pub mod format;

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs, io,
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

use crate::{
    access::{AccessView, OpenedFolder, Verdict},
    cancel::Cancel,
    error::Error,
    fs::dir::Kind,
    ignore_files::{self, IgnoreRules},
    limits,
    path::{AbsPath, Location, RelPath, Roots},
    thread_pool,
};

pub use self::format::format;

/// How long a walk may take by default.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(10);
/// Entries between two looks at the clock and at the cancel flag.
const STRIDE: usize = 512;
/// Directories read at once, and so many that it is worth waking other threads.
const MAX_BATCH: usize = 256;
const FEW: usize = 4;

/// How to list.
#[derive(Clone, Copy, Debug)]
pub struct ListOptions {
    /// Also what is below the directories.
    pub recursive: bool,
    /// Stop at this many entries.
    pub limit: u32,
    /// Denied entries: leave them out, or mark them.
    pub ignored: IgnoredFiles,
    /// Stop after this time.
    pub budget: Duration,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            recursive: true,
            limit: 200,
            ignored: IgnoredFiles::Hide,
            budget: DEFAULT_BUDGET,
        }
    }
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the workspace root (not below the listed directory).
    pub rel: RelPath,
    /// What it is; a link is not resolved.
    pub kind: FileKind,
    /// Denied, and only named because [`IgnoredFiles::Lock`] asks for it.
    pub denied: bool,
}

/// A listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Breadth first, each directory in byte order.
    pub entries: Vec<Entry>,
    /// It reached its limit or its time budget. A listing of exactly as many
    /// entries as the limit says so too: nobody looked further.
    pub truncated: bool,
    /// Denied entries left out.
    pub omitted: u32,
    /// Links left out because they lead outside the workspace.
    pub outside: u32,
}

/// Lists the directory `dir` of root number `root`.
///
/// # Errors
/// `accessDenied` for a denied directory, `notFound`, `invalidParams` for what
/// is no directory, `unsupported` for the home directory, the filesystem's root
/// and what the system does not let us read, `cancelled`.
pub fn list(
    view: &AccessView,
    root: usize,
    dir: &RelPath,
    options: &ListOptions,
    cancel: &Cancel,
) -> Result<Listing, Error> {
    list_with(view, root, dir, options, cancel, &mut |_| {})
}

/// As [`list`]; `progress` hears of the number of entries found, after each
/// directory.
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
                // Only the listed directory has to be readable.
                Err(error) if is_top => {
                    return Err(unreadable(&display_name(view, root, dir), &error));
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
        // Where a list is full soon, few are read in vain.
        width = (width * 2).min(MAX_BATCH);
        batch = walk.queue.drain(..width.min(walk.queue.len())).collect();
    }
    Ok(walk.found)
}

/// The listed directory, checked.
struct Target {
    /// What everything is read below of.
    top: OpenedFolder,
    directory: Directory,
    /// The root the real directory lies in, where the written path is a link.
    alias_root: Option<usize>,
    /// Hidden, or below a hidden directory of the workspace.
    is_hidden: bool,
}

impl Target {
    fn new(view: &AccessView, root: usize, dir: &RelPath) -> Result<Self, Error> {
        let roots = view.roots();
        let Some(workspace) = roots.get(root) else {
            return Err(Error::invalid(format!(
                "there is no workspace folder number {root}"
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
                let message = format!("{name} is no directory; name the one it is in");
                return Err(Error::invalid(message).with_path(name));
            }
            Err(error) if error.kind == ErrorKind::NotFound => {
                return Err(unreadable(&name, &io::ErrorKind::NotFound.into()));
            }
            Err(error) => return Err(error),
        };
        let real = top.real().to_path_buf();
        refuse_huge(&real, &name)?;

        let mut alias = None;
        let mut rules_root = workspace.canonical.as_path();
        if real != workspace.canonical.join(dir).as_path() {
            // Through a link: entries are judged by both of their paths.
            match AbsPath::new(&real).map(|real| roots.place(real)) {
                Some(Location::Inside { root, rel }) => alias = Some((root, rel)),
                _ => return Err(outside(&name)),
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
    /// Its path below the root it really lies in, where that is another one.
    alias: Option<RelPath>,
    real: PathBuf,
    /// The rules that reach it from above.
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

    /// Looks at the cancel flag, and notes when the time is over.
    fn check_time(&mut self) -> Result<(), Error> {
        self.cancel.check()?;
        if Instant::now() >= self.deadline {
            self.found.truncated = true;
        }
        Ok(())
    }

    /// [`Self::read`] of each, on all cores.
    fn read_all(&self, directories: &[Directory]) -> Vec<io::Result<Read>> {
        let read = |directory: &Directory| self.read(&directory.real);
        if directories.len() < FEW {
            return directories.iter().map(read).collect();
        }
        thread_pool::in_request_pool(|| directories.par_iter().map(read).collect())
    }

    /// The entries of a directory, by the folder that lies there: what was judged
    /// is what is read.
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
            // What vanished while we looked is not there.
            let kind = kind.or_else(|| Some(dir.look(name).ok()??.kind));
            names.extend(kind.map(|kind| Name {
                name: name.to_os_string(),
                kind: match kind {
                    Kind::Link => FileKind::Symlink,
                    Kind::Folder => FileKind::Directory,
                    Kind::File | Kind::Other => FileKind::File,
                },
            }));
            true
        })?;
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let has_rules = self.options.recursive
            && find(&names, ignore_files::FILE_NAME)
                .is_some_and(|entry| entry.kind == FileKind::File);
        Ok(Read {
            gitignore: has_rules.then(|| ignore_files::read_in(&dir)).flatten(),
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
            if left_out {
                continue;
            }
            let rel = directory.rel.child(&name);
            let alias = directory.alias.as_ref().map(|alias| alias.child(&name));
            let sight = self.judge(&rel, alias.as_ref(), kind);
            let denied = sight != AccessKind::Allowed;
            if denied && self.options.ignored == IgnoredFiles::Hide {
                let count = match sight {
                    AccessKind::Outside => &mut self.found.outside,
                    _ => &mut self.found.omitted,
                };
                *count = count.saturating_add(1);
                continue;
            }
            if recursive && is_dir && !denied {
                self.queue.push_back(Directory {
                    rel: rel.clone(),
                    alias,
                    real: directory.real.join(&name),
                    rules: rules.clone(),
                });
            }
            self.found.entries.push(Entry { rel, kind, denied });
            if self.found.entries.len() >= self.limit {
                self.found.truncated = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Judges an entry by its name and, if it is a link, by where it leads.
    fn judge(&self, rel: &RelPath, alias: Option<&RelPath>, kind: FileKind) -> AccessKind {
        let is_dir = kind == FileKind::Directory;
        let is_denied = |root, rel| self.view.check_entry(root, rel, is_dir).is_some();
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

/// What was read of a directory.
struct Read {
    /// In byte order.
    names: Vec<Name>,
    /// What its rule file says.
    gitignore: Option<Vec<u8>>,
    /// Are these all names? No, when the walk was over meanwhile.
    complete: bool,
}

fn find<'n>(names: &'n [Name], wanted: &str) -> Option<&'n Name> {
    let at = names.binary_search_by(|entry| entry.name.as_os_str().cmp(OsStr::new(wanted)));
    at.ok().and_then(|at| names.get(at))
}

/// How messages name the listed directory.
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

fn unreadable(name: &str, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, format!("{name} cannot be listed: {error}")).with_path(name)
}

fn outside(name: &str) -> Error {
    Error::new(
        ErrorKind::AccessDenied,
        format!("{name} leads out of the workspace folders"),
    )
    .with_path(name)
}

/// The home directory and the root of a filesystem are never meant as a
/// workspace, and listing them shows what nobody asked to show.
fn refuse_huge(real: &Path, name: &str) -> Result<(), Error> {
    let what = if real.parent().is_none() {
        "the root of the filesystem"
    } else if is_home(real) {
        "the home directory"
    } else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::Unsupported,
        format!("{name} is {what}, which is not listed; open or name a folder below it"),
    )
    .with_path(name))
}

fn is_home(real: &Path) -> bool {
    std::env::home_dir()
        .filter(|home| home.is_absolute())
        .and_then(|home| fs::canonicalize(home).ok())
        .is_some_and(|home| home == real)
}

/// A listing as it goes over the wire.
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
