//! Tests of the settings.

use serde_json::json;
use sightline_protocol::{
    environment::SectionId,
    settings::{CheckpointSettings, IgnoredFiles, OutsideWorkspace},
};

use super::{
    sources::{SettingsSources, Source},
    *,
};

/// An absolute path.
pub(super) const ABSOLUTE: &str = if cfg!(windows) { "C:/x" } else { "/x" };

#[test]
fn an_invalid_value_is_reported_once_and_defaults() {
    let mut sources = SettingsSources::default();
    let wrong = json!({ "environment": { "ignoredFiles": "lok" }, "notifications": true });
    let (settings, problems) = sources.update(Source::InitializationOptions, &wrong);
    assert_eq!(settings.environment.ignored_files, IgnoredFiles::Hide);
    assert!(settings.notifications);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].path, "environment.ignoredFiles");
    assert!(problems[0].message.contains("lok"));
    let (_, again) = sources.update(Source::Configuration, &json!({ "log": {} }));
    assert!(again.is_empty());
}

#[test]
fn later_sources_win_and_null_says_nothing() {
    let mut sources = SettingsSources::default();
    sources.update(
        Source::InitializationOptions,
        &json!({ "access": { "outsideWorkspace": "allow" }, "notifications": true }),
    );
    let (settings, _) = sources.update(
        Source::DidChange,
        &json!({ "sightline": { "notifications": false } }),
    );
    assert!(!settings.notifications);
    assert_eq!(settings.access.outside_workspace, OutsideWorkspace::Allow);
    let (settings, _) = sources.update(Source::DidChange, &Value::Null);
    assert!(!settings.notifications);
}

#[test]
fn dotted_names_are_understood() {
    let (settings, problems) = SettingsSources::default().update(
        Source::Configuration,
        &json!({ "commands.showResults": true, "environment.sections.openTabs.maxTokens": 7 }),
    );
    assert_eq!(settings.commands.show_results, Some(true));
    assert_eq!(
        settings.environment.max_tokens(SectionId::OpenTabs),
        Some(7)
    );
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn an_empty_lua_table_is_an_empty_object() {
    let mut sources = SettingsSources::default();
    let allow = json!({ "access": { "outsideWorkspace": "allow" } });
    sources.update(Source::InitializationOptions, &allow);
    for empty in [
        json!([]),
        json!({ "environment": [], "checkpoints": { "exclude": [] } }),
    ] {
        let (settings, problems) = sources.update(Source::DidChange, &empty);
        assert_eq!(settings.access.outside_workspace, OutsideWorkspace::Allow);
        assert_eq!(problems, []);
    }
    for wrong in [json!({ "sightline": "loud" }), json!(["x"]), json!(7)] {
        let (settings, problems) = sources.update(Source::DidChange, &wrong);
        assert_eq!(settings.access.outside_workspace, OutsideWorkspace::Allow);
        assert_eq!(problems.len(), 1, "{wrong}: {problems:?}");
    }
}

#[test]
fn a_newer_configuration_beats_an_older_change() {
    let mut sources = SettingsSources::default();
    let notify = |on: bool| json!({ "notifications": on });
    sources.update(Source::DidChange, &notify(false));
    assert!(
        sources
            .update(Source::Configuration, &notify(true))
            .0
            .notifications
    );
    assert!(
        !sources
            .update(Source::DidChange, &notify(false))
            .0
            .notifications
    );
}

#[test]
fn a_name_of_many_parts_is_harmless() {
    let name = vec!["a"; 100_000].join(".");
    let (_, problems) =
        SettingsSources::default().update(Source::Configuration, &json!({ name: 1 }));
    assert_eq!(problems, []);
}

#[test]
fn misspelled_keys_are_reported_and_foreign_ones_ignored() {
    let (_, problems) = resolve(&json!({
        "hello": 1, "environmnt": {}, "access": { "zzz": 1 }, "log": 5
    }));
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["access.zzz", "environmnt", "log"]);
    assert!(problems[1].message.contains("environment"));
}

/// Every setting of the schema, with its default or a value of its type.
fn example(schema: &Value, at: &Value) -> Value {
    let at = match at.get("$ref").and_then(Value::as_str) {
        Some(name) => &schema["definitions"][name.rsplit('/').next().unwrap()],
        None => at,
    };
    let at = match at.get("anyOf").or_else(|| at.get("allOf")) {
        Some(all) => return example(schema, &all[0]),
        None => at,
    };
    if let Some(default) = at.get("default").filter(|default| !default.is_null()) {
        return default.clone();
    }
    if let Some(fields) = at.get("properties").and_then(Value::as_object) {
        let fields = fields.iter();
        return fields
            .map(|(name, field)| (name.clone(), example(schema, field)))
            .collect();
    }
    if let Some(one) = at.get("oneOf").or_else(|| at.get("enum")) {
        return one[0].get("const").unwrap_or(&one[0]).clone();
    }
    match at["type"].as_str().or_else(|| at["type"][0].as_str()) {
        Some("string") => json!(ABSOLUTE),
        Some("boolean") => json!(true),
        Some("integer") => json!(1),
        Some("array") => json!([]),
        other => {
            assert_eq!(other, Some("object"), "{at}");
            json!({})
        }
    }
}

#[test]
fn every_wire_setting_is_known_here() {
    let schema = include_str!("../../../../schemas/settings.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let full = example(&schema, &schema);
    assert!(full["access"]["mentions"].is_string(), "{full}");
    assert!(full["checkpoints"]["keepAutomatic"].is_u64(), "{full}");
    serde_json::from_value::<Settings>(full.clone()).unwrap();
    assert_eq!(resolve(&full).1, []);
}

#[test]
fn set_values_are_used_and_others_default() {
    let (settings, problems) = resolve(&json!({ "checkpoints": { "maxFiles": 7 } }));
    let default = CheckpointSettings::default();
    assert_eq!(problems, []);
    assert_eq!(settings.checkpoints.max_files, 7);
    assert_eq!(settings.checkpoints.exclude, default.exclude);
    let set = json!({ "checkpoints": { "exclude": [], "maxFileSize": "big" } });
    let (settings, problems) = resolve(&set);
    assert!(settings.checkpoints.exclude.is_empty());
    assert_eq!(settings.checkpoints.max_file_size, default.max_file_size);
    assert_eq!(problems.len(), 1);
}

#[test]
fn folders_are_names_not_paths() {
    let set = json!({ "checkpoints": { "exclude": ["target/", "a/b", ".."] } });
    let (settings, problems) = resolve(&set);
    assert_eq!(settings.checkpoints.exclude, ["target"]);
    assert_eq!(problems.len(), 2, "{problems:?}");
}

/// Each invalid item is reported with its value, and the rest of a setting remains. A value of the
/// wrong shape is left out whole.
#[test]
fn an_invalid_value_changes_nothing_else() {
    for (set, expected) in [
        (
            json!({ "checkpoints": { "exclude": [5, "ok", "a/b"] } }),
            vec![
                "`checkpoints.exclude` must be a string (is 5)",
                r#"`checkpoints.exclude` must contain folder names, not paths (is "a/b")"#,
            ],
        ),
        (
            json!({ "access": { "mentions": 1, "secrets": ["allow"], "visibleTo": "x" } }),
            vec![
                "`access.mentions` must be a string (is 1)",
                "`access.secrets`",
                "`access.visibleTo`",
            ],
        ),
        (
            json!({ "log": "debug", "environment": { "sections": true } }),
            vec![
                "`environment.sections` must be an object (is true)",
                r#"`log` must be an object (is "debug")"#,
            ],
        ),
        (
            json!({ "log": { "file": "relative" }, "tasks": { "maxCount": -1 } }),
            vec![
                r#"`log.file` must be an absolute path (is "relative")"#,
                "`tasks.maxCount` must be a whole number of at least 0 (is -1)",
            ],
        ),
        (
            json!({ "environment": { "sections": { "files": { "maxTokens": "5MB", "enabled": 1 } } } }),
            vec![
                "`environment.sections.files.enabled` must be true or false (is 1)",
                r#"`environment.sections.files.maxTokens` must be a whole number of at least 0 (is "5MB")"#,
            ],
        ),
        (
            json!({ "environment": { "ignoredFiles": "blink" } }),
            vec!["`environment.ignoredFiles` must be `hide` or `lock` (is \"blink\")"],
        ),
        (
            json!({ "access": { "visibleTo": [] }, "log": [], "conversation": { "models": null } }),
            vec![],
        ),
    ] {
        let given = SettingsSources::default().update(Source::Configuration, &set);
        let (settings, problems) = given;
        let found: Vec<String> = problems.iter().map(Problem::to_string).collect();
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
        assert_eq!(found.len(), expected.len(), "{found:?}");
        let mut expected = Settings::default();
        for id in SectionId::ALL {
            let (found, default) = (&settings.environment, &expected.environment);
            assert_eq!(found.is_enabled(id), default.is_enabled(id), "{set}");
            assert_eq!(found.max_tokens(id), default.max_tokens(id), "{set}");
        }
        expected.environment.sections = settings.environment.sections.clone();
        if set["checkpoints"]["exclude"].is_array() {
            expected.checkpoints.exclude = vec!["ok".to_owned()];
        }
        assert_eq!(settings, expected, "{set}");
    }
}

#[test]
fn connected_agents_turn_on_their_bridges() {
    let set = json!({ "agents": { "connect": ["opencode", "qwen", 5, "cline"] } });
    let (settings, problems) = resolve(&set);
    let bridges = settings.bridges;
    assert!(bridges.claude_ide && bridges.gemini_ide);
    assert!(!bridges.copilot_ide && !bridges.codex_ide);
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn many_invalid_items_are_left_out_together() {
    let items: Vec<Value> = (0..200_000).map(Value::from).collect();
    let set = json!({ "checkpoints": { "exclude": items, "maxFiles": 3 } });
    let (settings, problems) = resolve(&set);
    assert_eq!(settings.checkpoints.max_files, 3);
    assert_eq!(
        settings.checkpoints.exclude,
        CheckpointSettings::default().exclude
    );
    assert_eq!(problems.len(), MAX_INVALID_ITEMS + 1);
}
