//! After a restore that did not end: completing it, or taking it back.
//!
//! First what stands beside the paths between the two checkpoints, under their
//! unfinished names: a new file that was not complete goes; what was taken out is
//! settled as the restore would have done. Then each path is looked at. One that
//! is as it was before is still to be done; one that is as it will be is done. One that
//! may have been partly written is kept under a second name and then done. Anything
//! else was changed since, and stays.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
};

use super::{
    super::{
        Checkpoint, Checkpoints, Job, Oid,
        store::{
            lock::StoreLock, object::Mode, object_reader::ObjectReader, repository::Repository,
        },
        tree_diff::Leaf,
        worktree::permissions::ReadPermissionMap,
    },
    Conflict, Recovered,
    apply::{Place, apply, enter, whole},
    displaced::{self, Put, keep_too, kept_as, open_for_writing, spare, unfinished},
    in_place,
    journal::Journal,
    plan::{Between, Step, steps_between},
    preflight::Contents,
};
use crate::{
    error::Error,
    fs::dir::{Dir, Walker, is_absent},
    path::RelPath,
};

/// What is left to do of a step.
enum Left {
    Nothing,
    /// From what stands there now.
    All(Option<Leaf>),
    /// All, from what stands there now: the restore was killed while it wrote the file
    /// in place, or somebody saved exactly that.
    Overwritten(Leaf),
    /// It stays, and why.
    Stays(String),
}

impl Checkpoints {
    /// As [`Self::recover`], by who holds the lock.
    pub(super) fn recover_locked(
        &self,
        _lock: &StoreLock,
        job: &Job<'_>,
    ) -> Result<Option<Recovered>, Error> {
        let Some(journal) = self.read_journal()? else {
            return Ok(None);
        };
        // The journal stays until they tell what may be touched.
        job.require_rules()?;
        let begun = self.repository().and_then(|repository| {
            let repository = repository.ok_or_else(|| Error::storage("the store is gone"))?;
            let undo = self.get(journal.undo)?;
            let target = self.get(journal.restoring)?;
            Ok((repository, undo, target))
        });
        let (repository, undo, target) = match begun {
            Ok(begun) => begun,
            Err(error) => return Err(self.set_journal_aside(&error.message)),
        };
        let mut walker = self.walker()?;
        let recovered = self.follow(job, &journal, (&repository, &mut walker), (&undo, &target))?;
        self.flush(&walker)?;
        self.remove_journal()?;
        Ok(Some(recovered))
    }

    fn follow(
        &self,
        job: &Job<'_>,
        journal: &Journal,
        (repository, walker): (&Repository, &mut Walker),
        (undo, target): (&Checkpoint, &Checkpoint),
    ) -> Result<Recovered, Error> {
        let reader = repository.reader();
        let paths = journal.paths().unwrap_or_default();
        let left_alone = journal.left_alone().unwrap_or_default();
        let own_data = self.own_data();
        let except = (&left_alone, own_data.as_ref());
        let between = |trees| steps_between(job, &reader, trees, &paths, except);
        let forward = between((undo.tree, target.tree))?;
        let swept = sweep(walker, &reader, journal.undo, &forward.steps);
        // Backwards only when the new contents are not all there.
        let completed = can_be_written(&reader, &forward.steps);
        let between = match completed {
            true => forward,
            false => between((target.tree, undo.tree))?,
        };
        let Between {
            steps,
            folders,
            kept: mut problems,
        } = between;
        let mut todo = Vec::new();
        for step in steps {
            job.cancel.check()?;
            if let Some(reason) = swept.get(&step.path) {
                problems.push(Conflict {
                    path: step.path,
                    reason: reason.clone(),
                });
                continue;
            }
            match left_of(walker, &reader, &step) {
                Left::Nothing => {}
                Left::All(before) => todo.push(Step { before, ..step }),
                Left::Overwritten(now) => {
                    let (kept, reason) = keep_partly_written(walker, &step.path);
                    problems.push(Conflict {
                        path: step.path.clone(),
                        reason,
                    });
                    if kept {
                        let before = Some(now);
                        todo.push(Step { before, ..step });
                    }
                }
                Left::Stays(reason) => problems.push(Conflict {
                    path: step.path,
                    reason,
                }),
            }
        }
        let place = Place {
            root: self.work_tree(),
            walker,
            repository,
            contents: &Contents::new(),
            undo: journal.undo,
            readers: ReadPermissionMap::new(match completed {
                true => &target.metadata.restricted,
                false => &undo.metadata.restricted,
            }),
        };
        let outcomes = apply(job, &place, &todo, &folders);
        for (step, outcome) in todo.into_iter().zip(outcomes) {
            if let Some(reason) = outcome {
                problems.push(Conflict {
                    path: step.path,
                    reason,
                });
            }
        }
        // What has no name comes last.
        problems.sort_by(|a, b| (a.path.is_root(), &a.path).cmp(&(b.path.is_root(), &b.path)));
        Ok(Recovered {
            restoring: journal.restoring,
            undo: journal.undo,
            completed,
            problems,
        })
    }
}

/// Takes away new files that were not finished, and settles what was taken out of
/// its place. Returns what was given back or kept, and why.
fn sweep(
    walker: &mut Walker,
    reader: &ObjectReader,
    undo: Oid,
    steps: &[Step],
) -> HashMap<RelPath, String> {
    let mut problems = HashMap::new();
    let mut out = Vec::new();
    for step in steps {
        let beside = unfinished(undo, &step.path);
        if let Ok(Some((dir, name))) = enter(walker, &step.path, false) {
            let at = displaced::Place {
                dir,
                name,
                beside: &beside,
            };
            if let Some(kept) = put_spare_back(&at) {
                problems.insert(step.path.clone(), kept);
            }
            if matches!(dir.look(&beside), Ok(Some(_))) {
                out.push((step, beside));
            }
        }
    }
    let names: HashSet<_> = out.iter().map(|(_, beside)| beside.clone()).collect();
    let open = open_for_writing(&names);
    for (step, beside) in &out {
        let Ok(Some((dir, name))) = enter(walker, &step.path, false) else {
            continue;
        };
        let at = displaced::Place { dir, name, beside };
        let is_open = open.contains(beside);
        let is_kept = matches!(kept_as(dir, name, beside), Ok(Some(_)));
        if !is_open && (is_kept || is_new(reader, &at, step)) {
            let _ = dir.remove(beside);
        } else if let Err(why) = at.settle(step.before.as_ref(), put(&at, step), is_open) {
            problems.insert(step.path.clone(), why);
        }
    }
    problems
}

/// Ends an exchange that was made by steps. Returns what is to be said of a file
/// that has no place any more.
fn put_spare_back(at: &displaced::Place<'_>) -> Option<String> {
    let spare = spare(at.beside);
    let stands = |name: &OsStr| !matches!(at.dir.look(name), Ok(None));
    if !stands(&spare) {
        return None;
    }
    let to = if stands(at.name) { at.beside } else { at.name };
    if at.dir.rename_new(&spare, to).is_ok() {
        return None;
    }
    let kept = displaced::Place {
        beside: &spare,
        ..*at
    }
    .keep();
    Some(format!(
        "it was saved after the restore was interrupted; what stood there before is kept as {}",
        kept.display()
    ))
}

/// What the restore put there, if it still stands there.
fn put(at: &displaced::Place<'_>, step: &Step) -> Option<Put> {
    let after = step.after?;
    let (leaf, _) = at.dir.leaf(at.name).ok()??;
    let inode = at.dir.look(at.name).ok()??.stamp.inode;
    leaf.is_same(&after).then_some(Put { leaf, inode })
}

/// Is what stands beside a new file that did not take its place yet?
fn is_new(reader: &ObjectReader, at: &displaced::Place<'_>, step: &Step) -> bool {
    let Some(after) = &step.after else {
        return false;
    };
    let Ok(Some((leaf, content))) = at.dir.leaf(at.beside) else {
        return false;
    };
    if leaf.oid == after.oid {
        return true;
    }
    let is_begun = || whole(reader, after.oid).is_ok_and(|whole| whole.starts_with(&content));
    let replaces = step.before.filter(|before| before.mode != Mode::Folder);
    // Once it has taken its place, what stands beside was taken out.
    let has_not_taken_place = match (replaces, at.dir.leaf(at.name)) {
        (None, _) => true,
        (Some(before), Ok(Some((now, _)))) => {
            let is_kept = || matches!(kept_as(at.dir, at.name, at.name), Ok(Some(_)));
            now.is_same(&before) || is_kept()
        }
        (Some(_), _) => false,
    };
    leaf.is_file() && after.is_file() && has_not_taken_place && is_begun()
}

fn can_be_written(reader: &ObjectReader, steps: &[Step]) -> bool {
    let mut contents = steps.iter().filter_map(|step| step.after);
    contents.all(|after| after.mode == Mode::Folder || reader.contains(after.oid))
}

/// Keeps a file that may be partly written under a second name: it is then replaced, as
/// every file with two names. Returns whether that worked, and what to tell the user.
fn keep_partly_written(walker: &mut Walker, path: &RelPath) -> (bool, String) {
    let kept = match enter(walker, path, false) {
        Ok(Some((dir, name))) => keep_too(dir, name).map_err(|error| error.to_string()),
        Ok(None) => Err("its folder is gone".to_owned()),
        Err(error) => Err(error),
    };
    match kept {
        Ok(kept) => {
            let kept = kept.display();
            let reason = format!(
                "it was partly written when the restore was interrupted; the restore is completed, and that version is kept as {kept}"
            );
            (true, reason)
        }
        Err(error) => {
            let reason = format!(
                "it was partly written when the restore was interrupted, and is left so, as that version cannot be kept under a second name: {error}; restore it again"
            );
            (false, reason)
        }
    }
}

/// Returns whether `now` is what a kill leaves of a file that is written in place, by the
/// restore or, when that is taken back, by the one before.
fn is_partly_written(reader: &ObjectReader, step: &Step, now: &[u8]) -> bool {
    let content = |side: Option<Leaf>| {
        let leaf = side.filter(Leaf::is_file)?;
        whole(reader, leaf.oid).ok()
    };
    let (Some(before), Some(after)) = (content(step.before), content(step.after)) else {
        return false;
    };
    in_place::is_partly_written(now, &before, &after)
        || in_place::is_partly_written(now, &after, &before)
}

fn left_of(walker: &mut Walker, reader: &ObjectReader, step: &Step) -> Left {
    let (Some(parent), Some(name)) = (step.path.parent(), step.path.name()) else {
        return Left::Nothing;
    };
    let now = match walker.folder(&parent) {
        Ok(dir) => now(dir, name),
        // Also where a file still has the place of the folder.
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    let now = match now {
        Ok(now) => now,
        Err(error) => return Left::Stays(format!("it can't be looked at: {error}")),
    };
    let is = |side: &Option<Leaf>| match (&now, side) {
        (Some((now, _)), Some(side)) => now.is_same(side),
        (None, None) => true,
        _ => false,
    };
    if is(&step.after) {
        return Left::Nothing;
    }
    match now {
        // Either not yet made, or taken away to make way.
        None => Left::All(None),
        // A folder on the way out or not yet filled: the steps below it tell.
        Some((leaf, _)) if leaf.mode == Mode::Folder && step.before.is_none() => Left::All(None),
        Some((leaf, _)) if is(&step.before) => Left::All(Some(leaf)),
        Some((leaf, content)) if leaf.is_file() && is_partly_written(reader, step, &content) => {
            Left::Overwritten(leaf)
        }
        Some(_) => Left::Stays(
            "it was changed after the restore was interrupted; it is left as it is".to_owned(),
        ),
    }
}

fn now(dir: &Dir, name: &OsStr) -> Result<Option<(Leaf, Vec<u8>)>, String> {
    match dir.leaf(name) {
        Ok(Some(now)) => Ok(Some(now)),
        Ok(None) if matches!(dir.look(name), Ok(Some(_))) => {
            Err("it is neither file, link nor folder".to_owned())
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
