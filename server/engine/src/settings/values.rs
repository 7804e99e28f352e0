//! Objects of settings: nested and dotted keys.

use serde_json::{Map, Value};

/// Depth of the deepest setting: `environment.sections.openTabs.maxTokens`.
const MAX_DEPTH: usize = 4;
/// Before the id of a model, which may contain dots.
const MODELS: &str = "conversation.models.";

/// Expands dotted keys: `{"a.b": 1}` becomes `{"a": {"b": 1}}`.
pub(super) fn expand_dotted_keys(value: &Value) -> Value {
    expand(value, 0)
}

fn expand(value: &Value, depth: usize) -> Value {
    match value {
        Value::Object(fields) if depth < MAX_DEPTH => {
            let mut result = Value::Object(Map::new());
            for (key, value) in fields {
                let mut value = match key.rsplit('.').next() {
                    // Keys are model ids, which may contain dots.
                    Some("models") => expand(value, MAX_DEPTH),
                    _ => expand(value, depth + 1),
                };
                let mut parts: Vec<&str> = key.splitn(MAX_DEPTH + 1, '.').collect();
                if let Some((before, id)) = key.split_once(MODELS) {
                    parts = before.split_terminator('.').collect();
                    parts.extend(["conversation", "models", id]);
                }
                while let Some(part) = parts.pop() {
                    value = Value::Object(Map::from_iter([(part.to_owned(), value)]));
                }
                merge(&mut result, value);
            }
            result
        }
        other => other.clone(),
    }
}

/// Adds the values of a layer. `null` adds nothing, nor does the empty array in place of an object,
/// because Lua encodes an empty table as an array.
pub(super) fn merge(base: &mut Value, layer: Value) {
    match (base, layer) {
        (Value::Object(base), Value::Object(layer)) => {
            for (key, value) in layer {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (Value::Object(_), Value::Array(items)) if items.is_empty() => {}
        (base, layer) => *base = layer,
    }
}

/// Returns the settings of an object that are set, by dotted path.
pub(super) fn leaves(value: &Value) -> Vec<(String, &Value)> {
    let mut found = all_leaves(value);
    found.retain(|(_, value)| !value.is_null());
    found
}

/// Returns all settings of an object, by dotted path.
pub fn all_leaves(value: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    collect(value, String::new(), &mut found);
    found
}

fn collect<'a>(value: &'a Value, path: String, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(value, join(&path, key), found);
            }
        }
        other => found.push((path, other)),
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns the value at a dotted path.
pub(super) fn get<'a>(values: &'a Value, path: &str) -> Option<&'a Value> {
    // The settings of a model are below its id, which may contain dots.
    if let Some(rest) = path.strip_prefix(MODELS) {
        let (id, key) = rest.rsplit_once('.')?;
        return values.get("conversation")?.get("models")?.get(id)?.get(key);
    }
    path.split('.')
        .try_fold(values, |value, part| value.get(part))
}

/// Splits a dotted path into the keys above a setting, and its own.
fn split(path: &str) -> (Vec<&str>, &str) {
    if let Some(id) = path.strip_prefix(MODELS) {
        return (vec!["conversation", "models"], id);
    }
    match path.rsplit_once('.') {
        Some((above, key)) => (above.split('.').collect(), key),
        None => (Vec::new(), path),
    }
}

/// Sets the value at a dotted path.
pub(super) fn set(values: &mut Value, path: &str, value: Value) {
    let (above, key) = split(path);
    let mut layer = Value::Object(Map::from_iter([(key.to_owned(), value)]));
    for part in above.into_iter().rev() {
        layer = Value::Object(Map::from_iter([(part.to_owned(), layer)]));
    }
    merge(values, layer);
}

/// Removes the value at a dotted path.
pub(super) fn remove(values: &mut Value, path: &str) {
    let (above, key) = split(path);
    let object = above
        .into_iter()
        .try_fold(values, |value, part| value.get_mut(part));
    if let Some(Value::Object(fields)) = object {
        fields.remove(key);
    }
}
