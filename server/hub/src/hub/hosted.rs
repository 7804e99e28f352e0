//! A server of a session: its state, its process and what it was asked.

use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    io::BufReader,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use serde_json::{Value, json, value::RawValue};
use sightline_agents::servers::{
    config::{Pin, Server},
    secrets::{masked, secrets},
    store::{Lists, Store},
};
use sightline_base::{clock::now_millis, escape::printable};
use sightline_protocol::mcp::{McpServer, McpServerState, McpTool};

use super::{
    Event,
    environment::{self, find_program},
    is_usable,
    names::{exposed, hash},
};
use crate::{
    connect::HEADERS,
    judge::Request,
    message::{Object, reads_only},
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
/// Times between the crash of a server and its next start.
const DELAYS: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// Crashes within a minute after which a server is not started any more.
const MAX_CRASHES: usize = 3;
/// Bytes of a definition for each token, about.
const BYTES_PER_TOKEN: u64 = 4;

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
    /// Different for each entry that a server ever had.
    pub(super) uid: u64,
    pub(super) state: State,
    pub(super) process: Option<Process>,
    /// Number of the process.
    pub(super) generation: u64,
    pub(super) lists: Option<Lists>,
    /// Capabilities of the server that runs.
    pub(super) capabilities: Value,
    pub(super) in_flight: HashMap<u64, InFlight>,
    /// Requests that wait until it is ready.
    pub(super) queue: Vec<Vec<u8>>,
    /// Lists that were asked for, and what came.
    fetched: Lists,
    /// When its lists are asked for again.
    pub(super) fetch_at: Option<Instant>,
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
    pub(super) fn new(server: Server, uid: u64, state: State) -> Self {
        Self {
            server,
            uid,
            state,
            process: None,
            generation: 0,
            lists: None,
            capabilities: Value::Null,
            in_flight: HashMap::new(),
            queue: Vec::new(),
            fetched: Lists::default(),
            fetch_at: None,
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
    pub(super) fn look_up(&mut self, store: &Store, root: &Path, capabilities: &Value) {
        let program = find_program(&self.server.entry.command);
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
        self.lists = store.lists(&self.key);
    }

    /// Starts it.
    pub(super) fn start(
        &mut self,
        root: &Path,
        store: &Store,
        events: &mpsc::SyncSender<Event>,
        capabilities: &Value,
    ) {
        self.generation += 1;
        self.state = State::Starting;
        self.started = Some((Instant::now(), now_millis()));
        store.log(
            &self.server.name,
            &format!("--- started at {}\n", now_millis()),
        );
        let started = self.command(root).and_then(|start| {
            Process::start(&start).map_err(|error| format!("it cannot be started: {error}"))
        });
        let (process, output) = match started {
            Ok(started) => started,
            Err(why) => return self.fail(why, store),
        };
        if let Err(error) = self.read(output, store, events) {
            process.end(false);
            return self.fail(format!("it cannot be read: {error}"), store);
        }
        self.process = Some(process);
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": capabilities,
            "clientInfo": { "name": "sightline", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request("initialize", &params, Purpose::Initialize);
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

    /// Reads its streams, on threads.
    fn read(
        &self,
        output: Output,
        store: &Store,
        events: &mpsc::SyncSender<Event>,
    ) -> std::io::Result<()> {
        let Output {
            mut messages,
            errors,
        } = output;
        let (uid, generation, events) = (self.uid, self.generation, events.clone());
        thread::Builder::new()
            .name("server-output".to_owned())
            .spawn(move || {
                while let Ok(Some(line)) = read_line(&mut messages) {
                    if events
                        .send(Event::Server {
                            uid,
                            generation,
                            line,
                        })
                        .is_err()
                    {
                        return;
                    }
                }
                let _ = events.send(Event::ServerEnd { uid, generation });
            })?;
        if let Some(errors) = errors {
            let (store, name, secrets) = (
                store.clone(),
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

    /// Notes that it cannot run, until the user restarts it.
    pub(super) fn fail(&mut self, why: String, store: &Store) {
        let why = self.masked(&why);
        store.log(&self.server.name, &format!("--- failed: {why}\n"));
        self.state = State::Failed(why, None);
    }

    /// Notes that its process has ended without being asked.
    pub(super) fn crash(&mut self, code: Option<i32>, store: &Store) {
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
            return self.fail(why, store);
        }
        store.log(&self.server.name, &format!("--- {why}\n"));
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
        self.send(
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
                .to_string()
                .into(),
        );
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
            self.send(
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
                    .to_string()
                    .into(),
            );
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

    /// Asks for its lists.
    pub(super) fn fetch(&mut self) {
        self.fetch_at = None;
        self.fetched = Lists::default();
        for request in self.in_flight.values_mut() {
            if matches!(request.purpose, Purpose::List { .. }) {
                request.purpose = Purpose::Dropped;
            }
        }
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

    /// Notes a page of a list. Returns whether all lists are there.
    pub(super) fn listed(
        &mut self,
        kind: usize,
        mut items: Vec<Box<RawValue>>,
        result: Option<&Object<'_>>,
    ) -> bool {
        let (_, method, member) = LISTS[kind];
        let page = result.and_then(|result| {
            serde_json::from_str::<Vec<Box<RawValue>>>(result.raw(member)?.get()).ok()
        });
        items.extend(page.unwrap_or_default());
        if let Some(cursor) = result.and_then(|result| result.text("nextCursor")) {
            self.request(
                method,
                &json!({ "cursor": cursor }),
                Purpose::List { kind, items },
            );
            return false;
        }
        let lists = &mut self.fetched;
        *[
            &mut lists.tools,
            &mut lists.prompts,
            &mut lists.resources,
            &mut lists.templates,
        ][kind] = items;
        !self
            .in_flight
            .values()
            .any(|request| matches!(request.purpose, Purpose::List { .. }))
    }

    /// Uses the lists that came. Returns the numbers of those that differ.
    pub(super) fn use_lists(&mut self, store: &Store, accepted: i64) -> Vec<usize> {
        let mut new = std::mem::take(&mut self.fetched);
        let old = self.lists.take().unwrap_or_default();
        let of = |lists: &Lists, kind: usize| {
            let list = [
                &lists.tools,
                &lists.prompts,
                &lists.resources,
                &lists.templates,
            ][kind];
            list.iter()
                .map(|item| item.get().to_owned())
                .collect::<Vec<_>>()
        };
        let changed: Vec<usize> = (0..LISTS.len())
            .filter(|kind| of(&old, *kind) != of(&new, *kind))
            .collect();
        let definitions = new
            .tools
            .iter()
            .map(|tool| (name_of(tool), hash(tool.get())));
        let definitions: Vec<(String, String)> = definitions.collect();
        if accepted > old.pinned_at {
            new.pinned_at = accepted;
        } else {
            new.pinned_at = old.pinned_at;
            new.pins = old.pins;
        }
        for (name, definition) in definitions {
            let pin = new
                .pins
                .entry(name.clone())
                .or_insert_with(|| definition.clone());
            if *pin != definition && changed.contains(&0) {
                store.log(
                    &self.server.name,
                    &format!("--- the definition of the tool {name} has changed\n"),
                );
            }
        }
        if let Err(error) = store.write_lists(&self.key, &new) {
            tracing::warn!(%error, "cannot store the lists of a server");
        }
        self.lists = Some(new);
        changed
    }

    /// Returns its tools, with whether each is offered, and whether its definition changed.
    pub(super) fn tools(&self) -> impl Iterator<Item = (&RawValue, String, bool, bool)> {
        self.lists.iter().flat_map(|lists| {
            lists.tools.iter().map(|tool| {
                let name = name_of(tool);
                let pin = lists.pins.get(&name);
                let changed = pin.is_some_and(|pin| *pin != hash(tool.get()));
                let blocked = changed && self.server.entry.pin == Pin::Block;
                let offered = self.server.entry.tools.offers(&name) && !blocked;
                (&**tool, name, offered, changed)
            })
        })
    }

    /// Returns whether a tool says that it changes nothing.
    pub(super) fn reads_only(&self, name: &str) -> bool {
        let tools = self.lists.iter().flat_map(|lists| &lists.tools);
        tools
            .into_iter()
            .any(|tool| name_of(tool) == name && reads_only(tool))
    }

    /// Returns whether time is over for its start.
    pub(super) fn is_late(&self) -> bool {
        self.state == State::Starting
            && self
                .started
                .is_some_and(|(started, _)| started.elapsed() > self.server.start_timeout())
    }

    /// Returns whether it is not used.
    pub(super) fn is_unused(&self) -> bool {
        let idle = self.server.entry.idle;
        self.state == State::Ready
            && idle > 0
            && self.in_flight.is_empty()
            && self.subscriptions == 0
            && self.used.elapsed() >= Duration::from_secs(idle)
    }

    /// Returns its state for the user.
    pub(super) fn report(&self) -> McpServer {
        let tools: Vec<McpTool> = self
            .tools()
            .map(|(tool, name, enabled, changed)| McpTool {
                exposed_as: exposed(&self.server.name, &name),
                tokens: (tool.get().len() as u64).div_ceil(BYTES_PER_TOKEN),
                name,
                enabled,
                changed,
            })
            .collect();
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

/// Returns the name in a definition.
pub(super) fn name_of(item: &RawValue) -> String {
    let definition = Object::parse(item.get()).unwrap_or_default();
    definition.text("name").unwrap_or_default()
}
