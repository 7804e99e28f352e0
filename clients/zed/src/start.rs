//! Command and settings of the server.
//!
//! The functions work on plain data, so that they can be tested without Zed. The
//! settings are those of `lsp.sightline` in the `settings.json` of Zed.

use serde_json::{json, Map, Value};
use zed_extension_api::Os;

/// Name in `extension.toml` and the settings, and program name.
pub const SERVER: &str = "sightline";

/// The setting `lsp.sightline.binary`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Binary {
    /// Program to start instead of the one on the `PATH`.
    pub path: Option<String>,
    /// Arguments instead of `--stdio`.
    pub arguments: Option<Vec<String>>,
    /// Environment variables in addition to those of the project shell.
    pub variables: Vec<(String, String)>,
}

/// The command to start.
#[derive(Debug, PartialEq)]
pub struct Start {
    /// Program: an absolute path, or the value of the setting.
    pub program: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Environment variables with unique names.
    pub variables: Vec<(String, String)>,
}

/// Returns the command that starts the server. Settings take precedence over the `PATH`
/// of the project shell, and this over a download.
///
/// # Errors
/// The server is neither found nor downloaded; the message explains how to install it.
pub fn start(
    binary: Binary,
    found: Option<String>,
    download: impl FnOnce() -> Result<String, String>,
    shell: Vec<(String, String)>,
) -> Result<Start, String> {
    let set = binary.path.filter(|path| !path.trim().is_empty());
    let program = match set.or(found) {
        Some(program) => program,
        None => download().map_err(|error| {
            format!(
                "`sightline` is not on the PATH and was not downloaded: {error}. Install it, or \
                 set its path in the Zed settings: \
                 {{\"lsp\": {{\"sightline\": {{\"binary\": {{\"path\": \"/path/to/sightline\"}}}}}}}}"
            )
        })?,
    };
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

/// Returns the command of the tools for agents. Settings take precedence over a downloaded
/// program, and this over the `PATH`.
///
/// Zed looks up relative programs in the folder of the extension, and extensions cannot look up
/// a program on the `PATH` for a context server, so another program does it.
pub fn context_server(binary: Binary, downloaded: Option<String>, system: Os) -> Start {
    let arguments = binary.arguments.unwrap_or_else(|| vec!["mcp".to_owned()]);
    let set = binary.path.filter(|path| !path.trim().is_empty());
    let (program, arguments) = match (set.or(downloaded), system) {
        (Some(program), _) => (program, arguments),
        (None, Os::Windows) => (
            r"C:\Windows\System32\cmd.exe".to_owned(),
            with_first(&["/d", "/c", SERVER], arguments),
        ),
        (None, Os::Mac | Os::Linux) => {
            ("/usr/bin/env".to_owned(), with_first(&[SERVER], arguments))
        }
    };
    Start {
        program,
        arguments,
        variables: binary.variables,
    }
}

fn with_first(first: &[&str], rest: Vec<String>) -> Vec<String> {
    let first = first.iter().copied().map(str::to_owned);
    first.chain(rest).collect()
}

/// Returns the `initializationOptions` of the server: `settings` merged with
/// `initialization_options`, which take precedence.
pub fn initialization_options(options: Option<Value>, settings: Option<Value>) -> Option<Value> {
    match (settings.map(bare), options.map(bare)) {
        (Some(mut settings), Some(options)) => {
            merge(&mut settings, options);
            Some(settings)
        }
        (settings, options) => options.or(settings),
    }
}

/// Returns the object in which Zed looks up `workspace/configuration` sections: the
/// settings below the name of the server.
pub fn workspace_configuration(settings: Option<Value>) -> Option<Value> {
    settings.map(|settings| json!({ SERVER: bare(settings) }))
}

/// Removes the optional section name from the settings.
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

    fn no_download() -> Result<String, String> {
        Err("no release".into())
    }

    #[test]
    fn server_on_path_is_started_with_shell_variables() {
        let started = start(
            Binary::default(),
            Some("/bin/sightline".into()),
            no_download,
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
    fn without_a_server_the_download_is_started() {
        let download = || Ok("releases/sightline".to_owned());
        let started = start(Binary::default(), None, download, vec![]).unwrap();
        assert_eq!(started.program, "releases/sightline");
    }

    #[test]
    fn tools_are_started_from_the_path_unless_there_is_a_program() {
        let command = |downloaded: Option<&str>, system| {
            let start = context_server(Binary::default(), downloaded.map(Into::into), system);
            (start.program, start.arguments.join(" "))
        };
        assert_eq!(
            command(None, Os::Linux),
            ("/usr/bin/env".into(), "sightline mcp".into())
        );
        assert_eq!(
            command(None, Os::Windows),
            (
                r"C:\Windows\System32\cmd.exe".into(),
                "/d /c sightline mcp".into()
            )
        );
        assert_eq!(
            command(Some("releases/sightline"), Os::Mac),
            ("releases/sightline".into(), "mcp".into())
        );
        let binary = Binary {
            path: Some("/opt/sightline".into()),
            arguments: Some(vec!["mcp".into(), "--read-only".into()]),
            variables: pairs(&[("A", "1")]),
        };
        let expected = Start {
            program: "/opt/sightline".into(),
            arguments: vec!["mcp".into(), "--read-only".into()],
            variables: pairs(&[("A", "1")]),
        };
        let downloaded = Some("releases/sightline".into());
        assert_eq!(context_server(binary, downloaded, Os::Linux), expected);
    }

    #[test]
    fn settings_take_precedence() {
        let binary = Binary {
            path: Some("/opt/sightline".into()),
            arguments: Some(vec![]),
            variables: pairs(&[("A", "2"), ("B", "3")]),
        };
        let started = start(
            binary,
            Some("/bin/sightline".into()),
            no_download,
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
    fn missing_server_error_explains_installation() {
        let empty = Binary {
            path: Some(" ".into()),
            ..Binary::default()
        };
        for binary in [Binary::default(), empty] {
            let error = start(binary, None, no_download, vec![]).unwrap_err();
            assert!(error.contains("not on the PATH"), "{error}");
            assert!(error.contains("no release"), "{error}");
            assert!(error.contains("\"binary\""), "{error}");
        }
    }

    #[test]
    fn initialization_options_include_all_settings() {
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
    fn manifest_matches_extension_and_has_unique_languages() {
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
