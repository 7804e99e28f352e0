//! Tools that the provider runs: their calls and results are in messages of the assistant, and
//! in two of them if the provider paused the turn.

use super::*;

fn server_call(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
}

fn server_result(id: &str) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
}

/// Builds messages from a script: `u` and `a` are messages with a text; `c1` and `r1` after `a`
/// are a call and a result of a server tool.
fn conversation(script: &str) -> Vec<String> {
    let message = |(index, word): (usize, &str)| {
        let mut blocks: Vec<Value> = word[1..]
            .split_terminator(',')
            .map(|block| match block.split_at(1) {
                ("c", id) => server_call(id),
                ("m", id) => json!({"type": "mcp_tool_use", "id": id, "name": "x", "input": {}}),
                (_, id) => server_result(id),
            })
            .collect();
        if blocks.is_empty() {
            blocks.push(text(&format!("text {index}")));
        }
        let blocks = Value::from(blocks);
        if word.starts_with('u') {
            user(blocks)
        } else {
            assistant(blocks)
        }
    };
    script.split_whitespace().enumerate().map(message).collect()
}

/// Asserts what providers check: each result comes after its call, each call has a result.
fn assert_whole_pairs(sent: &[String], context: &str) {
    let mut open = std::collections::BTreeSet::new();
    for message in sent {
        let content = content(message);
        assert_ne!(
            content,
            json!([]),
            "{context}: an empty message in {sent:?}"
        );
        for block in content.as_array().unwrap() {
            if block["type"].as_str().unwrap().ends_with("_tool_use") {
                assert!(open.insert(block["id"].to_string()), "{context}");
            } else if block["type"] == "web_search_tool_result" {
                let id = block["tool_use_id"].to_string();
                assert!(open.remove(&id), "{context}: result {id} in {sent:?}");
            }
        }
    }
    assert!(open.is_empty(), "{context}: calls {open:?} in {sent:?}");
}

#[test]
fn pairs_in_two_messages_are_sent_whole_or_not_at_all() {
    for script in [
        "u a u a u ac1 ar1 u a u a u",
        "u a u ac1 ar1 u a u",
        "u ac0 ar0 u a u a u a u",
        "u a u a u am1 ar1 u a u a u",
        "u a u ac1 ac2,r1 ar2 u a u a u",
        "u a u ac1,r1 a u ac1 ar1 u a u",
        "u ac0,c1 ar1,r0 u a u",
    ] {
        for keep in [Keep::None, Keep::LastTwo, Keep::Half, Keep::Quarter] {
            for profile in [ConversationProfile::Default, ConversationProfile::Cline] {
                let mut request = TestRequest::new(TruncateAction::Truncate(keep));
                request.profile = profile;
                let (_, sent) = request.run(&conversation(script));
                assert_whole_pairs(&sent, &format!("{script:?}, {keep:?}"));
            }
        }
    }
}

#[test]
fn halves_that_were_never_whole_are_sent_as_they_are() {
    // The call waits for a result of the provider.
    let waiting = conversation("u a u a u ac1");
    let (_, sent) = TestRequest::new(TruncateAction::Truncate(Keep::Half)).run(&waiting);
    assert_eq!(sent.last(), waiting.last());
    let foreign = conversation("u ar9 u");
    let (_, sent) = TestRequest::new(TruncateAction::Apply).run(&foreign);
    assert_eq!(sent, foreign);
}
