//! `sightline demo`: an agent's session with the real server, in a temporary copy of a sample project.
//!
//! The server runs as a child process, connected over stdio as in an editor. At a terminal, the steps
//! follow each other slowly enough to read.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use sightline_base::{
    path::{AbsPath, RelPath},
    plural::plural,
};
use sightline_engine::{error::Error, render};
use sightline_local::frame::{FrameReader, write_frame};
use sightline_protocol::{
    access::CheckAccessParams,
    checkpoint::{
        CreateCheckpointParams, DiffCheckpointsParams, PreviewRestoreParams, RestoreAction,
        RestoreCheckpointParams, RestoreOutcome, UndoRestoreParams, short_id,
    },
    conversation::{TruncateHistoryParams, TruncateHistoryResult},
    environment::EnvironmentDetailsParams,
    method::{
        CheckAccess, CreateCheckpoint, DiffCheckpoints, EnvironmentDetails, PreviewRestore,
        ReadFile, Request, RestoreCheckpoint, TruncateHistory, UndoRestore,
    },
};

use super::{DONE, FAILURE, print_to};

/// The sample project of `tests/fixtures/sample`.
const SAMPLE: &[(&str, &str)] = &[
    (
        "README.md",
        include_str!("../../../tests/fixtures/sample/README.md"),
    ),
    (
        "src/cart.py",
        include_str!("../../../tests/fixtures/sample/src/cart.py"),
    ),
    (
        "src/prices.py",
        include_str!("../../../tests/fixtures/sample/src/prices.py"),
    ),
    (
        "docs/ideas.md",
        include_str!("../../../tests/fixtures/sample/docs/ideas.md"),
    ),
    (".env", include_str!("../../../tests/fixtures/sample/.env")),
    (
        "secrets/suppliers.csv",
        include_str!("../../../tests/fixtures/sample/secrets/suppliers.csv"),
    ),
    (
        ".clineignore",
        include_str!("../../../tests/fixtures/sample/.clineignore"),
    ),
];

/// The open files. The first one is shown, and has unsaved text.
const TABS: &[&str] = &["src/cart.py", "README.md", ".env"];
/// What the agent edits, adds and deletes.
const EDITED: &str = "src/prices.py";
const ADDED: &str = "src/discounts.py";
const DELETED: &str = "docs/ideas.md";

/// Time between the steps at a terminal. All of them take less than 20 seconds.
const PAUSE: Duration = Duration::from_millis(1_400);

const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const REFUSED: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();

/// Commands to run after the demo.
const NEXT: &[(&str, &str)] = &[
    (
        "sightline agents install",
        "connect your coding agents; shows the changes first",
    ),
    ("sightline init", "write a .clineignore for your project"),
    (
        "sightline checkpoint create",
        "create a checkpoint of your project",
    ),
    ("sightline doctor", "check this machine"),
];

/// Runs the session.
pub(super) fn run() -> Result<i32, Error> {
    let failed = |error: io::Error| Error::storage(format!("demo failed: {error}"));
    let scratch = tempfile::tempdir().map_err(failed)?;
    let workspace = sample(&scratch.path().join("corner-shop")).map_err(failed)?;
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
        input: FrameReader::new(input),
        output,
        requests: 0,
        workspace,
        step: 0,
    };
    let played = session.run(&scratch.path().join("data"));
    let Session {
        mut input, output, ..
    } = session;
    drop(output);
    // What it writes at its end is not needed, but has to be read.
    while let Ok(Some(_)) = input.next_frame() {}
    let status = server.wait().map_err(failed)?;
    played.map_err(failed)?;
    Ok(if status.success() { DONE } else { FAILURE })
}

fn sample(folder: &Path) -> io::Result<PathBuf> {
    for (name, text) in SAMPLE {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    sightline_base::path::canonicalize(folder)
}

struct Session {
    input: FrameReader<ChildStdout>,
    output: ChildStdin,
    /// Number of requests so far.
    requests: u64,
    workspace: PathBuf,
    /// Number of the last step.
    step: u32,
}

impl Session {
    fn run(&mut self, data: &Path) -> io::Result<()> {
        self.start(data)?;
        self.show_environment()?;
        self.refuse_denied_file()?;
        let checkpoint = self.create_checkpoint()?;
        self.edit()?;
        self.compare(&checkpoint)?;
        self.preview(&checkpoint)?;
        self.restore(&checkpoint)?;
        self.undo()?;
        self.truncate()?;
        say(&format!("\n{HEADING}Next{HEADING:#}\n"))?;
        for (command, what) in NEXT {
            say(&format!("  {command:<28}  {DIM}{what}{DIM:#}"))?;
        }
        self.request("shutdown", Value::Null)?;
        self.notify("exit", Value::Null)
    }

    /// Opens the sample project as an editor does.
    fn start(&mut self, data: &Path) -> io::Result<()> {
        self.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "clientInfo": { "name": "demo editor" },
                "workspaceFolders": [{ "uri": self.uri(""), "name": "" }],
                "initializationOptions": { "storage": { "path": data } },
                "capabilities": { "general": { "positionEncodings": ["utf-8"] } },
            }),
        )?;
        self.notify("initialized", json!({}))?;
        for name in TABS {
            let text = fs::read_to_string(self.workspace.join(name))?;
            self.notify(
                "textDocument/didOpen",
                json!({ "textDocument": {
                    "uri": self.uri(name), "languageId": "text", "version": 1, "text": text,
                } }),
            )?;
        }
        let shown = self.uri(TABS[0]);
        let unsaved = "# TODO: discounts\n";
        let start = json!({ "line": 0, "character": 0 });
        self.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": shown, "version": 2 },
                "contentChanges": [{ "range": { "start": start, "end": start }, "text": unsaved }],
            }),
        )?;
        let tabs: Vec<Value> = TABS
            .iter()
            .map(|name| json!({ "uri": self.uri(name) }))
            .collect();
        self.notify("sightline/didChangeTabs", json!({ "tabs": tabs }))?;
        let editors = json!({ "editors": [{ "uri": shown, "isActive": true }] });
        self.notify("sightline/didChangeVisibleEditors", editors)
    }

    fn show_environment(&mut self) -> io::Result<()> {
        self.begin("The agent learns what the editor shows")?;
        let details = self.call::<EnvironmentDetails>(EnvironmentDetailsParams {
            include_files: true,
            ..EnvironmentDetailsParams::default()
        })?;
        say(&details.text)?;
        note(&format!(
            "about {} tokens; .env is open in a tab, too, but is not listed",
            details.tokens
        ))
    }

    fn refuse_denied_file(&mut self) -> io::Result<()> {
        self.begin("It wants a denied file, and is refused")?;
        match self.ask(ReadFile::NAME, json!({ "path": ".env" }))? {
            Err(error) => say(&format!(
                "{REFUSED}refused{REFUSED:#}  {}",
                error["message"].as_str().unwrap_or_default()
            ))?,
            Ok(_) => return Err(io::Error::other("the denied file was returned")),
        }
        let command = "sudo cat .env | head -1";
        let verdict = self.call::<CheckAccess>(CheckAccessParams {
            command: Some(command.to_owned()),
            ..CheckAccessParams::default()
        })?;
        for denied in verdict.command.iter().flat_map(|verdict| &verdict.denied) {
            say(&format!(
                "{REFUSED}refused{REFUSED:#}  `{command}`: {}",
                denied.reason
            ))?;
        }
        Ok(())
    }

    /// Returns the id of the checkpoint.
    fn create_checkpoint(&mut self) -> io::Result<String> {
        self.begin("A checkpoint is created before it edits")?;
        let created = self.call::<CreateCheckpoint>(CreateCheckpointParams {
            label: Some("before the edits".to_owned()),
            ..CreateCheckpointParams::default()
        })?;
        let files = plural(created.files, "file");
        say(&format!("checkpoint {}: {files}", short_id(&created.id)))?;
        Ok(created.id)
    }

    fn edit(&mut self) -> io::Result<()> {
        self.begin("The agent edits, and goes too far")?;
        let prices = self.workspace.join(EDITED);
        let dearer = fs::read_to_string(&prices)?.replace("250", "270");
        fs::write(&prices, dearer)?;
        fs::write(self.workspace.join(ADDED), "DISCOUNTS = {}\n")?;
        fs::remove_file(self.workspace.join(DELETED))?;
        say(&format!(
            "edited {EDITED}, added {ADDED}, deleted {DELETED}"
        ))
    }

    fn compare(&mut self, checkpoint: &str) -> io::Result<()> {
        self.begin("What changed since the checkpoint")?;
        let compared = self.call::<DiffCheckpoints>(DiffCheckpointsParams {
            from: checkpoint.to_owned(),
            ..DiffCheckpointsParams::default()
        })?;
        let mut files = compared.files.iter();
        files.try_for_each(|file| say(render::difference(file).trim_end()))
    }

    fn preview(&mut self, checkpoint: &str) -> io::Result<()> {
        self.begin("What a restore would do")?;
        let preview = self.call::<PreviewRestore>(PreviewRestoreParams {
            id: checkpoint.to_owned(),
            ..PreviewRestoreParams::default()
        })?;
        for change in &preview.changes {
            let action = match change.action {
                RestoreAction::Write => "write",
                RestoreAction::Delete => "delete",
            };
            say(&format!("{action:<7} {}", change.path))?;
        }
        note("unsaved text and denied files stay as they are")
    }

    fn restore(&mut self, checkpoint: &str) -> io::Result<()> {
        self.begin("The restore")?;
        let restored = self.call::<RestoreCheckpoint>(RestoreCheckpointParams {
            id: checkpoint.to_owned(),
            ..RestoreCheckpointParams::default()
        })?;
        let undo = restored.undo_id.unwrap_or_default();
        self.report(&restored.outcomes)?;
        note(&format!("the state before is kept as {}", short_id(&undo)))
    }

    fn undo(&mut self) -> io::Result<()> {
        self.begin("The restore is undone")?;
        let undone = self.call::<UndoRestore>(UndoRestoreParams::default())?;
        self.report(&undone.outcomes)
    }

    /// Prints how many paths were changed, and a line of the file that the agent edited.
    fn report(&self, outcomes: &[RestoreOutcome]) -> io::Result<()> {
        let prices = fs::read_to_string(self.workspace.join(EDITED))?;
        let price = prices.lines().find(|line| line.contains("bread"));
        let paths = plural(outcomes.len(), "path");
        let price = price.unwrap_or_default().trim();
        say(&format!("{paths} changed; {EDITED} has `{price}`"))
    }

    fn truncate(&mut self) -> io::Result<()> {
        self.begin("A conversation that fills the model's context is truncated")?;
        let turn = |role: &str, text: String| json!({ "role": role, "content": text });
        let messages = (0..40).flat_map(|number| {
            [
                turn("user", format!("Task {number}: change a price.")),
                turn(
                    "assistant",
                    format!("Price {number} is changed. ").repeat(20),
                ),
            ]
        });
        let messages: Vec<Value> = messages.collect();
        let count = messages.len();
        let params: TruncateHistoryParams = serde_json::from_value(json!({
            "messages": messages,
            "model": { "id": "claude-sonnet-4" },
            "previousRequest": { "tokensIn": 171_000, "tokensOut": 400, "ts": 1 },
            "countTokens": true,
        }))?;
        let truncated: TruncateHistoryResult = self.call::<TruncateHistory>(params)?;
        let [first, last] = truncated.deleted_range.unwrap_or_default();
        say(&format!(
            "messages {first} to {last} of {count} are left out; the task and the newest messages stay",
        ))?;
        let tokens = truncated.tokens.map(|tokens| (tokens.before, tokens.after));
        let (before, after) = tokens.unwrap_or_default();
        note(&format!("{before} tokens before, {after} after"))
    }

    /// Begins a step.
    fn begin(&mut self, title: &str) -> io::Result<()> {
        self.step += 1;
        if self.step > 1 && io::stdout().is_terminal() {
            thread::sleep(PAUSE);
        }
        say(&format!("\n{HEADING}{}. {title}{HEADING:#}\n", self.step))
    }

    /// Sends a request of the protocol.
    fn call<M: Request>(&mut self, params: M::Params) -> io::Result<M::Result> {
        let result = self.request(M::NAME, serde_json::to_value(params)?)?;
        Ok(serde_json::from_value(result)?)
    }

    fn request(&mut self, method: &str, params: Value) -> io::Result<Value> {
        self.ask(method, params)?
            .map_err(|error| io::Error::other(format!("{method}: {error}")))
    }

    /// Sends a request and returns the result, or the error. Requests of the server are answered with `null`.
    fn ask(&mut self, method: &str, params: Value) -> io::Result<Result<Value, Value>> {
        self.requests += 1;
        let id = json!(self.requests);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        while let Some(frame) = self.input.next_frame()? {
            let body = frame.map_err(|why| io::Error::other(format!("{why:?}")))?;
            let mut message: Value = serde_json::from_slice(&body)?;
            if message.get("method").is_none() && message["id"] == id {
                return Ok(match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                });
            }
            if let (Some(_), Some(asked)) = (message.get("method"), message.get("id")) {
                self.send(&json!({ "jsonrpc": "2.0", "id": asked, "result": null }))?;
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        write_frame(&mut self.output, message.to_string().as_bytes())
    }

    fn uri(&self, name: &str) -> String {
        let path = AbsPath::new(&self.workspace);
        let rel = RelPath::new(name.as_ref()).unwrap_or_default();
        path.map(|path| path.join(&rel).to_uri())
            .unwrap_or_default()
    }
}

fn note(text: &str) -> io::Result<()> {
    say(&format!("{DIM}({text}){DIM:#}"))
}

/// Prints a line, with colors if stdout is a terminal.
fn say(line: &str) -> io::Result<()> {
    print_to(anstream::stdout().lock(), format!("{line}\n").as_bytes()).map_err(io::Error::other)
}
