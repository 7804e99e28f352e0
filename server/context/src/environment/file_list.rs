//! The file list section. The caller provides the list.

use super::{Inputs, render::SectionDraft};
use sightline_base::{cancel::Cancel, error::Error};

/// Printed file list of the primary root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileList {
    /// One entry per line, and closing remarks.
    pub text: String,
    /// Number of entries left out: denied, or links that lead outside the workspace.
    pub omitted: u32,
}

/// Returns the section. If the root cannot be listed, the section shows the error.
pub(super) fn draft(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    if inputs.access.roots().is_empty() {
        return Ok(SectionDraft::default());
    }
    match (inputs.files)(cancel) {
        Ok(list) => Ok(SectionDraft {
            omitted: list.omitted,
            ..SectionDraft::text(&list.text)
        }),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => Ok(SectionDraft::text(&format!(
            "(cannot list the files: {error})"
        ))),
    }
}
