//! Finds the strings of a request that a client wrote, and the calls whose results they are.
//!
//! What a model wrote stays as it is: its provider knows it, and newer models bind their thinking to
//! it. Everything else is a string of a client, also in fields and blocks of unknown types.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use sightline_conversation::wire::json::{Cursor, decode, string_equals};

/// Maximum nesting of arrays and objects.
const MAX_DEPTH: usize = 128;

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

/// Fields of arguments that are paths.
const PATHS: [&str; 12] = [
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "file_paths",
    "filename",
    "absolute_path",
    "notebook_path",
    "relative_workspace_path",
    "target_file",
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
    /// The paths in its arguments.
    pub(crate) paths: Vec<String>,
}

/// The strings of a request, in their order.
#[derive(Debug, Default)]
pub(crate) struct Strings<'a> {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) calls: Vec<Call<'a>>,
    by_id: HashMap<Cow<'a, str>, usize>,
    /// Calls without an id by name; their results come in the same order.
    by_name: HashMap<Cow<'a, str>, std::collections::VecDeque<usize>>,
}

/// The request is nested too deeply.
#[derive(Debug)]
pub(crate) struct TooDeep;

impl<'a> Strings<'a> {
    /// Finds the strings of a valid JSON text.
    pub(crate) fn find(text: &'a str) -> Result<Self, TooDeep> {
        let mut strings = Self::default();
        strings.value(text, 0..text.len(), None, 0)?;
        Ok(strings)
    }

    /// Adds the strings of a value.
    fn value(
        &mut self,
        text: &'a str,
        range: Range<usize>,
        call: Option<usize>,
        depth: usize,
    ) -> Result<(), TooDeep> {
        if depth > MAX_DEPTH {
            return Err(TooDeep);
        }
        let value = text.get(range.clone()).unwrap_or_default();
        let at = |inner: Range<usize>| range.start + inner.start..range.start + inner.end;
        let mut cursor = Cursor::new(value);
        match cursor.peek() {
            Some(b'"') => {
                let range = at(cursor.skip_value());
                self.pieces.push(Piece { range, call });
            }
            Some(b'[') => {
                cursor.enter(b'[');
                while cursor.next_item(b']') {
                    let item = at(cursor.skip_value());
                    self.value(text, item, call, depth + 1)?;
                }
            }
            Some(b'{') => self.object(text, range, call, depth)?,
            _ => {}
        }
        Ok(())
    }

    fn object(
        &mut self,
        text: &'a str,
        range: Range<usize>,
        call: Option<usize>,
        depth: usize,
    ) -> Result<(), TooDeep> {
        let object = Members::of(text.get(range.clone()).unwrap_or_default());
        self.add_call(&object);
        let is = |name: &str, values: &[&str]| {
            let value = object.get(name).filter(|value| value.starts_with('"'));
            value.is_some_and(|value| values.iter().any(|known| string_equals(value, known)))
        };
        if is("type", &OF_MODELS) {
            return Ok(());
        }
        let is_of_model = is("role", &["assistant", "model"]);
        let call = self.call_of_result(&object).or(call);
        for (key, inner) in &object.members {
            let value = range.start + inner.start..range.start + inner.end;
            // What a model wrote is searched for calls only.
            if is_of_model || string_equals(key, "tool_calls") {
                self.add_calls_below(text.get(value).unwrap_or_default(), depth + 1)?;
            } else if !OPAQUE.iter().any(|name| string_equals(key, name)) {
                self.value(text, value, call, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Adds the calls in what a model wrote.
    fn add_calls_below(&mut self, value: &'a str, depth: usize) -> Result<(), TooDeep> {
        if depth > MAX_DEPTH {
            return Err(TooDeep);
        }
        let mut cursor = Cursor::new(value);
        match cursor.peek() {
            Some(b'[') => {
                cursor.enter(b'[');
                while cursor.next_item(b']') {
                    let item = value.get(cursor.skip_value()).unwrap_or_default();
                    self.add_calls_below(item, depth + 1)?;
                }
            }
            Some(b'{') => self.add_call(&Members::of(value)),
            _ => {}
        }
        Ok(())
    }

    /// Adds the call that an object is.
    fn add_call(&mut self, object: &Members<'a>) {
        // Chat completions and Gemini have an object inside.
        let inner = |name| {
            let inner = object.get(name).filter(|inner| inner.starts_with('{'));
            inner.map(Members::of)
        };
        let inside;
        let (call, id) = if let Some(inner) = inner("functionCall") {
            inside = inner;
            (&inside, inside.get("id"))
        } else if let Some(inner) = inner("function") {
            inside = inner;
            (&inside, object.get("id"))
        } else {
            (object, object.get("call_id").or_else(|| object.get("id")))
        };
        let arguments = ["input", "arguments", "args"]
            .iter()
            .find_map(|name| call.get(name));
        let (Some(arguments), Some(name)) = (arguments, call.get("name")) else {
            return;
        };
        let arguments = match arguments.starts_with('"') {
            true => decode(arguments),
            false => Cow::Borrowed(arguments),
        };
        let mut paths = Vec::new();
        add_paths(&arguments, false, 0, &mut paths);
        let number = self.calls.len();
        let name = decode(name);
        let id = id.filter(|id| id.starts_with('"')).map(decode);
        let key = match &id {
            Some(id) => id.clone(),
            None => Cow::Owned(format!("{name} {arguments}")),
        };
        match id {
            Some(id) => drop(self.by_id.insert(id, number)),
            None => self.by_name.entry(name).or_default().push_back(number),
        }
        self.calls.push(Call { key, paths });
    }

    /// Returns the call whose result an object is.
    fn call_of_result(&mut self, object: &Members<'a>) -> Option<usize> {
        if let Some(result) = object.get("functionResponse") {
            let result = Members::of(result);
            if let Some(id) = result.get("id") {
                return self.by_id.get(&decode(id)).copied();
            }
            let name = decode(result.get("name")?);
            return self.by_name.get_mut(&name)?.pop_front();
        }
        let id = ["tool_use_id", "tool_call_id", "call_id"]
            .iter()
            .find_map(|name| object.get(name))?;
        self.by_id.get(&decode(id)).copied()
    }
}

/// The members of an object, found in one pass: the objects of a request hold all of it.
struct Members<'a> {
    object: &'a str,
    members: Vec<(&'a str, Range<usize>)>,
}

impl<'a> Members<'a> {
    fn of(object: &'a str) -> Self {
        let mut members = Vec::new();
        let mut cursor = Cursor::new(object);
        if cursor.enter(b'{') {
            while let Some(key) = cursor.next_member() {
                members.push((key, cursor.skip_value()));
            }
        }
        Self { object, members }
    }

    /// Returns a value; the last one if there are several.
    fn get(&self, name: &str) -> Option<&'a str> {
        let mut members = self.members.iter().rev();
        let (_, range) = members.find(|(key, _)| string_equals(key, name))?;
        self.object.get(range.clone())
    }
}

/// Adds the strings that are paths by the names of their fields.
fn add_paths(value: &str, is_path: bool, depth: usize, paths: &mut Vec<String>) {
    let mut cursor = Cursor::new(value);
    match cursor.peek() {
        Some(b'"') if is_path => {
            let string = value.get(cursor.skip_value()).unwrap_or_default();
            paths.push(decode(string).into_owned());
        }
        Some(b'[') if depth < 8 => {
            cursor.enter(b'[');
            while cursor.next_item(b']') {
                let item = value.get(cursor.skip_value()).unwrap_or_default();
                add_paths(item, is_path, depth + 1, paths);
            }
        }
        Some(b'{') if depth < 8 => {
            cursor.enter(b'{');
            while let Some(key) = cursor.next_member() {
                let inner = value.get(cursor.skip_value()).unwrap_or_default();
                let is_path = PATHS.iter().any(|name| string_equals(key, name));
                add_paths(inner, is_path, depth + 1, paths);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the strings, each with the paths of its call.
    fn strings(text: &str) -> Vec<(String, Vec<String>)> {
        let found = Strings::find(text).unwrap();
        let pieces = found.pieces.iter();
        let pieces = pieces.map(|piece| {
            let paths = piece.call.map(|call| found.calls[call].paths.clone());
            let string = decode(&text[piece.range.clone()]).into_owned();
            (string, paths.unwrap_or_default())
        });
        pieces.collect()
    }

    fn assert_strings(text: &str, expected: &[(&str, &[&str])]) {
        let expected = expected.iter().map(|(string, paths)| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            ((*string).to_owned(), paths)
        });
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
            &[("s", &[]), ("a\nb", &[]), ("r", &["/w/.env"]), ("u", &[])],
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
            &[("p", &[]), ("o", &["x"]), ("i", &[])],
        );
    }

    #[test]
    fn chat_completions() {
        assert_strings(
            r#"{"messages": [
                {"role": "assistant", "content": "mine", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "r", "arguments": "{\"path\":\"p\"}"}}]},
                {"role": "tool", "tool_call_id": "a", "content": "result"}]}"#,
            &[("result", &["p"])],
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
                ("read_file", &["1"]),
                ("one", &["1"]),
                ("read_file", &["2"]),
                ("two", &["2"]),
                ("read_file", &["3"]),
                ("three", &["3"]),
            ],
        );
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(Strings::find(&text).is_err());
    }
}
