//! Our own tools and all servers of the user in one connection: `server__tool`.
//!
//! The state of all servers is behind one lock, which is held for a step at a time. Each peer has a thread
//! that reads its lines and takes these steps, so a message passes through one thread. What may take time is
//! judged without the lock.

mod client;
mod environment;
mod hosted;
mod names;
mod owners;
mod trial;
mod upstream;

pub use trial::try_server;

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sightline_access::redact::KeptContents;
use sightline_agents::{
    install::Locations,
    servers::{
        Manager,
        config::{self, Server},
        servers_of_client,
        store::{self, Session, Store, Version},
    },
};
use sightline_protocol::mcp::McpServerState;

use self::hosted::{Hosted, LISTS, State};
use crate::{
    judge::{Judge, Rules},
    message::{Object, outgoing},
    process::{Process, print, read_line},
};

/// How often files, timeouts and idle servers are looked at.
const TICK: Duration = Duration::from_millis(500);

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
    /// The servers of the user. `None` if only our own tools are offered.
    pub servers: Option<UserServers>,
    /// The workspace folder.
    pub root: Arc<Path>,
    /// Name and version of this server.
    pub info: Value,
    /// What every session of an agent sees.
    pub instructions: String,
}

/// The servers of the user.
#[derive(Clone)]
pub struct UserServers {
    /// Those of the workspace folder.
    pub manager: Manager,
    /// The files of agents.
    pub locations: Locations,
}

/// A request of the agent for a server.
struct Call {
    uid: u64,
    /// Its id, as written.
    id: String,
    method: String,
    /// Its params for the server.
    params: Object<'static>,
    /// Token of the agent for progress, as written.
    token: Option<String>,
}

/// A request of a server for the agent.
struct Asked {
    uid: u64,
    /// The process of the server.
    generation: u64,
    /// Its id and its token for progress, as written.
    id: String,
    token: Option<String>,
}

struct Hub {
    setup: Setup,
    contents: Arc<KeptContents>,
    /// For the threads that read.
    own: Weak<Mutex<Self>>,
    /// Ends the session.
    ended: mpsc::Sender<io::Result<()>>,
    servers: Vec<Hosted>,
    next_uid: u64,
    /// Versions of the configuration files and of the decisions of the user.
    versions: Vec<Option<Version>>,
    state: store::State,
    /// Name and capabilities of the agent, after `initialize`.
    agent: Option<(Arc<str>, Value)>,
    /// The least level of messages for the log that the agent wants.
    log_level: Option<String>,
    /// Requests of the agent that a server answers, by their ids as written: the server, and the id there.
    calls: HashMap<String, (u64, Option<u64>)>,
    /// Requests of servers that the agent answers, by the id there.
    asked: HashMap<u64, Asked>,
    next_asked: u64,
    /// The servers of tasks, by their ids.
    tasks: HashMap<String, u64>,
    /// Requests for lists that wait for servers.
    waiting: Vec<(String, usize, Instant)>,
    subscribed: HashSet<String>,
}

/// Serves one agent until the end of its messages.
///
/// # Errors
/// If the standard streams fail.
pub fn serve(setup: Setup) -> io::Result<()> {
    let store = setup
        .servers
        .as_ref()
        .map(|servers| servers.manager.store.clone());
    let (ended, end) = mpsc::channel();
    let hub = Hub::new(setup, ended.clone());
    let agent = hub.clone();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut input = io::stdin().lock();
            let outcome = loop {
                match read_line(&mut input) {
                    Ok(Some(line)) => {
                        if let Err(error) = agent.lock().client_line(&line) {
                            break Err(error);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(cannot_read(&error)),
                }
            };
            let _ = ended.send(outcome);
        })?;
    let mut reported = Session::default();
    let outcome = loop {
        if let Ok(outcome) = end.recv_timeout(TICK) {
            break outcome;
        }
        let session = {
            let mut hub = hub.lock();
            if let Err(error) = hub.tick() {
                break Err(error);
            }
            hub.session()
        };
        // A session without servers is not shown.
        let has_servers = !session.servers.is_empty() || !reported.servers.is_empty();
        if session != reported
            && has_servers
            && let Some(store) = &store
        {
            report(store, &session);
            reported = session;
        }
    };
    stop(&hub);
    if let Some(store) = store {
        store.end_session();
    }
    outcome
}

fn cannot_read(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read standard input: {error}"))
}

/// Ends all servers.
fn stop(hub: &Mutex<Hub>) {
    let ends: Vec<_> = {
        let mut hub = hub.lock();
        hub.servers.iter_mut().filter_map(Hosted::stop).collect()
    };
    for end in ends {
        let _ = end.join();
    }
}

impl Hub {
    /// Creates one without an agent.
    fn new(setup: Setup, ended: mpsc::Sender<io::Result<()>>) -> Arc<Mutex<Self>> {
        Arc::new_cyclic(|own| {
            Mutex::new(Self {
                setup,
                contents: Arc::default(),
                own: own.clone(),
                ended,
                servers: Vec::new(),
                next_uid: 0,
                versions: Vec::new(),
                state: store::State::default(),
                agent: None,
                log_level: None,
                calls: HashMap::new(),
                asked: HashMap::new(),
                next_asked: 0,
                tasks: HashMap::new(),
                waiting: Vec::new(),
                subscribed: HashSet::new(),
            })
        })
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

    /// Returns what judges for a server.
    fn judge(&self, at: usize) -> Judge {
        let server = &self.servers[at].server;
        Judge {
            rules: self.setup.rules.clone(),
            contents: self.contents.clone(),
            folder: self.setup.root.clone(),
            passes_text: server.entry.results == config::Results::Pass,
            server: server.name.as_str().into(),
            agent: self.agent.as_ref().map(|(name, _)| name.clone()),
        }
    }

    /// Reads the configuration if it changed. Only servers that changed are stopped. Returns whether any did.
    fn configure(&mut self) -> bool {
        let Some(UserServers { manager, locations }) = self.setup.servers.clone() else {
            return false;
        };
        let versions = manager.configuration_versions();
        if versions == self.versions {
            return false;
        }
        self.versions = versions;
        let servers = manager.read();
        let state = match manager.store.state() {
            Ok(state) => state,
            Err(error) => {
                // The servers that run stay.
                tracing::warn!(%error, "cannot read what the user decided about MCP servers");
                return false;
            }
        };
        let unread = servers.iter().filter(|server| server.is_file());
        let unread: Vec<PathBuf> = unread.map(|file| file.source.clone()).collect();
        let old = std::mem::replace(&mut self.state, state);
        let mut known = std::mem::take(&mut self.servers);
        let mut changed = false;
        for server in servers {
            let wanted = self.first_state(&server, &locations);
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
                    let store = manager.store.clone();
                    let mut hosted = Hosted::new(server, store, self.next_uid, wanted);
                    hosted.look_up(&self.setup.root, &self.capabilities());
                    self.servers.push(hosted);
                }
            }
        }
        for mut gone in known {
            // The user may be editing the file.
            if unread.contains(&gone.server.source) && !gone.server.is_file() {
                self.servers.push(gone);
                continue;
            }
            changed = true;
            self.answer_all(&mut gone, "its configuration has changed");
            gone.stop();
        }
        changed
    }

    /// Returns the state of a server that was not started.
    fn first_state(&self, server: &Server, locations: &Locations) -> State {
        match self.state.of(server) {
            McpServerState::Failed => {
                State::Failed(server.problem.clone().unwrap_or_default(), None)
            }
            McpServerState::Disabled => State::Disabled,
            _ if self.reads_itself(server, locations) => State::Elsewhere,
            McpServerState::Untrusted => State::Untrusted,
            _ => State::Idle,
        }
    }

    /// Returns whether the agent has a server itself, by its name or by its command.
    fn reads_itself(&self, server: &Server, locations: &Locations) -> bool {
        let Some((agent, _)) = &self.agent else {
            return false;
        };
        let has_it = |own: &Server| own.name == server.name || own.runs_as(server);
        if servers_of_client(agent, locations).iter().any(has_it) {
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
            if let Some(servers) = &self.setup.servers {
                report(&servers.manager.store, &self.session());
            }
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
            // Its output is open if only the process that supervises it was killed.
            if server.process.as_mut().is_some_and(Process::was_killed) {
                server.crash(None);
                server.stop();
                self.answer_all_of(at)?;
            } else if let Some(what) = server.late() {
                server.stop();
                let limit = server.server.entry.start_timeout;
                server.fail(format!("it did not {what} within {limit} s"));
                self.answer_all_of(at)?;
            } else if server.is_unused() {
                server.stop();
            } else if server.wants_fetch() {
                server.fetch();
            }
            self.end_late_calls(at)?;
        }
        self.answer_lists()
    }

    /// Returns the state of the session for the user.
    fn session(&self) -> Session {
        let agent = self.agent.as_ref().map(|(name, _)| name.to_string());
        Session {
            pid: std::process::id(),
            root: self.setup.root.to_path_buf(),
            agent: agent.unwrap_or_default(),
            servers: self.servers.iter().map(Hosted::report).collect(),
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
        let messages = server.start(&self.setup.root, &capabilities);
        if let (Some(messages), Some(hub)) = (messages, self.own.upgrade()) {
            let (uid, generation) = (server.uid, server.generation);
            let reader = thread::Builder::new().name("server-output".to_owned());
            if let Err(error) =
                reader.spawn(move || upstream::read(&hub, uid, generation, messages))
            {
                server.stop();
                let why = format!("it cannot be read: {error}");
                server.fail(why);
            }
        }
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
        print(outgoing(None, METHODS[kind], &json!({})))
    }
}

/// Writes the state of the session for the user.
fn report(store: &Store, session: &Session) {
    if let Err(error) = store.write_session(session) {
        tracing::warn!(%error, "cannot write the state of MCP servers");
    }
}

fn is_usable(state: &State) -> bool {
    !matches!(state, State::Disabled | State::Elsewhere | State::Untrusted)
}
