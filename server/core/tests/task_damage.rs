//! Logs that were torn, broken or cut: what is damaged is lost, and no more.

#![allow(clippy::unwrap_used)]

mod tasks;

use std::{fs, io::Write};

use sightline_core::{cancel::Cancel, task::TaskStore};
use tasks::{Scratch, append, at, says, texts, turn};

fn loaded(store: &TaskStore) -> (Vec<String>, u64, u64) {
    let now = store.load(&at("t"), &Cancel::default()).unwrap();
    (texts(&now), now.recovered.lines, now.recovered.dropped)
}

fn turns(count: usize) -> Vec<String> {
    (0..count).map(turn).collect()
}

#[test]
fn a_last_line_torn_anywhere_costs_itself_only() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let whole = fs::read(scratch.log_path("t")).unwrap();
    let start = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let after = says("user", "after");
    for end in start..=whole.len() {
        fs::write(scratch.log_path("t"), &whole[..end]).unwrap();
        let (kept, dropped) = match end {
            _ if end >= whole.len() - 1 => (3, 0),
            _ if end == start => (2, 0),
            _ => (2, 1),
        };
        let store = scratch.again();
        let expected = (turns(kept), kept as u64, dropped);
        assert_eq!(loaded(&store), expected, "cut at {end}");
        // A store that had read the whole file finds the same.
        assert_eq!(loaded(&scratch.store), expected, "cut at {end}");

        append(&store, "t", &[&after], 2);
        let mut expected = (turns(kept), kept as u64 + 1, dropped);
        expected.0.push(after.clone());
        for store in [&store, &scratch.store, &scratch.again()] {
            assert_eq!(loaded(store), expected, "cut at {end}");
        }
        // And what stood there stays.
        assert!(
            fs::read(scratch.log_path("t"))
                .unwrap()
                .starts_with(&whole[..end])
        );
    }
}

#[test]
fn a_broken_line_costs_itself_only() {
    let scratch = Scratch::new();
    scratch.say("t", 6, 1);
    let log = scratch.log("t");
    let lines: Vec<&[u8]> = log.lines().map(str::as_bytes).collect();
    let broken: [&[u8]; 9] = [
        b"{\"uuid\":",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"\0\0\0\0",
        b"{}",
        b"}{",
        &lines[0][..lines[0].len() - 1],
        b"{\"uuid\":\"67e55044-10b1-426f-9247-bb680e5fe0c8\",\"type\":\"user\",\"message\":\"\xff\"}",
    ];
    for bad in broken {
        for place in 0..6 {
            let mut damaged = lines.clone();
            damaged[place] = bad;
            let text = damaged.join(&b"\n"[..]);
            fs::write(scratch.log_path("t"), [&text[..], b"\n"].concat()).unwrap();
            let mut expected = turns(6);
            expected.remove(place);
            let store = scratch.again();
            assert_eq!(
                loaded(&store),
                (expected.clone(), 5, 1),
                "{bad:?} at {place}"
            );
            append(&store, "t", &[&turn(6)], 2);
            expected.push(turn(6));
            assert_eq!(
                loaded(&scratch.again()),
                (expected, 6, 1),
                "{bad:?} at {place}"
            );
        }
    }
}

#[test]
fn what_lies_around_a_line_does_no_harm() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let log = scratch.log("t");
    let lines: Vec<&str> = log.lines().collect();
    let text = format!(
        "\n\r\n\0\0\0{}\r\n  \n{}  \n\n{}\n\0\0\n",
        lines[0], lines[1], lines[2]
    );
    fs::write(scratch.log_path("t"), text).unwrap();
    assert_eq!(loaded(&scratch.again()), (turns(3), 3, 1));
}

#[test]
fn a_line_twice_is_one_message() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let log = scratch.log("t");
    let twice: String = log
        .lines()
        .map(|line| format!("{line}\n{line}\n"))
        .collect();
    fs::write(scratch.log_path("t"), twice).unwrap();
    assert_eq!(loaded(&scratch.again()), (turns(3), 3, 3));
}

#[test]
fn a_line_longer_than_any_is_dropped() {
    let scratch = Scratch::new();
    scratch.say("t", 2, 1);
    let mut log = fs::OpenOptions::new()
        .append(true)
        .open(scratch.log_path("t"))
        .unwrap();
    writeln!(log, "{{\"x\":\"{}\"}}", "x".repeat(64 << 20)).unwrap();
    let store = scratch.again();
    append(&store, "t", &[&turn(2)], 2);
    assert_eq!(loaded(&store), (turns(3), 3, 1));
    assert_eq!(loaded(&scratch.again()), (turns(3), 3, 1));
}

#[test]
fn a_line_being_written_is_not_torn() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let whole = fs::read(scratch.log_path("t")).unwrap();
    let lock = sightline_core::storage::Storage::open(&scratch.data())
        .unwrap()
        .task(&at("t"))
        .lock()
        .unwrap();
    fs::write(scratch.log_path("t"), &whole[..whole.len() - 9]).unwrap();
    let store = scratch.again();
    assert_eq!(loaded(&store), (turns(2), 2, 0));
    // Written to its end it is a line like any other.
    fs::write(scratch.log_path("t"), &whole).unwrap();
    assert_eq!(loaded(&store), (turns(3), 3, 0));
    fs::write(scratch.log_path("t"), &whole[..whole.len() - 9]).unwrap();
    assert_eq!(loaded(&store), (turns(2), 2, 0));
    // Nobody writes it any more.
    drop(lock);
    assert_eq!(loaded(&store), (turns(2), 2, 1));
}

#[test]
fn a_log_cut_and_written_on_is_read_anew() {
    let scratch = Scratch::new();
    scratch.say("t", 4, 1);
    let whole = scratch.log("t");
    let reader = scratch.again();
    assert_eq!(loaded(&reader).0.len(), 4);
    // As after a write that failed, and another one of the same length.
    let cut: String = whole
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(scratch.log_path("t"), &cut).unwrap();
    let other = scratch.again();
    append(
        &other,
        "t",
        &[&says("user", "other"), &turn(3), &turn(4)],
        2,
    );
    assert!(scratch.log("t").len() > whole.len());
    assert_eq!(
        loaded(&reader).0,
        [turn(0), turn(1), says("user", "other"), turn(3), turn(4)]
    );
}

#[test]
fn a_log_without_parents_is_in_the_order_of_its_lines() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let mut text = String::new();
    for line in scratch.log("t").lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("parentUuid");
        line["unknown"] = serde_json::json!({"a": [1]});
        text += &format!("{line}\n");
    }
    fs::write(scratch.log_path("t"), text).unwrap();
    assert_eq!(loaded(&scratch.again()).1, 3);
    assert_eq!(loaded(&scratch.again()).0.len(), 3);
}
