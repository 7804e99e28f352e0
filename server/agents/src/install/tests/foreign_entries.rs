//! Entries of users that look like ours, and files that something else has changed.

use super::{record::Record, *};

#[test]
fn tables_of_others_are_neither_changed_nor_removed() {
    let content = content_of(Agent::Codex, "config.toml");
    for text in [
        "[mcp_servers.sightline.env]\nK = \"V\"\n",
        "[mcp_servers]\nsightline = { command = \"mine\" }\nother = { command = \"o\" }\n",
        "mcp_servers.sightline.command = \"mine\"\nmodel = \"x\"\n",
        "[mcp_servers.sightline]\ncommand = \"mine\"\nargs = [\"mcp\"]\n",
        "[mcp_servers.sightline]\ncommand = \"sightline\"\nargs = [\"serve\"]\n",
    ] {
        let error = content.add(Some(text)).unwrap_err();
        assert!(matches!(error, EditError::NotOurs(_)), "{text}: {error}");
        assert_eq!(content.presence(text), Ok(Presence::Absent), "{text}");
        assert_eq!(content.remove(text).unwrap().as_deref(), Some(text));
    }
}

#[test]
fn tables_below_ours_stay_until_it_is_removed() {
    let content = content_of(Agent::Codex, "config.toml");
    let before = "model = \"x\"\n\n[mcp_servers.sightline]\ncommand = \"/old/sightline\" # mine\n\
                  args = [\"mcp\"]\nenabled = true\n\n[mcp_servers.sightline.env]\nK = \"V\"\n\n\
                  # next\n[z]\nq = 1\n";
    let after = content.add(Some(before)).unwrap();
    let expected = before
        .replace("\"/old/sightline\"", "\"sightline\"")
        .replace(
            "enabled = true\n",
            "enabled = true\nenv_vars = [\"XDG_DATA_HOME\", \"XDG_RUNTIME_DIR\"]\n",
        );
    assert_eq!(after, expected);
    assert_eq!(content.add(Some(&after)).unwrap(), after);
    let removed = content.remove(&after).unwrap().unwrap();
    assert_eq!(removed, "model = \"x\"\n\n# next\n[z]\nq = 1\n");
}

#[test]
fn servers_and_files_of_others_are_neither_changed_nor_removed() {
    for (agent, name, text) in [
        (
            Agent::Claude,
            ".claude.json",
            r#"{"mcpServers": {"sightline": {"command": "mine", "args": ["mcp"]}}}"#,
        ),
        (
            Agent::Gemini,
            "settings.json",
            r#"{"mcpServers": {"sightline": {"url": "http://localhost"}}}"#,
        ),
        (
            Agent::Opencode,
            "opencode.json",
            r#"{"mcp": {"sightline": {"command": ["mine", "mcp"]}}}"#,
        ),
        (
            Agent::Copilot,
            "sightline.json",
            r#"{"version": 1, "hooks": {"preToolUse": [{"bash": "mine"}]}}"#,
        ),
        (Agent::Opencode, "sightline.js", "// my own plugin\n"),
        (Agent::Cline, "sightline.js", "// my own plugin\n"),
    ] {
        let content = content_of(agent, name);
        assert!(content.add(Some(text)).is_err(), "{agent:?} {text}");
        let removed = content.remove(text).unwrap();
        assert_eq!(removed.as_deref(), Some(text), "{agent:?}");
    }
}

#[test]
fn settings_of_our_server_stay() {
    let content = content_of(Agent::Claude, ".claude.json");
    let before = r#"{"mcpServers": {"sightline": {"command": "/old/sightline", "args": ["mcp"], "env": {"A": "1"}, "trust": true}}}"#
        .replace("[\"mcp\"]", "[\"mcp\", \"--read-only\"]");
    let before = before.as_str();
    assert_eq!(content.presence(before), Ok(Presence::Outdated));
    let after = parsed(&content.add(Some(before)).unwrap());
    let server = &after["mcpServers"]["sightline"];
    assert_eq!(server["command"], "sightline");
    assert_eq!(server["args"], json!(["mcp", "--read-only"]));
    assert_eq!(
        (&server["env"]["A"], &server["trust"]),
        (&json!("1"), &json!(true))
    );
}

#[test]
fn a_server_that_the_user_disabled_stays_disabled() {
    let content = content_of(Agent::Opencode, "opencode.json");
    let before = json!({ "mcp": { "sightline": {
        "type": "local", "command": ["/old/sightline", "mcp", "--read-only"], "enabled": false,
    } } });
    let after = parsed(&content.add(Some(&before.to_string())).unwrap());
    let server = &after["mcp"]["sightline"];
    assert_eq!(
        server["command"],
        json!(["sightline", "mcp", "--read-only"])
    );
    assert_eq!(server["enabled"], false);
}

#[test]
fn hooks_that_only_look_like_ours_stay() {
    let content = content_of(Agent::Codex, "hooks.json");
    for command in [
        "echo hook PreToolUse --agent codex",
        "sightline hook PreToolUse --agent codex; rm -rf x",
        "audit && sightline hook PreToolUse --agent codex",
        "audit;/opt/sightline hook PreToolUse --agent codex",
        "audit>/tmp/sightline hook PreToolUse --agent codex",
        "command -v jq; audit >/dev/null || exit 0; exec sightline hook PreToolUse --agent codex",
        "'/a/sightline' hook x; rm '/b/sightline' hook PreToolUse --agent codex",
    ] {
        let group = json!({ "hooks": [{ "type": "command", "command": command }] });
        let text = json!({ "hooks": { "PreToolUse": [group] } }).to_string();
        let after = content.add(Some(&text)).unwrap();
        assert_only_added(&text, &after);
        let groups = parsed(&after)["hooks"]["PreToolUse"].clone();
        assert_eq!(groups.as_array().map(Vec::len), Some(2), "{command}");
        let removed = content.remove(&after).unwrap().unwrap();
        assert_eq!(parsed(&removed), parsed(&text), "{command}");
    }
    // Words in several strings.
    let text = r#"{"hooks": {"PreToolUse": [{"matcher": "hook", "hooks": [{"command": "PreToolUse", "args": ["--agent", "claude"]}]}]}}"#;
    let content = content_of(Agent::Claude, "settings.json");
    assert_only_added(text, &content.add(Some(text)).unwrap());
}

#[test]
fn a_group_with_another_hook_loses_only_ours() {
    let content = content_of(Agent::Claude, "settings.json");
    let ours = json!({ "type": "command", "command": "/old/sightline",
        "args": ["hook", "PreToolUse", "--agent", "claude"], "timeout": 10 });
    let other = json!({ "type": "command", "command": "audit" });
    let text = json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [other, ours] }] } });
    let after = parsed(&content.add(Some(&text.to_string())).unwrap());
    let group = &after["hooks"]["PreToolUse"][0]["hooks"];
    assert_eq!(group[0], other);
    let line = group[1]["command"].as_str().unwrap();
    assert!(line.starts_with("sightline hook PreToolUse "), "{line}");
    assert_eq!(
        after["hooks"]["PreToolUse"].as_array().map(Vec::len),
        Some(1)
    );
    let removed = content.remove(&after.to_string()).unwrap().unwrap();
    let expected = json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [other] }] } });
    assert_eq!(parsed(&removed), expected);
}

#[test]
fn names_that_are_written_twice_are_refused() {
    let content = content_of(Agent::Claude, "settings.json");
    for text in [
        r#"{"hooks": {}, "hooks": {}}"#,
        r#"{"hooks": {"PreToolUse": [], "PreToolUse": []}}"#,
    ] {
        let refused = Err(EditError::DuplicateName(
            if text.contains("Pre") {
                "PreToolUse"
            } else {
                "hooks"
            }
            .to_owned(),
        ));
        assert_eq!(content.add(Some(text)), refused.clone(), "{text}");
        assert_eq!(
            content.remove(text).map(|_| String::new()),
            refused,
            "{text}"
        );
    }
    assert!(content.add(Some(r#"{"a": 1, "a": 2}"#)).is_ok());
}

#[test]
fn a_removal_leaves_no_empty_containers() {
    for agent in [Agent::Claude, Agent::Gemini] {
        let content = content_of(agent, "settings.json");
        let before = "{\n  \"theme\": \"dark\"\n}\n";
        let after = content.add(Some(before)).unwrap();
        assert_eq!(content.remove(&after).unwrap().as_deref(), Some(before));
    }
}

#[test]
fn a_program_with_another_name_is_recognized_by_itself() {
    let program = Program::new("/opt/sightline-0.2");
    for agent in Agent::ALL {
        for target in targets(agent, Scope::User, &Part::ALL, &locations(), &program) {
            let text = target.content.add(None).unwrap();
            assert_eq!(target.content.presence(&text), Ok(Presence::Current));
            assert_eq!(target.content.add(Some(&text)).unwrap(), text);
            assert_eq!(target.content.remove(&text).unwrap(), None, "{agent:?}");
        }
    }
}

#[test]
fn entries_that_the_user_has_written_stay() {
    for (agent, name, names) in [
        (Agent::Qwen, "settings.json", &["mcpServers.sightline"][..]),
        (Agent::Codex, "config.toml", &["mcp_servers.sightline"]),
        (Agent::Cline, "sightline.js", &["file"]),
    ] {
        let content = content_of(agent, name);
        let text = match &content {
            // Without its hooks.
            Content::Json(_) => {
                r#"{"mcpServers": {"sightline": {"command": "sightline", "args": ["mcp"]}}}"#
                    .to_owned()
            }
            content => content.add(None).unwrap(),
        };
        let found = content.found(&text);
        assert_eq!(found, names, "{agent:?}");
        let rest = content.without(&found);
        let expected = matches!(content, Content::Json(_)).then_some(content.names().len() - 1);
        assert_eq!(rest.map(|rest| rest.names().len()), expected, "{agent:?}");
        assert_eq!(content.found("").len(), 0, "{agent:?}");
    }
}

/// An agent rewrites the file, and we are installed again with more parts.
#[test]
fn the_original_of_a_rewritten_file_has_nothing_of_ours() {
    let path = PathBuf::from("/home/user/.claude/settings.json");
    let content = content_of(Agent::Claude, "settings.json");
    let before = "{ \"theme\": \"dark\" }";
    let after = content.add(Some(before)).unwrap();
    let mut record = Record::default();
    record.note(&path, Some(before), &after, Vec::new(), Vec::new());
    let original = |text: &str| content.original(Some(text), record.get(&path));
    assert_eq!(original(&after).as_deref(), Some(before));

    let rewritten = parsed(&after).to_string();
    let original = original(&rewritten).unwrap();
    assert_eq!(parsed(&original), parsed(before));

    let mut created = Record::default();
    created.note(&path, None, &after, Vec::new(), Vec::new());
    let only_ours = content.add(None).unwrap();
    let rewritten = parsed(&only_ours).to_string();
    assert_eq!(content.original(Some(&rewritten), created.get(&path)), None);
    assert_eq!(
        content.original(Some(&rewritten), None).as_deref(),
        Some("{}\n")
    );
}

#[test]
fn whole_files_are_deleted_without_a_record() {
    for agent in [Agent::Copilot, Agent::Opencode, Agent::Cline] {
        let program = Program::new("sightline");
        for target in targets(agent, Scope::User, &[Part::Access], &locations(), &program) {
            let text = target.content.add(None).unwrap();
            assert_eq!(
                target.content.original(Some(&text), None),
                None,
                "{agent:?}"
            );
        }
    }
}

#[test]
fn plugins_hold_any_path() {
    let program = Program::new("/a\n\"b\\c'/sightline");
    for agent in [Agent::Opencode, Agent::Cline] {
        let targets = targets(agent, Scope::User, &[Part::Access], &locations(), &program);
        let Content::Whole(text, _) = &targets[0].content else {
            panic!("{agent:?}");
        };
        assert!(
            text.contains(r#"const PROGRAM = "/a\n\"b\\c'/sightline""#),
            "{text}"
        );
    }
}

#[test]
fn an_updated_table_keeps_line_ends_and_arguments() {
    let content = content_of(Agent::Codex, "config.toml");
    let before = "\u{feff}a = 1 # x\r\n\r\n[mcp_servers.sightline]\r\ncommand = '/old/sightline' # mine\r\n\
                  args = [\"mcp\", \"--read-only\"]\r\nenv_vars = [\"MINE\"]\r\n[z]\r\nq = 1\r\n";
    let after = content.add(Some(before)).unwrap();
    assert_eq!(after, before.replace("'/old/sightline'", "\"sightline\""));
}
