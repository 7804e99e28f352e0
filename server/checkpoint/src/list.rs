//! Looks up, lists and labels checkpoints.

use std::{collections::HashSet, sync::Arc};

use sightline_base::{cancel::Cancel, path::RelPath, storage::TaskId};

use super::{
    checkpoints::Checkpoints,
    metadata::Checkpoint,
    store::{annotations::LABELS, lock, object::Oid, refs, repository::Repository},
    tree_diff::find,
};
use crate::error::Error;

/// Selects checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only checkpoints of this task.
    pub task: Option<TaskId>,
    /// Only checkpoints in which this file differs from the checkpoint before.
    pub path: Option<RelPath>,
    /// Maximum number of checkpoints; the newest are kept.
    pub limit: Option<usize>,
}

impl Checkpoints {
    /// Returns one checkpoint.
    ///
    /// # Errors
    /// `notFound` if it does not exist; `storage`.
    pub fn get(&self, id: Oid) -> Result<Arc<Checkpoint>, Error> {
        let mut found = match self.repository()? {
            Some(repository) if refs::exists(repository.dir(), id)? => {
                let mut found = self.metadata_cache.of(&[id], &repository)?;
                apply_labels(&repository, &mut found)?;
                found
            }
            _ => Vec::new(),
        };
        found.pop().ok_or_else(|| Self::not_found(id))
    }

    /// Returns the checkpoint that an earlier version imported from this commit of Cline.
    ///
    /// # Errors
    /// `storage`.
    pub fn imported_from(&self, original: Oid) -> Result<Option<Arc<Checkpoint>>, Error> {
        let original = original.to_string();
        let is_imported = |checkpoint: &Arc<Checkpoint>| {
            let from = checkpoint.metadata.imported.as_deref();
            from.is_some_and(|from| from.eq_ignore_ascii_case(&original))
        };
        Ok(self.list(&Filter::default())?.into_iter().find(is_imported))
    }

    pub(crate) fn not_found(id: Oid) -> Error {
        let message =
            format!("no checkpoint matches \"{id}\"; list the checkpoints to see their ids");
        Error::NotFound(message)
    }

    /// Lists checkpoints, newest first. Omits commits that are not checkpoints or cannot be read;
    /// [`Self::verify`] reports those.
    ///
    /// # Errors
    /// `storage`.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Arc<Checkpoint>>, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Vec::new());
        };
        let ids = repository.ids()?;
        self.metadata_cache.retain(&ids);
        let mut checkpoints = self.metadata_cache.of(&ids, &repository)?;
        if let Some(task) = &filter.task {
            checkpoints
                .retain(|checkpoint| checkpoint.metadata.task.as_deref() == Some(task.as_str()));
        }
        sort(&mut checkpoints);
        if let Some(path) = &filter.path {
            keep_changes(&repository, path, &mut checkpoints)?;
        }
        checkpoints.truncate(filter.limit.unwrap_or(usize::MAX));
        apply_labels(&repository, &mut checkpoints)?;
        Ok(checkpoints)
    }

    /// Returns the newest checkpoint that was created here, which fetched ones are not, and whether the
    /// store has none at all. Costs less than [`Self::list`].
    pub(crate) fn newest(
        &self,
        repository: &Repository,
    ) -> Result<(Option<Arc<Checkpoint>>, bool), Error> {
        let all = self.metadata_cache.of(&repository.ids()?, repository)?;
        let is_empty = all.is_empty();
        let own = all.into_iter().filter(|one| !one.metadata.fetched);
        let mut newest: Vec<_> = own.max_by_key(|one| order(one)).into_iter().collect();
        apply_labels(repository, &mut newest)?;
        Ok((newest.pop(), is_empty))
    }

    /// Sets or removes the label of a checkpoint. Returns the checkpoint.
    ///
    /// # Errors
    /// `notFound` if it does not exist; `busy`; `cancelled`; `storage`. Nothing is changed then.
    pub fn set_label(
        &self,
        id: Oid,
        label: Option<String>,
        cancel: &Cancel,
    ) -> Result<Arc<Checkpoint>, Error> {
        if self.repository()?.is_none() {
            return Err(Self::not_found(id));
        }
        let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        // It may have been removed before the lock was taken.
        self.get(id)?;
        let mut labels = LABELS.all(repository.dir())?;
        labels.insert(id, label);
        cancel.commit()?;
        LABELS.write_all(repository.dir(), &labels)?;
        self.get(id)
    }
}

/// Keeps the checkpoints in which a file differs from the checkpoint before. They are sorted, newest
/// first.
fn keep_changes(
    repository: &Repository,
    path: &RelPath,
    checkpoints: &mut Vec<Arc<Checkpoint>>,
) -> Result<(), Error> {
    let reader = repository.odb();
    let mut changed = HashSet::new();
    let mut before = None;
    for checkpoint in checkpoints.iter().rev() {
        let found = find(&reader, checkpoint.tree, path)?.map(|leaf| (leaf.mode, leaf.oid));
        if found != before {
            changed.insert(checkpoint.id);
        }
        before = found;
    }
    checkpoints.retain(|checkpoint| changed.contains(&checkpoint.id));
    Ok(())
}

/// Replaces the labels that changed since the checkpoints were created.
fn apply_labels(repository: &Repository, checkpoints: &mut [Arc<Checkpoint>]) -> Result<(), Error> {
    let mut labels = LABELS.all(repository.dir())?;
    if labels.is_empty() {
        return Ok(());
    }
    for checkpoint in checkpoints {
        if let Some(label) = labels.remove(&checkpoint.id) {
            Arc::make_mut(checkpoint).metadata.label = label;
        }
    }
    Ok(())
}

/// Sorts newest first.
fn sort(checkpoints: &mut [Arc<Checkpoint>]) {
    checkpoints.sort_unstable_by_key(|checkpoint| std::cmp::Reverse(order(checkpoint)));
}

fn order(checkpoint: &Checkpoint) -> (u64, u64, Oid) {
    let metadata = &checkpoint.metadata;
    (metadata.created, metadata.sequence, checkpoint.id)
}
