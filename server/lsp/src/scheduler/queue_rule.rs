//! Which queue a request enters, as determined by its method and params.

use memchr::memmem;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use sightline_checkpoint::Oid;
use sightline_protocol::method::{Request as _, RestoreCheckpoint, UndoRestore};

use super::{Queue, TaskOrdering};
use crate::{
    checkpoint_registry::{CheckpointRegistry, named_root},
    session::Snapshot,
};

/// Params larger than this are not parsed on the reader thread, in bytes.
pub const LARGE_PARAMS: usize = 256 * 1024;

/// How a request is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRule {
    /// Runs concurrently.
    Pool,
    /// Requests that name a task run one at a time: they use its records, and clients may
    /// send several without waiting for responses.
    ByTask,
    /// Runs after earlier requests that name a task, because it reads all of them.
    Tasks,
    /// Runs after earlier requests that change the same workspace roots, as determined by
    /// its params.
    Roots,
}

impl QueueRule {
    /// Returns the queue of a request.
    pub fn queue(
        self,
        method: &str,
        snapshot: &Snapshot,
        registry: &CheckpointRegistry,
        params: &str,
    ) -> Queue {
        match self {
            Self::Tasks => Queue::Tasks,
            Self::ByTask if names_task(params) => Queue::Tasks,
            Self::Roots => {
                let params = Some(params).filter(|params| params.len() <= LARGE_PARAMS);
                roots_queue(method, snapshot, registry, params)
            }
            Self::Pool | Self::ByTask => Queue::Pool,
        }
    }
}

/// The params that determine the queue of a request.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct QueueParams {
    root: Value,
    id: Value,
    undo_id: Value,
    all_roots: Value,
    mode: Value,
    task_id: Value,
}

/// Returns the queue for a request that changes roots: the roots named by its params,
/// or all roots if they cannot be determined without reading the disk. `params` is
/// `None` if they are too large to parse here.
pub fn roots_queue(
    method: &str,
    snapshot: &Snapshot,
    registry: &CheckpointRegistry,
    params: Option<&str>,
) -> Queue {
    let parsed = match params.map(serde_json::from_str::<Option<QueueParams>>) {
        Some(Ok(parsed)) => parsed.unwrap_or_default(),
        Some(Err(_)) | None => QueueParams::default(),
    };
    let roots = snapshot.access.roots();
    let by_name = parsed.root.as_str();
    let by_name = by_name.and_then(|name| Some(vec![named_root(roots, name).ok()?]));
    let by_id = || {
        let id: Oid = parsed
            .id
            .as_str()
            .or(parsed.undo_id.as_str())?
            .parse()
            .ok()?;
        let known = registry.known_root(&id)?;
        let mut all = roots.as_slice().iter();
        let found = all.position(|root| root.canonical.as_path() == known)?;
        (method == RestoreCheckpoint::NAME && parsed.all_roots != true).then(|| vec![found])
    };
    let all = || (0..roots.as_slice().len()).collect();
    let changed: Vec<usize> = by_name.or_else(by_id).unwrap_or_else(all);
    let files_only = parsed.mode.is_null() || parsed.mode == "files";
    Queue::Roots {
        roots: changed
            .into_iter()
            .filter_map(|index| Some(roots.get(index)?.canonical.as_path().to_owned()))
            .collect(),
        tasks: if method == UndoRestore::NAME || !files_only || params.is_none() {
            // The restore to undo may have rewound a conversation.
            TaskOrdering::BlocksTasks
        } else if parsed.task_id.is_null() {
            TaskOrdering::Unordered
        } else {
            TaskOrdering::AfterTasks
        },
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskIdField {
    #[serde(default)]
    task_id: Option<IgnoredAny>,
}

/// Returns whether params name a task. Large params are not parsed here: any occurrence
/// of the key, or of an escape that may be part of it, counts.
fn names_task(params: &str) -> bool {
    if params.len() > LARGE_PARAMS {
        let may_contain = |what: &[u8]| memmem::find(params.as_bytes(), what).is_some();
        return may_contain(b"\"taskId\"") || may_contain(b"\\u00");
    }
    match serde_json::from_str::<Option<TaskIdField>>(params) {
        Ok(names) => names.is_some_and(|names| names.task_id.is_some()),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_is_found_in_any_spelling() {
        let long = "x".repeat(LARGE_PARAMS);
        for text in ["", &long] {
            for key in ["taskId", r"task\u0049d"] {
                let params = format!(r#"{{"texts":["{text}"],"{key}":"a"}}"#);
                assert!(names_task(&params), "{key}");
            }
            assert!(!names_task(&format!(r#"{{"texts":["{text}"]}}"#)));
        }
    }
}
