//! Runs the trackers on real files: which changes are the user's.
//!
//! The tests use a simulated clock and set file times, so results do not depend on speed.

mod attribution;
mod edge_cases;
mod processes;
mod unsaved;

use std::{
    collections::HashMap,
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    path::AbsPath,
    storage::{Storage, TaskId},
};
use sightline_context::tracker::{ContentHash, FileEvent, Scan, Tracker, UndeliveredChange};
use sightline_protocol::{
    environment::Mode,
    error::ErrorKind,
    tracker::{FileMetadataEntry, FileOperation, RecordState},
};

use FileOperation::{ClineEdited, FileMentioned, ReadTool, UserEdited};

struct Fixture {
    scratch: tempfile::TempDir,
    unsaved: HashMap<AbsPath, ContentHash>,
}

/// Converts a time to nanoseconds since the Unix epoch.
fn nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_nanos().try_into().unwrap()
}

/// Returns the simulated time in `seconds`.
fn clock(seconds: f64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000) + Duration::from_secs_f64(seconds)
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

impl Fixture {
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

    /// Creates a tracker for each call: no state stays in memory.
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
            received: nanos(clock(seconds)),
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
            .scan(
                &self.unsaved,
                now,
                nanos(clock(seconds)),
                &Cancel::default(),
            )
            .unwrap()
    }

    /// Returns the names of recently modified files, and of changed files.
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

// Cases that Cline gets wrong because it uses a flag.

#[test]
fn an_identical_write_hides_no_later_edit() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.write("a", "1", 20.1);
    fixture.assert_quiet(21.0);
    fixture.assert_quiet(30.0);
    fixture.write("a", "user", 40.0);
    fixture.assert_users("a", 41.0);
}

#[test]
fn a_missing_announced_edit_hides_no_later_edit() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", ClineEdited, 20.0);
    // No scan during the window.
    fixture.write("a", "user", 22.1);
    fixture.assert_users("a", 60.0);
}

#[test]
fn a_new_file_is_not_the_users_and_its_edit_is() {
    let fixture = Fixture::new();
    fixture.track("new", ClineEdited, 10.0);
    fixture.assert_quiet(10.1);
    fixture.write("new", "1", 10.5);
    fixture.assert_quiet(60.0);
    fixture.write("new", "user", 70.0);
    fixture.assert_users("new", 71.0);
}

#[test]
fn a_formatter_after_the_agents_write_is_not_the_user() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.write("a", "written", 20.2);
    fixture.assert_quiet(20.3);
    fixture.write("a", "formatted", 21.0);
    fixture.assert_quiet(21.5);
    fixture.assert_quiet(60.0);
    fixture.write("a", "user", 70.0);
    fixture.assert_users("a", 71.0);
}

#[test]
fn edits_made_while_nothing_ran_are_found() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.write("b", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("b", FileMentioned, 10.0);
    fixture.write("a", "user", 1_000.0);
    fs::remove_file(fixture.path("b")).unwrap();
    let scan = fixture.scan(9_000.0);
    assert_eq!(names(&scan.recently_modified), ["a", "b"]);
    let deleted: Vec<_> = scan.recently_modified.iter().map(|m| m.deleted).collect();
    assert_eq!(deleted, [false, true]);
    assert_eq!(scan.changed[0].path, "a");
    assert_eq!(scan.deleted[0].abs, fixture.abs("b"));
}

#[test]
fn a_deletion_is_reported_once_and_withdrawn_when_undone() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fs::remove_file(fixture.path("a")).unwrap();
    assert_eq!(fixture.deliver(20.0), ["a"]);
    assert_eq!(fixture.deliver(21.0), [""; 0]);
    assert_eq!(fixture.look(22.0).1, ["a"]);
    fixture.write("a", "1", 30.0);
    assert_eq!(fixture.look(31.0), (vec![], vec![]));
}

#[test]
fn a_file_the_agent_never_saw_is_not_deleted() {
    let fixture = Fixture::new();
    fixture.track("missing", ReadTool, 10.0);
    fixture.assert_quiet(20.0);
    fixture.write("unobserved", "1", 0.0);
    fixture.track("unobserved", UserEdited, 30.0);
    assert_eq!(fixture.deliver(31.0), ["unobserved"]);
    fs::remove_file(fixture.path("unobserved")).unwrap();
    assert_eq!(fixture.look(40.0), (vec![], vec![]));
    fixture.write("missing", "now there", 50.0);
    fixture.assert_users("missing", 51.0);
}

#[test]
fn a_reverted_change_is_not_an_edit() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "other branch", 20.0);
    fixture.assert_users("a", 21.0);
    fixture.write("a", "1", 30.0);
    assert_eq!(fixture.look(31.0), (vec![], vec![]));
    let fresh = Fixture::new();
    fresh.write("a", "1", 0.0);
    fresh.track("a", ReadTool, 10.0);
    fresh.write("a", "1", 30.0);
    fresh.assert_quiet(31.0);
}

#[test]
fn one_file_under_two_names_is_one_file() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    let event = FileEvent {
        path: "./elsewhere/../a",
        abs: &fixture.abs("./elsewhere/../a"),
        operation: ReadTool,
        content_hash: None,
        content: None,
        now: 20,
        received: nanos(clock(20.0)),
    };
    let entry = fixture.tracker().track(&event, &Cancel::default()).unwrap();
    assert_eq!(entry.path, "a");
    let files = fixture.tracker().records().unwrap().files;
    let states: Vec<_> = files.iter().map(|entry| entry.record_state).collect();
    assert_eq!(states, [RecordState::Stale, RecordState::Active]);
}

#[test]
fn the_same_name_in_two_directories_is_two_files() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("sub")).unwrap();
    for name in ["a", "sub/a"] {
        fixture.write(name, "1", 0.0);
        fixture.track(name, ReadTool, 10.0);
    }
    fixture.write("sub/a", "user", 20.0);
    fixture.assert_users("sub/a", 21.0);
}

// The agent's own writes, in every order.

#[test]
fn a_read_clears_pending_reports() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", UserEdited, 20.0);
    assert_eq!(fixture.look(20.1).0, ["a"]);
    fixture.track("a", ReadTool, 21.0);
    assert_eq!(fixture.look(22.0), (vec![], vec![]));
    // An announced write that was undone before the agent read the file.
    fixture.announce("a", "agent", 30.0);
    fixture.write("a", "agent", 30.1);
    fixture.write("a", "1", 35.0);
    fixture.track("a", ReadTool, 40.0);
    assert_eq!(fixture.look(41.0), (vec![], vec![]));
}

#[test]
fn a_user_edit_reported_by_the_client_is_not_withdrawn() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "2", 20.0);
    fixture.track("a", UserEdited, 20.1);
    fixture.announce("a", "2", 30.0);
    assert_eq!(fixture.look(31.0).0, ["a"]);
    assert!(fixture.sources().contains(&UserEdited));
}

// Reporting.

#[test]
fn an_edit_is_recorded_once_and_reported_until_delivered() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "user", 20.0);
    for seconds in [21.0, 22.0, 23.0] {
        fixture.assert_users("a", seconds);
    }
    assert_eq!(fixture.sources(), [ReadTool, UserEdited]);
    assert_eq!(fixture.deliver(24.0), ["a"]);
    assert_eq!(fixture.look(25.0), (vec![], vec!["a".to_owned()]));
    fixture.write("a", "user again", 30.0);
    fixture.assert_users("a", 31.0);
    fixture.track("a", ReadTool, 40.0);
    assert_eq!(fixture.look(41.0), (vec![], vec![]));
    let files = fixture.tracker().records().unwrap().files;
    assert_eq!(files[1].user_edit_date, Some(21_000));
}

#[test]
fn an_edit_during_a_report_is_reported_next_time() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "user", 20.0);
    let told = fixture.scan(21.0).recently_modified;
    fixture.write("a", "user again", 22.0);
    fixture.assert_users("a", 23.0);
    fixture.tracker().acknowledge(&told).unwrap();
    fixture.assert_users("a", 24.0);
    assert_eq!(fixture.deliver(25.0), ["a"]);
    assert_eq!(fixture.deliver(26.0), [""; 0]);
}

// Unsaved text.
