//! What calls of hosted servers leave behind: the log of decisions, and checkpoints.

use serde_json::{Value, json};

use super::hub::{configure, names, open, run, text};
use crate::{
    harness::{Workspace, program},
    hook::hook_with,
};

/// A server with a tool that says that it only reads, and one that says nothing. Both return what is in a file.
const SCRIPT: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    schema = {"type": "object"}
    if request["method"] == "tools/list":
        result = {"tools": [{"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": True}}, {"name": "act", "inputSchema": schema}]}
    if request["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "the key is " + open(".env").read()}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

fn workspace() -> Workspace {
    let workspace = Workspace::new(&[
        (".clineignore", ".env\n"),
        (".env", "API_KEY=sk-live-51H8x9JkLmNoP\n"),
        ("a.txt", "alpha\n"),
    ]);
    configure(
        &workspace,
        &json!({ "p": { "command": "python3", "args": ["-c", SCRIPT] } }),
    );
    workspace
}

/// Runs a command that prints JSON.
fn printed(workspace: &Workspace, arguments: &[&str]) -> Value {
    let output = program()
        .args(arguments)
        .args(["--json", "--root"])
        .arg(workspace.root())
        .arg("--storage")
        .arg(workspace.data())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn refusals_and_redactions_are_in_the_log() {
    let workspace = workspace();
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    let refused = hub.call("p__look", &json!({ "path": ".env" }));
    assert!(text(&refused).contains(".clineignore:1"), "{refused}");
    let redacted = hub.call("p__look", &json!({}));
    assert_eq!(text(&redacted).trim(), "the key is API_KEY=[hidden: .env]");
    hub.call("read_file", &json!({ "path": ".env" }));
    assert_eq!(hub.end(), Some(0));
    let listed = printed(&workspace, &["log"]);
    let mut found: Vec<Value> = listed["decisions"].as_array().unwrap().clone();
    found.reverse();
    let rule = json!({ "source": ".clineignore", "line": 1, "pattern": ".env" });
    for (decision, tool, verdict) in [
        (&found[0], "p__look", "denied"),
        (&found[1], "p__look", "redacted"),
        (&found[2], "read_file", "denied"),
    ] {
        assert_eq!(decision["tool"], tool, "{listed}");
        assert_eq!(decision["verdict"], verdict, "{listed}");
        assert_eq!(
            (&decision["door"], &decision["agent"]),
            (&json!("mcp"), &json!("test"))
        );
        assert_eq!(
            (&decision["subject"], &decision["rule"]),
            (&json!(".env"), &rule)
        );
    }
    assert_eq!(found.len(), 3, "{listed}");
    assert!(!listed.to_string().contains("sk-live"));
}

#[test]
fn a_checkpoint_precedes_the_first_call_of_a_turn_that_may_write() {
    let workspace = workspace();
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    let count = || {
        let listed = printed(&workspace, &["checkpoint", "list"]);
        listed["checkpoints"].as_array().map_or(0, Vec::len)
    };
    hub.call("p__look", &json!({}));
    assert_eq!(count(), 0);
    // The agent reports no turns.
    hub.call("p__act", &json!({}));
    hub.call("p__act", &json!({}));
    assert_eq!(count(), 1);
    // It belongs to the turn of the agent that started the hub.
    let prompt =
        json!({ "session_id": "s", "cwd": workspace.root(), "prompt": "do it" }).to_string();
    hook_with(
        &workspace,
        "UserPromptSubmit",
        "claude",
        &prompt,
        &["--checkpoints"],
    );
    workspace.write("a.txt", "beta\n");
    let first = hub.begin("tools/call", &json!({ "name": "p__act", "arguments": {} }));
    let second = hub.begin("tools/call", &json!({ "name": "p__act", "arguments": {} }));
    hub.response(first.min(second));
    hub.call("p__act", &json!({}));
    let listed = printed(&workspace, &["checkpoint", "list"]);
    let newest = &listed["checkpoints"][0];
    assert_eq!(newest["turn"]["name"], "claude-1.1", "{listed}");
    assert_eq!((&newest["kind"], count()), (&json!("turnStart"), 2));
    assert_eq!(hub.end(), Some(0));
    let (log, _) = run(&workspace, &["log", "p"]);
    assert!(!log.contains("failed"), "{log}");
}
