//! Opens and closes the IDE protocols of agents, and keeps what they show current.

use std::{sync::Arc, time::Duration};

use tower_lsp::lsp_types::MessageType;

use crate::{bridges::Refresh, scheduler::bridge_keys, services::Services, watch::file_watcher};

/// Interval of checks of the rules while an agent is connected.
const RECHECK: Duration = Duration::from_secs(1);

/// Schedules an update to changed settings or roots. Updates run in order, so the last one wins.
pub fn schedule_update(services: &Arc<Services>) {
    let worker = services.clone();
    let weak = Arc::downgrade(services);
    let refresh: Refresh = Arc::new(move || {
        if let Some(services) = weak.upgrade() {
            services.bridges.publish(|snapshot| services.view(snapshot));
        }
    });
    services
        .jobs
        .run(bridge_keys(), "bridges", move |snapshot| {
            let (is_first, errors) = worker.bridges.update(&snapshot, &refresh);
            for error in errors {
                worker.show_message(MessageType::WARNING, &format!("sightline: {error}"));
            }
            if is_first {
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
