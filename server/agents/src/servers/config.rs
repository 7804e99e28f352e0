//! The servers that the user and the project configure, in the format of most MCP clients.
//!
//! An invalid entry concerns only itself. Values of variables and headers are never part of a message.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sightline_base::{escape::hex, words::is_one_of};

use crate::install::json;

/// The member with the servers in most files.
pub(super) const SERVERS: &str = "mcpServers";
/// Maximum length of the name of a server. With the prefixes of agents, names of tools have 64 characters.
const MAX_NAME: usize = 24;
/// Members of an entry. Others have no effect here.
const MEMBERS: &str = "args command cwd disabled enabled env headers idle inherit isolate pin prefix results startTimeout timeout \
     tools type url";
/// Those that have an effect only in the file of the user.
const OF_USER: &[&str] = &["inherit", "results"];

/// A configured server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// The file with its entry.
    pub source: PathBuf,
    /// The workspace folder, if it is a server of a project. It runs after the user has trusted it.
    pub root: Option<PathBuf>,
    /// Its entry.
    pub entry: Entry,
    /// Members of the entry that have no effect here.
    pub ignored: Vec<String>,
    /// Why it cannot be used, with the line of its entry.
    pub problem: Option<String>,
}

/// An entry of `mcpServers`. Variables in it are not expanded.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Entry {
    /// Program.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Folder, other than that of the workspace.
    pub cwd: Option<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Names of variables of this process that it gets too.
    pub inherit: Vec<String>,
    /// Address of a server that runs already.
    pub url: Option<String>,
    /// Headers of requests to the address.
    pub headers: BTreeMap<String, String>,
    /// Kind of the connection.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What names of its tools and prompts begin with, other than its name.
    pub prefix: Option<String>,
    /// Whether it is switched off.
    pub disabled: bool,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The tools that are offered.
    pub tools: Tools,
    /// Seconds without an answer or progress after which a call ends.
    pub timeout: u64,
    /// Seconds to start.
    pub start_timeout: u64,
    /// Seconds without a call after which it is stopped. 0 for never.
    pub idle: u64,
    /// Whether it runs without denied files.
    pub isolate: bool,
    /// Whether texts of results are judged.
    pub results: Results,
    /// What happens to a tool whose definition changes.
    pub pin: Pin,
}

/// The tools of a server that are offered, by their names. `*` is any text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// Only these, unless empty.
    pub allow: Vec<String>,
    /// Not these.
    pub deny: Vec<String>,
}

/// Whether texts of results are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Results {
    /// They are.
    #[default]
    Judge,
    /// Only resources of denied files are hidden.
    Pass,
}

/// What happens to a tool whose definition changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pin {
    /// The list and the log name it.
    #[default]
    Warn,
    /// It is not offered until the user trusts the server again.
    Block,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            command: String::new(),
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            inherit: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            kind: None,
            prefix: None,
            disabled: false,
            enabled: true,
            tools: Tools::default(),
            timeout: 60,
            start_timeout: 30,
            idle: 600,
            isolate: false,
            results: Results::default(),
            pin: Pin::default(),
        }
    }
}

impl Entry {
    /// Returns the transport to an address: `http` or `sse`. `None` if it is to be found out.
    pub fn transport(&self) -> Option<&'static str> {
        match self.kind.as_deref()? {
            "sse" => Some("sse"),
            "http" | "streamable-http" | "streamableHttp" => Some("http"),
            _ => None,
        }
    }
}

impl Tools {
    /// Returns whether a tool is offered.
    pub fn offers(&self, name: &str) -> bool {
        let has = |list: &[String]| list.iter().any(|pattern| matches(pattern, name));
        (self.allow.is_empty() || has(&self.allow)) && !has(&self.deny)
    }
}

/// Returns whether a name has this form. `*` is any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).any(|at| name.is_char_boundary(at) && matches(rest, &name[at..]))
        }),
    }
}

/// The files of a project with servers, and the member that contains them.
const PROJECT_FILES: [(&str, &str); 2] = [(".mcp.json", SERVERS), (".vscode/mcp.json", "servers")];

/// Returns the files with the servers of the user and of projects.
pub fn files(user: &Path, projects: &[PathBuf]) -> Vec<PathBuf> {
    let of = |project: &PathBuf| PROJECT_FILES.map(|(file, _)| project.join(file));
    let projects = projects.iter().flat_map(of);
    [user.to_owned()].into_iter().chain(projects).collect()
}

/// Reads the servers of the user and of projects. One of the user replaces those of projects with the same
/// name. A file that cannot be read is a server that failed, so that it concerns no other file.
pub fn read(user: &Path, projects: &[PathBuf]) -> Vec<Server> {
    let mut servers = read_file(user, None, SERVERS);
    for project in projects {
        for (file, member) in PROJECT_FILES {
            for server in read_file(&project.join(file), Some(project), member) {
                if servers.iter().all(|known| known.name != server.name) {
                    servers.push(server);
                }
            }
        }
    }
    servers
}

/// Reads the servers of a file. Without it, there are none.
pub(super) fn read_file(path: &Path, root: Option<&PathBuf>, member: &str) -> Vec<Server> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let why = format!("cannot read {}: {error}", path.display());
            return vec![Server::of_file(path, root, why)];
        }
    };
    match entries(path, &text, member) {
        Ok(entries) => entries
            .iter()
            .map(|(name, value)| Server::new(name, path, root, &text, value))
            .collect(),
        Err(why) => vec![Server::of_file(path, root, why)],
    }
}

/// Returns the entries in the text of a file.
fn entries(path: &Path, text: &str, member: &str) -> Result<Map<String, Value>, String> {
    let cannot_read = |why: &str| format!("cannot read {}: {why}", path.display());
    let members = match parse(path, text)? {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        _ => return Err(cannot_read("it is not an object")),
    };
    match members.get(member) {
        None => Ok(Map::new()),
        Some(Value::Object(entries)) => Ok(entries.clone()),
        Some(_) => Err(cannot_read(&format!("{member} is not an object"))),
    }
}

/// Parses a configuration file, with comments and trailing commas.
///
/// # Errors
/// If it is not JSON.
pub fn parse(path: &Path, text: &str) -> Result<Value, String> {
    json::parse(text.trim_start_matches('\u{feff}'))
        .map(|parsed| parsed.map_or(Value::Null, Value::from))
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

impl Server {
    /// Reads an entry of a file with this text.
    pub(super) fn new(
        name: &str,
        path: &Path,
        root: Option<&PathBuf>,
        text: &str,
        value: &Value,
    ) -> Self {
        let mut server = Self::unread(name.to_owned(), path, root);
        if let Err(why) = server.fill(value) {
            let quoted = Value::String(name.to_owned()).to_string();
            let line = text
                .lines()
                .position(|line| line.contains(&quoted))
                .map_or(String::new(), |line| format!(":{}", line + 1));
            server.problem = Some(format!("{}{line}: {why}", path.display()));
        }
        server
    }

    fn unread(name: String, path: &Path, root: Option<&PathBuf>) -> Self {
        Self {
            name,
            source: path.to_owned(),
            root: root.cloned(),
            entry: Entry::default(),
            ignored: Vec::new(),
            problem: None,
        }
    }

    /// Returns an entry in place of all servers of a file that cannot be read. No server can have its name.
    fn of_file(path: &Path, root: Option<&PathBuf>, why: String) -> Self {
        let file = root
            .or(path.parent().map(Path::to_owned).as_ref())
            .and_then(|folder| path.strip_prefix(folder).ok())
            .unwrap_or(path);
        Self {
            problem: Some(why),
            ..Self::unread(file.to_string_lossy().into_owned(), path, root)
        }
    }

    /// Returns whether it is in place of all servers of a file that cannot be read.
    pub fn is_file(&self) -> bool {
        self.problem.is_some() && self.source.ends_with(&self.name)
    }

    fn fill(&mut self, value: &Value) -> Result<(), String> {
        let members = value.as_object().ok_or("the entry is not an object")?;
        let mut members: Map<String, Value> = members.clone();
        // Cline nests them.
        if let Some(Value::Object(transport)) = members.remove("transport") {
            members.extend(transport);
        }
        if let Some(Value::Array(words)) = members.get("command").cloned() {
            // opencode: program and arguments
            let mut words = words.into_iter();
            members.insert("command".to_owned(), words.next().unwrap_or_default());
            members.insert("args".to_owned(), words.collect());
        }
        if let Some(Value::Object(variables)) = members.remove("environment") {
            members.insert("env".to_owned(), variables.into());
        }
        let has_effect = |name: &str| {
            is_one_of(name, MEMBERS) && !(self.root.is_some() && OF_USER.contains(&name))
        };
        let ignored = members.keys().filter(|name| !has_effect(name));
        self.ignored = ignored.cloned().collect();
        // The value itself may be a secret.
        let entry = serde_json::from_value(members.into());
        self.entry = entry.map_err(|error| {
            let text = error.to_string();
            let kind = text.split([':', '`']).next().unwrap_or_default().to_owned();
            format!("{kind}: a member has another type")
        })?;
        check_name(&self.name)?;
        self.entry.prefix.as_deref().map_or(Ok(()), check_name)?;
        if self.root.is_some() {
            self.entry.results = Results::Judge;
            self.entry.inherit.clear();
        }
        let entry = &self.entry;
        if let Some(url) = &entry.url {
            super::address::loopback(url)?;
        } else if entry.command.is_empty() {
            return Err("the entry has no command".to_owned());
        }
        let texts = entry
            .args
            .iter()
            .chain([&entry.command])
            .chain(&entry.cwd)
            .chain(entry.env.values())
            .chain(entry.headers.values());
        for text in texts {
            if text.contains("${input:") {
                return Err("`${input:…}` is known to VS Code only".to_owned());
            }
            if text.contains("${cmd:") {
                return Err("`${cmd:…}` would run a command; it is not supported".to_owned());
            }
        }
        Ok(())
    }

    /// Returns what names of its tools and prompts begin with.
    pub fn prefix(&self) -> &str {
        self.entry.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether another one runs the same program, or is at the same address.
    pub fn runs_as(&self, other: &Self) -> bool {
        let (own, other) = (&self.entry, &other.entry);
        (&own.command, &own.args, &own.url) == (&other.command, &other.args, &other.url)
    }

    /// Returns a hash of what decides which program runs.
    pub fn hash(&self) -> String {
        let entry = &self.entry;
        let names: Vec<&String> = entry.env.keys().chain(entry.headers.keys()).collect();
        let what = serde_json::json!([
            entry.command,
            entry.args,
            entry.cwd,
            names,
            entry.url,
            entry.isolate
        ]);
        hex(&Sha256::digest(what.to_string()))
    }

    /// Expands the variables of a text.
    ///
    /// # Errors
    /// If a variable is not set.
    pub fn expand(
        &self,
        text: &str,
        root: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.push_str(before);
            let Some((name, more)) = after.split_once('}') else {
                rest = &rest[before.len()..];
                break;
            };
            let (name, default) = match name.split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (name, None),
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            let value = match name {
                "workspaceFolder" => Some(root.to_string_lossy().into_owned()),
                "userHome" => variable("HOME"),
                name => variable(name).filter(|value| !value.is_empty()).or(default),
            };
            expanded.push_str(&value.ok_or_else(|| format!("the variable {name} is not set"))?);
            rest = more;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Expands the variables of values.
    ///
    /// # Errors
    /// If a variable is not set.
    pub fn expand_all(
        &self,
        values: &BTreeMap<String, String>,
        root: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<BTreeMap<String, String>, String> {
        let expanded = |(name, value): (&String, &String)| {
            Ok((name.clone(), self.expand(value, root, variable)?))
        };
        values.iter().map(expanded).collect()
    }

    /// Returns the time after which a call without an answer ends.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.entry.timeout.max(1))
    }

    /// Returns the time to start.
    pub fn start_timeout(&self) -> Duration {
        Duration::from_secs(self.entry.start_timeout.max(1))
    }
}

/// Checks the name of a server.
///
/// # Errors
/// If it cannot be part of the name of a tool.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if name.is_empty()
        || name.len() > MAX_NAME
        || !is_plain
        || name.contains("__")
        || name.ends_with('_')
        || name == "sightline"
    {
        return Err(format!(
            "invalid name {name:?}: use 1 to {MAX_NAME} of A-Z a-z 0-9 - _, without `__` and `_` at the end, and not `sightline`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Vec<Server> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, text).unwrap();
        read_file(&path, None, SERVERS)
    }

    #[test]
    fn an_invalid_entry_concerns_only_itself() {
        let found = servers(
            r#"{ // comment
              "mcpServers": {
                "good": { "command": "a", "args": ["b"], "autoApprove": ["x"], "env": { "T": "${T}" } },
                "words": { "command": ["a", "b"], "environment": { "T": "v" } },
                "no__name": { "command": "a" },
                "sightline": { "command": "a" },
                "empty": {},
                "type": { "command": "a", "env": { "KEY": 12345 } },
                "input": { "command": "a", "args": ["${input:key}"] },
                "cmd": { "command": "${cmd:id}" },
              }
            }"#,
        );
        let named = |name: &str| found.iter().find(|server| server.name == name).unwrap();
        assert_eq!(named("good").problem, None);
        assert_eq!(named("good").ignored, ["autoApprove"]);
        assert!(!named("empty").is_file());
        assert_eq!(named("words").entry.args, ["b"]);
        assert_eq!(named("words").entry.env["T"], "v");
        for (name, line) in [
            ("no__name", 5),
            ("sightline", 6),
            ("empty", 7),
            ("type", 8),
            ("input", 9),
            ("cmd", 10),
        ] {
            let problem = named(name).problem.as_ref().unwrap();
            assert!(problem.contains(&format!("mcp.json:{line}: ")), "{problem}");
            assert!(!problem.contains("12345"), "{problem}");
        }
    }

    #[test]
    fn variables_are_expanded() {
        let server = &servers(r#"{"mcpServers": {"a": {"command": "a"}}}"#)[0];
        let variable = |name: &str| (name == "T").then(|| "v".to_owned());
        let expand = |text: &str| server.expand(text, Path::new("/w"), &variable);
        for (text, expanded) in [
            ("${T}-${env:T}-${N:-d}-${workspaceFolder}", "v-v-d-/w"),
            ("$T {T} ${T", "$T {T} ${T"),
        ] {
            assert_eq!(expand(text).as_deref(), Ok(expanded), "{text}");
        }
        assert_eq!(
            expand("a ${N}"),
            Err("the variable N is not set".to_owned())
        );
    }

    #[test]
    fn an_address_of_another_machine_is_a_problem() {
        let found = servers(
            r#"{"mcpServers": {"own": {"url": "http://[::1]:1/", "headers": {"A": "b"}}, "far": {"url": "http://a.b/?key=s3cret"}}}"#,
        );
        let problem = |name: &str| {
            let mut servers = found.iter();
            servers
                .find(|server| server.name == name)
                .unwrap()
                .problem
                .clone()
        };
        assert_eq!(problem("own"), None);
        assert!(!problem("far").unwrap().contains("s3cret"));
    }

    #[test]
    fn the_transport_has_the_names_of_any_client() {
        for (kind, transport) in [
            ("http", Some("http")),
            ("streamableHttp", Some("http")),
            ("sse", Some("sse")),
            ("stdio", None),
        ] {
            let text = format!(r#"{{"mcpServers": {{"a": {{"type": "{kind}"}}}}}}"#);
            assert_eq!(servers(&text)[0].entry.transport(), transport, "{kind}");
        }
    }

    #[test]
    fn tools_are_selected_by_patterns() {
        let tools = Tools {
            allow: vec!["read_*".to_owned(), "list".to_owned()],
            deny: vec!["*_all".to_owned()],
        };
        let offered =
            ["read_file", "list", "read_all", "lists", "write"].map(|name| tools.offers(name));
        assert_eq!(offered, [true, true, false, false, false]);
    }

    #[test]
    fn the_hash_names_what_runs() {
        let of = |entry: &str| servers(&format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#))[0].hash();
        let first = of(r#"{"command": "a", "args": ["b"], "env": {"T": "v"}}"#);
        assert_eq!(
            first,
            of(r#"{"command": "a", "args": ["b"], "env": {"T": "w"}, "timeout": 3}"#)
        );
        for other in [
            r#"{"command": "a", "env": {"T": "v"}}"#,
            r#"{"command": "a", "args": ["b"]}"#,
        ] {
            assert_ne!(first, of(other));
        }
    }
}
