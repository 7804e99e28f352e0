//! Putting the work tree back: plan, preview, safety checkpoint, journal, apply, verify.
//!
//! ```text
//! look -> plan -> token -> checkpoint -> all readable? -> journal -> apply -> verify -> journal gone
//! ```
//!
//! A restore changes only what the checkpoint taken just before it holds, so
//! whatever it does can be taken back. Once the journal is written there is no
//! way back but forward: an interrupted restore is completed by `recover`.

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
use apply::{Place, apply, whole};
use journal::Journal;
use plan::{Plan, Unsaved, plan};
use preflight::Contents;

/// What is to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreTarget {
    /// The checkpoint.
    pub id: Oid,
    /// Only these paths and what is below them; empty means all.
    pub paths: Vec<RelPath>,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It gets the checkpoint's content, mode or type.
    Write,
    /// It goes.
    Delete,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: RelPath,
    /// What.
    pub action: Action,
    /// Why, for people.
    pub reason: String,
    /// The restore that this undoes did not leave the path as it is now.
    pub changed_since: bool,
}

/// A path that would be changed and is not, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub path: RelPath,
    /// Why, for people.
    pub reason: String,
}

/// What a restore would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// What would be changed, in order of path.
    pub changes: Vec<Change>,
    /// What differs and would be left alone: unsaved text, skipped or ignored
    /// files in the way, denied paths (unnamed ones are only counted).
    pub conflicts: Vec<Conflict>,
    /// Names this preview; a restore with it does this or nothing.
    pub token: String,
}

/// How to restore.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only if this preview is still true.
    pub token: Option<String>,
    /// Unsaved editor text is no conflict: it is replaced too, by the caller, see
    /// [`Restored::texts`]. A token must be of a preview that named the same texts.
    pub force: bool,
    /// The task the undo point belongs to.
    pub task: Option<TaskId>,
    /// Where its conversation stands, kept with the undo point.
    pub messages: Option<ConversationMark>,
    /// Names the undo points of one restore of several roots.
    pub group: Option<String>,
    /// The folders of that restore, as URIs.
    pub group_roots: Vec<String>,
    /// What took the conversation back, kept with the undo point.
    pub rewind: Option<String>,
}

/// What became of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Where.
    pub path: RelPath,
    /// What was to be done.
    pub action: Action,
    /// Why it was not done, when it was not.
    pub error: Option<String>,
}

/// An open document with unsaved text whose file was restored: the editor has
/// to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorText {
    /// Which.
    pub path: RelPath,
    /// What it has to become; `None` when the file is gone or no text.
    pub content: Option<String>,
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// By path, those the plan named.
    pub outcomes: Vec<Outcome>,
    /// What differs and was left alone, as a preview names it.
    pub conflicts: Vec<Conflict>,
    /// The checkpoint taken just before; `None` when there was nothing to do, so that the
    /// undo point of an earlier restore stays the last one.
    pub undo: Option<Oid>,
    /// Documents whose unsaved text has to be replaced.
    pub texts: Vec<EditorText>,
}

/// An interrupted restore that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What was being restored.
    pub restoring: Oid,
    /// The checkpoint taken before it.
    pub undo: Oid,
    /// Was it completed? Else it was rolled back.
    pub completed: bool,
    /// Paths that could not be brought to either state, with the reason; those
    /// the access rules deny now are counted, not named, in one of the root.
    pub problems: Vec<Conflict>,
}

/// What was found out while the undo point went to the disk.
struct Planned {
    plan: Plan,
    /// What will be written, as far as it was kept.
    contents: Contents,
    /// The folders an undo would read.
    folders: Vec<Oid>,
}

impl Checkpoints {
    /// What a restore would do. Changes nothing, neither workspace nor store.
    /// `unsaved` are the paths of open documents with unsaved text.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `accessDenied` while the access rules
    /// can't be used; `cancelled`; `storage`.
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
        let unsaved = Unsaved {
            paths: unsaved,
            force: false,
        };
        let at = (&repository, &self.walker()?);
        let scan = self.scan_worktree(job)?;
        let between = (&scan, &*target, Tree::Stored(target.tree));
        let plan = self.plan(job, at, between, wanted, unsaved)?;
        let mut preview = plan.preview();
        self.note_later_changes(job, &repository, &scan, &target, &mut preview)?;
        Ok(preview)
    }

    /// Restores. Paths that cannot be restored do not keep others from it.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `conflict` when the token is of
    /// another plan; `busy`; `cancelled`; `storage`; what taking a checkpoint
    /// may say. Nothing is changed then.
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
        // Whoever held the lock may have pruned it.
        let target = self.get(wanted.id)?;
        let repository = match self.verified_repository() {
            Some(repository) => repository,
            None => self.existing_repository()?,
        };
        // Opened once, before anything is looked at: what is looked at is what
        // is changed, whatever is put in its place.
        let walker = self.walker()?;
        let at = (&repository, &walker);
        let unsaved = Unsaved {
            paths: unsaved,
            force: options.force,
        };
        // Without a checkpoint of what is not what was previewed.
        if options.token.is_some() {
            let plan = self.plan_of_now(job, at, &target, wanted, unsaved)?;
            require_token(options, &plan)?;
            if plan.is_empty() && options.rewind.is_none() {
                return restored(&repository, plan, Vec::new(), None, unsaved.paths);
            }
        }
        let paths = scope(&target, wanted);
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
        // Where nothing was changed there is nothing to undo.
        let take_off = |undo: &Checkpoint| {
            let is_its = |name: &str| refs::id_of(name) == Some(undo.id);
            refs::remove(repository.dir(), is_its).is_ok()
        };
        let prepare = |is_rescue: bool| {
            // Often it is the last one, which is remembered.
            let kept = self.lock_stat_cache(job.cancel)?.stored.clone();
            let kept = kept.filter(|(tree, _)| tree.oid == target.tree);
            let kept = kept.map(|(tree, _)| tree);
            let planned = |scan: &Scan| {
                let tree = kept.clone().map_or(Tree::Stored(target.tree), Tree::Seen);
                let plan = self.plan(job, at, (scan, &target, tree), wanted, unsaved)?;
                require_token(options, &plan)?;
                let contents =
                    preflight::require_contents(&repository, target.id, &plan.steps, job.cancel)?;
                let paths = plan.steps.iter().map(|step| &step.path);
                if let Some(kept) = &kept {
                    let folders = preflight::folders_above(kept, paths.clone());
                    preflight::require_folders(&repository, &folders, job.cancel)?;
                }
                let paths = paths.chain(&plan.left_alone);
                let folders = preflight::folders_above(&scan.tree, paths);
                Ok(Planned {
                    plan,
                    contents,
                    folders,
                })
            };
            let (undo, planned) = self.safety(&lock, job, &request, planned)?;
            repository.refresh_packs();
            let planned = planned.inspect_err(|_: &Error| {
                if !is_rescue {
                    let _ = take_off(&undo);
                }
            })?;
            Ok::<_, Error>((undo, planned))
        };
        let unsound = |planned: &Planned| {
            let Planned { plan, folders, .. } = planned;
            preflight::undo_problem(&repository, folders, &plan.steps, job.cancel)
        };
        let journal = |undo: &Checkpoint, Planned { plan, .. }: &Planned| {
            let is_needed = !plan.steps.is_empty() || !plan.folders.is_empty();
            let journal = || Journal::new(target.id, undo.id, &paths, &plan.left_alone);
            is_needed.then(|| self.prepare_journal(&journal()))
        };
        let (mut undo, mut planned) = prepare(false)?;
        let (mut journalled, damage) =
            thread_pool::join(|| journal(&undo, &planned), || unsound(&planned));
        if let Some(damage) = damage? {
            // The next to open the store rebuilds it, and what stands in the
            // workspace is stored anew.
            repository.record_damage(&format!("undo point {} is damaged", undo.id))?;
            self.lock_stat_cache(job.cancel)?.stored = None;
            let again = prepare(true);
            if self.get(target.id).is_err() {
                return Err(Error::storage(format!(
                    "the store of checkpoints was damaged ({damage}) and has been rebuilt, but checkpoint {} was lost with it; nothing was restored, and the workspace is as it was",
                    target.id
                )));
            }
            (undo, planned) = again?;
            if let Some(damage) = unsound(&planned)? {
                return Err(Error::storage(format!(
                    "the undo point {} can't be read back ({damage}), so nothing was restored; see that the disk of {} is sound",
                    undo.id,
                    repository.dir().display()
                )));
            }
            journalled = journal(&undo, &planned);
        }
        job.cancel.commit().inspect_err(|_| {
            let _ = take_off(&undo);
        })?;
        let Planned { plan, contents, .. } = planned;
        let Some(journal) = journalled else {
            // The checkpoint was taken while it was planned.
            let is_gone = plan.is_empty() && options.rewind.is_none() && take_off(&undo);
            let undo = (!is_gone).then_some(undo.id);
            return restored(&repository, plan, Vec::new(), undo, unsaved.paths);
        };
        journal?.commit()?;
        step();
        let place = Place {
            root: self.work_tree(),
            walker: &walker,
            repository: &repository,
            contents: &contents,
            undo: undo.id,
            readers: ReadPermissionMap::new(&target.metadata.restricted),
        };
        let errors = apply(job, &place, &plan.steps, &plan.folders);
        // Not flushed, as git's checkout is not: waiting for the disk would cost
        // more than all the rest, and should the power fail, both checkpoints have
        // every byte. A journal that stays is followed once more.
        let _ = self.remove_journal();
        step();
        restored(&repository, plan, errors, Some(undo.id), unsaved.paths)
    }

    /// Does the checkpoint have this folder? A root inside another one is
    /// restored with that where it is in its checkpoint.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `storage`.
    pub fn holds_folder(&self, id: Oid, path: &RelPath) -> Result<bool, Error> {
        let tree = self.get(id)?.tree;
        let reader = self.existing_repository()?.reader();
        has_folder(&reader, tree, path)
    }

    /// Takes the undo point; gives what was planned by what it saw.
    fn safety<T: Send>(
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
            "the undo point {} does not hold what was seen in the workspace; nothing was changed, try again",
            undo.id
        )))
    }

    /// The undo point taken last and here, for an undo that names none. Restoring it is
    /// the undo: of a restore of some paths it restores only those.
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

    /// Completes or rolls back a restore that was interrupted; called when a
    /// root is opened, and by every other operation that takes the lock.
    ///
    /// # Errors
    /// `accessDenied` while the access rules can't be used; `busy`; `cancelled`;
    /// `storage`, also for a journal that cannot be followed, which is set aside.
    pub fn recover(&self, job: &Job<'_>) -> Result<Option<Recovered>, Error> {
        // Without the lock first: nearly always there is nothing to do.
        if !self.has_journal() {
            return Ok(None);
        }
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.recover_locked(&lock, job)
    }

    /// As [`Self::recover`], before other work that looks at the work tree; told by
    /// [`Self::take_recovered`].
    pub(super) fn complete_interrupted_first(&self, job: &Job<'_>) -> Result<(), Error> {
        if !self.has_journal() {
            return Ok(());
        }
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.complete_interrupted(&lock, job)
    }

    /// The same, by who holds the lock.
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

    /// What a restore would do to what stands there now.
    fn plan_of_now(
        &self,
        job: &Job<'_>,
        at: (&Repository, &Walker),
        target: &Checkpoint,
        wanted: &RestoreTarget,
        unsaved: Unsaved<'_>,
    ) -> Result<Plan, Error> {
        let scan = self.scan_worktree(job)?;
        let between = (&scan, target, Tree::Stored(target.tree));
        self.plan(job, at, between, wanted, unsaved)
    }

    fn plan(
        &self,
        job: &Job<'_>,
        (repository, walker): (&Repository, &Walker),
        (now, target, kept): (&Scan, &Checkpoint, Tree),
        wanted: &RestoreTarget,
        unsaved: Unsaved<'_>,
    ) -> Result<Plan, Error> {
        let reader = repository.reader();
        // The scan went there by its path.
        if !walker.is_at(self.work_tree()) {
            return Err(Error::storage(format!(
                "the workspace folder {} was moved or replaced meanwhile; nothing was changed",
                self.root.path.display()
            )));
        }
        let mut walker = walker.again();
        let paths = scope(target, wanted);
        let own_data = self.own_data();
        let circumstances = (unsaved, own_data.as_ref());
        plan(
            job,
            &reader,
            &mut walker,
            (now, target, kept),
            &paths,
            circumstances,
        )
    }

    fn existing_repository(&self) -> Result<Repository, Error> {
        let missing = || Error::new(ErrorKind::NotFound, "there are no checkpoints yet");
        self.repository()?.ok_or_else(missing)
    }

    /// Where this server keeps its data, when that is below the root.
    fn own_data(&self) -> Option<RelPath> {
        let data = std::fs::canonicalize(self.storage.dir()).ok()?;
        RelPath::new(data.strip_prefix(self.work_tree()).ok()?)
    }

    /// A way into the work tree.
    pub(super) fn walker(&self) -> Result<Walker, Error> {
        Walker::new(self.work_tree()).map_err(|error| {
            let root = self.root.path.display();
            Error::storage(format!(
                "could not open the workspace folder {root}: {error}"
            ))
        })
    }

    /// Waits until everything written to the work tree is on its disk.
    fn flush(&self, walker: &Walker) -> Result<(), Error> {
        walker.flush().map_err(|error| {
            let root = self.root.path.display();
            Error::storage(format!(
                "what was restored in {root} could not be flushed to the disk: {error}; it will be checked at the next start"
            ))
        })
    }
}

/// The paths a restore is about: an undo of a restore of some is of those.
fn scope(target: &Checkpoint, wanted: &RestoreTarget) -> Vec<RelPath> {
    match &target.metadata.purpose {
        Purpose::Undo { paths, .. } if wanted.paths.is_empty() => {
            paths.iter().filter_map(NamedPath::to_path).collect()
        }
        _ => wanted.paths.clone(),
    }
}

fn require_token(options: &Options, plan: &Plan) -> Result<(), Error> {
    match &options.token {
        Some(token) if *token != plan.token => Err(Error::new(
            ErrorKind::Conflict,
            "the workspace has changed since the preview, so nothing was restored; look at a new preview",
        )),
        _ => Ok(()),
    }
}

/// Sums up what was done; `errors` are those of the plan's steps.
fn restored(
    repository: &Repository,
    plan: Plan,
    errors: Vec<Option<String>>,
    undo: Option<Oid>,
    unsaved: &[RelPath],
) -> Result<Restored, Error> {
    let unsaved: HashSet<&RelPath> = unsaved.iter().collect();
    let reader = repository.reader();
    let content = |leaf: Leaf| String::from_utf8(whole(&reader, leaf.oid).ok()?).ok();
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

/// A place where a kill must leave something that can be recovered from.
fn step() {
    #[cfg(test)]
    crash_tests::step();
}

/// As [`step`], while a lease keeps others from opening the file.
fn step_under_lease() {
    #[cfg(test)]
    crash_tests::step_under_lease();
}
