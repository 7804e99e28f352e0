//! All servers of the user in one connection, besides our own tools: `server__tool`.
//!
//! One thread owns the state of all servers. It gets the lines of the agent and of each server as
//! events. Requests and results are judged on other threads. Servers are started by that thread,
//! which is the main thread: on Linux they end with it.

mod client;
mod environment;
mod hosted;
mod names;
mod upstream;

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use sightline_access::redact::KeptContents;
use sightline_agents::{
    install::Locations,
    servers::{
        Manager,
        config::{self, Server},
        servers_of_agent,
        store::{self, Session, Version},
    },
};
use sightline_protocol::mcp::McpServerState;

use self::hosted::{Hosted, LISTS, State};
use crate::{
    judge::{Judge, Request, Rules},
    message::{MAX_MESSAGE, Message, error_response},
    process::{Line, read_line},
};

/// How often files, timeouts and idle servers are looked at.
const TICK: Duration = Duration::from_millis(500);
/// Number of lines that are read before they are handled.
const QUEUED: usize = 256;

/// Our own tools.
pub trait OwnTools: Send + Sync {
    /// Returns their definitions.
    fn list(&self) -> Vec<Value>;

    /// Runs a tool for an agent. Returns its result, or `None` if there is none with this name.
    fn call(&self, name: &str, arguments: Map<String, Value>, agent: &str) -> Option<Value>;
}

/// What a session needs.
pub struct Setup {
    /// The access rules.
    pub rules: Arc<dyn Rules>,
    /// Our own tools.
    pub own: Arc<dyn OwnTools>,
    /// The servers of the workspace folder.
    pub manager: Manager,
    /// The workspace folder.
    pub root: PathBuf,
    /// The files of agents.
    pub locations: Locations,
    /// Name and version of this server.
    pub info: Value,
    /// What every session of an agent sees.
    pub instructions: String,
}

enum Event {
    Client(Line),
    ClientEnd(io::Result<()>),
    Server {
        uid: u64,
        generation: u64,
        line: Line,
    },
    ServerEnd {
        uid: u64,
        generation: u64,
    },
    /// What it started has ended too.
    ServerGone {
        uid: u64,
        generation: u64,
        code: Option<i32>,
    },
    /// A call was judged: the request to send, or why it is refused.
    Judged {
        call: Call,
        outcome: Result<Request, String>,
    },
}

/// A request of the agent for a server.
struct Call {
    uid: u64,
    /// Its id, as written.
    id: String,
    method: String,
    /// Its params for the server.
    params: Value,
    /// Token of the agent for progress, as written.
    token: Option<String>,
}

struct Hub {
    setup: Setup,
    contents: Arc<KeptContents>,
    events: mpsc::SyncSender<Event>,
    servers: Vec<Hosted>,
    next_uid: u64,
    /// Versions of the configuration files and of the decisions of the user.
    versions: Vec<Option<Version>>,
    state: store::State,
    /// What was last written about the session.
    reported: Session,
    /// Name and capabilities of the agent, after `initialize`.
    agent: Option<(String, Value)>,
    wants_log: bool,
    /// Requests of the agent that a server answers, by their ids as written: the server, and the id there.
    calls: HashMap<String, (u64, Option<u64>)>,
    /// Requests of servers that the agent answers, by the id there: the server, its process, and its id as written.
    asked: HashMap<u64, (u64, u64, String)>,
    next_asked: u64,
    /// Requests for lists that wait for servers.
    waiting: Vec<(String, usize, Instant)>,
    subscribed: HashSet<String>,
}

/// Returns whether servers are configured for a workspace.
pub fn has_servers(setup: &Setup) -> bool {
    setup
        .manager
        .read()
        .map_or(true, |servers| !servers.is_empty())
}

/// Serves one agent until the end of its messages. Must run on the main thread.
///
/// # Errors
/// If the standard streams fail.
pub fn serve(setup: Setup) -> io::Result<()> {
    let (events, received) = mpsc::sync_channel(QUEUED);
    let sender = events.clone();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut input = io::stdin().lock();
            let end = loop {
                match read_line(&mut input) {
                    Ok(Some(line)) => {
                        if sender.send(Event::Client(line)).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            let _ = sender.send(Event::ClientEnd(end));
        })?;
    let mut hub = Hub {
        setup,
        contents: Arc::default(),
        events,
        servers: Vec::new(),
        next_uid: 0,
        versions: Vec::new(),
        state: store::State::default(),
        reported: Session::default(),
        agent: None,
        wants_log: false,
        calls: HashMap::new(),
        asked: HashMap::new(),
        next_asked: 0,
        waiting: Vec::new(),
        subscribed: HashSet::new(),
    };
    hub.configure();
    let outcome = hub.run(&received);
    let ends: Vec<_> = hub.servers.iter_mut().filter_map(Hosted::stop).collect();
    for end in ends {
        let _ = end.join();
    }
    hub.setup.manager.store.end_session();
    outcome
}

impl Hub {
    fn run(&mut self, events: &mpsc::Receiver<Event>) -> io::Result<()> {
        let mut ticked = Instant::now();
        loop {
            match events.recv_timeout(TICK) {
                Ok(Event::Client(Line::Text(line))) => self.client_line(&line)?,
                Ok(Event::Client(Line::TooLong)) => {
                    let why = format!("the message is longer than {MAX_MESSAGE} bytes");
                    print(&error_response("null", -32600, &why))?;
                }
                Ok(Event::ClientEnd(outcome)) => return outcome,
                Ok(Event::Server {
                    uid,
                    generation,
                    line,
                }) => self.server_line(uid, generation, line)?,
                Ok(Event::ServerEnd { uid, generation }) => self.server_ended(uid, generation)?,
                Ok(Event::ServerGone {
                    uid,
                    generation,
                    code,
                }) => self.server_gone(uid, generation, code)?,
                Ok(Event::Judged { call, outcome }) => self.judged(call, outcome)?,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.tick()?;
            }
            self.answer_lists()?;
        }
    }

    fn position(&self, uid: u64) -> Option<usize> {
        self.servers.iter().position(|server| server.uid == uid)
    }

    /// Returns what servers get of the capabilities of the agent. Roots are those of the workspace.
    fn capabilities(&self) -> Value {
        let mut capabilities = json!({ "roots": {} });
        if let Some((_, own)) = &self.agent {
            for name in ["elicitation", "sampling"] {
                if let Some(value) = own.get(name) {
                    capabilities[name] = value.clone();
                }
            }
        }
        capabilities
    }

    fn judge<T>(&self, at: usize, judge: impl FnOnce(&Judge<'_>) -> T) -> T {
        let server = &self.servers[at].server;
        judge(&Judge {
            rules: &*self.setup.rules,
            contents: &self.contents,
            folder: &self.setup.root,
            passes_text: server.entry.results == config::Results::Pass,
            server: &server.name,
            agent: self.agent.as_ref().map(|(name, _)| &**name),
        })
    }

    /// Judges on another thread, and uses the outcome there.
    fn judge_later(
        &self,
        at: usize,
        work: impl FnOnce(&Judge<'_>) + Send + 'static,
    ) -> io::Result<()> {
        let server = &self.servers[at].server;
        let passes_text = server.entry.results == config::Results::Pass;
        let (name, agent) = (server.name.clone(), self.agent.clone());
        let (rules, contents) = (self.setup.rules.clone(), Arc::clone(&self.contents));
        let folder = self.setup.root.clone();
        thread::Builder::new()
            .name("judge".to_owned())
            .spawn(move || {
                work(&Judge {
                    rules: &*rules,
                    contents: &contents,
                    folder: &folder,
                    passes_text,
                    server: &name,
                    agent: agent.as_ref().map(|(name, _)| &**name),
                });
            })?;
        Ok(())
    }

    /// Reads the configuration if it changed. Only servers that changed are stopped. Returns whether any did.
    fn configure(&mut self) -> bool {
        let manager = &self.setup.manager;
        let versions = manager.configuration_versions();
        if versions == self.versions {
            return false;
        }
        self.versions = versions;
        let read = manager.read();
        let state = manager.store.state().map_err(|error| error.to_string());
        let (servers, state) = match read.and_then(|servers| Ok((servers, state?))) {
            Ok(read) => read,
            Err(why) => {
                // The servers that run stay.
                tracing::warn!(why, "cannot read the MCP servers");
                return false;
            }
        };
        let old = std::mem::replace(&mut self.state, state);
        let mut known = std::mem::take(&mut self.servers);
        let mut changed = false;
        for server in servers {
            let wanted = self.first_state(&server);
            let at = known.iter().position(|known| known.server == server);
            let restarts = old.restarts.get(&server.name) != self.state.restarts.get(&server.name)
                || old.accepted.get(&server.name) != self.state.accepted.get(&server.name);
            match at {
                Some(at) if !restarts && known[at].is_usable() == is_usable(&wanted) => {
                    self.servers.push(known.swap_remove(at));
                }
                _ => {
                    changed = true;
                    self.next_uid += 1;
                    let mut hosted = Hosted::new(server, self.next_uid, wanted);
                    hosted.look_up(
                        &self.setup.manager.store,
                        &self.setup.root,
                        &self.capabilities(),
                    );
                    self.servers.push(hosted);
                }
            }
        }
        for mut gone in known {
            changed = true;
            self.answer_all(&mut gone, "its configuration has changed");
            gone.stop();
        }
        changed
    }

    /// Returns the state of a server that was not started.
    fn first_state(&self, server: &Server) -> State {
        match self.state.of(server) {
            McpServerState::Failed => {
                State::Failed(server.problem.clone().unwrap_or_default(), None)
            }
            McpServerState::Disabled => State::Disabled,
            _ if self.reads_itself(server) => State::Elsewhere,
            McpServerState::Untrusted => State::Untrusted,
            _ => State::Idle,
        }
    }

    /// Returns whether the agent has a server itself, by its name or by its command.
    fn reads_itself(&self, server: &Server) -> bool {
        let Some((agent, _)) = &self.agent else {
            return false;
        };
        let has_it = |own: &Server| {
            let entry = &own.entry;
            own.name == server.name
                || entry.command == server.entry.command && entry.args == server.entry.args
        };
        if servers_of_agent(agent, &self.setup.locations)
            .iter()
            .any(has_it)
        {
            return true;
        }
        let agent = agent.to_ascii_lowercase();
        let readers: &[&str] = match server.source.parent().and_then(|folder| folder.file_name()) {
            _ if server.root.is_none() => &[],
            Some(name) if name == ".vscode" => &["visual studio code"],
            _ => &["claude", "copilot"],
        };
        readers.iter().any(|name| agent.contains(name))
    }

    /// Applies changes of the configuration.
    fn reconfigure(&mut self) -> io::Result<()> {
        if self.configure() {
            for kind in 0..LISTS.len() {
                self.notify_changed(kind)?;
            }
        }
        Ok(())
    }

    /// Looks at files, timeouts and idle servers.
    fn tick(&mut self) -> io::Result<()> {
        self.reconfigure()?;
        for at in 0..self.servers.len() {
            let server = &mut self.servers[at];
            if server.is_late() {
                server.stop();
                let limit = server.server.entry.start_timeout;
                server.fail(
                    format!("it did not start within {limit} s"),
                    &self.setup.manager.store,
                );
                self.answer_all_of(at)?;
            } else if server.is_unused() {
                server.stop();
            } else if server.fetch_at.is_some_and(|at| at <= Instant::now())
                && server.state == State::Ready
            {
                server.fetch();
            }
            self.end_late_calls(at)?;
        }
        self.report();
        Ok(())
    }

    /// Writes the state of the session for the user, if it changed.
    fn report(&mut self) {
        let session = Session {
            pid: std::process::id(),
            root: self.setup.root.clone(),
            agent: self
                .agent
                .as_ref()
                .map(|(name, _)| name.clone())
                .unwrap_or_default(),
            servers: self.servers.iter().map(Hosted::report).collect(),
        };
        if session != self.reported {
            if let Err(error) = self.setup.manager.store.write_session(&session) {
                tracing::warn!(%error, "cannot write the state of MCP servers");
            }
            self.reported = session;
        }
    }

    /// Starts a server that does not run. Returns why it cannot be used now.
    fn ensure_started(&mut self, at: usize) -> Result<(), String> {
        let capabilities = self.capabilities();
        let server = &mut self.servers[at];
        server.used = Instant::now();
        let name = &server.server.name;
        match &server.state {
            State::Ready | State::Starting => return Ok(()),
            State::Idle => {}
            State::Disabled => return Err(format!("the server {name} is disabled")),
            State::Elsewhere => return Err(format!("the server {name} is one of the agent")),
            State::Untrusted => {
                return Err(format!(
                    "the user has not trusted the server {name}: sightline mcp trust {name}"
                ));
            }
            State::Failed(why, Some(next)) if *next > Instant::now() => {
                let seconds = next.duration_since(Instant::now()).as_secs() + 1;
                return Err(format!(
                    "the server {name} failed: {why}. It starts again in {seconds} s"
                ));
            }
            State::Failed(_, Some(_)) => {}
            State::Failed(why, None) => {
                return Err(format!(
                    "the server {name} failed: {why}. The user can read `sightline mcp log {name}` and run \
                     `sightline mcp restart {name}`"
                ));
            }
        }
        server.start(
            &self.setup.root,
            &self.setup.manager.store,
            &self.events,
            &capabilities,
        );
        match &server.state {
            State::Failed(why, _) => {
                Err(format!("the server {} failed: {why}", server.server.name))
            }
            _ => Ok(()),
        }
    }

    /// Tells the agent that a list has changed.
    fn notify_changed(&self, kind: usize) -> io::Result<()> {
        const METHODS: [&str; 4] = [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/list_changed",
        ];
        if self.agent.is_none() {
            return Ok(());
        }
        print(
            json!({ "jsonrpc": "2.0", "method": METHODS[kind] })
                .to_string()
                .as_bytes(),
        )
    }
}

fn is_usable(state: &State) -> bool {
    !matches!(state, State::Disabled | State::Elsewhere | State::Untrusted)
}

/// Parses one line of a peer: its messages, or why it is none.
fn messages(line: &[u8]) -> Result<Vec<Message<'_>>, String> {
    Message::parse_line(line)
}

/// Writes a line to standard output.
fn print(line: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(line)?;
    output.write_all(b"\n")?;
    output.flush()
}
