//! Ends the process when its terminal is gone.

use std::{io, sync::Arc};

use parking_lot::Mutex;

/// Starts a thread that ends the process once the terminal is gone: its window was closed, or the
/// connection to it was lost. The reader of keys tries again for ever then, and does not return. Waits
/// for `restoring`, which is locked while files are restored.
///
/// # Errors
/// The thread cannot be started.
#[cfg(unix)]
pub(super) fn exit_on_hangup(restoring: Arc<Mutex<()>>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let wait = move || {
        let stdin = io::stdin();
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        // These are reported whether they are asked for or not.
        let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
        loop {
            match poll(&mut terminal, None) {
                Ok(_) if terminal[0].revents().intersects(gone) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot watch the terminal");
                    return;
                }
            }
        }
        let _restored = restoring.lock();
        #[allow(clippy::exit, reason = "the main thread may never return")]
        std::process::exit(crate::FAILURE);
    };
    std::thread::Builder::new()
        .name("picker hangup".to_owned())
        .spawn(wait)?;
    Ok(())
}

/// Consoles end their processes when they are closed.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "fails on Unix")]
pub(super) fn exit_on_hangup(_: Arc<Mutex<()>>) -> io::Result<()> {
    Ok(())
}
