//! Asks the server that runs in an editor, or falls back to the disk.

use serde_json::Value;
use sightline_workspace::{error::Error, storage::Storage};

use super::{Workspace, offline};
use crate::services::stores::default_storage_dir;

#[derive(clap::Args)]
pub(super) struct Attached {
    /// Read from disk, even if a server is running for this workspace.
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
    /// Runs a request. Returns its result and where it came from.
    ///
    /// # Errors
    /// The request's errors.
    pub(super) fn call(
        &self,
        workspace: &Workspace,
        method: &str,
        mut params: Value,
    ) -> Result<(Value, AnsweredBy), Error> {
        if let Value::Object(fields) = &mut params {
            fields.retain(|_, value| !value.is_null());
        }
        if !self.offline
            && let Some(answer) = ask_editor(workspace, method, &params)?
        {
            return Ok((answer?, AnsweredBy::Editor));
        }
        Ok((offline::call(workspace, method, params)?, AnsweredBy::Disk))
    }
}

/// Asks a running server. Returns `None` if there is none.
fn ask_editor(
    workspace: &Workspace,
    method: &str,
    params: &Value,
) -> Result<Option<Result<Value, Error>>, Error> {
    let root = offline::root(workspace)?;
    let dir = match &workspace.storage {
        Some(dir) => offline::absolute_path(dir)?.as_path().to_owned(),
        None => match default_storage_dir() {
            Ok(dir) => dir,
            // Requests that need no data directory still work.
            Err(_) => return Ok(None),
        },
    };
    let Ok(storage) = Storage::open(&dir) else {
        return Ok(None);
    };
    Ok(crate::ipc::client::request(&storage, &root, method, params))
}
