//! One server between an agent and its own standard streams: everything passes as it was written,
//! except what the access rules refuse.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread::{self, Scope},
};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::{
    judge::{Asked, Judge, Request, Rules, refused},
    message::{Kind, Message, Object, reads_only},
    process::{Line, Output, Process, Start, print, read_line},
};

/// A server with its agent.
struct Wrapped {
    judge: Judge,
    /// The agent, as it names itself.
    agent: OnceLock<Arc<str>>,
    /// The server, until its end.
    process: Mutex<Option<Process>>,
    /// Tools that say that they change nothing.
    read_only: Mutex<HashSet<String>>,
    /// Requests of the agent without a response, by their ids as written.
    requests: Mutex<HashMap<String, Request>>,
    /// Requests that wait to be judged, by their ids as written.
    waiting: Mutex<HashSet<String>>,
}

/// Runs a server on the standard streams until one side ends. Returns the exit code of the server.
///
/// # Errors
/// If it cannot be started, or the standard streams fail.
pub fn wrap(rules: Arc<dyn Rules>, folder: PathBuf, name: &str, start: &Start) -> io::Result<i32> {
    let (process, output) = Process::start(start)?;
    let wrapped = Arc::new(Wrapped {
        judge: Judge {
            rules,
            contents: Arc::default(),
            folder: folder.into(),
            passes_text: false,
            server: name.into(),
            agent: None,
        },
        agent: OnceLock::new(),
        process: Mutex::new(Some(process)),
        read_only: Mutex::default(),
        requests: Mutex::default(),
        waiting: Mutex::default(),
    });
    let agent = wrapped.clone();
    let reader = thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let outcome = agent.read_agent();
            // `main` reads what the server still sends, until it ends.
            (outcome, agent.end())
        })?;
    wrapped.read_server(output)?;
    if let Some(code) = wrapped.end() {
        // It has closed its output.
        return Ok(code);
    }
    match reader.join() {
        Ok((outcome, code)) => outcome.map(|()| code.unwrap_or(1)),
        Err(_) => Err(io::Error::other(
            "the thread that reads standard input panicked",
        )),
    }
}

impl Wrapped {
    fn judge(&self) -> Judge {
        Judge {
            agent: self.agent.get().cloned(),
            ..self.judge.clone()
        }
    }

    /// Ends the server. Returns its exit code, or `None` if it is being ended already.
    fn end(&self) -> Option<i32> {
        let process = self.process.lock().take()?;
        Some(process.end(true).unwrap_or(1))
    }

    fn send(&self, line: Vec<u8>) {
        if let Some(process) = &*self.process.lock() {
            process.send(line);
        }
    }

    /// Notes the tools that say that they change nothing.
    fn note_tools(&self, message: &Message<'_>) {
        let tools = message.members.object("result").and_then(|result| {
            serde_json::from_str::<Vec<Box<RawValue>>>(result.raw("tools")?.get()).ok()
        });
        self.read_only.lock().extend(
            tools
                .iter()
                .flatten()
                .filter(|tool| reads_only(tool))
                .filter_map(|tool| Object::parse(tool.get()).ok()?.text("name")),
        );
    }

    /// Reads the messages of the agent until its end.
    fn read_agent(&self) -> io::Result<()> {
        let mut input = io::stdin().lock();
        thread::scope(|scope| {
            while let Some(line) = read_line(&mut input)? {
                let messages = line.of_agent()?;
                let is_one = messages.len() == 1;
                for message in messages {
                    let raw = match &line {
                        Line::Text(line) if is_one => line.clone(),
                        _ => message.members.line(),
                    };
                    if message.kind == Kind::Request {
                        self.ask(scope, &message, raw)?;
                    } else {
                        self.pass_on(&message, raw);
                    }
                }
            }
            Ok(())
        })
    }

    /// Sends a notification or response of the agent. A request that is cancelled before it was judged is
    /// never sent.
    fn pass_on(&self, message: &Message<'_>, raw: Vec<u8>) {
        if message.method == "notifications/cancelled"
            && let Some(id) = message.params().raw("requestId")
            && self.waiting.lock().remove(id.get())
        {
            return;
        }
        self.send(raw);
    }

    /// Judges a request, and sends it. If that may take time, another thread does it, so that others and a
    /// cancellation do not wait.
    fn ask<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        message: &Message<'_>,
        raw: Vec<u8>,
    ) -> io::Result<()> {
        let params = message.params();
        let name = params.text("name").unwrap_or_default();
        if let Some(info) = params.object("clientInfo")
            && let Some(name) = info.text("name")
        {
            // The first one counts.
            let _ = self.agent.set(name.into());
        }
        let id = message.id().to_owned();
        let reads_only = self.read_only.lock().contains(&name);
        match self.judge().read(&message.method, &params, reads_only) {
            Err(why) => print(refused(&id, &message.method, &why)),
            Ok(asked) if asked.is_quick(&*self.judge.rules) => {
                self.decide(id, asked, raw, |_| true)
            }
            Ok(asked) => {
                self.waiting.lock().insert(id.clone());
                let work = move || {
                    // A closed output ends the session elsewhere.
                    let _ = self.decide(id, asked, raw, |id| self.waiting.lock().remove(id));
                };
                thread::Builder::new()
                    .name("judge".to_owned())
                    .spawn_scoped(scope, work)?;
                Ok(())
            }
        }
    }

    fn decide(
        &self,
        id: String,
        asked: Asked,
        raw: Vec<u8>,
        is_wanted: impl FnOnce(&str) -> bool,
    ) -> io::Result<()> {
        let method = asked.method().to_owned();
        let decided = self.judge().decide(asked);
        if !is_wanted(&id) {
            return Ok(());
        }
        match decided {
            Ok(request) => {
                self.requests.lock().insert(id, request);
                self.send(raw);
                Ok(())
            }
            Err(why) => print(refused(&id, &method, &why)),
        }
    }

    /// Takes the request that a response is for. The id `null`, of a server that could not read it, means the
    /// only request.
    fn answered(&self, id: &str) -> Option<(String, Request)> {
        let mut requests = self.requests.lock();
        let only = requests.keys().next().filter(|_| requests.len() == 1);
        let id = only
            .filter(|_| id == "null")
            .map_or(id, |only| only)
            .to_owned();
        // Some servers send it as a string.
        let as_number = id.trim_matches('"');
        requests
            .remove_entry(&id)
            .or_else(|| requests.remove_entry(as_number))
    }

    /// Reads the messages of the server until its end.
    fn read_server(&self, mut output: Output) -> io::Result<()> {
        while let Some(line) = read_line(&mut output.messages)? {
            let messages = match line.messages() {
                Ok(messages) => messages,
                Err(why) => {
                    tracing::warn!(why, "a line of the server is no message");
                    let id = line.broken_id();
                    if let Some((id, request)) = id.and_then(|id| self.answered(&id)) {
                        print(refused(&id, &request.method, &why))?;
                    }
                    continue;
                }
            };
            let mut is_whole = messages.len() == 1;
            for mut message in messages {
                let judge = self.judge();
                let changed = if message.kind == Kind::Response {
                    let Some((id, request)) = self.answered(message.id()) else {
                        tracing::warn!("the server has answered what was not asked");
                        continue;
                    };
                    if id != message.id() {
                        let own: &RawValue = serde_json::from_str(&id).unwrap_or(RawValue::NULL);
                        message.members.set("id", &own).map_err(io::Error::other)?;
                        is_whole = false;
                    }
                    if request.method == "tools/list" {
                        self.note_tools(&message);
                    }
                    judge.response(&request, &mut message).changed
                } else {
                    match judge.unasked(&mut message) {
                        Ok(changed) => changed,
                        Err(why) => {
                            tracing::warn!(method = message.method, why, "a message is left out");
                            continue;
                        }
                    }
                };
                print(changed.unwrap_or_else(|| match &line {
                    Line::Text(line) if is_whole => line.clone(),
                    _ => message.members.line(),
                }))?;
            }
        }
        Ok(())
    }
}
