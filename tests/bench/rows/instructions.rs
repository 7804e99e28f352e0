//! Instructions executed on hot paths, counted by callgrind in the built program. Unlike
//! times, they are not affected by other processes, so small changes are visible.
//!
//! Each figure is the difference between two runs with different numbers of repetitions,
//! divided by the difference in repetitions, which excludes startup and shutdown.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    Run, progress,
    report::{Row, Series, Unit},
    rows::access::{folder_of, patterns},
    rows::conversation::conversation,
    session::{Session, storage},
    tree::{Tree, path_of},
};

const PART: &str = "instructions";
const SETTLED: Duration = Duration::from_secs(1);

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    if !Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        run.report
            .skip(PART, "valgrind is not installed (apt-get install valgrind)");
        return Vec::new();
    }
    // Counts hardly differ between rounds; a second round shows by how much.
    let (factor, rounds) = if run.quick { (1, 1) } else { (10, 3) };
    vec![
        scan(200 * factor, rounds),
        access(200 * factor, rounds),
        block(200 * factor, rounds),
        truncation(10 * factor, rounds),
    ]
}

fn row(work: &str, on: String, counts: &Series) -> Row {
    Row::new(PART, work, counts).on(on).unit(Unit::Instructions)
}

/// Instructions per repetition, from two runs that return their totals.
fn each(what: &str, rounds: usize, more: usize, mut total: impl FnMut(bool) -> u64) -> Series {
    let mut counts = Series::default();
    for round in 0..rounds {
        progress(&format!("{PART}: {what}, round {}", round + 1));
        let (many, few) = (total(true), total(false));
        counts.0.push((many as f64 - few as f64) / more as f64);
    }
    counts
}

/// A checkpoint of an unchanged tree, by a separate process.
fn scan(files: usize, rounds: usize) -> Row {
    let few = files / 10;
    let trees = [few, files].map(|count| {
        let tree = Tree::generate(count);
        // Recently changed files are read again by the next scan.
        for _ in 0..2 {
            thread::sleep(SETTLED);
            tree.checkpoint("data");
        }
        tree
    });
    let counts = each("scan", rounds, files - few, |many| {
        let tree = &trees[usize::from(many)];
        let out = tree.path("callgrind");
        let work = tree.work();
        let done = valgrind(&out)
            .args(["checkpoint", "create", "--json", "--root"])
            .arg(&work)
            .arg("--storage")
            .arg(tree.path("data"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        total_of(&out)
    });
    row(
        "checkpoint, nothing changed, per file",
        format!("{files} files"),
        &counts,
    )
}

/// Paths checked in one request.
fn access(count: usize, rounds: usize) -> Row {
    let few = count / 10;
    let paths: Vec<String> = (0..count).map(path_of).collect();
    let patterns = patterns();
    let folder = folder_of(&paths, &patterns);
    let root = fs::canonicalize(folder.path()).unwrap();
    let counts = each("access", rounds, count - few, |many| {
        let paths = if many { &paths[..] } else { &paths[..few] };
        session(
            Some(&root),
            &[("sightline/checkAccess", json!({ "paths": paths }))],
        )
    });
    let on = format!("{count} paths x {} patterns", patterns.len());
    row("checkAccess, per path", on, &counts)
}

/// Blocks with a file list.
fn block(files: usize, rounds: usize) -> Row {
    const MORE: usize = 40;
    let paths: Vec<String> = (0..files).map(path_of).collect();
    let folder = folder_of(&paths, &[]);
    let root = fs::canonicalize(folder.path()).unwrap();
    // Only the clock's text differs between runs.
    let params = json!({ "includeFiles": true, "now": 0, "timeZone": "UTC" });
    let request = ("sightline/environmentDetails", params);
    let counts = each("block", rounds, MORE, |many| {
        let times = if many { MORE + 2 } else { 2 };
        session(Some(&root), &vec![request.clone(); times])
    });
    row(
        "environmentDetails with files, per block",
        format!("{files} files"),
        &counts,
    )
}

/// A conversation in the request, with duplicate reads.
fn truncation(messages: usize, rounds: usize) -> Row {
    const MORE: usize = 4;
    let messages = conversation(messages);
    let bytes = json!(messages).to_string().len();
    let params = json!({
        "messages": messages,
        "model": "claude-sonnet-4",
        "previousRequest": { "ts": 1, "tokensIn": 190_000 },
    });
    let request = ("sightline/truncateHistory", params);
    let counts = each("truncation", rounds, MORE * bytes, |many| {
        let times = if many { MORE + 1 } else { 1 };
        session(None, &vec![request.clone(); times])
    });
    let on = format!("{} messages, {:.1} MB", messages.len(), bytes as f64 / 1e6);
    row("truncateHistory, per byte of JSON", on, &counts)
}

/// Returns the instructions of a session with these requests.
fn session(root: Option<&Path>, requests: &[(&str, Value)]) -> u64 {
    let beside = tempfile::tempdir().unwrap();
    let out = beside.path().join("callgrind");
    let mut command = valgrind(&out);
    command.arg("--stdio");
    let mut session = Session::open(command, root, &storage(&beside.path().join("data")));
    for (method, params) in requests {
        session.ask(method, &params.to_string());
    }
    session.end();
    total_of(&out)
}

/// The built program under callgrind. Uses one thread where it would use one per
/// processor, because threads that look for work count too.
fn valgrind(out: &Path) -> Command {
    let mut command = Command::new("valgrind");
    let mut file = std::ffi::OsString::from("--callgrind-out-file=");
    file.push(out);
    command
        .env("RAYON_NUM_THREADS", "1")
        .args(["--tool=callgrind", "--quiet"])
        .arg(file)
        .arg(env!("CARGO_BIN_EXE_sightline"));
    command
}

/// Reads the number of instructions counted by callgrind.
fn total_of(out: &Path) -> u64 {
    let text = fs::read_to_string(out).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals:"));
    total.unwrap().trim().parse().unwrap()
}
