//! Messages of servers.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json, value::RawValue};

use super::{
    Event, Hub,
    hosted::{Purpose, State},
    messages, print,
};
use crate::{
    judge::refused,
    message::{Kind, Message, Object},
    process::Line,
};

/// Time to wait for more changes of lists.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// Results that are larger are judged on another thread, so that others do not wait.
const MAX_INLINE: usize = 16 << 10;

impl Hub {
    pub(super) fn server_line(&mut self, uid: u64, generation: u64, line: Line) -> io::Result<()> {
        let Some(at) = self.current(uid, generation) else {
            return Ok(());
        };
        let Line::Text(line) = line else {
            return self.log(at, "a message that is too long");
        };
        let messages = match messages(&line) {
            Ok(messages) => messages,
            Err(_) => return self.log(at, &String::from_utf8_lossy(&line)),
        };
        for message in messages {
            match message.kind {
                Kind::Response => self.server_response(at, message)?,
                Kind::Request => self.server_request(at, message)?,
                Kind::Notification => self.server_notification(at, message)?,
            }
        }
        Ok(())
    }

    fn log(&self, at: usize, text: &str) -> io::Result<()> {
        let server = &self.servers[at];
        let text = server.masked(&sightline_base::escape::printable(text));
        self.setup
            .manager
            .store
            .log(&server.server.name, &format!("{text}\n"));
        Ok(())
    }

    fn server_response(&mut self, at: usize, mut message: Message<'_>) -> io::Result<()> {
        let server = &mut self.servers[at];
        let id = message.id().parse::<u64>().ok();
        let Some(answered) = id.and_then(|id| server.in_flight.remove(&id)) else {
            return Ok(());
        };
        server.used = Instant::now();
        let own = message.members.clone();
        let result = own.object("result");
        match answered.purpose {
            Purpose::Dropped => Ok(()),
            Purpose::Initialize => {
                match result {
                    Some(result) => {
                        server.initialized(&result);
                        if server.capabilities.get("logging").is_some() && self.wants_log {
                            server.request(
                                "logging/setLevel",
                                &json!({ "level": "info" }),
                                Purpose::Dropped,
                            );
                        }
                        if server
                            .in_flight
                            .values()
                            .all(|request| !matches!(request.purpose, Purpose::List { .. }))
                        {
                            self.use_lists(at)?;
                        }
                    }
                    None => {
                        let error = message
                            .members
                            .object("error")
                            .and_then(|error| error.text("message"));
                        server.stop();
                        server.fail(
                            format!("it refused to start: {}", error.unwrap_or_default()),
                            &self.setup.manager.store,
                        );
                        self.answer_all_of(at)?;
                    }
                }
                Ok(())
            }
            Purpose::List { kind, items } => {
                if server.listed(kind, items, result.as_ref()) {
                    self.use_lists(at)?;
                }
                Ok(())
            }
            Purpose::Call { id, request, .. } => {
                if self.calls.remove(&id).is_none() {
                    return Ok(());
                }
                let own: Result<&RawValue, _> = serde_json::from_str(&id);
                if own.is_ok_and(|own| message.members.set("id", &own).is_err()) {
                    return print(&refused(
                        &id,
                        &request.method,
                        "the answer cannot be written",
                    ));
                }
                let is_error = result.as_ref().is_none_or(|result| {
                    result.raw("isError").is_some_and(|raw| raw.get() == "true")
                });
                server.errors += u64::from(is_error);
                let line = message.members.line();
                if line.len() <= MAX_INLINE {
                    let changed = self.judge(at, |judge| judge.response(&request, &mut message));
                    return print(&changed.unwrap_or(line));
                }
                self.judge_later(at, move |judge| {
                    let judged = messages(&line).ok().and_then(|mut messages| {
                        let changed = judge.response(&request, messages.first_mut()?);
                        Some(changed.unwrap_or_else(|| line.clone()))
                    });
                    // A closed output ends the session elsewhere.
                    let _ = print(&judged.unwrap_or_else(|| {
                        refused(&id, &request.method, "the answer cannot be read")
                    }));
                })?;
                Ok(())
            }
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
        let mut changed = server.use_lists(&self.setup.manager.store, accepted);
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
    fn server_request(&mut self, at: usize, mut message: Message<'_>) -> io::Result<()> {
        let own = message.id().to_owned();
        let answer = |result: Value| {
            let mut line = Object::default();
            let id: &RawValue = serde_json::from_str(&own).unwrap_or(RawValue::NULL);
            for outcome in [line.set("jsonrpc", &"2.0"), line.set("id", &id)] {
                debug_assert!(outcome.is_ok());
            }
            let member = if result.get("code").is_some() {
                "error"
            } else {
                "result"
            };
            let _ = line.set(member, &result);
            line.line()
        };
        let capability = match message.method.as_str() {
            "ping" => {
                self.servers[at].send(answer(json!({})));
                return Ok(());
            }
            // Servers use them in place of their arguments, so the roots of the agent do not count.
            "roots/list" => {
                let root =
                    sightline_base::path::AbsPath::new(&self.setup.root).map(|root| root.to_uri());
                self.servers[at].send(answer(json!({ "roots": [{ "uri": root }] })));
                return Ok(());
            }
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            _ => "",
        };
        let offered = self
            .agent
            .as_ref()
            .is_some_and(|(_, own)| own.get(capability).is_some());
        if !offered {
            let why = format!("the client does not support {}", message.method);
            self.servers[at].send(answer(json!({ "code": -32601, "message": why })));
            return Ok(());
        }
        let judged = self.judge(at, |judge| judge.unasked(&mut message));
        if let Err(why) = judged {
            self.servers[at].send(answer(
                json!({ "code": -32603, "message": format!("sightline: {why}") }),
            ));
            return Ok(());
        }
        if capability == "elicitation"
            && let Some(raw) = message.members.raw("params")
            && let Ok(mut params) = serde_json::from_str::<Value>(raw.get())
        {
            let text = params["message"].as_str().unwrap_or_default();
            params["message"] = format!("{}: {text}", self.servers[at].server.name).into();
            let _ = message.members.set("params", &params);
        }
        self.next_asked += 1;
        let server = &self.servers[at];
        self.asked.insert(
            self.next_asked,
            (server.uid, server.generation, own.clone()),
        );
        match message.members.set("id", &self.next_asked) {
            Ok(()) => print(&message.members.line()),
            Err(_) => Ok(()),
        }
    }

    fn server_notification(&mut self, at: usize, mut message: Message<'_>) -> io::Result<()> {
        let server = &mut self.servers[at];
        let params = message.params();
        match message.method.as_str() {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                server.fetch_at = Some(Instant::now() + DEBOUNCE);
                return Ok(());
            }
            "notifications/progress" => {
                let id = params
                    .raw("progressToken")
                    .and_then(|raw| raw.get().parse::<u64>().ok());
                let Some(request) = id.and_then(|id| server.in_flight.get_mut(&id)) else {
                    return Ok(());
                };
                request.last = Instant::now();
                let Purpose::Call {
                    token: Some(token), ..
                } = &request.purpose
                else {
                    return Ok(());
                };
                let token: Value = serde_json::from_str(token).unwrap_or_default();
                let mut own = params.clone();
                if own.set("progressToken", &token).is_err() {
                    return Ok(());
                }
                let own = serde_json::value::to_raw_value(&own);
                drop(params);
                if own.is_ok_and(|own| message.members.set("params", &own).is_err()) {
                    return Ok(());
                }
            }
            "notifications/message" => {
                let text = params.raw("data").map_or("", RawValue::get).to_owned();
                self.log(at, &text)?;
                if !self.wants_log {
                    return Ok(());
                }
            }
            "notifications/resources/updated" => {
                let uri = params.text("uri").unwrap_or_default();
                if !self.subscribed.contains(&uri) {
                    return Ok(());
                }
            }
            "notifications/cancelled" => {
                let own = params.raw("requestId").map(RawValue::get);
                let uid = server.uid;
                let asked = self
                    .asked
                    .iter()
                    .find(|(_, (asking, _, id))| *asking == uid && Some(&**id) == own);
                if let Some(id) = asked.map(|(id, _)| *id) {
                    self.asked.remove(&id);
                    let params = json!({ "requestId": id });
                    let line =
                        json!({ "jsonrpc": "2.0", "method": message.method, "params": params });
                    return print(line.to_string().as_bytes());
                }
                return Ok(());
            }
            _ => {}
        }
        let unchanged = message.members.line();
        match self.judge(at, |judge| judge.unasked(&mut message)) {
            Ok(changed) => print(&changed.unwrap_or(unchanged)),
            Err(why) => self.log(at, &format!("a notification is left out: {why}")),
        }
    }

    /// Ends a server that has closed its output.
    pub(super) fn server_ended(&mut self, uid: u64, generation: u64) -> io::Result<()> {
        let Some(at) = self.current(uid, generation) else {
            return Ok(());
        };
        let Some(process) = self.servers[at].process.take() else {
            return Ok(());
        };
        let events = self.events.clone();
        thread::Builder::new()
            .name("server-end".to_owned())
            .spawn(move || {
                let code = process.end(true);
                // The session may be over.
                let _ = events.send(Event::ServerGone {
                    uid,
                    generation,
                    code,
                });
            })?;
        Ok(())
    }

    /// Notes that a server has ended without being asked.
    pub(super) fn server_gone(
        &mut self,
        uid: u64,
        generation: u64,
        code: Option<i32>,
    ) -> io::Result<()> {
        let Some(at) = self.current(uid, generation) else {
            return Ok(());
        };
        let server = &mut self.servers[at];
        if matches!(server.state, State::Starting | State::Ready) {
            server.crash(code, &self.setup.manager.store);
        }
        server.generation += 1;
        self.answer_all_of(at)
    }

    /// Returns the number of a server, if this is its process.
    fn current(&self, uid: u64, generation: u64) -> Option<usize> {
        self.position(uid)
            .filter(|at| self.servers[*at].generation == generation)
    }
}
