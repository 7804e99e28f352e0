//! A door for the command line to the server that runs in an editor.
//!
//! Each server listens on one socket for each workspace root it has, in a
//! directory of the user's own: a Unix socket (`unix`), or a named pipe that a
//! file there tells of (`windows`). The same frames as on standard input, only
//! requests that read, through the same handlers and rules (`serve`). Several
//! servers of one root have a socket each, and the newest is asked; one that
//! nobody listens on is removed by whoever finds it.

pub mod ask;
#[cfg(unix)]
#[path = "unix.rs"]
mod door;
#[cfg(windows)]
#[path = "windows.rs"]
mod door;
mod serve;

use std::sync::Arc;

use crate::server::Server;

/// The sockets of a server.
#[derive(Default)]
pub struct Sockets {
    open: std::sync::Mutex<serve::Open>,
}

impl Sockets {
    /// Listens for the roots that are open now, and only for those, soon.
    /// Updates happen in the order they were asked for.
    pub fn update(server: &Arc<Server>) {
        let worker = server.clone();
        let lane = crate::jobs::Lane::Tasks;
        server.jobs().run_silent(lane, "sockets", move || {
            let snapshot = worker.snapshot();
            crate::outbound::lock(&worker.sockets().open).update(&worker, &snapshot);
        });
    }

    /// Closes and removes all of them, for good.
    pub fn close(&self) {
        crate::outbound::lock(&self.open).close();
    }
}
