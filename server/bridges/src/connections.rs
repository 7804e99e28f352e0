//! The connected agents, as the client sees them.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use sightline_engine::client::Client;
use sightline_protocol::{
    editor::DidChangeBridgesParams,
    method::{DidChangeBridges, Notification},
};

/// The connected agents. The client is notified of changes.
#[derive(Clone)]
pub(super) struct Connections(Arc<ConnectionList>);

struct ConnectionList {
    client: Arc<Client>,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    last: u64,
    names: BTreeMap<u64, String>,
    is_paused: bool,
    environment: BTreeMap<String, String>,
    notifies: bool,
}

/// A connected agent, until it is dropped.
pub(super) struct Connected(Connections, u64);

impl Connections {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self(Arc::new(ConnectionList {
            client,
            state: Mutex::default(),
        }))
    }

    pub(super) fn add(&self) -> Connected {
        let mut id = 0;
        self.change(|state| {
            state.last += 1;
            id = state.last;
            state.names.insert(id, "agent".to_owned())
        });
        Connected(self.clone(), id)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.state.lock().names.values().cloned().collect()
    }

    /// Sets whether the client is notified.
    pub(super) fn set_notifies(&self, notifies: bool) {
        self.0.state.lock().notifies = notifies;
    }

    pub(super) fn set_paused(&self, is_paused: bool) {
        self.change(|state| state.is_paused = is_paused);
    }

    /// Sets the variables by which agents in terminals of the editor find the bridges.
    pub(super) fn set_environment(&self, environment: BTreeMap<String, String>) {
        if self.0.state.lock().environment != environment {
            self.change(|state| state.environment = environment);
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.0.state.lock().is_paused
    }

    /// Changes the state, and notifies the client in the order of changes.
    fn change<T>(&self, change: impl FnOnce(&mut ConnectionState) -> T) {
        let state = &mut *self.0.state.lock();
        change(state);
        if state.notifies {
            let params = DidChangeBridgesParams {
                agents: state.names.values().cloned().collect(),
                is_paused: state.is_paused,
                environment: state.environment.clone(),
            };
            let client = &self.0.client;
            client.notify_latest(DidChangeBridges::NAME, "", &params);
        }
    }
}

impl Connected {
    pub(super) fn name(&self) -> String {
        let connections = &self.0.0;
        let state = connections.state.lock();
        state.names.get(&self.1).cloned().unwrap_or_default()
    }

    /// Sets the name that the agent gives itself.
    pub(super) fn set_name(&self, name: &str) {
        let visible = name.chars().filter(|character| !character.is_control());
        let name = visible.take(64).collect();
        self.0.change(|state| state.names.insert(self.1, name));
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.change(|state| state.names.remove(&self.1));
    }
}
