//! Reads the body of a request. What cannot be read cannot be checked, and is not forwarded.

use std::{
    borrow::Cow,
    io::{self, Read, Write},
};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    HeaderMap, StatusCode,
    body::{Body, Bytes},
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use ruzstd::{
    decoding::StreamingDecoder,
    encoding::{CompressionLevel, compress_to_vec},
};
use serde::de::IgnoredAny;
use sightline_conversation::wire::{TooDeep, Values, json};

use crate::failure::Failure;

/// Maximum size of a body, as sent and decoded, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// The body of a request.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// As sent.
    pub(crate) bytes: Bytes,
    /// The JSON; empty if there is no body.
    pub(crate) text: String,
    /// What is in it.
    pub(crate) values: Values,
    encoding: Encoding,
}

impl RequestBody {
    /// Reads a body, which must be JSON.
    ///
    /// # Errors
    /// If it is too large, or is no JSON.
    pub(crate) async fn read<B>(body: B, headers: &HeaderMap) -> Result<Self, Failure>
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
        let encoding = encoding(headers)?;
        let mut text = String::new();
        if !bytes.is_empty() {
            check_type(headers)?;
            text = decode(&bytes, encoding)?;
            check_json(&text)?;
        }
        let values = Values::find(&text).map_err(|TooDeep| {
            let message = "cannot check the body: it is nested too deeply";
            Failure::new(StatusCode::BAD_REQUEST, message)
        })?;
        Ok(Self {
            bytes,
            text,
            values,
            encoding,
        })
    }

    /// Returns a member of an object; the last one if there are several.
    pub(crate) fn member(&self, object: usize, name: &str) -> Option<usize> {
        self.values.member(&self.text, object, name)
    }

    /// Returns a member that is a string, decoded.
    pub(crate) fn string(&self, object: usize, name: &str) -> Option<Cow<'_, str>> {
        let text = self.json(self.member(object, name)?);
        text.starts_with('"').then(|| json::decode(text))
    }

    /// Returns a value as it is written.
    pub(crate) fn json(&self, value: usize) -> &str {
        self.values.text(&self.text, value)
    }

    /// Returns the bytes of another text, compressed in the same way.
    pub(crate) fn encode(&self, text: &str) -> io::Result<Bytes> {
        Ok(match self.encoding {
            Encoding::Identity => Bytes::copy_from_slice(text.as_bytes()),
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text.as_bytes())?;
                encoder.finish()?.into()
            }
            Encoding::Zstd => compress_to_vec(text.as_bytes(), CompressionLevel::Fastest).into(),
        })
    }
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

fn encoding(headers: &HeaderMap) -> Result<Encoding, Failure> {
    let encodings: Vec<String> = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or("?").split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !matches!(name.as_str(), "" | "identity"))
        .collect();
    let names: Vec<&str> = encodings.iter().map(String::as_str).collect();
    match names[..] {
        [] => Ok(Encoding::Identity),
        ["gzip" | "x-gzip"] => Ok(Encoding::Gzip),
        ["zstd"] => Ok(Encoding::Zstd),
        _ => Err(Failure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "cannot check the body: the encoding {:?} is unknown",
                names.join(", ")
            ),
        )),
    }
}

/// Returns the decoded text.
fn decode(bytes: &[u8], encoding: Encoding) -> Result<String, Failure> {
    let decoded = match encoding {
        Encoding::Identity => Ok(bytes.to_vec()),
        Encoding::Gzip => read_limited(MultiGzDecoder::new(bytes)),
        Encoding::Zstd => match StreamingDecoder::new(bytes) {
            Ok(decoder) => read_limited(decoder),
            Err(_) => Err(damaged()),
        },
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
        Err(_) => Err(damaged()),
    }
}

fn damaged() -> Failure {
    let message = "cannot check the body: its compressed data is damaged";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_has_the_same_encoding() {
        for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
            let body = RequestBody {
                bytes: Bytes::new(),
                text: String::new(),
                values: Values::default(),
                encoding,
            };
            let text = format!("{{\"a\": \"{}\"}}", "some text ".repeat(100_000));
            let bytes = body.encode(&text).unwrap();
            assert_eq!(decode(&bytes, encoding).unwrap(), text);
        }
    }
}
