//! The secret of a bridge.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sightline_protocol::error::ErrorKind;
use subtle::ConstantTimeEq;

use crate::error::Error;

/// A random token of 43 characters, new at each start of a bridge.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("no random bytes: {error}"))
        })?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on the content.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}
