//! Imports checkpoints and transfers them to or from a git remote, for the command line.

use super::checkpoint_context::CheckpointContext;
use crate::{error::Error, request_context::RequestContext};
use sightline_checkpoint::cline_import::Imported;
use sightline_protocol::error::ErrorKind;
use std::path::PathBuf;

/// Imports the checkpoints of another tool into the first root, from a shadow repository
/// or from the tool's data directory.
///
/// # Errors
/// `notFound` if there are none, and core's errors.
pub fn import(context: &RequestContext<'_>, places: &[PathBuf]) -> Result<Imported, Error> {
    let cx = CheckpointContext::begin(context, None, "Importing checkpoints")?;
    let (root, checkpoints) = cx.root_checkpoints(0)?;
    let shadow = places.iter().find_map(|place| {
        let is_repository = place.join(".git").exists() || place.join("HEAD").exists();
        let within = || checkpoints.store.shadow_repository(place);
        is_repository.then(|| place.clone()).or_else(within)
    });
    let shadow = shadow.ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        let why = format!(
            "no checkpoints of {} found in {}; name the directory that contains them",
            root.path.display(),
            places.join(", ")
        );
        Error::new(ErrorKind::NotFound, why)
    })?;
    Ok(cx.with_job(0, &context.cancel, |job| {
        checkpoints.store.import(job, &shadow)
    })?)
}

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
        Direction::Fetch => cx.with_job(0, &context.cancel, |job| {
            checkpoints.store.fetch(remote, job)
        }),
    }?)
}
