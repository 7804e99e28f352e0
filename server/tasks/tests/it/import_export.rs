//! Tests of importing and exporting tasks.

use std::{fs, path::PathBuf};

use crate::support::{Scratch, at, raw, says, texts, turn, undo_compaction};
use serde_json::{Value, json};
use sightline_base::{cancel::Cancel, error::Error};
use sightline_conversation::DeletedRange;
use sightline_protocol::{compaction::CompactionTrigger, error::ErrorKind};
use sightline_tasks::{CommitResult, CompactedMessage, Compaction, EntryMeta, ImportedTask};

const CLINE: &str = "1700000000000";
const METADATA: &str = r#"{
  "files_in_context": [
    {"path": "a.rs", "record_state": "active", "record_source": "read_tool", "cline_read_date": 5, "cline_edit_date": null, "user_edit_date": null, "new": 1}
  ],
  "model_usage": []
}"#;

/// Messages as different versions of Cline wrote them.
fn messages() -> Vec<String> {
    vec![
        r##"{"role":"user","content":[{"type":"text","text":"<task>\nAdd a test\n</task>"},{"type":"text","text":"<environment_details>\n# Current Working Directory (/home/u/p) Files\nsrc/\n</environment_details>"}]}"##.to_owned(),
        r#"{"role":"assistant","content":[{"type":"text","text":"ok \u00e9"}],"modelInfo":{"modelId":"m"},"z":1.0}"#.to_owned(),
        says("user", "a plain string"),
        r#"{"role":"assistant","content":"also plain","ts":1700000009000}"#.to_owned(),
        says("user", "four"),
        says("assistant", "five"),
    ]
}

fn folder(scratch: &Scratch) -> PathBuf {
    let dir = scratch.dir().join("cline/tasks").join(CLINE);
    fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    write(
        "api_conversation_history.json",
        &format!("[{}]", messages().join(",")),
    );
    let ui = json!([
        {"ts": 1_700_000_000_500_i64, "type": "say", "say": "task", "text": "Add a test", "conversationHistoryIndex": -1},
        {"ts": 1_700_000_001_000_i64, "type": "say", "conversationHistoryIndex": 0},
        {"ts": 1_700_000_001_500_i64, "type": "say", "conversationHistoryIndex": 0},
        {"ts": 1_700_000_003_000_i64, "type": "ask", "conversationHistoryIndex": 2, "conversationHistoryDeletedRange": [2, 1]},
        {"ts": 1_700_000_010_000_i64, "type": "ask", "conversationHistoryIndex": 4, "conversationHistoryDeletedRange": [2, 3]},
        {"ts": 1_700_000_011_000_i64, "type": "say", "partial": false, "images": []},
    ]);
    write("ui_messages.json", &ui.to_string());
    write(
        "context_history.json",
        r#"[[1,[0,[[0,[[1700000010000,"text",["note"],[]]]]]]]]"#,
    );
    write("task_metadata.json", METADATA);
    write("settings.json", "{}");
    dir
}

fn import(
    scratch: &Scratch,
    source: &std::path::Path,
    id: Option<&str>,
) -> Result<ImportedTask, Error> {
    let id = id.map(at);
    scratch
        .store
        .import(source, id.as_ref(), 77, &Cancel::default())
}

#[test]
fn a_cline_task_folder_is_imported() {
    let scratch = Scratch::new();
    let dir = folder(&scratch);
    let contents = || -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
        files.into_iter().map(read).collect()
    };
    let before = contents();
    let imported = import(&scratch, &dir, None).unwrap();
    assert_eq!(contents(), before, "the source is read only");
    assert_eq!(
        imported,
        ImportedTask {
            task_id: at(CLINE),
            messages: 6,
            problems: Vec::new()
        }
    );
    for store in [scratch.store.clone(), scratch.again()] {
        let now = store.load(&at(CLINE), &Cancel::default()).unwrap();
        assert_eq!(texts(&now), messages());
        assert_eq!(now.truncation.deleted_range, Some(DeletedRange([2, 3])));
        let times: Vec<i64> = now
            .messages
            .iter()
            .map(|stored| stored.time - 1_700_000_000_000)
            .collect();
        assert_eq!(times, [1_000, 1_000, 3_000, 9_000, 10_000, 10_000]);
        assert_eq!(now.info.title, "Add a test");
        assert_eq!(now.info.cwd.as_deref(), Some("/home/u/p"));
    }
    assert_eq!(scratch.file(CLINE, "task_metadata.json"), METADATA);
    let history = fs::read_to_string(dir.join("context_history.json")).unwrap();
    assert_eq!(scratch.file(CLINE, "context_history.json"), history);
    // Cline's decisions can be rolled back like our own.
    let meta = EntryMeta::default();
    let cancel = Cancel::default();
    let time = 1_700_000_009_999_i64;
    let rolled = scratch
        .store
        .rollback(&at(CLINE), &time.into(), &meta, &cancel);
    assert_eq!(rolled.unwrap().into_value(), json!([]));
    let now = scratch.store.load(&at(CLINE), &cancel).unwrap();
    assert_eq!(now.truncation.deleted_range, None);
    // The conversation can be continued.
    scratch.append(CLINE, &[&turn(6)], 1);
    let refused = import(&scratch, &dir, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(import(&scratch, &dir, Some("other")).unwrap().messages, 6);
}

#[test]
fn malformed_files_are_reported() {
    let scratch = Scratch::new();
    let dir = folder(&scratch);
    for name in [
        "ui_messages.json",
        "context_history.json",
        "task_metadata.json",
    ] {
        fs::write(dir.join(name), "[{\"ts\":").unwrap();
    }
    let imported = import(&scratch, &dir, None).unwrap();
    assert_eq!(imported.messages, 6);
    let named = imported.problems.join("\n");
    for name in [
        "ui_messages.json",
        "context_history.json",
        "task_metadata.json",
    ] {
        assert!(named.contains(name), "{named}");
    }
    let now = scratch.store.load(&at(CLINE), &Cancel::default()).unwrap();
    // The folder's name is a timestamp.
    assert_eq!(now.messages[0].time, 1_700_000_000_000);
    assert!(!scratch.path(CLINE).join("task_metadata.json").exists());

    let messages_file = dir.join("api_conversation_history.json");
    let text = fs::read_to_string(&messages_file).unwrap();
    fs::write(&messages_file, &text[..text.len() - 5]).unwrap();
    let imported = import(&scratch, &dir, Some("cut")).unwrap();
    assert_eq!(imported.messages, 5);
    let named = imported.problems.join(
        "
",
    );
    assert!(named.contains("first 5 messages"), "{named}");
    for (text, id) in [("", "a"), ("{}", "b"), ("[]", "c"), ("[5]", "d")] {
        fs::write(&messages_file, text).unwrap();
        let refused = import(&scratch, &dir, Some(id)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidParams, "{text}");
        assert!(!scratch.path(id).exists());
    }
    fs::remove_file(&messages_file).unwrap();
    let refused = import(&scratch, &dir, Some("e")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    let refused = import(&scratch, &dir.join("none"), Some("e")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    let left: Vec<_> = fs::read_dir(scratch.data().join("tasks"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[cfg(unix)]
#[test]
fn symlinks_in_a_task_folder_are_not_followed() {
    let scratch = Scratch::new();
    let dir = folder(&scratch);
    let secret = scratch.dir().join("secret");
    fs::write(&secret, METADATA).unwrap();
    fs::remove_file(dir.join("task_metadata.json")).unwrap();
    std::os::unix::fs::symlink(&secret, dir.join("task_metadata.json")).unwrap();
    let imported = import(&scratch, &dir, None).unwrap();
    assert!(
        imported.problems[0].contains("task_metadata.json"),
        "{imported:?}"
    );
    assert!(!scratch.path(CLINE).join("task_metadata.json").exists());
    let messages = dir.join("api_conversation_history.json");
    fs::rename(&messages, &secret).unwrap();
    std::os::unix::fs::symlink(&secret, &messages).unwrap();
    let refused = import(&scratch, &dir, Some("x")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Storage);
}

#[test]
fn an_invalid_task_id_is_rejected() {
    let scratch = Scratch::new();
    let dir = folder(&scratch);
    let odd = dir.parent().unwrap().join("no task id");
    fs::rename(&dir, &odd).unwrap();
    let refused = import(&scratch, &odd, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidParams);
    assert_eq!(import(&scratch, &odd, Some("named")).unwrap().messages, 6);
}

/// A task with every kind of data.
fn rich(scratch: &Scratch) {
    import(scratch, &folder(scratch), Some("t")).unwrap();
    let (task, cancel) = (at("t"), Cancel::default());
    let meta = EntryMeta {
        now: 1_700_000_020_000,
        ..EntryMeta::default()
    };
    let seen = scratch.store.load(&task, &cancel).unwrap();
    let summary = raw(&says("user", "summary"));
    let compaction = Compaction {
        trigger: CompactionTrigger::Auto,
        pre_tokens: 9,
        post_tokens: 3,
        fallback_reason: Some("because".to_owned()),
        messages: vec![
            CompactedMessage {
                message: &summary,
                source: None,
            },
            CompactedMessage {
                message: &seen.messages[5].message,
                source: Some(5),
            },
        ],
    };
    let stored = scratch
        .store
        .compact(&task, &seen, &compaction, &meta, &cancel);
    assert!(matches!(stored.unwrap(), CommitResult::Stored));
    scratch.append(
        "t",
        &[r#"{"role":"user", "content":"\ud800 é"}"#],
        1_700_000_030_000,
    );
}

#[test]
fn a_null_entry_loses_only_itself() {
    let scratch = Scratch::new();
    let dir = folder(&scratch);
    import(&scratch, &dir, Some("whole")).unwrap();
    let cancel = Cancel::default();
    let load = |id: &str| scratch.store.load(&at(id), &cancel).unwrap();
    let whole = load("whole");
    // Two entries are not messages; Cline's indexes count them.
    let mut entries = messages();
    entries.insert(1, "null".to_owned());
    entries.insert(4, "7".to_owned());
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    write(
        "api_conversation_history.json",
        &format!("[{}]", entries.join(",")),
    );
    let ui = json!([
        null,
        {"ts": 1_700_000_000_500_i64, "conversationHistoryIndex": -1},
        {"ts": 1_700_000_001_000_i64, "conversationHistoryIndex": 0},
        {"ts": null, "conversationHistoryIndex": null, "conversationHistoryDeletedRange": [null, 3]},
        {"ts": 1_700_000_003_000_i64, "conversationHistoryIndex": 3},
        {"ts": 1_700_000_010_000_i64, "conversationHistoryIndex": 6, "conversationHistoryDeletedRange": [3, 5]},
    ]);
    write("ui_messages.json", &ui.to_string());
    write(
        "context_history.json",
        r#"[null,[4,[0,[]]],[3,[0,[null]]],[2,[0,[[0,[[1700000010000,"text",["note"],[]]]]]]]]"#,
    );
    write("task_metadata.json", &METADATA.replacen('[', "[null,", 1));
    let imported = import(&scratch, &dir, Some("t")).unwrap();
    assert_eq!(imported.messages, 6);
    let now = load("t");
    assert_eq!(texts(&now), texts(&whole));
    assert_eq!(now.truncation, whole.truncation);
    let times = |of: &str| -> Vec<Value> {
        let log = scratch.log(of);
        let lines = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["timestamp"].clone()).collect()
    };
    assert_eq!(times("t"), times("whole"));
    assert_eq!(
        imported.problems,
        [
            "skipped 2 of the messages: not objects",
            "skipped 1 of the entries of ui_messages.json: malformed",
            "skipped 3 of the entries of context_history.json: malformed",
        ]
    );
    // `null` blocks and members are preserved.
    let odd = [
        r#"{"role":null,"content":[null,{"type":"text","text":null},{"type":null}]}"#,
        r#"{"role":"user","content":null,"ts":null}"#,
    ];
    write(
        "api_conversation_history.json",
        &format!("[{}]", odd.join(",")),
    );
    import(&scratch, &dir, Some("odd")).unwrap();
    assert_eq!(texts(&load("odd")), odd);

    // The same for an export.
    let document = json!({
        "format": "sightline-task", "version": 1, "taskId": null, "log": null,
        "messages": [null, {"role": "user", "content": "a"}],
        "deletedRange": [null, 2], "contextHistory": [null], "taskMetadata": null,
    });
    let file = scratch.dir().join("t.json");
    fs::write(&file, document.to_string()).unwrap();
    assert_eq!(import(&scratch, &file, Some("export")).unwrap().messages, 1);
}

#[test]
fn an_export_is_imported_byte_for_byte() {
    let scratch = Scratch::new();
    rich(&scratch);
    let cancel = Cancel::default();
    let text = scratch
        .store
        .export_json(&at("t"), &|_| true, &cancel)
        .unwrap();
    let file = scratch.dir().join("t.json");
    fs::write(&file, &text).unwrap();
    let before = scratch.store.load(&at("t"), &cancel).unwrap();
    let refused = import(&scratch, &file, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    for (source, id) in [(file, "again"), (scratch.path("t"), "copy")] {
        let imported = import(&scratch, &source, Some(id)).unwrap();
        assert_eq!((imported.messages, imported.problems.len()), (3, 0));
        let now = scratch.store.load(&at(id), &cancel).unwrap();
        assert_eq!(texts(&now), texts(&before));
        assert_eq!(
            (&now.truncation, &now.info),
            (&before.truncation, &before.info)
        );
        assert_eq!(scratch.log(id), scratch.log("t"));
        assert_eq!(scratch.file(id, "task_metadata.json"), METADATA);
        // The messages before the compaction are imported too.
        assert!(undo_compaction(&scratch.store, id, 0));
        let now = scratch.store.load(&at(id), &cancel).unwrap();
        assert_eq!(texts(&now)[..6], messages());
        assert_eq!(now.messages.len(), 7);
        assert_eq!(now.truncation.deleted_range, Some(DeletedRange([2, 3])));
    }
}

#[test]
fn an_export_without_its_log_can_be_imported() {
    let scratch = Scratch::new();
    import(&scratch, &folder(&scratch), Some("t")).unwrap();
    let cancel = Cancel::default();
    let text = scratch
        .store
        .export_json(&at("t"), &|_| true, &cancel)
        .unwrap();
    let (head, _) = text.split_once(r#","log":["#).unwrap();
    let file = scratch.dir().join("t.json");
    fs::write(&file, format!("{head}}}")).unwrap();
    import(&scratch, &file, Some("again")).unwrap();
    let load = |id: &str| scratch.store.load(&at(id), &cancel).unwrap();
    assert_eq!(texts(&load("again")), texts(&load("t")));
    assert_eq!(load("again").truncation, load("t").truncation);

    for bad in [
        "",
        "{}",
        "[]",
        r#"{"format":"other","version":1,"taskId":"x"}"#,
    ] {
        fs::write(&file, bad).unwrap();
        let refused = import(&scratch, &file, Some("x")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidParams, "{bad}");
    }
    let broken = text.replacen(r#""type":"user""#, r#""type":5"#, 1);
    fs::write(&file, broken).unwrap();
    let imported = import(&scratch, &file, Some("y")).unwrap();
    assert!(
        imported.problems[0].contains("1 of the log's lines"),
        "{imported:?}"
    );
    assert_eq!(imported.messages, 5);
}

#[test]
fn the_export_omits_denied_paths() {
    let scratch = Scratch::new();
    import(&scratch, &folder(&scratch), Some("t")).unwrap();
    let text = scratch
        .store
        .export_json(&at("t"), &|_| true, &Cancel::default())
        .unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["format"], "sightline-task");
    assert_eq!(value["messages"].as_array().unwrap().len(), 6);
    assert_eq!(value["deletedRange"], json!([2, 3]));
    assert_eq!(value["title"], "Add a test");
    assert_eq!(value["taskMetadata"]["model_usage"], json!([]));
    for message in messages() {
        assert!(text.contains(&message), "{message}");
    }
}

#[test]
fn an_overlong_line_is_reported() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let log = scratch.log("t");
    let lines: Vec<&str> = log.lines().collect();
    let long = lines[2].replace("user 2", &"x".repeat(64 << 20));
    let dir = scratch.dir().join("given");
    fs::create_dir(&dir).unwrap();
    let log = format!("{}\nbroken\n{}\n{long}\n", lines[0], lines[1]);
    fs::write(dir.join("conversation.jsonl"), log).unwrap();
    let cancel = Cancel::default();
    let imported = scratch.store.import(&dir, None, 5, &cancel).unwrap();
    assert_eq!(imported.messages, 2);
    let named = imported.problems.join("\n");
    assert!(named.contains("1 of the log's lines: malformed"), "{named}");
    assert!(
        named.contains("1 of the log's lines: longer than the limit"),
        "{named}"
    );
    let now = scratch.store.load(&at("given"), &cancel).unwrap();
    assert_eq!(texts(&now), [turn(0), turn(1)]);
    assert_eq!(now.recovered.dropped, 0);
}
