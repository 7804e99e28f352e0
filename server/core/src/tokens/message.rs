//! What of a message is text and what stands around it.
//!
//! Messages are Anthropic-shaped; the shapes of OpenAI's two interfaces are
//! understood too, for they are easily told apart. Nothing is refused: what is
//! not known is counted as the JSON it is, and marked unsure.

use std::borrow::Cow;

use crate::surrogates;
use serde_json::{Map, Value, json, value::RawValue};
use twox_hash::XxHash3_128;

use super::measure::{Frames, Part};

/// A message to count: JSON, parsed or not.
pub trait Message: Sync {
    /// Feeds what tells it from other messages to a hasher.
    fn feed(&self, hasher: &mut XxHash3_128);
    /// The message, parsed.
    fn parsed(&self) -> Cow<'_, Value>;
}

impl Message for Value {
    fn feed(&self, hasher: &mut XxHash3_128) {
        // Tags and lengths keep different trees apart.
        match self {
            Value::Null => hasher.write(b"n"),
            Value::Bool(value) => hasher.write(if *value { b"t" } else { b"f" }),
            Value::Number(number) => feed_text(hasher, b"#", &number.to_string()),
            Value::String(text) => feed_text(hasher, b"\"", text),
            Value::Array(items) => {
                feed_length(hasher, b"[", items.len());
                for item in items {
                    item.feed(hasher);
                }
            }
            Value::Object(fields) => {
                feed_length(hasher, b"{", fields.len());
                for (name, value) in fields {
                    feed_text(hasher, b":", name);
                    value.feed(hasher);
                }
            }
        }
    }

    fn parsed(&self) -> Cow<'_, Value> {
        Cow::Borrowed(self)
    }
}

impl Message for RawValue {
    fn feed(&self, hasher: &mut XxHash3_128) {
        feed_text(hasher, b"r", self.get());
    }

    fn parsed(&self) -> Cow<'_, Value> {
        let value = serde_json::from_str(self.get()).or_else(|error| {
            let mended = surrogates::mended(self.get()).ok_or(error)?;
            serde_json::from_str(&mended)
        });
        // Deep nesting and large numbers: JSON nobody knows, as a block.
        Cow::Owned(value.unwrap_or_else(
            |_| json!({ "content": [{ "type": "unreadable", "json": self.get() }] }),
        ))
    }
}

impl<M: Message + ?Sized> Message for &M {
    fn feed(&self, hasher: &mut XxHash3_128) {
        (**self).feed(hasher);
    }

    fn parsed(&self) -> Cow<'_, Value> {
        (**self).parsed()
    }
}

pub(super) fn feed_text(hasher: &mut XxHash3_128, tag: &[u8; 1], text: &str) {
    feed_length(hasher, tag, text.len());
    hasher.write(text.as_bytes());
}

fn feed_length(hasher: &mut XxHash3_128, tag: &[u8; 1], length: usize) {
    hasher.write(tag);
    hasher.write(&length.to_le_bytes());
}

/// The text of a message in parts, and what stands around it.
pub(super) fn take_apart(message: &Value) -> (Vec<Part<'_>>, Frames) {
    let mut apart = Apart::default();
    apart.frames.messages = 1;
    apart.message(message);
    (apart.parts, apart.frames)
}

#[derive(Default)]
struct Apart<'a> {
    parts: Vec<Part<'a>>,
    frames: Frames,
}

impl<'a> Apart<'a> {
    fn message(&mut self, message: &'a Value) {
        let Value::Object(fields) = message else {
            return self.content(message);
        };
        if !fields.contains_key("content") && fields.contains_key("type") {
            // OpenAI's newer interface: calls and results stand among the messages.
            return self.block(message);
        }
        if let Some(content) = fields.get("content") {
            self.content(content);
        }
        if let Some(name) = string(fields, "name") {
            self.frames.names += 1;
            self.parts.push(Part::sure(name));
        }
        if fields.get("role").is_some_and(|role| role == "tool") {
            self.frames.results += 1;
        }
        for call in fields
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            match call.get("function").and_then(Value::as_object) {
                Some(function) => self.call(function),
                None => self.unknown(call),
            }
        }
    }

    fn content(&mut self, content: &'a Value) {
        match content {
            Value::Null => {}
            Value::String(text) => self.parts.push(Part::sure(text)),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            other => self.block(other),
        }
    }

    fn block(&mut self, block: &'a Value) {
        let Value::Object(fields) = block else {
            match block {
                Value::String(text) => self.parts.push(Part::sure(text)),
                other => self.unknown(other),
            }
            return;
        };
        match string(fields, "type").unwrap_or_default() {
            "text" | "input_text" | "output_text" | "refusal" => {
                match string(fields, "text").or_else(|| string(fields, "refusal")) {
                    Some(text) => self.parts.push(Part::sure(text)),
                    None => self.unknown(block),
                }
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" | "function_call"
            | "custom_tool_call" => self.call(fields),
            "function_call_output" | "custom_tool_call_output" => {
                self.frames.results += 1;
                if let Some(output) = fields.get("output") {
                    self.content(output);
                }
            }
            "image" | "image_url" | "input_image" => self.frames.images += 1,
            "document" | "file" | "input_file" => self.document(fields),
            "thinking" => {
                let text = string(fields, "thinking").unwrap_or_default();
                self.parts.push(Part::unsure(text));
            }
            kind if kind == "tool_result" || kind.ends_with("_tool_result") => {
                self.frames.results += 1;
                if let Some(content) = fields.get("content") {
                    self.content(content);
                }
            }
            _ => self.unknown(block),
        }
    }

    /// A tool call: its name and what it hands over.
    fn call(&mut self, fields: &'a Map<String, Value>) {
        self.frames.calls += 1;
        if let Some(name) = string(fields, "name") {
            self.parts.push(Part::sure(name));
        }
        for key in ["input", "arguments"] {
            match fields.get(key) {
                None => {}
                Some(Value::String(text)) => self.parts.push(Part::sure(text)),
                Some(other) => self.parts.push(Part::sure(other.to_string())),
            }
        }
    }

    /// A document: text where it has text, else so many bytes of pages.
    fn document(&mut self, fields: &'a Map<String, Value>) {
        for key in ["title", "context"] {
            if let Some(text) = string(fields, key) {
                self.parts.push(Part::sure(text));
            }
        }
        let source = ["source", "file"]
            .into_iter()
            .find_map(|key| fields.get(key));
        let source = source.and_then(Value::as_object).unwrap_or(fields);
        match string(source, "type") {
            Some("text") => {
                let text = string(source, "data").unwrap_or_default();
                self.parts.push(Part::sure(text));
            }
            Some("content") => {
                if let Some(content) = source.get("content") {
                    self.content(content);
                }
            }
            _ => {
                let data = ["data", "file_data"]
                    .into_iter()
                    .find_map(|key| string(source, key));
                // Base64: three bytes in four characters.
                let bytes = data.unwrap_or_default().len() as u64 / 4 * 3;
                self.frames.documents += 1;
                self.frames.document_bytes += bytes;
            }
        }
    }

    fn unknown(&mut self, block: &Value) {
        self.parts.push(Part::unsure(block.to_string()));
    }
}

fn string<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apart(message: &Value) -> (Vec<(String, bool)>, Frames) {
        let (parts, frames) = take_apart(message);
        let parts = parts
            .into_iter()
            .map(|part| (part.text.into_owned(), part.unsure));
        (parts.collect(), frames)
    }

    fn sure(texts: &[&str]) -> Vec<(String, bool)> {
        texts
            .iter()
            .map(|text| ((*text).to_owned(), false))
            .collect()
    }

    #[test]
    fn blocks_of_every_kind() {
        let (parts, frames) = apart(&json!({"role": "user", "content": [
            {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a b"}},
            {"type": "tool_result", "tool_use_id": "t1", "content": "two"},
            {"type": "tool_result", "tool_use_id": "t1", "content": [
                {"type": "text", "text": "three"},
                {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
            ]},
            {"type": "web_search_tool_result", "content": []},
            {"type": "document", "title": "four", "source": {"type": "text", "data": "five"}},
            {"type": "document", "source": {"type": "base64", "data": "AAAAAAAA"}},
            "six",
        ]}));
        let texts = [
            "one",
            "read",
            r#"{"path":"a b"}"#,
            "two",
            "three",
            "four",
            "five",
            "six",
        ];
        assert_eq!(parts, sure(&texts));
        let expected = Frames {
            messages: 1,
            names: 0,
            calls: 1,
            results: 3,
            images: 1,
            documents: 1,
            document_bytes: 6,
        };
        assert_eq!(frames, expected);
    }

    #[test]
    fn what_the_model_may_not_see_is_unsure() {
        let (parts, frames) = apart(&json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "long"},
            {"type": "novel", "x": 1},
            7,
        ]}));
        let texts = ["hm", r#"{"type":"novel","x":1}"#, "7"];
        assert_eq!(parts, texts.map(|text| (text.to_owned(), true)));
        assert_eq!(
            frames,
            Frames {
                messages: 1,
                ..Frames::default()
            }
        );
    }

    #[test]
    fn the_shapes_of_other_interfaces() {
        let (parts, frames) = apart(&json!({"role": "assistant", "content": null, "name": "bot",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}));
        assert_eq!(parts, sure(&["bot", "f", "{}"]));
        assert_eq!((frames.calls, frames.results), (1, 0));
        let (parts, frames) =
            apart(&json!({"role": "tool", "tool_call_id": "c", "content": "done"}));
        assert_eq!(parts, sure(&["done"]));
        assert_eq!((frames.calls, frames.results), (0, 1));
        let (parts, frames) =
            apart(&json!({"type": "function_call_output", "call_id": "c", "output": "done"}));
        assert_eq!(parts, sure(&["done"]));
        assert_eq!((frames.calls, frames.results), (0, 1));
        let (_, frames) = apart(
            &json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}),
        );
        assert_eq!(frames.images, 1);
    }

    #[test]
    fn no_shape_is_refused() {
        for odd in [
            json!(null),
            json!([]),
            json!(3),
            json!({}),
            json!({"content": {"a": [1]}}),
            json!({"content": [{"type": "text"}, {"type": 5}, null, [["x"]]]}),
            json!("text"),
        ] {
            let (_, frames) = apart(&odd);
            assert_eq!(frames.messages, 1, "{odd}");
        }
        assert_eq!(apart(&json!("text")).0, sure(&["text"]));
    }

    #[test]
    fn different_messages_feed_different_bytes() {
        let messages = [
            json!({"role": "user", "content": "a"}),
            json!({"role": "user", "content": ["a"]}),
            json!({"role": "usera", "content": ""}),
            json!([["a"], []]),
            json!([["a", []]]),
            json!(["a", "b"]),
            json!(["ab", ""]),
            json!(null),
            json!("n"),
            json!(1),
            json!("1"),
        ];
        let hash = |message: &dyn Message| {
            let mut hasher = XxHash3_128::with_seed(1);
            message.feed(&mut hasher);
            hasher.finish_128()
        };
        for (i, one) in messages.iter().enumerate() {
            for (j, other) in messages.iter().enumerate() {
                assert_eq!(hash(one) == hash(other), i == j, "{one} {other}");
            }
        }
    }
}
