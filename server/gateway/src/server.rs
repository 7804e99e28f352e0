//! Connections and requests of agents.

use std::{borrow::Cow, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, Limited, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode, Uri,
    body::{Body as _, Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use sightline_base::peer;
use sightline_conversation::{model_info, wire::Values};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::{
    address::{self, Address},
    body::RequestBody,
    failure::{Api, Body, Failure},
    forward::{Client, Stream, end_to_end},
    redact::{Redaction, Workspace},
    repair,
    secret::Secret,
    task::{self, Task},
    upstream::{Upstream, Upstreams},
    usage::{Log, Meter, Outcome, Record, Recording, Usage},
};

/// Header of requests of Codex with a ChatGPT account.
const CHATGPT_ACCOUNT: &str = "chatgpt-account-id";
/// Header of a response: the number of strings of the request that were changed.
const REDACTED: HeaderName = HeaderName::from_static("x-sightline-redacted");
/// Header of a response: there are more denied files than can be recognized.
const INCOMPLETE: HeaderName = HeaderName::from_static("x-sightline-incomplete");
/// Maximum size of an error that is read, in bytes.
const MAX_ERROR: usize = 1 << 20;
/// Maximum number of requests in flight.
const MAX_REQUESTS: usize = 64;
/// Maximum number of connections. Larger, because agents keep some open.
const MAX_CONNECTIONS: usize = 512;
/// Maximum time for headers.
const HEADERS: Duration = Duration::from_secs(30);
/// Maximum time for a place.
const PLACE: Duration = Duration::from_secs(60);
/// Time after a failed `accept`. The process is probably out of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A body of a response of a provider.
type ResponseBody = BoxBody<Bytes, hyper::Error>;

/// What answers requests.
pub(crate) struct Gateway {
    secret: Secret,
    address: SocketAddr,
    upstreams: Upstreams,
    client: Client,
    redaction: Arc<Redaction>,
    log: Log,
    /// Context window of models that are not known.
    limit: Option<f64>,
    places: Arc<Semaphore>,
}

impl Gateway {
    /// Creates a gateway that listens on `address`.
    pub(crate) fn new(
        secret: Secret,
        address: SocketAddr,
        upstreams: Upstreams,
        redaction: Redaction,
        log: Log,
        limit: Option<f64>,
    ) -> Self {
        Self {
            secret,
            address,
            upstreams,
            client: Client::new(),
            redaction: Arc::new(redaction),
            log,
            limit,
            places: Arc::new(Semaphore::new(MAX_REQUESTS)),
        }
    }

    /// Returns the line for a request with a body, as if the gateway had refused it.
    fn record(
        &self,
        head: &Parts,
        address: Address<'_>,
        task: &Task,
        body: &RequestBody,
    ) -> Option<Record> {
        if body.text.is_empty() {
            return None;
        }
        let model = body
            .string(Values::ALL, "model")
            .map(Cow::into_owned)
            .or_else(|| address.model().map(str::to_owned));
        let window = model
            .as_deref()
            .and_then(model_info::known_context_window)
            .or(self.limit);
        let has = |name: &str, word: &str| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.is_some_and(|value| value.contains(word))
        };
        let is_subscription = has(CHATGPT_ACCOUNT, "")
            || has("anthropic-beta", "oauth-")
            || matches!(address.upstream, "copilot" | "codeassist");
        Some(Record {
            at: 0,
            task: match task {
                Task::Id(id) => id.clone(),
                Task::Start(start) => format!("{:032x}", self.redaction.hash(&[start])),
            },
            agent: task::agent(&head.headers),
            upstream: address.upstream.to_owned(),
            path: address.path.to_owned(),
            model,
            window,
            is_subscription,
            status: 0,
            outcome: Outcome::Refused,
            usage: Usage::default(),
            redacted: 0,
        })
    }
}

/// Serves connections.
pub(crate) async fn serve(listener: TcpListener, gateway: Arc<Gateway>) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // Fails only if it is closed.
        let Ok(place) = connections.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let gateway = gateway.clone();
                tokio::spawn(async move {
                    let _place = place;
                    talk(stream, peer, gateway).await;
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of a connection of the same user.
async fn talk(stream: TcpStream, peer: SocketAddr, gateway: Arc<Gateway>) {
    let (own, redaction) = (gateway.address, gateway.redaction.clone());
    let of_agent = spawn_blocking(move || {
        let workspaces = &redaction.workspaces;
        peer::is_same_user(own, peer).then(|| {
            // All processes are searched for it.
            let is_needed = workspaces.follow_agents();
            let folder = is_needed.then(|| peer::folder(own, peer)).flatten();
            workspaces.of(folder.as_deref())
        })
    });
    let Ok(Some(workspace)) = of_agent.await else {
        return;
    };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let connection = Connection { gateway, workspace };
    let service =
        service_fn(|request| async { Ok::<_, Infallible>(answer(&connection, request).await) });
    // An agent that leaves is no error.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A connection of an agent.
struct Connection {
    gateway: Arc<Gateway>,
    /// Or why it is not known.
    workspace: Result<Arc<Workspace>, String>,
}

async fn answer(connection: &Connection, request: Request<Incoming>) -> Response<Body> {
    let (head, content) = request.into_parts();
    let gateway = &*connection.gateway;
    let port = gateway.address.port();
    let address = match address::check(&head.uri, &head.headers, &gateway.secret, port) {
        Ok(address) => address,
        Err(failure) => return failure.response(Api::Completions),
    };
    let api = address.api().unwrap_or(Api::Completions);
    match forward(connection, &head, address, content).await {
        Ok(response) => response,
        Err(failure) => failure.response(api),
    }
}

/// Reads, checks and forwards a request.
async fn forward(
    connection: &Connection,
    head: &Parts,
    address: Address<'_>,
    content: Incoming,
) -> Result<Response<Body>, Failure> {
    let gateway = &*connection.gateway;
    let workspace = connection.workspace.clone().map_err(cannot_check)?;
    let is_of_chatgpt = head.headers.contains_key(CHATGPT_ACCOUNT);
    let name = address.upstream;
    let route = gateway.upstreams.route(name, address.path, is_of_chatgpt);
    let Some((upstream, path)) = route else {
        return Err(Failure::new(
            StatusCode::NOT_FOUND,
            format!("no upstream {name:?}; start the gateway with --upstream {name}=URL"),
        ));
    };
    let place = timeout(PLACE, gateway.places.clone().acquire_owned()).await;
    let Ok(Ok(place)) = place else {
        let message = format!("{MAX_REQUESTS} requests are running; wait for one to end");
        return Err(Failure::temporary(StatusCode::SERVICE_UNAVAILABLE, message));
    };
    if !content.is_end_stream() && address.api().is_none() {
        return Err(Failure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "cannot check the body: the path belongs to no known API",
        ));
    }
    let uri = upstream.uri(path, head.uri.query()).ok_or_else(|| {
        Failure::new(
            StatusCode::BAD_REQUEST,
            "cannot use the path of the request",
        )
    })?;
    let content = Arc::new(RequestBody::read(content, &head.headers).await?);
    let task = task::of(&head.headers, &content);
    let record = gateway.record(head, address, &task, &content);
    let exchange = Exchange {
        gateway,
        workspace,
        head,
        address,
        upstream,
        uri,
        task,
        content,
    };
    let (checked, response) = match exchange.run().await {
        Ok(done) => done,
        Err(failure) => {
            if let Some(mut record) = record {
                record.status = failure.status().as_u16();
                gateway.log.add(record);
            }
            return Err(failure);
        }
    };
    let (mut head, body) = response.into_parts();
    head.headers = end_to_end(&head.headers);
    if checked.changed > 0 {
        head.headers.insert(REDACTED, checked.changed.into());
    }
    if !checked.is_complete {
        head.headers
            .insert(INCOMPLETE, HeaderValue::from_static("1"));
    }
    let recording = record.map(|record| Recording {
        meter: Meter::new(
            address.api().unwrap_or(Api::Completions),
            is_stream(&head.headers),
        ),
        record: Record {
            status: head.status.as_u16(),
            redacted: checked.changed,
            ..record
        },
        log: gateway.log.clone(),
    });
    Ok(Response::from_parts(
        head,
        Stream::new(body, place, recording).boxed(),
    ))
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

/// A request that may be sent.
struct CheckedRequest {
    bytes: Bytes,
    changed: usize,
    is_complete: bool,
}

/// A request and its answer.
struct Exchange<'a> {
    gateway: &'a Gateway,
    workspace: Arc<Workspace>,
    head: &'a Parts,
    address: Address<'a>,
    upstream: &'a Upstream,
    uri: Uri,
    task: Task,
    content: Arc<RequestBody>,
}

impl Exchange<'_> {
    /// Checks and sends the request. If its conversation does not fit into the context window, makes
    /// it shorter and sends it once more, where that is safe.
    async fn run(&self) -> Result<(CheckedRequest, Response<ResponseBody>), Failure> {
        let checked = self.check().await?;
        let response = self.send(&checked).await?;
        let status = response.status();
        let may_be_too_long =
            status == StatusCode::BAD_REQUEST || status == StatusCode::PAYLOAD_TOO_LARGE;
        let (api, headers) = (self.address.api(), &self.head.headers);
        if !may_be_too_long || !repair::may_mask(api, &self.task, headers, &self.content) {
            return Ok((checked, response.map(BodyExt::boxed)));
        }
        let (head, body) = response.into_parts();
        let body = match Limited::new(body, MAX_ERROR).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => {
                let message = "cannot read the error of the provider: it broke off";
                return Err(Failure::temporary(StatusCode::BAD_GATEWAY, message));
            }
        };
        if repair::says_too_long(status, self.address.upstream, &body) && self.mask().await? {
            let checked = self.check().await?;
            let response = self.send(&checked).await?;
            return Ok((checked, response.map(BodyExt::boxed)));
        }
        // Agents match the words of the provider.
        let body = Full::new(body).map_err(|never| match never {}).boxed();
        Ok((checked, Response::from_parts(head, body)))
    }

    async fn send(&self, checked: &CheckedRequest) -> Result<Response<Incoming>, Failure> {
        let (uri, method) = (self.uri.clone(), self.head.method.clone());
        let (client, bytes) = (&self.gateway.client, checked.bytes.clone());
        client
            .send_and_repeat(self.upstream, uri, method, &self.head.headers, bytes)
            .await
    }

    /// Takes the contents of denied files out of the request. Its bytes stay if it has none.
    async fn check(&self) -> Result<CheckedRequest, Failure> {
        if self.content.text.is_empty() {
            return Ok(CheckedRequest {
                bytes: self.content.bytes.clone(),
                changed: 0,
                is_complete: true,
            });
        }
        let workspace = self.workspace.clone();
        let agent = task::agent(&self.head.headers);
        self.decide(move |redaction, task, body| {
            let checked = redaction.check(&workspace, task, agent, body)?;
            let bytes = match &checked.text {
                Some(text) => body.encode(text).map_err(|error| error.to_string())?,
                None => body.bytes.clone(),
            };
            Ok(CheckedRequest {
                bytes,
                changed: checked.changed,
                is_complete: checked.is_complete,
            })
        })
        .await
    }

    /// Decides to replace old results of the conversation. Returns whether that is worth it.
    async fn mask(&self) -> Result<bool, Failure> {
        self.decide(|redaction, task, body| redaction.mask(task, body))
            .await
    }

    /// Runs what reads files.
    async fn decide<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&Redaction, &str, &RequestBody) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Failure> {
        let redaction = self.gateway.redaction.clone();
        let (task, content) = (self.task.clone(), self.content.clone());
        let decided = spawn_blocking(move || decide(&redaction, task.text(), &content));
        let why = match decided.await {
            Ok(Ok(decided)) => return Ok(decided),
            Ok(Err(why)) => why,
            Err(_) => "internal error".to_owned(),
        };
        Err(cannot_check(why))
    }
}

fn cannot_check(why: String) -> Failure {
    Failure::new(
        StatusCode::BAD_REQUEST,
        format!("cannot check the request: {why}"),
    )
}
