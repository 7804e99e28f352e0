//! What a tool call reads, writes and runs, by the names of its arguments. Any text that is an
//! existing path counts too, because names differ between tools.

mod collector;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use sightline_base::words::is_one_of;

use super::{
    arguments::{self, Kind},
    mutation,
    search::{Search, searches_content},
    written_path::{MAX_PATH, MAX_TEXT, glob_command},
};
use crate::{Agent, mcp};
use collector::Collector;

/// Maximum number of words of commands that are taken for names of files.
const MAX_COMMAND_WORDS: usize = 64;
/// Our tools that restore files.
const RESTORE_TOOLS: &[&str] = &["checkpoint_restore", "checkpoint_undo"];
/// Names of fields with the name of a tool, in the arguments of a tool that calls other tools.
const TOOL_FIELDS: &[&str] = &["tool", "tool_name", "toolName", "name", "recipient_name"];
/// Names of fields with the arguments of such a tool.
const ARGUMENT_FIELDS: &[&str] = &[
    "parameters",
    "arguments",
    "args",
    "input",
    "tool_input",
    "params",
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
    /// Code of any language.
    pub codes: Vec<String>,
    /// Searches in the content of files.
    pub searches: Vec<Search>,
    /// Texts that are paths of files which the tool may change.
    pub changed: Vec<String>,
    /// Whether it may remove or move these.
    pub removes: bool,
    /// Files that our `read_file` reads, which checks access itself.
    pub own_reads: Vec<String>,
    /// Whether it may change files.
    pub edits: bool,
    /// Whether it restores files to a checkpoint.
    pub restores: bool,
}

impl ToolCall {
    /// Returns texts that may be names of files which its commands read or write.
    pub fn command_words(&self) -> Vec<String> {
        let words = self.commands.iter().flat_map(|command| {
            command.split(|c: char| c.is_whitespace() || "\"'`;|&<>()=".contains(c))
        });
        let mut words: Vec<String> = words
            .filter(|word| !word.is_empty() && !word.starts_with('-') && word.len() <= MAX_PATH)
            .map(str::to_owned)
            .collect();
        words.sort();
        words.dedup();
        words.truncate(MAX_COMMAND_WORDS);
        words
    }

    /// Collects the arguments of a tool of an MCP server, as from a hook of an agent that names it.
    ///
    /// # Errors
    /// If it has one that is too long to check.
    pub fn of_mcp_tool(tool: &str, arguments: &Value) -> Result<Self, String> {
        let input = json!({ "tool": format!("mcp__server__{tool}"), "input": arguments });
        Self::new(Agent::Claude, &input, "tool", "input")
    }

    /// Collects the arguments of the tool call in a hook's input.
    ///
    /// # Errors
    /// If it has none, or one that is too long to check.
    pub(super) fn new(
        agent: Agent,
        input: &Value,
        name_field: &str,
        input_field: &str,
    ) -> Result<Self, String> {
        let missing = || "the hook input has no tool arguments".to_owned();
        let arguments = input.get(input_field).ok_or_else(missing)?;
        let tool = input[name_field].as_str().unwrap_or_default();
        let restores = RESTORE_TOOLS.iter().any(|name| tool.ends_with(name));
        if is_ours(agent, tool) {
            let path = parsed(arguments)["path"].as_str().map(str::to_owned);
            return Ok(Self {
                own_reads: path
                    .filter(|_| tool.ends_with("read_file"))
                    .into_iter()
                    .collect(),
                restores,
                ..Self::default()
            });
        }
        let arguments = parsed(arguments);
        let arguments = arguments.as_ref();
        let mut collector = Collector {
            is_patch: tool.to_ascii_lowercase().contains("patch"),
            is_terminal: is_terminal(tool),
            runs_code: runs_code(tool),
            is_prompt: has_word(tool, "skill slash"),
            is_search: searches_content(tool),
            ..Collector::default()
        };
        match arguments {
            Value::Object(fields) => {
                collector.add_fields(Kind::Other, fields);
                if let Some(search) = Search::new(agent, tool, fields) {
                    // The search reads what these patterns match.
                    let is_literal = |path: &String| glob_command(path).is_none();
                    collector.call.paths.retain(is_literal);
                    collector.call.searches.push(search);
                }
            }
            // Without names: `[PATH]`, `[COMMAND]`, or one of them.
            values @ (Value::Array(_) | Value::String(_)) => {
                collector.add(Kind::Path, true, values);
                if arguments::kind(tool) == Kind::Command {
                    collector.add(Kind::Command, true, values);
                }
            }
            _ => return Err(missing()),
        }
        if let Some(bytes) = collector.too_long {
            return Err(format!(
                "an argument for paths has {bytes} bytes, which exceeds the limit of {MAX_TEXT}"
            ));
        }
        let mut inner = Vec::new();
        inner_calls(arguments, &mut inner);
        for (tool, fields) in &inner {
            let search = Search::new(agent, tool, fields);
            collector.call.searches.extend(search);
        }
        let mut call = collector.call;
        if mutation::lists_names(tool) {
            call.folders.append(&mut call.paths);
            call.possible_paths.clear();
        }
        // `replace` of gemini-cli edits another file with the name if there is none at the path.
        if agent == Agent::Gemini && tool == "replace" {
            let names = call.paths.iter();
            call.searches
                .extend(names.filter_map(|path| Search::for_name(path)));
        }
        for list in [&mut call.paths, &mut call.possible_paths, &mut call.folders] {
            list.sort();
            list.dedup();
        }
        let tools = || {
            [tool]
                .into_iter()
                .chain(inner.iter().map(|(tool, _)| tool.as_str()))
        };
        let may_edit = tools().any(mutation::is_edit);
        // A tool that does not say what it does may change the paths that it is given.
        if !tools().all(mutation::only_reads_files) {
            call.changed.extend(call.paths.iter().cloned());
        }
        if may_edit {
            call.changed.extend(call.possible_paths.iter().cloned());
        }
        call.removes = tools().any(mutation::removes);
        call.edits = may_edit && !call.paths.is_empty()
            || call
                .commands
                .iter()
                .chain(&call.codes)
                .any(|command| mutation::may_change(command));
        call.restores = restores;
        Ok(call)
    }
}

/// Returns arguments, which may be JSON text.
fn parsed(arguments: &Value) -> Cow<'_, Value> {
    let text = arguments.as_str();
    match text.and_then(|text| serde_json::from_str(text).ok()) {
        Some(parsed) => Cow::Owned(parsed),
        None => Cow::Borrowed(arguments),
    }
}

/// Returns the name of a tool without a namespace, as in `functions.grep`.
fn last_part(tool: &str) -> &str {
    tool.rsplit('.').next().unwrap_or(tool)
}

/// Collects the calls of other tools in the arguments of a tool such as `batch`: objects with the
/// name of a tool and its arguments.
fn inner_calls(value: &Value, calls: &mut Vec<(String, Map<String, Value>)>) {
    match value {
        Value::Object(fields) => {
            let first = |names: &[&str]| names.iter().find_map(|name| fields.get(*name));
            let arguments = first(ARGUMENT_FIELDS).map(parsed);
            if let (Some(Value::String(tool)), Some(Value::Object(arguments))) =
                (first(TOOL_FIELDS), arguments.as_deref())
            {
                calls.push((last_part(tool).to_owned(), arguments.clone()));
            }
            fields.values().for_each(|value| inner_calls(value, calls));
        }
        Value::Array(values) => values.iter().for_each(|value| inner_calls(value, calls)),
        _ => {}
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

/// Returns whether the name of a tool says that it writes to a terminal.
fn is_terminal(tool: &str) -> bool {
    has_word(tool, "bash shell terminal process stdin")
}

/// Returns whether the name of a tool says that it runs code.
fn runs_code(tool: &str) -> bool {
    has_word(
        tool,
        "bash cell cmd command console eval evaluate exec execute interpreter jupyter kernel node process python \
         repl run shell terminal",
    )
}

fn has_word(tool: &str, list: &str) -> bool {
    let words = arguments::words(tool);
    words.iter().any(|word| is_one_of(word, list))
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
    fn calls_of_other_tools_are_found() {
        let grep = json!({ "pattern": "KEY", "output_mode": "content" });
        for arguments in [
            json!({ "tool_calls": [{ "tool": "grep", "parameters": grep }] }),
            json!({ "tool_uses": [{ "recipient_name": "functions.grep", "parameters": grep }] }),
            json!({ "name": "Grep", "arguments": grep }),
            json!({ "name": "Grep", "arguments": grep.to_string() }),
        ] {
            let found = call("batch", arguments.clone());
            assert_eq!(found.searches.len(), 1, "{arguments}");
            assert!(!found.edits, "{arguments}");
        }
        let edit = json!({ "calls": [{ "tool": "edit", "input": { "path": "a" } }] });
        assert!(call("batch", edit).edits);
    }

    #[test]
    fn input_of_a_terminal_is_a_command() {
        for tool in ["write_bash", "interact_with_process"] {
            let found = call(tool, json!({ "input": "cat a{enter}" }));
            assert_eq!(found.commands, ["cat a\n"], "{tool}");
        }
        let found = call("ask", json!({ "input": "cat a" }));
        assert_eq!(found.commands, Vec::<String>::new());
        assert_eq!(found.codes, ["cat a"]);
    }

    #[test]
    fn code_is_found_by_its_name() {
        let text = "open('.env')";
        for (tool, name) in [
            ("x", "code"),
            ("x", "cell_source"),
            ("x", "source"),
            ("x", "python"),
            ("x", "javascript"),
            ("x", "snippet"),
            ("mcp__repl__eval", "expression"),
            ("mcp__repl__eval", "statement"),
            ("mcp__repl__run_line", "line"),
            ("mcp__python__execute", "input"),
            ("mcp__nb__run", "source"),
        ] {
            let found = call(tool, json!({ name: text }));
            assert_eq!(found.codes, [text], "{tool} {name}");
        }
        for (tool, name) in [
            ("x", "line"),
            ("x", "input"),
            ("NotebookEdit", "new_source"),
            ("Skill", "args"),
            ("mcp__memory__add", "fact"),
            ("mcp__notes__find", "topic"),
        ] {
            let found = call(tool, json!({ name: "private.txt" }));
            assert_eq!(found.codes, Vec::<String>::new(), "{tool} {name}");
            let is_path = matches!(name, "line" | "input");
            assert_eq!(!found.possible_paths.is_empty(), is_path, "{tool} {name}");
        }
        let found = call("mcp__github__search_code", json!({ "q": "filename:.env" }));
        assert_eq!(found.possible_paths, Vec::<String>::new());
    }

    #[test]
    fn files_of_sql_are_found() {
        for (name, text) in [
            ("sql", "COPY x FROM 'a.env'"),
            ("query", "select readfile('a.env')"),
            ("query", "SELECT * FROM read_csv(['b', 'a.env'])"),
            ("query", "select * from \"a.env\""),
            ("statement", "LOAD DATA INFILE 'a.env' INTO TABLE x"),
        ] {
            let found = call("mcp__sql__q", json!({ name: text }));
            assert!(found.possible_paths.contains(&"a.env".to_owned()), "{text}");
        }
        for text in [
            "select * from notes where path = 'a.env'",
            "how to load 'a.env'",
        ] {
            let found = call("mcp__sql__q", json!({ "query": text }));
            assert_eq!(found.possible_paths, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn arguments_that_are_no_files_are_not_found() {
        for (tool, name, text) in [
            ("mcp__fs__list_directory", "path", "private"),
            ("mcp__fs__directory_tree", "path", "private"),
            ("LS", "path", "private"),
            ("mcp__browser__click", "selector", ".env"),
            ("mcp__notion__page", "markdown", "cat .env"),
            ("mcp__docker__logs", "container", "notes.md"),
            ("BashOutput", "filter", ".env"),
            ("SlashCommand", "command", "/review .env"),
        ] {
            let found = call(tool, json!({ name: text }));
            assert_eq!(found.paths, Vec::<String>::new(), "{tool}");
            assert_eq!(found.possible_paths, Vec::<String>::new(), "{tool}");
            assert_eq!(found.commands, Vec::<String>::new(), "{tool}");
            assert_eq!(found.codes, Vec::<String>::new(), "{tool}");
        }
        for tool in ["list_code_definition_names", "mcp__fs__list_and_read_files"] {
            assert_eq!(
                call(tool, json!({ "path": "private" })).paths,
                ["private"],
                "{tool}"
            );
        }
    }

    #[test]
    fn folders_of_a_call_may_have_several_names() {
        for name in [
            "root",
            "base",
            "project",
            "workspace",
            "directory",
            "base_dir",
        ] {
            let found = call("x", json!({ name: "private", "path": "notes.md" }));
            assert_eq!(found.folders, ["private"], "{name}");
        }
        let found = call("x", json!({ "base": "private" }));
        assert_eq!(found.paths, Vec::<String>::new());
    }

    #[test]
    fn a_pattern_of_a_search_is_no_path() {
        let pattern = json!({ "pattern": "private/notes.md", "path": "docs/a.md" });
        for tool in ["Grep", "search_file_content"] {
            assert_eq!(
                call(tool, pattern.clone()).possible_paths,
                ["docs/a.md"],
                "{tool}"
            );
        }
        assert!(
            call("x", pattern)
                .possible_paths
                .contains(&"private/notes.md".to_owned())
        );
    }

    #[test]
    fn patterns_of_a_search_are_left_to_it() {
        let found = call(
            "read_many_files",
            json!({ "include": ["**/*.ts"], "paths": ["a", "*.md"] }),
        );
        assert_eq!(found.paths, ["a"]);
        assert_eq!(found.searches.len(), 1);
        assert_eq!(
            call("x", json!({ "include": ["**/*.ts"] })).paths,
            ["**/*.ts"]
        );
    }

    #[test]
    fn arguments_may_have_no_names() {
        for arguments in [
            json!("a"),
            json!(["a"]),
            json!([{ "path": "a" }]),
            json!("[\"a\"]"),
        ] {
            assert_eq!(
                call("read_files", arguments.clone()).paths,
                ["a"],
                "{arguments}"
            );
        }
        let found = call("run_commands", json!(["cat a", { "command": "ls" }]));
        for command in ["cat a", "ls"] {
            assert!(found.commands.contains(&command.to_owned()), "{found:?}");
        }
        let patch = "*** Begin Patch\n*** Update File: a\n*** End Patch";
        assert!(
            call("apply_patch", json!(patch))
                .paths
                .contains(&"a".to_owned())
        );
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
    fn only_our_own_tools_are_not_checked() {
        let path = json!({ "path": "a" });
        for (agent, tool) in [
            (Agent::Claude, "mcp__sightline__read_file"),
            (Agent::Cline, "sightline__read_file"),
        ] {
            let expected = ToolCall {
                own_reads: vec!["a".to_owned()],
                ..ToolCall::default()
            };
            assert_eq!(call_of(agent, tool, path.clone()), expected);
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
        let input = json!({ "tool_name": "view", "tool_input": null });
        let found = ToolCall::new(Agent::Claude, &input, "tool_name", "tool_input");
        assert!(found.is_err());
    }

    #[test]
    fn arguments_that_are_too_long_are_errors() {
        let parse = |arguments| {
            let input = json!({ "tool_name": "x", "tool_input": arguments });
            ToolCall::new(Agent::Claude, &input, "tool_name", "tool_input")
        };
        let long = "a,".repeat(40_000);
        for name in ["path", "files", "cwd"] {
            assert!(parse(json!({ name: long })).is_err(), "{name}");
        }
        for name in ["content", "message", "x"] {
            assert!(parse(json!({ name: long })).is_ok(), "{name}");
        }
        let climbing = format!("{}/.env", "src/../".repeat(20_000));
        for name in ["path", "x"] {
            let found = parse(json!({ name: climbing })).unwrap_or_default();
            assert_eq!(found.possible_paths, [".env"], "{name}");
        }
    }
}
