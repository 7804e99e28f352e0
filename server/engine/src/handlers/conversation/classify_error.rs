//! `sightline/classifyError`.

use sightline_conversation as conversation;
use sightline_protocol::conversation::{ClassifyErrorParams, ClassifyErrorResult};

use crate::{error::Error, request_context::ReadContext};

/// Classifies the error of a model provider.
pub fn run(
    _context: &ReadContext<'_>,
    params: ClassifyErrorParams,
) -> Result<ClassifyErrorResult, Error> {
    Ok(conversation::classify_error(
        params.provider.as_deref(),
        &params.error,
    ))
}
