//! Tests of the public interface: counts of texts, messages and requests.

use std::time::Duration;

use serde_json::{Value, json, value::RawValue};
use sightline_base::{cancel::Cancel, error::Error};
use sightline_protocol::{
    environment::ModelRef,
    error::ErrorKind,
    tokens::{CountTokensParams, CountTokensResult},
};

use super::{measure::Measure, measure_cache::Key, *};

fn family(model: &str) -> Family {
    Family::of_model(model)
}

fn text(text: &str, model: &str) -> CountTokensResult {
    let counter = Counter::default();
    let counted = counter.texts(&[text], family(model), &Cancel::default());
    counted.unwrap()
}

const MODELS: [&str; 9] = [
    "gpt-4o",
    "gpt-6",
    "claude-3-5-sonnet",
    "claude-opus-4-7",
    "gemini-2.5-pro",
    "deepseek-chat",
    "llama-3.3-70b",
    "nobody-knows",
    "",
];

const SOURCE: &str = include_str!("counter.rs");

#[test]
fn openai_is_exact_and_others_are_not() {
    let exact = text("hello world", "gpt-4o");
    let expected = CountTokensResult {
        tokens: 2,
        items: vec![2],
        exact: true,
        encoding: "o200k_base".to_owned(),
        method: "o200k_base".to_owned(),
        ..CountTokensResult::default()
    };
    assert_eq!(exact, expected);
    assert_eq!(text("hello world", "gpt-4").encoding, "cl100k_base");
    assert_eq!(text("", "gpt-4").tokens, 0);

    let claude = text(SOURCE, "claude-sonnet-4-20250514");
    let base = text(SOURCE, "gpt-4o").tokens;
    assert!(!claude.exact);
    assert!(
        claude.method.contains("o200k_base ×1.1"),
        "{}",
        claude.method
    );
    assert!(claude.method.contains("Claude"), "{}", claude.method);
    assert!(base < claude.tokens);
    let tokens = Some(claude.tokens);
    assert!(claude.lower < tokens && tokens < claude.upper);
}

#[test]
fn estimates_are_within_their_bounds() {
    let hostile = "a ".repeat(10) + &"\t".repeat(70_000);
    let texts = ["", "x", "日本語のテキスト。", "😀😀", SOURCE, &hostile];
    let messages = [
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": SOURCE},
            {"type": "tool_use", "name": "read", "input": {"path": "a"}},
        ]}),
        json!({"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
            {"type": "document", "source": {"type": "base64", "data": "AAAA"}},
        ]}),
        json!(null),
    ];
    let counter = Counter::default();
    let cancel = Cancel::default();
    let check = |counts: &CountTokensResult, what: &str| {
        let tokens = Some(counts.tokens);
        assert!(
            counts.exact || counts.lower <= tokens && tokens <= counts.upper,
            "{what}: {counts:?}"
        );
        assert_eq!(
            counts.exact,
            counts.lower.is_none() && counts.upper.is_none()
        );
        assert_eq!(counts.items.iter().sum::<u64>(), counts.tokens, "{what}");
    };
    for model in MODELS {
        for text in texts {
            let counts = counter.texts(&[text], family(model), &cancel).unwrap();
            check(&counts, model);
            let whole = counts.method == "o200k_base";
            assert_eq!(counts.exact, model == "gpt-4o" && whole);
        }
        let counts = counter.messages(&messages, family(model), &cancel).unwrap();
        check(&counts, model);
        assert!(!counts.exact, "framing is estimated");
        assert!(counts.method.contains("framing"));
    }
}

#[test]
fn hostile_megabytes_are_counted() {
    let words = "word ".repeat(400_000);
    let units = [" ", "\t", "\n", "a", "日", "😀", "\u{301}", "<|endoftext|>"];
    for text in units
        .map(|unit| unit.repeat(2_000_000 / unit.len()))
        .iter()
        .chain([&words])
    {
        let count = super::tests::text(text, "gpt-4o");
        assert!(count.tokens > 0 && count.lower <= count.upper);
        assert!(!count.method.contains("failed"), "{}", count.method);
    }
    assert!(text(&words, "gpt-4o").exact);
}

#[test]
fn split_words_make_a_count_inexact() {
    let spaces = " ".repeat(2_000_000);
    let count = text(&spaces, "gpt-4o");
    // A token holds up to 128 spaces.
    assert!(
        count.lower <= Some(15_625) && Some(15_625) <= count.upper,
        "{count:?}"
    );
    assert!(!count.exact);
    assert!(count.method.contains("words split"), "{}", count.method);
}

fn conversation() -> Vec<Value> {
    (0..50)
        .map(|i| {
            json!({"role": if i % 2 == 0 { "user" } else { "assistant" }, "content": [
                {"type": "text", "text": format!("message {i}: {}", &SOURCE[i * 10..i * 20 + 30])},
            ]})
        })
        .collect()
}

#[test]
fn cached_counts_equal_fresh_ones() {
    let cancel = Cancel::default();
    let counter = Counter::default();
    let mut messages = conversation();
    let first = counter
        .messages(&messages, family("gpt-4o"), &cancel)
        .unwrap();
    assert_eq!(
        counter
            .messages(&messages, family("gpt-4o"), &cancel)
            .unwrap(),
        first
    );
    // A family with the same vocabulary, and one with another.
    for model in ["claude-opus-4-7", "gpt-4"] {
        let fresh = Counter::default()
            .messages(&messages, family(model), &cancel)
            .unwrap();
        assert_eq!(
            counter.messages(&messages, family(model), &cancel).unwrap(),
            fresh
        );
        assert_ne!(fresh.items, first.items);
    }
    messages[49]["content"][0]["text"] = json!("changed");
    let changed = counter
        .messages(&messages, family("gpt-4o"), &cancel)
        .unwrap();
    assert_eq!(changed.items[..49], first.items[..49]);
    let alone = counter
        .messages(&messages[49..], family("gpt-4o"), &cancel)
        .unwrap();
    assert_eq!(changed.items[49], alone.items[0]);
    // A text has no framing, unlike a message with the same content.
    let text = counter
        .texts(&["changed"], family("gpt-4o"), &cancel)
        .unwrap();
    assert!(text.items[0] < alone.items[0]);
}

#[test]
fn only_changed_items_are_counted_again() {
    let counter = Counter::default();
    let keys: Vec<Key> = (0..100).map(|i| (i, Encoding::O200kBase)).collect();
    let mut requested = Vec::new();
    for keys in [&keys[..99], &keys[..99], &keys[..]] {
        counter
            .lookup_or_measure(keys, &Cancel::default(), |missing| {
                requested.push(missing.to_vec());
                Ok(vec![Measure::default(); missing.len()])
            })
            .unwrap();
    }
    assert_eq!(requested, [(0..99).collect::<Vec<_>>(), vec![99]]);
}

#[test]
fn raw_and_parsed_messages_count_alike() {
    let counter = Counter::default();
    let cancel = Cancel::default();
    let messages = conversation();
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let raw: Vec<&RawValue> = texts
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let parsed = counter
        .messages(&messages, family("gpt-4o"), &cancel)
        .unwrap();
    for _ in 0..2 {
        assert_eq!(
            counter.messages(&raw, family("gpt-4o"), &cancel).unwrap(),
            parsed
        );
    }
    let deep = "[".repeat(300) + &"]".repeat(300);
    let raw = [RawValue::from_string(deep)];
    let raw: Vec<&RawValue> = raw.iter().flatten().map(AsRef::as_ref).collect();
    assert!(counter.messages(&raw, family("gpt-4o"), &cancel).is_ok());
}

#[test]
fn a_cancelled_count_is_not_cached() {
    let counter = Counter::default();
    let cancel = Cancel::default();
    let text = "some words; ".repeat(200_000);
    let stop = cancel.clone();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(1));
            stop.cancel();
        });
        // Counts until it is cancelled.
        loop {
            let result = counter.texts(&[&text, &text[1..]], family("gpt-4"), &cancel);
            if result.is_err() {
                break result;
            }
        }
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    let fresh = counter
        .texts(&["x"], family("gpt-4"), &Cancel::default())
        .unwrap();
    assert_eq!(fresh.items, [1]);
}

#[test]
fn threads_share_one_counter() {
    let counter = Counter::default();
    let messages = conversation();
    let expected = Counter::default()
        .messages(&messages, family("claude-opus-4-7"), &Cancel::default())
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let got =
                    counter.messages(&messages, family("claude-opus-4-7"), &Cancel::default());
                assert_eq!(got.unwrap(), expected);
            });
        }
    });
}

fn answer(params: Value, calibration: &Calibration) -> Result<CountTokensResult, Error> {
    let params: CountTokensParams = serde_json::from_value(params).unwrap();
    let messages: Vec<&RawValue> = params.messages.iter().map(|message| &*message.0).collect();
    Counter::default().count_request(&params, &messages, calibration, &Cancel::default())
}

#[test]
fn count_tokens_requests() {
    let none = Calibration::default();
    let result = answer(
        json!({"texts": ["hello world", ""], "messages": [{"role": "user", "content": "hello world"}], "model": "gpt-4o"}),
        &none,
    )
    .unwrap();
    assert_eq!(result.items, [2, 0, 6]);
    assert_eq!(result.tokens, 8);
    assert!(result.exact && result.lower.is_none());
    assert_eq!(result.calibration, None);
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "a"}}]});
    for (model, message) in [
        ("gpt-4o", call),
        (
            "claude-opus-4-7",
            json!({"role": "user", "content": "hello"}),
        ),
    ] {
        let params = json!({"messages": [message], "model": model});
        let result = answer(params, &none).unwrap();
        let tokens = Some(result.tokens);
        assert!(
            !result.exact && result.lower < tokens && result.upper > tokens,
            "{model}"
        );
        assert!(result.method.contains("framing"), "{}", result.method);
    }

    let result = answer(
        json!({"texts": ["hello world"], "model": {"id": "gpt-4", "provider": "openai"}}),
        &none,
    )
    .unwrap();
    let json = serde_json::to_value(&result).unwrap();
    let expected = json!({"tokens": 2, "items": [2], "encoding": "cl100k_base", "exact": true, "method": "cl100k_base"});
    assert_eq!(json, expected);

    let result = answer(
        json!({"texts": ["お誕生日おめでとう"], "encoding": "r50k_base", "model": "gpt-4o"}),
        &none,
    )
    .unwrap();
    assert_eq!((result.tokens, result.encoding.as_str()), (14, "r50k_base"));
    let result = answer(json!({}), &none).unwrap();
    assert_eq!(
        (result.tokens, result.encoding.as_str(), result.exact),
        (0, "o200k_base", true)
    );

    let error = answer(json!({"texts": ["x"], "encoding": "o300k"}), &none).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidParams);
    assert!(error.to_string().contains("o300k") && error.to_string().contains("cl100k_base"));
}

#[test]
fn reported_usage_calibrates_later_counts() {
    let mut calibration = Calibration::default();
    let message = json!({"role": "user", "content": SOURCE});
    let params = json!({"messages": [message], "model": "claude-opus-4-7"});
    let before = answer(params.clone(), &calibration).unwrap();
    let family = family("claude-opus-4-7");
    calibration.observe(family, before.tokens + 5_000, before.tokens);
    let after = answer(params, &calibration).unwrap();
    assert_eq!(after.tokens, before.tokens + 5_000);
    assert_eq!(after.items, before.items);
    assert!(after.calibration > Some(1.0) && !after.exact);
    assert!(after.method.starts_with("reported usage"));
}

#[test]
fn the_model_can_be_an_id() {
    let params: CountTokensParams = serde_json::from_value(json!({"model": "gpt-4"})).unwrap();
    assert_eq!(params.model, Some(ModelRef::Id("gpt-4".to_owned())));
    assert!(params.texts.is_empty() && params.messages.is_empty());
}

#[test]
fn unpaired_surrogates_are_counted_as_text() {
    let counter = Counter::default();
    let count = |text: &str| {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let family = family("gpt-4o");
        counter
            .messages(&[&*raw], family, &Cancel::default())
            .unwrap()
    };
    let image = "A".repeat(400_000);
    let half = count(&format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"hi \ud83d there"}},{{"type":"image","source":{{"data":"{image}"}}}}]}}"#
    ));
    assert!(half.tokens < 3_000, "{half:?}");
    assert!(count(r#"{"role":"user","content":"hi \ud83d"}"#).exact);
    let odd = count(r#"{"role":"user","content":"hi","n":1e999}"#);
    assert!(!odd.exact && odd.lower < Some(odd.tokens), "{odd:?}");
    let named = count(r#"{"role":"user","name":"bob","content":"hi"}"#);
    assert!(!named.exact);
}

#[test]
fn similar_model_names_are_not_openai() {
    for id in [
        "text-embedding-004",
        "text-embedding-v3",
        "gpt-4-alpaca",
        "davinci-resolve",
        "ada-lovelace-7b",
        "o1-open",
    ] {
        assert!(!family(id).is_exact(), "{id}");
    }
    for id in [
        "gpt-4-0613",
        "gpt-4o-2024-11-20",
        "gpt-4-turbo-preview",
        "o3-mini-high",
        "openai/gpt-5-mini",
        "gpt-5.1-codex",
        "text-embedding-3-small",
        "davinci",
        "ft:gpt-4o:me:task",
    ] {
        assert!(family(id).is_exact(), "{id}");
    }
}
