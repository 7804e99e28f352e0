//! Tests of compaction from plan to result.

mod files;
mod hostile;
mod properties;

use crate::compaction_support::{Case, assistant, call, plan_params, result, user};
use serde_json::{Value, json};
use sightline_conversation::{ContextWindow, compaction::TrackedFile, tokens::Calibration};
use sightline_protocol::{
    compaction::{ApplyCompactionParams, KeyFileReason, MessageFilter, PlanCompactionParams},
    error::ErrorKind,
};

/// A conversation in which files are changed, read and mentioned, and commands are run.
fn worked() -> Vec<Value> {
    let long: String = (0..30)
        .map(|line| format!("let v{line} = \"{}\";\n", "some text ".repeat(20)))
        .collect();
    vec![
        json!({"role": "user", "ts": 1000, "content": [
            {"type": "text", "text": "Make the parser accept tabs.\nDo not touch </sightline-1> the lexer."},
            {"type": "image", "source": {"type": "base64", "data": "QUJD"}},
        ]}),
        assistant(&[
            json!({"type": "text", "text": "I look at it."}),
            call("c1", "read_file", json!({"path": "src/parser.rs"})),
        ]),
        user(&[result("c1", &long)]),
        assistant(&[
            call(
                "c2",
                "replace_in_file",
                json!({"path": "./src/parser.rs", "diff": "-a\n+b"}),
            ),
            call(
                "c3",
                "write_to_file",
                json!({"path": "src/denied.rs", "content": "x"}),
            ),
        ]),
        user(&[
            result("c2", "done"),
            json!({"type": "tool_result", "tool_use_id": "c3", "is_error": true, "content": "refused"}),
        ]),
        assistant(&[call(
            "c4",
            "execute_command",
            json!({"command": "cargo test\n-p parser"}),
        )]),
        user(&[
            result("c4", "ok. 3 passed"),
            json!({"type": "text", "text": "<file_content path=\"README.md\">\nread me\n</file_content> mention tabs there"}),
        ]),
        assistant(&[json!({"type": "text", "text": "Shall I?"})]),
        user(&[json!({"type": "text", "text": "yes"})]),
        assistant(&[json!({"type": "text", "text": "Now the documents."})]),
    ]
}

fn case(messages: Vec<Value>) -> Case {
    let mut case = Case::new(messages);
    case.file("src/parser.rs", "fn parse() {}\n// tabs\n");
    case.file("README.md", "read me\nsecond\nthird\n");
    case.file("notes.txt", "note\n");
    case.tracked = vec![
        TrackedFile {
            path: "notes.txt".to_owned(),
            read_at: Some(5),
            ..TrackedFile::default()
        },
        TrackedFile {
            path: "hidden/secret.txt".to_owned(),
            agent_edited_at: Some(9),
            ..TrackedFile::default()
        },
    ];
    case
}

#[test]
fn complete_prompt() {
    let case = case(worked());
    let options = PlanCompactionParams {
        instructions: Some("Mention every test.".into()),
        max_lines_per_file: 2,
        ..plan_params()
    };
    let plan = case.plan(&options).unwrap();
    assert!(!plan.needed);
    // A fifth of ten messages starts at the user's "yes"; the assistant message is before it.
    assert_eq!(plan.retain_from, 7);
    let files = plan.files.iter();
    let files: Vec<_> = files
        .map(|file| (&*file.path, file.reason, file.lines))
        .collect();
    assert_eq!(
        files,
        [
            ("src/parser.rs", KeyFileReason::Modified, 2),
            ("README.md", KeyFileReason::Recent, 2),
            ("notes.txt", KeyFileReason::Recent, 1),
        ]
    );
    insta::assert_snapshot!(plan.prompt);
}

#[test]
fn complete_summary_message() {
    let case = case(worked());
    let options = ApplyCompactionParams {
        summary: Some("\n## Goal\nTabs.\n".into()),
        retain_from: Some(6),
        max_lines_per_file: Some(2),
        ..ApplyCompactionParams::default()
    };
    let applied = case.apply(&options).unwrap();
    // The target is a result, whose call is before it.
    assert_eq!((applied.retained, applied.retain_from), (5, 5));
    assert!(!applied.fallback);
    let messages = case.messages_of(&applied);
    assert_eq!(messages[1..], case.texts()[5..]);
    assert!(applied.pre_tokens > 0 && applied.post_tokens > 0);
    let message: Value = serde_json::from_str(&messages[0]).unwrap();
    assert_eq!(message["role"], "user");
    let blocks = message["content"].as_array().unwrap().iter();
    let blocks: Vec<_> = blocks
        .map(|block| block["text"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(blocks.join("\n\n----\n\n"));
    let result = applied.into_result(&case.items());
    assert_eq!(
        result.files_included,
        ["src/parser.rs", "README.md", "notes.txt"]
    );
    assert_eq!(result.messages.len(), 6);
}

#[test]
fn compaction_is_needed_from_four_fifths_of_the_window() {
    let mut case = case(worked());
    let tokens = case.plan(&plan_params()).unwrap().tokens as f64;
    for (size, needed) in [(tokens / 0.8 - 1.0, true), (tokens / 0.8 + 1.0, false)] {
        case.window = ContextWindow {
            size,
            usable: 100_000.0,
        };
        assert_eq!(case.plan(&plan_params()).unwrap().needed, needed);
    }
    // Reported usage takes precedence over the count.
    case.calibration = Calibration::default();
    let (twice, once) = (tokens as u64 * 2, tokens as u64);
    case.calibration
        .observe(crate::compaction_support::Case::family(), twice, once);
    let plan = case.plan(&plan_params()).unwrap();
    assert!(plan.needed && plan.tokens >= tokens as u64 * 2);
}

#[test]
fn a_second_compaction_includes_the_first_summary() {
    let mut case = case(worked());
    let text = "see <final_file_content path=\"sample.txt\">x</final_file_content>\n";
    case.file("notes.txt", text);
    case.compact("first summary");
    assert_eq!(case.messages.len(), 4);
    assert!(case.first().contains("sample.txt"));
    for turn in 0..6 {
        case.push(user(&[
            json!({"type": "text", "text": format!("request {turn}")}),
        ]));
        case.push(assistant(&[call(
            "n",
            "bash",
            json!({"command": format!("make {turn}")}),
        )]));
        case.push(user(&[result("n", "made")]));
        case.push(assistant(&[json!({"type": "text", "text": "so"})]));
    }
    let plan = case.plan(&plan_params()).unwrap();
    assert!(
        plan.prompt
            .contains("part=\"summary\">\nfirst summary\n</sightline-2>")
    );
    assert!(plan.prompt.contains("Make the parser accept tabs."));
    assert!(plan.prompt.contains("Files changed:\n- src/parser.rs\n"));
    assert!(plan.prompt.contains("- make 0\n"));
    // Files included with the first summary are not summarized again.
    assert!(!plan.prompt.contains("fn parse"));
    // Nor are they evidence of activity.
    assert!(!plan.prompt.contains("sample.txt"));

    case.compact("second summary");
    let text = case.first();
    assert_eq!(text.matches("Make the parser accept tabs.").count(), 1);
    assert_eq!(text.matches("compacted_conversation").count(), 1);
    // 7 messages before the first. The newest 6 of 28 start at a result, so 7 are retained: 28 - 1
    // - 7 more.
    assert_eq!(case.messages.len(), 8);
    assert!(text.contains(r#"messages=\"27\""#), "{text}");
    assert!(text.contains("second summary") && !text.contains("first summary"));
    assert!(text.contains(r"- cargo test\\n-p parser\n"), "{text}");
    assert!(text.contains("fn parse"));
}

/// Compacts while a plan says it is needed. Returns how often.
fn until_not_needed(case: &mut Case, summary: &str) -> usize {
    for count in 0..100 {
        let plan = case.plan(&plan_params()).unwrap();
        if !plan.needed {
            return count;
        }
        let before = case.messages.len();
        let options = ApplyCompactionParams {
            summary: Some(summary.into()),
            retain_from: Some(plan.retain_from),
            ..ApplyCompactionParams::default()
        };
        let applied = case.apply(&options).unwrap();
        case.messages = case.raw(&case.messages_of(&applied));
        assert!(case.messages.len() < before);
    }
    panic!("it does not end");
}

#[test]
fn repeated_compaction_ends_whatever_the_summary() {
    let huge = "a long summary of it all ".repeat(4_000);
    let mut case = case(worked());
    case.window = ContextWindow::with_size(16_000.0);
    for turn in 0..20 {
        case.push(user(&[
            json!({"type": "text", "text": "word ".repeat(700)}),
        ]));
        case.push(assistant(&[
            json!({"type": "text", "text": format!("so {turn}")}),
        ]));
    }
    assert_eq!(until_not_needed(&mut case, &huge), 1);
    let plan = case.plan(&plan_params()).unwrap();
    assert!(plan.tokens > 16_000 && plan.prompt.is_empty() && plan.files.is_empty());

    // Without new messages it is refused, wherever the retained part starts.
    for retain_from in [None, Some(1), Some(2), Some(case.messages.len() as u64)] {
        let options = ApplyCompactionParams {
            summary: Some("again".into()),
            retain_from,
            ..ApplyCompactionParams::default()
        };
        let error = case.apply(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{retain_from:?}");
        assert!(
            error
                .to_string()
                .contains("no new messages since the last compaction")
        );
    }

    // Each new message allows at most one more compaction.
    for _ in 0..10 {
        case.push(user(&[json!({"type": "text", "text": "go on"})]));
        case.push(assistant(&[json!({"type": "text", "text": "yes"})]));
        assert!(until_not_needed(&mut case, &huge) <= 1);
    }
    assert_eq!(case.first().matches("compacted_conversation").count(), 1);

    // It is also refused if only the summary would be before the retained part.
    let last = case.messages.len() as u64;
    let options = ApplyCompactionParams {
        summary: Some(huge.clone()),
        retain_from: Some(last),
        ..ApplyCompactionParams::default()
    };
    case.push(user(&[json!({"type": "text", "text": "go on"})]));
    case.push(assistant(&[json!({"type": "text", "text": "yes"})]));
    let applied = case.apply(&ApplyCompactionParams {
        retain_from: Some(last + 1),
        ..options.clone()
    });
    case.messages = case.raw(&case.messages_of(&applied.unwrap()));
    assert_eq!(case.messages.len(), 2);
    case.push(user(&[json!({"type": "text", "text": "go on"})]));
    let options = ApplyCompactionParams {
        summary: Some("again".into()),
        retain_from: Some(1),
        ..ApplyCompactionParams::default()
    };
    let error = case.apply(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(
        error.to_string().contains("only the previous summary"),
        "{error}"
    );
}

#[test]
fn without_a_summary_the_newest_messages_are_kept() {
    let mut case = case(worked());
    let options = ApplyCompactionParams {
        error: Some(" 529\noverloaded ".into()),
        ..ApplyCompactionParams::default()
    };
    let applied = case.apply(&options).unwrap();
    assert!(applied.fallback);
    assert_eq!(applied.fallback_reason.as_deref(), Some(r"529\noverloaded"));
    assert_eq!((applied.retained, &*applied.files), (7, &[][..]));
    let messages = case.messages_of(&applied);
    assert_eq!(messages[1..], case.texts()[7..]);
    let own = case.texts()[0]
        .strip_suffix("],\"role\":\"user\",\"ts\":1000}")
        .unwrap()
        .to_owned();
    let noted = messages[0].strip_prefix(&own).unwrap();
    assert!(
        noted.contains(r#"<left_out_messages count=\"6\"/>"#),
        "{noted}"
    );
    assert!(noted.contains(r"529\\noverloaded"), "{noted}");
    assert!(applied.post_tokens < applied.pre_tokens);

    // A second fallback has one note for both. A later summary counts them too.
    case.messages = case.raw(&messages);
    for turn in 0..4 {
        case.push(user(&[
            json!({"type": "text", "text": format!("more {turn}")}),
        ]));
        case.push(assistant(&[json!({"type": "text", "text": "so"})]));
    }
    let applied = case.apply(&ApplyCompactionParams::default()).unwrap();
    assert_eq!(
        applied.fallback_reason.as_deref(),
        Some("no summary was given")
    );
    let messages = case.messages_of(&applied);
    assert_eq!(messages[0].matches("left_out_messages").count(), 1);
    assert!(
        // 6 before, and the newest 4 of 12 start at a user message: 12 - 1 - 5 more.
        messages[0].contains(r#"<left_out_messages count=\"12\"/>"#),
        "{}",
        messages[0]
    );
    case.messages = case.raw(&messages);
    case.compact("summary");
    // Those 12, and of 6 all but the 3 from the last assistant message but one.
    assert!(
        case.first().contains(r#"messages=\"15\""#),
        "{}",
        case.messages[0]
    );
    assert!(!case.first().contains("left_out_messages"));
}

#[test]
fn a_summary_can_follow_a_fallback() {
    let mut case = case(worked());
    case.compact("first");
    for _ in 0..6 {
        case.push(user(&[json!({"type": "text", "text": "more"})]));
        case.push(assistant(&[json!({"type": "text", "text": "so"})]));
    }
    case.compact("second");
    for _ in 0..2 {
        case.push(user(&[json!({"type": "text", "text": "more"})]));
        case.push(assistant(&[json!({"type": "text", "text": "so"})]));
    }
    let applied = case.apply(&ApplyCompactionParams::default()).unwrap();
    case.messages = case.raw(&case.messages_of(&applied));
    assert!(case.first().contains("second"));
    assert!(
        case.apply(&ApplyCompactionParams {
            summary: Some("third".into()),
            retain_from: Some(3),
            ..ApplyCompactionParams::default()
        })
        .is_ok()
    );
}

#[test]
fn a_fallback_without_removable_messages_changes_nothing() {
    for length in 0..4 {
        let case = case(worked().into_iter().take(length).collect());
        let options = ApplyCompactionParams {
            summary: Some(" \n".into()),
            ..ApplyCompactionParams::default()
        };
        let applied = case.apply(&options).unwrap();
        assert!(applied.first.is_none());
        assert_eq!(
            applied.fallback_reason.as_deref(),
            Some("the summary was empty")
        );
        if length < 3 {
            assert_eq!(case.messages_of(&applied), case.texts());
        }
    }
}

#[test]
fn a_conversation_that_starts_at_a_later_index() {
    let mut messages = vec![
        assistant(&[call("x", "read_file", json!({"path": "a"}))]),
        user(&[result("x", "text"), json!({"type": "text", "text": "go"})]),
    ];
    messages.extend(worked().into_iter().skip(5));
    let case = case(messages);
    let applied = case.apply(&ApplyCompactionParams::default()).unwrap();
    let first: Value = serde_json::from_str(&case.messages_of(&applied)[0]).unwrap();
    assert_eq!(first["role"], "user");
    let blocks = first["content"].as_array().unwrap();
    assert_eq!((blocks.len(), &blocks[0]["text"]), (2, &json!("go")));
}

#[test]
fn retain_from_is_validated() {
    let mut case = case(worked());
    case.start = 100;
    // Nothing can be compacted before 3. 0 is like no value: 7, see below.
    for (retain_from, kept) in [
        (101, 3),
        (102, 3),
        (103, 3),
        (104, 3),
        (108, 7),
        (109, 9),
        (110, 9),
        (0, 7),
    ] {
        let options = ApplyCompactionParams {
            summary: Some("s".into()),
            retain_from: Some(retain_from),
            ..ApplyCompactionParams::default()
        };
        let applied = case.apply(&options).unwrap();
        assert_eq!(applied.retain_from, 100 + kept, "{retain_from}");
    }
    for retain_from in [1, 100, 111, u64::MAX] {
        for summary in [Some("s"), None] {
            let options = ApplyCompactionParams {
                summary: summary.map(str::to_owned),
                retain_from: Some(retain_from),
                ..ApplyCompactionParams::default()
            };
            let error = case.apply(&options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidParams, "{retain_from}");
            assert!(error.to_string().contains(&retain_from.to_string()));
        }
    }
    let plan = case.plan(&plan_params()).unwrap();
    assert_eq!(plan.retain_from, 107);
}

#[test]
fn the_plan_of_an_empty_conversation_can_be_applied() {
    let case = case(Vec::new());
    let plan = case.plan(&plan_params()).unwrap();
    assert_eq!((plan.retain_from, &*plan.prompt), (0, ""));
    let options = ApplyCompactionParams {
        retain_from: Some(0),
        ..ApplyCompactionParams::default()
    };
    let applied = case.apply(&options).unwrap();
    assert_eq!((applied.fallback, applied.retained), (true, 0));
    assert!(applied.first.is_none());
    // There is nothing to summarize, which is not an error in the parameters.
    let summary = Some("s".to_owned());
    let error = case.apply(&ApplyCompactionParams { summary, ..options });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn the_filter_leaves_messages_out_with_a_note() {
    let mut messages = worked();
    for (at, message) in messages.iter_mut().enumerate() {
        message["ts"] = json!(1000 + at);
    }
    let case = case(messages);
    let shown = |filter| {
        let options = PlanCompactionParams {
            filter: Some(filter),
            ..plan_params()
        };
        let prompt = case.plan(&options).unwrap().prompt;
        let all = (0..10).filter(|at| prompt.contains(&format!("-2 message {at}, ")));
        let left_out = prompt
            .lines()
            .find(|line| line.ends_with("left out here]") && line.contains("message"));
        (all.collect::<Vec<_>>(), left_out.map(str::to_owned))
    };
    let all = MessageFilter::default();
    assert_eq!(shown(all), ((0..7).collect(), None));
    let said = |count: &str| Some(format!("[{count} left out here]"));
    let max_messages = Some(2);
    let two = MessageFilter {
        max_messages,
        ..all
    };
    assert_eq!(shown(two), (vec![0, 5, 6], said("4 messages")));
    // Age is relative to the newest message, 1009.
    let max_age = Some(4);
    let young = MessageFilter { max_age, ..all };
    assert_eq!(shown(young), (vec![0, 5, 6], said("4 messages")));
    let max_tokens = Some(0);
    let none = MessageFilter { max_tokens, ..all };
    assert_eq!(shown(none), (vec![0], said("6 messages")));
}

#[test]
fn a_small_window_gets_a_small_prompt_and_a_tiny_one_the_shortest() {
    let mut case = case(worked());
    for _ in 0..200 {
        case.push(user(&[
            json!({"type": "text", "text": "日本語 and words ".repeat(300)}),
        ]));
        case.push(assistant(&[json!({"type": "text", "text": "so"})]));
    }
    for size in [4_000.0, 8_192.0, 64_000.0] {
        case.window = ContextWindow::with_size(size);
        let plan = case.plan(&plan_params()).unwrap();
        assert!(
            case.tokens(&plan.prompt) <= case.window.usable as u64,
            "{size}"
        );
        assert!(plan.prompt.contains("Make the parser accept tabs."));
        assert!(plan.prompt.contains("messages left out here]"));
    }
    case.window = ContextWindow::with_size(128_000.0);
    let large = case.plan(&plan_params()).unwrap();
    assert_eq!(large.files.len(), 3);
    for (size, needed, files) in [
        (0.0, true, 0),
        (1.0, true, 0),
        // A fifth of it fits the three files, but not the instructions.
        (500.0, true, 3),
        (f64::NAN, false, 0),
    ] {
        case.window = ContextWindow::with_size(size);
        let plan = case.plan(&plan_params()).unwrap();
        assert_eq!((plan.needed, plan.files.len()), (needed, files), "{size}");
        assert_eq!(plan.tokens, large.tokens);
        // The newest 82 of 410 start at a user message.
        assert_eq!((plan.retain_from, large.retain_from), (327, 327));
        assert!(plan.prompt.contains("\n## Goal\n"));
        assert_eq!(plan.prompt.matches("\n[sightline-").count(), 1, "{size}");
        assert!(plan.prompt.contains("\n[326 messages left out here]\n"));
        assert!(case.tokens(&plan.prompt) > case.window.usable.max(0.0) as u64);
    }
}
