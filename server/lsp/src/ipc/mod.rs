//! Lets the command line reach the server that runs in an editor.
//!
//! Each server listens on one socket per workspace root, in a private directory: a Unix
//! socket (`unix`), or on Windows a named pipe described by a file (`windows`). It
//! accepts framed requests like stdio, but only read-only ones, with the same handlers
//! and access rules (`server`). If several servers have the same root, the newest is
//! used. Stale sockets are removed by clients.

pub mod client;
mod server;
#[cfg(unix)]
#[path = "unix.rs"]
mod transport;
#[cfg(windows)]
#[path = "windows.rs"]
mod transport;

use std::sync::{Arc, mpsc};

use crossbeam_channel::Sender;
use serde_json::Value;

use crate::{dispatch::Call, scheduler::all_task_keys, shared_state::Server};

/// The sockets of a server.
#[derive(Default)]
pub struct IpcServer {
    open: std::sync::Mutex<server::Listeners>,
    requests: Option<Sender<SocketRequest>>,
}

/// A request of a connection, to be run by the main loop.
pub struct SocketRequest {
    /// The id of the request.
    pub id: Value,
    /// The request.
    pub call: Call,
    /// Gets the response.
    pub reply: mpsc::Sender<Vec<u8>>,
}

impl IpcServer {
    /// Creates a server that sends its requests to `requests`.
    pub fn new(requests: Sender<SocketRequest>) -> Self {
        Self {
            requests: Some(requests),
            ..Self::default()
        }
    }

    /// Sends a request to the main loop. Without one, the request is dropped.
    fn send(&self, request: SocketRequest) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(request);
        }
    }

    /// Schedules an update: listens for the roots that are open then, and no others.
    /// Updates run in order, before later requests that use a task.
    pub fn update(server: &Arc<Server>) {
        let worker = server.clone();
        server.jobs().run(all_task_keys(), "sockets", move || {
            let snapshot = worker.snapshot();
            crate::mutex::lock(&worker.ipc_server().open).update(&worker, &snapshot);
        });
    }

    /// Closes and removes all sockets, permanently.
    pub fn close(&self) {
        crate::mutex::lock(&self.open).close();
    }
}
