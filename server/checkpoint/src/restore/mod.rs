//! Restores the workspace to a checkpoint, with preview and undo.
//!
//! ```text
//! scan -> plan -> token -> undo point -> preflight -> journal -> apply -> remove journal
//! ```
//!
//! A restore changes only files that its undo point contains, so every restore can be undone. After
//! the journal is written, a restore can only go forward: an interrupted one is completed by
//! `recover`.
//!
//! Read next: `operation` runs the phases, `plan` decides what changes, `preflight` verifies the
//! store, `apply` changes the files, and `recover` handles a journal that was left behind.

#[cfg(test)]
mod concurrent_save_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod race_tests;

mod apply;
mod changed_since;
mod displaced_files;
mod exclusions;
mod file_attributes;
mod in_place;
mod journal;
mod open_by_processes;
mod operation;
mod plan;
mod preflight;
mod protected_paths;
mod recover;

use std::sync::PoisonError;

use sightline_protocol::error::ErrorKind;
use sightline_workspace::{
    error::Error, fs::dir::DirWalker, path::RelPath, storage::TaskId, thread_pool,
};

use super::{
    Checkpoint, Checkpoints, ConversationMark, Job, NamedPath, Oid, Purpose,
    store::{
        lock::{self, StoreLock},
        repository::Repository,
    },
    tree_diff::{Tree, has_folder},
    worktree::scan::Scan,
};

use operation::RestoreOperation;
use plan::{Plan, UnsavedDocuments, plan};

/// Checkpoint and paths to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreTarget {
    /// The checkpoint to restore.
    pub id: Oid,
    /// Only these paths and everything below them; empty means all.
    pub paths: Vec<RelPath>,
}

/// Kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets content, mode or type to those of the checkpoint.
    Write,
    /// Deletes the path.
    Delete,
}

/// Planned change of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Path to change.
    pub path: RelPath,
    /// Kind of change.
    pub action: Action,
    /// Why the path is changed, as user-visible text.
    pub reason: String,
    /// Whether the path changed after the restore that this restore would undo.
    pub changed_since: bool,
}

/// Path that differs, but is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Path that is left as it is; the root for denied paths, which are only counted.
    pub path: RelPath,
    /// Why the path is left as it is, as user-visible text.
    pub reason: String,
}

/// Changes that a restore would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Planned changes, sorted by path.
    pub changes: Vec<Change>,
    /// Differences that would be left as they are: unsaved text, skipped or ignored files in the
    /// way, and denied paths, which are only counted.
    pub conflicts: Vec<Conflict>,
    /// Identifies this preview. A restore with this token makes exactly these changes, or none.
    pub token: String,
}

/// Options of a restore.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Token of a preview. The restore fails if the preview is out of date.
    pub token: Option<String>,
    /// Whether to replace unsaved editor text instead of reporting a conflict. The caller replaces
    /// it, see [`Restored::texts`]. A token must be from a preview with the same unsaved documents.
    pub force: bool,
    /// Task that the undo point belongs to.
    pub task: Option<TaskId>,
    /// Position in the conversation of the task, stored with the undo point.
    pub messages: Option<ConversationMark>,
    /// Identifies the undo points of one restore of several roots.
    pub group: Option<String>,
    /// Root folders of that restore, as URIs.
    pub group_roots: Vec<String>,
    /// Rewind of the conversation that belongs to this restore, stored with the undo point.
    pub rewind: Option<String>,
}

/// Result for one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Path of the planned change.
    pub path: RelPath,
    /// Kind of change.
    pub action: Action,
    /// Why the path was not changed; `None` on success.
    pub error: Option<String>,
}

/// Open document with unsaved text whose file was restored. The client must replace the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorText {
    /// Path of the document.
    pub path: RelPath,
    /// New text; `None` if the file was deleted or is not text.
    pub content: Option<String>,
}

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Result of each planned change, sorted by path.
    pub outcomes: Vec<Outcome>,
    /// Differences that were left as they are, as in a preview.
    pub conflicts: Vec<Conflict>,
    /// The undo point. `None` if there was nothing to do, so that the undo point of an earlier
    /// restore remains the last one.
    pub undo: Option<Oid>,
    /// Documents whose unsaved text must be replaced.
    pub texts: Vec<EditorText>,
}

/// Interrupted restore that was completed or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The checkpoint that was being restored.
    pub restoring: Oid,
    /// The undo point of that restore.
    pub undo: Oid,
    /// Whether the restore was completed. Otherwise it was rolled back.
    pub completed: bool,
    /// Paths that were left as they are, with the reason. Paths that access rules deny now are only
    /// counted, in one conflict for the root.
    pub problems: Vec<Conflict>,
}

impl Checkpoints {
    /// Returns the changes that a restore would make. Changes neither the workspace nor the store.
    /// `unsaved` are the paths of open documents with unsaved text.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `accessDenied` while the access rules
    /// are invalid; `cancelled`; `storage`.
    pub fn preview(
        &self,
        job: &Job<'_>,
        wanted: &RestoreTarget,
        unsaved: &[RelPath],
    ) -> Result<Preview, Error> {
        job.require_rules()?;
        self.complete_interrupted_first(job)?;
        self.unless_pruned(&[wanted.id], self.preview_here(job, wanted, unsaved))
    }

    fn preview_here(
        &self,
        job: &Job<'_>,
        wanted: &RestoreTarget,
        unsaved: &[RelPath],
    ) -> Result<Preview, Error> {
        let target = self.get(wanted.id)?;
        let repository = self.existing_repository()?;
        let unsaved = UnsavedDocuments {
            paths: unsaved,
            force: false,
        };
        let at = (&repository, &self.walker()?);
        let scan = self.scan_worktree(job)?;
        let between = (&scan, &*target, Tree::Stored(target.tree));
        let plan = self.plan(job, at, between, wanted, unsaved)?;
        let mut preview = plan.preview();
        self.mark_changed_since(job, &repository, &scan, &target, &mut preview)?;
        Ok(preview)
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
        unsaved: &[RelPath],
        options: &Options,
    ) -> Result<Restored, Error> {
        thread_pool::in_restore_pool(|| self.restore_here(job, wanted, unsaved, options))
    }

    fn restore_here(
        &self,
        job: &Job<'_>,
        wanted: &RestoreTarget,
        unsaved: &[RelPath],
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
                paths: unsaved,
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

    /// Returns the last undo point that was created on this machine. Restoring it undoes the restore
    /// of the same paths.
    ///
    /// # Errors
    /// `storage`.
    pub fn last_undo(&self) -> Result<Option<Oid>, Error> {
        let records = self.list(&super::Filter::default())?;
        let undo = records
            .iter()
            .filter(|record| !record.metadata.fetched)
            .find(|record| matches!(record.metadata.purpose, Purpose::Undo { .. }));
        Ok(undo.map(|record| record.id))
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
            let mut news = self
                .recovered
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *news = Some(recovered);
        }
        Ok(())
    }

    fn plan(
        &self,
        job: &Job<'_>,
        (repository, walker): (&Repository, &DirWalker),
        (now, target, target_tree): (&Scan, &Checkpoint, Tree),
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
        let own_data = self.own_data();
        let circumstances = (unsaved, own_data.as_ref());
        plan(
            job,
            &reader,
            &mut walker,
            (now, target, target_tree),
            &paths,
            circumstances,
        )
    }

    fn existing_repository(&self) -> Result<Repository, Error> {
        let missing = || Error::new(ErrorKind::NotFound, "there are no checkpoints yet");
        self.repository()?.ok_or_else(missing)
    }

    /// Returns the data directory of the server, if it is below the root.
    fn own_data(&self) -> Option<RelPath> {
        let data = std::fs::canonicalize(self.storage.dir()).ok()?;
        RelPath::new(data.strip_prefix(self.work_tree()).ok()?)
    }

    /// Opens the workspace folder.
    pub(super) fn walker(&self) -> Result<DirWalker, Error> {
        DirWalker::new(self.work_tree()).map_err(|error| {
            let root = self.root.path.display();
            Error::storage(format!("cannot open the workspace folder {root}: {error}"))
        })
    }

    /// Flushes the workspace to disk.
    fn flush(&self, walker: &DirWalker) -> Result<(), Error> {
        walker.flush().map_err(|error| {
            let root = self.root.path.display();
            Error::storage(format!(
                "cannot flush the restored files of {root} to disk: {error}; they are checked again on the next start"
            ))
        })
    }
}

/// Returns the paths to restore. An undo restores the paths of the restore that it undoes.
fn restored_paths(target: &Checkpoint, wanted: &RestoreTarget) -> Vec<RelPath> {
    match &target.metadata.purpose {
        Purpose::Undo { paths, .. } if wanted.paths.is_empty() => {
            paths.iter().filter_map(NamedPath::to_path).collect()
        }
        _ => wanted.paths.clone(),
    }
}

/// Marks a point where a kill must leave a recoverable state. Tests kill the process here.
fn crash_point() {
    #[cfg(test)]
    crash_tests::crash_point();
}

/// Same as [`crash_point`], for code that holds a lease on a file.
fn crash_point_under_lease() {
    #[cfg(test)]
    crash_tests::crash_point_under_lease();
}
