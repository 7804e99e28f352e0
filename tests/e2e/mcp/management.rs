//! The requests for MCP servers, of an editor and of the command line, while an agent uses them.

use serde_json::json;

use super::hub::{configure, mcp, names, open, run, wait_for_state};
use crate::harness::{Server, Workspace};

/// A server in Python, which prints its variable.
pub(super) const SCRIPT: &str = r#"
import json, os, sys
print("the token is", os.environ.get("API_TOKEN"), file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        result = {"tools": [{"name": "size", "inputSchema": {"type": "object"}}]}
    if request["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;
const TOKEN: &str = "value-of-the-token";

#[test]
fn the_first_server_reaches_sessions_that_run() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let mut agent = open(&workspace, json!({}));
    assert!(names(&mut agent).contains(&"read_file".to_owned()));
    let server = json!({ "command": "python3", "args": ["-c", SCRIPT] });
    configure(&workspace, &json!({ "p": server }));
    assert!(names(&mut agent).contains(&"p__size".to_owned()));
}

#[test]
fn an_editor_lists_trusts_switches_and_restarts_servers() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let entry = json!({
        "command": "python3", "args": ["-c", SCRIPT, TOKEN], "env": { "API_TOKEN": TOKEN }, "autoApprove": ["size"],
    });
    let servers = json!({ "mcpServers": { "p": entry, "bad": { "command": 7 } } });
    workspace.write(".mcp.json", &servers.to_string());
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    let mut editor = Server::initialized(params);
    let named = json!({ "name": "p" });

    let listed = editor.call("sightline/listMcpServers", json!({}));
    assert!(!listed.to_string().contains(TOKEN), "{listed}");
    let [bad, first] = &listed.as_array().unwrap()[..] else {
        panic!("{listed}");
    };
    assert_eq!(
        (&first["state"], &first["env"], &first["ignoredFields"]),
        (
            &json!("untrusted"),
            &json!(["API_TOKEN"]),
            &json!(["autoApprove"])
        )
    );
    assert_eq!(bad["state"], "failed");
    assert!(
        bad["reason"].as_str().unwrap().contains(".mcp.json:1: "),
        "{bad}"
    );
    for method in ["trustMcpServer", "restartMcpServer", "mcpServerLog"] {
        let refused = editor.refused(&format!("sightline/{method}"), json!({ "name": "none" }));
        assert_eq!(refused["data"]["kind"], "notFound", "{method}");
    }

    let mut agent = open(&workspace, json!({}));
    assert!(!names(&mut agent).contains(&"p__size".to_owned()));
    let trusted = editor.call("sightline/trustMcpServer", named.clone());
    assert_eq!(trusted["state"], "idle");
    editor
        .wait_for(|message| message["method"] == "sightline/didChangeMcpServers")
        .unwrap();
    assert!(names(&mut agent).contains(&"p__size".to_owned()));
    agent.call("p__size", &json!({}));
    // The session reports after a moment.
    let mut ready = wait_for_state(&workspace, "p", "ready");
    while ready["calls"] != 1 {
        ready = wait_for_state(&workspace, "p", "ready");
    }
    assert_eq!(ready["tools"][0]["exposedAs"], "p__size");
    assert!(ready["tools"][0]["tokens"].as_u64().unwrap() > 5, "{ready}");
    // The command line asks the same server.
    let listed = editor.call(
        "sightline/listMcpServers",
        json!({ "root": workspace.uri("") }),
    );
    assert_eq!(listed[1], ready);
    let log = editor.call("sightline/mcpServerLog", named.clone())["text"].clone();
    assert!(
        log.as_str().unwrap().contains("the token is ${API_TOKEN}"),
        "{log}"
    );

    // The next list of the agent is without a server that was switched off.
    let off = json!({ "command": "sightline.setMcpServerEnabled", "arguments": [{ "name": "p", "enabled": false }] });
    let off = editor.call("workspace/executeCommand", off);
    assert_eq!(off["state"], "disabled");
    assert!(!names(&mut agent).contains(&"p__size".to_owned()));
    let on = json!({ "name": "p", "enabled": true });
    assert_eq!(
        editor.call("sightline/setMcpServerEnabled", on)["state"],
        "idle"
    );
    agent.call("p__size", &json!({}));
    let pid = wait_for_state(&workspace, "p", "ready")["pid"].clone();
    editor.call("sightline/restartMcpServer", named);
    wait_for_state(&workspace, "p", "idle");
    agent.call("p__size", &json!({}));
    assert_ne!(wait_for_state(&workspace, "p", "ready")["pid"], pid);
    assert_eq!(agent.end(), Some(0));
    editor.end();
}

#[test]
fn servers_of_agents_are_found() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let home = workspace.data().with_file_name("home");
    std::fs::create_dir_all(&home).unwrap();
    let claude =
        json!({ "mcpServers": { "notes": { "command": "notes", "env": { "KEY": TOKEN } } } });
    std::fs::write(home.join(".claude.json"), claude.to_string()).unwrap();
    let (text, done) = run(&workspace, &["list", "--found"]);
    assert!(
        done && text.contains("notes  claude") && !text.contains(TOKEN),
        "{text}"
    );
    let (text, _) = run(&workspace, &["list", "--found", "--json"]);
    assert!(
        text.contains(r#""agent":"claude""#) && !text.contains(TOKEN),
        "{text}"
    );
    assert!(
        mcp(&workspace, &["list"])
            .output()
            .unwrap()
            .stdout
            .is_empty()
    );
}

#[test]
fn a_server_is_tried_without_an_agent() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let entry =
        json!({ "command": "python3", "args": ["-c", SCRIPT], "env": { "API_TOKEN": TOKEN } });
    configure(
        &workspace,
        &json!({
            "good": entry, "off": { "command": "true", "disabled": true }, "bad__name": entry,
            "noise": { "command": "sh", "args": ["-c", "echo noise; echo $API_TOKEN >&2; exit 3"], "env": { "API_TOKEN": TOKEN } },
        }),
    );
    let project = json!({ "mcpServers": { "p": entry } });
    workspace.write(".mcp.json", &project.to_string());
    for (name, works, parts) in [
        ("good", true, &["good works", "1 tool,", "good__size"][..]),
        (
            "noise",
            false,
            &["it ended with exit code 3", "noise\n", "${API_TOKEN}"],
        ),
        ("off", false, &["the server off is disabled"]),
        ("bad__name", false, &["mcp.json:1: invalid name"]),
        ("p", false, &["sightline mcp trust p"]),
        ("none", false, &["there is no server none"]),
    ] {
        let (text, done) = run(&workspace, &["test", name]);
        assert_eq!(done, works, "{name}: {text}");
        for part in parts {
            assert!(text.contains(part), "{name}: {text}");
        }
        assert!(!text.contains(TOKEN), "{name}: {text}");
    }
}
