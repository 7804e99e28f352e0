//! A server of a session: its state, its process and what it was asked.

mod lists;

use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    io::BufReader,
    path::{Path, PathBuf},
    process::{ChildStderr, ChildStdout},
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use serde_json::{Value, json, value::RawValue};
use sightline_agents::servers::{
    config::Server,
    secrets::{masked, secrets},
    store::{Lists, Store},
};
use sightline_base::{clock::now_millis, escape::printable, fs::find_program};
use sightline_protocol::mcp::{McpServer, McpServerState, McpTool};

use super::{
    environment, is_usable,
    names::{Tool, hash},
};
use crate::{
    connect::HEADERS,
    judge::Request,
    message::{Object, outgoing},
    process::{Line, Output, Process, Start, read_line},
};

/// The version of the protocol that servers are asked for.
const VERSION: &str = "2025-11-25";
/// The lists of a server: its capability, the method, and the member of the result.
pub(super) const LISTS: [(&str, &str, &str); 4] = [
    ("tools", "tools/list", "tools"),
    ("prompts", "prompts/list", "prompts"),
    ("resources", "resources/list", "resources"),
    ("resources", "resources/templates/list", "resourceTemplates"),
];
/// Time to wait for the lists of a server that failed when it was started last.
const FAILED_PATIENCE: Duration = Duration::from_millis(500);
/// Time to wait for more changes of lists, and the most that is waited.
const DEBOUNCE: Duration = Duration::from_millis(300);
const MAX_DEBOUNCE: Duration = Duration::from_secs(2);
/// Times between the crash of a server and its next start.
const DELAYS: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// Crashes within a minute after which a server is not started any more.
const MAX_CRASHES: usize = 3;
/// What a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Disabled,
    /// The agent has it in its own configuration.
    Elsewhere,
    Untrusted,
    /// Not started. Its lists may be known.
    Idle,
    Starting,
    Ready,
    /// It is started again by a call after this time. `None`: by the user.
    Failed(String, Option<Instant>),
}

/// Why a request was sent.
pub(super) enum Purpose {
    Initialize,
    List {
        kind: usize,
        items: Vec<Box<RawValue>>,
    },
    Call {
        /// Id of the request of the agent, as written.
        id: String,
        /// Its token for progress, as written.
        token: Option<String>,
        /// Whether it asks for a task, which is named in the answer.
        is_task: bool,
        request: Request,
    },
    /// Its answer is not wanted any more.
    Dropped,
}

/// A request without an answer.
pub(super) struct InFlight {
    pub(super) purpose: Purpose,
    /// When it was sent, or when progress came.
    pub(super) last: Instant,
}

pub(super) struct Hosted {
    pub(super) server: Server,
    store: Store,
    /// Different for each entry that a server ever had.
    pub(super) uid: u64,
    pub(super) state: State,
    pub(super) process: Option<Process>,
    /// Number of the process.
    pub(super) generation: u64,
    pub(super) lists: Option<Lists>,
    /// Whether it never sent any, and failed before.
    has_failed: bool,
    /// The tools in these lists.
    pub(super) tools: Vec<Tool>,
    /// Capabilities of the server that runs.
    pub(super) capabilities: Value,
    pub(super) in_flight: HashMap<u64, InFlight>,
    /// Requests that wait until it is ready.
    pub(super) queue: Vec<Vec<u8>>,
    /// Lists that were asked for, and what came.
    fetched: Lists,
    asked_for_lists: Option<Instant>,
    /// When it said first and last that its lists have changed.
    changed: Option<(Instant, Instant)>,
    next_id: u64,
    crashes: Vec<Instant>,
    pub(super) used: Instant,
    pub(super) subscriptions: usize,
    started: Option<(Instant, i64)>,
    pub(super) calls: u64,
    pub(super) errors: u64,
    /// Values of variables, and their names.
    secrets: Vec<(String, String)>,
    key: String,
}

impl Hosted {
    pub(super) fn new(server: Server, store: Store, uid: u64, state: State) -> Self {
        Self {
            server,
            store,
            uid,
            state,
            process: None,
            generation: 0,
            lists: None,
            has_failed: false,
            tools: Vec::new(),
            capabilities: Value::Null,
            in_flight: HashMap::new(),
            queue: Vec::new(),
            fetched: Lists::default(),
            asked_for_lists: None,
            changed: None,
            next_id: 0,
            crashes: Vec::new(),
            used: Instant::now(),
            subscriptions: 0,
            started: None,
            calls: 0,
            errors: 0,
            secrets: Vec::new(),
            key: String::new(),
        }
    }

    /// Returns whether it may run.
    pub(super) fn is_usable(&self) -> bool {
        is_usable(&self.state)
    }

    /// Looks up its lists, which depend on the program and on the capabilities of the agent.
    pub(super) fn look_up(&mut self, root: &Path, capabilities: &Value) {
        let command = &self.server.entry.command;
        let program = match command.contains(['/', '\\']) {
            true => Some(PathBuf::from(command)),
            false => find_program(command),
        };
        let version = program.and_then(|path| {
            let metadata = path.metadata().ok()?;
            let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some((modified.as_millis() as u64, metadata.len()))
        });
        let names: Vec<&String> = capabilities
            .as_object()
            .map(|own| own.keys().collect())
            .unwrap_or_default();
        let key = json!([self.server.name, self.server.hash(), version, names, root]);
        self.key = hash(&key.to_string())[..32].to_owned();
        let lists = self.store.lists(&self.key);
        self.has_failed = lists.as_ref().is_some_and(|lists| lists.failed);
        self.lists = lists.filter(|lists| !lists.failed);
        self.note_tools();
    }

    /// Starts it. Returns its messages.
    pub(super) fn start(
        &mut self,
        root: &Path,
        capabilities: &Value,
    ) -> Option<BufReader<ChildStdout>> {
        self.generation += 1;
        self.state = State::Starting;
        self.started = Some((Instant::now(), now_millis()));
        self.log(&format!(
            "--- started at {}",
            jiff::Timestamp::now().strftime("%F %T UTC")
        ));
        let started = self.command(root).and_then(|start| {
            let (process, Output { messages, errors }) =
                Process::start(&start).map_err(|error| format!("it cannot be started: {error}"))?;
            self.process = Some(process);
            self.log_errors(errors)
                .map_err(|error| format!("it cannot be read: {error}"))?;
            Ok(messages)
        });
        let messages = match started {
            Ok(messages) => messages,
            Err(why) => {
                self.stop();
                self.fail(why);
                return None;
            }
        };
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": capabilities,
            "clientInfo": { "name": "sightline", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request("initialize", &params, Purpose::Initialize);
        Some(messages)
    }

    /// Returns how to start it.
    fn command(&mut self, root: &Path) -> Result<Start, String> {
        let variable = |name: &str| env::var(name).ok();
        let entry = &self.server.entry;
        let expand = |text: &str| self.server.expand(text, root, &variable);
        let mut command: Vec<OsString> = Vec::new();
        if entry.isolate {
            let own = env::current_exe().map_err(|error| error.to_string())?;
            command.extend([
                own.into(),
                "exec".into(),
                "--root".into(),
                root.into(),
                "--".into(),
            ]);
        }
        let mut own = self.server.expand_all(&entry.env, root, &variable)?;
        let headers = self.server.expand_all(&entry.headers, root, &variable)?;
        if let Some(url) = &entry.url {
            let program = env::current_exe().map_err(|error| error.to_string())?;
            command.extend([program.into(), "mcp".into(), "connect".into(), url.into()]);
            command.extend(entry.transport().map(OsString::from));
            own.insert(HEADERS.to_owned(), json!(headers).to_string());
        } else {
            command.push(expand(&entry.command)?.into());
            for argument in &entry.args {
                command.push(expand(argument)?.into());
            }
        }
        let folder = match &entry.cwd {
            Some(cwd) => root.join(expand(cwd)?),
            None => root.to_owned(),
        };
        let variables = environment::variables(&entry.inherit, &own);
        own.extend(headers);
        self.secrets = secrets(&own);
        Ok(Start {
            command,
            folder: Some(folder),
            variables: Some(variables),
            reads_errors: true,
        })
    }

    /// Adds what it prints as errors to its log, on a thread.
    fn log_errors(&self, errors: Option<ChildStderr>) -> std::io::Result<()> {
        if let Some(errors) = errors {
            let (store, name, secrets) = (
                self.store.clone(),
                self.server.name.clone(),
                self.secrets.clone(),
            );
            thread::Builder::new()
                .name("server-errors".to_owned())
                .spawn(move || {
                    let mut errors = BufReader::new(errors);
                    while let Ok(Some(line)) = read_line(&mut errors) {
                        if let Line::Text(line) = line {
                            let line = String::from_utf8_lossy(&line);
                            store.log(&name, &format!("{}\n", masked(&printable(&line), &secrets)));
                        }
                    }
                })?;
        }
        Ok(())
    }

    /// Returns a text without the values of its variables.
    pub(super) fn masked(&self, text: &str) -> String {
        masked(text, &self.secrets)
    }

    /// Adds a line to its log.
    pub(super) fn log(&self, line: &str) {
        self.store.log(&self.server.name, &format!("{line}\n"));
    }

    /// Notes that it cannot run, until the user restarts it.
    pub(super) fn fail(&mut self, why: String) {
        let why = self.masked(&why);
        self.log(&format!("--- failed: {why}"));
        self.state = State::Failed(why, None);
        if self.lists.is_none() {
            let failed = Lists {
                failed: true,
                ..Lists::default()
            };
            self.write_lists(&failed);
        }
    }

    fn write_lists(&self, lists: &Lists) {
        if let Err(error) = self.store.write_lists(&self.key, lists) {
            tracing::warn!(%error, "cannot store the lists of a server");
        }
    }

    /// Returns how long a request for a list waits for its lists.
    pub(super) fn patience(&self) -> Duration {
        if self.has_failed {
            FAILED_PATIENCE
        } else {
            self.server.start_timeout()
        }
    }

    /// Notes that its process has ended without being asked.
    pub(super) fn crash(&mut self, code: Option<i32>) {
        let now = Instant::now();
        let was_ready = self.state == State::Ready;
        self.crashes
            .retain(|crash| now.duration_since(*crash) < Duration::from_secs(60));
        self.crashes.push(now);
        let why = match code {
            Some(127) => format!("there is no program {}", self.server.entry.command),
            Some(code) => format!("it ended with exit code {code}"),
            None => "it was killed".to_owned(),
        };
        if self.crashes.len() >= MAX_CRASHES || code == Some(127) || !was_ready {
            return self.fail(why);
        }
        self.log(&format!("--- {why}"));
        let delay = DELAYS[(self.crashes.len() - 1).min(DELAYS.len() - 1)];
        self.state = State::Failed(why, Some(now + Duration::from_secs(delay)));
    }

    /// Ends its process, on a thread.
    pub(super) fn stop(&mut self) -> Option<thread::JoinHandle<Option<i32>>> {
        let process = self.process.take()?;
        // One that has not answered yet knows nothing of the protocol.
        let patience = self.state != State::Starting;
        self.generation += 1;
        if matches!(self.state, State::Starting | State::Ready) {
            self.state = State::Idle;
        }
        thread::Builder::new()
            .name("server-end".to_owned())
            .spawn(move || process.end(patience))
            .ok()
    }

    /// Sends a request. Returns its id.
    pub(super) fn request(&mut self, method: &str, params: &Value, purpose: Purpose) -> u64 {
        let id = self.next(purpose);
        self.send(outgoing(Some(id), method, params));
        id
    }

    /// Returns the id for a request.
    pub(super) fn next(&mut self, purpose: Purpose) -> u64 {
        self.next_id += 1;
        self.in_flight.insert(
            self.next_id,
            InFlight {
                purpose,
                last: Instant::now(),
            },
        );
        self.next_id
    }

    /// Returns the request that a response is for, by the id in it, as written. A server that could not read the
    /// id sends null: it means the only request.
    pub(super) fn answered(&self, id: &str) -> Option<u64> {
        let mut awaited = self.awaited();
        match (id, awaited.next(), awaited.next()) {
            ("null", Some((only, _)), None) => Some(*only),
            // Some servers send it as a string.
            _ => id.trim_matches('"').parse().ok(),
        }
    }

    fn awaited(&self) -> impl Iterator<Item = (&u64, &InFlight)> {
        self.in_flight
            .iter()
            .filter(|(_, request)| !matches!(request.purpose, Purpose::Dropped))
    }

    pub(super) fn send(&self, line: Vec<u8>) {
        if let Some(process) = &self.process {
            process.send(line);
        }
    }

    /// Tells it that a request is not wanted any more.
    pub(super) fn cancel(&mut self, id: u64, reason: &str) {
        if let Some(request) = self.in_flight.get_mut(&id) {
            request.purpose = Purpose::Dropped;
            let params = json!({ "requestId": id, "reason": reason });
            self.send(outgoing(None, "notifications/cancelled", &params));
        }
    }

    /// Notes the answer to `initialize`.
    pub(super) fn initialized(&mut self, result: &Object<'_>) {
        self.capabilities = result
            .raw("capabilities")
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec());
        self.state = State::Ready;
        self.fetch();
        for line in std::mem::take(&mut self.queue) {
            self.send(line);
        }
    }

    /// Notes that its lists have changed.
    pub(super) fn note_change(&mut self) {
        let now = Instant::now();
        let first = self.changed.map_or(now, |(first, _)| first);
        self.changed = Some((first, now));
    }

    /// Returns whether its lists have changed, and it is time to ask for them: more changes may follow.
    pub(super) fn wants_fetch(&self) -> bool {
        self.state == State::Ready
            && self.changed.is_some_and(|(first, last)| {
                last.elapsed() >= DEBOUNCE || first.elapsed() >= MAX_DEBOUNCE
            })
    }

    /// Asks for its lists.
    pub(super) fn fetch(&mut self) {
        self.changed = None;
        self.fetched = Lists::default();
        self.asked_for_lists = Some(Instant::now());
        self.drop_lists();
        for (kind, (capability, method, _)) in LISTS.into_iter().enumerate() {
            if self.capabilities.get(capability).is_some() {
                self.request(
                    method,
                    &json!({}),
                    Purpose::List {
                        kind,
                        items: Vec::new(),
                    },
                );
            }
        }
    }

    /// Asks for messages for the log, if it runs and has some.
    pub(super) fn set_log_level(&mut self, level: &str) {
        if self.state == State::Ready && self.capabilities.get("logging").is_some() {
            let params = json!({ "level": level });
            self.request("logging/setLevel", &params, Purpose::Dropped);
        }
    }

    /// Returns whether it was asked for a list that did not come yet.
    pub(super) fn awaits_lists(&self) -> bool {
        self.in_flight
            .values()
            .any(|request| matches!(request.purpose, Purpose::List { .. }))
    }

    /// Returns what it should have done by now. The lists of an earlier start stay if it does not send others.
    pub(super) fn late(&mut self) -> Option<&'static str> {
        let limit = self.server.start_timeout();
        let is_over = |began: Option<Instant>| began.is_some_and(|began| began.elapsed() > limit);
        match self.state {
            State::Starting if is_over(self.started.map(|(at, _)| at)) => Some("start"),
            State::Ready if self.awaits_lists() && is_over(self.asked_for_lists) => {
                self.drop_lists();
                if self.lists.is_none() {
                    return Some("send its lists");
                }
                self.log("--- it did not send its lists in time");
                None
            }
            _ => None,
        }
    }

    /// Returns whether it is not used.
    pub(super) fn is_unused(&self) -> bool {
        let idle = self.server.entry.idle;
        // A call that was cancelled may never be answered.
        self.state == State::Ready
            && idle > 0
            && self.awaited().next().is_none()
            && self.subscriptions == 0
            && self.used.elapsed() >= Duration::from_secs(idle)
    }

    /// Returns its state for the user.
    pub(super) fn report(&self) -> McpServer {
        let tools: Vec<McpTool> = self.tools.iter().map(Tool::report).collect();
        let has_changed = tools.iter().any(|tool| tool.changed);
        let (state, reason) = match &self.state {
            State::Disabled => (McpServerState::Disabled, None),
            State::Elsewhere => {
                let reason = "the agent has it in its own configuration";
                (McpServerState::Disabled, Some(reason.to_owned()))
            }
            State::Untrusted => (McpServerState::Untrusted, None),
            State::Failed(why, _) => (McpServerState::Failed, Some(why.clone())),
            State::Idle | State::Ready if has_changed => (McpServerState::Changed, None),
            State::Idle => (McpServerState::Idle, None),
            State::Starting => (McpServerState::Starting, None),
            State::Ready => (McpServerState::Ready, None),
        };
        McpServer {
            name: self.server.name.clone(),
            state,
            reason,
            pid: self.process.as_ref().map(Process::id),
            started_at: self.process.as_ref().and(self.started).map(|(_, at)| at),
            calls: self.calls,
            errors: self.errors,
            tools,
            ..McpServer::default()
        }
    }
}
