//! Reads the git configuration of a store.

use std::path::Path;

use sightline_workspace::{git::config::Config, storage::atomic_file::read_text};

/// Reads a configuration file without its includes.
///
/// # Errors
/// Why git cannot open a repository with this configuration.
pub(crate) fn read(path: &Path) -> Result<Config, String> {
    let cannot = |cause: &str| format!("cannot read {}: {cause}", path.display());
    let text = read_text(path).map_err(|error| cannot(&error.to_string()))?;
    let config = Config::parse(text.as_bytes()).ok_or_else(|| cannot("it is malformed"))?;
    let version = config.get("core", "repositoryformatversion");
    let format = config.get("extensions", "objectformat");
    if !matches!(version, None | Some("0" | "1")) || !matches!(format, None | Some("sha1")) {
        return Err(cannot("unsupported repository format"));
    }
    Ok(config)
}
