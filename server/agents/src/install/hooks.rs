//! The hooks of an agent: which events run `sightline hook`, and what the agent gets if it cannot
//! run.

use serde_json::{Value, json};

use super::{Content, Entry, Hooks, NAME, NOT_CHECKED, Program, Slot, plugin, program::Shell};
use crate::{
    Agent,
    hook::{self, EventKind, HookAnswer},
};

/// Time after which an agent gives up a prompt hook, in seconds.
const PROMPT_TIMEOUT: u32 = 10;
/// Time after which an agent gives up a tool hook, in seconds. Agents run the tool then, so it is
/// longer than any answer takes; the hook refuses after a shorter time itself.
const TOOL_TIMEOUT: u32 = 60;

impl Hooks {
    fn events(&self, agent: Agent) -> impl Iterator<Item = (&'static str, EventKind)> {
        let wanted = |kind| match kind {
            EventKind::SessionStart
            | EventKind::Prompt
            | EventKind::ToolEnd
            | EventKind::Compaction => self.context,
            EventKind::ToolCall => self.access,
            EventKind::TurnEnd | EventKind::SessionEnd => self.checkpoints,
        };
        let events = hook::events(agent).iter().copied();
        events.filter(move |(_, kind)| wanted(*kind))
    }

    /// Returns the command line of a hook.
    fn line(
        &self,
        shell: Shell,
        agent: Agent,
        (event, kind): (&str, EventKind),
        program: &Program,
    ) -> String {
        let mut arguments = vec!["hook", event, "--agent", agent.name()];
        if self.checkpoints {
            arguments.push("--checkpoints");
        }
        let refusal = (kind == EventKind::ToolCall).then(|| refusal(agent, kind));
        program.hook_line(shell, &arguments, refusal.as_deref())
    }

    pub(super) fn content(&self, agent: Agent, program: &Program) -> Content {
        match agent {
            Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Qwen => Content::Json(
                self.events(agent)
                    .map(|(event, kind)| Entry {
                        parent: vec!["hooks"],
                        slot: Slot::Element {
                            array: event,
                            words: ["hook", event, "--agent", agent.name()]
                                .map(str::to_owned)
                                .to_vec(),
                        },
                        value: self.group(agent, (event, kind), program),
                        program: program.clone(),
                    })
                    .collect(),
            ),
            Agent::Copilot => {
                let events = self.events(agent).map(|(event, kind)| {
                    let line = |shell| self.line(shell, agent, (event, kind), program);
                    let mut hook = json!({
                        "type": "command",
                        "bash": line(Shell::Posix),
                        "timeoutSec": timeout(kind),
                    });
                    if cfg!(windows) {
                        hook["powershell"] = line(Shell::PowerShell).into();
                    }
                    (event.to_owned(), json!([hook]))
                });
                let file = json!({ "version": 1, "hooks": Value::Object(events.collect()) });
                Content::Whole(format!("{file:#}\n"), program.clone())
            }
            Agent::Opencode => Content::Whole(plugin::opencode(self, program), program.clone()),
            Agent::Cline => Content::Whole(plugin::cline(self, program), program.clone()),
        }
    }

    /// Returns a group of hooks for one event.
    fn group(&self, agent: Agent, event: (&str, EventKind), program: &Program) -> Value {
        let (_, kind) = event;
        let shell = shell(agent);
        let line = self.line(shell, agent, event, program);
        let (mut hook, matcher) = match agent {
            Agent::Claude | Agent::Codex => (
                json!({ "type": "command", "command": line, "timeout": timeout(kind) }),
                if agent == Agent::Claude { "*" } else { ".*" },
            ),
            // Their unit is milliseconds.
            _ => (
                json!({ "type": "command", "name": NAME, "command": line, "timeout": timeout(kind) * 1000 }),
                ".*",
            ),
        };
        // It would use cmd.exe, for which nothing can be quoted.
        if shell == Shell::PowerShell && agent == Agent::Qwen {
            hook["shell"] = "powershell".into();
        }
        if matches!(kind, EventKind::ToolCall | EventKind::ToolEnd) {
            json!({ "matcher": matcher, "hooks": [hook] })
        } else {
            json!({ "hooks": [hook] })
        }
    }
}

/// Returns the shell that an agent runs hooks with on this system.
fn shell(agent: Agent) -> Shell {
    match agent {
        Agent::Gemini | Agent::Qwen if cfg!(windows) => Shell::PowerShell,
        _ => Shell::Posix,
    }
}

fn timeout(kind: EventKind) -> u32 {
    match kind {
        EventKind::ToolCall => TOOL_TIMEOUT,
        EventKind::SessionStart
        | EventKind::Prompt
        | EventKind::ToolEnd
        | EventKind::Compaction
        | EventKind::TurnEnd
        | EventKind::SessionEnd => PROMPT_TIMEOUT,
    }
}

/// Returns the answer of a hook that cannot run, in the format of the agent.
fn refusal(agent: Agent, kind: EventKind) -> String {
    let answer = hook::render(agent, kind, &HookAnswer::Deny(NOT_CHECKED.to_owned()));
    answer.trim_end().to_owned()
}
