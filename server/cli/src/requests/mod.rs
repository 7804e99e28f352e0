//! Runs requests: in the running server of the workspace, or in this process.

pub(super) mod named;
pub(super) mod offline;

use std::{mem::ManuallyDrop, sync::OnceLock};

use serde_json::{Value, value::RawValue};
use sightline_base::{path::Root, storage::Storage};
use sightline_engine::{
    dispatch::{self, Handler},
    error::Error,
    progress::ProgressListener,
};
use sightline_hub::tools::Answered;
pub(super) use sightline_hub::tools::AnsweredBy;
use sightline_ipc::{self as ipc, client::Reply};
use sightline_protocol::{
    access::{CheckAccessParams, CheckAccessResult},
    environment::{EnvironmentDetailsParams, EnvironmentDetailsResult},
    error::ErrorKind,
    files::{ReadFileParams, ReadFileResult},
    method::{CheckAccess, EnvironmentDetails, ReadFile, Request},
};

use offline::OfflineServer;

use super::{Workspace, internal, progress_bar};

/// The workspace of a command, and where its requests run.
#[derive(clap::Args, Clone)]
pub(super) struct Place {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    /// Do not use the running server of this workspace.
    #[arg(long)]
    pub(super) offline: bool,
}

impl Place {
    pub(super) fn requests(&self) -> Requests {
        Requests {
            is_offline: self.offline,
            ..Requests::new(&self.workspace)
        }
    }
}

/// What is done if a server runs, but does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfSilent {
    /// The request runs in this process, and so do those after it.
    Disk,
    /// A request that changes something fails.
    FailIfChanges,
    /// Each request fails with this message.
    Fail(&'static str),
}

/// Asks the running servers of a root.
type Ask<M> = fn(&Storage, &Root, &<M as Request>::Params) -> Reply<<M as Request>::Result>;

/// The requests of a command, or of a process that serves others.
pub(super) struct Requests {
    pub(super) workspace: Workspace,
    is_offline: bool,
    if_silent: IfSilent,
    /// Makes the listener that draws the progress of requests in this process.
    pub(super) progress: fn() -> Option<ProgressListener>,
    root: OnceLock<Root>,
    /// Started by the first request that no running server answers.
    offline_server: OnceLock<ManuallyDrop<OfflineServer>>,
}

impl Requests {
    /// Returns the requests of a command, which the running server answers if there is one.
    pub(super) fn new(workspace: &Workspace) -> Self {
        Self {
            workspace: workspace.clone(),
            is_offline: false,
            if_silent: IfSilent::Disk,
            progress: progress_bar::listener,
            root: OnceLock::new(),
            offline_server: OnceLock::new(),
        }
    }

    /// Returns requests that run in this process.
    pub(super) fn offline(workspace: &Workspace) -> Self {
        Self {
            is_offline: true,
            ..Self::new(workspace)
        }
    }

    /// Returns the requests of a process that serves others. It asks for a running server each time.
    ///
    /// # Errors
    /// `invalidParams` if the workspace does not exist.
    pub(super) fn of_server(workspace: &Workspace, if_silent: IfSilent) -> Result<Self, Error> {
        let requests = Self {
            if_silent,
            ..Self::new(workspace)
        };
        requests.root()?;
        Ok(requests)
    }

    /// Returns the workspace folder. A running server may have more folders.
    ///
    /// # Errors
    /// `invalidParams` if it does not exist.
    pub(super) fn root(&self) -> Result<&Root, Error> {
        if let Some(root) = self.root.get() {
            return Ok(root);
        }
        let root = offline::root(&self.workspace)?;
        Ok(self.root.get_or_init(|| root))
    }

    /// Returns the URI of the workspace folder.
    ///
    /// # Errors
    /// `invalidParams` if it does not exist.
    pub(super) fn root_uri(&self) -> Result<Option<String>, Error> {
        Ok(Some(self.root()?.canonical.to_uri()))
    }

    /// Returns the data directory, if it can be used. Requests that need none work without it.
    pub(super) fn storage(&self) -> Option<Storage> {
        offline::storage(self.workspace.storage.as_deref()).ok()
    }

    /// Runs a request.
    ///
    /// # Errors
    /// The request's errors.
    pub(super) fn call<M: Handler>(&self, params: M::Params) -> Result<M::Result, Error> {
        Ok(self.call_from::<M>(params)?.0)
    }

    /// Runs a request. Returns its result and where it came from.
    ///
    /// # Errors
    /// The request's errors.
    pub(super) fn call_from<M: Handler>(&self, params: M::Params) -> Answered<M::Result> {
        self.call_by::<M>(ipc::client::request::<M>, params)
    }

    /// Checks access in the running server, or by the rules on disk if it fails or is older.
    ///
    /// # Errors
    /// If neither can.
    pub(super) fn check_access(
        &self,
        params: &CheckAccessParams,
    ) -> Result<CheckAccessResult, Error> {
        let is_complete =
            |result: &CheckAccessResult| result.commands.len() == params.commands.len();
        let answered = self.call::<CheckAccess>(params.clone()).ok();
        match answered.filter(is_complete) {
            Some(result) => Ok(result),
            None => self.offline_server()?.call::<CheckAccess>(params.clone()),
        }
    }

    /// Builds the block. It lists the unsaved files of all running servers.
    ///
    /// # Errors
    /// Those of `sightline/environmentDetails`.
    pub(super) fn environment_details(
        &self,
        params: EnvironmentDetailsParams,
    ) -> Answered<EnvironmentDetailsResult> {
        self.call_by::<EnvironmentDetails>(ipc::client::environment_details, params)
    }

    /// Reads a file. The unsaved text of any running server precedes the disk.
    ///
    /// # Errors
    /// Those of `sightline/readFile`.
    pub(super) fn read_file(&self, params: ReadFileParams) -> Answered<ReadFileResult> {
        self.call_by::<ReadFile>(ipc::client::read_file, params)
    }

    /// The same, asking the running servers in another way.
    ///
    /// # Errors
    /// The request's errors.
    fn call_by<M: Handler>(&self, ask: Ask<M>, params: M::Params) -> Answered<M::Result> {
        let _span = tracing::debug_span!("call", method = M::NAME).entered();
        let ask = |storage: &Storage, root: &Root| ask(storage, root, &params);
        if let Some(answer) = self.ask_running_server(M::NAME, ask)? {
            return Ok((answer, AnsweredBy::Editor));
        }
        let result = self.offline_server()?.call::<M>(params)?;
        Ok((result, AnsweredBy::Disk))
    }

    /// Sends a request to the running server only. `None` if none may be asked.
    pub(super) fn ask<M: Handler>(&self, params: &M::Params) -> Option<Reply<M::Result>> {
        let storage = self.storage().filter(|_| !self.is_offline)?;
        Some(ipc::client::request::<M>(
            &storage,
            self.root().ok()?,
            params,
        ))
    }

    /// Runs a request by its name.
    ///
    /// # Errors
    /// The request's errors.
    pub(super) fn call_named(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        let route = dispatch::request(method).ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("there is no request {method:?}"),
            )
        })?;
        let ask = |storage: &Storage, root: &Root| {
            ipc::client::request_named(storage, root, method, params)
        };
        if let Some(answer) = self.ask_running_server(method, ask)? {
            return Ok(answer);
        }
        let server = self.offline_server()?;
        let called = (route.parse)(&params.to_string()).run(&server.context());
        if ipc::client::changes(method) {
            server.services.checkpoints.maintain();
        }
        let json = called?.result.to_json().map_err(internal)?;
        RawValue::from_string(json).map_err(internal)
    }

    /// Returns `None` if no server answers, and the request may run in this process.
    fn ask_running_server<T>(
        &self,
        method: &str,
        ask: impl FnOnce(&Storage, &Root) -> Reply<T>,
    ) -> Result<Option<T>, Error> {
        // All requests of a command run in the same place.
        let is_here = self.if_silent == IfSilent::Disk && self.offline_server.get().is_some();
        let root = self.root()?;
        if self.is_offline || is_here {
            return Ok(None);
        }
        let Some(storage) = self.storage() else {
            return Ok(None);
        };
        let busy = |message: &str| Err(Error::new(ErrorKind::Busy, message));
        match (ask(&storage, root), self.if_silent) {
            (Reply::Answered(answer), _) => answer.map(Some),
            (Reply::Silent, IfSilent::Fail(message)) => busy(message),
            (Reply::Silent, IfSilent::FailIfChanges) if ipc::client::changes(method) => {
                busy("the server of the editor is running but does not answer; nothing was done")
            }
            (Reply::Silent | Reply::NoServer, _) => Ok(None),
        }
    }

    /// Returns the server in this process.
    ///
    /// # Errors
    /// `storage` if it cannot be started.
    pub(super) fn offline_server(&self) -> Result<&OfflineServer, Error> {
        if let Some(server) = self.offline_server.get() {
            return Ok(server);
        }
        let server = OfflineServer::start(&self.workspace, (self.progress)())?;
        Ok(self.offline_server.get_or_init(|| server))
    }

    /// Runs work that may change checkpoints. Then saves the caches for the next command; a
    /// running server saves its own.
    pub(super) fn with_maintenance<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let outcome = work(self);
        if let Some(server) = self.offline_server.get() {
            server.services.checkpoints.maintain();
        }
        outcome
    }
}
