//! `sightline/blame`.

use std::io::Read;

use sightline_base::{
    limits,
    path::{AbsPath, Location, RelPath},
};
use sightline_checkpoint::diff::is_binary;
use sightline_protocol::{
    checkpoint::{BlameParams, BlameResult},
    error::ErrorKind,
};

use super::super::checkpoint_context::{CheckpointContext, Paths, selected_roots};
use crate::{error::Error, request_context::RequestContext};

/// `sightline/blame`.
pub fn run(context: &RequestContext<'_>, params: BlameParams) -> Result<BlameResult, Error> {
    let cx = CheckpointContext::begin(context, None, "Reading checkpoints")?;
    let (root, rel) = located(&cx, &params)?;
    let location = Location::Inside {
        root,
        rel: rel.clone(),
    };
    let mut content = Vec::new();
    let mut file = cx.view.open_for_read(&location, false)?;
    let limit = limits::MAX_FILE_CONTENTS_BYTES;
    let read = file.by_ref().take(limit + 1).read_to_end(&mut content);
    let refused = |kind, why: String| {
        Err(Error::new(kind, format!("cannot read {}: {why}", params.path)).with_path(&params.path))
    };
    if let Err(error) = read {
        return refused(ErrorKind::Unsupported, error.to_string());
    }
    if content.len() as u64 > limit {
        return refused(
            ErrorKind::TooLarge,
            format!("it has more than {limit} bytes"),
        );
    }
    if is_binary(&content) {
        return refused(ErrorKind::Unsupported, "it is a binary file".to_owned());
    }
    let (_, checkpoints) = cx.root_checkpoints(root)?;
    let lines = cx.with_job(&[root], &context.cancel, |job| {
        checkpoints.store.blame(job, &rel, &content)
    })?;
    Ok(BlameResult { lines })
}

/// Returns the file without links, which checkpoints do not follow.
fn located(cx: &CheckpointContext<'_>, params: &BlameParams) -> Result<(usize, RelPath), Error> {
    let location = match params.root.as_deref() {
        None => cx.roots().locate(&params.path)?,
        Some(name) => {
            let root = selected_roots(cx.roots(), Some(name))?[0];
            let paths = cx.paths(root, Some(std::slice::from_ref(&params.path)), true)?;
            match paths {
                Paths::Some(mut paths) if paths.len() == 1 => Location::Inside {
                    root,
                    rel: paths.remove(0),
                },
                _ => cx.roots().locate(&params.path)?,
            }
        }
    };
    cx.view.require(&location, false)?;
    let place = cx.roots().absolute(&location);
    let real = sightline_base::path::canonicalize(place.as_path())
        .ok()
        .and_then(|real| AbsPath::new(&real));
    // The folder itself may be below a link.
    let real = real.map(|real| cx.roots().place(real));
    match (real, location) {
        (Some(Location::Inside { root, rel }), _) | (_, Location::Inside { root, rel }) => {
            Ok((root, rel))
        }
        _ => Err(Error::invalid(format!(
            "{} is in no workspace folder",
            params.path
        ))),
    }
}
