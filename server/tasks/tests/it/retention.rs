//! Tests of resuming and pruning tasks.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use crate::support::{Scratch, at, raw, says, turn};
use serde_json::{Value, json};
use sightline_base::{cancel::Cancel, storage::Storage};
use sightline_conversation::{ContextHistory, DeletedRange, truncation::missing_result};
use sightline_protocol::{
    error::ErrorKind,
    settings::{ConversationSettings, NoticeSettings, TaskSettings},
    task::ResumeTaskResult,
};
use sightline_tasks::{CommitResult, EntryMeta, EntryOrigin, ResumeOptions, TruncationState};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

fn calls(ids: &[&str]) -> String {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {}}))
        .collect();
    json!({"role": "assistant", "content": blocks}).to_string()
}

fn answers(ids: &[&str]) -> String {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "done"}))
        .collect();
    json!({"role": "user", "content": blocks}).to_string()
}

fn resume(scratch: &Scratch, changed: &[String], deleted: &[String]) -> ResumeTaskResult {
    let settings = ConversationSettings::default();
    let how = ResumeOptions {
        now: 5 * MINUTE,
        cwd: None,
        changed,
        deleted,
        settings: &settings,
    };
    scratch
        .store
        .resume(&at("t"), &how, &Cancel::default())
        .unwrap()
}

fn texts(resumed: &ResumeTaskResult) -> Vec<String> {
    let messages = resumed.messages.iter();
    messages.map(|message| message.0.get().to_owned()).collect()
}

/// Asserts that every call has its result in the next message.
fn assert_answered(resumed: &ResumeTaskResult) {
    let messages: Vec<Value> = texts(resumed)
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let ids = |message: Option<&Value>, key: &str| -> HashSet<String> {
        let blocks = message.and_then(|message| message["content"].as_array());
        let ids = blocks.into_iter().flatten();
        let ids = ids.filter_map(|block| block[key].as_str());
        ids.map(str::to_owned).collect()
    };
    for (index, message) in messages.iter().enumerate() {
        let called = ids(Some(message), "id");
        let answered = ids(messages.get(index + 1), "tool_use_id");
        assert!(called.is_subset(&answered), "{message}");
    }
}

#[test]
fn interrupted_tool_calls_get_results() {
    let scratch = Scratch::new();
    let end = calls(&["c4", "c4", "c5"]);
    let messages = [
        says("user", "x"),
        calls(&["c1", "c2"]),
        answers(&["c1"]),
        calls(&["c3"]),
        answers(&["c3"]),
        end.clone(),
    ];
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    scratch.append("t", &messages, 0);
    let resumed = resume(&scratch, &[], &[]);
    assert_eq!(resumed.interrupted_tools, ["c2", "c4", "c5"]);
    assert_eq!(resumed.messages.len(), 7);
    assert_answered(&resumed);
    let notice = missing_result(&NoticeSettings::default()).to_owned();
    let last: Value = serde_json::from_str(resumed.messages[6].0.get()).unwrap();
    let result = |id| json!({"type": "tool_result", "tool_use_id": id, "content": notice});
    assert_eq!(
        last,
        json!({"role": "user", "content": [result("c4"), result("c5")]})
    );
    assert!(resumed.resumption.contains("read_file (c2)"));
    // Nothing is written.
    assert_eq!(scratch.log("t").lines().count(), 6);
    scratch.append("t", &[&answers(&["c4", "c5"])], 1);
    let resumed = resume(&scratch, &[], &[]);
    assert_eq!(resumed.interrupted_tools, ["c2"]);
    assert_answered(&resumed);
}

#[test]
fn interrupted_server_tool_calls_are_removed() {
    let text = json!({"type": "text", "text": "I search."});
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let mcp =
        json!({"type": "mcp_tool_use", "id": "m1", "name": "x", "server_name": "y", "input": {}});
    let call = json!({"type": "tool_use", "id": "c1", "name": "z", "input": {}});
    for (end, interrupted, sent) in [
        (json!([text, search]), vec!["s1"], Some(json!([text]))),
        (
            json!([text, search, found, mcp]),
            vec!["m1"],
            Some(json!([text, search, found])),
        ),
        (json!([mcp]), vec!["m1"], None),
        (json!([search, found]), vec![], Some(json!([search, found]))),
        // The call of the server waits for that of the client.
        (
            json!([search, call]),
            vec!["c1"],
            Some(json!([search, call])),
        ),
    ] {
        let scratch = Scratch::new();
        let last = json!({"role": "assistant", "content": end}).to_string();
        scratch.append("t", &[&says("user", "x"), &last], 0);
        let resumed = resume(&scratch, &[], &[]);
        assert_eq!(resumed.interrupted_tools, interrupted, "{last}");
        let answer = resumed.messages.get(1);
        let answer = answer.map(|raw| serde_json::from_str::<Value>(raw.0.get()).unwrap());
        assert_eq!(
            answer.map(|answer| answer["content"].clone()),
            sent,
            "{last}"
        );
    }
}

/// A provider that paused the turn leaves calls in several messages. The log is read again, with every range left out.
#[test]
fn server_tools_are_resumed_in_whole_pairs() {
    let block = |word: &str| match word.split_at(1) {
        ("c", id) => json!({"type": "server_tool_use", "id": id, "name": "search", "input": {}}),
        ("r", id) => json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}),
        _ => json!({"type": "text", "text": word}),
    };
    let message = |word: &str| {
        let role = if word.starts_with('u') {
            "user"
        } else {
            "assistant"
        };
        let blocks: Vec<Value> = word[1..].split(',').map(block).collect();
        json!({"role": role, "content": blocks}).to_string()
    };
    for (script, interrupted) in [
        ("ux at ux at,c1", vec!["1"]),
        ("ux ac1 ar1,c2", vec!["2"]),
        ("ux ac1 at", vec!["1"]),
        ("ux ac1 ac2 at", vec!["1", "2"]),
        ("ux ac1,c2 ar2 at", vec!["1"]),
        ("ux at ux ac1 ar1 ux at ux at,c2", vec!["2"]),
        ("ux ac1 ar1", vec![]),
        ("ux at ux ac1 ar1 at ux at ux at", vec![]),
    ] {
        let messages: Vec<String> = script.split(' ').map(message).collect();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        let ranges = (2..messages.len()).step_by(2);
        let ranges = ranges.flat_map(|from| (from + 1..messages.len()).map(move |to| (from, to)));
        for range in ranges.map(Some).chain([None]) {
            let scratch = Scratch::new();
            scratch.append("t", &messages, 0);
            let cancel = Cancel::default();
            if let Some((from, to)) = range {
                let truncation = TruncationState {
                    deleted_range: Some(DeletedRange([from as i64, to as i64])),
                    ..TruncationState::default()
                };
                let seen = scratch.store.load(&at("t"), &cancel).unwrap();
                let stored = scratch.store.store_truncation(
                    &at("t"),
                    &seen,
                    &truncation,
                    &1.into(),
                    &EntryMeta::default(),
                    &cancel,
                );
                assert!(matches!(stored.unwrap(), CommitResult::Stored));
            }
            let scratch = scratch.reopened();
            let resumed = resume(&scratch, &[], &[]);
            assert_eq!(resumed.interrupted_tools, interrupted, "{script} {range:?}");
            let mut open = Vec::new();
            for text in texts(&resumed) {
                let message: Value = serde_json::from_str(&text).unwrap();
                let blocks = message["content"].as_array().unwrap();
                assert!(!blocks.is_empty(), "{script} {range:?}");
                for block in blocks {
                    match block["type"].as_str().unwrap() {
                        "server_tool_use" => open.push(block["id"].clone()),
                        "web_search_tool_result" => {
                            let call = open.iter().position(|id| *id == block["tool_use_id"]);
                            open.remove(call.expect("a result has a call"));
                        }
                        _ => {}
                    }
                }
            }
            assert_eq!(open, [] as [Value; 0], "{script} {range:?}");
        }
    }
}

#[test]
fn resume_returns_the_messages_to_send() {
    let scratch = Scratch::new();
    let mut messages: Vec<String> = (0..5).map(turn).collect();
    messages.push(calls(&["c1"]));
    messages.push(answers(&["c1"]));
    let texts_in: Vec<&str> = messages.iter().map(String::as_str).collect();
    scratch.append("t", &texts_in, 0);
    let cancel = Cancel::default();
    let history = json!([[1, [0, [[0, [[1, "text", ["left out"], []]]]]]]]);
    let truncation = TruncationState {
        deleted_range: Some(DeletedRange([2, 3])),
        history: ContextHistory::from_value(history).unwrap(),
    };
    let seen = scratch.store.load(&at("t"), &cancel).unwrap();
    let stored = scratch.store.store_truncation(
        &at("t"),
        &seen,
        &truncation,
        &1.into(),
        &EntryMeta::default(),
        &cancel,
    );
    assert!(matches!(stored.unwrap(), CommitResult::Stored));
    let resumed = resume(&scratch, &[], &[]);
    let mut expected = vec![messages[0].clone()];
    expected.push(messages[1].replace("assistant 1", "left out"));
    expected.extend_from_slice(&messages[4..]);
    assert_eq!(texts(&resumed), expected);
}

#[test]
fn the_resumption_text() {
    let scratch = Scratch::new();
    let origin = EntryOrigin {
        cwd: Some("/home/u/p".to_owned()),
        ..EntryOrigin::default()
    };
    let meta = EntryMeta {
        origin,
        now: 3 * MINUTE,
    };
    let message = raw(&says("user", "x"));
    let cancel = Cancel::default();
    let appended = scratch.store.append(&at("t"), &[&message], &meta, &cancel);
    appended.unwrap().written.sync().unwrap();
    let changed: Vec<String> = (0..25).map(|n| format!("src/{n}.rs")).collect();
    let deleted = ["gone\n- made up".to_owned()];
    insta::assert_snapshot!(resume(&scratch, &changed, &deleted).resumption);
    let plain = resume(&scratch, &[], &[]).resumption;
    assert!(plain.starts_with("[TASK RESUMPTION] "), "{plain}");
    assert_eq!(plain.lines().count(), 1, "{plain}");
    let settings = ConversationSettings::default();
    let how = ResumeOptions {
        now: 0,
        cwd: None,
        changed: &[],
        deleted: &[],
        settings: &settings,
    };
    let missing = scratch.store.resume(&at("none"), &how, &cancel);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
}

fn kept(scratch: &Scratch) -> Vec<String> {
    let listed = scratch.store.list(None, &Cancel::default()).unwrap();
    listed.into_iter().map(|task| task.task_id).collect()
}

fn prune(scratch: &Scratch, limits: TaskSettings) -> Vec<String> {
    let pruned = scratch
        .store
        .prune(&limits, &|_| false, 100 * DAY, &Cancel::default())
        .unwrap();
    assert_eq!(pruned.removed.is_empty(), pruned.freed_bytes == 0);
    pruned.removed.iter().map(ToString::to_string).collect()
}

/// Five tasks, `t1` is the oldest.
fn five() -> Scratch {
    let scratch = Scratch::new();
    for day in 1..=5 {
        let (id, time) = (format!("t{day}"), (90 + day) * DAY);
        scratch.say(&id, 2, time);
        written_at(&scratch, &id, time);
    }
    scratch
}

/// Sets the modification time of a log.
fn written_at(scratch: &Scratch, id: &str, millis: i64) {
    set_modified(&scratch.log_path(id), millis);
}

fn set_modified(file: &Path, millis: i64) {
    let file = fs::File::options().write(true).open(file);
    let since = Duration::from_millis(millis.try_into().unwrap());
    file.unwrap().set_modified(UNIX_EPOCH + since).unwrap();
}

#[test]
fn tasks_are_pruned_by_age_count_and_size() {
    let scratch = five();
    assert_eq!(prune(&scratch, TaskSettings::default()), [""; 0]);
    let by_age = TaskSettings {
        max_age_days: Some(8),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, by_age), ["t1"]);
    assert_eq!(prune(&scratch, by_age), [""; 0]);
    let by_count = TaskSettings {
        max_count: Some(3),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, by_count), ["t2"]);
    let two = scratch.log("t5").len() + scratch.log("t4").len();
    let by_bytes = |max| TaskSettings {
        max_bytes: Some(max),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, by_bytes(two as u64)), ["t3"]);
    assert_eq!(kept(&scratch), ["t5", "t4"]);
    assert_eq!(prune(&scratch, by_bytes(0)), ["t4"]);
    assert_eq!(kept(&scratch), ["t5"], "the last updated stays");
    assert!(!scratch.path("t4").exists());
}

#[test]
fn a_task_being_written_is_not_pruned() {
    let scratch = five();
    let storage = Storage::open(&scratch.data()).unwrap();
    let lock = storage.task(&at("t1")).lock().unwrap();
    let none = TaskSettings {
        max_count: Some(1),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, none), ["t4", "t3", "t2"]);
    drop(lock);
    assert_eq!(prune(&scratch, none), ["t1"]);
}

#[test]
fn the_newest_conversation_is_never_pruned() {
    let none = TaskSettings {
        max_age_days: Some(0),
        max_count: Some(0),
        max_bytes: Some(0),
    };
    let scratch = five();
    assert_eq!(prune(&scratch, none), ["t4", "t3", "t2", "t1"]);
    assert_eq!(prune(&scratch, none), [""; 0]);
    assert_eq!(kept(&scratch), ["t5"]);
}

#[test]
fn an_imported_old_conversation_is_recent() {
    let scratch = five();
    written_at(&scratch, "t1", 99 * DAY);
    let by_age = TaskSettings {
        max_age_days: Some(6),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, by_age), ["t3", "t2"]);
    let by_count = TaskSettings {
        max_count: Some(1),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, by_count), ["t5", "t4"]);
    assert_eq!(kept(&scratch), ["t1"]);
    // A copied file whose modification time is older than its messages.
    let scratch = five();
    written_at(&scratch, "t5", DAY);
    assert_eq!(prune(&scratch, by_count), ["t4", "t3", "t2", "t1"]);
}

#[test]
fn tasks_with_only_tracker_files_are_pruned() {
    let scratch = five();
    fs::create_dir(scratch.path("tracked")).unwrap();
    fs::write(scratch.path("tracked").join("tracked_files.json"), "[]").unwrap();
    // It was just written according to the real clock, so it is in use, and it has no
    // conversation.
    let none = TaskSettings {
        max_count: Some(0),
        ..TaskSettings::default()
    };
    assert_eq!(prune(&scratch, none), ["t4", "t3", "t2", "t1"]);
    assert!(scratch.path("tracked").exists());
    let metadata = scratch.path("tracked").join("tracked_files.json");
    set_modified(&metadata, 98 * DAY);
    assert_eq!(prune(&scratch, none), ["tracked"]);
    assert_eq!(kept(&scratch), ["t5"]);
}
