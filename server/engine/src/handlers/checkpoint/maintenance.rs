//! Maintenance of checkpoint stores: while they are idle, and of a store that is not idle for long.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::{
    jobs::root_keys,
    services::{MessageKind, Services, checkpoint_registry::RootCheckpoints},
};

/// Delay between the last change of a store and its maintenance.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Schedules maintenance for when the root is idle, and reports a store that was rebuilt
/// because of damage.
pub(super) fn schedule(services: &Arc<Services>, checkpoints: &Arc<RootCheckpoints>) {
    report_rebuilt(services, checkpoints);
    services.jobs.refresh_diagnostics();
    if checkpoints.store.has_many_packs() {
        let combined = checkpoints.clone();
        services.jobs.run(
            root_keys([root_of(checkpoints)]),
            "combination of packs",
            move |_| combined.combine_packs(),
        );
    }
    if !checkpoints.schedule_maintenance() {
        return;
    }
    let checkpoints = Arc::downgrade(checkpoints);
    services.run_after(IDLE_AFTER, move |services| {
        let Some(checkpoints) = checkpoints.upgrade() else {
            return;
        };
        checkpoints.begin_maintenance();
        let root = root_of(&checkpoints);
        services
            .jobs
            .run_idle(root, "checkpoint maintenance", move |cancel| {
                checkpoints.maintain(cancel);
            });
    });
}

fn root_of(checkpoints: &RootCheckpoints) -> PathBuf {
    checkpoints.store.root().canonical.as_path().to_owned()
}

fn report_rebuilt(services: &Services, checkpoints: &RootCheckpoints) {
    let Some(rebuilt) = checkpoints.store.take_rebuilt() else {
        return;
    };
    let lost = match rebuilt.lost.len() {
        0 => "no checkpoint was lost".to_owned(),
        1 => "1 checkpoint was lost".to_owned(),
        count => format!("{count} checkpoints were lost"),
    };
    let message = format!(
        "sightline: the checkpoint store of {} was damaged ({}) and has been rebuilt; {lost}; the damaged store was moved to {}",
        checkpoints.store.root().name,
        rebuilt.reason,
        rebuilt.kept.display()
    );
    tracing::warn!(message);
    services.show_message(MessageKind::Warning, &message);
}
