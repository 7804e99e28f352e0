//! Signals: termination requests, and the limit on file sizes.

#[cfg(unix)]
use std::sync::Arc;
use std::{io, thread};

use sightline_workspace::cancel::Cancel;
use tokio::runtime::Builder;

/// Makes writes beyond the file size limit (`ulimit -f`) fail with an error. By default,
/// SIGXFSZ would kill the process. Child processes keep the default.
pub fn ignore_file_size_signal() {
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        tracing::warn!(%error, "cannot handle SIGXFSZ");
    }
}

/// Returns a cancel token that is raised on Ctrl-C or SIGTERM, which no longer end the
/// process. Used while a child process must be stopped first.
///
/// # Errors
/// Signal handlers cannot be installed.
pub fn cancel_on_termination() -> io::Result<Cancel> {
    let cancel = Cancel::default();
    let raised = cancel.clone();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Installed before the thread starts.
    let end = {
        let _entered = runtime.enter();
        termination_signal()?
    };
    thread::spawn(move || {
        runtime.block_on(end);
        raised.cancel();
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
