//! The states whose changes are events of the page.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use sightline_base::{decision_log, fs::dir::stat, storage::entries};
use sightline_checkpoint::Checkpoints;
use sightline_engine::settings::config_file;
use sightline_ipc::client::Reply;
use sightline_page::Watched;
use sightline_protocol::{
    editor::ConnectedAgentsParams,
    environment::{EnvironmentDetailsParams, SectionId},
    method::{ConnectedAgents, EnvironmentDetails},
};

use super::super::requests::Requests;

/// Returns the states of what the page shows.
pub(super) fn states(requests: &Requests) -> Vec<Watched> {
    let mut states = Vec::new();
    let mut add = |event, state| states.push(Watched { event, state });
    if let (Some(storage), Ok(root)) = (requests.storage(), requests.root()) {
        let checkpoints = Checkpoints::new(&storage, root);
        add("didCreateCheckpoint", stamp(&checkpoints.list_files()));
        add("didChangeTurns", stamp(&[checkpoints.turns_file()]));
        add("decision", stamp(&[decision_log::path(&storage)]));
        let dir = storage.dir();
        let agents = [entries::AGENTS, entries::SESSIONS].map(|name| dir.join(name));
        add("didChangeAgents", stamp(&agents));
        let mcp = dir.join(entries::MCP);
        let mut servers = vec![mcp.join("state.json"), mcp.join("sessions")];
        servers.extend(config_file::user_file().map(|file| file.with_file_name("mcp.json")));
        add("didChangeMcpServers", stamp(&servers));
    }
    let (is_running, revision) = editor(requests);
    add("didChangeServer", u64::from(is_running));
    add("didChangeContext", revision);
    add("didChangeBridges", connected_agents(requests));
    if let Ok(server) = requests.offline_server() {
        let context = server.context();
        let access = context.snapshot.access.get();
        // Removed rules end when the rules are read.
        let is_holding = access.view().0.roots().is_empty() || access.is_holding();
        let files = stamp(&access.watched_files());
        add("didChangeRules", files.wrapping_add(u64::from(is_holding)));
    }
    states
}

/// Returns whether a server is running, and the revision of its context.
fn editor(requests: &Requests) -> (bool, u64) {
    let params = EnvironmentDetailsParams {
        consume: false,
        sections: Some(vec![SectionId::Mode]),
        ..EnvironmentDetailsParams::default()
    };
    match requests.ask::<EnvironmentDetails>(&params) {
        Some(Reply::Answered(answer)) => (true, answer.map_or(0, |details| details.revision)),
        Some(Reply::Silent) => (true, 0),
        _ => (false, 0),
    }
}

/// Returns a number that changes with the agents that are connected to the editor, and their pause.
fn connected_agents(requests: &Requests) -> u64 {
    let mut hasher = DefaultHasher::new();
    let params = ConnectedAgentsParams::default();
    if let Some(Reply::Answered(Ok(answer))) = requests.ask::<ConnectedAgents>(&params) {
        (answer.agents, answer.is_paused).hash(&mut hasher);
    }
    hasher.finish()
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
    let Ok(found) = stat(path) else {
        return;
    };
    found.stamp.size.hash(hasher);
    found.stamp.mtime.hash(hasher);
    // A file that is replaced at once can have the same size and time.
    found.stamp.inode.hash(hasher);
}
