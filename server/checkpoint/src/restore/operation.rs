//! The phases of a restore, in the order of [`RestoreOperation::run`].

use std::{collections::HashSet, sync::Arc};

use sightline_base::{
    fs::dir::DirWalker, path::RelPath, storage::atomic_file::PreparedFile, thread_pool,
};

use super::{
    super::{
        checkpoints::Checkpoints,
        job::Job,
        metadata::Checkpoint,
        named_path::NamedPath,
        store::{
            lock::StoreLock,
            object::{Kind, Oid},
            pack::writer::{KeepGuard, PackWriter},
            refs,
            repository::Repository,
        },
        tree_diff::Leaf,
        worktree::{permissions::ReadPermissionMap, scan::Scan},
    },
    apply::{ApplyContext, apply, step_error::StepError},
    crash_point::crash_point,
    journal::Journal,
    plan::{Plan, UnsavedDocuments},
    preflight::{self, BlobCache},
    types::{Action, EditorText, Options, Outcome, RestoreTarget, Restored, Scope},
};
use crate::error::Error;

/// Restore in progress, by a thread that holds the lock of the store.
pub(super) struct RestoreOperation<'a> {
    pub(super) checkpoints: &'a Checkpoints,
    pub(super) job: &'a Job<'a>,
    pub(super) lock: &'a StoreLock,
    pub(super) repository: Repository,
    /// Opened once, before the scan: the folder that is scanned is the one that is changed, even if
    /// another one replaces it.
    pub(super) walker: DirWalker,
    pub(super) target: Arc<Checkpoint>,
    pub(super) wanted: &'a RestoreTarget,
    /// Only these paths and everything below them; empty means all.
    pub(super) paths: Vec<RelPath>,
    pub(super) unsaved: UnsavedDocuments<'a>,
    pub(super) options: &'a Options,
}

/// Results of the work that runs while the undo point is written to disk.
struct PreparedPlan {
    plan: Plan,
    /// Verified contents to write, as far as they are cached.
    contents: BlobCache,
    /// Folders that an undo reads.
    folders: Vec<Oid>,
    /// Protects merged contents, which no checkpoint holds.
    _merged: Option<KeepGuard>,
}

/// An undo point and the plan that was made while it was written.
type Prepared = (Arc<Checkpoint>, PreparedPlan);
/// Journal that is written, but not committed. `None` if there is nothing to change on disk.
type PendingJournal = Option<Result<PreparedFile, Error>>;

impl RestoreOperation<'_> {
    pub(super) fn run(&self) -> Result<Restored, Error> {
        // Check the token first, to avoid creating an undo point in vain.
        if self.options.token.is_some() {
            let plan = self.plan_current()?;
            self.check_token(&plan)?;
            if self.has_nothing_to_do(&plan) {
                return self.report(plan, Vec::new(), None);
            }
        }
        let (undo, prepared) = self.create_undo_point(false)?;
        let (journal, damage) = thread_pool::join(
            || self.prepare_journal(&undo, &prepared),
            || self.undo_damage(&prepared),
        );
        let (undo, prepared, journal) = match damage? {
            None => (undo, prepared, journal),
            Some(damage) => {
                drop(journal);
                let (undo, prepared) = self.rebuild_and_retry(&undo, &damage)?;
                let journal = self.prepare_journal(&undo, &prepared);
                (undo, prepared, journal)
            }
        };
        self.job.cancel.commit().inspect_err(|_| {
            self.remove_undo_point(&undo);
        })?;
        let PreparedPlan {
            plan,
            contents,
            _merged,
            ..
        } = prepared;
        let Some(journal) = journal else {
            // The undo point was created while the plan was made.
            let is_removed = self.has_nothing_to_do(&plan) && self.remove_undo_point(&undo);
            if !is_removed {
                self.record(&undo, &plan)?;
            }
            return self.report(plan, Vec::new(), (!is_removed).then_some(undo.id));
        };
        let journal = journal?;
        self.record(&undo, &plan)?;
        journal.commit()?;
        crash_point();
        let errors = self.apply(&undo, &plan, &contents);
        self.finish_journal(&undo, &plan, &errors);
        crash_point();
        self.report(plan, errors, Some(undo.id))
    }

    /// Scans the workspace and plans the restore, without an undo point.
    fn plan_current(&self) -> Result<Plan, Error> {
        let scan = self.checkpoints.scan_worktree(self.job)?;
        self.plan(&scan)
    }

    fn plan(&self, scan: &Scan) -> Result<Plan, Error> {
        self.checkpoints.plan(
            self.job,
            (&self.repository, &self.walker),
            (scan, &self.target),
            self.wanted,
            self.unsaved,
        )
    }

    fn check_token(&self, plan: &Plan) -> Result<(), Error> {
        match &self.options.token {
            Some(token) if *token != plan.token => Err(Error::conflict(
                "the workspace changed since the preview; nothing was restored. Preview again",
            )),
            _ => Ok(()),
        }
    }

    fn has_nothing_to_do(&self, plan: &Plan) -> bool {
        plan.is_empty() && self.options.undo.metadata.rewind.is_none()
    }

    /// Creates the undo point, and plans the restore while it is written to disk. If planning fails,
    /// removes the undo point, except on a retry.
    fn create_undo_point(&self, is_retry: bool) -> Result<Prepared, Error> {
        let paths = self.paths.iter().map(NamedPath::of).collect();
        let request = self.options.undo.of_undo_point(Some(self.target.id), paths);
        let prepare = |scan: &Scan| self.prepare(scan);
        let (undo, scan, prepared) = self
            .checkpoints
            .create_locked(self.lock, self.job, &request, prepare)?;
        if undo.tree != scan.tree.oid {
            return Err(Error::storage(format!(
                "undo point {} does not match the workspace; nothing was changed; try again",
                undo.id
            )));
        }
        self.repository.odb().refresh();
        let prepared = prepared.inspect_err(|_| {
            if !is_retry {
                self.remove_undo_point(&undo);
            }
        })?;
        Ok((undo, prepared))
    }

    /// Plans the restore, and verifies that the store has all that it reads.
    fn prepare(&self, scan: &Scan) -> Result<PreparedPlan, Error> {
        let cancel = self.job.cancel;
        let plan = self.plan(scan)?;
        self.check_token(&plan)?;
        let merged = self.store_merged(&plan)?;
        let contents =
            preflight::verify_contents(&self.repository, self.target.id, &plan.steps, cancel)?;
        let of_steps = plan.steps.iter().map(|step| &step.path);
        let paths = of_steps.chain(&plan.left_alone);
        let folders = preflight::parent_folders(&scan.tree, paths);
        Ok(PreparedPlan {
            plan,
            contents,
            folders,
            _merged: merged,
        })
    }

    /// Stores merged contents, which recovery reads. They are flushed before the journal is.
    fn store_merged(&self, plan: &Plan) -> Result<Option<KeepGuard>, Error> {
        let merged = &plan.selected.merged;
        if merged.is_empty() {
            return Ok(None);
        }
        let pack = PackWriter::new(self.repository.dir())?;
        for (oid, content) in merged {
            pack.put(Kind::Blob, *oid, content)?;
        }
        let kept = pack.finish()?;
        self.repository.odb().refresh();
        Ok(kept)
    }

    /// Removes an undo point if the restore changes nothing. Returns whether that worked.
    fn remove_undo_point(&self, undo: &Checkpoint) -> bool {
        let is_ref_of_undo = |name: &str| refs::id_of(name) == Some(undo.id);
        refs::remove(self.repository.dir(), is_ref_of_undo).is_ok()
    }

    /// Returns why the undo point cannot be read back, or `None` if it can.
    fn undo_damage(&self, prepared: &PreparedPlan) -> Result<Option<String>, Error> {
        let PreparedPlan { plan, folders, .. } = prepared;
        preflight::undo_damage(&self.repository, folders, &plan.steps, self.job.cancel)
    }

    /// Rebuilds the damaged store, and creates another undo point.
    fn rebuild_and_retry(&self, undo: &Checkpoint, damage: &str) -> Result<Prepared, Error> {
        // Recording the damage makes the next open rebuild the store. The workspace is then stored
        // again.
        self.repository
            .record_damage(&format!("undo point {} is damaged", undo.id))?;
        let prepared = self.create_undo_point(true);
        if self.checkpoints.get(self.target.id).is_err() {
            return Err(Error::storage(format!(
                "the checkpoint store was damaged ({damage}) and has been rebuilt, but checkpoint {} could not be saved; nothing was restored",
                self.target.id
            )));
        }
        let (undo, prepared) = prepared?;
        if let Some(damage) = self.undo_damage(&prepared)? {
            return Err(Error::storage(format!(
                "cannot read back undo point {}: {damage}; nothing was restored. Check the disk of {}",
                undo.id,
                self.repository.dir().display()
            )));
        }
        Ok((undo, prepared))
    }

    fn prepare_journal(&self, undo: &Checkpoint, prepared: &PreparedPlan) -> PendingJournal {
        let plan = &prepared.plan;
        let is_needed = !plan.steps.is_empty() || !plan.folders.is_empty();
        is_needed.then(|| {
            let journal = Journal::new(
                self.target.id,
                undo.id,
                &self.paths,
                &plan.left_alone,
                &plan.selected.replaced,
            );
            self.checkpoints.prepare_journal(&journal)
        })
    }

    /// Records what the restore will change, for its undo.
    fn record(&self, undo: &Checkpoint, plan: &Plan) -> Result<(), Error> {
        let steps = plan.steps.iter().map(|step| (&step.path, step.after));
        let texts = plan.texts_only.iter();
        let texts = texts.map(|(path, leaf)| (path, Some(*leaf)));
        let is_part = matches!(self.wanted.scope, Scope::Part(_));
        self.checkpoints
            .write_record(undo.id, steps.chain(texts), is_part)
    }

    /// Removes the journal, or limits it to the files that are partly written. Removes the changes
    /// that failed from the record.
    ///
    /// The files are not flushed, as in a git checkout: a flush takes longer than the whole restore,
    /// and after a power failure both checkpoints have every byte. If the journal cannot be removed
    /// or replaced, recovery checks all files again.
    fn finish_journal(&self, undo: &Checkpoint, plan: &Plan, errors: &[Option<StepError>]) {
        let (partly_written, failed): (Vec<_>, Vec<_>) = plan
            .steps
            .iter()
            .zip(errors)
            .filter_map(|(step, error)| Some((step.path.clone(), error.as_ref()?)))
            .partition(|(_, error)| error.is_partly_written);
        let paths = |found: Vec<(RelPath, _)>| found.into_iter().map(|(path, _)| path);
        let partly_written: Vec<RelPath> = paths(partly_written).collect();
        let failed: HashSet<RelPath> = paths(failed).collect();
        if !failed.is_empty() {
            let was_made = |path: &RelPath| !failed.contains(path);
            let _ = self.checkpoints.correct_record(undo.id, was_made);
        }
        let _ = if partly_written.is_empty() {
            self.checkpoints.remove_journal()
        } else {
            let journal = Journal::new(
                self.target.id,
                undo.id,
                &partly_written,
                &HashSet::new(),
                &plan.selected.replaced,
            );
            self.checkpoints
                .prepare_journal(&journal)
                .and_then(|file| Ok(file.commit()?))
        };
    }

    fn apply(
        &self,
        undo: &Checkpoint,
        plan: &Plan,
        contents: &BlobCache,
    ) -> Vec<Option<StepError>> {
        let context = ApplyContext {
            root: self.checkpoints.work_tree(),
            walker: &self.walker,
            repository: &self.repository,
            contents,
            undo: undo.id,
            readers: ReadPermissionMap::new(&self.target.metadata.restricted),
        };
        apply(self.job, &context, &plan.steps, &plan.folders)
    }

    /// Returns the result of a restore. `errors` has one entry for each step of the plan.
    fn report(
        &self,
        plan: Plan,
        errors: Vec<Option<StepError>>,
        undo: Option<Oid>,
    ) -> Result<Restored, Error> {
        let reader = self.repository.odb();
        let content = |leaf: Leaf| String::from_utf8(reader.blob(leaf.oid).ok()?).ok();
        let mut texts = Vec::new();
        let mut outcomes = Vec::with_capacity(plan.steps.len());
        for (step, error) in plan.steps.into_iter().zip(errors) {
            if error.is_none() && self.unsaved.is_replaced(&step.path, step.after) {
                texts.push(EditorText {
                    path: step.path.clone(),
                    content: step.after.filter(Leaf::is_file).and_then(content),
                });
            }
            outcomes.push(Outcome {
                action: step.action(),
                path: step.path,
                error: error.map(|error| error.message),
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
}
