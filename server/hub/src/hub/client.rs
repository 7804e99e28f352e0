//! Messages of the agent.

use std::{io, thread, time::Instant};

use serde_json::{Map, Value, json, value::RawValue};

use super::{
    Call, Event, Hub,
    hosted::{LISTS, Purpose, State, name_of},
    messages,
    names::exposed,
    print,
};
use crate::{
    judge::{Request, refused},
    message::{Kind, Message, Object, error_response, response, tool_error},
};

/// Versions of the protocol that agents may use.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

impl Hub {
    pub(super) fn client_line(&mut self, line: &[u8]) -> io::Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let messages = match messages(line) {
            Ok(messages) => messages,
            Err(why) => return print(&error_response("null", -32700, &why)),
        };
        for message in messages {
            match message.kind {
                Kind::Request => self.client_request(&message)?,
                Kind::Notification => self.client_notification(&message),
                Kind::Response => self.client_response(message),
            }
        }
        Ok(())
    }

    fn client_request(&mut self, message: &Message<'_>) -> io::Result<()> {
        let id = message.id();
        let params = message.params();
        match message.method.as_str() {
            "initialize" => print(&response(id, &self.initialize(&params))),
            "ping" => print(&response(id, &json!({}))),
            // Agents that ask for it continue with `initialize`.
            "server/discover" => print(&error_response(
                id,
                -32601,
                "unknown method server/discover",
            )),
            "logging/setLevel" => {
                self.wants_log = true;
                for server in self
                    .servers
                    .iter_mut()
                    .filter(|server| server.state == State::Ready)
                {
                    if server.capabilities.get("logging").is_some() {
                        let level = json!({ "level": params.text("level") });
                        server.request("logging/setLevel", &level, Purpose::Dropped);
                    }
                }
                print(&response(id, &json!({})))
            }
            "tools/call" => self.call_tool(id, &params),
            "prompts/get" => {
                let name = params.text("name").unwrap_or_default();
                match self.find_prompt(&name) {
                    Some((at, prompt)) => {
                        self.call(at, id, &message.method, &params, &[("name", prompt.into())])
                    }
                    None => print(&error_response(
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
                    None => print(&error_response(
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
                    None => print(&error_response(
                        id,
                        -32602,
                        "no server has this prompt or resource",
                    )),
                }
            }
            method => match LISTS.iter().position(|(_, list, _)| *list == method) {
                Some(kind) => self.list(id, kind),
                None => print(&error_response(
                    id,
                    -32601,
                    &format!("unknown method {method}"),
                )),
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
            .to_owned();
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
        json!({
            "protocolVersion": version,
            "capabilities": {
                "tools": { "listChanged": true }, "prompts": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true }, "logging": {}, "completions": {},
            },
            "serverInfo": self.setup.info,
            "instructions": self.setup.instructions,
        })
    }

    fn client_notification(&mut self, message: &Message<'_>) {
        if message.method != "notifications/cancelled" {
            return;
        }
        let params = message.params();
        let Some(id) = params.raw("requestId").map(RawValue::get) else {
            return;
        };
        if let Some((uid, upstream)) = self.calls.remove(id)
            && let (Some(at), Some(upstream)) = (self.position(uid), upstream)
        {
            let reason = params
                .text("reason")
                .unwrap_or_else(|| "the agent cancelled it".to_owned());
            self.servers[at].cancel(upstream, &reason);
        }
        self.waiting.retain(|(waiting, ..)| waiting != id);
    }

    /// Passes the answer of the agent to the server that asked.
    fn client_response(&mut self, mut message: Message<'_>) {
        let id = message.id().parse::<u64>().ok();
        let Some((uid, generation, own)) = id.and_then(|id| self.asked.remove(&id)) else {
            return;
        };
        let own: Result<&RawValue, _> = serde_json::from_str(&own);
        if let (Some(at), Ok(own)) = (self.position(uid), own)
            && self.servers[at].generation == generation
            && message.members.set("id", &own).is_ok()
        {
            self.servers[at].send(message.members.line());
        }
    }

    fn call_tool(&mut self, id: &str, params: &Object<'_>) -> io::Result<()> {
        // The user may have changed the servers just now.
        self.reconfigure()?;
        let name = params.text("name").unwrap_or_default();
        let found = self.servers.iter().enumerate().find_map(|(at, server)| {
            let own = server
                .tools()
                .find(|(_, own, offered, _)| *offered && exposed(&server.server.name, own) == name);
            server.is_usable().then_some((at, own?.1))
        });
        if let Some((at, own)) = found {
            return self.call(at, id, "tools/call", params, &[("name", own.into())]);
        }
        // Servers whose lists are not known yet.
        let unknown = self.servers.iter().position(|server| {
            let rest = name
                .strip_prefix(&server.server.name)
                .and_then(|rest| rest.strip_prefix("__"));
            server.is_usable()
                && server.lists.is_none()
                && rest.is_some_and(|tool| server.server.entry.tools.offers(tool))
        });
        if let Some(at) = unknown {
            let own = name[self.servers[at].server.name.len() + 2..].to_owned();
            return self.call(at, id, "tools/call", params, &[("name", own.into())]);
        }
        let arguments = params.raw("arguments").map_or("{}", RawValue::get);
        let arguments: Map<String, Value> = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                return print(&error_response(
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
                let line = match own.call(&name, arguments, &agent.unwrap_or_default()) {
                    Some(result) => response(&id, &result),
                    None => error_response(&id, -32602, &format!("there is no tool {name}")),
                };
                // A closed output ends the session elsewhere.
                let _ = print(&line);
            })?;
        Ok(())
    }

    /// Judges a request for a server, with other values of some params, and sends it then.
    fn call(
        &mut self,
        at: usize,
        id: &str,
        method: &str,
        params: &Object<'_>,
        own: &[(&str, Value)],
    ) -> io::Result<()> {
        let mut params: Value = match serde_json::from_slice(&params.line()) {
            Ok(params) => params,
            Err(error) => {
                return print(&error_response(
                    id,
                    -32602,
                    &format!("invalid params: {error}"),
                ));
            }
        };
        for (name, value) in own {
            params[*name] = value.clone();
        }
        let token = params["_meta"].get("progressToken").map(Value::to_string);
        let server = &mut self.servers[at];
        server.calls += 1;
        let uid = server.uid;
        let may_write = method == "tools/call"
            && !server.reads_only(params["name"].as_str().unwrap_or_default());
        self.calls.insert(id.to_owned(), (uid, None));
        let call = Call {
            uid,
            id: id.to_owned(),
            method: method.to_owned(),
            params,
            token,
        };
        let events = self.events.clone();
        self.judge_later(at, move |judge| {
            let text = call.params.to_string();
            let outcome = Object::parse(&text)
                .map_err(|error| error.to_string())
                .and_then(|params| judge.request(&call.method, &params));
            if outcome.is_ok() && may_write {
                judge.rules.save_before_change();
            }
            let _ = events.send(Event::Judged { call, outcome });
        })
    }

    /// Sends a request that was judged.
    pub(super) fn judged(
        &mut self,
        call: Call,
        outcome: Result<Request, String>,
    ) -> io::Result<()> {
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
        let (at, request) = match sent {
            Ok(sent) => sent,
            Err(why) => {
                self.calls.remove(&call.id);
                if let Some(at) = at {
                    self.servers[at].errors += 1;
                }
                return print(&refused(&call.id, &call.method, &why));
            }
        };
        let server = &mut self.servers[at];
        let mut params = call.params;
        let id = server.next(Purpose::Call {
            id: call.id.clone(),
            token: call.token,
            request,
        });
        params["_meta"]["progressToken"] = id.into();
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": call.method, "params": params })
            .to_string()
            .into_bytes();
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
        self.tick()?;
        let mut limit = Instant::now();
        for at in 0..self.servers.len() {
            let server = &self.servers[at];
            if server.lists.is_none() && matches!(server.state, State::Idle | State::Starting) {
                limit = limit.max(Instant::now() + server.server.start_timeout());
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
            let line = self.listed(&id, kind);
            print(&line)?;
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
        for (at, server) in self
            .servers
            .iter()
            .enumerate()
            .filter(|(_, server)| server.is_usable())
        {
            let name = &server.server.name;
            if kind == 0 {
                let offered = server.tools().filter(|(_, _, offered, _)| *offered);
                items.extend(
                    offered
                        .filter_map(|(tool, own, ..)| renamed(tool, "name", &exposed(name, &own))),
                );
                continue;
            }
            let Some(lists) = &server.lists else { continue };
            if kind == 1 {
                let prompts = lists.prompts.iter();
                items.extend(prompts.filter_map(|prompt| {
                    renamed(prompt, "name", &exposed(name, &name_of(prompt)))
                }));
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
                if self.judge(at, |judge| judge.hides(&uri)) {
                    continue;
                }
                let shown = if uris.contains(&uri) {
                    format!("mcp+{name}:{uri}")
                } else {
                    uri.clone()
                };
                items.extend(if shown == uri {
                    Some(item.clone())
                } else {
                    renamed(item, member, &shown)
                });
                uris.push(shown);
            }
        }
        let mut result = Object::default();
        match result.set(member, &items) {
            Ok(()) => response(id, &result),
            Err(error) => refused(id, method, &error.to_string()),
        }
    }

    fn find_prompt(&self, name: &str) -> Option<(usize, String)> {
        self.servers.iter().enumerate().find_map(|(at, server)| {
            let lists = server.lists.as_ref().filter(|_| server.is_usable())?;
            let mut own = lists.prompts.iter().map(|prompt| name_of(prompt));
            Some((
                at,
                own.find(|own| exposed(&server.server.name, own) == name)?,
            ))
        })
    }

    /// Returns the server of a resource, and its URI there.
    fn owner_of(&self, uri: &str) -> Option<(usize, String)> {
        let usable = || {
            self.servers
                .iter()
                .enumerate()
                .filter(|(_, server)| server.is_usable())
        };
        if let Some((name, own)) = uri
            .strip_prefix("mcp+")
            .and_then(|rest| rest.split_once(':'))
        {
            let (at, _) = usable().find(|(_, server)| server.server.name == name)?;
            return Some((at, own.to_owned()));
        }
        let has = |list: &[Box<RawValue>], member: &str, fits: &dyn Fn(&str) -> bool| {
            list.iter().any(|item| {
                let item = Object::parse(item.get()).unwrap_or_default();
                item.text(member).is_some_and(|own| fits(&own))
            })
        };
        let listed = usable().find(|(_, server)| {
            let lists = server.lists.as_ref();
            lists.is_some_and(|lists| has(&lists.resources, "uri", &|own| own == uri))
        });
        let templated = || {
            usable().find(|(_, server)| {
                let fits = |own: &str| uri.starts_with(own.split('{').next().unwrap_or(own));
                let lists = server.lists.as_ref();
                lists.is_some_and(|lists| has(&lists.templates, "uriTemplate", &fits))
            })
        };
        listed
            .or_else(templated)
            .map(|(at, _)| (at, uri.to_owned()))
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
                let _ = print(&refused(&id, &request.method, &why));
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
        if server.state != State::Ready {
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
                print(&response(&id, &tool_error(&why)))?;
            }
        }
        Ok(())
    }
}

/// Returns a definition with another value of a member.
fn renamed(item: &RawValue, member: &'static str, value: &str) -> Option<Box<RawValue>> {
    let mut definition = Object::parse(item.get()).ok()?;
    definition.set(member, &value).ok()?;
    serde_json::value::to_raw_value(&definition).ok()
}
