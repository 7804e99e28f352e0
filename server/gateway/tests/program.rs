//! The program as `sightline gateway` starts it. `tests/gateway` has the tests of requests.

use std::process::{Command, Output};

fn run(argument: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sightline-gateway"))
        .arg(argument)
        .output()
        .expect("the program starts")
}

#[test]
fn the_version_is_printed() {
    let output = run("--version");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        format!("sightline-gateway {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn data_of_a_later_version_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("version");
    std::fs::write(&path, "2\n").unwrap();
    let output = run(&serde_json::json!({ "storage": folder.path(), "upstreams": {} }).to_string());
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("has version 2"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn options_that_cannot_be_used_are_errors() {
    for (argument, words) in [
        ("", "start the gateway with `sightline gateway`"),
        ("{}", "missing field `storage`"),
        (
            r#"{"storage": "/nowhere/x", "upstreams": {"a": "http://example.com"}}"#,
            "must start with https",
        ),
    ] {
        let output = run(argument);
        assert_eq!(output.status.code(), Some(3), "{argument}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(words), "{text}");
    }
}
