//! Restores that rewind a task's conversation.

use std::fs;

use serde_json::{Value, json};

use crate::{
    checkpoints::restores::{call, outcomes, read},
    checkpoints::{create, each, id},
    harness::{Server, Workspace},
};

fn append(server: &mut Server, task: &str, texts: &[&str]) -> u64 {
    let messages: Vec<Value> = texts
        .iter()
        .map(|text| {
            let is_odd = text.ends_with(['1', '3', '5', '7', '9']);
            let role = if is_odd { "user" } else { "assistant" };
            json!({ "role": role, "content": text })
        })
        .collect();
    let params = json!({ "taskId": task, "messages": messages });
    let count = call(server, "appendMessages", params)["count"].clone();
    count.as_u64().unwrap()
}

fn message_texts(server: &mut Server, task: &str) -> Vec<String> {
    let loaded = server.call("sightline/loadTask", json!({ "taskId": task }));
    let messages = loaded["messages"].as_array().unwrap();
    each(messages, "content")
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_conversation_is_rewound_with_files_or_alone_and_back() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &["m1", "m2"]);
    let taken = create(&mut server, json!({ "taskId": "t" }));
    assert_eq!(taken["messages"], 2);
    append(&mut server, "t", &["m3", "m4"]);
    workspace.write("a.txt", "two\n");

    // Alone: the files stay.
    let params = json!({ "id": id(&taken), "mode": "task" });
    let restored = call(&mut server, "restoreCheckpoint", params);
    assert_eq!(restored["outcomes"], json!([]));
    assert_eq!(restored["task"], json!({ "taskId": "t", "messages": 2 }));
    assert_eq!(message_texts(&mut server, "t"), ["m1", "m2"]);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    workspace.write("a.txt", "three\n");
    let seen = json!({ "id": restored["undoId"], "undo": true });
    let preview = call(&mut server, "previewRestore", seen);
    assert_eq!(
        (&preview["changes"], &preview["taskId"]),
        (&json!([]), &json!("t"))
    );
    let undo = json!({ "undoId": restored["undoId"], "token": preview["token"] });
    let undone = call(&mut server, "undoRestore", undo);
    assert_eq!(undone["task"], json!({ "taskId": "t", "messages": 4 }));
    assert_eq!(message_texts(&mut server, "t"), ["m1", "m2", "m3", "m4"]);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "three\n");

    // With the files.
    let params = json!({ "id": id(&taken), "mode": "filesAndTask" });
    let restored = call(&mut server, "restoreCheckpoint", params);
    assert_eq!(outcomes(&restored), [("a.txt", "write", true)]);
    assert_eq!(message_texts(&mut server, "t"), ["m1", "m2"]);
    // Without files to restore, there is still something to undo.
    let again = call(
        &mut server,
        "restoreCheckpoint",
        json!({ "id": id(&taken), "mode": "filesAndTask" }),
    );
    assert_eq!(again["outcomes"], json!([]));
    call(
        &mut server,
        "undoRestore",
        json!({ "undoId": again["undoId"] }),
    );
    let undo = json!({ "undoId": restored["undoId"] });
    let undone = call(&mut server, "undoRestore", undo);
    assert_eq!(undone["task"]["messages"], 4);
    assert_eq!(message_texts(&mut server, "t").len(), 4);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "three\n");
    // Forward and back again, by the undo point of the undo.
    let again = call(
        &mut server,
        "undoRestore",
        json!({ "undoId": undone["undoId"] }),
    );
    assert_eq!(again["task"]["messages"], 2);

    // A restore of files only does not change it.
    call(&mut server, "undoRestore", json!({}));
    call(
        &mut server,
        "restoreCheckpoint",
        json!({ "id": id(&taken) }),
    );
    assert_eq!(message_texts(&mut server, "t").len(), 4);
}

#[test]
fn a_conversation_is_rewound_to_a_checkpoint_on_any_branch() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &["u0", "a0"]);
    let first = create(&mut server, json!({ "taskId": "t" }));
    append(&mut server, "t", &["u1", "a1"]);
    let second = create(&mut server, json!({ "taskId": "t" }));
    let go = |server: &mut Server, to: &Value| {
        let params = json!({ "id": id(to), "mode": "task" });
        call(server, "restoreCheckpoint", params)
    };
    go(&mut server, &first);
    append(&mut server, "t", &["u9", "a9"]);
    let third = create(&mut server, json!({ "taskId": "t" }));
    // To the branch that was left, with as many messages as this one.
    let restored = go(&mut server, &second);
    assert_eq!(restored["task"], json!({ "taskId": "t", "messages": 4 }));
    assert_eq!(message_texts(&mut server, "t"), ["u0", "a0", "u1", "a1"]);
    call(&mut server, "undoRestore", json!({}));
    assert_eq!(message_texts(&mut server, "t"), ["u0", "a0", "u9", "a9"]);
    go(&mut server, &first);
    assert_eq!(message_texts(&mut server, "t"), ["u0", "a0"]);
    go(&mut server, &third);
    assert_eq!(message_texts(&mut server, "t"), ["u0", "a0", "u9", "a9"]);

    // Another conversation of the same name is not affected.
    let log = workspace.data().join("tasks/t/conversation.jsonl");
    fs::remove_file(&log).unwrap();
    append(&mut server, "t", &["u0", "a0", "u1", "a1"]);
    let written = fs::read(&log).unwrap();
    workspace.write("a.txt", "two\n");
    let params = json!({ "id": id(&second), "mode": "filesAndTask" });
    let error = server.refused("sightline/restoreCheckpoint", params);
    assert_eq!(error["data"]["kind"], "conflict", "{error}");
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    assert_eq!(fs::read(&log).unwrap(), written, "nothing was done");
}

#[test]
fn a_compacted_conversation_is_rewound_too() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &["m1", "m2", "m3"]);
    let taken = create(&mut server, json!({ "taskId": "t" }));
    append(&mut server, "t", &["m4", "m5", "m6"]);
    let params = json!({ "taskId": "t", "summary": "in short", "retainFrom": 4 });
    call(&mut server, "applyCompaction", params);
    let compacted = message_texts(&mut server, "t");
    assert!(compacted.len() < 6);
    let params = json!({ "id": id(&taken), "mode": "task" });
    let restored = call(&mut server, "restoreCheckpoint", params);
    assert_eq!(restored["task"]["messages"], 3, "{restored}");
    assert_eq!(message_texts(&mut server, "t"), ["m1", "m2", "m3"]);
    call(&mut server, "undoRestore", json!({}));
    assert_eq!(message_texts(&mut server, "t"), compacted);
}

#[test]
fn a_rewind_is_ordered_with_appends() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &["m1"]);
    let taken = create(&mut server, json!({ "taskId": "t" }));
    append(&mut server, "t", &["m2"]);
    // Sent without waiting: messages after the rewind stay.
    for round in 0..10 {
        let params = json!({ "id": id(&taken), "mode": "filesAndTask" });
        let restore = server.start("sightline/restoreCheckpoint", params).unwrap();
        let later = json!([{ "role": "user", "content": format!("later {round}") }]);
        let params = json!({ "taskId": "t", "messages": later });
        let append = server.start("sightline/appendMessages", params).unwrap();
        server.wait(restore).unwrap().unwrap();
        assert_eq!(server.wait(append).unwrap().unwrap()["count"], 2);
        assert_eq!(
            message_texts(&mut server, "t"),
            ["m1".to_owned(), format!("later {round}")]
        );
    }
}

#[test]
fn a_checkpoint_records_the_messages_before_it() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    // Sent without waiting for responses.
    for round in 1..=10 {
        let message = json!([{ "role": "user", "content": "more" }]);
        let params = json!({ "taskId": "t", "messages": message });
        let append = server.start("sightline/appendMessages", params).unwrap();
        let params = json!({ "taskId": "t" });
        let taken = server.start("sightline/createCheckpoint", params).unwrap();
        server.wait(append).unwrap().unwrap();
        assert_eq!(server.wait(taken).unwrap().unwrap()["messages"], round);
    }
}

#[test]
fn a_checkpoint_without_a_task_rewinds_a_conversation_by_time() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    append(&mut server, "t", &["m1", "m2"]);
    // Times have millisecond resolution.
    std::thread::sleep(std::time::Duration::from_millis(3));
    let taken = create(&mut server, json!({}));
    std::thread::sleep(std::time::Duration::from_millis(3));
    append(&mut server, "t", &["m3"]);
    let params = json!({ "id": id(&taken), "mode": "task", "taskId": "t" });
    call(&mut server, "restoreCheckpoint", params);
    assert_eq!(message_texts(&mut server, "t"), ["m1", "m2"]);
    let params = json!({ "id": id(&taken), "mode": "task", "taskId": "none" });
    let error = server.refused("sightline/restoreCheckpoint", params);
    assert_eq!(error["data"]["kind"], "notFound");
}
