//! Conversation logs with torn, corrupted, moved and forged lines: intact lines are read,
//! others are skipped, and the task can be continued.

use std::{fs, sync::OnceLock};

use serde_json::value::RawValue;
use sightline_base::{
    cancel::Cancel,
    storage::{Storage, TaskId},
};
use sightline_protocol::error::ErrorKind;
use sightline_tasks::{EntryMeta, TaskStore};

use crate::draw::Draw;

const MESSAGES: usize = 6;

/// Lines that are not log entries.
const STRANGE: &[&[u8]] = &[
    b"",
    b"{",
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe\x00",
    b"{\"uuid\":1}",
    b"\"\\ud800\"",
    b"{\"type\":\"user\"}",
    b"{\"type\":\"summary\",\"summary\":7}",
    b"\x00\x00\x00\x00",
];

fn message(index: usize) -> Box<RawValue> {
    let role = ["user", "assistant"][index % 2];
    RawValue::from_string(format!(
        r#"{{"role":"{role}","content":"message {index}"}}"#
    ))
    .unwrap()
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let folder = tempfile::tempdir().unwrap();
    let open = || TaskStore::new(Storage::open(&folder.path().join("data")).unwrap());
    let (task, cancel) = (TaskId::new("t").unwrap(), Cancel::default());
    let append = |store: &TaskStore, index: usize| {
        let message = message(index);
        let meta = EntryMeta {
            now: 1,
            ..EntryMeta::default()
        };
        let appended = store.append(&task, &[&message], &meta, &cancel).unwrap();
        appended.written.sync().unwrap();
    };
    let read = |store: &TaskStore| -> Vec<String> {
        let conversation = match store.load(&task, &cancel) {
            Ok(conversation) => conversation,
            // No line could be read.
            Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
            Err(error) => panic!("{error}"),
        };
        let messages = conversation.messages.iter();
        messages
            .map(|stored| stored.message.get().to_owned())
            .collect()
    };
    let first = open();
    let path = folder.path().join("data/tasks/t/conversation.jsonl");
    // Written once, because each line is synced.
    static LOG: OnceLock<Vec<u8>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        (0..MESSAGES).for_each(|index| append(&first, index));
        fs::read(&path).unwrap()
    });
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, log).unwrap();
    assert_eq!(read(&first).len(), MESSAGES);
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), MESSAGES);

    let mut whole: Vec<usize> = Vec::new();
    let mut written: Vec<u8> = Vec::new();
    // A changed line may contain anything.
    let mut is_forged = false;
    for (index, line) in lines.iter().enumerate() {
        match draw.below(8) {
            0 => written.extend_from_slice(&[draw.pick(STRANGE), &b"\n"[..]].concat()),
            1 => {
                written.extend_from_slice(&[draw.pick(STRANGE), &b"\n"[..], line].concat());
                whole.push(index);
            }
            2 => {
                let mut line = line.to_vec();
                let at = draw.below(line.len() - 1);
                line[at] = draw.byte();
                written.extend_from_slice(&line);
                is_forged = true;
            }
            3 => {
                let torn = draw.below(line.len() - 1);
                written.extend_from_slice(&line[..torn]);
                written.push(b'\n');
            }
            4 => {
                let line = String::from_utf8_lossy(line);
                let (from, to) = draw.pick(&[
                    ("\"user\"", "\"assistant\""),
                    ("\"uuid\":\"", "\"uuid\":\"0"),
                    ("\"parentUuid\":", "\"parentUuid\":7,\"x\":"),
                    ("\"message\":", "\"message\":[],\"x\":"),
                    ("\"content\":", "\"content\":{\"deep\":[[[[]]]]},\"x\":"),
                ]);
                written.extend_from_slice(line.replacen(from, to, 1).as_bytes());
                is_forged = true;
            }
            _ => {
                written.extend_from_slice(line);
                whole.push(index);
            }
        }
    }
    written.extend_from_slice(draw.bytes(64));
    fs::write(&path, &written).unwrap();

    let expected: Vec<String> = whole
        .iter()
        .map(|index| message(*index).get().to_owned())
        .collect();
    // One store that saw the previous state, and one that opens it.
    for store in [&first, &open()] {
        let now = read(store);
        if !is_forged {
            assert_eq!(now, expected, "{:?}", String::from_utf8_lossy(&written));
        }
    }
    let before = read(&open());
    append(&open(), MESSAGES);
    let after = read(&open());
    assert_eq!(
        after.last().map(String::as_str),
        Some(message(MESSAGES).get())
    );
    assert_eq!(after[..after.len() - 1], before);
    assert!(
        fs::read(&path).unwrap().starts_with(&written),
        "what was there is gone"
    );
}
