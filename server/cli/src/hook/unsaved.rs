//! Files with unsaved text in an editor, and which of them a tool would change.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use sightline_access::{Change, CommandGuard};
use sightline_agents::{hook::ToolCall, judge::Judge};
use sightline_base::{
    path::{Root, uri_to_path},
    storage::Storage,
};
use sightline_ipc as ipc;

/// A file with unsaved text.
pub(super) struct UnsavedFile {
    pub(super) uri: String,
    path: PathBuf,
    /// The path without links.
    real: PathBuf,
    editor: Option<String>,
}

/// The files with unsaved text of a root.
pub(super) struct UnsavedFiles(Vec<UnsavedFile>);

impl UnsavedFiles {
    /// Asks the running servers.
    pub(super) fn of(storage: &Storage, root: &Root) -> Self {
        let mut found = Self(Vec::new());
        for editor in ipc::client::unsaved_files(storage, root) {
            for uri in editor.uris {
                if let Ok(Some(path)) = uri_to_path(&uri)
                    && !found.contains(&uri)
                {
                    let path = path.as_path().to_owned();
                    found.0.push(UnsavedFile {
                        uri,
                        real: sightline_base::path::canonicalize(&path).unwrap_or_default(),
                        path,
                        editor: editor.editor.clone(),
                    });
                }
            }
        }
        found
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.0.iter().any(|file| file.uri == uri)
    }

    /// Returns the files that a tool is known to change: those it edits, and those its commands name.
    pub(super) fn changed_by(&self, judge: &Judge, call: &ToolCall) -> Vec<&UnsavedFile> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let changes = Changes {
            files: &self.0,
            changed: Mutex::default(),
        };
        judge.refused_change(call, &call.paths, &changes);
        let indexes = changes.changed.into_inner();
        indexes.iter().map(|at| &self.0[*at]).collect()
    }
}

/// Collects the files that change. Refuses nothing, so that all are found.
struct Changes<'a> {
    files: &'a [UnsavedFile],
    changed: Mutex<BTreeSet<usize>>,
}

impl CommandGuard for Changes<'_> {
    fn places(&self) -> Vec<PathBuf> {
        let paths = self.files.iter().flat_map(|file| [&file.path, &file.real]);
        paths.cloned().collect()
    }

    fn change_refusal(&self, path: &Path, change: Change) -> Option<String> {
        if change == Change::Any {
            let real = sightline_base::path::canonicalize(path).unwrap_or_default();
            let is_it = |file: &UnsavedFile| {
                file.path == path || !file.real.as_os_str().is_empty() && file.real == real
            };
            let indexes = (0..self.files.len()).filter(|at| is_it(&self.files[*at]));
            self.changed.lock().extend(indexes);
        }
        None
    }

    fn run_refusal(&self, _: &[Option<&str>], _: bool) -> Option<String> {
        None
    }

    fn is_in(&self, place: &Path, folder: &Path) -> bool {
        place.starts_with(folder)
    }
}

/// Returns which files have unsaved changes, and where. `None` without files.
pub(super) fn unsaved_reason(files: &[&UnsavedFile], root: &Root) -> Option<String> {
    let editor = files.first()?.editor.as_deref();
    let names = files.iter().map(|file| {
        let name = file.path.strip_prefix(root.path.as_path());
        name.unwrap_or(&file.path).display().to_string()
    });
    Some(format!(
        "{} {} unsaved changes in {}",
        names.collect::<Vec<_>>().join(", "),
        if files.len() == 1 { "has" } else { "have" },
        editor.unwrap_or("the editor"),
    ))
}
