//! The socket on which systemd listens, if it started this program.

use std::{env, net::TcpListener, process};

/// Number of the first file that systemd hands over.
#[cfg(unix)]
const FIRST_FILE: i32 = 3;

/// Returns the socket. `None` if systemd did not hand over one to this process.
///
/// # Errors
/// If it cannot be used.
pub(crate) fn given() -> Result<Option<TcpListener>, String> {
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok();
    // The variables may be those of another process, which started this one.
    let (true, Some(files)) = (
        number("LISTEN_PID") == Some(process::id()),
        number("LISTEN_FDS"),
    ) else {
        return Ok(None);
    };
    if files != 1 {
        return Err(format!(
            "cannot use the sockets of systemd: there are {files}, not one"
        ));
    }
    let listener = take()?;
    let cannot_use = |why: String| format!("cannot use the socket of systemd: {why}");
    let address = listener
        .local_addr()
        .map_err(|error| cannot_use(error.to_string()))?;
    if !address.ip().is_loopback() {
        return Err(cannot_use(format!("{address} is not on loopback")));
    }
    listener
        .set_nonblocking(true)
        .map_err(|error| cannot_use(error.to_string()))?;
    Ok(Some(listener))
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "a file is handed over by its number")]
fn take() -> Result<TcpListener, String> {
    use std::os::fd::{FromRawFd, OwnedFd};

    // SAFETY: systemd opened it for this process, and nothing else in it knows its number.
    let file = unsafe { OwnedFd::from_raw_fd(FIRST_FILE) };
    Ok(TcpListener::from(file))
}

#[cfg(not(unix))]
fn take() -> Result<TcpListener, String> {
    Err("cannot use sockets of systemd on this system".to_owned())
}
