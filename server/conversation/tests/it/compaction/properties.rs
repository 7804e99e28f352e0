//! Property tests of compaction with arbitrary conversations.

use std::collections::HashMap;

use crate::compaction_support::{Case, DENIED, assistant, call, plan_params, result, user};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};
use sightline_conversation::{ContextWindow, compaction::TrackedFile};
use sightline_protocol::{
    compaction::{ApplyCompactionParams, MessageFilter, PlanCompactionParams},
    error::ErrorKind,
};

const PATHS: [&str; 5] = ["a.rs", "./a.rs", "src/b.rs", "hidden/secret", "日本/語"];

/// An assistant message and the user message after it.
#[derive(Clone, Debug)]
struct Exchange {
    calls: Vec<(&'static str, &'static str, usize)>,
    /// Which calls have results here. May include a result without a call.
    results: Vec<usize>,
    said: String,
    size: usize,
    is_string: bool,
    ts: Option<i64>,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let tool = select(&["read_file", "write_to_file", "bash", "list"][..]);
    (
        vec((tool, select(&PATHS[..]), 0..3_usize), 0..3),
        vec(0..4_usize, 0..4),
        ".{0,30}",
        prop_oneof![Just(0_usize), 0..3_000_usize],
        prop::bool::weighted(0.1),
        option::of(0..1_000_i64),
    )
        .prop_map(|(calls, results, said, size, is_string, ts)| Exchange {
            calls,
            results,
            said,
            size,
            is_string,
            ts,
        })
}

/// Ids are unique to the exchange or shared by several.
fn id(exchange: usize, nth: usize, kind: usize) -> String {
    match kind {
        0 => "shared".to_owned(),
        _ => format!("call_{exchange}_{nth}"),
    }
}

fn messages(exchanges: &[Exchange], late: bool) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "the task <&> \"of it\""})];
    for (at, exchange) in exchanges.iter().enumerate() {
        let calls = exchange.calls.iter().enumerate();
        let calls = calls.map(|(nth, (tool, path, kind))| {
            let input = json!({"path": path, "command": format!("cat {path}")});
            call(&id(at, nth, *kind), tool, input)
        });
        let text = json!({"type": "text", "text": exchange.said});
        let mut said: Vec<Value> = vec![text.clone()];
        said.extend(calls);
        messages.push(assistant(&said));

        // A result may also arrive one exchange late.
        let of = if late { at.saturating_sub(1) } else { at };
        let results = exchange.results.iter().map(|nth| {
            let kind = exchanges[of].calls.get(*nth).map_or(1, |call| call.2);
            result(&id(of, *nth, kind), &"r \n".repeat(exchange.size / 3))
        });
        let mut blocks: Vec<Value> = results.collect();
        blocks.push(text);
        let mut message = user(&blocks);
        if exchange.is_string {
            message["content"] = json!(exchange.said);
        }
        if let Some(ts) = exchange.ts {
            message["ts"] = json!(ts);
        }
        messages.push(message);
    }
    messages
}

/// Position of each result and of the last matching call before it.
fn pairs(messages: &[Value]) -> Vec<(usize, usize)> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for block in message["content"].as_array().into_iter().flatten() {
            if let Some(id) = block["id"].as_str() {
                calls.insert(id, at);
            }
            if let Some(call) = block["tool_use_id"].as_str().and_then(|id| calls.get(id)) {
                pairs.push((*call, at));
            }
        }
    }
    pairs
}

/// The expected split point: the last assistant message at or before `target` that splits no
/// pair and has two messages before it, else the first one after it.
fn begins(messages: &[Value], target: usize) -> Option<usize> {
    let pairs = pairs(messages);
    let is_place = |at: &usize| {
        let whole = |(call, result): &(usize, usize)| (call < at) == (result < at);
        messages[*at]["role"] == "assistant" && pairs.iter().all(whole)
    };
    let mut before = (2..messages.len().min(target + 1)).rev();
    let mut behind = target + 1..messages.len();
    before
        .find(is_place)
        .or_else(|| behind.find(|at| *at > 1 && is_place(at)))
}

fn alternate(messages: &[Value]) -> bool {
    let roles = messages.windows(2);
    roles
        .into_iter()
        .all(|two| two[0]["role"] != two[1]["role"])
}

fn case(
    exchanges: &[Exchange],
    late: bool,
    skip: Option<usize>,
    window: f64,
) -> (Case, Vec<Value>) {
    let mut messages = messages(exchanges, late);
    if let Some(skip) = skip.filter(|skip| *skip < messages.len()) {
        messages.remove(skip);
    }
    let mut case = Case::new(messages.clone());
    case.window = ContextWindow::with_size(window);
    for path in PATHS {
        case.file(path.trim_start_matches("./"), "some text\nof a file\n");
    }
    case.tracked = vec![TrackedFile {
        path: format!("{DENIED}recorded"),
        agent_edited_at: Some(1),
        ..TrackedFile::default()
    }];
    (case, messages)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn compacted_conversations_are_valid(
        exchanges in vec(exchange(), 0..9),
        late in prop::bool::weighted(0.2),
        skip in option::weighted(0.2, 0..9_usize),
        summary in option::of("[a-z ]{0,20}"),
        retain_from in option::of(0..20_u64),
        lines in select(&[1, 500][..]),
    ) {
        let (mut case, messages) = case(&exchanges, late, skip, 128_000.0);
        for text in case.files.values_mut() {
            *text = "some text of a file\n".repeat(lines);
        }
        // 0 is the plan of an empty conversation and requests nothing.
        let wanted = retain_from.filter(|at| *at > 0);
        let out_of_range = wanted.is_some_and(|at| at > messages.len() as u64);
        let count = messages.len();
        let target = match (&summary, wanted) {
            (Some(text), Some(at)) if !text.trim().is_empty() => at as usize,
            (Some(text), None) if !text.trim().is_empty() => count - count.div_ceil(5),
            _ => count - (3 * count).div_ceil(10),
        };
        let options = ApplyCompactionParams {
            summary: summary.clone(),
            retain_from,
            ..ApplyCompactionParams::default()
        };
        let applied = match case.apply(&options) {
            Ok(applied) => applied,
            Err(error) => {
                let expected = if out_of_range {
                    ErrorKind::InvalidParams
                } else {
                    ErrorKind::Conflict
                };
                prop_assert_eq!(error.kind(), expected);
                prop_assert!(out_of_range || summary.is_some());
                prop_assert!(out_of_range || begins(&messages, target).is_none());
                return Ok(());
            }
        };
        let after = case.messages_of(&applied);
        if applied.first.is_none() {
            prop_assert!(applied.fallback);
            prop_assert_eq!(after, case.texts());
            let nobody = begins(&messages, target)
                .is_none_or(|kept| messages[..kept].iter().all(|said| said["role"] != "user"));
            prop_assert!(nobody);
            return Ok(());
        }
        let kept = applied.retained;
        prop_assert!(kept > 1 && kept < messages.len() && !out_of_range);
        prop_assert_eq!(begins(&messages, target), Some(kept));
        prop_assert_eq!(&after[1..], &case.texts()[kept..]);
        prop_assert_eq!(&messages[kept]["role"], "assistant");
        for (call, result) in pairs(&messages) {
            prop_assert_eq!(call < kept, result < kept, "{} {} {}", call, result, kept);
        }
        let parsed: Vec<Value> =
            after.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        prop_assert_eq!(&parsed[0]["role"], "user");
        prop_assert!(!alternate(&messages) || alternate(&parsed));
        // The new message contains no denied names.
        if !applied.fallback {
            prop_assert!(!after[0].contains(DENIED), "{}", after[0]);
            prop_assert!(applied.files.iter().all(|file| !file.path.contains(DENIED)));
        }
        // Files never make a large conversation larger.
        let (pre, post) = (applied.pre_tokens, applied.post_tokens);
        prop_assert!(applied.files.is_empty() || post < pre || pre <= 20_000);
    }

    #[test]
    fn a_prompt_fits_and_contains_no_denied_names(
        exchanges in vec(exchange(), 0..9),
        window in select(&[0.0, 500.0, 4_000.0, 6_000.0, 16_000.0, 128_000.0][..]),
        retain_ratio in prop_oneof![0.0..1.0, select(&[f64::NAN, -1.0, f64::INFINITY][..])],
        instructions in option::of(prop_oneof![".{0,50}", Just("wish ".repeat(5_000))]),
        max_tokens in option::weighted(0.2, 0..5_000_u64),
        max_messages in option::weighted(0.2, 0..9_u64),
        max_age in option::weighted(0.2, -9..900_i64),
    ) {
        let (case, messages) = case(&exchanges, false, None, window);
        let filter = MessageFilter { max_tokens, max_messages, max_age };
        let options = PlanCompactionParams {
            retain_ratio,
            instructions: instructions.clone(),
            filter: Some(filter),
            ..plan_params()
        };
        let plan = case.plan(&options).unwrap();
        if plan.prompt.is_empty() {
            prop_assert!(!plan.needed && plan.files.is_empty());
            return Ok(());
        }
        // A smaller window has no fitting prompt.
        let fits = case.tokens(&plan.prompt) <= case.window.usable as u64;
        prop_assert_eq!(fits, window >= 4_000.0);
        prop_assert!(!fits || plan.prompt.contains("the task <&> \"of it\""));
        let ours = plan.prompt.split("part=\"messages\">").next().unwrap();
        prop_assert!(!ours.contains(DENIED), "{}", ours);
        prop_assert!(plan.files.iter().all(|file| !file.path.contains(DENIED)));

        // Each message is shown once or counted as left out.
        let shown = (0..messages.len())
            .filter(|at| plan.prompt.contains(&format!("[sightline-1 message {at}, ")))
            .count();
        let left_out: usize = plan
            .prompt
            .lines()
            .filter_map(|line| line.strip_suffix(" left out here]")?.strip_prefix('['))
            .filter_map(|count| count.split_once(" message")?.0.parse::<usize>().ok())
            .sum();
        prop_assert_eq!(shown + left_out, plan.retain_from as usize);
        prop_assert!(max_messages.is_none_or(|max| shown as u64 <= max + 1));
        prop_assert!(fits || shown == 1);
    }

    #[test]
    fn no_text_escapes_its_section(
        text in "(</?sightline-[0-9]{0,2}>|\\[sightline-[12] message 9, user\\]|</SIGHTLINE-1>|[a\n]){0,12}",
    ) {
        let mut case = Case::new(messages(&[], false));
        for _ in 0..4 {
            case.push(assistant(&[json!({"type": "text", "text": text})]));
            case.push(user(&[json!({"type": "text", "text": text})]));
        }
        let options = PlanCompactionParams { instructions: Some(text.clone()), ..plan_params() };
        let prompt = case.plan(&options).unwrap().prompt;
        let tag = prompt.split("between <").nth(1).unwrap().split('>').next().unwrap();
        let parts = prompt.matches(&format!("\n<{tag} part=\"")).count();
        prop_assert_eq!(prompt.to_lowercase().matches(&format!("</{tag}>")).count(), parts);
        let heads = prompt.matches(&format!("[{tag} message ")).count();
        prop_assert_eq!(heads, 7);
    }
}
