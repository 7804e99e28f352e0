//! The clients of `clients/examples`, run as described in their first lines.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    thread,
};

use serde_json::{Value, json};

use crate::{
    editors::{neovim, nvim_plugin::repository},
    harness::Workspace,
};

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

/// Answers one request to the model, and returns it.
fn answer(stream: TcpStream, (status, answer): &(u16, Value)) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let text = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let mut stream = reader.into_inner();
    stream.write_all((head + &text).as_bytes()).unwrap();
    request
}

/// Returns the answers of a model to the loop, in order.
fn answers() -> Vec<(u16, Value)> {
    let says = |content: Value, tokens: u64| {
        let usage = json!({ "input_tokens": tokens, "output_tokens": 5 });
        (200, json!({ "content": content, "usage": usage }))
    };
    let tool = |id: &str, name: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let too_long = json!({ "type": "error", "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum",
    }});
    vec![
        says(
            json!([
                tool("c1", "read_file", json!({ "path": "src/prices.py" })),
                tool(
                    "c2",
                    "read_file",
                    json!({ "path": "secrets/suppliers.csv" })
                ),
                tool(
                    "c3",
                    "run_command",
                    json!({ "command": "cat secrets/suppliers.csv" })
                ),
                tool(
                    "c4",
                    "write_file",
                    json!({ "path": "secrets/new.csv", "content": "" })
                ),
            ]),
            100,
        ),
        says(
            json!([tool(
                "c5",
                "write_file",
                json!({ "path": "src/prices.py", "content": "PRICES = {}\n" })
            )]),
            100,
        ),
        says(text("Prices are gone."), 100),
        // The second turn.
        (400, too_long),
        says(text(&"word ".repeat(200_000)), 190_000),
        // The summary before the third, and its answer.
        says(text("## Goal\nthe summary"), 100),
        says(text("Done."), 100),
    ]
}

#[test]
fn the_loop_of_an_agent_works_as_printed() {
    let workspace = neovim::sample();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let model = thread::spawn(move || {
        let streams = answers().into_iter().zip(listener.incoming());
        streams
            .map(|(next, stream)| answer(stream.unwrap(), &next))
            .collect::<Vec<Value>>()
    });
    let output = Command::new("python3")
        .arg(repository().join("clients/examples/loop.py"))
        .arg(env!("CARGO_BIN_EXE_sightline"))
        .arg(workspace.root())
        .arg(format!("http://{address}/v1/messages"))
        .args(["make it cheaper", "explain all", "and now?"])
        .env("XDG_DATA_HOME", workspace.data())
        .env("XDG_STATE_HOME", workspace.data())
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}");
    let turns: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = (0..3)
        .map(|at| turns[at]["turn"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["loop-1.1", "loop-1.2", "loop-1.3"]);
    assert_eq!(turns[2]["answer"], "Done.");
    let prices = fs::read_to_string(workspace.path("src/prices.py")).unwrap();
    assert_eq!(prices, "PRICES = {}\n");
    assert!(!workspace.path("secrets/new.csv").exists());

    let requests = model.join().unwrap();
    let all = json!(requests).to_string();
    let secret = fs::read_to_string(workspace.path("secrets/suppliers.csv")).unwrap();
    assert!(!all.contains(secret.lines().last().unwrap()), "{all}");
    let last = |request: &Value| {
        request["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone()
    };
    assert!(
        last(&requests[0])
            .to_string()
            .contains("<environment_details>")
    );
    let results = last(&requests[1])["content"].clone();
    assert!(
        results[0]["content"].as_str().unwrap().contains("apple"),
        "{results}"
    );
    for (at, text) in [(1, "is hidden from agents"), (2, "refused"), (3, "denied")] {
        assert!(
            results[at]["content"].as_str().unwrap().contains(text),
            "{results}"
        );
    }
    // The retry after the error is shorter, the summary has no tools, and the third turn begins with it.
    let count = |request: &Value| request["messages"].as_array().unwrap().len();
    assert!(count(&requests[4]) < count(&requests[3]));
    assert_eq!(
        (&requests[5]["tools"], count(&requests[5])),
        (&json!([]), 1)
    );
    assert!(requests[6].to_string().contains("the summary"));
}
