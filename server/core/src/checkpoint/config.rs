//! The configuration of a repository, without files that it includes: those may be
//! anywhere, and a pipe among them would be waited for.

use std::path::Path;

use crate::storage::files::read_text;

/// Versions of a repository's format that are known.
const VERSIONS: [i64; 2] = [0, 1];

/// Reads a configuration; `None` when it includes other files.
///
/// # Errors
/// Says what is wrong with it, also when the repository's format is not known.
pub(super) fn read(path: &Path) -> Result<Option<git2::Config>, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let text = read_text(path).map_err(|error| cannot(&error))?;
    if text.to_ascii_lowercase().contains("[include") {
        return Ok(None);
    }
    crate::git::isolate();
    let config = git2::Config::open(path).and_then(|mut config| config.snapshot());
    let config = config.map_err(|error| cannot(&error.message()))?;
    let version = config.get_i64("core.repositoryformatversion").unwrap_or(0);
    let format = config.get_string("extensions.objectformat");
    if !VERSIONS.contains(&version) || format.is_ok_and(|format| format != "sha1") {
        return Err(cannot(&"the repository has an unknown format"));
    }
    Ok(Some(config))
}
