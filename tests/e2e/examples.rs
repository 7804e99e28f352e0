//! The clients of `clients/examples`, run as described in their first lines.

use std::process::Command;

use serde_json::Value;

use crate::{harness::Workspace, neovim, nvim_plugin::repository};

/// Runs an example and returns its output about `src/cart.py` of the sample, which it
/// must leave unchanged.
fn run(workspace: &Workspace, mut interpreter: Command, example: &str) -> Value {
    let before = std::fs::read(workspace.path("src/cart.py")).unwrap();
    let output = interpreter
        .arg(repository().join("clients/examples").join(example))
        .arg(env!("CARGO_BIN_EXE_sightline"))
        .arg(workspace.root())
        .arg("src/cart.py")
        .env("XDG_DATA_HOME", workspace.data())
        .env("XDG_STATE_HOME", workspace.data())
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {why}");
    assert_eq!(
        std::fs::read(workspace.path("src/cart.py")).unwrap(),
        before
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check(answers: &Value) {
    let block = answers["block"].as_str().unwrap();
    assert!(block.contains("src/prices.py"), "{block}");
    assert!(!block.contains("secrets"), "{block}");
    assert_eq!(answers["access"]["paths"][0]["access"], "allowed");
    assert_eq!(answers["access"]["command"]["allowed"], true);
    assert_eq!(answers["changes"].as_array().unwrap().len(), 1);
    assert_eq!(answers["changes"][0]["additions"], 1);
    assert_eq!(answers["restored"][0]["path"], "src/cart.py");
    assert_eq!(answers["restored"][0]["ok"], true);
}

#[test]
fn the_python_client_works_as_printed() {
    let workspace = neovim::sample();
    check(&run(&workspace, Command::new("python3"), "agent.py"));
}

#[test]
fn the_lua_client_works_as_printed() {
    let Some(neovim) = neovim::neovim() else {
        return;
    };
    let mut interpreter = Command::new(neovim);
    interpreter.args(["-u", "NONE", "-i", "NONE", "-l"]);
    check(&run(&neovim::sample(), interpreter, "agent.lua"));
}
