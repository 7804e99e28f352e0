//! The command lines in the documents: the program has each command and option.

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::{editors::nvim_plugin::repository, harness::program};

#[test]
fn documented_commands_exist() {
    let commands: BTreeSet<Vec<String>> = documents()
        .iter()
        .flat_map(|path| commands(&fs::read_to_string(path).unwrap()))
        .collect();
    assert!(commands.len() > 40, "found only {}", commands.len());
    for arguments in commands {
        // Options before `--help` are checked, and nothing is run.
        let output = program().args(&arguments).arg("--help").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "sightline {}: {errors}",
            arguments.join(" ")
        );
    }
}

fn documents() -> Vec<PathBuf> {
    let folders = [
        ".",
        "docs",
        "docs/agents",
        "docs/editors",
        "clients/helix",
        "clients/nvim",
        "clients/vscode",
        "clients/zed",
    ];
    folders
        .iter()
        .flat_map(|folder| fs::read_dir(repository().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter(|path| !path.ends_with("CHANGELOG.md"))
        .collect()
}

/// Returns the arguments of each command line, in code blocks and in inline code.
fn commands(text: &str) -> Vec<Vec<String>> {
    let inline = text.split('`').skip(1).step_by(2);
    text.lines()
        .map(str::trim)
        .chain(inline)
        .filter_map(|code| code.strip_prefix("sightline "))
        .filter(|code| !code.starts_with("--stdio") && !code.contains(['"', '\'', '$', '`']))
        .filter_map(|code| code.split(['#', '|', '<', ';', '&']).next())
        // What follows is the command of another program.
        .filter_map(|code| code.split(" -- ").next())
        .map(arguments)
        .collect()
}

/// Returns the arguments without placeholders such as `FILE`, and without options that have one.
fn arguments(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in code.split_whitespace() {
        let word = word.trim_matches(['[', ']', '.', ',']);
        if word.chars().all(|c| c.is_ascii_uppercase()) {
            found.pop_if(|option| option.starts_with("--"));
        } else {
            found.push(word.to_owned());
        }
    }
    found
}
