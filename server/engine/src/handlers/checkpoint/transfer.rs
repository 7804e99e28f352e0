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

/// Transfers the checkpoints of the first root to or from a git remote. Returns the number of new ones
/// there, and the reasons for those that were left out.
///
/// # Errors
/// Core's errors.
pub fn transfer(
    context: &RequestContext<'_>,
    direction: Direction,
    remote: &str,
) -> Result<(usize, Vec<String>), Error> {
    let title = match direction {
        Direction::Push => "Pushing checkpoints",
        Direction::Fetch => "Fetching checkpoints",
    };
    let cx = CheckpointContext::begin(context, None, title)?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    let store = &checkpoints.store;
    Ok(match direction {
        Direction::Push => (store.push(remote, &context.cancel)?, Vec::new()),
        Direction::Fetch => cx.with_job(&[0], &context.cancel, |job| store.fetch(remote, job))?,
    })
}
