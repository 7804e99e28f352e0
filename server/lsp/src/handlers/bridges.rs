//! Opens and closes the IDE protocols of agents, and keeps what they show current.

use std::{sync::Arc, time::Duration};

use crate::{scheduler::Keys, services::Services, watch::file_watcher};

/// Interval of checks of the rules while an agent is connected.
const RECHECK: Duration = Duration::from_secs(1);

/// Schedules an update to changed settings or roots.
pub fn schedule_update(services: &Arc<Services>) {
    let worker = services.clone();
    services.jobs.run(Keys::new(), "bridges", move |snapshot| {
        if worker.bridges.update(&snapshot) {
            file_watcher::start(&worker);
            keep_checking(&worker);
        }
    });
}

/// Checks the rules regularly while a bridge is open.
fn keep_checking(services: &Arc<Services>) {
    services.run_after(RECHECK, |services| {
        if !services.bridges.is_open() {
            return;
        }
        if !services.bridges.connected().is_empty() {
            services.publish_to_agents();
        }
        keep_checking(services);
    });
}
