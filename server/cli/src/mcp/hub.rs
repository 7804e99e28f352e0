//! Servers of the user in the session of an agent, besides our own tools.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sightline_agents::mcp;
use sightline_engine::{error::Error, handlers::mcp_servers::locations};
use sightline_hub::hub::{OwnTools, Setup, has_servers, serve};
use sightline_local::process::version::VERSION;

use super::{
    super::offline, backend::Backend, call_result, manage::own_manager, rules::WorkspaceRules,
};

struct Tools {
    tools: Arc<[mcp::Tool]>,
    backend: Arc<Backend>,
}

impl OwnTools for Tools {
    fn list(&self) -> Vec<Value> {
        self.tools.iter().map(mcp::Tool::to_json).collect()
    }

    fn call(&self, name: &str, arguments: Map<String, Value>, agent: &str) -> Option<Value> {
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        let result = call_result(self.backend.call(tool, arguments, Some(agent)));
        Some(serde_json::to_value(result).unwrap_or_default())
    }
}

/// Serves one agent, if servers are configured. Returns whether any are.
pub(super) fn run(backend: &Arc<Backend>, tools: &Arc<[mcp::Tool]>) -> Result<bool, Error> {
    let Ok(manager) = own_manager(&backend.workspace) else {
        // Our own tools need neither a home nor a data directory.
        return Ok(false);
    };
    let root = offline::root(&backend.workspace)?
        .canonical
        .as_path()
        .to_owned();
    let setup = Setup {
        rules: Arc::new(WorkspaceRules::new(backend.clone())),
        own: Arc::new(Tools {
            tools: tools.clone(),
            backend: backend.clone(),
        }),
        locations: locations(root.clone())?,
        manager,
        root,
        info: json!({ "name": mcp::SERVER_NAME, "version": VERSION }),
        instructions: mcp::INSTRUCTIONS.to_owned(),
    };
    if !has_servers(&setup) {
        return Ok(false);
    }
    serve(setup).map_err(|error| Error::storage(error.to_string()))?;
    Ok(true)
}
