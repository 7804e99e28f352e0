//! Lists of files: visible, in tabs, unsaved, recently modified.

use std::{collections::HashSet, path::Path};

use sightline_protocol::settings::OutsideFiles;

use super::{
    Inputs,
    render::{DeliveredItem, Delivery, SectionDraft},
};
use crate::{
    access::{PathKind, Verdict},
    cancel::Cancel,
    error::Error,
    escape,
    path::{Location, Roots},
};

/// A file that changed behind the agent's back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifiedFile {
    /// The tracker's name for it, given back in
    /// [`super::Block::delivered_files`].
    pub path: String,
    /// It is gone.
    pub deleted: bool,
    /// Where it is.
    pub location: Location,
}

/// Does a list show files that are not on disk?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    LeaveOut,
    Show,
}

/// The visible files.
pub(super) fn visible(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let visible = inputs.editor.visible();
    let mut draft = list(inputs, &visible.value, Missing::LeaveOut, cancel)?;
    if draft.lines.is_empty() {
        draft.lines.push("(No visible files)".to_owned());
    }
    draft.derived = visible.derived;
    Ok(draft)
}

/// The files in tabs.
pub(super) fn tabs(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let tabs = inputs.editor.tabs();
    let mut draft = list(inputs, &tabs.value, Missing::LeaveOut, cancel)?;
    if draft.lines.is_empty() {
        draft.lines.push("(No open tabs)".to_owned());
    }
    draft.derived = tabs.derived;
    Ok(draft)
}

/// The files with unsaved changes; a new one need not be on disk yet.
pub(super) fn unsaved(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    list(
        inputs,
        &inputs.editor.unsaved(inputs.access),
        Missing::Show,
        cancel,
    )
}

/// What changed since the agent last saw it.
pub(super) fn recently_modified(
    inputs: &Inputs<'_>,
    cancel: &Cancel,
) -> Result<SectionDraft, Error> {
    let roots = inputs.access.roots();
    let mut draft = SectionDraft {
        state_lines: Some(Vec::new()),
        ..SectionDraft::default()
    };
    for modified in inputs.recently_modified {
        cancel.check()?;
        if !look(inputs, &modified.location).0 {
            draft.omit();
            continue;
        }
        if draft.lines.is_empty() {
            draft.lines.push(
                "These changed after you last read or wrote them; read them again before you edit:"
                    .to_owned(),
            );
        }
        draft.delivered.push(Delivery {
            line: Some(draft.lines.len()),
            what: DeliveredItem::File(modified.path.clone()),
        });
        let mut line = line_for(roots, &modified.location);
        if modified.deleted {
            line.push_str(" (deleted)");
        }
        draft.lines.push(line);
    }
    Ok(draft)
}

/// The files among `uris` that may be shown, each once, in their order.
fn list(
    inputs: &Inputs<'_>,
    uris: &[&str],
    missing: Missing,
    cancel: &Cancel,
) -> Result<SectionDraft, Error> {
    let roots = inputs.access.roots();
    let mut draft = SectionDraft::default();
    let mut seen_uris = HashSet::new();
    let mut seen_paths = HashSet::new();
    for uri in uris {
        cancel.check()?;
        if !seen_uris.insert(*uri) {
            continue;
        }
        let Some(location) = place(roots, uri) else {
            draft.omit();
            continue;
        };
        let path = roots.absolute(&location);
        let (may_show, there) = look(inputs, &location);
        let shown = may_show && (missing == Missing::Show || there != PathKind::Missing);
        // The same file can be written in two ways.
        if !seen_paths.insert(path) {
            continue;
        }
        if shown {
            draft.lines.push(line_for(roots, &location));
        } else {
            draft.omit();
        }
    }
    Ok(draft)
}

/// The file behind a document's URI; `None` for documents that are no file.
fn place(roots: &Roots, uri: &str) -> Option<Location> {
    let names_file = uri
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("file:/"));
    if !names_file && !Path::new(uri).is_absolute() {
        return None;
    }
    roots.locate(uri).ok()
}

/// May it be shown, and what is there? Without any root everything the user opened
/// is outside, and shown. A file that is open in the editor is judged by where it lay
/// when it was opened, too.
fn look(inputs: &Inputs<'_>, location: &Location) -> (bool, PathKind) {
    let is_shown = |verdict: Verdict| match verdict {
        Verdict::Allowed => true,
        Verdict::Denied(_) => false,
        Verdict::Outside => {
            inputs.settings.outside_files == OutsideFiles::Show || inputs.access.roots().is_empty()
        }
    };
    let uri = inputs.access.roots().absolute(location).to_uri();
    let open = inputs.editor.document(&uri);
    let (verdict, there) = inputs.access.check_kind(location);
    let may_show = is_shown(verdict)
        && open.is_none_or(|open| is_shown(inputs.access.check_origin(&open.origin)));
    (may_show, there)
}

fn line_for(roots: &Roots, location: &Location) -> String {
    escape::one_line(&roots.block_path(location).0).into_owned()
}
