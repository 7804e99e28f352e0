//! The file list: made elsewhere, shown here.

use sightline_protocol::error::ErrorKind;

use super::{Inputs, render::SectionDraft};
use crate::{cancel::Cancel, error::Error};

/// The file list of the primary root, ready to print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileList {
    /// One entry per line, and closing remarks.
    pub text: String,
    /// Entries left out: denied, or links that lead outside the workspace.
    pub omitted: u32,
}

/// The list. A root that cannot be listed costs the section, not the block.
pub(super) fn draft(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    if inputs.access.roots().is_empty() {
        return Ok(SectionDraft::default());
    }
    match (inputs.files)(cancel) {
        Ok(list) => Ok(SectionDraft {
            omitted: list.omitted,
            ..SectionDraft::text(&list.text)
        }),
        Err(error) if error.kind == ErrorKind::Cancelled => Err(error),
        Err(error) => Ok(SectionDraft::text(&format!("(Cannot be listed: {error})"))),
    }
}
