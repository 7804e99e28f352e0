//! The last restores of a workspace folder, so that agents learn what became of its files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sightline_base::{
    clock::now_millis, escape, plural::plural, storage::atomic_file, words::first_of,
};
use sightline_checkpoint::{Checkpoint, Checkpoints, Purpose, restore::Scope};
use sightline_protocol::checkpoint::short_id;

use crate::error::Error;

/// Maximum number of restores.
const MAX_RESTORES: usize = 20;
/// Maximum number of files that are named.
const MAX_NAMES: usize = 20;

/// A restore.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LoggedRestore {
    /// Time, in milliseconds since the Unix epoch.
    pub at: i64,
    /// What was done, as a sentence for a model.
    pub text: String,
}

fn path(checkpoints: &Checkpoints) -> PathBuf {
    checkpoints
        .git_dir()
        .with_file_name("state")
        .join("restore_log.json")
}

/// Logs a restore of files to `checkpoint`.
pub fn add(checkpoints: &Checkpoints, checkpoint: &Checkpoint, scope: &Scope, files: &[String]) {
    if files.is_empty() {
        return;
    }
    if let Err(error) = write(checkpoints, sentence(checkpoint, scope, files)) {
        tracing::warn!(%error, "cannot log a restore");
    }
}

fn write(checkpoints: &Checkpoints, text: String) -> Result<(), Error> {
    let mut logged = read(checkpoints);
    logged.push(LoggedRestore {
        at: now_millis(),
        text,
    });
    let kept = logged.split_off(logged.len().saturating_sub(MAX_RESTORES));
    let text = serde_json::to_vec(&kept).map_err(|error| Error::storage(error.to_string()))?;
    Ok(atomic_file::replace(&path(checkpoints), &text)?)
}

/// Returns the last restores, oldest first. A log that cannot be read has none.
pub fn read(checkpoints: &Checkpoints) -> Vec<LoggedRestore> {
    let text = atomic_file::read(&path(checkpoints)).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Returns what a model has to know: the files and their state.
fn sentence(checkpoint: &Checkpoint, scope: &Scope, files: &[String]) -> String {
    let metadata = &checkpoint.metadata;
    let were = if files.len() == 1 { "was" } else { "were" };
    let names = files.iter().map(|name| escape::one_line(name).into_owned());
    let names = first_of(&names.collect::<Vec<_>>(), MAX_NAMES);
    let files = plural(files.len(), "file");
    if matches!(metadata.purpose, Purpose::Undo { .. }) {
        return format!("A restore was undone, which changed {files}: {names}.");
    }
    let created = i64::try_from(metadata.created).unwrap_or_default();
    let created = jiff::Timestamp::from_millisecond(created).unwrap_or_default();
    let created = created.strftime("%Y-%m-%d %H:%M:%S UTC");
    let id = checkpoint.id.to_string();
    let id = short_id(&id);
    let turn = metadata.turn.as_ref().map(|turn| {
        let side = if metadata.turn_end { "after" } else { "before" };
        let (agent, turn) = (escape::one_line(&turn.agent), escape::one_line(&turn.turn));
        format!(", {side} turn {turn} of {agent}")
    });
    let label = metadata.label.as_ref();
    let label = label.map(|label| format!(" {:?}", escape::one_line(label)));
    let name = [label, turn].into_iter().flatten().collect::<String>();
    if let Scope::Part(_) = scope {
        return format!(
            "Changes after checkpoint {id} ({created}{name}) were reverted in {files}, and later changes were kept: {names}."
        );
    }
    format!("{files} {were} restored to the state of checkpoint {id} ({created}{name}): {names}.")
}
