//! Local sockets of bridges, in folders that only the user can enter.

use std::{fs, io, os::unix::fs::PermissionsExt, path::PathBuf};

use sightline_engine::error::Error;
use tokio::{
    net::{UnixListener, UnixStream},
    runtime::Handle,
};

use crate::discovery::DiscoveryFile;

/// Listens on a new socket. Replaces the one at this path.
///
/// # Errors
/// The socket cannot be created.
pub fn bind(runtime: &Handle, path: PathBuf) -> Result<(UnixListener, DiscoveryFile), Error> {
    let failed = |error: io::Error| {
        Error::storage(format!(
            "cannot create the socket {}: {error}",
            path.display()
        ))
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let _ = fs::remove_file(&new);
    let listener = {
        let _entered = runtime.enter();
        UnixListener::bind(&new).map_err(failed)?
    };
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    fs::rename(&new, &path).map_err(failed)?;
    let file = DiscoveryFile::socket(path.clone()).map_err(failed)?;
    Ok((listener, file))
}

/// Accepts a connection of the same user.
///
/// # Errors
/// The system refuses it.
pub async fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        if stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw() {
            return Ok(stream);
        }
    }
}
