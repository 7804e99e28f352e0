//! The record of an installation: enough to remove it byte for byte.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Content,
    json::{self, Entry, Slot},
    patch::ReversePatch,
    toml,
};

/// The name of [`Content::Whole`] in [`Content::names`].
const WHOLE_FILE: &str = "file";

/// The files that were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// In the order of their first change.
    pub files: Vec<RecordedFile>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedFile {
    /// The file.
    pub path: PathBuf,
    /// Whether the file did not exist.
    pub created: bool,
    /// Folders that did not exist, outermost first.
    pub created_folders: Vec<PathBuf>,
    /// Restores the earlier text.
    pub patch: ReversePatch,
    /// Names of entries that were there before, see [`Content::found`]. They stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
}

impl Record {
    /// Returns the entry of a file.
    pub fn get(&self, path: &Path) -> Option<&RecordedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Notes a change. `original` is the text without our content; `None` if the file did not
    /// exist. `found`: names of the entries in it that stay.
    pub fn note(
        &mut self,
        path: &Path,
        original: Option<&str>,
        after: &str,
        created_folders: Vec<PathBuf>,
        found: Vec<String>,
    ) {
        self.forget(path);
        self.files.push(RecordedFile {
            path: path.to_owned(),
            created: original.is_none(),
            created_folders,
            patch: ReversePatch::new(original.unwrap_or_default(), after),
            found,
        });
    }

    /// Forgets that entries were there before, so that they are removed the next time.
    pub fn release(&mut self, path: &Path, names: &[String]) {
        if let Some(file) = self.files.iter_mut().find(|file| file.path == path) {
            file.found.retain(|name| !names.contains(name));
            if file.found.is_empty() && file.patch.changes.is_empty() {
                self.forget(path);
            }
        }
    }

    /// Removes the entry of a file, and returns it.
    pub fn forget(&mut self, path: &Path) -> Option<RecordedFile> {
        let index = self.files.iter().position(|file| file.path == path)?;
        Some(self.files.remove(index))
    }

    /// Notes folders that were created for a file that is gone, with another file in them.
    pub fn hand_on(&mut self, folders: &[PathBuf]) {
        let Some(innermost) = folders.last() else {
            return;
        };
        let mut files = self.files.iter_mut();
        if let Some(file) = files.find(|file| file.path.starts_with(innermost)) {
            file.created_folders.splice(0..0, folders.iter().cloned());
        }
    }
}

impl Content {
    /// Returns the names of our entries.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Json(entries) => entries.iter().map(Entry::name).collect(),
            Self::Toml(table) => vec![table.heading.join(".")],
            Self::Whole(..) => vec![WHOLE_FILE.to_owned()],
            Self::Gateway(inner, _) => inner.as_ref().map_or_else(Vec::new, |inner| inner.names()),
            Self::HideCommands => Vec::new(),
        }
    }

    /// Returns the names of our entries that are in a text that was never installed: the user has written them. Hooks
    /// and files in another form are those of an earlier version.
    pub fn found(&self, text: &str) -> Vec<String> {
        match self {
            Self::Json(entries) => {
                let is_found = |entry: &&Entry| {
                    let found = json::find(text, entry).ok().flatten();
                    let is_server = matches!(entry.slot, Slot::Member(_));
                    found.is_some_and(|found| is_server || found.is_current)
                };
                entries.iter().filter(is_found).map(Entry::name).collect()
            }
            Self::Toml(table) if matches!(toml::find(text, table), Ok(Some(_))) => self.names(),
            Self::Whole(content, _) if text == content => self.names(),
            Self::Gateway(Some(inner), _) => inner.found(text),
            _ => Vec::new(),
        }
    }

    /// Returns this content without the entries of [`Self::found`]. `None` if nothing is left.
    pub fn without(&self, names: &[String]) -> Option<Self> {
        if let Self::Json(entries) = self {
            let rest = entries
                .iter()
                .filter(|entry| !names.contains(&entry.name()));
            let rest: Vec<Entry> = rest.cloned().collect();
            return (!rest.is_empty()).then_some(Self::Json(rest));
        }
        if let Self::Gateway(inner, addresses) = self {
            let inner = inner.as_ref().and_then(|inner| inner.without(names));
            return Some(Self::Gateway(inner.map(Box::new), addresses.clone()));
        }
        let is_left = !self.names().iter().any(|name| names.contains(name));
        is_left.then(|| self.clone())
    }
}
