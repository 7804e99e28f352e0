//! `sightline/listCheckpoints`.

pub mod blame;
mod turns;

use super::{
    checkpoint_context::CheckpointContext,
    shared::{groups, to_wire},
};
use crate::{error::Error, request_context::RequestContext};
use sightline_base::{path::Location, storage::TaskId};
use sightline_checkpoint::{Checkpoint as StoredCheckpoint, Filter, Related};
use sightline_protocol::checkpoint::{Checkpoint, ListCheckpointsParams, ListCheckpointsResult};
use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::Arc,
};

pub use turns::list_turns;

/// `sightline/listCheckpoints`.
pub fn run(
    context: &RequestContext<'_>,
    params: ListCheckpointsParams,
) -> Result<ListCheckpointsResult, Error> {
    let task = params.task_id.as_deref().map(TaskId::new).transpose()?;
    let cx = CheckpointContext::begin(context, None, "Listing checkpoints")?;
    let limit = params.limit.map(|limit| limit as usize);
    let mut filter = Filter {
        task,
        limit,
        ..Filter::default()
    };
    let root = params.root.as_deref();
    let mut listed = if let Some(id) = &params.id {
        let found = cx.find(id, root)?;
        vec![(found.root, found.checkpoint)]
    } else if let Some(path) = &params.path {
        let location = cx.roots().locate(path)?;
        cx.view.require(&location, true)?;
        let Location::Inside { root, rel } = location else {
            return Err(Error::invalid(format!("{path} is outside the workspace")));
        };
        filter.path = Some(rel);
        cx.list_root(root, &filter)?
    } else {
        cx.list(root, &filter)?
    };
    listed.truncate(limit.unwrap_or(usize::MAX));
    let is_grouped = |(_, stored): &(usize, Arc<StoredCheckpoint>)| stored.metadata.group.is_some();
    let groups = if listed.iter().any(is_grouped) {
        groups(&cx)?
    } else {
        BTreeMap::new()
    };
    let mut related: HashMap<usize, Related> = HashMap::new();
    let checkpoints = listed.iter().map(|(root, stored)| {
        let related = match related.entry(*root) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                unknown.insert(cx.root_checkpoints(*root)?.1.store.related()?)
            }
        };
        let mut checkpoint = to_wire(&cx.view, *root, stored, related);
        let group = stored.metadata.group.as_ref();
        let members = group.and_then(|group| groups.get(group));
        checkpoint.group = members.filter(|members| members.len() > 1).cloned();
        Ok(checkpoint)
    });
    let checkpoints: Vec<Checkpoint> = checkpoints.collect::<Result<_, Error>>()?;
    Ok(ListCheckpointsResult { checkpoints })
}
