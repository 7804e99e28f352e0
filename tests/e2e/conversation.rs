//! Truncation and token counts over the wire.

mod tasks;

use std::{
    io::Write,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Server, Workspace, program};

fn text(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": [{ "type": "text", "text": text }] })
}

/// A file read result in Cline's format.
fn read(path: &str, body: &str) -> Value {
    json!({ "role": "user", "content": [
        { "type": "text", "text": format!("[read_file for '{path}'] Result:") },
        { "type": "text", "text": body },
    ] })
}

fn call(id: &str) -> Value {
    json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": id, "name": "read_file", "input": { "path": "a.rs" } },
    ] })
}

/// A task, followed by `reads` reads of the same file.
fn conversation(reads: usize) -> Vec<Value> {
    let mut messages = vec![text("user", "Mend it."), text("assistant", "I will.")];
    for _ in 0..reads {
        messages.push(read("a.rs", &"fn main() {}\n".repeat(50)));
        messages.push(text("assistant", "Read."));
    }
    messages.push(text("user", "And?"));
    messages
}

fn full() -> Value {
    json!({ "ts": 1_767_225_600_000_i64, "tokensIn": 170_000, "tokensOut": 100 })
}

#[test]
fn a_conversation_that_fits_is_unchanged() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = conversation(3);
    let params = json!({ "messages": messages, "model": "claude-sonnet-4" });
    let result = server.call("sightline/truncateHistory", params);
    assert_eq!(result["decision"], "fits");
    assert_eq!(result["messages"], json!(messages));
    assert_eq!(result["contextHistory"], json!([]));
    assert_eq!(result.get("deletedRange"), None);
    assert_eq!(result.get("edits"), None);
}

#[test]
fn duplicate_reads_go_first_and_then_messages() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = conversation(3);
    let params = json!({ "messages": messages, "model": "claude-sonnet-4",
        "previousRequest": full(), "countTokens": true });
    let result = server.call("sightline/truncateHistory", params);
    assert_eq!(result["decision"], "deduplicated");
    assert!(result["charactersSaved"].as_f64() > Some(0.3));
    assert!(result["tokens"]["after"].as_u64() < result["tokens"]["before"].as_u64());

    let messages: Vec<Value> = (0..21)
        .map(|index| text(["user", "assistant"][index % 2], &format!("turn {index}")))
        .collect();
    let params = json!({ "messages": messages, "model": "claude-sonnet-4",
        "previousRequest": full() });
    let result = server.call("sightline/truncateHistory", params);
    assert_eq!(result["decision"], "truncated");
    assert_eq!(result["deletedRange"], json!([2, 9]));
    let sent = result["messages"].as_array().unwrap();
    assert_eq!(sent.len(), 13);
    assert_eq!((&sent[0], &sent[2]), (&messages[0], &messages[10]));
    assert_ne!(sent[1], messages[1]);

    // And back: the edits are removed, the conversation was never changed.
    let params = json!({ "contextHistory": result["contextHistory"], "timestamp": 1 });
    let back = server.call("sightline/rollbackHistory", params);
    assert_eq!(back, json!({ "contextHistory": [] }));
}

#[test]
fn edits_turn_the_callers_copy_into_the_messages() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let mut messages = conversation(4);
    messages.insert(5, call("call_1"));
    for keep in ["none", "lastTwo", "half", "quarter"] {
        let mut params = json!({ "messages": messages, "model": "claude-sonnet-4", "keep": keep });
        let whole = server.call("sightline/truncateHistory", params.clone());
        params["reply"] = json!("edits");
        let edits = server.call("sightline/truncateHistory", params);
        assert_eq!(edits.get("messages"), None);
        let mut copy = messages.clone();
        for edit in edits["edits"].as_array().unwrap() {
            let [message, block] = ["message", "block"].map(|at| edit[at].as_u64().unwrap());
            copy[message as usize]["content"][block as usize]["text"] = edit["text"].clone();
        }
        for repair in edits["repairs"].as_array().unwrap() {
            let message = repair["message"].as_u64().unwrap() as usize;
            copy[message] = repair["replacement"].clone();
        }
        let range: [usize; 2] = serde_json::from_value(edits["deletedRange"].clone()).unwrap();
        copy.drain(range[0]..=range[1]);
        assert_eq!(json!(copy), whole["messages"], "{keep}");
    }
}

#[test]
fn settings_set_notices_and_context_windows() {
    let workspace = Workspace::new(&[]);
    let mut initialize = workspace.initialize();
    initialize["initializationOptions"]["conversation"] = json!({
        "notices": { "truncation": "(some turns are gone)" },
        "models": { "house.model": { "contextWindow": 64_000 } },
    });
    let mut server = Server::initialized(initialize);
    let messages = conversation(0);
    let params = json!({ "messages": messages, "model": "house.model", "keep": "half" });
    let result = server.call("sightline/truncateHistory", params);
    assert_eq!(
        result["messages"][1]["content"][0]["text"],
        "(some turns are gone)"
    );

    // A window of 64,000 tokens leaves 37,000 usable; 128,000 would leave 98,000.
    let used = json!({ "ts": 1, "tokensIn": 40_000 });
    for (model, decision) in [("house.model", "truncated"), ("other.model", "fits")] {
        let params = json!({ "messages": messages, "model": model, "previousRequest": used });
        let result = server.call("sightline/truncateHistory", params);
        assert_eq!(result["decision"], decision, "{model}");
    }
    // The block uses the same window.
    let usage = json!({ "tokensIn": 32_000 });
    let block = server.block(json!({ "model": "house.model", "usage": usage }));
    assert!(block.contains("64K"), "{block}");
}

#[test]
fn invalid_params_are_rejected_and_named() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    for (params, named) in [
        (json!({ "model": "m" }), "messages"),
        (
            json!({ "messages": [], "model": "m", "keep": "most" }),
            "keep",
        ),
        (json!({ "messages": [5], "model": "m" }), "messages[0]"),
        (json!({ "messages": {}, "model": "m" }), "messages"),
        (json!({ "messages": [] }), "model"),
        (
            json!({ "messages": [], "model": "m", "contextHistory": [[1]] }),
            "contextHistory[0]",
        ),
        (
            json!({ "messages": [], "model": "m", "deletedRange": [1] }),
            "deletedRange",
        ),
        (
            json!({ "messages": [], "model": "m", "taskId": "../x", "keep": 5 }),
            "keep",
        ),
    ] {
        let error = server.refused("sightline/truncateHistory", params.clone());
        assert_eq!(error["data"]["kind"], "invalidParams", "{params}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(named),
            "{params}: {error}"
        );
    }
    let error = server.refused("sightline/rollbackHistory", json!({ "timestamp": 1 }));
    assert_eq!(error["data"]["kind"], "invalidParams");
}

#[test]
fn provider_errors_are_classified() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    for (error, exceeded, retryable) in [
        (
            json!({ "status": 400, "error": { "type": "error", "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 213462 tokens > 200000 maximum" } } }),
            true,
            false,
        ),
        (
            json!({ "status": 400, "message": "temperature: must be below 1" }),
            false,
            false,
        ),
        (
            json!({ "status": 529, "message": "Overloaded" }),
            false,
            true,
        ),
    ] {
        let params = json!({ "provider": "anthropic", "error": error });
        let result = server.call("sightline/classifyError", params);
        let expected = json!({ "contextWindowExceeded": exceeded, "retryable": retryable });
        assert_eq!(result, expected, "{error}");
    }
}

#[test]
fn tokens_are_counted_exactly_where_the_encoding_is_public() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    // OpenAI's cookbook counts these six tokens for o200k_base and cl100k_base.
    let params = json!({ "texts": ["tiktoken is great!", ""], "model": "gpt-4o" });
    let result = server.call("sightline/countTokens", params);
    assert_eq!(result["tokens"], 6);
    assert_eq!(result["items"], json!([6, 0]));
    assert_eq!(result["exact"], true);
    assert_eq!(result.get("lower"), None);
    assert_eq!(result["encoding"], "o200k_base");

    let params = json!({ "texts": ["tiktoken is great!"], "model": "claude-sonnet-4" });
    let result = server.call("sightline/countTokens", params);
    assert_eq!(result["exact"], false);
    let figure = |name: &str| result[name].as_u64().unwrap();
    assert!(figure("lower") <= figure("tokens") && figure("tokens") <= figure("upper"));
    let error = server.refused("sightline/countTokens", json!({ "encoding": "r2d2" }));
    assert!(error["message"].as_str().unwrap().contains("r2d2"));
}

#[test]
fn reported_usage_calibrates_later_counts() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = vec![text("user", &"some words of a task ".repeat(1000))];
    let usage = json!({ "tokensIn": 9_000, "cacheReads": 1_000 });
    let params = json!({ "messages": messages, "model": "gpt-4o", "taskId": "t" });
    let plain = server.call("sightline/countTokens", params.clone());
    let mut reporting = params.clone();
    reporting["usage"] = usage;
    let reported = server.call("sightline/countTokens", reporting);
    assert_eq!(reported["tokens"], 10_000);
    // Also by another server, after a restart.
    drop(server);
    let mut server = Server::start(&workspace);
    let again = server.call("sightline/countTokens", params.clone());
    assert_eq!(again["tokens"], 10_000);
    assert_eq!(again["exact"], false);
    assert_eq!(again["calibration"], reported["calibration"]);
    let mut other = params;
    other["taskId"] = json!("other");
    assert_eq!(
        server.call("sightline/countTokens", other)["tokens"],
        plain["tokens"]
    );
}

/// Runs the program with `input` on stdin.
pub(crate) fn piped(workspace: &Workspace, arguments: &[&str], input: &str) -> (i32, String) {
    let mut child = program()
        .args(arguments)
        .current_dir(workspace.root())
        .env("XDG_DATA_HOME", workspace.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap())
}

#[test]
fn the_command_line_keeps_messages_byte_for_byte() {
    let workspace = Workspace::new(&[]);
    let message = r#"{ "z":1.0, "role":"user","a":1e2,  "content":"\u00e9\/ \ud83d" }"#;
    let request = format!(r#"{{"messages":[{message}],"model":"gpt-4o","contextHistory":null}}"#);
    let (code, output) = piped(&workspace, &["history", "truncate"], &request);
    assert_eq!(code, 0);
    assert!(output.contains(message), "{output}");
    let (code, _) = piped(&workspace, &["history", "truncate"], "[");
    assert_eq!(code, 2);

    let (code, output) = piped(
        &workspace,
        &["tokens", "--model", "gpt-4o"],
        "tiktoken is great!",
    );
    assert_eq!((code, output.as_str()), (0, "6\t-\n"));
    workspace.write("a.txt", "tiktoken is great!");
    workspace.write(".clineignore", "b.txt\n");
    workspace.write("b.txt", "secret");
    let (code, output) = piped(&workspace, &["tokens", "--json", "a.txt"], "");
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["tokens"], 6);
    assert_eq!(piped(&workspace, &["tokens", "a.txt", "b.txt"], "").0, 1);
}
