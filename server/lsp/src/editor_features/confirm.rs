//! Asks the user for confirmation, in any client.
//!
//! A question is sent as `window/showMessageRequest`. In clients without support for it,
//! the user runs one of the commands `sightline.allow` and `sightline.deny`, which code
//! actions offer as well. At most one question is open: a new one denies the previous
//! one, and unanswered questions are denied after `ANSWER_WITHIN`.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use sightline_engine::{
    error::Error,
    jobs::{all_task_keys, keys_of_roots},
    request_context::{RequestContext, Response},
    services::{MessageKind, Services, confirmations::Confirmation},
    session::Snapshot,
};

use super::{
    NoParams,
    command_result::{self, CommandResult},
};

/// Time the user has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// JSON-RPC: method not found.
const METHOD_NOT_FOUND: i64 = -32601;

/// Asks whether to do `what` ("restore a.rs"). `question` contains the details, `yes` is
/// the label of the button. Returns at once; `allowed` runs on the main loop, with the
/// session when the answer arrived, and must only start a job.
pub(super) fn ask(
    services: &Arc<Services>,
    what: String,
    question: &str,
    yes: &'static str,
    allowed: impl FnOnce(Snapshot) + Send + 'static,
) {
    let id = uuid::Uuid::new_v4();
    let before = services.confirmations.open(Confirmation {
        id,
        what,
        allowed: Box::new(allowed),
    });
    if let Some(before) = before {
        report_denied(services, &before.what, "another question was asked");
    }
    services.run_after(ANSWER_WITHIN, move |services| {
        if let Some(open) = services.confirmations.take_if(id) {
            report_denied(services, &open.what, "no answer");
        }
    });
    if services.confirmations.has_no_prompts() {
        return suggest_commands(services, question);
    }
    let params = json!({
        "type": MessageKind::Warning as u8,
        "message": format!("sightline: {question}"),
        "actions": [{ "title": yes }, { "title": "Cancel" }],
    });
    let worker = services.clone();
    let question = question.to_owned();
    services.client.ask(
        "window/showMessageRequest",
        &params,
        (None, ANSWER_WITHIN),
        move |session, answer| match answer {
            Ok(answer) => {
                let Some(open) = worker.confirmations.take_if(id) else {
                    return;
                };
                if answer["title"] == yes {
                    (open.allowed)(session.snapshot());
                }
            }
            Err(error) if error["code"] == METHOD_NOT_FOUND => {
                worker.confirmations.set_no_prompts();
                suggest_commands(&worker, &question);
            }
            Err(_) => {
                if let Some(open) = worker.confirmations.take_if(id) {
                    report_denied(&worker, &open.what, "the editor cannot show questions");
                }
            }
        },
    );
}

/// Asks, and then runs a restore or an undo as a job.
pub(super) fn ask_to_restore<R>(
    context: &RequestContext<'_>,
    what: String,
    question: String,
    yes: &'static str,
    restore: impl FnOnce(&RequestContext<'_>) -> Result<Response<R>, Error> + Send + 'static,
) -> Result<CommandResult, Error> {
    let services = context.services.clone();
    ask(context.services, what, &question, yes, move |snapshot| {
        let mut keys = keys_of_roots(snapshot.roots());
        keys.extend(all_task_keys());
        let worker = services.clone();
        // The snapshot whose roots are the keys.
        services.jobs.run(keys, "restore", move |_| {
            let context = RequestContext::new(&worker, snapshot);
            command_result::show_summary(&context, restore(&context));
        });
    });
    command_result::without_message(question)
}

fn suggest_commands(services: &Services, question: &str) {
    let message = format!(
        "sightline: {question} Run sightline.allow or sightline.deny (code actions offer both)"
    );
    services.show_message(MessageKind::Warning, &message);
}

fn report_denied(services: &Services, what: &str, why: &str) {
    services.show_message(
        MessageKind::Info,
        &format!("sightline: cancelled: {what} ({why})"),
    );
}

/// `sightline.allow`: confirms the open question.
///
/// # Errors
/// None.
pub fn allow(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    match context.services.confirmations.take() {
        Some(open) => {
            (open.allowed)(context.snapshot.clone());
            command_result::without_message(format!("allowed: {}", open.what))
        }
        None => command_result::message(context, "nothing to allow"),
    }
}

/// `sightline.deny`: denies the open question.
///
/// # Errors
/// None.
pub fn deny(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    match context.services.confirmations.take() {
        Some(open) => command_result::message(context, format!("denied: {}", open.what)),
        None => command_result::message(context, "nothing to deny"),
    }
}
