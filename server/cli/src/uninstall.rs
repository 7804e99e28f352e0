//! `sightline uninstall --data`: deletes what Sightline has in the data directory, after showing it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sightline_agents::servers::store::Store;
use sightline_base::{
    fs::bytes_below,
    storage::{Storage, entries},
};
use sightline_engine::error::Error;
use sightline_ipc as ipc;

use super::{
    DONE, NEGATIVE,
    checkpoints::{ConfirmArgs, Proceed, ask, size},
    offline, print, print_message,
};

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
    if !dir.exists() {
        print_message(&format!("there is no data in {}", dir.display()));
        return Ok(DONE);
    }
    let own = storage.own_entries()?;
    if !own.iter().any(|name| name == entries::VERSION) {
        return Err(Error::invalid(format!(
            "{} is not a data directory of Sightline; nothing was deleted",
            dir.display()
        )));
    }
    let parts = sizes(&storage)?;
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
    let adopted = Store::new(storage.clone()).adopted_names();
    if !adopted.is_empty() {
        print_message(&format!(
            "these MCP servers can then not be moved back to their agents: {}; run `sightline mcp release NAME` first",
            adopted.join(", ")
        ));
    }
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
    for name in own {
        let path = dir.join(name);
        let deleted = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        deleted.map_err(|error| failed(&path, &error))?;
    }
    // It may contain files of others.
    let text = match fs::remove_dir(dir) {
        Ok(()) => format!("deleted {}\n", dir.display()),
        Err(_) => format!(
            "deleted the data in {}; the directory is kept\n",
            dir.display()
        ),
    };
    print(&text)?;
    Ok(DONE)
}

fn failed(dir: &Path, error: &io::Error) -> Error {
    Error::storage(format!("cannot delete {}: {error}", dir.display()))
}

/// Returns the entries of Sightline in a data directory with their sizes, largest first.
pub(super) fn sizes(storage: &Storage) -> Result<Vec<(String, u64)>, Error> {
    let own = storage.own_entries()?;
    let mut parts: Vec<_> = own
        .iter()
        .map(|name| {
            (
                name.to_string_lossy().into_owned(),
                bytes_below(&storage.dir().join(name)),
            )
        })
        .collect();
    parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(parts)
}
