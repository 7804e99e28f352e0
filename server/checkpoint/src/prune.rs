//! Removes checkpoints and unreachable objects, and reports the size of the store.
//!
//! Refs are removed first, then the objects that no other ref reaches.

#[cfg(test)]
mod tests;

use std::{collections::HashSet, sync::Arc};

use sightline_base::{cancel::Cancel, storage::TaskId};
use sightline_protocol::checkpoint::CheckpointStatsResult;

use super::{
    checkpoints::Checkpoints,
    list::Filter,
    metadata::{Checkpoint, Purpose, to_i64},
    store::{
        gc, lock, object::Oid, odb::Odb, pack::Pack, reachable::ReachableSet, refs,
        repository::Repository,
    },
};
use crate::error::Error;

/// Estimated size of an object's index entry, and of a checkpoint without its objects, in bytes.
const INDEX_ENTRY_BYTES: u64 = 28;
const CHECKPOINT_OVERHEAD: u64 = 1300;

/// About how much data a call of [`Checkpoints::combine_packs`] copies, in bytes, unless the packs of single
/// checkpoints are larger. The next checkpoint waits for it.
const COMBINED_BYTES: u64 = 32 << 20;

/// Which checkpoints to keep. A checkpoint must satisfy every given condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Number of newest checkpoints. Undo points are not counted; they go when older than the
    /// counted ones. Applies separately to fetched checkpoints, including their undo points.
    pub newest: Option<usize>,
    /// Earliest creation time, in milliseconds since the epoch.
    pub since: Option<u64>,
    /// Number of newest automatic checkpoints. Labelled ones are not automatic, and the one at the end of
    /// a turn goes with the one before it.
    pub automatic: Option<usize>,
    /// Maximum size of the store, in bytes. Fetched checkpoints go first, then the oldest. The
    /// newest local checkpoint and the newest local undo point always stay.
    pub max_bytes: Option<u64>,
    /// Removes the checkpoints of this task.
    pub without_task: Option<TaskId>,
    /// Removes these checkpoints.
    pub without: Vec<Oid>,
    /// Removes checkpoints with a label too. Without it, only those in `without` and those of a
    /// removed task go.
    pub labelled: bool,
}

/// Result of a prune.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Ids of the removed checkpoints.
    pub removed: Vec<Oid>,
    /// Bytes by which the store shrank.
    pub freed_bytes: u64,
    /// Number of checkpoints that stay only because of their label.
    pub kept_labelled: u64,
}

impl Checkpoints {
    /// Removes checkpoints and frees their space. Cheap if nothing is removed. Keeps what an
    /// interrupted restore needs.
    ///
    /// # Errors
    /// `busy`; `cancelled`, with nothing removed; `storage`. If it fails after the refs were
    /// removed, the next run frees the space.
    pub fn prune(&self, keep: &Keep, cancel: &Cancel) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        if self.repository()?.is_none() {
            return Ok(pruned);
        }
        let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        pruned.kept_labelled = self.kept_labelled(keep, cancel)?;
        let before = repository.size();
        let mut budget = keep.max_bytes.filter(|limit| *limit < before);
        let mut less = 0;
        loop {
            let checkpoints = self.list(&Filter::default())?;
            let selected = select(&checkpoints, keep, &self.needed(&checkpoints));
            let is_begun = gc::is_interrupted(&repository);
            if selected.is_empty() && budget.is_none() && !is_begun {
                break;
            }
            let limits = (budget, keep.labelled);
            let removed = remove(&repository, &checkpoints, selected, limits, cancel)?;
            let size = repository.size();
            pruned.freed_bytes = before.saturating_sub(size);
            // The remaining size was an estimate. While it is still too large, lower the budget,
            // even if the last round removed nothing.
            let excess = size.saturating_sub(keep.max_bytes.unwrap_or(u64::MAX));
            less = if removed.is_empty() {
                excess.max(less * 2)
            } else {
                excess
            };
            let is_done = removed.is_empty() && budget.is_none_or(|budget| budget == 0);
            pruned.removed.extend(removed);
            budget = budget.map(|budget| budget.saturating_sub(less));
            if is_done || excess == 0 {
                break;
            }
        }
        if !pruned.removed.is_empty() {
            self.sweep_records();
        }
        Ok(pruned)
    }

    /// Returns what [`Self::prune`] would remove, without changing anything. The bytes are an
    /// estimate, because packs share objects.
    ///
    /// # Errors
    /// `cancelled`; `storage`.
    pub fn would_prune(&self, keep: &Keep, cancel: &Cancel) -> Result<Pruned, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Pruned::default());
        };
        let checkpoints = self.list(&Filter::default())?;
        let selected = select(&checkpoints, keep, &self.needed(&checkpoints));
        let size = repository.size();
        let budget = keep.max_bytes.filter(|limit| *limit < size);
        let packs = repository.packs()?;
        let reader = repository.odb();
        let (selected, mut reach) = fit_to_budget(
            (&repository, &reader, &packs),
            &checkpoints,
            selected,
            (budget, keep.labelled),
            cancel,
        )?;
        let mut pruned = Pruned {
            kept_labelled: self.kept_labelled(keep, cancel)?,
            ..Pruned::default()
        };
        for checkpoint in checkpoints
            .iter()
            .filter(|checkpoint| selected.contains(&checkpoint.id))
        {
            pruned.removed.push(checkpoint.id);
            pruned.freed_bytes +=
                CHECKPOINT_OVERHEAD + packed_bytes(&packs, &reach.add(checkpoint.id, cancel)?);
        }
        pruned.freed_bytes = pruned.freed_bytes.min(size);
        Ok(pruned)
    }

    /// Returns the number of checkpoints that only [`Keep::labelled`] would remove.
    fn kept_labelled(&self, keep: &Keep, cancel: &Cancel) -> Result<u64, Error> {
        let has_limit = keep.newest.is_some() || keep.since.is_some() || keep.max_bytes.is_some();
        let checkpoints = self.list(&Filter::default())?;
        if keep.labelled || !has_limit || !checkpoints.iter().any(|one| is_labelled(one)) {
            return Ok(0);
        }
        let anyway = select(&checkpoints, keep, &self.needed(&checkpoints));
        let with_labelled = Keep {
            labelled: true,
            ..keep.clone()
        };
        let removed = self.would_prune(&with_labelled, cancel)?.removed;
        let kept = checkpoints.iter().filter(|one| {
            is_labelled(one) && removed.contains(&one.id) && !anyway.contains(&one.id)
        });
        Ok(kept.count() as u64)
    }

    /// Returns the checkpoints an interrupted restore needs: its undo point and its target.
    fn needed(&self, checkpoints: &[Arc<Checkpoint>]) -> Vec<Oid> {
        if !self.has_journal() {
            return Vec::new();
        }
        let newest = checkpoints
            .iter()
            .filter(|checkpoint| !checkpoint.metadata.fetched)
            .find_map(|checkpoint| match checkpoint.metadata.purpose {
                Purpose::Undo { restoring, .. } => Some((checkpoint.id, restoring)),
                _ => None,
            });
        newest.map_or_else(Vec::new, |(undo, restoring)| {
            restoring.into_iter().chain([undo]).collect()
        })
    }

    /// Removes the oldest automatic checkpoints once there are an eighth more than `keep`, so that
    /// not every new one has to free space.
    ///
    /// # Errors
    /// Those of [`Self::prune`].
    pub fn prune_automatic(&self, keep: usize, cancel: &Cancel) -> Result<(), Error> {
        let checkpoints = self.list(&Filter::default())?;
        let count = checkpoints
            .iter()
            .filter(|checkpoint| is_automatic(checkpoint))
            .count();
        if count > keep + keep / 8 {
            let keep = Keep {
                automatic: Some(keep),
                ..Keep::default()
            };
            self.prune(&keep, cancel)?;
        }
        Ok(())
    }

    /// Idle work: finishes an interrupted prune, combines small packs, and saves the stat cache. Cheap if there is nothing to do.
    ///
    /// # Errors
    /// `busy`; `cancelled`; `storage`. No checkpoint is lost then.
    pub fn tidy(&self, cancel: &Cancel) -> Result<(), Error> {
        if self.repository()?.is_none() {
            return Ok(());
        }
        {
            let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
            let repository = self.open_or_create()?;
            if gc::is_interrupted(&repository) {
                remove(&repository, &[], HashSet::new(), (None, false), cancel)?;
            }
            *self.combination.lock() = None;
            gc::tidy(
                &repository,
                (&mut None, &self.state_dir()),
                u64::MAX,
                cancel,
            )?;
        }
        self.record_folder();
        self.remove_adopted();
        // Not under the lock: the owner of the stat cache may be waiting for it.
        self.save_stat_cache()
    }

    /// Returns whether the store has so many packs that [`Self::combine_packs`] should not wait for
    /// idle time: the cost of a checkpoint grows with their number. Also if a combination has begun.
    pub fn has_many_packs(&self) -> bool {
        let repository = self.repository().ok().flatten();
        repository.is_some_and(|repository| gc::has_many_packs(&repository))
            || self.combination.lock().is_some()
    }

    /// Combines small packs of a store that is in use. Unlike [`Self::tidy`], copies a limited amount
    /// of data. The next calls continue.
    ///
    /// # Errors
    /// `busy`; `cancelled`; `conflict` if another process has changed the packs, so that it starts again;
    /// `storage`. No checkpoint is lost then.
    pub fn combine_packs(&self, cancel: &Cancel) -> Result<(), Error> {
        if !self.has_many_packs() {
            return Ok(());
        }
        let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        let mut combination = self.combination.lock();
        let unfinished = (&mut *combination, &*self.state_dir());
        gc::tidy(&repository, unfinished, COMBINED_BYTES, cancel)
    }

    /// Returns the size of the store.
    ///
    /// # Errors
    /// `storage`.
    pub fn stats(&self) -> Result<CheckpointStatsResult, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(CheckpointStatsResult::default());
        };
        let checkpoints = self.list(&Filter::default())?;
        let created = |one: Option<&Arc<Checkpoint>>| one.map(|one| to_i64(one.metadata.created));
        Ok(CheckpointStatsResult {
            count: checkpoints.len() as u64,
            bytes: repository.size(),
            oldest: created(checkpoints.last()),
            newest: created(checkpoints.first()),
            verified_at: self.verified_at(),
        })
    }
}

fn is_labelled(checkpoint: &Checkpoint) -> bool {
    checkpoint.metadata.label.is_some()
}

/// Returns whether a checkpoint counts for [`Keep::automatic`].
fn is_automatic(checkpoint: &Checkpoint) -> bool {
    is_of_turn(checkpoint) && !checkpoint.metadata.turn_end
}

/// Returns whether a checkpoint at the end of a turn goes with the one before it.
fn is_turn_end(checkpoint: &Checkpoint) -> bool {
    is_of_turn(checkpoint) && checkpoint.metadata.turn_end
}

fn is_of_turn(checkpoint: &Checkpoint) -> bool {
    let metadata = &checkpoint.metadata;
    metadata.turn.is_some() && metadata.label.is_none() && !metadata.fetched
}

/// Selects the checkpoints that age, number, task or id removes. `checkpoints` are sorted newest
/// first.
fn select(checkpoints: &[Arc<Checkpoint>], keep: &Keep, needed: &[Oid]) -> HashSet<Oid> {
    // Position of the oldest checkpoint within the number to keep.
    let last_of = |fetched: bool| {
        let newest = keep.newest?;
        let counted = checkpoints.iter().enumerate().filter(|(_, checkpoint)| {
            checkpoint.metadata.fetched == fetched && (fetched || !checkpoint.metadata.is_undo())
        });
        let places: Vec<usize> = counted.map(|(at, _)| at).collect();
        (places.len() > newest).then(|| newest.checked_sub(1).map(|newest| places[newest]))
    };
    let (ours, theirs) = (last_of(false), last_of(true));
    let mut counted = 0;
    let mut surplus = HashSet::new();
    for checkpoint in checkpoints {
        let is_surplus = keep.automatic.is_some_and(|most| counted >= most);
        if is_surplus && (is_automatic(checkpoint) || is_turn_end(checkpoint)) {
            surplus.insert(checkpoint.id);
        } else if is_automatic(checkpoint) {
            counted += 1;
        }
    }
    let goes = |(at, checkpoint): &(usize, &Arc<Checkpoint>)| {
        let last = if checkpoint.metadata.fetched {
            theirs
        } else {
            ours
        };
        let too_many = last.is_some_and(|last| last.is_none_or(|last| *at > last));
        let too_old = keep
            .since
            .is_some_and(|since| checkpoint.metadata.created < since);
        let task = keep.without_task.as_ref().map(TaskId::as_str);
        let of_task = task.is_some() && task == checkpoint.metadata.task.as_deref();
        let is_named = keep.without.contains(&checkpoint.id);
        let is_surplus = surplus.contains(&checkpoint.id);
        let is_kept = is_labelled(checkpoint) && !keep.labelled;
        (of_task || is_named || is_surplus || (too_many || too_old) && !is_kept)
            && !needed.contains(&checkpoint.id)
    };
    let going = checkpoints.iter().enumerate().filter(goes);
    going.map(|(_, checkpoint)| checkpoint.id).collect()
}

/// Returns the size of objects in packs, in bytes.
fn packed_bytes(packs: &[Pack], objects: &[Oid]) -> u64 {
    let sizes = objects.iter().map(|oid| {
        let packed = packs.iter().find_map(|pack| pack.entry_range(*oid));
        packed.map_or(0, |range| range.end - range.start + INDEX_ENTRY_BYTES)
    });
    sizes.sum()
}

/// Adds the oldest checkpoints to `selected` until the rest fits into `budget` bytes, those with a
/// label only if `labelled` is set. Also returns the reachable objects.
fn fit_to_budget<'r>(
    (repository, reader, packs): (&Repository, &'r Odb, &[Pack]),
    checkpoints: &[Arc<Checkpoint>],
    mut selected: HashSet<Oid>,
    (budget, labelled): (Option<u64>, bool),
    cancel: &Cancel,
) -> Result<(HashSet<Oid>, ReachableSet<'r>), Error> {
    let mut reach = ReachableSet::new(reader);
    let kept: HashSet<Oid> = checkpoints.iter().map(|checkpoint| checkpoint.id).collect();
    // Refs of other programs, and of unreadable checkpoints, also keep objects.
    let mut tips: Vec<Oid> = Vec::new();
    for (name, tip) in refs::all(repository.dir())? {
        let is_record = refs::id_of(&name).is_some_and(|id| kept.contains(&id));
        if !is_record && !name.starts_with(refs::INCOMING) {
            tips.push(tip);
        }
    }
    let mut size = 0;
    for tip in tips {
        size += packed_bytes(packs, &reach.add(tip, cancel)?);
    }
    let mut staying: Vec<&Arc<Checkpoint>> = Vec::new();
    staying.extend(
        checkpoints
            .iter()
            .filter(|checkpoint| !selected.contains(&checkpoint.id)),
    );
    // First the checkpoints that always stay.
    let newest = |undo: bool| {
        let is_ours = |checkpoint: &&Arc<Checkpoint>| {
            !checkpoint.metadata.fetched && checkpoint.metadata.is_undo() == undo
        };
        staying.iter().position(is_ours)
    };
    let kept = staying
        .iter()
        .filter(|checkpoint| !labelled && is_labelled(checkpoint));
    let always: HashSet<Oid> = [newest(false), newest(true)]
        .into_iter()
        .flatten()
        .map(|at| staying[at].id)
        .chain(kept.map(|checkpoint| checkpoint.id))
        .collect();
    staying.sort_by_key(|checkpoint| {
        (
            !always.contains(&checkpoint.id),
            checkpoint.metadata.fetched,
        )
    });
    let mut is_full = false;
    for checkpoint in staying {
        if is_full && !always.contains(&checkpoint.id) {
            selected.insert(checkpoint.id);
            continue;
        }
        let objects = reach.add(checkpoint.id, cancel)?;
        let Some(budget) = budget else {
            continue;
        };
        size += CHECKPOINT_OVERHEAD + packed_bytes(packs, &objects);
        if size > budget && !always.contains(&checkpoint.id) {
            is_full = true;
            reach.forget(&objects);
            selected.insert(checkpoint.id);
        }
    }
    Ok((selected, reach))
}

/// Removes the `selected` checkpoints, and more as in [`fit_to_budget`]. Returns the removed ones.
fn remove(
    repository: &Repository,
    checkpoints: &[Arc<Checkpoint>],
    selected: HashSet<Oid>,
    limits: (Option<u64>, bool),
    cancel: &Cancel,
) -> Result<Vec<Oid>, Error> {
    let packs = repository.packs()?;
    let reader = repository.odb();
    let store = (repository, &reader, &packs[..]);
    let (selected, reach) = fit_to_budget(store, checkpoints, selected, limits, cancel)?;
    if selected.is_empty() && !gc::is_interrupted(repository) {
        return Ok(Vec::new());
    }
    let reachable = reach.into_objects();
    // Windows does not remove open files.
    drop(packs);
    cancel.commit()?;
    let is_removed = |name: &str| {
        name.starts_with(refs::INCOMING)
            || refs::id_of(name).is_some_and(|id| selected.contains(&id))
    };
    gc::remove(repository, is_removed, &reachable)?;
    let removed = checkpoints.iter().map(|checkpoint| checkpoint.id);
    Ok(removed.filter(|id| selected.contains(id)).collect())
}
