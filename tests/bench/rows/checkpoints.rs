//! Checkpoints, compared with plain git on the same tree.
//!
//! Each change to the tree is made once, then captured by every competitor, in rotating
//! order. "watcher" is a round trip over stdio with a server that watched the changes;
//! "scan" is the library in a long-running process without change tracking; "command" is
//! a separate process, which first loads saved caches. git runs with its default settings
//! and without garbage collection, which would only slow it down.

use std::{fs, sync::Arc, thread, time::Duration};

use serde_json::json;
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_checkpoint::{Checkpoints, Job, Request};
use sightline_protocol::settings::CheckpointSettings;
use sightline_protocol::settings::Secrets;

use crate::{
    Run, growth, progress,
    report::{Goal, Row, Series},
    session::{Session, timed},
    tree::{Tree, settle},
};

const PART: &str = "checkpoints";
const COMMIT: &str = "git add -A && git commit";
/// Stored next to the tree.
const GIT_STORE: &str = "git";
const COMMAND_STORE: &str = "command";
const SCAN_STORE: &str = "scan";
const WATCHER_STORE: &str = "data";
/// Numbers of files changed at once.
const CHANGES: [usize; 5] = [1, 10, 100, 1000, 5000];
/// Number of changed files with targets for diff and restore.
const HUNDRED: usize = 100;
/// Larger trees get at most three first checkpoints: one takes git half a minute.
const LARGE: usize = 20_000;

/// git and us.
#[derive(Default)]
struct Both {
    git: Series,
    ours: Series,
}

/// Competitors: git, a scan, the watcher, a command.
type Everyone = [Series; 4];

/// The library, in this process.
struct Library {
    access: Access,
    checkpoints: Checkpoints,
    settings: CheckpointSettings,
}

impl Library {
    fn new(tree: &Tree) -> Self {
        let root = Root::new(AbsPath::new(&tree.work()).unwrap(), None);
        let storage = Storage::open(&tree.path(SCAN_STORE)).unwrap();
        Self {
            checkpoints: Checkpoints::new(&storage, &root),
            access: Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow),
            settings: CheckpointSettings::default(),
        }
    }

    fn checkpoint(&self) {
        let job = Job {
            view: &self.access.view().0,
            root: 0,
            settings: &self.settings,
            cancel: &Cancel::default(),
            progress: &|_| {},
        };
        let request = Request {
            confirm_large: true,
            ..Request::default()
        };
        self.checkpoints.create(&job, &request, None).unwrap();
    }
}

/// Measurements, the last three by number of files.
#[derive(Default)]
struct Measured {
    first: Both,
    none: Everyone,
    diff: Both,
    changed: Vec<(usize, Everyone)>,
    restored: Vec<(usize, Both)>,
}

/// Measures trees of every size, and this repository.
pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let mut rows = Vec::new();
    for count in run.sizes.curve.clone() {
        if run.sizes.trees.contains(&count) {
            let tree = run.trees.get(count);
            let measured = measure(tree, run.rounds, &CHANGES, run.pause);
            rows.extend(rows_of(tree, measured));
        } else {
            // Only a point of the curve.
            let mut tree = Tree::generate(count);
            tree.judged = false;
            let measured = measure(&mut tree, run.rounds, &CHANGES[..1], run.pause);
            rows.extend(rows_of(&tree, measured));
        }
    }
    rows.extend(growth(&rows, "1 changed, watcher"));
    match &mut run.repository {
        Ok(tree) => {
            let measured = measure(tree, run.rounds, &CHANGES, run.pause);
            rows.extend(rows_of(tree, measured));
        }
        Err(why) => run.report.skip("checkpoints of this repository", why),
    }
    rows
}

/// Creates checkpoints of a changing tree. Diff and restore are measured for a hundred
/// files and for the largest change.
fn measure(tree: &mut Tree, rounds: usize, counts: &[usize], pause: Duration) -> Measured {
    let mut counts: Vec<usize> = counts.to_vec();
    if counts.iter().any(|count| *count > tree.count / 2) {
        counts.retain(|count| *count <= tree.count / 2);
    }
    let all = counts.contains(&HUNDRED);
    let most = *counts.last().unwrap();
    let mut measured = Measured::default();
    for count in &counts {
        measured.changed.push((*count, Everyone::default()));
    }
    if all {
        measured.restored.push((HUNDRED, Both::default()));
    }
    if all && most > HUNDRED {
        measured.restored.push((most, Both::default()));
    }

    let first_rounds = if tree.count > LARGE {
        rounds.min(3)
    } else {
        rounds
    };
    for round in 0..first_rounds {
        progress(&format!(
            "{PART}: {}, first, round {}",
            tree.name,
            round + 1
        ));
        first(tree, &mut measured.first, round);
    }

    let library = Library::new(tree);
    library.checkpoint();
    let mut server = Session::start(Some(&tree.work()), &tree.path(WATCHER_STORE));
    server.result("sightline/createCheckpoint", &json!({}));
    // From the second checkpoint on, changes are tracked.
    server.result("sightline/createCheckpoint", &json!({}));
    for round in 0..rounds {
        progress(&format!("{PART}: {}, round {}", tree.name, round + 1));
        // Recently written files are read again by every competitor. Waiting measures a
        // tree at rest.
        thread::sleep(pause);
        take_in(
            tree,
            (&library, &mut server),
            &mut Everyone::default(),
            round,
        );
        take_in(tree, (&library, &mut server), &mut measured.none, round);
        for (count, series) in &mut measured.changed {
            tree.change(*count);
            take_in(tree, (&library, &mut server), series, round);
            if *count == HUNDRED {
                compare(tree, &mut server, &mut measured.diff);
            }
        }
        for (count, series) in &mut measured.restored {
            revert(tree, &mut server, series, *count);
        }
    }
    server.end();
    for store in [GIT_STORE, COMMAND_STORE, SCAN_STORE, WATCHER_STORE] {
        fs::remove_dir_all(tree.path(store)).unwrap();
    }
    measured
}

/// First checkpoints, each in a new store; the last ones are kept.
fn first(tree: &Tree, series: &mut Both, round: usize) {
    for store in [GIT_STORE, COMMAND_STORE] {
        let _ = fs::remove_dir_all(tree.path(store));
    }
    for at in 0..2 {
        settle();
        if (at + round).is_multiple_of(2) {
            timed(&mut series.git, || {
                tree.git(GIT_STORE, &["init", "-q"]);
                git_commit(tree);
            });
        } else {
            timed(&mut series.ours, || tree.checkpoint(COMMAND_STORE));
        }
    }
}

fn git_commit(tree: &Tree) {
    tree.git(GIT_STORE, &["add", "-A"]);
    let commit = ["commit", "-q", "--allow-empty", "-m", "checkpoint"];
    tree.git(GIT_STORE, &commit);
}

/// Lets every competitor capture the same change, in rotating order.
fn take_in(
    tree: &Tree,
    (library, server): (&Library, &mut Session),
    series: &mut Everyone,
    turn: usize,
) {
    let parties = series.len();
    for at in 0..parties {
        // git does not sync what we sync.
        settle();
        let who = (at + turn) % parties;
        let series = &mut series[who];
        match who {
            0 => timed(series, || git_commit(tree)),
            1 => timed(series, || library.checkpoint()),
            3 => drop(timed(series, || tree.checkpoint(COMMAND_STORE))),
            _ => drop(server.timed(series, "sightline/createCheckpoint", &json!({}))),
        }
    }
}

/// Compares the last two checkpoints, with both contents of each change.
fn compare(tree: &Tree, server: &mut Session, series: &mut Both) {
    let listed = server.result("sightline/listCheckpoints", &json!({ "limit": 2 }));
    let [to, from] = [0, 1].map(|at| &listed["checkpoints"][at]["id"]);
    let params = json!({ "from": from, "to": to, "contents": true });
    let changed = timed(&mut series.git, || git_diff(tree));
    let diff = server.timed(&mut series.ours, "sightline/diffCheckpoints", &params);
    let files = diff["files"].as_array().unwrap();
    assert_eq!((changed, files.len()), (HUNDRED, HUNDRED));
}

/// Changes with both contents: one process for names and one for contents, like scripts
/// around git.
fn git_diff(tree: &Tree) -> usize {
    let names = tree.git(GIT_STORE, &["diff-tree", "-r", "HEAD~1", "HEAD"]);
    let names = String::from_utf8(names).unwrap();
    let blobs: Vec<&str> = names
        .lines()
        .flat_map(|line| line.split(' ').skip(2).take(2))
        .collect();
    let wanted = tree.path("wanted");
    fs::write(&wanted, blobs.join("\n") + "\n").unwrap();
    let contents = tree
        .git_command(GIT_STORE)
        .args(["cat-file", "--batch"])
        .stdin(fs::File::open(wanted).unwrap())
        .output()
        .unwrap();
    assert!(contents.status.success());
    blobs.len() / 2
}

/// Reverts changes, with git and with us.
fn revert(tree: &mut Tree, server: &mut Session, series: &mut Both, count: usize) {
    git_commit(tree);
    tree.change(count);
    settle();
    timed(&mut series.git, || {
        tree.git(GIT_STORE, &["reset", "--hard", "-q"])
    });
    let checkpoint = server.result("sightline/createCheckpoint", &json!({}));
    // The same files again.
    tree.generation -= 1;
    tree.change(count);
    settle();
    let params = json!({ "id": checkpoint["id"] });
    let restored = server.timed(&mut series.ours, "sightline/restoreCheckpoint", &params);
    let outcomes = restored["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), count, "{restored}");
    assert!(outcomes.iter().all(|outcome| outcome["ok"] == true));
    assert_eq!(tree.git(GIT_STORE, &["status", "--porcelain"]), b"");
}

fn rows_of(tree: &Tree, measured: Measured) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add =
        |work: String, changes, ours: &Series, peer: &str, theirs: &Series, goal: Goal| {
            let row = Row::new(PART, work, ours)
                .of(tree)
                .against(peer, theirs)
                .goal(goal.only_if(tree.judged));
            rows.push(Row { changes, ..row });
        };
    let Both { git, ours } = &measured.first;
    add(
        "first checkpoint".into(),
        None,
        ours,
        COMMIT,
        git,
        Goal::ratio(0.5, 0.25),
    );
    let [git, scan, watcher, command] = &measured.none;
    let nothing = |who: &str| format!("nothing changed, {who}");
    add(
        nothing("scan"),
        Some(0),
        scan,
        COMMIT,
        git,
        Goal::ratio(0.35, 0.15),
    );
    add(
        nothing("watcher"),
        Some(0),
        watcher,
        COMMIT,
        git,
        Goal::None,
    );
    add(
        nothing("command"),
        Some(0),
        command,
        COMMIT,
        git,
        Goal::None,
    );
    for (count, [git, scan, watcher, command]) in &measured.changed {
        let (by_scan, by_watcher) = match count {
            // The target is little growth with the size of the tree; a small tree pays a
            // fixed cost of about 2 ms.
            1 if tree.count <= 10_000 => (Goal::None, Goal::must(0.08)),
            1 => (Goal::None, Goal::must(0.05)),
            100 => (Goal::ratio(0.4, 0.2), Goal::ratio(0.2, 0.1)),
            _ => (Goal::None, Goal::None),
        };
        let work = |who: &str| format!("{count} changed, {who}");
        add(work("scan"), Some(*count), scan, COMMIT, git, by_scan);
        add(
            work("watcher"),
            Some(*count),
            watcher,
            COMMIT,
            git,
            by_watcher,
        );
        add(
            work("command"),
            Some(*count),
            command,
            COMMIT,
            git,
            Goal::None,
        );
    }
    for (count, Both { git, ours }) in &measured.restored {
        let work = format!("restore of {count}");
        // For few files, the undo point and the full scan dominate.
        let goal = match count {
            100 => Goal::ratio(0.45, 0.3),
            _ => Goal::ratio(0.35, 0.2),
        };
        add(work, Some(*count), ours, "git reset --hard", git, goal);
    }
    let Both { git, ours } = &measured.diff;
    if !ours.0.is_empty() {
        let work = format!("diff of {HUNDRED} with contents");
        let peer = "git diff-tree + cat-file --batch";
        add(work, Some(HUNDRED), ours, peer, git, Goal::ratio(0.7, 0.3));
    }
    rows
}
