//! Files of `sightline task export` and `import`.

use std::{cell::Cell, path::Path};

use serde::Serialize;
use serde_json::Value;
use sightline_access::AccessView;
use sightline_access::redact::names_denied_file;
use sightline_base::{cancel::Cancel, clock::now_millis, storage::TaskId};
use sightline_engine::error::Error;

use super::super::{Workspace, print_message, requests::Requests};

/// Exports a stored task as JSON. Unless `all` is set, records of denied files are
/// omitted. Messages are exported unchanged, with a warning if they name a denied file.
pub(super) fn export(workspace: &Workspace, id: &str, all: bool) -> Result<String, Error> {
    let task = TaskId::new(id)?;
    let cancel = Cancel::default();
    let requests = Requests::offline(workspace);
    let context = requests.offline_server()?.context();
    let store = context.task_store()?;
    let view = context.view();
    let left_out = Cell::new(0_u64);
    let may_name = |path: &str| {
        let location = view.roots().locate(path);
        let keep = all || location.is_ok_and(|place| view.require(&place, true).is_ok());
        left_out.set(left_out.get() + u64::from(!keep));
        keep
    };
    let text = store.export_json(&task, &may_name, &cancel)?;
    match left_out.get() {
        0 => {}
        1 => print_message("1 record of a denied file was omitted; use --all to include it"),
        count => print_message(&format!(
            "{count} records of denied files were omitted; use --all to include them"
        )),
    }
    if !all && names_denied(&view, &serde_json::from_str(&text).unwrap_or_default()) {
        print_message(
            "messages are exported unchanged: they name denied files and may contain their \
             contents",
        );
    }
    Ok(text)
}

/// Returns whether a text in an exported task names a file that access rules deny.
fn names_denied(view: &AccessView, value: &Value) -> bool {
    match value {
        Value::String(text) => names_denied_file(view, text),
        Value::Array(values) => values.iter().any(|value| names_denied(view, value)),
        Value::Object(fields) => fields.values().any(|value| names_denied(view, value)),
        _ => false,
    }
}

/// An imported task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportedTask {
    pub(super) message_count: u64,
    pub(super) problems: Vec<String>,
    pub(super) task_id: String,
}

/// Imports a task.
pub(super) fn import(
    workspace: &Workspace,
    source: &Path,
    id: Option<&str>,
) -> Result<ImportedTask, Error> {
    let id = id.map(TaskId::new).transpose()?;
    let requests = Requests::offline(workspace);
    let store = requests.offline_server()?.context().task_store()?;
    let imported = store.import(source, id.as_ref(), now_millis(), &Cancel::default())?;
    Ok(ImportedTask {
        message_count: imported.messages,
        problems: imported.problems,
        task_id: imported.task_id.as_str().to_owned(),
    })
}
