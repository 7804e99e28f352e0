//! Asking the user, of any client.
//!
//! A question goes out as `window/showMessageRequest`. A client that has no such
//! thing is told of two commands instead, `sightline.allow` and `sightline.deny`,
//! which code actions offer too; they also answer a prompt that never came back.
//! One question is open at a time: a new one denies the one before, and one that
//! nobody answers in `ANSWER_WITHIN` is denied.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tower_lsp::lsp_types::MessageType;

use super::report;
use crate::{
    handlers::{HandlerResult, RequestContext},
    server::Server,
    sync::lock,
};

/// How long an answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: i64 = -32601;

/// The question that is open.
#[derive(Default)]
pub struct Confirmations {
    open: Mutex<Option<Confirmation>>,
    /// The client said that it has no prompts.
    promptless: AtomicBool,
}

type OnAllowed = Box<dyn FnOnce(&Arc<Server>) + Send>;

struct Confirmation {
    /// Tells one question from another: an answer may come late.
    id: uuid::Uuid,
    /// What would be done, as "restore a.rs".
    what: String,
    allowed: OnAllowed,
}

impl Confirmations {
    /// What waits for `sightline.allow`, where the client shows no prompt.
    pub fn waiting(&self) -> Option<String> {
        let promptless = self.promptless.load(Ordering::Acquire);
        let open = lock(&self.open);
        let open = open.as_ref().filter(|_| promptless);
        open.map(|decision| decision.what.clone())
    }

    fn take(&self, id: Option<uuid::Uuid>) -> Option<Confirmation> {
        let mut open = lock(&self.open);
        let is_meant = |open: &Confirmation| id.is_none_or(|id| open.id == id);
        match open.as_ref().is_some_and(is_meant) {
            true => open.take(),
            false => None,
        }
    }
}

/// Asks whether `what` ("restore a.rs") may be done, with `question` for the
/// details and `yes` on the button. Returns at once; `allowed` runs when the
/// user agrees, on the thread that brings the answer: it starts a job.
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
        denied(server, &before.what, "something else was asked");
    }
    server.run_after(ANSWER_WITHIN, move |server| {
        if let Some(decision) = server.confirmations().take(Some(id)) {
            denied(server, &decision.what, "nobody answered");
        }
    });
    if server.confirmations().promptless.load(Ordering::Acquire) {
        return tell_of_commands(server, question);
    }
    let params = json!({
        "type": MessageType::WARNING,
        "message": format!("sightline: {question}"),
        "actions": [{ "title": yes }, { "title": "Cancel" }],
    });
    let asked = server.clone();
    let question = question.to_owned();
    let client = server.client();
    client.request_within(
        "window/showMessageRequest",
        &params,
        ANSWER_WITHIN,
        move |answer| match answer {
            Ok(answer) => {
                let Some(decision) = asked.confirmations().take(Some(id)) else {
                    return;
                };
                if answer["title"] == yes {
                    (decision.allowed)(&asked);
                }
            }
            Err(error) if error["code"] == METHOD_NOT_FOUND => {
                asked
                    .confirmations()
                    .promptless
                    .store(true, Ordering::Release);
                tell_of_commands(&asked, &question);
            }
            Err(_) => {
                if let Some(decision) = asked.confirmations().take(Some(id)) {
                    denied(&asked, &decision.what, "the editor did not ask");
                }
            }
        },
    );
}

fn tell_of_commands(server: &Server, question: &str) {
    let message = format!(
        "sightline: {question} Run sightline.allow or sightline.deny (code actions offer both)"
    );
    server.show_message(MessageType::WARNING, &message);
}

fn denied(server: &Server, what: &str, why: &str) {
    server.show_message(
        MessageType::INFO,
        &format!("sightline: nothing was done to {what}: {why}"),
    );
}

/// `sightline.allow`: agrees to the question that is open.
pub(super) fn allow(context: &RequestContext<'_>, _: &str) -> HandlerResult {
    match context.server.confirmations().take(None) {
        Some(decision) => {
            (decision.allowed)(context.server);
            report::silent(format!("allowed: {}", decision.what))
        }
        None => report::message(context, "nothing waits to be allowed"),
    }
}

/// `sightline.deny`: refuses it.
pub(super) fn deny(context: &RequestContext<'_>, _: &str) -> HandlerResult {
    match context.server.confirmations().take(None) {
        Some(decision) => report::message(context, format!("denied: {}", decision.what)),
        None => report::message(context, "nothing waits to be denied"),
    }
}
