//! `sightline hook`, from the start of the process to its end: a prompt and a tool call,
//! with a running server and without, and an edit with a checkpoint. Compared with hooks in
//! Python and Node.js that only parse their input. `sightline mcp`, from the start to the
//! answer of `initialize`, and calls of a real MCP server through `sightline mcp wrap` and the hub.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::{Map, Value, json};

use crate::{
    Run, progress,
    report::{Goal, Row, Series},
    session::{Session, timed},
    tree::{Tree, path_of},
};

const PART: &str = "hook";
const PYTHON: &str = "Python that parses the event";
const NODE: &str = "Node.js that parses the event";
/// Events of each kind per round.
const EVENTS: usize = 40;
/// Milliseconds from start to end: the median, and the time that one event in a hundred
/// exceeds.
const MEDIAN: Goal = Goal::Value {
    must: 10.0,
    aim: 5.0,
};
const SLOWEST: Goal = Goal::Value {
    must: 50.0,
    aim: 10.0,
};

/// Milliseconds of an edit with a checkpoint, by a hook while a server runs.
const CHECKPOINT: Goal = Goal::Value {
    must: 15.0,
    aim: 8.0,
};
/// Checkpoints per round.
const CHECKPOINTS: usize = 10;
/// Turns of a long list, and milliseconds until its first page is there.
const TURNS: usize = 10_000;
const LIST: Goal = Goal::Value {
    must: 20.0,
    aim: 10.0,
};
/// Milliseconds until `sightline mcp` has answered `initialize`.
const MCP_START: Goal = Goal::Value {
    must: 20.0,
    aim: 10.0,
};

/// Calls of an MCP server per round.
const CALLS: usize = 100;
/// Milliseconds that a call takes longer than without Sightline, through `wrap` and through the hub.
const ADDED: Goal = Goal::Value {
    must: 0.3,
    aim: 0.15,
};
/// The same with 100 KB.
const ADDED_LARGE: Goal = Goal::Value {
    must: 3.0,
    aim: 1.5,
};
/// Milliseconds of a list of the tools of eight servers that were started before.
const WARM_LIST: Goal = Goal::Value {
    must: 20.0,
    aim: 10.0,
};
/// Servers in that list.
const LISTED: usize = 8;

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let mut rows = Vec::new();
    for count in run.sizes.trees.clone() {
        let rounds = run.rounds;
        let tree = run.trees.get(count);
        rows.extend(measure(tree, rounds));
        rows.extend(super::exec::measure(tree, rounds));
        rows.extend(measure_checkpoints(tree, rounds));
        rows.push(measure_mcp(tree, rounds));
        rows.extend(measure_mcp_calls(tree, rounds));
    }
    rows
}

/// An edit after one change, and the end of a turn with one change, each with a checkpoint in the running
/// server; and a page of a long list of turns.
fn measure_checkpoints(tree: &mut Tree, rounds: usize) -> [Row; 3] {
    let mut server = Session::start(Some(&tree.work()), &tree.path("data"));
    server.result("sightline/createCheckpoint", &json!({}));
    let mut series: [Series; 2] = Default::default();
    for turn in 0..rounds * CHECKPOINTS {
        for (event, series) in ["PreToolUse", "Stop"].into_iter().zip(&mut series) {
            tree.change(1);
            let input = json!({
                "session_id": "bench", "prompt_id": turn.to_string(), "cwd": tree.work(),
                "hook_event_name": event, "tool_name": "Edit",
                "tool_input": { "file_path": tree.work().join(path_of(0)) },
            });
            let mut command = Command::new(env!("CARGO_BIN_EXE_sightline"));
            command.args([
                "hook",
                event,
                "--agent",
                "claude",
                "--checkpoints",
                "--storage",
            ]);
            answered(command.arg(tree.path("data")), &input, series);
        }
    }
    let listed = server.result("sightline/listCheckpoints", &json!({}));
    let count = listed["checkpoints"].as_array().unwrap().len();
    assert!(count > 2 * rounds * CHECKPOINTS, "{count} checkpoints");
    add_turns(&tree.path("data"));
    let mut pages = Series::default();
    for _ in 0..rounds * CHECKPOINTS {
        let (answer, elapsed) = server.ask("sightline/listTurns", r#"{"limit":100}"#);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["result"]["turns"].as_array().unwrap().len(), 100);
        pages.0.push(elapsed);
    }
    server.end();
    fs::remove_dir_all(tree.path("data")).unwrap();
    let [edit, end] = series;
    [
        ("edit with a checkpoint, 1 changed", edit, CHECKPOINT),
        ("end of a turn, 1 changed", end, CHECKPOINT),
        ("100 of 10,000 turns", pages, LIST),
    ]
    .map(|(work, series, goal)| {
        Row::new(PART, work, &series)
            .of(tree)
            .goal(goal.only_if(tree.judged))
    })
}

/// Records more turns, with the states of the first one.
fn add_turns(data: &Path) {
    let project = fs::read_dir(data.join("projects")).unwrap().next();
    let path = project.unwrap().unwrap().path().join("state/turns.jsonl");
    let mut text = fs::read_to_string(&path).unwrap();
    let first: String = text
        .lines()
        .filter(|line| line.contains(r#""name":"claude-1.1""#))
        .map(|line| format!("{line}\n"))
        .collect();
    for turn in 0..TURNS {
        text.push_str(&first.replace("claude-1.1", &format!("claude-2.{}", turn + 1)));
    }
    fs::write(path, text).unwrap();
}

fn initialize() -> Value {
    let client = json!({ "name": "bench", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn measure_mcp(tree: &Tree, rounds: usize) -> Row {
    let initialize = initialize();
    let mut series = Series::default();
    for _ in 0..rounds * CHECKPOINTS {
        let mut child = timed(&mut series, || {
            let mut child = Command::new(env!("CARGO_BIN_EXE_sightline"))
                .args(["mcp", "--storage"])
                .arg(tree.path("data"))
                .current_dir(tree.work())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            writeln!(child.stdin.as_mut().unwrap(), "{initialize}").unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap())
                .read_line(&mut line)
                .unwrap();
            assert!(line.contains("serverInfo"), "{line}");
            child
        });
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    Row::new(PART, "mcp, start to answer of initialize", &series)
        .of(tree)
        .goal(MCP_START.only_if(tree.judged))
}

/// A program that answers MCP requests.
struct Peer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &mut Command, tree: &Tree) -> Self {
        let mut child = command
            .current_dir(tree.work())
            .env("XDG_CONFIG_HOME", tree.path("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut peer = Self { child, output };
        peer.ask(&initialize().to_string(), "serverInfo");
        peer
    }

    /// Sends a request, and returns the line of the answer, which contains this text.
    fn ask(&mut self, request: &str, answer: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        while !line.contains(answer) {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "no answer");
        }
        line
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Calls `echo` of the server that `tests/provide/mcp` installs: directly, through `wrap` and through the hub.
fn measure_mcp_calls(tree: &Tree, rounds: usize) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/mcp/node/node_modules/.bin/mcp-server-everything");
    let Ok(path) = path.canonicalize() else {
        progress("calls of MCP servers: skipped, run tests/provide/mcp");
        return Vec::new();
    };
    let server = json!({ "command": path, "args": ["stdio"] });
    let configure = |count: usize| {
        let names = (1..=count).map(|number| format!("s{number}"));
        let servers: Map<String, Value> = names.map(|name| (name, server.clone())).collect();
        let folder = tree.path("config/sightline");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("mcp.json");
        fs::write(file, json!({ "mcpServers": servers }).to_string()).unwrap();
    };
    let hub = || {
        let mut hub = Command::new(env!("CARGO_BIN_EXE_sightline"));
        hub.args(["mcp", "--storage"]).arg(tree.path("data"));
        Peer::start(&mut hub, tree)
    };
    let list = json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }).to_string();
    configure(1);
    let mut wrapped = Command::new(env!("CARGO_BIN_EXE_sightline"));
    wrapped.args(["mcp", "wrap", "--storage"]);
    wrapped.arg(tree.path("data")).arg("--").arg(&path);
    let mut peers = [
        (Peer::start(Command::new(&path).arg("stdio"), tree), "echo"),
        (Peer::start(wrapped.arg("stdio"), tree), "echo"),
        (hub(), "s1__echo"),
    ];
    peers[2].0.ask(&list, "s1__echo");
    // No line twice, as in the files of a project.
    let line = |number: usize| {
        format!(
            "    let fox{number} = quick.brown({number}); // jumps over src/dog{number}.rs and more\n"
        )
    };
    let mut rows = Vec::new();
    for (what, bytes, goal) in [
        ("MCP call", 2, ADDED),
        ("MCP call with 100 KB", 100_000, ADDED_LARGE),
    ] {
        let lines = bytes / line(0).len() + 1;
        let message: String = (0..lines).map(line).collect();
        let mut series: [Series; 3] = Default::default();
        for call in 0..rounds * CALLS {
            let id = format!("{bytes}-{call}");
            for ((peer, tool), series) in peers.iter_mut().zip(&mut series) {
                let params = json!({ "name": tool, "arguments": { "message": message } });
                let request =
                    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
                let request = request.to_string();
                timed(series, || peer.ask(&request, &id));
            }
        }
        let [direct, wrapped, hosted] = series.map(|series| {
            let mut sorted = series.0;
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        });
        for (through, median) in [("wrap", wrapped), ("the hub", hosted)] {
            let work = format!("{what} through {through}, added");
            let row = Row::new(PART, work, &Series(vec![median - direct]));
            rows.push(row.of(tree).goal(goal.only_if(tree.judged)));
        }
    }
    for (peer, _) in peers {
        peer.end();
    }
    configure(LISTED);
    let mut cold = hub();
    cold.ask(&list, &format!("s{LISTED}__echo"));
    cold.end();
    let mut series = Series::default();
    for _ in 0..rounds * CHECKPOINTS {
        let mut warm = hub();
        let listed = timed(&mut series, || warm.ask(&list, r#""id":"list""#));
        assert!(listed.contains(&format!("s{LISTED}__echo")), "{listed}");
        warm.end();
    }
    let row = Row::new(
        PART,
        format!("MCP tools of {LISTED} idle servers, listed"),
        &series,
    );
    rows.push(row.of(tree).goal(WARM_LIST.only_if(tree.judged)));
    rows
}

fn measure(tree: &Tree, rounds: usize) -> Vec<Row> {
    progress(&format!("{PART}: {}", tree.name));
    let rules = tree.work().join(".clineignore");
    fs::write(&rules, "*.secret\n/part0/private/\n").unwrap();
    let mut rows = Vec::new();
    for with_server in [true, false] {
        let server = with_server.then(|| Session::start(Some(&tree.work()), &tree.path("data")));
        let mut ours: [Series; 2] = Default::default();
        let mut peers: [Series; 2] = Default::default();
        for round in 0..rounds {
            for event in 0..EVENTS {
                let session = format!("{with_server}-{round}-{event}");
                let [prompt, tool] = events(tree, &session);
                let answer = hook(tree, "UserPromptSubmit", &prompt, &mut ours[0]);
                // No editor has a file open, so there is nothing to tell.
                assert_eq!(answer, "");
                let answer = hook(tree, "PreToolUse", &tool, &mut ours[1]);
                assert!(answer.contains("deny"), "not refused: {answer}");
                if event % 4 == 0 {
                    answered(&mut python(), &tool, &mut peers[0]);
                    answered(&mut node(), &tool, &mut peers[1]);
                }
            }
        }
        if let Some(server) = server {
            server.end();
        }
        fs::remove_dir_all(tree.path("data")).unwrap();
        let suffix = if with_server { "a" } else { "no" };
        for (work, series) in ["prompt", "tool call"].iter().zip(&ours) {
            let work = format!("{work}, {suffix} server");
            let row = |work: String, series: &Series| Row::new(PART, work, series).of(tree);
            let median = MEDIAN.only_if(tree.judged);
            let [python, node] = &peers;
            rows.push(
                row(format!("{work}, median"), series)
                    .against(PYTHON, python)
                    .goal(median),
            );
            rows.push(
                row(format!("{work}, median"), series)
                    .against(NODE, node)
                    .goal(median),
            );
            let slowest = row(format!("{work}, 99 %"), &slowest(series));
            rows.push(slowest.goal(SLOWEST.only_if(tree.judged)));
        }
    }
    fs::remove_file(rules).unwrap();
    rows
}

/// A prompt, and a command that reads a denied file.
fn events(tree: &Tree, session: &str) -> [Value; 2] {
    let cwd = tree.work();
    let command = format!("grep -n fn {} token.secret | head -5", path_of(0));
    [
        json!({ "session_id": session, "cwd": cwd, "hook_event_name": "UserPromptSubmit",
                "prompt": "Explain the first function" }),
        json!({ "session_id": session, "cwd": cwd, "hook_event_name": "PreToolUse",
                "tool_name": "Bash", "tool_input": { "command": command } }),
    ]
}

/// Runs `sightline hook` and returns its output.
fn hook(tree: &Tree, event: &str, input: &Value, series: &mut Series) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sightline"));
    command.args(["hook", event, "--agent", "claude", "--storage"]);
    answered(command.arg(tree.path("data")), input, series)
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", "import json, sys; json.load(sys.stdin); print('{}')"]);
    command
}

fn node() -> Command {
    let mut command = Command::new("node");
    command.args([
        "-e",
        "JSON.parse(require('fs').readFileSync(0)); console.log('{}')",
    ]);
    command
}

/// Runs a hook with its input. Returns its output and records the time from start to end.
fn answered(command: &mut Command, input: &Value, series: &mut Series) -> String {
    let input = input.to_string();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let output = timed(series, || {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the time that one event in a hundred exceeds.
fn slowest(series: &Series) -> Series {
    let mut sorted = series.0.clone();
    sorted.sort_by(f64::total_cmp);
    Series(vec![sorted[sorted.len() * 99 / 100]])
}
