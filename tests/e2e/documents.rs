//! The worked examples of `docs/protocol.md`: each is sent to the built program, in the
//! order of the method table, and its complete result is compared.
//!
//! An example is `docs/examples/<verbNoun>.json`: `params`, their `result`, optionally a
//! case that fails (`refused`), and preparations (`files` to write, requests to send:
//! `before`). All examples share one session on the sample project, whose folder they
//! call [`FOLDER`]. Only these may differ between runs: current times, checkpoint ids,
//! and the fields listed in `varies`.

mod diagnostics;
mod dirty_tracking;
mod environment;
mod files;
mod params_compat;
mod tracking;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use sightline_protocol::method::{
    CloseDiff, DidChangeFiles, Direction, METHODS, Method, Notification, OpenDiff, Request,
};
use sightline_testing::lsp_client::LspClient;

use crate::{
    editors::neovim::sample,
    editors::nvim_plugin::repository,
    harness::{Workspace, spawn, wait},
};

/// Command that updates the results in the worked examples. `cargo xtask generate` then updates
/// the documents.
const REWRITE_COMMAND: &str = "UPDATE_GENERATED=1 cargo test -p sightline --test e2e documents";

/// Name of the sample project's folder in the examples.
const FOLDER: &str = "/home/me/shop";

/// Time in an example that is recorded for the first time.
const A_TIME: i64 = 1_749_308_700_000;

fn file_of(method: &Method) -> PathBuf {
    file(method.name.rsplit('/').next().unwrap())
}

fn file(verb: &str) -> PathBuf {
    repository().join(format!("docs/examples/{verb}.json"))
}

/// Returns the example of a method, by the last component of its name.
pub(crate) fn example(verb: &str) -> Value {
    serde_json::from_slice(&fs::read(file(verb)).unwrap()).unwrap()
}

fn milliseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// Maps values of this run to those of the examples.
struct Names {
    folder: String,
    /// Values of this run and their counterparts in the examples.
    known: BTreeMap<String, String>,
    began: i64,
}

impl Names {
    /// Converts a value of an example for this run.
    fn as_run(&self, value: &Value) -> Value {
        replaced(value, &|text| {
            let found = self
                .known
                .iter()
                .find(|(_, documented)| *documented == text);
            match found {
                Some((actual, _)) => actual.clone(),
                None => text.replace(FOLDER, &self.folder),
            }
        })
    }

    /// Converts a value of this run for the examples: `expected` is the example's value,
    /// `varies`: whether it may differ.
    fn as_example(&mut self, actual: &Value, expected: &Value, varies: &Varying<'_>) -> Value {
        match actual {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| {
                    let varies = varies.of(key);
                    (key.clone(), self.as_example(value, &expected[key], &varies))
                })
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(at, item)| self.as_example(item, &expected[at], varies))
                .collect(),
            Value::String(text) if varies.here || is_id(text) => {
                let documented = expected.as_str().unwrap_or(text).to_owned();
                json!(self.known.entry(text.clone()).or_insert(documented))
            }
            Value::String(text) => json!(text.replace(&self.folder, FOLDER)),
            Value::Number(_) if varies.here && expected.is_number() => expected.clone(),
            Value::Number(number) if self.is_of_this_run(number.as_i64()) => {
                match expected.as_i64() {
                    Some(_) => expected.clone(),
                    None => json!(A_TIME),
                }
            }
            other => other.clone(),
        }
    }

    fn is_of_this_run(&self, time: Option<i64>) -> bool {
        time.is_some_and(|time| (self.began..=milliseconds()).contains(&time))
    }
}

/// Fields that may differ, and whether one of them is being converted.
struct Varying<'a> {
    fields: &'a [Value],
    here: bool,
}

impl Varying<'_> {
    fn of(&self, key: &str) -> Self {
        let here = self.here || self.fields.iter().any(|field| field == key);
        Self { here, ..*self }
    }
}

/// Returns whether this is a checkpoint id.
fn is_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn replaced(value: &Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => json!(change(text)),
        Value::Array(items) => items.iter().map(|item| replaced(item, change)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), replaced(value, change)))
            .collect(),
        other => other.clone(),
    }
}

/// Returns the example with the results of this run.
fn run(client: &mut LspClient, workspace: &Workspace, names: &mut Names, method: &Method) -> Value {
    let example = fs::read_to_string(file_of(method))
        .unwrap_or_else(|error| panic!("{}: {error}", file_of(method).display()));
    let mut example: Value = serde_json::from_str(&example).unwrap();
    let given = |field: &str| example.get(field).cloned().unwrap_or_default();
    for (name, text) in given("files").as_object().into_iter().flatten() {
        workspace.write(name, text.as_str().unwrap());
    }
    for request in given("before").as_array().into_iter().flatten() {
        let method = request["method"].as_str().unwrap();
        let params = names.as_run(&request["params"]);
        client.request(method, params).unwrap().unwrap();
    }
    let varies = given("varies");
    let varying = Varying {
        fields: varies.as_array().map_or(&[], Vec::as_slice),
        here: false,
    };
    if [OpenDiff::NAME, CloseDiff::NAME, DidChangeFiles::NAME].contains(&method.name) {
        // They need an agent or an open document: `bridges::diffs` and `ipc::checkpoints` test them.
        return example;
    }
    let params = names.as_run(&example["params"]);
    match method.direction {
        Direction::ClientNotification => client.notify(method.name, params).unwrap(),
        Direction::ServerNotification => {
            let params = client.notified(method.name).unwrap();
            example["params"] = names.as_example(&params, &example["params"], &varying);
        }
        Direction::Request | Direction::ServerRequest => {
            let result = client.request(method.name, params).unwrap();
            let result = result.unwrap_or_else(|error| panic!("{}: {error}", method.name));
            example["result"] = names.as_example(&result, &example["result"], &varying);
            if let Some(refused) = example.get("refused").cloned() {
                let params = names.as_run(&refused["params"]);
                let error = client.request(method.name, params).unwrap().unwrap_err();
                let error = names.as_example(&error, &refused["error"], &varying);
                example["refused"]["error"] = error;
            }
        }
    }
    example
}

#[test]
fn the_examples_of_the_protocol_are_true() {
    let workspace = sample();
    let mut names = Names {
        folder: workspace.root().to_str().unwrap().to_owned(),
        known: BTreeMap::new(),
        began: milliseconds(),
    };
    let (mut child, mut client) = spawn();
    let mut initialize = workspace.initialize();
    initialize["clientInfo"] = json!({ "name": "Neovim", "version": "0.11.4" });
    initialize["initializationOptions"]["notifications"] = json!(true);
    initialize["capabilities"]["window"]["showDocument"] = json!({ "support": true });
    client.request("initialize", initialize).unwrap().unwrap();
    client.notify("initialized", json!({})).unwrap();

    let rewrite = std::env::var_os("UPDATE_GENERATED").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    // The client's notifications first, the server's last.
    for direction in [
        Direction::ClientNotification,
        Direction::Request,
        Direction::ServerRequest,
        Direction::ServerNotification,
    ] {
        for method in METHODS.iter().filter(|m| m.direction == direction) {
            let found = run(&mut client, &workspace, &mut names, method);
            let file = file_of(method);
            let written = fs::read_to_string(&file).unwrap();
            if serde_json::from_str::<Value>(&written).unwrap() == found {
                continue;
            }
            let found = format!("{found:#}\n");
            if rewrite {
                fs::write(&file, found).unwrap()
            } else {
                wrong.push(format!("{}: this run has\n{found}", file.display()))
            }
        }
    }
    client.request("shutdown", Value::Null).unwrap().unwrap();
    client.notify("exit", Value::Null).unwrap();
    assert_eq!(wait(&mut child, "the examples"), 0);
    assert!(
        wrong.is_empty(),
        "{}\nTo take over what the server answers: {REWRITE_COMMAND}",
        wrong.join("\n")
    );
}

#[test]
fn every_example_is_of_a_method() {
    for file in fs::read_dir(repository().join("docs/examples")).unwrap() {
        let file = file.unwrap().path();
        let is_known = METHODS.iter().any(|method| file_of(method) == file);
        assert!(is_known, "{}: there is no such method", file.display());
    }
}
