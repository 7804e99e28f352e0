//! A received message, parsed.

use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, value::RawValue};
use sightline_engine::{
    client::ClientAnswer,
    dispatch::{self, Call},
    error::Error,
    error_response::{INVALID_REQUEST, PARSE_ERROR},
};

use crate::{
    editor_requests,
    execute_command::{self, Origin},
};

/// Messages larger than this are parsed into typed params in one pass, in bytes.
const LARGE_MESSAGE: usize = 64 * 1024;

/// A message of the client.
pub enum Message {
    /// A request of our own, or an LSP request that is dispatched like one.
    Call {
        /// The id; may be invalid.
        id: Value,
        /// The method's name.
        method: String,
        /// The parsed request.
        call: Result<(Call, Origin), Error>,
    },
    /// Any other request.
    Request {
        /// The id; may be invalid.
        id: Value,
        /// The method's name.
        method: String,
        /// The params as JSON.
        params: Option<Box<RawValue>>,
    },
    /// A notification.
    Notification {
        /// The method's name.
        method: String,
        /// The params as JSON.
        params: Option<Box<RawValue>>,
    },
    /// A response to one of our requests.
    Response {
        /// The id.
        id: Value,
        /// The response.
        answer: ClientAnswer,
    },
}

/// Why a body is not a message.
pub struct InvalidMessage {
    /// JSON-RPC error code.
    pub code: i64,
    /// Contains the position, but no content.
    pub message: String,
}

/// The fields of a message, with unparsed values.
#[derive(Deserialize)]
struct Envelope<'a> {
    /// Present in requests and notifications.
    #[serde(default)]
    method: Option<String>,
    /// Present in requests and responses; `null` counts as present.
    #[serde(default, deserialize_with = "some")]
    id: Option<Value>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Message {
    /// Parses a message.
    ///
    /// # Errors
    /// The body is not JSON, or not a JSON-RPC message.
    pub fn parse(body: Vec<u8>) -> Result<Self, InvalidMessage> {
        let text = String::from_utf8(body).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes().len();
            InvalidMessage {
                code: PARSE_ERROR,
                message: format!("a message of {bytes} bytes is not UTF-8, byte {at}"),
            }
        })?;
        if let Some(message) = Self::parse_large(&text) {
            return Ok(message);
        }
        // serde would accept an array of the fields in order.
        let envelope = if text.trim_start().starts_with('{') {
            serde_json::from_str::<Envelope<'_>>(&text)
        } else {
            Err(de::Error::custom("not an object"))
        };
        let envelope = envelope.map_err(|error| InvalidMessage::new(&text, error))?;
        let Some(method) = envelope.method else {
            let Some(id) = envelope.id else {
                return Err(InvalidMessage {
                    code: INVALID_REQUEST,
                    message: "a message needs a method or an id".to_owned(),
                });
            };
            let value = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
            let answer = match (envelope.result, envelope.error) {
                (_, Some(error)) => Err(value(error)),
                (result, None) => Ok(result.map(value).unwrap_or_default()),
            };
            return Ok(Self::Response { id, answer });
        };
        let params = envelope.params;
        let text = params.map_or("null", RawValue::get);
        let Some(id) = envelope.id else {
            let params = params.map(ToOwned::to_owned);
            return Ok(Self::Notification { method, params });
        };
        let call = if method == "workspace/executeCommand" {
            execute_command::parse(text)
        } else if let Some(route) = editor_requests::any_request(&method) {
            Ok(((route.parse)(text), Origin::Request))
        } else {
            let params = params.map(ToOwned::to_owned);
            return Ok(Self::Request { id, method, params });
        };
        Ok(Self::Call { id, method, call })
    }

    /// Parses a large request, which is mostly messages of a conversation, without
    /// reading them twice.
    fn parse_large(text: &str) -> Option<Self> {
        if text.len() < LARGE_MESSAGE {
            return None;
        }
        let method = leading_method(text)?;
        let (id, call) = (dispatch::request(&method)?.parse_message)(text)?;
        let call = Ok((call, Origin::Request));
        Some(Self::Call { id, method, call })
    }
}

impl InvalidMessage {
    fn new(text: &str, error: serde_json::Error) -> Self {
        let json = serde_json::from_str::<de::IgnoredAny>(text);
        let (code, what, error) = match json {
            Ok(_) => (INVALID_REQUEST, "is not a JSON-RPC message", error),
            Err(error) => (PARSE_ERROR, "is not JSON", error),
        };
        // Some errors have no position.
        let at = match error.column() {
            0 => String::new(),
            column => format!(", line {} column {column}", error.line()),
        };
        let bytes = text.len();
        Self {
            code,
            message: format!("a message of {bytes} bytes {what}{at}"),
        }
    }
}

/// Returns the method of a message if it precedes the params, reading no further.
fn leading_method(text: &str) -> Option<String> {
    struct Visitor<'a>(&'a mut Option<String>);
    impl<'de> de::Visitor<'de> for Visitor<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a message")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                match key.as_str() {
                    "method" => {
                        *self.0 = Some(map.next_value()?);
                        return Ok(());
                    }
                    "params" => return Ok(()),
                    _ => drop(map.next_value::<de::IgnoredAny>()?),
                }
            }
            Ok(())
        }
    }
    let mut method = None;
    // Fails because the rest is not read.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(Visitor(&mut method));
    method
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, i64> {
        Message::parse(text.into()).map_err(|invalid| invalid.code)
    }

    #[test]
    fn an_absent_id_is_none_and_null_is_an_id() {
        let notification = parse(r#"{"method":"a","params":null}"#);
        assert!(matches!(
            notification,
            Ok(Message::Notification { params: None, .. })
        ));
        let response = parse(r#" {"id":null,"what":[{}]} "#);
        assert!(matches!(
            response,
            Ok(Message::Response {
                id: Value::Null,
                answer: Ok(Value::Null)
            })
        ));
    }

    #[test]
    fn malformed_messages_are_rejected() {
        for (text, code) in [
            ("", PARSE_ERROR),
            (r#"{"id":1}x"#, PARSE_ERROR),
            (r#"{"id":1,"params":{"a":}}"#, PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            (r#"["a",1]"#, INVALID_REQUEST),
            (r#"{"method":5}"#, INVALID_REQUEST),
            (r#"{"id":1,"id":2}"#, INVALID_REQUEST),
            ("{}", INVALID_REQUEST),
        ] {
            assert_eq!(parse(text).err(), Some(code), "{text}");
        }
    }

    #[test]
    fn the_method_is_found_only_before_the_params() {
        let method = r#"{"jsonrpc":"2.0","id":[{}],"method":"a","params":{"#;
        assert_eq!(leading_method(method).as_deref(), Some("a"));
        for none in [r#"{"params":{},"method":"a"}"#, "{}", "[1]", ""] {
            assert_eq!(leading_method(none), None, "{none}");
        }
    }

    #[test]
    fn large_requests_are_parsed_like_small_ones() {
        let filler = "x".repeat(LARGE_MESSAGE);
        for filler in ["", &filler] {
            let method = r#""method":"sightline/truncateHistory""#;
            for (params, is_valid) in [
                (
                    format!(r#"{{"messages":[{{"a":"{filler}"}}],"model":"m"}}"#),
                    true,
                ),
                (
                    format!(r#"{{"messages":null,"taskId":"{filler}","model":"m"}}"#),
                    true,
                ),
                (format!(r#"[[],"{filler}"]"#), false),
                (format!(r#"{{"messages":5,"a":"{filler}"}}"#), false),
            ] {
                for text in [
                    format!(r#"{{"id":1,{method},"params":{params}}}"#),
                    format!(r#"{{"params":{params},{method},"id":1}}"#),
                ] {
                    let Ok(Message::Call { id, call, .. }) = parse(&text) else {
                        panic!("{}", &text[..40]);
                    };
                    let is_ok = call.is_ok_and(|(call, _)| call.is_valid());
                    assert_eq!((id, is_ok), (Value::from(1), is_valid));
                }
            }
        }
    }
}
