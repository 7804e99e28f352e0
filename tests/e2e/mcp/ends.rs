//! What is left after the end of agents, of `sightline mcp` and of servers, and what they connect to.

use std::{
    collections::HashSet,
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    TIMEOUT,
    hub::{configure, mcp, names, open, text, wait_for_state},
    servers::{FILES, Session, browser, kill, real, with_argument},
};
use crate::harness::Workspace;

/// Number of rounds of each way to end.
pub(super) fn rounds(usual: u32) -> u32 {
    std::env::var("SIGHTLINE_MCP_ROUNDS").map_or(usual, |text| text.parse().unwrap())
}

/// Returns the processes that a process has started.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(|child: &u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent == Some(&pid.to_string())
    })
    .collect()
}

/// Waits until no process has an argument.
fn wait_for_none(argument: &str, what: &str) {
    let ended = Instant::now();
    while !with_argument(argument).is_empty() {
        assert!(
            ended.elapsed() < TIMEOUT,
            "{what}: {:?} are left",
            with_argument(argument)
        );
        thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_some(argument: &str, count: usize) {
    let started = Instant::now();
    while with_argument(argument).len() < count {
        assert!(started.elapsed() < TIMEOUT, "{:?}", with_argument(argument));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn servers_end_with_the_hub() {
    let workspace = Workspace::new(FILES);
    for round in 0..rounds(6) {
        let marker = format!("7000.{}{round}", std::process::id());
        // It never answers.
        let script = format!("sleep {marker} & setsid sleep {marker} & sleep {marker}; true");
        configure(
            &workspace,
            &json!({ "slow": { "command": "sh", "args": ["-c", script] }, "plain": { "command": "sleep", "args": [marker] } }),
        );
        let mut hub = open(&workspace, json!({}));
        hub.begin("tools/list", &json!({}));
        // Also of the process that supervises `plain`.
        wait_for_some(&marker, 5);
        match round % 3 {
            0 => kill(hub.process.id(), "-KILL"),
            1 => kill(hub.process.id(), "-TERM"),
            _ => hub.close(),
        }
        hub.process.wait().unwrap();
        wait_for_none(&marker, &format!("round {round}"));
    }
}

#[test]
fn a_server_that_is_killed_during_calls_leaves_nothing() {
    let workspace = Workspace::new(FILES);
    let marker = format!("7100.{}", std::process::id());
    // It answers its lists, and starts a process for each call, which has no answer.
    let script = format!(
        r#"
import json, subprocess, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "x", "version": "1"}}}}
    if request["method"] == "tools/list":
        result = {{"tools": [{{"name": name, "inputSchema": {{"type": "object"}}}} for name in ["hang", "quick"]]}}
    if request["method"] == "tools/call":
        if request["params"]["name"] == "hang":
            subprocess.Popen(["sleep", "{marker}"])
            continue
        result = {{"content": [{{"type": "text", "text": "done"}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}), flush=True)
"#
    );
    configure(
        &workspace,
        &json!({ "s": { "command": "python3", "args": ["-c", script, "server-of-the-test"] } }),
    );
    let mut hub = open(&workspace, json!({}));
    let calls =
        [0; 3].map(|_| hub.begin("tools/call", &json!({ "name": "s__hang", "arguments": {} })));
    wait_for_some(&marker, 3);
    let supervisor = wait_for_state(&workspace, "s", "ready")["pid"]
        .as_u64()
        .unwrap() as u32;
    let [server] = children(supervisor)[..] else {
        panic!("{:?}", children(supervisor));
    };
    kill(server, "-KILL");
    let mut left = HashSet::from(calls);
    while !left.is_empty() {
        let answer = hub.next();
        if let Some(id) = answer["id"].as_u64() {
            assert!(
                text(&answer["result"]).starts_with("sightline: the server s failed: "),
                "{answer}"
            );
            assert!(left.remove(&id), "{answer}");
        }
    }
    wait_for_none(&marker, "after the server");
    assert_eq!(children(hub.process.id()), Vec::<u32>::new());
    // A later call works, and nothing was repeated.
    let started = Instant::now();
    while text(&hub.call("s__quick", &json!({}))) != "done" {
        assert!(started.elapsed() < TIMEOUT);
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(with_argument(&marker), Vec::<u32>::new());
    // The process in the list supervises the server, which ends with it.
    hub.begin("tools/call", &json!({ "name": "s__hang", "arguments": {} }));
    wait_for_some(&marker, 1);
    let supervisor = wait_for_state(&workspace, "s", "ready")["pid"].as_u64();
    kill(supervisor.unwrap() as u32, "-KILL");
    wait_for_none(&marker, "after the supervisor");
    wait_for_none("server-of-the-test", "after the supervisor");
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn an_agent_that_stops_reading_and_is_killed_leaves_nothing() {
    let workspace = Workspace::new(FILES);
    let marker = format!("7200.{}", std::process::id());
    // A server that talks without end.
    let script = format!(
        "sleep {marker} & while :; do echo '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{{}}}}'; done"
    );
    configure(
        &workspace,
        &json!({ "s": { "command": "sh", "args": ["-c", script] } }),
    );
    // The agent starts the hub, lists tools, and is stopped.
    let hub = mcp(&workspace, &[]);
    let mut agent = Command::new("python3");
    agent
        .args(["-c", AGENT])
        .arg(hub.get_program())
        .args(hub.get_args())
        .current_dir(workspace.root())
        .stdin(Stdio::null());
    copy_variables(&hub, &mut agent);
    let mut agent = agent.spawn().unwrap();
    wait_for_some(&marker, 1);
    kill(agent.id(), "-STOP");
    // The output of the hub is full.
    thread::sleep(Duration::from_millis(300));
    let hubs = children(agent.id());
    assert_eq!(hubs.len(), 1);
    kill(agent.id(), "-KILL");
    agent.wait().unwrap();
    wait_for_none(&marker, "after the agent");
    let ended = Instant::now();
    while fs::metadata(format!("/proc/{}", hubs[0])).is_ok() {
        assert!(ended.elapsed() < TIMEOUT, "the hub is left");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Lets a command start with the variables of another one.
fn copy_variables(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}

const AGENT: &str = r#"
import json, subprocess, sys, time
hub = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def ask(id, method, params):
    hub.stdin.write((json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n").encode())
    hub.stdin.flush()
ask(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}})
ask(2, "tools/list", {})
time.sleep(600)
"#;

#[test]
fn the_hub_connects_to_nothing_but_the_editor() {
    let (Some(everything), Some(time)) = (real("mcp-server-everything"), real("mcp-server-time"))
    else {
        return;
    };
    if !crate::lifecycle::faults::has_strace() {
        println!("skipped: strace is not installed, or may not trace");
        return;
    }
    let workspace = Workspace::new(FILES);
    let trace = workspace.data().with_file_name("trace");
    configure(
        &workspace,
        &json!({ "all": { "command": everything, "args": ["stdio"] }, "time": { "command": time } }),
    );
    // With a running editor, which is asked for the rules.
    let editor = crate::harness::Server::start(&workspace);
    let hub = mcp(&workspace, &[]);
    let mut traced = Command::new("strace");
    traced
        .args([
            "-f",
            "-qq",
            "-s",
            "200",
            "-e",
            "trace=socket,connect,bind,listen,execve",
            "-o",
        ])
        .arg(&trace)
        .arg(hub.get_program())
        .args(hub.get_args())
        .current_dir(workspace.root());
    copy_variables(&hub, &mut traced);
    let mut session = Session::start(&mut traced);
    session.initialize();
    names(&mut session);
    assert_eq!(
        text(&session.call("all__echo", &json!({ "message": "hi" }))),
        "Echo: hi"
    );
    session.call("time__get_current_time", &json!({ "timezone": "UTC" }));
    let read = session.call("read_file", &json!({ "path": "a.txt" }));
    assert!(text(&read).contains("alpha"), "{read}");
    let refused = session.call(
        "all__echo",
        &json!({ "message": "hi", "path": workspace.path(".env") }),
    );
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(session.end(), Some(0));
    drop(editor);
    let text = fs::read_to_string(&trace).unwrap();
    // Processes that became a server do not count.
    let own = hub.get_program().to_str().unwrap();
    let mut others = HashSet::new();
    let mut sockets = 0;
    for line in text.lines() {
        let (pid, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if call.starts_with("execve(") && !call.contains(&format!("\"{own}\"")) {
            others.insert(pid);
        }
        if others.contains(pid) || call.starts_with("execve(") {
            continue;
        }
        if call.starts_with("socket(") || call.starts_with("connect(") {
            sockets += 1;
            assert!(call.contains("AF_UNIX"), "{line}");
        }
        assert!(
            !call.starts_with("bind(") && !call.starts_with("listen("),
            "{line}"
        );
    }
    assert!(sockets > 0, "the editor was not asked");
}

/// Returns the command lines of processes that contain a text.
fn running_with(text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(text)).collect()
}

#[test]
fn a_browser_is_used_and_gone_when_it_is_idle() {
    let browser = browser();
    let Some(playwright) = real("playwright-mcp") else {
        return;
    };
    if !browser.exists() {
        println!("skipped: tests/vscode/provision did not install a browser");
        return;
    }
    let workspace = Workspace::new(FILES);
    let temporary = workspace.data().with_file_name("temporary");
    fs::create_dir_all(&temporary).unwrap();
    configure(
        &workspace,
        &json!({ "web": {
            "command": playwright, "idle": 8, "env": { "TMPDIR": temporary },
            "args": ["--headless", "--isolated", "--no-sandbox", "--executable-path", browser, "--output-dir", temporary],
        } }),
    );
    let mut hub = open(&workspace, json!({}));
    let page = "data:text/html,<title>first</title><button onclick=\"document.title='second'\">Press</button>";
    let result = hub.call("web__browser_navigate", &json!({ "url": page }));
    assert!(text(&result).contains("Page Title: first"), "{result}");
    assert!(
        text(&hub.call("web__browser_snapshot", &json!({}))).contains("button \"Press\" [ref=e2]")
    );
    let result = hub.call(
        "web__browser_click",
        &json!({ "element": "Press", "ref": "e2", "target": "e2" }),
    );
    assert!(text(&result).contains("Page Title: second"), "{result}");
    let result = hub.call("web__browser_take_screenshot", &json!({}));
    assert_eq!(result["content"][1]["type"], "image", "{result}");
    let marker = temporary.to_str().unwrap();
    assert!(
        running_with(marker)
            .iter()
            .any(|line| line.contains("user-data-dir")),
        "no browser"
    );
    wait_for_state(&workspace, "web", "idle");
    let started = Instant::now();
    while !running_with(marker).is_empty() {
        assert!(started.elapsed() < TIMEOUT, "{:?}", running_with(marker));
        thread::sleep(Duration::from_millis(50));
    }
    // The next call starts it again.
    let result = hub.call("web__browser_navigate", &json!({ "url": page }));
    assert!(text(&result).contains("Page Title: first"), "{result}");
    assert_eq!(hub.end(), Some(0));
    assert_eq!(running_with(marker), Vec::<String>::new());
}
