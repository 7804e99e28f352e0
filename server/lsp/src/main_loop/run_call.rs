//! Runs a request, and serializes its response.

use std::{sync::Arc, time::Instant};

use serde_json::Value;
use sightline_base::cancel::Cancel;
use sightline_engine::{
    dispatch::Call,
    error::Error,
    error_response::{catch_panic, error_body},
    request_context::{OnDelivered, RequestContext},
    services::Services,
    session::Snapshot,
};

use crate::execute_command::{self, Origin};

/// A response, ready to be sent.
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) on_delivered: Option<OnDelivered>,
}

/// Runs a request and serializes its response.
pub(super) fn run_call(
    services: &Arc<Services>,
    call: Call,
    origin: Origin,
    snapshot: Snapshot,
    cancel: Cancel,
    id: &Value,
) -> Answer {
    let method = call.method;
    let started = Instant::now();
    let outcome = catch_panic(method, || {
        cancel.check()?;
        let context = RequestContext::with(services, snapshot, cancel, call.token.clone());
        let outcome = call.run(&context);
        if origin != Origin::Socket
            && let Err(error) = &outcome
        {
            context.record(error.refusal("lsp", method).as_slice());
        }
        execute_command::show(&context, origin, method, &outcome);
        let response = outcome?;
        let body = response.result.to_response(id).map_err(|error| {
            Error::storage(format!("{method}: cannot serialize the result: {error}"))
        })?;
        Ok(Answer {
            body,
            on_delivered: response.on_delivered,
        })
    });
    tracing::debug!(method, %id, ok = outcome.is_ok(), elapsed = ?started.elapsed(), "done");
    outcome.unwrap_or_else(|error| Answer {
        body: error_body(id, &error),
        on_delivered: None,
    })
}
