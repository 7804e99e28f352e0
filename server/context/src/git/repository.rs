//! Reads remotes, branch and commit of the user's repository, without libgit2.
//!
//! libgit2 opens files on its own: includes, links, `commondir`. Here each file is checked by
//! [`sightline_access`] and opened once, so no denied file is read. A fact is left out if one of its
//! files cannot be read.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use sightline_protocol::error::ErrorKind;

use super::config;
use sightline_access::{AccessView, OpenedFile, Verdict};
use sightline_base::{
    fs::dir::stat,
    limits::{MAX_GIT_FILE_BYTES, MAX_PACKED_REFS_BYTES},
    path::AbsPath,
};

/// Maximum symbolic refs followed for one commit. Same as git.
const MAX_SYMBOLIC_REFS: usize = 5;

/// A file that cannot be read or is denied.
struct Unreadable;

/// A repository, read under the access rules.
pub struct Repository<'a> {
    view: &'a AccessView,
    /// Directory of this work tree, with `HEAD`.
    git: AbsPath,
    /// Directory shared by all work trees, with refs and configuration.
    common: AbsPath,
}

impl<'a> Repository<'a> {
    /// Finds the repository of `dir`, searching upwards within one file system.
    pub fn discover(view: &'a AccessView, dir: &Path) -> Option<Self> {
        let written = AbsPath::new(dir)?;
        if is_denied(view, &written) {
            return None;
        }
        let real = sightline_base::path::canonicalize(dir).ok()?;
        let device = device(&real)?;
        let folders = real
            .ancestors()
            .take_while(|folder| self::device(folder) == Some(device));
        for folder in folders {
            let dot_git = AbsPath::new(&folder.join(".git"))?;
            if is_denied(view, &dot_git) {
                return None;
            }
            let found = match fs::metadata(dot_git.as_path()) {
                Ok(metadata) if metadata.is_dir() => Self::at(view, dot_git),
                Ok(_) => return Self::at_link(view, folder, &dot_git),
                // A bare repository has no `.git`.
                Err(_) => Self::at(view, AbsPath::new(folder)?),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Opens the repository that a `.git` file of a work tree or submodule refers to.
    fn at_link(view: &'a AccessView, folder: &Path, file: &AbsPath) -> Option<Self> {
        let text = first_line(read(view, file).ok()??);
        let git = text.strip_prefix("gitdir:")?.trim();
        Self::at(view, AbsPath::new(&folder.join(git))?)
    }

    fn at(view: &'a AccessView, git: AbsPath) -> Option<Self> {
        if is_denied(view, &git) || fs::symlink_metadata(git.as_path().join("HEAD")).is_err() {
            return None;
        }
        let common = match read(view, &AbsPath::new(&git.as_path().join("commondir"))?).ok()? {
            Some(text) => {
                // Relative to the real location of the directory.
                let base = sightline_base::path::canonicalize(git.as_path()).ok()?;
                AbsPath::new(&base.join(first_line(text).trim()))?
            }
            None => git.clone(),
        };
        let has = |name: &str| common.as_path().join(name).is_dir();
        (has("objects") && has("refs")).then_some(Self { view, git, common })
    }

    /// Returns the remotes and their URLs, sorted by name, from the shared configuration. Returns
    /// none if it includes other files.
    pub fn remotes(&self) -> Vec<(String, String)> {
        let path = AbsPath::new(&self.common.as_path().join("config"));
        let text = path.and_then(|path| read(self.view, &path).ok().flatten());
        text.and_then(|text| config::remotes(&text))
            .unwrap_or_default()
    }

    /// Returns the hex id of the current commit.
    pub fn head(&self) -> Option<String> {
        let mut name = "HEAD".to_owned();
        for _ in 0..=MAX_SYMBOLIC_REFS {
            let Some(text) = self.read_ref(&name).ok()? else {
                return self.packed(&name).ok().flatten();
            };
            match Target::of(&text)? {
                Target::Commit(id) => return Some(id),
                Target::Ref(next) => name = next,
            }
        }
        None
    }

    /// Returns the current branch, which may have no commit yet.
    pub fn branch(&self) -> Option<String> {
        match Target::of(&self.read_ref("HEAD").ok()??)? {
            Target::Ref(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
            Target::Commit(_) => None,
        }
    }

    fn read_ref(&self, name: &str) -> Result<Option<String>, Unreadable> {
        let own = ["refs/bisect/", "refs/rewritten/", "refs/worktree/"];
        let is_own = name == "HEAD" || own.iter().any(|start| name.starts_with(start));
        let folder = if is_own { &self.git } else { &self.common };
        let path = AbsPath::new(&folder.as_path().join(name)).ok_or(Unreadable)?;
        // Deleting a branch can leave an empty directory.
        if !is_denied(self.view, &path) && path.as_path().is_dir() {
            return Ok(None);
        }
        Ok(read(self.view, &path)?.map(first_line))
    }

    /// Looks up a ref in `packed-refs`.
    fn packed(&self, name: &str) -> Result<Option<String>, Unreadable> {
        let path = AbsPath::new(&self.common.as_path().join("packed-refs")).ok_or(Unreadable)?;
        let Some(file) = open(self.view, &path)? else {
            return Ok(None);
        };
        for line in BufReader::new(file.take(MAX_PACKED_REFS_BYTES)).split(b'\n') {
            let line = line.map_err(|_| Unreadable)?;
            let Some((id, packed)) = str::from_utf8(&line).ok().and_then(|l| l.split_once(' '))
            else {
                continue;
            };
            if packed.trim_end() == name && is_id(id) {
                return Ok(Some(id.to_owned()));
            }
        }
        Ok(None)
    }
}

/// Target of a ref file.
enum Target {
    Commit(String),
    Ref(String),
}

impl Target {
    fn of(line: &str) -> Option<Self> {
        if let Some(name) = line.strip_prefix("ref:") {
            let name = name.trim();
            return is_ref(name).then(|| Self::Ref(name.to_owned()));
        }
        let id = line.split_whitespace().next()?;
        is_id(id).then(|| Self::Commit(id.to_owned()))
    }
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether `name` is a valid ref name, which cannot lead outside `refs/`.
fn is_ref(name: &str) -> bool {
    let is_odd = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    name.starts_with("refs/")
        && !name.contains(is_odd)
        && !name.contains("..")
        && name
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
}

fn is_denied(view: &AccessView, path: &AbsPath) -> bool {
    let verdict = view.check(&view.roots().place(path.clone()));
    matches!(verdict, Verdict::Denied(_))
}

/// Opens a regular file if the rules allow it; `None` if it does not exist. A repository may lie
/// outside every root: it may contain a root, or belong to a linked work tree.
fn open(view: &AccessView, path: &AbsPath) -> Result<Option<OpenedFile>, Unreadable> {
    match view.open_for_read(&view.roots().place(path.clone()), true) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(_) => Err(Unreadable),
    }
}

fn read(view: &AccessView, path: &AbsPath) -> Result<Option<Vec<u8>>, Unreadable> {
    let Some(file) = open(view, path)? else {
        return Ok(None);
    };
    let mut text = Vec::new();
    let read = file.take(MAX_GIT_FILE_BYTES + 1).read_to_end(&mut text);
    match read {
        Ok(_) if text.len() as u64 <= MAX_GIT_FILE_BYTES => Ok(Some(text)),
        _ => Err(Unreadable),
    }
}

fn first_line(text: Vec<u8>) -> String {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}

/// Returns the device of a directory.
fn device(folder: &Path) -> Option<u64> {
    Some(stat(folder).ok()?.device)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use git2::Signature;

    use super::*;
    use crate::git;
    use sightline_access::Access;
    use sightline_base::path::Roots;
    use sightline_protocol::settings::Secrets;

    fn view() -> AccessView {
        Access::new(Arc::new(Roots::default()), Vec::new(), Secrets::Allow)
            .view()
            .0
    }

    #[test]
    fn a_repository_created_by_libgit2_is_read() {
        git::isolate();
        let folder = tempfile::tempdir().unwrap();
        let made = git2::Repository::init(folder.path()).unwrap();
        made.remote("upstream", "git@host:o/r.git").unwrap();
        made.remote("origin", "https://host/o/r.git").unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let view = view();
        let found = Repository::discover(&view, &below).unwrap();
        assert_eq!(found.head(), None);
        let name = made.find_reference("HEAD").unwrap();
        let name = name.symbolic_target().unwrap().unwrap();
        let branch = found.branch().unwrap();
        assert_eq!(format!("refs/heads/{branch}"), name);
        let remotes = found.remotes();
        let names: Vec<_> = remotes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["origin", "upstream"]);

        let me = Signature::now("me", "me@example.org").unwrap();
        let tree = made.treebuilder(None).unwrap().write().unwrap();
        let tree = made.find_tree(tree).unwrap();
        let commit = made
            .commit(Some("HEAD"), &me, &me, "first", &tree, &[])
            .unwrap();
        assert_eq!(found.head(), Some(commit.to_string()));
        made.set_head_detached(commit).unwrap();
        assert_eq!(
            (found.head(), found.branch()),
            (Some(commit.to_string()), None)
        );

        let tree = folder.path().join("tree");
        made.worktree("tree", &tree, None).unwrap();
        let found = Repository::discover(&view, &tree).unwrap();
        assert_eq!(found.head(), Some(commit.to_string()));
        assert_eq!(found.branch().as_deref(), Some("tree"));
        assert_eq!(found.remotes().len(), 2);
    }

    #[test]
    fn a_bare_repository_is_found() {
        git::isolate();
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init_bare(folder.path()).unwrap();
        assert!(Repository::discover(&view(), folder.path()).is_some());
    }

    #[test]
    fn a_missing_or_broken_repository_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let view = view();
        assert!(Repository::discover(&view, &folder.path().join("missing")).is_none());
        fs::write(folder.path().join(".git"), "gitdir: nowhere").unwrap();
        assert!(Repository::discover(&view, folder.path()).is_none());
    }

    #[test]
    fn only_names_below_refs_are_valid() {
        for name in ["refs/heads/main", "refs/heads/a.b/c-d", "refs/remotes/o/é"] {
            assert!(is_ref(name), "{name}");
        }
        for name in [
            "HEAD",
            "../x",
            "refs/../x",
            "refs/heads/..",
            "refs//x",
            "refs/heads/.x",
            "refs/heads/x.lock",
            "/refs/x",
            "refs/a\\b",
            "refs/a b",
            "",
        ] {
            assert!(!is_ref(name), "{name}");
        }
    }
}
