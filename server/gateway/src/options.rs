//! Arguments of the program, which `sightline gateway` builds.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

/// What `sightline gateway` was started with.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Options {
    /// Data directory.
    pub(crate) storage: PathBuf,
    /// Port on 127.0.0.1; 0 for any free one.
    #[serde(default)]
    pub(crate) port: u16,
    /// Addresses of providers by name, in addition to the known ones.
    #[serde(default)]
    pub(crate) upstreams: BTreeMap<String, String>,
    /// Whether the program ends with the process that started it.
    #[serde(default)]
    pub(crate) ends_with_parent: bool,
}
