//! Runs requests: in the running server of the workspace, or in this process.

pub(super) mod named;
pub(super) mod offline;

use std::{cell::OnceCell, mem::ManuallyDrop};

use sightline_base::{path::Root, storage::Storage};
use sightline_protocol::{
    environment::{EnvironmentDetailsParams, EnvironmentDetailsResult},
    files::{ReadFileParams, ReadFileResult},
    method::{EnvironmentDetails, ReadFile, Request},
};

use offline::OfflineServer;
use sightline_engine::{dispatch::Handler, error::Error, progress::ProgressListener};
use sightline_ipc::{self as ipc, client::Reply};

use super::{Workspace, progress_bar};

#[derive(clap::Args, Clone, Copy)]
pub(super) struct Attached {
    /// Do not use the running server of this workspace.
    #[arg(long)]
    pub(super) offline: bool,
}

/// Source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    /// The running server, which knows open tabs and unsaved text.
    Editor,
    /// This process, from disk.
    Disk,
}

impl Attached {
    /// Runs one request. Returns its result and where it came from.
    ///
    /// # Errors
    /// The request's errors.
    pub(super) fn call<M: Handler>(
        self,
        workspace: &Workspace,
        params: M::Params,
    ) -> Result<(M::Result, AnsweredBy), Error> {
        Requests::new(workspace, self).call_from::<M>(params)
    }

    /// Builds the block. It lists the unsaved files of all running servers.
    ///
    /// # Errors
    /// Those of `sightline/environmentDetails`.
    pub(super) fn environment_details(
        self,
        workspace: &Workspace,
        params: EnvironmentDetailsParams,
    ) -> Result<(EnvironmentDetailsResult, AnsweredBy), Error> {
        let requests = Requests::new(workspace, self);
        requests.call_by::<EnvironmentDetails>(ipc::client::environment_details, params)
    }

    /// Reads a file. The unsaved text of any running server precedes the disk.
    ///
    /// # Errors
    /// Those of `sightline/readFile`.
    pub(super) fn read_file(
        self,
        workspace: &Workspace,
        params: ReadFileParams,
    ) -> Result<ReadFileResult, Error> {
        let requests = Requests::new(workspace, self);
        Ok(requests
            .call_by::<ReadFile>(ipc::client::read_file, params)?
            .0)
    }
}

/// Asks the running servers of a root.
pub(super) type Ask<M> =
    fn(&Storage, &Root, &<M as Request>::Params) -> Reply<<M as Request>::Result>;

/// The requests of a command.
pub(super) struct Requests<'a> {
    pub(super) workspace: &'a Workspace,
    attached: Attached,
    /// Makes the listener that draws the progress of requests in this process.
    pub(super) progress: fn() -> Option<ProgressListener>,
    /// Started by the first request that no running server answers.
    offline_server: OnceCell<ManuallyDrop<OfflineServer>>,
}

impl<'a> Requests<'a> {
    pub(super) fn new(workspace: &'a Workspace, attached: Attached) -> Self {
        Self {
            workspace,
            attached,
            progress: progress_bar::listener,
            offline_server: OnceCell::new(),
        }
    }

    /// Returns the URI of the workspace folder. A running server may have more folders.
    ///
    /// # Errors
    /// `invalidParams` if it does not exist.
    pub(super) fn root(&self) -> Result<Option<String>, Error> {
        Ok(Some(offline::root(self.workspace)?.canonical.to_uri()))
    }

    /// Runs a request.
    ///
    /// # Errors
    /// The request's errors.
    pub(super) fn call<M: Handler>(&self, params: M::Params) -> Result<M::Result, Error> {
        Ok(self.call_from::<M>(params)?.0)
    }

    fn call_from<M: Handler>(&self, params: M::Params) -> Result<(M::Result, AnsweredBy), Error> {
        self.call_by::<M>(ipc::client::request::<M>, params)
    }

    fn call_by<M: Handler>(
        &self,
        ask: Ask<M>,
        params: M::Params,
    ) -> Result<(M::Result, AnsweredBy), Error> {
        if !self.attached.offline
            && let Some(answer) = self.ask_running_server::<M>(ask, &params)?
        {
            return Ok((answer?, AnsweredBy::Editor));
        }
        let result = self.offline_server()?.call::<M>(params)?;
        Ok((result, AnsweredBy::Disk))
    }

    /// Returns `None` if no server answers.
    fn ask_running_server<M: Handler>(
        &self,
        ask: Ask<M>,
        params: &M::Params,
    ) -> Result<Option<Result<M::Result, Error>>, Error> {
        // All requests of a command run in the same place.
        if self.offline_server.get().is_some() {
            return Ok(None);
        }
        let root = offline::root(self.workspace)?;
        let Ok(dir) = offline::storage_dir(self.workspace.storage.as_deref()) else {
            // Requests that need no data directory still work.
            return Ok(None);
        };
        let Ok(storage) = Storage::open(&dir) else {
            return Ok(None);
        };
        Ok(match ask(&storage, &root, params) {
            Reply::Answered(answer) => Some(answer),
            Reply::Silent | Reply::NoServer => None,
        })
    }

    /// Returns the server in this process.
    ///
    /// # Errors
    /// `storage` if it cannot be started.
    pub(super) fn offline_server(&self) -> Result<&OfflineServer, Error> {
        if let Some(server) = self.offline_server.get() {
            return Ok(server);
        }
        let server = OfflineServer::start_with(self.workspace, (self.progress)())?;
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
