//! Sends a request to a provider, and streams the response as it comes.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body_util::{Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint},
    header::{self, HeaderName, HeaderValue},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    failure::Failure,
    upstream::Upstream,
    usage::{Outcome, Recording},
};

/// Maximum time without a byte of a response. Models think for minutes.
const IDLE: Duration = Duration::from_secs(600);
/// Maximum time for repeated attempts. Agents repeat requests too.
const RETRIES: Duration = Duration::from_secs(8);
/// Pauses before repeated attempts, unless the provider names one.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1500)];
/// Longest pause that a provider may name for a repeated attempt.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Maximum time to connect to a provider.
const CONNECT: Duration = Duration::from_secs(15);

/// Headers about the connection, not about the request or the response.
const CONNECTION_HEADERS: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Connections to providers.
pub(crate) struct Client {
    /// Or why there are no certificates.
    https: Result<HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>, String>,
    http: HyperClient<HttpConnector, Full<Bytes>>,
}

impl Client {
    /// Reads the certificates that the system trusts, also those of a company.
    pub(crate) fn new() -> Self {
        let connector = || {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            connector.enforce_http(false);
            connector.set_connect_timeout(Some(CONNECT));
            connector
        };
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        let https = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map(|roots| {
                let connector = roots
                    .https_only()
                    .enable_http1()
                    .wrap_connector(connector());
                builder.build(connector)
            })
            .map_err(|error| {
                format!(
                    "cannot read the certificates of the system: {error}; install ca-certificates"
                )
            });
        Self {
            https,
            http: builder.build(connector()),
        }
    }

    /// Sends a request, and repeats it up to two times if the provider is busy or cannot be reached. Nothing was
    /// passed on to the agent then.
    ///
    /// # Errors
    /// See [`Self::send`].
    pub(crate) async fn send_and_repeat(
        &self,
        upstream: &Upstream,
        uri: Uri,
        method: Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let end = Instant::now() + RETRIES;
        for pause in PAUSES {
            let (uri, method) = (uri.clone(), method.clone());
            let sent = self
                .send(upstream, uri, method, headers, body.clone())
                .await;
            let pause = match &sent {
                Ok(response) => pause_before_repeating(response, pause),
                Err(failure) => failure.is_temporary().then_some(pause),
            };
            match pause {
                Some(pause) if Instant::now() + pause < end => sleep(pause).await,
                _ => return sent,
            }
        }
        self.send(upstream, uri, method, headers, body).await
    }

    /// Sends a request. Redirects are not followed: they would take the credentials elsewhere.
    ///
    /// # Errors
    /// If the provider cannot be reached, or redirects.
    async fn send(
        &self,
        upstream: &Upstream,
        uri: Uri,
        method: Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let host = upstream.host();
        let mut request = Request::new(Full::new(body));
        let is_secure = uri.scheme_str() == Some("https");
        *request.uri_mut() = uri;
        *request.method_mut() = method;
        *request.headers_mut() = end_to_end(headers);
        let headers = request.headers_mut();
        for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT] {
            headers.remove(name);
        }
        // The stream is read for its usage.
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        let sent = async {
            if is_secure {
                let client = self.https.as_ref().map_err(Clone::clone)?;
                client
                    .request(request)
                    .await
                    .map_err(|error| causes(&error))
            } else {
                let sent = self.http.request(request).await;
                sent.map_err(|error| causes(&error))
            }
        };
        let unreachable = |why: String| {
            let message = format!("cannot reach {host}: {why}");
            Failure::temporary(StatusCode::BAD_GATEWAY, message)
        };
        let response = match timeout(IDLE, sent).await {
            Ok(sent) => sent.map_err(unreachable)?,
            Err(_) => return Err(unreachable("no answer for 10 minutes".to_owned())),
        };
        if response.status().is_redirection() && response.headers().contains_key(header::LOCATION) {
            return Err(Failure::new(
                StatusCode::BAD_REQUEST,
                format!(
                    "{host} redirects to another address; start the gateway with it: --upstream NAME=URL"
                ),
            ));
        }
        Ok(response)
    }
}

/// Returns the pause before a request is repeated, or `None` if its response is passed on.
fn pause_before_repeating(response: &Response<Incoming>, pause: Duration) -> Option<Duration> {
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    if header("x-should-retry") == Some("false") {
        return None;
    }
    let named = header("retry-after").map(|value| value.parse().map(Duration::from_secs));
    let named = match named {
        Some(Ok(named)) if named <= MAX_PAUSE => Some(named),
        // A long time, or a date.
        Some(_) => return None,
        None => None,
    };
    match response.status().as_u16() {
        429 => named,
        500 | 502 | 503 | 504 | 529 => Some(named.unwrap_or(pause)),
        _ => None,
    }
}

/// Returns an error with its causes. They name addresses and failed system calls, no content.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Returns the headers without those about the connection.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase());
    let named: Vec<String> = named.collect();
    let mut kept = headers.clone();
    for name in CONNECTION_HEADERS.iter().map(HeaderName::as_str) {
        kept.remove(name);
    }
    for name in named {
        kept.remove(name.as_str());
    }
    kept
}

/// The body of a response of a provider, passed on as it comes. A stream that breaks off does so
/// towards the agent too.
pub(crate) struct Stream {
    body: BoxBody<Bytes, hyper::Error>,
    idle: Pin<Box<Sleep>>,
    is_ended: bool,
    recording: Option<Recording>,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// Takes the place of the request, until the stream ends or the agent has left.
    pub(crate) fn new(
        body: BoxBody<Bytes, hyper::Error>,
        place: OwnedSemaphorePermit,
        recording: Option<Recording>,
    ) -> Self {
        Self {
            body,
            idle: Box::pin(sleep(IDLE)),
            is_ended: false,
            recording,
            _place: place,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(recording) = self.recording.take() {
            let is_complete = self.is_ended || self.body.is_end_stream();
            recording.end(match is_complete {
                true => Outcome::Complete,
                false => Outcome::Broken,
            });
        }
    }
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending => {
                ready!(self.idle.as_mut().poll(context));
                Poll::Ready(Some(Err("no byte for 10 minutes".into())))
            }
            Poll::Ready(frame) => {
                self.idle.as_mut().reset(Instant::now() + IDLE);
                self.is_ended |= frame.is_none();
                if let Some(Ok(frame)) = &frame
                    && let Some(bytes) = frame.data_ref()
                    && let Some(recording) = &mut self.recording
                {
                    recording.meter.feed(bytes);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
