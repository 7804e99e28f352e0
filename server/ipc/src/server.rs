//! Accepts connections and answers their requests.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crossbeam_channel::Sender;
use serde_json::{Value, json};
use sightline_base::{limits, path::Root, storage::Storage};
use sightline_engine::{
    dispatch,
    error::Error,
    error_response::{METHOD_NOT_FOUND, error_body, protocol_error},
    params_compat,
};
use sightline_local::frame::{FrameReader, write_frame};
use sightline_protocol::error::ErrorKind;

use super::{
    SocketRequest,
    client::find_sockets,
    socket_dir,
    transport::{self, Listener, ServerStream},
};

/// Supported requests: those that read, those of checkpoints that can be undone, and those for MCP
/// servers, whose decisions every process of the user can write.
pub const METHODS: &[&str] = &[
    "sightline/environmentDetails",
    "sightline/checkAccess",
    "sightline/listRules",
    "sightline/hiddenPaths",
    "sightline/redact",
    "sightline/listFiles",
    "sightline/readFile",
    "sightline/diagnostics",
    "sightline/selection",
    "sightline/unsavedFiles",
    "sightline/connectedAgents",
    "sightline/openFile",
    "sightline/listCheckpoints",
    "sightline/listTurns",
    "sightline/blame",
    "sightline/diffCheckpoints",
    "sightline/checkpointStats",
    "sightline/createCheckpoint",
    "sightline/labelCheckpoint",
    "sightline/previewRestore",
    "sightline/restoreCheckpoint",
    "sightline/undoRestore",
    "sightline/listMcpServers",
    "sightline/setMcpServerEnabled",
    "sightline/restartMcpServer",
    "sightline/trustMcpServer",
    "sightline/mcpServerLog",
];

/// Time after which a silent connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The open sockets, by root.
#[derive(Default)]
pub(super) struct Listeners {
    closed: bool,
    listening: BTreeMap<PathBuf, Listening>,
}

/// One socket; dropping it stops listening and removes the file.
struct Listening {
    path: PathBuf,
    stopped: Arc<AtomicBool>,
}

impl Listeners {
    /// Listens for `roots`, and no others.
    pub(super) fn update(
        &mut self,
        storage: Result<Storage, Error>,
        roots: &[Root],
        requests: &Sender<SocketRequest>,
    ) {
        if self.closed {
            return;
        }
        let storage = match storage {
            Ok(storage) => storage,
            Err(error) => {
                tracing::info!(%error, "the command line cannot reach this server");
                return self.listening.clear();
            }
        };
        let dir = socket_dir(&storage);
        self.listening.retain(|root, listening| {
            let mut roots = roots.iter();
            let open = roots.find(|open| open.canonical.as_path() == root);
            let names = open.map(|open| dir.join(storage.run_key(open)));
            let (path, names) = (listening.path.as_os_str(), names.as_deref());
            let names = names.map(|names| names.as_os_str().as_encoded_bytes());
            names.is_some_and(|names| path.as_encoded_bytes().starts_with(names))
        });
        for root in roots {
            let key = root.canonical.as_path();
            if self.listening.contains_key(key) {
                continue;
            }
            match Listening::start(requests, &storage, root) {
                Ok(listening) => drop(self.listening.insert(key.to_owned(), listening)),
                Err(error) => {
                    tracing::info!(%error, "the command line cannot reach this server");
                }
            }
        }
    }

    /// Returns the paths of the sockets.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let listening = self.listening.values();
        listening.map(|listening| listening.path.clone()).collect()
    }

    /// Closes all sockets, permanently.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.listening.clear();
    }
}

impl Listening {
    fn start(
        requests: &Sender<SocketRequest>,
        storage: &Storage,
        root: &Root,
    ) -> Result<Self, Error> {
        let dir = storage.make_run_dir(transport::runtime_dir().as_deref())?;
        let key = storage.run_key(root);
        // Removes sockets of servers that were killed.
        for stale in find_sockets(&dir, &key) {
            drop(transport::connect(&stale));
        }
        let micros = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros();
        let id = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{key}-{micros:020}-{}", id.get(..8).unwrap_or_default());
        let (new, path) = (
            dir.join(format!(".{name}")),
            dir.join(format!("{name}{}", transport::SUFFIX)),
        );
        let bound = Listener::bind(&new, &path).map_err(|error| {
            let _ = fs::remove_file(&new);
            Error::storage(format!(
                "cannot create the socket {}: {error}",
                path.display()
            ))
        })?;
        let stopped = Arc::new(AtomicBool::new(false));
        let listening = Self {
            path,
            stopped: stopped.clone(),
        };
        let requests = requests.clone();
        thread::Builder::new()
            .name("socket".to_owned())
            .spawn(move || listen(&bound, &stopped, &requests))
            .map_err(|error| Error::storage(format!("cannot start a socket thread: {error}")))?;
        Ok(listening)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the thread, which then ends.
        drop(transport::connect(&self.path));
        let _ = fs::remove_file(&self.path);
    }
}

fn listen(listener: &Listener, stopped: &AtomicBool, requests: &Sender<SocketRequest>) {
    let connections = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = listener.accept();
        if stopped.load(Ordering::Acquire) {
            return;
        }
        let stream = match stream {
            Ok(Some(stream)) => stream,
            Ok(None) => continue,
            Err(_) => {
                // Probably out of file descriptors; retrying at once would spin.
                thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if connections.load(Ordering::Acquire) >= limits::MAX_CONNECTIONS {
            continue;
        }
        connections.fetch_add(1, Ordering::AcqRel);
        let (requests, count) = (requests.clone(), connections.clone());
        let talking = thread::Builder::new().name("connection".to_owned());
        let started = talking.spawn(move || {
            if let Err(error) = serve_connection(&requests, &stream) {
                tracing::debug!(%error, "connection closed");
            }
            count.fetch_sub(1, Ordering::AcqRel);
        });
        if started.is_err() {
            connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Answers the requests of a connection, one at a time.
fn serve_connection(requests: &Sender<SocketRequest>, stream: &ServerStream) -> io::Result<()> {
    transport::set_timeouts(stream, IDLE_TIMEOUT)?;
    let mut frames = FrameReader::new(stream);
    while let Some(Ok(body)) = frames.next_frame()? {
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(id) = message.get("id") else {
            continue;
        };
        let method = message["method"].as_str().unwrap_or_default();
        let reply = reply(requests, id, method, &message["params"]);
        write_frame(&mut &*stream, &reply)?;
    }
    Ok(())
}

/// Returns the response to a request. The main loop sends the work for it.
fn reply(requests: &Sender<SocketRequest>, id: &Value, method: &str, params: &Value) -> Vec<u8> {
    let route = dispatch::request(method).filter(|_| METHODS.contains(&method));
    let Some(route) = route else {
        let why = format!(
            "{method:?} is not available on this socket; available: {}",
            METHODS.join(", ")
        );
        return protocol_error(id, METHOD_NOT_FOUND, ErrorKind::Unsupported, &why);
    };
    let params = match accepted_params(method, params) {
        Ok(params) => params,
        Err(error) => return error_body(id, &error),
    };
    let (connection, work) = mpsc::channel();
    // The main loop has ended if this fails, and the request is dropped.
    let _ = requests.send(SocketRequest {
        id: id.clone(),
        call: (route.parse)(&params.to_string()),
        config_files: None,
        connection,
    });
    work.iter().find_map(|work| work()).unwrap_or_else(|| {
        let why = format!("{method}: the server is exiting");
        error_body(id, &Error::new(ErrorKind::NotInitialized, why))
    })
}

/// Returns params without a progress token. Rejects params that would record something in a
/// task, and a restore that was not previewed.
fn accepted_params(method: &str, params: &Value) -> Result<Value, Error> {
    let mut params = params_compat::parse_object(method, Some(&params.to_string()))?;
    if let Some(fields) = params.as_object_mut() {
        fields.remove("workDoneToken");
    }
    let needs_token = match method {
        "sightline/restoreCheckpoint" => params["mode"] != "task",
        "sightline/undoRestore" => true,
        _ => false,
    };
    if needs_token && params.get("token").is_none() {
        return Err(Error::invalid(format!(
            "{method}: `token` is required on this socket; preview the restore first"
        )));
    }
    let records = match method {
        "sightline/environmentDetails" => {
            let consumes = params["consume"] == true;
            params["consume"] = json!(false);
            consumes.then_some("consume")
        }
        "sightline/readFile" => params.get("taskId").map(|_| "taskId"),
        _ => None,
    };
    match records {
        Some(field) => Err(Error::invalid(format!(
            "{method}: `{field}` is not allowed on this socket, which records nothing in tasks"
        ))),
        None => Ok(params),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_methods_exist_and_params_are_checked() {
        for method in METHODS {
            assert!(dispatch::request(method).is_some(), "{method}");
        }
        let environment = "sightline/environmentDetails";
        let params = json!({ "consume": true });
        assert!(accepted_params(environment, &params).is_err());
        let params = accepted_params(environment, &json!({ "workDoneToken": 1 }));
        assert_eq!(params, Ok(json!({ "consume": false })));
        let params = json!({ "path": "a", "taskId": "t" });
        assert!(accepted_params("sightline/readFile", &params).is_err());
        let restore = "sightline/restoreCheckpoint";
        for (method, params, is_accepted) in [
            (restore, json!({ "id": "a" }), false),
            (restore, json!({ "id": "a", "token": null }), false),
            (restore, json!({ "id": "a", "mode": "filesAndTask" }), false),
            (restore, json!({ "id": "a", "mode": "task" }), true),
            (restore, json!({ "id": "a", "token": "t" }), true),
            ("sightline/undoRestore", json!({}), false),
            ("sightline/undoRestore", json!({ "token": "t" }), true),
        ] {
            let accepted = accepted_params(method, &params);
            assert_eq!(accepted.is_ok(), is_accepted, "{method} {params}");
        }
    }
}
