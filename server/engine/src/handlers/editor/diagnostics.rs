//! `sightline/diagnostics`.

use std::collections::BTreeMap;

use sightline_context::environment::diagnostic_line;
use sightline_protocol::editor::{DiagnosticsParams, DiagnosticsResult, FileDiagnostics};

use crate::{error::Error, request_context::ReadContext};

/// Returns the diagnostics of files that agents may see.
pub fn run(
    context: &ReadContext<'_>,
    params: DiagnosticsParams,
) -> Result<DiagnosticsResult, Error> {
    let snapshot = &context.snapshot;
    let view = context.view();
    let roots = view.roots();
    let outside = snapshot.outside_allowed();
    let mut files = BTreeMap::new();
    let mut omitted = 0;
    let uris: Vec<String> = match params.paths {
        Some(paths) => {
            let mut uris = Vec::new();
            for path in paths {
                let location = roots.locate(&path)?;
                view.require(&location, outside)?;
                uris.push(roots.absolute(&location).to_uri());
            }
            uris
        }
        None => snapshot.editor.diagnosed().map(str::to_owned).collect(),
    };
    for uri in uris {
        context.cancel.check()?;
        let diagnostics = snapshot.editor.diagnostics(&uri);
        if diagnostics.is_empty() || roots.locate(&uri).is_err() {
            continue;
        }
        match snapshot.allowed_location(&view, &uri, outside) {
            Some(location) => {
                files.insert(roots.result_path(&location).0, diagnostics.to_vec());
            }
            None => omitted += 1,
        }
    }
    let files: Vec<FileDiagnostics> = files
        .into_iter()
        .map(|(path, diagnostics)| FileDiagnostics { path, diagnostics })
        .collect();
    let lines = files.iter().flat_map(|file| {
        let diagnostics = file.diagnostics.iter();
        diagnostics.map(|found| diagnostic_line(&file.path, found))
    });
    Ok(DiagnosticsResult {
        text: lines.collect::<Vec<_>>().join("\n"),
        files,
        omitted,
    })
}
