//! Starts an agent so that its requests go through the gateway, for one process and without a trace
//! in its configuration.
//!
//! An address that the user has set is kept: the gateway forwards to it.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use crate::{
    Agent,
    install::{Locations, json, toml},
};

/// Providers of opencode: name, and path below the address of the gateway.
const OPENCODE: [(&str, &str); 4] = [
    ("anthropic", "anthropic/v1"),
    ("google", "gemini/v1beta"),
    ("openai", "openai/v1"),
    ("openrouter", "openrouter/api/v1"),
];

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
        let mut launch = Self {
            agent,
            upstreams: BTreeMap::new(),
            routes: Vec::new(),
            content: None,
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

    /// Routes what is set by `key`: to the address that the user has set, else to a known provider.
    fn route(&mut self, key: &str, name: &str, own: Option<String>, known: &str) {
        let path = match own {
            Some(own) => {
                self.upstreams.insert(name.to_owned(), own);
                name.to_owned()
            }
            None => known.to_owned(),
        };
        self.routes.push((key.to_owned(), path));
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
            project.join("settings.local.json"),
            project.join("settings.json"),
            locations.folder(Agent::Claude).join("settings.json"),
        ];
        let mut settings = Vec::new();
        for file in files {
            settings.push(surroundings.json(&file)?);
        }
        // Settings win over the environment.
        let value = |name: &str| {
            settings
                .iter()
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
        let file = surroundings
            .locations
            .folder(Agent::Codex)
            .join("config.toml");
        let config = match (surroundings.read)(&file) {
            Some(text) => toml::value(&text)
                .ok_or_else(|| format!("{} is not TOML; correct it", file.display()))?,
            None => Value::Null,
        };
        let own = |value: &Value| value.as_str().map(str::to_owned);
        let openai = own(&config["openai_base_url"]);
        self.route("openai_base_url", "codex", openai, "openai/v1");
        for (name, provider) in config["model_providers"].as_object().into_iter().flatten() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if !name.bytes().all(is_plain) {
                return Err(format!(
                    "cannot route the model provider {name:?}; rename it"
                ));
            }
            if let Some(address) = own(&provider["base_url"]) {
                let key = format!("model_providers.{name}.base_url");
                self.route(&key, &format!("codex-{name}"), Some(address), "");
            }
        }
        Ok(())
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
        let file = surroundings
            .locations
            .folder(Agent::Qwen)
            .join("settings.json");
        let settings = surroundings.json(&file)?;
        let providers = settings["modelProviders"].as_object();
        let entries = providers
            .into_iter()
            .flat_map(|providers| providers.values());
        let mut entries = entries.filter_map(Value::as_array).flatten();
        let name = "OPENAI_BASE_URL";
        if entries.any(|entry| entry["baseUrl"].is_string()) || settings["env"][name].is_string() {
            return Err(format!(
                "Qwen Code reads the address of its provider from {} only; start `sightline gateway` and set its address there",
                file.display()
            ));
        }
        let own = surroundings.variable(name);
        self.route(name, "qwen", own, "openai/v1");
        Ok(())
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
        let mut configurations = Vec::new();
        for folder in folders {
            for name in ["config.json", "opencode.json", "opencode.jsonc"] {
                configurations.push(surroundings.json(&folder.join(name))?);
            }
        }
        let variable = "OPENCODE_CONFIG_CONTENT";
        let content = match surroundings.variable(variable) {
            Some(text) => {
                json::value(&text).ok_or(format!("{variable} is not JSON; correct it"))?
            }
            None => json!({}),
        };
        configurations.push(content.clone());
        let mut own: BTreeMap<String, String> = BTreeMap::new();
        for configuration in &configurations {
            let providers = configuration["provider"].as_object();
            for (name, provider) in providers.into_iter().flatten() {
                if let Some(address) = provider["options"]["baseURL"].as_str() {
                    own.insert(name.clone(), address.to_owned());
                }
            }
        }
        for (name, known) in OPENCODE {
            if !own.contains_key(name) {
                self.route(name, "", None, known);
            }
        }
        for (name, address) in own {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if !name.bytes().all(is_plain) || address.contains('{') {
                return Err(format!(
                    "cannot route the provider {name:?} of opencode; write its address without variables"
                ));
            }
            self.route(&name, &format!("opencode-{name}"), Some(address), "");
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
        let find = |known: &[(&str, &str)], name: &str| {
            let found = known.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let surroundings = Surroundings {
            locations: &locations,
            variable: &|name| find(variables, name),
            read: &|path| find(files, &path.to_string_lossy()),
        };
        Launch::plan(agent, &[], &surroundings)
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
        ] {
            assert!(plan(agent, variables, files).is_err(), "{agent:?}");
        }
    }
}
