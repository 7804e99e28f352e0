//! Takes the contents of denied files out of the output of a tool.

use std::mem;

use serde_json::Value;
use sightline_engine::error::Error;
use sightline_protocol::{
    decision::{HiddenFile, RedactParams},
    method::Redact,
};

use super::super::{Workspace, requests::Requests};

/// Replaces the contents of denied files in an output. Returns what was hidden.
///
/// # Errors
/// Those of `sightline/redact`.
pub(super) fn redact(
    workspace: &Workspace,
    folder: String,
    output: &mut Value,
) -> Result<Vec<HiddenFile>, Error> {
    let mut strings = strings(output);
    let params = RedactParams {
        texts: strings.iter_mut().map(|text| mem::take(*text)).collect(),
        cwd: Some(folder),
    };
    let result = Requests::new(workspace).call::<Redact>(params)?;
    for (text, redacted) in strings.into_iter().zip(result.texts) {
        *text = redacted;
    }
    Ok(result.hidden)
}

pub(super) fn strings(output: &mut Value) -> Vec<&mut String> {
    let mut found = Vec::new();
    let mut left = vec![output];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}
