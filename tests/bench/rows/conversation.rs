//! Conversations, compared with the same work in node: truncating a conversation in the
//! request and a stored one, and counting tokens.
//!
//! Ours are round trips over stdio, as seen by a client; node's are timed inside its
//! process, on text in memory.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    Run,
    input::{Numbers, text},
    progress,
    report::{Goal, Row, Series},
    session::{Session, Worker},
};

const PART: &str = "conversation";
/// Approximate JSON size of a message, in bytes.
const EACH: usize = 11_500;

/// A conversation with tool calls, and results that are file reads, changes, mentions and
/// commands; files are read repeatedly, so that there are duplicates.
pub(crate) fn conversation(count: usize) -> Vec<Value> {
    let mut numbers = Numbers(0x5eed);
    let mut messages = Vec::with_capacity(count);
    for index in 0..count {
        let size = EACH / 2 + numbers.below(EACH);
        let path = format!("src/module_{}/file.rs", numbers.below(60));
        let content = if index == 0 {
            json!([{ "type": "text", "text": format!("<task>\n{}\n</task>", text(&mut numbers, 400)) }])
        } else if index % 2 == 1 {
            json!([
                { "type": "text", "text": text(&mut numbers, size / 2) },
                { "type": "tool_use", "id": format!("call_{index}"), "name": "read_file",
                  "input": { "path": path, "note": text(&mut numbers, size / 2) } },
            ])
        } else {
            let body = text(&mut numbers, size);
            let result = match numbers.below(20) {
                0..9 => format!("[read_file for '{path}'] Result:\n{body}"),
                9..14 => format!(
                    "[replace_in_file for '{path}'] Result:\n<final_file_content path=\"{path}\">\n{body}\n</final_file_content>\n"
                ),
                14..16 => format!("see <file_content path=\"{path}\">{body}</file_content>"),
                _ => format!("[execute_command for 'make'] Result:\n{body}"),
            };
            json!([{ "type": "tool_result", "tool_use_id": format!("call_{}", index - 1),
                     "content": [{ "type": "text", "text": result }] }])
        };
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        messages.push(json!({ "role": role, "content": content }));
    }
    messages
}

/// Measurements.
#[derive(Default)]
struct Measured {
    parse_and_write: Series,
    fits: Series,
    deduplicated: Series,
    on_stored: Series,
    tokens_cold: Series,
    tokens_again: Series,
    code_ours: Series,
    code_gpt: Series,
    code_js: Series,
}

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let conversation = conversation(run.sizes.messages);
    let messages: Vec<String> = conversation.iter().map(Value::to_string).collect();
    let whole = format!("[{}]", messages.join(","));
    let json = json!({ "op": "json", "file": file("conversation.json", &whole) });
    let code = text(&mut Numbers(7), 1_000_000);
    let code_file = file("code.txt", &code);
    let count = |with: &str| json!({ "op": "tokens", "file": code_file, "with": with });

    let data = folder.path().join("data");
    let mut node = Worker::start();
    let mut server = Session::start(None, &data);
    // The same conversation, stored and loaded once.
    for chunk in messages.chunks(200) {
        let params = format!(r#"{{"taskId":"bench","messages":[{}]}}"#, chunk.join(","));
        server.ask("sightline/appendMessages", &params);
    }
    let full = r#""previousRequest":{"ts":1,"tokensIn":190000}"#;
    let stored = r#"{"taskId":"bench","model":"claude-sonnet-4","reply":"edits"}"#;
    server.ask("sightline/truncateHistory", stored);

    let mut m = Measured::default();
    for round in 0..run.rounds {
        progress(&format!("{PART}: round {}", round + 1));
        node.timed(&mut m.parse_and_write, &json);
        let mut truncate = |series: &mut Series, params: &str| {
            let elapsed = server.ask("sightline/truncateHistory", params).1;
            series.0.push(elapsed);
        };
        let params = format!(r#"{{"messages":{whole},"model":"claude-sonnet-4"}}"#);
        truncate(&mut m.fits, &params);
        let params = format!(r#"{{"messages":{whole},"model":"claude-sonnet-4",{full}}}"#);
        truncate(&mut m.deduplicated, &params);

        let role = ["user", "assistant"][round % 2];
        server.ask("sightline/appendMessages", &one_more(role, round));
        let elapsed = server.ask("sightline/truncateHistory", stored).1;
        m.on_stored.0.push(elapsed);

        // New text each round, so that no count is cached.
        let fresh = format!("{round} {code}");
        let params = json!({ "texts": [fresh], "model": "gpt-4o" });
        server.timed(&mut m.code_ours, "sightline/countTokens", &params);
        node.timed(&mut m.code_gpt, &count("gpt-tokenizer"));
        node.timed(&mut m.code_js, &count("js-tiktoken"));

        // The stored conversation, counted by a new server.
        let mut other = Session::start(None, &data);
        let count = json!({ "taskId": "bench", "model": "gpt-4o" });
        other.timed(&mut m.tokens_cold, "sightline/countTokens", &count);
        other.ask("sightline/appendMessages", &one_more("user", round));
        other.timed(&mut m.tokens_again, "sightline/countTokens", &count);
        other.end();
    }
    server.end();
    rows(&m, run.sizes.messages, whole.len(), run.judged())
}

/// One more message for the stored conversation.
fn one_more(role: &str, round: usize) -> String {
    let message = json!({ "role": role, "content": format!("turn {round}") });
    json!({ "taskId": "bench", "messages": [message] }).to_string()
}

fn rows(m: &Measured, messages: usize, bytes: usize, judged: bool) -> Vec<Row> {
    let on = format!("{messages} messages, {:.0} MB", bytes as f64 / 1e6);
    let row = |work: &str, ours: &Series, peer: &str, theirs: &Series, goal: Goal| {
        Row::new(PART, work, ours)
            .on(&on)
            .against(peer, theirs)
            .goal(goal.only_if(judged))
    };
    let truncate = |work: &str, ours: &Series, goal: Goal| {
        let work = format!("truncate, {work}");
        row(
            &work,
            ours,
            "node JSON parse + write",
            &m.parse_and_write,
            goal,
        )
    };
    let stateless = Goal::ratio(0.5, 0.35);
    let on_stored = Goal::must(0.05);
    let recount = Goal::ratio(0.01, 0.005);
    let count = |peer: &str, theirs: &Series| {
        row("count tokens", &m.code_ours, peer, theirs, Goal::None).on("1 MB of code")
    };
    vec![
        truncate("in the request, fits", &m.fits, stateless),
        truncate(
            "in the request, with reads to replace",
            &m.deduplicated,
            stateless,
        ),
        truncate("stored, one message more", &m.on_stored, on_stored),
        row(
            "recount, one message more",
            &m.tokens_again,
            "the first count",
            &m.tokens_cold,
            recount,
        ),
        count("gpt-tokenizer", &m.code_gpt),
        count("js-tiktoken", &m.code_js),
    ]
}
