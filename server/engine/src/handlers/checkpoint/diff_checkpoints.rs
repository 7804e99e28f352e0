//! `sightline/diffCheckpoints`.

use super::{
    checkpoint_context::CheckpointContext,
    reference::{Reference, TurnSide},
};
use crate::{error::Error, request_context::RequestContext};
use sightline_base::limits;
use sightline_checkpoint::{
    Side,
    diff::{self, DiffOptions, FileDiff},
};
use sightline_protocol::checkpoint::{
    DiffCheckpointsParams, DiffCheckpointsResult, FileDifference,
};

/// `sightline/diffCheckpoints`.
pub fn run(
    context: &RequestContext<'_>,
    params: DiffCheckpointsParams,
) -> Result<DiffCheckpointsResult, Error> {
    let (contents, patch) = (params.contents, params.patch);
    let cx = CheckpointContext::begin(context, params.work_done_token.clone(), "Comparing")?;
    let (root, files) = differences(&cx, &params, contents || patch)?;
    let text = patch.then(|| String::from_utf8_lossy(&diff::patch(&files)).into_owned());
    let files = files
        .into_iter()
        .map(|file| difference(&cx, root, file, contents));
    Ok(DiffCheckpointsResult {
        files: files.collect(),
        text,
    })
}

/// Returns the differences as a unified diff, which may contain bytes that are not UTF-8.
///
/// # Errors
/// The errors of the request.
pub fn patch(
    context: &RequestContext<'_>,
    params: &DiffCheckpointsParams,
) -> Result<Vec<u8>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token.clone(), "Comparing")?;
    let (_, files) = differences(&cx, params, true)?;
    Ok(diff::patch(&files))
}

fn differences(
    cx: &CheckpointContext<'_>,
    params: &DiffCheckpointsParams,
    contents: bool,
) -> Result<(usize, Vec<FileDiff>), Error> {
    let named_root = params.root.as_deref();
    let from = cx.find(&params.from, named_root)?;
    let (root, store) = (from.root, from.store.clone());
    let side = Side::Checkpoint(from.checkpoint.id);
    let mut compared = vec![from];
    let newer = match (&params.to, Reference::parse(&params.from)?) {
        (Some(to), _) => match Reference::parse(to)? {
            Reference::Turn(name, TurnSide::After) => {
                cx.turn(&name, named_root)?.state(TurnSide::After)?
            }
            _ => Some(cx.find(to, named_root)?),
        },
        (None, Reference::Turn(name, TurnSide::Before)) => {
            cx.turn(&name, named_root)?.state(TurnSide::After)?
        }
        (None, _) => None,
    };
    let to = match newer {
        None => Side::WorkTree,
        Some(to) => {
            if to.root != root {
                return Err(Error::invalid(format!(
                    "{} and {} belong to different workspace folders",
                    params.from,
                    params.to.as_deref().unwrap_or_default()
                )));
            }
            let side = Side::Checkpoint(to.checkpoint.id);
            compared.push(to);
            side
        }
    };
    cx.require_known_paths(params.paths.as_deref(), &compared, true)?;
    let paths = cx.paths(root, params.paths.as_deref(), true)?;
    let options = DiffOptions {
        paths: paths.wanted().unwrap_or_default(),
        contents,
        max_file_bytes: limits::MAX_FILE_CONTENTS_BYTES,
        max_total_bytes: limits::MAX_DIFF_CONTENTS_BYTES,
    };
    let files = cx.with_job(&[root], &cx.request.cancel, |job| {
        store.diff(job, &side, &to, &options)
    })?;
    Ok((root, files))
}

fn difference(
    cx: &CheckpointContext<'_>,
    root: usize,
    file: FileDiff,
    contents: bool,
) -> FileDifference {
    let (path, encoded, uri) = cx.name(root, &file.path);
    let old = file.old_path.as_ref().map(|old| cx.name(root, old));
    let mut omitted = file.omitted.clone().filter(|_| contents || file.uncaptured);
    let mut text = |bytes: Option<Vec<u8>>| {
        let text = String::from_utf8(bytes.filter(|_| contents && !file.binary)?);
        let text = text.map_err(|_| "not UTF-8".to_owned());
        text.map_err(|why| omitted.get_or_insert(why).clone()).ok()
    };
    let (before, after) = (text(file.before), text(file.after));
    if contents && file.binary {
        omitted.get_or_insert_with(|| "not text".to_owned());
    }
    FileDifference {
        path,
        path_encoded: encoded || old.as_ref().is_some_and(|(_, encoded, _)| *encoded),
        old_path: old.map(|(path, ..)| path),
        status: file.status,
        binary: file.binary,
        additions: file.additions,
        deletions: file.deletions,
        before,
        after,
        hunks: if contents { file.hunks } else { Vec::new() },
        omitted,
        old_mode: file.modes.0.map(str::to_owned),
        new_mode: file.modes.1.map(str::to_owned),
        uri,
    }
}
