//! The addresses of providers in the configuration of agents, and those of the gateway in their place.
//! An address that the user has set is one to which the gateway forwards.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::{
    Agent,
    install::{error::EditError, json, locations::Locations, toml},
};

/// Providers of opencode: name, and path below the address of the gateway.
const OPENCODE: [(&str, &str); 4] = [
    ("anthropic", "anthropic/v1"),
    ("google", "gemini/v1beta"),
    ("openai", "openai/v1"),
    ("openrouter", "openrouter/api/v1"),
];
/// APIs of Qwen Code: name, and path below the address of the gateway.
const QWEN: [(&str, &str); 3] = [
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("openai", "openai/v1"),
];
/// Providers of Codex that are on this machine, or whose address is `openai_base_url`.
const CODEX: [&str; 4] = ["openai", "oss", "ollama", "lmstudio"];
/// Agents that read addresses from a file of the user.
pub const CONFIGURED: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::Qwen, Agent::Opencode];

/// An address that an agent reads from its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Names from the top of the file. Numbers are places in arrays.
    pub(crate) key: Vec<String>,
    /// The address in the file.
    pub(crate) own: Option<String>,
    /// Name of that address in the gateway.
    pub(crate) name: String,
    /// Path below the address of the gateway, if the agent has an address without a setting.
    pub(crate) known: Option<&'static str>,
}

impl Route {
    fn new(key: &[&str], name: impl Into<String>, known: Option<&'static str>) -> Self {
        Self {
            key: key.iter().map(|name| (*name).to_owned()).collect(),
            own: None,
            name: name.into(),
            known,
        }
    }
}

/// The addresses that an agent reads from its files.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) all: Vec<Route>,
    /// Why its requests would not all go through the gateway, and what to do.
    pub(crate) problem: Option<String>,
}

impl Routes {
    /// Finds the addresses. Later files win.
    pub(crate) fn find(agent: Agent, files: &[Value]) -> Self {
        let mut routes = Self::default();
        routes.problem = routes.collect(agent, files).err();
        for route in &mut routes.all {
            let found = files
                .iter()
                .rev()
                .find_map(|file| at(file, &route.key)?.as_str());
            route.own = found.filter(|own| !own.is_empty()).map(str::to_owned);
            if let Some(own) = route.own.as_deref().filter(|own| own.contains(['{', '$'])) {
                let key = route.key.join(".");
                routes.problem = Some(format!(
                    "cannot route {key}: {own} contains a variable; write the address without it"
                ));
            }
        }
        routes
    }

    fn add(&mut self, route: Route) {
        if !self.all.iter().any(|known| known.key == route.key) {
            self.all.push(route);
        }
    }

    fn collect(&mut self, agent: Agent, files: &[Value]) -> Result<(), String> {
        match agent {
            Agent::Claude => {
                self.add(Route::new(
                    &["env", "ANTHROPIC_BASE_URL"],
                    "claude",
                    Some("anthropic"),
                ));
            }
            Agent::Codex => {
                self.add(Route::new(&["openai_base_url"], "codex", Some("openai/v1")));
                let mut providers = CODEX.to_vec();
                for (name, provider) in members(files, "model_providers") {
                    check_name("the model provider", name)?;
                    if provider["base_url"].is_string() {
                        providers.push(name);
                        let key = ["model_providers", name, "base_url"];
                        self.add(Route::new(&key, format!("codex-{name}"), None));
                    }
                }
                let used = files
                    .iter()
                    .filter_map(|file| file["model_provider"].as_str());
                if let Some(other) = used.clone().find(|used| !providers.contains(used)) {
                    return Err(format!(
                        "requests of Codex would not go through the gateway, because its provider {other:?} has no base_url; add one"
                    ));
                }
            }
            Agent::Qwen => {
                let login = "/security/auth/selectedType";
                let login = files
                    .iter()
                    .filter_map(|file| file.pointer(login)?.as_str());
                if login.clone().any(|login| login == "qwen-oauth") {
                    return Err("requests of Qwen Code would not go through the gateway with the login of Qwen; use an API key".to_owned());
                }
                self.add(Route::new(
                    &["env", "OPENAI_BASE_URL"],
                    "qwen",
                    Some("openai/v1"),
                ));
                for (api, entries) in members(files, "modelProviders") {
                    let known = QWEN.iter().find(|(name, _)| *name == api);
                    for at in 0..entries.as_array().map_or(0, Vec::len) {
                        let (_, known) = known.ok_or_else(|| {
                        format!("cannot route the provider {api:?} of Qwen Code; it has an unknown API")
                    })?;
                        let at = at.to_string();
                        let key = ["modelProviders", api, &at, "baseUrl"];
                        self.add(Route::new(&key, format!("qwen-{api}-{at}"), Some(known)));
                    }
                }
            }
            Agent::Opencode => {
                let mut add = |name: &str, known| {
                    let key = ["provider", name, "options", "baseURL"];
                    self.add(Route::new(&key, format!("opencode-{name}"), known));
                };
                for (name, known) in OPENCODE {
                    add(name, Some(known));
                }
                for (name, provider) in members(files, "provider") {
                    check_name("the provider", name)?;
                    if provider["options"]["baseURL"].is_string() {
                        add(name, None);
                    }
                }
            }
            Agent::Gemini | Agent::Copilot | Agent::Cline => {}
        }
        Ok(())
    }
}

/// Returns the members of an object in all files.
fn members<'a>(files: &'a [Value], name: &str) -> Vec<(&'a str, &'a Value)> {
    let objects = files.iter().filter_map(|file| file[name].as_object());
    let members = objects
        .flatten()
        .map(|(name, value)| (name.as_str(), value));
    members.collect()
}

/// Names are parts of addresses and of keys.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(format!("cannot route {what} {name:?}; rename it")),
    }
}

/// Returns the value with these names above it.
fn at<'a>(value: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

/// Returns the path below the gateway, if an address is one of a gateway.
pub fn path_below(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("http://127.0.0.1:")?;
    let (port, rest) = rest.split_once("/k/")?;
    let (secret, path) = rest.split_once('/')?;
    let is_secret = secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_secret && port.parse::<u16>().is_ok()).then_some(path)
}

/// Returns whether a file of the user has an address of the gateway. `read` returns the text of a file.
pub(crate) fn is_configured(
    agent: Agent,
    locations: &Locations,
    read: impl Fn(&Path) -> Option<String>,
) -> bool {
    let text = locations.addresses(agent).and_then(|path| read(&path));
    let addresses = Addresses::new(agent, "", BTreeMap::new());
    text.is_some_and(|text| addresses.find(&text).iter().any(Option::is_some))
}

/// Our addresses in the configuration of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The agent.
    pub agent: Agent,
    /// Address of the gateway.
    pub url: String,
    /// Addresses of the user that were replaced, by their names in the gateway.
    pub replaced: BTreeMap<String, String>,
    /// Whether other addresses of the user may be replaced.
    pub chains: bool,
}

impl Addresses {
    /// Creates it for a gateway at `url`, without other addresses of the user.
    pub fn new(agent: Agent, url: impl Into<String>, replaced: BTreeMap<String, String>) -> Self {
        Self {
            agent,
            url: url.into(),
            replaced,
            chains: false,
        }
    }

    pub(crate) fn is_toml(&self) -> bool {
        self.agent == Agent::Codex
    }

    /// Returns the addresses in a text; none if it cannot be parsed.
    fn routes(&self, text: &str) -> Routes {
        let file = match self.is_toml() {
            true => toml::value(text),
            false => json::value(text),
        };
        Routes::find(self.agent, &[file.unwrap_or_default()])
    }

    /// Returns the addresses of the user that adding the gateway replaces, by their names in the gateway.
    pub fn replaces(&self, text: &str) -> BTreeMap<String, String> {
        self.routes(text)
            .all
            .into_iter()
            .filter_map(|route| Some((route.name, route.own?)))
            .filter(|(_, own)| path_below(own).is_none())
            .collect()
    }

    /// Sets the addresses.
    pub(crate) fn add(&self, text: &str) -> Result<String, EditError> {
        let routes = self.routes(text);
        if let Some(why) = routes.problem {
            return Err(EditError::Refused(why));
        }
        let mut text = text.to_owned();
        for route in routes.all {
            let path = match (&route.own, route.known) {
                (Some(own), _) if path_below(own).is_some() => path_below(own),
                (Some(own), _) if !self.chains => {
                    return Err(EditError::Refused(format!(
                        "`{}` is {own}; with --chain, the gateway forwards to it",
                        route.key.join(".")
                    )));
                }
                (Some(_), _) => Some(route.name.as_str()),
                (None, known) => known,
            };
            if let Some(path) = path {
                text = self.set(&text, &route.key, &format!("{}/{path}", self.url))?;
            }
        }
        Ok(text)
    }

    /// Removes the addresses of the gateway. Those that they replaced come back.
    pub(crate) fn remove(&self, text: &str) -> Result<String, EditError> {
        let mut text = text.to_owned();
        for route in self.routes(&text).all.into_iter().rev() {
            let Some(path) = route.own.as_deref().and_then(path_below) else {
                continue;
            };
            let name = path.split('/').next().unwrap_or_default();
            text = match self.replaced.get(name) {
                Some(own) => self.set(&text, &route.key, own)?,
                None => self.cut(&text, &route.key)?,
            };
        }
        Ok(text)
    }

    /// Returns for each address whether it is the current one of the gateway; `None` for another one.
    pub(crate) fn find(&self, text: &str) -> Vec<Option<bool>> {
        let is_current = |route: Route| {
            let own = route.own?;
            let path = path_below(&own)?;
            Some(own == format!("{}/{path}", self.url))
        };
        self.routes(text)
            .all
            .into_iter()
            .filter(|route| route.own.is_some() || route.known.is_some())
            .map(is_current)
            .collect()
    }

    fn set(&self, text: &str, key: &[String], address: &str) -> Result<String, EditError> {
        match self.is_toml() {
            true => toml::set_value(text, key, address),
            false => json::set(text, key, &address.into()),
        }
    }

    /// Removes an address with the objects that were added for it.
    fn cut(&self, text: &str, key: &[String]) -> Result<String, EditError> {
        match self.is_toml() {
            true => toml::remove_value(text, key),
            false => Ok(json::remove_at(text, key)?.unwrap_or_else(|| text.to_owned())),
        }
    }
}
