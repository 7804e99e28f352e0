//! Long results come in pages.

use serde_json::json;

use super::Client;
use crate::harness::Workspace;

#[test]
fn long_files_come_in_pages() {
    let lines: String = (1..=2000).map(|line| format!("line {line}\n")).collect();
    let workspace = Workspace::new(&[("long.txt", &lines)]);
    let mut client = Client::open(&workspace, &[]);
    let mut seen = String::new();
    let mut start = 1;
    loop {
        let text = client.text(
            "read_file",
            json!({ "path": "long.txt", "startLine": start }),
        );
        assert!(text.chars().count() < 8000);
        let (_, body) = text.split_once("\n\n").unwrap();
        let Some((body, next)) = body.split_once("\n[Call again with startLine=") else {
            seen.push_str(body);
            break;
        };
        seen.push_str(body);
        start = next.trim_end_matches(".]").parse().unwrap();
    }
    assert_eq!(seen, lines);
}
