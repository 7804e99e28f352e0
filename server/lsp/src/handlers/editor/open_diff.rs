//! `sightline/openDiff`: shows a change that an agent proposes, and creates a checkpoint before an
//! accepted one.

use std::{sync::Arc, time::Duration};

use sightline_protocol::{
    checkpoint::CreateCheckpointParams,
    editor::{CloseDiffParams, OpenDiffParams, OpenDiffResult},
    error::ErrorKind,
    method::{CloseDiff, Notification, OpenDiff, Request},
};
use sightline_workspace::{
    escape::one_line,
    path::{Location, Root},
};
use tokio::sync::oneshot;

use crate::{
    bridges::diffs::{Decision, Proposal},
    connection::client::ClientAnswer,
    error::Error,
    handlers::checkpoint::create_checkpoint,
    request_context::RequestContext,
    scheduler::{bridge_keys, keys_of_roots},
    services::Services,
    session::Snapshot,
};

/// Time for the user's decision.
const DECISION_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A change that was proposed, until it is decided.
struct Proposed {
    proposal: Proposal,
    /// Closed with the diff.
    decided: oneshot::Sender<Decision>,
}

impl Proposed {
    fn decide(self, decision: Decision) {
        // Fails if the diff was closed.
        drop(self.decided.send(decision));
    }
}

/// Shows a change in the editor. Sends what becomes of it, unless the receiver is dropped.
pub(crate) fn show(
    services: &Arc<Services>,
    proposal: Proposal,
    decided: oneshot::Sender<Decision>,
) {
    let proposed = Proposed { proposal, decided };
    let worker = services.clone();
    let work = move |snapshot: Snapshot| {
        if proposed.decided.is_closed() {
            return;
        }
        match params(&worker, &snapshot, &proposed.proposal) {
            Ok((params, root)) => ask(&worker, &params, root, proposed),
            Err(error) => proposed.decide(Decision::Failed(error.message)),
        }
    };
    services.jobs.run(bridge_keys(), OpenDiff::NAME, work);
}

/// Closes a diff, after the job that shows it.
pub(crate) fn close(services: &Arc<Services>, diff_id: String) {
    let client = services.client.clone();
    let work = move |snapshot: Snapshot| {
        if snapshot.client_info.opens_diffs {
            client.notify(CloseDiff::NAME, &CloseDiffParams { diff_id });
        }
    };
    services.jobs.run(bridge_keys(), CloseDiff::NAME, work);
}

/// Returns the request to the editor and the root of the file, if the rules allow it and the editor
/// can show it.
fn params(
    services: &Services,
    snapshot: &Snapshot,
    proposal: &Proposal,
) -> Result<(OpenDiffParams, Root), Error> {
    if !snapshot.client_info.opens_diffs || services.client.is_closed() {
        let message = "this editor shows no changes of agents";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let (location, root) = locate(services, snapshot, &proposal.path)?;
    let view = services.view(snapshot);
    let path = view.roots().result_path(&location).0;
    let params = OpenDiffParams {
        diff_id: proposal.diff_id.clone(),
        uri: view.roots().absolute(&location).to_uri(),
        title: one_line(&format!("{}: {path}", proposal.turn.agent)).into_owned(),
        path,
        contents: proposal.contents.clone(),
    };
    Ok((params, root))
}

/// Returns the location of a file that agents may see, and its root.
fn locate(services: &Services, snapshot: &Snapshot, path: &str) -> Result<(Location, Root), Error> {
    let view = services.view(snapshot);
    let location = view.roots().locate(path)?;
    view.require(&location, false)?;
    let root = match &location {
        Location::Inside { root, .. } => view.roots().get(*root).cloned(),
        Location::Outside(_) => None,
    };
    let outside = || Error::invalid(format!("{path} is outside every workspace folder"));
    Ok((location, root.ok_or_else(outside)?))
}

fn ask(services: &Arc<Services>, params: &OpenDiffParams, root: Root, proposed: Proposed) {
    let client = &services.client;
    let worker = Arc::downgrade(services);
    client.request_within(
        OpenDiff::NAME,
        params,
        DECISION_TIMEOUT,
        move |_, answer| match decision(answer, &proposed.proposal) {
            Decision::Accepted(contents) => {
                if let Some(services) = worker.upgrade() {
                    accept(&services, root, proposed, contents);
                }
            }
            other => proposed.decide(other),
        },
    );
}

fn decision(answer: ClientAnswer, proposal: &Proposal) -> Decision {
    match answer.map(serde_json::from_value::<OpenDiffResult>) {
        Ok(Ok(result)) if result.accepted => {
            let contents = result.contents;
            Decision::Accepted(contents.unwrap_or_else(|| proposal.contents.clone()))
        }
        Ok(Ok(_)) => Decision::Rejected,
        Ok(Err(error)) => Decision::Failed(format!("the editor's answer is invalid: {error}")),
        Err(error) => {
            let why = error["message"].as_str().unwrap_or_default();
            Decision::Failed(format!("the editor cannot show the change: {why}"))
        }
    }
}

/// Creates a checkpoint and accepts the change, if the diff is still open.
fn accept(services: &Arc<Services>, root: Root, proposed: Proposed, contents: String) {
    let worker = services.clone();
    let keys = keys_of_roots([&root]);
    let work = move |snapshot: Snapshot| {
        if proposed.decided.is_closed() {
            return;
        }
        let created = create_checkpoint_in(&root, &worker, snapshot, &proposed.proposal);
        proposed.decide(match created {
            Ok(()) => Decision::Accepted(contents),
            Err(error) => Decision::Failed(format!("no checkpoint before the change: {error}")),
        });
    };
    services.jobs.run(keys, OpenDiff::NAME, work);
}

/// Creates the checkpoint before a change, if the rules still allow the file.
fn create_checkpoint_in(
    root: &Root,
    services: &Arc<Services>,
    snapshot: Snapshot,
    proposal: &Proposal,
) -> Result<(), Error> {
    locate(services, &snapshot, &proposal.path)?;
    let params = CreateCheckpointParams {
        root: Some(root.path.to_uri()),
        turn: Some(proposal.turn.clone()),
        ..CreateCheckpointParams::default()
    };
    create_checkpoint::run(&RequestContext::new(services, snapshot), params)?;
    Ok(())
}
