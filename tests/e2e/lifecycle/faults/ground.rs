//! A workspace and a data directory in which an operation fails, and what must hold afterwards.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use sightline_local::frame::{FrameReader, write_frame};
use sightline_testing::files::{Files, read, write};

use crate::harness::{Workspace, program};

/// The operation during which the fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Create,
    Restore,
    Undo,
    Prune,
    Append,
}

pub(super) const ACTS: [Act; 5] = [
    Act::Create,
    Act::Restore,
    Act::Undo,
    Act::Prune,
    Act::Append,
];

/// A workspace and a data directory in their state before the operation.
pub(super) struct Ground {
    pub(super) workspace: Workspace,
    pub(super) act: Act,
    /// The checkpoint to restore.
    target: String,
    pub(super) data: Files,
    before: Files,
    after: Files,
    ids: BTreeSet<String>,
}

impl Ground {
    pub(super) fn new(act: Act) -> Self {
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

    /// Unpacks all objects, as `git repack` can leave them.
    pub(super) fn unpack_objects(&mut self) {
        let packs = find(&self.workspace.data(), "pack");
        let outside = self.workspace.data().with_file_name("packs");
        fs::rename(&packs, &outside).unwrap();
        fs::create_dir(&packs).unwrap();
        // A reset does not create empty folders.
        fs::write(packs.join("empty"), "").unwrap();
        for entry in fs::read_dir(&outside).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "pack") {
                let unpacked = Command::new("git")
                    .arg("--git-dir")
                    .arg(packs.ancestors().nth(2).unwrap())
                    .args(["unpack-objects", "-q"])
                    .stdin(fs::File::open(path).unwrap())
                    .status();
                assert!(unpacked.unwrap().success());
            }
        }
        fs::remove_dir_all(outside).unwrap();
        self.data = read(&self.workspace.data());
    }

    /// Resets everything to the state before the operation.
    pub(super) fn reset(&self) {
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
                "--labelled",
            ],
            Act::Append => &["--stdio"],
        };
        arguments.iter().map(ToString::to_string).collect()
    }

    /// Runs the operation with `command`, which ends with the program's name.
    pub(super) fn run_in(&self, mut command: Command, act: Act) -> Output {
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
    pub(super) fn stored(&self, output: &Output) -> Option<u64> {
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
    pub(super) fn check(&self, output: &Output, fault: &str, is_silenced: bool) {
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
pub(super) fn find(folder: &Path, name: &str) -> PathBuf {
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
