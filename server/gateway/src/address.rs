//! Checks the headers and the path of a request: `/k/SECRET/UPSTREAM/REST`.

use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{HOST, HeaderValue, ORIGIN, UPGRADE},
};

use crate::{
    failure::{Api, Failure},
    secret::Secret,
};

/// Last part of the path of an API, and the API.
const APIS: [(&str, Api); 15] = [
    ("/messages", Api::Messages),
    ("/messages/count_tokens", Api::Messages),
    ("/responses", Api::Responses),
    ("/responses/compact", Api::Responses),
    ("/responses/input_tokens", Api::Responses),
    ("/chat/completions", Api::Completions),
    ("/completions", Api::Completions),
    ("/embeddings", Api::Completions),
    // Ollama and LM Studio.
    ("/api/chat", Api::Completions),
    ("/api/generate", Api::Completions),
    ("/api/show", Api::Completions),
    ("/api/embed", Api::Completions),
    // Tools of Copilot.
    ("/mcp", Api::Completions),
    ("/mcp/readonly", Api::Completions),
    ("/models/session", Api::Completions),
];

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// Name of the provider.
    pub(crate) upstream: &'a str,
    /// Path there, with a slash at its start.
    pub(crate) path: &'a str,
}

impl<'a> Address<'a> {
    /// Returns the model in the path, as Gemini has it.
    pub(crate) fn model(&self) -> Option<&'a str> {
        let (_, rest) = self.path.split_once("/models/")?;
        rest.split_once(':').map(|(model, _)| model)
    }

    /// Returns the API of the path, if it is known.
    pub(crate) fn api(&self) -> Option<Api> {
        let known = APIS.iter().find(|(end, _)| self.path.ends_with(end));
        if let Some((_, api)) = known {
            return Some(*api);
        }
        let method = self.path.rsplit('/').next().unwrap_or_default();
        let is_gemini = method.split_once(':').is_some_and(|(model, method)| {
            !model.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic())
        });
        if is_gemini {
            return Some(Api::Gemini);
        }
        // Tasks of Copilot.
        self.path
            .starts_with("/agents/")
            .then_some(Api::Completions)
    }
}

/// Returns where a request goes.
///
/// # Errors
/// If a browser or another host asks, the secret is wrong, or a WebSocket is requested.
pub(crate) fn check<'a>(
    uri: &'a Uri,
    headers: &HeaderMap,
    secret: &Secret,
    port: u16,
) -> Result<Address<'a>, Failure> {
    let hosts: Vec<&HeaderValue> = headers.get_all(HOST).iter().collect();
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let is_own = matches!(hosts[..], [host] if own.iter().any(|own| host == own.as_str()));
    if headers.contains_key(ORIGIN) || !is_own {
        return Err(Failure::new(
            StatusCode::FORBIDDEN,
            "requests of web pages and for other hosts are refused",
        ));
    }
    let parts = secret_part(uri.path()).filter(|(given, _)| secret.is(given));
    let Some((_, rest)) = parts else {
        // Copilot asks here without the path of its address, and goes on without an answer.
        let status = match uri.path() {
            "/mcp/readonly" => StatusCode::NOT_FOUND,
            _ => StatusCode::UNAUTHORIZED,
        };
        let message =
            "the address has no valid secret; use the one that `sightline gateway` prints";
        return Err(Failure::new(status, message));
    };
    if headers.contains_key(UPGRADE) {
        // Codex falls back to requests at once.
        let message = "WebSockets are not supported; use requests";
        return Err(Failure::new(StatusCode::UPGRADE_REQUIRED, message));
    }
    let (upstream, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_dots = |part: &str| {
        matches!(
            part.to_ascii_lowercase().replace("%2e", ".").as_str(),
            "." | ".."
        )
    };
    if path.split('/').any(is_dots) {
        let message = "the path of the request must have no `.` and `..`";
        return Err(Failure::new(StatusCode::BAD_REQUEST, message));
    }
    Ok(Address { upstream, path })
}

/// Splits a path into the secret and what follows.
fn secret_part(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/k/")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apis_are_known_by_their_paths() {
        let api = |path| {
            Address {
                upstream: "x",
                path,
            }
            .api()
        };
        for (path, expected) in [
            ("/v1/messages", Some(Api::Messages)),
            ("/messages", Some(Api::Messages)),
            ("/v1/messages/count_tokens", Some(Api::Messages)),
            ("/v1/responses", Some(Api::Responses)),
            ("/api/v1/chat/completions", Some(Api::Completions)),
            ("/openai/v1/chat/completions", Some(Api::Completions)),
            (
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
                Some(Api::Gemini),
            ),
            ("/v1internal:loadCodeAssist", Some(Api::Gemini)),
            ("/agents/swe/x", Some(Api::Completions)),
            ("/v1/files", None),
            ("/v1/messages/x", None),
            ("/v1/x:8080", None),
            ("", None),
        ] {
            assert_eq!(api(path), expected, "{path}");
        }
    }
}
