//! Arguments of the program, which `sightline gateway` builds.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;
use sightline_protocol::settings::Secrets;

/// What `sightline gateway` was started with.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Options {
    /// Data directory.
    pub(crate) storage: PathBuf,
    /// Port on 127.0.0.1; 0 for any free one.
    #[serde(default)]
    pub(crate) port: u16,
    /// Workspace folders.
    #[serde(default)]
    pub(crate) roots: Vec<PathBuf>,
    /// Whether the rules of the workspace in which an agent runs apply, instead of those of `roots`.
    #[serde(default)]
    pub(crate) follows_agents: bool,
    /// Whether the built-in rules for secrets apply.
    #[serde(default)]
    pub(crate) secrets: Secrets,
    /// Whether requests pass unchanged, and only the report says what would be hidden.
    #[serde(default)]
    pub(crate) dry_run: bool,
    /// File with the usage of requests, instead of the one in the data directory.
    #[serde(default)]
    pub(crate) usage: Option<PathBuf>,
    /// Context window of models that are not known, in tokens.
    #[serde(default)]
    pub(crate) limit: Option<f64>,
    /// Addresses of providers by name, in addition to the known ones.
    #[serde(default)]
    pub(crate) upstreams: BTreeMap<String, String>,
    /// Whether the program ends with the process that started it.
    #[serde(default)]
    pub(crate) ends_with_parent: bool,
    /// Whether the program ends after it has checked these, and printed an address with a free port.
    #[serde(default)]
    pub(crate) only_checks: bool,
}
