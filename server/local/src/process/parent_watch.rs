//! Ends the server when its parent process dies.
//!
//! The main loop sees the end of input. A parent that dies while another process
//! still holds the server's input open is detected here: on Unix, the parent's
//! process id changes. `initialize.processId` is not used, because it may belong to
//! another process namespace.

use std::{thread, time::Duration};

/// Interval between checks for the parent.
const INTERVAL: Duration = Duration::from_secs(3);

/// Calls `on_exit` when the parent process exits.
pub fn watch_parent(on_exit: impl FnOnce() + Send + 'static) {
    #[cfg(unix)]
    thread::spawn(move || {
        let parent = std::os::unix::process::parent_id();
        while std::os::unix::process::parent_id() == parent {
            thread::sleep(INTERVAL);
        }
        on_exit();
    });
    #[cfg(not(unix))]
    drop((on_exit, INTERVAL, thread::current()));
}
