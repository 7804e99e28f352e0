//! Reads a `.clineignore` and the files it includes.
//!
//! Any error makes the content unusable, which denies everything. A rule file that exists but cannot be read must
//! never be treated as missing.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use sightline_protocol::settings::Secrets;

use crate::{gitignore, open};
use sightline_base::{
    fs::dir::{self, Access, Dir, FileInfo, FileType, is_absent},
    limits::{self, MAX_INCLUDES, MAX_RULE_BYTES},
    path::{AbsPath, Root, Roots},
};

/// The name of a rule file.
pub const RULE_FILE: &str = ".clineignore";
/// The name of the configuration file of a project, which can deny access.
pub const PROJECT_FILE: &str = ".sightline.toml";
/// Age until which a file can change without a visible change of its timestamps. It is read again until it is older.
pub(crate) const RACY: Duration = Duration::from_secs(2);
/// Number of attempts to read files that change at the same time.
const READ_ATTEMPTS: usize = 8;
/// Resolution of file timestamps without a fraction of a second (FAT).
const COARSE_TIMES: Duration = Duration::from_secs(2);

/// A rule file as read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

/// The content of a rule file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Missing, or a directory. There are no rules.
    None,
    Text(Arc<[u8]>),
    /// Exists but cannot be used, for this reason.
    Unusable(String),
}

impl Content {
    fn into_text(self) -> Result<Option<Arc<[u8]>>, String> {
        match self {
            Self::None => Ok(None),
            Self::Text(text) => Ok(Some(text)),
            Self::Unusable(why) => Err(why),
        }
    }
}

/// Stat of a file: of the directory entry, and of the target if it is a symlink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileState {
    entry: Result<FileInfo, io::ErrorKind>,
    target: Result<FileInfo, io::ErrorKind>,
}

impl FileState {
    pub(crate) fn of(path: &Path) -> Self {
        let entry = dir::lstat(path).map_err(|error| error.kind());
        let target = match &entry {
            Ok(found) if found.kind == FileType::Symlink => {
                dir::stat(path).map_err(|error| error.kind())
            }
            _ => entry,
        };
        Self { entry, target }
    }

    /// Returns whether there is no file, or a link without a target.
    pub(crate) fn is_missing(&self) -> bool {
        self.target.is_err()
    }

    /// Returns whether the file could have changed after `read_at` without a visible change of its timestamps. Always
    /// true for a timestamp in the future.
    pub(crate) fn is_racy(&self, read_at: SystemTime) -> bool {
        let settled = read_at.checked_sub(RACY).unwrap_or(SystemTime::UNIX_EPOCH);
        [&self.entry, &self.target]
            .into_iter()
            .flatten()
            .any(|found| latest(found) >= settled)
    }

    /// Returns the time of the last change of `path`, whose state this is. A missing file changed when its directory
    /// did.
    pub(crate) fn changed_at(&self, path: &Path) -> Option<SystemTime> {
        let latest = match (&self.entry, &self.target) {
            (Ok(entry), Ok(target)) => latest(entry).max(latest(target)),
            (Err(io::ErrorKind::NotFound), _) => latest(&dir::lstat(path.parent()?).ok()?),
            _ => return None,
        };
        let fraction = latest.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        if fraction.subsec_nanos() == 0 {
            return latest.checked_add(COARSE_TIMES);
        }
        Some(latest)
    }
}

fn latest(found: &FileInfo) -> SystemTime {
    found.stamp.modified().max(found.stamp.changed())
}

/// Reads the rule file of `folder` and all files it includes, each with its state. Reads files again that change
/// during the call. If they keep changing, they are unusable.
pub(crate) fn read_rule_files(folder: &AbsPath) -> (Vec<Source>, Vec<FileState>) {
    let mut attempts = READ_ATTEMPTS;
    loop {
        let (mut sources, seen) = read_once(folder);
        let is_steady = sources
            .iter()
            .zip(&seen)
            .all(|(source, seen)| FileState::of(&source.path) == *seen);
        if is_steady {
            return (sources, seen);
        }
        attempts -= 1;
        if attempts == 0 {
            if let Some(main) = sources.first_mut() {
                main.content = Content::Unusable("keeps changing while it is read".to_owned());
            }
            return (sources, seen);
        }
    }
}

fn read_once(folder: &AbsPath) -> (Vec<Source>, Vec<FileState>) {
    let path = folder.as_path().join(RULE_FILE);
    let mut seen = vec![FileState::of(&path)];
    let mut total = 0;
    let open = || open::open_without_waiting(&path).map(Some);
    let content = read_rule_file(&path, &mut total, open);
    let includes = match &content {
        Content::Text(text) => read_includes(folder, text, &mut total, &mut seen),
        _ => Vec::new(),
    };
    let mut sources = vec![Source { path, content }];
    sources.extend(includes);
    (sources, seen)
}

/// Reads the files that a text in `folder` includes. Each file is read once.
pub(crate) fn includes_of(folder: &AbsPath, text: &[u8]) -> Vec<Source> {
    read_includes(folder, text, &mut 0, &mut Vec::new())
}

fn read_includes(
    folder: &AbsPath,
    text: &[u8],
    total: &mut u64,
    seen: &mut Vec<FileState>,
) -> Vec<Source> {
    let main = folder.as_path().join(RULE_FILE);
    let mut sources: Vec<Source> = Vec::new();
    for written in included_names(text) {
        let (path, content) = match include_path(folder, &written) {
            // A file that includes itself adds nothing.
            Some(path) if path == main => continue,
            Some(path) if sources.iter().any(|source| source.path == path) => continue,
            Some(path) => {
                seen.push(FileState::of(&path));
                let content = read_include(folder, &path, total);
                (path, content)
            }
            None => {
                seen.push(FileState::of(&main));
                let why = format!("includes `{written}`, which is outside this folder");
                (main.clone(), Content::Unusable(why))
            }
        };
        sources.push(Source { path, content });
    }
    sources
}

/// A part of a rule file that contributes rules.
pub(crate) enum RulePart<'a> {
    /// A pattern.
    Line(u32, &'a [u8]),
    /// A line that includes a file, with the path and the text of that file.
    Include(u32, &'a Path, &'a [u8]),
}

/// Returns the parts of a rule file in order, given the files it includes. If several lines include the same file,
/// only the last one counts: its rules match there too, and the last match decides.
pub(crate) fn rule_parts<'a>(
    folder: &AbsPath,
    text: &'a [u8],
    includes: &'a [Source],
) -> Vec<RulePart<'a>> {
    let mut rule_parts = Vec::new();
    let mut is_included = vec![false; includes.len()];
    let lines: Vec<(u32, &[u8])> = gitignore::lines(text).collect();
    for (number, line) in lines.into_iter().rev() {
        let Some(written) = include_of(line) else {
            rule_parts.push(RulePart::Line(number, line));
            continue;
        };
        let Some(path) = include_path(folder, &written) else {
            continue;
        };
        let mut known = includes.iter().zip(&mut is_included);
        let Some((source, is_included)) = known.find(|(source, _)| source.path == path) else {
            continue;
        };
        if let Content::Text(text) = &source.content
            && !std::mem::replace(is_included, true)
        {
            rule_parts.push(RulePart::Include(number, &source.path, text));
        }
    }
    rule_parts.reverse();
    rule_parts
}

/// Returns the names of the included files, in order and without duplicates.
fn included_names(text: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, line) in gitignore::lines(text) {
        if let Some(name) = include_of(line)
            && !names.contains(&name)
        {
            names.push(name);
            if names.len() > MAX_INCLUDES {
                break;
            }
        }
    }
    names
}

/// Returns the paths of the files that a rule file in `folder` with this text includes.
pub(crate) fn included_paths(folder: &AbsPath, text: Vec<u8>) -> Vec<PathBuf> {
    let text = decode(text).unwrap_or_default();
    let names = included_names(&text).into_iter();
    names
        .filter_map(|name| include_path(folder, &name))
        .collect()
}

/// Returns the name in an `!include` line.
pub(crate) fn include_of(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let rest = line.trim().strip_prefix("!include")?;
    let name = rest.trim_start();
    (name.len() < rest.len() && !name.is_empty()).then(|| name.to_owned())
}

/// Reads an included file. Its written path is below `folder`.
fn read_include(folder: &AbsPath, path: &Path, total: &mut u64) -> Content {
    read_rule_file(path, total, || open_below(folder.as_path(), path))
}

/// Reads a small text file with the limits and checks of a rule file. Returns `None` if it is missing or a directory.
///
/// # Errors
/// The reason if it exists but cannot be used.
pub fn read_small_file(path: &Path) -> Result<Option<Arc<[u8]>>, String> {
    read_rule_file(path, &mut 0, || open::open_without_waiting(path).map(Some)).into_text()
}

/// Like [`read_small_file`], for the [`PROJECT_FILE`] of `folder`. A link can only be used if agents may read its target
/// and the target is in the folder, because problems of the file are shown to them.
///
/// # Errors
/// The reason if it exists but cannot be used.
pub fn read_project_file(folder: &AbsPath) -> Result<Option<Arc<[u8]>>, String> {
    let path = folder.as_path().join(PROJECT_FILE);
    let is_link = fs::symlink_metadata(&path).is_ok_and(|entry| entry.is_symlink());
    if !is_link {
        let open = || {
            let dir =
                Dir::open_no_symlinks(&sightline_base::path::canonicalize(folder.as_path())?)?;
            dir.open(PROJECT_FILE.as_ref(), Access::Read).map(Some)
        };
        return read_rule_file(&path, &mut 0, open).into_text();
    }
    let open = || {
        let real = sightline_base::path::canonicalize(&path)?;
        if !real.starts_with(sightline_base::path::canonicalize(folder.as_path())?) {
            return Ok(None);
        }
        let roots = Arc::new(Roots::new(vec![Root::new(folder.clone(), None)]));
        let view = crate::Access::new(roots, Vec::new(), Secrets::Deny)
            .view()
            .0;
        let target = AbsPath::new(&real).map(|real| view.roots().place(real));
        match target.map(|target| view.open_for_read(&target, false)) {
            Some(Ok(opened)) => opened.into_file().map(Some),
            _ => None,
        }
        .ok_or_else(|| io::Error::other("agents may not see its target"))
    };
    read_rule_file(&path, &mut 0, open).into_text()
}

/// Returns the path of an included file, or `None` if it is outside of the folder. A leading slash means the folder
/// itself, unless the path is an absolute path inside of it.
pub(crate) fn include_path(folder: &AbsPath, written: &str) -> Option<PathBuf> {
    let inside = |path: AbsPath| {
        let rel = path.relative_to(folder)?;
        Some(folder.join(&rel).as_path().to_path_buf())
    };
    let absolute = AbsPath::new(Path::new(written)).and_then(inside);
    absolute.or_else(|| {
        let below = written.trim_start_matches('/');
        inside(AbsPath::new(&folder.as_path().join(below))?)
    })
}

/// Opens the file that `path` resolves to, or returns `None` if it is outside of `folder`. Opens the resolved path
/// without following symlinks, so a concurrent exchange of symlinks has no effect.
fn open_below(folder: &Path, path: &Path) -> io::Result<Option<File>> {
    let real = sightline_base::path::canonicalize(path)?;
    if !real.starts_with(sightline_base::path::canonicalize(folder)?) {
        return Ok(None);
    }
    let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
        return Ok(None);
    };
    let above = Dir::open_no_symlinks(above)?;
    let file = above.open(name, Access::Read)?;
    if !above.is_same_file(name, &real) {
        return Err(io::Error::other("it was replaced"));
    }
    Ok(Some(file))
}

fn read_rule_file(
    path: &Path,
    total: &mut u64,
    open: impl FnOnce() -> io::Result<Option<File>>,
) -> Content {
    let unusable = |why: String| Content::Unusable(why);
    let entry = match fs::symlink_metadata(path) {
        Ok(entry) => entry,
        Err(error) if is_absent(&error) => return Content::None,
        Err(error) => return unusable(format!("cannot be examined ({error})")),
    };
    if entry.is_dir() {
        return Content::None;
    }
    let file = match open() {
        Ok(Some(file)) => file,
        Ok(None) => return unusable("is a link to a file outside this folder".to_owned()),
        Err(error) if entry.is_symlink() => {
            return unusable(format!("is a link that cannot be followed ({error})"));
        }
        // Deleted after the stat.
        Err(error) if is_absent(&error) => return Content::None,
        Err(error) => return unusable(format!("cannot be opened ({error})")),
    };
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return unusable(format!("cannot be examined ({error})")),
    };
    if !metadata.is_file() {
        return unusable("is not a regular file".to_owned());
    }
    let mut text = Vec::new();
    let limit = limits::MAX_RULE_FILE_BYTES;
    if let Err(error) = file.take(limit + 1).read_to_end(&mut text) {
        return unusable(format!("cannot be read ({error})"));
    }
    if text.len() as u64 > limit {
        return unusable(format!("has more than {limit} bytes"));
    }
    *total = total.saturating_add(text.len() as u64);
    if *total > MAX_RULE_BYTES {
        return unusable(format!(
            "increases the size of the rules to more than {MAX_RULE_BYTES} bytes"
        ));
    }
    match decode(text) {
        Ok(text) => Content::Text(text.into()),
        Err(why) => unusable(why),
    }
}

/// Converts rules to UTF-8. Windows editors and shells write UTF-16, in which no pattern would match.
fn decode(text: Vec<u8>) -> Result<Vec<u8>, String> {
    let encoding = match text.as_slice() {
        [0xff, 0xfe, ..] => encoding_rs::UTF_16LE,
        [0xfe, 0xff, ..] => encoding_rs::UTF_16BE,
        _ if text.contains(&0) => {
            return Err("contains NUL bytes; save it as UTF-8 text".to_owned());
        }
        _ => return Ok(text),
    };
    let (decoded, _, bad) = encoding.decode(&text);
    // UTF-32 looks like UTF-16 with many NULs.
    if bad || decoded.contains('\0') {
        return Err("is not valid UTF-16; save it as UTF-8 text".to_owned());
    }
    Ok(decoded.into_owned().into_bytes())
}

/// Returns the project that contains a folder, else the folder. The rules of a folder below the
/// project can only deny, so its own rules do not make it a project.
pub fn root_above(folder: &AbsPath) -> Root {
    // By a link, an agent could leave the project that contains the folder.
    let real = sightline_base::path::canonicalize(folder.as_path()).ok();
    let found = real
        .as_deref()
        .and_then(project_of)
        .or_else(|| project_of(folder.as_path()))
        .and_then(AbsPath::new);
    Root::new(found.unwrap_or_else(|| folder.clone()), None)
}

/// Returns the repository that contains a folder, else the topmost folder above it with rules.
pub fn project_of(folder: &Path) -> Option<&Path> {
    let mut above = folder.ancestors();
    if let Some(repository) = above.find(|folder| folder.join(".git").exists()) {
        return Some(repository);
    }
    // A dangling symlink counts, because it denies everything.
    let has_rules = |folder: &&Path| folder.join(RULE_FILE).symlink_metadata().is_ok();
    let mut with_rules = folder.ancestors().filter(has_rules);
    let nearest = with_rules.next()?;
    // Rules in the home folder or above it are for all projects in it.
    let home = sightline_base::path::home_dir().unwrap_or_default();
    let topmost = with_rules
        .take_while(|folder| !home.starts_with(folder))
        .last();
    Some(topmost.unwrap_or(nearest))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        os::unix::fs::symlink,
        sync::atomic::{AtomicBool, Ordering},
        time::Instant,
    };

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;

    /// The opened file is the one that was inside of the folder.
    #[test]
    fn exchanging_an_include_with_a_link_gains_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let top = sightline_base::path::canonicalize(dir.path()).unwrap();
        let folder = top.join("ws");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("inside"), "a\n").unwrap();
        fs::write(top.join("outside"), "leaked\n").unwrap();
        let (rules, other) = (folder.join("rules"), folder.join("other"));
        symlink(folder.join("inside"), &rules).unwrap();
        symlink(top.join("outside"), &other).unwrap();
        let folder = AbsPath::new(&folder).unwrap();
        let is_over = AtomicBool::new(false);
        let (mut reads, mut leaks) = (0, 0);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &rules, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let until = Instant::now() + Duration::from_secs(2);
            while reads < 20_000 && Instant::now() < until {
                let content = read_include(&folder, &rules, &mut 0);
                let is_leak =
                    matches!(&content, Content::Text(text) if text.starts_with(b"leaked"));
                leaks += u32::from(is_leak);
                reads += u32::from(matches!(content, Content::Text(_)));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(leaks, 0, "of {reads}");
        assert!(reads > 0);
    }
}
