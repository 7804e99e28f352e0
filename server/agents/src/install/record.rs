//! The record of an installation: enough to remove it byte for byte.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::patch::ReversePatch;

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
}

impl Record {
    /// Returns the entry of a file.
    pub fn get(&self, path: &Path) -> Option<&RecordedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Notes a change. `original` is the text without our content; `None` if the file did not
    /// exist.
    pub fn note(
        &mut self,
        path: &Path,
        original: Option<&str>,
        after: &str,
        created_folders: Vec<PathBuf>,
    ) {
        self.forget(path);
        self.files.push(RecordedFile {
            path: path.to_owned(),
            created: original.is_none(),
            created_folders,
            patch: ReversePatch::new(original.unwrap_or_default(), after),
        });
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
