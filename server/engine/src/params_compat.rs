//! Compatibility with clients that deviate from LSP.
//!
//! Handles lone surrogates in strings, `null` for absent fields, `[]` for `{}`, and
//! missing versions and names, so that an edit is never dropped because of them. Anything
//! else is an error.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sightline_base::{json_repair, limits, path::uri_to_path};
use sightline_protocol::error::ErrorKind;

use crate::error::Error;

/// Parses params. Absent params are `null`.
///
/// # Errors
/// `invalidParams` for malformed JSON, except for lone surrogates. The message contains
/// the position but no content, so it can be logged. `tooLarge` for excessive nesting.
pub fn parse(method: &str, text: Option<&str>) -> Result<Value, Error> {
    let text = text.unwrap_or("null");
    json_repair::parse(text).map_err(|error| {
        if error.to_string().starts_with("recursion limit") {
            let limit = limits::MAX_NESTING;
            let why =
                format!("{method}: params are nested deeper than the limit of {limit} levels");
            return Error::new(ErrorKind::TooLarge, why);
        }
        Error::invalid(format!(
            "{method}: malformed params at line {} column {} ({:?})",
            error.line(),
            error.column(),
            error.classify()
        ))
    })
}

/// Parses the params of our own methods as an object. Absent params, `null` and `[]` are
/// the empty object, and `null` fields are removed.
///
/// # Errors
/// `invalidParams` for anything else.
pub fn parse_object(method: &str, text: Option<&str>) -> Result<Value, Error> {
    match parse(method, text)? {
        Value::Null => Ok(json!({})),
        Value::Array(items) if items.is_empty() => Ok(json!({})),
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            Ok(Value::Object(fields))
        }
        other => Err(Error::invalid(format!(
            "{method}: params must be an object, not {}",
            type_name(&other)
        ))),
    }
}

/// Parses the params of our own methods. Well-formed params are parsed directly from the
/// text.
///
/// # Errors
/// `invalidParams`, with the name of the field.
pub fn typed<P: DeserializeOwned>(method: &str, text: &str) -> Result<P, Error> {
    // serde would accept an array of the fields in order.
    if text.trim_start().starts_with('{')
        && let Ok(params) = serde_json::from_str(text)
    {
        return Ok(params);
    }
    let params = parse_object(method, Some(text))?;
    serde_path_to_error::deserialize(params).map_err(|error| {
        let field = error.path().to_string();
        let why = error.into_inner();
        match field.as_str() {
            "." => Error::invalid(format!("{method}: {why}")),
            field => Error::invalid(format!("{method}: `{field}`: {why}")),
        }
    })
}

/// Adds missing fields to the params of a standard notification, so that they
/// deserialize.
pub fn fill_defaults(method: &str, params: &mut Value) {
    match method {
        "textDocument/didOpen" | "textDocument/didChange" => {
            if let Some(document) = params
                .get_mut("textDocument")
                .and_then(Value::as_object_mut)
            {
                set_default(document, "version", json!(0));
                set_default(document, "languageId", json!(""));
            }
        }
        "workspace/didChangeWorkspaceFolders" => {
            let event = params.get_mut("event").and_then(Value::as_object_mut);
            if let Some(event) = event {
                for list in ["added", "removed"] {
                    set_default(event, list, json!([]));
                    if let Some(folders) = event.get_mut(list).and_then(Value::as_array_mut) {
                        folders.retain(|folder| {
                            let uri = folder.get("uri").and_then(Value::as_str);
                            uri.is_some_and(|uri| matches!(uri_to_path(uri), Ok(Some(_))))
                        });
                        for folder in folders.iter_mut().filter_map(Value::as_object_mut) {
                            set_default(folder, "name", json!(""));
                        }
                    }
                }
            }
        }
        "workspace/didChangeConfiguration" => {
            if !params.is_object() {
                *params = json!({});
            }
            if let Some(params) = params.as_object_mut() {
                set_default(params, "settings", Value::Null);
            }
        }
        _ => {}
    }
}

fn set_default(object: &mut Map<String, Value>, key: &str, value: Value) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value);
    }
}

/// Removes `null` fields at any depth. Not for values that contain arbitrary JSON.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        for (text, expected) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b""#, "\u{fffd}b"),
            (r#""\ud83d\ude00\ud83d""#, "😀\u{fffd}"),
            (r#""\\ud83d\ud83d""#, "\\ud83d\u{fffd}"),
        ] {
            assert_eq!(parse("x", Some(text)).unwrap(), json!(expected), "{text}");
        }
        assert!(parse("x", Some(r#""\ud83"#)).is_err());
        assert!(parse("x", Some(r#"{"a": secret}"#)).is_err_and(|e| !e.message.contains("secret")));
    }

    #[test]
    fn fields_that_are_null_are_absent() {
        let text = r#"{"a": null, "b": [{"c": null, "d": 1}]}"#;
        let mut params = parse_object("x", Some(text)).unwrap();
        assert_eq!(params, json!({ "b": [{ "c": null, "d": 1 }] }));
        drop_nulls(&mut params);
        assert_eq!(params, json!({ "b": [{ "d": 1 }] }));
        for nothing in [None, Some("null"), Some("[]"), Some("{}")] {
            assert_eq!(parse_object("x", nothing).unwrap(), json!({}));
        }
        assert!(parse_object("x", Some("5")).is_err());
    }
}
