//! Putting the work tree back: plan, preview, safety checkpoint, journal, apply, verify.
//!
//! ```text
//! look -> plan -> token -> checkpoint -> journal -> apply -> verify -> flush -> journal gone
//! ```
//!
//! A restore changes only what the checkpoint taken just before it holds, so
//! whatever it does can be taken back. Once the journal is written there is no
//! way back but forward: an interrupted restore is completed by `recover`.

#[cfg(test)]
mod kill;

mod apply;
mod journal;
mod plan;
mod recover;

use std::{
    collections::HashSet,
    time::{SystemTime, UNIX_EPOCH},
};

use sightline_protocol::error::ErrorKind;

use super::{
    Checkpoints, ConversationMark, Job, NamedPath, Oid, Purpose, Record, Request, lock,
    place::Walker, repository::Repository, scan::Scan,
};
use crate::{error::Error, path::RelPath, storage::TaskId};
use apply::{Place, apply, whole};
use journal::Journal;
use plan::{Plan, plan};

/// What is to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
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
    /// Unsaved editor text is no conflict: it is replaced too, by the caller, see [`Restored::texts`].
    pub force: bool,
    /// The task the undo point belongs to.
    pub task: Option<TaskId>,
    /// Where its conversation stands, kept with the undo point.
    pub messages: Option<ConversationMark>,
    /// Names the undo points of one restore of several roots.
    pub group: Option<String>,
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
    /// The checkpoint taken just before.
    pub undo: Oid,
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
    /// Paths that could not be brought to either state, with the reason.
    pub problems: Vec<Conflict>,
}

impl Checkpoints {
    /// What a restore would do. Changes nothing, neither workspace nor store.
    /// `unsaved` are the paths of open documents with unsaved text.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `cancelled`; `storage`.
    pub fn preview(
        &self,
        job: &Job<'_>,
        wanted: &Wanted,
        unsaved: &[RelPath],
    ) -> Result<Preview, Error> {
        let target = self.record(wanted.id)?;
        let repository = self.existing_repository()?;
        let scan = self.look(job)?;
        let plan = self.plan(job, &repository, (&scan, &target), wanted, unsaved)?;
        Ok(plan.preview())
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
        wanted: &Wanted,
        unsaved: &[RelPath],
        options: &Options,
    ) -> Result<Restored, Error> {
        let target = self.record(wanted.id)?;
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.recover_locked(&lock, job)?;
        let repository = self.existing_repository()?;
        // Without a checkpoint of what is not what was previewed.
        if options.token.is_some() {
            let scan = self.look(job)?;
            let plan = self.plan(job, &repository, (&scan, &target), wanted, &[])?;
            require_token(options, &plan)?;
        }
        let paths = scope(&target, wanted);
        let (undo, scan) = self.create_locked(
            &lock,
            job,
            &Request {
                task: options.task.clone(),
                label: None,
                purpose: Purpose::Undo {
                    restoring: Some(target.id),
                    paths: paths.iter().map(NamedPath::of).collect(),
                },
                messages: options.messages,
                group: options.group.clone(),
                rewind: options.rewind.clone(),
                confirm_large: true,
            },
        )?;
        if undo.tree != scan.tree.oid {
            return Err(Error::storage(format!(
                "the undo point {} does not hold what was seen in the workspace; nothing was changed, try again",
                undo.id
            )));
        }
        let kept: &[RelPath] = if options.force { &[] } else { unsaved };
        let plan = self.plan(job, &repository, (&scan, &target), wanted, kept)?;
        require_token(options, &plan)?;
        if plan.steps.is_empty() && plan.folders.is_empty() {
            return Ok(Restored {
                outcomes: Vec::new(),
                undo: undo.id,
                texts: Vec::new(),
            });
        }
        job.cancel.commit()?;
        let journal = Journal::new(target.id, undo.id, &paths, &plan.left_alone);
        self.write_journal(&journal)?;
        step();
        let place = Place {
            root: self.work_tree(),
            repository: &repository,
            undo: undo.id,
        };
        let errors = apply(job, &place, &plan.steps, &plan.folders);
        // What is not on the disk yet could be lost with the journal gone. What
        // was done is done: a journal that stays is followed once more.
        let _ = self.flush().and_then(|()| self.remove_journal());
        step();
        let texts = texts(&repository, &plan, &errors, unsaved)?;
        let outcomes = plan.steps.into_iter().zip(errors);
        Ok(Restored {
            outcomes: outcomes
                .map(|(step, error)| Outcome {
                    action: step.action(),
                    path: step.path,
                    error,
                })
                .collect(),
            undo: undo.id,
            texts,
        })
    }

    /// The undo point taken last, for an undo that names none. Restoring it is
    /// the undo: of a restore of some paths it restores only those.
    ///
    /// # Errors
    /// `storage`.
    pub fn last_undo(&self) -> Result<Option<Oid>, Error> {
        let records = self.list(&super::Filter::default())?;
        let undo = records
            .iter()
            .find(|record| matches!(record.notes.purpose, Purpose::Undo { .. }));
        Ok(undo.map(|record| record.id))
    }

    /// Completes or rolls back a restore that was interrupted; called when a
    /// root is opened, and by every other operation that takes the lock.
    ///
    /// # Errors
    /// `busy`; `cancelled`; `storage`, also for a journal that cannot be
    /// followed, which is set aside.
    pub fn recover(&self, job: &Job<'_>) -> Result<Option<Recovered>, Error> {
        // Without the lock first: nearly always there is nothing to do.
        if !self.has_journal() {
            return Ok(None);
        }
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.recover_locked(&lock, job)
    }

    fn plan(
        &self,
        job: &Job<'_>,
        repository: &Repository,
        (now, target): (&Scan, &Record),
        wanted: &Wanted,
        unsaved: &[RelPath],
    ) -> Result<Plan, Error> {
        let reader = repository.reader()?;
        let mut walker = self.walker()?;
        let paths = scope(target, wanted);
        plan(job, &reader, &mut walker, (now, target), &paths, unsaved)
    }

    fn existing_repository(&self) -> Result<Repository, Error> {
        let missing = || Error::new(ErrorKind::NotFound, "there are no checkpoints yet");
        self.repository()?.ok_or_else(missing)
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
    fn flush(&self) -> Result<(), Error> {
        #[cfg(target_os = "linux")]
        std::fs::File::open(self.work_tree())
            .and_then(|root| Ok(rustix::fs::syncfs(root)?))
            .map_err(|error| {
                let root = self.root.path.display();
                Error::storage(format!(
                    "what was restored in {root} could not be flushed to the disk: {error}; it will be checked at the next start"
                ))
            })?;
        Ok(())
    }
}

/// The paths a restore is about: an undo of a restore of some is of those.
fn scope(target: &Record, wanted: &Wanted) -> Vec<RelPath> {
    match &target.notes.purpose {
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

/// What open documents have to become whose unsaved text was given up.
fn texts(
    repository: &Repository,
    plan: &Plan,
    errors: &[Option<String>],
    unsaved: &[RelPath],
) -> Result<Vec<EditorText>, Error> {
    let unsaved: HashSet<&RelPath> = unsaved.iter().collect();
    let reader = repository.reader()?;
    let steps = plan.steps.iter().zip(errors);
    let restored = steps.filter(|(step, error)| error.is_none() && unsaved.contains(&step.path));
    Ok(restored
        .map(|(step, _)| EditorText {
            path: step.path.clone(),
            content: step
                .after
                .filter(|after| after.is_file())
                .and_then(|after| whole(&reader, after.oid).ok())
                .and_then(|content| String::from_utf8(content).ok()),
        })
        .collect())
}

/// Milliseconds since the epoch.
fn millis() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}

/// A place where a kill must leave something that can be recovered from.
fn step() {
    #[cfg(test)]
    kill::step();
}
