//! What is kept, and what it costs.
//!
//! Names go first, durably, then the objects nothing leads to any more: packs
//! of which nothing is left are removed, those of which all is left stay, and
//! what is left of the others moves into a new pack before they go. A mark
//! tells the next one that this was begun and not ended.

#[cfg(test)]
mod tests;

use std::{collections::HashSet, fs, path::PathBuf, sync::Arc};

use super::{
    Checkpoint, Checkpoints, Filter, Oid, Purpose,
    store::{
        lock,
        object_reader::ObjectReader,
        packs::{self, Pack},
        reachable::ReachableSet,
        refs, remote_refs,
        repository::Repository,
        uncompressed_packs,
    },
};
use crate::{
    cancel::Cancel,
    error::Error,
    storage::{TaskId, files},
};

/// Stands in the store while objects are taken out.
const MARKER: &str = "unpruned";
/// More packs are folded.
const MAX_PACKS: usize = 50;
/// So many bytes that are as they are get deflated: a few large undo points.
const MIN_COMPRESS_BYTES: u64 = 128 << 20;
/// More names in files of their own are put together.
const MAX_LOOSE_REFS: usize = 50;
/// What an object takes in an index, and a checkpoint besides its objects, in bytes.
const INDEX_ENTRY_BYTES: u64 = 28;
const CHECKPOINT_OVERHEAD: u64 = 1300;

/// What stays. Whatever is given must hold for a checkpoint to stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The newest so many; undo points are not counted, and go with the age of
    /// those. Of fetched ones so many as well, undo points among them.
    pub newest: Option<usize>,
    /// Those created at or after this, in milliseconds since the epoch.
    pub since: Option<u64>,
    /// So many bytes of store; fetched ones go first, then the oldest. The
    /// newest checkpoint and the newest undo point that were made here stay
    /// however large they are.
    pub max_bytes: Option<u64>,
    /// All but those of this task.
    pub without_task: Option<TaskId>,
    /// All but this one.
    pub without: Option<Oid>,
}

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The checkpoints.
    pub removed: Vec<Oid>,
    /// What the store takes less, in bytes.
    pub freed_bytes: u64,
}

/// What the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Checkpoints.
    pub count: u64,
    /// The store's size on disk, in bytes: the lengths of its files.
    pub bytes: u64,
    /// When the oldest was created, in milliseconds since the epoch.
    pub oldest: Option<u64>,
    /// When the newest was created, in milliseconds since the epoch.
    pub newest: Option<u64>,
}

impl Checkpoints {
    /// Removes checkpoints and gives their space back. Cheap when none goes.
    /// What an interrupted restore needs always stays.
    ///
    /// # Errors
    /// `busy`; `cancelled`, and nothing is removed then; `storage`: when it
    /// comes after the names were removed, the next one gives the space back.
    pub fn prune(&self, keep: &Keep, cancel: &Cancel) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        if self.repository()?.is_none() {
            return Ok(pruned);
        }
        let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        let before = packs::dir_size(repository.dir());
        if keep.max_bytes.is_some_and(|limit| limit < before) {
            // It may do. Where it fails, what follows makes room without it.
            let _ = uncompressed_packs::compress(&repository, 0, cancel);
            cancel.check()?;
        }
        let size = packs::dir_size(repository.dir());
        pruned.freed_bytes = before.saturating_sub(size);
        let mut budget = keep.max_bytes.filter(|limit| *limit < size);
        let mut less = 0;
        loop {
            let checkpoints = self.list(&Filter::default())?;
            let doomed = select(&checkpoints, keep, &self.needed(&checkpoints));
            let is_begun = repository.dir().join(MARKER).exists();
            if doomed.is_empty() && budget.is_none() && !is_begun {
                break;
            }
            let removed = remove(&repository, &checkpoints, doomed, budget, cancel)?;
            let size = packs::dir_size(repository.dir());
            pruned.freed_bytes = before.saturating_sub(size);
            // What is left was estimated: as long as it is too much, nothing or
            // something having gone, less is asked for.
            let excess = size.saturating_sub(keep.max_bytes.unwrap_or(u64::MAX));
            less = match removed.is_empty() {
                true => excess.max(less * 2),
                false => excess,
            };
            let is_done = removed.is_empty() && budget.is_none_or(|budget| budget == 0);
            pruned.removed.extend(removed);
            budget = budget.map(|budget| budget.saturating_sub(less));
            if is_done || excess == 0 {
                break;
            }
        }
        Ok(pruned)
    }

    /// Tells what [`Self::prune`] would remove, and changes nothing. The bytes are an
    /// estimate: packs share objects, and undo points are compressed first.
    ///
    /// # Errors
    /// `cancelled`; `storage`.
    pub fn would_prune(&self, keep: &Keep, cancel: &Cancel) -> Result<Pruned, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Pruned::default());
        };
        let checkpoints = self.list(&Filter::default())?;
        let doomed = select(&checkpoints, keep, &self.needed(&checkpoints));
        let size = packs::dir_size(repository.dir());
        let budget = keep.max_bytes.filter(|limit| *limit < size);
        let packs = packs::all(&repository)?;
        let reader = repository.reader();
        let (doomed, mut reach) = fit_to_budget(
            (&repository, &reader, &packs),
            &checkpoints,
            doomed,
            budget,
            cancel,
        )?;
        let mut pruned = Pruned::default();
        for checkpoint in checkpoints
            .iter()
            .filter(|checkpoint| doomed.contains(&checkpoint.id))
        {
            pruned.removed.push(checkpoint.id);
            pruned.freed_bytes +=
                CHECKPOINT_OVERHEAD + packed_bytes(&packs, &reach.add(checkpoint.id, cancel)?);
        }
        pruned.freed_bytes = pruned.freed_bytes.min(size);
        Ok(pruned)
    }

    /// What an interrupted restore goes on with: its undo point, and what it
    /// restores.
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

    /// Idle work: finishes what was interrupted, folds many small packs into
    /// one, saves the memory of the work tree. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// `busy`; `cancelled`; `storage`. The store holds all it held then.
    pub fn tidy(&self, cancel: &Cancel) -> Result<(), Error> {
        if self.repository()?.is_none() {
            return Ok(());
        }
        {
            let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
            let repository = self.open_or_create()?;
            if repository.dir().join(MARKER).exists() {
                remove(&repository, &[], HashSet::new(), None, cancel)?;
            }
            refs::pack(repository.dir(), MAX_LOOSE_REFS)?;
            packs::remove_orphans(&repository);
            fold_packs(&repository, cancel)?;
            uncompressed_packs::compress(&repository, MIN_COMPRESS_BYTES, cancel)?;
        }
        // Who has the memory may be waiting for the lock.
        self.save_stat_cache()
    }

    /// What the store holds.
    ///
    /// # Errors
    /// `storage`.
    pub fn stats(&self) -> Result<Stats, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Stats::default());
        };
        let checkpoints = self.list(&Filter::default())?;
        Ok(Stats {
            count: checkpoints.len() as u64,
            bytes: packs::dir_size(repository.dir()),
            oldest: checkpoints
                .last()
                .map(|checkpoint| checkpoint.metadata.created),
            newest: checkpoints
                .first()
                .map(|checkpoint| checkpoint.metadata.created),
        })
    }
}

fn is_undo(checkpoint: &Checkpoint) -> bool {
    matches!(checkpoint.metadata.purpose, Purpose::Undo { .. })
}

/// Which of them go by age, number, task and name. `checkpoints` are newest first.
fn select(checkpoints: &[Arc<Checkpoint>], keep: &Keep, needed: &[Oid]) -> HashSet<Oid> {
    // Where among all of them the oldest stands that is within the number.
    let last_of = |fetched: bool| {
        let newest = keep.newest?;
        let counted = checkpoints.iter().enumerate().filter(|(_, checkpoint)| {
            checkpoint.metadata.fetched == fetched && (fetched || !is_undo(checkpoint))
        });
        let places: Vec<usize> = counted.map(|(at, _)| at).collect();
        (places.len() > newest).then(|| newest.checked_sub(1).map(|newest| places[newest]))
    };
    let (ours, theirs) = (last_of(false), last_of(true));
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
        let is_named = keep.without == Some(checkpoint.id);
        (too_many || too_old || of_task || is_named) && !needed.contains(&checkpoint.id)
    };
    let going = checkpoints.iter().enumerate().filter(goes);
    going.map(|(_, checkpoint)| checkpoint.id).collect()
}

/// What objects take in packs.
fn packed_bytes(packs: &[Pack], objects: &[Oid]) -> u64 {
    let sizes = objects.iter().map(|oid| {
        let packed = packs.iter().find_map(|pack| pack.index.find(*oid));
        packed.map_or(0, |range| range.end - range.start + INDEX_ENTRY_BYTES)
    });
    sizes.sum()
}

/// Adds the oldest to the doomed ones until the rest fits into `budget` bytes; also
/// gives the objects that stay.
fn fit_to_budget<'r>(
    (repository, reader, packs): (&Repository, &'r ObjectReader, &[Pack]),
    checkpoints: &[Arc<Checkpoint>],
    mut doomed: HashSet<Oid>,
    budget: Option<u64>,
    cancel: &Cancel,
) -> Result<(HashSet<Oid>, ReachableSet<'r>), Error> {
    let mut reach = ReachableSet::new(reader);
    let kept: HashSet<Oid> = checkpoints.iter().map(|checkpoint| checkpoint.id).collect();
    // Names of others, and of checkpoints that can't be read, hold what they
    // lead to as well.
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
            .filter(|checkpoint| !doomed.contains(&checkpoint.id)),
    );
    // First those that stay however large they are.
    let newest = |undo: bool| {
        let is_ours = |checkpoint: &&Arc<Checkpoint>| {
            !checkpoint.metadata.fetched && is_undo(checkpoint) == undo
        };
        staying.iter().position(is_ours)
    };
    let always: Vec<Oid> = [newest(false), newest(true)]
        .into_iter()
        .flatten()
        .map(|at| staying[at].id)
        .collect();
    staying.sort_by_key(|checkpoint| {
        (
            !always.contains(&checkpoint.id),
            checkpoint.metadata.fetched,
        )
    });
    let mut is_full = false;
    for checkpoint in staying {
        if is_full {
            doomed.insert(checkpoint.id);
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
            doomed.insert(checkpoint.id);
        }
    }
    Ok((doomed, reach))
}

/// Removes the doomed ones, and the oldest until what is left fits into
/// `budget` bytes; gives those removed.
fn remove(
    repository: &Repository,
    checkpoints: &[Arc<Checkpoint>],
    doomed: HashSet<Oid>,
    budget: Option<u64>,
    cancel: &Cancel,
) -> Result<Vec<Oid>, Error> {
    let dir = repository.dir();
    let packs = packs::all(repository)?;
    let loose = packs::loose_objects(repository);
    let reader = repository.reader();
    let store = (repository, &reader, &packs[..]);
    let (doomed, reach) = fit_to_budget(store, checkpoints, doomed, budget, cancel)?;
    if doomed.is_empty() && !dir.join(MARKER).exists() {
        return Ok(Vec::new());
    }
    let live = reach.into_objects();
    // What is open can't be removed everywhere.
    drop(reader);
    cancel.commit()?;
    repository.next_generation()?;
    files::write(&dir.join(MARKER), b"")?;
    refs::remove(dir, |name| {
        name.starts_with(refs::INCOMING) || refs::id_of(name).is_some_and(|id| doomed.contains(&id))
    })?;
    remote_refs::retain(dir)?;
    if remove_objects(repository, &packs, &loose, |oid| live.contains(&oid))? {
        let mark = dir.join(MARKER);
        fs::remove_file(&mark).map_err(|error| files::failed("remove", &mark, &error))?;
        files::sync_dir(dir)?;
    }
    let removed = checkpoints.iter().map(|checkpoint| checkpoint.id);
    Ok(removed.filter(|id| doomed.contains(id)).collect())
}

/// Takes out what is not live; false when something could not be removed yet.
fn remove_objects(
    repository: &Repository,
    packs: &[Pack],
    loose: &[(Oid, PathBuf)],
    is_live: impl Fn(Oid) -> bool,
) -> Result<bool, Error> {
    let mut mixed: Vec<&Pack> = Vec::new();
    let mut dead: Vec<&Pack> = Vec::new();
    for pack in packs.iter().filter(|pack| !pack.is_kept()) {
        let live = pack.index.names().filter(|oid| is_live(*oid)).count();
        if live == 0 {
            dead.push(pack);
        } else if live < pack.index.len() {
            mixed.push(pack);
        }
    }
    // First what gives space without needing any.
    let mut all_gone = packs::remove(repository, dead.into_iter())?;
    for (_, path) in loose.iter().filter(|(oid, _)| !is_live(*oid)) {
        fs::remove_file(path).map_err(|error| files::failed("remove", path, &error))?;
    }
    if !mixed.is_empty() {
        let made = packs::combine(repository, &mixed, is_live, &Cancel::default())?;
        all_gone &= remove_replaced(repository, made, &mixed)?;
    }
    Ok(all_gone)
}

/// Removes packs in whose place a new one is, unless that one is no smaller.
fn remove_replaced(
    repository: &Repository,
    made: Option<Pack>,
    old: &[&Pack],
) -> Result<bool, Error> {
    let Some(made) = made else {
        return Ok(true);
    };
    let is_other = |pack: &&Pack| pack.path != made.path;
    let size: u64 = old.iter().map(|pack| pack.len).sum();
    if made.len >= size && old.iter().all(is_other) {
        // git had written differences, which take less.
        return packs::remove(repository, std::iter::once(&made));
    }
    packs::remove(repository, old.iter().copied().filter(is_other))
}

/// Folds the small packs so that each of the others is more than twice as large
/// as all smaller ones together: an object is copied a few times in its life.
fn fold_packs(repository: &Repository, cancel: &Cancel) -> Result<(), Error> {
    let entries = fs::read_dir(repository.pack_dir()).into_iter().flatten();
    if entries.count() <= 2 * MAX_PACKS {
        return Ok(());
    }
    let mut packs = packs::all(repository)?;
    packs.retain(|pack| !pack.is_kept());
    packs.sort_unstable_by_key(|pack| pack.len);
    if packs.len() <= MAX_PACKS {
        return Ok(());
    }
    let mut smaller = 0;
    let mut folded = 0;
    for (at, pack) in packs.iter().enumerate() {
        if pack.len < 2 * smaller {
            folded = at + 1;
        }
        smaller += pack.len;
    }
    let folded: Vec<&Pack> = packs[..folded].iter().collect();
    if folded.len() < 2 {
        return Ok(());
    }
    let Some(made) = packs::combine(repository, &folded, |_| true, cancel)? else {
        return Ok(());
    };
    // Smaller or not, one is better than many.
    let old = folded.into_iter().filter(|pack| pack.path != made.path);
    packs::remove(repository, old)?;
    Ok(())
}
