//! `sightline/applyCompaction`.

use sightline_conversation::compaction::{self, CompactionInput};
use sightline_protocol::{
    compaction::{ApplyCompactionParams, ApplyCompactionResult},
    error::ErrorKind,
    task::MessageMeta,
};
use sightline_tasks::{CommitResult, CompactedMessage, Compaction};

use super::shared::{StoredTask, stored_task, with_conversation};
use crate::{
    error::Error,
    handlers::conversation::shared::{entry_meta, raw},
    request_context::TaskContext,
    services::active_tasks::PlannedCompaction,
};

/// Number of attempts while other requests write to the task.
const ATTEMPTS: usize = 5;

/// Compacts a conversation, given or stored.
pub fn run(
    context: &TaskContext<'_>,
    mut params: ApplyCompactionParams,
) -> Result<ApplyCompactionResult, Error> {
    let messages = params.messages.take();
    let messages = messages.as_deref().map(raw);
    let messages = messages.as_deref();
    let apply = |conversation: &CompactionInput<'_>| {
        let applied = compaction::apply(conversation, &params, &context.cancel)?;
        Ok::<_, Error>((
            applied,
            conversation
                .items
                .iter()
                .map(|item| item.index)
                .collect::<Vec<_>>(),
        ))
    };
    let Some(task) = stored_task(params.task_id.as_deref(), messages)? else {
        let model = params.model.as_ref();
        return with_conversation(context, messages, None, model, |conversation| {
            let (applied, _) = apply(conversation)?;
            Ok(applied.into_result(conversation.items))
        });
    };
    let store = context.task_store()?;
    for _ in 0..ATTEMPTS {
        let stored = StoredTask::load(context, &task)?;
        // The planned model, else the recorded one.
        let planned = context.active_tasks().plan(&task);
        let compactions = stored.conversation.info.compactions;
        let is_stale = |planned: &PlannedCompaction| planned.compactions != compactions;
        if params.retain_from.is_some() && planned.as_ref().is_some_and(is_stale) {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("task {task} was compacted after this plan was made; plan again"),
            ));
        }
        let model = planned.as_ref().map(|planned| &planned.model);
        let model = params.model.as_ref().or(model);
        let model = model.or(stored.model.as_ref());
        let outcome = with_conversation(context, None, Some(&stored), model, |conversation| {
            let (applied, indexes) = apply(conversation)?;
            let answer = applied.clone().into_result(conversation.items);
            let Some(first) = &applied.first else {
                // Nothing was removed, so there is nothing to store.
                return Ok((answer, CommitResult::Stored));
            };
            let summary = CompactedMessage {
                message: first,
                source: applied.fallback.then(|| indexes.first().copied()).flatten(),
            };
            let kept = conversation.items.iter().skip(applied.retained);
            let kept = kept.map(|item| CompactedMessage {
                message: item.message,
                source: Some(item.index),
            });
            let compaction = Compaction {
                trigger: params.trigger,
                pre_tokens: applied.pre_tokens,
                post_tokens: applied.post_tokens,
                fallback_reason: applied.fallback_reason.clone(),
                messages: std::iter::once(summary).chain(kept).collect(),
            };
            let meta = entry_meta(context, MessageMeta::default());
            let seen = &stored.conversation;
            let decided = store.compact(&task, seen, &compaction, &meta, &context.cancel)?;
            Ok((answer, decided))
        })?;
        // Messages were added concurrently: retry with them.
        if let (answer, CommitResult::Stored) = outcome {
            return Ok(answer);
        }
    }
    Err(Error::new(
        ErrorKind::Busy,
        format!("task {task} is being written to; try again later"),
    ))
}
