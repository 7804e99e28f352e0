//! Finds the recordings of Cline, which are not part of this repository.

use std::{env, fs, path::PathBuf};

/// Returns the recording `name`, such as `cline/ignore.json`. Prints the reason and returns
/// `None` if recordings are not available.
///
/// # Panics
/// In continuous integration, where the recordings are required.
#[allow(clippy::print_stdout)]
pub fn load(name: &str) -> Option<serde_json::Value> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures");
    let folder = env::var_os("SIGHTLINE_FIXTURES").map_or_else(|| default.into(), PathBuf::from);
    let path = folder.join(name);
    let Ok(text) = fs::read(&path) else {
        let reason = format!("{} is missing; set SIGHTLINE_FIXTURES", path.display());
        assert!(env::var_os("CI").is_none(), "{reason}");
        println!("skipped: {reason}");
        return None;
    };
    Some(serde_json::from_slice(&text).unwrap())
}
