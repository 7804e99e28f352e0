//! Signals: termination requests, and the limit on file sizes.

#[cfg(unix)]
use std::sync::Arc;
use std::{io, thread};

use sightline_core::cancel::Cancel;
use tokio::runtime::Builder;

/// Lets a write past the limit on the size of files fail with an error. Else the
/// signal SIGXFSZ ends the process. Processes that are started get it as usual.
pub fn ignore_file_size_signal() {
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        tracing::warn!(%error, "cannot handle SIGXFSZ");
    }
}

/// A flag that goes up when this process is told to end (Ctrl-C, SIGTERM), which
/// does not end it any more.
///
/// # Errors
/// When signals cannot be waited for.
pub fn cancel_on_termination() -> io::Result<Cancel> {
    let cancel = Cancel::default();
    let told = cancel.clone();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // From here on, not only once the thread runs.
    let end = {
        let _entered = runtime.enter();
        termination_signal()?
    };
    thread::spawn(move || {
        runtime.block_on(end);
        told.cancel();
    });
    Ok(cancel)
}

#[cfg(unix)]
fn termination_signal() -> io::Result<impl Future<Output = ()>> {
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
fn termination_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
