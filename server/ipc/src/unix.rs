//! A Unix socket in a directory that only the user can access.

use std::{
    ffi::OsString,
    fs::{self, DirEntry},
    io,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

/// File name suffix of sockets.
pub(super) const SUFFIX: &str = ".sock";

/// The client's end of a connection.
pub(super) type ClientStream = UnixStream;
/// The server's end of a connection.
pub(super) type ServerStream = UnixStream;

/// Returns the user's runtime directory, which may not exist or be open to others.
pub(super) fn runtime_dir() -> Option<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    Some(runtime_dir_of(uid, std::env::var_os("XDG_RUNTIME_DIR")))
}

/// Some agents start their tools without `XDG_RUNTIME_DIR`, so its usual value is the default.
fn runtime_dir_of(uid: u32, variable: Option<OsString>) -> PathBuf {
    match variable {
        Some(dir) if !dir.is_empty() => dir.into(),
        _ => format!("/run/user/{uid}").into(),
    }
}

pub(super) fn is_socket(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_socket())
}

/// Sets the modification time of a socket to now.
pub(super) fn touch(socket: &Path) -> io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    Ok(utimensat(CWD, socket, &times, AtFlags::empty())?)
}

/// Connects to a server of the same user. Removes the socket if no server listens on it.
pub(super) fn connect(socket: &Path) -> Option<ClientStream> {
    match UnixStream::connect(socket) {
        Ok(stream) => Some(stream).filter(is_same_user),
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(socket);
            }
            None
        }
    }
}

/// Uses a connection with a timeout for each read and write.
pub(super) fn with_timeout<T>(
    stream: ClientStream,
    patience: Duration,
    talk: impl FnOnce(&ClientStream) -> io::Result<T>,
) -> io::Result<T> {
    set_timeouts(&stream, patience)?;
    talk(&stream)
}

/// Sets the timeout for each read and write.
pub(super) fn set_timeouts(stream: &ServerStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

pub(super) struct Listener(UnixListener);

impl Listener {
    /// Renames the socket into place once it accepts connections, because a socket that
    /// refuses them is considered stale.
    pub(super) fn bind(new: &Path, path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(new)?;
        fs::set_permissions(new, fs::Permissions::from_mode(0o600))?;
        fs::rename(new, path)?;
        Ok(Self(listener))
    }

    /// Accepts the next connection. Returns `None` if it is another user's.
    pub(super) fn accept(&self) -> io::Result<Option<ServerStream>> {
        let (stream, _) = self.0.accept()?;
        Ok(Some(stream).filter(is_same_user))
    }
}

/// Returns whether the peer is the same user. The directory's mode ensures this already,
/// unless it was changed.
fn is_same_user(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(stream);
        peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_directory_has_a_default() {
        for (variable, dir) in [
            (None, "/run/user/1000"),
            (Some(""), "/run/user/1000"),
            (Some("/tmp/run"), "/tmp/run"),
        ] {
            let found = runtime_dir_of(1000, variable.map(Into::into));
            assert_eq!(found, PathBuf::from(dir), "{variable:?}");
        }
    }
}
