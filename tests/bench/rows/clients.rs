//! Three clients, each with a server, use one folder for a number of requests: they
//! query, edit, create checkpoints and restore, and check all results.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Value, json};
use sightline_testing::lsp_client::LspClient;

/// Servers on the folder, each with a client.
const CLIENTS: usize = 3;
/// Files per client.
const FILES: usize = 40;
/// Concurrent requests per client.
const AT_ONCE: usize = 8;
/// Rounds between two checkpoints.
const CHECKPOINT_EVERY: usize = 50;

/// Resources of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Resident memory, in kilobytes.
    pub(crate) kilobytes: u64,
    /// Open files.
    pub(crate) files: u64,
    pub(crate) threads: u64,
}

/// Observations of one client.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Responses by method; errors among them by kind.
    pub(crate) answers: BTreeMap<String, u64>,
    /// After a tenth of the requests, after half, and at the end.
    pub(crate) held: [Held; 3],
}

/// Results of a run.
#[derive(Debug)]
pub(crate) struct Report {
    /// By client.
    pub(crate) clients: Vec<Seen>,
    /// Checkpoints left at the end.
    pub(crate) checkpoints: usize,
}

impl Report {
    /// Total number of responses.
    pub(crate) fn answers(&self) -> u64 {
        let all = self.clients.iter().flat_map(|seen| &seen.answers);
        all.filter(|(name, _)| !name.starts_with("  "))
            .map(|(_, count)| count)
            .sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, count) in self.clients.iter().flat_map(|seen| &seen.answers) {
            *all.entry(name).or_default() += count;
        }
        for (name, count) in all {
            writeln!(f, "{name:<32} {count:>9}")?;
        }
        writeln!(
            f,
            "{:<32} {:>9}",
            "checkpoints at the end", self.checkpoints
        )?;
        for (number, seen) in self.clients.iter().enumerate() {
            for (when, held) in ["after a tenth", "after half", "at the end"]
                .iter()
                .zip(seen.held)
            {
                let Held {
                    kilobytes,
                    files,
                    threads,
                } = held;
                writeln!(
                    f,
                    "server {number} {when:<16} {kilobytes:>9} KB {files:>4} open files {threads:>3} threads"
                )?;
            }
        }
        Ok(())
    }
}

/// Runs `requests` requests in total, in a temporary folder.
pub(crate) fn work(requests: usize) -> Report {
    let scratch = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(scratch.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    fs::write(base.join("ws/.clineignore"), "secret*\n").unwrap();
    let clients: Vec<Seen> = thread::scope(|threads| {
        let started: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let base = &base;
                threads.spawn(move || Worker::new(base, number).work(requests / CLIENTS))
            })
            .collect();
        started
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    let last = program()
        .args(["checkpoint", "verify", "--json", "--storage"])
        .arg(base.join("data"))
        .current_dir(base.join("ws"))
        .output();
    let last = last.unwrap();
    assert!(
        last.status.success(),
        "{}",
        String::from_utf8_lossy(&last.stdout)
    );
    let store = fs::read_dir(base.join("data/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let store = store.path().join("checkpoints.git");
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .arg("--git-dir")
            .arg(&store)
            .args(arguments)
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["fsck", "--strict", "--full", "--no-dangling"]);
    Report {
        clients,
        checkpoints: git(&["for-each-ref", "refs/checkpoints"]).lines().count(),
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sightline"))
}

struct Worker {
    root: PathBuf,
    number: usize,
    child: Child,
    client: LspClient,
    /// Contents of the client's own folder.
    files: BTreeMap<String, String>,
    /// Its contents at a checkpoint.
    then: Option<(String, BTreeMap<String, String>)>,
    messages: u64,
    seen: Seen,
}

impl Worker {
    fn new(base: &Path, number: usize) -> Self {
        let mut command = program();
        // In its own process group, so that processes left at the end can be found.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .arg("--stdio")
            .env("HOME", base)
            .env("XDG_RUNTIME_DIR", base)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = LspClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let root = base.join("ws");
        fs::create_dir(root.join(format!("part{number}"))).unwrap();
        let mut worker = Self {
            root,
            number,
            child,
            client,
            files: BTreeMap::new(),
            then: None,
            messages: 0,
            seen: Seen::default(),
        };
        for file in 0..FILES {
            worker.edit(file, 0);
        }
        let uri = format!("file://{}", worker.root.display());
        worker.ask(
            "initialize",
            json!({
                "processId": null, "rootUri": uri, "capabilities": {},
                "workspaceFolders": [{ "uri": uri, "name": "ws" }],
                "initializationOptions": { "storage": { "path": base.join("data") } },
            }),
        );
        worker.client.notify("initialized", json!({})).unwrap();
        worker
    }

    /// Runs until `requests` were answered.
    fn work(mut self, requests: usize) -> Seen {
        let mut asked = 0;
        let marks = [requests / 10, requests / 2];
        for round in 1.. {
            let ids: Vec<_> = (0..AT_ONCE).map(|at| self.start(round, at)).collect();
            for (id, method, expected) in ids {
                let answer = self.client.wait(id).unwrap();
                self.note(method, &answer);
                let result = answer.unwrap_or_else(|error| panic!("{method}: {error}"));
                if let Some(text) = expected {
                    assert_eq!(result["text"], *text, "{method} gave something old");
                }
            }
            asked += AT_ONCE;
            for (mark, held) in marks.iter().zip(0..) {
                if (asked - AT_ONCE..asked).contains(mark) {
                    self.seen.held[held] = held_by(self.child.id());
                }
            }
            if asked >= requests {
                break;
            }
            self.edit(round % FILES, round);
            if round.is_multiple_of(CHECKPOINT_EVERY) {
                asked += self.checkpoint(round / CHECKPOINT_EVERY);
            }
        }
        self.seen.held[2] = held_by(self.child.id());
        self.end()
    }

    /// Starts one of the cheap requests; returns the expected text.
    fn start(&mut self, round: usize, at: usize) -> (i64, &'static str, Option<String>) {
        let number = self.number;
        let file = format!("part{number}/file{}", (round * 7 + at) % FILES);
        let (method, params) = match at {
            0 | 1 => ("sightline/readFile", json!({ "path": file })),
            2 => (
                "sightline/environmentDetails",
                json!({ "includeFiles": true, "maxFiles": 50 }),
            ),
            3 => (
                "sightline/listFiles",
                json!({ "path": format!("part{number}") }),
            ),
            4 => (
                "sightline/countTokens",
                json!({ "texts": [self.files[&file]], "model": "gpt-4o" }),
            ),
            5 if round.is_multiple_of(10) => {
                self.messages += 1;
                let role = ["assistant", "user"][(self.messages % 2) as usize];
                let message =
                    json!({ "role": role, "content": format!("message {}", self.messages) });
                (
                    "sightline/appendMessages",
                    json!({ "taskId": format!("task{number}"), "messages": [message] }),
                )
            }
            6 if round.is_multiple_of(25) => ("sightline/listTasks", json!({})),
            7 if round.is_multiple_of(25) => {
                ("sightline/diffCheckpoints", json!({ "from": "last" }))
            }
            _ => (
                "sightline/checkAccess",
                json!({ "paths": [file, "secret.txt"], "command": "cat secret.txt" }),
            ),
        };
        let (method, params) = match (method, &self.then) {
            ("sightline/diffCheckpoints", Some((id, _))) => (
                method,
                json!({ "from": id, "paths": [format!("part{number}")] }),
            ),
            ("sightline/diffCheckpoints", None) => {
                ("sightline/listCheckpoints", json!({ "limit": 5 }))
            }
            _ => (method, params),
        };
        let expected = (at < 2).then(|| self.files[&file].clone());
        (self.client.start(method, params).unwrap(), method, expected)
    }

    /// Creates a checkpoint; sometimes restores the last one and prunes.
    fn checkpoint(&mut self, count: usize) -> usize {
        let part = format!("part{}", self.number);
        let mut asked = 1;
        if count.is_multiple_of(4)
            && let Some((id, then)) = self.then.take()
        {
            let params = json!({ "id": id, "paths": [part] });
            self.ask_until_free("sightline/restoreCheckpoint", &params);
            self.files = then;
            for (name, text) in &self.files {
                let now = fs::read_to_string(self.root.join(name)).unwrap();
                assert!(now == *text, "{name} did not come back");
            }
            asked += 1;
        }
        if count.is_multiple_of(10) {
            // Keeps every client's newest, because the others are slower than this.
            self.ask_until_free("sightline/pruneCheckpoints", &json!({ "keep": 40 }));
            asked += 1;
        }
        let made = self.ask_until_free("sightline/createCheckpoint", &json!({ "label": part }));
        let id = made["id"].as_str().unwrap().to_owned();
        self.then = Some((id, self.files.clone()));
        asked
    }

    fn edit(&mut self, file: usize, round: usize) {
        let name = format!("part{}/file{file}", self.number);
        let text = format!("{name} in round {round}\n").repeat(1 + (file + round) % 50);
        fs::write(self.root.join(&name), &text).unwrap();
        self.files.insert(name, text);
    }

    fn ask(&mut self, method: &'static str, params: Value) -> Value {
        let answer = self.client.request(method, params).unwrap();
        self.note(method, &answer);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Retries while another client uses the store, which is the only acceptable error.
    fn ask_until_free(&mut self, method: &'static str, params: &Value) -> Value {
        for _ in 0..100 {
            let answer = self.client.request(method, params.clone()).unwrap();
            self.note(method, &answer);
            match answer {
                Ok(result) => return result,
                Err(error) => assert_eq!(error["data"]["kind"], "busy", "{method}: {error}"),
            }
        }
        panic!("{method}: busy a hundred times");
    }

    fn note(&mut self, method: &str, answer: &Result<Value, Value>) {
        *self.seen.answers.entry(method.to_owned()).or_default() += 1;
        if let Err(error) = answer {
            let kind = format!("  {method} {}", error["data"]["kind"]);
            *self.seen.answers.entry(kind).or_default() += 1;
        }
    }

    fn end(mut self) -> Seen {
        let task = format!("task{}", self.number);
        if self.messages > 0 {
            let loaded = self.ask("sightline/loadTask", json!({ "taskId": task }));
            assert_eq!(
                loaded["messages"].as_array().unwrap().len() as u64,
                self.messages
            );
        }
        let stray = self
            .client
            .set_aside()
            .iter()
            .find(|message| message.get("method").is_none());
        assert!(stray.is_none(), "an answer nobody asked for: {stray:?}");
        self.ask("shutdown", Value::Null);
        self.client.notify("exit", Value::Null).unwrap();
        let group = self.child.id();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        let left = in_group(group);
        assert!(left.is_empty(), "processes are left: {left:?}");
        self.seen
    }
}

/// Returns the resources of a process, where `/proc` exists.
fn held_by(process: u32) -> Held {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok())
            .unwrap_or_default()
    };
    let files = fs::read_dir(format!("/proc/{process}/fd"));
    Held {
        kilobytes: field("VmRSS:"),
        files: files.map_or(0, |files| files.count() as u64),
        threads: field("Threads:"),
    }
}

/// Returns the processes of a group, where `/proc` exists.
fn in_group(group: u32) -> Vec<String> {
    let group = group.to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            // `pid (name) state ppid pgrp`
            let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
            after.split_whitespace().nth(2) == Some(&group)
        })
        .collect()
}
