//! What is chosen to be restored, and the requests for it.

use std::sync::Arc;

use sightline_engine::error::Error;
use sightline_protocol::{
    checkpoint::{
        DiffCheckpointsParams, DiffCheckpointsResult, FileHunks, PreviewRestoreParams,
        PreviewRestoreResult, RestoreCheckpointParams, RestoreCheckpointResult, RestoreOnly,
    },
    error::ErrorKind,
    method::{DiffCheckpoints, PreviewRestore, RestoreCheckpoint},
};

use crate::requests::Requests;

/// A difference: of a turn, or from a checkpoint to the current workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::checkpoints) struct Compared {
    pub(in crate::checkpoints) from: String,
    /// URIs of the only files. Empty means all.
    pub(in crate::checkpoints) files: Vec<String>,
}

impl Compared {
    pub(in crate::checkpoints) fn difference(
        &self,
        requests: &Requests,
    ) -> Result<DiffCheckpointsResult, Error> {
        requests.call::<DiffCheckpoints>(DiffCheckpointsParams {
            from: self.from.clone(),
            paths: Some(self.files.clone()).filter(|files| !files.is_empty()),
            root: requests.root_uri()?,
            patch: true,
            ..DiffCheckpointsParams::default()
        })
    }
}

/// What to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::checkpoints) struct Choice {
    pub(in crate::checkpoints) id: String,
    /// URIs of the only whole files.
    pub(in crate::checkpoints) files: Option<Vec<String>>,
    /// Files of which only some hunks are restored.
    pub(in crate::checkpoints) hunks: Vec<SomeHunks>,
    /// Whether only what the turn changed is reverted, and later changes are kept.
    pub(in crate::checkpoints) only_turn: bool,
}

/// Some hunks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::checkpoints) struct SomeHunks {
    pub(in crate::checkpoints) uri: String,
    /// Numbers from 1.
    pub(in crate::checkpoints) numbers: Vec<u32>,
    /// The patch that they were chosen in.
    pub(in crate::checkpoints) patch: Arc<str>,
}

impl Choice {
    pub(in crate::checkpoints) fn whole(id: String) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    fn only(&self) -> Option<RestoreOnly> {
        self.only_turn.then_some(RestoreOnly::Turn)
    }

    fn hunks(&self) -> Option<Vec<FileHunks>> {
        let files = self.hunks.iter().map(|file| FileHunks {
            path: file.uri.clone(),
            hunks: file.numbers.clone(),
        });
        (!self.hunks.is_empty()).then(|| files.collect())
    }

    /// Previews the restore.
    ///
    /// # Errors
    /// `conflict` if a file has changed since its hunks were chosen: their numbers may be those of others.
    pub(in crate::checkpoints) fn preview(
        &self,
        requests: &Requests,
        undo: bool,
    ) -> Result<PreviewRestoreResult, Error> {
        let preview = requests.call::<PreviewRestore>(PreviewRestoreParams {
            id: self.id.clone(),
            paths: self.files.clone(),
            root: requests.root_uri()?,
            undo: Some(undo),
            only: self.only(),
            hunks: self.hunks(),
            ..PreviewRestoreParams::default()
        });
        // After the preview: its token fails if a file changes from now on.
        for file in &self.hunks {
            let compared = Compared {
                from: self.id.clone(),
                files: vec![file.uri.clone()],
            };
            let now = compared.difference(requests)?;
            if now.text.as_deref().unwrap_or_default() != &*file.patch {
                let why = "a file changed after its hunks were chosen; choose them again";
                return Err(Error::new(ErrorKind::Conflict, why.to_owned()));
            }
        }
        preview
    }

    pub(in crate::checkpoints) fn restore(
        &self,
        requests: &Requests,
        token: String,
    ) -> Result<RestoreCheckpointResult, Error> {
        requests.call::<RestoreCheckpoint>(RestoreCheckpointParams {
            id: self.id.clone(),
            paths: self.files.clone(),
            root: requests.root_uri()?,
            token: Some(token),
            only: self.only(),
            hunks: self.hunks(),
            ..RestoreCheckpointParams::default()
        })
    }
}
