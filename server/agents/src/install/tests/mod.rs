//! Tests of edits: what is not ours keeps its bytes, and removal is the inverse.

mod foreign_entries;

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{json as json_file, patch::ReversePatch, *};

fn locations() -> Locations {
    Locations::new("/home/user".as_ref(), "/project".as_ref(), |_| None)
}

fn content_of(agent: Agent, name: &str) -> Content {
    let program = Program::new("sightline");
    let targets = targets(agent, Scope::User, &Part::DEFAULT, &locations(), &program);
    let found = targets
        .into_iter()
        .find(|target| target.path.ends_with(name));
    found.unwrap().content
}

/// Asserts that `after` is `before` with added text, and that the record gets `before` back. A
/// patch need not be minimal, so it does not show what was added.
fn assert_only_added(before: &str, after: &str) {
    let mut rest = after.chars();
    let is_kept = before.chars().all(|c| rest.any(|other| other == c));
    assert!(is_kept, "{before}\n---\n{after}");
    let patch = ReversePatch::new(before, after);
    assert_eq!(patch.apply(after).as_deref(), Some(before));
}

#[test]
fn a_new_file_has_our_entries_only() {
    let content = content_of(Agent::Claude, "settings.json");
    let text = content.add(None).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let group = &value["hooks"]["PreToolUse"][0];
    assert_eq!(group["matcher"], "*");
    let hook = &group["hooks"][0];
    assert_eq!(
        (&hook["type"], &hook["timeout"]),
        (&json!("command"), &json!(60))
    );
    let line = hook["command"].as_str().unwrap();
    let (line, answer) = line.split_once(" || printf '%s' '").unwrap();
    assert_eq!(
        line,
        "sightline hook PreToolUse --agent claude --checkpoints"
    );
    let answer: Value = serde_json::from_str(answer.strip_suffix('\'').unwrap()).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    let line = value["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"].as_str();
    assert_eq!(
        line,
        Some("sightline hook UserPromptSubmit --agent claude --checkpoints || exit 0")
    );
    assert_eq!(content.remove(&text).unwrap(), None);
}

#[test]
fn entries_are_appended_and_comments_stay() {
    let before = r#"{
  // The user's hooks.
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [] }, // first
    ],
  },
  "theme": "dark" // last
}
"#;
    let content = content_of(Agent::Claude, "settings.json");
    let after = content.add(Some(before)).unwrap();
    assert_only_added(before, &after);
    assert_eq!(content.presence(&after).unwrap(), Presence::Current);
    assert_eq!(content.add(Some(&after)).unwrap(), after);
    let removed = content.remove(&after).unwrap().unwrap();
    assert!(removed.contains("// first") && removed.contains("// last"));
    assert_eq!(content.presence(&removed).unwrap(), Presence::Absent);
}

#[test]
fn an_outdated_entry_is_replaced_in_its_place() {
    let targets_of = |program: &'static str| {
        Agent::ALL.into_iter().flat_map(move |agent| {
            let program = Program::new(program);
            targets(agent, Scope::User, &Part::DEFAULT, &locations(), &program)
        })
    };
    for (old, new) in targets_of("/old/sightline").zip(targets_of("sightline")) {
        let before = old.content.add(None).unwrap();
        assert_eq!(
            new.content.spelling(&before).as_deref(),
            Some("/old/sightline")
        );
        assert_eq!(new.content.presence(&before).unwrap(), Presence::Outdated);
        let after = new.content.add(Some(&before)).unwrap();
        assert_eq!(after, new.content.add(None).unwrap());
    }
}

#[test]
fn what_is_not_an_object_is_an_error() {
    let content = content_of(Agent::Claude, ".claude.json");
    for text in ["[]", "{", "{\"mcpServers\": []}", "null"] {
        assert!(content.add(Some(text)).is_err(), "{text}");
    }
    let content = content_of(Agent::Codex, "config.toml");
    for text in ["mcp_servers = {}", "a =", "mcp_servers = 1"] {
        assert!(content.add(Some(text)).is_err(), "{text}");
    }
}

#[test]
fn a_byte_order_mark_stays() {
    let content = content_of(Agent::Gemini, "settings.json");
    let before = "\u{feff}{\r\n  \"a\": 1\r\n}\r\n";
    let after = content.add(Some(before)).unwrap();
    assert_only_added(before, &after);
    assert!(!after.replace("\r\n", "").contains('\n'), "{after:?}");
}

#[test]
fn the_table_of_codex_follows_everything_else() {
    let content = content_of(Agent::Codex, "config.toml");
    let before = "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"y\"";
    let after = content.add(Some(before)).unwrap();
    assert_only_added(before, &after);
    let table = "[mcp_servers.sightline]\ncommand = \"sightline\"\nargs = [\"mcp\"]\nenv_vars = [\"XDG_DATA_HOME\", \"XDG_RUNTIME_DIR\"]\n";
    assert!(after.ends_with(table), "{after}");
    let removed = content.remove(&after).unwrap().unwrap();
    assert_eq!(removed.trim_end(), before);
}

#[test]
fn a_table_of_codex_is_ours_however_it_is_written() {
    let content = content_of(Agent::Codex, "config.toml");
    let rest = "model = \"x\" # mine\n";
    for (ours, left) in [
        (
            "[mcp_servers]\nsightline = { command = 'sightline', args = [\"mcp\"] }\n",
            "[mcp_servers]\n",
        ),
        (
            "mcp_servers = { sightline = { command = \"sightline\", args = [\"mcp\"] } }\n",
            "",
        ),
        (
            "mcp_servers.sightline.command = \"sightline\"\nmcp_servers.sightline.args = ['mcp']\n",
            "",
        ),
        (
            "[mcp_servers]\nsightline.command = \"sightline\"\nsightline.args = [ \"mcp\", ]\n",
            "[mcp_servers]\n",
        ),
        (
            "[\"mcp_servers\".'sightline']\nargs = [\"mcp\"]\ncommand = \"\"\"sightline\"\"\"\n",
            "",
        ),
    ] {
        let text = format!("{rest}{ours}");
        assert_eq!(
            content.presence(&text).unwrap(),
            Presence::Outdated,
            "{text}"
        );
        let added = content.add(Some(&text)).unwrap();
        assert!(added.starts_with(rest), "{added}");
        assert_eq!(
            content.presence(&added).unwrap(),
            Presence::Current,
            "{added}"
        );
        for text in [text, added] {
            let removed = content.remove(&text).unwrap().unwrap();
            assert_eq!(removed, format!("{rest}{left}"), "{text}");
        }
    }
    // Another server in the same table.
    let text = "mcp_servers = { a = { command = \"b\" }, sightline = { command = \"sightline\", args = [\"mcp\"] } }\n";
    let removed = content.remove(text).unwrap().unwrap();
    assert!(
        removed.contains("a = { command = \"b\" }") && !removed.contains("sightline"),
        "{removed}"
    );
}

#[test]
fn a_heading_without_keys_stays() {
    let content = content_of(Agent::Codex, "config.toml");
    for before in ["[mcp_servers]\n", "[mcp_servers] # mine\n\n[tui]\n"] {
        let after = content.add(Some(before)).unwrap();
        assert_eq!(content.remove(&after).unwrap().as_deref(), Some(before));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn settings_of_an_administrator_decide() {
    let files = [
        (
            "/etc/claude-code/managed-settings.json",
            "disableAllHooks",
            true,
        ),
        (
            "/etc/claude-code/managed-settings.json",
            "allowManagedHooksOnly",
            true,
        ),
        (
            "/home/user/.claude/settings.json",
            "allowManagedHooksOnly",
            false,
        ),
    ];
    for (file, setting, is_off) in files {
        let read = |path: &Path| match path.to_str() {
            Some(path) if path == file => Some(format!("{{ \"{setting}\": true }}")),
            Some("/project/.claude/settings.local.json") => {
                Some("{ \"disableAllHooks\": false }".to_owned())
            }
            _ => None,
        };
        let found = switches::switches(Agent::Claude, &locations(), read, |_| None);
        assert_eq!(
            found.len(),
            usize::from(is_off),
            "{file} {setting}: {found:?}"
        );
        assert!(found.iter().all(|switch| switch.setting == setting));
    }
}

#[test]
fn lines_for_a_shell_are_quoted() {
    let path = "/my tools/it's || so/sightline";
    let program = Program::new(path);
    let words = ["hook".to_owned(), "PreToolUse".to_owned()];
    let shells = [
        (
            program::Shell::Posix,
            r"'/my tools/it'\''s || so/sightline' hook PreToolUse --agent qwen || ",
        ),
        (
            program::Shell::PowerShell,
            "& '/my tools/it''s || so/sightline' hook PreToolUse --agent qwen; ",
        ),
    ];
    let refusals = [None, Some("{\"decision\":\"deny\"}")];
    for ((shell, start), refusal) in shells
        .into_iter()
        .flat_map(|shell| refusals.map(|refusal| (shell, refusal)))
    {
        let arguments = ["hook", "PreToolUse", "--agent", "qwen"];
        let line = program.hook_line(shell, &arguments, refusal);
        assert!(line.starts_with(start), "{line}");
        let found = program::program_of(&Program::new("sightline"), &line, &words);
        assert_eq!(found.as_deref(), Some(path), "{line}");
        assert!(program.is_own_line(&line), "{line}");
        assert!(!Program::new("sightline").is_own_line(&line), "{line}");
        // A second command is not ours.
        assert_eq!(
            program::program_of(&program, &format!("{line}; true"), &words),
            None
        );
    }
}

#[test]
fn every_agent_has_files_for_every_part() {
    for agent in Agent::ALL {
        for part in Part::ALL {
            let program = Program::new("sightline");
            let found = targets(agent, Scope::User, &[part], &locations(), &program);
            let expected = match (part, agent) {
                (Part::Commands, Agent::Claude | Agent::Opencode) => 2,
                (Part::Commands, _) | (Part::Gateway, _) => 0,
                _ => 1,
            };
            assert_eq!(found.len(), expected, "{agent:?} {part:?}");
            if expected == 0 {
                continue;
            }
            let text = found[0].content.add(None).unwrap();
            assert_eq!(text.contains("--checkpoints"), part == Part::Checkpoints);
            assert_eq!(found[0].content.presence(&text).unwrap(), Presence::Current);
        }
    }
}

#[test]
fn an_installed_hook_is_found_and_its_refusal_read() {
    for agent in Agent::ALL {
        let program = Program::new("sightline");
        let targets = targets(agent, Scope::User, &[Part::Access], &locations(), &program);
        let text = targets[0].content.add(None).unwrap();
        let hooks = probe::tool_hooks(agent, &targets[0], &text);
        let [hook] = &hooks[..] else {
            panic!("{agent:?}: {hooks:?}");
        };
        assert!(
            format!("{hook:?}").contains("sightline"),
            "{agent:?}: {hook:?}"
        );
        let answer = match hook {
            probe::ToolHook::Plugin(_) => json!({ "reason": "R" }).to_string(),
            _ => {
                let deny = hook::HookAnswer::Deny("R".to_owned());
                hook::render(agent, hook::EventKind::ToolCall, &deny)
            }
        };
        assert_eq!(
            probe::refusal(agent, &answer).as_deref(),
            Some("R"),
            "{agent:?}"
        );
        assert_eq!(probe::refusal(agent, "{}"), None, "{agent:?}");
    }
}

#[test]
fn codex_trust_is_recognized() {
    let content = content_of(Agent::Codex, "hooks.json");
    let text = content.add(None).unwrap();
    let hooks: Value = serde_json::from_str(&text).unwrap();
    assert!(!codex_trust::is_trusted("", &hooks, "/h/hooks.json"));
    let state = |hash: &str| {
        ["session_start", "user_prompt_submit", "pre_tool_use"]
            .map(|event| {
                format!("[hooks.state.\"/h/hooks.json:{event}:0:0\"]\ntrusted_hash = \"{hash}\"\n")
            })
            .concat()
    };
    assert!(!codex_trust::is_trusted(
        &state("sha256:0"),
        &hooks,
        "/h/hooks.json"
    ));
}

/// JSON with random layout, comments and trailing commas.
fn jsonc() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec![
        "",
        " ",
        "\n",
        "\n  ",
        "\r\n\t",
        " // note\n",
        "/* x */ ",
    ]);
    let scalar = prop::sample::select(vec![
        "1",
        "true",
        "null",
        "\"a // b\"",
        "\"\\u00e9\\\"\"",
        "-2.5e3",
    ]);
    let leaf = scalar.prop_map(str::to_owned);
    let value = leaf.prop_recursive(3, 24, 4, move |inner| {
        let spaced =
            (space.clone(), inner, space.clone()).prop_map(|(a, v, b)| format!("{a}{v}{b}"));
        let array = (prop::collection::vec(spaced.clone(), 0..4), any::<bool>())
            .prop_map(|(items, trailing)| bracketed('[', &items, trailing, ']'));
        let names = prop::sample::select(vec![
            "a",
            "other",
            "hooks",
            "mcpServers",
            "PreToolUse",
            "x y",
        ]);
        let member = (names, spaced).prop_map(|(name, value)| (name, value));
        let object = (
            prop::collection::vec(member, 0..4),
            any::<bool>(),
            space.clone(),
        )
            .prop_map(|(members, trailing, space)| {
                let mut seen = std::collections::BTreeSet::new();
                let members: Vec<String> = members
                    .into_iter()
                    .filter(|(name, _)| seen.insert(*name))
                    .map(|(name, value)| format!("{space}\"{name}\":{value}"))
                    .collect();
                bracketed('{', &members, trailing, '}')
            });
        prop_oneof![array, object]
    });
    (
        value,
        prop::sample::select(vec!["", "\n", "\r\n", " // end"]),
    )
        .prop_map(|(value, end)| value + end)
}

fn bracketed(open: char, items: &[String], trailing: bool, close: char) -> String {
    let comma = if trailing && !items.is_empty() {
        ","
    } else {
        ""
    };
    format!("{open}{}{comma}{close}", items.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn json_edits_only_add_and_can_be_undone(text in jsonc()) {
        for agent in [Agent::Claude, Agent::Gemini] {
            let content = content_of(agent, "settings.json");
            let Ok(after) = content.add(Some(&text)) else { continue };
            assert_only_added(&text, &after);
            prop_assert_eq!(content.presence(&after).unwrap(), Presence::Current);
            prop_assert_eq!(content.add(Some(&after)).unwrap(), after.clone());
            // Without the record, everything else keeps its value.
            let removed = content.remove(&after).unwrap();
            let mut left = removed.as_deref().map_or(Value::Null, parsed);
            let mut expected = parsed(&text);
            drop_empty(&mut left);
            drop_empty(&mut expected);
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    fn toml_edits_only_add_and_can_be_undone(
        lines in prop::collection::vec(prop::sample::select(vec![
            "model = \"x\"", "# note", "", "[a]", "[b.c] # heading", "[[list]]", "t = { x = 1 }",
            "[mcp_servers.other]", "command = '''\n[x]\n'''", "  [d]",
        ]), 0..8),
        newline in prop::sample::select(vec!["\n", "\r\n"]),
        ends in any::<bool>(),
    ) {
        let mut text = lines.join(newline);
        if ends { text.push_str(newline); }
        let content = content_of(Agent::Codex, "config.toml");
        if let Ok(after) = content.add(Some(&text)) {
            assert_only_added(&text, &after);
            prop_assert_eq!(content.presence(&after).unwrap(), Presence::Current);
            prop_assert_eq!(content.add(Some(&after)).unwrap(), after.clone());
            let removed = content.remove(&after).unwrap().unwrap_or_default();
            prop_assert_eq!(removed.trim_end(), text.trim_end());
        }
    }
}

fn parsed(text: &str) -> Value {
    let options = jsonc_parser::ParseOptions::default();
    let parsed =
        jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options);
    parsed.unwrap().value.unwrap().into()
}

/// Removes empty objects and arrays, which a removal leaves.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(drop_empty);
            members.retain(|_, value| !value.is_null());
            if members.is_empty() {
                *value = Value::Null;
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(drop_empty);
            if elements.iter().all(Value::is_null) {
                *value = Value::Null;
            }
        }
        _ => {}
    }
}

#[test]
fn files_that_are_not_ours_are_kept() {
    assert!(json_file::is_empty("{ \"a\": { \"b\": [] } }"));
    assert!(!json_file::is_empty("{ \"a\": 1 }"));
    assert!(!json_file::is_empty("{ /* mine */ }"));
}

mod gateway;
