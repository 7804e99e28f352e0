//! Tests of the generated files: they are up to date, references resolve, everything is
//! documented, and Lua loads.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sightline_protocol::method::METHODS;
use similar::TextDiff;

use crate::{
    generate::{self, COMMAND},
    repository,
};

fn generated(path: &str) -> String {
    let files = generate::files().unwrap();
    let file = files.into_iter().find(|(known, _)| *known == path);
    file.unwrap_or_else(|| panic!("{path} is not generated")).1
}

fn generated_json(path: &str) -> Value {
    serde_json::from_str(&generated(path)).unwrap()
}

#[test]
fn generated_files_are_up_to_date() {
    let mut differences = String::new();
    for (path, expected) in generate::repository_files(&repository()).unwrap() {
        let found = fs::read_to_string(&path).unwrap_or_default();
        if found != expected {
            let diff = TextDiff::from_lines(found.as_str(), expected.as_str());
            let mut diff = diff.unified_diff();
            let path = path.display().to_string();
            differences.push_str(&diff.header(&path, "generated").to_string());
        }
    }
    assert!(
        differences.is_empty(),
        "Generated files are out of date:\n\n{differences}\nTo update them:\n    {COMMAND}\n"
    );
}

#[test]
fn references_resolve() {
    let mut checked = 0;
    let mut check = |name: &str, document: &Value, target: &str| {
        let pointer = target.strip_prefix('#').expect("a local reference");
        assert!(
            document.pointer(pointer).is_some(),
            "{name}: unresolved reference `{target}`"
        );
        checked += 1;
    };
    let protocol = generated_json("schemas/protocol.schema.json");
    let methods = generated_json("schemas/methods.json");
    for target in targets(&methods) {
        let local = target
            .strip_prefix("protocol.schema.json")
            .expect("a reference into the protocol schema");
        check("methods", &protocol, local);
    }
    for (name, document) in [
        ("protocol", &protocol),
        ("settings", &generated_json("schemas/settings.schema.json")),
    ] {
        for target in targets(document) {
            check(name, document, &target);
        }
    }
    assert!(checked > METHODS.len());
}

fn targets(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value {
                Value::String(target) if key == "$ref" => vec![target.clone()],
                _ => targets(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(targets).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn types_and_fields_are_documented() {
    let mut documents = vec![generated_json("schemas/protocol.schema.json")];
    documents.push(generated_json("schemas/settings.schema.json"));
    for document in documents {
        let definitions = document["definitions"].as_object().unwrap();
        for (name, definition) in definitions {
            assert_documented(name, definition);
            let properties = definition["properties"].as_object().into_iter().flatten();
            for (field, property) in properties {
                assert_documented(&format!("{name}.{field}"), property);
            }
            for choice in definition["oneOf"].as_array().into_iter().flatten() {
                assert_documented(&format!("{name}: {}", choice["const"]), choice);
            }
            assert!(
                !name.ends_with(|last: char| last.is_ascii_digit()),
                "{name}: duplicate type name"
            );
        }
    }
    for method in METHODS {
        assert!(method.summary.ends_with('.'), "{}", method.name);
    }
}

fn assert_documented(name: &str, schema: &Value) {
    let text = schema["description"].as_str().unwrap_or_default();
    assert!(!text.is_empty(), "{name} has no description");
    assert!(
        !text.contains("[`") && !text.contains("::"),
        "{name}: the description refers to Rust: {text}"
    );
}

#[test]
fn lua_loads() {
    let Some(mut interpreter) = lua_interpreter() else {
        println!("skipped: found no Neovim or Lua; set SIGHTLINE_NVIM or install `lua`");
        return;
    };
    let output = interpreter
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/list_methods.lua"))
        .arg(repository().join("clients/types/protocol.lua"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{interpreter:?}: {errors}");
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    let mut names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    names.sort_unstable();
    assert_eq!(listed, names, "{errors}");
}

/// Returns Neovim from `SIGHTLINE_NVIM`, otherwise the first Lua interpreter on the
/// `PATH`, ready for a script and its arguments.
fn lua_interpreter() -> Option<Command> {
    if let Some(path) = std::env::var_os("SIGHTLINE_NVIM") {
        let mut neovim = Command::new(path);
        neovim.args(["--clean", "-l"]);
        return Some(neovim);
    }
    let candidates: [(&str, &[&str]); 3] =
        [("nvim", &["--clean", "-l"]), ("luajit", &[]), ("lua", &[])];
    candidates.into_iter().find_map(|(program, arguments)| {
        let version = if program == "nvim" { "--version" } else { "-v" };
        Command::new(program).arg(version).output().ok()?;
        let mut command = Command::new(program);
        command.args(arguments);
        Some(command)
    })
}
