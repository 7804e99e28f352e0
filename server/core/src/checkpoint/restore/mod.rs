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
//! Read next: `plan` decides what changes, `preflight` verifies the store, `apply` changes the
//! files, and `recover` handles a journal that was left behind.

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod race_tests;
#[cfg(test)]
mod save_tests;

mod apply;
mod attributes;
mod changed_since;
mod displaced;
mod exclusions;
mod in_place;
mod journal;
mod open_files;
mod plan;
mod preflight;
mod protected_paths;
mod recover;

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use sightline_protocol::error::ErrorKind;

use super::{
    Checkpoint, Checkpoints, ConversationMark, Job, NamedPath, Oid, Purpose, Request,
    store::{
        lock::{self, StoreLock},
        refs,
        repository::Repository,
    },
    tree_diff::{Leaf, Tree, has_folder},
    worktree::{permissions::ReadPermissionMap, scan::Scan},
};
use crate::{error::Error, fs::dir::Walker, path::RelPath, storage::TaskId, thread_pool};
use apply::{ApplyContext, apply, read_blob};
use journal::Journal;
use plan::{Plan, UnsavedDocuments, plan};
use preflight::BlobCache;

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

/// Results of the work that runs while the undo point is written to disk.
struct PreparedPlan {
    plan: Plan,
    /// Verified contents to write, as far as they are cached.
    contents: BlobCache,
    /// Folders that an undo reads.
    folders: Vec<Oid>,
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
        // Opened once, before the scan: the folder that is scanned is the one that is changed, even
        // if another one replaces it.
        let walker = self.walker()?;
        let at = (&repository, &walker);
        let unsaved = UnsavedDocuments {
            paths: unsaved,
            force: options.force,
        };
        // Check the token first, to avoid creating an undo point in vain.
        if options.token.is_some() {
            let plan = self.plan_current(job, at, &target, wanted, unsaved)?;
            check_token(options, &plan)?;
            if plan.is_empty() && options.rewind.is_none() {
                return report(&repository, plan, Vec::new(), None, unsaved.paths);
            }
        }
        let paths = restored_paths(&target, wanted);
        let request = Request {
            task: options.task.clone(),
            label: None,
            purpose: Purpose::Undo {
                restoring: Some(target.id),
                paths: paths.iter().map(NamedPath::of).collect(),
            },
            messages: options.messages,
            group: options.group.clone(),
            group_roots: options.group_roots.clone(),
            rewind: options.rewind.clone(),
            confirm_large: true,
        };
        // An undo point is removed again if the restore changes nothing.
        let remove_undo_point = |undo: &Checkpoint| {
            let is_ref_of_undo = |name: &str| refs::id_of(name) == Some(undo.id);
            refs::remove(repository.dir(), is_ref_of_undo).is_ok()
        };
        let prepare = |is_retry: bool| {
            // The target is often the last checkpoint, whose tree is cached.
            let cached_tree = self
                .lock_stat_cache(job.cancel)?
                .stored
                .clone()
                .filter(|(tree, _)| tree.oid == target.tree)
                .map(|(tree, _)| tree);
            let planned = |scan: &Scan| {
                let tree = cached_tree
                    .clone()
                    .map_or(Tree::Stored(target.tree), Tree::Seen);
                let plan = self.plan(job, at, (scan, &target, tree), wanted, unsaved)?;
                check_token(options, &plan)?;
                let contents =
                    preflight::verify_contents(&repository, target.id, &plan.steps, job.cancel)?;
                let paths = plan.steps.iter().map(|step| &step.path);
                if let Some(cached_tree) = &cached_tree {
                    let folders = preflight::parent_folders(cached_tree, paths.clone());
                    preflight::verify_folders(&repository, &folders, job.cancel)?;
                }
                let paths = paths.chain(&plan.left_alone);
                let folders = preflight::parent_folders(&scan.tree, paths);
                Ok(PreparedPlan {
                    plan,
                    contents,
                    folders,
                })
            };
            let (undo, planned) = self.create_undo_point(&lock, job, &request, planned)?;
            repository.refresh_packs();
            let planned = planned.inspect_err(|_: &Error| {
                if !is_retry {
                    let _ = remove_undo_point(&undo);
                }
            })?;
            Ok::<_, Error>((undo, planned))
        };
        let check_undo = |planned: &PreparedPlan| {
            let PreparedPlan { plan, folders, .. } = planned;
            preflight::undo_damage(&repository, folders, &plan.steps, job.cancel)
        };
        let journal = |undo: &Checkpoint, PreparedPlan { plan, .. }: &PreparedPlan| {
            let is_needed = !plan.steps.is_empty() || !plan.folders.is_empty();
            let journal = || Journal::new(target.id, undo.id, &paths, &plan.left_alone);
            is_needed.then(|| self.prepare_journal(&journal()))
        };
        let (mut undo, mut planned) = prepare(false)?;
        let (mut journalled, damage) =
            thread_pool::join(|| journal(&undo, &planned), || check_undo(&planned));
        if let Some(damage) = damage? {
            // Recording the damage makes the next open rebuild the store. The workspace is then
            // stored again.
            repository.record_damage(&format!("undo point {} is damaged", undo.id))?;
            self.lock_stat_cache(job.cancel)?.stored = None;
            let again = prepare(true);
            if self.get(target.id).is_err() {
                return Err(Error::storage(format!(
                    "the checkpoint store was damaged ({damage}) and has been rebuilt, but checkpoint {} could not be saved; nothing was restored",
                    target.id
                )));
            }
            (undo, planned) = again?;
            if let Some(damage) = check_undo(&planned)? {
                return Err(Error::storage(format!(
                    "cannot read back undo point {}: {damage}; nothing was restored. Check the disk of {}",
                    undo.id,
                    repository.dir().display()
                )));
            }
            journalled = journal(&undo, &planned);
        }
        job.cancel.commit().inspect_err(|_| {
            let _ = remove_undo_point(&undo);
        })?;
        let PreparedPlan { plan, contents, .. } = planned;
        let Some(journal) = journalled else {
            // The undo point was created while the plan was made.
            let is_gone = plan.is_empty() && options.rewind.is_none() && remove_undo_point(&undo);
            let undo = (!is_gone).then_some(undo.id);
            return report(&repository, plan, Vec::new(), undo, unsaved.paths);
        };
        journal?.commit()?;
        crash_point();
        let context = ApplyContext {
            root: self.work_tree(),
            walker: &walker,
            repository: &repository,
            contents: &contents,
            undo: undo.id,
            readers: ReadPermissionMap::new(&target.metadata.restricted),
        };
        let errors = apply(job, &context, &plan.steps, &plan.folders);
        // The files are not flushed, as in a git checkout: a flush takes longer than the whole
        // restore, and after a power failure both checkpoints have every byte. If the journal
        // cannot be removed, recovery checks the files again.
        let _ = self.remove_journal();
        crash_point();
        report(&repository, plan, errors, Some(undo.id), unsaved.paths)
    }

    /// Returns whether the checkpoint contains this folder. A root inside another root is restored
    /// with the outer one if the checkpoint of the outer one contains it.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `storage`.
    pub fn holds_folder(&self, id: Oid, path: &RelPath) -> Result<bool, Error> {
        let tree = self.get(id)?.tree;
        let reader = self.existing_repository()?.reader();
        has_folder(&reader, tree, path)
    }

    /// Creates the undo point. Returns it with the result of `planned` for its scan.
    fn create_undo_point<T: Send>(
        &self,
        lock: &StoreLock,
        job: &Job<'_>,
        request: &Request,
        planned: impl Fn(&Scan) -> T + Sync,
    ) -> Result<(Arc<Checkpoint>, T), Error> {
        let (undo, scan, plan) = self.create_locked(lock, job, request, planned)?;
        if undo.tree == scan.tree.oid {
            return Ok((undo, plan));
        }
        Err(Error::storage(format!(
            "undo point {} does not match the workspace; nothing was changed; try again",
            undo.id
        )))
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

    /// Scans the workspace and plans a restore.
    fn plan_current(
        &self,
        job: &Job<'_>,
        at: (&Repository, &Walker),
        target: &Checkpoint,
        wanted: &RestoreTarget,
        unsaved: UnsavedDocuments<'_>,
    ) -> Result<Plan, Error> {
        let scan = self.scan_worktree(job)?;
        let between = (&scan, target, Tree::Stored(target.tree));
        self.plan(job, at, between, wanted, unsaved)
    }

    fn plan(
        &self,
        job: &Job<'_>,
        (repository, walker): (&Repository, &Walker),
        (now, target, target_tree): (&Scan, &Checkpoint, Tree),
        wanted: &RestoreTarget,
        unsaved: UnsavedDocuments<'_>,
    ) -> Result<Plan, Error> {
        let reader = repository.reader();
        // The scan used the path, so it may have scanned another folder.
        if !walker.is_at(self.work_tree()) {
            return Err(Error::storage(format!(
                "the workspace folder {} was moved or replaced; nothing was changed",
                self.root.path.display()
            )));
        }
        let mut walker = walker.again();
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
    pub(super) fn walker(&self) -> Result<Walker, Error> {
        Walker::new(self.work_tree()).map_err(|error| {
            let root = self.root.path.display();
            Error::storage(format!("cannot open the workspace folder {root}: {error}"))
        })
    }

    /// Flushes the workspace to disk.
    fn flush(&self, walker: &Walker) -> Result<(), Error> {
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

fn check_token(options: &Options, plan: &Plan) -> Result<(), Error> {
    match &options.token {
        Some(token) if *token != plan.token => Err(Error::new(
            ErrorKind::Conflict,
            "the workspace changed since the preview; nothing was restored. Preview again",
        )),
        _ => Ok(()),
    }
}

/// Returns the result of a restore. `errors` has one entry for each step of the plan.
fn report(
    repository: &Repository,
    plan: Plan,
    errors: Vec<Option<String>>,
    undo: Option<Oid>,
    unsaved: &[RelPath],
) -> Result<Restored, Error> {
    let unsaved: HashSet<&RelPath> = unsaved.iter().collect();
    let reader = repository.reader();
    let content = |leaf: Leaf| String::from_utf8(read_blob(&reader, leaf.oid).ok()?).ok();
    let mut texts = Vec::new();
    let mut outcomes = Vec::with_capacity(plan.steps.len());
    for (step, error) in plan.steps.into_iter().zip(errors) {
        if error.is_none() && unsaved.contains(&step.path) {
            texts.push(EditorText {
                path: step.path.clone(),
                content: step.after.filter(Leaf::is_file).and_then(content),
            });
        }
        outcomes.push(Outcome {
            action: step.action(),
            path: step.path,
            error,
        });
    }
    for (path, leaf) in plan.texts_only {
        texts.push(EditorText {
            path: path.clone(),
            content: content(leaf),
        });
        outcomes.push(Outcome {
            path,
            action: Action::Write,
            error: None,
        });
    }
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    outcomes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Restored {
        outcomes,
        conflicts: plan.conflicts,
        undo,
        texts,
    })
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
