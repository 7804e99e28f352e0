//! A named pipe, and a file that contains its secret.
//!
//! The pipe accepts its owner only, and no remote clients. Any user can create a pipe
//! with a free name, so the server must send the secret first. The secret is stored in
//! the user's data directory.

use std::{
    fs::{self, DirEntry, File, OpenOptions},
    io::{self, Read, Write},
    os::windows::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use interprocess::os::windows::{
    named_pipe::{DuplexPipeStream, PipeListener, PipeListenerOptions, pipe_mode},
    security_descriptor::SecurityDescriptor,
};
use widestring::u16cstr;

/// File name suffix of the files that describe pipes.
pub(super) const SUFFIX: &str = ".pipe";

/// Full access for the owner, none for others.
const OWNER_ONLY: &widestring::U16CStr = u16cstr!("D:P(A;;GA;;;OW)");
/// The server may identify the client, but not impersonate it
/// (`SECURITY_IDENTIFICATION`).
const IDENTIFICATION: u32 = 0x0001_0000;
/// All instances of the pipe are busy (`ERROR_PIPE_BUSY`).
const PIPE_BUSY: i32 = 231;
/// Between two instances, the pipe is busy for a moment only.
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(25);
/// Buffer size in bytes, enough for a request; larger frames take several writes.
const BUFFER: u32 = 64 * 1024;

/// The client's end of a connection.
pub(super) struct ClientStream {
    pipe: File,
    secret: Vec<u8>,
}

/// The server's end of a connection.
pub(super) type ServerStream = DuplexPipeStream<pipe_mode::Bytes>;

/// Windows has no runtime directory.
pub(super) fn runtime_dir() -> Option<PathBuf> {
    None
}

pub(super) fn is_socket(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

/// Sets the modification time of the file of a pipe to now.
pub(super) fn touch(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_modified(std::time::SystemTime::now())
}

fn pipe_of(path: &Path) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    format!(r"\\.\pipe\sightline-{name}").into()
}

/// Connects to a server of the same user. Removes the file if its pipe does not exist.
pub(super) fn connect(path: &Path) -> Option<ClientStream> {
    let secret = fs::read(path).ok()?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.security_qos_flags(IDENTIFICATION);
    for _ in 0..BUSY_TRIES {
        match options.open(pipe_of(path)) {
            Ok(pipe) => return Some(ClientStream { pipe, secret }),
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => thread::sleep(BUSY_WAIT),
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound {
                    let _ = fs::remove_file(path);
                }
                return None;
            }
        }
    }
    None
}

/// Uses a connection for up to `patience`. Reads of a pipe have no timeout, so a thread
/// does them.
pub(super) fn with_timeout<T: Send + 'static>(
    stream: ClientStream,
    patience: Duration,
    talk: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, outcome) = mpsc::channel();
    let ClientStream { mut pipe, secret } = stream;
    thread::Builder::new()
        .name("asking".to_owned())
        .spawn(move || {
            let mut greeting = vec![0; secret.len()];
            let greeted = pipe.read_exact(&mut greeting);
            let is_right = greeted.is_ok() && greeting == secret;
            let _ = done.send(if is_right {
                talk(&pipe)
            } else {
                Err(io::ErrorKind::PermissionDenied.into())
            });
        })?;
    match outcome.recv_timeout(patience) {
        Ok(outcome) => outcome,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// No timeout: peers belong to the same user, and their number is limited.
pub(super) fn set_timeouts(_: &ServerStream, _: Duration) -> io::Result<()> {
    Ok(())
}

pub(super) struct Listener {
    pipe: PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>,
    secret: Vec<u8>,
}

impl Listener {
    /// Renames the file into place once the pipe accepts connections, because a file
    /// without a pipe is considered stale.
    pub(super) fn bind(new: &Path, path: &Path) -> io::Result<Self> {
        let secret = uuid::Uuid::new_v4().simple().to_string().into_bytes();
        let pipe = PipeListenerOptions::new()
            .path(pipe_of(path))
            .security_descriptor(Some(SecurityDescriptor::deserialize(OWNER_ONLY)?))
            .input_buffer_size_hint(BUFFER)
            .output_buffer_size_hint(BUFFER)
            .create_duplex()?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(new)?;
        file.write_all(&secret)?;
        drop(file);
        fs::rename(new, path)?;
        Ok(Self { pipe, secret })
    }

    /// Accepts the next connection and sends the secret. Returns `None` if the client is
    /// gone.
    pub(super) fn accept(&self) -> io::Result<Option<ServerStream>> {
        let stream = self.pipe.accept()?;
        // Fits into the empty buffer of a new pipe, so it does not block.
        let greeted = (&stream).write_all(&self.secret);
        Ok(greeted.is_ok().then_some(stream))
    }
}
