//! Messages of the agent.

use std::{
    collections::HashSet,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Weak,
    thread,
    time::Instant,
};

use serde_json::{Map, Value, json, value::RawValue};

use parking_lot::Mutex;

use super::{
    Call, Hub,
    hosted::{LISTS, Purpose, State},
    names::{name_of, renamed, shown},
};
use crate::{
    judge::{Asked, Judge, Request, refused},
    message::{Kind, Message, Object, error_response, outgoing, response, tool_error},
    process::{Line, print},
};

/// Versions of the protocol that agents may use.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

impl Hub {
    pub(super) fn client_line(&mut self, line: &Line) -> io::Result<()> {
        for message in line.of_agent()? {
            match message.kind {
                Kind::Request => self.client_request(&message)?,
                Kind::Notification => self.client_notification(&message),
                Kind::Response => self.client_response(message),
            }
        }
        self.answer_lists()
    }

    fn client_request(&mut self, message: &Message<'_>) -> io::Result<()> {
        let id = message.id();
        let params = message.params();
        match message.method.as_str() {
            "initialize" => print(response(id, &self.initialize(&params))),
            "ping" => print(response(id, &json!({}))),
            // Agents that ask for it continue with `initialize`.
            "server/discover" => {
                print(error_response(id, -32601, "unknown method server/discover"))
            }
            "logging/setLevel" => {
                let level = params.text("level").unwrap_or_default();
                for server in &mut self.servers {
                    server.set_log_level(&level);
                }
                self.log_level = Some(level);
                print(response(id, &json!({})))
            }
            "tools/call" => self.call_tool(id, &params),
            "prompts/get" => {
                let name = params.text("name").unwrap_or_default();
                match self.find_prompt(&name) {
                    Some((at, prompt)) => {
                        self.call(at, id, &message.method, &params, &[("name", prompt.into())])
                    }
                    None => print(error_response(
                        id,
                        -32602,
                        &format!("there is no prompt {name}"),
                    )),
                }
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let uri = params.text("uri").unwrap_or_default();
                match self.owner_of(&uri) {
                    Some((at, own)) => {
                        match message.method.as_str() {
                            "resources/subscribe" if self.subscribed.insert(uri) => {
                                self.servers[at].subscriptions += 1
                            }
                            "resources/unsubscribe" if self.subscribed.remove(&own) => {
                                let count = &mut self.servers[at].subscriptions;
                                *count = count.saturating_sub(1);
                            }
                            _ => {}
                        }
                        self.call(at, id, &message.method, &params, &[("uri", own.into())])
                    }
                    None => print(error_response(
                        id,
                        -32002,
                        &format!("no server has the resource {uri}"),
                    )),
                }
            }
            "completion/complete" => {
                let mut reference: Value = params
                    .raw("ref")
                    .and_then(|raw| serde_json::from_str(raw.get()).ok())
                    .unwrap_or_default();
                let owner = match (reference["name"].as_str(), reference["uri"].as_str()) {
                    (Some(name), _) => self.find_prompt(name).map(|(at, own)| (at, "name", own)),
                    (_, Some(uri)) => self.owner_of(uri).map(|(at, own)| (at, "uri", own)),
                    _ => None,
                };
                match owner {
                    Some((at, member, own)) => {
                        reference[member] = own.into();
                        self.call(at, id, &message.method, &params, &[("ref", reference)])
                    }
                    None => print(error_response(
                        id,
                        -32602,
                        "no server has this prompt or resource",
                    )),
                }
            }
            method => match LISTS.iter().position(|(_, list, _)| *list == method) {
                Some(kind) => self.list(id, kind),
                // Only servers may know it.
                None => match self.owner_of_params(&params) {
                    Some((at, own)) => self.call(at, id, method, &params, own.as_slice()),
                    None => print(error_response(
                        id,
                        -32601,
                        &format!("unknown method {method}"),
                    )),
                },
            },
        }
    }

    fn initialize(&mut self, params: &Object<'_>) -> Value {
        let parsed = |name: &str| -> Value {
            let raw = params.raw(name).map_or("{}", RawValue::get);
            serde_json::from_str(raw).unwrap_or_default()
        };
        let name = parsed("clientInfo")["name"]
            .as_str()
            .unwrap_or_default()
            .into();
        self.agent = Some((name, parsed("capabilities")));
        // The servers and their parameters depend on the name of the agent.
        self.versions.clear();
        for mut server in std::mem::take(&mut self.servers) {
            server.stop();
        }
        self.configure();
        let wanted = params.text("protocolVersion").unwrap_or_default();
        let version = VERSIONS
            .into_iter()
            .find(|known| *known == wanted)
            .unwrap_or(VERSIONS[3]);
        let capabilities = match self.setup.servers {
            Some(_) => json!({
                "tools": { "listChanged": true }, "prompts": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true }, "logging": {}, "completions": {},
            }),
            None => json!({ "tools": {} }),
        };
        json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": self.setup.info,
            "instructions": self.setup.instructions,
        })
    }

    fn client_notification(&mut self, message: &Message<'_>) {
        let params = message.params();
        match message.method.as_str() {
            "notifications/cancelled" => {
                if let Some(id) = params.raw("requestId") {
                    self.cancel(id.get(), params.text("reason"));
                }
            }
            // Servers are started later, and have the roots of the workspace.
            "notifications/initialized" | "notifications/roots/list_changed" => {}
            "notifications/progress" => {
                let token = params.raw("progressToken").map(RawValue::get);
                let is_its =
                    |asked: &&super::Asked| token.is_some() && asked.token.as_deref() == token;
                let server = self.asked.values().find(is_its).map(|asked| asked.uid);
                if let Some(at) = server.and_then(|uid| self.position(uid)) {
                    self.servers[at].send(message.members.line());
                }
            }
            method => {
                if let Some((at, own)) = self.owner_of_params(&params)
                    && self.servers[at].state == State::Ready
                {
                    let mut params = params.clone();
                    if own.is_none_or(|(name, value)| params.set(name, &value).is_ok()) {
                        self.servers[at].send(outgoing(None, method, &params));
                    }
                }
            }
        }
    }

    /// Cancels a request of the agent.
    fn cancel(&mut self, id: &str, reason: Option<String>) {
        if let Some((uid, upstream)) = self.calls.remove(id)
            && let (Some(at), Some(upstream)) = (self.position(uid), upstream)
        {
            let reason = reason.unwrap_or_else(|| "the agent cancelled it".to_owned());
            self.servers[at].cancel(upstream, &reason);
        }
        self.waiting.retain(|(waiting, ..)| waiting != id);
    }

    /// Passes the answer of the agent to the server that asked.
    fn client_response(&mut self, mut message: Message<'_>) {
        let id = message.id().parse::<u64>().ok();
        let Some(asked) = id.and_then(|id| self.asked.remove(&id)) else {
            return;
        };
        let own: Result<&RawValue, _> = serde_json::from_str(&asked.id);
        if let (Some(at), Ok(own)) = (self.position(asked.uid), own)
            && self.servers[at].generation == asked.generation
            && message.members.set("id", &own).is_ok()
        {
            self.servers[at].send(message.members.line());
        }
    }

    fn call_tool(&mut self, id: &str, params: &Object<'_>) -> io::Result<()> {
        // The user may have changed the servers just now.
        self.reconfigure()?;
        let name = params.text("name").unwrap_or_default();
        if let Some((at, own)) = self.find_tool(&name) {
            return self.call(at, id, "tools/call", params, &[("name", own.into())]);
        }
        let arguments = params.raw("arguments").map_or("{}", RawValue::get);
        let arguments: Map<String, Value> = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                return print(error_response(
                    id,
                    -32602,
                    &format!("invalid arguments: {error}"),
                ));
            }
        };
        let (own, id) = (self.setup.own.clone(), id.to_owned());
        let agent = self.agent.as_ref().map(|(name, _)| name.clone());
        thread::Builder::new()
            .name("tool".to_owned())
            .spawn(move || {
                let agent = agent.unwrap_or_default();
                // A panic fails this call only.
                let call = AssertUnwindSafe(|| own.call(&name, arguments, &agent));
                let line = match catch_unwind(call) {
                    Ok(Some(result)) => response(&id, &result),
                    Ok(None) => error_response(&id, -32602, &format!("there is no tool {name}")),
                    Err(_) => response(&id, &tool_error(&format!("{name} failed"))),
                };
                // A closed output ends the session elsewhere.
                let _ = print(line);
            })?;
        Ok(())
    }

    /// Judges a request for a server, with other values of some params, and sends it then. If that may take
    /// time, another thread does it.
    fn call(
        &mut self,
        at: usize,
        id: &str,
        method: &str,
        params: &Object<'_>,
        own: &[(&'static str, Value)],
    ) -> io::Result<()> {
        let mut params = params.clone().into_owned();
        let set = own
            .iter()
            .try_for_each(|(name, value)| params.set(name, value));
        if let Err(error) = set {
            let why = format!("invalid params: {error}");
            return print(error_response(id, -32602, &why));
        }
        let token = params.progress_token();
        let judge = self.judge(at);
        let server = &mut self.servers[at];
        server.calls += 1;
        let call = Call {
            uid: server.uid,
            id: id.to_owned(),
            method: method.to_owned(),
            params,
            token,
        };
        let tool = call.params.text("name").unwrap_or_default();
        let reads_only = server
            .tools
            .iter()
            .any(|it| it.name == tool && it.reads_only);
        self.calls.insert(id.to_owned(), (call.uid, None));
        match judge.read(method, &call.params, reads_only) {
            Err(why) => self.judged(call, Err(why)),
            Ok(asked) if asked.is_quick(&*self.setup.rules) => {
                self.judged(call, judge.decide(asked))
            }
            Ok(asked) => {
                let hub = self.own.clone();
                thread::Builder::new()
                    .name("judge".to_owned())
                    .spawn(move || judge_call(&hub, &judge, call, asked))?;
                Ok(())
            }
        }
    }

    /// Sends a request that was judged.
    fn judged(&mut self, call: Call, outcome: Result<Request, String>) -> io::Result<()> {
        if !self.calls.contains_key(&call.id) {
            // It was cancelled.
            return Ok(());
        }
        let at = self.position(call.uid);
        let sent = outcome.and_then(|request| {
            let at = at.ok_or("the configuration of its server has changed")?;
            self.ensure_started(at)?;
            Ok((at, request))
        });
        let (at, judged) = match sent {
            Ok(sent) => sent,
            Err(why) => {
                self.calls.remove(&call.id);
                if let Some(at) = at {
                    self.servers[at].errors += 1;
                }
                return print(refused(&call.id, &call.method, &why));
            }
        };
        let server = &mut self.servers[at];
        let id = server.next(Purpose::Call {
            id: call.id.clone(),
            token: call.token,
            is_task: call.params.raw("task").is_some(),
            request: judged,
        });
        let mut params = call.params;
        let mut meta = params.object("_meta").unwrap_or_default();
        let written = meta
            .set("progressToken", &id)
            .and_then(|()| serde_json::value::to_raw_value(&meta));
        drop(meta);
        if let Err(error) = written.and_then(|meta| params.set("_meta", &meta)) {
            server.in_flight.remove(&id);
            self.calls.remove(&call.id);
            return print(refused(&call.id, &call.method, &error.to_string()));
        }
        let line = outgoing(Some(id), &call.method, &params);
        if server.state == State::Ready {
            server.send(line);
        } else {
            server.queue.push(line);
        }
        self.calls.insert(call.id, (call.uid, Some(id)));
        Ok(())
    }

    /// Answers a request for a list, when the lists of all servers are known.
    fn list(&mut self, id: &str, kind: usize) -> io::Result<()> {
        // The user may have changed the servers just now.
        self.reconfigure()?;
        let mut limit = Instant::now();
        for at in 0..self.servers.len() {
            let server = &self.servers[at];
            if server.lists.is_none() && matches!(server.state, State::Idle | State::Starting) {
                limit = limit.max(Instant::now() + server.patience());
                if let Err(why) = self.ensure_started(at) {
                    tracing::warn!(why, "a server is not listed");
                }
            }
        }
        self.waiting.push((id.to_owned(), kind, limit));
        Ok(())
    }

    /// Answers the requests for lists that need not wait any more.
    pub(super) fn answer_lists(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let unknown = self.servers.iter().any(|server| {
            server.lists.is_none() && matches!(server.state, State::Starting | State::Ready)
        });
        let now = Instant::now();
        let (ready, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, _, limit)| !unknown || *limit <= now);
        self.waiting = waiting;
        for (id, kind, _) in ready {
            print(self.listed(&id, kind))?;
        }
        Ok(())
    }

    /// Returns the answer to a request for a list.
    fn listed(&self, id: &str, kind: usize) -> Vec<u8> {
        let (_, method, member) = LISTS[kind];
        let mut items: Vec<Box<RawValue>> = Vec::new();
        if kind == 0 {
            let own = self.setup.own.list();
            items.extend(
                own.iter()
                    .filter_map(|tool| serde_json::value::to_raw_value(tool).ok()),
            );
        }
        let mut uris: Vec<String> = Vec::new();
        // Providers refuse requests in which two tools have one name.
        let mut names: HashSet<String> = HashSet::new();
        for (at, server) in self
            .servers
            .iter()
            .enumerate()
            .filter(|(_, server)| server.is_usable())
        {
            let name = &server.server.name;
            if kind == 0 {
                items.extend(
                    server
                        .tools
                        .iter()
                        .filter(|tool| tool.offered && names.insert(tool.exposed.clone()))
                        .map(|tool| tool.definition.clone()),
                );
                continue;
            }
            let Some(lists) = &server.lists else { continue };
            if kind == 1 {
                items.extend(
                    lists
                        .prompts
                        .iter()
                        .filter_map(|prompt| shown(&server.server, prompt))
                        .filter(|prompt| names.insert(name_of(prompt))),
                );
                continue;
            }
            let (list, member) = if kind == 2 {
                (&lists.resources, "uri")
            } else {
                (&lists.templates, "uriTemplate")
            };
            for item in list {
                let uri = Object::parse(item.get())
                    .ok()
                    .and_then(|item| item.text(member))
                    .unwrap_or_default();
                if self.judge(at).hides(&uri) {
                    continue;
                }
                let offered = if uris.contains(&uri) {
                    format!("mcp+{name}:{uri}")
                } else {
                    uri.clone()
                };
                items.extend(if offered == uri {
                    Some(item.clone())
                } else {
                    renamed(item, member, &offered)
                });
                uris.push(offered);
            }
        }
        let mut result = Object::default();
        match result.set(member, &items) {
            Ok(()) => response(id, &result),
            Err(error) => refused(id, method, &error.to_string()),
        }
    }

    /// Answers the requests that a server cannot answer any more.
    pub(super) fn answer_all(&mut self, server: &mut super::Hosted, why: &str) {
        let name = server.server.name.clone();
        server.queue.clear();
        for (_, request) in server.in_flight.drain() {
            if let Purpose::Call { id, request, .. } = request.purpose
                && self.calls.remove(&id).is_some()
            {
                server.errors += 1;
                // A closed output ends the session elsewhere.
                let why = format!(
                    "the server {name} failed: {why}. Nothing is repeated; call again if it is safe"
                );
                let _ = print(refused(&id, &request.method, &why));
            }
        }
    }

    pub(super) fn answer_all_of(&mut self, at: usize) -> io::Result<()> {
        let mut server = self.servers.remove(at);
        let why = match &server.state {
            State::Failed(why, _) => why.clone(),
            _ => "it has ended".to_owned(),
        };
        self.answer_all(&mut server, &why);
        self.servers.insert(at, server);
        Ok(())
    }

    /// Ends calls without an answer or progress.
    pub(super) fn end_late_calls(&mut self, at: usize) -> io::Result<()> {
        let server = &mut self.servers[at];
        // The user may take time for a question.
        let mut asking = self.asked.values();
        if server.state != State::Ready || asking.any(|asked| asked.uid == server.uid) {
            for request in server.in_flight.values_mut() {
                request.last = Instant::now();
            }
            return Ok(());
        }
        let limit = server.server.timeout();
        let late: Vec<u64> = server
            .in_flight
            .iter()
            .filter(|(_, request)| {
                request.last.elapsed() > limit && matches!(request.purpose, Purpose::Call { .. })
            })
            .map(|(id, _)| *id)
            .collect();
        for upstream in late {
            let call = server.in_flight.get_mut(&upstream);
            let purpose = call.map(|call| std::mem::replace(&mut call.purpose, Purpose::Dropped));
            server.cancel(upstream, "no answer in time");
            if let Some(Purpose::Call { id, .. }) = purpose
                && self.calls.remove(&id).is_some()
            {
                server.errors += 1;
                let name = &server.server.name;
                let why = format!(
                    "the server {name} sent no answer and no progress for {} s; the call was cancelled. The user can \
                     set `timeout` of the server",
                    limit.as_secs()
                );
                print(response(&id, &tool_error(&why)))?;
            }
        }
        Ok(())
    }
}

/// Judges a request, and sends it then.
fn judge_call(hub: &Weak<Mutex<Hub>>, judge: &Judge, call: Call, asked: Asked) {
    let outcome = judge.decide(asked);
    if let Some(hub) = hub.upgrade() {
        // A closed output ends the session elsewhere.
        let _ = hub.lock().judged(call, outcome);
    }
}
