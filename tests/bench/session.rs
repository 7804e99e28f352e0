//! Servers and workers under test, driven with prepared bytes. A response is timed to its
//! last byte and parsed afterwards.

use std::{
    borrow::Cow,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use serde::Deserialize;
use serde_json::{Value, json};
use sightline_local::frame::{FrameReader, write_frame};

use crate::report::Series;

/// Runs `work` and records the milliseconds.
pub(crate) fn timed<T>(series: &mut Series, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    series.0.push(milliseconds(start));
    done
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

/// The fields that identify a message.
#[derive(Deserialize)]
struct Head<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    error: Option<Value>,
}

/// A language server in its own process.
pub(crate) struct Session {
    child: Child,
    input: ChildStdin,
    output: FrameReader<ChildStdout>,
    id: u64,
    /// Time from start to the response to `initialize`, in milliseconds.
    pub(crate) started: f64,
}

impl Session {
    /// Starts a program and opens `folder` in it.
    pub(crate) fn open(mut command: Command, folder: Option<&Path>, options: &Value) -> Self {
        let uri = folder.map(|folder| format!("file://{}", folder.display()));
        let folders = uri
            .as_ref()
            .map(|uri| json!([{ "uri": uri, "name": "work" }]));
        let params = json!({
            "processId": std::process::id(),
            "rootUri": uri,
            "capabilities": {},
            "workspaceFolders": folders,
            "initializationOptions": options,
        });
        let params = params.to_string();
        let start = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = FrameReader::new(child.stdout.take().unwrap());
        let mut session = Self {
            child,
            input,
            output,
            id: 0,
            started: 0.0,
        };
        session.ask("initialize", &params);
        session.started = milliseconds(start);
        session.send(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
        session
    }

    /// Starts the built server with a data directory.
    pub(crate) fn start(folder: Option<&Path>, data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sightline"));
        command.arg("--stdio");
        Self::open(command, folder, &storage(data))
    }

    fn send(&mut self, body: &str) {
        self.write(&framed(body));
    }

    fn write(&mut self, frame: &[u8]) {
        self.input.write_all(frame).unwrap();
        self.input.flush().unwrap();
    }

    /// Sends a request. Returns the response and the milliseconds until its last byte.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> (Vec<u8>, f64) {
        self.id += 1;
        let id = self.id;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let frame = framed(&body);
        let start = Instant::now();
        self.write(&frame);
        loop {
            let frame = self.output.next_frame().unwrap();
            let elapsed = milliseconds(start);
            let message = frame
                .unwrap_or_else(|| panic!("{method}: the server ended"))
                .unwrap();
            let head: Head<'_> = serde_json::from_slice(&message).unwrap();
            match (head.method, head.id) {
                (None, Some(answered)) if answered == id => {
                    assert!(head.error.is_none(), "{method}: {:?}", head.error);
                    return (message, elapsed);
                }
                (Some(_), Some(asked)) => {
                    let answer = json!({ "jsonrpc": "2.0", "id": asked, "result": null });
                    self.send(&answer.to_string());
                }
                _ => {}
            }
        }
    }

    /// Returns the result of a request, without timing.
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        result_of(&self.ask(method, &params.to_string()).0)
    }

    /// Returns the result of a timed request.
    pub(crate) fn timed(&mut self, series: &mut Series, method: &str, params: &Value) -> Value {
        let (answer, elapsed) = self.ask(method, &params.to_string());
        series.0.push(elapsed);
        result_of(&answer)
    }

    /// Returns memory in megabytes: `VmRSS` (current) or `VmHWM` (peak), where `/proc`
    /// exists.
    pub(crate) fn memory(&self, field: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kilobytes = line.trim_start_matches(':').split_whitespace().next()?;
        Some(kilobytes.parse::<f64>().ok()? * 1024.0 / 1e6)
    }

    /// Ends it like an editor and waits for it.
    pub(crate) fn end(mut self) {
        self.ask("shutdown", "null");
        self.send(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Frames a message for a single write, so that the other side wakes once.
fn framed(body: &str) -> Vec<u8> {
    let mut frame = Vec::with_capacity(body.len() + 32);
    write_frame(&mut frame, body.as_bytes()).unwrap();
    frame
}

/// The initialization options: the data directory, and no built-in rules, because git commits
/// these files too.
pub(crate) fn storage(data: &Path) -> Value {
    json!({ "storage": { "path": data }, "access": { "secrets": "allow" } })
}

/// Parses the result of a response.
pub(crate) fn result_of(answer: &[u8]) -> Value {
    let mut answer: Value = serde_json::from_slice(answer).unwrap();
    answer["result"].take()
}

/// Returns the folder of the npm packages to compare with, if they are installed.
pub(crate) fn node_folder() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/node");
    if folder.join("node_modules/vscode-languageserver").exists() {
        return Ok(folder);
    }
    Err("`npm ci --prefix tests/node` was not run".to_owned())
}

/// A script of `tests/node/bench`.
pub(crate) fn node_command(script: &str) -> Command {
    let mut command = Command::new("node");
    command
        .arg(format!("bench/{script}"))
        .current_dir(node_folder().unwrap());
    command
}

/// Node, doing the same work, timed in its process.
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start() -> Self {
        let mut child = node_command("worker.mjs")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    pub(crate) fn ask(&mut self, command: &Value) -> Value {
        writeln!(self.input, "{command}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Records the milliseconds it took and returns its output.
    pub(crate) fn timed(&mut self, series: &mut Series, command: &Value) -> Value {
        let answer = self.ask(command);
        series.0.push(answer["ms"].as_f64().unwrap());
        answer
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
