//! The file list: made elsewhere, shown here.

use sightline_protocol::error::ErrorKind;

use super::{Inputs, render::Drawn};
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
pub(super) fn draw(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<Drawn, Error> {
    if inputs.access.roots().is_empty() {
        return Ok(Drawn::default());
    }
    match (inputs.files)(cancel) {
        Ok(list) => Ok(Drawn {
            omitted: list.omitted,
            ..Drawn::text(&list.text)
        }),
        Err(error) if error.kind == ErrorKind::Cancelled => Err(error),
        Err(error) => Ok(Drawn::text(&format!("(Cannot be listed: {error})"))),
    }
}
