//! `sightline ui`: serves the page.
//!
//! - `browser`: opens it
//! - `watched`: the states whose changes are events

mod browser;
mod watched;

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sightline_agents::Agent;
use sightline_engine::{dispatch, error::Error};
use sightline_ipc::client::running;
use sightline_local::process::version;
use sightline_page::{Options, Page, Source, Watched};
use sightline_protocol::{
    checkpoint::{ListTurnsParams, ListedTurn},
    method::{CountTokens, ListTurns},
    tokens::CountTokensParams,
};

use super::{
    DONE, Workspace, agents, doctor, hook, internal, print, print_message,
    requests::{IfSilent, Requests},
};

/// Time without a page after which the server ends.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

#[derive(clap::Args)]
pub(super) struct Ui {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 for any free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
    /// Refuse everything that changes files, checkpoints or servers.
    #[arg(long)]
    read_only: bool,
    /// End with the process that started this one.
    #[arg(long, hide = true)]
    ends_with_parent: bool,
}

/// Serves the page until it is interrupted, or unused for a long time.
pub(super) fn run(arguments: Ui) -> Result<i32, Error> {
    let workspace = Workspace::new(arguments.root, arguments.storage);
    let page = Page::open(Options {
        port: arguments.port,
        read_only: arguments.read_only,
        patience: PATIENCE,
        ends_with_parent: arguments.ends_with_parent,
    })?;
    let source = PageSource {
        requests: Requests::of_server(&workspace, IfSilent::FailIfChanges)?,
        read_only: arguments.read_only,
    };
    print(&format!("{}\n", page.address()))?;
    let port = page.port();
    let opened = (!arguments.no_open).then(|| browser::open(&page)).flatten();
    if opened.is_none() {
        print_message(&format!(
            "open this address in a browser. From another machine, run there first: ssh -N -L {port}:127.0.0.1:{port} HOST"
        ));
    }
    page.serve(Arc::new(source));
    Ok(DONE)
}

/// The workspace that the page shows.
struct PageSource {
    requests: Requests,
    read_only: bool,
}

impl Source for PageSource {
    fn has(&self, method: &str) -> bool {
        method.starts_with("page/") || dispatch::request(method).is_some()
    }

    fn call(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        let root = self.requests.root()?.path.as_path();
        let result = match method {
            "page/state" => self.state()?,
            "page/doctor" => {
                serde_json::to_value(doctor::report(&self.requests.workspace)?).map_err(internal)?
            }
            "page/agents" => agents::status_json(root)?,
            "page/nextBlock" => self.next_block(params)?,
            "page/checkAgents" => agents::check_json(root, &named_agents(params)?)?,
            _ => return self.requests.call_named(method, params),
        };
        serde_json::value::to_raw_value(&result).map_err(internal)
    }

    fn watched(&self) -> Vec<Watched> {
        watched::states(&self.requests)
    }
}

/// Params of `page/nextBlock`.
#[derive(Deserialize)]
struct NextBlock {
    agent: String,
    session: Option<String>,
}

impl PageSource {
    /// Returns what the hook of an agent would add to its next prompt, in the named session or the newest one
    /// of the workspace.
    fn next_block(&self, params: &Value) -> Result<Value, Error> {
        let params: NextBlock = serde_json::from_value(params.clone())
            .map_err(|error| Error::invalid(format!("page/nextBlock: {error}")))?;
        let agent = agent_named(&params.agent)?;
        let turns = self
            .requests
            .call::<ListTurns>(ListTurnsParams::default())?;
        let mut sessions: Vec<ListedTurn> = Vec::new();
        for turn in turns.turns {
            let is_known = |known: &ListedTurn| known.session == turn.session;
            if turn.agent == agent.name() && !sessions.iter().any(is_known) {
                sessions.push(turn);
            }
        }
        let newest = sessions.first().map(|turn| turn.session.clone());
        let session = params.session.or(newest);
        let (block, delivered) =
            hook::next_block(&self.requests.workspace, agent, session.as_deref())?;
        let text = block.unwrap_or_default();
        let counted = self.requests.call::<CountTokens>(CountTokensParams {
            texts: vec![text.clone()],
            ..CountTokensParams::default()
        })?;
        let sessions: Vec<Value> = sessions
            .iter()
            .map(|turn| json!({ "id": turn.session, "turn": turn.name, "at": turn.started_at }))
            .collect();
        let mut result = json!({ "text": text, "tokens": counted.tokens, "sessions": sessions });
        if let Some(session) = session {
            result["session"] = json!(session);
        }
        if let Some(at) = delivered {
            result["deliveredAt"] = json!(at);
        }
        Ok(result)
    }

    fn state(&self) -> Result<Value, Error> {
        let root = self.requests.root()?;
        let storage = self.requests.storage();
        let servers = storage.map_or(0, |storage| running(&storage, Some(root)));
        let path = root.path.as_path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(json!({
            "version": version::VERSION,
            "readOnly": self.read_only,
            "roots": [{
                "name": name.to_string_lossy(),
                "uri": root.path.to_uri(),
                "path": path,
            }],
            "server": servers > 0,
            "agents": Agent::ALL.map(Agent::name),
        }))
    }
}

/// Reads the agents of a request.
fn named_agents(params: &Value) -> Result<Vec<Agent>, Error> {
    let Some(named) = params.get("agents").and_then(Value::as_array) else {
        return Ok(Vec::new());
    };
    let names = named.iter().map(|name| name.as_str().unwrap_or_default());
    names.map(agent_named).collect()
}

fn agent_named(name: &str) -> Result<Agent, Error> {
    Agent::from_name(name).ok_or_else(|| Error::invalid(format!("there is no agent {name:?}")))
}
