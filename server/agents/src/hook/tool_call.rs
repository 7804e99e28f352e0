//! What a tool call reads, writes and runs, by the names of its arguments. Any text that is an
//! existing path counts too, because names differ between tools.

use serde_json::{Map, Value};

use super::{
    arguments::{self, Kind},
    mutation, patches,
    written_path::quote,
};
use crate::{Agent, mcp};

/// Maximum length of a text that can be a path, in bytes. Linux allows 4,096.
const MAX_PATH: usize = 4096;
/// Words of the names of arguments that select files by a pattern.
const GLOB_WORDS: &[&str] = &["glob", "globs", "include", "includes"];
/// Words that say, next to `search`, that a tool searches in the content of files.
const CONTENT_WORDS: &[&str] = &[
    "file",
    "files",
    "code",
    "codebase",
    "content",
    "contents",
    "text",
    "workspace",
    "project",
    "repo",
    "repository",
    "pattern",
];

/// The paths and commands of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Paths as given by the model. They need not exist.
    pub paths: Vec<String>,
    /// Texts that count only if they are existing paths.
    pub possible_paths: Vec<String>,
    /// Folders from which the paths and commands may start, besides that of the session.
    pub folders: Vec<String>,
    /// Shell command lines.
    pub commands: Vec<String>,
    /// A search in the content of files, as a command line.
    pub search: Option<String>,
    /// Whether it may change files.
    pub edits: bool,
}

impl ToolCall {
    /// Collects the arguments of the tool call in a hook's input. Returns `None` if it has none.
    pub(super) fn new(
        agent: Agent,
        input: &Value,
        name_field: &str,
        input_field: &str,
    ) -> Option<Self> {
        let arguments = input.get(input_field)?;
        let tool = input[name_field].as_str().unwrap_or_default();
        if is_ours(agent, tool) {
            return Some(Self::default());
        }
        // Arguments may be JSON text.
        let parsed: Option<Value>;
        let arguments = match arguments {
            Value::String(text) => {
                parsed = serde_json::from_str(text).ok();
                parsed.as_ref()?
            }
            arguments => arguments,
        };
        let mut collector = Collector {
            is_patch: tool.to_ascii_lowercase().contains("patch"),
            ..Collector::default()
        };
        collector.add_fields(Kind::Other, arguments.as_object()?);
        let mut call = collector.call;
        if searches_content(tool) {
            let paths = call.paths.iter().filter(|path| !is_glob(path));
            let globs = call.paths.iter().filter(|path| is_glob(path));
            let globs = globs.chain(&collector.globs);
            call.search = Some(search_command(paths, globs, &collector.excluded));
        }
        for list in [&mut call.paths, &mut call.possible_paths, &mut call.folders] {
            list.sort();
            list.dedup();
        }
        call.edits = mutation::is_edit(tool) && !call.paths.is_empty()
            || call
                .commands
                .iter()
                .any(|command| mutation::may_change(command));
        Some(call)
    }
}

#[derive(Default)]
struct Collector {
    call: ToolCall,
    /// Patterns of files to search in.
    globs: Vec<String>,
    /// Patterns of files that are left out.
    excluded: Vec<String>,
    /// The tool applies patches, and runs no commands.
    is_patch: bool,
}

impl Collector {
    /// Collects from an object that is the value of an argument of kind `above`.
    fn add_fields(&mut self, above: Kind, fields: &Map<String, Value>) {
        let named = |wanted| {
            let mut fields = fields.iter();
            fields.find_map(|(name, value)| (arguments::kind(name) == wanted).then_some(value))
        };
        if let (Some(Value::String(program)), Some(operands)) =
            (named(Kind::Command), named(Kind::Operands))
        {
            let operands = match operands {
                Value::Array(operands) => command_line(operands),
                operands => plain(operands),
            };
            self.call
                .commands
                .push(format!("{program} {}", operands.unwrap_or_default()));
        }
        for (name, value) in fields {
            self.possible_path(name, &['/', '.']);
            let words = arguments::words(name);
            if words.iter().any(|word| GLOB_WORDS.contains(&word.as_str()))
                || words.ends_with(&["file".to_owned(), "pattern".to_owned()])
            {
                strings(value, &mut self.globs);
            }
            let kind = match arguments::kind(name) {
                // `files: [{ "name": PATH }]`
                Kind::Other => above,
                kind => kind,
            };
            let is_list = words.last().is_some_and(|word| word.ends_with('s'));
            self.add(kind, is_list, value);
        }
    }

    fn add(&mut self, kind: Kind, is_list: bool, value: &Value) {
        match value {
            Value::Object(fields) => self.add_fields(kind, fields),
            Value::Array(elements) => {
                // The words of one command.
                if kind == Kind::Command
                    && !is_list
                    && let Some(line) = command_line(elements)
                {
                    self.add_words(elements, line);
                } else {
                    for element in elements {
                        self.add(kind, false, element);
                    }
                }
            }
            Value::String(text) => self.add_text(kind, text),
            _ => {}
        }
    }

    fn add_words(&mut self, words: &[Value], line: String) {
        if let [Value::String(program), .., Value::String(patch)] = words
            && program == "apply_patch"
        {
            self.call.paths.extend(patches::files(patch));
            return;
        }
        self.call.commands.push(line);
        // `bash -c TEXT`: the text is a command too.
        if let [.., Value::String(flag), Value::String(script)] = words
            && flag.starts_with('-')
        {
            self.add_text(Kind::Command, script);
        }
    }

    fn add_text(&mut self, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        if kind == Kind::Excluded {
            self.excluded.push(text.to_owned());
            return;
        }
        if kind != Kind::Content || self.is_patch {
            self.call.paths.extend(patches::files(text));
            self.call.possible_paths.extend(patches::diff_files(text));
        }
        match kind {
            Kind::Command if self.is_patch && text.trim_start().starts_with(patches::START) => {}
            Kind::Command => self.call.commands.push(text.to_owned()),
            Kind::Path | Kind::Folder => {
                if !is_remote(text) {
                    self.call.paths.push(text.to_owned());
                }
                if kind == Kind::Folder {
                    self.call.folders.push(text.to_owned());
                }
                self.call.possible_paths.push(text.to_owned());
            }
            Kind::Setting => self.possible_path(text, &['/']),
            // Single words are more often names of branches, issues or buttons.
            Kind::Operands | Kind::Other => self.possible_path(text, &['/', '.']),
            Kind::Content | Kind::Excluded => {}
        }
    }

    /// Adds a text that is a path only if it has one of these characters.
    fn possible_path(&mut self, text: &str, signs: &[char]) {
        if text.len() <= MAX_PATH && text.contains(signs) && !text.contains('\n') {
            self.call.possible_paths.push(text.to_owned());
        }
    }
}

/// Returns whether a tool is one of our MCP server, which checks access itself. Only for agents
/// whose names of tools cannot be those of another server.
fn is_ours(agent: Agent, tool: &str) -> bool {
    let prefix = match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen => "mcp__sightline__",
        Agent::Cline => "sightline__",
        Agent::Gemini | Agent::Copilot | Agent::Opencode => return false,
    };
    tool.strip_prefix(prefix)
        .is_some_and(|name| mcp::tools().iter().any(|tool| tool.name == name))
}

/// Returns whether the name of a tool says that it searches in the content of files.
fn searches_content(tool: &str) -> bool {
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let words = arguments::words(name);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let has_content = || {
        words
            .iter()
            .any(|word| CONTENT_WORDS.contains(&word.as_str()))
    };
    name.to_ascii_lowercase().contains("grep")
        || has("search") && has_content()
        || has("find") && has("in")
        || has("read") && has("many")
}

fn search_command<'a>(
    paths: impl Iterator<Item = &'a String>,
    globs: impl Iterator<Item = &'a String>,
    excluded: &[String],
) -> String {
    let mut command = "rg -. -e x".to_owned();
    for glob in globs {
        command.push_str(&format!(" --glob {}", quote(glob)));
    }
    for glob in excluded {
        command.push_str(&format!(" --glob {}", quote(&format!("!{glob}"))));
    }
    command.push_str(" --");
    for path in paths {
        command.push_str(&format!(" {}", quote(path)));
    }
    command
}

fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// Returns whether the text is a URL of another machine.
fn is_remote(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.eq_ignore_ascii_case("file") && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Returns the command line with these words. `None` if one of them is a list or an object.
fn command_line(words: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = words
        .iter()
        .map(|word| Some(quote(&plain(word)?)))
        .collect();
    Some(words?.join(" "))
}

/// Returns a value that is not a list or an object as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        value => Some(value.to_string()),
    }
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
    use serde_json::json;

    use super::ToolCall;
    use crate::Agent;

    fn call(tool: &str, arguments: serde_json::Value) -> ToolCall {
        call_of(Agent::Claude, tool, arguments)
    }

    fn call_of(agent: Agent, tool: &str, arguments: serde_json::Value) -> ToolCall {
        let input = json!({ "tool_name": tool, "tool_input": arguments });
        ToolCall::new(agent, &input, "tool_name", "tool_input").unwrap_or_default()
    }

    #[test]
    fn nested_paths_and_commands_are_found() {
        let found = call(
            "read_files",
            json!({ "files": [{ "path": "a" }, "b", { "name": "d" }], "command": "cat c", "commands": ["ls"] }),
        );
        assert_eq!(found.paths, ["a", "b", "d"]);
        assert_eq!(found.commands, ["cat c", "ls"]);
    }

    #[test]
    fn words_of_a_command_are_joined() {
        for (arguments, commands) in [
            (
                json!({ "command": ["bash", "-lc", "cat it's"] }),
                &[r"'bash' '-lc' 'cat it'\''s'", "cat it's"][..],
            ),
            (
                json!({ "command": "cat", "args": ["a b", 1] }),
                &["cat 'a b' '1'", "cat"],
            ),
            (json!({ "commands": [["cat", "a"]] }), &["'cat' 'a'"]),
            (
                json!({ "commands": [{ "command": "cat", "args": ["a"] }] }),
                &["cat 'a'", "cat"],
            ),
        ] {
            assert_eq!(call("shell", arguments).commands, commands);
        }
    }

    #[test]
    fn patches_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: a b\n@@\n*** Move to: c\n*** End Patch";
        for arguments in [
            json!({ "command": patch }),
            json!({ "command": ["apply_patch", patch] }),
        ] {
            let found = call("apply_patch", arguments);
            assert_eq!(found.paths, ["a b", "c"]);
            assert_eq!(found.commands, Vec::<String>::new());
        }
        let shell = format!("apply_patch <<'EOF'\n{patch}\nEOF");
        let found = call("Bash", json!({ "command": shell }));
        assert_eq!((found.paths.len(), found.commands.len()), (2, 1));
        let hidden = call("Bash", json!({ "command": "*** Begin Patch; cat a" }));
        assert_eq!(hidden.commands.len(), 1);
        let diff = call("apply_diff", json!({ "diff": "--- a/b\n+++ a/b\n" }));
        assert!(diff.possible_paths.contains(&"b".to_owned()));
    }

    #[test]
    fn other_texts_may_be_paths() {
        let found = call(
            "x",
            json!({
                "target": "a.txt", "name": "a", "pattern": "b", "query": "b/c", "text": "f/g",
                "glob": "d/*", "files": { "c.txt": 1 }, "exclude": ["e.txt"],
            }),
        );
        assert_eq!(found.paths, Vec::<String>::new());
        assert_eq!(found.possible_paths, ["a.txt", "b/c", "c.txt", "d/*"]);
    }

    #[test]
    fn searches_are_command_lines() {
        for (tool, arguments, expected) in [
            (
                "Grep",
                json!({ "pattern": "x", "path": "a", "glob": "*.rs" }),
                "rg -. -e x --glob '*.rs' -- 'a'",
            ),
            (
                "search_file_content",
                json!({ "pattern": "x" }),
                "rg -. -e x --",
            ),
            (
                "read_many_files",
                json!({ "include": ["**/*.md"], "exclude": ["b"] }),
                "rg -. -e x --glob '**/*.md' --glob '**/*.md' --glob '!b' --",
            ),
        ] {
            assert_eq!(
                call(tool, arguments).search.as_deref(),
                Some(expected),
                "{tool}"
            );
        }
        for tool in ["web_search", "Read", "mcp__files__web_search", "Glob"] {
            assert_eq!(call(tool, json!({ "query": "x" })).search, None, "{tool}");
        }
    }

    #[test]
    fn only_our_own_tools_are_not_checked() {
        let path = json!({ "path": "a" });
        for (agent, tool) in [
            (Agent::Claude, "mcp__sightline__read_file"),
            (Agent::Cline, "sightline__read_file"),
        ] {
            assert_eq!(call_of(agent, tool, path.clone()), ToolCall::default());
        }
        for (agent, tool) in [
            (Agent::Opencode, "sightline_read_file"),
            (Agent::Opencode, "mcp__sightline__read_file"),
            (Agent::Claude, "sightline__read_file"),
            (Agent::Claude, "mcp__sightline__cat"),
            (Agent::Claude, "mcp__sightline__selection_of"),
        ] {
            assert_eq!(call_of(agent, tool, path.clone()).paths, ["a"], "{tool}");
        }
    }

    #[test]
    fn urls_of_other_machines_are_not_paths() {
        let found = call("fetch", json!({ "uri": "https://a/b" }));
        assert_eq!(found.paths, Vec::<String>::new());
        assert_eq!(
            call("x", json!({ "uri": "file:///a" })).paths,
            ["file:///a"]
        );
    }

    #[test]
    fn arguments_may_be_json_text() {
        assert_eq!(call("view", json!(r#"{"path":"a"}"#)).paths, ["a"]);
        for arguments in [json!("a"), json!(["a"]), json!(null)] {
            let input = json!({ "tool_name": "view", "tool_input": arguments });
            assert_eq!(
                ToolCall::new(Agent::Claude, &input, "tool_name", "tool_input"),
                None
            );
        }
    }
}
