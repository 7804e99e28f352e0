//! `sightline/openDiff`: shows a change that an agent proposes, and creates a checkpoint before an
//! accepted one.
//!
//! If an accepted change cannot be used, because there is no checkpoint or the file has changed, it
//! is shown again with the user's edits.

use std::{
    fs,
    io::{self, ErrorKind as Io},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use sightline_base::{
    decision_log,
    escape::one_line,
    path::{Location, Root},
};
use sightline_engine::{
    client::ClientAnswer,
    error::Error,
    handlers::checkpoint::create_checkpoint,
    jobs::{bridge_keys, keys_of_roots},
    request_context::RequestContext,
    services::{MessageKind, Services},
    session::Snapshot,
};
use sightline_protocol::{
    checkpoint::{AgentTurn, CreateCheckpointParams},
    editor::{CloseDiffParams, OpenDiffParams, OpenDiffResult},
    error::ErrorKind,
    method::{CloseDiff, Notification, OpenDiff, Request},
};
use tokio::sync::oneshot;

/// Time for the user's decision.
const DECISION_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a change is shown.
const MAX_ATTEMPTS: u32 = 3;

/// Maximum size of a file that is shown, in bytes.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// A change that an agent proposes.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    /// Identifies the diff.
    pub(super) diff_id: String,
    /// The agent and its connection.
    pub(super) turn: AgentTurn,
    /// The path as the agent names it.
    pub(super) path: String,
    /// Proposed text of the whole file.
    pub(super) contents: String,
}

/// What becomes of a proposed change.
#[derive(Debug)]
pub(super) enum Decision {
    /// The user accepted this text, and a checkpoint was created.
    Accepted(String),
    /// The user rejected the change.
    Rejected,
    /// The user was not asked, or the answer cannot be used. Says why.
    Failed(String),
}

/// A change that was proposed, until it is decided.
struct Proposed {
    proposal: Proposal,
    attempt: u32,
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
pub(super) fn show(
    services: &Arc<Services>,
    proposal: Proposal,
    decided: oneshot::Sender<Decision>,
) {
    let proposed = Proposed {
        proposal,
        attempt: 1,
        decided,
    };
    show_attempt(services, proposed);
}

fn show_attempt(services: &Arc<Services>, proposed: Proposed) {
    let worker = services.clone();
    let work = move |snapshot: Snapshot| {
        if proposed.decided.is_closed() {
            return;
        }
        match params(&worker, &snapshot, &proposed.proposal) {
            Ok((params, file)) => ask(&worker, &params, file, proposed),
            Err(error) => {
                record(&worker, &snapshot, &proposed.proposal, &error);
                proposed.decide(Decision::Failed(error.message));
            }
        }
    };
    services.jobs.run(bridge_keys(), OpenDiff::NAME, work);
}

/// Adds the refusal of a change to the log of decisions.
fn record(services: &Services, snapshot: &Snapshot, proposal: &Proposal, error: &Error) {
    let Some(mut refusal) = error.refusal("bridge", "openDiff") else {
        return;
    };
    refusal.agent = Some(proposal.turn.agent.clone());
    if let Ok(storage) = services.stores.storage(&snapshot.settings) {
        decision_log::record(&storage, &snapshot.settings.log, &[refusal]);
    }
}

/// Closes a diff, after the job that shows it.
pub(super) fn close(services: &Arc<Services>, diff_id: String) {
    let client = services.client.clone();
    let work = move |snapshot: Snapshot| {
        client.withdraw(&diff_id);
        if snapshot.client_info.opens_diffs {
            client.notify(CloseDiff::NAME, &CloseDiffParams { diff_id });
        }
    };
    services.jobs.run(bridge_keys(), CloseDiff::NAME, work);
}

/// A file that an agent may change, as it was when its change was shown.
struct ShownFile {
    root: Root,
    state: FileState,
}

/// Length in bytes and time of the last change. `None` if there is no file.
type FileState = Option<(u64, Option<SystemTime>)>;

/// Returns the state of a file that an editor can show.
fn state_of(path: &Path) -> io::Result<FileState> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        metadata => metadata?,
    };
    // Editors wait for the writer of a pipe.
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() > MAX_FILE_SIZE {
        return Err(Io::FileTooLarge.into());
    }
    Ok(Some((metadata.len(), metadata.modified().ok())))
}

/// Returns the request to the editor and the file, if the rules allow it and the editor can show it.
fn params(
    services: &Services,
    snapshot: &Snapshot,
    proposal: &Proposal,
) -> Result<(OpenDiffParams, ShownFile), Error> {
    if !snapshot.client_info.opens_diffs || services.client.is_closed() {
        let message = "this editor shows no changes of agents";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if services.client.is_full() {
        let message = "the editor does not read its messages";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let (location, root) = locate(services, snapshot, &proposal.path)?;
    let view = services.view(snapshot);
    let path = view.roots().result_path(&location).0;
    let state = state_of(view.roots().absolute(&location).as_path())
        .map_err(|error| Error::invalid(format!("cannot show {path}: {error}")))?;
    let params = OpenDiffParams {
        diff_id: proposal.diff_id.clone(),
        uri: view.roots().absolute(&location).to_uri(),
        title: one_line(&format!("{}: {path}", proposal.turn.agent)).into_owned(),
        path,
        contents: proposal.contents.clone(),
    };
    Ok((params, ShownFile { root, state }))
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

fn ask(services: &Arc<Services>, params: &OpenDiffParams, file: ShownFile, proposed: Proposed) {
    let client = &services.client;
    let worker = Arc::downgrade(services);
    client.ask(
        OpenDiff::NAME,
        params,
        (Some(params.diff_id.clone()), DECISION_TIMEOUT),
        move |_, answer| match decision(answer, &proposed.proposal) {
            Decision::Accepted(contents) => {
                if let Some(services) = worker.upgrade() {
                    accept(&services, file, proposed, contents);
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
fn accept(services: &Arc<Services>, file: ShownFile, mut proposed: Proposed, contents: String) {
    let worker = services.clone();
    let keys = keys_of_roots([&file.root]);
    let work = move |snapshot: Snapshot| {
        if proposed.decided.is_closed() {
            return;
        }
        let why = match prepare(&worker, snapshot, &file, &proposed.proposal) {
            Ok(()) => return proposed.decide(Decision::Accepted(contents)),
            Err(why) => why,
        };
        let shown_again = match proposed.attempt < MAX_ATTEMPTS {
            true => " It is shown again, with your edits.",
            false => "",
        };
        let message = format!("Sightline: the change was not accepted: {why}.{shown_again}");
        worker.show_message(MessageKind::Warning, &message);
        if proposed.attempt == MAX_ATTEMPTS {
            return proposed.decide(Decision::Failed(why));
        }
        proposed.attempt += 1;
        proposed.proposal.contents = contents;
        show_attempt(&worker, proposed);
    };
    services.jobs.run(keys, OpenDiff::NAME, work);
}

/// Creates the checkpoint before a change, if the rules still allow the file, and it is as it was
/// shown. Otherwise returns why the change cannot be used.
fn prepare(
    services: &Arc<Services>,
    snapshot: Snapshot,
    file: &ShownFile,
    proposal: &Proposal,
) -> Result<(), String> {
    let (location, _) =
        locate(services, &snapshot, &proposal.path).map_err(|error| error.message)?;
    let path = services.view(&snapshot).roots().absolute(&location);
    if state_of(path.as_path()).is_ok_and(|state| state != file.state) {
        return Err("the file has changed since".to_owned());
    }
    let params = CreateCheckpointParams {
        root: Some(file.root.path.to_uri()),
        turn: Some(proposal.turn.clone()),
        automatic: true,
        ..CreateCheckpointParams::default()
    };
    create_checkpoint::run(&RequestContext::new(services, snapshot), params)
        .map(drop)
        .map_err(|error| format!("no checkpoint before the change: {error}"))
}
