//! A time limit, so that blocked work fails its test instead of hanging it.

use std::{sync::mpsc, thread, time::Duration};

/// Time limit, far longer than the work takes on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Runs `work` on a new thread. A blocked thread ends with the process.
pub fn ends<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, result) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    match result.recv_timeout(TIME_LIMIT) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("hangs: {what}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("panicked: {what}"),
    }
}
