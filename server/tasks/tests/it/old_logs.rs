//! Logs that version 0.1.0 wrote, in which a compaction took several lines, are read, changed,
//! exported and resumed as by that version, which also wrote `expected.json`.

use std::{fs, path::PathBuf};

use serde_json::{Value, json, value::RawValue};
use sightline_base::cancel::Cancel;
use sightline_protocol::settings::ConversationSettings;
use sightline_tasks::{Conversation, ResumeOptions, RewindPoint, TaskStore};

use crate::support::{Scratch, at, at_time, says, texts, turn, undo_compaction};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/task-logs-0.1.0")
}

/// Calls `check` with the name, the log and the expectations of each task.
fn for_each_log(check: impl Fn(&str, &str, &Value)) {
    let expected = fs::read_to_string(folder().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    for (name, expected) in expected.as_object().unwrap() {
        let log = fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
        check(name, &log, expected);
    }
}

fn task_with(log: &str) -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("t")).unwrap();
    fs::write(scratch.log_path("t"), log).unwrap();
    scratch
}

pub(super) fn describe(now: &Conversation) -> Value {
    let text = |message: &RawValue| -> Value {
        let value: Value = serde_json::from_str(message.get()).unwrap();
        match &value["content"] {
            Value::String(text) => json!(text),
            content => content[0]
                .get("text")
                .unwrap_or(&content[0]["type"])
                .clone(),
        }
    };
    let messages = now.messages.iter();
    json!({
        "messages": messages.clone().map(|stored| text(&stored.message)).collect::<Vec<_>>(),
        "times": messages.clone().map(|stored| stored.time).collect::<Vec<_>>(),
        "summaries": messages.filter(|stored| stored.is_summary).count(),
        "deletedRange": now.truncation.deleted_range.map(|range| range.0),
        "contextHistory": now.truncation.history.clone().into_value(),
        "compactions": now.info.compactions,
        "title": now.info.title,
        "cwd": now.info.cwd,
        "lines": now.recovered.lines,
        "dropped": now.recovered.dropped,
    })
}

fn state(store: &TaskStore) -> Value {
    describe(&store.load(&at("t"), &Cancel::default()).unwrap())
}

/// Compares all but the number of lines, which depends on the version that continued the log.
fn assert_same(found: &Value, expected: &Value, what: &str) {
    let without_lines = |state: &Value| {
        let mut state = state.clone();
        state.as_object_mut().unwrap().remove("lines");
        state
    };
    assert_eq!(without_lines(found), without_lines(expected), "{what}");
}

/// The times that `expected.json` rewinds and rolls back to.
const TIMES: [i64; 6] = [3, 105, 205, 305, 405, 505];

#[test]
fn old_logs_are_read() {
    for_each_log(|name, log, expected| {
        let scratch = task_with(log);
        assert_eq!(state(&scratch.store), expected["loaded"], "{name}");
        assert_eq!(scratch.log("t"), log, "reading changes nothing");
        let lines: Vec<&str> = log.lines().collect();
        let messages = |log: String| state(&task_with(&log).store)["messages"].clone();
        for (count, expected) in expected["prefixes"].as_array().unwrap().iter().enumerate() {
            let first = lines[..=count].join("\n") + "\n";
            assert_eq!(messages(first), *expected, "{name}: {count}");
        }
        for (lost, expected) in expected["broken"].as_array().unwrap().iter().enumerate() {
            let mut lines = lines.clone();
            lines[lost] = "{broken";
            let text = lines.join("\n") + "\n";
            assert_eq!(messages(text), *expected, "{name} without {lost}");
        }
    });
}

#[test]
fn old_logs_are_changed() {
    let (task, meta, cancel) = (at("t"), at_time(900), Cancel::default());
    for_each_log(|name, log, expected| {
        let scratch = task_with(log);
        let undoes = undo_compaction(&scratch.store, "t", 900);
        assert_eq!(undoes, expected["undoes"], "{name}");
        assert_same(&state(&scratch.again()), &expected["undone"], name);
        for (time, number) in TIMES.iter().zip(0..) {
            let scratch = task_with(log);
            let to = RewindPoint::Time(*time);
            let rewound = scratch.store.rewind(&task, to, None, &meta, &cancel);
            let rewound = rewound.unwrap();
            let found = state(&scratch.again());
            assert_same(
                &found,
                &expected["rewound"][number],
                &format!("{name}: {time}"),
            );
            let undone = scratch.store.undo_rewind(&task, rewound, &meta, &cancel);
            undone.unwrap();
            assert_same(&state(&scratch.again()), &expected["loaded"], name);

            let scratch = task_with(log);
            let rolled = scratch
                .store
                .rollback(&task, &(*time).into(), &meta, &cancel);
            rolled.unwrap();
            let found = state(&scratch.again());
            assert_same(
                &found,
                &expected["rolledBack"][number],
                &format!("{name}: {time}"),
            );
        }
    });
}

#[test]
fn old_logs_are_rewound_to_entries_that_a_checkpoint_recorded() {
    let (task, meta, cancel) = (at("t"), at_time(900), Cancel::default());
    for_each_log(|name, log, expected| {
        // The newest entry after each line, as a checkpoint of that version recorded it.
        for (index, line) in log.lines().enumerate() {
            let messages = &expected["prefixes"][index];
            if index > 0 && *messages == expected["prefixes"][index - 1] {
                continue;
            }
            let line: Value = serde_json::from_str(line).unwrap();
            let entry = line["uuid"].as_str().unwrap().parse().unwrap();
            let scratch = task_with(log);
            let to = RewindPoint::Entry(entry);
            let rewound = scratch.store.rewind(&task, to, None, &meta, &cancel);
            rewound.unwrap();
            assert_eq!(
                state(&scratch.again())["messages"],
                *messages,
                "{name}: {index}"
            );
        }
    });
}

#[test]
fn old_logs_are_exported_and_resumed() {
    let (task, cancel) = (at("t"), Cancel::default());
    for_each_log(|name, log, expected| {
        let scratch = task_with(log);
        let exported = scratch.store.export_json(&task, &|_| true, &cancel);
        let file = scratch.dir().join("export.json");
        fs::write(&file, exported.unwrap()).unwrap();
        let other = Scratch::new();
        let imported = other.store.import(&file, None, 900, &cancel).unwrap();
        assert_eq!(imported.problems, [""; 0], "{name}");
        assert_eq!(other.log("t"), log, "{name}");
        assert_same(&state(&other.store), &expected["loaded"], name);
        let resumed = scratch.store.resume(
            &task,
            &ResumeOptions {
                now: 60_000,
                settings: &ConversationSettings::default(),
                changed: &[],
                deleted: &[],
                cwd: None,
            },
            &cancel,
        );
        assert!(!resumed.unwrap().messages.is_empty(), "{name}");
    });
}

#[test]
fn a_wrong_number_of_lines_loses_no_messages() {
    let log = fs::read_to_string(folder().join("undone.jsonl")).unwrap();
    let task = at("t");
    // Five messages, a compaction of four lines, and two messages.
    let lines: Vec<&str> = log.lines().take(11).collect();
    let forge = |at: usize, following: u64| {
        let mut lines: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        lines[at]["compactMetadata"]["following"] = following.into();
        let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let scratch = task_with(&log);
        texts(&scratch.store.load(&task, &Cancel::default()).unwrap())
    };
    let all: Vec<String> = (0..7).map(turn).collect();
    for following in [4, 5, u64::from(u32::MAX)] {
        assert_eq!(forge(5, following), all, "{following}");
    }
    let compacted = [says("user", "summary"), turn(3), turn(4), turn(5), turn(6)];
    for at in [0, 2, 4, 9, 10] {
        assert_eq!(forge(at, 1000), compacted, "{at}");
    }
}
