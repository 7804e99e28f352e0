//! Generators for schemas, client types and reference documents.
//!
//! [`repository_files`] returns every file that [`COMMAND`] writes. The generators do not refer to
//! wire types by name. To change an output, change the wire types or their doc comments.
//!
//! Start with `schema` (types to JSON Schema) and `shape` (JSON Schema to client
//! types), then read the writers `typescript`, `lua` and `markdown`. `included_code` updates the
//! code blocks that show a file of the repository.

pub(crate) mod included_code;
mod lua;
mod markdown;
mod schema;
mod shape;
mod typescript;

use std::{
    error::Error,
    fmt, fs,
    path::{Path, PathBuf},
};

pub(crate) use markdown::Examples;

/// Command that rewrites every generated file and the code included in documents.
pub(crate) const COMMAND: &str = "cargo xtask generate";

/// Error of a generator: the schemas or client types cannot represent a wire type. The
/// message names the type and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenerateError(String);

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GenerateError {}

/// Returns every generated file: its path relative to the repository, and its content.
pub(crate) fn files() -> Result<Vec<(&'static str, String)>, GenerateError> {
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
pub(crate) fn documents(examples: &Examples) -> Result<Vec<(&'static str, String)>, GenerateError> {
    let protocol = shape::all(&schema::protocol_definitions()?)?;
    let settings = shape::all(&schema::settings_definitions()?)?;
    Ok(vec![
        ("docs/protocol.md", markdown::protocol(&protocol, examples)?),
        ("docs/settings.md", markdown::settings(&settings)?),
    ])
}

/// Returns the worked examples, by the last component of the method name.
fn examples(repository: &Path) -> Result<Examples, Box<dyn Error>> {
    fs::read_dir(repository.join("docs/examples"))?
        .map(|file| {
            let file = file?.path();
            let verb = file.file_stem().unwrap_or_default();
            let example = serde_json::from_slice(&fs::read(&file)?)?;
            Ok((verb.to_string_lossy().into_owned(), example))
        })
        .collect()
}

/// Returns every file that is generated as a whole or in part: its path and its content.
pub(crate) fn repository_files(
    repository: &Path,
) -> Result<Vec<(PathBuf, String)>, Box<dyn Error>> {
    let mut all: Vec<(PathBuf, String)> = files()?
        .into_iter()
        .chain(documents(&examples(repository)?)?)
        .map(|(path, text)| (repository.join(path), text))
        .collect();
    let generated: Vec<PathBuf> = all.iter().map(|(path, _)| path.clone()).collect();
    let others = included_code::updated(repository)?;
    all.extend(
        others
            .into_iter()
            .filter(|(path, _)| !generated.contains(path)),
    );
    Ok(all)
}
