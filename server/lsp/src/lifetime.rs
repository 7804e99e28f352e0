//! When the process ends although nobody said `exit`.
//!
//! End of input is seen by the reader. A parent that dies while another
//! process holds our input open is seen here: on Unix the parent's id changes.
//! `initialize.processId` is no reason to end: it may be another namespace's.

use std::{sync::mpsc::Sender, thread, time::Duration};

use crate::transport::End;

/// How often the parent is looked for.
const INTERVAL: Duration = Duration::from_secs(3);

/// Sends [`End::ParentGone`] when this process has been left by its parent.
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
