//! Errors of the gateway, in the shape of the API that the agent speaks.

use std::error::Error;

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::{Value, json};

/// Type of all errors of the gateway.
const TYPE: &str = "sightline_gateway";
/// Header by which clients of Anthropic and OpenAI decide.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A body of a response to an agent.
pub(crate) type Body = BoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// The API that a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// Messages of Anthropic.
    Messages,
    /// Responses of OpenAI.
    Responses,
    /// Chat completions, and any other API with the errors of OpenAI.
    Completions,
    /// `generateContent`, and Code Assist.
    Gemini,
}

/// A request that is not forwarded.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    message: String,
    /// Whether the same request may succeed later.
    is_temporary: bool,
}

impl Failure {
    /// A request that must change first.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            is_temporary: false,
        }
    }

    /// A request that may succeed later.
    pub(crate) fn temporary(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            is_temporary: true,
            ..Self::new(status, message)
        }
    }

    /// Returns whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the response to the agent.
    pub(crate) fn response(self, api: Api) -> Response<Body> {
        let body = Full::from(self.json(api).to_string());
        let mut response = Response::new(body.map_err(|never| match never {}).boxed());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let retry = if self.is_temporary { "true" } else { "false" };
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(retry));
        response
    }

    fn json(&self, api: Api) -> Value {
        let message = format!("Sightline: {}", self.message);
        match api {
            Api::Messages => json!({"type": "error", "error": {"type": TYPE, "message": message}}),
            Api::Responses | Api::Completions => {
                json!({"error": {"message": message, "type": TYPE, "param": null, "code": null}})
            }
            Api::Gemini => {
                let status = match self.status {
                    StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
                    StatusCode::FORBIDDEN => "PERMISSION_DENIED",
                    _ if self.is_temporary => "UNAVAILABLE",
                    _ => "INVALID_ARGUMENT",
                };
                let code = self.status.as_u16();
                let details = [json!({"@type": TYPE})];
                json!({"error": {"code": code, "message": message, "status": status, "details": details}})
            }
        }
    }
}
