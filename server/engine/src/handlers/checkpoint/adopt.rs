//! Takes over the store of a folder that was moved, for the command line.

use std::path::Path;

use sightline_checkpoint::MovedStore;

use super::checkpoint_context::CheckpointContext;
use crate::{error::Error, request_context::RequestContext};

/// Returns the named store, or those that may belong to the first root.
///
/// # Errors
/// `notFound`; `conflict` if the folder of the named store still exists.
pub fn moved_stores(
    context: &RequestContext<'_>,
    named: Option<&Path>,
) -> Result<Vec<MovedStore>, Error> {
    let cx = CheckpointContext::begin(context, None, "Searching")?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    Ok(match named {
        Some(named) => vec![checkpoints.store.find_store(named)?],
        None => checkpoints.store.moved_stores(),
    })
}

/// Adds the checkpoints of the store to those of the first root, and removes the store.
///
/// # Errors
/// Core's errors.
pub fn adopt(context: &RequestContext<'_>, store: &MovedStore) -> Result<(), Error> {
    let cx = CheckpointContext::begin(context, None, "Adopting checkpoints")?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    Ok(checkpoints.store.adopt(store, &context.cancel)?)
}
