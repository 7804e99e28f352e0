//! Transfers checkpoints to or from a git remote, for the command line.

pub mod commit_checkpoint;

use super::checkpoint_context::CheckpointContext;
use crate::{error::Error, request_context::RequestContext};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the remote.
    Push,
    /// From the remote.
    Fetch,
}

/// Transfers the checkpoints of the first root to or from a git remote. Returns git's
/// output.
///
/// # Errors
/// Core's errors.
pub fn transfer(
    context: &RequestContext<'_>,
    direction: Direction,
    remote: &str,
) -> Result<String, Error> {
    let title = match direction {
        Direction::Push => "Pushing checkpoints",
        Direction::Fetch => "Fetching checkpoints",
    };
    let cx = CheckpointContext::begin(context, None, title)?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    Ok(match direction {
        Direction::Push => checkpoints.store.push(remote, &context.cancel),
        Direction::Fetch => cx.with_job(&[0], &context.cancel, |job| {
            checkpoints.store.fetch(remote, job)
        }),
    }?)
}
