//! What a tool call reads, writes and runs, by the names of its arguments.
//!
//! Agents and their MCP servers have hundreds of tools. Arguments are therefore not looked up by
//! tool: every string whose name says that it is a path is checked as one.

use serde_json::Value;

use super::mutation;

/// Last words of the names of path arguments.
const PATH_WORDS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "dir",
    "directory",
    "directories",
    "folder",
    "include",
    "includes",
    "source",
    "destination",
    "uri",
];
/// Names of command arguments.
const COMMAND_NAMES: &[&str] = &["command", "commands", "cmd", "script"];
/// Line before the changes of a patch.
const PATCH_START: &str = "*** Begin Patch";
/// Starts of the lines of a patch that name a file.
const PATCH_FILES: &[&str] = &[
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];
/// Prefixes that agents put before the tools of our MCP server.
const OUR_PREFIXES: &[&str] = &[
    "mcp__sightline__",
    "mcp_sightline_",
    "sightline__",
    "sightline_",
    "sightline-",
];
/// Tools of our MCP server, which checks access itself.
const OUR_TOOLS: &[&str] = &[
    "environment_details",
    "read_file",
    "list_files",
    "check_access",
    "selection",
    "diagnostics",
    "open_file",
    "checkpoint_create",
    "checkpoint_list",
    "checkpoint_diff",
    "checkpoint_restore",
    "checkpoint_undo",
    "count_tokens",
];

/// The paths and commands of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Paths as given by the model.
    pub paths: Vec<String>,
    /// Shell command lines.
    pub commands: Vec<String>,
    /// Whether it may change files.
    pub edits: bool,
}

impl ToolCall {
    /// Collects the arguments of the tool call in a hook's input. Returns `None` if it has none.
    pub(super) fn new(input: &Value, name_field: &str, input_field: &str) -> Option<Self> {
        let arguments = input.get(input_field)?;
        let mut call = Self::default();
        if input[name_field].as_str().is_some_and(is_ours) {
            return Some(call);
        }
        match arguments {
            Value::Object(_) => call.collect("", arguments),
            // Arguments as JSON text.
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(arguments @ Value::Object(_)) => call.collect("", &arguments),
                _ => return None,
            },
            _ => return None,
        }
        call.paths.sort();
        call.paths.dedup();
        let is_edit = input[name_field].as_str().is_some_and(mutation::is_edit);
        call.edits = is_edit && !call.paths.is_empty()
            || call
                .commands
                .iter()
                .any(|command| mutation::may_change(command));
        Some(call)
    }

    /// Collects from the value of the argument `name`. Elements of a list have the list's name.
    fn collect(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.collect(name, value);
                }
            }
            Value::Array(elements) => {
                // The words of one command.
                if matches!(name, "command" | "cmd") && elements.iter().all(Value::is_string) {
                    let words = elements.iter().filter_map(Value::as_str);
                    self.commands
                        .push(words.map(quote).collect::<Vec<_>>().join(" "));
                    // `bash -c TEXT`: the text is a command too.
                    if let [.., flag, script] = elements.as_slice()
                        && flag.as_str().is_some_and(|flag| flag.starts_with('-'))
                    {
                        self.collect(name, script);
                    }
                    return;
                }
                for element in elements {
                    self.collect(name, element);
                }
            }
            Value::String(text) if text.is_empty() => {}
            Value::String(text) if text.contains(PATCH_START) => {
                self.paths.extend(text.lines().filter_map(patched_file));
                if COMMAND_NAMES.contains(&name) && !text.trim_start().starts_with(PATCH_START) {
                    self.commands.push(text.clone());
                }
            }
            Value::String(text) if COMMAND_NAMES.contains(&name) => {
                self.commands.push(text.clone())
            }
            Value::String(text) if is_path_name(name) && !is_remote(text) => {
                self.paths.push(text.clone());
            }
            _ => {}
        }
    }
}

fn is_ours(tool: &str) -> bool {
    OUR_PREFIXES
        .iter()
        .filter_map(|prefix| tool.strip_prefix(prefix))
        .any(|name| OUR_TOOLS.contains(&name))
}

/// Returns whether the last word of an argument's name says that it is a path:
/// `file_path`, `notebookPath`, but not `file_text`.
fn is_path_name(name: &str) -> bool {
    let last_part = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let last_word = match last_part.rfind(|c: char| c.is_ascii_uppercase()) {
        Some(at) if last_part.chars().any(|c| c.is_ascii_lowercase()) => {
            last_part.get(at..).unwrap_or(last_part)
        }
        _ => last_part,
    };
    PATH_WORDS.contains(&last_word.to_ascii_lowercase().as_str())
}

/// Returns whether the text is a URL of another machine.
fn is_remote(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.eq_ignore_ascii_case("file") && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

fn patched_file(line: &str) -> Option<String> {
    let mut starts = PATCH_FILES.iter();
    starts
        .find_map(|start| line.trim_start().strip_prefix(start))
        .map(|path| path.trim_end().to_owned())
}

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ToolCall, is_path_name};

    fn call(tool: &str, arguments: serde_json::Value) -> ToolCall {
        let input = json!({ "tool_name": tool, "tool_input": arguments });
        ToolCall::new(&input, "tool_name", "tool_input").unwrap_or_default()
    }

    #[test]
    fn the_last_word_of_a_name_decides() {
        for name in [
            "path",
            "file_path",
            "filePath",
            "notebook_path",
            "files",
            "targetFile",
            "DIR",
        ] {
            assert!(is_path_name(name), "{name}");
        }
        for name in [
            "file_text",
            "fileText",
            "profile",
            "content",
            "pattern",
            "prompt",
        ] {
            assert!(!is_path_name(name), "{name}");
        }
    }

    #[test]
    fn nested_paths_and_commands_are_found() {
        let found = call(
            "read_files",
            json!({ "files": [{ "path": "a" }, "b"], "command": "cat c", "commands": ["ls"] }),
        );
        assert_eq!(found.paths, ["a", "b"]);
        assert_eq!(found.commands, ["cat c", "ls"]);
        let found = call("shell", json!({ "command": ["bash", "-lc", "cat it's"] }));
        assert_eq!(found.commands, [r"'bash' '-lc' 'cat it'\''s'", "cat it's"]);
    }

    #[test]
    fn patches_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: a b\n@@\n*** Move to: c\n*** End Patch";
        let found = call("apply_patch", json!({ "command": patch }));
        assert_eq!(found.paths, ["a b", "c"]);
        assert_eq!(found.commands, Vec::<String>::new());
        let shell = format!("apply_patch <<'EOF'\n{patch}\nEOF");
        let found = call("Bash", json!({ "command": shell }));
        assert_eq!((found.paths.len(), found.commands.len()), (2, 1));
    }

    #[test]
    fn our_own_tools_and_urls_are_not_checked() {
        for tool in [
            "mcp__sightline__read_file",
            "mcp_sightline_read_file",
            "sightline_read_file",
            "sightline-read_file",
            "sightline__read_file",
        ] {
            assert_eq!(call(tool, json!({ "path": "a" })), ToolCall::default());
        }
        assert_eq!(call("sightline_cat", json!({ "path": "a" })).paths, ["a"]);
        assert!(
            call("fetch", json!({ "uri": "https://a/b" }))
                .paths
                .is_empty()
        );
        assert_eq!(
            call("x", json!({ "uri": "file:///a" })).paths,
            ["file:///a"]
        );
    }

    #[test]
    fn arguments_may_be_json_text() {
        assert_eq!(call("view", json!(r#"{"path":"a"}"#)).paths, ["a"]);
        let input = json!({ "tool_name": "view", "tool_input": "a" });
        assert_eq!(ToolCall::new(&input, "tool_name", "tool_input"), None);
    }
}
