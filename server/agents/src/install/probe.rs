//! Runs of installed hooks, to check that they refuse a denied file.

use std::path::Path;

use serde_json::{Value, json};

use super::{Content, Target, content::hook_lines_of, json as json_file, program::CALL};
use crate::{
    Agent,
    hook::{self, EventKind},
};

/// Session of the runs of this module, whose refusals are not in the log of decisions.
pub const SESSION: &str = "sightline-check";

/// What an agent runs before a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolHook {
    /// A line of a shell.
    Line(String),
    /// A program with arguments.
    Program(String, Vec<String>),
    /// A module of JavaScript.
    Plugin(String),
    /// A hook that does not run before every tool; the pattern of their names.
    SomeTools(String),
}

/// Returns the shell of a line that this program wrote, and its option for a line.
pub fn shell(line: &str) -> (&'static str, &'static str) {
    if line.starts_with(CALL) {
        ("powershell", "-Command")
    } else {
        ("sh", "-c")
    }
}

/// Name of the tool that reads a file of a folder, and its arguments.
fn tool(agent: Agent, folder: &Path, file: &str) -> (&'static str, Value) {
    let path = folder.join(file);
    match agent {
        Agent::Claude => ("Read", json!({ "file_path": path })),
        // It has no tool to read files.
        Agent::Codex => ("Bash", json!({ "command": format!("cat {file}") })),
        Agent::Gemini | Agent::Qwen => ("read_file", json!({ "file_path": path })),
        Agent::Copilot => ("view", json!({ "path": path })),
        Agent::Opencode => ("read", json!({ "filePath": path })),
        Agent::Cline => ("read_files", json!({ "files": [{ "path": path }] })),
    }
}

/// Returns what an agent gives a hook before it reads a file of `folder`.
pub fn input(agent: Agent, folder: &Path, file: &str) -> String {
    let (tool, arguments) = tool(agent, folder, file);
    let event = tool_event(agent);
    match agent {
        Agent::Copilot => {
            json!({ "sessionId": SESSION, "cwd": folder, "toolName": tool, "toolArgs": arguments })
        }
        // The arguments of the functions of a plugin.
        Agent::Opencode => json!([{ "sessionID": SESSION, "tool": tool }, { "args": arguments }]),
        Agent::Cline => json!([{ "toolCall": { "toolName": tool }, "input": arguments }]),
        _ => json!({
            "session_id": SESSION,
            "cwd": folder,
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": arguments,
        }),
    }
    .to_string()
}

/// Returns a module that runs a plugin in the current folder with the input, and prints the reason of a
/// refusal as JSON.
pub fn plugin_runner(agent: Agent, plugin: &str, input: &str) -> String {
    let call = match agent {
        Agent::Opencode => {
            "const hooks = await plugin.Sightline({ directory: process.cwd() });\n\
             try { await hooks['tool.execute.before'](...input); } catch (error) { reason = error.message; }\n"
        }
        // The plugin of Cline takes the process for the session.
        _ => {
            "Object.defineProperty(process, 'pid', { value: session });\n\
             const answer = await plugin.default.hooks.beforeTool(...input);\n\
             if (answer?.skip) reason = answer.reason;\n"
        }
    };
    let text = Value::from(plugin);
    format!(
        "const text = {text};\nconst input = {input};\nconst session = '{SESSION}';\nlet reason;\n\
         const plugin = await import('data:text/javascript,' + encodeURIComponent(text));\n\
         {call}console.log(JSON.stringify({{ reason }}));\n"
    )
}

/// Returns the reason, if the standard output of a hook or of [`plugin_runner`] refuses the tool.
pub fn refusal(agent: Agent, output: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(output.trim()).ok()?;
    let (decision, reason) = match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen => {
            let answer = &answer["hookSpecificOutput"];
            (
                answer["permissionDecision"] == "deny",
                &answer["permissionDecisionReason"],
            )
        }
        Agent::Copilot => (
            answer["permissionDecision"] == "deny",
            &answer["permissionDecisionReason"],
        ),
        Agent::Gemini => (answer["decision"] == "deny", &answer["reason"]),
        Agent::Opencode | Agent::Cline => (answer["reason"].is_string(), &answer["reason"]),
    };
    decision.then(|| reason.as_str().unwrap_or_default().to_owned())
}

/// Returns whether a refusal says that the program did not run.
pub fn is_missing(reason: &str) -> bool {
    reason == super::NOT_CHECKED
}

/// Returns what runs before a tool, as written in the text of a file.
pub fn tool_hooks(agent: Agent, target: &Target, text: &str) -> Vec<ToolHook> {
    let event = tool_event(agent);
    match &target.content {
        Content::Json(entries) => entries
            .iter()
            .filter(|entry| entry.is_in_array(event))
            .flat_map(|entry| json_file::hooks(text, entry))
            .map(|(matcher, hook)| tool_hook(matcher, &hook))
            .collect(),
        Content::Toml(_) | Content::HideCommands | Content::Gateway(..) => Vec::new(),
        Content::Whole(..) if !target.content.is_our_file(text) => Vec::new(),
        Content::Whole(..) => match hook_lines_of(text, Some(event)) {
            Some(lines) => lines.into_iter().map(ToolHook::Line).collect(),
            None => vec![ToolHook::Plugin(text.to_owned())],
        },
    }
}

fn tool_hook(matcher: Option<String>, hook: &Value) -> ToolHook {
    match matcher {
        Some(pattern) if !matches!(pattern.as_str(), "" | "*" | ".*") => {
            return ToolHook::SomeTools(pattern);
        }
        _ => {}
    }
    let command = hook["command"].as_str().unwrap_or_default().to_owned();
    match hook["args"].as_array() {
        Some(arguments) => {
            let arguments = arguments.iter().filter_map(Value::as_str);
            ToolHook::Program(command, arguments.map(str::to_owned).collect())
        }
        None => ToolHook::Line(command),
    }
}

fn tool_event(agent: Agent) -> &'static str {
    let mut events = hook::events(agent).iter();
    events
        .find(|(_, kind)| *kind == EventKind::ToolCall)
        .map_or("", |(name, _)| *name)
}
