//! A server under test, and a client connected to it.

use std::{
    fs,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::JoinHandle,
};

use serde_json::{Value, json};
use sightline_base::path::AbsPath;
use sightline_lsp::main_loop::{self, Options};
use sightline_protocol::method::{ANY_REQUEST, METHODS};
use sightline_testing::lsp_client::LspClient;
use tempfile::TempDir;

/// A temporary workspace folder with files, and a data directory.
pub(crate) struct Workspace {
    folder: TempDir,
}

impl Workspace {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Self { folder };
        fs::create_dir(workspace.root()).unwrap();
        for (name, text) in files {
            workspace.write(name, text);
        }
        workspace
    }

    /// The workspace folder, named `shop`.
    pub(crate) fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join("shop")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn uri(&self, name: &str) -> String {
        uri(&self.path(name))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes the checkpoint store of a folder unwritable. Returns the path of the
    /// obstacle.
    #[cfg(unix)]
    pub(crate) fn break_store(&self, folder: &str) -> PathBuf {
        let mut projects = fs::read_dir(self.data().join("projects")).unwrap();
        let project = projects.find_map(|project| {
            let path = project.unwrap().path();
            let name = path.file_name()?.to_str()?;
            name.starts_with(&format!("{folder}-")).then_some(path)
        });
        let state = project.unwrap().join("state");
        fs::remove_dir_all(&state).unwrap();
        fs::write(&state, "in the way").unwrap();
        state
    }

    /// Params of `initialize` for a simple client in this workspace.
    pub(crate) fn initialize(&self) -> Value {
        json!({
            "processId": null,
            "clientInfo": { "name": "test" },
            "rootUri": uri(&self.root()),
            "workspaceFolders": [{ "uri": uri(&self.root()), "name": "shop" }],
            "initializationOptions": { "storage": { "path": self.data() } },
            "capabilities": {},
        })
    }
}

pub(crate) fn uri(path: &Path) -> String {
    AbsPath::new(path).unwrap().to_uri()
}

/// A server in this process, connected through pipes.
pub(crate) struct Server {
    client: LspClient,
    thread: Option<JoinHandle<i32>>,
}

impl Server {
    /// A server that has not received anything.
    pub(crate) fn bare(options: Options) -> Self {
        let (server_input, client_output) = std::io::pipe().unwrap();
        let (client_input, server_output) = std::io::pipe().unwrap();
        let thread =
            std::thread::spawn(move || main_loop::serve(server_input, server_output, options));
        Self {
            client: LspClient::new(client_input, client_output),
            thread: Some(thread),
        }
    }

    /// An initialized server in a workspace.
    pub(crate) fn start(workspace: &Workspace) -> Self {
        Self::initialized(workspace.initialize())
    }

    /// A server initialized with these params.
    pub(crate) fn initialized(params: Value) -> Self {
        let mut server = Self::bare(Options::default());
        server.initialize(params);
        server
    }

    pub(crate) fn initialize(&mut self, params: Value) -> Value {
        let result = self.call("initialize", params);
        self.client.notify("initialized", json!({})).unwrap();
        result
    }

    /// Sends a request that must succeed.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        match self.client.request(method, params).unwrap() {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error}"),
        }
    }

    /// Sends a request.
    #[cfg(target_os = "linux")]
    pub(crate) fn answer(&mut self, method: &str, params: Value) -> Value {
        match self.client.request(method, params).unwrap() {
            Ok(answer) => answer,
            Err(error) => json!(error.to_string()),
        }
    }

    /// Sends a request that must fail, and returns its error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        match self.client.request(method, params).unwrap() {
            Ok(result) => panic!("{method} was answered: {result}"),
            Err(error) => {
                documented(method, &error);
                error
            }
        }
    }

    pub(crate) fn send_notification(&mut self, method: &str, params: Value) {
        self.client.notify(method, params).unwrap();
    }

    pub(crate) fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "text", "version": 1, "text": text });
        self.send_notification("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Returns the environment block at a fixed time.
    pub(crate) fn block(&mut self, mut params: Value) -> String {
        params["now"] = json!(1_749_308_645_000_i64);
        params["timeZone"] = json!("UTC");
        let result = self.call("sightline/environmentDetails", params);
        result["text"].as_str().unwrap().to_owned()
    }

    /// Sends `shutdown` and `exit`, and returns the exit code.
    pub(crate) fn end(mut self) -> i32 {
        self.call("shutdown", Value::Null);
        self.send_notification("exit", Value::Null);
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for a server that ends on its own, and returns the exit code.
    pub(crate) fn join(mut self) -> i32 {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Deref for Server {
    type Target = LspClient;

    fn deref(&self) -> &LspClient {
        &self.client
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut LspClient {
        &mut self.client
    }
}

impl Drop for Server {
    /// A dropped server must end with its input.
    fn drop(&mut self) {
        self.client.close();
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            thread.join().unwrap();
        }
    }
}

/// Clients rely on the documented error kinds.
fn documented(method: &str, error: &Value) {
    let Some(method) = METHODS.iter().find(|known| known.name == method) else {
        return;
    };
    let mut errors = method.errors.iter().chain(ANY_REQUEST);
    assert!(
        errors.any(|(kind, _)| json!(kind) == error["data"]["kind"]),
        "{} does not say that it fails so: {error}",
        method.name
    );
}

/// The built program.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sightline"));
    // The tests may run below an agent.
    for name in AGENT_VARIABLES {
        command.env_remove(name);
    }
    command
}

/// Variables by which the program knows that an agent runs it.
pub(crate) const AGENT_VARIABLES: [&str; 8] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLINE_ACTIVE",
    "CODEX_THREAD_ID",
    "COPILOT_CLI",
    "GEMINI_CLI",
    "OPENCODE",
    "QWEN_CODE",
];

/// Starts the built program as a server.
pub(crate) fn spawn() -> (Child, LspClient) {
    spawn_with(&mut program())
}

/// Starts a prepared program as a server.
pub(crate) fn spawn_with(program: &mut Command) -> (Child, LspClient) {
    let mut child = program
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = LspClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (child, client)
}

/// Starts the built program as a server of a workspace. Its sockets are open then.
pub(crate) fn spawn_in(workspace: &Workspace) -> (Child, LspClient) {
    let (child, mut client) = spawn();
    open_in(&mut client, workspace);
    (child, client)
}

/// Initializes a started server. Its sockets are open then.
pub(crate) fn open_in(client: &mut LspClient, workspace: &Workspace) {
    let initialize = client.request("initialize", workspace.initialize());
    initialize.unwrap().unwrap();
    client.notify("initialized", json!({})).unwrap();
    let list = client.request("sightline/listTasks", json!({}));
    list.unwrap().unwrap();
}

/// Code, standard output and standard error of a program that ended.
pub(crate) fn finished(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Returns whether a process that is not our child is running. Requires `/proc`.
#[cfg(unix)]
pub(crate) fn is_alive(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    // A zombie has ended; its parent has not waited for it.
    state.is_ok_and(|state| !state.contains(") Z"))
}

/// Waits for a process to end, and returns its exit code.
pub(crate) fn wait(child: &mut Child, what: &str) -> i32 {
    for _ in 0..500 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("{what}: the server still runs after 5 seconds");
}

/// Returns whether a value contains `null` anywhere.
pub(crate) fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(fields) => fields.values().any(holds_null),
        _ => false,
    }
}
