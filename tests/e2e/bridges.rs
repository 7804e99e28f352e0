//! The IDE protocols of agents: a real server, and clients that speak as the agents do.

mod claude;
#[cfg(unix)]
mod codex;
mod commands;
mod diffs;
#[cfg(unix)]
mod http;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(unix)]
mod strangers;
#[cfg(unix)]
mod transcripts;

use std::{
    fs,
    path::PathBuf,
    process::Child,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::harness::{Workspace, program, spawn_with, wait};
use serde_json::{Value, json};
use sightline_testing::lsp_client::LspClient;

/// Longest wait for something that happens, and wait for something that does not.
const SOON: Duration = Duration::from_secs(10);
const NOTHING: Duration = Duration::from_millis(700);

/// A server that an editor started, and its temporary home.
struct Editor {
    workspace: Workspace,
    home: Arc<tempfile::TempDir>,
    child: Child,
    client: LspClient,
}

impl Editor {
    fn start(bridges: Value) -> Self {
        Self::start_with(bridges, json!({}))
    }

    /// Starts a server with a client that announces capabilities of ours.
    fn start_with(bridges: Value, announced: Value) -> Self {
        let workspace = Workspace::new(&[(".clineignore", "secret.txt\n"), ("a.txt", "one\n")]);
        workspace.write("secret.txt", "DENIED\n");
        let home = Arc::new(tempfile::tempdir().unwrap());
        Self::start_at(home, workspace, bridges, announced, &[])
    }

    /// Starts another server of the same user.
    fn start_with_home(other: &Self, bridges: Value) -> Self {
        Self::start_at(
            other.home.clone(),
            Workspace::new(&[]),
            bridges,
            json!({}),
            &[],
        )
    }

    /// Starts a server with a variable that is a folder of the home.
    fn start_with_moved(bridges: Value, variable: &'static str, folder: &str) -> Self {
        let home = Arc::new(tempfile::tempdir().unwrap());
        let moved = [(variable, home.path().join(folder))];
        Self::start_at(home, Workspace::new(&[]), bridges, json!({}), &moved)
    }

    fn start_at(
        home: Arc<tempfile::TempDir>,
        workspace: Workspace,
        bridges: Value,
        announced: Value,
        variables: &[(&str, PathBuf)],
    ) -> Self {
        let (child, client) = spawn_with(
            program()
                .env("HOME", home.path())
                .env("TMPDIR", home.path())
                .env_remove("CLAUDE_CONFIG_DIR")
                .env_remove("COPILOT_HOME")
                .env_remove("QWEN_HOME")
                .envs(variables.iter().cloned()),
        );
        let mut editor = Self {
            workspace,
            home,
            child,
            client,
        };
        let mut params = editor.workspace.initialize();
        params["initializationOptions"]["bridges"] = bridges;
        if announced != json!({}) {
            params["capabilities"]["experimental"] = json!({ "sightline": announced });
        }
        editor
            .client
            .request("initialize", params)
            .unwrap()
            .unwrap();
        editor.notify("initialized", json!({}));
        editor
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.client.notify(method, params).unwrap();
    }

    fn open(&mut self, name: &str, text: &str) {
        let uri = self.workspace.uri(name);
        let document = json!({ "uri": uri, "languageId": "text", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Selects characters of the first line of a file.
    fn select(&mut self, name: &str, from: u32, to: u32) {
        let uri = self.workspace.uri(name);
        let at = |character| json!({ "line": 0, "character": character });
        let selections = json!([{ "start": at(from), "end": at(to) }]);
        let shown = json!({ "uri": uri, "isActive": true, "selections": selections });
        self.notify(
            "sightline/didChangeVisibleEditors",
            json!({ "editors": [shown] }),
        );
        self.notify(
            "textDocument/didFocus",
            json!({ "textDocument": { "uri": uri } }),
        );
    }

    /// Returns the files below a folder of the home.
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let found = fs::read_dir(self.home.path().join(folder));
        let mut files: Vec<PathBuf> = found
            .into_iter()
            .flatten()
            .map(|file| file.unwrap().path())
            // Files that are being written.
            .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
            .collect();
        files.sort();
        files
    }

    /// Waits for the number of files below a folder of the home, and returns them.
    fn wait_for_files(&self, folder: &str, count: usize) -> Vec<PathBuf> {
        let end = Instant::now() + SOON;
        loop {
            let files = self.files(folder);
            if files.len() == count {
                return files;
            }
            assert!(Instant::now() < end, "{files:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn set(&mut self, bridges: &Value) {
        let settings = json!({ "settings": { "bridges": bridges } });
        self.notify("workspace/didChangeConfiguration", settings);
    }

    /// Ends the server in one of the ways that servers end.
    #[cfg(unix)]
    fn end(&mut self, way: usize) {
        match way {
            0 => {
                let shutdown = self.client.request("shutdown", Value::Null);
                shutdown.unwrap().unwrap();
                // The server runs until `exit`, but its files must be gone.
                for folder in [
                    ".claude/ide",
                    "gemini/ide",
                    ".qwen/ide",
                    ".copilot/ide",
                    "codex-ipc",
                ] {
                    assert_eq!(self.files(folder), [] as [PathBuf; 0]);
                }
                self.notify("exit", Value::Null);
            }
            1 => self.client.close(),
            _ => {
                let name = ["-TERM", "-HUP"][way - 2];
                let pid = self.child.id().to_string();
                let sent = std::process::Command::new("kill")
                    .args([name, &pid])
                    .status();
                assert!(sent.unwrap().success());
            }
        }
        wait(&mut self.child, "a server with bridges");
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
