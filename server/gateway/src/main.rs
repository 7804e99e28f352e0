//! The `sightline-gateway` program: forwards requests of coding agents to the model APIs of their
//! providers. It is the only program of Sightline with TLS and an HTTP client.
//!
//! `sightline gateway` starts it, with its [`Options`] as the only argument. It listens on loopback
//! and prints its address as one line of JSON.
//!
//! A request goes through `server` (connections), `address` (checks the secret, the host and the path), `body`
//! (can it be read), `redact` (without the contents of denied files), `forward` (to the provider and back).
//!
//! Modules:
//!
//! - `options`: arguments
//! - `secret`: the secret of the address
//! - `server`: connections and requests
//! - `socket`: the socket on which systemd listens
//! - `address`: checks the headers and the path of a request
//! - `usage`: tokens that providers report, and the file with them
//! - `upstream`: addresses of providers
//! - `body`: reads and decodes the body of a request
//! - `task`: the conversation of a request
//! - `redact`: takes the contents of denied files out of requests
//! - `repair`: whether a conversation that became too long may be made shorter
//! - `forward`: sends a request, and streams the response
//! - `failure`: errors in the shape of each API

mod address;
mod body;
mod failure;
mod forward;
mod options;
mod redact;
mod repair;
mod secret;
mod server;
mod socket;
mod task;
mod upstream;
mod usage;

use std::{
    io::{self, Write},
    net::Ipv4Addr,
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use serde_json::json;
use sightline_base::{error::Error, storage::Storage};
use tokio::net::TcpListener;

use self::{
    options::Options,
    redact::{Redaction, TASKS, Workspaces},
    secret::Secret,
    server::Gateway,
    upstream::Upstreams,
    usage::Log,
};

/// Exit code of a failure, as of `sightline`.
const FAILURE: u8 = 3;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sightline: {error}");
            ExitCode::from(FAILURE)
        }
    }
}

fn run() -> Result<(), String> {
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == "--version" {
        let version = env!("CARGO_PKG_VERSION");
        return print(&format!("sightline-gateway {version}"));
    }
    let options: Options = serde_json::from_str(&argument).map_err(|error| {
        format!("cannot read the options: {error}; start the gateway with `sightline gateway`")
    })?;
    if options.ends_with_parent {
        end_with_parent();
    }
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| format!("cannot start the gateway: {error}"))?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<(), String> {
    let upstreams = Upstreams::new(&options.upstreams)?;
    let secret = Secret::of_user(&options.storage)?;
    let storage = storage(&options.storage).map_err(|error| error.to_string())?;
    let usage = options.usage;
    let log = Log::open(&usage.unwrap_or_else(|| storage.gateway().join("usage.jsonl")))?;
    let redaction = Redaction::new(
        Workspaces::new(&options.roots, options.secrets, options.follows_agents)?,
        storage,
        secret.seed(),
        options.dry_run,
    );
    let listener = match socket::given()? {
        Some(listener) => TcpListener::from_std(listener)
            .map_err(|error| format!("cannot use the socket of systemd: {error}"))?,
        None => listen(options.port).await?,
    };
    let address = listener
        .local_addr()
        .map_err(|error| format!("cannot get the port: {error}"))?;
    print(&json!({ "url": format!("http://{address}/k/{}", secret.as_str()) }).to_string())?;
    if options.only_checks {
        return Ok(());
    }
    let gateway = Gateway::new(secret, address, upstreams, redaction, log, options.limit);
    server::serve(listener, Arc::new(gateway)).await;
    Ok(())
}

async fn listen(port: u16) -> Result<TcpListener, String> {
    let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    listening.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "cannot listen on port {port}: it is in use; stop that program or choose another port with --port"
        ),
        _ => format!("cannot listen on port {port}: {error}"),
    })
}

/// Opens the data directory, and creates the folders of the gateway in it.
fn storage(path: &Path) -> Result<Storage, Error> {
    let storage = Storage::open(path)?;
    storage.make_dir(&storage.gateway().join(TASKS))?;
    Ok(storage)
}

fn print(line: &str) -> Result<(), String> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(|error| format!("cannot write to standard output: {error}"))
}

/// Ends this process when its parent ends: the agent for which it was started.
fn end_with_parent() {
    #[cfg(unix)]
    std::thread::spawn(|| {
        let parent = std::os::unix::process::parent_id();
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        #[allow(clippy::exit)]
        std::process::exit(0);
    });
}
