//! Messages of the Model Context Protocol: JSON-RPC objects whose members stay as they were written.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

/// Maximum length of a message, in bytes.
pub const MAX_MESSAGE: usize = 16 << 20;

/// A JSON object: its members in their order, with values as written.
#[derive(Clone, Debug, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> Object<'a> {
    /// Parses an object. Two members with one name are an error: programs differ in which they use.
    ///
    /// # Errors
    /// If the text is not such an object.
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns the names of its members.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Returns the value of a member, as written.
    pub fn raw(&self, name: &str) -> Option<&RawValue> {
        self.0
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, raw)| &**raw)
    }

    /// Returns a member that is an object.
    pub fn object(&self, name: &str) -> Option<Object<'_>> {
        Object::parse(self.raw(name)?.get()).ok()
    }

    /// Returns a member that is a string.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// Returns the token for progress in the params of a request, as written.
    pub fn progress_token(&self) -> Option<String> {
        let meta = self.object("_meta")?;
        Some(meta.raw("progressToken")?.get().to_owned())
    }

    /// Replaces the value of a member, or adds it.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn set(&mut self, name: &'static str, value: &impl Serialize) -> serde_json::Result<()> {
        let raw = Cow::Owned(serde_json::value::to_raw_value(value)?);
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = raw,
            None => self.0.push((Cow::Borrowed(name), raw)),
        }
        Ok(())
    }

    /// Returns the object without borrows.
    pub fn into_owned(self) -> Object<'static> {
        let owned = self.0.into_iter().map(|(name, value)| {
            let name: String = name.into_owned();
            (Cow::Owned(name), Cow::Owned(value.into_owned()))
        });
        Object(owned.collect())
    }

    /// Returns the object as one line.
    pub fn line(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!("two members are named {name:?}")));
                    }
                    members.push((Cow::Owned(name), Cow::Borrowed(value)));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Fails if an object within a value has two members with one name: programs differ in which they use. The
/// value must not be nested deeply.
///
/// # Errors
/// If there is one.
pub fn unambiguous(value: &RawValue) -> serde_json::Result<()> {
    let is_container = |raw: &&RawValue| raw.get().starts_with(['{', '[']);
    let inner: Vec<Cow<'_, RawValue>> = if value.get().starts_with('{') {
        Object::parse(value.get())?
            .0
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    } else if value.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value.get())?;
        items.into_iter().map(Cow::Borrowed).collect()
    } else {
        Vec::new()
    };
    inner
        .iter()
        .map(|value| &**value)
        .filter(is_container)
        .try_for_each(unambiguous)
}

/// Returns whether the definition of a tool says that it changes nothing.
pub fn reads_only(tool: &RawValue) -> bool {
    Object::parse(tool.get()).is_ok_and(|tool| {
        tool.object("annotations")
            .and_then(|annotations| Some(annotations.raw("readOnlyHint")?.get() == "true"))
            .unwrap_or_default()
    })
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has an id and a method.
    Request,
    /// Has a method only.
    Notification,
    /// Has an id only.
    Response,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Its members.
    pub members: Object<'a>,
    /// What it is.
    pub kind: Kind,
    /// The method of a request or a notification.
    pub method: String,
}

impl<'a> Message<'a> {
    /// Parses the messages of a line: one, or those of a batch.
    ///
    /// # Errors
    /// If the line is not JSON, or one of them is not a message.
    pub fn parse_line(line: &'a [u8]) -> Result<Vec<Self>, String> {
        let text = std::str::from_utf8(line)
            .map_err(|error| error.to_string())?
            .trim_start_matches('\u{feff}')
            .trim();
        let parsed = if text.starts_with('[') {
            serde_json::from_str(text)
        } else {
            Object::parse(text).map(|message| vec![message])
        };
        let messages: Vec<Object<'a>> = parsed.map_err(|error| error.to_string())?;
        if messages.is_empty() {
            return Err("it has no messages".to_owned());
        }
        messages.into_iter().map(Self::new).collect()
    }

    fn new(members: Object<'a>) -> Result<Self, String> {
        let method = members.text("method");
        let kind = match (members.raw("id"), &method) {
            (Some(_), Some(_)) => Kind::Request,
            (None, Some(_)) => Kind::Notification,
            (_, None) if members.raw("method").is_some() => {
                return Err("the method is not a string".to_owned());
            }
            (_, None) if members.raw("result").or(members.raw("error")).is_some() => Kind::Response,
            (_, None) => return Err("it has no method and no result".to_owned()),
        };
        let method = method.unwrap_or_default();
        Ok(Self {
            members,
            kind,
            method,
        })
    }

    /// Returns the id, as written.
    pub fn id(&self) -> &str {
        self.members.raw("id").map_or("null", RawValue::get)
    }

    /// Returns the params. Empty if there are none.
    pub fn params(&self) -> Object<'_> {
        self.members.object("params").unwrap_or_default()
    }
}

/// Returns the id of a message, as written, from the start and the end of its text: SDKs write it before or after
/// the other members.
pub fn id_of_ends(start: &[u8], end: &[u8]) -> Option<String> {
    let plain = |bytes: &[u8]| -> String {
        let text = String::from_utf8_lossy(bytes);
        text.chars().filter(|c| !c.is_ascii_whitespace()).collect()
    };
    let (start, end) = (plain(start), plain(end));
    let version = r#""jsonrpc":"2.0""#;
    let members = start.strip_prefix('{')?;
    let first = members
        .strip_prefix(version)
        .unwrap_or(members)
        .trim_start_matches(',')
        .strip_prefix(r#""id":"#)
        .and_then(|rest| rest.split(',').next());
    let last = || {
        let members = end.strip_suffix('}')?;
        let others = members.strip_suffix(version).unwrap_or(members);
        Some(others.trim_end_matches(',').rsplit_once(r#","id":"#)?.1)
    };
    let id = first.or_else(last)?;
    let is_whole = |id: &&str| serde_json::from_str::<Value>(id).is_ok_and(|id| !id.is_object());
    Some(id).filter(is_whole).map(str::to_owned)
}

/// Returns whether a line that is not a message was meant to be a response: programs also print texts, and logs
/// as JSON.
pub fn is_broken_response(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let is_cut = || text.starts_with("{\"") && serde_json::from_str::<&RawValue>(&text).is_err();
    !text.contains("\"method\"") && (text.contains("\"jsonrpc\"") || is_cut())
}

/// Returns a request that is sent, or a notification without an id.
pub fn outgoing(id: Option<u64>, method: &str, params: &impl Serialize) -> Vec<u8> {
    let mut members = Object::default();
    let outcomes = [
        members.set("jsonrpc", &"2.0"),
        id.map_or(Ok(()), |id| members.set("id", &id)),
        members.set("method", &method),
        members.set("params", params),
    ];
    debug_assert!(outcomes.iter().all(Result::is_ok));
    members.line()
}

/// Returns the response to a request, by its id as written.
pub fn response(id: &str, result: &impl Serialize) -> Vec<u8> {
    answer(id, "result", result)
}

/// Returns an error response to a request, by its id as written.
pub fn error_response(id: &str, code: i64, message: &str) -> Vec<u8> {
    answer(id, "error", &json!({ "code": code, "message": message }))
}

/// Returns the error response to a line that is not a message. `None` if it is a notification or a response, as
/// far as it can be read.
pub fn invalid(line: &[u8], why: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(line);
    let Ok(members) = Object::parse(&text) else {
        let is_json = serde_json::from_slice::<&RawValue>(line).is_ok();
        let code = if is_json { -32600 } else { -32700 };
        return Some(error_response("null", code, why));
    };
    let has = |name| members.raw(name).is_some();
    if has("method") != has("id") && (has("method") || has("result") || has("error")) {
        return None;
    }
    let id = members.raw("id").map_or("null", RawValue::get);
    let is_text = std::str::from_utf8(line).is_ok();
    let code = if is_text { -32600 } else { -32700 };
    Some(error_response(id, code, why))
}

fn answer(id: &str, name: &'static str, value: &impl Serialize) -> Vec<u8> {
    let id: &RawValue = serde_json::from_str(id).unwrap_or(RawValue::NULL);
    let mut members = Object::default();
    let outcomes = [
        members.set("jsonrpc", &"2.0"),
        members.set("id", &id),
        members.set(name, value),
    ];
    debug_assert!(outcomes.iter().all(Result::is_ok));
    members.line()
}

/// Returns the result of a tool, as models see it.
pub fn tool_result(text: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

/// Returns the result of a tool that failed.
pub fn tool_error(text: &str) -> Value {
    tool_result(&format!("sightline: {text}"), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_as_written() {
        let text = r#"{"jsonrpc":"2.0","id":1.0,"params":{"a":1e2,"a\u0062":"\u00e9"},"x":null}"#;
        let mut members = Object::parse(text).unwrap();
        assert_eq!(String::from_utf8(members.line()).unwrap(), text);
        members.set("id", &7).unwrap();
        let changed = text.replace("1.0", "7");
        assert_eq!(String::from_utf8(members.line()).unwrap(), changed);
    }

    #[test]
    fn names_are_unique() {
        let is_clear = |text: &str| unambiguous(serde_json::from_str(text).unwrap()).is_ok();
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(Object::parse(text).is_err(), "{text}");
            assert!(!is_clear(&format!(r#"{{"x":[{{"y":{text}}}]}}"#)), "{text}");
        }
        assert!(is_clear(r#"{"x":[{"a":"{"},{"a":1}],"a":null}"#));
    }

    #[test]
    fn the_id_of_a_long_message_is_found() {
        for (start, end, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":"#,
                r#""}}"#,
                Some("7"),
            ),
            (
                r#"{"jsonrpc": "2.0", "id": "x", "result""#,
                r#""}}"#,
                Some("\"x\""),
            ),
            (
                r#"{"result":{"a":"#,
                r#""}]},"jsonrpc":"2.0","id":7}"#,
                Some("7"),
            ),
            (
                r#"{"result":{"a":"#,
                r#""}]},"id":7,"jsonrpc":"2.0"}"#,
                Some("7"),
            ),
            (r#"{"result":{"a":"#, r#"},"id":{"b":1}}"#, None),
            (r#"{"method":"x","params":{"#, r#"}}"#, None),
            ("text", "text", None),
        ] {
            let found = id_of_ends(start.as_bytes(), end.as_bytes());
            assert_eq!(found.as_deref(), id, "{start} {end}");
        }
    }

    #[test]
    fn lines_hold_messages() {
        let kinds = |line: &str| {
            let messages = Message::parse_line(line.as_bytes())?;
            Ok(messages.iter().map(|message| message.kind).collect())
        };
        let ok = |kinds: &[Kind]| Ok::<_, String>(kinds.to_vec());
        assert_eq!(kinds(r#"{"id":1,"method":"ping"}"#), ok(&[Kind::Request]));
        assert_eq!(
            kinds(r#"[{"method":"a"},{"id":1,"result":{}}]"#),
            ok(&[Kind::Notification, Kind::Response])
        );
        for line in ["", "x", "{}", "[]", "[{}]", r#"{"id":1,"method":2}"#, "1"] {
            assert!(kinds(line).is_err(), "{line}");
        }
    }
}
