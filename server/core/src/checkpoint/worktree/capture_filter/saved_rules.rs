//! Rules saved with a checkpoint, and decisions by them.
//!
//! Saved rules can leave the machine with the checkpoint. They therefore contain only a hash of
//! access rules, of denied files, and of files outside the root. If the current rules contain a
//! text with that hash, it is applied. Otherwise everything it may have excluded counts as
//! excluded.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{CaptureFilter, is_excluded, place, with_own};
use crate::{
    access::{
        AccessView, RuleBase,
        pattern_matcher::{PatternSet, bytes_of, rule_lines},
    },
    checkpoint::worktree::{
        git_index::TrackedPaths,
        reserved_names,
        scan_dir::{EntryKind, ScanDir},
        snapshot,
    },
    error::Error,
    gitignore_stack::{self, IgnoreFile},
    path::RelPath,
};

/// Maximum total size of the rules saved with a checkpoint, in bytes.
const MAX_RULES_BYTES: usize = 1024 * 1024;

/// Maximum total size of the tracked paths saved with a checkpoint, in bytes.
const MAX_TRACKED_BYTES: usize = 256 * 1024;

/// Rules in force that the tree of the checkpoint does not hold itself. Paths are relative to the
/// root, with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavedRules {
    /// Whether the rules were too large to save, so that nothing can be decided.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_many: bool,
    /// Names of folders excluded by the settings.
    exclude: Vec<String>,
    /// Maximum size of a captured file, in bytes.
    max_file_size: u64,
    /// Access rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<SavedAccessRules>,
    /// `.gitignore` and `info/exclude` of folders above the root, deepest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    above: Vec<RulesAbove>,
    /// Folders where a repository begins, with its `info/exclude`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<RulesBelow>,
    /// `.gitignore` files that were not captured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gitignores: Vec<RulesBelow>,
    /// Ignored paths that git tracked, and that the tree does not hold. Whole folders end with `/`,
    /// see `TrackedPaths`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tracked: Vec<Bytes>,
}

impl SavedRules {
    /// Returns the rules of an imported repository: the access rules of the root at this index, its
    /// `info/exclude` and whether that may be saved in plain text, and patterns of everything else
    /// that was left out.
    pub(crate) fn for_import(
        (view, root): (&AccessView, usize),
        (excludes, may_be_saved): (&[u8], bool),
        left_out: &[u8],
    ) -> Self {
        let mut size = excludes.len() + left_out.len();
        let mut denied = access_rules(view, root, &mut size);
        if size > MAX_RULES_BYTES {
            return Self {
                too_many: true,
                ..Self::default()
            };
        }
        let below = |text| RulesBelow {
            path: Bytes::new(b""),
            text,
        };
        denied.push(SavedAccessRules::Below(below(Bytes::new(left_out))));
        Self {
            max_file_size: u64::MAX,
            denied,
            repositories: vec![below(if may_be_saved {
                Bytes::new(excludes)
            } else {
                Bytes::hashed(excludes)
            })],
            ..Self::default()
        }
    }

    /// Returns every rule text, with the folder it applies to.
    fn texts(&self) -> impl Iterator<Item = (&[u8], &Bytes)> {
        let denied = self.denied.iter().filter_map(|denied| match denied {
            SavedAccessRules::Above(above) => Some((&b""[..], &above.text)),
            SavedAccessRules::Below(below) => Some((below.path.as_slice(), &below.text)),
            SavedAccessRules::All(_) => None,
        });
        let above = self.above.iter().map(|above| (&b""[..], &above.text));
        let below = self.repositories.iter().chain(&self.gitignores);
        let below = below.map(|below| (below.path.as_slice(), &below.text));
        denied.chain(above).chain(below)
    }
}

/// Bytes, saved as a string where they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Raw(Vec<u8>),
    Hashed(HashedText),
}

/// A text of which only the hash is saved.
#[derive(Clone, Serialize, Deserialize)]
struct HashedText {
    sha256: String,
    /// Known only for the current rules.
    #[serde(skip)]
    text: Option<Arc<[u8]>>,
}

impl PartialEq for HashedText {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

impl Eq for HashedText {}

impl fmt::Debug for HashedText {
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

    /// Saves only the hash. An empty text needs no protection.
    fn hashed(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::new(bytes);
        }
        let digest = Sha256::digest(bytes);
        Self::Hashed(HashedText {
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: Some(bytes.into()),
        })
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw(bytes) => bytes,
            Self::Hashed(_) => b"",
        }
    }

    /// Returns the text. A hashed one is looked up among the current texts.
    fn resolve<'a>(&'a self, now: &HashMap<&str, &'a [u8]>) -> &'a [u8] {
        match self {
            Self::Hashed(named) => now.get(&*named.sha256).copied().unwrap_or_default(),
            _ => self.as_slice(),
        }
    }
}

/// A rule file in a folder above the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RulesAbove {
    /// Path of the root relative to that folder.
    root: Bytes,
    text: Bytes,
}

/// A rule file in a folder below the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RulesBelow {
    /// Path of the folder.
    path: Bytes,
    text: Bytes,
}

/// Access rules of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SavedAccessRules {
    /// In the root or a folder above it.
    Above(RulesAbove),
    /// In a folder below the root.
    Below(RulesBelow),
    /// Unusable rules, which deny everything in this folder.
    All(Bytes),
}

/// Returns the hashed access rules of a root. Adds the size of their paths to `size`.
fn access_rules(view: &AccessView, root: usize, size: &mut usize) -> Vec<SavedAccessRules> {
    let mut bytes = |path: &RelPath| {
        let path = bytes_of(path.as_path());
        *size += path.len();
        Bytes::new(&path)
    };
    let rules = view.entry_rules(root).into_iter();
    let rules = rules.map(|rules| match (&rules.base, &rules.content) {
        (RuleBase::Above(root), Ok(text)) => SavedAccessRules::Above(RulesAbove {
            root: bytes(root),
            text: Bytes::hashed(text),
        }),
        (RuleBase::Below(path), Ok(text)) => SavedAccessRules::Below(RulesBelow {
            path: bytes(path),
            text: Bytes::hashed(text),
        }),
        (RuleBase::Above(_), Err(_)) => SavedAccessRules::All(Bytes::new(b"")),
        (RuleBase::Below(path), Err(_)) => SavedAccessRules::All(bytes(path)),
    });
    rules.collect()
}

impl CaptureFilter<'_> {
    /// Collects the rules to save. `folders` are the folders with rules, and whether their
    /// `.gitignore` is captured. `tracked` comes from `TrackedPaths::missing_from`.
    pub(crate) fn save_rules<'b>(
        &self,
        folders: impl Iterator<Item = (&'b [u8], &'b snapshot::FolderRules, bool)>,
        tracked: impl Iterator<Item = &'b [u8]>,
    ) -> SavedRules {
        let mut saved = SavedRules {
            exclude: self.settings.exclude.clone(),
            max_file_size: self.settings.max_file_size,
            ..SavedRules::default()
        };
        let mut size = 0;
        saved.denied = access_rules(self.view, self.root, &mut size);
        let mut bytes = |bytes: &[u8]| {
            size += bytes.len();
            Bytes::new(bytes)
        };
        for IgnoreFile { base, text } in &self.above {
            let root = self.base.strip_prefix(base).unwrap_or(Path::new(""));
            saved.above.push(RulesAbove {
                root: bytes(&bytes_of(root)),
                text: Bytes::hashed(text),
            });
        }
        for (path, rules, is_captured) in folders {
            if let Some(text) = &rules.excludes {
                saved.repositories.push(RulesBelow {
                    path: bytes(path),
                    text: if text.is_empty() || self.is_own_exclude(path, text) {
                        bytes(text)
                    } else {
                        Bytes::hashed(text)
                    },
                });
            }
            if let Some(text) = rules.gitignore.as_ref().filter(|_| !is_captured) {
                saved.gitignores.push(RulesBelow {
                    path: bytes(path),
                    text: if self.denies_in(path, gitignore_stack::FILE_NAME) {
                        Bytes::hashed(text)
                    } else {
                        bytes(text)
                    },
                });
            }
        }
        if size > MAX_RULES_BYTES {
            return SavedRules {
                too_many: true,
                ..SavedRules::default()
            };
        }
        // Without the tracked paths, a restore only keeps more files than necessary.
        let mut room = MAX_TRACKED_BYTES;
        let tracked = tracked.map(|path| {
            room = room.checked_sub(path.len())?;
            Some(Bytes::new(path))
        });
        saved.tracked = tracked.collect::<Option<_>>().unwrap_or_default();
        saved
    }

    /// Like `denies_path`, for a path below a folder.
    fn denies_in(&self, folder: &[u8], below: &str) -> bool {
        self.denies_path(&[folder, b"/", below.as_bytes()].concat())
    }

    /// Returns whether `text` is the folder's own `info/exclude`, reached without links and not
    /// denied.
    fn is_own_exclude(&self, folder: &[u8], text: &[u8]) -> bool {
        if self.denies_in(folder, ".git/info/exclude") {
            return false;
        }
        let open = || {
            let folder = ScanDir::open(&self.place(folder))?;
            folder.enter(b".git")?.enter(b"info")?.open_file(b"exclude")
        };
        let Ok((file, EntryKind::File, _)) = open() else {
            return false;
        };
        let mut now = Vec::new();
        let read = file.take(gitignore_stack::MAX_BYTES).read_to_end(&mut now);
        read.is_ok() && now == text
    }
}

/// Reads a file of the checkpoint's tree by its path.
type ReadSavedFile<'a> = dyn Fn(&RelPath) -> Result<Option<Vec<u8>>, Error> + 'a;

/// Applies the rules that were in force for a checkpoint. Only meaningful for paths that the
/// checkpoint does not hold: what it holds was captured.
pub(crate) struct HistoricRules<'a> {
    saved: &'a SavedRules,
    gitignore: &'a ReadSavedFile<'a>,
    /// Placeholder for the root's path. Deep enough for every rule file above the root.
    base: PathBuf,
    /// Current texts by hash.
    texts: HashMap<&'a str, &'a [u8]>,
    denied: Vec<HistoricDenial>,
    /// Folders with hashed rules that are not among the current ones.
    unknown: Vec<Vec<u8>>,
    tracked: TrackedPaths,
    /// `None` for a folder in which nothing was captured.
    folders: HashMap<RelPath, Option<HistoricFolder>>,
}

/// A folder in which something was captured.
#[derive(Clone)]
struct HistoricFolder {
    rules: gitignore_stack::IgnoreRules,
    /// Whether the folder was ignored, so that only tracked paths in it were captured.
    is_ignored: bool,
}

enum HistoricDenial {
    /// Patterns, and the root's path relative to their folder.
    Above(PatternSet, Vec<u8>),
    /// Patterns, and the folder they apply to.
    Below(PatternSet, Vec<u8>),
    All(Vec<u8>),
}

impl<'a> HistoricRules<'a> {
    /// `now` are the current rules. `gitignore` reads a `.gitignore` from the checkpoint's tree.
    pub(crate) fn new(
        saved: &'a SavedRules,
        now: &'a SavedRules,
        gitignore: &'a ReadSavedFile<'a>,
    ) -> Result<Self, Error> {
        let texts = now.texts().filter_map(|(_, text)| match text {
            Bytes::Hashed(named) => Some((&*named.sha256, named.text.as_deref()?)),
            _ => None,
        });
        let texts: HashMap<&str, &[u8]> = texts.collect();
        let unknown = saved.texts().filter(
            |(_, text)| matches!(text, Bytes::Hashed(named) if !texts.contains_key(&*named.sha256)),
        );
        let unknown = unknown.map(|(folder, _)| folder.to_vec()).collect();
        let longest = saved
            .above
            .iter()
            .map(|above| above.root.as_slice())
            .max_by_key(|root| root.len())
            .unwrap_or_default();
        let top = PathBuf::from(if cfg!(windows) { r"C:\" } else { "/" });
        let base = place(&top, longest);
        let patterns =
            |text: &Bytes| PatternSet::access_rules(rule_lines("", text.resolve(&texts)));
        // Rules that cannot be compiled deny everything.
        let denied = saved.denied.iter().map(|denied| match denied {
            SavedAccessRules::Above(RulesAbove { root, text }) => match patterns(text) {
                Ok(patterns) => HistoricDenial::Above(patterns, root.as_slice().to_vec()),
                Err(_) => HistoricDenial::All(Vec::new()),
            },
            SavedAccessRules::Below(RulesBelow { path, text }) => {
                let base = path.as_slice().to_vec();
                match patterns(text) {
                    Ok(patterns) => HistoricDenial::Below(patterns, base),
                    Err(_) => HistoricDenial::All(base),
                }
            }
            SavedAccessRules::All(path) => HistoricDenial::All(path.as_slice().to_vec()),
        });
        Ok(Self {
            saved,
            gitignore,
            base,
            denied: denied.collect(),
            tracked: TrackedPaths::new(
                saved
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

    /// Returns whether the path was excluded: ignored, denied, or in an excluded folder. Also
    /// returns true if this is unknown.
    pub(crate) fn excludes(&mut self, rel: &RelPath, is_dir: bool) -> Result<bool, Error> {
        if self.saved.too_many {
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
            Some(Some(folder)) => self.decide(folder, &parent, rel, is_dir).is_none(),
            _ => true,
        })
    }

    /// Returns whether the rules for this path are known.
    pub(crate) fn knows(&self, rel: &RelPath) -> bool {
        let path = bytes_of(rel.as_path());
        let mut unknown = self.unknown.iter();
        !self.saved.too_many && unknown.all(|folder| below(&path, folder).is_none())
    }

    /// Decides about the folders down to `folder`.
    fn enter(&mut self, folder: &RelPath) -> Result<(), Error> {
        let mut at = RelPath::default();
        let mut above = match self.folders.get(&at) {
            Some(known) => known.clone(),
            None => {
                let rules = self.saved.above.iter().fold(
                    gitignore_stack::IgnoreRules::default(),
                    |rules, RulesAbove { root, text }| {
                        rules.with_file(&self.ancestor(root.as_slice()), text.resolve(&self.texts))
                    },
                );
                let root = Some(HistoricFolder {
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
                (None, Some(above)) => match self.decide(&above, &at, &below, true) {
                    Some(is_ignored) => Some(HistoricFolder {
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

    /// Returns the folder above the root relative to which the root is at `root`.
    fn ancestor(&self, root: &[u8]) -> PathBuf {
        let depth = root.split(|byte| *byte == b'/').count();
        let up = if root.is_empty() { 0 } else { depth };
        self.base
            .ancestors()
            .nth(up)
            .unwrap_or(&self.base)
            .to_path_buf()
    }

    /// Adds the rules in a folder to the rules from above it.
    fn own(
        &self,
        above: gitignore_stack::IgnoreRules,
        folder: &RelPath,
    ) -> Result<gitignore_stack::IgnoreRules, Error> {
        let path = bytes_of(folder.as_path());
        let kept = |files: &[RulesBelow]| {
            files
                .iter()
                .find(|file| file.path.as_slice() == &*path)
                .map(|file| Arc::from(file.text.resolve(&self.texts)))
        };
        let gitignore = match kept(&self.saved.gitignores) {
            Some(text) => Some(text),
            None => {
                let file = folder.child(OsStr::new(gitignore_stack::FILE_NAME));
                (self.gitignore)(&file)?.map(Arc::from)
            }
        };
        let own = snapshot::FolderRules {
            git: false,
            excludes: kept(&self.saved.repositories),
            gitignore: gitignore
                .filter(|text: &Arc<[u8]>| text.len() as u64 <= gitignore_stack::MAX_BYTES),
        };
        Ok(with_own(above, &place(&self.base, &path), &own))
    }

    /// Returns `None` if the path was excluded. Otherwise returns whether it is an ignored folder
    /// with tracked paths.
    fn decide(
        &self,
        above: &HistoricFolder,
        folder: &RelPath,
        rel: &RelPath,
        is_dir: bool,
    ) -> Option<bool> {
        let name = rel.name().unwrap_or_default();
        let bytes = name.as_encoded_bytes();
        if reserved_names::is_repository(bytes) || reserved_names::is_refused_by_git(bytes, false) {
            return None;
        }
        if is_dir && is_excluded(&self.saved.exclude, bytes) {
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
        let is_held = self.tracked.contains(&path, is_dir);
        is_held.then(|| !self.tracked.is_whole_folder(&path))
    }
}

impl HistoricDenial {
    fn denies(&self, path: &[u8], is_dir: bool) -> bool {
        let denies =
            |patterns: &PatternSet, path: &[u8]| patterns.deciding(path).of(is_dir).is_ignore();
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

/// Returns `path` relative to `base`.
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
