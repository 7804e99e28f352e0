//! Test utilities: a data directory and messages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{json, value::RawValue};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    storage::{Storage, TaskId},
};
use sightline_protocol::compaction::CompactionTrigger;
use sightline_tasks::{
    CommitResult, CompactedMessage, Compaction, Conversation, EntryMeta, TaskStore,
};

pub(crate) struct Scratch {
    dir: tempfile::TempDir,
    pub(crate) store: TaskStore,
}

pub(crate) fn at(id: &str) -> TaskId {
    TaskId::new(id).unwrap()
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn says(role: &str, text: &str) -> String {
    json!({"role": role, "content": text}).to_string()
}

/// Returns the JSON of each message.
pub(crate) fn texts(conversation: &Conversation) -> Vec<String> {
    let messages = conversation.messages.iter();
    messages
        .map(|stored| stored.message.get().to_owned())
        .collect()
}

pub(crate) fn open(data: &Path) -> TaskStore {
    TaskStore::new(Storage::open(data).unwrap())
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir.path().join("data"));
        Self { dir, store }
    }

    /// Opens the data directory again.
    pub(crate) fn reopened(self) -> Self {
        let store = self.again();
        Self { store, ..self }
    }

    /// Returns a store with an empty cache.
    pub(crate) fn again(&self) -> TaskStore {
        open(&self.data())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn path(&self, id: &str) -> PathBuf {
        self.data().join("tasks").join(id)
    }

    pub(crate) fn log_path(&self, id: &str) -> PathBuf {
        self.path(id).join("conversation.jsonl")
    }

    pub(crate) fn file(&self, id: &str, name: &str) -> String {
        fs::read_to_string(self.path(id).join(name)).unwrap()
    }

    pub(crate) fn log(&self, id: &str) -> String {
        self.file(id, "conversation.jsonl")
    }

    pub(crate) fn append(&self, id: &str, messages: &[&str], now: i64) {
        append(&self.store, id, messages, now);
    }

    /// Appends `count` messages with alternating roles.
    pub(crate) fn say(&self, id: &str, count: usize, now: i64) {
        let messages: Vec<String> = (0..count).map(turn).collect();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        self.append(id, &messages, now);
    }
}

pub(crate) fn turn(index: usize) -> String {
    let role = ["user", "assistant"][index % 2];
    json!({"role": role, "content": [{"type": "text", "text": format!("{role} {index}")}]})
        .to_string()
}

pub(crate) fn append(store: &TaskStore, id: &str, messages: &[&str], now: i64) -> u64 {
    let messages: Vec<_> = messages.iter().map(|text| raw(text)).collect();
    let messages: Vec<_> = messages.iter().map(|message| &**message).collect();
    let meta = EntryMeta {
        now,
        ..EntryMeta::default()
    };
    let appended = store.append(&at(id), &messages, &meta, &Cancel::default());
    let appended = appended.unwrap();
    appended.written.sync().unwrap();
    appended.count
}

pub(crate) fn at_time(now: i64) -> EntryMeta {
    EntryMeta {
        now,
        ..EntryMeta::default()
    }
}

/// Compacts `t` to a summary and the messages from `from` on.
pub(crate) fn compact(
    store: &TaskStore,
    seen: &Conversation,
    from: usize,
    now: i64,
) -> Result<CommitResult, Error> {
    let summary = raw(&says("user", "summary"));
    let mut messages = vec![CompactedMessage {
        message: &summary,
        source: None,
    }];
    let retained = seen.messages.iter().enumerate().skip(from);
    messages.extend(retained.map(|(index, stored)| CompactedMessage {
        message: &stored.message,
        source: Some(index),
    }));
    let compaction = Compaction {
        trigger: CompactionTrigger::Manual,
        pre_tokens: 100,
        post_tokens: 10,
        fallback_reason: None,
        messages,
    };
    store.compact(
        &at("t"),
        seen,
        &compaction,
        &at_time(now),
        &Cancel::default(),
    )
}

/// Rolls back to before the last compaction. Returns false if there is none.
pub(crate) fn undo_compaction(store: &TaskStore, id: &str, now: i64) -> bool {
    let cancel = Cancel::default();
    let seen = store.load(&at(id), &cancel).unwrap();
    if seen.info.compactions == 0 {
        return false;
    }
    // Its summary comes first.
    let before = seen.messages[0].time - 1;
    let rolled = store.rollback(&at(id), &before.into(), &at_time(now), &cancel);
    rolled.unwrap();
    true
}
