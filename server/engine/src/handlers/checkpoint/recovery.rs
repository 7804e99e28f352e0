//! Completes or rolls back restores that were interrupted, and reports them.

use std::sync::Arc;

use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    path::{Location, Root},
};
use sightline_checkpoint::{Job, restore::Recovered};
use sightline_protocol::error::ErrorKind;

use crate::{
    error::Error,
    jobs::keys_of_roots,
    request_context::RequestContext,
    services::{MessageKind, Services},
    session::Snapshot,
};

/// Recovers the open roots, before any other request changes them.
pub fn schedule(services: &Arc<Services>, snapshot: &Snapshot) {
    for root in snapshot.roots() {
        let keys = keys_of_roots([root]);
        let (worker, root) = (services.clone(), root.clone());
        services
            .jobs
            .run(keys, "recover checkpoints", move |snapshot| {
                try_recover(&RequestContext::new(&worker, snapshot), &root);
            });
    }
}

/// Completes or rolls back an interrupted restore of this root and reports the result. A
/// failure is reported too, and does not fail the request: only work on the work tree
/// depends on it.
pub(super) fn try_recover(context: &RequestContext<'_>, root: &Root) {
    if let Err(error) = recover(context, root) {
        if error.kind == ErrorKind::Busy {
            // Another process is probably running the restore.
            return tracing::info!(%error, "skipped the check for interrupted restores");
        }
        let name = &root.name;
        let message = format!(
            "sightline: cannot complete an interrupted restore of {name}: {}",
            error.message
        );
        tracing::warn!(message);
        context
            .services
            .show_message(MessageKind::Warning, &message);
    }
}

fn recover(context: &RequestContext<'_>, root: &Root) -> Result<(), Error> {
    let checkpoints = context.checkpoints(root)?;
    if !checkpoints.store.has_journal() {
        return Ok(());
    }
    let view = context.view();
    let mut roots = view.roots().as_slice().iter();
    let Some(index) = roots.position(|other| other.canonical == root.canonical) else {
        return Ok(());
    };
    let recovered = checkpoints.store.recover(&Job {
        view: &view,
        root: index,
        settings: &context.snapshot.settings.checkpoints,
        cancel: &Cancel::default(),
        progress: &|_| (),
    })?;
    if let Some(recovered) = recovered {
        report_recovered(context.services, &view, root, &recovered);
    }
    Ok(())
}

/// Reports that an interrupted restore was completed or rolled back.
pub(super) fn report_recovered(
    services: &Services,
    view: &AccessView,
    root: &Root,
    recovered: &Recovered,
) {
    let mut roots = view.roots().as_slice().iter();
    let Some(index) = roots.position(|other| other.canonical == root.canonical) else {
        return;
    };
    let how = if recovered.completed {
        "completed"
    } else {
        "rolled back"
    };
    let mut message = format!(
        "sightline: an interrupted restore of {} was {how}; checkpoint {} has the previous state",
        root.name, recovered.undo
    );
    let mut kind = MessageKind::Info;
    if !recovered.problems.is_empty() {
        kind = MessageKind::Warning;
        let problems = recovered.problems.iter().take(5).map(|problem| {
            let place = Location::Inside {
                root: index,
                rel: problem.path.clone(),
            };
            let (path, _) = view.roots().result_path(&place);
            format!("{path}: {}", problem.reason)
        });
        let problems: Vec<String> = problems.collect();
        message.push_str(&format!("; check these files: {}", problems.join("; ")));
    }
    // The command line shows the log, but no messages.
    tracing::warn!(message);
    services.show_message(kind, &message);
}
