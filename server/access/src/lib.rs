//! Decides which files may be read: access rules from `.clineignore`, after built-in rules for secrets.
//!
//! [`Access`] holds the compiled rules of every root. [`Access::view`] checks whether a rule file changed and
//! returns an [`AccessView`], which is immutable: a request uses one view, on any number of threads.
//!
//! A path is denied if a rule of any root that contains it matches its written name, the name of a symlink on
//! the way, or its path without symlinks. It is also denied if one of these cannot be determined. Hard links and
//! bind mounts inside a root have independent names and are not resolved.
//!
//! ```
//! use std::sync::Arc;
//!
//! use sightline_access::{Access, Verdict};
//! use sightline_base::path::{AbsPath, Root, Roots};
//! use sightline_protocol::settings::Secrets;
//!
//! let folder = tempfile::tempdir()?;
//! for (name, text) in [(".clineignore", "*.key\n"), ("a.key", "secret"), ("a.txt", "text")] {
//!     std::fs::write(folder.path().join(name), text)?;
//! }
//! let root = AbsPath::new(folder.path()).ok_or("not an absolute path")?;
//! let roots = Arc::new(Roots::new(vec![Root::new(root, None)]));
//! let access = Access::new(roots, Vec::new(), Secrets::Deny);
//!
//! let (view, _) = access.view();
//! let denied = view.roots().locate("a.key")?;
//! assert!(matches!(view.check(&denied), Verdict::Denied(_)));
//! // The opened file is the one that was checked.
//! let opened = view.open_for_read(&view.roots().locate("a.txt")?, false)?;
//! assert_eq!(opened.info().stamp.size, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read next: `rules` (the rule files and the rules of a directory), `gitignore` (their syntax), `nested` (rule files below the roots), `secrets` (the built-in rules, and secret contents), `copies` (names of copies), `view` (checking paths), `symlinks` (resolving paths), `open` (opening what was checked),
//! `document_origin` (documents opened in an editor), `lint` (diagnostics for rule files), `command` (shell commands,
//! advice only).
//!
//! Modules:
//!
//! - `rules`, `nested`, `secrets`, `copies`: the rules of a folder; rule
//!   files; those below a root; built-in rules for secrets; names of copies
//! - `gitignore`, `casefold`: patterns as git matches them, without regard to case
//! - `gitignore_stack`: ignore files that apply in a directory, inside and outside repositories
//! - `view`, `symlinks`, `non_links`, `open`, `document_origin`: checks of paths; links; opening
//!   what was checked; documents opened in an editor
//! - `lint`: analysis of rule files
//! - `command`: shell commands: what they read, and which of our files they change
//! - `redact`: takes the contents of denied files out of texts

mod casefold;
mod command;
mod copies;
mod document_origin;
pub mod gitignore;
pub mod gitignore_stack;
pub mod lint;
mod nested;
mod non_links;
mod open;
pub mod redact;
mod rules;
mod secrets;
mod symlinks;
mod view;

use std::{
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use sightline_protocol::{access::AccessRule, settings::Secrets};

pub use self::{
    command::{Change, CommandGuard, guard_changes, guard_command, starts_with_command},
    document_origin::Origin,
    open::{OpenedFile, OpenedFolder, PathKind},
    rules::built_in::deny_moved_secrets,
    rules::file::{PROJECT_FILE, project_of, read_project_file, read_small_file, root_above},
    rules::{ClockReading, REMOVAL_DELAY, RULE_FILE, RuleFileStatus},
    secrets::content::Content,
    view::{AccessView, EntryRules, RuleBase},
};
use self::{
    nested::{KeptFiles, NestedRules},
    rules::{RuleFiles, Rules, ScopeKind, scope::RuleScope},
};
use sightline_base::path::{AbsPath, Roots};

/// The reason of a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// A text for people.
    pub reason: String,
    /// The deciding rule, if there is one.
    pub rule: Option<AccessRule>,
    /// Whether the rule denies only secret content. Where the content is not known, it counts as secret.
    pub by_content: bool,
}

impl Denial {
    /// A denial that no single rule decides.
    pub(crate) fn new(reason: String) -> Self {
        Self {
            reason,
            rule: None,
            by_content: false,
        }
    }

    /// The denial of a file that a guard protects. It has a rule, because the file is known.
    pub(crate) fn of_guard() -> Self {
        let rule = AccessRule {
            line: 1,
            ..AccessRule::default()
        };
        Self {
            rule: Some(rule),
            ..Self::new(String::new())
        }
    }
}

/// The result of an access check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside a root and not denied.
    Allowed,
    /// Outside every root.
    Outside,
    /// Denied.
    Denied(Denial),
}

/// The rules of all roots, kept current.
#[derive(Debug)]
pub struct Access {
    roots: Arc<Roots>,
    open_files: Arc<[AbsPath]>,
    secrets: Secrets,
    /// The roots in their order, then the directories of open files, then all directories above these.
    files: Mutex<Vec<RuleFiles>>,
    /// The directories of `files`.
    folders: Arc<[AbsPath]>,
    /// The rule files that were found in other directories.
    nested: Arc<KeptFiles>,
}

impl Access {
    /// Reads the rules for `roots`. `open_files` are files that are open without any root. They are allowed unless a
    /// `.clineignore` in their directory or above it denies them. `secrets` selects whether the built-in rules apply.
    pub fn new(roots: Arc<Roots>, open_files: Vec<AbsPath>, secrets: Secrets) -> Self {
        Self::with(roots, open_files, secrets, &[], Arc::default())
    }

    /// Returns the rules for other roots, files or settings. Rule files that are known already keep their state.
    #[must_use]
    pub fn updated(&self, roots: Arc<Roots>, open_files: Vec<AbsPath>, secrets: Secrets) -> Self {
        let nested = self.nested.clone();
        Self::with(roots, open_files, secrets, &self.files(), nested)
    }

    fn with(
        roots: Arc<Roots>,
        open_files: Vec<AbsPath>,
        secrets: Secrets,
        known: &[RuleFiles],
        nested: Arc<KeptFiles>,
    ) -> Self {
        let now = ClockReading::system();
        let open_files = if roots.is_empty() {
            with_real_paths(open_files)
        } else {
            Vec::new()
        };
        let read = |folder: &AbsPath, kind| {
            let known = known.iter().find(|known| known.folder() == folder);
            match known {
                Some(known) => known.with_kind(kind),
                None => RuleFiles::read(folder.clone(), kind, now),
            }
        };
        let workspace = ScopeKind::Workspace(secrets);
        let mut files: Vec<RuleFiles> = roots
            .as_slice()
            .iter()
            .map(|root| read(&root.path, workspace))
            .collect();
        let mut add = |folder: Option<AbsPath>, kind| {
            if let Some(folder) = folder
                && files.iter().all(|files| *files.folder() != folder)
            {
                files.push(read(&folder, kind));
            }
        };
        for file in &open_files {
            add(folder_above(file), workspace);
        }
        let roots_as_known = roots
            .as_slice()
            .iter()
            .flat_map(|root| [&root.path, &root.canonical]);
        for path in roots_as_known.chain(&*open_files) {
            for above in path.as_path().ancestors().skip(1) {
                add(AbsPath::new(above), ScopeKind::Above);
            }
        }
        Self {
            open_files: open_files.into(),
            secrets,
            folders: files.iter().map(|files| files.folder().clone()).collect(),
            files: Mutex::new(files),
            nested,
            roots,
        }
    }

    /// Returns the current rules, and the roots whose rules changed since the last call.
    pub fn view(&self) -> (AccessView, Vec<usize>) {
        self.view_at(ClockReading::system())
    }

    /// [`Self::view`] with a given time, for tests.
    pub fn view_at(&self, now: ClockReading) -> (AccessView, Vec<usize>) {
        let mut files = self.files();
        let mut changed = Vec::new();
        let mut scopes: Vec<RuleScope> = Vec::with_capacity(files.len());
        for (index, files) in files.iter_mut().enumerate() {
            if files.refresh(now) {
                changed.extend(self.roots_below(index, files.folder()));
            }
            // Most directories above the roots have no rules.
            if files.kind() != ScopeKind::Above || !matches!(files.rules(), Rules::None) {
                scopes.push(RuleScope::new(
                    files.folder(),
                    self.roots.get(index),
                    files.kind(),
                    files.rules().clone(),
                ));
            }
        }
        if self.secrets == Secrets::Deny {
            scopes.extend(rules::built_in::moved().iter().map(|(folder, rules)| {
                RuleScope::new(folder, None, ScopeKind::Above, rules.clone())
            }));
        }
        changed.sort_unstable();
        changed.dedup();
        for index in 0..scopes.len() {
            scopes[index].overlaps = scopes
                .iter()
                .enumerate()
                .any(|(other, scope)| other != index && scopes[index].touches(scope));
        }
        let rule_files = files.iter().flat_map(RuleFiles::paths);
        let rule_files: Vec<PathBuf> = rule_files.map(Path::to_path_buf).collect();
        let real_roots = scopes.iter().filter(|scope| scope.is_root);
        let real_roots = real_roots.map(|scope| scope.real().clone());
        let nested = NestedRules::new(self.nested.clone(), now, self.folders.clone(), real_roots);
        let view = AccessView {
            roots: self.roots.clone(),
            open_files: self.open_files.clone(),
            nested: Some(Arc::new(nested)),
            links: Arc::default(),
            scopes: scopes.into(),
            rule_files: rule_files.into(),
            outside: match self.secrets {
                Secrets::Deny => rules::built_in::rules_outside().clone(),
                Secrets::Allow => Rules::None,
            },
        };
        (view, changed)
    }

    /// Returns the files to watch for changes of the rules. Some may not exist yet.
    pub fn watched_files(&self) -> Vec<PathBuf> {
        let files = self.files();
        let watched = files.iter().flat_map(RuleFiles::watched);
        let mut watched: Vec<PathBuf> = watched.map(Path::to_path_buf).collect();
        watched.extend(self.nested.watched());
        watched
    }

    /// Returns the rule files in force, as the last view read them, sorted by path.
    pub fn rule_files(&self) -> Vec<RuleFileStatus> {
        let mut files: Vec<RuleFileStatus> =
            self.files().iter().flat_map(RuleFiles::statuses).collect();
        files.extend(self.nested.statuses());
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        files
    }

    /// Reads the known rule files below the roots again that may have changed, as views do when they reach them. Returns
    /// whether any were found or changed since the last call.
    pub fn refresh_nested(&self) -> bool {
        self.nested.refresh(ClockReading::system())
    }

    /// Returns whether removed rules still apply. They end with the first view after [`REMOVAL_DELAY`].
    pub fn is_holding(&self) -> bool {
        self.files().iter().any(RuleFiles::is_holding) || self.nested.is_holding()
    }

    fn files(&self) -> MutexGuard<'_, Vec<RuleFiles>> {
        self.files.lock()
    }

    /// Returns the roots to which the rule files with this index apply. They are the files of `folder`.
    fn roots_below(&self, number: usize, folder: &AbsPath) -> Vec<usize> {
        if number < self.roots.as_slice().len() {
            return vec![number];
        }
        let roots = self.roots.as_slice().iter().enumerate();
        let below = roots.filter(|(_, root)| {
            let mut paths = [&root.path, &root.canonical].into_iter();
            paths.any(|path| path.relative_to(folder).is_some())
        });
        below.map(|(index, _)| index).collect()
    }
}

/// Returns the first denial that does not depend on the content, else the first one.
fn strictest(denials: impl IntoIterator<Item = Denial>) -> Option<Denial> {
    let mut by_content = None;
    for denial in denials {
        if !denial.by_content {
            return Some(denial);
        }
        by_content = by_content.or(Some(denial));
    }
    by_content
}

/// Returns `denial`, or a stricter one that `other` returns.
fn or_stricter(denial: Option<Denial>, other: impl FnOnce() -> Option<Denial>) -> Option<Denial> {
    strictest(denial.into_iter().chain(iter::once_with(other).flatten()))
}

fn folder_above(path: &AbsPath) -> Option<AbsPath> {
    path.as_path().parent().and_then(AbsPath::new)
}

/// Adds the paths without symlinks of open files.
fn with_real_paths(open_files: Vec<AbsPath>) -> Vec<AbsPath> {
    let mut all: Vec<AbsPath> = Vec::new();
    for file in open_files {
        let real = sightline_base::path::canonicalize(file.as_path())
            .ok()
            .and_then(|real| AbsPath::new(&real));
        for path in std::iter::once(file).chain(real) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    all
}

/// Marks a denial as one of a symlink's target, without revealing the name of the target.
fn through_link(denial: Denial) -> Denial {
    Denial {
        reason: format!("it is a link to a denied path: {}", denial.reason),
        ..denial
    }
}
