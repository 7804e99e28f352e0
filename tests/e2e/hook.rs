//! `sightline hook`, with the events that the agents send.

mod hook_attacks;
mod hook_checkpoints;
mod hook_context;
mod hook_outside;
mod hook_wiring;

use std::{
    io::Write,
    process::{Output, Stdio},
};
#[cfg(unix)]
use std::{
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};
#[cfg(unix)]
use sightline_local::frame::{FrameReader, write_frame};

use crate::harness::{Server, Workspace, program};
#[cfg(unix)]
use crate::ipc::{listening, sockets};

/// Runs a hook. Returns what it prints. The exit code must be 0.
pub(crate) fn hook(workspace: &Workspace, event: &str, agent: &str, input: &str) -> String {
    hook_with(workspace, event, agent, input, &[])
}

pub(crate) fn hook_with(
    workspace: &Workspace,
    event: &str,
    agent: &str,
    input: &str,
    options: &[&str],
) -> String {
    let output = hook_output(workspace, event, agent, input.as_bytes(), options);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a hook. The exit code must be 0.
pub(crate) fn hook_output(
    workspace: &Workspace,
    event: &str,
    agent: &str,
    input: &[u8],
    options: &[&str],
) -> Output {
    let mut child = program()
        .args(["hook", event, "--agent", agent, "--storage"])
        .arg(workspace.data())
        .args(options)
        .current_dir(workspace.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A hook that ignores its event may not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{event} {agent}");
    output
}

#[test]
fn a_trace_shows_where_the_time_goes() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let tool = json!({ "file_path": workspace.path("a.txt") });
    let input = json!({ "session_id": "s", "cwd": workspace.root(), "tool_name": "Read", "tool_input": tool });
    let input = input.to_string();
    let traced = |options: &[&str]| {
        let output = hook_output(
            &workspace,
            "PreToolUse",
            "claude",
            input.as_bytes(),
            options,
        );
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(traced(&[]), "");
    let trace = traced(&["--trace"]);
    for span in [
        r#"phase="check""#,
        r#"method="sightline/checkAccess""#,
        "time.busy=",
    ] {
        assert!(trace.contains(span), "{span}: {trace}");
    }
}

fn answer(workspace: &Workspace, event: &str, agent: &str, input: &Value) -> Value {
    let text = hook(workspace, event, agent, &input.to_string());
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// An agent: names of its prompt and tool events, and of its input fields.
pub(crate) struct Names {
    pub(crate) agent: &'static str,
    pub(crate) prompt: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) session: &'static str,
    pub(crate) tool_name: &'static str,
    pub(crate) tool_input: &'static str,
    /// Pointers to the added text and to the reason of a refused tool.
    pub(crate) context: &'static str,
    pub(crate) reason: &'static str,
}

pub(crate) const CLAUDE: Names = Names {
    agent: "claude",
    prompt: "UserPromptSubmit",
    tool: "PreToolUse",
    session: "session_id",
    tool_name: "tool_name",
    tool_input: "tool_input",
    context: "/hookSpecificOutput/additionalContext",
    reason: "/hookSpecificOutput/permissionDecisionReason",
};

pub(crate) const AGENTS: [Names; 7] = [
    CLAUDE,
    Names {
        agent: "codex",
        ..CLAUDE
    },
    Names {
        agent: "qwen",
        ..CLAUDE
    },
    Names {
        agent: "opencode",
        ..CLAUDE
    },
    Names {
        agent: "gemini",
        prompt: "BeforeAgent",
        tool: "BeforeTool",
        reason: "/reason",
        ..CLAUDE
    },
    Names {
        agent: "copilot",
        prompt: "userPromptSubmitted",
        tool: "preToolUse",
        session: "sessionId",
        tool_name: "toolName",
        tool_input: "toolArgs",
        context: "/additionalContext",
        reason: "/permissionDecisionReason",
    },
    Names {
        agent: "cline",
        context: "/contextModification",
        reason: "/errorMessage",
        ..CLAUDE
    },
];

impl Names {
    fn prompt(&self, workspace: &Workspace, session: &str, prompt: &str) -> Value {
        let input = json!({
            self.session: session, "cwd": workspace.root(), "prompt": prompt,
        });
        answer(workspace, self.prompt, self.agent, &input)
    }

    fn block(&self, workspace: &Workspace, session: &str) -> Option<String> {
        let answer = self.prompt(workspace, session, "Q");
        Some(answer.pointer(self.context)?.as_str()?.to_owned())
    }

    /// Returns the reason if the tool is refused.
    fn tool(&self, workspace: &Workspace, tool: &str, arguments: &Value) -> Option<String> {
        let input = json!({
            self.session: "s", "cwd": workspace.root(),
            self.tool_name: tool, self.tool_input: arguments,
        });
        let answer = answer(workspace, self.tool, self.agent, &input);
        Some(answer.pointer(self.reason)?.as_str()?.to_owned())
    }
}

const FILES: &[(&str, &str)] = &[
    (".clineignore", "# rules\nsecret.txt\n"),
    ("secret.txt", "TOPSECRET\n"),
    ("notes.txt", "on disk\n"),
    ("sub/a.txt", "a\n"),
];

fn tools_are_refused_by_rules(workspace: &Workspace) {
    for names in &AGENTS {
        let agent = names.agent;
        for arguments in [
            json!({ "file_path": workspace.path("secret.txt") }),
            json!({ "path": "secret.txt" }),
            json!({ "files": [{ "path": "./sub/../secret.txt" }] }),
            json!({ "command": "cat secret.txt" }),
            json!({ "commands": ["ls", "cat secret.txt"] }),
        ] {
            let reason = names.tool(workspace, "any", &arguments).unwrap_or_default();
            assert!(
                reason.contains(".clineignore:2"),
                "{agent} {arguments}: {reason}"
            );
            assert!(
                reason.contains("secret.txt"),
                "{agent} {arguments}: {reason}"
            );
            assert!(!reason.contains("TOPSECRET"), "{agent} {reason}");
        }
        for arguments in [
            json!({ "file_path": workspace.path("notes.txt") }),
            json!({ "path": "/etc/hostname" }),
            json!({ "command": "cat notes.txt" }),
            json!({}),
        ] {
            let reason = names.tool(workspace, "any", &arguments);
            assert_eq!(reason, None, "{agent} {arguments}");
        }
    }
}

#[test]
fn denied_files_are_refused_without_a_server() {
    tools_are_refused_by_rules(&Workspace::new(FILES));
}

#[test]
fn denied_files_are_refused_with_a_running_server() {
    let workspace = Workspace::new(FILES);
    let mut server = Server::start(&workspace);
    server.call("sightline/listTasks", json!({}));
    tools_are_refused_by_rules(&workspace);
    assert_eq!(server.end(), 0);
}

/// Starts a server, as an editor does, with an open file.
fn editor(workspace: &Workspace) -> Server {
    let mut server = Server::start(workspace);
    server.open(&workspace.uri("notes.txt"), "on disk\n");
    server.call("sightline/listTasks", json!({}));
    server
}

#[test]
fn hooks_of_several_scopes_add_one_block_to_a_prompt() {
    let workspace = Workspace::new(FILES);
    let mut server = Server::start(&workspace);
    server
        .notify(
            "sightline/didChangeTabs",
            json!({ "tabs": [{ "uri": workspace.uri("notes.txt"), "isActive": true }] }),
        )
        .unwrap();
    server.call("sightline/listTasks", json!({}));
    for names in &AGENTS {
        let blocks: usize = std::thread::scope(|scope| {
            let hooks = [(); 6].map(|()| scope.spawn(|| names.block(&workspace, "several")));
            hooks
                .into_iter()
                .filter_map(|hook| hook.join().unwrap())
                .count()
        });
        assert_eq!(blocks, 1, "{}", names.agent);
    }
    assert_eq!(server.end(), 0);
}

#[test]
fn a_prompt_gets_the_block_once_and_then_the_changes() {
    let workspace = Workspace::new(FILES);
    let mut server = Server::start(&workspace);
    server.call("sightline/listTasks", json!({}));
    server.open(&workspace.uri("notes.txt"), "unsaved\n");
    server.open(&workspace.uri("secret.txt"), "TOPSECRET\n");
    server.call("sightline/checkAccess", json!({}));
    for names in &AGENTS {
        let agent = names.agent;
        let block = names.block(&workspace, "one").unwrap_or_default();
        assert!(block.contains("notes.txt"), "{agent}: {block}");
        assert!(!block.contains("secret.txt"), "{agent}: {block}");
        let has_tag = block.starts_with("<environment_details>");
        assert_eq!(has_tag, agent != "gemini", "{block}");
        assert_eq!(names.block(&workspace, "one"), None, "{agent}");
        assert!(names.block(&workspace, "two").is_some(), "{agent}");
    }
    server.open(&workspace.uri("sub/a.txt"), "a\n");
    server.call("sightline/checkAccess", json!({}));
    for names in &AGENTS {
        let block = names.block(&workspace, "one").unwrap_or_default();
        assert!(block.contains("a.txt"), "{block}");
        assert!(!block.contains("# Current Mode"), "{block}");
    }
    assert_eq!(server.end(), 0);
}

#[test]
fn a_session_whose_context_was_compacted_gets_the_whole_block() {
    let workspace = Workspace::new(FILES);
    let _editor = editor(&workspace);
    assert!(CLAUDE.block(&workspace, "s").is_some());
    for (source, whole) in [("startup", false), ("compact", true), ("clear", true)] {
        let input = json!({
            "session_id": "s", "cwd": workspace.root(), "source": source,
        });
        let said = hook(&workspace, "SessionStart", "claude", &input.to_string());
        assert_eq!(said, "");
        assert_eq!(CLAUDE.block(&workspace, "s").is_some(), whole, "{source}");
    }
}

#[test]
fn a_mentioned_denied_file_stops_the_prompt() {
    let workspace = Workspace::new(FILES);
    let _editor = editor(&workspace);
    for names in &AGENTS {
        let answer = names.prompt(&workspace, "s", "explain @secret.txt.");
        let refused = match names.agent {
            "claude" | "qwen" => answer["decision"] == "block",
            "gemini" => answer["decision"] == "deny",
            // Only the name reaches the model, or a prompt cannot be refused.
            _ => {
                assert!(answer.pointer(names.context).is_some(), "{answer}");
                continue;
            }
        };
        assert!(refused, "{}: {answer}", names.agent);
        let reason = answer["reason"].as_str().unwrap();
        assert!(reason.contains(".clineignore:2"), "{reason}");
        let answer = names.prompt(&workspace, "t", "explain @notes.txt and @missing");
        assert!(answer.pointer(names.context).is_some(), "{answer}");
    }
}

#[test]
fn a_setting_lets_prompts_mention_denied_files() {
    let workspace = Workspace::new(FILES);
    let mut params = workspace.initialize();
    params["initializationOptions"]["access"] = json!({ "mentions": "allow" });
    let mut server = Server::initialized(params);
    server.open(&workspace.uri("notes.txt"), "on disk\n");
    server.call("sightline/listTasks", json!({}));
    let answer = CLAUDE.prompt(&workspace, "s", "explain @secret.txt");
    assert!(answer.pointer(CLAUDE.context).is_some(), "{answer}");
    let reason = CLAUDE.tool(&workspace, "Read", &json!({ "file_path": "secret.txt" }));
    assert!(reason.is_some(), "the setting concerns prompts only");
}

#[test]
fn paths_and_commands_are_relative_to_the_folder_of_the_session() {
    let workspace = Workspace::new(&[(".clineignore", "/sub/key\n"), ("sub/key", "K\n")]);
    for arguments in [json!({ "path": "key" }), json!({ "command": "cat key" })] {
        let input = |cwd| json!({ "cwd": cwd, "tool_name": "x", "tool_input": arguments });
        let inside = answer(
            &workspace,
            "PreToolUse",
            "claude",
            &input(workspace.path("sub")),
        );
        assert_ne!(inside, Value::Null, "{arguments}");
        let outside = answer(&workspace, "PreToolUse", "claude", &input(workspace.root()));
        assert_eq!(outside, Value::Null, "{arguments}");
    }
}

#[test]
fn unknown_events_agents_and_options_are_named_on_standard_error_only() {
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.arg("hook").args(arguments).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        (String::from_utf8(output.stdout).unwrap(), error)
    };
    for arguments in [
        &[][..],
        &["--what"],
        &["Stop", "--agent", "other"],
        &["NewEvent", "--agent", "claude"],
        &["BeforeTool", "--agent", "claude"],
        &["UserPromptSubmit", "--agent", "other"],
        &["PreToolUse", "--agent", "claud"],
        &["BeforeTool", "--agent"],
    ] {
        let (said, error) = run(arguments);
        assert_eq!(said, "", "{arguments:?}");
        assert!(error.ends_with("; nothing was checked\n"), "{error}");
    }
}

/// Forwards the connections of a workspace to its server. Returns the number of connections and of
/// requests.
#[cfg(unix)]
fn counted(workspace: &Workspace) -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let server = sockets(workspace).pop().unwrap();
    let name = server.file_name().unwrap().to_string_lossy();
    // It is newer than the socket of the server, so it is used first.
    let listener = UnixListener::bind(server.with_file_name(name.replace(".sock", "x.sock")));
    let listener = listener.unwrap();
    let counts = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (connections, requests) = counts.clone();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            connections.fetch_add(1, Ordering::SeqCst);
            let mut server = UnixStream::connect(&server).unwrap();
            let mut asked = FrameReader::new(client.try_clone().unwrap());
            let mut answered = FrameReader::new(server.try_clone().unwrap());
            while let Ok(Some(Ok(request))) = asked.next_frame() {
                requests.fetch_add(1, Ordering::SeqCst);
                write_frame(&mut server, &request).unwrap();
                let answer = answered.next_frame().unwrap().unwrap().unwrap();
                write_frame(&mut client, &answer).unwrap();
            }
        }
    });
    counts
}

#[cfg(unix)]
#[test]
fn a_tool_call_is_one_connection_and_one_request() {
    let workspace = Workspace::new(&[(".clineignore", "*.key\n"), ("a.key", "K"), ("b.txt", "")]);
    let _server = listening(&workspace);
    let (connections, requests) = counted(&workspace);
    for (tool, arguments, is_denied) in [
        ("Bash", json!({ "command": "cat b.txt" }), false),
        ("Bash", json!({ "command": "cat a.key" }), true),
        ("Read", json!({ "file_path": "a.key" }), true),
        (
            "shell",
            json!({ "commands": ["cat b.txt", "ls", "cat a.key"], "path": "b.txt" }),
            true,
        ),
        (
            "Grep",
            json!({ "pattern": "K", "output_mode": "content", "path": "." }),
            true,
        ),
    ] {
        let reason = CLAUDE.tool(&workspace, tool, &arguments);
        assert_eq!(reason.is_some(), is_denied, "{arguments}: {reason:?}");
        let counted = (
            connections.swap(0, Ordering::SeqCst),
            requests.swap(0, Ordering::SeqCst),
        );
        assert_eq!(counted, (1, 1), "connections and requests for {arguments}");
    }
}
