//! Deletes the tasks that exceed the configured limits.

use std::sync::Arc;

use sightline_base::{cancel::Cancel, clock::now_millis, storage::TaskId};
use sightline_protocol::settings::TaskSettings;

use crate::{
    handlers::checkpoint::prune_checkpoints::forget_tasks, jobs::all_task_keys, services::Services,
    settings::Settings,
};

/// Schedules the deletion, if there are limits.
pub fn schedule(services: &Arc<Services>, settings: &Settings) {
    let limits = settings.tasks;
    if limits == TaskSettings::default() {
        return;
    }
    let worker = services.clone();
    services
        .jobs
        .run(all_task_keys(), "tasks", move |snapshot| {
            let tasks = worker.active_tasks.used();
            let is_in_use = |task: &TaskId| tasks.contains(task.as_str());
            let store = worker.stores.tasks(&snapshot.settings);
            let pruned = store.and_then(|store| {
                Ok(store.prune(&limits, &is_in_use, now_millis(), &Cancel::default())?)
            });
            match pruned {
                Ok(pruned) => {
                    tracing::info!(removed = pruned.removed.len(), "tasks pruned");
                    forget_tasks(&worker, snapshot, pruned.removed);
                }
                Err(error) => tracing::warn!(%error, "cannot delete old tasks"),
            }
        });
}
