//! `sightline/countTokens`.

use sightline_base::storage::TaskId;
use sightline_conversation::tokens::{self, Calibration};
use sightline_protocol::{
    environment::Usage,
    tokens::{CountTokensParams, CountTokensResult},
};
use sightline_tasks::{load_calibration, store_calibration};

use super::shared::{messages_to_send, raw};
use crate::{error::Error, request_context::TaskContext};

/// Upper bound for reported usage, in tokens.
const MOST_TOKENS: f64 = 1e9;

/// Counts tokens, calibrated by the usage reported for a task. With a task only, counts
/// what would be sent of its stored conversation.
pub fn run(
    context: &TaskContext<'_>,
    mut params: CountTokensParams,
) -> Result<CountTokensResult, Error> {
    let messages = std::mem::take(&mut params.messages);
    let stored = match &params.task_id {
        Some(task_id) if messages.is_empty() && params.texts.is_empty() => {
            let task = TaskId::new(task_id)?;
            let store = context.task_store()?;
            Some(store.load(&task, &context.cancel)?)
        }
        _ => None,
    };
    let all = stored.as_ref().map(|stored| stored.raw_messages());
    let outcome = match (&stored, &all) {
        (Some(stored), Some(all)) => Some(messages_to_send(context, stored, all)?),
        _ => None,
    };
    let sent = match (&outcome, &all) {
        (Some(outcome), Some(all)) => outcome.messages(all),
        _ => raw(&messages),
    };
    let count = |calibration: &Calibration| -> Result<CountTokensResult, Error> {
        let counter = context.counter();
        Ok(counter.count_request(&params, &sent, calibration, &context.cancel)?)
    };
    let calibration = match &params.task_id {
        None => Calibration::default(),
        Some(task_id) => {
            let task = TaskId::new(task_id)?;
            let task = context.storage()?.task(&task);
            match &params.usage {
                None => load_calibration(&task)?,
                Some(usage) => {
                    let counted = count(&Calibration::default())?.tokens;
                    let lock = task.lock()?;
                    let mut calibration = load_calibration(&task)?;
                    let family = tokens::requested_family(&params)?;
                    calibration.observe(family, input_tokens(usage)?, counted);
                    store_calibration(&calibration, &lock)?;
                    calibration
                }
            }
        }
    };
    count(&calibration)
}

/// Returns the tokens of the request, without the response.
fn input_tokens(usage: &Usage) -> Result<u64, Error> {
    let parts = [usage.tokens_in, usage.cache_writes, usage.cache_reads];
    let all: f64 = parts.into_iter().flatten().sum();
    if !(0.0..=MOST_TOKENS).contains(&all) {
        let message =
            format!("usage reports {all} input tokens; it must be between 0 and {MOST_TOKENS}");
        return Err(Error::invalid(message));
    }
    Ok(all.round() as u64)
}
