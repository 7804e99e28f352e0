//! Lets the command line reach the server that runs in an editor.
//!
//! Each server listens on one socket per workspace root, in a private directory. It accepts framed
//! requests like stdio: those that read, and those that create and restore checkpoints, with the
//! same handlers and access rules. A restore needs the token of its preview. If several servers have
//! the same root, the one whose editor had the focus last is used: the modification time of a socket
//! is the time of the last focus. The others are asked for unsaved text only. Stale sockets are
//! removed by clients.
//!
//! Modules:
//!
//! - `client`: sends requests to a running server
//! - `server`: accepts connections and answers their requests
//! - `unix`: Unix sockets
//! - `windows`: named pipes, described by files

pub mod client;
mod server;
#[cfg(unix)]
#[path = "unix.rs"]
mod transport;
#[cfg(windows)]
#[path = "windows.rs"]
mod transport;

use std::{
    path::PathBuf,
    sync::{Arc, mpsc},
};

use crossbeam_channel::Sender;
use serde_json::Value;
use sightline_base::storage::Storage;
use sightline_engine::{
    dispatch::Call, jobs::all_task_keys, services::Services, settings::config_file::ConfigFiles,
};

pub use server::METHODS;

/// Returns the directory of the sockets, which may not exist.
pub fn socket_dir(storage: &Storage) -> PathBuf {
    storage.run_dir(transport::runtime_dir().as_deref())
}

/// The sockets of a server.
pub struct IpcServer {
    listeners: parking_lot::Mutex<server::Listeners>,
    /// The paths of the sockets, for the main loop, which does not wait for `listeners`.
    paths: parking_lot::Mutex<Vec<PathBuf>>,
    requests: Sender<SocketRequest>,
}

/// Work for the thread of a connection. Returns the response to its request, or nothing if more work
/// follows.
pub type ConnectionWork = Box<dyn FnOnce() -> Option<Vec<u8>> + Send>;

/// A request of a connection. The main loop says when it runs, and the thread of the connection runs
/// it: requests do not wait for the jobs of the editor.
pub struct SocketRequest {
    /// The id of the request.
    pub id: Value,
    /// The request.
    pub call: Call,
    /// The configuration files, read when the request arrived.
    pub config_files: Option<Arc<ConfigFiles>>,
    /// Runs work in the thread of the connection.
    pub connection: mpsc::Sender<ConnectionWork>,
}

impl IpcServer {
    /// Creates a server that sends its requests to `requests`.
    pub fn new(requests: Sender<SocketRequest>) -> Self {
        Self {
            listeners: parking_lot::Mutex::default(),
            paths: parking_lot::Mutex::default(),
            requests,
        }
    }

    /// Schedules an update: listens for the open roots, and no others. Updates run in
    /// order, before later requests that use a task.
    pub fn update(self: &Arc<Self>, services: &Arc<Services>) {
        let (this, worker) = (self.clone(), services.clone());
        services
            .jobs
            .run(all_task_keys(), "sockets", move |snapshot| {
                let storage = worker.stores.storage(&snapshot.settings);
                let mut listeners = this.listeners.lock();
                listeners.update(storage, snapshot.roots(), &this.requests);
                *this.paths.lock() = listeners.paths();
            });
    }

    /// Records that the editor has the focus.
    pub fn focused(&self) {
        for path in &*self.paths.lock() {
            if let Err(error) = transport::touch(path) {
                tracing::debug!(%error, "cannot record the focus");
            }
        }
    }

    /// Closes and removes all sockets, permanently.
    pub fn close(&self) {
        self.listeners.lock().close();
    }
}
