//! Requests by their names: `sightline request`, and those of the page.

use std::{mem::ManuallyDrop, sync::OnceLock};

use serde_json::{Value, value::RawValue};
use sightline_base::{path::Root, storage::Storage};
use sightline_engine::{
    dispatch::{self, Handler},
    error::Error,
    params_compat,
    request_context::RequestContext,
};
use sightline_ipc::client::{self, Reply};
use sightline_protocol::error::ErrorKind;

use super::{
    super::{DONE, Workspace, conversations::read_stdin, internal, print},
    Attached,
    offline::{self, OfflineServer},
};

#[derive(clap::Args)]
pub(crate) struct Request {
    #[command(flatten)]
    workspace: Workspace,
    #[command(flatten)]
    attached: Attached,
    /// Name of the request, with or without `sightline/`.
    #[arg(value_name = "METHOD")]
    method: String,
    /// Params as a JSON object, or `-` to read them from standard input.
    #[arg(value_name = "PARAMS", default_value = "{}")]
    params: String,
}

/// Runs a request, and prints its result as JSON.
pub(crate) fn run(request: Request) -> Result<i32, Error> {
    let method = full_name(&request.method)?;
    let text = match request.params.as_str() {
        "-" => read_stdin()?,
        given => given.to_owned(),
    };
    let params = params_compat::parse_object(method, Some(&text))?;
    let requests = NamedRequests::new(request.workspace, request.attached)?;
    let result = requests.call(method, &params)?;
    print(&format!("{result}\n"))?;
    Ok(DONE)
}

/// Returns the name of a request on the wire.
fn full_name(given: &str) -> Result<&'static str, Error> {
    let is_named = |route: &&dispatch::Route| {
        route.name == given || route.name.strip_prefix("sightline/") == Some(given)
    };
    let named = dispatch::REQUESTS.iter().find(is_named);
    named.map(|route| route.name).ok_or_else(|| {
        Error::invalid(format!(
            "there is no request {given:?}; `sightline schema` lists the names"
        ))
    })
}

/// Runs requests of a long process: each in the server that runs then, else in this process.
pub(crate) struct NamedRequests {
    workspace: Workspace,
    attached: Attached,
    root: Root,
    /// Started by the first request that no running server answers.
    offline: OnceLock<ManuallyDrop<OfflineServer>>,
}

impl NamedRequests {
    /// # Errors
    /// The workspace does not exist.
    pub(crate) fn new(workspace: Workspace, attached: Attached) -> Result<Self, Error> {
        Ok(Self {
            root: offline::root(&workspace)?,
            workspace,
            attached,
            offline: OnceLock::new(),
        })
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns the data directory, if it can be used.
    pub(crate) fn storage(&self) -> Option<Storage> {
        let dir = offline::storage_dir(self.workspace.storage.as_deref()).ok()?;
        Storage::open(&dir).ok()
    }

    /// Runs a request.
    ///
    /// # Errors
    /// The request's errors, and `busy` if a server runs that does not answer, but would have to change
    /// something.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        let route = dispatch::request(method).ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("there is no request {method:?}"),
            )
        })?;
        let reply = self.ask_running_server(method, params);
        match reply {
            Some(Reply::Answered(answer)) => return answer,
            Some(Reply::Silent) if client::changes(method) => {
                return Err(Error::new(
                    ErrorKind::Busy,
                    "the server of the editor is running but does not answer; nothing was done",
                ));
            }
            _ => {}
        }
        let server = self.offline_server()?;
        let called = (route.parse)(&params.to_string()).run(&server.context());
        if client::changes(method) {
            server.services.checkpoints.maintain();
        }
        let json = called?.result.to_json().map_err(internal)?;
        RawValue::from_string(json).map_err(internal)
    }

    /// Runs a request of this program.
    ///
    /// # Errors
    /// Those of [`Self::call`].
    pub(crate) fn call_typed<M: Handler>(&self, params: &M::Params) -> Result<M::Result, Error> {
        let params = serde_json::to_value(params).map_err(internal)?;
        let result = self.call(M::NAME, &params)?;
        serde_json::from_str(result.get()).map_err(internal)
    }

    /// Sends a request to the running server. `None` if none may be used.
    pub(crate) fn ask_running_server(
        &self,
        method: &str,
        params: &Value,
    ) -> Option<Reply<Box<RawValue>>> {
        let storage = self.storage().filter(|_| !self.attached.offline)?;
        Some(client::request_named(&storage, &self.root, method, params))
    }

    /// Returns the context of a request in this process.
    ///
    /// # Errors
    /// The data directory or the workspace cannot be used.
    pub(crate) fn context(&self) -> Result<RequestContext<'_>, Error> {
        Ok(self.offline_server()?.context())
    }

    fn offline_server(&self) -> Result<&OfflineServer, Error> {
        if let Some(server) = self.offline.get() {
            return Ok(server);
        }
        let server = OfflineServer::start(&self.workspace)?;
        Ok(self.offline.get_or_init(|| server))
    }
}
