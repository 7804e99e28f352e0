//! The secret of a listener, and the check of requests that must have it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::{
    StatusCode,
    header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN},
};
use sightline_engine::error::Error;
use sightline_protocol::error::ErrorKind;
use subtle::ConstantTimeEq;

use crate::listener::Admission;

/// A random token of 43 characters, new at each start of a listener.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Creates a token.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("no random bytes: {error}"))
        })?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on the content.
    fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

/// Which requests a listener accepts: those that know the token. A browser sends the origin of the page,
/// and another host if a page lets a name point to loopback.
#[derive(Clone)]
pub struct RequestCheck {
    /// The token.
    pub token: Token,
    /// Name of the header with the token.
    pub header: &'static str,
    /// Text before the token.
    pub scheme: &'static str,
    /// The values of `Host` that are accepted. `None` for a local socket, which no browser reaches.
    pub hosts: Option<Vec<String>>,
    /// The origin that is accepted. Programs send none.
    pub origin: Option<String>,
}

impl RequestCheck {
    /// Returns the values of `Host` for a port on loopback.
    pub fn hosts(names: &[&str], port: u16) -> Option<Vec<String>> {
        let hosts = names.iter().map(|name| format!("{name}:{port}"));
        Some(hosts.collect())
    }

    /// Checks the headers of a request, and admits its connection.
    ///
    /// # Errors
    /// The status of a refusal.
    pub fn check(&self, headers: &HeaderMap, admission: &Admission) -> Result<(), StatusCode> {
        self.check_sender(headers)?;
        self.check_token(headers, admission)
    }

    /// Checks host and origin.
    ///
    /// # Errors
    /// The status of a refusal.
    pub fn check_sender(&self, headers: &HeaderMap) -> Result<(), StatusCode> {
        let has_host = self.hosts.as_ref().is_none_or(|hosts| {
            only(headers, HOST).is_some_and(|host| hosts.iter().any(|ours| host == ours.as_str()))
        });
        let has_origin = !headers.contains_key(ORIGIN)
            || only(headers, ORIGIN)
                .is_some_and(|origin| self.origin.as_deref().is_some_and(|ours| origin == ours));
        if has_host && has_origin {
            Ok(())
        } else {
            Err(StatusCode::FORBIDDEN)
        }
    }

    /// Checks the token, and admits the connection.
    ///
    /// # Errors
    /// The status of a refusal.
    pub fn check_token(
        &self,
        headers: &HeaderMap,
        admission: &Admission,
    ) -> Result<(), StatusCode> {
        let given = headers.get(self.header);
        let given = given.and_then(|given| given.as_bytes().strip_prefix(self.scheme.as_bytes()));
        match given {
            Some(given) if self.token.is(given) => match admission.admit() {
                true => Ok(()),
                false => Err(StatusCode::SERVICE_UNAVAILABLE),
            },
            _ => Err(StatusCode::UNAUTHORIZED),
        }
    }
}

/// Returns the value of a header that is sent once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    first.filter(|_| values.next().is_none())
}
