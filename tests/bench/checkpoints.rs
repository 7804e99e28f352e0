//! What checkpoints cost, against plain git on the same tree, in one run:
//!
//! ```text
//! cargo bench -p sightline --bench checkpoints [-- FILES [ROUNDS]]
//! ```
//!
//! FILES is 10000 unless given; 100000 takes a while and a gigabyte of the
//! temporary directory. Each change to the tree is made once, then everyone
//! takes it in, in an order that turns from round to round; figures are
//! medians in milliseconds. "watcher" is a round trip over stdio with a server
//! that saw the changes happen; "scan" is a process of its own, started on a
//! store whose last checkpoint another process took. git runs with its default
//! settings and no collection of garbage, which would only slow it down. What
//! was written before a figure is taken is on the disk by then.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on says so and ends"
)]

mod report;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use report::{Numbers, Series, row, text};
use serde_json::{Value, json};
use sightline::client::Client;

/// A work tree that looks like source code, and who takes checkpoints of it.
struct Bench {
    folder: tempfile::TempDir,
    files: Vec<PathBuf>,
    numbers: Numbers,
    generation: usize,
}

impl Bench {
    fn new(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Self {
            files: Vec::with_capacity(count),
            folder,
            numbers: Numbers(0x5eed),
            generation: 0,
        };
        fs::create_dir(bench.work()).unwrap();
        fs::create_dir(bench.path("home")).unwrap();
        // Lines of some hundred files, put together anew for each: the whole
        // compresses like source code does.
        let pool = text(&mut Numbers(7), 400_000);
        let pool: Vec<&str> = pool.split_inclusive('\n').collect();
        for index in 0..count {
            // A dozen files a folder.
            let folder = index / 12;
            let dir = bench.work().join(format!(
                "part{}/module{}/area{folder}",
                folder % 7,
                folder / 100
            ));
            fs::create_dir_all(&dir).unwrap();
            // Mostly some kilobytes, now and then a hundred, as sources are.
            let size = match bench.numbers.below(100) {
                0..6 => 20_000 + bench.numbers.below(80_000),
                _ => 500 + bench.numbers.below(3_000) + bench.numbers.below(11_000),
            };
            let mut content = format!("// file {index}\n");
            while content.len() < size {
                content.push_str(pool[bench.numbers.below(pool.len())]);
            }
            let path = dir.join(format!("file_{index}.rs"));
            fs::write(&path, content).unwrap();
            bench.files.push(path);
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Changes so many files, spread over the tree.
    fn change(&mut self, count: usize) {
        self.generation += 1;
        let step = self.files.len() / count;
        for index in 0..count {
            let file = &self.files[(index * step + self.generation) % self.files.len()];
            let mut content = fs::read_to_string(file).unwrap();
            content.push_str(&format!("// generation {} of {index}\n", self.generation));
            fs::write(file, content).unwrap();
        }
    }

    fn git(&self, dir: &str, arguments: &[&str]) -> Vec<u8> {
        let done = Command::new("git")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_DIR", self.path(dir))
            .env("GIT_WORK_TREE", self.work())
            .args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"])
            .args(["-c", "gc.auto=0"])
            .args(arguments)
            .current_dir(self.work())
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        done.stdout
    }

    fn git_commit(&self, dir: &str) {
        self.git(dir, &["add", "-A"]);
        self.git(dir, &["commit", "-q", "--allow-empty", "-m", "checkpoint"]);
    }

    fn cli(&self, data: &str, arguments: &[&str]) -> Value {
        let done = Command::new(env!("CARGO_BIN_EXE_sightline"))
            .arg("checkpoint")
            .args(arguments)
            .arg("--json")
            .arg("--root")
            .arg(self.work())
            .arg("--storage")
            .arg(self.path(data))
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    }
}

fn timed<T>(series: &mut Series, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    series.0.push(start.elapsed().as_secs_f64() * 1000.0);
    done
}

/// The built server, in a session on the tree.
struct Server {
    child: Child,
    client: Client,
}

impl Server {
    fn start(work: &Path, data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sightline"))
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut client = Client::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        client.set_deadline(Duration::from_secs(600));
        let uri = format!("file://{}", work.display());
        let params = json!({
            "processId": std::process::id(),
            "capabilities": {},
            "workspaceFolders": [{ "uri": uri, "name": "work" }],
            "initializationOptions": { "storage": { "path": data } },
        });
        client.request("initialize", params).unwrap().unwrap();
        client.notify("initialized", json!({})).unwrap();
        Self { child, client }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.client.request(method, params).unwrap().unwrap()
    }

    /// Bytes of memory, where the system tells.
    fn resident(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was measured.
#[derive(Default)]
struct Measured {
    first: [Series; 2],
    none: [Series; 3],
    one: [Series; 3],
    hundred: [Series; 3],
    many: [Series; 3],
    restore_hundred: [Series; 2],
    restore_many: [Series; 2],
    diff: [Series; 2],
}

/// What was written before is on the disk: whoever flushes next does not wait
/// for what is not his.
fn settle() {
    assert!(Command::new("sync").status().unwrap().success());
}

/// Everyone takes in the same change, in turning order: git, a scan, the watcher.
fn take_in(bench: &Bench, server: &mut Server, series: &mut [Series; 3], turn: usize) {
    for at in 0..3 {
        // git leaves to the disk what we wait for.
        settle();
        let who = (at + turn) % 3;
        let series = &mut series[who];
        match who {
            0 => timed(series, || bench.git_commit("git")),
            1 => drop(timed(series, || bench.cli("scan", &["create"]))),
            _ => drop(timed(series, || {
                server.ask("sightline/createCheckpoint", json!({}))
            })),
        }
    }
}

/// Changes that are taken back, by git and by us.
fn take_back(bench: &mut Bench, server: &mut Server, series: &mut [Series; 2], count: usize) {
    bench.git_commit("git");
    bench.change(count);
    settle();
    timed(&mut series[0], || {
        bench.git("git", &["reset", "--hard", "-q"])
    });
    let checkpoint = server.ask("sightline/createCheckpoint", json!({}));
    bench.generation -= 1;
    bench.change(count);
    settle();
    let restored = timed(&mut series[1], || {
        server.ask(
            "sightline/restoreCheckpoint",
            json!({ "id": checkpoint["id"] }),
        )
    });
    let outcomes = restored["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), count, "{restored}");
    assert!(outcomes.iter().all(|outcome| outcome["ok"] == true));
    assert_eq!(bench.git("git", &["status", "--porcelain"]), b"");
}

/// What changed with both contents: one process for names, one for contents, as
/// scripts around git do it.
fn git_diff(bench: &Bench) -> usize {
    let names = bench.git("git", &["diff-tree", "-r", "HEAD~1", "HEAD"]);
    let names = String::from_utf8(names).unwrap();
    let blobs: Vec<&str> = names
        .lines()
        .flat_map(|line| line.split(' ').skip(2).take(2))
        .collect();
    let wanted = bench.path("wanted");
    fs::write(&wanted, blobs.join("\n") + "\n").unwrap();
    let contents = Command::new("git")
        .env("GIT_DIR", bench.path("git"))
        .args(["cat-file", "--batch"])
        .stdin(fs::File::open(wanted).unwrap())
        .output()
        .unwrap();
    assert!(contents.status.success());
    blobs.len() / 2
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let count: usize = numbers.next().unwrap_or(10_000);
    let rounds: usize = numbers.next().unwrap_or(5);
    let many = 5_000.min(count / 2);

    let mut bench = Bench::new(count);
    let git_version = bench.git("git", &["--version"]);
    println!(
        "{count} files, {rounds} rounds; sightline {}; {}",
        env!("CARGO_PKG_VERSION"),
        String::from_utf8_lossy(&git_version).trim(),
    );
    let mut measured = Measured::default();

    // First checkpoints, each into a store that is not there yet.
    let first_rounds = if count > 20_000 {
        rounds.min(3)
    } else {
        rounds
    };
    for round in 0..first_rounds {
        for at in 0..2 {
            for old in ["first-git", "first-data"] {
                let _ = fs::remove_dir_all(bench.path(old));
            }
            if (at + round) % 2 == 0 {
                timed(&mut measured.first[0], || {
                    bench.git("first-git", &["init", "-q"]);
                    bench.git_commit("first-git");
                });
            } else {
                timed(&mut measured.first[1], || {
                    bench.cli("first-data", &["create"])
                });
            }
        }
    }

    bench.git("git", &["init", "-q"]);
    bench.git_commit("git");
    bench.cli("scan", &["create"]);
    let data = bench.path("data");
    let mut server = Server::start(&bench.work(), &data);
    server.ask("sightline/createCheckpoint", json!({}));
    let resident = server.resident();
    // From the second on the watcher is trusted.
    server.ask("sightline/createCheckpoint", json!({}));

    for round in 0..rounds {
        // What was written a moment ago is read once more by everyone: a tree that
        // nobody touched is measured, not one that was just restored.
        std::thread::sleep(Duration::from_secs(3));
        take_in(&bench, &mut server, &mut <[Series; 3]>::default(), round);
        take_in(&bench, &mut server, &mut measured.none, round);
        bench.change(1);
        take_in(&bench, &mut server, &mut measured.one, round);
        bench.change(100);
        take_in(&bench, &mut server, &mut measured.hundred, round);

        let before = server.ask("sightline/listCheckpoints", json!({ "limit": 2 }));
        let ids = [
            &before["checkpoints"][1]["id"],
            &before["checkpoints"][0]["id"],
        ];
        let params = json!({ "from": ids[0], "to": ids[1], "contents": true });
        let changed = timed(&mut measured.diff[0], || git_diff(&bench));
        let diff = timed(&mut measured.diff[1], || {
            server.ask("sightline/diffCheckpoints", params)
        });
        let files = diff["files"].as_array().unwrap();
        assert_eq!((changed, files.len()), (100, 100));
        assert!(
            files
                .iter()
                .all(|file| file["before"].is_string() && file["after"].is_string())
        );

        take_back(&mut bench, &mut server, &mut measured.restore_hundred, 100);
        bench.change(many);
        take_in(&bench, &mut server, &mut measured.many, round);
        take_back(&mut bench, &mut server, &mut measured.restore_many, many);
    }

    let commit = "git add -A && git commit";
    let m = &measured;
    row(
        "first checkpoint",
        &m.first[1],
        commit,
        &m.first[0],
        Some((0.5, 0.25)),
    );
    row(
        "nothing changed, scan",
        &m.none[1],
        commit,
        &m.none[0],
        Some((0.35, 0.15)),
    );
    row(
        "nothing changed, watcher",
        &m.none[2],
        commit,
        &m.none[0],
        None,
    );
    row("1 changed, scan", &m.one[1], commit, &m.one[0], None);
    row(
        "1 changed, watcher",
        &m.one[2],
        commit,
        &m.one[0],
        Some((0.05, 0.05)),
    );
    row(
        "100 changed, scan",
        &m.hundred[1],
        commit,
        &m.hundred[0],
        Some((0.4, 0.2)),
    );
    row(
        "100 changed, watcher",
        &m.hundred[2],
        commit,
        &m.hundred[0],
        Some((0.2, 0.1)),
    );
    row(
        &format!("{many} changed, scan"),
        &m.many[1],
        commit,
        &m.many[0],
        None,
    );
    row(
        &format!("{many} changed, watcher"),
        &m.many[2],
        commit,
        &m.many[0],
        None,
    );
    let reset = "git reset --hard";
    row(
        "restore of 100",
        &m.restore_hundred[1],
        reset,
        &m.restore_hundred[0],
        Some((0.35, 0.2)),
    );
    row(
        &format!("restore of {many}"),
        &m.restore_many[1],
        reset,
        &m.restore_many[0],
        Some((0.35, 0.2)),
    );
    row(
        "diff of 100 with contents",
        &m.diff[1],
        "git diff-tree + cat-file",
        &m.diff[0],
        Some((0.7, 0.3)),
    );
    match resident {
        Some(bytes) => println!(
            "memory of the server after its first checkpoint: {:.1} MB (must 60, aim 40, at 100000 files)",
            bytes as f64 / 1e6
        ),
        None => println!("memory: this system does not tell"),
    }
}
