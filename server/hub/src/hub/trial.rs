//! Starts one server without an agent, to see whether it works.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use sightline_protocol::mcp::McpServer;

use super::{
    Hub, Setup,
    hosted::{Hosted, State},
    stop,
};

/// How often the state of the server is looked at.
const STEP: Duration = Duration::from_millis(20);

/// Starts a server as in the session of an agent, and ends it when it has sent its lists. Returns it with its
/// tools, and how long that took.
///
/// # Errors
/// If there is no such server, or why it cannot be used.
pub fn try_server(setup: Setup, name: &str) -> Result<(McpServer, Duration), String> {
    let (ended, _end) = mpsc::channel();
    let servers = setup.servers.as_ref();
    let manager = &servers.ok_or("there is no data directory")?.manager;
    manager.get(name).map_err(|error| error.to_string())?;
    let store = manager.store.clone();
    let hub = Hub::new(setup, ended);
    let mut started = None;
    let outcome = loop {
        {
            let mut hub = hub.lock();
            // Nothing is printed without an agent.
            hub.tick().map_err(|error| error.to_string())?;
            let is_it = |server: &Hosted| server.server.name == name;
            let Some(at) = hub.servers.iter().position(is_it) else {
                break Err("its configuration cannot be read".to_owned());
            };
            if started.is_none() && !matches!(hub.servers[at].state, State::Failed(..)) {
                started = Some(Instant::now());
                if let Err(why) = hub.ensure_started(at) {
                    break Err(why);
                }
            }
            let server = &hub.servers[at];
            match &server.state {
                State::Failed(why, _) => break Err(why.clone()),
                State::Ready if !server.awaits_lists() => {
                    let took = started.map(|started| started.elapsed());
                    break Ok((server.report(), took.unwrap_or_default()));
                }
                _ => {}
            }
        }
        thread::sleep(STEP);
    };
    stop(&hub);
    store.end_session();
    outcome
}
