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

use std::sync::Arc;

use crate::shared_state::Server;

/// The sockets of a server.
#[derive(Default)]
pub struct IpcServer {
    open: std::sync::Mutex<server::Listeners>,
}

impl IpcServer {
    /// Schedules an update: listens for the roots that are open then, and no others.
    /// Updates run in order.
    pub fn update(server: &Arc<Server>) {
        let worker = server.clone();
        let queue = crate::scheduler::Queue::Tasks;
        server
            .scheduler()
            .run_in_background(queue, "sockets", move || {
                let snapshot = worker.snapshot();
                crate::mutex::lock(&worker.ipc_server().open).update(&worker, &snapshot);
            });
    }

    /// Closes and removes all sockets, permanently.
    pub fn close(&self) {
        crate::mutex::lock(&self.open).close();
    }
}
