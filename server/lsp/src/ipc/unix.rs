//! A Unix socket, in a directory only the user can enter.

use std::{
    fs::{self, DirEntry},
    io,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    time::Duration,
};

/// How the names of the sockets end.
pub(super) const SUFFIX: &str = ".sock";

/// The end of who asks.
pub(super) type ClientStream = UnixStream;
/// The end of the server.
pub(super) type ServerStream = UnixStream;

/// The user's directory for what runs.
pub(super) fn runtime_dir() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(Into::into)
}

pub(super) fn is_socket(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_socket())
}

/// A connection to a server of the user's. A socket on which nobody listens is
/// removed.
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

/// Talks over a connection, for so long as the other end is not silent for
/// longer than `patience`.
pub(super) fn with_timeout<T>(
    stream: ClientStream,
    patience: Duration,
    talk: impl FnOnce(&ClientStream) -> io::Result<T>,
) -> io::Result<T> {
    set_timeouts(&stream, patience)?;
    talk(&stream)
}

/// A peer that is silent for longer is an error.
pub(super) fn set_timeouts(stream: &ServerStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

pub(super) struct Listener(UnixListener);

impl Listener {
    /// A socket gets its name once somebody listens on it: one that refuses is
    /// taken for dead.
    pub(super) fn bind(new: &Path, path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(new)?;
        fs::set_permissions(new, fs::Permissions::from_mode(0o600))?;
        fs::rename(new, path)?;
        Ok(Self(listener))
    }

    /// The next connection; `None` when it is not the user's.
    pub(super) fn accept(&self) -> io::Result<Option<ServerStream>> {
        let (stream, _) = self.0.accept()?;
        Ok(Some(stream).filter(is_same_user))
    }
}

/// Is the process at the other end the user's? The directory lets nobody else
/// in; this holds where its mode was changed.
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
