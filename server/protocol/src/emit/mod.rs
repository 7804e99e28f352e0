//! Generators for schemas, client types and reference documents.
//!
//! [`files`] and [`documents`] return every generated file of the repository;
//! `tests/generated_files.rs` compares and rewrites them. The generators do not refer to wire types by name.
//! To change an output, change the wire types or their doc comments.
//!
//! Start with `schema` (types to JSON Schema) and `shape` (JSON Schema to client
//! types), then read the writers `typescript`, `lua` and `markdown`.

mod lua;
mod markdown;
mod schema;
mod shape;
mod typescript;

use std::fmt;

pub use markdown::Examples;

/// Command that rewrites every generated file and the code included in documents.
pub const REWRITE_COMMAND: &str =
    "UPDATE_GENERATED=1 cargo test -p sightline-protocol --test generated_files --test documents";

/// Command that updates the results in the worked examples. [`REWRITE_COMMAND`] then
/// updates the documents.
pub const REWRITE_EXAMPLES_COMMAND: &str =
    "UPDATE_GENERATED=1 cargo test -p sightline --test e2e documents";

/// Error of a generator: the schemas or client types cannot represent a wire type. The
/// message names the type and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitError(String);

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EmitError {}

/// Returns every generated file: its path relative to the repository, and its content.
///
/// # Errors
/// The schemas or client types cannot represent a wire type.
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

/// Returns every generated document: its path relative to the repository, and its
/// content.
///
/// # Errors
/// The documents cannot represent a wire type, or `examples` has no example for a method.
pub fn documents(examples: &Examples) -> Result<Vec<(&'static str, String)>, EmitError> {
    let protocol = shape::all(&schema::protocol_definitions()?)?;
    let settings = shape::all(&schema::settings_definitions()?)?;
    Ok(vec![
        ("docs/protocol.md", markdown::protocol(&protocol, examples)?),
        ("docs/settings.md", markdown::settings(&settings)?),
    ])
}

/// Returns a schema by name: `protocol`, `settings` or `methods` as in `schemas/`, or
/// the self-contained schema of a method (`sightline/readFile`) or type
/// (`ReadFileParams`). Returns `None` for an unknown name.
///
/// # Errors
/// The schemas cannot represent a wire type.
pub fn schema(name: &str) -> Result<Option<String>, EmitError> {
    match name {
        "protocol" => schema::protocol().map(Some),
        "settings" => schema::settings().map(Some),
        "methods" => Ok(Some(schema::methods())),
        _ => schema::standalone(name),
    }
}

/// Returns every name accepted by [`schema()`]: files, methods and types.
///
/// # Errors
/// The schemas cannot represent a wire type.
pub fn schema_names() -> Result<Vec<String>, EmitError> {
    let files = ["protocol", "settings", "methods"].map(str::to_owned);
    let methods = crate::method::METHODS.iter().map(|m| m.name.to_owned());
    let types = schema::all_definitions()?.into_keys();
    Ok(files.into_iter().chain(methods).chain(types).collect())
}
