//! `sightline/truncateHistory`, `rollbackHistory`, `classifyError`: what of a
//! conversation is sent.
//!
//! With messages they keep nothing; with a task alone they work on its stored
//! conversation and store the outcome.

use serde_json::{Number, value::RawValue};
use sightline_core::{
    conversation::{self, Action, ContextHistory, DeletedRange, Outcome, Request},
    error::Error,
    tokens::Family,
};
use sightline_protocol::{
    conversation::{
        ClassifyErrorParams, ClassifyErrorResult, RollbackHistoryParams, RollbackHistoryResult,
        TokenChange, TruncateHistoryParams,
    },
    method::{Request as _, TruncateHistory},
};

use super::{Answer, Context, tracking::now, written};

/// `sightline/truncateHistory`.
pub fn truncate(
    context: &Context<'_>,
    params: TruncateHistoryParams,
    messages: Option<&[&RawValue]>,
) -> Answer {
    let Some(messages) = messages else {
        return Err(Error::invalid("stored tasks come next"));
    };
    let history = match &params.context_history {
        Some(value) => ContextHistory::from_value(value.clone())?,
        None => ContextHistory::default(),
    };
    let range = params.deleted_range.map(DeletedRange);
    let outcome = decide(context, &params, messages, range, history.clone())?;
    let mut answer = outcome.answer(messages, params.reply);
    if params.count_tokens {
        let tokens = token_change(context, &params, messages, range, history, &outcome)?;
        answer.result.tokens = Some(tokens);
    }
    written(TruncateHistory::NAME, &answer)
}

/// What is sent, by the settings of the session.
fn decide(
    context: &Context<'_>,
    params: &TruncateHistoryParams,
    messages: &[&RawValue],
    deleted_range: Option<DeletedRange>,
    history: ContextHistory,
) -> Result<Outcome, Error> {
    let settings = &context.snapshot.settings.conversation;
    let time = match &params.previous_request {
        Some(request) => request.ts.clone(),
        None => Number::from(now()),
    };
    let request = Request {
        messages,
        deleted_range,
        history,
        action: Action::of(params, settings.window(&params.model)),
        time: &time,
        profile: settings.profile,
        notices: &settings.notices,
    };
    conversation::truncate(request, &context.cancel)
}

/// Tokens of what would have been sent, and of what is.
fn token_change(
    context: &Context<'_>,
    params: &TruncateHistoryParams,
    messages: &[&RawValue],
    deleted_range: Option<DeletedRange>,
    history: ContextHistory,
    outcome: &Outcome,
) -> Result<TokenChange, Error> {
    let settings = &context.snapshot.settings.conversation;
    let before = conversation::truncate(
        Request {
            messages,
            deleted_range,
            history,
            action: Action::Apply,
            time: &Number::from(0),
            profile: settings.profile,
            notices: &settings.notices,
        },
        &context.cancel,
    )?;
    let count = |outcome: &Outcome| -> Result<u64, Error> {
        let sent = outcome.messages(messages);
        let family = Family::of_model(params.model.id());
        let counts = context
            .server
            .counter()
            .messages(&sent, family, &context.cancel)?;
        Ok(counts.total.tokens)
    };
    Ok(TokenChange {
        before: count(&before)?,
        after: count(outcome)?,
    })
}

/// `sightline/rollbackHistory`.
pub fn rollback(
    _context: &Context<'_>,
    params: RollbackHistoryParams,
) -> Result<RollbackHistoryResult, Error> {
    let Some(value) = params.context_history else {
        return Err(Error::invalid("stored tasks come next"));
    };
    let mut history = ContextHistory::from_value(value)?;
    history.rollback(&params.timestamp);
    Ok(RollbackHistoryResult {
        context_history: history.into_value(),
    })
}

/// `sightline/classifyError`.
pub fn classify_error(
    _context: &Context<'_>,
    params: ClassifyErrorParams,
) -> Result<ClassifyErrorResult, Error> {
    Ok(conversation::classify(
        params.provider.as_deref(),
        &params.error,
    ))
}
