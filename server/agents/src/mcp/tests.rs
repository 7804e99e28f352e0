//! Tests of pages and of the list of tools.

use sightline_protocol::files::{ReadFileResult, TextSource};

use super::{page::first_page, *};

#[test]
fn a_page_ends_at_a_line() {
    let page = first_page("one\ntwo\nthree\n", 9);
    assert_eq!(
        (page.text.as_str(), page.lines, page.is_cut),
        ("one\ntwo\n", 2, true)
    );
    let page = first_page("äöü", 2);
    assert_eq!(
        (page.text.as_str(), page.lines, page.is_cut),
        ("äö", 0, true)
    );
    assert!(!first_page("one\n", 4).is_cut);
}

#[test]
fn pages_of_a_file_cover_it_without_gaps() {
    let lines: Vec<String> = (1..=500).map(|line| format!("line {line}\n")).collect();
    let mut start = 1;
    let mut seen = String::new();
    loop {
        let result = ReadFileResult {
            text: lines[start - 1..].concat(),
            source: TextSource::Disk,
            total_lines: 500,
            ..ReadFileResult::default()
        };
        let text = text::file("a.txt", &result, start as u64, 1000);
        let (head, body) = text.split_once("\n\n").unwrap();
        assert!(head.contains(&format!("lines {start} to ")), "{head}");
        let Some((body, next)) = body.split_once("\n[Call again with startLine=") else {
            seen.push_str(body);
            break;
        };
        seen.push_str(body);
        start = next.trim_end_matches(".]").parse().unwrap();
    }
    assert_eq!(seen, lines.concat());
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
