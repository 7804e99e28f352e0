//! Splits messages into text and framing.
//!
//! Supports Anthropic's message format and both formats of OpenAI, which are easy to
//! distinguish. Accepts any input: unknown parts are counted as JSON and marked uncertain.

use std::borrow::Cow;

use serde_json::{Map, Value, json, value::RawValue};
use sightline_base::json_repair;
use twox_hash::XxHash3_128;

use super::measure::{FrameCounts, TextPart};

/// A message to count, as JSON or as a parsed value.
pub trait CountableMessage: Sync {
    /// Writes the identity of the message to a hasher.
    fn hash_into(&self, hasher: &mut XxHash3_128);
    /// Returns the parsed message.
    fn parsed(&self) -> Cow<'_, Value>;
}

impl CountableMessage for Value {
    fn hash_into(&self, hasher: &mut XxHash3_128) {
        // Tags and lengths distinguish different trees.
        match self {
            Value::Null => hasher.write(b"n"),
            Value::Bool(value) => hasher.write(if *value { b"t" } else { b"f" }),
            Value::Number(number) => hash_text(hasher, b"#", &number.to_string()),
            Value::String(text) => hash_text(hasher, b"\"", text),
            Value::Array(items) => {
                hash_length(hasher, b"[", items.len());
                for item in items {
                    item.hash_into(hasher);
                }
            }
            Value::Object(fields) => {
                hash_length(hasher, b"{", fields.len());
                for (name, value) in fields {
                    hash_text(hasher, b":", name);
                    value.hash_into(hasher);
                }
            }
        }
    }

    fn parsed(&self) -> Cow<'_, Value> {
        Cow::Borrowed(self)
    }
}

impl CountableMessage for RawValue {
    fn hash_into(&self, hasher: &mut XxHash3_128) {
        hash_text(hasher, b"r", self.get());
    }

    fn parsed(&self) -> Cow<'_, Value> {
        // Nesting that is too deep, or numbers that are too large: count the JSON as a block.
        Cow::Owned(json_repair::parse(self.get()).unwrap_or_else(
            |_| json!({ "content": [{ "type": "unreadable", "json": self.get() }] }),
        ))
    }
}

impl<M: CountableMessage + ?Sized> CountableMessage for &M {
    fn hash_into(&self, hasher: &mut XxHash3_128) {
        (**self).hash_into(hasher);
    }

    fn parsed(&self) -> Cow<'_, Value> {
        (**self).parsed()
    }
}

pub(super) fn hash_text(hasher: &mut XxHash3_128, tag: &[u8; 1], text: &str) {
    hash_length(hasher, tag, text.len());
    hasher.write(text.as_bytes());
}

fn hash_length(hasher: &mut XxHash3_128, tag: &[u8; 1], length: usize) {
    hasher.write(tag);
    hasher.write(&length.to_le_bytes());
}

/// Splits a message into text parts and framing.
pub(super) fn split_message(message: &Value) -> (Vec<TextPart<'_>>, FrameCounts) {
    let mut splitter = MessageSplitter::default();
    splitter.frames.messages = 1;
    splitter.message(message);
    (splitter.parts, splitter.frames)
}

#[derive(Default)]
struct MessageSplitter<'a> {
    parts: Vec<TextPart<'a>>,
    frames: FrameCounts,
}

impl<'a> MessageSplitter<'a> {
    fn message(&mut self, message: &'a Value) {
        let Value::Object(fields) = message else {
            return self.content(message);
        };
        if !fields.contains_key("content") && fields.contains_key("type") {
            // In OpenAI's Responses API, calls and results are items next to the messages.
            return self.block(message);
        }
        if let Some(content) = fields.get("content") {
            self.content(content);
        }
        if let Some(name) = string(fields, "name") {
            self.frames.names += 1;
            self.parts.push(TextPart::certain(name));
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
            Value::String(text) => self.parts.push(TextPart::certain(text)),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            other => self.block(other),
        }
    }

    fn block(&mut self, block: &'a Value) {
        let Value::Object(fields) = block else {
            match block {
                Value::String(text) => self.parts.push(TextPart::certain(text)),
                other => self.unknown(other),
            }
            return;
        };
        match string(fields, "type").unwrap_or_default() {
            "text" | "input_text" | "output_text" | "refusal" => {
                match string(fields, "text").or_else(|| string(fields, "refusal")) {
                    Some(text) => self.parts.push(TextPart::certain(text)),
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
                self.parts.push(TextPart::uncertain(text));
            }
            "redacted_thinking" => self.parts.push(TextPart::uncertain(block.to_string())),
            kind if kind == "tool_result" || kind.ends_with("_tool_result") => {
                self.frames.results += 1;
                if let Some(content) = fields.get("content") {
                    self.content(content);
                }
            }
            _ => self.unknown(block),
        }
    }

    /// Adds a tool call: its name and arguments.
    fn call(&mut self, fields: &'a Map<String, Value>) {
        self.frames.calls += 1;
        if let Some(name) = string(fields, "name") {
            self.parts.push(TextPart::certain(name));
        }
        for key in ["input", "arguments"] {
            match fields.get(key) {
                None => {}
                Some(Value::String(text)) => self.parts.push(TextPart::certain(text)),
                Some(other) => self.parts.push(TextPart::certain(other.to_string())),
            }
        }
    }

    /// Adds a document: as text if it has text, else by its size.
    fn document(&mut self, fields: &'a Map<String, Value>) {
        for key in ["title", "context"] {
            if let Some(text) = string(fields, key) {
                self.parts.push(TextPart::certain(text));
            }
        }
        let source = ["source", "file"]
            .into_iter()
            .find_map(|key| fields.get(key))
            .and_then(Value::as_object)
            .unwrap_or(fields);
        match string(source, "type") {
            Some("text") => {
                let text = string(source, "data").unwrap_or_default();
                self.parts.push(TextPart::certain(text));
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
                self.frames.documents += 1;
                self.frames.document_bytes += data.map_or(0, decoded_size);
            }
        }
    }

    /// Adds a block of another type as JSON, without the media in it.
    fn unknown(&mut self, block: &Value) {
        let mut block = block.clone();
        self.take_media(&mut block, false);
        self.parts.push(TextPart::uncertain(block.to_string()));
    }

    /// Removes encoded media from a value, and counts each as an image or a document.
    fn take_media(&mut self, value: &mut Value, is_image: bool) {
        match value {
            Value::String(text) if is_encoded(text) => {
                if is_image || text.starts_with("data:image/") {
                    self.frames.images += 1;
                } else {
                    self.frames.documents += 1;
                    self.frames.document_bytes += decoded_size(text);
                }
                text.clear();
            }
            Value::Array(items) => {
                for item in items {
                    self.take_media(item, is_image);
                }
            }
            Value::Object(fields) => {
                let names_image = |key: &str| {
                    string(fields, key)
                        .is_some_and(|kind| kind.contains("image") || kind.contains("screenshot"))
                };
                let is_image = is_image
                    || ["type", "media_type", "mime_type", "mimeType"]
                        .into_iter()
                        .any(names_image);
                for (key, value) in fields {
                    // Text that only the provider can read.
                    if !key.starts_with("encrypted") && key != "signature" {
                        self.take_media(value, is_image);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Minimum length of encoded media, in bytes. Shorter strings may be names or hashes, and cost
/// little as text.
const MIN_ENCODED: usize = 256;

/// Returns whether a string is a `data:` URI or only base64.
fn is_encoded(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte);
    text.len() >= MIN_ENCODED && (text.starts_with("data:") || text.bytes().all(is_base64))
}

/// Returns the size of base64 data, in bytes. It encodes three bytes in four characters.
fn decoded_size(base64: &str) -> u64 {
    base64.len() as u64 / 4 * 3
}

fn string<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn split(message: &Value) -> (Vec<(String, bool)>, FrameCounts) {
        let (parts, frames) = split_message(message);
        let parts = parts
            .into_iter()
            .map(|part| (part.text.into_owned(), part.is_uncertain));
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
        let (parts, frames) = split(&json!({"role": "user", "content": [
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
        let expected = FrameCounts {
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
    fn blocks_the_model_may_not_see_are_uncertain() {
        let (parts, frames) = split(&json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "long"},
            {"type": "novel", "x": 1},
            7,
        ]}));
        let texts = ["hm", r#"{"type":"novel","x":1}"#, "7"];
        assert_eq!(parts, texts.map(|text| (text.to_owned(), true)));
        assert_eq!(
            frames,
            FrameCounts {
                messages: 1,
                ..FrameCounts::default()
            }
        );
    }

    #[test]
    fn media_are_not_counted_by_the_characters_of_their_encoding() {
        let data = "QUJD".repeat(100_000);
        let uri = format!("data:image/png;base64,{data}");
        for (block, images) in [
            (
                json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}),
                0,
            ),
            (
                json!({"type": "video", "source": {"type": "base64", "data": data}}),
                0,
            ),
            (
                json!({"type": "resource", "resource": {"mimeType": "image/png", "blob": data}}),
                1,
            ),
            (
                json!({"type": "resource", "resource": {"uri": "a:b", "blob": data}}),
                0,
            ),
            (json!({"type": "image_generation_call", "result": data}), 1),
            (
                json!({"type": "computer_call_output",
                "output": {"type": "computer_screenshot", "image_url": uri}}),
                1,
            ),
            (
                json!({"type": "code_interpreter_call", "outputs": [{"type": "image", "url": uri}]}),
                1,
            ),
            (
                json!({"type": "tool_result", "content": [{"type": "audio", "data": data}]}),
                0,
            ),
            (
                json!({"inlineData": {"mimeType": "image/jpeg", "data": data}}),
                1,
            ),
            (
                json!({"type": "novel", "parts": [[{"deep": {"bytes": uri}}]]}),
                1,
            ),
        ] {
            let (parts, frames) = split(&json!({"role": "user", "content": [block]}));
            let length: usize = parts.iter().map(|(text, _)| text.len()).sum();
            assert!(length < 200, "{:.200}", parts[0].0);
            assert_eq!(
                (frames.images, frames.images + frames.documents),
                (images, 1)
            );
            assert_eq!(frames.document_bytes, if images == 0 { 300_000 } else { 0 });
        }
        // Text of a model, in an encoding that only its provider reads.
        let (parts, _) = split(&json!({"role": "assistant", "content": [
            {"type": "redacted_thinking", "data": data}, {"type": "x", "encrypted_content": data}]}));
        assert!(parts.iter().all(|(text, _)| text.len() > data.len()));
    }

    #[test]
    fn openai_formats() {
        let (parts, frames) = split(&json!({"role": "assistant", "content": null, "name": "bot",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}));
        assert_eq!(parts, sure(&["bot", "f", "{}"]));
        assert_eq!((frames.calls, frames.results), (1, 0));
        let (parts, frames) =
            split(&json!({"role": "tool", "tool_call_id": "c", "content": "done"}));
        assert_eq!(parts, sure(&["done"]));
        assert_eq!((frames.calls, frames.results), (0, 1));
        let (parts, frames) =
            split(&json!({"type": "function_call_output", "call_id": "c", "output": "done"}));
        assert_eq!(parts, sure(&["done"]));
        assert_eq!((frames.calls, frames.results), (0, 1));
        let (_, frames) = split(
            &json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}),
        );
        assert_eq!(frames.images, 1);
    }

    #[test]
    fn any_json_is_accepted() {
        for odd in [
            json!(null),
            json!([]),
            json!(3),
            json!({}),
            json!({"content": {"a": [1]}}),
            json!({"content": [{"type": "text"}, {"type": 5}, null, [["x"]]]}),
            json!("text"),
        ] {
            let (_, frames) = split(&odd);
            assert_eq!(frames.messages, 1, "{odd}");
        }
        assert_eq!(split(&json!("text")).0, sure(&["text"]));
    }

    #[test]
    fn different_messages_have_different_hashes() {
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
        let hash = |message: &dyn CountableMessage| {
            let mut hasher = XxHash3_128::with_seed(1);
            message.hash_into(&mut hasher);
            hasher.finish_128()
        };
        for (i, one) in messages.iter().enumerate() {
            for (j, other) in messages.iter().enumerate() {
                assert_eq!(hash(one) == hash(other), i == j, "{one} {other}");
            }
        }
    }
}
