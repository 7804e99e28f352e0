//! Tests of wire compatibility: the method table is valid, recorded messages survive a
//! round trip, and no field is null.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sightline_protocol::method::{self, METHODS, Notification, Request};
use sightline_protocol::settings::Settings;

/// Deserializes a value as its type and serializes it again.
type RoundTrip = fn(&Value) -> Result<Value, serde_json::Error>;

struct Wire {
    name: &'static str,
    params: RoundTrip,
    result: Option<RoundTrip>,
}

fn request<T: Request>() -> Wire {
    Wire {
        name: T::NAME,
        params: round_trip::<T::Params>,
        result: Some(round_trip::<T::Result>),
    }
}

fn notification<T: Notification>() -> Wire {
    Wire {
        name: T::NAME,
        params: round_trip::<T::Params>,
        result: None,
    }
}

fn round_trip<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(T::deserialize(value)?)
}

/// Returns every method with its types; `wire_list_is_complete` compares them with the
/// table.
fn wires() -> Vec<Wire> {
    vec![
        request::<method::EnvironmentDetails>(),
        request::<method::CheckAccess>(),
        request::<method::ListRules>(),
        request::<method::HiddenPaths>(),
        request::<method::Redact>(),
        request::<method::ListDecisions>(),
        request::<method::ListFiles>(),
        request::<method::ReadFile>(),
        request::<method::Diagnostics>(),
        request::<method::Selection>(),
        request::<method::UnsavedFiles>(),
        request::<method::ConnectedAgents>(),
        request::<method::OpenFile>(),
        request::<method::TrackFile>(),
        request::<method::RecordModel>(),
        request::<method::RecordEnvironment>(),
        request::<method::TaskContext>(),
        request::<method::CountTokens>(),
        request::<method::TruncateHistory>(),
        request::<method::RollbackHistory>(),
        request::<method::ClassifyError>(),
        request::<method::AppendMessages>(),
        request::<method::LoadTask>(),
        request::<method::ListTasks>(),
        request::<method::ResumeTask>(),
        request::<method::DeleteTask>(),
        request::<method::PlanCompaction>(),
        request::<method::ApplyCompaction>(),
        request::<method::CreateCheckpoint>(),
        request::<method::ListCheckpoints>(),
        request::<method::ListTurns>(),
        request::<method::DiffCheckpoints>(),
        request::<method::PreviewRestore>(),
        request::<method::RestoreCheckpoint>(),
        request::<method::UndoRestore>(),
        request::<method::CheckpointStats>(),
        request::<method::LabelCheckpoint>(),
        request::<method::Blame>(),
        request::<method::CommitCheckpoint>(),
        request::<method::PruneCheckpoints>(),
        request::<method::VerifyCheckpoints>(),
        request::<method::ListMcpServers>(),
        request::<method::SetMcpServerEnabled>(),
        request::<method::RestartMcpServer>(),
        request::<method::TrustMcpServer>(),
        request::<method::McpServerLog>(),
        notification::<method::DidChangeTabs>(),
        notification::<method::DidChangeVisibleEditors>(),
        notification::<method::DidChangeTerminals>(),
        notification::<method::DidChangeDiagnostics>(),
        notification::<method::DidFocus>(),
        request::<method::OpenDiff>(),
        notification::<method::CloseDiff>(),
        notification::<method::DidChangeContext>(),
        notification::<method::DidChangeAccessRules>(),
        notification::<method::DidChangeBridges>(),
        notification::<method::DidChangeFiles>(),
        notification::<method::DidChangeMcpServers>(),
        notification::<method::DidCreateCheckpoint>(),
    ]
}

fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts")
}

fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| {
        panic!("{}: {error}. Every method needs a sample.", path.display())
    });
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sample(wire: &Wire) -> Value {
    let (_, short) = wire.name.split_once('/').unwrap();
    read(&transcripts().join(format!("samples/{short}.json")))
}

/// Returns the messages of a sample, each with the round trip of its type.
fn messages(wire: &Wire) -> Vec<(String, Value, RoundTrip)> {
    let sample = sample(wire);
    let mut keys = vec!["params"];
    let mut messages = vec![(
        format!("{} params", wire.name),
        sample["params"].clone(),
        wire.params,
    )];
    if let Some(result) = wire.result {
        keys.push("result");
        messages.push((
            format!("{} result", wire.name),
            sample["result"].clone(),
            result,
        ));
    }
    let found: Vec<&str> = sample
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(found, keys, "sample of {}", wire.name);
    messages
}

#[test]
fn wire_list_is_complete() {
    let listed: Vec<(&str, bool)> = wires()
        .iter()
        .map(|w| (w.name, w.result.is_some()))
        .collect();
    let table: Vec<(&str, bool)> = METHODS
        .iter()
        .map(|method| (method.name, method.result.is_some()))
        .collect();
    assert_eq!(listed, table);
}

#[test]
fn method_names_have_our_prefix_and_are_unique() {
    let mut seen = BTreeSet::new();
    for method in METHODS {
        assert!(seen.insert(method.name), "{} is listed twice", method.name);
        // Names with our prefix cannot conflict with LSP. `textDocument/didFocus` is
        // not in LSP 3.17; other servers and clients use this name.
        let short = method
            .name
            .strip_prefix("sightline/")
            .or((method.name == "textDocument/didFocus").then_some("didFocus"))
            .unwrap_or_else(|| panic!("{} is not under `sightline/`", method.name));
        assert!(
            short.starts_with(|first: char| first.is_ascii_lowercase())
                && short.chars().all(|c| c.is_ascii_alphanumeric()),
            "{} is not a verbNoun",
            method.name
        );
    }
}

#[test]
fn samples_survive_a_round_trip() {
    for wire in wires() {
        for (name, message, round_trip) in messages(&wire) {
            let again = round_trip(&message).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(again, message, "{name}");
        }
    }
    let settings = read(&transcripts().join("settings.json"));
    assert_eq!(round_trip::<Settings>(&settings).unwrap(), settings);
}

#[test]
fn samples_use_every_field() {
    let mut used = BTreeSet::new();
    for wire in wires() {
        for (_, message, _) in messages(&wire) {
            keys(&message, &mut used);
        }
    }
    keys(&read(&transcripts().join("settings.json")), &mut used);
    for name in ["protocol", "settings"] {
        let schema = read(&schemas().join(format!("{name}.schema.json")));
        for (name, definition) in schema["definitions"].as_object().unwrap() {
            for field in definition["properties"].as_object().into_iter().flatten() {
                let field = field.0;
                assert!(used.contains(field), "no sample has `{name}.{field}`");
            }
        }
    }
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// Absent fields stay absent and are not serialized as null.
#[test]
fn absent_fields_are_not_null() {
    let mut optional = 0;
    for wire in wires() {
        for (name, message, round_trip) in messages(&wire) {
            for smaller in without_each_field(&message) {
                let Ok(again) = round_trip(&smaller) else {
                    continue;
                };
                optional += 1;
                assert!(!has_null(&again), "{name}: {smaller} became {again}");
            }
        }
    }
    assert!(optional > 0, "no sample has an optional field");
}

/// Returns copies of the value, each without one of its fields.
fn without_each_field(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(map) => {
            let mut all = Vec::new();
            for (key, inner) in map {
                let mut without = map.clone();
                without.remove(key);
                all.push(Value::Object(without));
                for smaller in without_each_field(inner) {
                    let mut changed = map.clone();
                    changed.insert(key.clone(), smaller);
                    all.push(Value::Object(changed));
                }
            }
            all
        }
        Value::Array(items) => {
            let mut all = Vec::new();
            for (index, inner) in items.iter().enumerate() {
                for smaller in without_each_field(inner) {
                    let mut changed = items.clone();
                    changed[index] = smaller;
                    all.push(Value::Array(changed));
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}
