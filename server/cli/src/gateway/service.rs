//! The gateway with which agents are configured: its port, the addresses to which it forwards, and
//! whether it runs. systemd starts it, or the user.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sightline_agents::gateway::{SOCKET_UNIT, path_below};
use sightline_base::storage::{Storage, atomic_file};
use sightline_engine::error::Error;

use super::{super::internal, Started, cannot_start, command, options};

/// Name of the file, in the folder of the gateway.
const FILE: &str = "service.json";
/// Time for an answer of the gateway.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The gateway of the configured agents.
#[derive(Debug, Default)]
pub(crate) struct Service {
    storage: PathBuf,
    settings: Settings,
    /// Secret in its address.
    secret: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Settings {
    port: u16,
    /// Addresses of the user by name.
    upstreams: BTreeMap<String, String>,
}

impl Service {
    /// Reads it from the data directory.
    ///
    /// # Errors
    /// If a file of it cannot be read.
    pub(crate) fn read(storage: &Path) -> Result<Self, Error> {
        let folder = Storage::open(storage)?.gateway();
        let path = folder.join(FILE);
        let settings = match atomic_file::read(&path)? {
            Some(text) => serde_json::from_slice(&text).map_err(|error| {
                Error::storage(format!(
                    "cannot read {}: {error}; delete it, and connect your agents again",
                    path.display()
                ))
            })?,
            None => Settings::default(),
        };
        let secret = atomic_file::read(&folder.join("secret"))?.unwrap_or_default();
        Ok(Self {
            storage: storage.to_owned(),
            settings,
            secret: String::from_utf8_lossy(&secret).into_owned(),
        })
    }

    /// Returns its address; `None` if no agent is configured with it.
    pub(crate) fn url(&self) -> Option<String> {
        let port = self.port()?;
        let url = format!("http://127.0.0.1:{port}/k/{}", self.secret);
        path_below(&format!("{url}/")).is_some().then_some(url)
    }

    /// Returns its port; `None` if no agent is configured with it.
    pub(crate) fn port(&self) -> Option<u16> {
        Some(self.settings.port).filter(|port| *port != 0)
    }

    /// Returns the addresses to which it forwards, besides the known ones, by name.
    pub(crate) fn upstreams(&self) -> &BTreeMap<String, String> {
        &self.settings.upstreams
    }

    /// Adds addresses to which it forwards, without storing them.
    pub(crate) fn forward_to(&mut self, upstreams: BTreeMap<String, String>) {
        self.settings.upstreams.extend(upstreams);
    }

    /// Chooses a port and makes the secret, if there are none, and stores them with the addresses. The
    /// program of the gateway checks these.
    ///
    /// # Errors
    /// If the program is missing or cannot use an address.
    pub(crate) fn store(&mut self) -> Result<(), Error> {
        let mut options = options(&self.storage);
        options.upstreams.clone_from(&self.settings.upstreams);
        options.only_checks = true;
        let mut command = command(&options)?;
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| cannot_start(&command, &error))?;
        let Ok(started) = serde_json::from_slice::<Started>(&output.stdout) else {
            let output = String::from_utf8_lossy(&output.stderr);
            let why = output.trim().trim_start_matches("sightline: ");
            return Err(Error::invalid(why));
        };
        let address = started.url.trim_start_matches("http://127.0.0.1:");
        let (port, secret) = address.split_once("/k/").unwrap_or_default();
        if self.settings.port == 0 {
            self.settings.port = port.parse().map_err(internal)?;
        }
        secret.clone_into(&mut self.secret);
        self.save()
    }

    /// Forgets the addresses of an agent, or everything if no other agent is configured.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn forget(&mut self, agent: &str, is_last: bool) -> Result<(), Error> {
        if self.settings.port == 0 {
            return Ok(());
        }
        self.settings
            .upstreams
            .retain(|name, _| !name.starts_with(agent));
        if !is_last {
            return self.save();
        }
        self.settings = Settings::default();
        let path = Storage::open(&self.storage)?.gateway().join(FILE);
        fs::remove_file(&path)
            .map_err(|error| Error::storage(format!("cannot delete {}: {error}", path.display())))
    }

    fn save(&self) -> Result<(), Error> {
        let folder = Storage::open(&self.storage)?.gateway();
        let text = serde_json::to_vec(&self.settings).map_err(internal)?;
        Ok(atomic_file::replace(&folder.join(FILE), &text)?)
    }

    /// Returns whether a gateway answers at its port. systemd starts it then.
    pub(crate) fn is_running(&self) -> bool {
        let ask = || -> io::Result<String> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.settings.port))?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            // Without the secret: another program may listen there.
            let host = format!("127.0.0.1:{}", self.settings.port);
            write!(
                stream,
                "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            )?;
            let mut answer = String::new();
            stream.take(4096).read_to_string(&mut answer)?;
            Ok(answer)
        };
        self.settings.port != 0 && ask().is_ok_and(|answer| answer.contains("sightline_gateway"))
    }
}

/// Returns whether systemd starts programs of the user.
pub(crate) fn has_systemd() -> bool {
    cfg!(target_os = "linux") && systemctl(&["show-environment"]).is_ok()
}

/// Has systemd listen at the port. A gateway that runs is ended, and started again with the next request.
///
/// # Errors
/// What systemd says.
pub(crate) fn listen() -> Result<(), String> {
    systemctl(&["daemon-reload"])?;
    systemctl(&["stop", "sightline-gateway.service"])?;
    systemctl(&["enable", SOCKET_UNIT])?;
    systemctl(&["restart", SOCKET_UNIT])
}

/// Ends the gateway, and listening at the port.
///
/// # Errors
/// What systemd says.
pub(crate) fn unlisten() -> Result<(), String> {
    systemctl(&["disable", "--now", SOCKET_UNIT])?;
    systemctl(&["stop", "sightline-gateway.service"])
}

fn systemctl(words: &[&str]) -> Result<(), String> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(words).stdin(Stdio::null());
    let line = format!("systemctl --user {}", words.join(" "));
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(format!("`{line}` failed: {}", why.trim()))
        }
        Err(error) => Err(format!("cannot run `{line}`: {error}")),
    }
}
