//! Tests of the list of tools.

use serde_json::{Map, json};

use super::*;

#[test]
fn tools_follow_the_limits_of_agents() {
    for tool in tools() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(
            tool.name.len() <= 30 && tool.name.chars().all(plain),
            "{}",
            tool.name
        );
        assert!(tool.description.len() < 1000, "{}", tool.name);
        let schema = tool.input_schema.to_string();
        assert!(
            !schema.contains("$ref") && !schema.contains("oneOf"),
            "{}",
            tool.name
        );
        assert!(!(tool.read_only && tool.destructive));
    }
    assert_eq!(tools().iter().filter(|tool| tool.always_load).count(), 2);
    assert_eq!(INSTRUCTIONS.matches(". ").count() + 1, 3);
}

#[test]
fn arguments_are_checked_by_the_schema_of_each_tool() {
    for tool in tools() {
        let properties = tool.input_schema["properties"].as_object().unwrap();
        let names = |kind| {
            let named = properties
                .iter()
                .filter(move |(_, schema)| schema["type"] == kind);
            named.map(|(name, _)| name)
        };
        let with = |name: &str, value| {
            let mut arguments = Map::new();
            for required in ["path", "from", "id"] {
                arguments.insert(required.to_owned(), json!("a"));
            }
            arguments.insert(name.to_owned(), value);
            checked(&tool, arguments)
        };
        for name in names("integer") {
            for (given, taken) in [
                (json!(2), 2_u64),
                (json!(2.0), 2),
                (json!(30.0), 30),
                (json!(1e300), u32::MAX.into()),
                (json!(5_000_000_000_u64), u32::MAX.into()),
            ] {
                assert_eq!(with(name, given).unwrap()[name], json!(taken), "{name}");
            }
            assert!(!with(name, json!(null)).unwrap().contains_key(name));
            for wrong in [
                json!(2.5),
                json!(-1),
                json!(-1.0),
                json!(0),
                json!("2"),
                json!([2]),
            ] {
                let expected = format!("{name} must be a whole number of at least 1, not {wrong}");
                assert_eq!(with(name, wrong), Err(expected));
            }
        }
        for (kind, wrong, expected) in [
            ("string", json!(1), "must be a text, not 1"),
            (
                "boolean",
                json!("yes"),
                "must be true or false, not \"yes\"",
            ),
            ("array", json!("a"), "must be a list, not \"a\""),
            ("array", json!([1]), "must be a text, not 1"),
        ] {
            for name in names(kind) {
                let error = with(name, wrong.clone()).unwrap_err();
                assert!(
                    error.contains(name.as_str()) && error.contains(expected),
                    "{error}"
                );
            }
        }
    }
    let read = tools()
        .into_iter()
        .find(|tool| tool.name == "read_file")
        .unwrap();
    assert_eq!(
        checked(&read, Map::new()),
        Err("path is missing".to_owned())
    );
}

#[test]
fn agents_set_no_options_that_a_tool_does_not_have() {
    let all = tools();
    let restore = all.iter().find(|tool| tool.name == "checkpoint_restore");
    let arguments = json!({ "id": "a", "force": true, "mode": "task", "allRoots": true });
    let arguments = arguments.as_object().unwrap().clone();
    let checked = checked(restore.unwrap(), arguments).unwrap();
    assert_eq!(json!(checked), json!({ "id": "a" }));
}
