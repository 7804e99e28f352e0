//! `sightline demo`: an editor session with the real server.
//!
//! The server runs as a child process, connected over stdio as in an editor. By default,
//! the session uses a temporary copy of a sample project; a given folder is only read.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use sightline_protocol::{
    access::{AccessKind, CheckAccessParams},
    environment::EnvironmentDetailsParams,
    files::{FileKind, ListFilesParams, ReadFileParams, TextSource},
    method::{CheckAccess, EnvironmentDetails, ListFiles, ReadFile, Request},
};
use sightline_workspace::{
    access::RULE_FILE,
    path::{AbsPath, RelPath},
};

use super::{DONE, FAILURE, print};
use crate::{connection::lsp_client::LspClient, error::Error};

/// The sample project of `tests/fixtures/sample`.
const SAMPLE: &[(&str, &str)] = &[
    (
        "README.md",
        include_str!("../../../../tests/fixtures/sample/README.md"),
    ),
    (
        "src/cart.py",
        include_str!("../../../../tests/fixtures/sample/src/cart.py"),
    ),
    (
        "src/prices.py",
        include_str!("../../../../tests/fixtures/sample/src/prices.py"),
    ),
    (
        "docs/ideas.md",
        include_str!("../../../../tests/fixtures/sample/docs/ideas.md"),
    ),
    (
        ".env",
        include_str!("../../../../tests/fixtures/sample/.env"),
    ),
    (
        "secrets/suppliers.csv",
        include_str!("../../../../tests/fixtures/sample/secrets/suppliers.csv"),
    ),
    (
        ".clineignore",
        include_str!("../../../../tests/fixtures/sample/.clineignore"),
    ),
];

/// Runs the session.
pub(super) fn run(folder: Option<&Path>) -> Result<i32, Error> {
    let failed = |error: io::Error| Error::storage(format!("demo failed: {error}"));
    let scratch = tempfile::tempdir().map_err(failed)?;
    let data = scratch.path().join("data");
    let workspace = match folder {
        Some(folder) => {
            let folder = fs::canonicalize(folder).map_err(|error| {
                Error::invalid(format!("cannot open {}: {error}", folder.display()))
            })?;
            if !folder.is_dir() {
                let message = format!("not a directory: {}", folder.display());
                return Err(Error::invalid(message));
            }
            folder
        }
        None => sample(&scratch.path().join("corner-shop")).map_err(failed)?,
    };
    let writable = folder.is_none();
    let program = std::env::current_exe().map_err(failed)?;
    let mut server = Command::new(program)
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (Some(input), Some(output)) = (server.stdout.take(), server.stdin.take()) else {
        return Err(Error::storage("demo failed: the server has no stdio pipes"));
    };
    let mut session = Session {
        client: LspClient::new(input, output),
        workspace,
    };
    let played = session.run_session(&data, writable);
    session.client.close();
    let status = server.wait().map_err(failed)?;
    played.map_err(failed)?;
    print(&format!(
        "\nThe server exited with code {}.\n",
        status.code().unwrap_or(FAILURE)
    ))?;
    Ok(if status.success() { DONE } else { FAILURE })
}

fn sample(folder: &Path) -> io::Result<PathBuf> {
    for (name, text) in SAMPLE {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    fs::canonicalize(folder)
}

struct Session {
    client: LspClient,
    workspace: PathBuf,
}

impl Session {
    fn run_session(&mut self, data: &Path, writable: bool) -> io::Result<()> {
        heading(&format!(
            "An editor opens {} and starts the server",
            self.workspace.display()
        ))?;
        let started = self.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "clientInfo": { "name": "demo editor" },
                "workspaceFolders": [{ "uri": uri(&self.workspace), "name": "" }],
                "initializationOptions": { "storage": { "path": data } },
                "capabilities": { "general": { "positionEncodings": ["utf-8"] } },
            }),
        )?;
        self.client.notify("initialized", json!({}))?;
        print_line(&format!(
            "{} {}, protocol {}, positions in {}",
            text(&started["serverInfo"]["name"]),
            text(&started["serverInfo"]["version"]),
            started["capabilities"]["experimental"]["sightline"]["protocolVersion"],
            text(&started["capabilities"]["positionEncoding"]),
        ))?;

        let (open, denied) = self.find_files()?;
        for file in &open {
            let text = fs::read_to_string(self.workspace.join(file)).unwrap_or_default();
            self.client.notify(
                "textDocument/didOpen",
                json!({ "textDocument": {
                    "uri": uri(&self.workspace.join(file)),
                    "languageId": "text", "version": 1, "text": text,
                } }),
            )?;
        }
        let tabs: Vec<Value> = open
            .iter()
            .chain(denied.first())
            .map(|file| json!({ "uri": uri(&self.workspace.join(file)) }))
            .collect();
        self.client
            .notify("sightline/didChangeTabs", json!({ "tabs": tabs }))?;
        if let Some(visible) = open.first() {
            let visible = uri(&self.workspace.join(visible));
            self.client.notify(
                "sightline/didChangeVisibleEditors",
                json!({ "editors": [{ "uri": visible, "isActive": true }] }),
            )?;
        }
        heading("An agent requests the environment block")?;
        if let Some(hidden) = denied.first() {
            print_line(&format!(
                "({hidden} is also open in a tab, but is not listed)"
            ))?;
        }
        self.block(true)?;

        heading("It requests a denied file")?;
        match denied.first() {
            Some(file) => {
                self.refusal(file)?;
            }
            None => print_line(
                "no file here is denied: there is no .clineignore, or it matches nothing",
            )?,
        }

        heading("It reads a file, which then changes on disk")?;
        match open
            .iter()
            .find(|file| writable && file.ends_with("prices.py"))
        {
            Some(file) => {
                let read = self.call::<ReadFile>(ReadFileParams {
                    path: file.clone(),
                    task_id: Some("demo".to_owned()),
                    ..ReadFileParams::default()
                })?;
                let source = match read.source {
                    TextSource::Buffer => "buffer",
                    TextSource::Disk => "disk",
                };
                print_line(&format!(
                    "read {file}: {} lines from the {source}",
                    read.total_lines
                ))?;
                let changed = read.text.replace("250", "270");
                fs::write(self.workspace.join(file), changed)?;
                print_line(&format!("{file}: bread now costs 270\n"))?;
                self.block(false)?;
            }
            None => print_line("(skipped: the folder is used read-only)")?,
        }
        self.request("shutdown", Value::Null)?;
        self.client.notify("exit", Value::Null)
    }

    /// Returns files to open and denied files.
    fn find_files(&mut self) -> io::Result<(Vec<String>, Vec<String>)> {
        let listed = self.call::<ListFiles>(ListFilesParams {
            limit: 100,
            ..ListFilesParams::default()
        })?;
        let mut open: Vec<String> = listed
            .entries
            .into_iter()
            .filter(|entry| entry.kind == FileKind::File)
            .map(|entry| entry.path)
            .collect();
        open.sort_by_key(|path| !path.starts_with("src/"));
        open.truncate(3);
        // Listings never contain denied files, so candidates are read from disk.
        let on_disk: Vec<String> = fs::read_dir(&self.workspace)?
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        let verdicts = self.call::<CheckAccess>(CheckAccessParams {
            paths: on_disk,
            ..CheckAccessParams::default()
        })?;
        let mut denied: Vec<String> = verdicts
            .paths
            .into_iter()
            .filter(|verdict| verdict.access == AccessKind::Denied && verdict.path != RULE_FILE)
            .map(|verdict| verdict.path)
            .filter(|name| self.workspace.join(name).is_file())
            .collect();
        denied.sort();
        Ok((open, denied))
    }

    fn block(&mut self, files: bool) -> io::Result<()> {
        let details = self.call::<EnvironmentDetails>(EnvironmentDetailsParams {
            task_id: Some("demo".to_owned()),
            include_files: files,
            ..EnvironmentDetailsParams::default()
        })?;
        print_line(&details.text)?;
        print_line(&format!(
            "(revision {}, about {} tokens)",
            details.revision, details.tokens
        ))
    }

    fn refusal(&mut self, file: &str) -> io::Result<()> {
        let refused = self
            .client
            .request(ReadFile::NAME, json!({ "path": file }))?;
        match refused {
            Err(error) => print_line(&format!("error: {}", text(&error["message"])))?,
            Ok(_) => print_line("unexpected: the file was returned")?,
        }
        let command = format!("sudo cat \"{file}\" | head -1");
        let result = self.call::<CheckAccess>(CheckAccessParams {
            command: Some(command.clone()),
            ..CheckAccessParams::default()
        })?;
        print_line(&format!("and the command `{command}`:"))?;
        for denied in result.command.iter().flat_map(|verdict| &verdict.denied) {
            print_line(&format!("denied: {}", denied.reason))?;
        }
        Ok(())
    }

    /// Sends a request of the protocol.
    fn call<M: Request>(&mut self, params: M::Params) -> io::Result<M::Result> {
        let result = self.request(M::NAME, serde_json::to_value(params)?)?;
        Ok(serde_json::from_value(result)?)
    }

    fn request(&mut self, method: &str, params: Value) -> io::Result<Value> {
        self.client
            .request(method, params)?
            .map_err(|error| io::Error::other(format!("{method}: {error}")))
    }
}

fn heading(text: &str) -> io::Result<()> {
    print_line(&format!("\n=== {text}\n"))
}

fn print_line(text: &str) -> io::Result<()> {
    print(&format!("{text}\n")).map_err(io::Error::other)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn uri(path: &Path) -> String {
    AbsPath::new(path)
        .map(|path| path.join(&RelPath::default()).to_uri())
        .unwrap_or_default()
}
