//! Codex: the socket of `/ide`, of which a user has one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use sightline_agents::ide::codex::{self, Frame};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    BridgeContext, MAX_CONNECTIONS, OpenBridge,
    discovery::{self, DiscoveryFile},
    socket,
};
use crate::error::Error;

/// Interval of attempts while another program serves the socket.
const RETRY: Duration = Duration::from_secs(5);
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
    discovery::make_private(&folder)?;
    let uid = rustix::process::geteuid().as_raw();
    let path = folder.join(format!("ipc-{uid}.sock"));
    let files = Arc::new(Mutex::new(Some(Vec::new())));
    let accepting = context
        .runtime
        .clone()
        .spawn(serve(path, files.clone(), context));
    Ok(OpenBridge { accepting, files })
}

/// Files of the bridge. None once it is closed.
type Files = Arc<Mutex<Option<Vec<DiscoveryFile>>>>;

async fn serve(path: PathBuf, files: Files, context: BridgeContext) {
    while is_served(&path).await {
        sleep(RETRY).await;
    }
    let listener = {
        // Closing the bridge removes the socket, or prevents it.
        let files = &mut *files.lock();
        let Some(files) = files else { return };
        match socket::bind(&context.runtime, path) {
            Ok((listener, file)) => {
                files.push(file);
                listener
            }
            Err(error) => return tracing::warn!(%error, "cannot serve Codex"),
        }
    };
    accept(&listener, &context).await;
}

/// Returns whether a program accepts connections at a socket.
async fn is_served(path: &Path) -> bool {
    UnixStream::connect(path).await.is_ok()
}

async fn accept(listener: &UnixListener, context: &BridgeContext) {
    // Dropping the set ends the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket::accept(listener) => match accepted {
                Ok(stream) if connections.len() < MAX_CONNECTIONS => {
                    let context = context.clone();
                    connections.spawn(async move {
                        if let Err(error) = talk(stream, context).await {
                            tracing::debug!(%error, "an agent left");
                        }
                    });
                }
                Ok(_) => {}
                // Probably out of file descriptors; retrying at once would spin.
                Err(_) => sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers the requests of a connection.
async fn talk(mut stream: UnixStream, context: BridgeContext) -> std::io::Result<()> {
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
            Frame::TooLarge => return Err(std::io::Error::other("a frame is too large")),
            Frame::Body(body, size) => {
                buffer.drain(..size);
                let message: Value = serde_json::from_slice(&body).unwrap_or_default();
                let view = context.views.borrow().clone();
                if let Some(response) = codex::answer(&message, &context.roots, &view) {
                    timeout(TIMEOUT, stream.write_all(&codex::frame(&response))).await??;
                }
            }
        }
    }
}
