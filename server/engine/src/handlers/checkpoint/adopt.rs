//! The stores of all folders, for the command line: their list, and how a moved folder gets its store back.

use std::path::Path;

use sightline_checkpoint::FolderStore;

use super::checkpoint_context::CheckpointContext;
use crate::{error::Error, request_context::RequestContext};

/// Returns the named store, or those that may belong to the first root.
///
/// # Errors
/// `notFound`; `conflict` if the folder of the named store still exists.
pub fn moved_stores(
    context: &RequestContext<'_>,
    named: Option<&Path>,
) -> Result<Vec<FolderStore>, Error> {
    let cx = CheckpointContext::begin(context, None, "Searching")?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    Ok(match named {
        Some(named) => vec![checkpoints.store.find_store(named)?],
        None => checkpoints.store.moved_stores(),
    })
}

/// Returns the stores of all folders in the data directory.
///
/// # Errors
/// Core's errors.
pub fn all_stores(context: &RequestContext<'_>) -> Result<Vec<FolderStore>, Error> {
    let cx = CheckpointContext::begin(context, None, "Searching")?;
    Ok(cx.root_checkpoints(0)?.1.store.all_stores())
}

/// Adds the checkpoints of the store to those of the first root, and removes the store.
///
/// # Errors
/// Core's errors.
pub fn adopt(context: &RequestContext<'_>, store: &FolderStore) -> Result<(), Error> {
    let cx = CheckpointContext::begin(context, None, "Adopting checkpoints")?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    Ok(checkpoints.store.adopt(store, &context.cancel)?)
}
