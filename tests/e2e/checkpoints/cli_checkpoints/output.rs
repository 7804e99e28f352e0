//! What the commands print, and checkpoints that are shown and deleted by id.

use serde_json::{Value, json};

use super::{json_of, run};
use crate::{
    checkpoints::{each, id},
    harness::Workspace,
};

#[test]
fn a_checkpoint_is_shown_and_deleted() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let first = json_of(&workspace, &["create", "--label", "start"]);
    workspace.write("a.txt", "two\n");
    workspace.write("b.txt", "new\n");
    let second = json_of(&workspace, &["create", "--label", "mine"]);
    let (code, text, _) = run(&workspace, &["show", &id(&second)[..8]]);
    assert_eq!(code, 0);
    for expected in [
        id(&second),
        "label    mine",
        "M        +1 -1  a.txt",
        "A        +1 -0  b.txt",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (_, text, _) = run(&workspace, &["show", id(&first)]);
    assert!(
        text.contains("label    start") && !text.contains("a.txt"),
        "{text}"
    );
    let shown = json_of(&workspace, &["show", "last"]);
    assert_eq!(shown["checkpoint"]["id"], second["id"]);
    assert_eq!(shown["changes"]["files"].as_array().unwrap().len(), 2);

    let (code, _, _) = run(&workspace, &["delete", "--yes", id(&first), "0123456789"]);
    assert_eq!(code, 3, "one is unknown");
    let (code, text, _) = run(&workspace, &["delete", "--dry-run", id(&first)]);
    assert!(
        code == 0 && text.contains("1 checkpoint would be removed"),
        "{text}"
    );
    let (code, text, _) = run(&workspace, &["delete", "--yes", id(&first)]);
    assert!(code == 0 && text.contains("1 checkpoint removed"), "{text}");
    let listed = json_of(&workspace, &["list"]);
    assert_eq!(
        each(listed["checkpoints"].as_array().unwrap(), "id"),
        [id(&second)]
    );
    assert_eq!(json_of(&workspace, &["verify"])["ok"], true);
    let (code, _, error) = run(&workspace, &["diff", "--exit-code", "last"]);
    assert_eq!((code, &*error), (0, ""));
    workspace.write("a.txt", "three\n");
    assert_eq!(run(&workspace, &["diff", "last"]).0, 0);
    assert_eq!(run(&workspace, &["diff", "--exit-code", "last"]).0, 1);
}

#[test]
fn a_long_preview_begins_with_a_summary() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    workspace.write("a.txt", "two\n");
    for at in 0..30 {
        workspace.write(&format!("new/{at}.txt"), "x\n");
    }
    let (code, text, _) = run(&workspace, &["preview", "last"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("Restore to checkpoint "), "{text}");
    assert_eq!((code, lines[1]), (0, "1 to write, 30 to delete"), "{text}");
    assert_eq!(lines.len(), 23, "{text}");
    assert_eq!(lines[22], "... and 11 more; --all shows them");
    let (_, text, _) = run(&workspace, &["preview", "--all", "last"]);
    assert_eq!(text.lines().count(), 33, "{text}");
}

#[test]
fn errors_are_json_and_colors_are_optional() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    let (code, text, error) = run(&workspace, &["show", "--json", "abcdef"]);
    assert_eq!((code, &*text), (3, ""));
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(error["error"]["kind"], "notFound");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("abcdef")
    );
    // Also errors of the argument parser, and an answer that is negative.
    let (code, text, error) = run(&workspace, &["list", "--json", "--nonsense"]);
    assert_eq!((code, &*text), (2, ""));
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(
        error["error"],
        json!({ "kind": "invalidParams", "message": "unexpected argument '--nonsense' found" })
    );
    let (code, _, error) = run(&workspace, &["undo", "--json", "--yes"]);
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!((code, &error["error"]["kind"]), (1, &json!("notFound")));
    // The argument is a path.
    let (code, _, error) = run(&workspace, &["diff", "abcdef", "--", "--json"]);
    assert!(code == 3 && error.starts_with("sightline: "), "{error}");
    let colored = |arguments: &[&str]| run(&workspace, arguments).1.contains('\u{1b}');
    assert!(!colored(&["list"]) && !colored(&["list", "--color", "never"]));
    assert!(colored(&["list", "--color", "always"]));
    assert!(colored(&["list", "--color=always", "--help"]));
}

#[test]
fn a_long_list_of_removals_begins_with_a_summary() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    for _ in 0..23 {
        json_of(&workspace, &["create"]);
    }
    let prune = ["prune", "--keep", "1", "--dry-run"];
    let (_, text, _) = run(&workspace, &prune);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("22 checkpoints would be removed"),
        "{text}"
    );
    assert_eq!(lines.len(), 22, "{text}");
    assert_eq!(lines[21], "... and 2 more; --all shows them");
    let (_, text, _) = run(&workspace, &[&prune[..], &["--all"]].concat());
    assert_eq!(text.lines().count(), 23, "{text}");
}

#[test]
fn abbreviated_ids_have_eight_digits() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let (_, created, _) = run(&workspace, &["create"]);
    workspace.write("a.txt", "two\n");
    let (_, restored, _) = run(&workspace, &["restore", "--yes", "last"]);
    let listed = json_of(&workspace, &["list"]);
    let ids = each(listed["checkpoints"].as_array().unwrap(), "id");
    let (undo, taken) = (&ids[0][..8], &ids[1][..8]);
    assert!(created.starts_with(&format!("{taken} ")), "{created}");
    assert!(
        restored.ends_with(&format!("undo with `sightline checkpoint undo {undo}`\n")),
        "{restored}"
    );
    let (_, text, _) = run(&workspace, &["list"]);
    let ids = text.lines().map(|line| line.split_whitespace().nth(1));
    assert_eq!(ids.collect::<Vec<_>>(), [Some(undo), Some(taken)]);
    let (_, text, _) = run(&workspace, &["list", "--ids"]);
    assert_eq!(text, format!("{undo}\tjust now\n{taken}\tjust now\n"));
    assert_eq!(run(&workspace, &["undo", "--yes", undo]).0, 0);
}
