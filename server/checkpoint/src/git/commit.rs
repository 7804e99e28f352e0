//! Commits a checkpoint to a new branch of the user's repository. Writes objects and one ref: the index,
//! `HEAD` and the work tree stay as they are.
//!
//! The commit changes what its parent has at the paths that the checkpoint knows. What the checkpoint
//! excluded, and what access rules deny now, is as in the parent.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use sightline_access::gitignore::bytes_of;
use sightline_base::{cancel::Cancel, path::RelPath, storage::atomic_file::failed};
use sightline_context::git::Repository as UserRepository;
use sightline_protocol::error::ErrorKind;
use tempfile::TempDir;

use super::process::{git_command, run};
use crate::{
    checkpoints::Checkpoints,
    error::Error,
    job::Job,
    metadata::{Checkpoint, excluded::ExcludedThen},
    store::{
        object::{Mode, Oid},
        odb::Odb,
    },
    tree_diff::{DeniedPaths, Difference, Leaf, Tree, shown_differences},
    worktree::snapshot::below,
};

/// Author without a configured one.
const AUTHOR: [(&str, &str); 2] = [("NAME", "Sightline"), ("EMAIL", "sightline@localhost")];
/// Attributes by which git changes the content of a file before it stores it.
const CONVERSIONS: &[&str] = &[
    "text",
    "crlf",
    "eol",
    "ident",
    "filter",
    "working-tree-encoding",
];
/// Mode of a submodule.
const SUBMODULE: &[u8] = b"160000";

impl Checkpoints {
    /// Creates a commit of a checkpoint on a new branch. Returns its id. The parent is the commit that
    /// was checked out when the checkpoint was created.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint, or without its parent; `conflict` if the branch exists;
    /// `invalidParams` for an invalid name; `unsupported` without a repository or git; `accessDenied`
    /// while the access rules cannot be used; `cancelled`; `storage`.
    pub fn commit(
        &self,
        job: &Job<'_>,
        id: Oid,
        branch: &str,
        message: &str,
    ) -> Result<String, Error> {
        job.require_rules()?;
        let write = || {
            let checkpoint = self.get(id)?;
            let git = UserGit::open(self, job)?;
            git.require_new(branch)?;
            let parent = git.parent_of(&checkpoint)?;
            let committed = Committed {
                git: &git,
                job,
                reader: &self.existing_repository()?.odb(),
                checkpoint: &checkpoint,
            };
            let tree = committed.write(parent.as_deref())?;
            let commit = git.commit_tree(&tree, parent.as_deref(), message)?;
            job.cancel.commit()?;
            git.create_branch(branch, &commit)?;
            Ok(commit)
        };
        self.unless_pruned(&[id], write())
    }
}

fn refused(kind: ErrorKind, cause: impl Display) -> Error {
    Error::new(kind, format!("cannot commit the checkpoint: {cause}"))
}

/// The user's repository, with a temporary index.
struct UserGit<'a> {
    cancel: &'a Cancel,
    /// The workspace folder.
    root: PathBuf,
    /// The folder in the repository, with a trailing slash, or empty.
    prefix: Vec<u8>,
    /// Length of an id in hexadecimal digits.
    id_length: usize,
    temp: TempDir,
}

impl<'a> UserGit<'a> {
    fn open(checkpoints: &Checkpoints, job: &Job<'a>) -> Result<Self, Error> {
        let root = checkpoints.work_tree().to_path_buf();
        if UserRepository::discover(job.view, &root).is_none() {
            let cause = format!("{} is in no git repository", root.display());
            return Err(refused(ErrorKind::Unsupported, cause));
        }
        let dir = checkpoints.state_dir();
        checkpoints.storage.make_dir(&dir)?;
        let temp = tempfile::Builder::new()
            .prefix("commit-")
            .tempdir_in(&dir)
            .map_err(|error| failed("create a folder in", &dir, error))?;
        let mut git = Self {
            cancel: job.cancel,
            root,
            prefix: Vec::new(),
            id_length: 40,
            temp,
        };
        let prefix = git.run(&["rev-parse", "--show-prefix"], Vec::new())?;
        git.prefix = prefix.strip_suffix(b"\n").unwrap_or(&prefix).to_vec();
        // Older versions of git know no other format.
        let format = git.try_run(&["rev-parse", "--show-object-format"], Vec::new())?;
        if format.is_some_and(|format| format.starts_with(b"sha256")) {
            git.id_length = 64;
        }
        Ok(git)
    }

    fn command(&self) -> Command {
        let mut git = git_command();
        git.current_dir(&self.root)
            .env("GIT_INDEX_FILE", self.temp.path().join("index"))
            .env("GIT_NO_LAZY_FETCH", "1")
            .args([
                "-c",
                "core.safecrlf=false",
                "-c",
                "i18n.commitEncoding=UTF-8",
            ]);
        git
    }

    /// Runs git. `None` if it fails with 1, by which it denies a question.
    fn ask(&self, command: &mut Command, input: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let output = run(command, input, self.cancel)?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            Some(1) => Ok(None),
            _ => {
                let text = String::from_utf8_lossy(&output.stderr);
                Err(refused(ErrorKind::Storage, format!("git: {}", text.trim())))
            }
        }
    }

    /// Runs git. `None` if it fails.
    fn try_run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let output = run(self.command().args(arguments), input, self.cancel)?;
        Ok(output.status.success().then_some(output.stdout))
    }

    fn run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Vec<u8>, Error> {
        let found = self.ask(self.command().args(arguments), input)?;
        found.ok_or_else(|| {
            let name = arguments.first().copied().unwrap_or_default();
            refused(ErrorKind::Storage, format!("git {name} failed"))
        })
    }

    fn require_new(&self, branch: &str) -> Result<(), Error> {
        let name = format!("refs/heads/{branch}");
        let is_valid = !branch.starts_with('-')
            && branch != "HEAD"
            && self
                .try_run(&["check-ref-format", &name], Vec::new())?
                .is_some();
        if !is_valid {
            let cause = format!("{branch:?} is not a valid name of a branch");
            return Err(refused(ErrorKind::InvalidParams, cause));
        }
        // `a` and `a/b` exclude each other.
        let above = branch.match_indices('/').map(|(at, _)| &branch[..at]);
        let taken = self.run(
            &["for-each-ref", "--format=%(refname:lstrip=2)", &name],
            Vec::new(),
        )?;
        let mut taken: Vec<String> = String::from_utf8_lossy(&taken)
            .lines()
            .map(str::to_owned)
            .collect();
        for above in above {
            let name = format!("refs/heads/{above}");
            let exists = self.try_run(&["show-ref", "--verify", "--quiet", &name], Vec::new())?;
            taken.extend(exists.map(|_| above.to_owned()));
        }
        match taken.first() {
            Some(taken) => Err(refused(
                ErrorKind::Conflict,
                format!("the branch {taken} exists; choose another name"),
            )),
            None => Ok(()),
        }
    }

    fn parent_of(&self, checkpoint: &Checkpoint) -> Result<Option<String>, Error> {
        let Some(head) = &checkpoint.metadata.head else {
            return Ok(None);
        };
        let object = format!("{}^{{commit}}", head.commit);
        match self.try_run(&["cat-file", "-e", &object], Vec::new())? {
            Some(_) => Ok(Some(head.commit.clone())),
            None => Err(refused(
                ErrorKind::NotFound,
                format!(
                    "the repository no longer has the commit {} that was checked out then",
                    head.commit
                ),
            )),
        }
    }

    fn commit_tree(
        &self,
        tree: &str,
        parent: Option<&str>,
        message: &str,
    ) -> Result<String, Error> {
        let mut git = self.command();
        for person in ["AUTHOR", "COMMITTER"] {
            let name = format!("GIT_{person}_IDENT");
            if self.try_run(&["var", &name], Vec::new())?.is_none() {
                for (field, value) in AUTHOR {
                    git.env(format!("GIT_{person}_{field}"), value);
                }
            }
        }
        git.args(["commit-tree", tree]);
        if let Some(parent) = parent {
            git.args(["-p", parent]);
        }
        let mut message = message.trim_end().to_owned();
        message.push('\n');
        let id = self.ask(git.args(["-F", "-"]), message.into_bytes())?;
        Ok(text_of(&id.unwrap_or_default()))
    }

    fn create_branch(&self, branch: &str, commit: &str) -> Result<(), Error> {
        let name = format!("refs/heads/{branch}");
        let none = "0".repeat(self.id_length);
        let created = self.run(
            &[
                "update-ref",
                "-m",
                "sightline: commit of a checkpoint",
                &name,
                commit,
                &none,
            ],
            Vec::new(),
        );
        created.map(drop).or_else(|error| {
            // Another process may have created it.
            self.require_new(branch)?;
            Err(error)
        })
    }

    fn path_in_repository(&self, path: &RelPath) -> Vec<u8> {
        [&self.prefix, &*bytes_of(path.as_path())].concat()
    }
}

/// Mode and id of an entry, as git writes them.
type Entry = (Vec<u8>, Vec<u8>);

/// The tree of a commit.
struct Committed<'a> {
    git: &'a UserGit<'a>,
    job: &'a Job<'a>,
    reader: &'a Odb,
    checkpoint: &'a Checkpoint,
}

impl Committed<'_> {
    /// Writes the tree and returns its id.
    fn write(&self, parent: Option<&str>) -> Result<String, Error> {
        let git = self.git;
        if let Some(parent) = parent {
            git.run(&["read-tree", parent], Vec::new())?;
        }
        let before = self.entries_of_parent()?;
        let captured = self.captured(&before)?;
        let mut changes: Vec<u8> = Vec::new();
        let mut change = |mode: &[u8], id: &[u8], path: &RelPath| {
            changes.extend([mode, b" ", id, b"\t", &git.path_in_repository(path), b"\0"].concat());
        };
        let none = "0".repeat(git.id_length);
        let mut excluded = ExcludedThen::new(&self.checkpoint.metadata);
        let mut denied = DeniedPaths::new(self.job);
        let absent = self.absent_on_purpose()?;
        for (path, (mode, _)) in &before {
            let is_deleted = !captured.contains_key(path)
                && mode != SUBMODULE
                && !absent.contains(path)
                && !denied.denies(path, false)
                && excluded.reason(path).is_none();
            if is_deleted {
                change(b"0", none.as_bytes(), path);
            }
        }
        for (path, (mode, id)) in self.stored(&captured, &before)? {
            if before.get(&path) != Some(&(mode.clone(), id.clone())) {
                change(&mode, &id, &path);
            }
        }
        git.run(&["update-index", "-z", "--index-info"], changes)?;
        let tree = git.run(&["write-tree", "--missing-ok"], Vec::new())?;
        Ok(text_of(&tree))
    }

    /// Returns the entries of the parent below the root.
    fn entries_of_parent(&self) -> Result<BTreeMap<RelPath, Entry>, Error> {
        let listed = self.git.run(&["ls-files", "-s", "-z"], Vec::new())?;
        let entry = |line: &[u8]| {
            let tab = memchr::memchr(b'\t', line)?;
            let mut fields = line[..tab].split(|byte| *byte == b' ');
            let (mode, id) = (fields.next()?.to_vec(), fields.next()?.to_vec());
            // git prints paths relative to the current folder, which is the root.
            Some((rel(&line[tab + 1..])?, (mode, id)))
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// Returns the tracked files that a sparse checkout leaves out.
    fn absent_on_purpose(&self) -> Result<HashSet<RelPath>, Error> {
        let mut git = self.git.command();
        git.env_remove("GIT_INDEX_FILE");
        let listed = self
            .git
            .ask(git.args(["ls-files", "-t", "-z"]), Vec::new())?;
        let path = |line: &[u8]| rel(line.strip_prefix(b"S ")?);
        Ok(listed
            .unwrap_or_default()
            .split(|byte| *byte == 0)
            .filter_map(path)
            .collect())
    }

    /// Returns the files and links of the checkpoint that may be committed.
    fn captured(
        &self,
        before: &BTreeMap<RelPath, Entry>,
    ) -> Result<BTreeMap<RelPath, Leaf>, Error> {
        let (empty, tree) = (
            Tree::Stored(Oid::EMPTY_TREE),
            Tree::Stored(self.checkpoint.tree),
        );
        let found = shown_differences(self.job, self.reader, (&empty, &tree), &[])?;
        let mut denied = DeniedPaths::new(self.job);
        let mut repositories = OtherRepositories {
            root: &self.git.root,
            before,
            known: HashMap::new(),
        };
        let mut captured = BTreeMap::new();
        for Difference { path, right, .. } in found {
            self.job.cancel.check()?;
            let Some(leaf) = right else { continue };
            let is_secret = leaf.mode == Mode::Link
                && denied.denies_target(&path, &self.reader.blob(leaf.oid)?);
            if !is_secret && !repositories.contain(&path) {
                captured.insert(path, leaf);
            }
        }
        let new: Vec<&RelPath> = captured
            .keys()
            .filter(|path| !before.contains_key(*path))
            .collect();
        for path in self.ignored(&new)? {
            captured.remove(&path);
        }
        Ok(captured)
    }

    /// Returns which of these untracked files git ignores now.
    fn ignored(&self, paths: &[&RelPath]) -> Result<Vec<RelPath>, Error> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let mut git = self.git.command();
        git.args(["check-ignore", "--no-index", "-z", "--stdin"]);
        let mut input = Vec::new();
        for path in paths {
            // A leading `:` would be a pattern.
            input.extend([b"./", &*bytes_of(path.as_path()), b"\0"].concat());
        }
        let ignored = self.git.ask(&mut git, input)?.unwrap_or_default();
        let path = |line: &[u8]| rel(line.strip_prefix(b"./")?);
        Ok(ignored.split(|byte| *byte == 0).filter_map(path).collect())
    }

    /// Stores the contents that the parent does not have. Returns the entries.
    fn stored(
        &self,
        captured: &BTreeMap<RelPath, Leaf>,
        before: &BTreeMap<RelPath, Entry>,
    ) -> Result<BTreeMap<RelPath, Entry>, Error> {
        let has_modes = self.has_modes()?;
        let mut entries: BTreeMap<RelPath, Entry> = BTreeMap::new();
        let mut missing: Vec<(&RelPath, Leaf)> = Vec::new();
        for (path, leaf) in captured {
            let known = before.get(path);
            let same = known.filter(|(_, id)| *id == leaf.oid.to_string().into_bytes());
            match same {
                Some((_, id)) => {
                    entries.insert(path.clone(), (mode_of(*leaf), id.clone()));
                }
                None => missing.push((path, *leaf)),
            }
        }
        let converted = self.converted(missing.iter().map(|(path, _)| *path))?;
        let is_converted = |path: &RelPath, leaf: Leaf| leaf.is_file() && converted.contains(path);
        let (converted, plain): (Vec<_>, Vec<_>) = missing
            .into_iter()
            .partition(|(path, leaf)| is_converted(path, *leaf));
        let ids = self.store_plain(&plain)?;
        let mut add = |path: &RelPath, leaf: Leaf, id: Vec<u8>| {
            entries.insert(path.clone(), (mode_of(leaf), id));
        };
        for ((path, leaf), id) in plain.into_iter().zip(ids) {
            add(path, leaf, id);
        }
        for (path, leaf) in converted {
            let mut git = self.git.command();
            git.args(["hash-object", "-w", "--stdin", "--path"])
                .arg(path.as_path());
            let id = self.git.ask(&mut git, self.reader.blob(leaf.oid)?)?;
            add(path, leaf, text_of(&id.unwrap_or_default()).into_bytes());
        }
        if !has_modes {
            for (path, (mode, _)) in &mut entries {
                let known = before.get(path).map(|(known, _)| known);
                let is_file = |mode: &[u8]| mode.starts_with(b"100");
                if let Some(known) = known.filter(|known| is_file(known) && is_file(mode)) {
                    mode.clone_from(known);
                }
            }
        }
        Ok(entries)
    }

    /// Returns whether files have an executable bit here.
    fn has_modes(&self) -> Result<bool, Error> {
        let set = self
            .git
            .try_run(&["config", "--bool", "core.fileMode"], Vec::new())?;
        Ok(set.is_none_or(|set| set.starts_with(b"true")))
    }

    /// Returns the files whose content git may change before it stores it, such as line ends.
    fn converted<'p>(
        &self,
        paths: impl Iterator<Item = &'p RelPath> + Clone,
    ) -> Result<HashSet<RelPath>, Error> {
        let input = lines(paths.clone());
        if input.is_empty() {
            return Ok(HashSet::new());
        }
        let crlf = self.git.try_run(&["config", "core.autocrlf"], Vec::new())?;
        if crlf.is_some_and(|set| !set.starts_with(b"false")) {
            return Ok(paths.cloned().collect());
        }
        let mut arguments = vec!["check-attr", "-z", "--stdin"];
        arguments.extend(CONVERSIONS);
        let listed = self.git.run(&arguments, input)?;
        let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
        let is_set = |value: &[u8]| ![&b"unspecified"[..], b"unset"].contains(&value);
        Ok(fields
            .chunks_exact(3)
            .filter(|found| is_set(found[2]))
            .filter_map(|found| rel(found[0]))
            .collect())
    }

    /// Stores contents as they are, with one process.
    fn store_plain(&self, files: &[(&RelPath, Leaf)]) -> Result<Vec<Vec<u8>>, Error> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for (index, (_, leaf)) in files.iter().enumerate() {
            self.job.cancel.check()?;
            let path = self.git.temp.path().join(index.to_string());
            let content = self.reader.blob(leaf.oid)?;
            fs::write(&path, content).map_err(|error| failed("write", &path, error))?;
            names.extend(bytes_of(&path).iter());
            names.push(b'\n');
        }
        let arguments = ["hash-object", "-w", "--no-filters", "--stdin-paths"];
        let output = self.git.run(&arguments, names)?;
        let ids: Vec<Vec<u8>> = output
            .split(|byte| *byte == b'\n')
            .filter(|id| !id.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        if ids.len() != files.len() {
            return Err(refused(ErrorKind::Storage, "git hash-object failed"));
        }
        Ok(ids)
    }
}

/// Folders below the root that belong to other repositories.
struct OtherRepositories<'a> {
    root: &'a Path,
    before: &'a BTreeMap<RelPath, Entry>,
    known: HashMap<RelPath, bool>,
}

impl OtherRepositories<'_> {
    /// Returns whether a path belongs to one: to a submodule of the parent, or to a repository that is
    /// there now, unless the parent has the path.
    fn contain(&mut self, path: &RelPath) -> bool {
        let is_submodule = |path: &RelPath| {
            let entry = self.before.get(path);
            entry.is_some_and(|(mode, _)| mode == SUBMODULE)
        };
        if is_submodule(path) {
            return true;
        }
        path.above().any(|at| {
            is_submodule(&at)
                || !self.before.contains_key(path)
                    && *self.known.entry(at.clone()).or_insert_with(|| {
                        let place = self.root.join(at.as_path()).join(".git");
                        fs::symlink_metadata(place).is_ok()
                    })
        })
    }
}

fn mode_of(leaf: Leaf) -> Vec<u8> {
    leaf.mode.octal().as_bytes().to_vec()
}

/// Parses a path that git printed.
fn rel(path: &[u8]) -> Option<RelPath> {
    (!path.is_empty()).then(|| below(path, b""))
}

/// Lists paths for git.
fn lines<'p>(paths: impl Iterator<Item = &'p RelPath>) -> Vec<u8> {
    let mut text = Vec::new();
    for path in paths {
        text.extend(bytes_of(path.as_path()).iter());
        text.push(0);
    }
    text
}

fn text_of(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}
