//! Generates `clients/types/protocol.ts`: the wire types in TypeScript.

use super::COMMAND;
use super::shape::{Body, Definition, Shape};
use sightline_protocol::PROTOCOL_VERSION;
use sightline_protocol::method::{Direction, METHODS};

/// Returns the whole file.
pub(super) fn write(definitions: &[Definition]) -> String {
    let mut out = format!(
        "// Generated from the types in server/protocol. Do not edit. Change the types, then run\n\
         //   {COMMAND}\n\n\
         /** Protocol version of these types. */\n\
         export const PROTOCOL_VERSION = {PROTOCOL_VERSION};\n"
    );
    methods(&mut out);
    for definition in definitions {
        out.push('\n');
        write_definition(&mut out, definition);
    }
    out
}

fn methods(out: &mut String) {
    let tables = [
        (
            Direction::Request,
            "Methods",
            "Client requests, with their params and results.",
        ),
        (
            Direction::ClientNotification,
            "Notifications",
            "Client notifications, with their params.",
        ),
        (
            Direction::ServerRequest,
            "ServerRequests",
            "Server requests, with their params and results.",
        ),
        (
            Direction::ServerNotification,
            "ServerNotifications",
            "Server notifications, with their params. Those named `didChange...` and `didCreate...` are sent only if the setting `notifications` is true.",
        ),
    ];
    for (direction, name, doc) in tables {
        out.push('\n');
        comment(out, "", doc);
        out.push_str(&format!("export interface {name} {{\n"));
        for method in METHODS.iter().filter(|m| m.direction == direction) {
            comment(out, "  ", method.summary);
            let (name, params) = (method.name, method.params);
            out.push_str(&match method.result {
                Some(result) => {
                    format!("  \"{name}\": {{ params: {params}; result: {result} }};\n")
                }
                None => format!("  \"{name}\": {params};\n"),
            });
        }
        out.push_str("}\n");
    }
}

fn write_definition(out: &mut String, definition: &Definition) {
    let name = &definition.name;
    comment(out, "", &definition.doc);
    match &definition.body {
        Body::Record { fields, open } => {
            out.push_str(&format!("export interface {name} {{\n"));
            for field in fields {
                comment(out, "  ", &field.doc);
                let mark = if field.required { "" } else { "?" };
                out.push_str(&format!(
                    "  {}{mark}: {};\n",
                    field.name,
                    type_of(&field.shape)
                ));
            }
            if *open {
                out.push_str("  [key: string]: unknown;\n");
            }
            out.push_str("}\n");
        }
        Body::Choice(choices) => {
            out.push_str(&format!("export type {name} ="));
            for choice in choices {
                out.push('\n');
                comment(out, "  ", &choice.doc);
                out.push_str(&format!("  | {:?}", choice.value));
            }
            out.push_str(";\n");
        }
        Body::Alias(shape) => out.push_str(&format!("export type {name} = {};\n", type_of(shape))),
    }
}

fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer | Shape::Number => "number".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Reference(name) => name.clone(),
        Shape::List(item) => match **item {
            Shape::Union(_) => format!("({})[]", type_of(item)),
            _ => format!("{}[]", type_of(item)),
        },
        Shape::Map { key, value } => {
            format!("{{ [key in {}]?: {} }}", type_of(key), type_of(value))
        }
        Shape::Union(forms) => forms.iter().map(type_of).collect::<Vec<_>>().join(" | "),
        Shape::Any => "unknown".to_owned(),
    }
}

fn comment(out: &mut String, indent: &str, doc: &str) {
    // Escapes the end of a comment.
    let doc = doc.replace("*/", "*\\/");
    let lines: Vec<&str> = doc.lines().collect();
    match lines.as_slice() {
        [] => {}
        [line] => out.push_str(&format!("{indent}/** {line} */\n")),
        lines => {
            out.push_str(&format!("{indent}/**\n"));
            for line in lines {
                out.push_str(format!("{indent} * {line}").trim_end());
                out.push('\n');
            }
            out.push_str(&format!("{indent} */\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Choice, Field};
    use super::*;

    fn written(doc: &str, body: Body) -> String {
        let mut out = String::new();
        let definition = Definition {
            name: "T".to_owned(),
            doc: doc.to_owned(),
            body,
        };
        write_definition(&mut out, &definition);
        out
    }

    fn field(name: &str, required: bool, shape: Shape) -> Field {
        Field {
            name: name.to_owned(),
            doc: String::new(),
            required,
            shape,
        }
    }

    #[test]
    fn records_mark_optional_fields() {
        let union = Shape::Union(vec![Shape::Text, Shape::Reference("A".to_owned())]);
        let map = Shape::Map {
            key: Box::new(Shape::Reference("K".to_owned())),
            value: Box::new(Shape::Integer),
        };
        let fields = vec![
            field("a", true, Shape::List(Box::new(union))),
            field("b", false, map),
        ];
        let body = Body::Record {
            fields,
            open: false,
        };
        assert_eq!(
            written("", body),
            "export interface T {\n  a: (string | A)[];\n  b?: { [key in K]?: number };\n}\n"
        );
        let body = Body::Record {
            fields: vec![field("a", true, Shape::Any)],
            open: true,
        };
        assert_eq!(
            written("", body),
            "export interface T {\n  a: unknown;\n  [key: string]: unknown;\n}\n"
        );
    }

    #[test]
    fn choices_keep_their_documentation() {
        let choice = |value: &str, doc: &str| Choice {
            value: value.to_owned(),
            doc: doc.to_owned(),
        };
        let body = Body::Choice(vec![choice("a", "First."), choice("b", "")]);
        assert_eq!(
            written("Two\nlines.", body),
            "/**\n * Two\n * lines.\n */\nexport type T =\n  /** First. */\n  | \"a\"\n  | \"b\";\n"
        );
    }

    #[test]
    fn documentation_cannot_end_its_comment() {
        let text = written("Any `**/*.rs`.", Body::Alias(Shape::Text));
        assert_eq!(text, "/** Any `**\\/*.rs`. */\nexport type T = string;\n");
    }
}
