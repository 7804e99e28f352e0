//! A door for the command line to the server that runs in an editor.
//!
//! Each server listens on one Unix socket for each workspace root it has, in a
//! directory of the user's own. The same frames as on standard input, only
//! requests that read, through the same handlers and rules (`serve`). Several
//! servers of one root have a socket each, and the newest is asked; one that
//! nobody listens on is removed by whoever finds it. Elsewhere than on Unix
//! there is no such door, and the command line answers from the disk.

#[cfg(unix)]
pub mod ask;
#[cfg(unix)]
mod serve;

use std::sync::Arc;

use crate::server::Server;

/// The sockets of a server.
#[derive(Default)]
pub struct Sockets {
    #[cfg(unix)]
    open: std::sync::Mutex<serve::Open>,
}

impl Sockets {
    /// Listens for the roots that are open now, and only for those, soon.
    /// Updates happen in the order they were asked for.
    #[cfg(unix)]
    pub fn update(server: &Arc<Server>) {
        let worker = server.clone();
        let lane = crate::jobs::Lane::Tasks;
        server.jobs().run_silent(lane, "sockets", move || {
            let snapshot = worker.snapshot();
            crate::outbound::lock(&worker.sockets().open).update(&worker, &snapshot);
        });
    }

    /// There is no such door here.
    #[cfg(not(unix))]
    pub fn update(_: &Arc<Server>) {}

    /// Closes and removes all of them, for good.
    pub fn close(&self) {
        #[cfg(unix)]
        crate::outbound::lock(&self.open).close();
    }
}

/// The user's directory for what runs.
#[cfg(unix)]
fn runtime_dir() -> Option<std::path::PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(Into::into)
}

/// Is the process at the other end the user's? The directory lets nobody else
/// in; this holds where its mode was changed.
#[cfg(unix)]
fn is_same_user(stream: &std::os::unix::net::UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(stream);
        peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        true
    }
}
