//! The part of a restore that concerns one root.

use sightline_core::{
    cancel::Cancel,
    checkpoint::restore::{Options, Preview, RestoreTarget, Restored},
    error::Error,
    path::{AbsPath, Location, RelPath, uri_to_path},
};

use super::super::{
    checkpoint_context::{CheckpointContext, Found},
    checkpoints::in_root,
};

/// The files to restore in one root.
pub(super) struct RootRestore {
    pub(super) found: Found,
    pub(super) wanted: RestoreTarget,
    /// Open documents with unsaved text, by path and URI.
    pub(super) unsaved: Vec<(RelPath, String)>,
    /// Open documents without unsaved text.
    pub(super) clean: Vec<RelPath>,
}

impl RootRestore {
    pub(super) fn new(
        work: &CheckpointContext<'_>,
        found: Found,
        paths: Vec<RelPath>,
    ) -> Result<Self, Error> {
        let editor = &work.context.snapshot.editor;
        let unsaved = below(work, found.root, editor.unsaved(&work.view));
        let open = editor.documents().into_iter().map(|(uri, _)| uri);
        let open = below(work, found.root, open);
        let is_clean = |path: &RelPath| unsaved.iter().all(|(unsaved, _)| unsaved != path);
        Ok(Self {
            wanted: RestoreTarget {
                id: found.record.id,
                paths,
            },
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
    fn covers(&self, work: &CheckpointContext<'_>, inner: &Self) -> Result<bool, Error> {
        let (own, of) = work.of(self.found.root)?;
        let (root, _) = work.of(inner.found.root)?;
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
        Ok(is_wanted && of.store.holds_folder(self.found.record.id, &at)?)
    }

    fn unsaved_paths(&self) -> Vec<RelPath> {
        self.unsaved.iter().map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn preview(&self, work: &CheckpointContext<'_>) -> Result<Preview, Error> {
        let cancel = &work.context.cancel;
        work.on(self.found.root, cancel, |job| {
            self.found
                .of
                .store
                .preview(job, &self.wanted, &self.unsaved_paths())
        })
        .map_err(|error| self.named(work, error))
    }

    pub(super) fn restore(
        &self,
        work: &CheckpointContext<'_>,
        cancel: &Cancel,
        options: &Options,
    ) -> Result<Restored, Error> {
        let restored = work.on(self.found.root, cancel, |job| {
            self.found
                .of
                .store
                .restore(job, &self.wanted, &self.unsaved_paths(), options)
        });
        self.found.of.schedule_maintenance(work.context.server);
        restored.map_err(|error| self.named(work, error))
    }

    fn named(&self, work: &CheckpointContext<'_>, error: Error) -> Error {
        match work.roots().get(self.found.root) {
            Some(root) => in_root(work.roots(), root, error),
            None => error,
        }
    }
}

/// Returns the documents that are files of a root.
fn below<'a>(
    work: &CheckpointContext<'_>,
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
            if let Location::Inside { root: at, rel } = work.roots().place(path)
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
    work: &CheckpointContext<'_>,
    parts: Vec<RootRestore>,
) -> Result<Vec<RootRestore>, Error> {
    let mut is_covered = Vec::new();
    for inner in &parts {
        let mut covered = false;
        for outer in &parts {
            covered |= outer.covers(work, inner)?;
        }
        is_covered.push(covered);
    }
    let parts = parts.into_iter().zip(is_covered);
    Ok(parts
        .filter(|(_, covered)| !covered)
        .map(|(part, _)| part)
        .collect())
}
