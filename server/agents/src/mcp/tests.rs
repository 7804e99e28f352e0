//! Tests of pages and of the list of tools.

use serde_json::{Map, json};
use sightline_protocol::files::{ReadFileResult, TextSource};

use super::{
    page::{MAX_CHARACTERS, PageArguments, cut, first_page},
    *,
};

fn arguments(start: u64, max_characters: usize) -> PageArguments {
    let arguments = json!({ "startLine": start, "maxCharacters": max_characters });
    serde_json::from_value(arguments).unwrap()
}

#[test]
fn a_page_ends_at_a_line() {
    let page = first_page("one\ntwo\nthree\n", 9);
    assert_eq!((page.text, page.lines, page.length), ("one\ntwo\n", 2, 8));
    assert!(!page.is_line_cut);
    let page = first_page("äöü\nb", 2);
    assert_eq!((page.text, page.lines, page.length), ("äö", 1, 7));
    assert!(page.is_line_cut);
    let page = first_page("one\rtwo\r\nthree", 100);
    assert_eq!((page.lines, page.length), (3, 14));
    assert_eq!(first_page("one\n", 4).text, "one\n");
    assert_eq!(first_page("", 4).lines, 0);
}

#[test]
fn pages_of_a_result_cover_it_without_gaps() {
    let lines: String = (1..=500).map(|line| format!("line {line}\n\n")).collect();
    for text in [lines.as_str(), "", "one", "one\n"] {
        let (mut start, mut seen) = (1, String::new());
        loop {
            let page = arguments(start, 1000).page(text);
            assert!(page.chars().count() <= 1000, "{page}");
            let Some((body, next)) = page.split_once("\n[Call again with startLine=") else {
                seen.push_str(&page);
                break;
            };
            seen.push_str(body);
            seen.push('\n');
            start = next.trim_end_matches(".]").parse().unwrap();
        }
        assert_eq!(seen, text);
    }
    let long = ["x".repeat(3000), "end".to_owned()].join("\n");
    let page = arguments(1, 1000).page(&long);
    assert!(
        page.ends_with("shows more of it. Call again with startLine=2.]"),
        "{page}"
    );
    assert_eq!(arguments(2, 1000).page(&long), "end");
    assert_eq!(arguments(1, usize::MAX).page(&long), long);
    let page = arguments(u64::MAX, 1000).page(&long);
    assert_eq!(page, "The result has 2 lines.");
}

#[test]
fn results_without_a_next_page_are_cut() {
    assert_eq!(cut("short"), "short");
    let long = cut(&"line\n".repeat(5000));
    assert!(long.chars().count() <= MAX_CHARACTERS);
    assert!(long.ends_with(" more lines.]") && !long.contains("Call again"));
    assert!(cut(&"x".repeat(100_000)).chars().count() <= MAX_CHARACTERS);
}

/// Returns the pages of a file, which the server cuts after `max_bytes`.
fn pages_of_file(lines: &[String], max_bytes: usize) -> String {
    let (mut start, mut seen) = (1, String::new());
    loop {
        let text = lines[start - 1..].concat();
        let result = ReadFileResult {
            truncated: text.len() > max_bytes,
            text: text.chars().take(max_bytes).collect(),
            source: TextSource::Disk,
            total_lines: lines.len() as u64,
            ..ReadFileResult::default()
        };
        let text = text::file("a.txt", &result, true, None, arguments(start as u64, 1000));
        assert!(text.chars().count() <= 1000, "{text}");
        let (head, body) = text.split_once("\n\n").unwrap();
        assert!(head.contains(&format!("lines {start} to ")), "{head}");
        let Some((body, next)) = body.split_once("\n[Call again with startLine=") else {
            seen.push_str(body);
            return seen;
        };
        seen.push_str(body);
        start = next.trim_end_matches(".]").parse().unwrap();
    }
}

#[test]
fn pages_of_a_file_cover_it_without_gaps() {
    for end in ["\n", "\r\n", "\r"] {
        let lines: Vec<String> = (1..=500).map(|line| format!("line {line}{end}")).collect();
        for max_bytes in [100, 1000, 1_000_000] {
            assert_eq!(pages_of_file(&lines, max_bytes), lines.concat());
        }
    }
}

#[test]
fn a_long_line_of_a_file_is_marked() {
    let result = ReadFileResult {
        text: "x".repeat(4000),
        total_lines: 3,
        truncated: true,
        ..ReadFileResult::default()
    };
    for max_characters in [1000, 100_000] {
        let page = arguments(2, max_characters);
        let text = text::file("a.txt", &result, true, None, page);
        assert!(
            text.contains("[Line 2 was cut after ") && text.ends_with("startLine=3.]"),
            "{text}"
        );
        let text = text::file("a.txt", &result, true, Some(2), page);
        assert!(text.ends_with("shows more of it.]"), "{text}");
    }
}

#[test]
fn tools_follow_the_limits_of_agents() {
    for tool in tools() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(
            tool.name.len() <= 30 && tool.name.chars().all(plain),
            "{}",
            tool.name
        );
        assert!(tool.description.len() < 1000, "{}", tool.name);
        let schema = tool.input_schema.to_string();
        assert!(
            !schema.contains("$ref") && !schema.contains("oneOf"),
            "{}",
            tool.name
        );
        assert!(!(tool.read_only && tool.destructive));
    }
    assert_eq!(tools().iter().filter(|tool| tool.always_load).count(), 2);
    assert_eq!(INSTRUCTIONS.matches(". ").count() + 1, 3);
}

#[test]
fn arguments_are_checked_by_the_schema_of_each_tool() {
    for tool in tools() {
        let properties = tool.input_schema["properties"].as_object().unwrap();
        let names = |kind| {
            let named = properties
                .iter()
                .filter(move |(_, schema)| schema["type"] == kind);
            named.map(|(name, _)| name)
        };
        let with = |name: &str, value| {
            let mut arguments = Map::new();
            for required in ["path", "from", "id"] {
                arguments.insert(required.to_owned(), json!("a"));
            }
            arguments.insert(name.to_owned(), value);
            checked(&tool, arguments)
        };
        for name in names("integer") {
            for (given, taken) in [
                (json!(2), 2_u64),
                (json!(2.0), 2),
                (json!(30.0), 30),
                (json!(1e300), u32::MAX.into()),
                (json!(5_000_000_000_u64), u32::MAX.into()),
            ] {
                assert_eq!(with(name, given).unwrap()[name], json!(taken), "{name}");
            }
            assert!(!with(name, json!(null)).unwrap().contains_key(name));
            for wrong in [
                json!(2.5),
                json!(-1),
                json!(-1.0),
                json!(0),
                json!("2"),
                json!([2]),
            ] {
                let expected = format!("{name} must be a whole number of at least 1, not {wrong}");
                assert_eq!(with(name, wrong), Err(expected));
            }
        }
        for (kind, wrong, expected) in [
            ("string", json!(1), "must be a text, not 1"),
            (
                "boolean",
                json!("yes"),
                "must be true or false, not \"yes\"",
            ),
            ("array", json!("a"), "must be a list, not \"a\""),
            ("array", json!([1]), "must be a text, not 1"),
        ] {
            for name in names(kind) {
                let error = with(name, wrong.clone()).unwrap_err();
                assert!(
                    error.contains(name.as_str()) && error.contains(expected),
                    "{error}"
                );
            }
        }
    }
    let read = tools()
        .into_iter()
        .find(|tool| tool.name == "read_file")
        .unwrap();
    assert_eq!(
        checked(&read, Map::new()),
        Err("path is missing".to_owned())
    );
}
