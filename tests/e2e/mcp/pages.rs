//! Long results come in pages.

use std::fs;

use serde_json::{Value, json};

use super::{Client, quoted};
use crate::harness::Workspace;

/// Maximum length of a result, in characters.
const MAX_CHARACTERS: usize = 7_500;

/// Calls a tool until its last page. Returns all pages without their notes, and their number.
fn all_pages(client: &mut Client, tool: &str, mut arguments: Value) -> (String, usize) {
    let (mut seen, mut pages) = (String::new(), 0);
    loop {
        let text = client.text(tool, arguments.clone());
        assert!(text.chars().count() <= MAX_CHARACTERS, "{tool}: {text}");
        pages += 1;
        let Some((page, note)) = text.rsplit_once("\n[") else {
            seen.push_str(&text);
            return (seen, pages);
        };
        let Some((_, next)) = note.split_once("Call again with startLine=") else {
            seen.push_str(&text);
            return (seen, pages);
        };
        seen.push_str(page);
        seen.push('\n');
        let next: u64 = next.trim_end_matches(".]").parse().unwrap();
        assert!(
            Some(next) > arguments["startLine"].as_u64(),
            "{tool}: {next}"
        );
        arguments["startLine"] = json!(next);
    }
}

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

#[test]
fn all_long_results_come_in_pages() {
    let names: Vec<String> = (0..600)
        .map(|number| format!("a_rather_long_file_name_number_{number}.txt"))
        .collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1\n")).collect();
    let workspace = Workspace::new(&files);
    let mut client = Client::open(&workspace, &[]);
    let named = |text: &str| names.iter().filter(|name| text.contains(*name)).count();

    let arguments = json!({ "includeFiles": true });
    let (text, _) = all_pages(&mut client, "environment_details", arguments);
    // The block lists 200 files by default.
    assert!(named(&text) >= 190, "{}", named(&text));
    assert!(text.contains("</environment_details>"), "{text}");

    let (text, pages) = all_pages(&mut client, "list_files", json!({ "limit": 1000 }));
    assert!(named(&text) == 600 && pages > 1);

    let arguments = json!({ "paths": names });
    let (text, pages) = all_pages(&mut client, "check_access", arguments);
    assert!(named(&text) == 600 && pages > 1);

    for number in 0..60 {
        let label = format!("{number} {}", "label ".repeat(30));
        client.text("checkpoint_create", json!({ "label": label }));
    }
    let (text, pages) = all_pages(&mut client, "checkpoint_list", json!({ "limit": 100 }));
    assert!(text.matches(" UTC  ").count() == 60 && pages > 1);

    for name in &names {
        workspace.write(name, "2\n");
    }
    let arguments = json!({ "from": "last" });
    let (text, pages) = all_pages(&mut client, "checkpoint_diff", arguments);
    assert!(named(&text) == 600 && pages > 1);
    assert_eq!(text.matches("-1\n+2").count(), 600);

    // The token is on the last page, so that the whole preview is seen before.
    let arguments = json!({ "id": "last" });
    let first = client.text("checkpoint_restore", arguments.clone());
    assert!(!first.contains("token=\""), "{first}");
    let (preview, pages) = all_pages(&mut client, "checkpoint_restore", arguments);
    assert!(named(&preview) == 600 && pages > 1);
    let arguments = json!({ "id": "last", "token": quoted(&preview, "token") });
    let restored = client.text("checkpoint_restore", arguments);
    assert!(restored.chars().count() <= MAX_CHARACTERS);
    assert!(!restored.contains("Call again"), "{restored}");
    assert_eq!(
        fs::read_to_string(workspace.path(&names[599])).unwrap(),
        "1\n"
    );
    let (preview, pages) = all_pages(&mut client, "checkpoint_undo", json!({}));
    assert!(named(&preview) == 600 && pages > 1);
    let (token, undo) = (quoted(&preview, "token"), quoted(&preview, "undoId"));
    assert!(restored.contains(&undo[..8]), "{restored}");
    client.text("checkpoint_undo", json!({ "undoId": undo, "token": token }));
    assert_eq!(
        fs::read_to_string(workspace.path(&names[599])).unwrap(),
        "2\n"
    );
}

#[test]
fn long_labels_and_errors_are_cut() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut client = Client::open(&workspace, &[]);
    let label = "x".repeat(100_000);
    for (tool, arguments) in [
        ("checkpoint_create", json!({ "label": label })),
        ("checkpoint_list", json!({})),
        ("checkpoint_diff", json!({ "from": label })),
        ("read_file", json!({ "path": label })),
        ("check_access", json!({ "paths": [label] })),
    ] {
        let (text, _) = client.call(tool, arguments);
        assert!(text.chars().count() <= MAX_CHARACTERS, "{tool}");
    }
}

#[test]
fn odd_line_numbers_are_clear_errors() {
    let workspace = Workspace::new(&[("three.txt", "one\ntwo\nthree\n"), ("empty.txt", "")]);
    let mut client = Client::open(&workspace, &[]);
    for start in [json!(u64::MAX), json!(4)] {
        let arguments = json!({ "path": "three.txt", "startLine": start });
        let (text, is_error) = client.call("read_file", arguments);
        assert!(is_error && text.contains("3 lines"), "{start}: {text}");
    }
    for arguments in [
        json!({ "startLine": 0 }),
        json!({ "startLine": -1 }),
        json!({ "startLine": 1.5 }),
        json!({ "startLine": "1" }),
        json!({ "endLine": 0 }),
        json!({ "endLine": -1 }),
        json!({ "maxCharacters": 0 }),
        json!({ "maxCharacters": -5 }),
    ] {
        let name = arguments
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone();
        let mut arguments = arguments;
        arguments["path"] = json!("three.txt");
        let (text, is_error) = client.call("read_file", arguments.clone());
        assert!(is_error && text.contains(&name), "{arguments}: {text}");
    }
    let arguments = json!({ "path": "three.txt", "startLine": 3, "endLine": u64::MAX });
    let text = client.text("read_file", arguments);
    assert!(
        text.contains("lines 3 to 3 of 3") && text.contains("\n\nthree\n"),
        "{text}"
    );
    let arguments = json!({ "path": "three.txt", "maxCharacters": u64::MAX });
    let text = client.text("read_file", arguments);
    assert!(text.contains("lines 1 to 3 of 3"), "{text}");
    let text = client.text("read_file", json!({ "path": "empty.txt" }));
    assert!(text.contains("empty.txt: empty"), "{text}");
    let text = client.text("list_files", json!({ "startLine": u64::MAX }));
    assert!(text.contains("lines"), "{text}");
}
