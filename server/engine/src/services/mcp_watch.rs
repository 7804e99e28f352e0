//! Notifies the client of changes of the MCP servers of agents. The sessions of agents are other processes,
//! so the files in which they report are looked at.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use sightline_agents::servers::{Manager, store::Version};
use sightline_protocol::{
    mcp::DidChangeMcpServersParams,
    method::{DidChangeMcpServers, Notification},
};

use super::Services;
use crate::session::Snapshot;

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(1);

/// What the client has seen.
#[derive(Default)]
pub struct McpWatch(Mutex<Option<Watched>>);

struct Watched {
    manager: Manager,
    versions: Vec<Option<Version>>,
    revision: u64,
}

impl Services {
    /// Notifies the client of changes from now on.
    pub(crate) fn watch_mcp(self: &Arc<Self>, snapshot: &Snapshot, manager: &Manager) {
        if !snapshot.settings.notifications {
            return;
        }
        let mut watched = self.mcp_watch.0.lock();
        match &mut *watched {
            Some(watched) if watched.manager.roots == manager.roots => {}
            Some(watched) => {
                watched.manager = manager.clone();
                watched.versions = manager.versions();
            }
            None => {
                *watched = Some(Watched {
                    manager: manager.clone(),
                    versions: manager.versions(),
                    revision: 0,
                });
                drop(watched);
                self.run_after(INTERVAL, look);
            }
        }
    }
}

fn look(services: &Arc<Services>) {
    if let Some(watched) = &mut *services.mcp_watch.0.lock() {
        let versions = watched.manager.versions();
        if versions != watched.versions {
            watched.versions = versions;
            watched.revision += 1;
            let params = DidChangeMcpServersParams {
                revision: watched.revision,
            };
            let client = &services.client;
            client.notify_latest(DidChangeMcpServers::NAME, "", &params);
        }
    }
    services.run_after(INTERVAL, look);
}
