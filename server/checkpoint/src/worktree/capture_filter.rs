//! Decides which entries of the work tree are captured.
//!
//! Decisions go from the top down: nothing below an excluded folder is captured.

pub(crate) mod repository_data;
pub(crate) mod reserved_names;

use std::path::{Path, PathBuf};

use sightline_access::{
    AccessView, Denial, RuleBase,
    gitignore::bytes_of,
    gitignore_stack::{self, IgnoreFile, IgnoreRules},
};
use sightline_base::path::{RelPath, os_name};

use twox_hash::XxHash3_128;

use super::{
    linked_repositories::{RepositoryPath, linked_repositories},
    snapshot::{self, ExclusionReason, FolderRules},
};
use repository_data::OwnRepository;
use sightline_protocol::settings::CheckpointSettings;

/// The rules that apply to the whole work tree, without the ignore files in its folders.
#[derive(Debug)]
pub(crate) struct CaptureFilter<'a> {
    view: &'a AccessView,
    root: usize,
    settings: &'a CheckpointSettings,
    /// Path of the root, without links.
    base: PathBuf,
    /// Ignore files above the root.
    above: Vec<IgnoreFile>,
    /// The server's data directory, if it is below the root.
    own_data: Option<RelPath>,
    pub(crate) own_repository: OwnRepository,
    /// Folders with the data of a system to which links lead.
    linked: Vec<RepositoryPath>,
}

/// What happens to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// With the denial if its content is secret.
    Capture(Option<Denial>),
    /// `.git`, which no checkpoint holds.
    Omit,
    /// Denied by access rules, so its name must not be stored.
    Deny,
    Exclude(ExclusionReason),
}

impl<'a> CaptureFilter<'a> {
    /// `base` is the path of the root, without links.
    pub(crate) fn new(
        view: &'a AccessView,
        root: usize,
        settings: &'a CheckpointSettings,
        base: &Path,
        data: Option<&Path>,
    ) -> Self {
        let own_data = data
            .and_then(|data| sightline_base::path::canonicalize(data).ok())
            .and_then(|data| RelPath::new(data.strip_prefix(base).ok()?));
        Self {
            view,
            root,
            settings,
            base: base.to_path_buf(),
            above: gitignore_stack::files_above(base, base),
            own_data,
            own_repository: OwnRepository::new(base),
            linked: Vec::new(),
        }
    }

    /// Returns the same rules, which also exclude the folders to which links lead, of those paths that were skipped.
    pub(crate) fn with_linked(&self, skipped: &[RepositoryPath]) -> Self {
        Self {
            linked: linked_repositories(skipped, &self.base),
            above: self.above.clone(),
            base: self.base.clone(),
            own_data: self.own_data.clone(),
            own_repository: OwnRepository::new(&self.base),
            ..*self
        }
    }

    /// Returns whether the links of the skipped paths lead to the folders that are excluded.
    pub(crate) fn excludes_linked(&self, skipped: &[RepositoryPath]) -> bool {
        self.linked == linked_repositories(skipped, &self.base)
    }

    /// Returns a hash of the rules. Equal hashes, and equal rules of the folders, mean equal decisions.
    pub(crate) fn fingerprint(&self) -> u128 {
        let mut hash = XxHash3_128::new();
        let mut add = |bytes: &[u8]| {
            hash.write(&(bytes.len() as u64).to_le_bytes());
            hash.write(bytes);
        };
        add(b"secrets and repository data by content");
        add(&self.settings.max_file_size.to_le_bytes());
        for name in &self.settings.exclude {
            add(name.as_bytes());
        }
        for rules in self.view.entry_rules(self.root) {
            let (kind, path): (&[u8], _) = match &rules.base {
                RuleBase::Above(path) => (b"above", path),
                RuleBase::Below(path) => (b"below", path),
            };
            add(kind);
            add(&bytes_of(path.as_path()));
            match &rules.content {
                Ok(lines) => add(lines),
                // The cause is irrelevant: everything is denied.
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
        for (folder, _) in &self.linked {
            add(b"linked");
            add(&bytes_of(folder.as_path()));
        }
        hash.finish_128()
    }

    /// Decides about an entry of a captured folder. `ignores` returns whether ignore rules exclude
    /// it.
    pub(crate) fn decide(
        &self,
        folder: &[u8],
        name: &[u8],
        (is_dir, is_link): (bool, bool),
        ignores: impl FnOnce() -> bool,
    ) -> Decision {
        if reserved_names::is_repository(name) {
            return Decision::Omit;
        }
        let Some(path) = rel_path(folder, name) else {
            return Decision::Exclude(ExclusionReason::InvalidName);
        };
        let by_content = self.view.check_entry(self.root, &path, is_dir);
        if by_content
            .as_ref()
            .is_some_and(|denial| is_link || !denial.by_content)
        {
            return Decision::Deny;
        }
        let excluded = if ignores() {
            Some(ExclusionReason::Ignored)
        } else if reserved_names::is_refused_by_git(name, is_link) {
            Some(ExclusionReason::InvalidName)
        } else if is_dir && self.is_excluded_by_settings(name) {
            Some(ExclusionReason::BySettings)
        } else if is_dir && self.own_data.as_ref() == Some(&path) {
            Some(ExclusionReason::OwnData)
        } else if let Some((_, system)) = self.linked.iter().find(|(folder, _)| *folder == path) {
            Some(ExclusionReason::RepositoryData(*system))
        } else if self.base.as_os_str().len() + 1 + path.as_path().as_os_str().len()
            > sightline_base::limits::MAX_ABSOLUTE_PATH_BYTES
        {
            Some(ExclusionReason::TooLong)
        } else {
            None
        };
        match excluded {
            None => Decision::Capture(by_content),
            // Its content is not read, so it may be secret.
            Some(_) if by_content.is_some() => Decision::Deny,
            Some(reason) => Decision::Exclude(reason),
        }
    }

    /// Returns a hash of the access rules that begin in a folder, or `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be used.
    pub(crate) fn access_rules_of(&self, folder: &[u8]) -> Result<Option<u128>, ExclusionReason> {
        let path = snapshot::below(folder, b"");
        let rules = self.view.folder_rules(self.root, &path);
        if rules.is_empty() {
            return Ok(None);
        }
        let mut hash = XxHash3_128::new();
        for lines in rules {
            let lines = lines.map_err(|_| ExclusionReason::RulesUnusable)?;
            hash.write(&(lines.len() as u64).to_le_bytes());
            hash.write(&lines);
        }
        Ok(Some(hash.finish_128()))
    }

    /// Takes note of the names in a folder.
    pub(crate) fn note_names<'n>(&self, folder: &[u8], names: impl Iterator<Item = &'n [u8]>) {
        let path = snapshot::below(folder, b"");
        self.view.note_names(self.root, &path, names);
    }

    fn is_excluded_by_settings(&self, name: &[u8]) -> bool {
        let mut exclude = self.settings.exclude.iter();
        exclude.any(|other| other.as_bytes() == name)
    }

    /// Ignore rules from above the root.
    pub(crate) fn above(&self) -> IgnoreRules {
        IgnoreRules::default().with_files(&self.above)
    }

    /// Absolute path of a folder, as ignore rules expect it.
    pub(crate) fn place(&self, folder: &[u8]) -> PathBuf {
        let mut path = self.base.clone();
        if !folder.is_empty() {
            path.extend(folder.split(|byte| *byte == b'/').map(os_name));
        }
        path
    }

    /// Returns whether access rules deny an entry of an allowed folder, with any content.
    pub(crate) fn denies(&self, folder: &[u8], name: &[u8], is_dir: bool) -> bool {
        rel_path(folder, name)
            .is_none_or(|path| self.view.check_entry(self.root, &path, is_dir).is_some())
    }

    /// Returns the denial of a captured file if its content is secret.
    pub(crate) fn by_content(&self, folder: &[u8], name: &[u8]) -> Option<Denial> {
        self.view
            .check_entry(self.root, &rel_path(folder, name)?, false)
    }
}

fn rel_path(folder: &[u8], name: &[u8]) -> Option<RelPath> {
    let mut path = PathBuf::with_capacity(folder.len() + 1 + name.len());
    path.extend(folder.split(|byte| *byte == b'/').map(os_name));
    path.push(os_name(name));
    RelPath::new(&path)
}

/// Adds the rules of the folder `base` to those from above it.
pub(crate) fn with_own(above: &IgnoreRules, base: &Path, own: &FolderRules) -> IgnoreRules {
    let mut rules = match &own.excludes {
        Some(text) => IgnoreRules::default().with_file(base, text),
        None => above.clone(),
    };
    if let Some(text) = &own.gitignore {
        rules = rules.with_file(base, text);
    }
    rules
}
