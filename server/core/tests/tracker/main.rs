//! The tracker on real files: attributes changes to the user or the agent.
//!
//! The clock is simulated and file timestamps are set explicitly, so results do
//! not depend on the speed of the machine.

#![allow(clippy::unwrap_used)]

mod odd_files;
mod unsaved;

use std::{
    collections::HashMap,
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use sightline_core::{
    access::AccessView,
    cancel::Cancel,
    path::AbsPath,
    storage::{Storage, TaskId},
    tracker::{ContentHash, FileEvent, Scan, Tracker, UndeliveredChange},
};
use sightline_protocol::{
    environment::Mode,
    error::ErrorKind,
    tracker::{FileMetadataEntry, FileOperation, RecordState},
};

use FileOperation::{ClineEdited, FileMentioned, ReadTool, UserEdited};

struct Desk {
    scratch: tempfile::TempDir,
    unsaved: HashMap<AbsPath, ContentHash>,
}

/// `seconds` of the invented clock.
fn clock(seconds: f64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000) + Duration::from_secs_f64(seconds)
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

impl Desk {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("ws")).unwrap();
        Self {
            scratch,
            unsaved: HashMap::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join("ws").join(name)
    }

    fn abs(&self, name: &str) -> AbsPath {
        AbsPath::new(&self.path(name)).unwrap()
    }

    fn task_file(&self, name: &str) -> PathBuf {
        self.scratch.path().join("data/tasks/task").join(name)
    }

    fn write(&self, name: &str, text: &str, seconds: f64) {
        fs::write(self.path(name), text).unwrap();
        let file = File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(clock(seconds)).unwrap();
    }

    /// A new one each time: nothing is kept in memory.
    fn tracker(&self) -> Tracker {
        let storage = Storage::open(&self.scratch.path().join("data")).unwrap();
        Tracker::open(
            &storage,
            &TaskId::new("task").unwrap(),
            AccessView::default(),
        )
    }

    fn track_with(
        &self,
        name: &str,
        operation: FileOperation,
        seconds: f64,
        content_hash: Option<ContentHash>,
        content: Option<ContentHash>,
    ) -> FileMetadataEntry {
        let event = FileEvent {
            path: name,
            abs: &self.abs(name),
            operation,
            content_hash,
            content,
            now: (seconds * 1000.0) as i64,
            received: clock(seconds),
        };
        self.tracker().track(&event, &Cancel::default()).unwrap()
    }

    fn track(&self, name: &str, operation: FileOperation, seconds: f64) {
        self.track_with(name, operation, seconds, None, None);
    }

    fn announce(&self, name: &str, text: &str, seconds: f64) {
        self.track_with(name, ClineEdited, seconds, Some(hash(text)), None);
    }

    fn scan(&self, seconds: f64) -> Scan {
        let now = (seconds * 1000.0) as i64;
        self.tracker()
            .scan(&self.unsaved, now, clock(seconds), &Cancel::default())
            .unwrap()
    }

    /// Names of the recently modified files, and those that differ.
    fn look(&self, seconds: f64) -> (Vec<String>, Vec<String>) {
        let scan = self.scan(seconds);
        let changed = scan.changed.into_iter().chain(scan.deleted);
        (
            names(&scan.recently_modified),
            changed.map(|file| file.path).collect(),
        )
    }

    fn deliver(&self, seconds: f64) -> Vec<String> {
        let modified = self.scan(seconds).recently_modified;
        self.tracker().acknowledge(&modified).unwrap();
        names(&modified)
    }

    fn sources(&self) -> Vec<FileOperation> {
        let files = self.tracker().records().unwrap().files;
        files.iter().map(|entry| entry.record_source).collect()
    }

    #[track_caller]
    fn assert_quiet(&self, seconds: f64) {
        assert_eq!(self.look(seconds), (vec![], vec![]), "at {seconds}");
        assert!(!self.sources().contains(&UserEdited));
    }

    #[track_caller]
    fn assert_users(&self, name: &str, seconds: f64) {
        let expected = (vec![name.to_owned()], vec![name.to_owned()]);
        assert_eq!(self.look(seconds), expected, "at {seconds}");
        assert_eq!(self.sources().last(), Some(&UserEdited));
    }
}

fn names(modified: &[UndeliveredChange]) -> Vec<String> {
    let names = modified.iter().map(|modified| modified.file.path.clone());
    names.collect()
}

// What goes wrong in Cline, and why: its mark is a flag.

#[test]
fn an_identical_write_swallows_no_later_edit() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", ClineEdited, 20.0);
    desk.write("a", "1", 20.1);
    desk.assert_quiet(21.0);
    desk.assert_quiet(30.0);
    desk.write("a", "user", 40.0);
    desk.assert_users("a", 41.0);
}

#[test]
fn an_edit_that_never_comes_swallows_no_later_edit() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", ClineEdited, 20.0);
    // No look while the window was open.
    desk.write("a", "user", 22.1);
    desk.assert_users("a", 60.0);
}

#[test]
fn a_new_file_is_not_the_users_and_its_edit_is() {
    let desk = Desk::new();
    desk.track("new", ClineEdited, 10.0);
    desk.assert_quiet(10.1);
    desk.write("new", "1", 10.5);
    desk.assert_quiet(60.0);
    desk.write("new", "user", 70.0);
    desk.assert_users("new", 71.0);
}

#[test]
fn a_formatter_after_the_agents_write_is_not_the_user() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", ClineEdited, 20.0);
    desk.write("a", "written", 20.2);
    desk.assert_quiet(20.3);
    desk.write("a", "formatted", 21.0);
    desk.assert_quiet(21.5);
    desk.assert_quiet(60.0);
    desk.write("a", "user", 70.0);
    desk.assert_users("a", 71.0);
}

#[test]
fn edits_made_while_nothing_ran_are_found() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.write("b", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("b", FileMentioned, 10.0);
    desk.write("a", "user", 1_000.0);
    fs::remove_file(desk.path("b")).unwrap();
    let scan = desk.scan(9_000.0);
    assert_eq!(names(&scan.recently_modified), ["a", "b"]);
    let deleted: Vec<_> = scan.recently_modified.iter().map(|m| m.deleted).collect();
    assert_eq!(deleted, [false, true]);
    assert_eq!(scan.changed[0].path, "a");
    assert_eq!(scan.deleted[0].abs, desk.abs("b"));
}

#[test]
fn a_deletion_is_told_once_and_taken_back_when_undone() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    fs::remove_file(desk.path("a")).unwrap();
    assert_eq!(desk.deliver(20.0), ["a"]);
    assert_eq!(desk.deliver(21.0), [""; 0]);
    assert_eq!(desk.look(22.0).1, ["a"]);
    desk.write("a", "1", 30.0);
    assert_eq!(desk.look(31.0), (vec![], vec![]));
}

#[test]
fn a_file_the_agent_never_saw_is_not_deleted() {
    let desk = Desk::new();
    desk.track("missing", ReadTool, 10.0);
    desk.assert_quiet(20.0);
    desk.write("seen by nobody", "1", 0.0);
    desk.track("seen by nobody", UserEdited, 30.0);
    assert_eq!(desk.deliver(31.0), ["seen by nobody"]);
    fs::remove_file(desk.path("seen by nobody")).unwrap();
    assert_eq!(desk.look(40.0), (vec![], vec![]));
    desk.write("missing", "now there", 50.0);
    desk.assert_users("missing", 51.0);
}

#[test]
fn a_switch_there_and_back_is_no_edit() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "other branch", 20.0);
    desk.assert_users("a", 21.0);
    desk.write("a", "1", 30.0);
    assert_eq!(desk.look(31.0), (vec![], vec![]));
    let fresh = Desk::new();
    fresh.write("a", "1", 0.0);
    fresh.track("a", ReadTool, 10.0);
    fresh.write("a", "1", 30.0);
    fresh.assert_quiet(31.0);
}

#[test]
fn one_file_under_two_names_is_one_file() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    let event = FileEvent {
        path: "./elsewhere/../a",
        abs: &desk.abs("./elsewhere/../a"),
        operation: ReadTool,
        content_hash: None,
        content: None,
        now: 20,
        received: clock(20.0),
    };
    let entry = desk.tracker().track(&event, &Cancel::default()).unwrap();
    assert_eq!(entry.path, "a");
    let files = desk.tracker().records().unwrap().files;
    let states: Vec<_> = files.iter().map(|entry| entry.record_state).collect();
    assert_eq!(states, [RecordState::Stale, RecordState::Active]);
}

#[test]
fn the_same_name_in_two_folders_is_two_files() {
    let desk = Desk::new();
    fs::create_dir(desk.path("sub")).unwrap();
    for name in ["a", "sub/a"] {
        desk.write(name, "1", 0.0);
        desk.track(name, ReadTool, 10.0);
    }
    desk.write("sub/a", "user", 20.0);
    desk.assert_users("sub/a", 21.0);
}

// The agent's own writes, in every order.

#[test]
fn an_announced_content_is_the_agents_whenever_it_comes() {
    for (announced, written, looked) in [
        (20.0, 20.5, 21.0),
        (20.0, 500.0, 501.0),
        (500.0, 20.0, 501.0),
        (20.0, 20.5, 900.0),
    ] {
        let desk = Desk::new();
        desk.write("a", "1", 0.0);
        desk.track("a", ReadTool, 10.0);
        if announced < written {
            desk.announce("a", "agent", announced);
            desk.assert_quiet(announced + 0.1);
            desk.write("a", "agent", written);
        } else {
            desk.write("a", "agent", written);
            desk.announce("a", "agent", announced);
        }
        desk.assert_quiet(looked);
        desk.write("a", "user", 1_000.0);
        desk.assert_users("a", 1_001.0);
    }
}

#[test]
fn with_a_hash_everything_else_is_the_users() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.announce("a", "agent", 20.0);
    desk.write("a", "user", 20.1);
    desk.assert_users("a", 20.2);
}

#[test]
fn undoing_the_agents_write_is_an_edit() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.announce("a", "agent", 20.0);
    // The file was not observed in between.
    desk.write("a", "agent", 20.1);
    desk.write("a", "1", 25.0);
    desk.assert_users("a", 26.0);
}

#[test]
fn an_unnoticed_edit_under_the_agents_write_is_not_lost() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "user", 15.0);
    desk.announce("a", "agent", 20.0);
    desk.write("a", "agent", 20.1);
    // Told, though the file now holds what the agent wrote.
    assert_eq!(desk.look(21.0), (vec!["a".to_owned()], vec![]));
    assert_eq!(desk.sources(), [ReadTool, UserEdited, ClineEdited]);
    assert_eq!(desk.deliver(22.0), ["a"]);
    assert_eq!(desk.look(23.0), (vec![], vec![]));
}

#[test]
fn a_look_between_the_write_and_the_word_about_it_does_no_harm() {
    for hash_of in [None, Some(hash("agent"))] {
        let desk = Desk::new();
        desk.write("a", "1", 0.0);
        desk.track("a", ReadTool, 10.0);
        desk.write("a", "agent", 20.0);
        desk.assert_users("a", 20.1);
        desk.track_with("a", ClineEdited, 20.2, hash_of, None);
        assert_eq!(desk.look(20.3), (vec![], vec![]));
        assert_eq!(desk.sources(), [ReadTool, ClineEdited]);
        let newest = desk.tracker().records().unwrap().files.pop().unwrap();
        assert_eq!(newest.user_edit_date, None);
    }
}

#[test]
fn without_a_hash_what_is_there_already_is_the_agents() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "agent", 15.0);
    desk.track("a", ClineEdited, 20.0);
    desk.assert_quiet(20.1);
    // The write came, so no other is expected.
    desk.write("a", "user", 20.2);
    desk.assert_users("a", 20.3);
}

#[test]
fn an_edit_that_stands_is_not_adopted_by_the_agents_next() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "user", 12.0);
    desk.assert_users("a", 13.0);
    desk.track("a", ClineEdited, 20.0);
    let told = (vec!["a".to_owned()], vec!["a".to_owned()]);
    assert_eq!(desk.look(20.1), told);
    assert_eq!(desk.look(60.0), told);
    assert_eq!(desk.sources(), [ReadTool, UserEdited, ClineEdited]);
}

#[test]
fn within_its_window_the_agent_may_go_back() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", ClineEdited, 20.0);
    desk.write("a", "2", 20.1);
    desk.assert_quiet(20.2);
    desk.write("a", "1", 20.3);
    desk.assert_quiet(20.4);
    desk.assert_quiet(60.0);
}

#[test]
fn a_read_ends_what_was_to_be_told() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", UserEdited, 20.0);
    assert_eq!(desk.look(20.1).0, ["a"]);
    desk.track("a", ReadTool, 21.0);
    assert_eq!(desk.look(22.0), (vec![], vec![]));
    // An announced write that was undone before the agent read again.
    desk.announce("a", "agent", 30.0);
    desk.write("a", "agent", 30.1);
    desk.write("a", "1", 35.0);
    desk.track("a", ReadTool, 40.0);
    assert_eq!(desk.look(41.0), (vec![], vec![]));
}

#[test]
fn deletions_by_the_agent_are_its_own() {
    let desk = Desk::new();
    for name in ["before", "after"] {
        desk.write(name, "1", 0.0);
        desk.track(name, ReadTool, 10.0);
    }
    fs::remove_file(desk.path("before")).unwrap();
    desk.track("before", ClineEdited, 20.0);
    desk.track("after", ClineEdited, 20.0);
    fs::remove_file(desk.path("after")).unwrap();
    desk.assert_quiet(20.5);
    desk.assert_quiet(60.0);
}

#[test]
fn two_edits_in_a_row_are_both_the_agents() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    for (seconds, text) in [(20.0, "2"), (20.5, "3"), (30.0, "4")] {
        desk.track("a", ClineEdited, seconds);
        desk.write("a", text, seconds + 0.1);
    }
    desk.assert_quiet(60.0);
    for (seconds, text) in [(70.0, "5"), (70.1, "6")] {
        desk.announce("a", text, seconds);
        desk.write("a", text, seconds + 0.05);
    }
    desk.assert_quiet(90.0);
}

#[test]
fn reading_before_the_announced_write_keeps_it_expected() {
    for hash_of in [None, Some(hash("agent"))] {
        let desk = Desk::new();
        desk.write("a", "1", 0.0);
        desk.track_with("a", ClineEdited, 20.0, hash_of, None);
        desk.track("a", ReadTool, 20.1);
        desk.write("a", "agent", 20.2);
        desk.assert_quiet(20.3);
    }
}

#[test]
fn what_was_told_of_the_user_stays_to_be_told_though_the_agent_edits_on_top() {
    for with_hash in [true, false] {
        let desk = Desk::new();
        desk.write("a", "1", 0.0);
        desk.track("a", ReadTool, 10.0);
        desk.write("a", "user", 20.0);
        desk.assert_users("a", 21.0);
        desk.write("a", "agent", 30.0);
        let announced = with_hash.then(|| hash("agent"));
        desk.track_with("a", ClineEdited, 30.1, announced, None);
        assert_eq!(desk.look(31.0), (vec!["a".to_owned()], vec![]));
    }
}

#[test]
fn a_word_of_the_user_within_the_agents_window_is_believed() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", ClineEdited, 20.0);
    desk.write("a", "user", 20.2);
    desk.track("a", UserEdited, 20.3);
    let told = (vec!["a".to_owned()], vec!["a".to_owned()]);
    assert_eq!(desk.look(20.4), told);
    assert_eq!(desk.look(60.0), told);
}

#[test]
fn a_read_within_its_window_lets_the_agent_go_back_too() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ClineEdited, 20.0);
    desk.write("a", "2", 20.1);
    desk.track("a", ReadTool, 20.2);
    desk.write("a", "1", 20.3);
    desk.assert_quiet(20.4);
}

#[test]
fn the_window_is_two_seconds_wide() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.track("a", ClineEdited, 20.0);
    desk.write("a", "2", 22.0);
    desk.assert_quiet(22.0);
}

#[test]
fn another_content_than_the_announced_one_makes_nothing_seen() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.announce("a", "agent", 20.0);
    desk.write("a", "user", 30.0);
    desk.assert_users("a", 31.0);
    // With its old time, as by a tool that puts a file back.
    desk.write("a", "1", 0.0);
    assert_eq!(desk.look(41.0), (vec![], vec![]));
}

#[test]
fn an_announced_content_that_was_read_is_the_users_when_it_comes_again() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.announce("a", "agent", 10.0);
    desk.write("a", "agent", 10.1);
    desk.track("a", ReadTool, 20.0);
    desk.write("a", "other", 30.0);
    desk.track("a", ReadTool, 31.0);
    desk.write("a", "agent", 40.0);
    desk.assert_users("a", 41.0);
}

#[test]
fn what_the_client_said_of_the_user_is_not_taken_back() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "2", 20.0);
    desk.track("a", UserEdited, 20.1);
    desk.announce("a", "2", 30.0);
    assert_eq!(desk.look(31.0).0, ["a"]);
    assert!(desk.sources().contains(&UserEdited));
}

// Telling.

#[test]
fn an_edit_is_recorded_once_and_told_until_delivered() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "user", 20.0);
    for seconds in [21.0, 22.0, 23.0] {
        desk.assert_users("a", seconds);
    }
    assert_eq!(desk.sources(), [ReadTool, UserEdited]);
    assert_eq!(desk.deliver(24.0), ["a"]);
    assert_eq!(desk.look(25.0), (vec![], vec!["a".to_owned()]));
    desk.write("a", "user again", 30.0);
    desk.assert_users("a", 31.0);
    desk.track("a", ReadTool, 40.0);
    assert_eq!(desk.look(41.0), (vec![], vec![]));
    let files = desk.tracker().records().unwrap().files;
    assert_eq!(files[1].user_edit_date, Some(21_000));
    assert_eq!(desk.tracker().edited_after(30_999).unwrap(), ["a"]);
    assert_eq!(desk.tracker().edited_after(31_000).unwrap(), [""; 0]);
}

#[test]
fn an_edit_made_while_telling_is_told_next_time() {
    let desk = Desk::new();
    desk.write("a", "1", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.write("a", "user", 20.0);
    let told = desk.scan(21.0).recently_modified;
    desk.write("a", "user again", 22.0);
    desk.assert_users("a", 23.0);
    desk.tracker().acknowledge(&told).unwrap();
    desk.assert_users("a", 24.0);
    assert_eq!(desk.deliver(25.0), ["a"]);
    assert_eq!(desk.deliver(26.0), [""; 0]);
}

// Unsaved text.
