//! Listens on loopback, and answers a browser.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{self, HeaderMap, HeaderName, HeaderValue},
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use sightline_engine::error::Error;
use sightline_local::{
    listener::{self, Admission, Limits},
    process::{parent_watch::watch_parent, signals},
    token::{RequestCheck, Token},
};
use sightline_protocol::error::ErrorKind;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::Notify,
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};

use crate::{Source, assets, events::Events, methods};

/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 1024 * 1024;
/// Maximum time for the headers of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// Maximum time for the body of a request.
const BODY: Duration = Duration::from_secs(30);
/// Maximum numbers of connections. A browser opens up to six for a page, one of which streams events: enough for two
/// pages at once, and further ones try again.
const LIMITS: Limits = Limits {
    admitted: 16,
    strangers: 16,
};
/// The host name of the page.
const HOST: &str = "127.0.0.1";

/// Headers of every answer.
const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::CACHE_CONTROL, "no-store"),
];

type Body = BoxBody<Bytes, Infallible>;

/// How a page is served.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Port on 127.0.0.1, or 0 for a free one.
    pub port: u16,
    /// Whether requests that change something are refused.
    pub read_only: bool,
    /// Time without a page after which the server ends.
    pub patience: Duration,
    /// Whether it also ends with the process that started it.
    pub ends_with_parent: bool,
}

/// A page that listens.
pub struct Page {
    runtime: Runtime,
    listener: TcpListener,
    port: u16,
    token: Token,
    options: Options,
}

impl Page {
    /// Listens on loopback.
    ///
    /// # Errors
    /// The system refuses it, for example because the port is in use.
    pub fn open(options: Options) -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Error::storage(format!("cannot start threads: {error}")))?;
        let (listener, port) = listener::on_loopback(runtime.handle(), options.port)?;
        Ok(Self {
            runtime,
            listener,
            port,
            token: Token::new()?,
            options,
        })
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address with the token.
    pub fn address(&self) -> String {
        format!("http://{HOST}:{}/#{}", self.port, self.token.as_str())
    }

    /// Returns the content of a file that opens the page. The arguments of a program, which all users can
    /// see, then have no token.
    pub fn opening_file(&self) -> String {
        let address = self.address().replace("/#", &format!("{}#", assets::ENTRY));
        format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Sightline</title>\n\
             <script>location.replace(\"{address}\")</script>\n\
             <a href=\"{address}\" rel=\"noreferrer\">Open Sightline</a>\n"
        )
    }

    /// Serves the page until Ctrl-C, or until no page has been open for the time of the options.
    pub fn serve(self, source: Arc<dyn Source>) {
        let door = Arc::new(Door {
            events: Arc::new(Events::new(source.clone())),
            source,
            check: RequestCheck {
                token: self.token,
                header: header::AUTHORIZATION.as_str(),
                scheme: "Bearer ",
                hosts: RequestCheck::hosts(&[HOST], self.port),
                origin: Some(format!("http://{HOST}:{}", self.port)),
            },
            read_only: self.options.read_only,
            activity: Arc::new(Activity::new()),
        });
        let interrupted = Arc::new(Notify::new());
        let interrupt = interrupted.clone();
        signals::on_termination(self.runtime.handle(), move || interrupt.notify_one());
        if self.options.ends_with_parent {
            let interrupt = interrupted.clone();
            watch_parent(move || interrupt.notify_one());
        }
        let (listener, patience) = (self.listener, self.options.patience);
        self.runtime.block_on(async move {
            let last = door.activity.clone();
            tokio::select! {
                () = listener::serve(
                    LIMITS,
                    async move || Ok(listener.accept().await?.0),
                    move |stream, admission| talk(stream, door.clone(), admission),
                ) => {}
                () = interrupted.notified() => {}
                () = last.ended(patience) => {}
            }
        });
        // A request that runs is completed by the next start, as after a crash.
        self.runtime.shutdown_background();
    }
}

/// When the page was used last.
struct Activity {
    state: Mutex<ActivityState>,
}

struct ActivityState {
    last: Instant,
    streams: usize,
}

/// A page that is open, until it is dropped.
struct OpenPage(Arc<Activity>);

impl Activity {
    fn new() -> Self {
        Self {
            state: Mutex::new(ActivityState {
                last: Instant::now(),
                streams: 0,
            }),
        }
    }

    fn touch(&self) {
        self.state.lock().last = Instant::now();
    }

    fn open(self: &Arc<Self>) -> OpenPage {
        self.state.lock().streams += 1;
        OpenPage(self.clone())
    }

    /// Returns once no page has been open for this time.
    async fn ended(&self, patience: Duration) {
        loop {
            let end = {
                let state = self.state.lock();
                let since = if state.streams > 0 {
                    Instant::now()
                } else {
                    state.last
                };
                since + patience
            };
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.streams -= 1;
        state.last = Instant::now();
    }
}

/// What answers requests.
struct Door {
    source: Arc<dyn Source>,
    check: RequestCheck,
    events: Arc<Events>,
    read_only: bool,
    activity: Arc<Activity>,
}

/// Answers the requests of a connection.
async fn talk(stream: TcpStream, door: Arc<Door>, admission: Admission) {
    let service = service_fn(|request| {
        let (door, admission) = (door.clone(), admission.clone());
        async move { Ok::<_, Infallible>(door.answer(&admission, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        // Idle connections would keep other pages out.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a browser left");
    }
}

#[derive(Deserialize)]
struct Rpc {
    method: String,
    #[serde(default)]
    params: Value,
}

impl Door {
    async fn answer(
        self: &Arc<Self>,
        admission: &Admission,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let answered = match self.check_sender(&head) {
            Ok(()) => self.route(admission, &head, body).await,
            Err(status) => Err(status),
        };
        let mut response = answered.unwrap_or_else(refusal);
        for (name, value) in SECURITY_HEADERS {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// Checks that the page or the user sent the request, not another page.
    fn check_sender(&self, head: &Parts) -> Result<(), StatusCode> {
        self.check.check_sender(&head.headers)?;
        let fetch = |name: &str| head.headers.get(name).map(HeaderValue::as_bytes);
        let is_ours = match (fetch("sec-fetch-site"), head.uri.path()) {
            (None | Some(b"same-origin"), _) | (Some(b"none"), "/") => true,
            // A file is another site. Its token is checked as any other.
            (Some(_), assets::ENTRY) => {
                fetch("sec-fetch-mode") == Some(b"navigate")
                    && fetch("sec-fetch-dest") == Some(b"document")
            }
            (Some(_), _) => false,
        };
        // A URI with an authority replaces the `Host` that was checked.
        if is_ours && head.uri.authority().is_none() {
            Ok(())
        } else {
            Err(StatusCode::FORBIDDEN)
        }
    }

    async fn route(
        self: &Arc<Self>,
        admission: &Admission,
        head: &Parts,
        body: Incoming,
    ) -> Result<Response<Body>, StatusCode> {
        match head.uri.path() {
            "/rpc" => {
                self.check.check_token(&head.headers, admission)?;
                require(head.method == Method::POST && is_json(&head.headers))?;
                self.activity.touch();
                self.rpc(body).await
            }
            "/events" => {
                self.check.check_token(&head.headers, admission)?;
                require(head.method == Method::GET)?;
                Ok(self.events())
            }
            path => {
                require(head.method == Method::GET)?;
                let asset = assets::find(path).ok_or(StatusCode::NOT_FOUND)?;
                Ok(response(asset.content_type, asset.content.into()))
            }
        }
    }

    async fn rpc(self: &Arc<Self>, body: Incoming) -> Result<Response<Body>, StatusCode> {
        let body = timeout(BODY, Limited::new(body, MAX_REQUEST).collect())
            .await
            .map_err(|_| StatusCode::REQUEST_TIMEOUT)?
            .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
        let rpc: Rpc =
            serde_json::from_slice(&body.to_bytes()).map_err(|_| StatusCode::BAD_REQUEST)?;
        let door = self.clone();
        let answered = spawn_blocking(move || {
            let is_changing = methods::changes(&rpc.method, &rpc.params);
            let answer = methods::answer(&*door.source, door.read_only, &rpc.method, rpc.params);
            if is_changing {
                door.events.look();
            }
            answer
        });
        let answer = answered
            .await
            .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok(response("application/json", answer.into()))
    }

    fn events(&self) -> Response<Body> {
        let open = self.activity.open();
        let lines = futures_util::StreamExt::map(self.events.stream(), move |line| {
            let _ = &open;
            line
        });
        let mut response = Response::new(BodyExt::boxed(StreamBody::new(lines)));
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// Refuses what the page does not send.
fn require(is_sent_by_the_page: bool) -> Result<(), StatusCode> {
    if is_sent_by_the_page {
        Ok(())
    } else {
        Err(StatusCode::FORBIDDEN)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let is_json = |kind: &HeaderValue| {
        let essence = kind.to_str().ok().and_then(|kind| kind.split(';').next());
        essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    };
    headers.get_all(header::CONTENT_TYPE).iter().count() == 1
        && headers.get(header::CONTENT_TYPE).is_some_and(is_json)
}

fn response(content_type: &'static str, content: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(content).boxed());
    let kind = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn refusal(status: StatusCode) -> Response<Body> {
    let (kind, message) = match status {
        StatusCode::UNAUTHORIZED => (
            ErrorKind::AccessDenied,
            "wrong or no token: use the address that `sightline ui` printed",
        ),
        StatusCode::FORBIDDEN => (
            ErrorKind::AccessDenied,
            "the request is not from the page of this address",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => (ErrorKind::TooLarge, "the request exceeds 1 MiB"),
        StatusCode::SERVICE_UNAVAILABLE => (ErrorKind::Busy, "too many connections"),
        StatusCode::NOT_FOUND => (ErrorKind::NotFound, "there is no such file"),
        StatusCode::INTERNAL_SERVER_ERROR => (ErrorKind::Internal, "internal error"),
        _ => (ErrorKind::InvalidParams, "cannot read the request"),
    };
    let error = json!({ "code": kind.code(), "message": message, "data": { "kind": kind } });
    let mut response = response(
        "application/json",
        json!({ "error": error }).to_string().into(),
    );
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::Watched;

    struct Nothing;

    impl Source for Nothing {
        fn has(&self, _: &str) -> bool {
            false
        }

        fn call(&self, method: &str, _: &Value) -> Result<Box<RawValue>, Error> {
            Err(Error::invalid(method))
        }

        fn watched(&self) -> Vec<Watched> {
            Vec::new()
        }
    }

    #[test]
    fn it_ends_without_a_page() {
        let page = Page::open(Options {
            port: 0,
            read_only: false,
            patience: Duration::ZERO,
            ends_with_parent: false,
        });
        page.unwrap_or_else(|error| panic!("{error:?}"))
            .serve(Arc::new(Nothing));
    }

    #[test]
    fn an_open_page_is_waited_for() {
        let used = Arc::new(Activity::new());
        let open = used.open();
        assert_eq!(used.state.lock().streams, 1);
        drop(open);
        assert_eq!(used.state.lock().streams, 0);
    }
}
