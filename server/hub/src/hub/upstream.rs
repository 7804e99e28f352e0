//! Messages of servers.

use std::{
    io::{self, BufRead},
    time::Instant,
};

use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};

use super::{
    Asked, Hub,
    hosted::{LISTS, Purpose, State},
};
use crate::{
    judge::{Judge, Request, refused},
    message::{Kind, Message, Object, error_response, outgoing, response},
    process::{Line, print, read_line},
};

/// What is judged before the agent gets it.
enum Pending {
    Nothing,
    /// The answer to a call.
    Answer(Judge, Request),
    /// A notification.
    Notification(Judge),
}

/// Reads the messages of a server until its end. Then ends its process.
pub(super) fn read(hub: &Mutex<Hub>, uid: u64, generation: u64, mut messages: impl BufRead) {
    let mut outcome = Ok(());
    while let Ok(Some(line)) = read_line(&mut messages) {
        outcome = read_message(hub, uid, generation, line);
        if outcome.is_err() {
            break;
        }
    }
    let mut guard = hub.lock();
    let at = guard.current(uid, generation);
    let process = at.and_then(|at| guard.servers[at].process.take());
    if let Some(process) = process {
        drop(guard);
        let code = process.end(true);
        guard = hub.lock();
        outcome = outcome.and_then(|()| guard.server_gone(uid, generation, code));
    }
    if outcome.is_err() {
        // The agent has closed its input.
        let _ = guard.ended.send(outcome);
    }
}

/// Handles a line of a server. What it sends is judged without the lock, in its order.
fn read_message(hub: &Mutex<Hub>, uid: u64, generation: u64, line: Line) -> io::Result<()> {
    let log = |text: &str| {
        let hub = hub.lock();
        if let Some(at) = hub.current(uid, generation) {
            hub.log(at, text);
        }
    };
    let messages = match line.messages() {
        Ok(messages) => messages,
        Err(why) => {
            log(&line.shown());
            let hub_now = hub.lock();
            let Some(error) = hub_now.in_place_of(uid, generation, &line, &why) else {
                return Ok(());
            };
            drop(hub_now);
            return read_message(hub, uid, generation, Line::Text(error));
        }
    };
    for mut message in messages {
        let pending = {
            let mut hub = hub.lock();
            let Some(at) = hub.current(uid, generation) else {
                return Ok(());
            };
            let pending = match message.kind {
                Kind::Response => hub.server_response(at, &mut message)?,
                Kind::Request => {
                    hub.server_request(at, &mut message)?;
                    Pending::Nothing
                }
                Kind::Notification => hub.server_notification(at, &mut message)?,
            };
            hub.answer_lists()?;
            pending
        };
        let changed = match pending {
            Pending::Nothing => continue,
            Pending::Answer(judge, request) => {
                let judged = judge.response(&request, &mut message);
                if judged.is_error {
                    let mut hub = hub.lock();
                    if let Some(at) = hub.current(uid, generation) {
                        hub.servers[at].errors += 1;
                    }
                }
                judged.changed
            }
            Pending::Notification(judge) => match judge.unasked(&mut message) {
                Ok(changed) => changed,
                Err(why) => {
                    log(&format!("a notification is left out: {why}"));
                    continue;
                }
            },
        };
        print(changed.unwrap_or_else(|| message.members.line()))?;
    }
    Ok(())
}

impl Hub {
    fn log(&self, at: usize, text: &str) {
        let server = &self.servers[at];
        server.log(&server.masked(&sightline_base::escape::printable(text)));
    }

    /// Returns an error in place of a line that is not a message, if a request waits for it.
    fn in_place_of(&self, uid: u64, generation: u64, line: &Line, why: &str) -> Option<Vec<u8>> {
        let server = &self.servers[self.current(uid, generation)?];
        let id = server.answered(&line.broken_id()?)?;
        let purpose = &server.in_flight.get(&id)?.purpose;
        let (id, name) = (id.to_string(), &server.server.name);
        let Purpose::Call { request, .. } = purpose else {
            return Some(error_response(&id, -32603, why.trim_end_matches('.')));
        };
        let why = format!("{why} The user can read `sightline mcp log {name}`");
        Some(refused(&id, &request.method, &why))
    }

    /// Uses the answer to a request.
    fn server_response(&mut self, at: usize, message: &mut Message<'_>) -> io::Result<Pending> {
        let server = &mut self.servers[at];
        let id = server.answered(message.id());
        let Some(answered) = id.and_then(|id| server.in_flight.remove(&id)) else {
            return Ok(Pending::Nothing);
        };
        server.used = Instant::now();
        match answered.purpose {
            Purpose::Dropped => {}
            Purpose::Initialize => match message.members.object("result") {
                Some(result) => {
                    server.initialized(&result);
                    if let Some(level) = &self.log_level {
                        server.set_log_level(level);
                    }
                    if !server.awaits_lists() {
                        self.use_lists(at)?;
                    }
                }
                None => {
                    let error = message.members.object("error");
                    let why = error.and_then(|error| error.text("message"));
                    server.stop();
                    server.fail(format!("it refused to start: {}", why.unwrap_or_default()));
                    self.answer_all_of(at)?;
                }
            },
            Purpose::List { kind, items } => {
                let error = message.members.object("error");
                let result = message.members.object("result").unwrap_or_default();
                // Servers with resources need not have templates.
                let is_unknown =
                    |error: &Object<'_>| error.raw("code").map(RawValue::get) == Some("-32601");
                match error.filter(|error| !is_unknown(error)) {
                    Some(error) => self.not_listed(at, kind, &error)?,
                    None if server.listed(kind, items, &result) => self.use_lists(at)?,
                    None => {}
                }
            }
            Purpose::Call {
                id,
                request,
                is_task,
                ..
            } => {
                let task = || {
                    let result = message.members.object("result")?;
                    result.object("task")?.text("taskId")
                };
                if let Some(task) = is_task.then(task).flatten() {
                    self.tasks.insert(task, server.uid);
                }
                if self.calls.remove(&id).is_none() {
                    return Ok(Pending::Nothing);
                }
                // It was read from a message.
                let own: &RawValue = serde_json::from_str(&id).unwrap_or(RawValue::NULL);
                message.members.set("id", &own).map_err(io::Error::other)?;
                return Ok(Pending::Answer(self.judge(at), request));
            }
        }
        Ok(Pending::Nothing)
    }

    /// Uses an error in place of a list. Without tools, a server cannot be used; the lists of an earlier start stay.
    fn not_listed(&mut self, at: usize, kind: usize, error: &Object<'_>) -> io::Result<()> {
        let server = &mut self.servers[at];
        let message = error.text("message").unwrap_or_default();
        let why = format!("it refused {}: {message}", LISTS[kind].1);
        if kind == 0 && server.lists.is_none() {
            server.stop();
            server.fail(why);
            return self.answer_all_of(at);
        }
        server.log(&format!("--- {}", server.masked(&why)));
        server.keep_list(kind);
        match server.awaits_lists() {
            true => Ok(()),
            false => self.use_lists(at),
        }
    }

    /// Uses the lists that a server sent, and reports changes to the agent.
    fn use_lists(&mut self, at: usize) -> io::Result<()> {
        let server = &mut self.servers[at];
        let was_known = server.lists.is_some();
        let accepted = self
            .state
            .accepted
            .get(&server.server.name)
            .copied()
            .unwrap_or_default();
        let mut changed = server.use_lists(accepted);
        // One notification is for both lists of resources.
        if changed.contains(&2) {
            changed.retain(|kind| *kind != 3);
        }
        if was_known || self.waiting.is_empty() {
            for kind in changed {
                self.notify_changed(kind)?;
            }
        }
        Ok(())
    }

    /// Answers a request of a server, or passes it to the agent.
    fn server_request(&mut self, at: usize, message: &mut Message<'_>) -> io::Result<()> {
        let own = message.id().to_owned();
        let server = &self.servers[at];
        let capability = match message.method.as_str() {
            "ping" => {
                server.send(response(&own, &json!({})));
                return Ok(());
            }
            // Servers use them in place of their arguments, so the roots of the agent do not count.
            "roots/list" => {
                let root =
                    sightline_base::path::AbsPath::new(&self.setup.root).map(|root| root.to_uri());
                server.send(response(&own, &json!({ "roots": [{ "uri": root }] })));
                return Ok(());
            }
            "sampling/createMessage" => Some("sampling"),
            "elicitation/create" => Some("elicitation"),
            // The agent says if it does not know it.
            _ => None,
        };
        let offered = self.agent.as_ref().is_some_and(|(_, own)| {
            capability.is_none_or(|capability| own.get(capability).is_some())
        });
        if !offered {
            let why = format!("the client does not support {}", message.method);
            server.send(error_response(&own, -32601, &why));
            return Ok(());
        }
        if let Err(why) = self.judge(at).unasked(message) {
            server.send(error_response(&own, -32603, &format!("sightline: {why}")));
            return Ok(());
        }
        if capability == Some("elicitation")
            && let Some(raw) = message.members.raw("params")
            && let Ok(mut params) = serde_json::from_str::<Value>(raw.get())
        {
            let text = params["message"].as_str().unwrap_or_default();
            params["message"] = format!("{}: {text}", server.server.name).into();
            let _ = message.members.set("params", &params);
        }
        self.next_asked += 1;
        let asked = Asked {
            uid: server.uid,
            generation: server.generation,
            id: own,
            token: message.params().progress_token(),
        };
        self.asked.insert(self.next_asked, asked);
        message
            .members
            .set("id", &self.next_asked)
            .map_err(io::Error::other)?;
        print(message.members.line())
    }

    /// Uses a notification of a server.
    fn server_notification(&mut self, at: usize, message: &mut Message<'_>) -> io::Result<Pending> {
        let server = &mut self.servers[at];
        let params = message.params();
        match message.method.as_str() {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                server.note_change();
                return Ok(Pending::Nothing);
            }
            "notifications/progress" => {
                let id = params
                    .raw("progressToken")
                    .and_then(|raw| raw.get().parse::<u64>().ok());
                let Some(request) = id.and_then(|id| server.in_flight.get_mut(&id)) else {
                    return Ok(Pending::Nothing);
                };
                request.last = Instant::now();
                let Purpose::Call {
                    token: Some(token), ..
                } = &request.purpose
                else {
                    return Ok(Pending::Nothing);
                };
                // It was read from a message.
                let token: &RawValue = serde_json::from_str(token).unwrap_or(RawValue::NULL);
                let mut own = params.clone();
                let written = own
                    .set("progressToken", &token)
                    .and_then(|()| serde_json::value::to_raw_value(&own));
                drop((params, own));
                let params = written.map_err(io::Error::other)?;
                message
                    .members
                    .set("params", &params)
                    .map_err(io::Error::other)?;
            }
            "notifications/message" => {
                self.log(at, params.raw("data").map_or("", RawValue::get));
                if self.log_level.is_none() {
                    return Ok(Pending::Nothing);
                }
            }
            "notifications/resources/updated" => {
                let uri = params.text("uri").unwrap_or_default();
                if !self.subscribed.contains(&uri) {
                    return Ok(Pending::Nothing);
                }
            }
            "notifications/cancelled" => {
                let own = params.raw("requestId").map(RawValue::get);
                let uid = server.uid;
                let asked = self
                    .asked
                    .iter()
                    .find(|(_, asked)| asked.uid == uid && Some(&*asked.id) == own);
                if let Some(id) = asked.map(|(id, _)| *id) {
                    self.asked.remove(&id);
                    let params = json!({ "requestId": id });
                    print(outgoing(None, &message.method, &params))?;
                }
                return Ok(Pending::Nothing);
            }
            _ => {}
        }
        Ok(Pending::Notification(self.judge(at)))
    }

    /// Notes that a server has ended without being asked.
    fn server_gone(&mut self, uid: u64, generation: u64, code: Option<i32>) -> io::Result<()> {
        let Some(at) = self.current(uid, generation) else {
            return Ok(());
        };
        let server = &mut self.servers[at];
        if matches!(server.state, State::Starting | State::Ready) {
            server.crash(code);
        }
        server.generation += 1;
        self.answer_all_of(at)?;
        self.answer_lists()
    }

    /// Returns the number of a server, if this is its process.
    fn current(&self, uid: u64, generation: u64) -> Option<usize> {
        self.position(uid)
            .filter(|at| self.servers[*at].generation == generation)
    }
}
