//! What Zed is told: how to start the server, and its settings.
//!
//! Plain data in, plain data out, so that all of it is tested without Zed. The
//! settings are those of `lsp.sightline` in Zed's `settings.json`.

use serde_json::{json, Map, Value};

/// The name in `extension.toml`, in the settings and on the search path.
pub const SERVER: &str = "sightline";

/// `lsp.sightline.binary`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Binary {
    /// A program to start instead of the one on the search path.
    pub path: Option<String>,
    /// Its arguments instead of `--stdio`.
    pub arguments: Option<Vec<String>>,
    /// Variables on top of those of the project's shell.
    pub variables: Vec<(String, String)>,
}

/// A program to start.
#[derive(Debug, PartialEq)]
pub struct Start {
    /// The program: an absolute path, or as the user wrote it.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its variables; no name twice.
    pub variables: Vec<(String, String)>,
}

/// How the server is started: what the user set wins over what was found on
/// the search path of the project's shell.
///
/// # Errors
/// Where there is no server, what to do about it.
pub fn start(
    binary: Binary,
    found: Option<String>,
    shell: Vec<(String, String)>,
) -> Result<Start, String> {
    let set = binary.path.filter(|path| !path.trim().is_empty());
    let program = set.or(found).ok_or(
        "`sightline` is not on the search path. Install it (`cargo install --path server/lsp` \
         in its repository), or name it in Zed's settings: \
         {\"lsp\": {\"sightline\": {\"binary\": {\"path\": \"/path/to/sightline\"}}}}",
    )?;
    let mut variables = shell;
    variables.retain(|(name, _)| !binary.variables.iter().any(|(set, _)| set == name));
    variables.extend(binary.variables);
    Ok(Start {
        program,
        arguments: binary
            .arguments
            .unwrap_or_else(|| vec!["--stdio".to_owned()]),
        variables,
    })
}

/// The server's `initializationOptions`: both blocks of the user's settings are
/// the same object to the server, and it should know all of it when it starts.
/// `initialization_options` wins where both say something.
pub fn initialization_options(options: Option<Value>, settings: Option<Value>) -> Option<Value> {
    match (settings.map(bare), options.map(bare)) {
        (Some(mut settings), Some(options)) => {
            merge(&mut settings, options);
            Some(settings)
        }
        (settings, options) => options.or(settings),
    }
}

/// What Zed answers to `workspace/configuration`. It looks up the section the
/// server asks for in this object, so the settings stand below the server's name.
pub fn workspace_configuration(settings: Option<Value>) -> Option<Value> {
    settings.map(|settings| json!({ SERVER: bare(settings) }))
}

/// Settings without the section's name, which some write and some leave out.
fn bare(settings: Value) -> Value {
    match settings {
        Value::Object(mut all) if all.len() == 1 && all.contains_key(SERVER) => {
            all.remove(SERVER).unwrap_or_default()
        }
        settings => settings,
    }
}

fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => merge_objects(below, above),
        (below, above) => *below = above,
    }
}

fn merge_objects(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (name, value) in above {
        match below.get_mut(&name) {
            Some(there) => merge(there, value),
            None => {
                below.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = pairs.iter().map(|(a, b)| ((*a).into(), (*b).into()));
        owned.collect()
    }

    #[test]
    fn the_server_on_the_search_path_is_started_with_the_shells_variables() {
        let started = start(
            Binary::default(),
            Some("/bin/sightline".into()),
            pairs(&[("A", "1")]),
        );
        let expected = Start {
            program: "/bin/sightline".into(),
            arguments: vec!["--stdio".into()],
            variables: pairs(&[("A", "1")]),
        };
        assert_eq!(started, Ok(expected));
    }

    #[test]
    fn what_the_user_set_wins() {
        let binary = Binary {
            path: Some("/opt/sightline".into()),
            arguments: Some(vec![]),
            variables: pairs(&[("A", "2"), ("B", "3")]),
        };
        let started = start(
            binary,
            Some("/bin/sightline".into()),
            pairs(&[("A", "1"), ("PATH", "/bin")]),
        );
        let expected = Start {
            program: "/opt/sightline".into(),
            arguments: vec![],
            variables: pairs(&[("PATH", "/bin"), ("A", "2"), ("B", "3")]),
        };
        assert_eq!(started, Ok(expected));
    }

    #[test]
    fn without_a_server_the_error_says_what_to_do() {
        let empty = Binary {
            path: Some(" ".into()),
            ..Binary::default()
        };
        for binary in [Binary::default(), empty] {
            let error = start(binary, None, vec![]).unwrap_err();
            assert!(error.contains("not on the search path"), "{error}");
            assert!(error.contains("cargo install"), "{error}");
            assert!(error.contains("\"binary\""), "{error}");
        }
    }

    #[test]
    fn the_server_starts_with_all_the_user_set() {
        let settings = json!({ "storage": { "path": "/a" }, "notifications": true });
        let options = json!({ "storage": { "path": "/b" }, "log": { "level": "debug" } });
        assert_eq!(initialization_options(None, None), None);
        assert_eq!(
            initialization_options(None, Some(settings.clone())),
            Some(settings.clone())
        );
        assert_eq!(
            initialization_options(Some(options.clone()), None),
            Some(options.clone())
        );
        assert_eq!(
            initialization_options(Some(options), Some(settings)),
            Some(json!({
                "storage": { "path": "/b" }, "notifications": true, "log": { "level": "debug" },
            }))
        );
    }

    #[test]
    fn the_manifest_is_of_this_extension_and_names_no_language_twice() {
        let manifest = include_str!("../extension.toml");
        assert!(manifest.contains(&format!("[language_servers.{SERVER}]")));
        let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
        assert!(
            manifest.contains(&version),
            "{version} is not in extension.toml"
        );
        let languages: Vec<&str> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("  \"")?.strip_suffix("\","))
            .collect();
        let once: BTreeSet<&str> = languages.iter().copied().collect();
        assert_eq!(once.len(), languages.len());
        assert!(once.contains("Plain Text") && once.contains("Rust"));
    }

    #[test]
    fn settings_stand_below_the_servers_name_once() {
        let settings = json!({ "storage": { "path": "/a" } });
        let below = json!({ "sightline": settings });
        assert_eq!(workspace_configuration(None), None);
        assert_eq!(workspace_configuration(Some(settings)), Some(below.clone()));
        assert_eq!(workspace_configuration(Some(below.clone())), Some(below));
        let odd = json!([1]);
        assert_eq!(
            workspace_configuration(Some(odd)),
            Some(json!({ "sightline": [1] }))
        );
    }
}
