//! Finds recordings of Cline and of editors. Some of Cline are not part of this repository:
//! see `tests/fixtures/recorded/README.md`.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The recordings in this repository.
pub const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/recorded");

/// Returns the recording `name`, such as `cline/ignore.json`. Prints the reason and returns
/// `None` if it is not available.
#[allow(
    clippy::explicit_write,
    reason = "`eprintln` is shown for failed tests only"
)]
pub fn load(name: &str) -> Option<serde_json::Value> {
    let other = env::var_os("SIGHTLINE_FIXTURES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
        PathBuf::from,
    );
    let candidates = [Path::new(RECORDED).join(name), other.join(name)];
    let Some(path) = candidates.iter().find(|path| path.exists()) else {
        let reason = format!("skipped: no recording {name} in {}", other.display());
        writeln!(io::stderr(), "{reason}; set SIGHTLINE_FIXTURES").unwrap();
        return None;
    };
    Some(serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
}
