//! Rule files in the directories between a root and a file, and in the main working tree of a git worktree.
//!
//! They are looked up on the way down, once for each directory and view, and can only deny: a rule of a root, of a
//! directory above it or of a built-in secret cannot be lifted here. The rule files of a main working tree, which may
//! be untracked, apply to the same paths of its other worktrees.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use foldhash::quality::RandomState;
use parking_lot::{Mutex, RwLock};

use super::{
    ClockReading, Denial,
    open::is_link,
    rules::file::{RULE_FILE, read_small_file},
    rules::{RuleFileStatus, RuleFiles, Rules, ScopeKind},
    strictest,
};
use sightline_base::{
    fs::dir::is_absent,
    path::{AbsPath, RelPath, os_name},
};

/// The name of a git directory, or of the file that refers to one.
const GIT: &str = ".git";
/// Number of rule files that are kept between views. The rules of others are not held while they are saved.
const MAX_KEPT: usize = 4096;

/// The rule files that views have found. Kept because removed rules still apply for a while.
#[derive(Debug, Default)]
pub(super) struct KeptFiles {
    /// By the directory they apply to and the directory they are in.
    files: Mutex<HashMap<(PathBuf, PathBuf), RuleFiles>>,
    is_changed: AtomicBool,
}

impl KeptFiles {
    /// Reads the files again that may have changed. Returns whether any rules were found or changed since the last call.
    pub(super) fn refresh(&self, now: ClockReading) -> bool {
        let mut is_changed = false;
        self.files.lock().retain(|_, files| {
            is_changed |= files.refresh(now);
            files.has_rules()
        });
        self.is_changed.swap(false, Ordering::Relaxed) || is_changed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.lock().is_empty()
    }

    pub(super) fn is_holding(&self) -> bool {
        self.files.lock().values().any(RuleFiles::is_holding)
    }

    pub(super) fn statuses(&self) -> Vec<RuleFileStatus> {
        let files = self.files.lock();
        files.values().flat_map(RuleFiles::statuses).collect()
    }

    /// Returns the files to watch for changes.
    pub(super) fn watched(&self) -> Vec<PathBuf> {
        let files = self.files.lock();
        let watched = files.values().flat_map(RuleFiles::watched);
        watched.map(Path::to_path_buf).collect()
    }
}

/// The rules that apply in a directory.
#[derive(Debug, Default)]
struct Chain {
    /// From the top down.
    rules: Box<[Arc<NestedScope>]>,
    /// Index of the first of `rules` that begins in this directory.
    own: usize,
    /// The same directory in the main working tree.
    main: Option<PathBuf>,
}

/// The rules of one rule file.
#[derive(Debug)]
struct NestedScope {
    /// The directory to which the patterns are relative.
    base: AbsPath,
    rules: Rules,
    files: Vec<PathBuf>,
}

/// The rules of all views of the same time, by directory.
#[derive(Debug)]
pub(super) struct NestedRules {
    kept: Arc<KeptFiles>,
    now: ClockReading,
    /// Directories whose own rule files are read as scopes.
    known: Arc<[AbsPath]>,
    roots: Box<[Tree]>,
    /// All directories outside of the roots.
    outside: Tree,
}

/// The directories below a root.
#[derive(Debug, Default)]
struct Tree {
    /// The path of the root, without symlinks. `None` for directories outside of the roots.
    root: Option<AbsPath>,
    /// By path relative to `root`.
    chains: RwLock<HashMap<Box<[u8]>, Arc<Chain>, RandomState>>,
}

impl NestedRules {
    pub(super) fn new(
        kept: Arc<KeptFiles>,
        now: ClockReading,
        known: Arc<[AbsPath]>,
        roots: impl Iterator<Item = AbsPath>,
    ) -> Self {
        let roots = roots.map(|root| Tree {
            root: Some(root),
            ..Tree::default()
        });
        Self {
            kept,
            now,
            known,
            roots: roots.collect(),
            outside: Tree::default(),
        }
    }

    /// Checks a path below a root. `is_dir` is called only if the result depends on it.
    pub(super) fn denial_in(
        &self,
        root: usize,
        rel: &RelPath,
        is_dir: impl Fn() -> bool,
    ) -> Option<Denial> {
        let tree = self.roots.get(root)?;
        self.denial(tree, rel.as_path(), is_dir)
    }

    /// Checks a path outside of all roots.
    pub(super) fn denial_outside(
        &self,
        path: &AbsPath,
        is_dir: impl Fn() -> bool,
    ) -> Option<Denial> {
        self.denial(&self.outside, path.as_path(), is_dir)
    }

    fn denial(&self, tree: &Tree, path: &Path, is_dir: impl Fn() -> bool) -> Option<Denial> {
        let folder = path.parent()?;
        if tree.is_known_without_rules(folder) {
            return None;
        }
        let chain = self.chain(tree, folder);
        if chain.rules.is_empty() {
            return None;
        }
        let path = tree.absolute(path)?;
        let denials = chain.rules.iter().filter_map(|scope| {
            let rel = path.relative_to(&scope.base)?;
            scope.rules.denial(&rel, &is_dir)
        });
        strictest(denials)
    }

    /// Returns the lines of the rule files that begin in a directory below a root, or why they cannot be used.
    pub(super) fn lines_of(&self, root: usize, dir: &RelPath) -> Vec<Result<Vec<u8>, String>> {
        let Some(tree) = self.roots.get(root) else {
            return Vec::new();
        };
        let chain = self.chain(tree, dir.as_path());
        let own = chain.rules.iter().skip(chain.own);
        own.flat_map(|scope| scope.rules.contents()).collect()
    }

    /// Returns the rules that apply to a whole root, each with its directory.
    pub(super) fn above(&self, root: usize) -> Vec<(AbsPath, Rules)> {
        let Some(tree) = self.roots.get(root) else {
            return Vec::new();
        };
        let chain = self.chain(tree, Path::new(""));
        let rules = chain.rules.iter();
        rules
            .map(|scope| (scope.base.clone(), scope.rules.clone()))
            .collect()
    }

    /// Returns whether a file below a root contains rules.
    pub(super) fn is_rule_file(&self, root: usize, rel: &RelPath) -> bool {
        let Some((tree, parent)) = self.roots.get(root).zip(rel.as_path().parent()) else {
            return false;
        };
        let chain = self.chain(tree, parent);
        let Some(path) = tree.absolute(rel.as_path()) else {
            return false;
        };
        let mut files = chain.rules.iter().flat_map(|scope| &scope.files);
        files.any(|file| file == path.as_path())
    }

    /// Takes note of a directory below a root whose names were read and that has neither a rule file nor `.git`, which
    /// saves looking for them.
    pub(super) fn note_plain(&self, root: usize, dir: &RelPath) {
        let Some((tree, parent)) = self.roots.get(root).zip(dir.as_path().parent()) else {
            return;
        };
        let above = self.chain(tree, parent);
        if above.main.is_none() && self.kept.is_empty() {
            let chain = if above.own == above.rules.len() {
                above
            } else {
                Arc::new(Chain {
                    rules: above.rules.clone(),
                    own: above.rules.len(),
                    main: None,
                })
            };
            tree.insert(dir.as_path(), &chain);
        }
    }

    /// Returns the rules that apply in a directory.
    fn chain(&self, tree: &Tree, dir: &Path) -> Arc<Chain> {
        if let Some(chain) = tree.get(dir) {
            return chain;
        }
        let mut missing = Vec::new();
        let mut chain = None;
        for above in dir.ancestors() {
            chain = tree.get(above);
            if chain.is_some() {
                break;
            }
            missing.push(above);
        }
        for dir in missing.into_iter().rev() {
            // The root itself is reached from the top of the file system.
            let above = chain.unwrap_or_default();
            let entered = match &tree.root {
                Some(root) if dir.as_os_str().is_empty() => {
                    self.chain(&self.outside, root.as_path())
                }
                root => {
                    let path = root
                        .as_ref()
                        .map_or_else(|| dir.to_path_buf(), |root| root.as_path().join(dir));
                    self.enter(above, &path, tree.root.as_ref())
                }
            };
            tree.insert(dir, &entered);
            chain = Some(entered);
        }
        chain.unwrap_or_default()
    }

    /// Adds the rules that begin in `dir` to those from above it. Names of rule files are relative to `root`.
    fn enter(&self, above: Arc<Chain>, dir: &Path, root: Option<&AbsPath>) -> Arc<Chain> {
        let own = (!self.known.iter().any(|known| known.as_path() == dir)).then_some(dir);
        let main =
            main_working_tree(dir).or_else(|| Some(above.main.as_ref()?.join(dir.file_name()?)));
        let main = main.filter(|main| main != dir);
        let folders = own.into_iter().chain(main.as_deref());
        let found: Vec<_> = folders
            .filter_map(|folder| self.read(folder, dir, root))
            .collect();
        if found.is_empty()
            && main.is_none()
            && above.main.is_none()
            && above.own == above.rules.len()
        {
            return above;
        }
        let own = above.rules.len();
        Arc::new(Chain {
            rules: above.rules.iter().cloned().chain(found).collect(),
            own,
            main,
        })
    }

    /// Reads the rule file in `folder`, which applies to `base`.
    fn read(&self, folder: &Path, base: &Path, root: Option<&AbsPath>) -> Option<Arc<NestedScope>> {
        let mut kept = self.kept.files.lock();
        let key = (base.to_path_buf(), folder.to_path_buf());
        let rules_of = |files: &RuleFiles| {
            Some(Arc::new(NestedScope {
                base: AbsPath::new(base)?,
                rules: files.rules().clone(),
                files: files.paths().map(Path::to_path_buf).collect(),
            }))
        };
        if let Some(files) = kept.get_mut(&key) {
            if files.refresh(self.now) {
                self.kept.is_changed.store(true, Ordering::Relaxed);
            }
            if !files.has_rules() {
                kept.remove(&key);
                return None;
            }
            return rules_of(files);
        }
        if let Err(error) = fs::symlink_metadata(folder.join(RULE_FILE))
            // Nothing is below a link that leads to itself.
            && (is_absent(&error) || is_link(&error))
        {
            return None;
        }
        let files = RuleFiles::read_named(
            AbsPath::new(folder)?,
            ScopeKind::Above,
            root.cloned(),
            self.now,
        );
        if !files.has_rules() {
            return None;
        }
        self.kept.is_changed.store(true, Ordering::Relaxed);
        let rules = rules_of(&files);
        if kept.len() < MAX_KEPT {
            kept.insert(key, files);
        }
        rules
    }
}

impl Tree {
    fn get(&self, dir: &Path) -> Option<Arc<Chain>> {
        let chains = self.chains.read();
        chains.get(dir.as_os_str().as_encoded_bytes()).cloned()
    }

    /// The common case, without counting a reference.
    fn is_known_without_rules(&self, dir: &Path) -> bool {
        let chains = self.chains.read();
        let known = chains.get(dir.as_os_str().as_encoded_bytes());
        known.is_some_and(|chain| chain.rules.is_empty())
    }

    fn insert(&self, dir: &Path, chain: &Arc<Chain>) {
        let dir = dir.as_os_str().as_encoded_bytes().into();
        self.chains.write().insert(dir, chain.clone());
    }

    fn absolute(&self, path: &Path) -> Option<AbsPath> {
        match &self.root {
            Some(root) => Some(root.join(&RelPath::new(path)?)),
            None => AbsPath::new(path),
        }
    }
}

/// Returns the main working tree, if `dir` is another worktree of a repository.
fn main_working_tree(dir: &Path) -> Option<PathBuf> {
    let link = dir.join(GIT);
    if !fs::symlink_metadata(&link).ok()?.is_file() {
        return None;
    }
    let first_line = |path: &Path| {
        let text = read_small_file(path).ok()??;
        let line = text.split(|byte| *byte == b'\n').next()?;
        Some(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    };
    let line = first_line(&link)?;
    let git = sightline_base::path::canonicalize(
        dir.join(os_name(line.strip_prefix(b"gitdir:")?.trim_ascii())),
    )
    .ok()?;
    let common = first_line(&git.join("commondir"))?;
    let common = sightline_base::path::canonicalize(git.join(os_name(common.trim_ascii()))).ok()?;
    (common.file_name()? == GIT).then(|| common.parent().map(Path::to_path_buf))?
}
