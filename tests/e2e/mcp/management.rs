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
    let claude = json!({ "mcpServers": { "notes": { "command": "notes", "env": { "KEY": TOKEN } }, "sightline": { "command": "sightline", "args": ["mcp"] } } });
    std::fs::write(home.join(".claude.json"), claude.to_string()).unwrap();
    let (text, done) = run(&workspace, &["list", "--found"]);
    assert!(
        done && text.contains("notes  claude") && !text.contains(TOKEN),
        "{text}"
    );
    // The entry of `agents install` is no server to move.
    assert_eq!(text.lines().count(), 1, "{text}");
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

#[test]
fn tools_are_listed_without_a_session_as_they_were_last() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let mut entry = json!({
        "command": "python3", "args": ["-c", SCRIPT], "env": { "API_TOKEN": TOKEN },
    });
    configure(&workspace, &json!({ "p": entry }));
    let list = || run(&workspace, &["list"]).0;
    assert_eq!(list(), "p  idle\n");
    run(&workspace, &["test", "p"]);
    let listed = list();
    assert!(
        listed.starts_with("p  idle       1 tool, about ")
            && listed.ends_with(" tokens when it ran last\n"),
        "{listed}"
    );
    // The configuration decides what agents get.
    entry["tools"] = json!({ "deny": ["si*"] });
    configure(&workspace, &json!({ "p": entry }));
    let (text, _) = run(&workspace, &["list", "--json"]);
    assert!(
        text.contains(r#""exposedAs":"p__size""#) && text.contains(r#""enabled":false"#),
        "{text}"
    );
    // Another program has other tools.
    entry["args"] = json!(["-c", SCRIPT, "x"]);
    configure(&workspace, &json!({ "p": entry }));
    assert_eq!(list(), "p  idle\n");
}

/// A server whose answer to `tools/list` is this Python expression of its cursor, or which sends none.
fn listing(answer: &str) -> serde_json::Value {
    let script = SCRIPT.replace(
        r#"result = {"tools": [{"name": "size", "inputSchema": {"type": "object"}}]}"#,
        &format!(
            "\n            cursor = int(request['params'].get('cursor') or 0)\n            answer = {answer}\n            \
             if answer is None: continue\n            \
             print(json.dumps({{'jsonrpc': '2.0', 'id': request['id'], **answer}}), flush=True)\n            continue"
        ),
    );
    json!({ "command": "python3", "args": ["-c", script], "env": { "API_TOKEN": TOKEN }, "startTimeout": 2 })
}

#[test]
fn a_server_without_complete_lists_has_failed() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let page = "{'result': {'tools': [{'name': 't', 'inputSchema': {}}], 'nextCursor': 'x'}}";
    let endless = page.replace("'x'", "str(cursor + 1)");
    let refused = format!("{{'error': {{'code': -32000, 'message': 'locked: {TOKEN}'}}}}");
    configure(
        &workspace,
        &json!({
            "silent": listing("None"), "endless": listing(&endless), "refused": listing(&refused),
            "unknown": listing("{'error': {'code': -32601, 'message': 'no'}}"),
        }),
    );
    for (name, works, wanted) in [
        ("silent", false, "it did not send its lists within 2 s"),
        ("endless", false, "it did not send its lists within 2 s"),
        (
            "refused",
            false,
            "it refused tools/list: locked: ${API_TOKEN}",
        ),
        ("unknown", true, "unknown works"),
    ] {
        let (text, done) = run(&workspace, &["test", name]);
        assert!(done == works && text.contains(wanted), "{name}: {text}");
        assert!(!text.contains(TOKEN), "{name}: {text}");
    }
    let mut agent = open(&workspace, json!({}));
    assert!(names(&mut agent).contains(&"read_file".to_owned()));
    for name in ["silent", "endless", "refused"] {
        wait_for_state(&workspace, name, "failed");
    }
}

#[test]
fn a_name_is_listed_once() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let tool = "{'name': 'size', 'inputSchema': {'type': 'object'}}";
    let twice = listing(&format!("{{'result': {{'tools': [{tool}, {tool}]}}}}"));
    let mut other = twice.clone();
    other["prefix"] = "p".into();
    configure(&workspace, &json!({ "p": twice, "other": other }));
    let mut agent = open(&workspace, json!({}));
    let names = names(&mut agent);
    let count = names.iter().filter(|name| *name == "p__size").count();
    assert_eq!(count, 1, "{names:?}");
    assert_eq!(
        agent.call("p__size", &json!({}))["content"][0]["text"],
        "done"
    );
}

#[test]
fn a_file_that_cannot_be_read_concerns_no_other() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let entry = json!({ "command": "python3", "args": ["-c", SCRIPT] });
    configure(&workspace, &json!({ "good": entry }));
    for (text, why) in [
        (
            r#"{"mcpServers": {"p": {"command": "x"}"#,
            "not valid JSON, line 1",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x"} "b": {}}}"#,
            "not valid JSON, line 1",
        ),
        ("[]", "it is not an object"),
        (r#"{"mcpServers": []}"#, "mcpServers is not an object"),
    ] {
        workspace.write(".mcp.json", text);
        let one = wait_for_state(&workspace, ".mcp.json", "failed");
        let reason = one["reason"].as_str().unwrap();
        assert!(
            reason.contains(why) && reason.contains("cannot read /"),
            "{one}"
        );
        let (text, done) = run(&workspace, &["test", "good"]);
        assert!(done, "{text}");
        let (text, done) = run(&workspace, &["trust", "p"]);
        assert!(!done && text.contains("cannot read /"), "{text}");
    }
    let mut agent = open(&workspace, json!({}));
    assert!(names(&mut agent).contains(&"good__size".to_owned()));
    // The servers of a file that is being edited stay.
    let file = workspace.data().with_file_name("config/sightline/mcp.json");
    let valid = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &valid[..valid.len() - 1]).unwrap();
    wait_for_state(&workspace, "mcp.json", "failed");
    assert!(names(&mut agent).contains(&"good__size".to_owned()));
    for arguments in [&["add", "time"][..], &["remove", "good"]] {
        let (text, done) = run(&workspace, arguments);
        assert!(
            !done && text.contains("mcp.json: the file is not valid JSON"),
            "{text}"
        );
    }
    std::fs::write(&file, valid).unwrap();
    std::fs::remove_file(workspace.path(".mcp.json")).unwrap();
    // A server that is added again begins as new.
    assert!(run(&workspace, &["disable", "good"]).1);
    assert!(run(&workspace, &["remove", "good"]).1);
    configure(&workspace, &json!({ "good": entry }));
    let (text, done) = run(&workspace, &["test", "good"]);
    assert!(done, "{text}");
}

#[test]
fn commands_refuse_an_unknown_name_in_the_same_way() {
    let workspace = Workspace::new(&[]);
    configure(&workspace, &json!({ "good": { "command": "true" } }));
    for command in [
        "trust", "enable", "disable", "restart", "log", "test", "remove",
    ] {
        let output = mcp(&workspace, &[command, "bad"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{command}: {said}");
        assert!(
            said.contains("there is no server bad; the servers are good"),
            "{command}: {said}"
        );
    }
}
