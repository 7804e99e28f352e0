//! Tests of pages.

use serde_json::json;
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
