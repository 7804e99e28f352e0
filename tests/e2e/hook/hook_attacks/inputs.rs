//! Input that no agent should send: a tool that cannot be checked is refused, whatever is wrong, also in a
//! folder without rules.

use serde_json::{Value, json};
use sightline_agents::{
    Agent,
    hook::{EventKind, events},
};

use crate::{
    harness::Workspace,
    hook::{AGENTS, Names, hook, hook_output},
};

/// What must be answered to a tool call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    /// It cannot be checked.
    Unchecked,
    /// It is understood, and reads a denied file.
    Denied,
    /// It names no file.
    Nothing,
}

use Expected::{Denied, Nothing, Unchecked};

/// Returns inputs of an event in which a tool reads `.env`, with the answers.
fn inputs(names: &Names, workspace: &Workspace) -> Vec<(Vec<u8>, Expected)> {
    let call = json!({
        "cwd": workspace.root(), names.session: "s",
        names.tool_name: "read_file", names.tool_input: { "path": ".env" },
    });
    let text = call.to_string();
    let with = |field: &str, value: Value| {
        let mut call = call.clone();
        call[field] = value;
        call.to_string().into_bytes()
    };
    let without = |field: &str| {
        let mut call = call.clone();
        call.as_object_mut().unwrap().remove(field);
        call.to_string().into_bytes()
    };
    let of = |text: &str| text.as_bytes().to_vec();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut inputs: Vec<(Vec<u8>, Expected)> = [
        "",
        " ",
        "{",
        "null",
        "1",
        "true",
        "\"x\"",
        "[]",
        "{}",
        "not JSON",
        "\0",
        "{\"a\":1e999}",
        "[{}]",
    ]
    .map(|text| (of(text), Unchecked))
    .to_vec();
    inputs.extend([
        // Several documents, and parts of one.
        (of(&format!("{text}{text}")), Unchecked),
        (of(&format!("{text}\n{{}}")), Unchecked),
        (of(&format!("{{}}\n{text}")), Unchecked),
        (of(&format!("{text}\0")), Unchecked),
        (of(&text[..text.len() - 1]), Unchecked),
        (of(&text[1..]), Unchecked),
        (of(&text.replace('"', "'")), Unchecked),
        (of(&deep), Unchecked),
        (
            text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Unchecked,
        ),
        // Other spellings of the same.
        (of(&format!("\u{feff}{text}\r\n\n")), Denied),
        (of(&text.replace(".env", ".\\u0065nv")), Denied),
        (of(&text.replace("\"s\"", "\"\\ud800\"")), Denied),
        (
            [text.replace("\"s\"", "\"").as_bytes(), b""].concat(),
            Unchecked,
        ),
        (
            text.replace("\"s\"", "\"@\"")
                .bytes()
                .map(|b| if b == b'@' { 0xff } else { b })
                .collect(),
            Denied,
        ),
        // The last of equal keys counts, as for the agents.
        (
            of(&text.replacen('{', &format!("{{\"{}\":{{}},", names.tool_input), 1)),
            Denied,
        ),
        (
            of(&text.replace("\"path\"", "\"path\":\"notes.txt\",\"path\"")),
            Denied,
        ),
        // Arguments of other types.
        (without(names.tool_input), Unchecked),
        (with(names.tool_input, Value::Null), Unchecked),
        (with(names.tool_input, json!(1)), Unchecked),
        (with(names.tool_input, json!(false)), Unchecked),
        (with(names.tool_input, json!({})), Nothing),
        (with(names.tool_input, json!(".env")), Denied),
        (with(names.tool_input, json!("{\"path\":\".env\"}")), Denied),
        (with(names.tool_input, json!([".env"])), Denied),
        (
            with(names.tool_input, json!([[{ "path": [".env"] }]])),
            Denied,
        ),
        (
            with(names.tool_input, json!({ "path": { "path": ".env" } })),
            Denied,
        ),
        (
            with(names.tool_input, json!({ "path": "a".repeat(100_000) })),
            Unchecked,
        ),
    ]);
    let others = [Value::Null, json!(1), json!([]), json!({}), json!("")];
    for field in [
        names.tool_name,
        names.session,
        "permission_mode",
        "hook_event_name",
    ] {
        inputs.push((without(field), Denied));
        inputs.extend(
            others
                .iter()
                .map(|value| (with(field, value.clone()), Denied)),
        );
    }
    for cwd in others
        .into_iter()
        .chain([json!("."), json!("no such folder"), json!("/no/such")])
    {
        let mut call = call.clone();
        call["cwd"] = cwd;
        call[names.tool_input]["path"] = json!(workspace.path(".env"));
        inputs.push((call.to_string().into_bytes(), Denied));
    }
    inputs
}

#[test]
fn odd_input_refuses_a_tool_of_every_agent() {
    let workspace = Workspace::new(&[(".env", "K=1\n")]);
    for names in &AGENTS {
        for (input, expected) in inputs(names, &workspace) {
            let output = hook_output(&workspace, names.tool, names.agent, &input, &[]);
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let reason = answer.pointer(names.reason).and_then(Value::as_str);
            let found = match reason {
                None => Nothing,
                Some(reason) if reason.contains("could not check") => Unchecked,
                Some(_) => Denied,
            };
            let text = String::from_utf8_lossy(&input);
            let text: String = text.chars().take(300).collect();
            assert_eq!(found, expected, "{} {text}: {output:?}", names.agent);
        }
    }
}

#[test]
fn odd_input_of_other_events_is_ignored() {
    let workspace = Workspace::new(&[(".env", "K=1\n")]);
    for agent in Agent::ALL {
        let names = AGENTS
            .iter()
            .find(|names| names.agent == agent.name())
            .unwrap();
        for (event, kind) in events(agent) {
            if *kind == EventKind::ToolCall {
                continue;
            }
            for (input, _) in inputs(names, &workspace).iter().step_by(5) {
                let output = hook_output(&workspace, event, names.agent, input, &[]);
                let text = String::from_utf8_lossy(&output.stderr);
                assert!(!text.contains("panicked"), "{event}: {text}");
                assert_eq!(
                    output.stdout,
                    b"",
                    "{event} {}",
                    String::from_utf8_lossy(input)
                );
            }
        }
    }
}

/// Agents add the files that a prompt mentions. A prompt may be a list of parts.
#[test]
fn a_mention_in_a_prompt_of_any_shape_is_refused() {
    let workspace = Workspace::new(&[(".env", "K=1\n")]);
    for prompt in [
        json!("read @.env"),
        json!(["read", "@.env"]),
        json!([{ "type": "text", "text": "read @.env" }]),
        json!({ "parts": [{ "text": "@.env" }] }),
    ] {
        let input = json!({ "cwd": workspace.root(), "session_id": "s", "prompt": prompt });
        let said = hook(&workspace, "UserPromptSubmit", "claude", &input.to_string());
        assert!(said.contains(".env is hidden"), "{prompt}: {said}");
    }
    // A text that is cut off has no known mentions.
    let said = hook(
        &workspace,
        "UserPromptSubmit",
        "claude",
        "{\"prompt\": \"@.en",
    );
    assert!(said.contains("could not check"), "{said}");
}
