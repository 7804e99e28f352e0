//! `sightline mcp wrap` with real servers of `tests/provide/mcp`, and with programs that do not end.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};
use sightline_testing::git;

use super::TIMEOUT;
use crate::harness::{Workspace, program};

pub(super) const FILES: &[(&str, &str)] = &[
    (".clineignore", ".env\nprivate/\n"),
    (".env", "API_KEY=sk-live-51H8x9JkLmNoP\n"),
    ("a.txt", "alpha\n"),
    ("private/key.txt", "the key that no agent sees\n"),
    ("sub/b.txt", "beta\n"),
];
pub(super) const SECRETS: &[&str] = &["sk-live-51H8x9JkLmNoP", "no agent sees"];

/// A client that keeps every line, as it was sent.
pub(super) struct Session {
    pub(super) process: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    pub(super) seen: Vec<String>,
    pub(super) capabilities: Value,
    pub(super) name: String,
    /// The root that servers get when they ask for it.
    pub(super) root: Option<String>,
    id: u64,
}

impl Session {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            input: process.stdin.take(),
            process,
            lines,
            seen: Vec::new(),
            capabilities: json!({}),
            name: "test".to_owned(),
            root: None,
            id: 0,
        }
    }

    pub(super) fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities,
            "clientInfo": { "name": self.name, "version": "1" },
        });
        let result = self.request("initialize", &params)["result"].clone();
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        result
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub(super) fn send_text(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends the input.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    pub(super) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(super) fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(TIMEOUT).expect("no message");
        self.seen.push(line.clone());
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for the response to a request.
    pub(super) fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["method"] == "roots/list"
                && let Some(root) = &self.root
            {
                let result = json!({ "roots": [{ "uri": root }] });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            }
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.response(id)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", &params)["result"].clone()
    }

    pub(super) fn end(mut self) -> Option<i32> {
        self.close();
        self.process.wait().unwrap().code()
    }
}

/// Returns the path of a real server. `None`, with a message, if it was not downloaded.
pub(super) fn real(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp");
    let places = ["node/node_modules/.bin", "python/bin"];
    let mut places = places.iter().map(|place| folder.join(place).join(name));
    let found = places.find(|path| path.exists());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "tests/provide/mcp did not install {name}"
        );
        println!("skipped: tests/provide/mcp did not install {name}");
    }
    found.map(|path| path.canonicalize().unwrap_or(path))
}

/// Returns the browser for servers that use one. They list their tools without it.
pub(super) fn browser() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/vscode/browser/chromium")
}

/// Returns all servers: a name, the program, and its arguments in a folder.
pub(super) fn all(root: &str) -> [(&'static str, &'static str, Vec<String>); 8] {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let browser = browser().to_str().unwrap().to_owned();
    [
        ("fs", "mcp-server-filesystem", words(&[root])),
        ("all", "mcp-server-everything", words(&["stdio"])),
        ("memory", "mcp-server-memory", Vec::new()),
        ("time", "mcp-server-time", Vec::new()),
        ("git", "mcp-server-git", words(&["--repository", root])),
        ("fetch", "mcp-server-fetch", Vec::new()),
        (
            "web",
            "playwright-mcp",
            words(&[
                "--headless",
                "--isolated",
                "--no-sandbox",
                "--executable-path",
                &browser,
            ]),
        ),
        (
            "devtools",
            "chrome-devtools-mcp",
            words(&[
                "--headless",
                "--isolated",
                "--executablePath",
                &browser,
                "--chromeArg=--no-sandbox",
            ]),
        ),
    ]
}

pub(super) fn wrap(workspace: &Workspace) -> Command {
    let mut command = program();
    command
        .args(["mcp", "wrap", "--storage"])
        .arg(workspace.data())
        .arg("--root")
        .arg(workspace.root())
        .arg("--")
        .current_dir(workspace.root());
    command
}

/// Returns the command of a server, direct or wrapped.
fn server(workspace: &Workspace, path: &Path, arguments: &[&str], wrapped: bool) -> Command {
    let mut command = if wrapped {
        let mut command = wrap(workspace);
        command.arg(path);
        command
    } else {
        let mut command = Command::new(path);
        command.current_dir(workspace.root());
        command
    };
    command.args(arguments);
    command
}

/// Returns calls of such a server: a tool and its arguments.
pub(super) fn calls(name: &str, workspace: &Workspace) -> Vec<(&'static str, Value)> {
    let root = workspace.root();
    match name {
        "fs" => vec![
            ("read_text_file", json!({ "path": workspace.path("a.txt") })),
            ("list_directory", json!({ "path": root })),
            (
                "directory_tree",
                json!({ "path": root, "excludePatterns": [".git"] }),
            ),
            ("read_text_file", json!({ "path": workspace.path("none") })),
        ],
        "all" => vec![
            ("echo", json!({ "message": "hi" })),
            ("get-sum", json!({ "a": 1, "b": 2 })),
            ("get-structured-content", json!({ "location": "Chicago" })),
            ("get-tiny-image", json!({})),
            (
                "get-annotated-message",
                json!({ "messageType": "success", "includeImage": true }),
            ),
            ("echo", json!({})),
            (
                "trigger-long-running-operation",
                json!({ "duration": 1, "steps": 4 }),
            ),
        ],
        "memory" => vec![("read_graph", json!({}))],
        "time" => vec![("get_current_time", json!({ "timezone": "none" }))],
        "git" => vec![
            ("git_status", json!({ "repo_path": root })),
            ("git_log", json!({ "repo_path": "/none" })),
        ],
        "fetch" => vec![("fetch", json!({ "url": "http://127.0.0.1:9/" }))],
        "web" => vec![("browser_navigate", json!({ "url": "file:///etc/hosts" }))],
        _ => vec![("wait_for", json!({}))],
    }
}

#[test]
fn a_wrapped_server_is_transparent() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let root = workspace.root().to_str().unwrap().to_owned();
    git::init(&workspace.root());
    for (name, program, arguments) in all(&root) {
        let Some(path) = real(program) else { continue };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let seen = [false, true].map(|wrapped| {
            let mut session = Session::start(&mut server(&workspace, &path, &arguments, wrapped));
            session.request("server/discover", &json!({}));
            session.initialize();
            session.request("tools/list", &json!({}));
            for (tool, arguments) in calls(name, &workspace) {
                let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "mine" } });
                session.request("tools/call", &params);
            }
            session.request("resources/list", &json!({}));
            session.request("no/such/method", &json!({ "a": 1 }));
            let mut seen = std::mem::take(&mut session.seen);
            assert_eq!(session.end(), Some(0), "{name}");
            // Other notifications come at any time.
            seen.retain(|line| line.contains("\"id\"") || line.contains("notifications/progress"));
            seen
        });
        assert_eq!(seen[0].len(), seen[1].len(), "{name}");
        for (direct, wrapped) in seen[0].iter().zip(&seen[1]) {
            assert_eq!(direct, wrapped, "{name}");
        }
    }
}

/// Returns the entries of a list of files, without its totals.
fn entries(list: &Value) -> Vec<String> {
    let lines = list
        .as_str()
        .unwrap()
        .lines()
        .map(|line| line.trim_end_matches(',').to_owned());
    let is_entry = |line: &String| {
        line.contains("[FILE]")
            || line.contains("[DIR]")
            || line.contains('/')
            || line.contains("\"name\"")
    };
    // Members of objects may be in another order.
    let mut entries: Vec<String> = lines.filter(is_entry).collect();
    entries.sort();
    entries
}

#[cfg(unix)]
#[test]
fn a_wrapped_server_does_not_show_denied_files() {
    let Some(path) = real("mcp-server-filesystem") else {
        return;
    };
    let workspace = Workspace::new(FILES);
    std::os::unix::fs::symlink("../private/key.txt", workspace.root().join("sub/link.txt"))
        .unwrap();
    let root = workspace.root().to_str().unwrap().to_owned();
    let in_root = |name: &str| format!("{root}/{name}");
    let mut session = Session::start(&mut server(&workspace, &path, &[&root], true));
    session.initialize();
    for arguments in [
        json!({ "path": in_root(".env") }),
        json!({ "path": in_root("private/key.txt") }),
        json!({ "path": in_root("sub/link.txt") }),
        json!({ "path": format!("file://{root}/.env") }),
        json!({ "path": format!("file://{root}/%2Eenv") }),
        json!({ "paths": [in_root("a.txt"), in_root(".env")] }),
    ] {
        let tool = if arguments["paths"].is_array() {
            "read_multiple_files"
        } else {
            "read_text_file"
        };
        let result = session.call(tool, &arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("sightline: ") && text.contains(".clineignore:"),
            "{arguments}: {result}"
        );
        assert_eq!(result["isError"], true, "{arguments}");
    }
    let mut direct = Session::start(&mut server(&workspace, &path, &[&root], false));
    direct.initialize();
    for (tool, path, shown) in [
        ("directory_tree", &*root, "b.txt"),
        ("list_directory", &root, "a.txt"),
        ("list_directory", &in_root("sub"), "b.txt"),
        ("list_directory_with_sizes", &root, "a.txt"),
        ("search_files", &root, "sub/b.txt"),
    ] {
        let result = session.call(tool, &json!({ "path": path, "pattern": "**" }));
        let all = result.to_string();
        for name in [".env", "private", "key.txt", "link.txt"] {
            assert!(!all.contains(name), "{tool} {path}: {all}");
        }
        assert!(
            all.contains(shown) && all.contains("hidden.]"),
            "{tool} {path}: {all}"
        );
        // Other entries are there.
        let own = direct.call(tool, &json!({ "path": path, "pattern": "**" }));
        let [own, shown] = [&own, &result].map(|result| entries(&result["content"][0]["text"]));
        let hidden = |entry: &String| {
            [".clineignore", ".env", "private", "key.txt", "link.txt"]
                .iter()
                .any(|name| entry.contains(name))
        };
        let others: Vec<String> = own.into_iter().filter(|entry| !hidden(entry)).collect();
        assert_eq!(others, shown, "{tool} {path}");
    }
    let listed = session.call("list_directory", &json!({ "path": in_root("sub") }));
    assert_eq!(
        listed["content"][1]["text"], "[Sightline: 1 name hidden.]",
        "{listed}"
    );
    // A search in a folder without denied files is left to the server.
    let read = session.call("read_text_file", &json!({ "path": in_root("a.txt") }));
    assert_eq!(read["content"][0]["text"], "alpha\n");
    for secret in SECRETS {
        assert!(
            session.seen.iter().all(|line| !line.contains(secret)),
            "{secret}"
        );
    }
}

#[test]
fn git_does_not_show_denied_files() {
    let Some(path) = real("mcp-server-git") else {
        return;
    };
    let workspace = Workspace::new(FILES);
    git::init(&workspace.root());
    git::run(&workspace.root(), &["add", "-f", ".env", "a.txt"]);
    git::run(&workspace.root(), &["commit", "-qm", "Add files"]);
    workspace.write(".env", "API_KEY=sk-live-51H8x9JkLmNoP\nOTHER=1\n");
    workspace.write("a.txt", "alpha\nomega\n");
    let mut session = Session::start(&mut server(&workspace, &path, &[], true));
    session.initialize();
    let root = json!(workspace.root());
    for (tool, more, shown) in [
        ("git_status", json!({}), "a.txt"),
        ("git_diff_unstaged", json!({}), "+omega"),
        ("git_diff", json!({ "target": "HEAD" }), "+omega"),
        ("git_show", json!({ "revision": "HEAD" }), "+alpha"),
        ("git_log", json!({}), "Add files"),
    ] {
        let mut arguments = more;
        arguments["repo_path"] = root.clone();
        let result = session.call(tool, &arguments);
        let all = result.to_string();
        assert!(all.contains(shown), "{tool}: {all}");
        for hidden in [
            "API_KEY",
            "OTHER",
            "sk-live",
            "private",
            "+++ b/.env",
            "a/.env",
        ] {
            assert!(!all.contains(hidden), "{tool}: {all}");
        }
        if tool != "git_log" && tool != "git_status" {
            assert!(
                all.contains("the contents of .env are hidden"),
                "{tool}: {all}"
            );
        }
    }
}

#[test]
fn secrets_are_hidden_wherever_a_server_sends_them() {
    let workspace = Workspace::new(FILES);
    // A program that may read what it likes, and sends it in every kind of message.
    let script = r#"while read -r line; do
      secret=$(cut -d= -f2 .env)
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"'$secret'"}}'
      echo '{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"'$secret'","data":{"path":".env"}}}'
      echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"it is '$secret'!"},
        {"type":"resource","resource":{"uri":"file:private/key.txt","text":"x"}},
        {"type":"resource_link","uri":"notes://x/.env","name":"n"}],
        "structuredContent":{"all":[{"path":"a.txt"},{"path":"private/key.txt","size":1}],"key":"'$secret'","n":1.50}}}' | tr -d '\n'; echo
    done"#;
    let mut session = Session::start(wrap(&workspace).args(["sh", "-c", script]));
    session.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }),
    );
    assert_eq!(session.next()["params"]["data"], "[hidden: .env]");
    let error = session.next()["error"].clone();
    assert_eq!(
        error,
        json!({ "code": 7, "message": "[hidden: .env]", "data": { "path": "" } })
    );
    session.send(
        &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "x" } }),
    );
    let result = session.response(2)["result"].clone();
    let texts: Vec<&str> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "it is [hidden: .env]!",
            "[Sightline: the contents of private/key.txt are hidden from agents by .clineignore:2.]",
            "[Sightline: the contents of x/.env are hidden from agents by .clineignore:1.]",
            "[Sightline: 1 name hidden.]",
        ]
    );
    let structured = json!({ "all": [{ "path": "a.txt" }], "key": "[hidden: .env]", "n": 1.5 });
    assert_eq!(result["structuredContent"], structured);
}

#[test]
fn lines_that_are_no_messages_are_answered_or_left_out() {
    let workspace = Workspace::new(FILES);
    // Prints lines that are no messages, and each line that it gets.
    let script =
        "echo starting; echo '{\"x\":1}'; while read -r line; do echo \"$line\" >> got; done";
    let mut session = Session::start(wrap(&workspace).args(["sh", "-c", script]));
    for (line, code) in [("{", -32700), ("[1]", -32600), ("{\"id\":1}", -32600)] {
        writeln!(session.input.as_mut().unwrap(), "{line}").unwrap();
        assert_eq!(session.next()["error"]["code"], code, "{line}");
    }
    // A batch is checked message by message, and two members with one name are no message.
    let read = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": ".env" } });
    let input = session.input.as_mut().unwrap();
    writeln!(input, "{}", json!([read(1), read(2)])).unwrap();
    let mut answered = [session.next()["id"].clone(), session.next()["id"].clone()];
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, [1, 2]);
    let twice = r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"a.txt","uri":".env"}}"#;
    writeln!(session.input.as_mut().unwrap(), "{twice}").unwrap();
    assert_eq!(session.next()["id"], 3);
    assert_eq!(session.end(), Some(0));
    assert!(!workspace.root().join("got").exists());
}

/// Returns the processes with an argument.
#[cfg(target_os = "linux")]
pub(super) fn with_argument(argument: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_bytes())
    })
    .collect()
}

#[cfg(target_os = "linux")]
pub(super) fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_runs_after_the_end_of_either_side() {
    use std::time::{Duration, Instant};
    let workspace = Workspace::new(FILES);
    for round in 0..super::ends::rounds(24) {
        let time = format!("6000.{}{round}", std::process::id());
        // In the group, in another session, and a program that ignores the end of its input and SIGTERM.
        let script = format!(
            "sleep {time} & setsid sleep {time} & (trap '' TERM; sleep {time}) & \
             setsid sh -c 'sleep {time} & wait' & sleep {time}; true"
        );
        let mut session = Session::start(wrap(&workspace).args(["sh", "-c", &script]));
        let started = Instant::now();
        while with_argument(&time).len() < 5 {
            assert!(started.elapsed() < TIMEOUT, "the server does not start");
            thread::sleep(Duration::from_millis(5));
        }
        match round % 4 {
            0 => kill(session.process.id(), "-KILL"),
            1 => kill(session.process.id(), "-TERM"),
            2 => session.close(),
            // The server itself.
            _ => with_argument(&script)
                .iter()
                .filter(|pid| **pid != session.process.id())
                .for_each(|pid| {
                    let is_shell =
                        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                    if is_shell.trim() == "sh" {
                        kill(*pid, "-KILL");
                    }
                }),
        }
        let ended = Instant::now();
        while !with_argument(&time).is_empty() || !with_argument(&script).is_empty() {
            assert!(
                ended.elapsed() < TIMEOUT,
                "round {round}: {:?} are left",
                with_argument(&time)
            );
            thread::sleep(Duration::from_millis(5));
        }
        session.process.wait().unwrap();
    }
}
