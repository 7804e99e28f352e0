//! The changes that one agent proposes and the editor shows, until the user decides.

use std::{collections::HashMap, sync::Weak};

use serde_json::Value;
use sightline_agents::ide::claude::{self, DiffCall};
use sightline_engine::services::Services;
use sightline_protocol::checkpoint::AgentTurn;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};

use crate::{
    connections::Connections,
    open_diff::{self, Decision, Proposal},
};

/// Maximum number of diffs of an agent that are open at the same time.
const MAX_DIFFS: usize = 16;
/// Maximum size of a proposed text, in bytes.
const MAX_CONTENTS: usize = 2 << 20;
const CLOSED: &str = "the diff was closed";

/// The open diffs of a connection. Dropping it closes them.
pub(super) struct OpenDiffs {
    runtime: Handle,
    services: Weak<Services>,
    connections: Connections,
    /// Identifies the connection.
    session: String,
    /// By the name that the agent chose.
    open: HashMap<String, OpenDiff>,
    /// The decisions, with name and id of the diff.
    deciding: JoinSet<(String, String, Decision)>,
}

struct OpenDiff {
    diff_id: String,
    /// Id of the agent's request.
    request: Value,
    waiting: AbortHandle,
}

impl OpenDiffs {
    pub(super) fn new(runtime: Handle, services: Weak<Services>, connections: Connections) -> Self {
        Self {
            runtime,
            services,
            connections,
            session: new_id(),
            open: HashMap::new(),
            deciding: JoinSet::new(),
        }
    }

    /// Handles a call. Returns the responses that can be sent now.
    pub(super) fn call(&mut self, call: DiffCall, agent: &str) -> Vec<Value> {
        match call {
            DiffCall::Open {
                id,
                path,
                contents,
                tab_name,
            } => {
                let mut responses: Vec<Value> = self.close(&tab_name).into_iter().collect();
                if self.connections.is_paused() {
                    responses.push(claude::diff_failed(&id, "the user paused the editor"));
                } else if self.open.len() >= MAX_DIFFS {
                    let why = format!("{MAX_DIFFS} diffs are open; close one first");
                    responses.push(claude::diff_failed(&id, &why));
                } else if contents.len() > MAX_CONTENTS {
                    let why = "the text is too large for the editor; ask in the terminal";
                    responses.push(claude::diff_failed(&id, why));
                } else {
                    self.show(id, tab_name, agent, path, contents);
                }
                responses
            }
            DiffCall::Close { id, tab_name } => {
                let mut responses: Vec<Value> = self.close(&tab_name).into_iter().collect();
                responses.push(claude::tab_closed(&id));
                responses
            }
            DiffCall::CloseAll { id } => {
                let mut responses = self.close_all();
                responses.push(claude::diff_tabs_closed(&id, responses.len()));
                responses
            }
        }
    }

    fn show(
        &mut self,
        request: Value,
        tab_name: String,
        agent: &str,
        path: String,
        contents: String,
    ) {
        let diff_id = new_id();
        let proposal = Proposal {
            turn: AgentTurn {
                agent: agent.to_owned(),
                session: self.session.clone(),
                turn: diff_id.clone(),
            },
            diff_id: diff_id.clone(),
            path,
            contents,
        };
        let (decided, decision) = oneshot::channel();
        if let Some(services) = self.services.upgrade() {
            open_diff::show(&services, proposal, decided);
        }
        let (name, id) = (tab_name.clone(), diff_id.clone());
        let decision = async move {
            let unanswered = |_| Decision::Failed("the editor did not answer".to_owned());
            (name, id, decision.await.unwrap_or_else(unanswered))
        };
        let open = OpenDiff {
            diff_id,
            request,
            waiting: self.deciding.spawn_on(decision, &self.runtime),
        };
        self.open.insert(tab_name, open);
    }

    /// Waits for a decision, forever if no diff is open. Returns the response to the agent.
    pub(super) async fn next_response(&mut self) -> Value {
        loop {
            let Some(decided) = self.deciding.join_next().await else {
                return std::future::pending().await;
            };
            // Fails for a diff that was closed.
            let Ok((tab_name, diff_id, decision)) = decided else {
                continue;
            };
            let Some(open) = self.open.get(&tab_name) else {
                continue;
            };
            if open.diff_id != diff_id {
                continue;
            }
            let response = match decision {
                Decision::Accepted(contents) => claude::diff_accepted(&open.request, &contents),
                Decision::Rejected => claude::diff_rejected(&open.request, &tab_name),
                Decision::Failed(why) => claude::diff_failed(&open.request, &why),
            };
            self.open.remove(&tab_name);
            return response;
        }
    }

    /// Closes the diffs if the user paused the bridges. Returns the responses.
    pub(super) fn close_if_paused(&mut self) -> Vec<Value> {
        match self.connections.is_paused() {
            true => self.close_all(),
            false => Vec::new(),
        }
    }

    fn close_all(&mut self) -> Vec<Value> {
        let names: Vec<String> = self.open.keys().cloned().collect();
        names.iter().filter_map(|name| self.close(name)).collect()
    }

    /// Closes a diff. Returns the response to the request that opened it.
    fn close(&mut self, tab_name: &str) -> Option<Value> {
        let open = self.open.remove(tab_name)?;
        open.waiting.abort();
        if let Some(services) = self.services.upgrade() {
            open_diff::close(&services, open.diff_id);
        }
        Some(claude::diff_failed(&open.request, CLOSED))
    }
}

impl Drop for OpenDiffs {
    fn drop(&mut self) {
        self.close_all();
    }
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
