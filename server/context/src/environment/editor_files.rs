//! The sections that list files: visible, open in tabs, unsaved, recently modified.

use std::{collections::HashSet, path::Path};

use sightline_protocol::{
    environment::{NO_OPEN_TABS, NO_VISIBLE_FILES},
    settings::OutsideFiles,
};

use super::{
    Inputs,
    render::{DeliveredItem, Delivery, SectionDraft},
};
use crate::editor::OpenDocument;
use sightline_access::{Content, PathKind, Verdict};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    escape, limits,
    path::{Location, Roots},
};

/// A file that the user changed after the agent last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifiedFile {
    /// The tracker's name, returned in [`super::Block::delivered_files`].
    pub path: String,
    /// Whether the file was deleted.
    pub deleted: bool,
    /// Location of the file.
    pub location: Location,
}

/// Whether a list includes files that do not exist on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    LeaveOut,
    Show,
}

pub(super) fn visible(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let visible = inputs.editor.visible();
    let mut draft = list(inputs, &visible.value, Missing::LeaveOut, cancel)?;
    if draft.lines.is_empty() {
        draft.lines.push(NO_VISIBLE_FILES.to_owned());
    }
    draft.derived = visible.derived;
    Ok(draft)
}

pub(super) fn tabs(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let tabs = inputs.editor.tabs();
    let mut draft = list(inputs, &tabs.value, Missing::LeaveOut, cancel)?;
    if draft.lines.is_empty() {
        draft.lines.push(NO_OPEN_TABS.to_owned());
    }
    draft.derived = tabs.derived;
    Ok(draft)
}

/// Drafts the list of files with unsaved changes, including files not yet on disk.
pub(super) fn unsaved(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let mut uris = inputs.editor.unsaved(inputs.access);
    let further = inputs.params.unsaved_files.iter().map(String::as_str);
    uris.extend(further.take(limits::MAX_EDITOR_ITEMS));
    list(inputs, &uris, Missing::Show, cancel)
}

/// Drafts the list of files that changed since the agent last saw them.
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

/// Lists the files among `uris` that may be shown, without duplicates.
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
        // One file can have several URIs.
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

/// Returns the location of a document, or `None` if it is not a file.
pub(super) fn place(roots: &Roots, uri: &str) -> Option<Location> {
    let names_file = uri
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("file:/"));
    if !names_file && !Path::new(uri).is_absolute() {
        return None;
    }
    roots.locate(uri).ok()
}

/// Returns whether a file may be shown, and what exists at its path. Without any root, every file
/// that the user opened is outside and may be shown. An open file is also checked at its location
/// when it was opened.
pub(super) fn look(inputs: &Inputs<'_>, location: &Location) -> (bool, PathKind) {
    let is_shown = |verdict: Verdict| match verdict {
        Verdict::Allowed => true,
        Verdict::Denied(_) => false,
        Verdict::Outside => {
            inputs.settings.outside_files == OutsideFiles::Show || inputs.access.roots().is_empty()
        }
    };
    let uri = inputs.access.roots().absolute(location).to_uri();
    let open = inputs.editor.document(&uri);
    let content = open.map_or(Content::OnDisk, |open| Content::Text(open.document.text()));
    let (verdict, there) = inputs.access.check_kind(location, content);
    let is_origin_shown = |open: &OpenDocument| {
        is_shown(
            inputs
                .access
                .check_origin(&open.origin, open.document.text()),
        )
    };
    (is_shown(verdict) && open.is_none_or(is_origin_shown), there)
}

pub(super) fn line_for(roots: &Roots, location: &Location) -> String {
    escape::one_line(&roots.block_path(location).0).into_owned()
}
