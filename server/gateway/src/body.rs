//! Reads the body of a request. What cannot be read cannot be checked, and is not forwarded.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    HeaderMap, StatusCode,
    body::{Body, Bytes},
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use ruzstd::decoding::StreamingDecoder;
use serde::de::IgnoredAny;

use crate::failure::Failure;

/// Maximum size of a body, as sent and decoded, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// Reads a body, which must be JSON. Returns it as sent.
///
/// # Errors
/// If it is too large, or is no JSON.
pub(crate) async fn read<B>(body: B, headers: &HeaderMap) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes, Error = hyper::Error>,
{
    let read = Limited::new(body, MAX_BYTES).collect().await;
    let bytes = read.map(|body| body.to_bytes()).map_err(|error| {
        if error.is::<LengthLimitError>() {
            too_large()
        } else {
            Failure::new(
                StatusCode::BAD_REQUEST,
                "cannot read the body: it broke off",
            )
        }
    })?;
    if !bytes.is_empty() {
        check_type(headers)?;
        check_json(&decode(&bytes, headers)?)?;
    }
    Ok(bytes)
}

fn too_large() -> Failure {
    Failure::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "cannot check the body: it has more than 64 MiB",
    )
}

fn check_type(headers: &HeaderMap) -> Result<(), Failure> {
    let is_json = headers.get(CONTENT_TYPE).is_none_or(|value| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        let kind = value.split(';').next().unwrap_or_default().trim();
        kind.ends_with("/json") || kind.ends_with("+json")
    });
    if is_json {
        return Ok(());
    }
    Err(Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "cannot check the body: it is not JSON",
    ))
}

/// Returns the decoded text.
fn decode(bytes: &[u8], headers: &HeaderMap) -> Result<String, Failure> {
    let encodings: Vec<String> = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or("?").split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !matches!(name.as_str(), "" | "identity"))
        .collect();
    let encodings: Vec<&str> = encodings.iter().map(String::as_str).collect();
    let decoded = match encodings[..] {
        [] => Ok(bytes.to_vec()),
        ["gzip" | "x-gzip"] => read_limited(MultiGzDecoder::new(bytes)),
        ["zstd"] => match StreamingDecoder::new(bytes) {
            Ok(decoder) => read_limited(decoder),
            Err(_) => Err(damaged("zstd")),
        },
        _ => {
            let name = encodings.join(", ");
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("cannot check the body: the encoding {name:?} is unknown"),
            ));
        }
    };
    String::from_utf8(decoded?).map_err(|_| {
        let message = "cannot check the body: it is not UTF-8";
        Failure::new(StatusCode::BAD_REQUEST, message)
    })
}

fn read_limited(decoder: impl Read) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = decoder.take(MAX_BYTES as u64 + 1).read_to_end(&mut text);
    match read {
        Ok(count) if count > MAX_BYTES => Err(too_large()),
        Ok(_) => Ok(text),
        Err(_) => Err(damaged("compressed")),
    }
}

fn damaged(kind: &str) -> Failure {
    let message = format!("cannot check the body: its {kind} data is damaged");
    Failure::new(StatusCode::BAD_REQUEST, message)
}

fn check_json(text: &str) -> Result<(), Failure> {
    serde_json::from_str::<IgnoredAny>(text)
        .map(|_| ())
        .map_err(|error| {
            // The message of the parser may quote the body.
            let (line, column) = (error.line(), error.column());
            let message =
                format!("cannot check the body: no valid JSON at line {line}, column {column}");
            Failure::new(StatusCode::BAD_REQUEST, message)
        })
}
