//! Codex: the socket of `/ide`, of which a user has one.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use sightline_agents::ide::codex::{self, Frame};
use sightline_engine::error::Error;
use sightline_local::{
    discovery::{self, DiscoveryFile},
    listener, socket,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    time::{sleep, timeout},
};

use crate::{BridgeContext, OpenBridge};

/// Interval of attempts while another program serves the socket.
const RETRY: Duration = Duration::from_secs(2);
/// Time for an agent to take a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a silent connection is closed.
const IDLE: Duration = Duration::from_secs(600);

/// Opens the bridge. While another program serves the socket, waits until it ends.
///
/// # Errors
/// If the folder of the socket is not private.
pub(super) fn start(context: BridgeContext) -> Result<OpenBridge, Error> {
    let folder = std::env::temp_dir().join("codex-ipc");
    let folder = discovery::make_private(&folder)?;
    let uid = rustix::process::geteuid().as_raw();
    let path = folder.join(format!("ipc-{uid}.sock"));
    let files = Arc::new(Mutex::new(Some(Vec::new())));
    let accepting = context
        .runtime
        .clone()
        .spawn(serve(path, files.clone(), context));
    Ok(OpenBridge {
        accepting,
        files,
        problems: Vec::new(),
        variable: None,
    })
}

/// Files of the bridge. None once it is closed.
type Files = Arc<Mutex<Option<Vec<DiscoveryFile>>>>;

async fn serve(path: PathBuf, files: Files, context: BridgeContext) {
    loop {
        match bind(&path, &files, &context).await {
            Ok(Some(listener)) => {
                let accept = async move || socket::accept(&listener).await;
                let talk = |stream, _| talk(stream, context.clone());
                return listener::serve_user(accept, talk).await;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "cannot serve Codex yet"),
        }
        sleep(RETRY).await;
    }
}

/// Listens on the socket, unless another program does or the bridge is closed.
async fn bind(
    path: &Path,
    files: &Files,
    context: &BridgeContext,
) -> Result<Option<UnixListener>, Error> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Another server could find the socket free at the same time. Closing the folder unlocks it.
    let lock = File::open(folder).and_then(|folder| {
        folder.try_lock()?;
        Ok(folder)
    });
    if lock.is_err() || !is_free(path).await {
        return Ok(None);
    }
    // Closing the bridge removes the socket, or prevents it.
    let files = &mut *files.lock();
    let Some(files) = files else { return Ok(None) };
    let (listener, file) = socket::bind(&context.runtime, path.to_owned())?;
    files.push(file);
    Ok(Some(listener))
}

/// Returns whether there is nothing at the path of the socket, or a socket that no program listens
/// on. The socket of a stopped program is not free.
async fn is_free(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let found = fs::symlink_metadata(path);
            found.is_ok_and(|found| found.file_type().is_socket())
        }
        Err(_) => false,
    }
}

async fn talk(stream: UnixStream, context: BridgeContext) {
    if let Err(error) = answer_requests(stream, context).await {
        tracing::debug!(%error, "an agent left");
    }
}

/// Answers the requests of a connection.
async fn answer_requests(mut stream: UnixStream, context: BridgeContext) -> io::Result<()> {
    let connected = context.connections.add();
    connected.set_name("Codex");
    let mut buffer = Vec::new();
    loop {
        match codex::first_frame(&buffer) {
            Frame::Incomplete => {
                if timeout(IDLE, stream.read_buf(&mut buffer)).await?? == 0 {
                    return Ok(());
                }
            }
            Frame::TooLarge => return Err(io::Error::other("a frame is too large")),
            Frame::Body(body, size) => {
                buffer.drain(..size);
                let message: Value = serde_json::from_slice(&body).unwrap_or_default();
                let view = context.current_view().await;
                if let Some(response) = codex::answer(&message, &context.roots, &view) {
                    timeout(TIMEOUT, stream.write_all(&codex::frame(&response))).await??;
                }
            }
        }
    }
}
