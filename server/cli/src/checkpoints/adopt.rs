//! `sightline checkpoint adopt`, and the hint to it.

use std::path::PathBuf;

use serde::Serialize;
use sightline_base::{escape::one_line, plural::plural};
use sightline_checkpoint::FolderStore;
use sightline_engine::{
    error::Error,
    handlers::checkpoint::{
        adopt::{adopt as take_over, all_stores, moved_stores},
        reference::NONE_YET,
    },
};

use super::{
    arguments::Adopt,
    confirm::{Proceed, ask, require_terminal},
    print_as,
};
use crate::{DONE, NEGATIVE, offline, print_message, requests::Requests};

/// The output with `--json`.
#[derive(Serialize)]
struct Adopted {
    store: String,
    checkpoints: usize,
}

/// `sightline checkpoint adopt`.
pub(super) fn adopt(arguments: &Adopt) -> Result<i32, Error> {
    let proceed = arguments.confirm.proceed_or_ask();
    let requests = Requests::offline(&arguments.workspace);
    let found = moved_stores(
        &requests.offline_server()?.context(),
        arguments.store.as_deref(),
    )?;
    let store = match &found[..] {
        [] => {
            print_message("no store of a moved folder matches this folder");
            return Ok(NEGATIVE);
        }
        [store] => store,
        several => {
            print_message("several stores match this folder; name one of them");
            several
                .iter()
                .for_each(|store| print_message(&about(store)));
            return Ok(NEGATIVE);
        }
    };
    if proceed != Proceed::Yes {
        if proceed == Proceed::Ask {
            require_terminal()?;
        }
        print_message(&about(store));
        if proceed == Proceed::DryRun {
            return Ok(DONE);
        }
        if !ask("The checkpoints are moved to this folder. ")? {
            return Ok(NEGATIVE);
        }
    }
    requests
        .with_maintenance(|requests| take_over(&requests.offline_server()?.context(), store))?;
    let adopted = Adopted {
        store: store.name.clone(),
        checkpoints: store.checkpoints,
    };
    print_as(&arguments.workspace, &adopted, |adopted| {
        let count = plural(adopted.checkpoints, "checkpoint");
        format!("{count} adopted\n")
    })
}

fn about(store: &FolderStore) -> String {
    let count = plural(store.checkpoints, "checkpoint");
    let folder = store.folder.as_ref().map_or_else(
        || "a folder that is not recorded".to_owned(),
        |folder| one_line(&folder.display().to_string()).into_owned(),
    );
    format!("{}: {count} of {folder}", one_line(&store.name))
}

/// Returns a message about stores that may belong to this folder, if there are any.
pub(crate) fn hint(requests: &Requests) -> Option<String> {
    let found = moved_stores(&requests.offline_server().ok()?.context(), None).ok()?;
    let store = found.first()?;
    let count = plural(store.checkpoints, "checkpoint");
    let folder = store.folder.as_ref()?.display().to_string();
    Some(format!(
        "{count} of {}, which no longer exists, may belong to this folder: `sightline checkpoint adopt`",
        one_line(&folder)
    ))
}

/// Returns a message for a folder without checkpoints: where there are some that may be meant.
pub(super) fn none_here(requests: &Requests) -> String {
    elsewhere(requests).unwrap_or_else(|| NONE_YET.to_owned())
}

/// Returns a message about checkpoints of other folders that may be meant.
pub(super) fn elsewhere(requests: &Requests) -> Option<String> {
    hint(requests).or_else(|| above(requests))
}

/// Returns a message about the checkpoints of a folder above this one.
fn above(requests: &Requests) -> Option<String> {
    let root = offline::root(&requests.workspace).ok()?.path;
    let stores = all_stores(&requests.offline_server().ok()?.context()).ok()?;
    let is_above = |folder: &&PathBuf| {
        root.as_path()
            .ancestors()
            .skip(1)
            .any(|one| one == **folder)
    };
    let folders = stores.iter().filter(|store| store.checkpoints > 0);
    let folder = folders
        .filter_map(|store| store.folder.as_ref())
        .filter(is_above)
        .max_by_key(|folder| folder.as_os_str().len())?;
    Some(format!(
        "no checkpoints of this folder; those of the folder above: `sightline checkpoint list --root {}`",
        one_line(&folder.display().to_string())
    ))
}
