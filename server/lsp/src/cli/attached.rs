//! Asking the server that runs in an editor, and the disk where there is none.

use serde_json::Value;
use sightline_core::{error::Error, storage::Storage};

use super::{Workspace, offline};
use crate::server::default_storage;

/// Whom to ask.
#[derive(clap::Args)]
pub(super) struct Attached {
    /// Answer from the disk, whatever an editor shows.
    #[arg(long)]
    pub(super) offline: bool,
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    /// The server of an editor, which knows its tabs and unsaved text.
    Editor,
    /// This process.
    Disk,
}

impl Attached {
    /// The result of a request, and who gave it.
    ///
    /// # Errors
    /// As the request.
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

/// The answer of a server that runs.
fn ask_editor(
    workspace: &Workspace,
    method: &str,
    params: &Value,
) -> Result<Option<Result<Value, Error>>, Error> {
    let root = offline::root(workspace)?;
    let dir = match &workspace.storage {
        Some(dir) => offline::absolute_path(dir)?.as_path().to_owned(),
        None => match default_storage() {
            Ok(dir) => dir,
            // What needs none is answered without.
            Err(_) => return Ok(None),
        },
    };
    let Ok(storage) = Storage::open(&dir) else {
        return Ok(None);
    };
    Ok(crate::ipc::client::request(&storage, &root, method, params))
}
