//! After a restore that did not end: completing it, or taking it back.
//!
//! Each path between the two checkpoints is looked at. One that is as it was
//! before is still to be done; one that is as it will be is done; one that holds
//! the beginning of the new content and the rest of the old one was being
//! written. Anything else was changed by someone since, and stays.

use std::ffi::OsStr;

use super::{
    super::{
        Checkpoints, Job, Oid, Record,
        audience::Readers,
        compare::Leaf,
        lock::StoreLock,
        object::Mode,
        place::{Dir, Walker, is_absent},
        reader::Reader,
        repository::Repository,
    },
    Conflict, Recovered,
    apply::{Place, apply, unfinished, whole},
    journal::Journal,
    plan::{Between, Step, steps_between},
    sound::Contents,
};
use crate::error::Error;

/// What is left to do of a step.
enum Left {
    Nothing,
    /// From what stands there now.
    All(Option<Leaf>),
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
            let undo = self.record(journal.undo)?;
            let target = self.record(journal.restoring)?;
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
        (undo, target): (&Record, &Record),
    ) -> Result<Recovered, Error> {
        let reader = repository.reader();
        let paths = journal.paths().unwrap_or_default();
        let left_alone = journal.left_alone().unwrap_or_default();
        let own_data = self.own_data();
        let except = (&left_alone, own_data.as_ref());
        let between = |trees| steps_between(job, &reader, trees, &paths, except);
        let forward = between((undo.tree, target.tree))?;
        sweep(walker, journal.undo, &forward.steps);
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
            match left_of(walker, &reader, &step) {
                Left::Nothing => {}
                Left::All(before) => todo.push(Step { before, ..step }),
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
            readers: Readers::new(match completed {
                true => &target.notes.restricted,
                false => &undo.notes.restricted,
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

/// Takes away files that were not finished.
fn sweep(walker: &mut Walker, undo: Oid, steps: &[Step]) {
    for step in steps {
        let Some(parent) = step.path.parent() else {
            continue;
        };
        let name = unfinished(undo, &step.path);
        if let Ok(dir) = walker.folder(&parent)
            && matches!(dir.look(&name), Ok(Some(_)))
        {
            let _ = dir.remove(&name);
        }
    }
}

fn can_be_written(reader: &Reader, steps: &[Step]) -> bool {
    let mut contents = steps.iter().filter_map(|step| step.after);
    contents.all(|after| after.mode == Mode::Folder || reader.contains(after.oid))
}

fn left_of(walker: &mut Walker, reader: &Reader, step: &Step) -> Left {
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
        Some((leaf, content)) if leaf.is_file() => {
            let bytes = |side: Option<Leaf>| {
                side.filter(Leaf::is_file)
                    .map_or(Ok(Vec::new()), |side| whole(reader, side.oid))
            };
            match (bytes(step.before), bytes(step.after)) {
                (Ok(before), Ok(after))
                    if step.after.is_some() && was_being_written(&content, &before, &after) =>
                {
                    Left::All(Some(leaf))
                }
                (Err(why), _) | (_, Err(why)) => Left::Stays(why),
                _ => stays(),
            }
        }
        Some(_) => stays(),
    }
}

fn stays() -> Left {
    Left::Stays("it was changed after the restore was interrupted; it is left as it is".to_owned())
}

fn now(dir: &Dir, name: &OsStr) -> Result<Option<(Leaf, Vec<u8>)>, String> {
    match dir.leaf(name) {
        Ok(Some(leaf)) => Ok(Some(leaf)),
        Ok(None) if matches!(dir.look(name), Ok(Some(_))) => {
            Err("it is neither file, link nor folder".to_owned())
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Is this the beginning of the new content, and after it the old one?
fn was_being_written(content: &[u8], before: &[u8], after: &[u8]) -> bool {
    let written = content
        .iter()
        .zip(after)
        .take_while(|(now, after)| now == after)
        .count();
    // Where both are the same any place may be where the writing stopped.
    let kept = content
        .iter()
        .rev()
        .zip(before.iter().rev())
        .take_while(|(now, before)| now == before)
        .count();
    let length = content.len();
    // Nothing is cut off before all is written.
    if length == written && (length >= before.len() || length == after.len()) {
        return true;
    }
    length == before.len() && written + kept >= length
}

#[cfg(test)]
mod tests {
    use super::was_being_written;

    #[test]
    fn what_was_being_written_is_told_from_what_someone_else_wrote() {
        let written = |content: &str, before: &str, after: &str| {
            was_being_written(content.as_bytes(), before.as_bytes(), after.as_bytes())
        };
        assert!(written("newold", "oldold", "newnew!"));
        assert!(written("newnew!", "oldold", "newnew!"));
        assert!(written("neold", "xxold", "new"));
        assert!(written("new", "xxold", "new"));
        assert!(written("", "", "new"));
        assert!(written("ne", "", "new"));
        assert!(written("newdold", "oldoold", "newd"));
        assert!(written("newnew", "old", "newnewnew"));
        assert!(!written("", "old", "new"));
        assert!(!written("mine", "oldx", "newx"));
        assert!(!written("newold and more", "oldold", "newnew"));
        assert!(!written("oldnew", "oldold", "newnew"));
    }
}
