//! Tests of truncation: our own decisions, and Cline's decisions that we fix.

use serde_json::{Number, Value, json, value::RawValue};
use sightline_base::cancel::Cancel;
use sightline_conversation::{
    BlockEdit, ContextHistory, ContextWindow, DeletedRange, TruncateAction, TruncateOutcome,
    TruncateRequest, truncate,
};
use sightline_protocol::{
    conversation::{Decision, Keep, TruncateHistoryParams, TruncateReply},
    error::ErrorKind,
    settings::{ConversationProfile, ConversationSettings, NoticeSettings},
};

mod server_tools;

/// A request with defaults for tests.
struct TestRequest {
    action: TruncateAction,
    range: Option<[i64; 2]>,
    history: ContextHistory,
    time: i64,
    profile: ConversationProfile,
}

impl TestRequest {
    fn new(action: TruncateAction) -> Self {
        Self {
            action,
            range: None,
            history: ContextHistory::default(),
            time: 100,
            profile: ConversationProfile::Default,
        }
    }

    fn run(self, messages: &[String]) -> (TruncateOutcome, Vec<String>) {
        let messages: Vec<Box<RawValue>> = messages
            .iter()
            .map(|message| RawValue::from_string(message.clone()).unwrap())
            .collect();
        let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
        let request = TruncateRequest {
            messages: &messages,
            deleted_range: self.range.map(DeletedRange),
            history: self.history,
            action: self.action,
            time: &Number::from(self.time),
            settings: &settings(self.profile),
        };
        let outcome = truncate(request, &Cancel::default()).unwrap();
        let sent = outcome.sent.iter();
        let sent = sent.map(|sent| sent.message(&messages).unwrap().get().to_owned());
        let sent = sent.collect();
        (outcome, sent)
    }
}

fn settings(profile: ConversationProfile) -> ConversationSettings {
    ConversationSettings {
        profile,
        notices: NoticeSettings {
            duplicate_file_read: Some("OLD".to_owned()),
            truncation: Some("CUT".to_owned()),
            missing_tool_result: Some("NONE".to_owned()),
        },
        ..ConversationSettings::default()
    }
}

fn user(content: Value) -> String {
    json!({"role": "user", "content": content}).to_string()
}

fn assistant(content: Value) -> String {
    json!({"role": "assistant", "content": content}).to_string()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read_file", "input": {}})
}

fn result(id: &str, said: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": [text(said)]})
}

fn read(path: &str, body: &str) -> String {
    format!("[read_file for '{path}'] Result:\n{body}")
}

fn content(message: &str) -> Value {
    serde_json::from_str::<Value>(message).unwrap()["content"].take()
}

fn edit(block: usize, text: &str) -> BlockEdit {
    let text = text.to_owned();
    BlockEdit { block, text }
}

fn body() -> String {
    "x".repeat(200)
}

#[test]
fn unchanged_messages_are_sent_byte_for_byte() {
    let odd = [
        r#" { "role" : "user", "content" : [ { "text" : "\u00e9\/ \ud83d\ude00", "type":"text" } ] , "n" : [1.0, 1e5, -0, 12345678901234567890123], "n":2 }"#,
        r#"{"content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"t","citations":null}],"role":"assistant"}"#,
        r#"{"role":"user","content":"plain \ud83d"}"#,
        r#"{"role":"assistant"}"#,
        r#"{"role":"system","content":{"deep":[[[[]]]]}}"#,
        r#"{}"#,
    ];
    let messages = odd.map(|message| message.trim().to_owned());
    let (outcome, sent) = TestRequest::new(TruncateAction::Auto {
        used: Some(10.0),
        limit: 11.0,
    })
    .run(&messages);
    assert_eq!(sent, messages);
    assert_eq!(outcome.decision, Decision::Fits);
    assert!(!outcome.history_changed && !outcome.updated_deleted_range);
    assert_eq!(outcome.deleted_range, None);
}

#[test]
fn an_edit_changes_its_text_only() {
    let old = r#"{"id":7, "content" : [ {"z":1.0,"type":"tool_result","tool_use_id":"t" , "content":[ {"cache_control": {"type":"ephemeral"} ,"text":"[read_file for 'a'] Result:\nBODY","type":"text"} , {"type":"image"} ],"is_error":false} , {"type":"new","k":[ ]} ],"role":"user" }"#;
    let messages = [
        user(json!("task")),
        assistant(json!([call("t")])),
        old.to_owned(),
        assistant(json!("ok")),
        user(json!([text(&read("a", "new"))])),
    ];
    let (outcome, sent) = TestRequest::new(TruncateAction::Deduplicate).run(&messages);
    assert_eq!(sent[2], old.replace("BODY", "OLD"));
    assert_eq!(sent[4], messages[4]);
    assert_eq!(outcome.sent[2].edits, [edit(0, &read("a", "OLD"))]);
    assert!(!outcome.sent[2].repaired);
    assert_eq!(outcome.need_to_truncate, Some(true));
}

#[test]
fn all_reads_in_one_message_are_found() {
    let both = json!([
        result("1", &read("src/a.rs", &body())),
        result("2", &read("./src/b.rs", &body())),
        result("3", &read("src//a.rs", "newer")),
        text("and then"),
    ]);
    let messages = [
        user(json!("task")),
        assistant(json!([call("1"), call("2"), call("3")])),
        user(both),
        assistant(json!([call("4")])),
        user(json!([result("4", &read("src/x/../b.rs", "newest"))])),
    ];
    let (outcome, _) = TestRequest::new(TruncateAction::Deduplicate).run(&messages);
    assert_eq!(
        outcome.sent[2].edits,
        [
            edit(0, &read("src/a.rs", "OLD")),
            edit(1, &read("./src/b.rs", "OLD")),
        ]
    );
    assert_eq!(outcome.decision, Decision::Deduplicated);
    assert_eq!(outcome.need_to_truncate, Some(false));

    // Later reads in the same message are still found after others are replaced.
    let mut more = messages.to_vec();
    more.push(assistant(json!("ok")));
    more.push(user(json!([text(&read("src/a.rs", "last"))])));
    let mut request = TestRequest::new(TruncateAction::Deduplicate);
    request.history = outcome.history.clone();
    let (again, _) = request.run(&more);
    assert_eq!(again.sent[2].edits.len(), 3);
    assert_eq!(again.sent[2].edits[2], edit(2, &read("src//a.rs", "OLD")));

    // Cline checks only the first block and compares paths literally.
    let mut request = TestRequest::new(TruncateAction::Deduplicate);
    request.profile = ConversationProfile::Cline;
    let (outcome, sent) = request.run(&messages);
    assert_eq!(sent, messages);
    assert_eq!(outcome.need_to_truncate, Some(true));
}

#[test]
fn a_result_without_text_is_not_replaced() {
    // The header of an empty file in a tool result: the next block belongs to something else.
    let messages = [
        user(json!("task")),
        assistant(json!([call("1")])),
        user(json!([
            result("1", "[read_file for 'a'] Result:"),
            text("<environment_details>")
        ])),
        assistant(json!([call("2")])),
        user(json!([result("2", &read("a", "now it has some"))])),
    ];
    for profile in [ConversationProfile::Default, ConversationProfile::Cline] {
        let mut request = TestRequest::new(TruncateAction::Deduplicate);
        request.profile = profile;
        let (outcome, sent) = request.run(&messages);
        assert_eq!(sent, messages);
        assert!(!outcome.history_changed);
    }
}

#[test]
fn the_old_format_has_the_file_in_the_next_block() {
    // The file is a log that starts like a header.
    let header = "[read_file for 'log'] Result:";
    let messages = [
        user(json!("task")),
        assistant(json!("ok")),
        user(json!([
            text(header),
            text(&read("b", &body())),
            text("see b")
        ])),
        assistant(json!("ok")),
        user(json!([text(&read("b", "1"))])),
        assistant(json!("ok")),
        user(json!([text(&read("log", "2"))])),
    ];
    let (outcome, _) = TestRequest::new(TruncateAction::Deduplicate).run(&messages[..5]);
    assert!(!outcome.history_changed);
    let (outcome, sent) = TestRequest::new(TruncateAction::Deduplicate).run(&messages);
    assert_eq!(outcome.sent[2].edits, [edit(1, "OLD")]);
    assert_eq!(sent[4..], messages[4..]);
}

#[test]
fn mentions_are_replaced_in_place() {
    let mention =
        |path: &str, body: &str| format!("<file_content path=\"{path}\">{body}</file_content>");
    let both = format!("{}\n{}", mention("a$&", &body()), mention("b$$", "B"));
    let mut messages = vec![
        user(json!("task")),
        assistant(json!("ok")),
        user(json!([text("see"), text(&both)])),
        assistant(json!("ok")),
        user(json!([text(&read("a$&", "1"))])),
    ];
    let (first, _) = TestRequest::new(TruncateAction::Deduplicate).run(&messages);
    let expected = format!("{}\n{}", mention("a$&", "OLD"), mention("b$$", "B"));
    assert_eq!(first.sent[2].edits, [edit(1, &expected)]);

    messages.extend([
        assistant(json!("ok")),
        user(json!([text(&read("b$$", "2"))])),
    ]);
    let mut request = TestRequest::new(TruncateAction::Deduplicate);
    request.history = first.history.clone();
    request.time = 200;
    let (mut second, _) = request.run(&messages);
    let expected = format!("{}\n{}", mention("a$&", "OLD"), mention("b$$", "OLD"));
    assert_eq!(second.sent[2].edits, [edit(1, &expected)]);

    // Each edit has its own record of the replaced mentions.
    second.history.rollback(&Number::from(199));
    assert_eq!(second.history, first.history);
}

#[test]
fn string_content_is_kept() {
    let messages = [
        user(json!("task")),
        assistant(json!([call("1"), call("2")])),
        user(json!("never \"mind\"")),
        assistant(json!([call("3")])),
        r#"{"role":"user","ts":1}"#.to_owned(),
        assistant(json!([call("4")])),
        r#"{"role":"user","content":null}"#.to_owned(),
    ];
    let missing = |id| json!({"type": "tool_result", "tool_use_id": id, "content": "NONE"});
    let (outcome, sent) = TestRequest::new(TruncateAction::Apply).run(&messages);
    assert_eq!(
        content(&sent[2]),
        json!([missing("1"), missing("2"), text("never \"mind\"")])
    );
    assert!(outcome.sent[2].repaired);
    assert_eq!(
        sent[4],
        r#"{"role":"user","ts":1,"content":[{"type":"tool_result","tool_use_id":"3","content":"NONE"}]}"#
    );
    assert_eq!(content(&sent[6]), json!([missing("4")]));
}

#[test]
fn edits_apply_to_their_block_when_results_are_removed() {
    let messages = [
        user(json!("task")),
        assistant(json!("ok")),
        user(json!("one")),
        assistant(json!([call("1")])),
        user(json!([result("1", &read("a", &body())), text("see this")])),
        assistant(json!("ok")),
        user(json!([text(&read("a", "new"))])),
    ];
    let (outcome, _) = TestRequest::new(TruncateAction::Deduplicate).run(&messages);
    let mut request = TestRequest::new(TruncateAction::Apply);
    request.history = outcome.history;
    request.range = Some([2, 3]);
    let (_, sent) = request.run(&messages);
    assert_eq!(content(&sent[2]), json!([text("see this")]));
}

#[test]
fn no_message_is_sent_empty() {
    let messages = [
        user(json!("task")),
        assistant(json!([text("ok")])),
        user(json!("one")),
        assistant(json!([call("1")])),
        user(json!([result("1", "done")])),
    ];
    let mut request = TestRequest::new(TruncateAction::Apply);
    request.range = Some([2, 3]);
    assert_eq!(content(&request.run(&messages).1[2]), json!([text("CUT")]));
    let mut request = TestRequest::new(TruncateAction::Apply);
    request.range = Some([2, 3]);
    request.profile = ConversationProfile::Cline;
    assert_eq!(content(&request.run(&messages).1[2]), json!([]));
}

#[test]
fn forced_truncation_adds_one_notice_and_keeps_the_task() {
    let mut messages = vec![
        user(json!([text("the task")])),
        assistant(json!([text("ok")])),
    ];
    for _ in 0..4 {
        messages.extend([
            user(json!([text("go on")])),
            assistant(json!([text("done")])),
        ]);
    }
    let (outcome, sent) = TestRequest::new(TruncateAction::Truncate(Keep::Half)).run(&messages);
    assert_eq!(outcome.deleted_range, Some(DeletedRange([2, 5])));
    assert_eq!(outcome.decision, Decision::Truncated);
    assert_eq!(sent[0], messages[0]);
    assert_eq!(content(&sent[1]), json!([text("CUT")]));
    assert_eq!(sent[2..], messages[6..]);

    let mut request = TestRequest::new(TruncateAction::Truncate(Keep::LastTwo));
    request.history = outcome.history;
    request.range = Some([2, 5]);
    let (outcome, sent) = request.run(&messages);
    assert!(!outcome.history_changed);
    assert_eq!(outcome.deleted_range, Some(DeletedRange([2, 7])));
    assert_eq!(sent.len(), 4);
}

#[test]
fn the_notice_is_in_a_text_that_is_sent() {
    let mut messages = vec![
        user(json!([text("the task")])),
        assistant(json!([call("a"), text("reading")])),
    ];
    for id in ["b", "c", "d", "e"] {
        messages.extend([
            user(json!([text("go on")])),
            assistant(json!([call(id), text("as said \"so\"")])),
        ]);
    }
    let truncate = || TestRequest::new(TruncateAction::Truncate(Keep::Half));
    let (outcome, sent) = truncate().run(&messages);
    assert_eq!(outcome.sent[1].edits, [edit(1, "CUT")]);
    assert_eq!(content(&sent[1]), json!([call("a"), text("CUT")]));
    // Like Cline, which changes nothing in this case.
    let mut request = truncate();
    request.profile = ConversationProfile::Cline;
    assert_eq!(request.run(&messages).1[1], messages[1]);

    // The first assistant message has no text; the next one keeps its own.
    messages[1] = assistant(json!([call("a")]));
    let (outcome, sent) = truncate().run(&messages);
    assert_eq!(outcome.deleted_range, Some(DeletedRange([2, 5])));
    assert_eq!(sent[1], messages[1]);
    assert_eq!(outcome.sent[3].edits, [edit(1, "CUT\n\nas said \"so\"")]);
    // Once, until that message is left out too.
    let mut request = TestRequest::new(TruncateAction::Truncate(Keep::LastTwo));
    (request.history, request.range) = (outcome.history, Some([2, 3]));
    let (outcome, _) = request.run(&messages);
    assert_eq!(outcome.deleted_range, Some(DeletedRange([2, 7])));
    assert_eq!(outcome.sent[3].edits, [edit(1, "CUT\n\nas said \"so\"")]);
    assert!(outcome.history_changed);
    let mut request = TestRequest::new(TruncateAction::Truncate(Keep::LastTwo));
    (request.history, request.range) =
        (outcome.history, outcome.deleted_range.map(|range| range.0));
    let (outcome, _) = request.run(&messages);
    assert!(!outcome.history_changed);

    // No assistant message has text, so no notice is added or reported.
    let silent: Vec<String> = messages
        .chunks(2)
        .flat_map(|pair| [pair[0].clone(), assistant(json!([call("x")]))])
        .collect();
    let (outcome, _) = truncate().run(&silent);
    assert!(!outcome.history_changed);
    assert!(outcome.sent.iter().all(|sent| sent.edits.is_empty()));
}

#[test]
fn a_full_window_is_reduced_as_far_as_needed() {
    let mut messages = vec![user(json!("task")), assistant(json!("ok"))];
    for _ in 0..8 {
        messages.extend([user(json!("go on")), assistant(json!("done"))]);
    }
    for (used, limit, range) in [
        (Some(100.0), 100.0, Some([2, 9])),
        (Some(200.0), 100.0, Some([2, 9])),
        (Some(201.0), 100.0, Some([2, 13])),
        (Some(99.0), 100.0, None),
        (None, 0.0, None),
    ] {
        let (outcome, _) = TestRequest::new(TruncateAction::Auto { used, limit }).run(&messages);
        assert_eq!(outcome.deleted_range, range.map(DeletedRange));
    }
}

#[test]
fn refusals() {
    let five = RawValue::from_string("5".to_owned()).unwrap();
    let messages = [&*five];
    let (time, settings) = (Number::from(0), settings(ConversationProfile::Default));
    let request = || TruncateRequest {
        messages: &messages,
        deleted_range: None,
        history: ContextHistory::default(),
        action: TruncateAction::Apply,
        time: &time,
        settings: &settings,
    };
    let error = truncate(request(), &Cancel::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidParams);
    assert!(error.to_string().contains("messages[0]"));

    let cancel = Cancel::default();
    cancel.cancel();
    let error = truncate(request(), &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn wire_parameters_and_result() {
    let mut params = json!({
        "model": {"id": "some-model", "contextWindow": 64_000},
        "previousRequest": {"ts": 5, "tokensIn": 20_000, "cacheReads": 10_000},
        "thresholdPercentage": 0.5,
    });
    let action = |params: &Value| {
        let params: TruncateHistoryParams = serde_json::from_value(params.clone()).unwrap();
        let window = ContextWindow::for_model(&params.model);
        TruncateAction::from_params(&params, window)
    };
    let auto = |used, limit| TruncateAction::Auto { used, limit };
    assert_eq!(action(&params), auto(Some(30_000.0), 32_000.0));
    params["thresholdPercentage"] = json!(0.9);
    assert_eq!(action(&params), auto(Some(30_000.0), 37_000.0));
    params["previousRequest"] = Value::Null;
    assert_eq!(action(&params), auto(None, 37_000.0));
    params["strategy"] = json!("deduplicate");
    assert_eq!(action(&params), TruncateAction::Deduplicate);
    params["keep"] = json!("lastTwo");
    assert_eq!(action(&params), TruncateAction::Truncate(Keep::LastTwo));

    let messages = [
        user(json!("task")),
        assistant(json!([call("1")])),
        user(json!([text(&read("a", &body()))])),
        assistant(json!("ok")),
        user(json!([text(&read("a", "new"))])),
    ];
    let raw = messages
        .clone()
        .map(|message| RawValue::from_string(message).unwrap());
    let raw: Vec<&RawValue> = raw.iter().map(|message| &**message).collect();
    let (outcome, sent) = TestRequest::new(TruncateAction::Deduplicate).run(&messages);
    let result = outcome.response(&raw, TruncateReply::Messages);
    let texts = result.messages.unwrap().into_iter();
    let texts: Vec<&str> = texts.map(RawValue::get).collect();
    assert_eq!(texts, sent);

    let result = serde_json::to_value(outcome.response(&raw, TruncateReply::Edits)).unwrap();
    let replaced = read("a", "OLD");
    let missing = json!({"type": "tool_result", "tool_use_id": "1", "content": "NONE"});
    assert_eq!(
        result,
        json!({
            "updatedDeletedRange": false,
            "contextHistory": [[2, [2, [[0, [[100, "text", [replaced], []]]]]]]],
            "contextHistoryChanged": true,
            "edits": [{"message": 2, "block": 0, "text": replaced}],
            "repairs": [{
                "message": 2,
                "replacement": {"role": "user", "content": [missing, text(&replaced)]},
            }],
            "decision": "deduplicated",
            "charactersSaved": result["charactersSaved"],
            "needToTruncate": false,
        })
    );
}

/// Work that is quadratic in the input would take minutes.
#[test]
fn hostile_conversations_take_linear_time() {
    let many = 20_000;
    let mentions: String = (0..many)
        .map(|n| format!("<file_content path=\"{}\">x</file_content>", n % 7))
        .collect();
    let openings = "<file_content path=\"".repeat(many);
    let calls: Value = (0..many).map(|n| call(&format!("t{}", n / 2))).collect();
    let reads: Value = (0..many)
        .map(|n| result(&format!("t{}", many - n), &read("a", "b")))
        .collect();
    let deep = format!(
        r#"{{"role":"user","content":{}{}}}"#,
        "[".repeat(many),
        "]".repeat(many)
    );
    let messages = [
        user(json!("task")),
        assistant(json!("ok")),
        user(json!([text(&mentions)])),
        assistant(calls),
        user(reads),
        assistant(json!(r#"\"#.repeat(many))),
        user(json!([text(&openings), text(&"\"".repeat(many))])),
        deep,
    ];
    for profile in [ConversationProfile::Default, ConversationProfile::Cline] {
        let mut request = TestRequest::new(TruncateAction::Deduplicate);
        request.profile = profile;
        let (outcome, sent) = request.run(&messages);
        assert_eq!(sent.len(), messages.len());
        let mut request = TestRequest::new(TruncateAction::Deduplicate);
        request.profile = profile;
        request.history = outcome.history;
        request.run(&messages);
    }
}
