//! A named pipe, and a file with a secret that tells of it.
//!
//! The pipe lets in its owner only, and nobody over the network. Names of pipes
//! can be taken by anybody once they are free, so whoever answers has to say the
//! secret first, which stands in the user's own data directory.

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

/// How the names of the files end that tell of a pipe.
pub(super) const SUFFIX: &str = ".pipe";

/// All to the owner of the pipe, nothing to anybody else.
const OWNER_ONLY: &widestring::U16CStr = u16cstr!("D:P(A;;GA;;;OW)");
/// Whoever is asked may learn who asks, and not act for them
/// (`SECURITY_IDENTIFICATION`).
const IDENTIFICATION: u32 = 0x0001_0000;
/// All instances of a pipe are in use (`ERROR_PIPE_BUSY`).
const PIPE_BUSY: i32 = 231;
/// A server is between two instances for a moment at most.
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(25);
/// No request and no frame's head is larger; what is takes several writes.
const BUFFER: u32 = 64 * 1024;

/// The end of who asks.
pub(super) struct ClientStream {
    pipe: File,
    secret: Vec<u8>,
}

/// The end of the server.
pub(super) type ServerStream = DuplexPipeStream<pipe_mode::Bytes>;

/// There is no directory for what runs.
pub(super) fn runtime_dir() -> Option<PathBuf> {
    None
}

pub(super) fn is_socket(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

fn pipe_of(path: &Path) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    format!(r"\\.\pipe\sightline-{name}").into()
}

/// A connection to a server of the user's. A file that tells of a pipe that is
/// gone is removed.
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

/// Talks over a connection, for `patience` at most: a read of a pipe has no
/// limit of its own, so a thread waits for it.
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
            let _ = done.send(match is_right {
                true => talk(&pipe),
                false => Err(io::ErrorKind::PermissionDenied.into()),
            });
        })?;
    match outcome.recv_timeout(patience) {
        Ok(outcome) => outcome,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// A peer that is silent is waited for while it runs; it is the user's own, and
/// there are so many connections at most.
pub(super) fn set_timeouts(_: &ServerStream, _: Duration) -> io::Result<()> {
    Ok(())
}

pub(super) struct Listener {
    pipe: PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>,
    secret: Vec<u8>,
}

impl Listener {
    /// The file gets its name once somebody listens on the pipe: one that tells
    /// of no pipe is taken for dead.
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

    /// The next connection, which was told the secret; `None` when it is gone
    /// already.
    pub(super) fn accept(&self) -> io::Result<Option<ServerStream>> {
        let stream = self.pipe.accept()?;
        // The buffer of a new pipe has room, so this does not wait.
        let greeted = (&stream).write_all(&self.secret);
        Ok(greeted.is_ok().then_some(stream))
    }
}
