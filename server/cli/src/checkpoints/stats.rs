//! `sightline checkpoint stats`.

use std::path::PathBuf;

use serde::Serialize;
use sightline_base::{escape::one_line, fs::bytes_below, plural::plural};
use sightline_engine::{
    error::Error,
    handlers::checkpoint::adopt::all_stores,
    render::{DIM, relative_time},
};
use sightline_protocol::{
    checkpoint::{CheckpointStatsParams, CheckpointStatsResult},
    method::CheckpointStats,
};

use super::{format::size, print_as};
use crate::requests::Requests;

/// The checkpoints of a folder.
#[derive(Serialize)]
struct FolderStats {
    folder: Option<PathBuf>,
    exists: bool,
    store: PathBuf,
    count: usize,
    bytes: u64,
    newest: i64,
}

/// Prints the number and disk usage of the checkpoints of the workspace.
pub(super) fn one(requests: &Requests) -> Result<i32, Error> {
    let stats = requests.call::<CheckpointStats>(CheckpointStatsParams::default())?;
    print_as(&requests.workspace, &stats, line)
}

fn line(stats: &CheckpointStatsResult) -> String {
    let count = plural(stats.count, "checkpoint");
    let mut line = format!("{count}, {}", size(stats.bytes));
    if let Some(oldest) = stats.oldest {
        line.push_str(&format!(", oldest {}", relative_time(oldest)));
    }
    if let Some(newest) = stats.newest.filter(|_| stats.count > 1) {
        line.push_str(&format!(", newest {}", relative_time(newest)));
    }
    format!("{line}\n")
}

/// Prints those of all folders in the data directory.
pub(super) fn all(requests: &Requests) -> Result<i32, Error> {
    let stores = all_stores(&requests.offline_server()?.context())?;
    let folders: Vec<FolderStats> = stores
        .into_iter()
        .map(|store| FolderStats {
            exists: store.folder.as_ref().is_some_and(|folder| folder.is_dir()),
            count: store.checkpoints,
            bytes: bytes_below(&store.dir),
            newest: store.newest() * 1000,
            folder: store.folder,
            store: store.dir,
        })
        .collect();
    print_as(&requests.workspace, &folders, |folders| {
        let lines: String = folders.iter().map(folder_line).collect();
        let count: usize = folders.iter().map(|one| one.count).sum();
        let bytes = folders.iter().map(|one| one.bytes).sum();
        format!(
            "{lines}{}, {} in all\n",
            plural(count, "checkpoint"),
            size(bytes)
        )
    })
}

fn folder_line(one: &FolderStats) -> String {
    let folder = one.folder.as_ref().map_or_else(
        || "(folder not recorded)".to_owned(),
        |folder| one_line(&folder.to_string_lossy()).into_owned(),
    );
    let gone = if one.exists {
        String::new()
    } else {
        format!("  {DIM}no longer exists{DIM:#}")
    };
    let (count, size) = (plural(one.count, "checkpoint"), size(one.bytes));
    let newest = relative_time(one.newest);
    format!("{count:>16}  {size:>11}  {newest:>11}  {folder}{gone}\n")
}
