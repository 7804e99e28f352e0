//! Tests of the settings.

use serde_json::json;
use sightline_protocol::settings::IgnoredFiles;

use super::{
    sources::{SettingsSources, Source},
    *,
};

#[test]
fn an_invalid_value_is_reported_once_and_defaults() {
    let mut sources = SettingsSources::default();
    let wrong = json!({ "environment": { "ignoredFiles": "lok" }, "notifications": true });
    let (settings, problems) = sources.update(Source::InitializationOptions, &wrong);
    assert_eq!(settings.block.ignored_files, IgnoredFiles::Hide);
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
    assert_eq!(settings.outside_workspace, OutsideWorkspace::Allow);
    let (settings, _) = sources.update(Source::DidChange, &Value::Null);
    assert!(!settings.notifications);
}

#[test]
fn dotted_names_are_understood() {
    let (settings, problems) = SettingsSources::default().update(
        Source::Configuration,
        &json!({ "commands.showResults": true, "environment.sections.openTabs.maxTokens": 7 }),
    );
    assert_eq!(settings.show_results, Some(true));
    assert_eq!(settings.block.rule(SectionId::OpenTabs).max_tokens, Some(7));
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
        assert_eq!(settings.outside_workspace, OutsideWorkspace::Allow);
        assert_eq!(problems, []);
    }
    for wrong in [json!({ "sightline": "loud" }), json!(["x"]), json!(7)] {
        let (settings, problems) = sources.update(Source::DidChange, &wrong);
        assert_eq!(settings.outside_workspace, OutsideWorkspace::Allow);
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
    assert_eq!(paths, ["environmnt", "access.zzz", "log"]);
    assert!(problems[0].message.contains("environment"));
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
        Some("string") => json!("/x"),
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
    serde_json::from_value::<wire::Settings>(full.clone()).unwrap();
    assert_eq!(resolve(&full).1, []);
}
