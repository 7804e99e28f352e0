//! Searches in the content of files, as a command that reads the same files.
//!
//! Tools disagree on how they split and combine patterns. A restriction that is not certain is
//! dropped, so that the command reads at least what the tool reads.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sightline_base::words::is_one_of;

use super::{
    arguments::{self, Kind},
    written_path::quote,
};
use crate::Agent;

/// Words of the names of arguments that select files by a pattern.
const GLOB_WORDS: &[&str] = &["glob", "globs", "include", "includes"];
/// Words that say, next to `search`, that a tool searches in the content of files.
const CONTENT_WORDS: &str = "file files code codebase content contents text workspace project repo repository pattern start";
/// Hosts of code, in the names of tools that search there.
const CODE_HOSTS: &[&str] = &["github", "gitlab", "bitbucket", "sourcegraph"];
/// Servers whose tools search on other machines.
const REMOTE_SERVERS: &str = "gdrive slack sentry linear jira confluence atlassian notion";

/// A search in the content of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Folders and files to search in, and patterns of files, as written. Empty for the folder of the
    /// session.
    pub paths: Vec<String>,
    /// For a file, the tool searches in its folder.
    pub in_folder_of_file: bool,
    /// Only if this path does not exist: the tool then looks for a file with its name.
    pub unless_exists: Option<String>,
    /// Patterns of the files that are read, in their order; `!` before those that are left out. Empty for all.
    globs: Vec<String>,
    /// Patterns of files that are left out.
    excluded: Vec<String>,
    /// The type of the files that are read, as ripgrep names it.
    file_type: Option<String>,
    /// Ignored files are read too.
    reads_ignored: bool,
    /// How the tool leaves out files.
    exclusion: Exclusion,
}

/// How a tool leaves out files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Exclusion {
    /// Not known.
    #[default]
    Unknown,
    /// By `!` in its argument `glob`.
    Glob,
    /// By its argument `exclude`, a list.
    List,
}

impl Search {
    /// Returns the search of a tool call. `None` if the tool does not search in contents.
    pub(super) fn new(agent: Agent, tool: &str, fields: &Map<String, Value>) -> Option<Self> {
        let names_path = || {
            let mut names = fields.keys().map(|name| arguments::kind(name));
            names.any(|kind| matches!(kind, Kind::Path | Kind::Folder))
        };
        // It runs ripgrep with these arguments, and prints names of files by default.
        let is_ripgrep = agent == Agent::Claude && tool == "Grep";
        let prints_names =
            prints_names(fields) || is_ripgrep && !fields.contains_key("output_mode");
        if !searches_content(tool) || is_remote(tool) && !names_path() || prints_names {
            return None;
        }
        let mut search = Self {
            in_folder_of_file: agent == Agent::Opencode,
            exclusion: match tool {
                _ if is_ripgrep => Exclusion::Glob,
                "read_many_files" => Exclusion::List,
                _ => Exclusion::Unknown,
            },
            ..Self::default()
        };
        let mut is_restricted = true;
        for (name, value) in fields {
            search.reads_ignored |= reads_ignored(name, value);
            let mut texts = Vec::new();
            strings(value, &mut texts);
            // A query may be an option of the program that searches.
            search.reads_ignored |= texts.iter().any(|text| text.starts_with('-'));
            if is_ripgrep && name == "type" {
                let is_plain = |it: &&String| it.bytes().all(|byte| byte.is_ascii_alphanumeric());
                search.file_type = texts.first().filter(is_plain).cloned();
                continue;
            }
            if is_glob_field(name) {
                let patterns = patterns(&texts, is_ripgrep);
                is_restricted &= patterns.is_some();
                search.globs.extend(patterns.unwrap_or_default());
                continue;
            }
            match arguments::kind(name) {
                Kind::Path | Kind::Folder => search.paths.extend(texts),
                // Other tools take a regular expression, or one pattern among others.
                Kind::Excluded if value.is_array() && name == "exclude" => {
                    search.excluded.extend(texts);
                }
                _ => {}
            }
        }
        if !is_restricted || search.reads_ignored {
            search.globs.clear();
        }
        Some(search)
    }

    /// Returns the search of a tool that looks for a file with a name, if there is none at a path.
    pub(super) fn for_name(path: &str) -> Option<Self> {
        let name = path
            .rsplit(['/', '\\'])
            .next()
            .filter(|name| !name.is_empty())?;
        Some(Self {
            unless_exists: Some(path.to_owned()),
            globs: patterns(&[name.to_owned()], false).unwrap_or_default(),
            reads_ignored: true,
            ..Self::default()
        })
    }

    /// Returns commands that read what the search reads in these folders and files, and in files
    /// that match these patterns. Without any, in the folder where the commands run.
    pub fn commands(&self, starts: &BTreeSet<String>, patterns: &[String]) -> Vec<String> {
        let mut commands = Vec::new();
        let (outside, globs): (Vec<_>, Vec<_>) =
            self.globs.iter().cloned().partition(|glob| leads_out(glob));
        for (folder, name) in outside.iter().map(|glob| split_at_pattern(glob)) {
            let none = BTreeSet::from([String::new()]);
            let starts = if starts.is_empty() { &none } else { starts };
            let folders = starts.iter().map(|start| match start.as_str() {
                start if folder.starts_with('/') || start.is_empty() => folder.to_owned(),
                start => format!("{start}/{folder}"),
            });
            commands.push(self.command(&[name.to_owned()], &folders.collect()));
        }
        let reads_here = outside.is_empty() || globs.iter().any(|glob| !glob.starts_with('!'));
        if reads_here && (!starts.is_empty() || patterns.is_empty()) {
            commands.push(self.command(&globs, starts));
        }
        if !patterns.is_empty() {
            commands.push(self.command(patterns, &BTreeSet::new()));
        }
        commands
    }

    /// Returns how the search can leave out the denied files. `instead` is its command line with options
    /// that do so.
    pub fn advice(&self, instead: Option<&str>) -> String {
        let instead = instead.unwrap_or_default().replace(r"'\''", "\0");
        let names: Vec<String> = (instead.split(" -g '!").skip(1))
            .filter_map(|option| Some(option.split_once('\'')?.0.replace('\0', "'")))
            .collect();
        let is_one_word = |name: &String| !name.contains(|c: char| c.is_whitespace() || c == ',');
        match self.exclusion {
            Exclusion::Glob if !names.is_empty() && names.iter().all(is_one_word) => {
                // The last one decides.
                let left_out = names.iter().map(|name| format!("!{name}"));
                let globs: Vec<String> = self.globs.iter().cloned().chain(left_out).collect();
                format!("Search instead with glob: {}", json!(globs.join(" ")))
            }
            Exclusion::List if !names.is_empty() => {
                let mut excluded = self.excluded.clone();
                excluded.extend(names.iter().map(|it| it.trim_start_matches('/').to_owned()));
                format!("Search instead with exclude: {}", json!(excluded))
            }
            _ => "Search in a folder, or in files by a pattern, that leaves it out.".to_owned(),
        }
    }

    /// Some tools match patterns in any case.
    fn command(&self, globs: &[String], starts: &BTreeSet<String>) -> String {
        let mut command = "rg -. -e x".to_owned();
        if self.reads_ignored {
            command.push_str(" --no-ignore");
        }
        if let Some(file_type) = &self.file_type {
            command.push_str(&format!(" --type {}", quote(file_type)));
        }
        let excluded = self.excluded.iter().map(|glob| format!("!{glob}"));
        let globs: Vec<String> = globs.iter().cloned().chain(excluded).collect();
        let last = globs.iter().rposition(|glob| glob.starts_with('!'));
        for (at, glob) in globs.iter().enumerate() {
            // The last one decides, but ripgrep takes `--iglob` after all others.
            let is_plain = !glob.contains(['[', '\\']) && Some(at) < last;
            let (option, glob) = match glob.starts_with('!') {
                true => ("--glob", glob.clone()),
                false if is_plain => ("--glob", glob.chars().map(in_any_case).collect()),
                false => ("--iglob", glob.clone()),
            };
            command.push_str(&format!(" {option} {}", quote(&glob)));
        }
        command.push_str(" --");
        for start in starts {
            command.push_str(&format!(" {}", quote(start)));
        }
        command
    }
}

/// Returns a pattern that matches a letter in any case.
fn in_any_case(c: char) -> String {
    if c.is_ascii_alphabetic() {
        format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase())
    } else {
        c.to_string()
    }
}

/// Returns whether a pattern may match files that are not below the folder of the search.
fn leads_out(glob: &str) -> bool {
    let mut names = glob.split(['/', '{', ',', '}']);
    !glob.starts_with('!') && (glob.starts_with('/') || names.any(|name| name == ".."))
}

/// Splits a pattern into a folder that contains all of its files, and the pattern of their names.
fn split_at_pattern(glob: &str) -> (&str, &str) {
    let (before, name) = glob.rsplit_once('/').unwrap_or((".", glob));
    let special = before.find(['*', '?', '[', '{']).unwrap_or(before.len());
    let end = if special < before.len() {
        before[..special].rfind('/').unwrap_or(0)
    } else {
        before.len()
    };
    match &before[..end] {
        "" => ("/", name),
        folder => (folder, name),
    }
}

/// Returns the patterns in the values of an argument, which some tools split at spaces and commas.
/// `None` if they do not restrict the search. `can_exclude`: a `!` leaves out files.
fn patterns(texts: &[String], can_exclude: bool) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for text in texts {
        let mut depth = 0_u32;
        let parts = text.split(|c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c.is_whitespace() || c == ',' && depth == 0
        });
        found.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
    }
    let is_unclear = |part: &String| part.starts_with('!') && !can_exclude || part.contains('(');
    let is_certain = !found.is_empty() && !found.iter().any(is_unclear);
    is_certain.then_some(found)
}

/// Returns whether arguments say that only names of files or counts are printed.
fn prints_names(fields: &Map<String, Value>) -> bool {
    fields.iter().any(|(name, value)| match value {
        Value::String(mode) => {
            matches!(name.as_str(), "output_mode" | "outputMode")
                && matches!(mode.as_str(), "files_with_matches" | "count")
        }
        Value::Bool(true) => matches!(name.as_str(), "names_only" | "namesOnly" | "files_only"),
        _ => false,
    })
}

/// Returns whether the values of an argument select files.
fn is_glob_field(name: &str) -> bool {
    let words = arguments::words(name);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    arguments::kind(name) != Kind::Excluded
        && (words.iter().any(|word| GLOB_WORDS.contains(&word.as_str()))
            || has("file") && has("pattern"))
}

/// Returns whether an argument says that ignored files are read: `no_ignore: true`,
/// `respect_git_ignore: false`, `include_ignored: true`.
fn reads_ignored(name: &str, value: &Value) -> bool {
    let name = name.to_ascii_lowercase();
    let says_no =
        name.contains("no_ignore") || name.contains("noignore") || name.contains("ignored");
    match value {
        Value::Bool(true) => says_no,
        Value::Bool(false) => name.contains("respect"),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| reads_ignored(name, value)),
        _ => false,
    }
}

/// Returns whether the name of a tool says that it searches in the content of files.
pub(super) fn searches_content(tool: &str) -> bool {
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let words = arguments::words(name);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let has_content = || words.iter().any(|word| is_one_of(word, CONTENT_WORDS));
    let lower = tool.to_ascii_lowercase();
    // The search of the file system server returns names.
    if lower.ends_with("filesystem__search_files") {
        return false;
    }
    lower.contains("grep")
        || words == ["rg"]
        || has("search") && has_content()
        || has("find") && has("in")
        || has("read") && has("many")
        || has("pack") && has("codebase")
}

/// Returns whether the name of a tool says that it searches on other machines. A tool that is given
/// a path does not.
fn is_remote(tool: &str) -> bool {
    let lower = tool.to_ascii_lowercase();
    let server = lower.rsplit_once("__").map_or("", |(server, _)| server);
    let server = server.strip_prefix("mcp__").unwrap_or(server);
    is_one_of(server, REMOTE_SERVERS) || CODE_HOSTS.iter().any(|host| lower.contains(host))
}

fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(elements) => elements.iter().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::Search;
    use crate::Agent;

    fn command(agent: Agent, tool: &str, arguments: serde_json::Value) -> Option<String> {
        let search = Search::new(agent, tool, arguments.as_object().unwrap())?;
        let starts = search.paths.iter().cloned().collect();
        Some(search.commands(&starts, &[]).join("; "))
    }

    #[test]
    fn searches_are_command_lines() {
        for (tool, arguments, expected) in [
            (
                "Grep",
                json!({ "output_mode": "content", "pattern": "x", "path": "a", "glob": "*.rs" }),
                "rg -. -e x --iglob '*.rs' -- 'a'",
            ),
            (
                "Grep",
                json!({ "pattern": "x", "type": "rs", "glob": "!a.rs *.rs", "output_mode": "content" }),
                "rg -. -e x --type 'rs' --glob '!a.rs' --iglob '*.rs' --",
            ),
            (
                "search_file_content",
                json!({ "pattern": "x" }),
                "rg -. -e x --",
            ),
            ("rg", json!({ "pattern": "x" }), "rg -. -e x --"),
            (
                "mcp__ripgrep__search",
                json!({ "pattern": "x" }),
                "rg -. -e x --",
            ),
            ("start_search", json!({ "pattern": "x" }), "rg -. -e x --"),
            (
                "read_many_files",
                json!({ "include": ["**/*.md"], "exclude": ["b"] }),
                "rg -. -e x --glob '**/*.[mM][dD]' --glob '!b' --",
            ),
            (
                "read_many_files",
                json!({ "include": ["../a/**", "/b/c/*/d.md", "src/*", "x/../../.env"] }),
                "rg -. -e x --iglob '**' -- '../a'; rg -. -e x --iglob 'd.md' -- '/b/c'; \
                 rg -. -e x --iglob '.env' -- 'x/../..'; rg -. -e x --iglob 'src/*' --",
            ),
            (
                "Grep",
                json!({ "pattern": "x", "path": "a", "glob": "../*.rs", "output_mode": "content" }),
                "rg -. -e x --iglob '*.rs' -- 'a/..'",
            ),
        ] {
            let found = command(Agent::Claude, tool, arguments);
            assert_eq!(found.as_deref(), Some(expected), "{tool}");
        }
        for tool in [
            "web_search",
            "Read",
            "mcp__files__web_search",
            "Glob",
            "mcp__github__search_code",
            "mcp__gitHub__search_code",
            "mcp__grep__searchGitHub",
            "github-mcp-server-search_code",
            "mcp__slack__search_text",
            "mcp__filesystem__search_files",
        ] {
            let found = command(Agent::Claude, tool, json!({ "query": "x" }));
            assert_eq!(found, None, "{tool}");
        }
    }

    #[test]
    fn searches_that_print_names_read_nothing() {
        for arguments in [
            json!({ "pattern": "x" }),
            json!({ "pattern": "x", "output_mode": "files_with_matches" }),
            json!({ "pattern": "x", "output_mode": "count" }),
            json!({ "pattern": "x", "names_only": true }),
        ] {
            let found = command(Agent::Claude, "Grep", arguments.clone());
            assert_eq!(found, None, "{arguments}");
        }
    }

    #[test]
    fn advice_names_the_argument_that_leaves_out_files() {
        let instead = Some("rg -g '!.env' -g '!/a b' -. -e x --");
        for (tool, arguments, instead, advice) in [
            (
                "Grep",
                json!({ "glob": "*.rs", "output_mode": "content" }),
                Some("rg -g '!.env' -e x"),
                "glob: \"*.rs !.env\"",
            ),
            (
                "Grep",
                json!({ "output_mode": "content" }),
                Some(r"rg -g '!/it'\''s.txt' -e x"),
                "glob: \"!/it's.txt\"",
            ),
            (
                "Grep",
                json!({ "output_mode": "content" }),
                instead,
                "Search in a folder",
            ),
            (
                "Grep",
                json!({ "output_mode": "content" }),
                None,
                "Search in a folder",
            ),
            (
                "read_many_files",
                json!({ "include": ["*"], "exclude": ["c"] }),
                instead,
                r#"exclude: ["c",".env","a b"]"#,
            ),
            (
                "search_file_content",
                json!({}),
                instead,
                "Search in a folder",
            ),
        ] {
            let search = Search::new(Agent::Claude, tool, arguments.as_object().unwrap()).unwrap();
            let found = search.advice(instead);
            assert!(found.contains(advice), "{tool}: {found}");
        }
    }

    #[test]
    fn a_search_in_a_path_is_local() {
        for (tool, arguments) in [
            ("mcp__linear-notes__search_files", json!({ "query": "x" })),
            ("mcp__web__search_files", json!({ "query": "x" })),
            ("mcp__slack__grep", json!({ "path": ".", "pattern": "x" })),
            ("mcp__github__search_code", json!({ "directory": "." })),
        ] {
            let found = command(Agent::Claude, tool, arguments);
            assert!(found.is_some(), "{tool}");
        }
    }

    #[test]
    fn patterns_do_not_restrict_what_is_named_next_to_them() {
        let fields = json!({ "paths": ["a", "*.md"] });
        let search = Search::new(
            Agent::Gemini,
            "read_many_files",
            fields.as_object().unwrap(),
        );
        let starts = BTreeSet::from(["a".to_owned()]);
        assert_eq!(
            search.unwrap().commands(&starts, &["*.md".to_owned()]),
            ["rg -. -e x -- 'a'", "rg -. -e x --iglob '*.md' --"]
        );
    }

    #[test]
    fn only_certain_restrictions_count() {
        for (field, value, globs) in [
            ("glob", json!(""), ""),
            ("glob", json!(" "), ""),
            ("glob", json!(","), ""),
            ("glob", json!("*.rs .en*"), " --iglob '*.rs' --iglob '.en*'"),
            ("glob", json!("*.rs,.en*"), " --iglob '*.rs' --iglob '.en*'"),
            ("glob", json!("*.{rs,md}"), " --iglob '*.{rs,md}'"),
            ("include", json!("key.txt"), " --iglob 'key.txt'"),
            ("include", json!("!x"), ""),
            ("include", json!(["README.md", "+(.)env"]), ""),
            ("include_pattern", json!(""), ""),
            ("exclude_pattern", json!("{.env}"), ""),
            ("paths_exclude_glob", json!("*.md"), ""),
            ("paths_include_glob", json!(""), ""),
        ] {
            let found = command(
                Agent::Gemini,
                "grep",
                json!({ "pattern": "x", field: value }),
            );
            assert_eq!(
                found,
                Some(format!("rg -. -e x{globs} --")),
                "{field} {value}"
            );
        }
    }

    #[test]
    fn ignored_files_are_read_on_request() {
        for arguments in [
            json!({ "no_ignore": true, "glob": "*.rs" }),
            json!({ "file_filtering_options": { "respect_git_ignore": false } }),
            json!({ "queries": ["-uue."] }),
        ] {
            let found = command(Agent::Cline, "search_codebase", arguments.clone());
            assert_eq!(
                found.as_deref(),
                Some("rg -. -e x --no-ignore --"),
                "{arguments}"
            );
        }
        let found = command(Agent::Gemini, "grep_search", json!({ "no_ignore": false }));
        assert_eq!(found.as_deref(), Some("rg -. -e x --"));
    }

    #[test]
    fn a_name_is_searched_for() {
        let search = Search::for_name("a/key.txt").unwrap();
        let commands = search.commands(&BTreeSet::new(), &[]);
        assert_eq!(commands, ["rg -. -e x --no-ignore --iglob 'key.txt' --"]);
        assert_eq!(Search::for_name("a/"), None);
    }
}
