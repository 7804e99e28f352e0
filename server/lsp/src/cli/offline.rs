//! Answers requests without an editor.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use sightline_protocol::error::ErrorKind;
use sightline_workspace::{
    access::{AccessView, RULE_FILE},
    cancel::Cancel,
    clock::now_millis,
    environment::names_denied_file,
    error::Error,
    escape::one_line,
    path::{AbsPath, Root},
    storage::TaskId,
};

use super::{
    DONE, NEGATIVE, Workspace, ask_running_server::Attached, conversations::ExportFormat, print,
    print_message, print_result, progress_bar,
};
use crate::{
    connection::client::Client,
    dispatch,
    request_context::RequestContext,
    scheduler::JobSender,
    services::Services,
    session::{Session, Snapshot},
    settings::Source,
};

/// Runs a request on the workspace, from disk.
///
/// # Errors
/// The request's errors.
pub(super) fn call(workspace: &Workspace, method: &str, mut params: Value) -> Result<Value, Error> {
    if let Value::Object(fields) = &mut params {
        fields.retain(|_, value| !value.is_null());
    }
    let result = call_text(workspace, method, &params.to_string())?;
    serde_json::from_str(&result).map_err(super::internal)
}

/// Like [`call`], with params and result as JSON text.
///
/// # Errors
/// The request's errors.
pub(super) fn call_text(
    workspace: &Workspace,
    method: &str,
    params: &str,
) -> Result<String, Error> {
    with_server(workspace, |server| answer(server, method, params))
}

/// A server without a client: the services, and the session of one workspace.
pub(super) struct OfflineServer {
    pub(super) services: Arc<Services>,
    snapshot: Snapshot,
}

impl OfflineServer {
    fn new(workspace: &Workspace, runtime: tokio::runtime::Handle) -> Result<Self, Error> {
        let mut services = Services::new(Client::closed(), JobSender::closed(), runtime);
        services.progress_listener = progress_bar::listener().map(Arc::new);
        let mut session = Session::offline(root(workspace)?);
        if let Some(storage) = &workspace.storage {
            let storage = absolute_path(storage)?;
            let settings = json!({ "storage": { "path": storage.as_path() } });
            session.configure(Source::InitializationOptions, &settings);
        }
        Ok(Self {
            services: Arc::new(services),
            snapshot: session.snapshot(),
        })
    }

    /// Creates the context of a request.
    pub(super) fn context(&self) -> RequestContext<'_> {
        RequestContext::new(&self.services, self.snapshot.clone())
    }
}

/// Runs a request on a server without a client.
///
/// # Errors
/// The request's errors.
pub(super) fn answer(server: &OfflineServer, method: &str, params: &str) -> Result<String, Error> {
    let route = dispatch::request(method)
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("no handler for {method}")))?;
    let response = (route.parse)(params).run(&server.context())?;
    response.result.to_json().map_err(super::internal)
}

/// Runs `work` with a server without a client.
pub(super) fn with_server<T>(
    workspace: &Workspace,
    work: impl FnOnce(&OfflineServer) -> Result<T, Error>,
) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .map_err(|error| Error::storage(format!("cannot start threads: {error}")))?;
    let server = OfflineServer::new(workspace, runtime.handle().clone())?;
    let done = work(&server);
    // The process is about to exit, so the caches need not be freed.
    std::mem::forget(server);
    done
}

/// `sightline access`.
pub(super) fn access(
    workspace: &Workspace,
    live: &Attached,
    paths: &[String],
    command: Option<String>,
) -> Result<i32, Error> {
    let mut absolute_paths = Vec::new();
    for path in paths {
        let mut full = absolute(path)?;
        // A trailing slash marks a path as a folder, even if it does not exist.
        if path.ends_with('/') && !full.ends_with('/') {
            full.push('/');
        }
        absolute_paths.push(full);
    }
    let params = json!({ "paths": absolute_paths, "command": command });
    let (mut result, _) = live.call(workspace, "sightline/checkAccess", params)?;
    // Output uses the paths as given, in the same order.
    let mut refused = false;
    let mut lines = String::new();
    for (asked, verdict) in paths
        .iter()
        .zip(result["paths"].as_array_mut().into_iter().flatten())
    {
        verdict["path"] = Value::from(asked.as_str());
        refused |= verdict["access"] != "allowed";
        let access = verdict["access"].as_str().unwrap_or_default();
        lines.push_str(&format!(
            "{access}\t{}{}\n",
            one_line(asked),
            format_reason(verdict)
        ));
    }
    if let Some(verdict) = result.get("command") {
        refused |= verdict["allowed"] != true;
        if verdict["allowed"] == true {
            lines.push_str("allowed\n");
        }
        for denied in verdict["denied"].as_array().into_iter().flatten() {
            let path = one_line(denied["path"].as_str().unwrap_or_default());
            lines.push_str(&format!("denied\t{path}{}\n", format_reason(denied)));
        }
    }
    if workspace.json {
        print_result(workspace, &result, |_| String::new())?;
    } else {
        print(&lines)?;
    }
    Ok(if refused { NEGATIVE } else { DONE })
}

fn format_reason(verdict: &Value) -> String {
    let mut format_reason = String::new();
    if let Some(reason) = verdict["reason"].as_str() {
        format_reason.push_str(&format!("\t{}", one_line(reason)));
    }
    if let Some(rule) = verdict.get("rule") {
        let source = rule["source"].as_str().unwrap_or_default();
        let pattern = rule["pattern"].as_str().unwrap_or_default();
        let (source, pattern) = (one_line(source), one_line(pattern));
        format_reason.push_str(&format!("\t{source}:{}: {pattern}", rule["line"]));
    }
    format_reason
}

/// Returns the workspace: the given folder, else the nearest ancestor with rules or a
/// repository, else the current folder.
pub(super) fn root(workspace: &Workspace) -> Result<Root, Error> {
    if let Some(named) = &workspace.root {
        let path = absolute_path(named)?;
        if !path.as_path().is_dir() {
            let message = format!("not a directory: {}", named.display());
            return Err(Error::invalid(message));
        }
        return Ok(Root::new(path, None));
    }
    Ok(root_above(&current()?))
}

/// Returns the nearest ancestor of a folder with rules or a repository, else the folder.
pub(super) fn root_above(folder: &AbsPath) -> Root {
    let start = folder.as_path();
    // A dangling symlink counts, because it denies everything.
    let has_rules = |folder: &Path| folder.join(RULE_FILE).symlink_metadata().is_ok();
    let found = start
        .ancestors()
        .find(|folder| has_rules(folder) || folder.join(".git").exists());
    let path = found.and_then(AbsPath::new);
    Root::new(path.unwrap_or_else(|| folder.clone()), None)
}

/// Makes a path argument absolute. URIs are unchanged.
pub(super) fn absolute(path: &str) -> Result<String, Error> {
    if path.to_ascii_lowercase().starts_with("file:") {
        return Ok(path.to_owned());
    }
    let full = absolute_path(Path::new(path))?;
    Ok(full.as_path().to_string_lossy().into_owned())
}

pub(super) fn absolute_path(path: &Path) -> Result<AbsPath, Error> {
    let full: PathBuf = current()?.as_path().join(path);
    AbsPath::new(&full).ok_or_else(|| Error::invalid(format!("invalid path: {}", path.display())))
}

fn current() -> Result<AbsPath, Error> {
    let current = std::env::current_dir()
        .map_err(|error| Error::storage(format!("cannot read the current directory: {error}")))?;
    AbsPath::new(&current).ok_or_else(|| Error::storage("the current directory is not absolute"))
}

/// Exports a stored task as text. Unless `all` is set, records of denied files are
/// omitted. Messages are exported unchanged, with a warning if they name a denied file.
pub(super) fn export(
    workspace: &Workspace,
    id: &str,
    format: ExportFormat,
    all: bool,
) -> Result<String, Error> {
    let task = TaskId::new(id)?;
    let cancel = Cancel::default();
    with_server(workspace, |server| {
        let context = server.context();
        let store = context.task_store()?;
        let view = context.view();
        let left_out = Cell::new(0_u64);
        let may_name = |path: &str| {
            let location = view.roots().locate(path);
            let keep = all || location.is_ok_and(|place| view.require(&place, true).is_ok());
            left_out.set(left_out.get() + u64::from(!keep));
            keep
        };
        let text = match format {
            ExportFormat::Json => store.export_json(&task, &may_name, &cancel)?,
            ExportFormat::Markdown => store.export_markdown(&task, &cancel)?,
        };
        match left_out.get() {
            0 => {}
            1 => print_message("1 record of a denied file was omitted; use --all to include it"),
            count => print_message(&format!(
                "{count} records of denied files were omitted; use --all to include them"
            )),
        }
        if !all && names_denied(&view, &text, format) {
            print_message(
                "messages are exported unchanged: they name denied files and may contain their \
                 contents",
            );
        }
        Ok(text)
    })
}

/// Returns whether an exported task names a file that access rules deny.
fn names_denied(view: &AccessView, text: &str, format: ExportFormat) -> bool {
    fn in_strings(view: &AccessView, value: &Value) -> bool {
        match value {
            Value::String(text) => names_denied_file(view, text),
            Value::Array(values) => values.iter().any(|value| in_strings(view, value)),
            Value::Object(fields) => fields.values().any(|value| in_strings(view, value)),
            _ => false,
        }
    }
    match format {
        ExportFormat::Markdown => names_denied_file(view, text),
        ExportFormat::Json => {
            let value = serde_json::from_str(text).unwrap_or_default();
            in_strings(view, &value)
        }
    }
}

/// Imports a task. Returns the output of `sightline task import --json`.
pub(super) fn import(
    workspace: &Workspace,
    source: &Path,
    id: Option<&str>,
) -> Result<Value, Error> {
    let id = id.map(TaskId::new).transpose()?;
    with_server(workspace, |server| {
        let store = server.context().task_store()?;
        let imported = store.import(source, id.as_ref(), now_millis(), &Cancel::default())?;
        Ok(json!({
            "taskId": imported.task_id.as_str(),
            "messageCount": imported.messages,
            "problems": imported.problems,
        }))
    })
}
