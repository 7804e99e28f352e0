//! Sends a request to a provider, and streams the response as it comes.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body_util::Full;
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

use crate::{failure::Failure, upstream::Upstream};

/// Maximum time without a byte of a response. Models think for minutes.
const IDLE: Duration = Duration::from_secs(600);
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

    /// Sends a request. Redirects are not followed: they would take the credentials elsewhere.
    ///
    /// # Errors
    /// If the provider cannot be reached, or redirects.
    pub(crate) async fn send(
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
    body: Incoming,
    idle: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// Takes the place of the request, until the stream ends or the agent has left.
    pub(crate) fn new(body: Incoming, place: OwnedSemaphorePermit) -> Self {
        Self {
            body,
            idle: Box::pin(sleep(IDLE)),
            _place: place,
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
