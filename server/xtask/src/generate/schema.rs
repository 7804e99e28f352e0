//! Generates JSON Schema, draft 7, the version with the best editor support.
//!
//! Params use the deserialization schema of a type, where fields with a default are
//! optional; results use the serialization schema. A type used in both must have the
//! same schema in both, because a client has one type for it; generation fails
//! otherwise.
//!
//! Optional fields are omitted, never `null`, although the server accepts `null` for
//! them.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::GenerateError;
use sightline_protocol::PROTOCOL_VERSION;
use sightline_protocol::error::ErrorData;
use sightline_protocol::method::{Direction, METHODS};
use sightline_protocol::settings::Settings;

/// Schemas by type name.
pub(super) type Definitions = BTreeMap<String, Value>;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
const LOCAL: &str = "#/definitions/";

/// Returns `schemas/protocol.schema.json`: params and results of every method.
pub(super) fn protocol() -> Result<String, GenerateError> {
    Ok(pretty(json!({
        "$schema": DRAFT,
        "title": "Sightline protocol",
        "description": format!(
            "Protocol version {PROTOCOL_VERSION}: params and result of every method, and \
             `ErrorData`, the `data` of an error. `methods.json` maps methods to types."
        ),
        "definitions": protocol_definitions()?,
    })))
}

/// Returns `schemas/settings.schema.json`.
pub(super) fn settings() -> Result<String, GenerateError> {
    let mut all = settings_definitions()?;
    let mut root = all
        .remove("Settings")
        .ok_or_else(|| GenerateError("no schema is named `Settings`".to_owned()))?;
    root["$schema"] = json!(DRAFT);
    root["title"] = json!("Settings");
    root["definitions"] = json!(all);
    Ok(pretty(root))
}

/// Returns `schemas/methods.json`.
pub(super) fn methods() -> String {
    let reference = |name: &str| json!({ "$ref": format!("protocol.schema.json{LOCAL}{name}") });
    let rows = METHODS.iter().map(|method| {
        let mut row = Map::new();
        row.insert("method".to_owned(), json!(method.name));
        if let Some(command) = method.command() {
            row.insert("command".to_owned(), json!(command));
        }
        row.insert(
            "direction".to_owned(),
            json!(match method.direction {
                Direction::Request => "request",
                Direction::ClientNotification => "clientNotification",
                Direction::ServerRequest => "serverRequest",
                Direction::ServerNotification => "serverNotification",
            }),
        );
        row.insert("params".to_owned(), reference(method.params));
        if let Some(result) = method.result {
            row.insert("result".to_owned(), reference(result));
        }
        if !method.errors.is_empty() {
            let errors = method
                .errors
                .iter()
                .map(|(kind, when)| json!({ "kind": kind, "when": when }))
                .collect();
            row.insert("errors".to_owned(), errors);
        }
        row.insert("summary".to_owned(), json!(method.summary));
        row.insert("since".to_owned(), json!(method.since));
        Value::Object(row)
    });
    pretty(rows.collect())
}

/// Returns every named type of the protocol and the settings.
pub(super) fn all_definitions() -> Result<Definitions, GenerateError> {
    let mut all = protocol_definitions()?;
    merge(&mut all, settings_definitions()?)?;
    Ok(all)
}

pub(super) fn protocol_definitions() -> Result<Definitions, GenerateError> {
    let mut all = definitions(SchemaSettings::draft07().for_deserialize(), |generator| {
        for method in METHODS {
            if method.direction.is_from_client() {
                (method.params_schema)(generator);
            } else if let Some(result_schema) = method.result_schema {
                result_schema(generator);
            }
        }
    })?;
    let sent = definitions(SchemaSettings::draft07().for_serialize(), |generator| {
        for method in METHODS {
            if !method.direction.is_from_client() {
                (method.params_schema)(generator);
            } else if let Some(result_schema) = method.result_schema {
                result_schema(generator);
            }
        }
        generator.subschema_for::<ErrorData>();
    })?;
    merge(&mut all, sent)?;
    Ok(all)
}

pub(super) fn settings_definitions() -> Result<Definitions, GenerateError> {
    definitions(SchemaSettings::draft07().for_deserialize(), |generator| {
        generator.subschema_for::<Settings>();
    })
}

fn definitions(
    settings: SchemaSettings,
    add: impl FnOnce(&mut SchemaGenerator),
) -> Result<Definitions, GenerateError> {
    let mut generator = settings.into_generator();
    add(&mut generator);
    generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, mut schema)| {
            tidy(&mut schema, &name)?;
            Ok((name, schema))
        })
        .collect()
}

/// Merges `more` into `all`. Fails if a name has two different schemas.
fn merge(all: &mut Definitions, more: Definitions) -> Result<(), GenerateError> {
    for (name, schema) in more {
        match all.get(&name) {
            Some(known) if *known != schema => {
                return Err(GenerateError(format!(
                    "`{name}` has different schemas for params and results: {known} and {schema}. \
                     Make optional fields an `Option` with `skip_serializing_if`, or use two types."
                )));
            }
            Some(_) => {}
            None => {
                all.insert(name, schema);
            }
        }
    }
    Ok(())
}

/// Normalizes a generated schema: removes `null` from optional fields, and replaces
/// Rust number formats, which validators do not know, with bounds.
fn tidy(schema: &mut Value, place: &str) -> Result<(), GenerateError> {
    match schema {
        Value::Array(items) => items.iter_mut().try_for_each(|item| tidy(item, place)),
        Value::Object(map) => {
            number_format_to_bounds(map, place)?;
            optional_without_null(map);
            // The default of an object is that of its fields, and `null` is none.
            if map
                .get("default")
                .is_some_and(|default| default.is_null() || default.is_object())
            {
                map.remove("default");
            }
            if may_be_null(map) {
                return Err(GenerateError(format!(
                    "`{place}` may be null on the wire, which the protocol does not allow. Omit absent \
                     fields (`Option` with `skip_serializing_if`)."
                )));
            }
            for (key, value) in map.iter_mut() {
                if matches!(key.as_str(), "default" | "const" | "enum") {
                    continue;
                }
                tidy(value, &format!("{place}/{key}"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn number_format_to_bounds(map: &mut Map<String, Value>, place: &str) -> Result<(), GenerateError> {
    // A property may be named `format`. Its value is then a schema, not a string.
    let Some(format) = map.get("format").and_then(Value::as_str).map(str::to_owned) else {
        return Ok(());
    };
    match format.as_str() {
        "uint32" => {
            map.insert("maximum".to_owned(), json!(u32::MAX));
        }
        "uint64" | "int64" | "double" => {}
        other => {
            return Err(GenerateError(format!(
                "`{place}` has the unsupported format `{other}`. Use `u32`, `u64`, `i64` or `f64`, or \
                 add the format to `generate::schema`."
            )));
        }
    }
    map.remove("format");
    Ok(())
}

/// Removes `null` from optional properties.
fn optional_without_null(map: &mut Map<String, Value>) {
    let required = map.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let Some(Value::Object(properties)) = map.get_mut("properties") else {
        return;
    };
    for (name, property) in properties.iter_mut() {
        if let Value::Object(property) = property
            && !is_required(name)
        {
            remove_null(property);
        }
    }
}

fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        forms.retain(|form| form.get("type").is_none_or(|name| name != "null"));
        if forms.len() == 1 {
            // `allOf`, because draft 7 ignores siblings of `$ref`.
            let only = schema.remove("anyOf").unwrap_or_default();
            schema.insert("allOf".to_owned(), only);
        }
    }
}

fn may_be_null(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "null"),
        Some(Value::String(name)) => name == "null",
        _ => false,
    }
}

/// Formats JSON with sorted keys. The key order of `serde_json` depends on features
/// that any dependency can enable.
fn pretty(value: Value) -> String {
    format!("{:#}\n", sorted(value))
}

pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let by_key: BTreeMap<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            Value::Object(by_key.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(mut schema: Value) -> Result<Value, GenerateError> {
        tidy(&mut schema, "T")?;
        Ok(schema)
    }

    #[test]
    fn optional_fields_lose_their_null() {
        let schema = tidied(json!({
            "properties": {
                "a": { "type": ["string", "null"] },
                "b": { "anyOf": [{ "$ref": "#/definitions/B" }, { "type": "null" }] },
            }
        }));
        let expected = json!({
            "properties": {
                "a": { "type": "string" },
                "b": { "allOf": [{ "$ref": "#/definitions/B" }] },
            }
        });
        assert_eq!(schema, Ok(expected));
    }

    #[test]
    fn a_null_that_would_be_sent_is_an_error() {
        for schema in [
            json!({ "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"] }),
            json!({
                "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] } },
                "required": ["a"],
            }),
            json!({ "items": { "type": ["string", "null"] } }),
        ] {
            let error = tidied(schema).unwrap_err();
            assert!(error.to_string().contains("may be null"), "{error}");
        }
    }

    #[test]
    fn a_type_that_differs_by_direction_is_an_error() {
        let mut all = Definitions::from([("A".to_owned(), json!({ "type": "string" }))]);
        let same = all.clone();
        assert_eq!(merge(&mut all, same), Ok(()));
        let other = Definitions::from([("A".to_owned(), json!({ "type": "boolean" }))]);
        let error = merge(&mut all, other).unwrap_err();
        assert!(
            error.to_string().contains("`A` has different schemas"),
            "{error}"
        );
    }

    #[test]
    fn unknown_number_formats_are_errors() {
        let error = tidied(json!({ "type": "integer", "format": "uint8" })).unwrap_err();
        assert!(error.to_string().contains("uint8"), "{error}");
    }
}
