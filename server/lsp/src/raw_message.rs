//! A message as received: its text, and the fields found in one pass over it.
//!
//! A conversation is megabytes. Its messages are located while the envelope is parsed and
//! are not copied: handlers borrow them, and a response may contain them unchanged
//! ([`crate::response_body`]).

use std::{borrow::Cow, fmt, ops::Range};

use self_cell::self_cell;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::handlers;

self_cell!(
    /// The text of a message with the envelope that borrows from it.
    pub struct RawMessage {
        owner: String,
        #[covariant]
        dependent: Envelope,
    }
);

impl RawMessage {
    /// Parses a message.
    ///
    /// # Errors
    /// Returns the text and the reason why it is not a message.
    pub fn read(text: String) -> Result<Self, (String, serde_json::Error)> {
        Self::try_new_or_recover(text, |text| Envelope::of(text))
    }

    /// Returns the envelope.
    pub fn envelope(&self) -> &Envelope<'_> {
        self.borrow_dependent()
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.borrow_owner()
    }

    /// Returns the range of a slice of the text, or `None` if `part` is not within it.
    pub fn range_of(&self, part: &[u8]) -> Option<Range<usize>> {
        let text = self.text();
        let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let end = start.checked_add(part.len())?;
        (end <= text.len()).then_some(start..end)
    }
}

/// The fields of a message, with unparsed values.
#[derive(Default)]
pub struct Envelope<'a> {
    /// Present in requests and notifications.
    pub method: Option<Cow<'a, str>>,
    /// Present in requests and responses; `null` counts as present.
    pub id: Option<Value>,
    /// Present in requests and notifications; `null` counts as absent.
    pub params: Option<Params<'a>>,
    /// Present in success responses.
    pub result: Option<&'a RawValue>,
    /// Present in error responses.
    pub error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn of(text: &'a str) -> serde_json::Result<Self> {
        let read = |extract_messages| {
            let mut reader = serde_json::Deserializer::from_str(text);
            let envelope = reader.deserialize_map(EnvelopeVisitor { extract_messages })?;
            reader.end().map(|()| envelope)
        };
        // Malformed params are reported by their handler.
        read(true).or_else(|_| read(false))
    }
}

struct EnvelopeVisitor {
    /// Locate conversation messages while parsing the params.
    extract_messages: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Method,
    Id,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let mut envelope = Envelope::default();
        let mut seen = Vec::new();
        while let Some(field) = map.next_key()? {
            if field != Field::Other && seen.contains(&field) {
                return Err(A::Error::custom("duplicate field"));
            }
            seen.push(field);
            match field {
                Field::Method => {
                    envelope.method = map.next_value::<Option<Text<'_>>>()?.map(|method| method.0)
                }
                Field::Id => envelope.id = Some(map.next_value()?),
                Field::Params => {
                    let method = envelope.method.as_deref();
                    let extract_messages =
                        self.extract_messages && method.is_some_and(handlers::takes_messages);
                    envelope.params = map.next_value_seed(ParamsSeed { extract_messages })?;
                }
                Field::Result => envelope.result = map.next_value()?,
                Field::Error => envelope.error = map.next_value()?,
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(envelope)
    }
}

struct ParamsSeed {
    extract_messages: bool,
}

impl<'de> DeserializeSeed<'de> for ParamsSeed {
    type Value = Option<Params<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.extract_messages {
            return deserializer.deserialize_map(ParamsVisitor).map(Some);
        }
        let params = Option::<&RawValue>::deserialize(deserializer)?;
        Ok(params.map(|params| Params::unsplit(params.get())))
    }
}

/// The params of a request or notification.
pub struct Params<'a> {
    text: Cow<'a, str>,
    has_extracted_messages: bool,
    messages: Option<Vec<&'a RawValue>>,
}

impl<'a> Params<'a> {
    /// Params without extracted messages.
    pub fn unsplit(text: &'a str) -> Self {
        Self {
            text: text.into(),
            has_extracted_messages: false,
            messages: None,
        }
    }

    /// Parses params and extracts their conversation messages.
    ///
    /// # Errors
    /// The params are not an object, or `messages` is not an array.
    pub fn split(text: &'a str) -> serde_json::Result<Self> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let params = reader.deserialize_map(ParamsVisitor)?;
        reader.end().map(|()| params)
    }

    /// Returns the params as JSON. Extracted messages are replaced by `[]`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether messages were extracted, even if there were none.
    pub fn has_extracted_messages(&self) -> bool {
        self.has_extracted_messages
    }

    /// Returns the extracted messages.
    pub fn messages(&self) -> Option<&[&'a RawValue]> {
        self.messages.as_deref()
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = Params<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params<'de>, A::Error> {
        let mut messages = None;
        let mut rest = String::from("{");
        let mut keep = |key: &str, value: &str| {
            if rest.len() > 1 {
                rest.push(',');
            }
            rest.push_str(&Value::from(key).to_string());
            rest.push(':');
            rest.push_str(value);
        };
        while let Some(key) = map.next_key::<String>()? {
            if key == "messages" {
                messages = map.next_value::<Option<Vec<&RawValue>>>()?;
                if messages.is_some() {
                    keep(&key, "[]");
                }
            } else {
                keep(&key, map.next_value::<&RawValue>()?.get());
            }
        }
        rest.push('}');
        Ok(Params {
            text: rest.into(),
            has_extracted_messages: true,
            messages,
        })
    }
}

/// A string, borrowed unless it contains escapes.
#[derive(Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &str = r#""method":"sightline/truncateHistory""#;

    fn read(text: &str) -> Option<RawMessage> {
        RawMessage::read(text.to_owned()).ok()
    }

    /// Returns the params and the number of messages extracted from them.
    fn found(message: &RawMessage) -> (&str, Option<usize>) {
        let params = message.envelope().params.as_ref().unwrap();
        (params.text(), params.messages().map(<[_]>::len))
    }

    #[test]
    fn messages_are_borrowed_from_the_text() {
        let text = format!(
            r#"{{"id":1,{METHOD},"params":{{"a":[1], "messages":[{{"b":"c"}} , 5],"d":null}}}}"#
        );
        let message = read(&text).unwrap();
        let params = message.envelope().params.as_ref().unwrap();
        assert_eq!(params.text(), r#"{"a":[1],"messages":[],"d":null}"#);
        let messages = params.messages().unwrap();
        let found: Vec<&str> = messages.iter().map(|message| message.get()).collect();
        assert_eq!(found, [r#"{"b":"c"}"#, "5"]);
        let place = message.range_of(messages[0].get().as_bytes()).unwrap();
        assert_eq!(&text[place], r#"{"b":"c"}"#);
        assert_eq!(message.range_of(text.as_bytes()), None);
    }

    #[test]
    fn params_without_messages_are_unchanged() {
        for (method, params) in [
            // This method has no messages.
            (
                r#""method":"sightline/checkAccess""#,
                r#"{"messages": [1]}"#,
            ),
            (METHOD, "[1, 2]"),
            (METHOD, r#"{"messages": 5}"#),
            (METHOD, r#""text""#),
        ] {
            let message = read(&format!(r#"{{{method},"params":{params}}}"#)).unwrap();
            assert_eq!(found(&message), (params, None));
        }
        // Of duplicate fields, the last one counts.
        let twice = r#"{"messages":[1],"messages":null}"#;
        let message = read(&format!(r#"{{{METHOD},"params":{twice}}}"#)).unwrap();
        let params = message.envelope().params.as_ref().unwrap();
        assert!(params.has_extracted_messages() && params.messages().is_none());
        // The method is not known yet when the params are parsed.
        let early = read(&format!(r#"{{"params":{{"messages":[1]}},{METHOD}}}"#)).unwrap();
        let params = r#"{"messages":[1]}"#;
        assert_eq!(found(&early), (params, None));
        let split = Params::split(params).unwrap();
        assert_eq!(split.messages().map(<[_]>::len), Some(1));
    }

    #[test]
    fn an_absent_id_is_none_and_null_is_an_id() {
        let id = |text| read(text).unwrap().envelope().id.clone();
        assert_eq!(id(r#"{"method":"a","params":null}"#), None);
        assert_eq!(id(r#" {"id":null,"what":[{}]} "#), Some(Value::Null));
    }

    #[test]
    fn a_malformed_message_is_returned() {
        for text in [
            "",
            "[]",
            r#"["a",1]"#,
            r#"{"id":1}x"#,
            r#"{"method":5}"#,
            r#"{"id":1,"id":2}"#,
            r#"{"id":1,"params":{"a":}}"#,
        ] {
            let refused = RawMessage::read(text.to_owned())
                .err()
                .map(|(text, _)| text);
            assert_eq!(refused.as_deref(), Some(text));
        }
    }
}
