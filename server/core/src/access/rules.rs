//! The access rules of one folder: its `.clineignore` and what that includes.
//!
//! Owns reading the files, what is wrong with them, and noticing that they
//! changed. Everything that goes wrong denies: a rule file that is there but
//! cannot be understood must never count as "no rules".

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    glob::Case,
    open,
    pattern::{self, PatternSet},
};
use crate::{
    limits::{self, MAX_INCLUDES},
    path::{AbsPath, RelPath},
};

/// The rule file.
pub const RULE_FILE: &str = ".clineignore";
/// A file changed this shortly before it was read can change again without its
/// times showing it, so it is read again until it is older.
const RACY: Duration = Duration::from_secs(2);

/// What the rules of a folder are.
#[derive(Debug)]
pub(super) enum Rules {
    /// There is no rule file, or an empty one: nothing is denied.
    None,
    /// Patterns, and the lines they come from, what is included in its place.
    Patterns(Box<PatternSet>, Box<[u8]>),
    /// Everything is denied, because of this.
    Broken(String),
}

/// The rules of a folder as last read, with what is needed to see a change.
#[derive(Debug)]
pub(super) struct RuleFiles {
    folder: AbsPath,
    rules: Arc<Rules>,
    sources: Vec<Source>,
    seen: Vec<Sighting>,
    read_at: SystemTime,
}

/// A rule file as read.
#[derive(Debug, PartialEq)]
struct Source {
    path: PathBuf,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Not there, or a folder: no rules.
    None,
    Text(Arc<[u8]>),
    /// There, but unusable; in words.
    Unusable(String),
}

impl RuleFiles {
    /// Reads the rules of `folder`.
    pub(super) fn read(folder: AbsPath) -> Self {
        let read_at = SystemTime::now();
        let (sources, seen) = gather(&folder);
        let rules = Arc::new(compile(&folder, &sources));
        Self {
            folder,
            rules,
            sources,
            seen,
            read_at,
        }
    }

    /// The rules.
    pub(super) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// The files whose change changes the rules; some may not exist.
    pub(super) fn watched(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().map(|source| source.path.as_path())
    }

    /// Reads the files again when they may have changed; says whether they did.
    /// The old rules hold until the new ones are complete.
    pub(super) fn refresh(&mut self) -> bool {
        let racy = self.seen.iter().any(|seen| seen.is_racy(self.read_at));
        let same = self
            .sources
            .iter()
            .zip(&self.seen)
            .all(|(source, seen)| Sighting::of(&source.path) == *seen);
        if same && !racy {
            return false;
        }
        let read_at = SystemTime::now();
        let (sources, seen) = gather(&self.folder);
        self.read_at = read_at;
        self.seen = seen;
        if sources == self.sources {
            return false;
        }
        self.rules = Arc::new(compile(&self.folder, &sources));
        self.sources = sources;
        true
    }
}

/// What can be seen of a file without reading it: its own entry, and where a
/// link leads.
#[derive(Clone, Debug, PartialEq)]
struct Sighting {
    entry: Result<Stamp, io::ErrorKind>,
    target: Result<Stamp, io::ErrorKind>,
}

#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    identity: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
    changed: Option<SystemTime>,
}

impl Sighting {
    fn of(path: &Path) -> Self {
        let stamp = |result: &io::Result<fs::Metadata>| match result {
            Ok(metadata) => Ok(Stamp::of(metadata)),
            Err(error) => Err(error.kind()),
        };
        let seen = fs::symlink_metadata(path);
        let entry = stamp(&seen);
        let target = match seen {
            Ok(metadata) if metadata.is_symlink() => stamp(&fs::metadata(path)),
            // It leads to itself.
            _ => entry.clone(),
        };
        Self { entry, target }
    }

    /// Could the file have been written again, unnoticed, after `read_at`? A
    /// time in the future keeps it so.
    fn is_racy(&self, read_at: SystemTime) -> bool {
        let settled = read_at.checked_sub(RACY).unwrap_or(SystemTime::UNIX_EPOCH);
        [&self.entry, &self.target]
            .into_iter()
            .flatten()
            .any(|stamp| stamp.modified.max(stamp.changed) >= Some(settled))
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let (identity, changed) = {
            use std::os::unix::fs::MetadataExt;
            let since_epoch = Duration::new(
                u64::try_from(metadata.ctime()).unwrap_or(0),
                u32::try_from(metadata.ctime_nsec()).unwrap_or(0),
            );
            (
                (metadata.dev(), metadata.ino()),
                SystemTime::UNIX_EPOCH.checked_add(since_epoch),
            )
        };
        #[cfg(not(unix))]
        let (identity, changed) = ((0, 0), metadata.created().ok());
        Self {
            identity,
            len: metadata.len(),
            modified: metadata.modified().ok(),
            changed,
        }
    }
}

/// Reads the rule file and everything it includes. The sightings are from
/// before the reading, so that a change in between is seen the next time.
fn gather(folder: &AbsPath) -> (Vec<Source>, Vec<Sighting>) {
    let mut sources = Vec::new();
    let mut seen = Vec::new();
    let mut total = 0;
    let main = folder.as_path().join(RULE_FILE);
    seen.push(Sighting::of(&main));
    let content = read_rule_file(&main, &mut total);
    let includes = match &content {
        Content::Text(text) => included(text),
        _ => Vec::new(),
    };
    sources.push(Source {
        path: main.clone(),
        content,
    });
    for written in includes {
        let (path, content) = match include_path(folder, &written) {
            Some(path) => {
                seen.push(Sighting::of(&path));
                let content = content_of(folder, &path, &mut total);
                (path, content)
            }
            None => {
                seen.push(Sighting::of(&main));
                let why = format!("includes `{written}`, which lies outside this folder");
                (main.clone(), Content::Unusable(why))
            }
        };
        sources.push(Source { path, content });
    }
    (sources, seen)
}

/// The names of the files a rule file includes, in order and without repeats.
fn included(text: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, line) in pattern::lines(text) {
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

/// The file an `!include` line names.
pub(super) fn include_of(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let rest = line.trim().strip_prefix("!include")?;
    let name = rest.trim_start();
    (name.len() < rest.len() && !name.is_empty()).then(|| name.to_owned())
}

/// What a file holds that is included in the rules of `folder`.
pub(super) fn included_content(folder: &AbsPath, name: &str) -> Content {
    match include_path(folder, name) {
        None => Content::Unusable("lies outside this folder".to_owned()),
        Some(path) => content_of(folder, &path, &mut 0),
    }
}

/// What an included file holds, whose path is below `folder` as it is written.
fn content_of(folder: &AbsPath, path: &Path, total: &mut u64) -> Content {
    if leaves_by_link(folder, path) {
        return Content::Unusable("is a link that leads outside this folder".to_owned());
    }
    read_rule_file(path, total)
}

/// Where an include lies; `None` when that is outside the folder. A leading
/// slash means the folder itself, unless the whole path leads into it.
fn include_path(folder: &AbsPath, written: &str) -> Option<PathBuf> {
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

/// Does a file that exists lie elsewhere when links are followed?
fn leaves_by_link(folder: &AbsPath, path: &Path) -> bool {
    let Ok(real) = fs::canonicalize(path) else {
        // Missing or broken, which reading it will tell.
        return false;
    };
    fs::canonicalize(folder.as_path()).map_or(true, |folder| !real.starts_with(folder))
}

fn read_rule_file(path: &Path, total: &mut u64) -> Content {
    let unusable = |why: String| Content::Unusable(why);
    let entry = match fs::symlink_metadata(path) {
        Ok(entry) => entry,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Content::None,
        Err(error) => return unusable(format!("cannot be examined ({error})")),
    };
    if entry.is_dir() {
        return Content::None;
    }
    let (file, metadata) = match open::open_without_waiting(path) {
        Ok(opened) => opened,
        Err(error) if entry.is_symlink() => {
            return unusable(format!("is a link that cannot be followed ({error})"));
        }
        // Deleted this moment.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Content::None,
        Err(error) => return unusable(format!("cannot be opened ({error})")),
    };
    if !metadata.is_file() {
        return unusable("is not a regular file".to_owned());
    }
    let mut text = Vec::new();
    let limit = limits::MAX_RULE_FILE_BYTES;
    if let Err(error) = file.take(limit + 1).read_to_end(&mut text) {
        return unusable(format!("cannot be read ({error})"));
    }
    *total = total.saturating_add(text.len() as u64);
    if *total > limit {
        return unusable(format!("makes more than {limit} bytes of rules"));
    }
    match decoded(text) {
        Ok(text) => Content::Text(text.into()),
        Err(why) => unusable(why),
    }
}

/// Rules as bytes in UTF-8. Windows editors and shells write UTF-16, which read
/// as bytes would be rules that match nothing.
fn decoded(text: Vec<u8>) -> Result<Vec<u8>, String> {
    let encoding = match text.as_slice() {
        [0xff, 0xfe, ..] => encoding_rs::UTF_16LE,
        [0xfe, 0xff, ..] => encoding_rs::UTF_16BE,
        _ if text.contains(&0) => {
            return Err("contains NUL bytes; save it as UTF-8 text".to_owned());
        }
        _ => return Ok(text),
    };
    let (decoded, _, bad) = encoding.decode(&text);
    // UTF-32 looks like UTF-16 full of NULs.
    if bad || decoded.contains('\0') {
        return Err("is damaged UTF-16; save it as UTF-8 text".to_owned());
    }
    Ok(decoded.into_owned().into_bytes())
}

fn compile(folder: &AbsPath, sources: &[Source]) -> Rules {
    let name = |path: &Path| {
        let below = path.strip_prefix(folder.as_path()).unwrap_or(path);
        RelPath::new(below).map_or_else(|| path.display().to_string(), |rel| rel.to_wire().0)
    };
    if sources.len() > MAX_INCLUDES + 1 {
        return Rules::Broken(format!(
            "`{RULE_FILE}` includes more than {MAX_INCLUDES} files; everything in {} is denied until it includes fewer",
            folder.display()
        ));
    }
    for source in sources {
        if let Content::Unusable(why) = &source.content {
            return Rules::Broken(format!(
                "the access rules of {} cannot be used: `{}` {why}; everything in this folder is denied until that is repaired",
                folder.display(),
                name(&source.path)
            ));
        }
    }
    let Some((main, includes)) = sources.split_first() else {
        return Rules::None;
    };
    let Content::Text(text) = &main.content else {
        return Rules::None;
    };
    if text.is_empty() {
        return Rules::None;
    }
    let mut patterns = PatternSet::new(Case::Folded);
    let mut lines = Vec::with_capacity(text.len());
    let source: Arc<str> = Arc::from(RULE_FILE);
    for (line, text) in pattern::lines(text) {
        let Some(written) = include_of(text) else {
            patterns.add_line(&source, line, text);
            lines.extend_from_slice(text);
            lines.push(b'\n');
            continue;
        };
        let included = include_path(folder, &written)
            .and_then(|path| includes.iter().find(|include| include.path == path));
        if let Some(Source {
            path,
            content: Content::Text(text),
        }) = included
        {
            patterns.add_text(&name(path), text);
            for (_, text) in pattern::lines(text) {
                lines.extend_from_slice(text);
                lines.push(b'\n');
            }
        }
    }
    patterns.add_line(&Arc::from("built-in"), 0, RULE_FILE.as_bytes());
    lines.extend_from_slice(RULE_FILE.as_bytes());
    Rules::Patterns(Box::new(patterns), lines.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that no time and no length shows is found as long as the file is
    /// so young that this can happen, and only so long is the file read again.
    #[test]
    fn a_young_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RULE_FILE);
        fs::write(&path, "a\n").unwrap();
        let mut files = RuleFiles::read(AbsPath::new(dir.path()).unwrap());
        let change_unseen = |files: &mut RuleFiles, text: &str| {
            fs::write(&path, text).unwrap();
            files.seen = vec![Sighting::of(&path)];
        };
        change_unseen(&mut files, "b\n");
        assert!(files.refresh());
        assert!(!files.refresh());
        change_unseen(&mut files, "c\n");
        files.read_at = SystemTime::now() + 2 * RACY;
        assert!(!files.refresh());
        // A file from the future stays young.
        let future = SystemTime::now() + 100 * RACY;
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(future).unwrap();
        files.seen = vec![Sighting::of(&path)];
        assert!(files.refresh());
    }
}
