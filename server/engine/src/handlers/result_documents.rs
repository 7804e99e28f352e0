//! Results as documents, for clients that discard command results.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use sightline_base::path::AbsPath;

use crate::{error::Error, request_context::RequestContext};

/// Maximum number of documents kept.
const KEPT: usize = 20;

/// Writes a result to a new, read-only document in the data directory. Returns its URI.
/// The name is new each time, because editors do not reload open documents.
///
/// # Errors
/// Kind `storage` if it cannot be written.
pub fn write(context: &RequestContext<'_>, method: &str, text: &str) -> Result<String, Error> {
    let name = method.rsplit('/').next().unwrap_or("result");
    write_as(context, name, ".md", text)
}

/// Like [`write()`], with an explicit name. The editor derives the language from `ending`.
///
/// # Errors
/// As [`write()`].
pub fn write_as(
    context: &RequestContext<'_>,
    name: &str,
    ending: &str,
    text: &str,
) -> Result<String, Error> {
    let storage = context.storage()?;
    let directory = storage.results()?;
    let written = || -> io::Result<PathBuf> {
        let mut file = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .suffix(ending)
            .tempfile_in(&directory)?;
        file.write_all(text.as_bytes())?;
        let mut permissions = file.as_file().metadata()?.permissions();
        permissions.set_readonly(true);
        file.as_file().set_permissions(permissions)?;
        Ok(file.keep()?.1)
    };
    let path = written().map_err(|error| {
        let directory = directory.display();
        Error::storage(format!(
            "cannot write a result document in {directory}: {error}"
        ))
    })?;
    prune(&directory);
    AbsPath::new(&path)
        .map(|path| path.to_uri())
        .ok_or_else(|| Error::storage("the data directory is not absolute"))
}

fn prune(directory: &std::path::Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut documents: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    documents.sort();
    let excess = documents.len().saturating_sub(KEPT);
    for (_, path) in documents.into_iter().take(excess) {
        let _ = fs::remove_file(path);
    }
}
