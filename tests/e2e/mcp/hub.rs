//! Servers of the user in `sightline mcp`, with real servers of `tests/provide/mcp`.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    TIMEOUT,
    servers::{FILES, SECRETS, Session, real},
};
use crate::harness::{Workspace, program};

fn config(workspace: &Workspace) -> PathBuf {
    workspace.data().with_file_name("config")
}

/// Runs `sightline mcp` with an isolated configuration.
pub(super) fn mcp(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("mcp").args(arguments);
    command
        .arg("--storage")
        .arg(workspace.data())
        .arg("--root")
        .arg(workspace.root())
        .current_dir(workspace.root())
        .env("HOME", workspace.data().with_file_name("home"))
        .env("XDG_CONFIG_HOME", config(workspace))
        .env("SECRET_X", "of our environment")
        .env("TOKEN_SOURCE", "of-the-configuration");
    command
}

pub(super) fn run(workspace: &Workspace, arguments: &[&str]) -> (String, bool) {
    let Output {
        stdout,
        stderr,
        status,
    } = mcp(workspace, arguments).output().unwrap();
    let text = [stdout, stderr].concat();
    (String::from_utf8(text).unwrap(), status.success())
}

pub(super) fn configure(workspace: &Workspace, servers: &Value) {
    let folder = config(workspace).join("sightline");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("mcp.json"),
        json!({ "mcpServers": servers }).to_string(),
    )
    .unwrap();
}

pub(super) fn open(workspace: &Workspace, capabilities: Value) -> Session {
    let mut session = Session::start(&mut mcp(workspace, &[]));
    session.capabilities = capabilities;
    session.initialize();
    session
}

pub(super) fn names(session: &mut Session) -> Vec<String> {
    let list = session.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}

/// Returns a definition of a server as agents get it.
pub(super) fn as_hosted(server: &str, definition: &Value) -> Value {
    let mut hosted = definition.clone();
    hosted["name"] = format!("{server}__{}", definition["name"].as_str().unwrap()).into();
    if let Some(title) = definition["title"].as_str() {
        hosted["title"] = format!("{server}: {title}").into();
    }
    hosted
}

/// Returns the state that `sightline mcp list` prints, when it is this one.
pub(super) fn wait_for_state(workspace: &Workspace, name: &str, state: &str) -> Value {
    let started = Instant::now();
    loop {
        let (text, _) = run(workspace, &["list", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        let one = listed.into_iter().find(|one| one["name"] == name).unwrap();
        if one["state"] == state {
            return one;
        }
        assert!(started.elapsed() < TIMEOUT, "{one}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn lists_and_results_of_servers_are_complete() {
    let (Some(everything), Some(files)) =
        (real("mcp-server-everything"), real("mcp-server-filesystem"))
    else {
        return;
    };
    let workspace = Workspace::new(FILES);
    let root = workspace.root();
    configure(
        &workspace,
        &json!({
            "all": { "command": everything, "args": ["stdio"] },
            "fs": { "command": files, "args": ["${workspaceFolder}"], "tools": { "deny": ["write_*"] } },
        }),
    );
    let calls = [
        ("echo", json!({ "message": "hi" })),
        ("get-structured-content", json!({ "location": "Chicago" })),
        ("get-tiny-image", json!({})),
        (
            "get-annotated-message",
            json!({ "messageType": "error", "includeImage": true }),
        ),
    ];
    let mut direct = Session::start(Command::new(&everything).arg("stdio"));
    direct.capabilities = json!({ "roots": {} });
    direct.initialize();
    let lists = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ];
    // It adds tools after a moment.
    let mut wanted = direct.request("tools/list", &json!({}));
    for _ in 0..3 {
        wanted = direct.request("tools/list", &json!({}));
    }
    let mut hub = open(&workspace, json!({}));
    let names = names(&mut hub);
    assert!(
        names.contains(&"read_file".to_owned()) && names.contains(&"fs__read_file".to_owned()),
        "{names:?}"
    );
    assert!(!names.contains(&"fs__write_file".to_owned()), "{names:?}");
    let listed = hub.request("tools/list", &json!({}))["result"]["tools"].clone();
    for tool in wanted["result"]["tools"].as_array().unwrap() {
        let tool = as_hosted("all", tool);
        assert!(listed.as_array().unwrap().contains(&tool), "{tool}");
    }
    for list in &lists[1..] {
        let (mut own, hosted) = (
            direct.request(list, &json!({})),
            hub.request(list, &json!({})),
        );
        let prompts = own["result"]
            .get_mut("prompts")
            .and_then(Value::as_array_mut);
        for prompt in prompts.into_iter().flatten() {
            *prompt = as_hosted("all", prompt);
        }
        own["result"].as_object_mut().unwrap().remove("nextCursor");
        assert_eq!(own["result"], hosted["result"], "{list}");
    }
    for (tool, arguments) in &calls {
        assert_eq!(
            direct.call(tool, arguments),
            hub.call(&format!("all__{tool}"), arguments),
            "{tool}"
        );
    }
    let prompt = json!({ "name": "args-prompt", "arguments": { "city": "Rome" } });
    let hosted = json!({ "name": "all__args-prompt", "arguments": { "city": "Rome" } });
    assert_eq!(
        direct.request("prompts/get", &prompt)["result"],
        hub.request("prompts/get", &hosted)["result"]
    );
    // Our own tools, and the rules.
    assert!(text(&hub.call("read_file", &json!({ "path": "a.txt" }))).contains("alpha"));
    let read = |name: &str| json!({ "path": root.join(name) });
    assert_eq!(
        text(&hub.call("fs__read_text_file", &read("a.txt"))),
        "alpha\n"
    );
    for name in [".env", "private/key.txt"] {
        let result = hub.call("fs__read_text_file", &read(name));
        assert!(text(&result).contains(".clineignore:"), "{result}");
    }
    // Its arguments do not count after the roots, which are those of the workspace.
    let folders = hub.call("fs__list_allowed_directories", &json!({}));
    assert_eq!(
        text(&folders),
        format!("Allowed directories:\n{}", root.display())
    );
    let denied = hub.request(
        "tools/call",
        &json!({ "name": "fs__write_file", "arguments": read("x") }),
    );
    assert_eq!(denied["error"]["code"], -32602, "{denied}");
    // Their programs may be gone: the lists are known.
    assert_eq!(hub.end(), Some(0));
    for secret in SECRETS {
        assert!(
            !fs::read_dir(workspace.data().join("mcp/log"))
                .unwrap()
                .any(|file| {
                    fs::read_to_string(file.unwrap().path())
                        .unwrap()
                        .contains(secret)
                })
        );
    }
    let mut warm = open(&workspace, json!({}));
    assert_eq!(self::names(&mut warm), names);
    let one = wait_for_state(&workspace, "fs", "idle");
    assert_eq!(one["pid"], Value::Null, "{one}");
    assert_eq!(warm.end(), Some(0));
}

#[test]
fn progress_cancellation_and_questions_reach_the_other_side() {
    let Some(everything) = real("mcp-server-everything") else {
        return;
    };
    let workspace = Workspace::new(FILES);
    configure(
        &workspace,
        &json!({ "all": { "command": everything, "args": ["stdio"], "timeout": 6, "env": { "API_TOKEN": "${TOKEN_SOURCE}" } } }),
    );
    let mut hub = open(
        &workspace,
        json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": { "listChanged": true } }),
    );
    let names = names(&mut hub);
    assert!(
        names.contains(&"all__trigger-elicitation-request".to_owned()),
        "{names:?}"
    );
    // Longer than the timeout, with progress.
    let long = json!({ "name": "all__trigger-long-running-operation", "arguments": { "duration": 9, "steps": 18 }, "_meta": { "progressToken": "mine" } });
    let id = hub.begin("tools/call", &long);
    let mut progress = Vec::new();
    let answer = loop {
        let message = hub.next();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "mine", "{message}");
            progress.push(message["params"]["progress"].as_f64().unwrap());
        } else if message["id"] == id {
            break message;
        }
    };
    assert!(
        answer["result"]["isError"] != true && progress.len() >= 16 && progress.is_sorted(),
        "{answer} {progress:?}"
    );
    // The same for an agent that wants no progress.
    let quiet = json!({ "name": "all__trigger-long-running-operation", "arguments": { "duration": 7, "steps": 14 } });
    let answer = hub.request("tools/call", &quiet);
    assert!(answer["result"]["isError"] != true, "{answer}");
    let count = hub
        .seen
        .iter()
        .filter(|line| line.contains("notifications/progress"));
    assert_eq!(count.count(), progress.len());
    // A call that is cancelled is not answered, and others are.
    let slow = json!({ "name": "all__trigger-long-running-operation", "arguments": { "duration": 60, "steps": 600 } });
    let cancelled = hub.begin("tools/call", &slow);
    hub.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": cancelled } }));
    let echo = hub.call("all__echo", &json!({ "message": "hi" }));
    assert_eq!(text(&echo), "Echo: hi");
    assert!(
        hub.seen
            .iter()
            .all(|line| !line.contains(&format!("\"id\":{cancelled},")))
    );
    // A question of the server.
    let id = hub.begin(
        "tools/call",
        &json!({ "name": "all__trigger-elicitation-request", "arguments": {} }),
    );
    let question = loop {
        let message = hub.next();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert!(
        question["params"]["message"]
            .as_str()
            .unwrap()
            .starts_with("all: "),
        "{question}"
    );
    hub.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } }));
    let answer = hub.response(id);
    assert!(answer.to_string().contains("decline"), "{answer}");
    // A sampling.
    let id = hub.begin(
        "tools/call",
        &json!({ "name": "all__trigger-sampling-request", "arguments": { "prompt": "say it" } }),
    );
    let asked = loop {
        let message = hub.next();
        if message["method"] == "sampling/createMessage" {
            break message;
        }
    };
    assert!(
        asked["params"]["messages"].to_string().contains("say it"),
        "{asked}"
    );
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "it is said" }, "model": "m" });
    hub.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": said }));
    let answer = hub.response(id);
    assert!(answer.to_string().contains("it is said"), "{answer}");
    // Roots are those of the workspace, and variables those of the configuration.
    let roots = hub.call("all__get-roots-list", &json!({}));
    assert!(
        text(&roots).contains(&workspace.uri("")[..workspace.uri("").len() - 1]),
        "{roots}"
    );
    let variables = hub.call("all__get-env", &json!({})).to_string();
    assert!(
        variables.contains("of-the-configuration") && !variables.contains("of our environment"),
        "{variables}"
    );
    for arguments in [&["list"][..], &["list", "--json"], &["log", "all"]] {
        let (text, done) = run(&workspace, arguments);
        assert!(done && !text.contains("of-the-configuration"), "{text}");
    }
    assert_eq!(hub.end(), Some(0));
    // An agent that cannot answer questions is not offered the tools for them.
    let mut plain = open(&workspace, json!({}));
    for tool in ["trigger-elicitation-request", "trigger-sampling-request"] {
        assert!(!self::names(&mut plain).contains(&format!("all__{tool}")));
    }
}

#[test]
fn a_server_that_fails_concerns_only_itself() {
    let Some(time) = real("mcp-server-time") else {
        return;
    };
    let workspace = Workspace::new(FILES);
    let servers = |start_timeout: u64| {
        json!({
            "good": { "command": time },
            "gone": { "command": "no-such-program" },
            "slow": { "command": "sleep", "args": ["600"], "startTimeout": start_timeout },
            "noise": { "command": "sh", "args": ["-c", "echo noise; echo error >&2; exit 3"] },
            "bad__name": { "command": "true" },
        })
    };
    configure(&workspace, &servers(2));
    let mut hub = open(&workspace, json!({}));
    let names = names(&mut hub);
    assert!(
        names.contains(&"good__get_current_time".to_owned()),
        "{names:?}"
    );
    for (name, reason) in [
        ("gone", "there is no program no-such-program"),
        ("slow", "it did not start within 2 s"),
        ("noise", "it ended with exit code 3"),
        ("bad__name", "mcp.json:1: invalid name"),
    ] {
        let one = wait_for_state(&workspace, name, "failed");
        assert!(one["reason"].as_str().unwrap().contains(reason), "{one}");
    }
    let (log, _) = run(&workspace, &["log", "noise"]);
    assert!(log.contains("noise\n") && log.contains("error\n"), "{log}");
    assert_eq!(hub.end(), Some(0));
    // The next session does not wait for a server that failed.
    configure(&workspace, &servers(600));
    let mut hub = open(&workspace, json!({}));
    assert_eq!(self::names(&mut hub), names);
    wait_for_state(&workspace, "slow", "starting");
    // A crash during a call is an error, nothing is repeated, and a later call starts the server again.
    let call = json!({ "timezone": "UTC" });
    assert!(text(&hub.call("good__get_current_time", &call)).contains("UTC"));
    let pid = wait_for_state(&workspace, "good", "ready")["pid"]
        .as_u64()
        .unwrap();
    assert!(
        Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    let started = Instant::now();
    loop {
        let result = hub.call("good__get_current_time", &call);
        if result["isError"] != true {
            break;
        }
        assert!(
            text(&result).starts_with("sightline: the server good failed"),
            "{result}"
        );
        assert!(started.elapsed() < TIMEOUT, "{result}");
        thread::sleep(Duration::from_millis(100));
    }
    // It is switched off and on in the session.
    assert!(run(&workspace, &["disable", "good"]).1);
    wait_for_state(&workspace, "good", "disabled");
    assert!(!self::names(&mut hub).contains(&"good__get_current_time".to_owned()));
    assert!(run(&workspace, &["enable", "good"]).1);
    wait_for_state(&workspace, "good", "idle");
    assert!(self::names(&mut hub).contains(&"good__get_current_time".to_owned()));
    assert!(!run(&workspace, &["enable", "other"]).1);
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn servers_of_a_project_run_after_they_were_trusted() {
    let Some(time) = real("mcp-server-time") else {
        return;
    };
    let workspace = Workspace::new(FILES);
    let entry = |argument: &str| {
        let script = format!("touch started; exec {} {argument}", time.display());
        json!({ "mcpServers": { "p": { "command": "sh", "args": ["-c", script] } } }).to_string()
    };
    workspace.write(".mcp.json", &entry(""));
    let mut hub = open(&workspace, json!({}));
    assert!(!names(&mut hub).iter().any(|name| name.starts_with("p__")));
    let refused = hub.request(
        "tools/call",
        &json!({ "name": "p__get_current_time", "arguments": { "timezone": "UTC" } }),
    );
    assert!(refused["error"].is_object(), "{refused}");
    assert!(
        run(&workspace, &["list"])
            .0
            .contains("sightline mcp trust p")
    );
    assert!(!workspace.path("started").exists());
    let (text, done) = run(&workspace, &["trust", "p"]);
    assert!(done && text.contains("touch started"), "{text}");
    wait_for_state(&workspace, "p", "idle");
    assert!(names(&mut hub).contains(&"p__get_current_time".to_owned()));
    assert!(workspace.path("started").exists());
    // Another argument is another program.
    fs::remove_file(workspace.path("started")).unwrap();
    workspace.write(".mcp.json", &entry("--local-timezone UTC"));
    wait_for_state(&workspace, "p", "untrusted");
    assert!(!names(&mut hub).iter().any(|name| name.starts_with("p__")));
    assert!(!workspace.path("started").exists());
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn servers_are_added_removed_and_moved_byte_for_byte() {
    let workspace = Workspace::new(FILES);
    let home = workspace.data().with_file_name("home");
    fs::create_dir_all(&home).unwrap();
    let file = config(&workspace).join("sightline/mcp.json");
    for (arguments, wanted) in [
        (&["add", "playwright"][..], "added playwright"),
        (&["add", "https://mcp.example.com/sse"], "added example"),
        (&["list"], "playwright  idle"),
        (&["remove", "example"], "removed example"),
    ] {
        let (text, done) = run(&workspace, arguments);
        assert!(done && text.contains(wanted), "{arguments:?}: {text}");
    }
    for (arguments, wanted) in [
        (&["add", "playwright"][..], "remove it first"),
        (&["add", "none"], "is not known"),
        (&["remove", "none"], "there is no server none"),
    ] {
        let (text, done) = run(&workspace, arguments);
        assert!(!done && text.contains(wanted), "{arguments:?}: {text}");
    }
    let claude = "{\n  // mine\n  \"mcpServers\": {\n    \"x\": {\"command\": \"a\"},\n    \"notes\":   {\"command\": \"notes\", \"args\": [\"-v\"]}\n  }, \"z\": 1\n}\n";
    fs::write(home.join(".claude.json"), claude).unwrap();
    let (text, done) = run(&workspace, &["adopt", "notes"]);
    let next = "sightline agents install --agent claude --only mcp";
    assert!(done && text.contains(next), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // It may contain tokens.
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let left = fs::read_to_string(home.join(".claude.json")).unwrap();
    assert!(
        !left.contains("notes") && left.contains("// mine"),
        "{left}"
    );
    assert!(fs::read_to_string(&file).unwrap().contains("\"-v\""));
    let (text, done) = run(&workspace, &["release", "notes"]);
    assert!(done, "{text}");
    assert_eq!(
        fs::read_to_string(home.join(".claude.json")).unwrap(),
        claude
    );
    assert!(!fs::read_to_string(&file).unwrap().contains("notes"));
    // One that was removed here is moved back too.
    for arguments in [
        ["adopt", "notes"],
        ["remove", "notes"],
        ["release", "notes"],
    ] {
        let (text, done) = run(&workspace, &arguments);
        assert!(done, "{arguments:?}: {text}");
    }
    assert_eq!(
        fs::read_to_string(home.join(".claude.json")).unwrap(),
        claude
    );
    assert!(!run(&workspace, &["release", "notes"]).1);
    // A server that the agent has itself is not offered again.
    configure(
        &workspace,
        &json!({ "x": { "command": "true" }, "same": { "command": "notes", "args": ["-v"] } }),
    );
    let mut hub = Session::start(&mut mcp(&workspace, &[]));
    hub.name = "claude-code".to_owned();
    hub.initialize();
    wait_for_state(&workspace, "x", "disabled");
    wait_for_state(&workspace, "same", "disabled");
    assert_eq!(hub.end(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn an_isolated_server_cannot_open_denied_files() {
    // A server that reads what it likes: its only tool returns the size of a file, or why it cannot.
    let script = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        result = {"tools": [{"name": "size", "inputSchema": {"type": "object"}}]}
    if request["method"] == "tools/call":
        try: text = "it has %d bytes" % len(open(".env").read())
        except OSError as error: text = "error %d" % error.errno
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;
    let workspace = Workspace::new(FILES);
    let server =
        |isolate: bool| json!({ "command": "python3", "args": ["-c", script], "isolate": isolate });
    configure(
        &workspace,
        &json!({ "open": server(false), "hidden": server(true) }),
    );
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    assert_eq!(text(&hub.call("open__size", &json!({}))), "it has 30 bytes");
    let hidden = hub.call("hidden__size", &json!({}));
    // Where namespaces are forbidden, it does not start.
    let refused = text(&hidden).contains("exit code 125");
    assert!(refused || text(&hidden) == "error 13", "{hidden}");
    assert_eq!(hub.end(), Some(0));
}
