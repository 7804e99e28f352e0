//! Claude Code and opencode: a WebSocket on loopback, and a lock file with its port and token.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use sightline_agents::ide::{
    claude::{self, DiffCall, SelectionAfter, TOKEN_HEADER},
    view::EditorView,
};
use sightline_engine::error::Error;
use sightline_local::{
    discovery,
    listener::{self, Admission, Limits},
    token::{RequestCheck, Token},
};
use tokio::{
    net::TcpStream,
    sync::broadcast::error::RecvError,
    time::{Instant, sleep_until, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        self, Message,
        handshake::server::{ErrorResponse, Request, Response},
        http::HeaderValue,
        protocol::WebSocketConfig,
    },
};

use crate::{BridgeContext, OpenBridge, diffs::OpenDiffs};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Time for the handshake, and for an agent to take a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum interval between messages with a selection.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time after the list of tools until the selection is sent again.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

/// Opens the bridge.
///
/// # Errors
/// If it cannot listen, or the lock file cannot be written.
pub(super) fn start(context: BridgeContext) -> Result<OpenBridge, Error> {
    let token = Token::new()?;
    let (listener, port) = listener::on_loopback(&context.runtime, 0)?;
    let content = claude::lock_file(
        std::process::id(),
        &context.roots,
        &context.ide_name,
        token.as_str(),
    );
    let files = lock_folders()?.map(|folder| (folder, format!("{port}.lock")));
    let (files, problems) = discovery::write_all(files, "pid", &content)?;
    let runtime = context.runtime.clone();
    let check = RequestCheck {
        token,
        header: TOKEN_HEADER,
        scheme: "",
        hosts: RequestCheck::hosts(&["127.0.0.1", "localhost"], port),
        origin: None,
    };
    let accepting = runtime.spawn(listener::serve(
        Limits::BRIDGE,
        async move || Ok(listener.accept().await?.0),
        move |stream, admission| talk(stream, check.clone(), admission, context.clone()),
    ));
    let mut bridge = OpenBridge::new(accepting, files, problems);
    // Without it, Claude Code connects only with `--ide` or a setting.
    bridge.variable = Some(("CLAUDE_CODE_SSE_PORT", port.to_string()));
    Ok(bridge)
}

/// Returns the folders of the lock files. opencode ignores `CLAUDE_CONFIG_DIR`.
fn lock_folders() -> Result<impl Iterator<Item = PathBuf>, Error> {
    let default = discovery::home()?.join(".claude");
    let configured = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let configured = configured.filter(|dir| dir.is_absolute() && *dir != default);
    let folders = configured.into_iter().chain([default]);
    Ok(folders.map(|folder| folder.join("ide")))
}

async fn talk(
    stream: TcpStream,
    check: RequestCheck,
    admission: Admission,
    context: BridgeContext,
) {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    #[expect(clippy::result_large_err, reason = "the callback's type")]
    let upgrade = |request: &Request, response| upgrade(request, response, &check, &admission);
    let handshake = accept_hdr_async_with_config(stream, upgrade, Some(limits));
    let Ok(Ok(socket)) = timeout(TIMEOUT, handshake).await else {
        return;
    };
    if let Err(error) = serve_agent(socket, context).await {
        tracing::debug!(%error, "an agent left");
    }
}

/// Answers the request for a WebSocket.
#[expect(clippy::result_large_err, reason = "the callback's type")]
fn upgrade(
    request: &Request,
    mut response: Response,
    check: &RequestCheck,
    admission: &Admission,
) -> Result<Response, ErrorResponse> {
    let headers = request.headers();
    if let Err(status) = check.check(headers, admission) {
        let mut refused = ErrorResponse::new(None);
        *refused.status_mut() = status;
        return Err(refused);
    }
    let protocols = headers.get("sec-websocket-protocol");
    let protocols = protocols
        .and_then(|names| names.to_str().ok())
        .unwrap_or_default();
    if protocols.split(',').any(|name| name.trim() == "mcp") {
        let ours = HeaderValue::from_static("mcp");
        response
            .headers_mut()
            .insert("sec-websocket-protocol", ours);
    }
    Ok(response)
}

/// Answers an agent and sends it selections, until it leaves.
async fn serve_agent(
    mut socket: WebSocketStream<TcpStream>,
    mut context: BridgeContext,
) -> Result<(), tungstenite::Error> {
    let connected = context.connections.add();
    let mut mentions = context.mentions.subscribe();
    let mut diffs = OpenDiffs::new(
        context.runtime.clone(),
        context.services.clone(),
        context.connections.clone(),
    );
    let mut sent = None;
    // When to send the selection, and when to send it again.
    let (mut due, mut repeat) = (None, None);
    let mut is_ready = false;
    let mut last = Instant::now();
    loop {
        let next = [due, repeat].into_iter().flatten().min();
        tokio::select! {
            message = socket.next() => {
                let Some(message) = message else { return Ok(()) };
                let text = match message? {
                    Message::Text(text) => text,
                    Message::Close(_) => return Ok(()),
                    _ => continue,
                };
                let message: Value = serde_json::from_str(&text).unwrap_or_default();
                if let Some(name) = message["params"]["clientInfo"]["name"].as_str() {
                    connected.set_name(name);
                }
                if let Some(call) = DiffCall::of(&message) {
                    for response in diffs.call(call, &connected.name()) {
                        send(&mut socket, &response).await?;
                    }
                    continue;
                }
                let view = context.current_view().await;
                let (reply, after) = claude::answer(&message, &view);
                if let Some(reply) = reply {
                    send(&mut socket, &reply).await?;
                }
                if after != SelectionAfter::Nothing {
                    is_ready = true;
                    due = Some(Instant::now());
                    sent = None;
                }
                if after == SelectionAfter::NowAndLater {
                    repeat = Some(Instant::now() + REPEAT_AFTER);
                }
            }
            changed = context.views.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                for response in diffs.close_if_paused() {
                    send(&mut socket, &response).await?;
                }
                if is_ready && due.is_none() {
                    due = Some(last + INTERVAL);
                }
            }
            response = diffs.next_response() => send(&mut socket, &response).await?,
            mention = mentions.recv() => match mention {
                Ok(mention) if is_ready => {
                    send(&mut socket, &claude::at_mentioned(&mention.path, mention.lines)).await?;
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            },
            () = sleep_until(next.unwrap_or(last)), if next.is_some() => {
                let now = Instant::now();
                if repeat.is_some_and(|repeat| repeat <= now) {
                    (repeat, sent) = (None, None);
                }
                (due, last) = (None, now);
                let view: Arc<EditorView> = context.views.borrow_and_update().clone();
                let selection = claude::selection_changed(&view);
                if sent.as_ref() != Some(&selection) {
                    send(&mut socket, &selection).await?;
                    sent = Some(selection);
                }
            }
        }
    }
}

/// Sends a message to an agent that takes it in time.
async fn send(
    socket: &mut WebSocketStream<TcpStream>,
    message: &Value,
) -> Result<(), tungstenite::Error> {
    let text = Message::text(message.to_string());
    match timeout(TIMEOUT, socket.send(text)).await {
        Ok(sent) => sent,
        Err(_) => Err(tungstenite::Error::ConnectionClosed),
    }
}
