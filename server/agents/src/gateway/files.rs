//! The files with addresses of the gateway, and the units of systemd that start it.

use super::addresses::Addresses;
use crate::{
    Agent,
    install::{Content, Locations, Program, Target, WRITTEN_BY},
};

/// Adds addresses to the files of their agent.
pub fn add_to(addresses: Addresses, targets: &mut Vec<Target>, locations: &Locations) {
    let agent = addresses.agent;
    let Some(path) = locations.addresses(agent) else {
        return;
    };
    let at = targets.iter().position(|target| target.path == path);
    let inner = at.map(|at| Box::new(targets.remove(at).content));
    let target = Target {
        agent,
        path,
        content: Content::Gateway(inner, addresses),
    };
    targets.insert(at.unwrap_or(targets.len()), target);
}

/// Names of the units of systemd. The socket starts the service.
const UNITS: [&str; 2] = ["sightline-gateway.service", SOCKET_UNIT];
/// The unit that listens.
pub const SOCKET_UNIT: &str = "sightline-gateway.socket";

/// Returns the units of systemd that start the gateway with the first request. `options` follow
/// `sightline gateway`.
pub fn units(
    agent: Agent,
    locations: &Locations,
    program: &Program,
    port: u16,
    options: &[String],
) -> Vec<Target> {
    let quoted = |word: &str| {
        let word = word.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", word.replace('%', "%%").replace('$', "$$"))
    };
    let words = [program.path(), "gateway"]
        .into_iter()
        .chain(options.iter().map(String::as_str));
    let command = words.map(quoted).collect::<Vec<_>>().join(" ");
    let first = format!("# {WRITTEN_BY}");
    // The address that it prints has a secret.
    let service = format!(
        "{first}\n[Unit]\nDescription=Gateway of Sightline\n\n[Service]\nExecStart={command}\nStandardOutput=null\n"
    );
    let socket = format!(
        "{first}\n[Unit]\nDescription=Address of the gateway of Sightline\n\n[Socket]\nListenStream=127.0.0.1:{port}\n\n[Install]\nWantedBy=sockets.target\n"
    );
    let folder = locations.units();
    let units = UNITS.into_iter().zip([service, socket]);
    let target = |(name, text)| Target {
        agent,
        path: folder.join(name),
        content: Content::Whole(text, program.clone()),
    };
    units.map(target).collect()
}
