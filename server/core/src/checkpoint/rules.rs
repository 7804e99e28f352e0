//! What is captured: the ignore rules in force, kept with the checkpoint.
//!
//! A path is judged from the top down; below what is left out everything is.
//! The same rules judge now, from the texts of the work tree ([`Judge`],
//! [`Chain`]), and later, from what is kept ([`RulesThen`]).
//!
//! What is kept leaves this machine with the checkpoint. So it has no text that
//! access rules deny, not theirs either, and none from outside the root: of such
//! a text only its name is kept. As long as the rules of now have that text, it
//! judges; once they have not, everything it may have judged counts as left out.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

use super::{
    Settings,
    disk::{Dir, Kind, os_name},
    names,
    tracked::Exempt,
    tree,
};
use crate::{
    access::{
        AccessView, EntryPlace,
        pattern::{Case, PatternSet, bytes_of},
    },
    error::Error,
    gitignore::{self, RuleText},
    path::RelPath,
};

/// Rules of a checkpoint that are more than this many bytes are not kept.
const MAX_FROZEN_BYTES: usize = 1024 * 1024;

/// The same for tracked paths.
const MAX_TRACKED_BYTES: usize = 256 * 1024;

/// Rules in force that the checkpoint's tree does not hold itself. Paths are
/// below the root, with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Frozen {
    /// There were too many to keep them: nothing can be judged by them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_many: bool,
    /// Names of folders that were excluded by the settings.
    exclude: Vec<String>,
    /// Larger files were skipped, in bytes.
    max_file_size: u64,
    /// What denied entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<Denied>,
    /// `.gitignore` and `info/exclude` of folders above the root, the deepest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    above: Vec<Above>,
    /// Folders where a repository began, with its `info/exclude`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<Below>,
    /// `.gitignore` files that were not captured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gitignores: Vec<Below>,
    /// What was tracked although the rules ignore it and the tree does not tell;
    /// folders by themselves end with `/` (see `Exempt`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tracked: Vec<Bytes>,
}

impl Frozen {
    /// The rules of a repository at the root: its `info/exclude`, and patterns
    /// of what was left out whatever any rule says.
    pub(super) fn of_repository(excludes: &[u8], left_out: &[u8]) -> Self {
        if excludes.len() + left_out.len() > MAX_FROZEN_BYTES {
            return Self {
                too_many: true,
                ..Self::default()
            };
        }
        let below = |text| Below {
            path: Bytes::new(b""),
            text: Bytes::new(text),
        };
        Self {
            max_file_size: u64::MAX,
            denied: vec![Denied::Below(below(left_out))],
            repositories: vec![below(excludes)],
            ..Self::default()
        }
    }

    /// Every text, with the folder below the root it judges what is in.
    fn texts(&self) -> impl Iterator<Item = (&[u8], &Bytes)> {
        let denied = self.denied.iter().filter_map(|denied| match denied {
            Denied::Above(above) => Some((&b""[..], &above.text)),
            Denied::Below(below) => Some((below.path.as_slice(), &below.text)),
            Denied::All(_) => None,
        });
        let above = self.above.iter().map(|above| (&b""[..], &above.text));
        let below = self.repositories.iter().chain(&self.gitignores);
        let below = below.map(|below| (below.path.as_slice(), &below.text));
        denied.chain(above).chain(below)
    }
}

/// Bytes that mostly are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Raw(Vec<u8>),
    Named(Named),
}

/// A text that is not kept.
#[derive(Clone, Serialize, Deserialize)]
struct Named {
    sha256: String,
    /// Only in the rules of now.
    #[serde(skip)]
    text: Option<Arc<[u8]>>,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

impl Eq for Named {}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sha256)
    }
}

impl Bytes {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Raw(bytes.to_vec()),
        }
    }

    /// Only the name is kept; of nothing there is nothing to hide.
    fn named(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::new(bytes);
        }
        let digest = Sha256::digest(bytes);
        Self::Named(Named {
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: Some(bytes.into()),
        })
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw(bytes) => bytes,
            Self::Named(_) => b"",
        }
    }

    /// The text, where it is not kept from those of now.
    fn known<'a>(&'a self, now: &HashMap<&str, &'a [u8]>) -> &'a [u8] {
        match self {
            Self::Named(named) => now.get(&*named.sha256).copied().unwrap_or_default(),
            _ => self.as_slice(),
        }
    }
}

/// A rule file of a folder above the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Above {
    /// The root's path below that folder.
    root: Bytes,
    text: Bytes,
}

/// A rule file of a folder below the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Below {
    /// The folder.
    path: Bytes,
    text: Bytes,
}

/// Access rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Denied {
    /// Rules of the root or a folder above it.
    Above(Above),
    /// Rules of a folder below the root.
    Below(Below),
    /// Rules that could not be used deny everything; in that folder.
    All(Bytes),
}

/// What judges the whole tree, but for the rules in its folders.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    view: &'a AccessView,
    root: usize,
    settings: &'a Settings,
    /// The root's folder, without links.
    base: PathBuf,
    /// Rule files above it.
    above: Vec<RuleText>,
    /// Where this server keeps its data, when that is below the root.
    own_data: Option<RelPath>,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Capture,
    /// The rules leave it out; they tell why.
    Ignored,
    /// It is left out, and that is told.
    Left(tree::Reason),
}

impl<'a> Judge<'a> {
    /// `base` is the root's folder, without links.
    pub(super) fn new(
        view: &'a AccessView,
        root: usize,
        settings: &'a Settings,
        base: &Path,
        data: Option<&Path>,
    ) -> Self {
        let own_data = data
            .and_then(|data| std::fs::canonicalize(data).ok())
            .and_then(|data| RelPath::new(data.strip_prefix(base).ok()?));
        Self {
            view,
            root,
            settings,
            base: base.to_path_buf(),
            above: gitignore::texts_above(base, base),
            own_data,
        }
    }

    /// Equal numbers, equal judgements.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut hash = XxHash3_128::new();
        let mut add = |bytes: &[u8]| {
            hash.write(&(bytes.len() as u64).to_le_bytes());
            hash.write(bytes);
        };
        add(&self.settings.max_file_size.to_le_bytes());
        for name in &self.settings.exclude {
            add(name.as_bytes());
        }
        for rules in self.view.entry_rules(self.root) {
            let (kind, path): (&[u8], _) = match &rules.place {
                EntryPlace::Above(path) => (b"above", path),
                EntryPlace::Below(path) => (b"below", path),
            };
            add(kind);
            add(&bytes_of(path.as_path()));
            match &rules.says {
                Ok(lines) => add(lines),
                // Why does not matter: everything is denied.
                Err(_) => add(b"!"),
            }
        }
        for text in &self.above {
            add(b"git");
            add(text.base.as_os_str().as_encoded_bytes());
            add(&text.text);
        }
        if let Some(data) = &self.own_data {
            add(&bytes_of(data.as_path()));
        }
        hash.finish_128()
    }

    /// Judges an entry of a folder that is captured. `ignores` tells whether the
    /// ignore rules leave it out.
    pub(super) fn judge(
        &self,
        folder: &[u8],
        name: &[u8],
        (is_dir, is_link): (bool, bool),
        ignores: impl FnOnce() -> bool,
    ) -> Verdict {
        if names::is_repository(name) {
            return Verdict::Ignored;
        }
        let Some(path) = rel_path(folder, name) else {
            return Verdict::Left(tree::Reason::Name);
        };
        if self.view.check_entry(self.root, &path, is_dir).is_some() || ignores() {
            return Verdict::Ignored;
        }
        if names::is_refused(name, is_link) {
            return Verdict::Left(tree::Reason::Name);
        }
        if is_dir && is_excluded(&self.settings.exclude, name) {
            return Verdict::Left(tree::Reason::Excluded);
        }
        if is_dir && self.own_data.as_ref() == Some(&path) {
            return Verdict::Left(tree::Reason::OwnData);
        }
        let length = self.base.as_os_str().len() + 1 + path.as_path().as_os_str().len();
        if length > crate::limits::MAX_ABSOLUTE_PATH_BYTES {
            return Verdict::Left(tree::Reason::TooLong);
        }
        Verdict::Capture
    }

    /// The ignore rules that reach the root from above.
    pub(super) fn above(&self) -> gitignore::Rules {
        gitignore::Rules::default().with_texts(&self.above)
    }

    /// A folder below the root, as ignore rules name it.
    pub(super) fn place(&self, folder: &[u8]) -> PathBuf {
        place(&self.base, folder)
    }

    /// Do access rules deny this path, or a folder it is in?
    pub(super) fn denies_path(&self, path: &[u8]) -> bool {
        let names: Vec<&[u8]> = path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .collect();
        let mut rel = RelPath::default();
        names.iter().enumerate().any(|(at, name)| {
            rel = rel.child(os_name(name));
            let is_dir = at + 1 < names.len() || path.ends_with(b"/");
            self.view.check_entry(self.root, &rel, is_dir).is_some()
        })
    }

    /// The same of a path below a folder.
    fn denies_in(&self, folder: &[u8], below: &str) -> bool {
        self.denies_path(&[folder, b"/", below.as_bytes()].concat())
    }

    /// What has to be kept to judge by these rules later. `folders` are those
    /// that have rules, with the rules and whether their `.gitignore` is captured.
    /// `tracked` is what `Exempt::beyond` gives.
    pub(super) fn freeze<'b>(
        &self,
        folders: impl Iterator<Item = (&'b [u8], &'b tree::Rules, bool)>,
        tracked: impl Iterator<Item = &'b [u8]>,
    ) -> Frozen {
        let mut frozen = Frozen {
            exclude: self.settings.exclude.clone(),
            max_file_size: self.settings.max_file_size,
            ..Frozen::default()
        };
        let mut size = 0;
        let mut bytes = |bytes: &[u8]| {
            size += bytes.len();
            Bytes::new(bytes)
        };
        for rules in self.view.entry_rules(self.root) {
            frozen.denied.push(match (&rules.place, &rules.says) {
                (EntryPlace::Above(root), Ok(text)) => Denied::Above(Above {
                    root: bytes(&bytes_of(root.as_path())),
                    text: Bytes::named(text),
                }),
                (EntryPlace::Below(path), Ok(text)) => Denied::Below(Below {
                    path: bytes(&bytes_of(path.as_path())),
                    text: Bytes::named(text),
                }),
                (EntryPlace::Above(_), Err(_)) => Denied::All(bytes(b"")),
                (EntryPlace::Below(path), Err(_)) => Denied::All(bytes(&bytes_of(path.as_path()))),
            });
        }
        for RuleText { base, text } in &self.above {
            let root = self.base.strip_prefix(base).unwrap_or(Path::new(""));
            frozen.above.push(Above {
                root: bytes(&bytes_of(root)),
                text: Bytes::named(text),
            });
        }
        for (path, rules, is_captured) in folders {
            if let Some(text) = &rules.excludes {
                frozen.repositories.push(Below {
                    path: bytes(path),
                    text: match text.is_empty() || self.has_excludes(path, text) {
                        true => bytes(text),
                        false => Bytes::named(text),
                    },
                });
            }
            if let Some(text) = rules.gitignore.as_ref().filter(|_| !is_captured) {
                frozen.gitignores.push(Below {
                    path: bytes(path),
                    text: match self.denies_in(path, gitignore::FILE_NAME) {
                        true => Bytes::named(text),
                        false => bytes(text),
                    },
                });
            }
        }
        if size > MAX_FROZEN_BYTES {
            return Frozen {
                too_many: true,
                ..Frozen::default()
            };
        }
        // Without them a file that came later is kept where it could go.
        let mut room = MAX_TRACKED_BYTES;
        let tracked = tracked.map(|path| {
            room = room.checked_sub(path.len())?;
            Some(Bytes::new(path))
        });
        frozen.tracked = tracked.collect::<Option<_>>().unwrap_or_default();
        frozen
    }

    /// Is this the text of an `info/exclude` of the folder's own, that no link
    /// leads to and no access rule denies?
    fn has_excludes(&self, folder: &[u8], text: &[u8]) -> bool {
        if self.denies_in(folder, ".git/info/exclude") {
            return false;
        }
        let open = || {
            let folder = Dir::open(&self.place(folder))?;
            folder.enter(b".git")?.enter(b"info")?.open_file(b"exclude")
        };
        let Ok((file, Kind::File, _)) = open() else {
            return false;
        };
        let mut now = Vec::new();
        let read = file.take(gitignore::MAX_BYTES).read_to_end(&mut now);
        read.is_ok() && now == text
    }
}

fn is_excluded<T: AsRef<str>>(exclude: &[T], name: &[u8]) -> bool {
    exclude
        .iter()
        .any(|other| other.as_ref().as_bytes() == name)
}

fn rel_path(folder: &[u8], name: &[u8]) -> Option<RelPath> {
    let mut path = PathBuf::with_capacity(folder.len() + 1 + name.len());
    path.extend(folder.split(|byte| *byte == b'/').map(os_name));
    path.push(os_name(name));
    RelPath::new(&path)
}

fn place(base: &Path, folder: &[u8]) -> PathBuf {
    let mut path = base.to_path_buf();
    if !folder.is_empty() {
        path.extend(folder.split(|byte| *byte == b'/').map(os_name));
    }
    path
}

/// The ignore rules in force in a folder; compiled when first asked for, which
/// for a tree where nothing changed is never.
#[derive(Clone)]
pub(super) struct Chain(Arc<Link>);

struct Link {
    above: Option<Chain>,
    base: PathBuf,
    own: tree::Rules,
    compiled: OnceLock<gitignore::Rules>,
}

impl Chain {
    /// The rules that reach the root from above.
    pub(super) fn start(judge: &Judge<'_>) -> Self {
        Self(Arc::new(Link {
            above: None,
            base: PathBuf::new(),
            own: tree::Rules::default(),
            compiled: OnceLock::from(judge.above()),
        }))
    }

    /// The rules in `folder`, which has rules of its own.
    pub(super) fn enter(&self, folder: PathBuf, own: &tree::Rules) -> Self {
        Self(Arc::new(Link {
            above: own.excludes.is_none().then(|| self.clone()),
            base: folder,
            own: own.clone(),
            compiled: OnceLock::new(),
        }))
    }

    pub(super) fn rules(&self) -> &gitignore::Rules {
        self.0.compiled.get_or_init(|| {
            let above = self.0.above.as_ref();
            let above = above.map(|above| above.rules().clone());
            with_own(above.unwrap_or_default(), &self.0.base, &self.0.own)
        })
    }
}

/// Rules from above, and then those of a folder.
pub(super) fn with_own(
    above: gitignore::Rules,
    base: &Path,
    own: &tree::Rules,
) -> gitignore::Rules {
    let mut rules = above;
    if let Some(text) = &own.excludes {
        rules = gitignore::Rules::default().with_text(base, text);
    }
    if let Some(text) = &own.gitignore {
        rules = rules.with_text(base, text);
    }
    rules
}

/// Gives the content of a file that the checkpoint's tree holds, by its path
/// below the root.
type ReadThen<'a> = dyn Fn(&RelPath) -> Result<Option<Vec<u8>>, Error> + 'a;

/// Judges paths by the rules that were in force for a checkpoint. It is asked
/// about paths the checkpoint does not have: what its tree holds was captured,
/// whatever the rules say of it.
pub(super) struct RulesThen<'a> {
    frozen: &'a Frozen,
    gitignore: &'a ReadThen<'a>,
    /// A place that stands for the root: deep enough to have all above it that
    /// rules above it are relative to.
    base: PathBuf,
    /// The texts of now that are not kept, by their names.
    texts: HashMap<&'a str, &'a [u8]>,
    denied: Vec<DeniedThen>,
    /// Folders whose rules of then are not known any more.
    unknown: Vec<Vec<u8>>,
    tracked: Exempt,
    /// By folder; `None` when nothing in it was captured.
    folders: HashMap<RelPath, Option<FolderThen>>,
}

/// A folder something in which was captured.
#[derive(Clone)]
struct FolderThen {
    rules: gitignore::Rules,
    /// It was ignored: only what was tracked was captured.
    is_ignored: bool,
}

enum DeniedThen {
    /// Patterns, and the root's path below what they are relative to.
    Above(PatternSet, Vec<u8>),
    /// Patterns, and what they are relative to.
    Below(PatternSet, Vec<u8>),
    All(Vec<u8>),
}

impl<'a> RulesThen<'a> {
    /// `now` are the rules of now. `gitignore` gives the content of a
    /// `.gitignore` (a path below the root) that the checkpoint's tree holds.
    pub(super) fn new(
        frozen: &'a Frozen,
        now: &'a Frozen,
        gitignore: &'a ReadThen<'a>,
    ) -> Result<Self, Error> {
        let texts = now.texts().filter_map(|(_, text)| match text {
            Bytes::Named(named) => Some((&*named.sha256, named.text.as_deref()?)),
            _ => None,
        });
        let texts: HashMap<&str, &[u8]> = texts.collect();
        let unknown = frozen.texts().filter(
            |(_, text)| matches!(text, Bytes::Named(named) if !texts.contains_key(&*named.sha256)),
        );
        let unknown = unknown.map(|(folder, _)| folder.to_vec()).collect();
        let longest = frozen
            .above
            .iter()
            .map(|above| above.root.as_slice())
            .max_by_key(|root| root.len())
            .unwrap_or_default();
        let top = PathBuf::from(if cfg!(windows) { r"C:\" } else { "/" });
        let base = place(&top, longest);
        let patterns = |text: &Bytes| {
            let mut patterns = PatternSet::new(Case::Folded);
            patterns.add_text("", text.known(&texts));
            patterns
        };
        let denied = frozen.denied.iter().map(|denied| match denied {
            Denied::Above(Above { root, text }) => {
                DeniedThen::Above(patterns(text), root.as_slice().to_vec())
            }
            Denied::Below(Below { path, text }) => {
                DeniedThen::Below(patterns(text), path.as_slice().to_vec())
            }
            Denied::All(path) => DeniedThen::All(path.as_slice().to_vec()),
        });
        Ok(Self {
            frozen,
            gitignore,
            base,
            denied: denied.collect(),
            tracked: Exempt::new(
                frozen
                    .tracked
                    .iter()
                    .map(|path| path.as_slice().into())
                    .collect(),
            ),
            unknown,
            texts,
            folders: HashMap::new(),
        })
    }

    /// Was this path left alone: ignored, denied, in an excluded folder, or in
    /// one of those? Everything was, when that cannot be told any more.
    pub(super) fn excludes(&mut self, rel: &RelPath, is_dir: bool) -> Result<bool, Error> {
        if self.frozen.too_many {
            return Ok(true);
        }
        if !self.knows(rel) {
            return Ok(true);
        }
        let Some(parent) = rel.parent() else {
            return Ok(false);
        };
        if !self.folders.contains_key(&parent) {
            self.enter(&parent)?;
        }
        Ok(match self.folders.get(&parent) {
            Some(Some(folder)) => self.judge(folder, &parent, rel, is_dir).is_none(),
            _ => true,
        })
    }

    /// Can it be told how the rules of then judge this path?
    pub(super) fn knows(&self, rel: &RelPath) -> bool {
        let path = bytes_of(rel.as_path());
        let mut unknown = self.unknown.iter();
        !self.frozen.too_many && unknown.all(|folder| below(&path, folder).is_none())
    }

    /// Judges the folders down to `folder` that were not judged yet.
    fn enter(&mut self, folder: &RelPath) -> Result<(), Error> {
        let mut at = RelPath::default();
        let mut above = match self.folders.get(&at) {
            Some(known) => known.clone(),
            None => {
                let rules = self.frozen.above.iter().fold(
                    gitignore::Rules::default(),
                    |rules, Above { root, text }| {
                        rules.with_text(&self.ancestor(root.as_slice()), text.known(&self.texts))
                    },
                );
                let root = Some(FolderThen {
                    rules: self.own(rules, &at)?,
                    is_ignored: false,
                });
                self.folders.insert(at.clone(), root.clone());
                root
            }
        };
        for name in folder.components() {
            let below = at.child(name);
            above = match (self.folders.get(&below), above) {
                (Some(known), _) => known.clone(),
                (None, Some(above)) => match self.judge(&above, &at, &below, true) {
                    Some(is_ignored) => Some(FolderThen {
                        rules: self.own(above.rules, &below)?,
                        is_ignored,
                    }),
                    None => None,
                },
                (None, None) => None,
            };
            self.folders.insert(below.clone(), above.clone());
            at = below;
        }
        Ok(())
    }

    /// The folder above the root that has the root at `root`.
    fn ancestor(&self, root: &[u8]) -> PathBuf {
        let depth = root.split(|byte| *byte == b'/').count();
        let up = if root.is_empty() { 0 } else { depth };
        self.base
            .ancestors()
            .nth(up)
            .unwrap_or(&self.base)
            .to_path_buf()
    }

    /// The rules in a folder, given those from above.
    fn own(&self, above: gitignore::Rules, folder: &RelPath) -> Result<gitignore::Rules, Error> {
        let path = bytes_of(folder.as_path());
        let kept = |files: &[Below]| {
            files
                .iter()
                .find(|file| file.path.as_slice() == &*path)
                .map(|file| Arc::from(file.text.known(&self.texts)))
        };
        let gitignore = match kept(&self.frozen.gitignores) {
            Some(text) => Some(text),
            None => {
                let file = folder.child(OsStr::new(gitignore::FILE_NAME));
                (self.gitignore)(&file)?.map(Arc::from)
            }
        };
        let own = tree::Rules {
            git: false,
            excludes: kept(&self.frozen.repositories),
            gitignore: gitignore
                .filter(|text: &Arc<[u8]>| text.len() as u64 <= gitignore::MAX_BYTES),
        };
        Ok(with_own(above, &place(&self.base, &path), &own))
    }

    /// `None` when it was left alone; otherwise whether it is a folder of which
    /// only what is tracked was captured.
    fn judge(
        &self,
        above: &FolderThen,
        folder: &RelPath,
        rel: &RelPath,
        is_dir: bool,
    ) -> Option<bool> {
        let name = rel.name().unwrap_or_default();
        let bytes = name.as_encoded_bytes();
        if names::is_repository(bytes) || names::is_refused(bytes, false) {
            return None;
        }
        if is_dir && is_excluded(&self.frozen.exclude, bytes) {
            return None;
        }
        let path = bytes_of(rel.as_path());
        let folder = place(&self.base, &bytes_of(folder.as_path()));
        let mut denied = self.denied.iter();
        if denied.any(|denied| denied.denies(&path, is_dir)) {
            return None;
        }
        if !above.is_ignored && !above.rules.within(&folder).ignores(name, is_dir) {
            return Some(false);
        }
        let is_held = self.tracked.holds(&path, is_dir);
        is_held.then(|| !self.tracked.is_itself(&path))
    }
}

impl DeniedThen {
    fn denies(&self, path: &[u8], is_dir: bool) -> bool {
        let denies = |patterns: &PatternSet, path: &[u8]| {
            patterns.deciding(path)[usize::from(is_dir)].is_some_and(|rule| !rule.negated)
        };
        match self {
            Self::Above(patterns, root) if root.is_empty() => denies(patterns, path),
            Self::Above(patterns, root) => denies(patterns, &[root, path].join(&b'/')),
            Self::Below(patterns, base) => {
                below(path, base).is_some_and(|path| denies(patterns, path))
            }
            Self::All(base) => below(path, base).is_some(),
        }
    }
}

/// What `path` is below `base`.
fn below<'a>(path: &'a [u8], base: &[u8]) -> Option<&'a [u8]> {
    if base.is_empty() {
        return Some(path);
    }
    let rest = path.strip_prefix(base)?;
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix(b"/")
}
