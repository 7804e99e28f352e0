//! The states whose changes are events of the page.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use serde_json::json;
use sightline_base::decision_log;
use sightline_checkpoint::Checkpoints;
use sightline_engine::settings::config_file;
use sightline_ipc::client::Reply;
use sightline_page::Watched;
use sightline_protocol::{environment::EnvironmentDetailsResult, method::EnvironmentDetails};

use super::super::requests::named::NamedRequests;

/// Returns the states of what the page shows.
pub(super) fn states(requests: &NamedRequests) -> Vec<Watched> {
    let mut states = Vec::new();
    let mut add = |event, state| states.push(Watched { event, state });
    if let Some(storage) = requests.storage() {
        let checkpoints = Checkpoints::new(&storage, requests.root());
        add("didCreateCheckpoint", stamp(&checkpoints.list_files()));
        add("didChangeTurns", stamp(&[checkpoints.turns_file()]));
        add("decision", stamp(&[decision_log::path(&storage)]));
        let dir = storage.dir();
        let sessions = dir.join("agent-sessions");
        add(
            "didChangeAgents",
            stamp(&[dir.join("agents.json"), sessions]),
        );
        let mut servers = vec![dir.join("mcp/state.json"), dir.join("mcp/sessions")];
        servers.extend(config_file::user_file().map(|file| file.with_file_name("mcp.json")));
        add("didChangeMcpServers", stamp(&servers));
    }
    let (is_running, revision) = editor(requests);
    add("didChangeServer", u64::from(is_running));
    add("didChangeContext", revision);
    if let Ok(context) = requests.context() {
        let access = context.snapshot.access.get();
        // Removed rules end when the rules are read.
        let is_holding = access.view().0.roots().is_empty() || access.is_holding();
        let files = stamp(&access.watched_files());
        add("didChangeRules", files.wrapping_add(u64::from(is_holding)));
    }
    states
}

/// Returns whether a server is running, and the revision of its context.
fn editor(requests: &NamedRequests) -> (bool, u64) {
    let params = json!({ "consume": false, "sections": ["mode"] });
    match requests.ask_running_server(
        <EnvironmentDetails as sightline_protocol::method::Request>::NAME,
        &params,
    ) {
        Some(Reply::Answered(answer)) => {
            let details = answer.ok().and_then(|answer| {
                serde_json::from_str::<EnvironmentDetailsResult>(answer.get()).ok()
            });
            (true, details.map_or(0, |details| details.revision))
        }
        Some(Reply::Silent) => (true, 0),
        _ => (false, 0),
    }
}

/// Returns a number that changes with the files, and with the files in them if they are folders.
fn stamp(paths: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        add(&mut hasher, path);
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for entry in entries {
            add(&mut hasher, &entry);
        }
    }
    hasher.finish()
}

fn add(hasher: &mut DefaultHasher, path: &Path) {
    path.hash(hasher);
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    metadata.len().hash(hasher);
    metadata.modified().ok().hash(hasher);
    // A file that is replaced at once can have the same size and time.
    #[cfg(unix)]
    std::os::unix::fs::MetadataExt::ino(&metadata).hash(hasher);
}
