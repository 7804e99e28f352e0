//! `sightline/truncateHistory`: which part of a conversation is sent.

use serde_json::{Number, value::RawValue};
use sightline_base::{clock::now_millis, storage::TaskId};
use sightline_conversation::{
    self as conversation, ContextHistory, DeletedRange, Outline, TruncateAction, TruncateOutcome,
    TruncateRequest, tokens::Family,
};
use sightline_protocol::{
    conversation::{
        Message, TokenChange, TruncateHistoryParams, TruncateHistoryResult, TruncateReply,
    },
    task::MessageMeta,
};
use sightline_tasks::{CommitResult, TruncationState};

use super::shared::{entry_meta, owned, raw};
use crate::{error::Error, request_context::TaskContext, settings::models::context_window};

/// Truncates a conversation, given or stored.
pub fn run(
    context: &TaskContext<'_>,
    mut params: TruncateHistoryParams,
) -> Result<TruncateHistoryResult, Error> {
    let Some(messages) = params.messages.take() else {
        return truncate_stored(context, params);
    };
    let given = raw(&messages);
    let history = match &params.context_history {
        Some(value) => ContextHistory::from_value(value.clone())?,
        None => ContextHistory::default(),
    };
    let range = params.deleted_range.map(DeletedRange);
    let outcome = decide(context, &params, (&given, None), range, history.clone())?;
    let mut result = outcome.response(&given, params.reply).result;
    if params.count_tokens {
        let tokens = token_change(context, &params, &given, range, history, &outcome)?;
        result.tokens = Some(tokens);
    }
    if params.reply == TruncateReply::Messages {
        result.messages = Some(sent_messages(outcome, messages));
    }
    Ok(result)
}

/// Returns the messages to send. Unchanged ones are moved, because a conversation is
/// megabytes.
fn sent_messages(outcome: TruncateOutcome, messages: Vec<Message>) -> Vec<Message> {
    let mut messages: Vec<Option<Message>> = messages.into_iter().map(Some).collect();
    let sent = outcome.sent.into_iter();
    sent.filter_map(|sent| match sent.edited {
        Some(edited) => Some(Message(edited)),
        None => messages.get_mut(sent.index)?.take(),
    })
    .collect()
}

/// Truncates a stored conversation and stores the decision.
fn truncate_stored(
    context: &TaskContext<'_>,
    params: TruncateHistoryParams,
) -> Result<TruncateHistoryResult, Error> {
    let Some(task_id) = &params.task_id else {
        return Err(Error::invalid(
            "sightline/truncateHistory: messages or taskId is required",
        ));
    };
    let task = TaskId::new(task_id)?;
    context.active_tasks().touch(&task);
    let store = context.task_store()?;
    let mut seen = store.load(&task, &context.cancel)?;
    loop {
        let messages = seen.raw_messages();
        let TruncationState {
            deleted_range,
            history,
        } = seen.truncation.as_ref().clone();
        let outlines = seen.outlines();
        let conversation = (&*messages, Some(&*outlines));
        let outcome = decide(
            context,
            &params,
            conversation,
            deleted_range,
            history.clone(),
        )?;
        let truncation = TruncationState {
            deleted_range: outcome.deleted_range,
            history: outcome.history.clone(),
        };
        let meta = entry_meta(context, MessageMeta::default());
        let time = time(&params);
        let stored =
            store.store_truncation(&task, &seen, &truncation, &time, &meta, &context.cancel)?;
        if let CommitResult::Conflict(now) = stored {
            seen = now;
            continue;
        }
        let answer = outcome.response(&messages, params.reply);
        let mut result = answer.result;
        result.messages = answer.messages.as_deref().map(owned);
        if params.count_tokens {
            let range = deleted_range;
            let tokens = token_change(context, &params, &messages, range, history, &outcome)?;
            result.tokens = Some(tokens);
        }
        return Ok(result);
    }
}

/// Returns the time recorded for new edits.
fn time(params: &TruncateHistoryParams) -> Number {
    let previous = params.previous_request.as_ref();
    previous.map_or_else(|| Number::from(now_millis()), |request| request.ts.clone())
}

/// Applies the truncation with the session's settings.
fn decide(
    context: &TaskContext<'_>,
    params: &TruncateHistoryParams,
    (messages, outlines): (&[&RawValue], Option<&[&Outline]>),
    deleted_range: Option<DeletedRange>,
    history: ContextHistory,
) -> Result<TruncateOutcome, Error> {
    let settings = &context.snapshot.settings.conversation;
    let time = time(params);
    let request = TruncateRequest {
        messages,
        deleted_range,
        history,
        action: TruncateAction::from_params(params, context_window(settings, &params.model)),
        time: &time,
        settings,
    };
    Ok(match outlines {
        Some(outlines) => conversation::truncate_scanned(request, outlines, &context.cancel)?,
        None => conversation::truncate(request, &context.cancel)?,
    })
}

/// Counts the tokens before and after the truncation.
fn token_change(
    context: &TaskContext<'_>,
    params: &TruncateHistoryParams,
    messages: &[&RawValue],
    deleted_range: Option<DeletedRange>,
    history: ContextHistory,
    outcome: &TruncateOutcome,
) -> Result<TokenChange, Error> {
    let before = conversation::truncate(
        TruncateRequest {
            messages,
            deleted_range,
            history,
            action: TruncateAction::Apply,
            time: &Number::from(0),
            settings: &context.snapshot.settings.conversation,
        },
        &context.cancel,
    )?;
    let count = |outcome: &TruncateOutcome| -> Result<u64, Error> {
        let sent = outcome.messages(messages);
        let family = Family::of_model(params.model.id());
        let counts = context.counter().messages(&sent, family, &context.cancel)?;
        Ok(counts.tokens)
    };
    Ok(TokenChange {
        before: count(&before)?,
        after: count(outcome)?,
    })
}
