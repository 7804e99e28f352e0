//! Generates `docs/protocol.md` and `docs/settings.md`.
//!
//! The introductions come from `text/`. The worked examples come from `docs/examples`
//! and are run by a server test: each is an object with `params`, the outcome
//! (`result`, `refused`) and a description (`about`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::shape::{Body, Definition, Field, Shape};
use super::{COMMAND, GenerateError, schema};
use sightline_protocol::error::ErrorKind;
use sightline_protocol::method::{ANY_REQUEST, Direction, METHODS, Method};

/// Worked examples, by the last component of the method name.
pub(crate) type Examples = BTreeMap<String, Value>;

/// Maximum line width of JSON values, in characters.
const WIDTH: usize = 100;

pub(super) fn protocol(
    definitions: &[Definition],
    examples: &Examples,
) -> Result<String, GenerateError> {
    let mut out = head(include_str!("text/protocol.md"));
    let parts = [
        (
            Direction::ClientNotification,
            "Editor state notifications",
            "Notifications from client to server. Each replaces the whole state it describes. Send it when that state changes. The \
             server derives state that a client does not send from the open documents, and marks it in the block.",
        ),
        (
            Direction::Request,
            "Requests",
            "Requests from client to server.",
        ),
        (
            Direction::ServerRequest,
            "Server requests",
            "Requests from server to client. They are sent only to clients that announce them: \
             `capabilities.experimental.sightline.openDiff: true`.",
        ),
        (
            Direction::ServerNotification,
            "Server notifications",
            "Notifications from server to client. Those named `didChange...` and `didCreate...` are sent only if the setting \
             `notifications` is true.",
        ),
    ];
    contents(&mut out, &parts);
    errors(&mut out, definitions)?;
    for (direction, title, about) in parts {
        out.push_str(&format!("\n## {title}\n\n{about}\n"));
        for method in METHODS.iter().filter(|m| m.direction == direction) {
            write_method(&mut out, method, definitions, examples)?;
        }
    }
    out.push_str("\n## Types\n\nTypes used by the methods above.\n");
    for definition in definitions.iter().filter(|d| is_shared(d)) {
        out.push_str(&format!(
            "\n### {}\n\n{}\n",
            definition.name,
            line(&definition.doc)
        ));
        write_body(&mut out, &definition.body, "Required");
    }
    Ok(out)
}

pub(super) fn settings(definitions: &[Definition]) -> Result<String, GenerateError> {
    let mut out = head(include_str!("text/settings.md"));
    let is_group = |field: &&Field| !fields_of_shape(&field.shape, definitions).is_empty();
    let (groups, single): (Vec<&Field>, Vec<&Field>) = fields_of("Settings", definitions)?
        .iter()
        .partition(is_group);
    for field in single {
        let meaning = meaning(field, definitions);
        out.push_str(&format!("\n## `{}`\n\n{meaning}\n", field.name));
    }
    for group in groups {
        out.push_str(&format!(
            "\n## `{}`\n\n{}\n\n",
            group.name,
            line(&group.doc)
        ));
        out.push_str("| Setting | Type | Meaning |\n|---|---|---|\n");
        for field in fields_of_shape(&group.shape, definitions) {
            let path = format!("{}.{}", group.name, field.name);
            setting_rows(&mut out, &path, field, definitions);
        }
    }
    Ok(out)
}

fn head(text: &str) -> String {
    format!(
        "<!-- Generated. Do not edit. Change the types, the examples or the text in server/xtask, then run\n     {COMMAND} -->\n\n{text}"
    )
}

fn contents(out: &mut String, parts: &[(Direction, &str, &str)]) {
    for (direction, title, _) in parts {
        out.push_str(&format!("\n| {title} | |\n|---|---|\n"));
        for method in METHODS.iter().filter(|m| m.direction == *direction) {
            let (name, summary) = (method.name, method.summary);
            out.push_str(&format!("| [`{name}`](#{}) | {summary} |\n", anchor(name)));
        }
    }
}

fn errors(out: &mut String, definitions: &[Definition]) -> Result<(), GenerateError> {
    out.push_str(
        "\n## Errors\n\nErrors are JSON-RPC errors whose `data` is an [ErrorData](#errordata). Programs use the stable `kind`. The `message` \
         tells the user which value is wrong, why, and what to do. A failed request changes nothing, unless the message says otherwise.\n\n\
         | `kind` | `code` | Meaning |\n|---|---|---|\n",
    );
    let kinds = find("ErrorKind", definitions)?;
    let Body::Choice(kinds) = &kinds.body else {
        return Err(GenerateError(
            "`ErrorKind` is not an enumeration".to_owned(),
        ));
    };
    for kind in kinds {
        let value = Value::from(kind.value.as_str());
        let code = serde_json::from_value::<ErrorKind>(value)
            .map_err(|error| GenerateError(error.to_string()))?
            .code();
        out.push_str(&format!(
            "| `{}` | {code} | {} |\n",
            kind.value,
            line(&kind.doc)
        ));
    }
    out.push_str("\nErrors of any request:\n\n");
    error_list(out, ANY_REQUEST);
    Ok(())
}

fn error_list(out: &mut String, errors: &[(ErrorKind, &str)]) {
    for (kind, when) in errors {
        let kind = serde_json::json!(kind);
        let kind = kind.as_str().unwrap_or_default();
        out.push_str(&format!("- `{kind}`: {when}\n"));
    }
}

fn write_method(
    out: &mut String,
    method: &Method,
    definitions: &[Definition],
    examples: &Examples,
) -> Result<(), GenerateError> {
    out.push_str(&format!("\n### `{}`\n\n{}", method.name, method.summary));
    if let Some(command) = method.command() {
        out.push_str(&format!(" Command: `{command}`."));
    }
    out.push_str(&format!(" Since {}.\n", method.since));
    write_part(out, "Params", method.params, definitions)?;
    if let Some(result) = method.result {
        write_part(out, "Result", result, definitions)?;
        if !method.errors.is_empty() {
            out.push_str("\nErrors, in addition to the [common errors](#errors):\n\n");
            error_list(out, method.errors);
        }
    }
    let verb = method.name.rsplit('/').next().unwrap_or(method.name);
    let example = examples.get(verb).ok_or_else(|| {
        GenerateError(format!(
            "`{}` has no worked example: docs/examples/{verb}.json",
            method.name
        ))
    })?;
    write_example(out, method, example);
    Ok(())
}

/// Writes the params or the result of a method.
fn write_part(
    out: &mut String,
    title: &str,
    name: &str,
    definitions: &[Definition],
) -> Result<(), GenerateError> {
    let definition = find(name, definitions)?;
    if is_shared(definition) {
        out.push_str(&format!("\n{title}: {}.\n", link(name)));
        return Ok(());
    }
    let needed = if title == "Params" {
        "Required"
    } else {
        "Always present"
    };
    match &definition.body {
        Body::Record { fields, .. } if fields.is_empty() => {
            out.push_str(&format!("\n{title}: none.\n"));
        }
        body => {
            out.push_str(&format!("\n{title}:\n"));
            write_body(out, body, needed);
        }
    }
    Ok(())
}

fn write_body(out: &mut String, body: &Body, needed: &str) {
    match body {
        Body::Record { fields, open } => {
            out.push_str(&format!(
                "\n| Field | Type | {needed} | Meaning |\n|---|---|---|---|\n"
            ));
            let (required, optional): (Vec<_>, Vec<_>) = fields.iter().partition(|f| f.required);
            for field in required.into_iter().chain(optional) {
                let (name, doc) = (&field.name, line(&field.doc));
                let is_needed = if field.required { "yes" } else { "no" };
                let of = type_of(&field.shape);
                out.push_str(&format!("| `{name}` | {of} | {is_needed} | {doc} |\n"));
            }
            if *open {
                out.push_str("\nOther fields are passed through.\n");
            }
        }
        Body::Choice(choices) => {
            out.push_str("\n| Value | Meaning |\n|---|---|\n");
            for choice in choices {
                out.push_str(&format!("| `{}` | {} |\n", choice.value, line(&choice.doc)));
            }
        }
        Body::Alias(shape) => out.push_str(&format!("\nType: {}.\n", type_of(shape))),
    }
}

fn write_example(out: &mut String, method: &Method, example: &Value) {
    let text = |of: &Value| of["about"].as_str().unwrap_or_default().to_owned();
    out.push_str(&format!("\n**Example.** {}\n", text(example)));
    for (name, content) in example["files"].as_object().into_iter().flatten() {
        let content = content.as_str().unwrap_or_default();
        out.push_str(&format!(
            "\nContent of `{name}` before the request:\n\n```text\n{content}```\n"
        ));
    }
    for request in example["before"].as_array().into_iter().flatten() {
        let name = request["method"].as_str().unwrap_or_default();
        block(
            out,
            &format!("Preceded by `{name}` with params:"),
            &request["params"],
        );
    }
    block(out, "Params:", &example["params"]);
    if method.result.is_some() {
        block(out, "Result:", &example["result"]);
    }
    let varies = example["varies"].as_array().into_iter().flatten();
    let varies: Vec<String> = varies
        .filter_map(Value::as_str)
        .map(|f| format!("`{f}`"))
        .collect();
    if !varies.is_empty() {
        out.push_str(&format!(
            "\nValues that differ between runs: {}.\n",
            varies.join(", ")
        ));
    }
    if let Some(refused) = example.get("refused") {
        block(out, &text(refused), &refused["params"]);
        block(out, "Error:", &refused["error"]);
    }
}

fn block(out: &mut String, title: &str, value: &Value) {
    let json = json(&schema::sorted(value.clone()), "", 0);
    out.push_str(&format!("\n{title}\n\n```json\n{json}\n```\n"));
}

/// Formats JSON on one line if it fits, to keep short lists compact. `before` is the
/// used width of the line.
fn json(value: &Value, indent: &str, before: usize) -> String {
    let flat = one_line(value);
    if indent.len() + before + flat.chars().count() <= WIDTH {
        return flat;
    }
    let deeper = format!("{indent}  ");
    let (open, close, parts): (char, char, Vec<String>) = match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| json(item, &deeper, 0));
            ('[', ']', items.collect())
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| {
                let key = format!("{}: ", Value::from(key.as_str()));
                let value = json(value, &deeper, key.chars().count());
                format!("{key}{value}")
            });
            ('{', '}', fields.collect())
        }
        _ => return flat,
    };
    let parts = parts.join(&format!(",\n{deeper}"));
    format!("{open}\n{deeper}{parts}\n{indent}{close}")
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(one_line).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), one_line(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn setting_rows(out: &mut String, path: &str, field: &Field, definitions: &[Definition]) {
    let (name, key) = match &field.shape {
        Shape::Reference(name) => (name, None),
        Shape::Map { key, value } => match (&**key, &**value) {
            (Shape::Reference(key), Shape::Reference(name)) => (name, Some(key.as_str())),
            (_, Shape::Reference(name)) => (name, Some("name")),
            _ => return setting_row(out, path, field, &type_of(&field.shape), definitions),
        },
        Shape::List(item) if matches!(**item, Shape::Reference(_)) => {
            return setting_row(out, path, field, "list of strings", definitions);
        }
        shape => return setting_row(out, path, field, &type_of(shape), definitions),
    };
    let Ok(fields) = fields_of(name, definitions) else {
        return setting_row(out, path, field, "string", definitions);
    };
    let path = match key {
        Some(key) => {
            // The key is described with the map.
            setting_row(out, path, field, "object", definitions);
            format!("{path}.<{key}>")
        }
        None => path.to_owned(),
    };
    for field in fields {
        setting_rows(out, &format!("{path}.{}", field.name), field, definitions);
    }
}

fn setting_row(out: &mut String, path: &str, field: &Field, of: &str, definitions: &[Definition]) {
    let meaning = meaning(field, definitions);
    out.push_str(&format!("| `{path}` | {of} | {meaning} |\n"));
}

/// Returns the description of a setting and its values.
fn meaning(field: &Field, definitions: &[Definition]) -> String {
    let mut text = line(&field.doc);
    let shape = match &field.shape {
        Shape::List(item) => item,
        shape => shape,
    };
    if let Shape::Reference(name) = shape
        && let Ok(Definition {
            body: Body::Choice(choices),
            ..
        }) = find(name, definitions)
    {
        for choice in choices {
            text.push_str(&format!(
                "<br>`\"{}\"`: {}",
                choice.value,
                line(&choice.doc)
            ));
        }
    }
    text
}

/// Returns whether a type is listed in its own section. Params and results of a single
/// method are not.
fn is_shared(definition: &Definition) -> bool {
    let name = definition.name.as_str();
    let uses = METHODS
        .iter()
        .filter(|m| m.params == name || m.result == Some(name));
    let is_of_a_method = name.ends_with("Params") || name.ends_with("Result");
    uses.count() > 1 || !is_of_a_method
}

fn find<'a>(name: &str, definitions: &'a [Definition]) -> Result<&'a Definition, GenerateError> {
    let found = definitions
        .iter()
        .find(|definition| definition.name == name);
    found.ok_or_else(|| GenerateError(format!("no type is named `{name}`")))
}

fn fields_of<'a>(name: &str, definitions: &'a [Definition]) -> Result<&'a [Field], GenerateError> {
    match &find(name, definitions)?.body {
        Body::Record { fields, .. } => Ok(fields),
        _ => Err(GenerateError(format!("`{name}` is not an object"))),
    }
}

/// Returns the fields of an object, or none for other shapes.
fn fields_of_shape<'a>(shape: &Shape, definitions: &'a [Definition]) -> &'a [Field] {
    match shape {
        Shape::Reference(name) => fields_of(name, definitions).unwrap_or_default(),
        _ => &[],
    }
}

fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer => "integer".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Reference(name) => link(name),
        Shape::List(item) => format!("list of {}", type_of(item)),
        Shape::Map { key, value } => format!("{} by {}", type_of(value), type_of(key)),
        Shape::Union(forms) => forms.iter().map(type_of).collect::<Vec<_>>().join(" or "),
        Shape::Any => "any JSON".to_owned(),
    }
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", anchor(name))
}

/// Returns the anchor that git hosts generate for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == '-' || *c == ' ');
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Joins documentation into one line for a table cell.
fn line(doc: &str) -> String {
    let words: Vec<&str> = doc.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn json_wraps_only_long_values() {
        let long = "x".repeat(WIDTH);
        let given = value!({ "a": [1, [2, 3]], "b": { "c": long, "d": {} } });
        let expected = format!(
            "{{\n  \"a\": [1, [2, 3]],\n  \"b\": {{\n    \"c\": \"{long}\",\n    \"d\": {{}}\n  }}\n}}"
        );
        assert_eq!(json(&given, "", 0), expected);
        assert_eq!(json(&value!({ "a": [] }), "", 0), "{ \"a\": [] }");
        let read: Value = serde_json::from_str(&expected).unwrap_or_default();
        assert_eq!(read, given);
    }

    #[test]
    fn table_cells_escape_borders_and_tags() {
        assert_eq!(line("One of `a|b`,\nin <b>."), "One of `a\\|b`, in &lt;b>.");
    }

    #[test]
    fn method_without_an_example_is_an_error() {
        let definitions =
            schema::protocol_definitions().and_then(|all| super::super::shape::all(&all));
        let error = protocol(&definitions.unwrap_or_default(), &Examples::new());
        let error = error
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(error.contains("has no worked example"), "{error}");
    }
}
