//! Tests of the task store: append, load, truncate, list and delete.

use std::fs;

use crate::support::{Scratch, at, raw, says, texts};
use serde_json::json;
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::AbsPath,
    storage::{Storage, TaskId},
};
use sightline_conversation::{ContextHistory, DeletedRange};
use sightline_protocol::error::ErrorKind;
use sightline_tasks::{
    CommitResult, EntryMeta, EntryOrigin, RewindPoint, TaskStore, TruncationState,
};
use std::path::Path;

fn history(text: &str) -> ContextHistory {
    ContextHistory::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

fn truncation(end: i64, message: usize, time: i64) -> TruncationState {
    TruncationState {
        deleted_range: Some(DeletedRange([2, end])),
        history: history(&format!(
            r#"[[{message},[0,[[0,[[{time},"text",["short"],[]]]]]]]]"#
        )),
    }
}

#[test]
fn appended_messages_are_stored_byte_for_byte() {
    let scratch = Scratch::new();
    let odd = [
        r#"{ "role":"user","z":1.0,"a":1e2,"content":"\u00e9\ud83d" }"#,
        "{\"role\":\"assistant\",\n \"content\":[]}",
        r#"{"content":null}"#,
    ];
    scratch.append("t", &odd, 5);
    for store in [scratch.store.clone(), scratch.again()] {
        let now = store.load(&at("t"), &Cancel::default()).unwrap();
        assert_eq!(now.messages[0].message.get(), odd[0]);
        assert_eq!(now.messages[1].message.get(), odd[1].replace('\n', " "));
        assert_eq!(now.messages[2].message.get(), odd[2]);
        assert_eq!(now.messages[2].time, 5);
        assert_eq!((now.recovered.lines, now.recovered.dropped), (3, 0));
    }
    let log = scratch.log("t");
    assert_eq!(log.lines().count(), 3);
    let kinds: Vec<_> = log
        .lines()
        .map(|line| line.split(r#""type":"#).nth(1).unwrap())
        .map(|rest| rest.split(',').next().unwrap())
        .collect();
    assert_eq!(kinds, ["\"user\"", "\"assistant\"", "\"system\""]);
}

#[test]
fn invalid_messages_are_rejected_and_nothing_is_stored() {
    let scratch = Scratch::new();
    let append = |texts: &[&str]| {
        let messages: Vec<_> = texts.iter().map(|text| raw(text)).collect();
        let messages: Vec<_> = messages.iter().map(|raw| &**raw).collect();
        let meta = EntryMeta::default();
        let appended = scratch
            .store
            .append(&at("t"), &messages, &meta, &Cancel::default());
        appended.map(|appended| appended.count)
    };
    let refused = append(&[r#"{"role":"user"}"#, "[]"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidParams);
    assert_eq!(
        refused.to_string(),
        "messages[1] is not an object; a message has a role and content"
    );
    assert_eq!(append(&[]).unwrap_err().kind(), ErrorKind::InvalidParams);
    let large = format!(r#"{{"content":"{}"}}"#, "x".repeat(64 << 20));
    let refused = append(&[&large]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert_eq!(
        refused.to_string(),
        "a message exceeds the limit of 67108864 bytes; split it into several messages"
    );
    let load = scratch.store.load(&at("t"), &Cancel::default());
    assert_eq!(load.unwrap_err().kind(), ErrorKind::NotFound);
    let stopped = Cancel::default();
    stopped.cancel();
    let refused = scratch.store.append(
        &at("t"),
        &[&raw(&says("user", "x"))],
        &EntryMeta::default(),
        &stopped,
    );
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(append(&["{}"]).unwrap() == 1);
}

#[test]
fn a_missing_task_is_not_found_and_not_created() {
    let scratch = Scratch::new();
    let (store, cancel, task) = (&scratch.store, Cancel::default(), at("none"));
    let meta = EntryMeta::default();
    let seen = Default::default();
    let truncation = TruncationState::default();
    let found: [Result<(), Error>; 5] = [
        store.load(&task, &cancel).map(drop),
        store
            .store_truncation(&task, &seen, &truncation, &1.into(), &meta, &cancel)
            .map(drop),
        store
            .rewind(&task, RewindPoint::Beginning, None, &meta, &cancel)
            .map(drop),
        store.rollback(&task, &1.into(), &meta, &cancel).map(drop),
        store.delete(&task).map(drop),
    ];
    for found in found {
        let error = found.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(
            error.to_string(),
            "task none has no stored conversation; list the tasks to see their ids"
        );
    }
    assert!(!scratch.data().exists());
}

#[test]
fn truncation_is_logged_and_copied_to_the_history_file() {
    let scratch = Scratch::new();
    scratch.say("t", 8, 1);
    let cancel = Cancel::default();
    let seen = scratch.store.load(&at("t"), &cancel).unwrap();
    let wanted = truncation(3, 5, 9);
    let store = |seen, wanted: &TruncationState| {
        let meta = EntryMeta::default();
        scratch
            .store
            .store_truncation(&at("t"), seen, wanted, &9.into(), &meta, &cancel)
            .unwrap()
    };
    assert!(matches!(store(&seen, &wanted), CommitResult::Stored));
    let mirror = scratch.file("t", "context_history.json");
    assert_eq!(mirror, wanted.history.clone().into_value().to_string());
    for store in [scratch.store.clone(), scratch.again()] {
        let now = store.load(&at("t"), &cancel).unwrap();
        assert_eq!(*now.truncation, wanted);
        assert_eq!(now.messages.len(), 8);
    }
    // A decision on an outdated conversation conflicts.
    let CommitResult::Conflict(now) = store(&seen, &truncation(5, 5, 9)) else {
        panic!("stored");
    };
    assert_eq!(*now.truncation, wanted);
    // Messages appended since then do not conflict.
    scratch.append("t", &[&says("user", "more")], 10);
    assert!(matches!(
        store(&now, &truncation(5, 5, 9)),
        CommitResult::Stored
    ));
    let lines = scratch.log("t").lines().count();
    let now = scratch.store.load(&at("t"), &cancel).unwrap();
    assert!(matches!(
        store(&now, &truncation(5, 5, 9)),
        CommitResult::Stored
    ));
    assert_eq!(scratch.log("t").lines().count(), lines, "nothing new");
    // The history file is derived from the log, not the other way round.
    fs::write(scratch.path("t").join("context_history.json"), "[[").unwrap();
    let now = scratch.again().load(&at("t"), &cancel).unwrap();
    assert_eq!(*now.truncation, truncation(5, 5, 9));
}

#[test]
fn truncation_of_a_copied_task_is_read() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let text = r#"[[1,[0,[[0,[[9,"text",["short"],[]]]]]]]]"#;
    fs::write(scratch.path("t").join("context_history.json"), text).unwrap();
    let now = scratch.store.load(&at("t"), &Cancel::default()).unwrap();
    assert_eq!(now.truncation.history, history(text));
    let wanted = truncation(1, 2, 4);
    let stored = scratch.store.store_truncation(
        &at("t"),
        &now,
        &wanted,
        &4.into(),
        &EntryMeta::default(),
        &Cancel::default(),
    );
    assert!(matches!(stored.unwrap(), CommitResult::Stored));
    let now = scratch.again().load(&at("t"), &Cancel::default()).unwrap();
    assert_eq!(*now.truncation, wanted);
}

#[test]
fn truncation_follows_its_messages_when_a_line_is_lost() {
    let scratch = Scratch::new();
    scratch.say("t", 9, 1);
    let cancel = Cancel::default();
    let seen = scratch.store.load(&at("t"), &cancel).unwrap();
    let (task, meta) = (at("t"), EntryMeta::default());
    let stored = scratch.store.store_truncation(
        &task,
        &seen,
        &truncation(5, 7, 9),
        &9.into(),
        &meta,
        &cancel,
    );
    assert!(matches!(stored.unwrap(), CommitResult::Stored));
    let log = scratch.log("t");
    let mut lines: Vec<&str> = log.lines().collect();
    lines[3] = "{\"uuid\":";
    fs::write(scratch.log_path("t"), lines.join("\n") + "\n").unwrap();
    let now = scratch.again().load(&task, &cancel).unwrap();
    assert_eq!(*now.truncation, truncation(4, 6, 9));
    assert_eq!((now.recovered.lines, now.recovered.dropped), (9, 1));
    assert_eq!(now.messages.len(), 8);
}

#[test]
fn tasks_are_listed_last_updated_first() {
    let scratch = Scratch::new();
    let cancel = Cancel::default();
    let ids = |store: &TaskStore| -> Vec<String> {
        let listed = store.list(None, &cancel).unwrap();
        listed.into_iter().map(|task| task.task_id).collect()
    };
    assert_eq!(ids(&scratch.store), [""; 0]);
    scratch.append("b", &[&says("user", "<task>\nOne\n</task>")], 100);
    scratch.append("a", &[&says("user", "Two")], 100);
    scratch.append("c", &[&says("user", "Three")], 50);
    fs::create_dir(scratch.path("d")).unwrap();
    fs::write(scratch.data().join("tasks/not a task"), "").unwrap();
    assert_eq!(ids(&scratch.store), ["a", "b", "c"]);
    scratch.append("c", &[&says("assistant", "Yes")], 200);
    for store in [scratch.store.clone(), scratch.again()] {
        assert_eq!(ids(&store), ["c", "a", "b"]);
        let tasks = store.list(Some(1), &cancel).unwrap();
        let [task] = tasks.as_slice() else {
            panic!("{tasks:?}")
        };
        assert_eq!((task.created_at, task.updated_at), (50, 200));
        assert_eq!((task.message_count, &*task.title), (2, "Three"));
    }
    let index = scratch.data().join("tasks/.index.json");
    // A stale, malformed or missing index does not matter: it is a cache.
    let old = fs::read(&index).unwrap();
    scratch.append("b", &[&says("assistant", "Yes")], 300);
    assert_eq!(ids(&scratch.again()), ["b", "c", "a"]);
    fs::write(&index, old).unwrap();
    assert_eq!(ids(&scratch.again()), ["b", "c", "a"]);
    fs::write(&index, "{\"tasks\":[{}").unwrap();
    assert_eq!(ids(&scratch.again()), ["b", "c", "a"]);
    fs::remove_file(&index).unwrap();
    assert_eq!(ids(&scratch.again()), ["b", "c", "a"]);
    // The entry of an unchanged log is trusted.
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, text.replace("Three", "Drei")).unwrap();
    let titles = scratch.again().list(None, &cancel).unwrap();
    assert_eq!(titles[1].title, "Drei");
    // A deleted task is no longer listed.
    scratch.store.delete(&at("c")).unwrap();
    assert_eq!(ids(&scratch.again()), ["b", "a"]);
    assert!(!fs::read_to_string(&index).unwrap().contains("Drei"));
    // No task id collides with the index file.
    assert!(TaskId::new(".index.json").is_err());
}

#[test]
fn newest_returns_the_last_updated_task_of_a_project() {
    let scratch = Scratch::new();
    let cancel = Cancel::default();
    for (id, cwd, now) in [
        ("a", Some("/p/one"), 1),
        ("b", Some("/p/one/sub"), 2),
        ("c", Some("/p/one-more"), 3),
        ("d", None, 4),
    ] {
        let origin = EntryOrigin {
            cwd: cwd.map(str::to_owned),
            ..EntryOrigin::default()
        };
        let message = raw(&says("user", "x"));
        let appended =
            scratch
                .store
                .append(&at(id), &[&message], &EntryMeta { origin, now }, &cancel);
        assert_eq!(appended.unwrap().count, 1);
    }
    let newest = |roots: &[&str]| {
        let roots: Vec<_> = roots
            .iter()
            .map(|root| AbsPath::new(Path::new(root)).unwrap())
            .collect();
        let newest = scratch.store.newest(&roots, &cancel).unwrap();
        newest.map(|id| id.to_string())
    };
    assert_eq!(newest(&["/p/one"]).as_deref(), Some("b"));
    assert_eq!(newest(&["/q", "/p/one-more"]).as_deref(), Some("c"));
    assert_eq!(newest(&["/q"]), None);
    assert_eq!(newest(&[]).as_deref(), Some("d"));
}

#[test]
fn deleting_a_task_removes_all_its_files() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    fs::create_dir(scratch.path("t").join("more")).unwrap();
    fs::write(scratch.path("t").join("more/x"), "12345").unwrap();
    let bytes = scratch.log("t").len() as u64 + 5;
    // Left over by an interrupted deletion.
    let name = "tasks/.deleted-3f0c1a52-8d1e-4a61-9c56-0d3c5b1f7a10";
    let left = scratch.data().join(name);
    fs::create_dir(&left).unwrap();
    fs::write(left.join("conversation.jsonl"), "x").unwrap();
    assert_eq!(scratch.store.delete(&at("t")).unwrap(), bytes);
    let names: Vec<_> = fs::read_dir(scratch.data().join("tasks"))
        .unwrap()
        .collect();
    assert_eq!(names.len(), 0, "{names:?}");
    let load = scratch.store.load(&at("t"), &Cancel::default());
    assert_eq!(load.unwrap_err().kind(), ErrorKind::NotFound);
    // The task can be created again.
    scratch.say("t", 1, 1);
    let now = scratch.store.load(&at("t"), &Cancel::default()).unwrap();
    assert_eq!(texts(&now).len(), 1);
}

#[test]
fn a_deletion_by_another_store_is_noticed() {
    let scratch = Scratch::new();
    let other = scratch.again();
    scratch.say("t", 3, 1);
    let cancel = Cancel::default();
    assert_eq!(other.load(&at("t"), &cancel).unwrap().messages.len(), 3);
    scratch.store.delete(&at("t")).unwrap();
    scratch.say("t", 1, 1);
    assert_eq!(other.load(&at("t"), &cancel).unwrap().messages.len(), 1);
}

#[cfg(unix)]
#[test]
fn a_log_that_is_a_symlink_is_rejected() {
    let scratch = Scratch::new();
    scratch.say("t", 1, 1);
    let elsewhere = scratch.data().join("elsewhere");
    fs::rename(scratch.log_path("t"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, scratch.log_path("t")).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    let store = scratch.again();
    let load = store.load(&at("t"), &Cancel::default()).unwrap_err();
    assert_eq!(load.kind(), ErrorKind::Storage);
    assert!(load.to_string().contains("not a regular file"), "{load}");
    let message = raw(&says("user", "x"));
    let meta = EntryMeta::default();
    let append = store.append(&at("t"), &[&message], &meta, &Cancel::default());
    assert_eq!(append.unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    assert_eq!(store.list(None, &Cancel::default()).unwrap(), []);
}

#[cfg(unix)]
#[test]
fn stored_files_are_readable_by_the_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    scratch.say("t", 1, 1);
    scratch.store.list(None, &Cancel::default()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&scratch.log_path("t")), 0o600);
    assert_eq!(mode(&scratch.data().join("tasks/.index.json")), 0o600);
    fs::set_permissions(scratch.log_path("t"), fs::Permissions::from_mode(0o644)).unwrap();
    scratch.again().load(&at("t"), &Cancel::default()).unwrap();
    assert_eq!(mode(&scratch.log_path("t")), 0o600);
}

#[test]
fn the_log_matches_the_documented_format() {
    let scratch = Scratch::new();
    let origin = EntryOrigin {
        session_id: Some("s".to_owned()),
        cwd: Some("/p".to_owned()),
        git_branch: Some("main".to_owned()),
        version: Some("1.2".to_owned()),
    };
    let meta = EntryMeta { origin, now: 1_000 };
    let messages = [raw(&says("user", "x")), raw(&says("assistant", "y"))];
    let messages: Vec<_> = messages.iter().map(|raw| &**raw).collect();
    let cancel = Cancel::default();
    let appended = scratch.store.append(&at("t"), &messages, &meta, &cancel);
    appended.unwrap().written.sync().unwrap();
    let lines: Vec<serde_json::Value> = scratch
        .log("t")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[1],
        json!({
            "uuid": lines[1]["uuid"], "parentUuid": lines[0]["uuid"], "sessionId": "s",
            "timestamp": "1970-01-01T00:00:01.000Z", "type": "assistant", "cwd": "/p",
            "gitBranch": "main", "version": "1.2",
            "message": {"role": "assistant", "content": "y"},
        })
    );
    assert_eq!(lines[0]["parentUuid"], json!(null));
    let facts = scratch.store.load(&at("t"), &cancel).unwrap().info.clone();
    assert_eq!(facts.cwd.as_deref(), Some("/p"));
    assert_eq!(facts.git_branch.as_deref(), Some("main"));
    assert!(Storage::open(&scratch.data()).is_ok());
}
