//! The worked examples of `docs/protocol.md`: each is sent to the built program,
//! in the order of the method table, and its answer compared as a whole.
//!
//! An example is `docs/examples/<verbNoun>.json`: `params`, what came of them
//! (`result`), perhaps a case that fails (`refused`), and what is done before it
//! (`files` that are written, requests that are sent: `before`). They share one session on the sample project, whose folder
//! they call [`FOLDER`]. Only these may differ from run to run: times of the run,
//! ids of checkpoints, and the fields that an example names in `varies`.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use sightline::lsp_client::LspClient;
use sightline_protocol::{
    emit::REWRITE_EXAMPLES_COMMAND,
    method::{Direction, METHODS, Method},
};

use crate::{
    harness::{Workspace, spawn, wait},
    neovim::sample,
    nvim_plugin::repository,
};

/// How the examples call the folder of the sample project.
const FOLDER: &str = "/home/me/shop";

/// The time in an example that is recorded for the first time.
const A_TIME: i64 = 1_749_308_700_000;

fn file_of(method: &Method) -> PathBuf {
    let verb = method.name.rsplit('/').next().unwrap();
    repository().join(format!("docs/examples/{verb}.json"))
}

fn milliseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// What this run and the examples call differently.
struct Names {
    folder: String,
    /// Names of this run, and what the examples have in their place.
    known: BTreeMap<String, String>,
    began: i64,
}

impl Names {
    /// A value of an example, as it is sent in this run.
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

    /// A value of this run, as the examples would have it: `expected` is what
    /// stands in its place, `varies` whether it may differ.
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

/// Fields that may differ, and whether one of them is looked at.
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

/// Is this the id of a checkpoint?
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

/// The example with what this run answered.
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
    let params = names.as_run(&example["params"]);
    match method.direction {
        Direction::ClientNotification => client.notify(method.name, params).unwrap(),
        Direction::ServerNotification => {
            let params = client.notified(method.name).unwrap();
            example["params"] = names.as_example(&params, &example["params"], &varying);
        }
        Direction::Request => {
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
    client.request("initialize", initialize).unwrap().unwrap();
    client.notify("initialized", json!({})).unwrap();

    let rewrite = std::env::var_os("UPDATE_GENERATED").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    // What the editor shows first, what the server tells of its own accord last.
    for direction in [
        Direction::ClientNotification,
        Direction::Request,
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
            match rewrite {
                true => fs::write(&file, found).unwrap(),
                false => wrong.push(format!("{}: this run has\n{found}", file.display())),
            }
        }
    }
    client.request("shutdown", Value::Null).unwrap().unwrap();
    client.notify("exit", Value::Null).unwrap();
    assert_eq!(wait(&mut child, "the examples"), 0);
    assert!(
        wrong.is_empty(),
        "{}\nTo take over what the server answers: {REWRITE_EXAMPLES_COMMAND}",
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
