//! Verifies checkpoints for the user.

use std::{fs, path::PathBuf};

use sightline_base::{clock::millis_of, storage::atomic_file};

use super::{
    checkpoints::Checkpoints,
    job::Job,
    metadata::is_checkpoint,
    store::{fsck::check_checkpoints, refs, repair::find_problem},
    tree_diff::DeniedPaths,
    worktree::snapshot::below,
};
use crate::error::Error;

impl Checkpoints {
    /// Reads every object of every checkpoint. Returns the problems, each a sentence that names the
    /// checkpoint. Denied paths are only counted. Damage is recorded, and the next writer rebuilds
    /// the store.
    ///
    /// # Errors
    /// `cancelled`; `storage` if the refs cannot be read.
    pub fn verify(&self, job: &Job<'_>) -> Result<Vec<String>, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Vec::new());
        };
        let mut problems = Vec::new();
        if let Some(problem) = find_problem(&repository)? {
            problems.push(format!("the store is damaged: {problem}"));
        }
        for (id, path) in refs::loose_ids(repository.dir())? {
            if !refs::is_loose_ref_valid(&path, id) {
                problems.push(format!(
                    "checkpoint {id}: the ref {} has the wrong content",
                    path.display()
                ));
            }
        }
        let generation = repository.generation().ok();
        let mut denied = DeniedPaths::new(job);
        let mut denies = |path: &[u8], is_dir| denied.denies(&below(path, b""), is_dir);
        let ids = repository.ids()?;
        let reader = repository.odb();
        let found = check_checkpoints(&reader, &ids, is_checkpoint, job.cancel, &mut denies)?;
        // Objects that were pruned during the check are not damaged.
        let is_same = generation == repository.generation().ok();
        // Names no path, because a later rule may deny it.
        if let Some((id, _)) = found.first().filter(|_| is_same)
            && let Err(error) = repository.record_damage(&format!("checkpoint {id} is damaged"))
        {
            problems.push(format!("cannot record the damage: {error}"));
        }
        let found = found.into_iter();
        problems.extend(found.map(|(id, what)| format!("checkpoint {id}: {what}")));
        self.record_verification(problems.is_empty());
        Ok(problems)
    }

    /// Records the time in the time of a file, which is absent after problems. It is only shown.
    fn record_verification(&self, is_ok: bool) {
        if is_ok {
            let _ = atomic_file::write(&self.verified_file(), b"");
        } else {
            let _ = fs::remove_file(self.verified_file());
        }
    }

    /// Returns the time of the last verification, if it found no problem.
    pub(crate) fn verified_at(&self) -> Option<i64> {
        millis_of(fs::metadata(self.verified_file()).ok()?.modified().ok()?)
    }

    fn verified_file(&self) -> PathBuf {
        self.state_dir().join("verified")
    }
}
