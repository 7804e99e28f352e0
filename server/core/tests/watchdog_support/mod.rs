//! Test utilities: a time limit, so that a hang fails its test.

use std::{sync::mpsc, thread, time::Duration};

/// Far longer than any of it takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `work` on a new thread. A thread that hangs ends with the process.
pub(crate) fn ends<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, result) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    match result.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("hangs: {what}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("panicked: {what}"),
    }
}
