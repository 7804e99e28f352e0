//! The section of errors and warnings in visible and recently modified files.

use std::collections::HashSet;

use sightline_protocol::editor::{Diagnostic, DiagnosticCode};

use super::{
    Inputs,
    editor_files::{line_for, look, place},
    render::SectionDraft,
};
use sightline_base::{cancel::Cancel, error::Error, escape, path::Location};

/// Least severe diagnostic that is listed: a warning.
const MAX_SEVERITY: u32 = 2;

pub(super) fn draft(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let roots = inputs.access.roots();
    let visible = inputs.editor.visible();
    let visible = visible
        .value
        .into_iter()
        .filter_map(|uri| place(roots, uri));
    let modified = inputs.recently_modified.iter();
    let modified = modified.map(|modified| modified.location.clone());
    let locations: Vec<Location> = visible.chain(modified).collect();
    let mut draft = SectionDraft::default();
    let mut seen = HashSet::new();
    for location in &locations {
        cancel.check()?;
        let path = roots.absolute(location);
        let found = inputs.editor.diagnostics(&path.to_uri());
        if found.is_empty() || !seen.insert(path) {
            continue;
        }
        if !look(inputs, location).0 {
            draft.omit();
            continue;
        }
        let path = line_for(roots, location);
        let found = found
            .iter()
            .filter(|found| found.severity.unwrap_or(1) <= MAX_SEVERITY);
        draft
            .lines
            .extend(found.map(|found| diagnostic_line(&path, found)));
    }
    Ok(draft)
}

/// Formats a diagnostic as compilers do: `path:line:column: error: message [code] (source)`.
pub fn diagnostic_line(path: &str, found: &Diagnostic) -> String {
    let start = found.range.start;
    let severity = match found.severity {
        Some(2) => "warning",
        Some(3) => "information",
        Some(4) => "hint",
        _ => "error",
    };
    let mut text = format!(
        "{path}:{}:{}: {severity}: {}",
        u64::from(start.line) + 1,
        u64::from(start.character) + 1,
        found.message
    );
    match &found.code {
        Some(DiagnosticCode::Text(code)) => text.push_str(&format!(" [{code}]")),
        Some(DiagnosticCode::Number(code)) => text.push_str(&format!(" [{code}]")),
        None => {}
    }
    if let Some(source) = &found.source {
        text.push_str(&format!(" ({source})"));
    }
    escape::one_line(&text).into_owned()
}
