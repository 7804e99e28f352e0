//! Writers that turn the wire types into schemas and client types.
//!
//! Owns every generated file of the repository: [`files`] and [`documents`] are
//! what the drift test compares and rewrites. Nothing here knows a type by name; to
//! change an output, change the wire types or their doc comments.
//!
//! Reading order: `schema` (types to JSON Schema), `shape` (JSON Schema to the
//! few forms a client type can have), then one writer per language, and
//! `markdown` for people.

mod lua;
mod markdown;
mod schema;
mod shape;
mod typescript;

use std::fmt;

pub use markdown::Examples;

/// The command that rewrites every generated file, and code that documents show.
pub const REWRITE_COMMAND: &str =
    "UPDATE_GENERATED=1 cargo test -p sightline-protocol --test drift --test documents";

/// The command that takes over what the server answers to the worked examples;
/// [`REWRITE_COMMAND`] then takes them into the documents.
pub const REWRITE_EXAMPLES_COMMAND: &str =
    "UPDATE_GENERATED=1 cargo test -p sightline --test e2e documents";

/// Why nothing could be generated: a wire type has a form that the schemas or
/// the client types cannot carry. The message names the type and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitError(String);

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EmitError {}

/// Every generated file: its path from the top of the repository, and its content.
///
/// # Errors
/// A wire type has a form that cannot be written.
pub fn files() -> Result<Vec<(&'static str, String)>, EmitError> {
    let shapes = shape::all(&schema::all_definitions()?)?;
    Ok(vec![
        ("schemas/protocol.schema.json", schema::protocol()?),
        ("schemas/settings.schema.json", schema::settings()?),
        ("schemas/methods.json", schema::methods()),
        ("clients/types/protocol.ts", typescript::write(&shapes)),
        ("clients/types/protocol.lua", lua::write(&shapes)?),
    ])
}

/// Every generated document: its path from the top of the repository, and its
/// content.
///
/// # Errors
/// A wire type has a form that cannot be written, or a method has no example in `examples`.
pub fn documents(examples: &Examples) -> Result<Vec<(&'static str, String)>, EmitError> {
    let protocol = shape::all(&schema::protocol_definitions()?)?;
    let settings = shape::all(&schema::settings_definitions()?)?;
    Ok(vec![
        ("docs/protocol.md", markdown::protocol(&protocol, examples)?),
        ("docs/settings.md", markdown::settings(&settings)?),
    ])
}

/// One schema by name: `protocol`, `settings` or `methods` as in `schemas/`, or
/// a method (`sightline/readFile`) or a type (`ReadFileParams`) as a schema that
/// stands alone. `None` when nothing has that name.
///
/// # Errors
/// A wire type has a form that cannot be written.
pub fn schema(name: &str) -> Result<Option<String>, EmitError> {
    match name {
        "protocol" => schema::protocol().map(Some),
        "settings" => schema::settings().map(Some),
        "methods" => Ok(Some(schema::methods())),
        _ => schema::standalone(name),
    }
}

/// Every name that [`schema()`] knows: the files, the methods, the types.
///
/// # Errors
/// A wire type has a form that cannot be written.
pub fn schema_names() -> Result<Vec<String>, EmitError> {
    let files = ["protocol", "settings", "methods"].map(str::to_owned);
    let methods = crate::method::METHODS.iter().map(|m| m.name.to_owned());
    let types = schema::all_definitions()?.into_keys();
    Ok(files.into_iter().chain(methods).chain(types).collect())
}
