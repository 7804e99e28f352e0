//! Opens and closes the IDE protocols of agents, and keeps what they show current.

use std::{sync::Arc, time::Duration};

use tower_lsp::lsp_types::MessageType;

use super::editor::open_diff;
use crate::{
    bridges::EditorCalls, scheduler::bridge_keys, services::Services, watch::file_watcher,
};

/// Interval of checks of the rules while an agent is connected.
const RECHECK: Duration = Duration::from_secs(1);

/// Schedules an update to changed settings or roots. Updates run in order, so the last one wins.
pub fn schedule_update(services: &Arc<Services>) {
    let worker = services.clone();
    let weak = || Arc::downgrade(services);
    let (of_refresh, of_shown, of_closed) = (weak(), weak(), weak());
    let editor = Arc::new(EditorCalls {
        refresh: Box::new(move || {
            if let Some(services) = of_refresh.upgrade() {
                services.bridges.publish(|snapshot| services.view(snapshot));
            }
        }),
        show_diff: Box::new(move |proposal, decided| {
            if let Some(services) = of_shown.upgrade() {
                open_diff::show(&services, proposal, decided);
            }
        }),
        close_diff: Box::new(move |diff_id| {
            if let Some(services) = of_closed.upgrade() {
                open_diff::close(&services, diff_id);
            }
        }),
    });
    services
        .jobs
        .run(bridge_keys(), "bridges", move |snapshot| {
            let (opening, errors) = worker.bridges.update(&snapshot, &editor);
            for error in errors {
                worker.show_message(MessageType::WARNING, &format!("sightline: {error}"));
            }
            if let Some(opening) = opening {
                file_watcher::start(&worker);
                keep_checking(&worker, opening);
            }
        });
}

/// Checks the rules regularly until all bridges are closed. If one is opened soon after, that
/// opening has separate checks.
fn keep_checking(services: &Arc<Services>, opening: u64) {
    services.run_after(RECHECK, move |services| {
        if services.bridges.opening() != opening {
            return;
        }
        if !services.bridges.connected().is_empty() {
            services.publish_to_agents();
        }
        keep_checking(services, opening);
    });
}
