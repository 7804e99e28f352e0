//! Lists what is hidden: denied entries of the workspace that git does not track.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{ChildStdout, Command, Stdio},
};

use sightline_access::{AccessView, PROJECT_FILE, RULE_FILE};
use sightline_base::{
    clock::now_nanos,
    fs::dir::{FileInfo, stat},
    git::{NO_HOOKS, git},
    path::{RelPath, os_name},
};

use sightline_protocol::access::Cover;

use crate::CannotHide;

/// Maximum length of paths in a command line, in bytes; Linux accepts 2 MiB with the environment.
const MAX_ARGUMENTS: usize = 512 << 10;

/// Returns the name of the mount namespace of this process (Linux).
pub fn mount_namespace() -> Option<String> {
    let name = fs::read_link("/proc/self/ns/mnt").ok()?;
    name.into_os_string().into_string().ok()
}

/// A file or folder to hide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HiddenPath {
    /// The absolute path, without symbolic links below the workspace folder.
    pub path: PathBuf,
    /// What the command finds there.
    pub cover: Cover,
}

impl HiddenPath {
    fn new(path: PathBuf, is_dir: bool) -> Self {
        let is_rule_file = || {
            let name = path.file_name();
            name.is_some_and(|name| name == RULE_FILE || name == PROJECT_FILE)
        };
        let cover = if is_dir {
            Cover::Folder
        } else if is_rule_file() {
            Cover::ReadOnly
        } else {
            Cover::File
        };
        Self { path, cover }
    }
}

/// Lists the denied files and folders of all roots that git does not track. A denied folder is
/// listed without its contents, unless git tracks a part of it.
///
/// The contents of `.git` are not listed: git commands need them. Git is asked which files are
/// tracked. If it cannot answer, none is: its commands fail in such a repository.
///
/// # Errors
/// If rules of a root cannot be used, or a folder cannot be read.
pub fn hidden_paths(view: &AccessView) -> Result<Vec<HiddenPath>, CannotHide> {
    let mut folders = BTreeMap::new();
    for index in 0..view.roots().as_slice().len() {
        let mut left = vec![RelPath::default()];
        while let Some(rel) = left.pop() {
            let folder = DeniedEntries::read(view, index, &rel)?;
            left.extend(folder.folders(&rel));
            // Of two roots, one may be in the other.
            let path = view.roots().as_slice()[index].canonical.join(&rel);
            let same: &mut DeniedEntries = folders.entry(path.as_path().to_owned()).or_default();
            same.add(folder);
        }
    }
    hidden_in(view, &folders, &mut Tracked::default())
}

/// What a walk finds in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedEntries {
    denied: Vec<HiddenPath>,
    /// Denied symbolic links.
    links: Vec<PathBuf>,
    /// Entries whose content decides, and whether they are links. It can change without any event: through another
    /// name of the file, or by a mapping.
    by_content: Vec<(usize, RelPath, bool)>,
    /// Names of the other folders in it.
    folders: Vec<OsString>,
    /// Whether it is a repository.
    is_repository: bool,
}

impl DeniedEntries {
    /// Reads a folder of a root, without following symbolic links.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn read(view: &AccessView, root: usize, rel: &RelPath) -> Result<Self, CannotHide> {
        let folder = view.roots().as_slice()[root].canonical.join(rel);
        let path = folder.as_path();
        let mut found = Self::default();
        let mut names = Vec::new();
        for entry in entries(path)? {
            let entry = entry.map_err(|error| cannot_read(path, &error))?;
            let kind = entry
                .file_type()
                .map_err(|error| cannot_read(&entry.path(), &error))?;
            names.push((entry.file_name(), kind));
        }
        if names.is_empty() && is_searchable_only(path) {
            // A command could open what it knows the name of.
            found.denied.push(HiddenPath::new(path.to_owned(), true));
        }
        view.note_names(
            root,
            rel,
            names.iter().map(|(name, _)| name.as_encoded_bytes()),
        );
        for (name, kind) in names {
            if name == OsStr::new(".git") {
                found.is_repository = true;
                continue;
            }
            let child = rel.child(&name);
            let denial = match view.check_entry(root, &child, kind.is_dir()) {
                Some(denial) if denial.by_content && !kind.is_dir() => {
                    found.by_content.push((root, child, kind.is_symlink()));
                    continue;
                }
                Some(denial) if denial.by_content => view.judge_entry(root, &child, true),
                denial => denial,
            };
            match denial {
                Some(_) if kind.is_symlink() => found.links.push(path.join(name)),
                Some(_) => found
                    .denied
                    .push(HiddenPath::new(path.join(name), kind.is_dir())),
                None if kind.is_dir() => found.folders.push(name),
                None => {}
            }
        }
        Ok(found)
    }

    /// Returns what is denied in it, and denied links.
    fn judge(&self, view: &AccessView) -> (Vec<HiddenPath>, Vec<PathBuf>) {
        let (mut denied, mut links) = (self.denied.clone(), self.links.clone());
        for (root, rel, is_link) in &self.by_content {
            if view.judge_entry(*root, rel, false).is_some() {
                let path = view.roots().as_slice()[*root].canonical.join(rel);
                let path = path.as_path().to_owned();
                match is_link {
                    true => links.push(path),
                    false => denied.push(HiddenPath::new(path, false)),
                }
            }
        }
        (denied, links)
    }

    /// Returns the folders in it that are not denied.
    pub fn folders(&self, rel: &RelPath) -> impl Iterator<Item = RelPath> {
        self.folders.iter().map(|name| rel.child(name))
    }

    /// Returns whether it has a `.git`.
    pub fn is_repository(&self) -> bool {
        self.is_repository
    }

    fn add(&mut self, other: Self) {
        self.denied.extend(other.denied);
        self.links.extend(other.links);
        self.by_content.extend(other.by_content);
        self.is_repository |= other.is_repository;
    }
}

/// Lists what is hidden of the folders of a walk, by path.
///
/// # Errors
/// If rules of a root cannot be used, or a folder cannot be read.
pub fn hidden_in(
    view: &AccessView,
    folders: &BTreeMap<PathBuf, DeniedEntries>,
    tracked: &mut Tracked,
) -> Result<Vec<HiddenPath>, CannotHide> {
    let mut roots = 0..view.roots().as_slice().len();
    if let Some(why) = roots.find_map(|root| view.unusable(root)) {
        return Err(CannotHide::new(format!(
            "cannot tell what is denied: {why}"
        )));
    }
    // Denied entries by the innermost folder with a `.git`.
    let mut repositories: BTreeMap<Option<&Path>, Vec<HiddenPath>> = BTreeMap::new();
    for (path, entries) in folders {
        let (denied, links) = entries.judge(view);
        if !links.is_empty() {
            let targets = links.iter().filter_map(|link| target(view, link));
            repositories.entry(None).or_default().extend(targets);
        }
        if !denied.is_empty() {
            let is_repository = |above: &&Path| match folders.get(*above) {
                Some(folder) => folder.is_repository,
                None => above.join(".git").exists(),
            };
            let repository = path.ancestors().find(is_repository);
            repositories.entry(repository).or_default().extend(denied);
        }
    }
    tracked
        .0
        .retain(|path, _| repositories.contains_key(&Some(path.as_path())));
    let mut found = Vec::new();
    for (repository, denied) in repositories {
        found.extend(tracked.without(repository, denied)?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the target of a denied link if it is outside of all roots. Targets inside of them are judged
/// by their own names.
fn target(view: &AccessView, link: &Path) -> Option<HiddenPath> {
    let target = sightline_base::path::canonicalize(link).ok()?;
    let roots = view.roots().as_slice();
    let is_related = roots.iter().any(|root| {
        let root = root.canonical.as_path();
        target.starts_with(root) || root.starts_with(&target)
    });
    // Devices, such as `/dev/null`, have no content to hide.
    let is_dir = target.is_dir();
    (!is_related && (is_dir || target.is_file())).then(|| HiddenPath::new(target, is_dir))
}

fn entries(
    folder: &Path,
) -> Result<impl Iterator<Item = std::io::Result<fs::DirEntry>>, CannotHide> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        // The command cannot read it either, or it is gone.
        Err(error) if is_unreachable(&error) => Ok(None.into_iter().flatten()),
        Err(error) => Err(cannot_read(folder, &error)),
    }
}

/// Returns whether a folder cannot be read, but what is in it can be opened by its name.
fn is_searchable_only(folder: &Path) -> bool {
    let denied = |result: std::io::Result<()>| {
        result.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    denied(fs::read_dir(folder).map(drop)) && folder.join(".").metadata().is_ok()
}

fn is_unreachable(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> CannotHide {
    CannotHide::new(format!("cannot read {}: {error}", path.display()))
}

/// The tracked files that git listed last.
#[derive(Debug, Default)]
pub struct Tracked(BTreeMap<PathBuf, Listed>);

/// The tracked files of a repository at or below some entries.
#[derive(Debug)]
struct Listed {
    /// Metadata of what git answers by. `None` if it could change without other ones.
    basis: Option<Vec<FileInfo>>,
    asked: Vec<HiddenPath>,
    tracked: BTreeSet<PathBuf>,
}

impl Tracked {
    /// Returns the entries that git does not track. A folder with tracked files is replaced by its
    /// other entries.
    fn without(
        &mut self,
        repository: Option<&Path>,
        denied: Vec<HiddenPath>,
    ) -> Result<Vec<HiddenPath>, CannotHide> {
        let none = BTreeSet::new();
        let tracked = match repository {
            Some(repository) => self.below(repository, &denied),
            None => &none,
        };
        let mut hidden = Vec::new();
        let mut left = denied;
        while let Some(entry) = left.pop() {
            let from = tracked.range(entry.path.clone()..).next();
            if !from.is_some_and(|first| first.starts_with(&entry.path)) {
                hidden.push(entry);
            } else if entry.cover == Cover::Folder {
                for child in entries(&entry.path)? {
                    let child = child.map_err(|error| cannot_read(&entry.path, &error))?;
                    let kind = child
                        .file_type()
                        .map_err(|error| cannot_read(&child.path(), &error))?;
                    if !kind.is_symlink() && child.file_name() != OsStr::new(".git") {
                        left.push(HiddenPath::new(child.path(), kind.is_dir()));
                    }
                }
            }
        }
        Ok(hidden)
    }

    /// Asks git, unless what it answers by and the entries are as before.
    fn below(&mut self, repository: &Path, denied: &[HiddenPath]) -> &BTreeSet<PathBuf> {
        // Also whether git can answer at all. Without one of these, the repository is elsewhere or has no commit.
        let files = ["", "index", "HEAD", "logs/HEAD", "config", "objects"];
        let found = files.map(|file| stat(&repository.join(".git").join(file)).ok());
        let now = now_nanos();
        let is_settled = |it: &FileInfo| it.stamp.is_settled(now);
        let basis = (found.into_iter().collect::<Option<Vec<FileInfo>>>())
            .filter(|basis| basis.iter().all(is_settled));
        let is_current =
            |listed: &Listed| basis.is_some() && listed.basis == basis && listed.asked == denied;
        if !self.0.get(repository).is_some_and(is_current) {
            let (tracked, by_content) = tracked_below(repository, denied).unwrap_or_default();
            let listed = Listed {
                basis: basis.filter(|_| !by_content),
                asked: denied.to_vec(),
                tracked,
            };
            self.0.insert(repository.to_owned(), listed);
        }
        &self.0[repository].tracked
    }
}

/// Returns the tracked files at or below the entries, and whether the content of some decided. `None` if git
/// cannot be asked.
///
/// An entry of the index is not enough: a command can make one for a file that it cannot read (`git add -N`,
/// `git update-index --cacheinfo`). The last commit has the file, or the objects have its content.
fn tracked_below(repository: &Path, denied: &[HiddenPath]) -> Option<(BTreeSet<PathBuf>, bool)> {
    let below = denied
        .iter()
        .filter_map(|entry| entry.path.strip_prefix(repository).ok());
    let listed = ask(repository, "ls-files -sz --", &below.collect::<Vec<_>>())?;
    // `MODE HASH STAGE<tab>PATH`
    let staged: BTreeMap<&Path, &[u8]> = (listed.split(|byte| *byte == 0))
        .filter_map(|entry| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            let hash = entry[..tab].split(|byte| *byte == b' ').nth(1)?;
            Some((Path::new(os_name(&entry[tab + 1..])), hash))
        })
        .collect();
    let all: Vec<&Path> = staged.keys().copied().collect();
    // It fails before the first commit.
    let names = ask(repository, "ls-tree -rz --name-only HEAD --", &all).unwrap_or_default();
    let committed: BTreeSet<&Path> = (names.split(|byte| *byte == 0))
        .map(|name| Path::new(os_name(name)))
        .collect();
    let (mut tracked, mut only_staged): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|path| committed.contains(path));
    only_staged.retain(|path| repository.join(path).is_file());
    let hashes = ask(repository, "hash-object --no-filters --", &only_staged).unwrap_or_default();
    for (path, hash) in only_staged.iter().zip(hashes.split(|byte| *byte == b'\n')) {
        if staged.get(path) == Some(&hash) {
            tracked.push(path);
        }
    }
    let tracked = tracked.into_iter().map(|path| repository.join(path));
    Some((tracked.collect(), !only_staged.is_empty()))
}

/// Asks git about paths of a repository. `None` if it fails.
fn ask(repository: &Path, question: &str, paths: &[&Path]) -> Option<Vec<u8>> {
    if paths.is_empty() {
        return Some(Vec::new());
    }
    let length: usize = paths.iter().map(|path| path.as_os_str().len()).sum();
    let mut command = git();
    command
        .args(format!("-c core.fsmonitor=false -c {NO_HOOKS} --literal-pathspecs").split(' '))
        .args(question.split(' '))
        // Without paths, git lists all files.
        .args(if length > MAX_ARGUMENTS { &[] } else { paths })
        .current_dir(repository);
    output_of(&mut command)
}

/// Runs a command, without threads: the process enters namespaces later. `None` if it fails or takes too long.
fn output_of(command: &mut Command) -> Option<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take().and_then(read_in_time);
    if output.is_none() {
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    output.filter(|_| status.success())
}

/// Reads until the end. `None` after a second.
#[cfg(unix)]
fn read_in_time(mut output: ChildStdout) -> Option<Vec<u8>> {
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let end = Instant::now() + Duration::from_secs(1);
    let mut bytes = Vec::new();
    let mut buffer = [0; 64 << 10];
    loop {
        let left = end.checked_duration_since(Instant::now())?;
        let left = Timespec::try_from(left).ok()?;
        let is_ready = poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&left));
        if is_ready.ok()? == 0 {
            return None;
        }
        match output.read(&mut buffer).ok()? {
            0 => return Some(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Reads until the end.
#[cfg(not(unix))]
fn read_in_time(mut output: ChildStdout) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
