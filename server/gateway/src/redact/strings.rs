//! Finds the strings of a request that a client wrote, and the calls whose results they are.
//!
//! What a model wrote stays as it is: its provider knows it, and newer models bind their thinking to
//! it. Everything else is a string of a client, also in fields and blocks of unknown types.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use sightline_conversation::wire::{
    Values,
    json::{decode, string_equals},
};

/// Types of objects that a model or its provider wrote.
const OF_MODELS: [&str; 13] = [
    "thinking",
    "redacted_thinking",
    "reasoning",
    "compaction",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "item_reference",
    "input_image",
];

/// Fields that a model or its provider wrote, or that identify something.
const OPAQUE: [&str; 20] = [
    "signature",
    "encrypted_content",
    "thoughtSignature",
    "thought_signature",
    "reasoning_content",
    "reasoning_details",
    "tool_calls",
    "functionCall",
    "function_call",
    "type",
    "role",
    "id",
    "call_id",
    "tool_use_id",
    "tool_call_id",
    "model",
    "cache_control",
    "prompt_cache_key",
    "previous_response_id",
    "image_url",
];

/// Fields with JSON of a tool, whose names mean nothing: a result, and the schemas of arguments.
const OF_TOOLS: [&str; 4] = [
    "response",
    "parameters",
    "parametersJsonSchema",
    "input_schema",
];

/// A string of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its place in the request, with its quotes.
    pub(crate) range: Range<usize>,
    /// The call whose result it is, as a number in [`Strings::calls`].
    pub(crate) call: Option<usize>,
}

/// A call of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    /// Its id, or its name and arguments.
    pub(crate) key: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    /// JSON, or a text.
    pub(crate) arguments: Cow<'a, str>,
}

/// The strings of a request, in their order.
#[derive(Debug)]
pub(crate) struct Strings<'a> {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) calls: Vec<Call<'a>>,
    by_id: HashMap<Cow<'a, str>, usize>,
    /// Calls without an id by name; their results come in the same order.
    by_name: HashMap<Cow<'a, str>, std::collections::VecDeque<usize>>,
    text: &'a str,
    values: &'a Values,
}

impl<'a> Strings<'a> {
    /// Finds the strings in the values of a text.
    pub(crate) fn find(text: &'a str, values: &'a Values) -> Self {
        let mut strings = Self {
            pieces: Vec::new(),
            calls: Vec::new(),
            by_id: HashMap::new(),
            by_name: HashMap::new(),
            text,
            values,
        };
        strings.value(Values::ALL, None);
        strings
    }

    /// Adds the strings of a value.
    fn value(&mut self, value: usize, call: Option<usize>) {
        let (values, range) = (self.values, self.values.range(value));
        match self.text.as_bytes().get(range.start) {
            Some(b'"') => self.pieces.push(Piece { range, call }),
            Some(b'[') => values.inside(value).for_each(|item| self.value(item, call)),
            Some(b'{') => self.object(value, call),
            _ => {}
        }
    }

    fn object(&mut self, object: usize, call: Option<usize>) {
        self.add_call(object);
        let is = |name: &str, known: &[&str]| {
            let value = self
                .get(object, name)
                .filter(|value| value.starts_with('"'));
            value.is_some_and(|value| known.iter().any(|known| string_equals(value, known)))
        };
        if is("type", &OF_MODELS) {
            return;
        }
        let is_of_model = is("role", &["assistant", "model"]);
        let call = self.call_of_result(object).or(call);
        let (text, values) = (self.text, self.values);
        for (key, value) in values.members(text, object) {
            let key = values.text(text, key);
            // What a model wrote is searched for calls only.
            if is_of_model || string_equals(key, "tool_calls") {
                self.add_calls_below(value);
            } else if OF_TOOLS.iter().any(|name| string_equals(key, name)) {
                self.data(value, call);
            } else if !OPAQUE.iter().any(|name| string_equals(key, name)) {
                self.value(value, call);
            }
        }
    }

    /// Adds all strings of a value, also the names of fields.
    fn data(&mut self, value: usize, call: Option<usize>) {
        let (text, values, range) = (self.text, self.values, self.values.range(value));
        match text.as_bytes().get(range.start) {
            Some(b'"') => self.pieces.push(Piece { range, call }),
            Some(b'[') => values.inside(value).for_each(|item| self.data(item, call)),
            Some(b'{') => {
                for (key, value) in values.members(text, value) {
                    self.data(key, None);
                    self.data(value, call);
                }
            }
            _ => {}
        }
    }

    /// Returns the text of a member.
    fn get(&self, object: usize, name: &str) -> Option<&'a str> {
        let member = self.values.member(self.text, object, name)?;
        Some(self.values.text(self.text, member))
    }

    /// Adds the calls in what a model wrote.
    fn add_calls_below(&mut self, value: usize) {
        let (text, values) = (self.text, self.values);
        match text.as_bytes().get(values.range(value).start) {
            Some(b'[') => values
                .inside(value)
                .for_each(|item| self.add_calls_below(item)),
            Some(b'{') => self.add_call(value),
            _ => {}
        }
    }

    /// Adds the call that an object is.
    fn add_call(&mut self, object: usize) {
        // Chat completions and Gemini have an object inside.
        let inner = |name| {
            let inner = self.values.member(self.text, object, name)?;
            let is_object = self.values.text(self.text, inner).starts_with('{');
            is_object.then_some(inner)
        };
        let (call, id) = if let Some(inner) = inner("functionCall") {
            (inner, self.get(inner, "id"))
        } else if let Some(inner) = inner("function") {
            (inner, self.get(object, "id"))
        } else {
            let id = self.get(object, "call_id");
            (object, id.or_else(|| self.get(object, "id")))
        };
        let arguments = ["input", "arguments", "args"]
            .iter()
            .find_map(|name| self.get(call, name));
        let (Some(arguments), Some(name)) = (arguments, self.get(call, "name")) else {
            return;
        };
        let arguments = match arguments.starts_with('"') {
            true => decode(arguments),
            false => Cow::Borrowed(arguments),
        };
        let number = self.calls.len();
        let name = decode(name);
        let id = id.filter(|id| id.starts_with('"')).map(decode);
        let key = match &id {
            Some(id) => id.clone(),
            None => Cow::Owned(format!("{name} {arguments}")),
        };
        match id {
            Some(id) => drop(self.by_id.insert(id, number)),
            None => {
                let calls = self.by_name.entry(name.clone()).or_default();
                calls.push_back(number);
            }
        }
        self.calls.push(Call {
            key,
            name,
            arguments,
        });
    }

    /// Returns the call whose result an object is.
    fn call_of_result(&mut self, object: usize) -> Option<usize> {
        if let Some(result) = self.values.member(self.text, object, "functionResponse") {
            if let Some(id) = self.get(result, "id") {
                return self.by_id.get(&decode(id)).copied();
            }
            let name = decode(self.get(result, "name")?);
            return self.by_name.get_mut(&name)?.pop_front();
        }
        let id = ["tool_use_id", "tool_call_id", "call_id"]
            .iter()
            .find_map(|name| self.get(object, name))?;
        self.by_id.get(&decode(id)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the strings, each with the arguments of its call.
    fn strings(text: &str) -> Vec<(String, String)> {
        let values = Values::find(text).unwrap();
        let found = Strings::find(text, &values);
        let pieces = found.pieces.iter();
        let pieces = pieces.map(|piece| {
            let arguments = piece.call.map(|call| found.calls[call].arguments.as_ref());
            let string = decode(&text[piece.range.clone()]).into_owned();
            (string, arguments.unwrap_or_default().to_owned())
        });
        pieces.collect()
    }

    fn assert_strings(text: &str, expected: &[(&str, &str)]) {
        let expected = expected
            .iter()
            .map(|(string, arguments)| ((*string).to_owned(), (*arguments).to_owned()));
        assert_eq!(strings(text), expected.collect::<Vec<_>>());
    }

    #[test]
    fn messages() {
        assert_strings(
            r#"{"model": "m", "system": [{"type": "text", "text": "s"}], "messages": [
                {"role": "user", "content": "a\nb"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "t", "signature": "x"},
                    {"type": "text", "text": "mine"},
                    {"type": "tool_use", "id": "1", "name": "Read", "input": {"file_path": "/w/.env"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]},
                    {"type": "new_kind", "deep": {"er": ["u"]}}]}]}"#,
            &[
                ("s", ""),
                ("a\nb", ""),
                ("r", r#"{"file_path": "/w/.env"}"#),
                ("u", ""),
            ],
        );
    }

    #[test]
    fn responses() {
        assert_strings(
            r#"{"input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "p"}]},
                {"type": "reasoning", "encrypted_content": "e", "summary": ["s"]},
                {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{\"files\":[{\"path\":\"x\"}]}"},
                {"type": "function_call_output", "call_id": "c", "output": "o"}], "instructions": "i"}"#,
            &[("p", ""), ("o", r#"{"files":[{"path":"x"}]}"#), ("i", "")],
        );
    }

    #[test]
    fn chat_completions() {
        assert_strings(
            r#"{"messages": [
                {"role": "assistant", "content": "mine", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "r", "arguments": "{\"path\":\"p\"}"}}]},
                {"role": "tool", "tool_call_id": "a", "content": "result"}]}"#,
            &[("result", r#"{"path":"p"}"#)],
        );
    }

    #[test]
    fn gemini_with_and_without_ids() {
        assert_strings(
            r#"{"contents": [
                {"role": "model", "parts": [
                    {"functionCall": {"name": "read_file", "args": {"file_path": "1"}}, "thoughtSignature": "s"},
                    {"functionCall": {"name": "read_file", "args": {"file_path": "2"}}},
                    {"functionCall": {"id": "i", "name": "read_file", "args": {"file_path": "3"}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "read_file", "response": {"output": "one"}}},
                    {"functionResponse": {"name": "read_file", "response": {"output": "two"}}},
                    {"functionResponse": {"id": "i", "name": "read_file", "response": {"output": "three"}}}]}]}"#,
            &[
                ("read_file", r#"{"file_path": "1"}"#),
                ("output", ""),
                ("one", r#"{"file_path": "1"}"#),
                ("read_file", r#"{"file_path": "2"}"#),
                ("output", ""),
                ("two", r#"{"file_path": "2"}"#),
                ("read_file", r#"{"file_path": "3"}"#),
                ("output", ""),
                ("three", r#"{"file_path": "3"}"#),
            ],
        );
    }

    #[test]
    fn names_in_json_of_tools_mean_nothing() {
        assert_strings(
            r#"{"tools": [{"name": "n", "input_schema": {"properties": {"id": {"default": "d"}}}}],
                "contents": [{"parts": [{"functionResponse": {"id": "i", "response":
                    {"type": "reasoning", "role": "model", "k": [{"call_id": "c"}]}}}]}]}"#,
            &[
                ("n", ""),
                ("properties", ""),
                ("id", ""),
                ("default", ""),
                ("d", ""),
                ("type", ""),
                ("reasoning", ""),
                ("role", ""),
                ("model", ""),
                ("k", ""),
                ("call_id", ""),
                ("c", ""),
            ],
        );
    }
}
