//! The gateway in the configuration of agents: the addresses, the units of systemd, and whether requests go
//! through it.

use std::{env, path::Path};

use sightline_agents::{
    Agent,
    gateway::{
        Addresses, CONFIGURED, add_to,
        launch::{Launch, Surroundings},
        units,
    },
    install::{Locations, Part, Program, Scope, Target, installed},
};
use sightline_engine::error::Error;

use super::{
    super::{gateway::service::Service, offline},
    read_text,
};

/// Shown as the address before there is one.
const NO_ADDRESS: &str = "http://127.0.0.1:PORT/k/SECRET";

/// What is written about the gateway.
pub(super) struct Setup {
    pub(super) service: Service,
    /// Options of the gateway that systemd starts.
    options: [String; 3],
    /// Whether addresses of the user are replaced.
    pub(super) chains: bool,
    /// Whether systemd starts the gateway.
    pub(super) has_systemd: bool,
}

/// Whether the requests of an agent go through the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Through,
    /// What leads elsewhere.
    Past(String),
    /// They would, but the gateway does not run.
    NotRunning,
}

impl Way {
    /// Returns the name in JSON.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Through => "through",
            Self::Past(_) => "past",
            Self::NotRunning => "notRunning",
        }
    }
}

impl Setup {
    /// Reads it from the data directory, which is `storage` if that is named.
    pub(super) fn read(storage: Option<&Path>) -> Result<Self, Error> {
        let folder = offline::storage_dir(storage)?;
        // systemd has other variables than a shell, which may name another data directory.
        let options = [
            "--service".to_owned(),
            "--storage".to_owned(),
            folder.to_string_lossy().into_owned(),
        ];
        Ok(Self {
            service: Service::read(&folder)?,
            options,
            chains: false,
            has_systemd: false,
        })
    }

    /// Returns our addresses for an agent.
    pub(super) fn addresses(&self, agent: Agent) -> Addresses {
        let url = self.service.url();
        Addresses {
            chains: self.chains,
            ..Addresses::new(
                agent,
                url.unwrap_or_else(|| NO_ADDRESS.to_owned()),
                self.service.upstreams().clone(),
            )
        }
    }

    /// Adds the addresses of an agent, and the units, to the files that hold `parts`.
    pub(super) fn add_to(
        &self,
        targets: &mut Vec<Target>,
        agent: Agent,
        scope: Scope,
        parts: &[Part],
        locations: &Locations,
        program: &Program,
    ) {
        let is_wanted = parts.contains(&Part::Gateway) && scope == Scope::User;
        if is_wanted && CONFIGURED.contains(&agent) {
            add_to(self.addresses(agent), targets, locations);
            targets.extend(self.units(agent, locations, program));
        }
    }

    /// Returns the units that are there, or all if systemd starts the gateway.
    pub(super) fn units(
        &self,
        agent: Agent,
        locations: &Locations,
        program: &Program,
    ) -> Vec<Target> {
        let port = self.service.port().unwrap_or_default();
        let mut units = units(agent, locations, program, port, &self.options);
        units.retain(|unit| self.has_systemd || unit.path.exists());
        units
    }

    /// Returns whether requests of an agent go through the gateway, if it is started now.
    pub(super) fn way(&self, agent: Agent, locations: &Locations) -> Way {
        let url = self.service.url();
        let surroundings = Surroundings {
            locations,
            variable: &|name| env::var(name).ok(),
            read: &read_text,
            gateway: url.as_deref(),
        };
        match Launch::past(agent, &surroundings) {
            Ok(past) if past.is_empty() && self.service.is_running() => Way::Through,
            Ok(past) if past.is_empty() => Way::NotRunning,
            Ok(past) => Way::Past(past.join(", ")),
            Err(why) => Way::Past(why),
        }
    }
}

/// Returns whether an agent is configured with the gateway.
pub(super) fn is_configured(agent: Agent, locations: &Locations, program: &Program) -> bool {
    installed(agent, Scope::User, locations, program, read_text).contains(&Part::Gateway)
}

/// Returns why the requests of an agent cannot be sent through the gateway by its configuration.
pub(super) fn cannot_route(agent: Agent, scope: Scope) -> Option<String> {
    let title = agent.title();
    if scope == Scope::Project {
        return Some(format!(
            "cannot send requests of {title} through the gateway for a team: its address is of the user; use --user"
        ));
    }
    let remedy = match agent {
        Agent::Gemini | Agent::Copilot => {
            format!("start it with `sightline run -- {}`", agent.name())
        }
        Agent::Cline => {
            "set `baseUrl` of its provider to the address that `sightline gateway` prints"
                .to_owned()
        }
        Agent::Claude | Agent::Codex | Agent::Qwen | Agent::Opencode => return None,
    };
    Some(format!(
        "requests of {title} go past the gateway: it reads no address that can be installed; {remedy}"
    ))
}
