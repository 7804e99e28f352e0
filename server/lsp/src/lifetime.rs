//! When the process ends although nobody said `exit`.
//!
//! End of input is seen by the reader. A parent that dies while another
//! process holds our input open is seen here: on Unix the parent's id changes.
//! `initialize.processId` is no reason to end: it may be another namespace's.
//!
//! A process with a child of its own that is told to end takes that along. A write
//! past the limit on the size of files (`ulimit -f`) fails, and ends nothing.

#[cfg(unix)]
use std::sync::Arc;
use std::{io, sync::mpsc::Sender, thread, time::Duration};

use sightline_core::cancel::Cancel;
use tokio::runtime::Builder;

use crate::transport::End;

/// How often the parent is looked for.
const INTERVAL: Duration = Duration::from_secs(3);

/// Lets a write past the limit on the size of files fail with an error. Else the
/// signal SIGXFSZ ends the process. Processes that are started get it as usual.
pub fn survive_file_size_limit() {
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        tracing::warn!(%error, "cannot handle SIGXFSZ");
    }
}

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

/// A flag that goes up when this process is told to end (Ctrl-C, SIGTERM), which
/// does not end it any more.
///
/// # Errors
/// When signals cannot be waited for.
pub fn cancel_when_told() -> io::Result<Cancel> {
    let cancel = Cancel::default();
    let told = cancel.clone();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // From here on, not only once the thread runs.
    let end = {
        let _entered = runtime.enter();
        told_to_end()?
    };
    thread::spawn(move || {
        runtime.block_on(end);
        told.cancel();
    });
    Ok(cancel)
}

#[cfg(unix)]
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
    })
}

#[cfg(windows)]
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
