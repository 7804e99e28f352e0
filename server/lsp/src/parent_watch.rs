//! Ends the server when its parent process dies.
//!
//! The main loop sees the end of input. A parent that dies while another process
//! still holds the server's input open is detected here: on Unix, the parent's
//! process id changes. `initialize.processId` is not used, because it may belong to
//! another process namespace.

use std::{sync::mpsc::Sender, thread, time::Duration};

use crate::main_loop::End;

/// Interval between checks for the parent.
const INTERVAL: Duration = Duration::from_secs(3);

/// Sends [`End::ParentGone`] when the parent process exits.
pub fn watch_parent(ends: Sender<End>) {
    #[cfg(unix)]
    thread::spawn(move || {
        let parent = std::os::unix::process::parent_id();
        while std::os::unix::process::parent_id() == parent {
            thread::sleep(INTERVAL);
        }
        let _ = ends.send(End::ParentGone);
    });
    #[cfg(not(unix))]
    drop((ends, INTERVAL, thread::current()));
}
