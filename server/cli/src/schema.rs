//! `sightline schema`: prints the JSON Schema of a method or type.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sightline_engine::error::Error;
use sightline_protocol::method::{METHODS, Method};

use super::{DONE, internal, print};

/// The generated schemas, by name.
const FILES: [(&str, &str); 3] = [
    (
        "protocol",
        include_str!("../../../schemas/protocol.schema.json"),
    ),
    (
        "settings",
        include_str!("../../../schemas/settings.schema.json"),
    ),
    ("methods", include_str!("../../../schemas/methods.json")),
];

const LOCAL: &str = "#/definitions/";

/// Prints a schema, or the names of all schemas.
pub(super) fn run(name: Option<&str>) -> Result<i32, Error> {
    let text = match name {
        None => format!("{}\n", names()?.join("\n")),
        Some(name) => schema(name)?.ok_or_else(|| {
            Error::invalid(format!(
                "no schema {name:?}; `sightline schema` lists the names"
            ))
        })?,
    };
    print(&text)?;
    Ok(DONE)
}

/// Returns every name that [`schema`] accepts: files, methods and types.
fn names() -> Result<Vec<String>, Error> {
    let files = FILES.map(|(name, _)| name.to_owned());
    let methods = METHODS.iter().map(|method| method.name.to_owned());
    let types = definitions()?.into_keys();
    Ok(files.into_iter().chain(methods).chain(types).collect())
}

/// Returns a schema by name: a file of `schemas/`, or the self-contained schema of a method, also
/// without `sightline/`, or a type. Returns `None` for an unknown name.
fn schema(name: &str) -> Result<Option<String>, Error> {
    if let Some((_, text)) = FILES.iter().find(|(file, _)| *file == name) {
        return Ok(Some((*text).to_owned()));
    }
    let all = definitions()?;
    let is_it = |method: &&Method| {
        method.name == name || method.name.strip_prefix("sightline/") == Some(name)
    };
    let root = match METHODS.iter().find(is_it) {
        Some(method) => method_schema(method),
        None => match all.get(name) {
            Some(schema) => schema.clone(),
            None => return Ok(None),
        },
    };
    Ok(Some(format!("{:#}\n", self_contained(name, root, &all))))
}

/// Returns the schemas of all types, by name.
fn definitions() -> Result<BTreeMap<String, Value>, Error> {
    let mut all = BTreeMap::new();
    for (_, text) in FILES {
        let file: Value = serde_json::from_str(text).map_err(internal)?;
        let Value::Object(mut file) = file else {
            continue;
        };
        if let Some(Value::Object(definitions)) = file.remove("definitions") {
            all.extend(definitions);
        }
        // The file of the settings is also the schema of a type.
        if file.contains_key("type")
            && let Some(Value::String(title)) = file.remove("title")
        {
            all.insert(title, Value::Object(file));
        }
    }
    Ok(all)
}

/// Returns an object with the params and the result of a method.
fn method_schema(method: &Method) -> Value {
    let mut properties = Map::new();
    for (key, name) in [("params", Some(method.params)), ("result", method.result)] {
        if let Some(name) = name {
            properties.insert(key.to_owned(), json!({ "$ref": format!("{LOCAL}{name}") }));
        }
    }
    json!({ "type": "object", "description": method.summary, "properties": properties })
}

/// Adds the definitions that `root` refers to.
fn self_contained(title: &str, mut root: Value, all: &BTreeMap<String, Value>) -> Value {
    let mut reached = BTreeMap::new();
    let mut open = references(&root);
    while let Some(name) = open.pop() {
        if let Some(schema) = all.get(&name)
            && !reached.contains_key(&name)
        {
            open.extend(references(schema));
            reached.insert(name, schema);
        }
    }
    let definitions = json!(reached);
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!(title);
    if !reached.is_empty() {
        root["definitions"] = definitions;
    }
    root
}

/// Returns the names of the definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value.as_str()) {
                ("$ref", Some(target)) => vec![target.trim_start_matches(LOCAL).to_owned()],
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_schema() {
        for name in names().unwrap() {
            let text = schema(&name).unwrap().expect(&name);
            let document: Value = serde_json::from_str(&text).unwrap();
            for target in references(&document) {
                if name != "methods" {
                    assert!(
                        document["definitions"].get(&target).is_some(),
                        "{name}: {target}"
                    );
                }
            }
        }
    }

    #[test]
    fn schemas_are_available_by_name() {
        for name in ["CheckAccessParams", "SectionSettings", "ErrorData"] {
            let document: Value =
                serde_json::from_str(&schema(name).unwrap().expect(name)).unwrap();
            assert_eq!(document["title"], name);
            assert_eq!(document["type"], "object");
        }
        let text = schema("sightline/readFile").unwrap().unwrap();
        let method: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            method["properties"]["params"]["$ref"],
            "#/definitions/ReadFileParams"
        );
        let parts = method["definitions"].as_object().unwrap();
        let parts: Vec<&str> = parts.keys().map(String::as_str).collect();
        assert_eq!(parts, ["ReadFileParams", "ReadFileResult", "TextSource"]);
        assert!(schema("NoSuchType").unwrap().is_none());
    }
}
