//! Several writers on one task: threads, processes, and processes killed during a write. The
//! test binary starts itself as the other process.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    clock::now_nanos,
    path::AbsPath,
    storage::{Storage, TaskId},
};
use sightline_context::tracker::{FileEvent, Tracker};
use sightline_protocol::tracker::FileOperation;
use sightline_testing::process::test_name;

const FOLDER: &str = "SIGHTLINE_TEST_FOLDER";
const NAME: &str = "SIGHTLINE_TEST_NAME";
const ROUNDS: usize = 20;

fn tracker(folder: &Path) -> Tracker {
    let storage = Storage::open(&folder.join("data")).unwrap();
    Tracker::open(
        &storage,
        &TaskId::new("task").unwrap(),
        AccessView::default(),
    )
}

fn track(folder: &Path, name: &str, now: i64) {
    let event = FileEvent {
        path: name,
        abs: &AbsPath::new(&folder.join(name)).unwrap(),
        operation: FileOperation::ReadTool,
        content_hash: None,
        content: None,
        now,
        received: now_nanos(),
    };
    let cancel = Cancel::default();
    tracker(folder).track(&event, &cancel).unwrap();
}

/// Entry point of the other process, not a test.
#[test]
fn child() {
    let (Some(folder), Ok(name)) = (env::var_os(FOLDER), env::var(NAME)) else {
        return;
    };
    let mut told = std::io::stdout();
    for round in 1.. {
        track(Path::new(&folder), &name, round);
        if writeln!(told, "\ntracked {round}").is_err()
            || name != "endless" && round == ROUNDS as i64
        {
            return;
        }
    }
}

fn start(folder: &Path, name: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            &test_name(module_path!(), "child"),
            "--exact",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .env(NAME, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn no_update_is_lost() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let mut children: Vec<Child> = ["p1", "p2"].map(|name| start(folder, name)).into();
    std::thread::scope(|scope| {
        for name in ["t1", "t2"] {
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    track(folder, name, round as i64);
                }
            });
        }
    });
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let files = tracker(folder).records().unwrap().files;
    for name in ["p1", "p2", "t1", "t2"] {
        let dates = files.iter().filter(|entry| entry.path == name);
        let dates: Vec<_> = dates.filter_map(|entry| entry.cline_read_date).collect();
        assert_eq!(dates, (1..=ROUNDS as i64).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn a_killed_process_loses_no_acknowledged_update() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    for run in 1..=15 {
        let mut child = start(folder, "endless");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = 0;
        while told < run % 4 + 1 {
            let line = lines.next().unwrap().unwrap();
            if let Some(round) = line.strip_prefix("tracked ") {
                told = round.parse().unwrap();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Records acknowledged before it died count, too.
        for line in lines.map_while(Result::ok) {
            if let Some(round) = line.strip_prefix("tracked ") {
                told = round.parse().unwrap_or(told);
            }
        }
        let entries = tracker(folder).records().unwrap().files;
        let last = entries.last().unwrap().cline_read_date.unwrap();
        assert!(last == told || last == told + 1, "{last} after {told}");
        // The next process is not blocked.
        track(folder, "after", run);
        let dir = folder.join("data/tasks/task");
        let names = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        assert_eq!(names, [".lock", "task_metadata.json", "tracked_files.json"]);
    }
}
