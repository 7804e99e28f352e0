//! Asks the user for confirmation, in any client.
//!
//! A question is sent as `window/showMessageRequest`. In clients without support for it,
//! the user runs one of the commands `sightline.allow` and `sightline.deny`, which code
//! actions offer as well. At most one question is open: a new one denies the previous
//! one, and unanswered questions are denied after `ANSWER_WITHIN`.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use sightline_workspace::error::Error;
use tower_lsp::lsp_types::MessageType;

use super::{
    NoParams,
    command_result::{self, CommandResult},
};
use crate::{mutex::lock, request_context::RequestContext, shared_state::Server};

/// Time the user has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// JSON-RPC: method not found.
const METHOD_NOT_FOUND: i64 = -32601;

/// The open question.
#[derive(Default)]
pub struct Confirmations {
    open: Mutex<Option<Confirmation>>,
    /// The client does not support `window/showMessageRequest`.
    has_no_prompts: AtomicBool,
}

type OnAllowed = Box<dyn FnOnce(&Arc<Server>) + Send>;

struct Confirmation {
    /// Identifies the question, because answers may be late.
    id: uuid::Uuid,
    /// The action, such as "restore a.rs".
    what: String,
    allowed: OnAllowed,
}

impl Confirmations {
    /// Returns the action that waits for `sightline.allow`, in clients without prompts.
    pub fn waiting(&self) -> Option<String> {
        let has_no_prompts = self.has_no_prompts.load(Ordering::Acquire);
        let open = lock(&self.open);
        let open = open.as_ref().filter(|_| has_no_prompts);
        open.map(|decision| decision.what.clone())
    }

    fn take(&self, id: Option<uuid::Uuid>) -> Option<Confirmation> {
        let mut open = lock(&self.open);
        let is_meant = |open: &Confirmation| id.is_none_or(|id| open.id == id);
        if open.as_ref().is_some_and(is_meant) {
            open.take()
        } else {
            None
        }
    }
}

/// Asks whether to do `what` ("restore a.rs"). `question` contains the details, `yes` is
/// the label of the button. Returns at once; `allowed` runs on the thread that receives
/// the answer and must only start a job.
pub(super) fn ask(
    server: &Arc<Server>,
    what: String,
    question: &str,
    yes: &'static str,
    allowed: impl FnOnce(&Arc<Server>) + Send + 'static,
) {
    let id = uuid::Uuid::new_v4();
    let decision = Confirmation {
        id,
        what: what.clone(),
        allowed: Box::new(allowed),
    };
    let before = lock(&server.confirmations().open).replace(decision);
    if let Some(before) = before {
        report_denied(server, &before.what, "another question was asked");
    }
    server.run_after(ANSWER_WITHIN, move |server| {
        if let Some(decision) = server.confirmations().take(Some(id)) {
            report_denied(server, &decision.what, "no answer");
        }
    });
    if server
        .confirmations()
        .has_no_prompts
        .load(Ordering::Acquire)
    {
        return suggest_commands(server, question);
    }
    let params = json!({
        "type": MessageType::WARNING,
        "message": format!("sightline: {question}"),
        "actions": [{ "title": yes }, { "title": "Cancel" }],
    });
    let worker = server.clone();
    let question = question.to_owned();
    let client = server.client();
    client.request_within(
        "window/showMessageRequest",
        &params,
        ANSWER_WITHIN,
        move |answer| match answer {
            Ok(answer) => {
                let Some(decision) = worker.confirmations().take(Some(id)) else {
                    return;
                };
                if answer["title"] == yes {
                    (decision.allowed)(&worker);
                }
            }
            Err(error) if error["code"] == METHOD_NOT_FOUND => {
                worker
                    .confirmations()
                    .has_no_prompts
                    .store(true, Ordering::Release);
                suggest_commands(&worker, &question);
            }
            Err(_) => {
                if let Some(decision) = worker.confirmations().take(Some(id)) {
                    report_denied(&worker, &decision.what, "the editor cannot show questions");
                }
            }
        },
    );
}

fn suggest_commands(server: &Server, question: &str) {
    let message = format!(
        "sightline: {question} Run sightline.allow or sightline.deny (code actions offer both)"
    );
    server.show_message(MessageType::WARNING, &message);
}

fn report_denied(server: &Server, what: &str, why: &str) {
    server.show_message(
        MessageType::INFO,
        &format!("sightline: cancelled: {what} ({why})"),
    );
}

/// `sightline.allow`: confirms the open question.
///
/// # Errors
/// None.
pub fn allow(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    match context.server.confirmations().take(None) {
        Some(decision) => {
            (decision.allowed)(context.server);
            command_result::without_message(format!("allowed: {}", decision.what))
        }
        None => command_result::message(context, "nothing to allow"),
    }
}

/// `sightline.deny`: denies the open question.
///
/// # Errors
/// None.
pub fn deny(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    match context.server.confirmations().take(None) {
        Some(decision) => command_result::message(context, format!("denied: {}", decision.what)),
        None => command_result::message(context, "nothing to deny"),
    }
}
