//! Restores of several roots, and undos of them.
//!
//! A restore of several roots is atomic: all roots are previewed before any is changed, and if one
//! fails, those before it are rolled back to their undo points.

use std::sync::Arc;

use sightline_base::{cancel::Cancel, path::Roots};
use sightline_protocol::checkpoint::short_id;

use super::{Conflict, Options, Preview, RestoreTarget, Restored, Scope, UnsavedTexts};
use crate::{
    checkpoints::Checkpoints,
    error::Error,
    job::Job,
    list::Filter,
    metadata::{Checkpoint, Purpose},
};

/// Separates the tokens of several roots. Tokens do not contain it.
const TOKEN_SEPARATOR: &str = ".";

/// Message without a restore.
pub const NO_RESTORE: &str = "no restore to undo";

/// A checkpoint with its root and store.
#[derive(Clone, Debug)]
pub struct Found {
    /// Index of the root.
    pub root: usize,
    /// Store of the root.
    pub store: Arc<Checkpoints>,
    /// The checkpoint.
    pub checkpoint: Arc<Checkpoint>,
}

impl Found {
    /// Returns whether it is an undo point.
    pub fn is_undo(&self) -> bool {
        self.checkpoint.metadata.is_undo()
    }

    /// Returns whether it is the undo point of a restore of files.
    pub fn is_undo_of_files(&self) -> bool {
        let purpose = &self.checkpoint.metadata.purpose;
        matches!(purpose, Purpose::Undo { restoring, .. } if restoring.is_some())
    }
}

/// The open roots.
#[derive(Debug)]
pub struct OpenRoots<'a> {
    /// The roots.
    pub roots: &'a Roots,
    /// Store of each root.
    pub stores: Vec<Arc<Checkpoints>>,
}

impl OpenRoots<'_> {
    /// Returns the checkpoints that belong to groups, in root order.
    ///
    /// # Errors
    /// `storage`.
    pub fn grouped(&self) -> Result<Vec<Found>, Error> {
        let mut all = Vec::new();
        for (root, store) in self.stores.iter().enumerate() {
            for checkpoint in store.list(&Filter::default())? {
                if checkpoint.metadata.group.is_some() {
                    let store = store.clone();
                    all.push(Found {
                        root,
                        store,
                        checkpoint,
                    });
                }
            }
        }
        Ok(all)
    }

    /// Returns the checkpoints of a group, in root order, or `named` alone if it belongs to none. The
    /// group of an undo point consists of undo points.
    ///
    /// # Errors
    /// `conflict` if one of the group's folders is not open, so that a group is not restored
    /// partially; `storage`.
    pub fn group_of(&self, named: Found) -> Result<Vec<Found>, Error> {
        let Some(group) = &named.checkpoint.metadata.group else {
            return Ok(vec![named]);
        };
        let mut found = self.grouped()?;
        found.retain(|one| {
            one.checkpoint.metadata.group.as_ref() == Some(group)
                && (!named.is_undo() || one.is_undo())
        });
        let all = &named.checkpoint.metadata.group_roots;
        let mut closed = all.clone();
        for root in self.roots.as_slice() {
            closed.retain(|uri| *uri != root.path.to_uri());
        }
        if found.len() >= all.len() || closed.is_empty() {
            return Ok(found);
        }
        Err(Error::conflict(format!(
            "checkpoint {} belongs to a group with folders that are not open; nothing was changed. Open {}, or restore only this checkpoint",
            named.checkpoint.id,
            closed.join(", ")
        )))
    }

    /// Returns the latest undo point of some roots.
    ///
    /// # Errors
    /// `notFound` if there is none; `storage`.
    pub fn last_undo(&self, roots: &[usize]) -> Result<Found, Error> {
        let mut all = Vec::new();
        for root in roots {
            let store = &self.stores[*root];
            if let Some(id) = store.last_undo()? {
                all.push(Found {
                    root: *root,
                    store: store.clone(),
                    checkpoint: store.get(id)?,
                });
            }
        }
        let age = |found: &Found| {
            let metadata = &found.checkpoint.metadata;
            (metadata.created, metadata.sequence)
        };
        // The first root of several with the same age.
        all.into_iter()
            .rev()
            .max_by_key(age)
            .ok_or_else(|| Error::NotFound(NO_RESTORE.to_owned()))
    }
}

/// The restore of one root.
#[derive(Debug)]
pub struct RootRestore {
    /// The checkpoint.
    pub found: Found,
    /// What to restore of it.
    pub target: RestoreTarget,
    /// Open documents with unsaved text.
    pub unsaved: UnsavedTexts,
}

impl RootRestore {
    /// Returns whether restoring this root also restores `inner`.
    fn covers(&self, inner: &Self) -> Result<bool, Error> {
        let place = |part: &Self| part.found.store.root().canonical.clone();
        let Some(at) = place(inner).relative_to(&place(self)) else {
            return Ok(false);
        };
        if at.is_root() {
            return Ok(self.found.root < inner.found.root);
        }
        let mut wanted = self.target.paths.iter();
        let is_wanted = self.target.paths.is_empty()
            || wanted.any(|above| at.as_path().starts_with(above.as_path()));
        // An ignored inner root is not part of the outer checkpoint and is restored separately.
        Ok(is_wanted && self.found.store.holds_folder(self.target.id, &at)?)
    }

    fn run(&self, job: &Job<'_>, options: &Options) -> Result<Restored, Error> {
        let store = &self.found.store;
        store.restore(job, &self.target, &self.unsaved, options)
    }
}

/// A restore of several roots.
#[derive(Debug)]
pub struct GroupRestore<'a> {
    /// The open roots.
    pub roots: &'a Roots,
    /// The restored ones.
    pub parts: Vec<RootRestore>,
}

impl GroupRestore<'_> {
    /// Removes roots that are restored as part of an outer root.
    ///
    /// # Errors
    /// `storage`.
    pub fn remove_nested(&mut self) -> Result<(), Error> {
        let mut is_covered = Vec::new();
        for inner in &self.parts {
            let mut covered = false;
            for outer in &self.parts {
                covered |= outer.covers(inner)?;
            }
            is_covered.push(covered);
        }
        let mut is_covered = is_covered.into_iter();
        self.parts.retain(|_| is_covered.next() == Some(false));
        Ok(())
    }

    /// Previews every root. Returns the token for all of them as well.
    ///
    /// # Errors
    /// Those of [`Checkpoints::preview`].
    pub fn preview(&self, job: &Job<'_>) -> Result<(Vec<Preview>, String), Error> {
        let mut previews = Vec::new();
        for part in &self.parts {
            let job = job.in_root(part.found.root);
            let preview = part.found.store.preview(&job, &part.target, &part.unsaved);
            previews.push(preview.map_err(|error| self.in_root(part, error))?);
        }
        let tokens: Vec<&str> = previews.iter().map(|preview| &*preview.token).collect();
        let token = tokens.join(TOKEN_SEPARATOR);
        Ok((previews, token))
    }

    /// Previews several roots before any is changed, and checks the token of an earlier preview.
    /// Returns the options of each root. A single root is checked by its restore.
    ///
    /// # Errors
    /// `conflict` if the token is out of date; those of [`Self::preview`].
    pub fn prepare(&self, job: &Job<'_>, options: &Options) -> Result<Vec<Options>, Error> {
        if self.parts.len() < 2 {
            return Ok(vec![options.clone()]);
        }
        let (previews, token) = self.preview(job)?;
        if options
            .token
            .as_ref()
            .is_some_and(|wanted| *wanted != token)
        {
            return Err(Error::conflict(
                "the workspace changed since the preview; preview again",
            ));
        }
        let together = self.parts.iter().map(|part| part.found.root);
        let mut undo = options.undo.clone();
        undo.metadata.group = Some(uuid::Uuid::new_v4().to_string());
        undo.metadata.group_roots = group_root_uris(self.roots, together);
        let options = previews.into_iter().map(|preview| Options {
            token: Some(preview.token),
            undo: undo.clone(),
            ..options.clone()
        });
        Ok(options.collect())
    }

    /// Restores the roots one after the other, or none. `prepared` are the options of each root, see
    /// [`Self::prepare`]; `rewind` is the rewind of the conversation, stored with the first root.
    ///
    /// # Errors
    /// Those of [`Checkpoints::restore`].
    pub fn run(
        &self,
        job: &Job<'_>,
        prepared: Vec<Options>,
        rewind: Option<String>,
    ) -> Result<Vec<Restored>, Error> {
        let mut done = Vec::new();
        let mut rewind = rewind;
        for (part, mut options) in self.parts.iter().zip(prepared) {
            options.undo.metadata.rewind = rewind.take();
            match part.run(&job.in_root(part.found.root), &options) {
                Ok(restored) => done.push(restored),
                Err(error) => return Err(self.roll_back(job, &done, self.in_root(part, error))),
            }
        }
        Ok(done)
    }

    /// Rolls back the roots restored before one failed. Adds to the error if that fails too.
    fn roll_back(&self, job: &Job<'_>, done: &[Restored], error: Error) -> Error {
        // A rollback must not be cancelled.
        let cancel = Cancel::default();
        let mut error = error;
        for (part, restored) in self.parts.iter().zip(done).rev() {
            let Some(undo) = restored.undo else {
                continue;
            };
            let back = RootRestore {
                found: part.found.clone(),
                target: RestoreTarget {
                    id: undo,
                    paths: Vec::new(),
                    scope: Scope::Undo,
                },
                // The text in the editor is still the one before the restore.
                unsaved: UnsavedTexts::new(),
            };
            let job = Job {
                cancel: &cancel,
                ..job.in_root(part.found.root)
            };
            let failed = match back.run(&job, &Options::default()) {
                Err(failed) => Some(self.in_root(part, failed).to_string()),
                Ok(undone) => {
                    let kept = |one: &Conflict| format!("{}: {}", one.path, one.reason);
                    let errors = undone.outcomes.into_iter().filter_map(|one| one.error);
                    errors.chain(undone.conflicts.iter().map(kept)).next()
                }
            };
            if let Some(failed) = failed {
                error = Error::NotRolledBack {
                    source: Box::new(error),
                    failed,
                    undo: short_id(&undo.to_string()).to_owned(),
                };
            }
        }
        error
    }

    fn in_root(&self, part: &RootRestore, error: Error) -> Error {
        error.in_root(self.roots, part.found.root)
    }
}

/// Returns the root URIs of a group, or nothing for a single root.
pub fn group_root_uris(
    roots: &Roots,
    together: impl ExactSizeIterator<Item = usize>,
) -> Vec<String> {
    if together.len() < 2 {
        return Vec::new();
    }
    let together = together.filter_map(|root| roots.get(root));
    together.map(|root| root.path.to_uri()).collect()
}
