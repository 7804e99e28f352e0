//! `sightline/rollbackHistory`.

use sightline_base::storage::TaskId;
use sightline_conversation::ContextHistory;
use sightline_protocol::{
    conversation::{RollbackHistoryParams, RollbackHistoryResult},
    task::MessageMeta,
};

use super::shared::entry_meta;
use crate::{error::Error, request_context::TaskContext};

/// Removes the edits that were made after a time.
pub fn run(
    context: &TaskContext<'_>,
    params: RollbackHistoryParams,
) -> Result<RollbackHistoryResult, Error> {
    let history = match (params.context_history, &params.task_id) {
        (Some(value), _) => {
            let mut history = ContextHistory::from_value(value)?;
            history.rollback(&params.timestamp);
            history
        }
        (None, Some(task_id)) => {
            let task = TaskId::new(task_id)?;
            let store = context.task_store()?;
            let meta = entry_meta(context, MessageMeta::default());
            store.rollback(&task, &params.timestamp, &meta, &context.cancel)?
        }
        (None, None) => {
            return Err(Error::invalid(
                "sightline/rollbackHistory: contextHistory or taskId is required",
            ));
        }
    };
    Ok(RollbackHistoryResult {
        context_history: history.into_value(),
    })
}
