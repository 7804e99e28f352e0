//! Tests of compaction, rewind, rollback, and undoing them.

use std::{fs, sync::Arc};

use crate::support::{Scratch, at, at_time, compact, raw, says, texts, turn, undo_compaction};
use serde_json::{Value, json};
use sightline_base::{cancel::Cancel, storage::TaskId};
use sightline_conversation::{ContextHistory, DeletedRange};
use sightline_protocol::{compaction::CompactionTrigger, error::ErrorKind};
use sightline_tasks::{
    CommitResult, CompactedMessage, Compaction, Conversation, RewindPoint, TaskStore,
    TruncationState,
};

fn load(store: &TaskStore) -> Arc<Conversation> {
    store.load(&at("t"), &Cancel::default()).unwrap()
}

fn edits(message: usize, times: &[i64]) -> ContextHistory {
    let updates: Vec<Value> = times
        .iter()
        .map(|time| json!([time, "text", ["less"], []]))
        .collect();
    ContextHistory::from_value(json!([[message, [0, [[0, updates]]]]])).unwrap()
}

fn truncate(store: &TaskStore, truncation: &TruncationState, now: i64) {
    let stored = store.store_truncation(
        &at("t"),
        &load(store),
        truncation,
        &now.into(),
        &at_time(now),
        &Cancel::default(),
    );
    assert!(matches!(stored.unwrap(), CommitResult::Stored));
}

#[test]
fn a_compaction_is_stored_and_undone() {
    let scratch = Scratch::new();
    let store = &scratch.store;
    scratch.say("t", 6, 5);
    let truncation = TruncationState {
        deleted_range: Some(DeletedRange([2, 3])),
        history: edits(5, &[6]),
    };
    truncate(store, &truncation, 6);
    let before = load(store);
    let stored = compact(store, &before, 4, 10);
    assert!(matches!(stored, Ok(CommitResult::Stored)));
    let expected = [says("user", "summary"), turn(4), turn(5)];
    for store in [store, &scratch.again()] {
        let now = load(store);
        assert_eq!(texts(&now), expected);
        assert_eq!(*now.truncation, TruncationState::default());
        assert_eq!(now.info.compactions, 1);
        let summaries: Vec<bool> = now
            .messages
            .iter()
            .map(|stored| stored.is_summary)
            .collect();
        assert_eq!(summaries, [true, false, false]);
        let times: Vec<i64> = now.messages.iter().map(|stored| stored.time).collect();
        assert_eq!(times, [10, 5, 5]);
    }
    assert_eq!(scratch.file("t", "context_history.json"), "[]");

    scratch.append("t", &[&turn(6)], 11);
    let again = load(store);
    assert!(matches!(
        compact(store, &again, 3, 12),
        Ok(CommitResult::Stored)
    ));
    scratch.append("t", &[&turn(7)], 13);
    let undo = || undo_compaction(store, "t", 20);
    assert!(undo());
    let mut expected = expected.to_vec();
    expected.extend([turn(6), turn(7)]);
    assert_eq!(texts(&load(&scratch.again())), expected);
    assert!(undo());
    for store in [store, &scratch.again()] {
        let now = load(store);
        assert_eq!(texts(&now), (0..8).map(turn).collect::<Vec<_>>());
        assert_eq!(*now.truncation, truncation);
        assert_eq!(now.info.compactions, 0);
        assert_eq!(now.info.updated_at, 13);
    }
    let mirror = scratch.file("t", "context_history.json");
    assert_eq!(mirror, truncation.history.into_value().to_string());
    assert!(!undo());
}

#[test]
fn a_compaction_of_an_outdated_conversation_conflicts() {
    let scratch = Scratch::new();
    scratch.say("t", 4, 5);
    let seen = load(&scratch.store);
    scratch.append("t", &[&turn(4)], 6);
    let log = scratch.log("t");
    let CommitResult::Conflict(now) = compact(&scratch.store, &seen, 2, 7).unwrap() else {
        panic!("stored");
    };
    assert_eq!(now.messages.len(), 5);
    let truncation = TruncationState {
        deleted_range: Some(DeletedRange([2, 3])),
        history: ContextHistory::default(),
    };
    truncate(&scratch.store, &truncation, 8);
    assert!(matches!(
        compact(&scratch.store, &now, 2, 9),
        Ok(CommitResult::Conflict(_))
    ));
    assert!(scratch.log("t").starts_with(&log));
    let message = raw("{}");
    let no_source = Compaction {
        trigger: CompactionTrigger::Auto,
        pre_tokens: 0,
        post_tokens: 0,
        fallback_reason: None,
        messages: vec![CompactedMessage {
            message: &message,
            source: Some(9),
        }],
    };
    let refused = |compaction: &Compaction<'_>| {
        let (now, cancel) = (load(&scratch.store), Cancel::default());
        let stored = scratch
            .store
            .compact(&at("t"), &now, compaction, &at_time(9), &cancel);
        stored.unwrap_err().kind()
    };
    assert_eq!(refused(&no_source), ErrorKind::InvalidParams);
    let empty = Compaction {
        messages: Vec::new(),
        ..no_source
    };
    assert_eq!(refused(&empty), ErrorKind::InvalidParams);
}

#[test]
fn a_compaction_torn_anywhere_is_void() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 5);
    let start = scratch.log("t").len();
    let seen = load(&scratch.store);
    assert!(matches!(
        compact(&scratch.store, &seen, 1, 7),
        Ok(CommitResult::Stored)
    ));
    let whole = fs::read(scratch.log_path("t")).unwrap();
    let turns: Vec<String> = (0..3).map(turn).collect();
    for end in start..whole.len() - 1 {
        fs::write(scratch.log_path("t"), &whole[..end]).unwrap();
        let store = scratch.again();
        assert_eq!(texts(&load(&store)), turns, "cut at {end}");
        assert_eq!(load(&store).info.compactions, 0);
        crate::support::append(&store, "t", &[&turn(3)], 8);
        for store in [store, scratch.again()] {
            let now = load(&store);
            assert_eq!(
                texts(&now),
                (0..4).map(turn).collect::<Vec<_>>(),
                "cut at {end}"
            );
            assert_eq!(now.info.compactions, 0);
        }
    }
    fs::write(scratch.log_path("t"), &whole[..whole.len() - 1]).unwrap();
    assert_eq!(load(&scratch.again()).info.compactions, 1);
}

#[test]
fn a_rewind_and_its_undo_can_be_undone() {
    let scratch = Scratch::new();
    let (store, cancel) = (&scratch.store, Cancel::default());
    scratch.say("t", 8, 5);
    let truncation = TruncationState {
        deleted_range: Some(DeletedRange([2, 5])),
        history: edits(6, &[6]),
    };
    truncate(store, &truncation, 6);
    let before = texts(&load(store));
    let fourth = RewindPoint::Entry(load(store).messages[3].uuid);
    let id = store
        .rewind(&at("t"), fourth, None, &at_time(9), &cancel)
        .unwrap();
    let now = load(&scratch.again());
    assert_eq!(texts(&now), before[..4]);
    assert_eq!(
        *now.truncation,
        TruncationState::default(),
        "they were made later"
    );
    scratch.append("t", &[&turn(9)], 10);
    let rewound = texts(&load(store));
    let undo = store
        .undo_rewind(&at("t"), id, &at_time(11), &cancel)
        .unwrap();
    let now = load(&scratch.again());
    assert_eq!((texts(&now), &*now.truncation), (before, &truncation));
    store
        .undo_rewind(&at("t"), undo, &at_time(12), &cancel)
        .unwrap();
    assert_eq!(texts(&load(&scratch.again())), rewound);

    let start = store.rewind(
        &at("t"),
        RewindPoint::Beginning,
        None,
        &at_time(13),
        &cancel,
    );
    start.unwrap();
    assert_eq!(load(&scratch.again()).messages.len(), 0);
    scratch.append("t", &[&turn(0)], 14);
    assert_eq!(texts(&load(&scratch.again())), [turn(0)]);

    let unknown = "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap();
    let refused = store.undo_rewind(&at("t"), unknown, &at_time(15), &cancel);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    // The id of a message is not a rewind id.
    let message = load(store).messages[0].uuid.to_string().parse().unwrap();
    let refused = store.undo_rewind(&at("t"), message, &at_time(15), &cancel);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    assert!("x".parse::<sightline_tasks::RewindId>().is_err());
}

#[test]
fn rewind_reaches_abandoned_branches() {
    let scratch = Scratch::new();
    let (store, cancel) = (&scratch.store, Cancel::default());
    let go = |to, counted, time| store.rewind(&at("t"), to, counted, &at_time(time), &cancel);
    scratch.say("t", 4, 1);
    let first = load(store);
    scratch.append("t", &[&turn(4), &turn(5), &turn(6), &turn(7)], 2);
    let truncation = TruncationState {
        deleted_range: Some(DeletedRange([2, 5])),
        history: edits(6, &[3]),
    };
    truncate(store, &truncation, 3);
    let second = load(store);
    assert!(matches!(
        compact(store, &second, 6, 4),
        Ok(CommitResult::Stored)
    ));
    let third = load(store);
    go(RewindPoint::Entry(first.entry.unwrap()), Some((4, 0)), 5).unwrap();
    scratch.append("t", &[&turn(9)], 6);
    let fourth = load(store);
    assert_eq!(fourth.messages.len(), 5);
    let was = [(&second, 3), (&fourth, 6), (&third, 4), (&first, 1)];
    for (then, time) in was {
        for to in [
            RewindPoint::Entry(then.entry.unwrap()),
            RewindPoint::Time(time),
        ] {
            let counted = (then.messages.len() as u64, then.info.compactions);
            let before = load(store);
            let id = go(to, Some(counted), 7).unwrap();
            let now = load(&scratch.again());
            assert_eq!(texts(&now), texts(then), "{to:?}");
            assert_eq!(now.truncation, then.truncation, "{to:?}");
            assert_eq!(now.info.compactions, then.info.compactions);
            let undone = store.undo_rewind(&at("t"), id, &at_time(8), &cancel);
            undone.unwrap();
            let now = load(store);
            assert_eq!(
                (texts(&now), &now.truncation),
                (texts(&before), &before.truncation)
            );
            go(to, None, 9).unwrap();
        }
    }

    let log = scratch.log("t");
    let elsewhere = RewindPoint::Entry(uuid::Uuid::new_v4());
    let another_count = RewindPoint::Entry(second.entry.unwrap());
    for refused in [
        go(elsewhere, None, 10),
        go(another_count, Some((9, 0)), 10),
        go(another_count, Some((8, 1)), 10),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    }
    assert_eq!(scratch.log("t"), log, "nothing is done");
}

#[test]
fn unlogged_truncation_is_preserved() {
    let scratch = Scratch::new();
    let (store, cancel) = (&scratch.store, Cancel::default());
    scratch.say("t", 4, 5);
    let history = edits(2, &[1]);
    let copied = history.clone().into_value().to_string();
    fs::write(scratch.path("t").join("context_history.json"), copied).unwrap();
    let store_of = scratch.again();
    let then = load(&store_of);
    assert_eq!(then.truncation.history, history);
    scratch.append("t", &[&turn(4)], 6);
    let rewind = |to| store.rewind(&at("t"), to, None, &at_time(7), &cancel);
    rewind(RewindPoint::Entry(then.entry.unwrap())).unwrap();
    let now = load(&scratch.again());
    assert_eq!(
        (texts(&now), &now.truncation),
        (texts(&then), &then.truncation)
    );
    // An edit of a message that did not exist yet would apply to the next one.
    rewind(RewindPoint::Entry(then.messages[1].uuid)).unwrap();
    assert_eq!(
        *load(&scratch.again()).truncation,
        TruncationState::default()
    );
}

#[test]
fn nothing_is_decided_while_the_unlogged_truncation_cannot_be_read() {
    let scratch = Scratch::new();
    let (store, cancel) = (&scratch.store, Cancel::default());
    scratch.say("t", 4, 5);
    let history = edits(2, &[1]);
    let file = scratch.path("t").join("context_history.json");
    let to = RewindPoint::Entry(load(store).entry.unwrap());
    fs::create_dir_all(&file).unwrap();
    scratch.append("t", &[&turn(4)], 6);
    let log = scratch.log("t");
    let loaded = store.load(&at("t"), &cancel);
    assert_eq!(loaded.unwrap_err().kind(), ErrorKind::Storage);
    let rewind = || store.rewind(&at("t"), to, None, &at_time(7), &cancel);
    assert_eq!(rewind().unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(scratch.log("t"), log);
    fs::remove_dir(&file).unwrap();
    fs::write(&file, history.clone().into_value().to_string()).unwrap();
    rewind().unwrap();
    assert_eq!(load(&scratch.again()).truncation.history, history);
}

#[test]
fn rollback_undoes_decisions_and_keeps_all_messages() {
    let scratch = Scratch::new();
    let (store, cancel) = (&scratch.store, Cancel::default());
    scratch.say("t", 8, 5);
    let early = TruncationState {
        deleted_range: Some(DeletedRange([2, 3])),
        history: edits(6, &[10]),
    };
    let late = TruncationState {
        deleted_range: Some(DeletedRange([2, 5])),
        history: edits(6, &[10, 20]),
    };
    truncate(store, &early, 10);
    truncate(store, &late, 20);
    let seen = load(store);
    assert!(matches!(
        compact(store, &seen, 6, 30),
        Ok(CommitResult::Stored)
    ));
    scratch.append("t", &[&turn(8)], 31);
    let rollback = |time: i64| {
        let task: TaskId = at("t");
        let history = store.rollback(&task, &time.into(), &at_time(40), &cancel);
        let now = load(&scratch.again());
        assert_eq!(history.unwrap(), now.truncation.history);
        now
    };
    let now = rollback(30);
    assert_eq!((now.info.compactions, now.messages.len()), (1, 4));
    let turns: Vec<String> = (0..9).map(turn).collect();
    for (time, truncation) in [
        (29, &late),
        (20, &late),
        (19, &early),
        (9, &TruncationState::default()),
    ] {
        let now = rollback(time);
        assert_eq!(
            (texts(&now), &*now.truncation),
            (turns.clone(), truncation),
            "{time}"
        );
        assert_eq!(now.info.compactions, 0);
    }
    // Nothing to undo, so nothing is written.
    let log = scratch.log("t");
    rollback(9);
    assert_eq!(scratch.log("t"), log);
}
