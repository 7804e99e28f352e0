//! The environment of servers: they get no tokens of the agent.

use std::{collections::BTreeMap, env, ffi::OsString};

use sightline_base::words::is_one_of;

/// Variables that every server gets.
const VARIABLES: &str = "PATH HOME USER LOGNAME SHELL LANG TERM TMPDIR TEMP TMP SystemRoot USERPROFILE APPDATA LOCALAPPDATA ComSpec \
     PATHEXT NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy \
     no_proxy";

/// Returns the variables of a server: some of this process, those that it names, and its own.
pub(super) fn variables(
    inherit: &[String],
    own: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let is_inherited = |name: &str| {
        is_one_of(name, VARIABLES)
            || name.starts_with("LC_")
            || name.starts_with("XDG_")
            || inherit.iter().any(|known| known == name)
    };
    env::vars_os()
        .filter(|(name, _)| is_inherited(&name.to_string_lossy()))
        .chain(own.iter().map(|(name, value)| (name.into(), value.into())))
        .collect()
}
