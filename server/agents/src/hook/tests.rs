use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

fn parsed(agent: Agent, event: &str, input: Value) -> Option<HookInput> {
    let kind = event_kind(agent, event).unwrap();
    parse(agent, kind, &input).unwrap()
}

fn rendered(agent: Agent, kind: EventKind, answer: &HookAnswer) -> Value {
    let text = render(agent, kind, answer);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

#[test]
fn every_agent_has_a_prompt_and_a_tool_event() {
    for agent in Agent::ALL {
        let events = format(agent).events;
        for kind in [EventKind::Prompt, EventKind::ToolCall] {
            let count = events.iter().filter(|(_, known)| *known == kind).count();
            assert_eq!(count, 1, "{agent:?} {kind:?}");
        }
        assert_eq!(event_kind(agent, "Unknown"), None);
        assert_eq!(render(agent, EventKind::Prompt, &HookAnswer::Nothing), "");
        assert_eq!(render(agent, EventKind::ToolCall, &HookAnswer::Nothing), "");
    }
}

#[test]
fn a_tool_call_is_parsed_with_the_field_names_of_the_agent() {
    let claude = parsed(
        Agent::Claude,
        "PreToolUse",
        json!({
            "session_id": "a_b", "cwd": "/ws", "tool_name": "Read",
            "tool_input": { "file_path": "/ws/a" },
        }),
    );
    let copilot = parsed(
        Agent::Copilot,
        "preToolUse",
        json!({
            "sessionId": "a_b", "cwd": "/ws", "toolName": "view", "toolArgs": { "path": "/ws/a" },
        }),
    );
    for (input, task) in [(claude, "claude-a_b"), (copilot, "copilot-a_b")] {
        let input = input.unwrap();
        assert_eq!(input.cwd, Some(PathBuf::from("/ws")));
        assert_eq!(input.task_id.as_deref(), Some(task));
        let paths = vec!["/ws/a".to_owned()];
        let call = ToolCall {
            possible_paths: paths.clone(),
            paths,
            ..ToolCall::default()
        };
        assert_eq!(input.event, HookEvent::ToolCall(call));
    }
}

#[test]
fn sessions_have_different_task_ids() {
    let ids = ["a/b", "a_b", "a:b", &"a".repeat(200), &"a".repeat(201)];
    let mut ids = ids.map(|session| task_id(Agent::Claude, session)).to_vec();
    assert!(ids.iter().all(|id| id.len() <= MAX_TASK_ID), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[test]
fn mentions_count_where_the_agent_reads_them() {
    for (agent, event, mentions) in [
        (Agent::Claude, "UserPromptSubmit", vec!["a"]),
        (Agent::Qwen, "UserPromptSubmit", vec!["a"]),
        (Agent::Gemini, "BeforeAgent", vec!["a"]),
        (Agent::Codex, "UserPromptSubmit", vec![]),
        (Agent::Copilot, "userPromptSubmitted", vec![]),
    ] {
        let input = parsed(agent, event, json!({ "prompt": "see @a" })).unwrap();
        let mentions = mentions.into_iter().map(str::to_owned).collect();
        let HookEvent::Prompt {
            mentions: found,
            text,
        } = input.event
        else {
            panic!("{agent:?}");
        };
        assert_eq!((found, text.as_str()), (mentions, "see @a"), "{agent:?}");
    }
    let repeated = parsed(Agent::Qwen, "UserPromptSubmit", json!({ "prompt": "" }));
    assert_eq!(repeated, None);
}

#[test]
fn a_prompt_has_no_text_of_hooks() {
    for (prompt, expected) in [
        (
            "<hook_context># Working\n&lt;b&gt;</hook_context>\n\nfix it",
            "fix it",
        ),
        (
            "<hook_context>a</hook_context>\n<hook_context>b</hook_context>",
            "",
        ),
        (
            "  fix <hook_context>a</hook_context>",
            "  fix <hook_context>a</hook_context>",
        ),
        ("<hook_context>fix it", "<hook_context>fix it"),
    ] {
        let input = parsed(Agent::Gemini, "BeforeAgent", json!({ "prompt": prompt }));
        let HookEvent::Prompt { text, .. } = input.unwrap().event else {
            panic!("{prompt}");
        };
        assert_eq!(text, expected);
    }
}

#[test]
fn a_compacted_session_has_lost_its_context() {
    for (source, context_lost, continues) in [
        ("startup", false, false),
        ("compact", true, true),
        ("resume", true, true),
        ("clear", true, false),
    ] {
        let input = parsed(Agent::Codex, "SessionStart", json!({ "source": source }));
        let expected = HookEvent::SessionStart {
            context_lost,
            continues,
        };
        assert_eq!(input.unwrap().event, expected, "{source}");
    }
}

#[test]
fn the_mode_is_known_if_the_agent_tells_it() {
    for (mode, expected, is_attended) in [
        (json!("plan"), Some(Mode::Plan), true),
        (json!("default"), Some(Mode::Act), true),
        (json!("bypassPermissions"), Some(Mode::Act), false),
        (json!("yolo"), Some(Mode::Act), false),
        (Value::Null, None, false),
    ] {
        let input = json!({ "prompt": "Q", "permission_mode": mode });
        let input = parsed(Agent::Claude, "UserPromptSubmit", input).unwrap();
        assert_eq!((input.mode, input.is_attended), (expected, is_attended));
    }
}

#[test]
fn an_output_is_read_if_the_agent_accepts_another_one() {
    for (agent, event, is_read) in [
        (Agent::Claude, "PostToolUse", true),
        (Agent::Claude, "PreToolUse", false),
        (Agent::Qwen, "PostToolUse", false),
    ] {
        let input = json!({ "tool_name": "Read", "tool_input": {}, "tool_response": "text" });
        let input = parsed(agent, event, input).unwrap();
        assert_eq!(input.output.is_some(), is_read, "{agent:?} {event}");
    }
}

#[test]
fn malformed_input_is_an_error() {
    for agent in Agent::ALL {
        for input in [
            json!([]),
            json!(null),
            json!({ "tool_name": "Read" }),
            json!({ "tool_input": 1 }),
        ] {
            let parsed = parse(agent, EventKind::ToolCall, &input);
            assert!(parsed.is_err(), "{agent:?} {input}");
        }
    }
}

#[test]
fn answers_have_the_shape_of_the_agent() {
    let context = HookAnswer::Context("T".to_owned());
    let deny = HookAnswer::Deny("R".to_owned());
    for agent in [Agent::Claude, Agent::Codex, Agent::Qwen, Agent::Opencode] {
        assert_eq!(
            rendered(agent, EventKind::Prompt, &context),
            json!({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "T"}})
        );
        assert_eq!(
            rendered(agent, EventKind::Prompt, &deny),
            json!({"decision": "block", "reason": "R"})
        );
        assert_eq!(
            rendered(agent, EventKind::ToolCall, &deny),
            json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "R",
            }})
        );
    }
    assert_eq!(
        rendered(Agent::Gemini, EventKind::Prompt, &context),
        json!({"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "T"}})
    );
    for kind in [EventKind::Prompt, EventKind::ToolCall] {
        let expected = json!({"decision": "deny", "reason": "R"});
        assert_eq!(rendered(Agent::Gemini, kind, &deny), expected);
    }
    assert_eq!(
        rendered(Agent::Copilot, EventKind::Prompt, &context),
        json!({"additionalContext": "T"})
    );
    assert_eq!(
        rendered(Agent::Copilot, EventKind::ToolCall, &deny),
        json!({"permissionDecision": "deny", "permissionDecisionReason": "R"})
    );
    assert_eq!(
        rendered(Agent::Cline, EventKind::Prompt, &context),
        json!({"cancel": false, "contextModification": "T"})
    );
    assert_eq!(
        rendered(Agent::Cline, EventKind::ToolCall, &deny),
        json!({"cancel": true, "errorMessage": "R"})
    );
}
