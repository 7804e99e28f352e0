//! gemini-cli, Qwen Code and Copilot CLI: HTTP on loopback or on a local socket, and files with its
//! address and token.
//!
//! `hyper` is used directly, because it limits the time for headers.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::stream;
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use sightline_agents::{
    Agent,
    ide::companion::{self, Dialect},
};
use sightline_engine::error::Error;
use sightline_local::{
    discovery,
    listener::{self, Admission, Limits},
    token::{RequestCheck, Token},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{sleep, timeout},
};

use crate::{BridgeContext, OpenBridge};

/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 1024 * 1024;
/// Time for the headers and for the body of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time after a change until it is sent.
const SETTLE: Duration = Duration::from_millis(50);
/// Interval of comments in a quiet stream. Agents on Node end a stream after 5 quiet minutes.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

type Body = BoxBody<Bytes, Infallible>;

/// What answers the requests of a dialect.
struct Endpoint {
    context: BridgeContext,
    dialect: Dialect,
    check: RequestCheck,
}

/// Opens the bridge to gemini-cli and Qwen Code.
///
/// # Errors
/// If it cannot listen, or a file cannot be written.
pub(super) fn start_gemini(context: BridgeContext) -> Result<OpenBridge, Error> {
    let temporary = std::env::temp_dir().join("gemini/ide");
    let qwen = discovery::agent_folder(Agent::Qwen)?.join("ide");
    let token = Token::new()?;
    let (listener, port) = listener::on_loopback(&context.runtime, 0)?;
    let pid = std::process::id();
    let (roots, name) = (&context.roots, &context.ide_name);
    let content = companion::gemini_file(port, roots, name, token.as_str(), pid)
        .ok_or_else(|| Error::storage("gemini-cli cannot find folders with `:` in their path"))?;
    let files = [
        (temporary, format!("gemini-ide-server-{pid}-{port}.json")),
        (qwen, format!("{port}.lock")),
    ];
    let (files, problems) = discovery::write_all(files, "ppid", &content)?;
    let hosts = ["127.0.0.1", "localhost", "host.docker.internal"];
    let check = RequestCheck {
        token,
        header: "authorization",
        scheme: "Bearer ",
        hosts: RequestCheck::hosts(&hosts, port),
        origin: None,
    };
    let runtime = context.runtime.clone();
    let endpoint = Arc::new(Endpoint {
        context,
        dialect: Dialect::Gemini,
        check,
    });
    let accepting = runtime.spawn(listener::serve(
        Limits::BRIDGE,
        async move || Ok(listener.accept().await?.0),
        move |stream, admission| talk(stream, endpoint.clone(), admission),
    ));
    Ok(OpenBridge::new(accepting, files, problems))
}

/// Opens the bridge to Copilot CLI.
///
/// # Errors
/// If it cannot listen, or a file cannot be written.
#[cfg(unix)]
pub(super) fn start_copilot(context: BridgeContext) -> Result<OpenBridge, Error> {
    let folder = discovery::agent_folder(Agent::Copilot)?.join("ide");
    let folder = discovery::make_private(&folder)?;
    discovery::remove_stale(&folder, "pid");
    let token = Token::new()?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let socket = folder.join(format!(
        "sightline-{}.sock",
        id.get(..8).unwrap_or_default()
    ));
    let (listener, file) = sightline_local::socket::bind(&context.runtime, socket.clone())?;
    let content = companion::copilot_file(
        &socket,
        &context.roots,
        &context.ide_name,
        token.as_str(),
        std::process::id(),
        sightline_base::clock::now_millis(),
    );
    let files = vec![
        discovery::DiscoveryFile::write(socket.with_extension("lock"), &content)?,
        file,
    ];
    let check = RequestCheck {
        token,
        header: "authorization",
        scheme: "Nonce ",
        hosts: None,
        origin: None,
    };
    let runtime = context.runtime.clone();
    let endpoint = Arc::new(Endpoint {
        context,
        dialect: Dialect::Copilot,
        check,
    });
    let accepting = runtime.spawn(listener::serve_user(
        async move || sightline_local::socket::accept(&listener).await,
        move |stream, admission| talk(stream, endpoint.clone(), admission),
    ));
    Ok(OpenBridge::new(accepting, files, Vec::new()))
}

/// Answers the requests of a connection.
async fn talk<S>(stream: S, endpoint: Arc<Endpoint>, admission: Admission)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| {
        let (endpoint, admission) = (endpoint.clone(), admission.clone());
        async move { Ok::<_, Infallible>(answer(&endpoint, &admission, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an agent left");
    }
}

async fn answer(
    endpoint: &Endpoint,
    admission: &Admission,
    request: Request<Incoming>,
) -> Response<Body> {
    if let Err(status) = endpoint.check.check(request.headers(), admission) {
        return empty(status);
    }
    if request.uri().path() != "/mcp" {
        return empty(StatusCode::NOT_FOUND);
    }
    match *request.method() {
        Method::POST => {
            let body = Limited::new(request.into_body(), MAX_REQUEST).collect();
            match timeout(TIMEOUT, body).await {
                Ok(Ok(body)) => message(endpoint, &body.to_bytes()).await,
                Ok(Err(_)) => empty(StatusCode::PAYLOAD_TOO_LARGE),
                Err(_) => empty(StatusCode::REQUEST_TIMEOUT),
            }
        }
        Method::GET => events(endpoint).await,
        // There are no sessions: a connection has no state.
        Method::DELETE => empty(StatusCode::OK),
        _ => empty(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// Answers a message.
async fn message(endpoint: &Endpoint, body: &[u8]) -> Response<Body> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let view = endpoint.context.current_view().await;
    match companion::answer(endpoint.dialect, &message, &view) {
        Some(reply) => {
            let mut response = Response::new(Full::new(Bytes::from(reply.to_string())).boxed());
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        None => empty(StatusCode::ACCEPTED),
    }
}

/// Streams the newest state, at once and after each change.
async fn events(endpoint: &Endpoint) -> Response<Body> {
    let dialect = endpoint.dialect;
    let connected = endpoint.context.connections.add();
    connected.set_name(match dialect {
        Dialect::Gemini => "gemini-cli or Qwen Code",
        Dialect::Copilot => "Copilot CLI",
    });
    // Publishes it, so the first event has it.
    endpoint.context.current_view().await;
    let views = endpoint.context.views.clone();
    let start = (views, None::<Value>, connected);
    let events = stream::unfold(start, move |(mut views, mut sent, connected)| async move {
        loop {
            if sent.is_some() {
                match timeout(KEEP_ALIVE, views.changed()).await {
                    Ok(changed) => changed.ok()?,
                    Err(_) => {
                        let comment = Frame::data(Bytes::from_static(b":\n\n"));
                        return Some((Ok(comment), (views, sent, connected)));
                    }
                }
                sleep(SETTLE).await;
            }
            let update = companion::update(dialect, &views.borrow_and_update());
            if sent.as_ref() != Some(&update) {
                let event = Bytes::from(format!("data: {update}\n\n"));
                sent = Some(update);
                return Some((Ok(Frame::data(event)), (views, sent, connected)));
            }
        }
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(events)));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = status;
    response
}
