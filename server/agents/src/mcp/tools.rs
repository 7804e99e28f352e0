//! The tools: names, descriptions, schemas.

use serde_json::{Value, json};

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does and when to use it, for the model.
    pub description: &'static str,
    /// JSON Schema of its arguments, without references.
    pub input_schema: Value,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether it may overwrite or delete files.
    pub destructive: bool,
    /// Whether agents that load tools on demand should always load it.
    pub always_load: bool,
}

impl Tool {
    /// Returns the tool as an entry of `tools/list`.
    pub fn to_json(&self) -> Value {
        let mut tool = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": {
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.read_only,
                "openWorldHint": false,
            },
        });
        if self.always_load {
            tool["_meta"] = json!({ "anthropic/alwaysLoad": true });
        }
        tool
    }
}

/// Returns all tools.
pub fn tools() -> Vec<Tool> {
    let path = || json!({ "type": "string", "description": "relative to the workspace folder, or absolute" });
    let paths = || json!({ "type": "array", "items": { "type": "string" } });
    let text = |description: &str| json!({ "type": "string", "description": description });
    let number =
        |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
    // Adds the arguments of a tool whose long results come in pages.
    let paged = |mut properties: Value| {
        properties["startLine"] = number("first line of the result, for the next page");
        properties["maxCharacters"] = number("maximum length of a page, default 7500");
        properties
    };
    vec![
        Tool {
            always_load: true,
            ..tool(
                "environment_details",
                "What the user's editor shows now: visible files, open tabs, files with unsaved text, \
                 terminals, recently modified files. Denied files are left out.",
                paged(json!({
                    "sections": { "type": "array", "items": { "type": "string" }, "description": "only these, such as visibleFiles, openTabs, unsavedFiles, recentlyModified, files" },
                    "includeFiles": { "type": "boolean", "description": "also list the files of the workspace" },
                })),
                &[],
            )
        },
        Tool {
            always_load: true,
            ..tool(
                "read_file",
                "Reads a text file as the user sees it: unsaved text of the editor is newer than the disk. \
                 Long files come in pages; the end of a page names the next startLine.",
                json!({
                    "path": path(),
                    "startLine": number("first line, default 1"),
                    "endLine": number("last line"),
                    "maxCharacters": number("maximum length of a page, default 7500"),
                }),
                &["path"],
            )
        },
        tool(
            "list_files",
            "Lists files and folders that agents may see, without ignored ones, nearest first.",
            paged(json!({
                "path": path(),
                "recursive": { "type": "boolean", "description": "default true" },
                "limit": number("maximum number of entries, default 200"),
            })),
            &[],
        ),
        tool(
            "check_access",
            "Tells whether agents may see files or run a command, and which rule denies it.",
            paged(json!({
                "paths": paths(),
                "command": text("a shell command line"),
            })),
            &[],
        ),
        tool(
            "selection",
            "The file that the user looks at, the cursor, and the text that the user selected, also if it \
             is not saved.",
            paged(json!({})),
            &[],
        ),
        tool(
            "diagnostics",
            "Errors and warnings that the language servers of the user's editor report, of all files or \
             of the given ones.",
            paged(json!({ "paths": paths() })),
            &[],
        ),
        tool(
            "open_file",
            "Shows a file in the user's editor, at a line. Use it when the user should look at something.",
            json!({ "path": path(), "line": number("line to show") }),
            &["path"],
        ),
        Tool {
            read_only: false,
            ..tool(
                "checkpoint_create",
                "Saves the current state of the workspace, so that it can be compared and restored. Changes \
                 no file. Use it before a large change.",
                json!({ "label": text("what the next change is about") }),
                &[],
            )
        },
        tool(
            "checkpoint_list",
            "Lists checkpoints, newest first.",
            paged(json!({ "limit": number("default 20") })),
            &[],
        ),
        tool(
            "checkpoint_diff",
            "Shows what changed since a checkpoint, or between two, as a unified diff.",
            paged(json!({
                "from": text("id of a checkpoint"),
                "to": text("id of a later one; default: the workspace now"),
                "paths": paths(),
            })),
            &["from"],
        ),
        Tool {
            read_only: false,
            destructive: true,
            ..tool(
                "checkpoint_restore",
                "Restores files to a checkpoint, in two steps. Without `token`, it only shows what would change, \
                 and a token at the end of the last page. Ask the user before you call it with the token. It can be undone.",
                paged(json!({
                    "id": text("id of a checkpoint, or name of a turn: the state before it"),
                    "paths": paths(),
                    "only": { "type": "string", "enum": ["turn"], "description": "revert what that turn changed, and keep later changes" },
                    "token": text("from the last page of the first step"),
                })),
                &["id"],
            )
        },
        Tool {
            read_only: false,
            destructive: true,
            ..tool(
                "checkpoint_undo",
                "Reverts what the last restore changed, in two steps like checkpoint_restore. Files changed since are kept.",
                paged(json!({
                    "undoId": text("undo point, as a restore returned it; default: the last one"),
                    "token": text("from the last page of the first step"),
                })),
                &[],
            )
        },
        tool(
            "count_tokens",
            "Counts the tokens of a text or of a file, for a model.",
            json!({
                "text": text("the text"),
                "path": path(),
                "model": text("name of the model"),
            }),
            &[],
        ),
    ]
}

/// Returns a tool that only reads. The named arguments are required.
fn tool(
    name: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
) -> Tool {
    let mut input_schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        input_schema["required"] = json!(required);
    }
    Tool {
        name,
        description,
        input_schema,
        read_only: true,
        destructive: false,
        always_load: false,
    }
}
