//! Stored conversations: append, load, list, resume, compact, delete; nothing is lost.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    conversation::piped,
    harness::{Server, Workspace, spawn, wait},
};

fn text(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": [{ "type": "text", "text": text }] })
}

fn turns(count: usize) -> Vec<Value> {
    (0..count)
        .map(|index| text(["user", "assistant"][index % 2], &format!("turn {index}")))
        .collect()
}

fn append(server: &mut Server, task: &str, messages: &[Value]) -> Value {
    let params = json!({ "taskId": task, "messages": messages });
    server.call("sightline/appendMessages", params)
}

fn load(server: &mut Server, task: &str) -> Value {
    server.call("sightline/loadTask", json!({ "taskId": task }))
}

fn log(workspace: &Workspace, task: &str) -> std::path::PathBuf {
    workspace
        .data()
        .join("tasks")
        .join(task)
        .join("conversation.jsonl")
}

#[test]
fn appended_messages_are_loaded_by_another_server() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = turns(5);
    assert_eq!(
        append(&mut server, "t", &messages[..2]),
        json!({ "count": 2 })
    );
    assert_eq!(
        append(&mut server, "t", &messages[2..]),
        json!({ "count": 5 })
    );
    drop(server);
    let mut server = Server::start(&workspace);
    let loaded = load(&mut server, "t");
    assert_eq!(loaded["messages"], json!(messages));
    assert_eq!(loaded["contextHistory"], json!([]));
    assert_eq!(loaded["recovered"], json!({ "lines": 5, "dropped": 0 }));
    assert_eq!(loaded["metadata"]["title"], "turn 0");
    assert_eq!(loaded["metadata"]["cwd"], json!(workspace.root()));
    let line = fs::read_to_string(log(&workspace, "t")).unwrap();
    let first: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert_eq!(first["type"], "user");
    assert_eq!(first["parentUuid"], Value::Null);
    for field in [
        "uuid",
        "sessionId",
        "timestamp",
        "cwd",
        "version",
        "message",
    ] {
        assert!(first.get(field).is_some(), "{field}: {first}");
    }
    let error = server.refused("sightline/loadTask", json!({ "taskId": "other" }));
    assert_eq!(error["data"]["kind"], "notFound");
    for id in ["../t", "a/b", ".t", "", "C:"] {
        let error = server.refused("sightline/loadTask", json!({ "taskId": id }));
        assert_eq!(error["data"]["kind"], "invalidParams", "{id}");
    }
}

#[test]
fn requests_sent_without_waiting_keep_their_order() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = turns(60);
    let ids: Vec<i64> = messages
        .iter()
        .map(|one| {
            let params = json!({ "taskId": "t", "messages": [one] });
            server.start("sightline/appendMessages", params).unwrap()
        })
        .collect();
    let last = server
        .start("sightline/loadTask", json!({ "taskId": "t" }))
        .unwrap();
    for (index, id) in ids.into_iter().enumerate() {
        let result = server.wait(id).unwrap().unwrap();
        assert_eq!(result, json!({ "count": index + 1 }));
    }
    assert_eq!(
        server.wait(last).unwrap().unwrap()["messages"],
        json!(messages)
    );
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let workspace = Workspace::new(&[]);
    let messages = turns(8);
    for (round, message) in messages.iter().enumerate() {
        let (mut child, mut client) = spawn();
        client
            .request("initialize", workspace.initialize())
            .unwrap()
            .unwrap();
        let params = json!({ "taskId": "t", "messages": [message] });
        let result = client
            .request("sightline/appendMessages", params)
            .unwrap()
            .unwrap();
        assert_eq!(result["count"], round + 1);
        child.kill().unwrap();
        wait(&mut child, "killed");
    }
    let mut server = Server::start(&workspace);
    assert_eq!(load(&mut server, "t")["messages"], json!(messages));
}

#[test]
fn a_corrupted_line_affects_only_itself() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &turns(3));
    let path = log(&workspace, "t");
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[second] = b'X';
    bytes.extend_from_slice(br#"{"uuid":"torn"#);
    fs::write(&path, bytes).unwrap();
    let loaded = load(&mut server, "t");
    assert_eq!(loaded["messages"], json!([turns(3)[0], turns(3)[2]]));
    assert_eq!(loaded["recovered"]["lines"], 2);
    assert_eq!(append(&mut server, "t", &turns(1)), json!({ "count": 3 }));
    let loaded = load(&mut server, "t");
    assert_eq!(loaded["recovered"], json!({ "lines": 3, "dropped": 2 }));
}

#[test]
fn truncation_of_a_stored_task_is_stored_and_rolled_back() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = turns(21);
    append(&mut server, "t", &messages);
    let params = json!({ "taskId": "t", "model": "claude-sonnet-4", "keep": "half" });
    let cut = server.call("sightline/truncateHistory", params);
    assert_eq!(cut["deletedRange"], json!([2, 9]));
    assert_eq!(cut["messages"].as_array().unwrap().len(), 13);
    let mirror = log(&workspace, "t").with_file_name("context_history.json");
    let mirror: Value = serde_json::from_slice(&fs::read(mirror).unwrap()).unwrap();
    assert_eq!(mirror, cut["contextHistory"]);

    drop(server);
    let mut server = Server::start(&workspace);
    let loaded = load(&mut server, "t");
    assert_eq!(loaded["messages"], json!(messages));
    assert_eq!(loaded["deletedRange"], json!([2, 9]));
    assert_eq!(loaded["contextHistory"], cut["contextHistory"]);
    let params = json!({ "taskId": "t", "model": "claude-sonnet-4", "strategy": "apply" });
    let again = server.call("sightline/truncateHistory", params);
    assert_eq!(again["messages"], cut["messages"]);
    let params = json!({ "taskId": "t", "model": "claude-sonnet-4", "keep": "half" });
    let more = server.call("sightline/truncateHistory", params);
    assert_eq!(more["deletedRange"], json!([2, 13]));

    let back = server.call(
        "sightline/rollbackHistory",
        json!({ "taskId": "t", "timestamp": 1 }),
    );
    assert_eq!(back, json!({ "contextHistory": [] }));
    let loaded = load(&mut server, "t");
    assert_eq!(loaded["messages"], json!(messages));
    assert_eq!(loaded["deletedRange"], json!([2, 1]));
}

#[test]
fn compaction_is_stored_and_can_be_rolled_back() {
    let workspace = Workspace::new(&[
        ("src/cart.rs", "fn total() {}\n"),
        (".clineignore", "secret.rs\n"),
        ("secret.rs", "KEY"),
    ]);
    let mut server = Server::start(&workspace);
    let mut messages = turns(30);
    messages[2] = text(
        "user",
        "[read_file for 'src/cart.rs'] Result:\nfn total() {}",
    );
    messages[4] = text("user", "[read_file for 'secret.rs'] Result:\nnothing");
    append(&mut server, "t", &messages);
    let params = json!({ "taskId": "t", "model": { "id": "gpt-4o", "contextWindow": 8000 } });
    let plan = server.call("sightline/planCompaction", params);
    assert_eq!(plan["needed"], false);
    assert_eq!(plan["files"][0]["path"], "src/cart.rs", "{plan}");
    assert_eq!(plan["files"].as_array().unwrap().len(), 1);
    let params = json!({ "taskId": "t", "model": { "id": "gpt-4o", "contextWindow": 100 } });
    let small = server.call("sightline/planCompaction", params);
    assert_eq!(small["needed"], true);
    assert_eq!(small["retainFrom"], plan["retainFrom"]);
    let prompt = small["prompt"].as_str().unwrap();
    assert!(prompt.contains("## Goal") && !prompt.contains("turn 1"));

    let params = json!({ "taskId": "t", "summary": "All is well.",
        "retainFrom": plan["retainFrom"] });
    let compacted = server.call("sightline/applyCompaction", params.clone());
    assert_eq!(compacted["fallback"], false);
    assert_eq!(compacted["filesIncluded"], json!(["src/cart.rs"]));
    let loaded = load(&mut server, "t");
    assert_eq!(loaded["messages"], compacted["messages"]);
    assert_eq!(loaded["metadata"]["compactions"], 1);
    let raw = fs::read_to_string(log(&workspace, "t")).unwrap();
    assert!(raw.contains(r#""isCompactSummary":true"#) && raw.contains("compact_boundary"));
    for message in &messages {
        let text = message["content"][0]["text"].to_string();
        assert!(raw.contains(&text), "{text} is gone");
    }

    // A summary alone is not summarized again.
    let count = append(&mut server, "t", &[text("user", "More.")])["count"].clone();
    assert_eq!(count, loaded["messages"].as_array().unwrap().len() + 1);
    let back = json!({ "taskId": "t", "timestamp": 1 });
    server.call("sightline/rollbackHistory", back);
    let loaded = load(&mut server, "t");
    messages.push(text("user", "More."));
    assert_eq!(loaded["messages"], json!(messages));
}

#[test]
fn without_a_summary_the_newest_messages_are_kept() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let messages = turns(40);
    let params = json!({ "messages": messages, "error": "429: slow down" });
    let result = server.call("sightline/applyCompaction", params);
    assert_eq!(result["fallback"], true);
    assert_eq!(result["fallbackReason"], "429: slow down");
    let kept = result["messages"].as_array().unwrap();
    assert_eq!(kept.last(), messages.last());
    assert!((11..=14).contains(&kept.len()), "{}", kept.len());
    assert!(kept[0].to_string().contains("turn 0"));
    assert!(result["postTokens"].as_u64() < result["preTokens"].as_u64());
}

#[test]
fn tasks_are_listed_and_deleted() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    assert_eq!(
        server.call("sightline/listTasks", Value::Null),
        json!({ "tasks": [] })
    );
    for (task, now) in [("a", 1000), ("b", 3000), ("c", 2000)] {
        let params = json!({ "taskId": task, "messages": turns(2), "meta": { "now": now } });
        server.call("sightline/appendMessages", params);
    }
    let listed = server.call("sightline/listTasks", json!({ "limit": 2 }));
    let ids: Vec<&Value> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["taskId"])
        .collect();
    assert_eq!(ids, ["b", "c"]);
    let expected = json!({ "taskId": "b", "createdAt": 3000, "updatedAt": 3000,
        "messageCount": 2, "title": "turn 0", "cwd": workspace.root() });
    assert_eq!(listed["tasks"][0], expected);
    let freed = server.call("sightline/deleteTask", json!({ "taskId": "b" }));
    assert!(freed["freedBytes"].as_u64() > Some(100));
    assert!(!log(&workspace, "b").parent().unwrap().exists());
    let listed = server.call("sightline/listTasks", json!({}));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2);
    let error = server.refused("sightline/deleteTask", json!({ "taskId": "b" }));
    assert_eq!(error["data"]["kind"], "notFound");
}

#[test]
fn two_servers_on_one_task_lose_nothing() {
    let workspace = Workspace::new(&[]);
    let mut servers = [Server::start(&workspace), Server::start(&workspace)];
    for round in 0..20 {
        for (who, server) in servers.iter_mut().enumerate() {
            let message = text("user", &format!("{who} {round}"));
            let count = append(server, "t", &[message])["count"].clone();
            assert_eq!(count, round * 2 + who + 1);
        }
    }
    for server in &mut servers {
        let loaded = load(server, "t");
        assert_eq!(loaded["messages"].as_array().unwrap().len(), 40);
        assert_eq!(loaded["recovered"]["dropped"], 0);
    }
}

#[test]
fn an_interrupted_task_is_resumed() {
    let workspace = Workspace::new(&[("a.rs", "one"), ("b.rs", "two"), (".clineignore", "b.rs\n")]);
    let mut server = Server::start(&workspace);
    let call = json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": "call_1", "name": "execute_command", "input": { "command": "make" } },
    ] });
    append(&mut server, "old", &turns(2));
    let params = json!({ "taskId": "t", "messages": [text("user", "Build it."), call] });
    server.call("sightline/appendMessages", params);
    let track = json!({ "taskId": "t", "path": "a.rs", "operation": "read_tool" });
    server.call("sightline/trackFile", track);
    workspace.write("a.rs", "another");
    drop(server);
    let mut server = Server::start(&workspace);
    let resumed = server.call("sightline/resumeTask", json!({}));
    assert_eq!(resumed["taskId"], "t");
    assert_eq!(resumed["interruptedTools"], json!(["call_1"]));
    let resumption = resumed["resumption"].as_str().unwrap();
    assert!(resumption.starts_with("[TASK RESUMPTION]"), "{resumption}");
    assert!(
        resumption.contains("just now") && resumption.contains("a.rs"),
        "{resumption}"
    );
    let messages = resumed["messages"].as_array().unwrap();
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "call_1");
    let loaded = load(&mut server, "t");
    let later = loaded["metadata"]["updatedAt"].as_i64().unwrap() + 2 * 60 * 60 * 1000;
    let resumed = server.call(
        "sightline/resumeTask",
        json!({ "taskId": "t", "now": later }),
    );
    assert!(
        resumed["resumption"]
            .as_str()
            .unwrap()
            .contains("2 hours ago")
    );
    let error = server.refused("sightline/resumeTask", json!({ "taskId": "none" }));
    assert_eq!(error["data"]["kind"], "notFound");
}

#[test]
fn the_command_line_works_on_stored_tasks() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &turns(12));
    drop(server);
    let data = workspace.data().display().to_string();
    let run = |arguments: &[&str], input: &str| {
        let mut all = arguments.to_vec();
        all.extend(["--storage", &data]);
        piped(&workspace, &all, input)
    };
    let (code, listed) = run(&["task", "list"], "");
    assert_eq!(code, 0);
    assert!(
        listed.starts_with("t\t") && listed.contains("12 messages\tturn 0"),
        "{listed}"
    );
    let (code, shown) = run(&["task", "show", "t"], "");
    assert_eq!(code, 0);
    assert!(
        shown.starts_with("# turn 0\n\n## 1. user\n\nturn 0\n\n## 2. assistant\n"),
        "{shown}"
    );
    assert!(shown.contains("turn 11"), "{shown}");
    let (code, resumed) = run(&["task", "resume"], "");
    assert_eq!(code, 0);
    assert!(resumed.starts_with("[TASK RESUMPTION]"), "{resumed}");

    let planned = run(&["compact", "plan", "--task", "t", "--model", "gpt-4o"], "");
    assert_eq!(planned, (1, String::new()), "not needed yet");
    let (code, text) = run(&["compact", "apply", "--task", "t"], "It went well.");
    assert_eq!(code, 0, "{text}");
    let rollback = ["history", "rollback", "--task", "t", "--to", "1"];
    assert_eq!(
        run(&rollback, ""),
        (0, "{\"contextHistory\":[]}\n".to_owned())
    );

    let (code, exported) = run(&["task", "export", "t"], "");
    assert_eq!(code, 0);
    workspace.write("export.json", &exported);
    let file = workspace.path("export.json").display().to_string();
    assert_eq!(run(&["task", "import", &file], "").0, 3, "t already exists");
    let (code, imported) = run(&["task", "import", &file, "--id", "copy"], "");
    assert_eq!((code, imported.as_str()), (0, "copy\t12 messages\n"));
    let (code, json) = run(&["task", "show", "--json", "copy"], "");
    assert_eq!(code, 0);
    let loaded: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(loaded["messages"], json!(turns(12)));
    // Deleting needs confirmation.
    let listed = run(&["task", "list"], "");
    assert_eq!(run(&["task", "delete", "t", "copy"], "").0, 2);
    let (code, shown) = run(&["task", "delete", "--dry-run", "copy"], "");
    assert!(code == 0 && shown.starts_with("copy\t"), "{shown}");
    assert_eq!(run(&["task", "delete", "--dry-run", "copy", "no"], "").0, 3);
    for asks in [&["--yes"][..], &[]] {
        let arguments = [&["task", "delete", "t", "no"], asks].concat();
        assert_eq!(run(&arguments, ""), (3, String::new()));
    }
    assert_eq!(run(&["task", "list"], ""), listed);
    // A task that has only checkpoints.
    let created = run(&["checkpoint", "create", "--task", "other"], "");
    assert_eq!(created.0, 0);
    let (code, said) = run(&["task", "delete", "--yes", "t", "copy", "other"], "");
    assert!(code == 0 && said.starts_with("3 tasks deleted, "), "{said}");
    assert!(said.ends_with(" kB freed\n"), "{said}");
    assert_eq!(run(&["task", "list"], "").0, 0);
    assert_eq!(run(&["task", "show", "t"], "").0, 3);
    assert_eq!(run(&["task", "show", "../t"], "").0, 2);
}

#[test]
fn an_export_omits_records_of_denied_files() {
    let workspace = Workspace::new(&[("f.conf", "KEY=1\n"), ("open.txt", "")]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &turns(2));
    for path in ["f.conf", "open.txt"] {
        let params = json!({ "taskId": "t", "path": path, "operation": "read_tool" });
        server.call("sightline/trackFile", params);
    }
    drop(server);
    workspace.write(".clineignore", "*.conf\n");
    let data = workspace.data().display().to_string();
    let export = |more: &[&str]| {
        let arguments = [&["task", "export", "t", "--storage", &data], more].concat();
        piped(&workspace, &arguments, "")
    };
    let (code, exported) = export(&[]);
    assert_eq!(code, 0);
    assert!(exported.contains("open.txt"), "{exported}");
    assert!(!exported.contains("f.conf"), "{exported}");
    let (code, exported) = export(&["--all"]);
    assert_eq!(code, 0);
    assert!(exported.contains("f.conf"), "{exported}");
}

#[test]
fn old_tasks_are_pruned_by_settings() {
    let workspace = Workspace::new(&[]);
    let append_at = |server: &mut Server, task: &str, now: i64| {
        let meta = json!({ "now": now });
        let params = json!({ "taskId": task, "messages": turns(1), "meta": meta });
        server.call("sightline/appendMessages", params)
    };
    let ids = |server: &mut Server| -> Vec<String> {
        let listed = server.call("sightline/listTasks", json!({}));
        let tasks = listed["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| task["taskId"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut server = Server::start(&workspace);
    let year_ago = SystemTime::now() - Duration::from_secs(365 * 24 * 60 * 60);
    for (now, task) in [(1000, "a"), (2000, "b"), (3000, "c")] {
        append_at(&mut server, task, now);
        // Not written to for a year. Write times count in milliseconds, and several tasks
        // may share one.
        let file = fs::File::options()
            .write(true)
            .open(log(&workspace, task))
            .unwrap();
        let written = year_ago + Duration::from_millis(now.unsigned_abs());
        file.set_modified(written).unwrap();
    }
    drop(server);
    let mut initialize = workspace.initialize();
    initialize["initializationOptions"]["tasks"] = json!({ "maxCount": 2 });
    let mut server = Server::initialized(initialize);
    assert_eq!(ids(&mut server), ["c", "b"]);
    // Also while the server runs, but not a task in use, however old.
    append_at(&mut server, "d", 500);
    assert_eq!(ids(&mut server), ["c", "d"]);
    append_at(&mut server, "e", 5000);
    append_at(&mut server, "f", 6000);
    assert_eq!(ids(&mut server), ["f", "e", "d"]);
    let none = json!({ "taskId": "d", "messages": [] });
    assert_eq!(
        server.call("sightline/appendMessages", none),
        json!({ "count": 1 })
    );
    let none = json!({ "taskId": "none", "messages": [] });
    assert_eq!(
        server.call("sightline/appendMessages", none),
        json!({ "count": 0 })
    );
}

#[test]
fn a_cancelled_append_is_not_stored() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let mut stored = 0;
    for round in 0..60 {
        let messages = [text("user", &format!("turn {round}"))];
        let params = json!({ "taskId": "t", "messages": messages });
        let id = server.start("sightline/appendMessages", params).unwrap();
        server.send_notification("$/cancelRequest", json!({ "id": id }));
        match server.wait(id).unwrap() {
            Ok(result) => {
                stored += 1;
                assert_eq!(result["count"], stored);
            }
            Err(error) => assert_eq!(error["data"]["kind"], "cancelled"),
        }
    }
    if stored > 0 {
        let loaded = load(&mut server, "t");
        assert_eq!(loaded["messages"].as_array().unwrap().len(), stored);
    }
}
