//! Signals: termination requests, and the limit on file sizes.

#[cfg(unix)]
use std::sync::Arc;
use std::{io, thread};

use sightline_base::cancel::Cancel;
use tokio::runtime::{Builder, Handle};

/// Makes writes beyond the file size limit (`ulimit -f`) fail with an error. By default,
/// SIGXFSZ would kill the process. Child processes keep the default.
pub fn ignore_file_size_signal() {
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        tracing::warn!(%error, "cannot handle SIGXFSZ");
    }
}

/// Returns a cancel token that is raised on Ctrl-C, SIGTERM or SIGHUP, which no longer end the
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
    thread::Builder::new().spawn(move || {
        runtime.block_on(end);
        raised.cancel();
    })?;
    Ok(cancel)
}

/// Calls `end` on Ctrl-C, SIGTERM or SIGHUP, which no longer end the process.
pub fn on_termination(runtime: &Handle, end: impl FnOnce() + Send + 'static) {
    let _entered = runtime.enter();
    match termination_signal() {
        Ok(signal) => drop(runtime.spawn(async move {
            signal.await;
            end();
        })),
        Err(error) => tracing::warn!(%error, "cannot handle termination signals"),
    }
}

#[cfg(unix)]
fn termination_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            _ = hang_up.recv() => (),
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
