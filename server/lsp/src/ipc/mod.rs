//! A transport for the command line to the server that runs in an editor.
//!
//! Each server listens on one socket for each workspace root it has, in a
//! directory of the user's own: a Unix socket (`unix`), or a named pipe that a
//! file there tells of (`windows`). The same frames as on standard input, only
//! requests that read, through the same handlers and rules (`serve`). Several
//! servers of one root have a socket each, and the newest is asked; one that
//! nobody listens on is removed by whoever finds it.

pub mod client;
mod server;
#[cfg(unix)]
#[path = "unix.rs"]
mod transport;
#[cfg(windows)]
#[path = "windows.rs"]
mod transport;

use std::sync::Arc;

use crate::server::Server;

/// The sockets of a server.
#[derive(Default)]
pub struct IpcServer {
    open: std::sync::Mutex<server::Listeners>,
}

impl IpcServer {
    /// Listens for the roots that are open now, and only for those, soon.
    /// Updates happen in the order they were asked for.
    pub fn update(server: &Arc<Server>) {
        let worker = server.clone();
        let queue = crate::scheduler::Queue::Tasks;
        server
            .scheduler()
            .run_in_background(queue, "sockets", move || {
                let snapshot = worker.snapshot();
                crate::sync::lock(&worker.ipc_server().open).update(&worker, &snapshot);
            });
    }

    /// Closes and removes all of them, for good.
    pub fn close(&self) {
        crate::sync::lock(&self.open).close();
    }
}
