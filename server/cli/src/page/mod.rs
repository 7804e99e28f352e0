//! `sightline ui`: serves the page.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::ValueEnum;
use serde_json::{Value, json, value::RawValue};
use sightline_engine::error::Error;
use sightline_ipc::client::running;
use sightline_local::process::version;
use sightline_page::{Options, Page, Source, Watched};

use super::{
    DONE, Workspace,
    agents::{self, AgentName},
    doctor, internal, print,
    requests::{Attached, named::NamedRequests},
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
}

/// Serves the page until it is interrupted, or unused for a long time.
pub(super) fn run(arguments: Ui) -> Result<i32, Error> {
    let workspace = Workspace {
        root: arguments.root,
        storage: arguments.storage,
        json: false,
    };
    let page = Page::open(Options {
        port: arguments.port,
        read_only: arguments.read_only,
        patience: PATIENCE,
    })?;
    let source = PageSource {
        requests: NamedRequests::new(workspace, Attached { offline: false })?,
        read_only: arguments.read_only,
    };
    print(&format!("{}\n", page.address()))?;
    page.serve(Arc::new(source));
    Ok(DONE)
}

/// The workspace that the page shows.
struct PageSource {
    requests: NamedRequests,
    read_only: bool,
}

impl Source for PageSource {
    fn call(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        let root = self.requests.root().path.as_path();
        let result = match method {
            "page/state" => self.state(),
            "page/doctor" => serde_json::to_value(doctor::report(self.requests.workspace())?)
                .map_err(internal)?,
            "page/agents" => agents::status_json(root)?,
            "page/checkAgents" => agents::check_json(root, &named_agents(params)?)?,
            _ => return self.requests.call(method, params),
        };
        serde_json::value::to_raw_value(&result).map_err(internal)
    }

    fn watched(&self) -> Vec<Watched> {
        Vec::new()
    }
}

impl PageSource {
    fn state(&self) -> Value {
        let root = self.requests.root();
        let storage = self.requests.storage();
        let servers = storage.map_or(0, |storage| running(&storage, Some(root)));
        let path = root.path.as_path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        json!({
            "version": version::VERSION,
            "readOnly": self.read_only,
            "roots": [{
                "name": name.to_string_lossy(),
                "uri": root.path.to_uri(),
                "path": path,
            }],
            "server": servers > 0,
        })
    }
}

/// Reads the agents of a request.
fn named_agents(params: &Value) -> Result<Vec<AgentName>, Error> {
    let Some(named) = params.get("agents").and_then(Value::as_array) else {
        return Ok(Vec::new());
    };
    let named = named.iter().map(|name| {
        let name = name.as_str().unwrap_or_default();
        AgentName::from_str(name, false)
            .map_err(|_| Error::invalid(format!("there is no agent {name:?}")))
    });
    named.collect()
}
