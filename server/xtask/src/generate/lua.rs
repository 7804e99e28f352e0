//! Generates `clients/types/protocol.lua`: the wire types as LuaCATS annotations, and a
//! module with the method names.

use super::shape::{Body, Definition, Shape};
use super::{COMMAND, GenerateError};
use sightline_protocol::PROTOCOL_VERSION;
use sightline_protocol::method::{Direction, METHODS, Method};

/// Returns the whole file.
pub(super) fn write(definitions: &[Definition]) -> Result<String, GenerateError> {
    let mut out = format!(
        "-- Generated from the types in server/protocol. Do not edit. Change the types, then run\n\
         --   {COMMAND}\n\n"
    );
    for definition in definitions {
        write_definition(&mut out, definition);
        out.push('\n');
    }
    out.push_str(&format!(
        "local M = {{}}\n\n\
         --- Protocol version of these types.\n\
         M.PROTOCOL_VERSION = {PROTOCOL_VERSION}\n"
    ));
    let tables = [
        ("methods", Direction::Request, "Client requests."),
        (
            "notifications",
            Direction::ClientNotification,
            "Client notifications.",
        ),
        (
            "server_requests",
            Direction::ServerRequest,
            "Server requests.",
        ),
        (
            "server_notifications",
            Direction::ServerNotification,
            "Server notifications. Those named `didChange...` and `didCreate...` are sent only if the setting `notifications` is true.",
        ),
    ];
    for (name, direction, doc) in tables {
        out.push_str(&format!("\n--- {doc}\nM.{name} = {{\n"));
        for method in METHODS.iter().filter(|m| m.direction == direction) {
            write_method(&mut out, method)?;
        }
        out.push_str("}\n");
    }
    out.push_str("\nreturn M\n");
    Ok(out)
}

fn write_method(out: &mut String, method: &Method) -> Result<(), GenerateError> {
    let Some((_, short)) = method.name.split_once('/') else {
        return Err(GenerateError(format!(
            "The method `{}` has no `/`, so it has no key in the Lua table.",
            method.name
        )));
    };
    out.push_str(&format!(
        "  --- {} Takes `{}`",
        method.summary,
        class(method.params)
    ));
    if let Some(result) = method.result {
        out.push_str(&format!(", answers `{}`", class(result)));
    }
    out.push_str(&format!(".\n  {short} = {:?},\n", method.name));
    Ok(())
}

fn write_definition(out: &mut String, definition: &Definition) {
    for line in definition.doc.lines() {
        out.push_str(format!("--- {line}").trim_end());
        out.push('\n');
    }
    let name = class(&definition.name);
    match &definition.body {
        Body::Record { fields, open } => {
            out.push_str(&format!("---@class {name}\n"));
            for field in fields {
                let mark = if field.required { "" } else { "?" };
                let line = format!(
                    "---@field {}{mark} {} {}",
                    field.name,
                    type_of(&field.shape),
                    one_line(&field.doc)
                );
                out.push_str(line.trim_end());
                out.push('\n');
            }
            if *open {
                out.push_str("---@field [string] any\n");
            }
        }
        Body::Choice(choices) => {
            out.push_str(&format!("---@alias {name}\n"));
            for choice in choices {
                let line = format!("---| {:?} # {}", choice.value, one_line(&choice.doc));
                out.push_str(line.trim_end_matches(['#', ' ']));
                out.push('\n');
            }
        }
        Body::Alias(shape) => out.push_str(&format!("---@alias {name} {}\n", type_of(shape))),
    }
}

/// The prefix is needed because LuaCATS class names are global.
fn class(name: &str) -> String {
    format!("sightline.{name}")
}

fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer => "integer".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Reference(name) => class(name),
        Shape::List(item) => match **item {
            Shape::Union(_) => format!("({})[]", type_of(item)),
            _ => format!("{}[]", type_of(item)),
        },
        Shape::Map { key, value } => format!("table<{}, {}>", type_of(key), type_of(value)),
        Shape::Union(forms) => forms.iter().map(type_of).collect::<Vec<_>>().join("|"),
        Shape::Any => "any".to_owned(),
    }
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Choice, Field};
    use super::*;

    fn written(body: Body) -> String {
        let mut out = String::new();
        let definition = Definition {
            name: "T".to_owned(),
            doc: "Some\nthing.".to_owned(),
            body,
        };
        write_definition(&mut out, &definition);
        out
    }

    #[test]
    fn records_are_classes() {
        let union = Shape::Union(vec![Shape::Text, Shape::Reference("A".to_owned())]);
        let field = Field {
            name: "a".to_owned(),
            doc: "Two\nlines.".to_owned(),
            required: false,
            shape: Shape::List(Box::new(union)),
        };
        let body = Body::Record {
            fields: vec![field],
            open: true,
        };
        assert_eq!(
            written(body),
            "--- Some\n--- thing.\n---@class sightline.T\n\
             ---@field a? (string|sightline.A)[] Two lines.\n\
             ---@field [string] any\n"
        );
    }

    #[test]
    fn choices_are_aliases() {
        let choice = |value: &str, doc: &str| Choice {
            value: value.to_owned(),
            doc: doc.to_owned(),
        };
        let body = Body::Choice(vec![choice("a", "First."), choice("b", "")]);
        assert_eq!(
            written(body),
            "--- Some\n--- thing.\n---@alias sightline.T\n---| \"a\" # First.\n---| \"b\"\n"
        );
    }
}
