//! The tasks used in this session.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use sightline_base::storage::TaskId;
use sightline_protocol::environment::ModelRef;

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
        self.used.lock().insert(task.as_str().to_owned());
    }

    /// Forgets a deleted task.
    pub fn forget(&self, task: &TaskId) {
        self.used.lock().remove(task.as_str());
        self.planned.lock().remove(task);
    }

    /// Returns the tasks used so far.
    pub fn used(&self) -> BTreeSet<String> {
        self.used.lock().clone()
    }

    /// Stores the latest planned compaction of a task.
    pub fn set_plan(&self, task: &TaskId, plan: PlannedCompaction) {
        self.planned.lock().insert(task.clone(), plan);
    }

    /// Returns the latest planned compaction of a task.
    pub fn plan(&self, task: &TaskId) -> Option<PlannedCompaction> {
        self.planned.lock().get(task).cloned()
    }
}
