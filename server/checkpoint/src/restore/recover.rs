//! Recovery of an interrupted restore: completes it, or rolls it back.
//!
//! Temporary files come first: incomplete new files are removed, and displaced files are discarded
//! or put back, as the restore would have done. Then each path is compared with the two
//! checkpoints:
//!
//! - as in the undo point: the step is applied;
//! - as in the target: the step is complete;
//! - partly written: the file is kept under a second name, and the step is applied;
//! - anything else: it was changed later, and is left as it is.
//!
//! A restore is rolled back only if the store no longer has all contents of the target.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::{OsStr, OsString},
};

use sightline_base::{
    fs::dir::{Dir, DirWalker, is_absent},
    path::RelPath,
};

mod recovery_steps;

use super::{
    super::{
        checkpoints::Checkpoints,
        job::Job,
        metadata::Checkpoint,
        store::{
            lock::StoreLock,
            object::{Mode, Oid},
            odb::Odb,
            repository::Repository,
        },
        tree_diff::Leaf,
        worktree::permissions::ReadPermissionMap,
    },
    apply::{
        ApplyContext, apply,
        displaced_files::{
            FileSlot, Installed, find_kept_name, link_kept_name, spare_name, temp_file_name,
            wait_until_closed,
        },
        in_place, open_parent,
    },
    journal::Journal,
    plan::{Step, part::replace},
    preflight::BlobCache,
    types::{Conflict, Recovered},
};
use crate::error::Error;
use recovery_steps::{RecoverySteps, recovery_steps};

/// State of a step of an interrupted restore.
enum StepState {
    Done,
    /// The step must be applied to the current entry.
    Pending(Option<Leaf>),
    /// As `Pending`, but the file must be kept: the restore was killed while it wrote the file in
    /// place, or a program saved exactly this content.
    PartlyWritten(Leaf),
    /// The path is left as it is, for this reason.
    Conflict(String),
}

impl Checkpoints {
    /// Same as [`Self::recover`], for a caller that holds the lock.
    pub(super) fn recover_locked(
        &self,
        _lock: &StoreLock,
        job: &Job<'_>,
    ) -> Result<Option<Recovered>, Error> {
        let Some(journal) = self.read_journal()? else {
            return Ok(None);
        };
        // Without access rules the journal must wait.
        job.require_rules()?;
        let begun = self.repository().and_then(|repository| {
            let repository =
                repository.ok_or_else(|| Error::damaged("the checkpoint store is missing"))?;
            let undo = self.get(journal.undo)?;
            let target = self.get(journal.restoring)?;
            Ok((repository, undo, target))
        });
        let (repository, undo, target) = match begun {
            Ok(begun) => begun,
            Err(error) if matches!(error, Error::Damaged(_) | Error::NotFound(_)) => {
                return Err(self.set_journal_aside(&error.to_string()));
            }
            Err(error) => return Err(error),
        };
        let mut walker = self.walker()?;
        let (recovered, is_partly_written) =
            self.complete(job, &journal, (&repository, &mut walker), (&undo, &target))?;
        self.flush(&walker)?;
        if !is_partly_written {
            self.remove_journal()?;
        }
        Ok(Some(recovered))
    }

    /// Also returns whether a file is still partly written.
    fn complete(
        &self,
        job: &Job<'_>,
        journal: &Journal,
        (repository, walker): (&Repository, &mut DirWalker),
        (undo, target): (&Checkpoint, &Checkpoint),
    ) -> Result<(Recovered, bool), Error> {
        let reader = repository.odb();
        let paths = journal.paths().unwrap_or_default();
        let left_alone = journal.left_alone().unwrap_or_default();
        let own_data = self.own_data();
        let except = (&left_alone, own_data.as_ref());
        let root = walker.clone_root();
        let steps_between = |trees| recovery_steps(job, &reader, trees, &paths, except, &root);
        let replaced = journal.replaced().unwrap_or_default();
        let mut forward = steps_between((undo.tree, target.tree))?;
        replace(&mut forward.steps, &replaced);
        let mut kept = BTreeMap::new();
        let cleaned_up = clean_up(walker, &reader, journal.undo, &forward.steps, &mut kept);

        let completed = can_be_written(&reader, &forward.steps)?;
        let recovery = if completed {
            forward
        } else {
            let mut back = steps_between((target.tree, undo.tree))?;
            for step in &mut back.steps {
                step.before = replaced.get(&step.path).copied().or(step.before);
            }
            back
        };
        let RecoverySteps {
            steps,
            folders,
            protected: mut problems,
        } = recovery;
        let is_step: HashSet<RelPath> = steps.iter().map(|step| step.path.clone()).collect();
        let mut todo = Vec::new();
        for step in steps {
            job.cancel.check()?;
            if let Some(reason) = cleaned_up.get(&step.path) {
                problems.push(Conflict::new(step.path, reason));
                continue;
            }
            match step_state(walker, &reader, &step)? {
                StepState::Done => {}
                StepState::Pending(before) => todo.push(Step { before, ..step }),
                StepState::PartlyWritten(now) => match keep_partly_written(walker, &step.path) {
                    Ok(name) => {
                        kept.insert(step.path.clone(), name);
                        let before = Some(now);
                        todo.push(Step { before, ..step });
                    }
                    Err(reason) => problems.push(Conflict::new(step.path, reason)),
                },
                StepState::Conflict(reason) => problems.push(Conflict::new(step.path, reason)),
            }
        }
        let context = ApplyContext {
            root: self.work_tree(),
            walker,
            repository,
            contents: &BlobCache::new(),
            undo: journal.undo,
            readers: ReadPermissionMap::new(if completed {
                &target.metadata.restricted
            } else {
                &undo.metadata.restricted
            }),
        };
        let outcomes = apply(job, &context, &todo, &folders);
        let is_partly_written = outcomes
            .iter()
            .flatten()
            .any(|error| error.is_partly_written);
        let mut failed = HashSet::new();
        for (step, outcome) in todo.into_iter().zip(outcomes) {
            let kept = kept.remove(&step.path);
            if outcome
                .as_ref()
                .is_some_and(|error| !error.is_partly_written)
            {
                failed.insert(step.path.clone());
            }
            if outcome.is_some() || kept.is_some() {
                let reason = recovery_message(outcome.map(|error| error.message), kept);
                problems.push(Conflict::new(step.path, reason));
            }
        }
        for (path, kept) in kept {
            problems.push(Conflict::new(path, recovery_message(None, Some(kept))));
        }
        // A failed step was not made; of a rollback, only the failed ones were. An uncorrected
        // record is safe: the undo reports conflicts for more paths.
        let _ = self.correct_record(journal.undo, |path| {
            !is_step.contains(path) || completed != failed.contains(path)
        });
        // The count of denied paths, which has no path, comes last.
        problems.sort_by(|a, b| (a.path.is_root(), &a.path).cmp(&(b.path.is_root(), &b.path)));
        let recovered = Recovered {
            restoring: journal.restoring,
            undo: journal.undo,
            completed,
            problems,
        };
        Ok((recovered, is_partly_written))
    }
}

/// Removes new files that were not used, and discards displaced files or puts them back. Returns
/// the paths whose displaced files were put back or kept, with the reason; adds to `kept` the
/// partly written files that an earlier recovery has replaced.
fn clean_up(
    walker: &mut DirWalker,
    reader: &Odb,
    undo: Oid,
    steps: &[Step],
    kept: &mut BTreeMap<RelPath, OsString>,
) -> HashMap<RelPath, String> {
    let mut problems = HashMap::new();
    let mut temp_files = Vec::new();
    for step in steps {
        let temp_name = temp_file_name(undo, &step.path);
        if let Ok(Some((dir, name))) = open_parent(walker, &step.path, false) {
            let slot = FileSlot {
                dir,
                name,
                temp_name: &temp_name,
            };
            if let Some(kept) = finish_exchange(&slot) {
                problems.insert(step.path.clone(), kept);
            }
            if matches!(dir.stat(&temp_name), Ok(Some(_))) {
                temp_files.push((step, temp_name));
            }
        }
    }
    let names: HashSet<_> = temp_files
        .iter()
        .map(|(_, temp_name)| temp_name.clone())
        .collect();
    let open = wait_until_closed(&names);
    for (step, temp_name) in &temp_files {
        let Ok(Some((dir, name))) = open_parent(walker, &step.path, false) else {
            continue;
        };
        let slot = FileSlot {
            dir,
            name,
            temp_name,
        };
        let is_open = open.contains(temp_name);
        let kept_name = find_kept_name(dir, name, temp_name).ok().flatten();
        if !is_open && (kept_name.is_some() || is_unused_temp_file(reader, &slot, step)) {
            let _ = dir.unlink(temp_name);
            kept.extend(kept_name.map(|kept_name| (step.path.clone(), kept_name)));
        } else if let Err(why) =
            slot.discard_or_put_back(step.before.as_ref(), find_installed(&slot, step), is_open)
        {
            problems.insert(step.path.clone(), why);
        }
    }
    problems
}

/// Finishes an exchange by renames that was interrupted. Returns a message if a file could not get
/// its name back.
fn finish_exchange(slot: &FileSlot<'_>) -> Option<String> {
    let spare = spare_name(slot.temp_name);
    let exists = |name: &OsStr| !matches!(slot.dir.stat(name), Ok(None));
    if !exists(&spare) {
        return None;
    }
    let to = if exists(slot.name) {
        slot.temp_name
    } else {
        slot.name
    };
    if slot.dir.rename_new(&spare, to).is_ok() {
        return None;
    }
    let kept = FileSlot {
        temp_name: &spare,
        ..*slot
    }
    .keep_under_new_name();
    Some(format!(
        "saved after the restore was interrupted; the previous version is kept as {}",
        kept.display()
    ))
}

/// Returns the new file of the step, if it is still at its name.
fn find_installed(slot: &FileSlot<'_>, step: &Step) -> Option<Installed> {
    let after = step.after?;
    let (leaf, _) = Leaf::read(slot.dir, slot.name).ok()??;
    let inode = slot.dir.stat(slot.name).ok()??.stamp.inode;
    leaf.is_same(&after).then_some(Installed { leaf, inode })
}

/// Returns whether the temporary file is a new file that did not get its name yet.
fn is_unused_temp_file(reader: &Odb, slot: &FileSlot<'_>, step: &Step) -> bool {
    let Some(after) = &step.after else {
        return false;
    };
    let Ok(Some((leaf, content))) = Leaf::read(slot.dir, slot.temp_name) else {
        return false;
    };
    if leaf.oid == after.oid {
        return true;
    }
    let is_begun = || {
        reader
            .blob(after.oid)
            .is_ok_and(|whole| whole.starts_with(&content))
    };
    let replaces = step.before.filter(|before| before.mode != Mode::Folder);
    // After the exchange, the temporary file is the displaced one.
    let is_not_exchanged = match (replaces, Leaf::read(slot.dir, slot.name)) {
        (None, _) => true,
        (Some(before), Ok(Some((now, _)))) => {
            let is_kept = || matches!(find_kept_name(slot.dir, slot.name, slot.name), Ok(Some(_)));
            now.is_same(&before) || is_kept()
        }
        (Some(_), _) => false,
    };
    leaf.is_file() && after.is_file() && is_not_exchanged && is_begun()
}

fn can_be_written(reader: &Odb, steps: &[Step]) -> Result<bool, Error> {
    for after in steps.iter().filter_map(|step| step.after) {
        if after.mode != Mode::Folder && !reader.contains(after.oid)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keeps a file that may be partly written under a second name, and returns that name. A file with
/// two names is never written in place, so the step then replaces it.
fn keep_partly_written(walker: &mut DirWalker, path: &RelPath) -> Result<OsString, String> {
    let kept = match open_parent(walker, path, false) {
        Ok(Some((dir, name))) => link_kept_name(dir, name).map_err(|error| error.to_string()),
        Ok(None) => Err("its folder no longer exists".to_owned()),
        Err(error) => Err(error),
    };
    kept.map_err(|error| format!(
        "partly written when the restore was interrupted; left as it is, because it cannot be kept under a second name: {error}; restore again"
    ))
}

/// Describes a step that failed with `error`, or whose partly written file is `kept`.
fn recovery_message(error: Option<String>, kept: Option<OsString>) -> String {
    let Some(kept) = kept else {
        return error.unwrap_or_default();
    };
    let kept = kept.display();
    match error {
        None => format!(
            "partly written when the restore was interrupted; now restored, and the partly written version is kept as {kept}"
        ),
        Some(error) => format!(
            "partly written when the restore was interrupted, and not restored: {error}; {kept} is the same file"
        ),
    }
}

/// Returns whether `now` can be a file that was being written in place when the process was
/// killed, in either direction.
fn is_partly_written(reader: &Odb, step: &Step, now: &[u8]) -> Result<bool, Error> {
    let content = |side: Option<Leaf>| {
        let Some(leaf) = side.filter(|leaf| leaf.mode == Mode::File) else {
            return Ok(None);
        };
        match reader.blob(leaf.oid) {
            Err(error) if error.is_access_failure() => Err(error),
            content => Ok(content.ok()),
        }
    };
    let (Some(before), Some(after)) = (content(step.before)?, content(step.after)?) else {
        return Ok(false);
    };
    Ok(in_place::is_partly_written(now, &before, &after)
        || in_place::is_partly_written(now, &after, &before))
}

fn step_state(walker: &mut DirWalker, reader: &Odb, step: &Step) -> Result<StepState, Error> {
    let (Some(parent), Some(name)) = (step.path.parent(), step.path.name()) else {
        return Ok(StepState::Done);
    };
    let now = match walker.open_dir(&parent) {
        Ok(dir) => read_entry(dir, name),
        // Includes a file in place of the folder.
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    let now = match now {
        Ok(now) => now,
        Err(error) => return Ok(StepState::Conflict(format!("cannot inspect it: {error}"))),
    };
    let is = |side: &Option<Leaf>| match (&now, side) {
        (Some((now, _)), Some(side)) => now.is_same(side),
        (None, None) => true,
        _ => false,
    };
    if is(&step.after) {
        return Ok(StepState::Done);
    }
    Ok(match now {
        // Not created yet, or deleted to make room.
        None => StepState::Pending(None),
        // A folder that is not empty yet, or not filled yet: it has steps for its files.
        Some((leaf, _)) if leaf.mode == Mode::Folder && step.before.is_none() => {
            StepState::Pending(None)
        }
        Some((leaf, _)) if is(&step.before) => StepState::Pending(Some(leaf)),
        Some((leaf, content)) if leaf.is_file() && is_partly_written(reader, step, &content)? => {
            StepState::PartlyWritten(leaf)
        }
        Some(_) => StepState::Conflict(
            "changed after the restore was interrupted; left as it is".to_owned(),
        ),
    })
}

fn read_entry(dir: &Dir, name: &OsStr) -> Result<Option<(Leaf, Vec<u8>)>, String> {
    match Leaf::read(dir, name) {
        Ok(Some(now)) => Ok(Some(now)),
        Ok(None) if matches!(dir.stat(name), Ok(Some(_))) => {
            Err("not a file, link or folder".to_owned())
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
