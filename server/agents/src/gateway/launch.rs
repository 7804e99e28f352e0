//! Starts an agent so that its requests go through the gateway, for one process and without a trace
//! in its configuration.
//!
//! An address that the user has set is kept: the gateway forwards to it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::addresses::{Route, Routes};
use crate::{
    Agent,
    install::{Locations, json, toml},
};

/// Variables that let Claude Code use another API.
const OTHER_CLAUDE_APIS: [&str; 3] = [
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
];

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    agent: Agent,
    /// Addresses that the user has set, by the name that the gateway gives them.
    pub upstreams: BTreeMap<String, String>,
    /// What is set to an address: a variable, or a key of the configuration; and the path below
    /// the address of the gateway.
    routes: Vec<(String, String)>,
    /// Those that do not lead to the configured gateway.
    past: Vec<String>,
    /// Whether addresses are in settings that variables and arguments cannot replace.
    is_configured: bool,
    /// Start of the addresses of the configured gateway.
    gateway: Option<String>,
    /// Providers in variables that hold other settings.
    content: Option<Value>,
}

/// What the user has set.
pub struct Surroundings<'a> {
    /// Where configuration files are.
    pub locations: &'a Locations,
    /// Returns the value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the text of a file, if it exists.
    pub read: &'a dyn Fn(&Path) -> Option<String>,
    /// Address of the gateway with which agents are configured.
    pub gateway: Option<&'a str>,
}

impl Surroundings<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// Returns the values of a file with JSON and comments.
    fn json(&self, path: &Path) -> Result<Value, String> {
        let Some(text) = (self.read)(path) else {
            return Ok(Value::Null);
        };
        json::value(&text).ok_or_else(|| format!("{} is not JSON; correct it", path.display()))
    }

    fn all_json(&self, paths: &[PathBuf]) -> Result<Vec<Value>, String> {
        paths.iter().map(|path| self.json(path)).collect()
    }
}

impl Launch {
    /// Finds out how to start an agent with these arguments.
    ///
    /// # Errors
    /// Why its requests would not go through the gateway, and what to do.
    pub fn plan(
        agent: Agent,
        arguments: &[String],
        surroundings: &Surroundings<'_>,
    ) -> Result<Self, String> {
        let launch = Self::find(agent, arguments, surroundings)?;
        if launch.is_configured {
            return Err(format!(
                "{} reads the address of its provider from its settings only; connect it with `sightline agents install --agent {} --only gateway`",
                agent.title(),
                agent.name()
            ));
        }
        Ok(launch)
    }

    /// Returns what would not go through the gateway if the agent was started without this.
    ///
    /// # Errors
    /// Why none of its requests would.
    pub fn past(agent: Agent, surroundings: &Surroundings<'_>) -> Result<Vec<String>, String> {
        Ok(Self::find(agent, &[], surroundings)?.past)
    }

    fn find(
        agent: Agent,
        arguments: &[String],
        surroundings: &Surroundings<'_>,
    ) -> Result<Self, String> {
        let mut launch = Self {
            agent,
            upstreams: BTreeMap::new(),
            routes: Vec::new(),
            past: Vec::new(),
            content: None,
            is_configured: false,
            gateway: surroundings.gateway.map(|url| format!("{url}/")),
        };
        match agent {
            Agent::Claude => launch.plan_claude(arguments, surroundings)?,
            Agent::Codex => launch.plan_codex(arguments, surroundings)?,
            Agent::Gemini => launch.plan_gemini(surroundings)?,
            Agent::Qwen => launch.plan_qwen(surroundings)?,
            Agent::Copilot => launch.plan_copilot(surroundings),
            Agent::Opencode => launch.plan_opencode(surroundings)?,
            Agent::Cline => {
                return Err(
                    "Cline reads the address of its provider from its settings only; start `sightline gateway` and set `baseUrl` there".to_owned(),
                );
            }
        }
        Ok(launch)
    }

    /// Routes what is set by `key`: to the address that the user has set, else to a known provider. The
    /// address of the configured gateway keeps its path, so that requests go through one gateway only.
    fn route(&mut self, key: &str, name: &str, own: Option<String>, known: &str) {
        let gateway = self.gateway.as_deref();
        let below = own
            .as_deref()
            .and_then(|own| own.strip_prefix(gateway?).map(str::to_owned));
        if below.is_none() {
            self.past.push(key.to_owned());
        }
        let path = match (below, own) {
            (Some(below), _) => below,
            (None, Some(own)) => {
                self.upstreams.insert(name.to_owned(), own);
                name.to_owned()
            }
            (None, None) => known.to_owned(),
        };
        self.routes.push((key.to_owned(), path));
    }

    /// Routes the addresses of configuration files.
    fn route_all(&mut self, routes: Vec<Route>, key: impl Fn(&Route) -> String) {
        for route in routes {
            let known = route.known.unwrap_or_default();
            self.route(&key(&route), &route.name, route.own, known);
        }
    }

    fn plan_claude(
        &mut self,
        arguments: &[String],
        surroundings: &Surroundings<'_>,
    ) -> Result<(), String> {
        if arguments.iter().any(|word| word.starts_with("--settings")) {
            return Err(
                "`sightline run` uses the option --settings itself; put these settings into .claude/settings.local.json"
                    .to_owned(),
            );
        }
        let locations = surroundings.locations;
        let project = locations.project.join(".claude");
        let files = [
            locations.folder(Agent::Claude).join("settings.json"),
            project.join("settings.json"),
            project.join("settings.local.json"),
        ];
        let settings = surroundings.all_json(&files)?;
        // Settings win over the environment.
        let value = |name: &str| {
            let mut settings = settings.iter().rev();
            settings
                .find_map(|settings| settings["env"][name].as_str().map(str::to_owned))
                .or_else(|| surroundings.variable(name))
        };
        let is_set =
            |name: &&&str| value(name).is_some_and(|value| !matches!(&*value, "" | "0" | "false"));
        if let Some(name) = OTHER_CLAUDE_APIS.iter().find(is_set) {
            return Err(format!(
                "requests of Claude Code would not go through the gateway, because {name} is set; remove it"
            ));
        }
        let own = value("ANTHROPIC_BASE_URL");
        self.route("ANTHROPIC_BASE_URL", "claude", own, "anthropic");
        Ok(())
    }

    fn plan_codex(
        &mut self,
        arguments: &[String],
        surroundings: &Surroundings<'_>,
    ) -> Result<(), String> {
        if arguments.iter().any(|word| word.contains("base_url")) {
            return Err(
                "`sightline run` sets base_url itself; put yours into config.toml".to_owned(),
            );
        }
        let locations = surroundings.locations;
        let folders = [
            locations.folder(Agent::Codex),
            locations.project.join(".codex"),
        ];
        let mut files = Vec::new();
        for file in folders.map(|folder| folder.join("config.toml")) {
            if let Some(text) = (surroundings.read)(&file) {
                let config = toml::value(&text);
                files.push(
                    config.ok_or_else(|| format!("{} is not TOML; correct it", file.display()))?,
                );
            }
        }
        let routes = Routes::find(Agent::Codex, &files);
        self.route_all(routes.all, |route| route.key.join("."));
        routes.problem.map_or(Ok(()), Err)
    }

    fn plan_gemini(&mut self, surroundings: &Surroundings<'_>) -> Result<(), String> {
        let own = |name| surroundings.variable(name);
        let name = "GOOGLE_GEMINI_BASE_URL";
        self.route(name, "gemini-cli", own(name), "gemini");
        let name = "CODE_ASSIST_ENDPOINT";
        self.route(name, "gemini-cli-login", own(name), "codeassist");
        let name = "GOOGLE_VERTEX_BASE_URL";
        match own(name) {
            Some(vertex) => self.route(name, "gemini-cli-vertex", Some(vertex), ""),
            None if own("GOOGLE_GENAI_USE_VERTEXAI").is_some_and(|value| value == "true") => {
                return Err(
                    "requests of gemini-cli would not go through the gateway, because GOOGLE_GENAI_USE_VERTEXAI is set; set GOOGLE_VERTEX_BASE_URL too"
                        .to_owned(),
                );
            }
            None => {}
        }
        Ok(())
    }

    fn plan_qwen(&mut self, surroundings: &Surroundings<'_>) -> Result<(), String> {
        let locations = surroundings.locations;
        let folders = [
            locations.folder(Agent::Qwen),
            locations.project.join(".qwen"),
        ];
        let files = folders.map(|folder| folder.join("settings.json"));
        let routes = Routes::find(Agent::Qwen, &surroundings.all_json(&files)?);
        let name = "OPENAI_BASE_URL";
        for mut route in routes.all {
            let is_variable = route.key[0] == "env";
            self.is_configured |= !is_variable || route.own.is_some();
            let key = match is_variable {
                true => name.to_owned(),
                false => route.key.join("."),
            };
            if is_variable && route.own.is_none() {
                route.own = surroundings.variable(name);
            }
            self.route_all(vec![route], |_| key.clone());
        }
        routes.problem.map_or(Ok(()), Err)
    }

    fn plan_copilot(&mut self, surroundings: &Surroundings<'_>) {
        let name = "COPILOT_API_URL";
        let own = surroundings.variable(name);
        self.route(name, "copilot-cli", own, "copilot");
        let name = "COPILOT_PROVIDER_BASE_URL";
        if let Some(own) = surroundings.variable(name) {
            self.route(name, "copilot-provider", Some(own), "");
        }
    }

    fn plan_opencode(&mut self, surroundings: &Surroundings<'_>) -> Result<(), String> {
        let locations = surroundings.locations;
        let folders = [
            locations.folder(Agent::Opencode),
            locations.project.clone(),
            locations.project.join(".opencode"),
        ];
        let names = ["config.json", "opencode.json", "opencode.jsonc"];
        let files: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .collect();
        let mut configurations = surroundings.all_json(&files)?;
        let variable = "OPENCODE_CONFIG_CONTENT";
        let content = match surroundings.variable(variable) {
            Some(text) => {
                json::value(&text).ok_or(format!("{variable} is not JSON; correct it"))?
            }
            None => json!({}),
        };
        configurations.push(content.clone());
        let routes = Routes::find(Agent::Opencode, &configurations);
        self.route_all(routes.all, |route| route.key[1].clone());
        if let Some(why) = routes.problem {
            return Err(why);
        }
        self.content = Some(content);
        Ok(())
    }

    /// Returns the variables of the agent, for a gateway at `url`.
    pub fn variables(&self, url: &str) -> Vec<(String, String)> {
        let address = |(key, path): &(String, String)| (key.clone(), format!("{url}/{path}"));
        let addresses = self.routes.iter().map(address);
        match (&self.content, self.agent) {
            (Some(content), _) => {
                let mut content = content.clone();
                for (name, address) in addresses {
                    content["provider"][name]["options"]["baseURL"] = address.into();
                }
                vec![("OPENCODE_CONFIG_CONTENT".to_owned(), content.to_string())]
            }
            (None, Agent::Codex) => Vec::new(),
            (None, _) => addresses.collect(),
        }
    }

    /// Returns the arguments of the agent before those of the user, for a gateway at `url`.
    pub fn arguments(&self, url: &str) -> Vec<String> {
        match self.agent {
            Agent::Claude => {
                let variables: BTreeMap<String, String> = self.variables(url).into_iter().collect();
                let settings = json!({ "env": variables }).to_string();
                vec!["--settings".to_owned(), settings]
            }
            Agent::Codex => self
                .routes
                .iter()
                .flat_map(|(key, path)| ["-c".to_owned(), format!("{key}=\"{url}/{path}\"")])
                .collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:1/k/s";

    /// Plans with variables and files, by their paths below the home and the project.
    fn plan(
        agent: Agent,
        variables: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> Result<Launch, String> {
        let locations = Locations::new(Path::new("/home"), Path::new("/project"), |_| None);
        let value = |(_, value): &(&str, &str)| (*value).to_owned();
        let surroundings = Surroundings {
            locations: &locations,
            variable: &|name| {
                variables
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(value)
            },
            read: &|path| {
                let mut files = files.iter();
                files.find(|(known, _)| path == Path::new(known)).map(value)
            },
            gateway: Some("http://127.0.0.1:9/k/0123456789abcdef0123456789abcdef"),
        };
        let launch = Launch::plan(agent, &[], &surroundings)?;
        assert_eq!(Launch::past(agent, &surroundings), Ok(launch.past.clone()));
        Ok(launch)
    }

    #[test]
    fn addresses_of_the_user_are_kept() {
        let settings = r#"{"env": {"ANTHROPIC_BASE_URL": "https://gateway.example/a"}}"#;
        let launch = plan(
            Agent::Claude,
            &[("ANTHROPIC_BASE_URL", "https://other.example")],
            &[("/home/.claude/settings.json", settings)],
        )
        .unwrap();
        assert_eq!(launch.upstreams["claude"], "https://gateway.example/a");
        let expected = format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{URL}/claude"}}}}"#);
        assert_eq!(launch.arguments(URL), ["--settings", &expected]);

        // Requests go through one gateway only.
        let settings = r#"{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/k/0123456789abcdef0123456789abcdef/claude"}}"#;
        let files = [("/home/.claude/settings.json", settings)];
        let launch = plan(Agent::Claude, &[], &files).unwrap();
        assert!(launch.upstreams.is_empty() && launch.past.is_empty());
        let expected = format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{URL}/claude"}}}}"#);
        assert_eq!(launch.arguments(URL), ["--settings", &expected]);

        let config =
            "model_provider = \"x\"\n[model_providers.x]\nbase_url = \"http://127.0.0.1:2/v1\"\n";
        let launch = plan(Agent::Codex, &[], &[("/home/.codex/config.toml", config)]).unwrap();
        assert_eq!(launch.upstreams["codex-x"], "http://127.0.0.1:2/v1");
        assert_eq!(
            launch.arguments(URL),
            [
                "-c",
                &format!("openai_base_url=\"{URL}/openai/v1\""),
                "-c",
                &format!("model_providers.x.base_url=\"{URL}/codex-x\""),
            ]
        );

        let config =
            r#"{"provider": {"anthropic": {"options": {"baseURL": "https://a.example/v1"}}}}"#;
        let launch = plan(
            Agent::Opencode,
            &[("OPENCODE_CONFIG_CONTENT", r#"{"model": "m"}"#)],
            &[("/project/opencode.json", config)],
        )
        .unwrap();
        let content: Value = serde_json::from_str(&launch.variables(URL)[0].1).unwrap();
        assert_eq!(content["model"], "m");
        let address = |name: &str| content["provider"][name]["options"]["baseURL"].clone();
        assert_eq!(address("anthropic"), format!("{URL}/opencode-anthropic"));
        assert_eq!(address("openai"), format!("{URL}/openai/v1"));
    }

    #[test]
    fn an_agent_that_would_go_past_is_not_started() {
        let qwen = r#"{"modelProviders": {"openai": [{"baseUrl": "https://q.example"}]}}"#;
        for (agent, variables, files) in [
            (Agent::Cline, &[][..], &[][..]),
            (Agent::Claude, &[("CLAUDE_CODE_USE_BEDROCK", "1")], &[]),
            (Agent::Gemini, &[("GOOGLE_GENAI_USE_VERTEXAI", "true")], &[]),
            (
                Agent::Claude,
                &[],
                &[("/project/.claude/settings.json", "{")],
            ),
            (Agent::Qwen, &[], &[("/home/.qwen/settings.json", qwen)]),
            (
                Agent::Qwen,
                &[],
                &[(
                    "/home/.qwen/settings.json",
                    r#"{"modelProviders": {"anthropic": [{"id": "m"}]}}"#,
                )],
            ),
            (
                Agent::Codex,
                &[],
                &[(
                    "/home/.codex/config.toml",
                    "model_provider = \"amazon-bedrock\"\n",
                )],
            ),
        ] {
            assert!(plan(agent, variables, files).is_err(), "{agent:?}");
        }
    }
}
