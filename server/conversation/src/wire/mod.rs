//! Messages of model providers, scanned in place.
//!
//! A message is never parsed into a tree: [`Message`] has the ranges of its blocks, texts and ids, so
//! that an edit changes only these ranges, and blocks of unknown types stay as they are. [`json`] is
//! the scanner below it, [`Values`] all values of a text whose messages have no known form.

pub mod json;
mod message;
mod values;

pub use message::{Block, BlockKind, Content, Layout, Message, Outline, Role};
pub use values::{TooDeep, Values};

use serde_json::value::RawValue;
use sightline_base::error::Error;
use sightline_protocol::error::ErrorKind;

/// Converts the text of a message.
///
/// # Errors
/// `internal` if it is not JSON, which is a bug.
pub fn to_raw(text: String) -> Result<Box<RawValue>, Error> {
    RawValue::from_string(text).map_err(|error| {
        let why = format!("cannot build a message: {error}; please report this bug");
        Error::Failed(ErrorKind::Internal, why)
    })
}

/// Returns the error of a message that is not an object.
pub fn invalid_message(index: usize) -> Error {
    Error::invalid(format!(
        "messages[{index}] is not an object; a message has a role and content"
    ))
}
