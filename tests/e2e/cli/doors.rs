//! The same params give the same result at every door: as an LSP request, by
//! `workspace/executeCommand`, on the local socket, on the command line and as an MCP tool.
//!
//! A tool answers with text, so its door compares the text of the result.

use std::{
    io::Write,
    process::{Child, Stdio},
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sightline_hub::tools::text;
use sightline_ipc as ipc;
use sightline_protocol::method::METHODS;
use sightline_testing::lsp_client::LspClient;

use crate::{
    harness::{Workspace, finished, program, spawn_in, wait},
    ipc::{sockets, talk},
    mcp::Client,
};

/// A method with its params, which may contain the words of [`Ground::filled`].
struct Row {
    method: &'static str,
    params: Value,
    /// Arguments of the command line, which reads the params from standard input if they end
    /// with `-`.
    command_line: &'static [&'static str],
    tool: Option<(&'static str, Value, Shown)>,
    /// Brings the workspace into the state in which each door finds it.
    prepare: fn(&mut Ground),
    /// Fields that differ from call to call.
    varying: &'static [&'static str],
}

/// Formats a result as the tool does.
type Shown = fn(Value) -> String;

impl Row {
    fn new(method: &'static str, params: Value) -> Self {
        Self {
            method,
            params,
            command_line: &[],
            tool: None,
            prepare: |_| {},
            varying: &[],
        }
    }

    fn command_line(self, command_line: &'static [&'static str]) -> Self {
        Self {
            command_line,
            ..self
        }
    }

    fn tool(self, name: &'static str, arguments: Value, shown: Shown) -> Self {
        Self {
            tool: Some((name, arguments, shown)),
            ..self
        }
    }

    fn changing(self, prepare: fn(&mut Ground), varying: &'static [&'static str]) -> Self {
        Self {
            prepare,
            varying,
            ..self
        }
    }
}

/// A server that runs, and its clients.
struct Ground {
    workspace: Workspace,
    server: Child,
    editor: LspClient,
    agent: Client,
    /// The token of the last preview, for `TOKEN`.
    token: String,
    /// The first checkpoint, for `FIRST`.
    first: String,
}

impl Ground {
    fn new() -> Self {
        let files = [
            (".clineignore", "*.key\n"),
            ("a.txt", "one\n"),
            ("b.key", "secret\n"),
            ("src/c.txt", "c\n"),
        ];
        let workspace = Workspace::new(&files);
        let (server, mut editor) = spawn_in(&workspace);
        let document = json!({ "uri": workspace.uri("src/c.txt"), "languageId": "text", "version": 1, "text": "open\n" });
        let opened = json!({ "textDocument": document });
        editor.notify("textDocument/didOpen", opened).unwrap();
        let agent = Client::open(&workspace, &[]);
        let mut ground = Self {
            workspace,
            server,
            editor,
            agent,
            token: String::new(),
            first: String::new(),
        };
        let turn = json!({ "agent": "claude", "session": "s", "turn": "t" });
        let first = ground.call(
            "createCheckpoint",
            json!({ "turn": turn, "label": "first" }),
        );
        ground.first = first["id"].as_str().unwrap().to_owned();
        ground.workspace.write("a.txt", "two\n");
        ground.call("createCheckpoint", json!({ "label": "second" }));
        // The newest checkpoint is an undo point.
        ground.workspace.write("a.txt", "three\n");
        let first = json!({ "id": ground.first, "force": true });
        ground.call("restoreCheckpoint", first);
        ground.workspace.write("a.txt", "four\n");
        ground
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let method = format!("sightline/{method}");
        let answer = self.editor.request(&method, params).unwrap();
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Previews a restore or an undo.
    fn preview(&mut self, id: &str, undo: bool) {
        let preview = self.call("previewRestore", json!({ "id": id, "undo": undo }));
        self.token = preview["token"].as_str().unwrap().to_owned();
    }

    /// Replaces `ROOT`, `FIRST`, `BEGINNING` and `TOKEN`.
    fn filled(&self, text: &str) -> String {
        let root = self.workspace.root();
        text.replace("ROOT", root.to_str().unwrap())
            .replace("FIRST", &self.first)
            .replace("BEGINNING", &self.first[..6])
            .replace("TOKEN", &self.token)
    }

    fn filled_json(&self, value: &Value) -> Value {
        serde_json::from_str(&self.filled(&value.to_string())).unwrap()
    }

    fn on_command_line(&self, arguments: &[&str], params: &Value) -> Value {
        let reads = arguments.last() == Some(&"-");
        let mut arguments: Vec<_> = arguments.iter().map(|one| self.filled(one)).collect();
        arguments.retain(|one| one != "-");
        let paths = arguments.iter().position(|one| one == "--");
        let paths = arguments.split_off(paths.unwrap_or(arguments.len()));
        let mut command = program()
            .args(&arguments)
            .args(["--json", "--root"])
            .arg(self.workspace.root())
            .arg("--storage")
            .arg(self.workspace.data())
            .args(&paths)
            .current_dir(self.workspace.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = command.stdin.take().unwrap();
        if reads {
            input.write_all(params.to_string().as_bytes()).unwrap();
        }
        drop(input);
        let (code, text, error) = finished(command.wait_with_output().unwrap());
        serde_json::from_str(&text).unwrap_or_else(|_| {
            panic!("{arguments:?} ended with {code}: {text}{error}");
        })
    }
}

/// Removes fields that vary, also in arrays and objects, and the time of the block.
fn without(value: &Value, varying: &[&str]) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without(item, varying)).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !varying.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), without(value, varying)))
            .collect(),
        Value::String(text) => json!(timeless(text)),
        other => other.clone(),
    }
}

fn timeless(text: &str) -> String {
    let is_time = |line: &&str| {
        let marks = ["UTC", "Z)", "just now", " ago"];
        marks.iter().any(|mark| line.contains(mark))
    };
    text.lines()
        .filter(|line| !is_time(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Replaces abbreviated ids.
fn without_ids(text: &str) -> String {
    let is_id = |word: &&str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(
            |word| match word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()) {
                id if is_id(&id) => word.replace(id, "ID"),
                _ => word.to_owned(),
            },
        )
        .collect()
}

fn configure_server(ground: &mut Ground) {
    let servers =
        json!({ "mcpServers": { "p": { "command": "p-mcp", "env": { "KEY": "${KEY}" } } } });
    ground.workspace.write(".mcp.json", &servers.to_string());
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn rows() -> Vec<Row> {
    let paths = json!(["ROOT/a.txt", "ROOT/b.key", "ROOT/nowhere"]);
    let restored: Shown = |result| text::restored(&typed(result));
    let listed: Shown = |result| text::checkpoints(&typed(result));
    let compared: Shown = |result| text::difference(&typed(result));
    let task = json!({ "taskId": "t" });
    let message = |role: &str| json!({ "role": role, "content": "hello" });
    let messages = json!(["user", "assistant", "user", "assistant", "user"].map(message));
    vec![
        Row::new("environmentDetails", json!({ "includeFiles": true, "maxFiles": 200 }))
            .command_line(&["environment", "--files"]),
        Row::new("environmentDetails", json!({ "sections": ["openTabs", "visibleFiles"] }))
            .tool("environment_details", json!({ "sections": ["openTabs", "visibleFiles"] }), |result| {
                result["text"].as_str().unwrap().to_owned()
            }),
        Row::new("checkAccess", json!({ "paths": paths, "command": "cat b.key" }))
            .tool("check_access", json!({ "paths": paths, "command": "cat b.key" }), |result| {
                text::access(&typed(result))
            }),
        Row::new("checkAccess", json!({ "paths": ["ROOT/a.txt"], "command": "cat a.txt b.key" }))
            .command_line(&["access", "ROOT/a.txt", "--command", "cat a.txt b.key"]),
        Row::new("listFiles", json!({ "path": "ROOT", "recursive": true, "limit": 200 }))
            .command_line(&["list", "."])
            .tool("list_files", json!({ "path": ".", "recursive": true, "limit": 200 }), |result| {
                text::files(&typed(result))
            }),
        // The editor has unsaved text.
        Row::new("readFile", json!({ "path": "ROOT/src/c.txt" })).command_line(&["read", "src/c.txt"]),
        Row::new("diagnostics", json!({ "paths": ["ROOT/a.txt"] }))
            .tool("diagnostics", json!({ "paths": ["a.txt"] }), |result| {
                text::diagnostics(&typed(result))
            }),
        Row::new("selection", json!({})).tool("selection", json!({}), |result| {
            text::selection(&typed(result))
        }),
        Row::new("unsavedFiles", json!({})),
        Row::new("connectedAgents", json!({})),
        Row::new("countTokens", json!({ "texts": ["four\n"], "model": "gpt-4o" }))
            .command_line(&["tokens", "--model", "gpt-4o", "a.txt"])
            .tool("count_tokens", json!({ "path": "a.txt", "model": "gpt-4o" }), |result| {
                text::tokens(&typed(result))
            }),
        Row::new("appendMessages", json!({ "taskId": "t", "messages": messages }))
            .changing(|_| {}, &["messageCount", "ids", "count", "sizeBytes"]),
        Row::new("listTasks", json!({})).command_line(&["task", "list"]),
        Row::new("loadTask", task.clone()).command_line(&["task", "show", "t"]),
        Row::new("resumeTask", task).command_line(&["task", "resume", "t"])
            .changing(|_| {}, &["age", "resumption"]),
        Row::new("truncateHistory", json!({ "messages": messages, "model": { "id": "m", "contextWindow": 100_000 } }))
            .command_line(&["history", "truncate", "-"]),
        Row::new("planCompaction", json!({ "messages": messages, "model": { "id": "m", "contextWindow": 100_000 }, "trigger": "manual" }))
            .command_line(&["compact", "plan", "-"]),
        Row::new("applyCompaction", json!({ "messages": messages, "summary": "All is done.", "retainFrom": 4 }))
            .command_line(&["compact", "apply", "-"])
            .changing(|_| {}, &["ts"]),
        Row::new("rollbackHistory", json!({ "contextHistory": [], "timestamp": 1 }))
            .command_line(&["history", "rollback", "-"]),
        Row::new("trackFile", json!({ "taskId": "t", "path": "ROOT/a.txt", "operation": "read_tool", "now": 1 })),
        Row::new("recordModel", json!({ "taskId": "t", "modelId": "m", "providerId": "p", "mode": "act", "now": 1 }))
            .changing(|_| {}, &["recorded"]),
        Row::new("recordEnvironment", json!({ "taskId": "t", "now": 1 }))
            .changing(|_| {}, &["recorded"]),
        Row::new("taskContext", json!({ "taskId": "t" })),
        Row::new("deleteTask", json!({ "taskId": "gone" }))
            .changing(
                |ground| {
                    let messages = json!([{ "role": "user", "content": "hello" }]);
                    ground.call("appendMessages", json!({ "taskId": "gone", "messages": messages }));
                },
                &[],
            ),
        Row::new("classifyError", json!({ "status": 400, "message": "prompt is too long" })),
        Row::new("listCheckpoints", json!({ "limit": 20 }))
            .command_line(&["checkpoint", "list", "--limit", "20"])
            .tool("checkpoint_list", json!({}), listed),
        Row::new("redact", json!({ "texts": ["a"] })),
        Row::new("listRules", json!({})),
        Row::new("hiddenPaths", json!({})),
        Row::new("listDecisions", json!({})).command_line(&["log"]),
        Row::new("listTurns", json!({ "limit": 20 })),
        Row::new("blame", json!({ "path": "ROOT/a.txt" })).command_line(&["checkpoint", "blame", "a.txt"]),
        Row::new("checkpointStats", json!({})).command_line(&["checkpoint", "stats"]),
        Row::new("verifyCheckpoints", json!({})).command_line(&["checkpoint", "verify"]),
        Row::new("pruneCheckpoints", json!({ "ids": ["claude-1.1"], "dryRun": true }))
            .command_line(&["checkpoint", "delete", "claude-1.1", "--dry-run"]),
        // `last` is no undo point, `claude-1.1` the first turn of a session, and an id may be cut.
        Row::new("diffCheckpoints", json!({ "from": "last", "patch": true }))
            .command_line(&["checkpoint", "diff", "last", "--patch"])
            .tool("checkpoint_diff", json!({ "from": "last" }), compared),
        Row::new("diffCheckpoints", json!({ "from": "claude-1.1", "to": "last", "patch": true }))
            .command_line(&["checkpoint", "diff", "claude-1.1", "last", "--patch"])
            .tool("checkpoint_diff", json!({ "from": "claude-1.1", "to": "last" }), compared),
        Row::new("diffCheckpoints", json!({ "from": "BEGINNING", "paths": ["ROOT/a.txt"], "patch": true }))
            .command_line(&["checkpoint", "diff", "BEGINNING", "--patch", "--", "a.txt"])
            .tool("checkpoint_diff", json!({ "from": "BEGINNING", "paths": ["a.txt"] }), compared),
        Row::new("previewRestore", json!({ "id": "last", "undo": false }))
            .command_line(&["checkpoint", "preview", "last"])
            .tool("checkpoint_restore", json!({ "id": "last" }), |result| {
                text::preview(&typed(result), "checkpoint_restore")
            }),
        Row::new("previewRestore", json!({ "id": "last", "undo": true }))
            .command_line(&["checkpoint", "undo", "--dry-run", "last"])
            .tool("checkpoint_undo", json!({}), |result| {
                text::preview(&typed(result), "checkpoint_undo")
            }),
        Row::new("labelCheckpoint", json!({ "id": "last", "label": "third" }))
            .command_line(&["checkpoint", "label", "last", "third"]),
        Row::new("createCheckpoint", json!({ "label": "new", "root": "ROOT" }))
            .command_line(&["checkpoint", "create", "--label", "new"])
            .tool("checkpoint_create", json!({ "label": "new" }), |result| text::created(&typed(result)))
            .changing(
                |ground| {
                    ground.workspace.write("a.txt", "five\n");
                    ground.call("createCheckpoint", json!({}));
                    ground.workspace.write("a.txt", "six!\n");
                },
                &["id", "createdAt", "durationMs"],
            ),
        Row::new("restoreCheckpoint", json!({ "id": "claude-1.1", "token": "TOKEN" }))
            .command_line(&["checkpoint", "restore", "claude-1.1", "--yes", "--token", "TOKEN"])
            .tool("checkpoint_restore", json!({ "id": "claude-1.1", "token": "TOKEN" }), restored)
            .changing(
                |ground| {
                    ground.workspace.write("a.txt", "five\n");
                    ground.preview("claude-1.1", false);
                },
                &["undoId"],
            ),
        Row::new("undoRestore", json!({ "undoId": "last", "token": "TOKEN" }))
            .command_line(&["checkpoint", "undo", "last", "--yes"])
            .tool("checkpoint_undo", json!({ "token": "TOKEN" }), restored)
            .changing(
                |ground| {
                    ground.workspace.write("a.txt", "five\n");
                    ground.preview("claude-1.1", false);
                    let restore = json!({ "id": "claude-1.1", "token": ground.token });
                    ground.call("restoreCheckpoint", restore);
                    ground.preview("last", true);
                },
                &["undoId"],
            ),
        // The client shows no documents, which is the same error.
        Row::new("openFile", json!({ "path": "ROOT/a.txt" })),
        Row::new("listMcpServers", json!({ "root": "ROOT" }))
            .command_line(&["mcp", "list"])
            .changing(configure_server, &[]),
        Row::new("setMcpServerEnabled", json!({ "name": "p", "enabled": false }))
            .command_line(&["mcp", "disable", "p"]),
        Row::new("setMcpServerEnabled", json!({ "name": "p", "enabled": true }))
            .command_line(&["mcp", "enable", "p"]),
        Row::new("trustMcpServer", json!({ "name": "p" })).command_line(&["mcp", "trust", "p"]),
        Row::new("restartMcpServer", json!({ "name": "p" })).command_line(&["mcp", "restart", "p"]),
        Row::new("mcpServerLog", json!({ "name": "p" })).command_line(&["mcp", "log", "p"]),
    ]
}

/// Methods that are not compared, with the reason.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("openDiff", "waits for the user"),
    ("commitCheckpoint", "a branch can be created once"),
];

#[test]
fn all_doors_give_equal_results() {
    let mut ground = Ground::new();
    let rows = rows();
    for (id, label) in [
        ("last", "second"),
        ("BEGINNING", "first"),
        ("claude-1.1", "first"),
    ] {
        let id = ground.filled(id);
        let listed = ground.call("listCheckpoints", json!({ "id": id }));
        assert_eq!(listed["checkpoints"][0]["label"], label, "{id}: {listed}");
    }
    let mut differences = Vec::new();
    for row in &rows {
        let method = format!("sightline/{}", row.method);
        let mut results = Vec::new();
        (row.prepare)(&mut ground);
        let params = ground.filled_json(&row.params);
        let answer = ground.editor.request(&method, params).unwrap();
        results.push(("request", answer.unwrap_or_else(|error| error)));

        (row.prepare)(&mut ground);
        let params = ground.filled_json(&row.params);
        let command = json!({ "command": method.replace('/', "."), "arguments": [params] });
        let answer = ground.editor.request("workspace/executeCommand", command);
        results.push(("command", answer.unwrap().unwrap_or_else(|error| error)));

        if ipc::METHODS.contains(&method.as_str()) {
            (row.prepare)(&mut ground);
            let params = ground.filled_json(&row.params);
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let socket = sockets(&ground.workspace).pop().unwrap();
            let answer = talk(&socket, &[message]).pop().unwrap();
            let found = answer.get("result").unwrap_or(&answer["error"]);
            results.push(("socket", found.clone()));
        }
        if !row.command_line.is_empty() {
            (row.prepare)(&mut ground);
            let params = ground.filled_json(&row.params);
            let result = ground.on_command_line(row.command_line, &params);
            results.push(("command line", result));
        }
        if row.method != "openFile" && results[0].1.get("code").is_some() {
            differences.push(format!("{method}: {}", results[0].1));
            continue;
        }
        let expected = without(&results[0].1, row.varying);
        for (door, found) in &results[1..] {
            let found = without(found, row.varying);
            if found != expected {
                differences.push(format!(
                    "{method} by {door}: {found}\n  request: {expected}"
                ));
            }
        }
        if let Some((tool, arguments, shown)) = &row.tool {
            (row.prepare)(&mut ground);
            let arguments = ground.filled_json(arguments);
            let (found, is_error) = ground.agent.call(tool, arguments);
            let mut expected = shown(results[0].1.clone());
            let mut found = found;
            if !row.varying.is_empty() {
                (expected, found) = (without_ids(&expected), without_ids(&found));
            }
            if is_error || timeless(&found) != timeless(&expected) {
                differences.push(format!("{tool}: {found}\n  request: {expected}"));
            }
        }
    }
    let compared = |name: &str| {
        let short = name.trim_start_matches("sightline/");
        rows.iter().any(|row| row.method == short)
            || NOT_COMPARED.iter().any(|(method, _)| *method == short)
    };
    let missing: Vec<_> = METHODS
        .iter()
        .filter(|method| method.result.is_some() && !compared(method.name))
        .map(|method| method.name)
        .collect();
    ground.editor.close();
    wait(&mut ground.server, "closed");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert_eq!(missing, Vec::<&str>::new());
}
