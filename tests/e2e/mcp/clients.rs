//! What agents see of servers in `sightline mcp`: openings, subscriptions, answers of parallel calls.

use std::{
    collections::{BTreeMap, HashSet},
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    TIMEOUT,
    hub::{configure, mcp, names, open, text, wait_for_state},
    servers::{FILES, Session, real},
};
use crate::harness::Workspace;

/// A server in Python. It answers what its first argument has for a method, or for a tool, as written there, and
/// adds what it gets to the file in its second argument.
pub(super) const SCRIPTED: &str = r#"
import json, sys
answers = json.loads(sys.argv[1])
def send(text): print(text, flush=True)
for line in sys.stdin:
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a") as log: log.write(line)
    request = json.loads(line)
    if "id" not in request: continue
    method = request["method"]
    if method == "initialize":
        lists = {name.split("/")[0]: {} for name in answers if name.endswith("/list")}
        default = {"protocolVersion": "2025-11-25", "capabilities": lists, "serverInfo": {"name": "x", "version": "1"}}
    else:
        default = None
    answer = answers.get(request["params"]["name"] if method == "tools/call" else method)
    answer = answer if answer is not None else default and json.dumps(default)
    if answer: send('{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(request["id"]), answer))
"#;

/// Returns the entry of such a server.
pub(super) fn scripted(answers: &Value, log: Option<&std::path::Path>) -> Value {
    let mut arguments = vec!["-c".to_owned(), SCRIPTED.to_owned(), answers.to_string()];
    arguments.extend(log.map(|log| log.to_str().unwrap().to_owned()));
    json!({ "command": "python3", "args": arguments })
}

/// Returns the lines that such a server got.
fn got(log: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const TOOL: &str = r#"{"tools":[{"name":"quick","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}]}"#;
const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

#[test]
fn agents_open_in_their_versions() {
    let workspace = Workspace::new(FILES);
    let log = workspace.data().with_file_name("got");
    let answers = json!({ "tools/list": TOOL, "quick": DONE });
    configure(&workspace, &json!({ "s": scripted(&answers, Some(&log)) }));
    let both = json!({ "elicitation": { "form": {}, "url": {} } });
    for (agent, discovers, version, capabilities) in [
        (
            "claude-code",
            true,
            "2025-11-25",
            json!({ "roots": {}, "elicitation": { "form": {}, "url": {} } }),
        ),
        (
            "copilot",
            true,
            "2025-11-25",
            json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} } }),
        ),
        ("codex-mcp-client", false, "2025-06-18", both),
        (
            "gemini-cli-mcp-client",
            false,
            "2025-06-18",
            json!({ "roots": { "listChanged": true } }),
        ),
        (
            "qwen-code",
            false,
            "2025-11-25",
            json!({ "extensions": { "ui": {} } }),
        ),
        ("opencode", false, "2025-11-25", json!({ "roots": {} })),
        ("Cline", false, "2024-11-05", json!({})),
        ("old", false, "2025-03-26", json!({})),
        ("new", false, "2027-01-01", json!({})),
    ] {
        let mut session = Session::start(&mut mcp(&workspace, &[]));
        if discovers {
            let params =
                json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
            let answer = session.request("server/discover", &params);
            assert_eq!(answer["error"]["code"], -32601, "{agent}: {answer}");
            assert_eq!(session.seen.len(), 1, "{agent}");
        }
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": agent, "version": "1" },
        });
        let answer = session.request("initialize", &params);
        let known = if agent == "new" {
            "2025-11-25"
        } else {
            version
        };
        assert_eq!(answer["result"]["protocolVersion"], known, "{agent}");
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "sightline",
            "{agent}"
        );
        fs::remove_file(&log).ok();
        assert_eq!(
            text(&session.call("s__quick", &json!({}))),
            "done",
            "{agent}"
        );
        // The server gets what the agent can do, and roots always.
        let opened = &got(&log)[0];
        assert_eq!(opened["params"]["protocolVersion"], "2025-11-25", "{agent}");
        let mut wanted = json!({ "roots": {} });
        for name in ["elicitation", "sampling"] {
            if let Some(value) = capabilities.get(name) {
                wanted[name] = value.clone();
            }
        }
        assert_eq!(opened["params"]["capabilities"], wanted, "{agent}");
        assert_eq!(session.end(), Some(0), "{agent}");
    }
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_server() {
    let workspace = Workspace::new(FILES);
    let log = workspace.data().with_file_name("got");
    let answers = json!({ "tools/list": TOOL, "quick": DONE });
    configure(&workspace, &json!({ "s": scripted(&answers, Some(&log)) }));
    let mut hub = open(&workspace, json!({}));
    assert_eq!(text(&hub.call("s__quick", &json!({}))), "done");
    hub.send(&json!({
        "jsonrpc": "2.0", "id": "mine", "method": "tools/call",
        "params": { "name": "s__slow", "arguments": {}, "_meta": { "progressToken": "mine", "x": 1.50 } },
    }));
    let started = Instant::now();
    let call = loop {
        let lines = got(&log);
        if let Some(call) = lines.iter().find(|line| line["params"]["name"] == "slow") {
            break call.clone();
        }
        assert!(started.elapsed() < TIMEOUT, "{lines:?}");
        thread::sleep(Duration::from_millis(5));
    };
    // It has another id and another token there.
    assert!(call["id"].is_u64(), "{call}");
    assert_eq!(
        call["params"]["_meta"],
        json!({ "progressToken": call["id"], "x": 1.5 })
    );
    hub.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "mine", "reason": "enough" },
    }));
    // A call that follows is answered, and is the next that the server gets after the cancellation.
    assert_eq!(text(&hub.call("s__quick", &json!({}))), "done");
    let lines = got(&log);
    let at = lines.iter().position(|line| *line == call).unwrap();
    let cancelled = json!({ "requestId": call["id"], "reason": "enough" });
    assert_eq!(
        lines[at + 1]["method"],
        "notifications/cancelled",
        "{lines:?}"
    );
    assert_eq!(lines[at + 1]["params"], cancelled);
    assert!(hub.seen.iter().all(|line| !line.contains("\"mine\"")));
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn a_server_is_stopped_although_a_cancelled_call_has_no_answer() {
    let workspace = Workspace::new(FILES);
    let log = workspace.data().with_file_name("got");
    let mut server = scripted(&json!({ "tools/list": TOOL, "quick": DONE }), Some(&log));
    server["idle"] = json!(1);
    configure(&workspace, &json!({ "s": server }));
    let mut hub = open(&workspace, json!({}));
    let call = hub.begin("tools/call", &json!({ "name": "s__slow", "arguments": {} }));
    wait_for_state(&workspace, "s", "ready");
    let cancelled = json!({ "requestId": call });
    hub.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    wait_for_state(&workspace, "s", "idle");
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn the_time_for_a_question_is_not_that_of_the_call() {
    let workspace = Workspace::new(FILES);
    let script = r#"
import json, sys
def send(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
call = None
for line in sys.stdin:
    request = json.loads(line)
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request.get("method") == "tools/list":
        result = {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}
    if request.get("method") == "tools/call":
        call = request["id"]
        send({"id": "q", "method": "elicitation/create", "params": {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}})
        continue
    if request.get("id") == "q":
        send({"id": call, "result": {"content": [{"type": "text", "text": request["result"]["action"]}]}})
    elif "id" in request:
        send({"id": request["id"], "result": result})
"#;
    let server = json!({ "command": "python3", "args": ["-c", script], "timeout": 1 });
    configure(&workspace, &json!({ "s": server }));
    let mut hub = open(&workspace, json!({ "elicitation": {} }));
    names(&mut hub);
    let call = hub.begin("tools/call", &json!({ "name": "s__ask", "arguments": {} }));
    let question = loop {
        let message = hub.next();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_eq!(question["params"]["message"], "s: Really?");
    // The user thinks.
    thread::sleep(Duration::from_secs(3));
    hub.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } }));
    assert_eq!(text(&hub.response(call)["result"]), "accept");
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn a_result_that_is_too_long_ends_its_call() {
    let workspace = Workspace::new(FILES);
    // The id is before or after the result.
    let script = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["first", "last", "short"]]}
    if request["method"] == "tools/call":
        name = request["params"]["name"]
        text = "x" * (17 << 20) if name != "short" else "done"
        result = {"content": [{"type": "text", "text": text}]}
        if name == "last":
            print(json.dumps({"result": result, "jsonrpc": "2.0", "id": request["id"]}, separators=(",", ":")), flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;
    configure(
        &workspace,
        &json!({ "s": { "command": "python3", "args": ["-c", script] } }),
    );
    let hub = open(&workspace, json!({}));
    let mut wrapped =
        Session::start(super::servers::wrap(&workspace).args(["python3", "-c", script]));
    wrapped.initialize();
    for (mut session, prefix) in [(hub, "s__"), (wrapped, "")] {
        for name in ["first", "last"] {
            let result = session.call(&format!("{prefix}{name}"), &json!({}));
            assert!(
                text(&result).contains("longer than 16777216 bytes"),
                "{result}"
            );
        }
        assert_eq!(
            text(&session.call(&format!("{prefix}short"), &json!({}))),
            "done"
        );
        assert_eq!(session.end(), Some(0));
    }
}

#[test]
fn updates_and_changes_reach_their_subscriber_once() {
    let Some(everything) = real("mcp-server-everything") else {
        return;
    };
    let workspace = Workspace::new(FILES);
    configure(
        &workspace,
        &json!({ "all": { "command": everything, "args": ["stdio"] } }),
    );
    // It adds tools for an agent that can answer questions, with one notification for each.
    let capabilities = json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
    let [mut subscriber, mut other] = [(); 2].map(|()| open(&workspace, capabilities.clone()));
    let listed = names(&mut subscriber);
    assert_eq!(names(&mut other), listed);
    let uri = "demo://resource/dynamic/text/1";
    for session in [&mut subscriber, &mut other] {
        for tool in [
            "all__toggle-subscriber-updates",
            "all__toggle-simulated-logging",
        ] {
            let answer = session.call(tool, &json!({}));
            assert!(answer["isError"] != true, "{answer}");
        }
    }
    let answer = subscriber.request("resources/subscribe", &json!({ "uri": uri }));
    assert!(answer["result"].is_object(), "{answer}");
    let answer = subscriber.request("logging/setLevel", &json!({ "level": "debug" }));
    assert!(answer["result"].is_object(), "{answer}");
    let mut wanted = HashSet::from(["notifications/resources/updated", "notifications/message"]);
    while !wanted.is_empty() {
        let message = subscriber.next();
        if message["method"] == "notifications/resources/updated" {
            assert_eq!(message["params"]["uri"], uri, "{message}");
        }
        wanted.retain(|method| message["method"] != **method);
    }
    // Its server sends updates every 5 seconds too, which this agent did not ask for.
    other.request("ping", &json!({}));
    for (session, is_subscriber) in [(&subscriber, true), (&other, false)] {
        let count = |method: &str| {
            session
                .seen
                .iter()
                .filter(|line| line.contains(method))
                .count()
        };
        assert_eq!(
            count("resources/updated") > 0,
            is_subscriber,
            "{:?}",
            session.seen
        );
        assert_eq!(
            count("notifications/message") > 0,
            is_subscriber,
            "{:?}",
            session.seen
        );
        // The tools that it adds are in the list that the agent waited for, or in one change of it.
        assert!(count("tools/list_changed") <= 1, "{:?}", session.seen);
    }
    assert_eq!([subscriber.end(), other.end()], [Some(0), Some(0)]);
}

#[test]
fn a_burst_of_changes_is_one_change() {
    let workspace = Workspace::new(FILES);
    // `grow` changes the list of tools four times, `asked` returns how often it was asked for, and `go` changes it
    // without end.
    let script = r#"
import json, sys, threading, time
tools, asked = ["grow", "asked", "go"], 0
def text(*messages): return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
def send(*messages): sys.stdout.write(text(*messages)); sys.stdout.flush()
def grow():
    tools.append("t%d" % len(tools))
    return {"method": "notifications/tools/list_changed"}
def go():
    while True:
        send(grow())
        time.sleep(0.05)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        asked += 1
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    if request["method"] == "tools/call":
        name = request["params"]["name"]
        if name == "grow": send(*[grow() for _ in range(4)])
        if name == "go": threading.Thread(target=go, daemon=True).start()
        result = {"content": [{"type": "text", "text": str(asked)}]}
    send({"id": request["id"], "result": result})
"#;
    configure(
        &workspace,
        &json!({ "s": { "command": "python3", "args": ["-c", script] } }),
    );
    let mut hub = open(&workspace, json!({}));
    assert!(!names(&mut hub).contains(&"s__t3".to_owned()));
    for round in 1..=2 {
        hub.call("s__grow", &json!({}));
        while hub.next()["method"] != "notifications/tools/list_changed" {}
        let names = names(&mut hub);
        assert!(
            names.contains(&format!("s__t{}", 4 * round + 2)),
            "{names:?}"
        );
        let changes = hub.seen.iter().filter(|line| line.contains("list_changed"));
        assert_eq!(changes.count(), round, "{:?}", hub.seen);
        // The server was asked once more too.
        let asked = hub.call("s__asked", &json!({}));
        assert_eq!(text(&asked), (round + 1).to_string());
    }
    // Changes that do not end are reported too.
    hub.call("s__go", &json!({}));
    while hub.next()["method"] != "notifications/tools/list_changed" {}
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn other_methods_reach_the_server_that_they_concern() {
    let workspace = Workspace::new(FILES);
    // It adds what it gets to a file, answers all requests, and asks the agent during `x/ask`.
    let script = r#"
import json, sys
name, log = sys.argv[1:]
def send(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
call = None
for line in sys.stdin:
    with open(log, "a") as file: file.write(line)
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request: continue
    if method is None:
        send({"id": call, "result": {"said": request.get("result")}})
        continue
    if method == "x/ask":
        call = request["id"]
        send({"method": "notifications/y", "params": {"y": 1}})
        send({"method": "notifications/resources/updated", "params": {"uri": "x:/not-subscribed"}})
        send({"id": "q", "method": "y/ask", "params": {"_meta": {"progressToken": "of the server"}}})
        continue
    result = {"by": name, "method": method, "name": request["params"].get("name")}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if method == "tools/list":
        result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        result = {"task": {"taskId": "task of " + name, "status": "working"}}
    send({"id": request["id"], "result": result})
"#;
    let log = |name: &str| workspace.data().with_file_name(format!("got-{name}"));
    let entry =
        |name: &str| json!({ "command": "python3", "args": ["-c", script, name, log(name)] });
    configure(&workspace, &json!({ "one": entry("one") }));
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    let answer = hub.request("x/look", &json!({ "a": 1 }));
    assert_eq!(answer["result"]["method"], "x/look", "{answer}");
    let id = hub.begin("x/ask", &json!({}));
    let question = loop {
        let message = hub.next();
        if message["method"] == "y/ask" {
            break message;
        }
    };
    assert!(hub.seen.iter().any(|line| line.contains("notifications/y")));
    assert!(!hub.seen.iter().any(|line| line.contains("subscribed")));
    for (method, params) in [
        ("notifications/x", json!({ "n": 1 })),
        (
            "notifications/progress",
            json!({ "progressToken": "of the server", "progress": 1 }),
        ),
        (
            "notifications/progress",
            json!({ "progressToken": "of no one", "progress": 1 }),
        ),
        ("notifications/roots/list_changed", json!({})),
    ] {
        hub.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }
    hub.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "x": 1 } }));
    assert_eq!(hub.response(id)["result"]["said"], json!({ "x": 1 }));
    let all = got(&log("one"));
    let notified: Vec<&Value> = all
        .iter()
        .filter(|line| line["id"].is_null() && line["method"] != "notifications/initialized")
        .map(|line| &line["params"])
        .collect();
    let progress = json!({ "progressToken": "of the server", "progress": 1 });
    assert_eq!(notified, [&json!({ "n": 1 }), &progress]);
    // What they name is judged.
    let refused = hub.request("x/look", &json!({ "in": { "file": ".env" } }));
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains(".clineignore:1"), "{refused}");
    let unknown = hub.request("x/look", &json!({ "name": "other__t" }));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert_eq!(got(&log("one")).len(), all.len());
    assert_eq!(hub.end(), Some(0));
    configure(
        &workspace,
        &json!({ "one": entry("one"), "two": entry("two") }),
    );
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    let unclear = hub.request("x/look", &json!({ "a": 1 }));
    assert_eq!(unclear["error"]["code"], -32601, "{unclear}");
    let named = hub.request("x/look", &json!({ "name": "two__t" }));
    assert_eq!(
        named["result"],
        json!({ "by": "two", "method": "x/look", "name": "t" })
    );
    let task = json!({ "name": "two__t", "arguments": {}, "task": { "ttl": 60000 } });
    let task = hub.request("tools/call", &task)["result"]["task"]["taskId"].clone();
    let state = hub.request("tasks/get", &json!({ "taskId": task }));
    assert_eq!(state["result"]["by"], "two", "{state}");
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn parallel_calls_are_answered_to_their_callers() {
    let (Some(everything), Some(files), Some(memory)) = (
        real("mcp-server-everything"),
        real("mcp-server-filesystem"),
        real("mcp-server-memory"),
    ) else {
        return;
    };
    let workspace = Workspace::new(FILES);
    let graph = workspace.data().with_file_name("memory.json");
    configure(
        &workspace,
        &json!({
            "all": { "command": everything, "args": ["stdio"] },
            "fs": { "command": files, "args": ["${workspaceFolder}"] },
            "memory": { "command": memory, "env": { "MEMORY_FILE_PATH": graph } },
        }),
    );
    let (clients, calls) = (10, 20);
    for client in 0..clients {
        workspace.write(
            &format!("file{client}.txt"),
            &format!("content of {client}\n"),
        );
    }
    let mut first = open(&workspace, json!({}));
    names(&mut first);
    assert_eq!(first.end(), Some(0));
    let workspace = &workspace;
    thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let mut session = open(workspace, json!({}));
                let mut wanted = BTreeMap::new();
                for call in 0..calls {
                    let (tool, arguments, answer) = match call % 3 {
                        0 => {
                            let message = format!("{client}-{call}");
                            (
                                "all__echo",
                                json!({ "message": message }),
                                format!("Echo: {client}-{call}"),
                            )
                        }
                        1 => {
                            let path = workspace.path(&format!("file{client}.txt"));
                            (
                                "fs__read_text_file",
                                json!({ "path": path }),
                                format!("content of {client}\n"),
                            )
                        }
                        _ => (
                            "memory__open_nodes",
                            json!({ "names": ["none"] }),
                            String::new(),
                        ),
                    };
                    let params = json!({ "name": tool, "arguments": arguments });
                    wanted.insert(session.begin("tools/call", &params), (tool, answer));
                }
                while !wanted.is_empty() {
                    let message = session.next();
                    let Some(id) = message["id"]
                        .as_u64()
                        .filter(|_| message["method"].is_null())
                    else {
                        continue;
                    };
                    let (tool, answer) = wanted.remove(&id).unwrap_or_else(|| panic!("{message}"));
                    assert_ne!(message["result"]["isError"], true, "{message}");
                    if answer.is_empty() {
                        assert!(
                            message.to_string().contains("entities"),
                            "{tool}: {message}"
                        );
                    } else {
                        assert_eq!(text(&message["result"]), answer, "{tool}");
                    }
                }
                // One process for each server, whatever came at the same time.
                #[cfg(target_os = "linux")]
                assert_eq!(super::ends::children(session.process.id()).len(), 3);
                assert_eq!(session.end(), Some(0));
            });
        }
    });
    for name in ["all", "fs", "memory"] {
        assert_eq!(wait_for_state(workspace, name, "idle")["pid"], Value::Null);
    }
}
