//! The part of a restore that concerns one root.

use sightline_checkpoint::restore::{Options, Preview, RestoreTarget, Restored};
use sightline_workspace::{
    cancel::Cancel,
    path::{AbsPath, Location, RelPath, uri_to_path},
};

use super::super::{
    checkpoint_context::{CheckpointContext, FoundCheckpoint},
    maintenance,
    shared::with_root_name,
};
use crate::error::Error;

/// The files to restore in one root.
pub(super) struct RootRestore {
    pub(super) found: FoundCheckpoint,
    pub(super) wanted: RestoreTarget,
    /// Open documents with unsaved text, by path and URI.
    pub(super) unsaved: Vec<(RelPath, String)>,
    /// Open documents without unsaved text.
    pub(super) clean: Vec<RelPath>,
}

impl RootRestore {
    pub(super) fn new(
        cx: &CheckpointContext<'_>,
        found: FoundCheckpoint,
        wanted: RestoreTarget,
    ) -> Result<Self, Error> {
        let editor = &cx.request.snapshot.editor;
        let unsaved = documents_in_root(cx, found.root, editor.unsaved(&cx.view));
        let open = editor.documents().into_iter().map(|(uri, _)| uri);
        let open = documents_in_root(cx, found.root, open);
        let is_clean = |path: &RelPath| unsaved.iter().all(|(unsaved, _)| unsaved != path);
        Ok(Self {
            wanted,
            clean: open
                .into_iter()
                .map(|(path, _)| path)
                .filter(is_clean)
                .collect(),
            unsaved,
            found,
        })
    }

    /// Returns whether restoring this root also restores `inner`.
    fn covers(&self, cx: &CheckpointContext<'_>, inner: &Self) -> Result<bool, Error> {
        let (own, checkpoints) = cx.root_checkpoints(self.found.root)?;
        let (root, _) = cx.root_checkpoints(inner.found.root)?;
        let Some(at) = root.canonical.relative_to(&own.canonical) else {
            return Ok(false);
        };
        if at.is_root() {
            return Ok(self.found.root < inner.found.root);
        }
        let mut wanted = self.wanted.paths.iter();
        let is_wanted = self.wanted.paths.is_empty()
            || wanted.any(|above| at.as_path().starts_with(above.as_path()));
        // An ignored inner root is not part of the outer checkpoint and is restored
        // separately.
        Ok(is_wanted
            && checkpoints
                .store
                .holds_folder(self.found.checkpoint.id, &at)?)
    }

    fn unsaved_paths(&self) -> Vec<RelPath> {
        self.unsaved.iter().map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn preview(&self, cx: &CheckpointContext<'_>) -> Result<Preview, Error> {
        let cancel = &cx.request.cancel;
        cx.with_job(self.found.root, cancel, |job| {
            self.found
                .checkpoints
                .store
                .preview(job, &self.wanted, &self.unsaved_paths())
        })
        .map_err(|error| self.name_error(cx, error))
    }

    pub(super) fn restore(
        &self,
        cx: &CheckpointContext<'_>,
        cancel: &Cancel,
        options: &Options,
    ) -> Result<Restored, Error> {
        let restored = cx.with_job(self.found.root, cancel, |job| {
            self.found
                .checkpoints
                .store
                .restore(job, &self.wanted, &self.unsaved_paths(), options)
        });
        maintenance::schedule(cx.request.services, &self.found.checkpoints);
        restored.map_err(|error| self.name_error(cx, error))
    }

    fn name_error(&self, cx: &CheckpointContext<'_>, error: impl Into<Error>) -> Error {
        match cx.roots().get(self.found.root) {
            Some(root) => with_root_name(cx.roots(), root, error),
            None => error.into(),
        }
    }
}

/// Returns the documents that are files of a root.
fn documents_in_root<'a>(
    cx: &CheckpointContext<'_>,
    root: usize,
    uris: impl IntoIterator<Item = &'a str>,
) -> Vec<(RelPath, String)> {
    let mut found = Vec::new();
    for uri in uris {
        let Some(path) = uri_to_path(uri).ok().flatten() else {
            continue;
        };
        // A symlink may lead to the file from elsewhere.
        let real = std::fs::canonicalize(path.as_path()).ok();
        let real = real.and_then(|real| AbsPath::new(&real));
        for path in [Some(path), real].into_iter().flatten() {
            if let Location::Inside { root: at, rel } = cx.roots().place(path)
                && at == root
                && found.iter().all(|(known, _)| *known != rel)
            {
                found.push((rel, uri.to_owned()));
            }
        }
    }
    found
}

/// Removes roots that are restored as part of an outer root.
pub(super) fn without_nested(
    cx: &CheckpointContext<'_>,
    parts: Vec<RootRestore>,
) -> Result<Vec<RootRestore>, Error> {
    let mut is_covered = Vec::new();
    for inner in &parts {
        let mut covered = false;
        for outer in &parts {
            covered |= outer.covers(cx, inner)?;
        }
        is_covered.push(covered);
    }
    let parts = parts.into_iter().zip(is_covered);
    Ok(parts
        .filter(|(_, covered)| !covered)
        .map(|(part, _)| part)
        .collect())
}
