//! `sightline/planCompaction`.

use sightline_conversation::compaction;
use sightline_protocol::compaction::{PlanCompactionParams, PlanCompactionResult};

use super::shared::{StoredTask, stored_task, with_conversation};
use crate::{
    error::Error, handlers::conversation::shared::raw, request_context::TaskContext,
    services::active_tasks::PlannedCompaction,
};

/// Plans a compaction: what is kept, and the prompt for the summary.
pub fn run(
    context: &TaskContext<'_>,
    mut params: PlanCompactionParams,
) -> Result<PlanCompactionResult, Error> {
    let messages = params.messages.take();
    let messages = messages.as_deref().map(raw);
    let messages = messages.as_deref();
    let task = stored_task(params.task_id.as_deref(), messages)?;
    let stored = match &task {
        Some(task) => Some(StoredTask::load(context, task)?),
        None => None,
    };
    let plan = with_conversation(
        context,
        messages,
        stored.as_ref(),
        Some(&params.model),
        |conversation| Ok(compaction::plan(conversation, &params, &context.cancel)?),
    )?;
    if let (Some(task), Some(stored)) = (&task, &stored) {
        let plan = PlannedCompaction {
            model: params.model.clone(),
            compactions: stored.conversation.info.compactions,
        };
        context.active_tasks().set_plan(task, plan);
    }
    Ok(plan)
}
