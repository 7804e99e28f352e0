//! One server between an agent and its own standard streams: everything passes as it was written,
//! except what the access rules refuse.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, OnceLock, mpsc},
    thread,
};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use sightline_access::redact::KeptContents;

use crate::{
    judge::{Judge, Request, Rules, refused},
    message::{Kind, MAX_MESSAGE, Message, Object, error_response, reads_only},
    process::{Line, Output, Process, Start, read_line},
};

/// A server with its agent.
struct Wrapped {
    rules: Arc<dyn Rules>,
    contents: KeptContents,
    folder: PathBuf,
    /// Name of the server in the log.
    name: String,
    /// The agent, as it names itself.
    agent: OnceLock<String>,
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
pub fn wrap(
    rules: Arc<dyn Rules>,
    folder: PathBuf,
    name: String,
    start: &Start,
) -> io::Result<i32> {
    let (process, output) = Process::start(start)?;
    let process = Arc::new(Mutex::new(Some(process)));
    let wrapped = Arc::new(Wrapped {
        rules,
        contents: KeptContents::default(),
        folder,
        name,
        agent: OnceLock::new(),
        read_only: Mutex::default(),
        requests: Mutex::default(),
        waiting: Mutex::default(),
    });
    let (agent, server) = (wrapped.clone(), process.clone());
    let end = move || {
        // `main` reads what the server still sends, until it ends.
        server.lock().take().map(|process| process.end(true))
    };
    let server = process.clone();
    let reader = thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let outcome = agent.read_agent(&server);
            (outcome, end())
        })?;
    wrapped.read_server(output)?;
    if let Some(process) = process.lock().take() {
        // It has closed its output.
        return Ok(process.end(true).unwrap_or(1));
    }
    match reader.join() {
        Ok((outcome, code)) => outcome.map(|()| code.flatten().unwrap_or(1)),
        Err(_) => Err(io::Error::other(
            "the thread that reads standard input panicked",
        )),
    }
}

type Shared = Arc<Mutex<Option<Process>>>;

impl Wrapped {
    fn judge(&self) -> Judge<'_> {
        Judge {
            rules: &*self.rules,
            contents: &self.contents,
            folder: &self.folder,
            passes_text: false,
            server: &self.name,
            agent: self.agent.get().map(String::as_str),
        }
    }

    /// Saves the workspace before a call that may write, and notes the name of the agent.
    fn before(&self, message: &Message<'_>) {
        let params = message.params();
        match message.method.as_str() {
            "tools/call" => {
                let name = params.text("name").unwrap_or_default();
                if !self.read_only.lock().contains(&name) {
                    self.rules.save_before_change();
                }
            }
            "initialize" => {
                let info = params.object("clientInfo");
                if let Some(name) = info.and_then(|info| info.text("name")) {
                    let _ = self.agent.set(name);
                }
            }
            _ => {}
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

    /// Reads the messages of the agent until its end. Requests are judged on another thread, in their
    /// order, so that a cancellation does not wait.
    fn read_agent(self: &Arc<Self>, process: &Shared) -> io::Result<()> {
        let (sender, judged) = mpsc::channel::<Vec<u8>>();
        let (wrapped, server) = (self.clone(), process.clone());
        let judges =
            thread::Builder::new()
                .name("judge".to_owned())
                .spawn(move || -> io::Result<()> {
                    for line in judged {
                        wrapped.judge_request(&server, line)?;
                    }
                    Ok(())
                })?;
        let mut input = io::stdin().lock();
        while let Some(line) = read_line(&mut input)? {
            let line = match line {
                Line::Text(line) if line.trim_ascii().is_empty() => continue,
                Line::Text(line) => line,
                Line::TooLong => {
                    let message = format!("the message is longer than {MAX_MESSAGE} bytes");
                    print(&error_response("null", -32600, &message))?;
                    continue;
                }
            };
            match Message::parse_line(&line) {
                Ok(messages) => {
                    let is_one = messages.len() == 1;
                    for message in messages {
                        let raw = if is_one {
                            line.clone()
                        } else {
                            message.members.line()
                        };
                        if message.kind == Kind::Request {
                            self.waiting.lock().insert(message.id().to_owned());
                            if sender.send(raw).is_err() {
                                return Ok(());
                            }
                        } else {
                            self.pass_on(process, &message, raw);
                        }
                    }
                }
                Err(why) => print(&error_response("null", -32700, &why))?,
            }
        }
        drop(sender);
        judges
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that judges panicked")))
    }

    /// Sends a notification or response of the agent. A request that is cancelled before it was judged is
    /// never sent.
    fn pass_on(&self, process: &Shared, message: &Message<'_>, raw: Vec<u8>) {
        if message.method == "notifications/cancelled"
            && let Some(id) = message.params().raw("requestId")
            && self.waiting.lock().remove(id.get())
        {
            return;
        }
        send(process, raw);
    }

    fn judge_request(&self, process: &Shared, line: Vec<u8>) -> io::Result<()> {
        let Ok(messages) = Message::parse_line(&line) else {
            return Ok(());
        };
        for message in messages {
            let judged = self.judge().request(&message.method, &message.params());
            let id = message.id().to_owned();
            if !self.waiting.lock().remove(&id) {
                continue;
            }
            match judged {
                Ok(request) => {
                    self.before(&message);
                    self.requests.lock().insert(id, request);
                    send(process, line.clone());
                }
                Err(why) => print(&refused(&id, &message.method, &why))?,
            }
        }
        Ok(())
    }

    /// Reads the messages of the server until its end.
    fn read_server(&self, mut output: Output) -> io::Result<()> {
        while let Some(line) = read_line(&mut output.messages)? {
            let Line::Text(line) = line else {
                tracing::warn!("a message of the server is too long");
                continue;
            };
            let messages = match Message::parse_line(&line) {
                Ok(messages) => messages,
                Err(why) => {
                    tracing::warn!(why, "a line of the server is no message");
                    continue;
                }
            };
            let is_one = messages.len() == 1;
            for mut message in messages {
                let unchanged = if is_one {
                    line.clone()
                } else {
                    message.members.line()
                };
                let judge = self.judge();
                let changed = if message.kind == Kind::Response {
                    let Some(request) = self.requests.lock().remove(message.id()) else {
                        tracing::warn!("the server has answered what was not asked");
                        continue;
                    };
                    if request.method == "tools/list" {
                        self.note_tools(&message);
                    }
                    judge.response(&request, &mut message)
                } else {
                    match judge.unasked(&mut message) {
                        Ok(changed) => changed,
                        Err(why) => {
                            tracing::warn!(method = message.method, why, "a message is left out");
                            continue;
                        }
                    }
                };
                print(&changed.unwrap_or(unchanged))?;
            }
        }
        Ok(())
    }
}

fn send(process: &Shared, line: Vec<u8>) {
    if let Some(process) = &*process.lock() {
        process.send(line);
    }
}

/// Writes a line to standard output.
fn print(line: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(line)?;
    output.write_all(b"\n")?;
    output.flush()
}
