//! The tasks used in this session.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};

use sightline_protocol::environment::ModelRef;
use sightline_workspace::storage::TaskId;

use crate::mutex::lock;

/// The tasks used in this session, which are not pruned, and their planned compactions.
#[derive(Default)]
pub struct ActiveTasks {
    used: Mutex<BTreeSet<String>>,
    planned: Mutex<HashMap<TaskId, PlannedCompaction>>,
}

/// A planned compaction.
#[derive(Clone, Debug)]
pub struct PlannedCompaction {
    /// The model it was planned for.
    pub model: ModelRef,
    /// Number of compactions before it.
    pub compactions: u64,
}

impl ActiveTasks {
    /// Marks a task as used.
    pub fn touch(&self, task: &TaskId) {
        lock(&self.used).insert(task.as_str().to_owned());
    }

    /// Forgets a deleted task.
    pub fn forget(&self, task: &TaskId) {
        lock(&self.used).remove(task.as_str());
        lock(&self.planned).remove(task);
    }

    /// Returns the tasks used so far.
    pub fn used(&self) -> BTreeSet<String> {
        lock(&self.used).clone()
    }

    /// Stores the latest planned compaction of a task.
    pub fn set_plan(&self, task: &TaskId, plan: PlannedCompaction) {
        lock(&self.planned).insert(task.clone(), plan);
    }

    /// Returns the latest planned compaction of a task.
    pub fn plan(&self, task: &TaskId) -> Option<PlannedCompaction> {
        lock(&self.planned).get(task).cloned()
    }
}
