//! Damaged, large and special files, and records that are not stored.

use super::*;

#[test]
fn corrupt_files_are_set_aside() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    for name in ["task_metadata.json", "tracked_files.json"] {
        fs::write(fixture.task_file(name), "{torn").unwrap();
    }
    assert_eq!(fixture.look(20.0), (vec![], vec![]));
    assert_eq!(fixture.tracker().records().unwrap().files, []);
    // The scan replaced no file.
    assert_eq!(
        fs::read(fixture.task_file("task_metadata.json")).unwrap(),
        b"{torn"
    );
    fixture.track("a", ReadTool, 30.0);
    let mut aside: Vec<String> = fs::read_dir(fixture.task_file(""))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| fs::read(entry.path()).unwrap() == b"{torn")
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    aside.sort();
    assert_eq!(aside.len(), 2);
    assert!(aside[0].starts_with("task_metadata.json.corrupt-"));
    assert!(aside[1].starts_with("tracked_files.json.corrupt-"));
    fixture.write("a", "user", 40.0);
    fixture.assert_users("a", 41.0);
}

#[test]
fn scanning_stores_nothing() {
    let fixture = Fixture::new();
    fixture.assert_quiet(1.0);
    let saved = fixture.tracker();
    saved
        .saved(&fixture.abs("a"), hash("x"), &Cancel::default())
        .unwrap();
    saved.acknowledge(&[]).unwrap();
    assert!(!fixture.scratch.path().join("data").exists());
}

#[test]
fn a_trusted_stamp_does_not_hide_an_edit() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    // By the real clock these scans are long after the write, so the file's stamp is trusted
    // from now on.
    let later = |seconds| SystemTime::now() + Duration::from_secs(seconds);
    let scan = |at| {
        let tracker = fixture.tracker();
        tracker
            .scan(&HashMap::new(), 0, nanos(at), &Cancel::default())
            .unwrap()
    };
    let stored = || fs::read_to_string(fixture.task_file("tracked_files.json")).unwrap();
    assert!(!stored().contains("hashed"));
    assert_eq!(scan(later(60)), Scan::default());
    assert!(stored().contains("hashed"));
    // Same size, same time.
    fixture.write("a", "2", 0.0);
    assert_eq!(scan(later(90)).changed.len(), 1);
}

#[test]
fn large_files_are_compared_by_size_and_time() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    let file = File::options().write(true).open(fixture.path("a")).unwrap();
    file.set_len(1 << 30).unwrap();
    file.set_modified(clock(1.0)).unwrap();
    fixture.track("a", ReadTool, 10.0);
    fixture.assert_quiet(11.0);
    // An announced hash does not apply to a file too large to hash; the order does.
    fixture.announce("a", "whatever", 20.0);
    file.set_modified(clock(20.5)).unwrap();
    fixture.assert_quiet(60.0);
    file.set_modified(clock(70.0)).unwrap();
    fixture.assert_users("a", 71.0);
    fixture.track("a", ReadTool, 80.0);
    fixture.announce("a", "whatever", 90.0);
    file.set_modified(clock(100.0)).unwrap();
    fixture.assert_users("a", 101.0);
    // A file that becomes large by an announced write.
    fixture.write("b", "1", 0.0);
    fixture.track("b", ReadTool, 110.0);
    fixture.announce("b", "large", 120.0);
    let file = File::options().write(true).open(fixture.path("b")).unwrap();
    file.set_len(1 << 30).unwrap();
    assert_eq!(fixture.look(130.0).0, ["a"]);
}

#[cfg(unix)]
#[test]
fn special_files_are_tracked_safely() {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, fs::symlink},
    };
    let fixture = Fixture::new();
    let name = PathBuf::from(OsStr::from_bytes(b"caf\xe9"));
    let abs = AbsPath::new(&fixture.path("").join(&name)).unwrap();
    fs::write(abs.as_path(), "1").unwrap();
    let event = FileEvent {
        path: "caf%E9",
        abs: &abs,
        operation: ReadTool,
        content_hash: None,
        content: None,
        now: 10,
        received: nanos(clock(10.0)),
    };
    fixture.tracker().track(&event, &Cancel::default()).unwrap();
    symlink("loop", fixture.path("loop")).unwrap();
    fs::create_dir(fixture.path("folder")).unwrap();
    fixture.track("loop", ReadTool, 10.0);
    fixture.track("folder", ReadTool, 10.0);
    fixture.track("/dev/zero", ReadTool, 10.0);
    fixture.assert_quiet(20.0);
    fs::write(abs.as_path(), "2").unwrap();
    let scan = fixture.scan(30.0);
    assert_eq!(scan.changed.len(), 1);
    assert_eq!(scan.changed[0].abs, abs);
}

#[test]
fn cancelling_records_nothing() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "user", 20.0);
    let cancel = Cancel::default();
    cancel.cancel();
    let error = fixture
        .tracker()
        .scan(&HashMap::new(), 21, nanos(clock(21.0)), &cancel)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(fixture.sources(), [ReadTool]);
}

#[test]
fn models_are_recorded_when_they_change() {
    let fixture = Fixture::new();
    let record = |model, mode, now| {
        fixture
            .tracker()
            .record_model(model, "p", mode, now)
            .unwrap()
    };
    assert!(record("m", Mode::Act, 1));
    assert!(!record("m", Mode::Act, 2));
    assert!(record("m", Mode::Plan, 3));
    let models = fixture.tracker().records().unwrap().models;
    let modes: Vec<_> = models
        .iter()
        .map(|entry| (entry.ts, entry.mode.as_str()))
        .collect();
    assert_eq!(modes, [(1, "act"), (3, "plan")]);
    assert!(!fixture.task_file("tracked_files.json").exists());
}
