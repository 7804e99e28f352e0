//! Restores the workspace to a checkpoint, with preview and undo.
//!
//! ```text
//! scan -> plan -> token -> undo point -> preflight -> record -> journal -> apply -> remove journal
//! ```
//!
//! A restore changes only files that its undo point contains, so every restore can be undone. After
//! the journal is written, a restore can only go forward: an interrupted one is completed by
//! `recover`.
//!
//! An undo is a restore of an undo point that is limited to what the undone restore changed, as its
//! record lists it.
//!
//! Read next: `operation` runs the phases, `plan` decides what changes, `preflight` verifies the
//! store, `apply` changes the files, and `recover` handles a journal that was left behind.

#[cfg(test)]
mod tests;

mod apply;
mod crash_point;
pub mod group;
mod journal;
mod operation;
mod plan;
mod preflight;
mod record;
mod recover;
pub(crate) mod types;

use sightline_base::{fs::dir::DirWalker, path::RelPath, thread_pool};

use super::{
    checkpoints::Checkpoints,
    job::Job,
    metadata::{Checkpoint, Purpose},
    named_path::NamedPath,
    store::{
        lock::{self, StoreLock},
        object::Oid,
        repository::Repository,
    },
    tree_diff::{Side, Tree, has_folder, is_held},
    worktree::scan::Scan,
};
use crate::error::Error;

pub use types::{
    Action, Change, Conflict, ConflictCause, EditorText, Options, Outcome, Part, Preview,
    Recovered, RestoreTarget, Restored, Scope, UnsavedTexts,
};

use operation::RestoreOperation;
use plan::{Circumstances, Plan, UnsavedDocuments, part::Reverted, plan};

impl Checkpoints {
    /// Returns the changes that a restore would make. Changes neither the workspace nor the store.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `accessDenied` while the access rules
    /// are invalid; `cancelled`; `storage`.
    pub fn preview(
        &self,
        job: &Job<'_>,
        wanted: &RestoreTarget,
        unsaved: &UnsavedTexts,
    ) -> Result<Preview, Error> {
        job.require_rules()?;
        self.complete_interrupted_first(job)?;
        let preview = || {
            let target = self.get(wanted.id)?;
            let repository = self.existing_repository()?;
            let unsaved = UnsavedDocuments {
                texts: unsaved,
                force: false,
            };
            let at = (&repository, &self.walker()?);
            let scan = self.scan_worktree(job)?;
            let plan = self.plan(job, at, (&scan, &target), wanted, unsaved)?;
            Ok(plan.preview())
        };
        self.unless_pruned(&wanted.ids(), preview())
    }

    /// Restores a checkpoint. An error with one path does not affect other paths.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `conflict` if the token does not match
    /// the plan; `busy`; `cancelled`; `storage`; errors of creating a checkpoint. The workspace is
    /// unchanged then.
    pub fn restore(
        &self,
        job: &Job<'_>,
        wanted: &RestoreTarget,
        unsaved: &UnsavedTexts,
        options: &Options,
    ) -> Result<Restored, Error> {
        thread_pool::in_restore_pool(|| self.restore_here(job, wanted, unsaved, options))
    }

    fn restore_here(
        &self,
        job: &Job<'_>,
        wanted: &RestoreTarget,
        unsaved: &UnsavedTexts,
        options: &Options,
    ) -> Result<Restored, Error> {
        self.get(wanted.id)?;
        job.require_rules()?;
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.complete_interrupted(&lock, job)?;
        // Another process may have pruned it before this one got the lock.
        let target = self.get(wanted.id)?;
        let repository = match self.verified_repository() {
            Some(repository) => repository,
            None => self.existing_repository()?,
        };
        let paths = restored_paths(&target, wanted);
        RestoreOperation {
            checkpoints: self,
            job,
            lock: &lock,
            repository,
            walker: self.walker()?,
            target,
            wanted,
            paths,
            unsaved: UnsavedDocuments {
                texts: unsaved,
                force: options.force,
            },
            options,
        }
        .run()
    }

    /// Returns whether the checkpoint contains this folder. A root inside another root is restored
    /// with the outer one if the checkpoint of the outer one contains it.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `storage`.
    pub fn holds_folder(&self, id: Oid, path: &RelPath) -> Result<bool, Error> {
        let tree = self.get(id)?.tree;
        let reader = self.existing_repository()?.odb();
        has_folder(&reader, tree, path)
    }

    /// Returns whether the checkpoint contains a file, link or folder at this path.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `storage`.
    pub fn holds_path(&self, id: Oid, path: &RelPath) -> Result<bool, Error> {
        let tree = self.get(id)?.tree;
        let reader = self.existing_repository()?.odb();
        is_held(&reader, tree, path)
    }

    /// Returns the last undo point that was created on this machine.
    ///
    /// # Errors
    /// `storage`.
    pub fn last_undo(&self) -> Result<Option<Oid>, Error> {
        let records = self.list(&super::Filter::default())?;
        let undo = records
            .iter()
            .filter(|record| !record.metadata.fetched)
            .find(|record| record.metadata.is_undo());
        Ok(undo.map(|record| record.id))
    }

    /// Returns the undo point of the last restore on this machine that is in effect, and no undo.
    ///
    /// # Errors
    /// `storage`.
    pub fn last_restore(&self) -> Result<Option<Oid>, Error> {
        let related = self.related()?;
        for record in self.list(&super::Filter::default())? {
            let metadata = &record.metadata;
            if metadata.is_undo()
                && !metadata.fetched
                && related.undone_by(record.id).is_none()
                && !self.is_of_undo(&record)?
            {
                return Ok(Some(record.id));
            }
        }
        Ok(None)
    }

    /// Returns whether this is the undo point of an undo. The undo of an undo is a restore.
    ///
    /// # Errors
    /// `storage`.
    pub fn is_of_undo(&self, undo_point: &Checkpoint) -> Result<bool, Error> {
        let restored_from = |checkpoint: &Checkpoint| match &checkpoint.metadata.purpose {
            Purpose::Undo { restoring, .. } => *restoring,
            _ => None,
        };
        let mut is_of_undo = false;
        let mut next = restored_from(undo_point);
        while let Some(id) = next {
            let restored = match self.get(id) {
                Ok(restored) => restored,
                // It was deleted.
                Err(Error::NotFound(_)) => break,
                Err(error) => return Err(error),
            };
            if !restored.metadata.is_undo() {
                break;
            }
            is_of_undo = !is_of_undo;
            next = restored_from(&restored);
        }
        Ok(is_of_undo)
    }

    /// Completes or rolls back an interrupted restore. Called when a root is opened, and by each
    /// operation that takes the lock.
    ///
    /// # Errors
    /// `accessDenied` while the access rules are invalid; `busy`; `cancelled`;
    /// `storage`, also for an invalid journal, which is moved aside.
    pub fn recover(&self, job: &Job<'_>) -> Result<Option<Recovered>, Error> {
        // Checked before taking the lock, as there is rarely a journal.
        if !self.has_journal() {
            return Ok(None);
        }
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.recover_locked(&lock, job)
    }

    /// Same as [`Self::recover`], for operations that scan the workspace. The result is returned by
    /// [`Self::take_recovered`].
    pub(super) fn complete_interrupted_first(&self, job: &Job<'_>) -> Result<(), Error> {
        if !self.has_journal() {
            return Ok(());
        }
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.complete_interrupted(&lock, job)
    }

    /// Same as [`Self::complete_interrupted_first`], for a caller that holds the lock.
    pub(super) fn complete_interrupted(
        &self,
        lock: &StoreLock,
        job: &Job<'_>,
    ) -> Result<(), Error> {
        if let Some(recovered) = self.recover_locked(lock, job)? {
            let mut news = self.recovered.lock();
            *news = Some(recovered);
        }
        Ok(())
    }

    fn plan(
        &self,
        job: &Job<'_>,
        (repository, walker): (&Repository, &DirWalker),
        (now, target): (&Scan, &Checkpoint),
        wanted: &RestoreTarget,
        unsaved: UnsavedDocuments<'_>,
    ) -> Result<Plan, Error> {
        let reader = repository.odb();
        // The scan used the path, so it may have scanned another folder.
        if !walker.is_same_dir(self.work_tree()) {
            return Err(Error::storage(format!(
                "the workspace folder {} was moved or replaced; nothing was changed",
                self.root.path.display()
            )));
        }
        let mut walker = walker.clone_root();
        let paths = restored_paths(target, wanted);
        let undo_scope = match &wanted.scope {
            Scope::Undo => self.undo_scope(job, &reader, target)?,
            _ => None,
        };
        let reverted = match &wanted.scope {
            Scope::Part(part) => Some(Reverted {
                part,
                base: match part.until {
                    Side::Checkpoint(id) => Tree::Stored(self.get(id)?.tree),
                    Side::WorkTree => Tree::Seen(now.tree.clone()),
                },
            }),
            _ => None,
        };
        plan(
            job,
            &reader,
            &mut walker,
            (now, target),
            &paths,
            &Circumstances {
                unsaved,
                own_data: self.own_data().as_ref(),
                undo_scope: undo_scope.as_ref(),
                reverted: reverted.as_ref(),
            },
        )
    }

    pub(super) fn existing_repository(&self) -> Result<Repository, Error> {
        let missing = || Error::NotFound("there are no checkpoints yet".to_owned());
        self.repository()?.ok_or_else(missing)
    }

    /// Returns the data directory of the server, if it is below the root.
    fn own_data(&self) -> Option<RelPath> {
        let data = sightline_base::path::canonicalize(self.storage.dir()).ok()?;
        RelPath::new(data.strip_prefix(self.work_tree()).ok()?)
    }

    /// Opens the workspace folder.
    pub(super) fn walker(&self) -> Result<DirWalker, Error> {
        DirWalker::new(self.work_tree()).map_err(|error| {
            let root = self.root.path.as_path().display();
            Error::storage(format!("cannot open the workspace folder {root}: {error}"))
        })
    }

    /// Flushes the workspace to disk.
    fn flush(&self, walker: &DirWalker) -> Result<(), Error> {
        walker.flush().map_err(|error| {
            let root = self.root.path.as_path().display();
            Error::storage(format!("cannot flush the restored files of {root} to disk: {error}; they are checked again on the next start"))
        })
    }
}

/// Returns the paths to restore. An undo restores the paths of the restore that it undoes.
fn restored_paths(target: &Checkpoint, wanted: &RestoreTarget) -> Vec<RelPath> {
    match &target.metadata.purpose {
        Purpose::Undo { paths, .. } if wanted.scope == Scope::Undo && wanted.paths.is_empty() => {
            paths.iter().filter_map(NamedPath::to_path).collect()
        }
        _ => wanted.paths.clone(),
    }
}
