//! `sightline uninstall --data`: deletes the data directory, after showing its content.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sightline_base::{fs::bytes_below, storage::Storage};
use sightline_engine::error::Error;
use sightline_ipc as ipc;

use super::{
    DONE, NEGATIVE,
    checkpoints::{ConfirmArgs, Proceed, ask, size},
    offline, print, print_message,
};

/// File that every data directory contains.
const VERSION_FILE: &str = "version";

#[derive(clap::Args)]
pub(super) struct Uninstall {
    /// Delete the data directory with all checkpoints, tasks and conversations.
    #[arg(long, required = true)]
    #[allow(
        dead_code,
        reason = "required, so that the command says what it deletes"
    )]
    data: bool,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

pub(super) fn run(arguments: &Uninstall) -> Result<i32, Error> {
    let dir = offline::storage_dir(arguments.storage.as_deref())?;
    let storage = Storage::open(&dir)?;
    let dir = storage.dir();
    let parts = match entries(dir) {
        Ok(parts) => parts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            print_message(&format!("there is no data in {}", dir.display()));
            return Ok(DONE);
        }
        Err(error) => return Err(failed(dir, &error)),
    };
    if !parts.iter().any(|(name, _)| name == VERSION_FILE) {
        return Err(Error::invalid(format!(
            "{} is not a data directory of Sightline; nothing was deleted",
            dir.display()
        )));
    }
    let mut lines = format!("{}:\n", dir.display());
    let total = (
        "total".to_owned(),
        parts.iter().map(|(_, bytes)| bytes).sum(),
    );
    let parts = parts.iter().filter(|(_, bytes)| *bytes > 0);
    for (name, bytes) in parts.chain([&total]) {
        lines.push_str(&format!("  {name:<14} {}\n", size(*bytes)));
    }
    print(&lines)?;
    let is_confirmed = match arguments.confirm.proceed()? {
        Proceed::DryRun => return Ok(DONE),
        Proceed::Ask => {
            ask("All checkpoints, tasks and conversations are deleted. This cannot be undone. ")?
        }
        Proceed::Yes => true,
    };
    if !is_confirmed {
        print_message("nothing was deleted");
        return Ok(NEGATIVE);
    }
    if ipc::client::running(&storage, None) > 0 {
        return Err(Error::storage(
            "a server is running; close your editors first. Nothing was deleted",
        ));
    }
    fs::remove_dir_all(dir).map_err(|error| failed(dir, &error))?;
    print(&format!("deleted {}\n", dir.display()))?;
    Ok(DONE)
}

fn failed(dir: &Path, error: &io::Error) -> Error {
    Error::storage(format!("cannot delete {}: {error}", dir.display()))
}

/// Returns the names in a data directory with their sizes, largest first.
pub(super) fn entries(dir: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        parts.push((name, bytes_below(&entry.path())));
    }
    parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(parts)
}
