//! Looks up and lists checkpoints.

use std::sync::Arc;

use sightline_workspace::storage::TaskId;

use super::{
    checkpoints::Checkpoints,
    metadata::Checkpoint,
    store::{object::Oid, refs},
};
use crate::error::Error;

/// Selects checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only checkpoints of this task.
    pub task: Option<TaskId>,
    /// Maximum number of checkpoints; the newest are kept.
    pub limit: Option<usize>,
}

impl Checkpoints {
    /// Returns one checkpoint.
    ///
    /// # Errors
    /// `notFound` if it does not exist; `storage`.
    pub fn get(&self, id: Oid) -> Result<Arc<Checkpoint>, Error> {
        let found = match self.repository()? {
            Some(repository) if refs::exists(repository.dir(), id)? => {
                self.metadata_cache.of(&[id], &repository)?.pop()
            }
            _ => None,
        };
        found.ok_or_else(|| self.not_found(id))
    }

    pub(crate) fn not_found(&self, id: Oid) -> Error {
        let message = format!(
            "no checkpoint {id} in {}; list the checkpoints to see their ids",
            self.root.path.display()
        );
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
        checkpoints.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(checkpoints)
    }
}

/// Sorts newest first.
fn sort(checkpoints: &mut [Arc<Checkpoint>]) {
    checkpoints.sort_unstable_by_key(|checkpoint| {
        std::cmp::Reverse((
            checkpoint.metadata.created,
            checkpoint.metadata.sequence,
            checkpoint.id,
        ))
    });
}
