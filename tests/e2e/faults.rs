//! Faults below the stores: failing system calls, short writes, a full disk, killed
//! processes. Afterwards, the state is either the previous or the requested one, errors
//! are reported, and the next run works.
//!
//! Uses real processes. A file size limit and a small file system need only a shell;
//! `strace` makes the N-th call of a kind fail or kills the process there.
//! `SIGHTLINE_FAULTS=all` tries every call instead of a sample.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use sightline::connection::frame::{FrameReader, write_frame};
use sightline_testing::files::{Files, read, write};

use crate::harness::{Workspace, program};

/// The operation during which the fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Create,
    Restore,
    Undo,
    Prune,
    Append,
}

const ACTS: [Act; 5] = [
    Act::Create,
    Act::Restore,
    Act::Undo,
    Act::Prune,
    Act::Append,
];

/// A workspace and a data directory in their state before the operation.
struct Ground {
    workspace: Workspace,
    act: Act,
    /// The checkpoint to restore.
    target: String,
    data: Files,
    before: Files,
    after: Files,
    ids: BTreeSet<String>,
}

impl Ground {
    fn new(act: Act) -> Self {
        let workspace = Workspace::new(&[("same", "same\n"), ("deep/er/gone", "gone\n")]);
        workspace.write("long", &noise(1, 12_000));
        let mut ground = Self {
            workspace,
            act,
            target: String::new(),
            data: Files::new(),
            before: Files::new(),
            after: Files::new(),
            ids: BTreeSet::new(),
        };
        ground.target = ground.json(&["create", "--label", "first"])["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let then = read(&ground.workspace.root());
        ground.workspace.write("long", &noise(2, 15_000));
        ground.workspace.write("new", "new\n");
        fs::remove_dir_all(ground.workspace.path("deep")).unwrap();
        let now = read(&ground.workspace.root());
        match act {
            Act::Undo => {
                let _ = ground.json(&["restore", "--yes", &ground.target]);
                (ground.before, ground.after) = (then, now);
            }
            Act::Restore => (ground.before, ground.after) = (now, then),
            Act::Prune => {
                let _ = ground.json(&["create", "--label", "second"]);
                (ground.before, ground.after) = (now.clone(), now);
            }
            Act::Create => (ground.before, ground.after) = (now.clone(), now),
            Act::Append => {
                let output = ground.run_in(program(), Act::Append);
                assert_eq!(ground.stored(&output), Some(1));
                (ground.before, ground.after) = (now.clone(), now);
            }
        }
        assert!(read(&ground.workspace.root()) == ground.before);
        ground.ids = ground.ids();
        ground.data = read(&ground.workspace.data());
        ground
    }

    /// Resets everything to the state before the operation.
    fn reset(&self) {
        for (folder, files) in [
            (self.workspace.data(), &self.data),
            (self.workspace.root(), &self.before),
        ] {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    fs::remove_dir_all(path).unwrap()
                } else {
                    fs::remove_file(path).unwrap()
                }
            }
            for (name, content) in files {
                write(&folder.join(name), content);
            }
        }
    }

    fn arguments(&self, act: Act) -> Vec<String> {
        let data = self.workspace.data().to_str().unwrap().to_owned();
        let arguments: &[&str] = match act {
            Act::Create => &["checkpoint", "create", "--storage", &data],
            Act::Restore => &[
                "checkpoint",
                "restore",
                "--storage",
                &data,
                "--yes",
                &self.target,
            ],
            Act::Undo => &["checkpoint", "undo", "--storage", &data, "--yes"],
            Act::Prune => &[
                "checkpoint",
                "prune",
                "--storage",
                &data,
                "--yes",
                "--keep",
                "1",
            ],
            Act::Append => &["--stdio"],
        };
        arguments.iter().map(ToString::to_string).collect()
    }

    /// Runs the operation with `command`, which ends with the program's name.
    fn run_in(&self, mut command: Command, act: Act) -> Output {
        let mut child = command
            .args(self.arguments(act))
            .current_dir(self.workspace.root())
            .env("HOME", self.workspace.data().with_file_name("home"))
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        if act == Act::Append {
            // The process may have ended already.
            let _ = std::io::Write::write_all(&mut input, &self.session());
        }
        drop(input);
        child.wait_with_output().unwrap()
    }

    /// The input of a client that appends a message.
    fn session(&self) -> Vec<u8> {
        // Longer than a block, so that it can be written partially.
        let message = json!({ "role": "user", "content": "said", "more": noise(3, 600) });
        let append = json!({ "taskId": "t", "messages": [message] });
        let mut bytes = Vec::new();
        for (id, method, params) in [
            (json!(1), "initialize", self.workspace.initialize()),
            (json!(2), "sightline/appendMessages", append),
            (json!(3), "shutdown", Value::Null),
            (Value::Null, "exit", Value::Null),
        ] {
            let mut message =
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            if method == "exit" {
                message.as_object_mut().unwrap().remove("id");
            }
            write_frame(&mut bytes, message.to_string().as_bytes()).unwrap();
        }
        bytes
    }

    /// Number of messages acknowledged as stored.
    fn stored(&self, output: &Output) -> Option<u64> {
        let mut frames = FrameReader::new(&output.stdout[..]);
        while let Some(frame) = frames.next_frame().unwrap() {
            let message: Value = serde_json::from_slice(&frame.unwrap()).unwrap();
            if message["id"] == 2 {
                return message["result"]["count"].as_u64();
            }
        }
        None
    }

    /// Returns the result of a command that runs without faults.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = program()
            .args(["checkpoint", arguments[0], "--json", "--storage"])
            .arg(self.workspace.data())
            .args(&arguments[1..])
            .current_dir(self.workspace.root())
            .env("HOME", self.workspace.data().with_file_name("home"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{arguments:?}: {stderr}"
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn ids(&self) -> BTreeSet<String> {
        let listed = self.json(&["list"]);
        let listed = listed["checkpoints"].as_array().unwrap().iter();
        listed
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks the state after an operation. `fault` describes the fault; `is_silenced`
    /// shows that it affected the operation's own output.
    fn check(&self, output: &Output, fault: &str, is_silenced: bool) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let report = match self.act {
            Act::Append => "".into(),
            _ => String::from_utf8_lossy(&output.stdout),
        };
        let what = format!(
            "{:?}, {fault}: {:?}, {stderr:?}, {report:?}",
            self.act, output.status
        );
        assert!(!stderr.contains("panicked"), "{what}");
        let killed = output.status.code().is_none();
        let done = output.status.success();
        if !killed && !done && self.act != Act::Append && !is_silenced {
            // The error must say what failed.
            assert!(stderr.len() > 20, "{what}");
        }
        if killed && matches!(self.act, Act::Restore | Act::Undo) {
            // A partially written restore is completed by the next command.
            let _ = self.json(&["create"]);
        }
        // Every file has its previous or its new content.
        let now = read(&self.workspace.root());
        for (name, content) in &now {
            let known = [&self.before, &self.after]
                .iter()
                .any(|files| files.get(name) == Some(content));
            // An unfinished file, or the partly written version that recovery kept.
            let name = name.to_string_lossy();
            let is_ours = name.contains("sightline") || name.ends_with(".kept-1");
            assert!(known || (is_ours && killed), "{what}: {name}");
        }
        if done {
            // Skipped files may keep their content.
            let restored = self
                .after
                .iter()
                .all(|(name, content)| now.get(name) == Some(content));
            let all = if fault.contains("openat") {
                restored
            } else {
                now == self.after
            };
            assert!(
                all || report.contains("skipped"),
                "{what}: it says that all was done"
            );
        }
        if self.act == Act::Append {
            return self.check_task(output, &what);
        }
        let ids = self.ids();
        match self.act {
            Act::Prune => assert!(
                ids.is_subset(&self.ids) && !ids.is_empty(),
                "{what}: {ids:?}"
            ),
            _ => assert!(ids.is_superset(&self.ids), "{what}: {ids:?}"),
        }
        if done {
            assert!(ids != self.ids, "{what}: {ids:?}");
        }
        self.goes_on(&what);
    }

    /// Checks that the next run succeeds.
    fn goes_on(&self, what: &str) {
        let again = match self.act {
            // A completed undo leaves no undo point.
            Act::Undo => Act::Create,
            act => act,
        };
        let output = self.run_in(program(), again);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{what}; then {stderr}"
        );
        if self.act == Act::Restore {
            assert!(
                read(&self.workspace.root()) == self.after,
                "{what}; then not restored"
            );
        }
        let verified = self.json(&["verify"]);
        assert_eq!(verified["ok"], true, "{what}; then {verified}");
        let store = find(&self.workspace.data(), "checkpoints.git");
        let fsck = Command::new("git")
            .args([
                "--git-dir",
                store.to_str().unwrap(),
                "fsck",
                "--strict",
                "--full",
                "--no-dangling",
            ])
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&fsck.stderr);
        assert!(fsck.status.success(), "{what}; then {stderr}");
        // The first checkpoint is still intact, unless it was pruned.
        if self.act != Act::Prune {
            let options = ["restore", "--yes", self.target.as_str()];
            let _ = self.json(&options);
            let then = read(&self.workspace.root());
            assert!(
                then.contains_key(Path::new("deep/er/gone"))
                    && !then.contains_key(Path::new("new")),
                "{what}"
            );
        }
    }

    fn check_task(&self, output: &Output, what: &str) {
        let log = find(&self.workspace.data(), "t").join("conversation.jsonl");
        let lines = || {
            fs::read_to_string(&log)
                .unwrap()
                .matches("\"said\"")
                .count() as u64
        };
        let stored = self.stored(output);
        assert!(
            stored.is_none_or(|count| count == 2 && lines() == 2),
            "{what}: {stored:?}"
        );
        let left = lines();
        let again = self.run_in(program(), Act::Append);
        assert_eq!(self.stored(&again), Some(left + 1), "{what}; then");
    }
}

/// Text that does not compress.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}\n"));
    }
    text
}

/// Finds a folder by name below another one.
fn find(folder: &Path, name: &str) -> PathBuf {
    let mut todo = vec![folder.to_path_buf()];
    while let Some(at) = todo.pop() {
        if at.file_name().is_some_and(|known| known == name) {
            return at;
        }
        let entries = fs::read_dir(&at)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        todo.extend(entries.filter(|path| path.is_dir()));
    }
    panic!("no {name} in {}", folder.display());
}

fn is_thorough() -> bool {
    std::env::var("SIGHTLINE_FAULTS").is_ok_and(|what| what == "all")
}

/// Reports why a test is skipped; fails in CI.
fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
}

/// A file size limit: the write that reaches it is short, the next one fails, as on a
/// full disk. The signal that comes with it must not end the process.
#[test]
fn short_and_failing_writes() {
    for act in ACTS {
        let ground = Ground::new(act);
        let mut failed = 0;
        // In blocks of 512 bytes.
        let limits = (0..60).filter(|limit| is_thorough() || *limit < 4 || limit % 8 == 3);
        for limit in limits {
            ground.reset();
            let mut shell = Command::new("sh");
            // Output goes through pipes, which have no limit.
            let script = format!("ulimit -f {limit}; exec \"$@\"");
            shell
                .args(["-c", &script, "sh"])
                .arg(program().get_program());
            let output = ground.run_in(shell, act);
            let code = output.status.code();
            assert!(
                code.is_some(),
                "{act:?}, {limit} blocks: {:?}",
                output.status
            );
            failed += u32::from(
                code != Some(0) || (act == Act::Append && ground.stored(&output).is_none()),
            );
            if act == Act::Append && ground.stored(&output).is_none() {
                let name = "tasks/t/conversation.jsonl";
                let log = fs::read(ground.workspace.data().join(name)).unwrap();
                let is_as_before = Some(&log) == ground.data.get(Path::new(name));
                assert!(is_as_before, "{limit} blocks: a part was added");
            }
            ground.check(&output, &format!("files of {limit} blocks at most"), false);
        }
        assert!(failed > 0 || act == Act::Prune, "{act:?} never failed");
    }
}

/// A file system with this many free bytes.
#[test]
fn a_full_disk() {
    let try_out = Command::new("unshare")
        .args(["-rm", "sh", "-c", "mount -t tmpfs none /mnt"])
        .output();
    if !try_out.is_ok_and(|output| output.status.success()) {
        return skipped("no file system can be mounted in a namespace of its own (unshare -rm)");
    }
    for act in ACTS {
        let ground = Ground::new(act);
        let mut failed = 0;
        let pages = (1..24).filter(|pages| is_thorough() || pages % 5 == 1);
        for pages in pages {
            ground.reset();
            let mut shell = Command::new("unshare");
            let data = ground.workspace.data();
            let script = format!(
                "mkdir $0.full && mount -t tmpfs -o size=4m none $0.full && cp -r $0/. $0.full/ && \
                 mount -o remount,size=$(( ($(du -s --block-size=4096 $0.full | cut -f1) + {pages}) * 4096 )) $0.full && \
                 mkdir $0.real && mount --bind $0 $0.real && mount --bind $0.full $0 && \"$@\"; code=$?; \
                 umount $0; rm -rf $0.real/*; cp -r $0.full/. $0.real/; exit $code"
            );
            shell
                .args(["-rm", "sh", "-c", &script])
                .arg(&data)
                .arg(program().get_program());
            let output = ground.run_in(shell, act);
            failed += u32::from(
                !output.status.success()
                    || (act == Act::Append && ground.stored(&output).is_none()),
            );
            for left in ["full", "real"] {
                fs::remove_dir(data.with_extension(left)).unwrap();
            }
            ground.check(&output, &format!("{pages} pages left"), false);
        }
        println!("{act:?}: {failed} failed");
    }
}

/// Counts the file system calls by name.
fn calls(ground: &Ground) -> BTreeMap<&'static str, usize> {
    const KINDS: &[&str] = &[
        "write",
        "pwrite64",
        "fsync",
        "fdatasync",
        "ftruncate",
        "rename",
        "renameat",
        "renameat2",
        "unlink",
        "unlinkat",
        "mkdir",
        "mkdirat",
        "linkat",
        "fchmod",
        "symlinkat",
        "openat",
    ];
    let trace = ground.workspace.data().with_file_name("trace");
    ground.reset();
    let mut strace = Command::new("strace");
    let which = format!("trace={}", KINDS.join(","));
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", &which])
        .arg(program().get_program());
    ground.run_in(strace, ground.act);
    let trace = fs::read_to_string(trace).unwrap();
    // `strace` counts calls per thread when it injects faults.
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start().split('(').next().unwrap_or_default();
        *counts.entry((thread, call)).or_default() += 1;
    }
    let most = |kind: &&str| {
        let of_kind = counts.iter().filter(|((_, call), _)| call == kind);
        of_kind.map(|(_, count)| *count).max().unwrap_or_default()
    };
    KINDS.iter().map(|kind| (*kind, most(kind))).collect()
}

/// The N-th call fails or kills the process, for every N.
#[test]
fn failing_calls_and_kills_at_every_call() {
    let strace = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    if !strace.is_ok_and(|output| output.status.success()) {
        return skipped("strace is not installed, or may not trace");
    }
    for act in ACTS {
        let ground = Ground::new(act);
        let log = tempfile::NamedTempFile::new().unwrap();
        let (mut runs, mut failed) = (0, 0);
        for (call, count) in calls(&ground) {
            let faults: &[&str] = match call {
                "write" | "pwrite64" | "ftruncate" => {
                    &["error=ENOSPC", "error=EINTR", "signal=SIGKILL"]
                }
                "fsync" | "fdatasync" => &["error=EIO", "signal=SIGKILL"],
                "openat" => &["error=EACCES", "error=EMFILE"],
                _ => &["error=EACCES", "error=ENOSPC", "signal=SIGKILL"],
            };
            for fault in faults {
                let step = if is_thorough() || count < 5 {
                    1
                } else {
                    count.div_ceil(4)
                };
                for nth in (1..=count).step_by(step) {
                    ground.reset();
                    let mut strace = Command::new("strace");
                    let inject = format!("inject={call}:{fault}:when={nth}");
                    let trace = format!("trace={call}");
                    strace.args(["-f", "-qq", "-e", &trace, "-e", &inject, "-o"]);
                    strace.arg(log.path());
                    strace.arg(program().get_program());
                    let output = ground.run_in(strace, act);
                    let stderr = String::from_utf8_lossy(&output.stderr);
                    if stderr.contains("error while loading shared libraries") {
                        continue;
                    }
                    runs += 1;
                    failed += u32::from(!output.status.success());
                    // Calls are counted per thread, so the message may fail as well.
                    let log = fs::read_to_string(log.path()).unwrap();
                    let mut lines = log.lines();
                    let is_silenced =
                        lines.any(|line| line.contains(" write(2,") && line.contains("INJECTED"));
                    ground.check(&output, &inject, is_silenced);
                }
            }
        }
        println!("{act:?}: {runs} runs, {failed} failed");
        assert!(failed > 5, "{act:?}: {failed} of {runs}");
    }
}
