//! Tests with torn, malformed and truncated logs: only the damaged lines are lost.

use std::{fs, io::Write};

use crate::support::{Scratch, append, at, at_time, compact, says, texts, turn, undo_compaction};
use sightline_base::cancel::Cancel;
use sightline_tasks::{CommitResult, RewindPoint, TaskStore};

fn loaded(store: &TaskStore) -> (Vec<String>, u64, u64) {
    let now = store.load(&at("t"), &Cancel::default()).unwrap();
    (texts(&now), now.recovered.lines, now.recovered.dropped)
}

fn turns(count: usize) -> Vec<String> {
    (0..count).map(turn).collect()
}

#[test]
fn a_torn_last_line_loses_only_itself() {
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
        // A store that had read the whole file gets the same result.
        assert_eq!(loaded(&scratch.store), expected, "cut at {end}");

        append(&store, "t", &[&after], 2);
        let mut expected = (turns(kept), kept as u64 + 1, dropped);
        expected.0.push(after.clone());
        for store in [&store, &scratch.store, &scratch.again()] {
            assert_eq!(loaded(store), expected, "cut at {end}");
        }
        // Later lines are kept.
        assert!(
            fs::read(scratch.log_path("t"))
                .unwrap()
                .starts_with(&whole[..end])
        );
    }
}

#[test]
fn a_malformed_line_loses_only_itself() {
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
fn padding_around_a_line_is_ignored() {
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
fn a_duplicate_line_is_one_message() {
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
fn an_overlong_line_is_dropped() {
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
fn a_line_being_written_does_not_count_as_torn() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let whole = fs::read(scratch.log_path("t")).unwrap();
    let lock = sightline_base::storage::Storage::open(&scratch.data())
        .unwrap()
        .task(&at("t"))
        .lock()
        .unwrap();
    fs::write(scratch.log_path("t"), &whole[..whole.len() - 9]).unwrap();
    let store = scratch.again();
    assert_eq!(loaded(&store), (turns(2), 2, 0));
    // The completed line counts.
    fs::write(scratch.log_path("t"), &whole).unwrap();
    assert_eq!(loaded(&store), (turns(3), 3, 0));
    fs::write(scratch.log_path("t"), &whole[..whole.len() - 9]).unwrap();
    assert_eq!(loaded(&store), (turns(2), 2, 0));
    // The writer is gone.
    drop(lock);
    assert_eq!(loaded(&store), (turns(2), 2, 1));
}

#[test]
fn a_log_truncated_and_extended_is_read_again() {
    let scratch = Scratch::new();
    scratch.say("t", 4, 1);
    let whole = scratch.log("t");
    let reader = scratch.again();
    assert_eq!(loaded(&reader).0.len(), 4);
    // As after a failed write followed by another one of the same length.
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

/// Longer than the size up to which logs are read again completely.
#[test]
fn a_long_log_truncated_and_extended_or_replaced_is_read_again() {
    let text_of = |scratch: &Scratch, name: &str, count: usize| {
        let long = "x".repeat(10_000);
        let text = |index| says("user", &format!("{name} {index} {long}"));
        let messages: Vec<String> = (0..count).map(text).collect();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        scratch.append("t", &messages, 1);
    };
    let scratch = Scratch::new();
    text_of(&scratch, "first", 40);
    let whole = scratch.log("t");
    assert!(whole.len() > 300_000);

    let reader = scratch.again();
    assert_eq!(loaded(&reader).0.len(), 40);
    let other = Scratch::new();
    text_of(&other, "other", 50);
    let head: String = whole
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(scratch.log_path("t"), head + &other.log("t")).unwrap();
    assert_eq!(loaded(&reader), loaded(&scratch.again()));

    // Another file with the same lines except one.
    fs::write(scratch.log_path("t"), &whole).unwrap();
    let reader = scratch.again();
    assert_eq!(loaded(&reader).0.len(), 40);
    append(&scratch.again(), "t", &[&turn(40)], 2);
    let replaced = scratch.log("t").replacen("first 0", "FIRST 0", 1);
    let beside = scratch.path("t").join("beside");
    fs::write(&beside, replaced).unwrap();
    fs::rename(&beside, scratch.log_path("t")).unwrap();
    assert_eq!(loaded(&reader), loaded(&scratch.again()));
}

#[test]
fn entries_without_parents_follow_the_line_order() {
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

/// Returns the log with the lines at `broken` malformed.
fn break_lines(scratch: &Scratch, log: &str, broken: &[usize]) {
    let lines = log.lines().enumerate();
    let lines = lines.map(|(place, line)| match broken.contains(&place) {
        true => "{broken\n".to_owned(),
        false => format!("{line}\n"),
    });
    fs::write(scratch.log_path("t"), lines.collect::<String>()).unwrap();
}

fn compact_from(scratch: &Scratch, from: usize, now: i64) {
    let seen = scratch.store.load(&at("t"), &Cancel::default()).unwrap();
    let stored = compact(&scratch.store, &seen, from, now).unwrap();
    assert!(matches!(stored, CommitResult::Stored));
}

fn without(lost: usize, count: usize) -> Vec<String> {
    let mut turns = turns(count);
    turns.remove(lost);
    turns
}

/// Ten messages, a compaction that retains the last two, four more messages, an undo of the
/// compaction, and two more messages.
fn compacted_and_taken_back() -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.say("t", 10, 1);
    compact_from(&scratch, 8, 5);
    for place in 10..14 {
        scratch.append("t", &[&turn(place)], 6);
    }
    let rolled = scratch
        .store
        .rollback(&at("t"), &4.into(), &at_time(7), &Cancel::default());
    rolled.unwrap();
    scratch.append("t", &[&turn(14), &turn(15)], 8);
    let log = scratch.log("t");
    assert_eq!(loaded(&scratch.again()).0, turns(16));
    (scratch, log)
}

#[test]
fn a_branch_from_a_lost_entry_starts_at_its_predecessor() {
    let (scratch, log) = compacted_and_taken_back();
    break_lines(&scratch, &log, &[9]);
    assert_eq!(loaded(&scratch.again()).0, without(9, 16));
}

#[test]
fn undoing_a_rewind_to_a_lost_entry_restores_its_predecessor() {
    let scratch = Scratch::new();
    scratch.say("t", 4, 1);
    let (store, cancel) = (&scratch.store, Cancel::default());
    let second = store.load(&at("t"), &cancel).unwrap().messages[1].uuid;
    let second = RewindPoint::Entry(second);
    let id = store.rewind(&at("t"), second, None, &at_time(2), &cancel);
    let id = id.unwrap();
    scratch.append("t", &[&says("user", "other")], 3);
    let undone = store.undo_rewind(&at("t"), id, &at_time(4), &cancel);
    undone.unwrap();
    scratch.append("t", &[&turn(4)], 5);
    break_lines(&scratch, &scratch.log("t"), &[3]);
    assert_eq!(loaded(&scratch.again()).0, without(3, 5));
    let store = scratch.again();
    let undone = store.undo_rewind(&at("t"), id, &at_time(6), &cancel);
    undone.unwrap();
    assert_eq!(loaded(&store).0, turns(3));
}

#[test]
fn a_lost_compaction_loses_no_messages() {
    let scratch = Scratch::new();
    scratch.say("t", 5, 1);
    compact_from(&scratch, 2, 5);
    scratch.append("t", &[&turn(5)], 6);
    scratch.append("t", &[&turn(6)], 7);
    break_lines(&scratch, &scratch.log("t"), &[5]);
    let store = scratch.again();
    assert_eq!(loaded(&store).0, turns(7));
    append(&store, "t", &[&turn(7)], 8);
    for store in [store, scratch.again()] {
        assert_eq!(loaded(&store).0, turns(8));
        let now = store.load(&at("t"), &Cancel::default()).unwrap();
        assert_eq!(now.info.compactions, 0);
        assert!(now.messages.iter().all(|stored| !stored.is_summary));
    }
}

#[test]
fn a_torn_compaction_loses_no_messages() {
    let scratch = Scratch::new();
    scratch.say("t", 3, 1);
    let start = scratch.log("t").len();
    compact_from(&scratch, 1, 5);
    let log = scratch.log("t");
    for end in (start + 1..log.len() - 1).step_by(50) {
        fs::write(scratch.log_path("t"), &log[..end]).unwrap();
        let store = scratch.again();
        assert_eq!(loaded(&store), (turns(3), 3, 1), "{end}");
        append(&store, "t", &[&turn(3)], 6);
        assert_eq!(loaded(&scratch.again()), (turns(4), 4, 1), "{end}");
    }
}

#[test]
fn a_lost_undo_loses_no_messages() {
    let (scratch, log) = compacted_and_taken_back();
    let compacted = |count: usize| {
        let mut texts = vec![says("user", "summary")];
        texts.extend((8..count).map(turn));
        texts
    };
    break_lines(&scratch, &log, &[15]);
    let store = scratch.again();
    assert_eq!(loaded(&store).0, compacted(16));
    append(&store, "t", &[&turn(16)], 9);
    assert_eq!(loaded(&store).0, compacted(17));
    assert_eq!(loaded(&scratch.again()), loaded(&store));
    assert!(undo_compaction(&store, "t", 9));
    assert_eq!(loaded(&scratch.again()).0, turns(17));
}

#[test]
fn messages_of_a_lost_compaction_are_not_duplicated() {
    let (scratch, log) = compacted_and_taken_back();
    break_lines(&scratch, &log, &[10]);
    assert_eq!(loaded(&scratch.again()).0, turns(16));
    // Also loses the entry before it.
    break_lines(&scratch, &log, &[9, 10]);
    let mut texts = loaded(&scratch.again()).0;
    texts.retain(|text| *text != turn(9));
    assert_eq!(texts, without(9, 16));
}

#[test]
fn a_copy_without_its_original_is_kept() {
    let scratch = Scratch::new();
    scratch.say("t", 4, 1);
    compact_from(&scratch, 2, 5);
    scratch.append("t", &[&turn(4)], 6);
    break_lines(&scratch, &scratch.log("t"), &[3]);
    let store = scratch.again();
    let compacted = [says("user", "summary"), turn(2), turn(3), turn(4)];
    assert_eq!(loaded(&store).0, compacted);
    assert!(undo_compaction(&store, "t", 7));
    assert_eq!(loaded(&scratch.again()).0, turns(5));
}

#[test]
fn lost_compactions_do_not_merge() {
    let scratch = Scratch::new();
    scratch.say("t", 4, 1);
    compact_from(&scratch, 2, 5);
    compact_from(&scratch, 1, 6);
    scratch.append("t", &[&turn(4)], 7);
    let log = scratch.log("t");
    break_lines(&scratch, &log, &[4, 5]);
    assert_eq!(loaded(&scratch.again()).0, turns(5));
    break_lines(&scratch, &log, &[4]);
    let compacted = [says("user", "summary"), turn(2), turn(3), turn(4)];
    assert_eq!(loaded(&scratch.again()).0, compacted);
}
