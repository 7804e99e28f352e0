//! Six agents that come and go: memory and descriptors stay flat, and the newest
//! selection arrives.

use std::{
    env, fmt, fs,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    Editor, SOON,
    claude::Agent,
    codex,
    http::{self, Address, Events},
};

/// Duration in seconds unless `SIGHTLINE_SOAK_SECONDS` is set.
const DEFAULT_SECONDS: u64 = 20;
/// Between two comparisons of the server's resources. All agents are gone then.
const CYCLE: Duration = Duration::from_secs(30);
/// Longest wait of an agent for a selection, and interval of Codex's requests.
const WAIT: Duration = Duration::from_millis(50);
/// Allowed growth of memory after the first tenth of the time, in kilobytes, for the caches of the
/// allocator. In an hour there are thousands of connections and hundreds of thousands of selections, so a
/// leak of 20 bytes for each exceeds it.
const SLACK_KILOBYTES: u64 = 4 * 1024;
/// Documents in the editor.
const FILES: u64 = 12;
const RULES: &str = "secret.txt\n";
const AGENTS: usize = 6;

/// Resources of the server.
#[derive(Clone, Copy)]
struct Held {
    kilobytes: u64,
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn by(process: u32) -> Self {
        let count = |name| {
            fs::read_dir(format!("/proc/{process}/{name}"))
                .unwrap()
                .count()
        };
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.unwrap().trim().trim_end_matches(" kB");
        Self {
            kilobytes: memory.parse().unwrap(),
            descriptors: count("fd"),
            threads: count("task"),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kilobytes,
            descriptors,
            threads,
        } = self;
        write!(
            f,
            "{kilobytes} KB, {descriptors} descriptors, {threads} threads"
        )
    }
}

/// A small generator of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// How an agent connects.
enum Endpoint {
    Claude { port: u16, token: String },
    Gemini(Address),
    Copilot(Address),
    Codex { socket: PathBuf, root: String },
}

/// A connected agent.
enum Connection {
    Claude(Agent),
    Gemini(Events),
    Copilot(Events),
    Codex(UnixStream, String),
}

impl Endpoint {
    /// Returns the six agents of an editor.
    fn all(editor: &Editor) -> [Self; AGENTS] {
        let claude = || {
            let (port, lock) = editor.lock();
            let token = lock["authToken"].as_str().unwrap().to_owned();
            Self::Claude { port, token }
        };
        [
            claude(),
            claude(),
            Self::Gemini(Address::gemini(editor)),
            Self::Gemini(Address::gemini(editor)),
            Self::Copilot(Address::copilot(editor)),
            Self::Codex {
                socket: codex::socket(editor),
                root: editor.workspace.root().to_str().unwrap().to_owned(),
            },
        ]
    }

    fn connect(&self) -> Connection {
        let events = |address: &Address| {
            http::handshake(address);
            let events = address.events();
            events.set_timeout(WAIT);
            events
        };
        match self {
            Self::Claude { port, token } => {
                let mut agent = Agent::connect(*port, token);
                agent.initialized();
                agent.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
                agent.set_timeout(WAIT);
                Connection::Claude(agent)
            }
            Self::Gemini(address) => Connection::Gemini(events(address)),
            Self::Copilot(address) => Connection::Copilot(events(address)),
            Self::Codex { socket, root } => {
                Connection::Codex(codex::connect_to(socket), root.clone())
            }
        }
    }
}

impl Connection {
    /// Returns the selected text if the server sends it, or if the agent asks. It is empty if
    /// nothing is selected.
    fn selected(&mut self) -> Option<String> {
        let text = match self {
            Self::Claude(agent) => {
                let message = agent.receive()?;
                message["params"].get("text")?.clone()
            }
            Self::Gemini(events) => {
                let update = events.receive()?;
                let files = update["params"]["workspaceState"]["openFiles"]
                    .as_array()
                    .unwrap();
                let active = files.iter().find(|file| file["isActive"] == true);
                active
                    .map(|file| file["selectedText"].clone())
                    .unwrap_or_default()
            }
            Self::Copilot(events) => events.receive()?["params"]["text"].clone(),
            Self::Codex(stream, root) => {
                thread::sleep(WAIT);
                let answer = codex::ask(stream, root);
                assert_eq!(answer["resultType"], "success", "{answer}");
                answer["result"]["ideContext"]["activeFile"]["activeSelectionContent"].clone()
            }
        };
        Some(text.as_str().unwrap_or_default().to_owned())
    }
}

/// What the agents must see, and what they saw.
#[derive(Default)]
struct Stage {
    /// Number and text of the newest selection, while the editor waits for it to arrive.
    newest: Mutex<Option<(u64, String)>>,
    arrived: [AtomicU64; AGENTS],
    is_over: AtomicBool,
    connections: AtomicU64,
    selections: AtomicU64,
}

impl Stage {
    /// Connects, receives selections and leaves, until the cycle is over.
    fn agent(&self, number: usize, endpoint: &Endpoint, mut numbers: Numbers) {
        while !self.is_over.load(Ordering::Acquire) {
            let mut connection = endpoint.connect();
            self.connections.fetch_add(1, Ordering::Relaxed);
            let end = Instant::now() + Duration::from_millis(100 + numbers.below(8_000));
            let mut last = None;
            while Instant::now() < end && !self.is_over.load(Ordering::Acquire) {
                if let Some(text) = connection.selected() {
                    assert!(!text.contains("DENIED"), "{text}");
                    self.selections.fetch_add(1, Ordering::Relaxed);
                    last = Some(text);
                }
                let newest = self.newest.lock().unwrap().clone();
                match newest {
                    Some((newest, text)) if last.as_ref() == Some(&text) => {
                        self.arrived[number].store(newest, Ordering::Release);
                    }
                    // A busy agent reads nothing for a while.
                    _ if numbers.below(500) == 0 => thread::sleep(Duration::from_secs(1)),
                    _ => {}
                }
            }
        }
    }
}

/// Ends the agents of a cycle, also when a check fails.
struct Cycle<'s>(&'s Stage);

impl Drop for Cycle<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

/// The user of the editor.
struct User {
    editor: Editor,
    numbers: Numbers,
    /// Version of the documents.
    version: u64,
    /// Number of selections that must have arrived.
    awaited: u64,
    sent: u64,
}

impl User {
    fn start() -> Self {
        let mut user = Self {
            editor: Editor::start(json!({})),
            numbers: Numbers(1),
            version: 1,
            awaited: 0,
            sent: 0,
        };
        user.settings(true);
        for number in 0..FILES {
            user.editor.workspace.write(&format!("{number}.txt"), "\n");
            user.editor
                .open(&format!("{number}.txt"), "one two three\n");
        }
        user.editor.open("a.txt", "one\n");
        user.editor.open("secret.txt", "DENIED DENIED\n");
        user
    }

    fn settings(&mut self, selection: bool) {
        let bridges = json!({
            "claudeIde": true, "geminiIde": true, "copilotIde": true, "codexIde": true,
            "selection": selection,
        });
        let settings = json!({ "settings": { "notifications": true, "bridges": bridges } });
        self.editor
            .notify("workspace/didChangeConfiguration", settings);
    }

    fn pause(&mut self, is_paused: bool) {
        let command = json!({
            "command": "sightline.pauseBridges", "arguments": [{ "isPaused": is_paused }],
        });
        let done = self
            .editor
            .client
            .request("workspace/executeCommand", command);
        done.unwrap().unwrap();
    }

    fn change(&mut self, name: &str, text: &str) {
        self.version += 1;
        let document = json!({ "uri": self.editor.workspace.uri(name), "version": self.version });
        let change = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.editor.notify("textDocument/didChange", change);
    }

    fn select(&mut self, name: &str, from: u64, to: u64) {
        let at = |at: u64| u32::try_from(at).unwrap();
        self.editor.select(name, at(from), at(to));
        self.sent += 1;
    }

    /// Changes focus, selection, text, rules, pause and settings for a while.
    fn storm(&mut self, duration: Duration) {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            let name = format!("{}.txt", self.numbers.below(FILES));
            let from = self.numbers.below(8);
            match self.numbers.below(100) {
                0 => self
                    .editor
                    .workspace
                    .write(".clineignore", &format!("{RULES}{name}\n")),
                1 => self.editor.workspace.write(".clineignore", RULES),
                2 => self.pause(true),
                3..6 => self.pause(false),
                6 => self.settings(false),
                7..9 => self.settings(true),
                9..14 => self.change(&name, &format!("changed at {}\n", self.sent)),
                14..24 => self.select("secret.txt", 0, 6),
                _ => self.select(&name, from, from + 4),
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.editor.workspace.write(".clineignore", RULES);
        self.settings(true);
        self.pause(false);
    }

    /// Waits until all agents see a text.
    fn arrives(&mut self, stage: &Stage, text: &str, what: &str) {
        self.awaited += 1;
        *stage.newest.lock().unwrap() = Some((self.awaited, text.to_owned()));
        let end = Instant::now() + SOON;
        let missing = || {
            let arrived = stage.arrived.iter().enumerate();
            let missing = arrived.filter(|(_, at)| at.load(Ordering::Acquire) < self.awaited);
            missing.map(|(agent, _)| agent).collect::<Vec<_>>()
        };
        while !missing().is_empty() {
            assert!(
                Instant::now() < end,
                "{what} {text:?} does not reach {:?}",
                missing()
            );
            thread::sleep(Duration::from_millis(5));
        }
        *stage.newest.lock().unwrap() = None;
    }

    /// Runs one cycle.
    fn work(&mut self, stage: &Stage, duration: Duration) {
        let end = Instant::now() + duration;
        let endpoints = Endpoint::all(&self.editor);
        thread::scope(|threads| {
            let _cycle = Cycle(stage);
            for (number, endpoint) in endpoints.iter().enumerate() {
                let numbers = Numbers(self.numbers.below(u64::MAX >> 33));
                threads.spawn(move || stage.agent(number, endpoint, numbers));
            }
            while Instant::now() < end {
                self.storm(Duration::from_secs(4));
                let text = format!("newest {}", self.awaited);
                self.change("a.txt", &format!("{text}\n"));
                self.select("a.txt", 0, text.len() as u64);
                self.arrives(stage, &text, "the selection");
                self.pause(true);
                self.arrives(stage, "", "while paused,");
                self.pause(false);
                self.arrives(stage, &text, "after the pause,");
                self.editor.workspace.write(".clineignore", "*.txt\n");
                self.arrives(stage, "", "denied by rules,");
                self.editor.workspace.write(".clineignore", RULES);
                self.arrives(stage, &text, "allowed by rules,");
            }
        });
    }

    /// Returns the resources of the server once it closed the connections of the agents.
    fn held(&self, descriptors: usize) -> Held {
        let process = self.editor.child.id();
        let end = Instant::now() + SOON;
        loop {
            let held = Held::by(process);
            if held.descriptors <= descriptors || Instant::now() > end {
                return held;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn six_agents_get_the_newest_selection_and_nothing_grows() {
    let seconds = env::var("SIGHTLINE_SOAK_SECONDS");
    let seconds = seconds.map_or(DEFAULT_SECONDS, |seconds| seconds.parse().unwrap());
    let duration = Duration::from_secs(seconds);
    let mut user = User::start();
    // Opens the sockets.
    drop(Endpoint::all(&user.editor));
    let started = Instant::now();
    let start = Held::by(user.editor.child.id());
    println!("at the start: {start}");
    let mut warm = None;
    let (mut connections, mut selections) = (0, 0);
    let end = loop {
        let stage = Stage::default();
        user.work(&stage, CYCLE.min(duration / 10));
        connections += stage.connections.into_inner();
        selections += stage.selections.into_inner();
        let held = user.held(start.descriptors);
        let elapsed = started.elapsed();
        println!(
            "after {} s: {held}; {connections} connections, {} selections made, {selections} \
             received, {} awaited",
            elapsed.as_secs(),
            user.sent,
            user.awaited,
        );
        if elapsed >= duration / 10 {
            warm.get_or_insert(held);
        }
        if elapsed >= duration {
            break held;
        }
    };
    let warm: Held = warm.unwrap();
    println!("after a tenth: {warm}\nat the end: {end}");
    assert!(end.descriptors <= warm.descriptors);
    // The runtime keeps threads for reading the disk while they are busy.
    assert!(end.threads <= warm.threads + 4);
    assert!(end.kilobytes <= warm.kilobytes + SLACK_KILOBYTES);
}
