//! Confirmation of changes at the command line.

use super::*;

#[test]
fn without_a_terminal_changes_need_confirmation() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    workspace.write("a.txt", "two\n");
    let restored = json_of(&workspace, &["restore", "last", "--yes"]);
    workspace.write("a.txt", "three\n");
    let listed = json_of(&workspace, &["list"]);
    let undo_id = restored["undoId"].as_str().unwrap();
    for asked in [
        &["restore", "last"][..],
        &["restore", "last", "--json"],
        &["restore", "last", "--force"],
        &["undo", "--force"],
        &["undo", undo_id, "--force", "--json"],
        &["prune", "--keep", "0"],
    ] {
        let (code, text, error) = run(&workspace, asked);
        assert_eq!((code, &*text), (2, ""), "{asked:?}: {error}");
        assert!(error.contains("--yes"), "{asked:?}: {error}");
    }
    // A dry run does not ask.
    for (asked, expected) in [
        (&["restore", "last", "--dry-run"][..], "write   a.txt"),
        (&["undo", "--force", "--dry-run"], "force   a.txt"),
        (
            &["undo", undo_id, "--force", "--dry-run"],
            "changed after the restore",
        ),
        (
            &["prune", "--keep", "0", "--dry-run"],
            "2 checkpoints would be removed",
        ),
    ] {
        let (code, text, error) = run(&workspace, asked);
        assert!(
            code == 0 && text.contains(expected),
            "{asked:?}: {text}{error}"
        );
    }
    // A later change is skipped without --force.
    for asked in [&["undo", "--dry-run"][..], &["undo", "--yes"]] {
        let (code, text, _) = run(&workspace, asked);
        assert_eq!(code, 1, "{asked:?}: {text}");
        let line = text.lines().last().unwrap();
        assert!(line.contains("skip    a.txt  changed after"), "{text}");
    }
    let pruned = json_of(&workspace, &["prune", "--keep", "0", "--dry-run"]);
    assert_eq!(pruned["removed"], 2, "{pruned}");
    assert_eq!(json_of(&workspace, &["list"]), listed);
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "three\n"
    );
}

/// Runs a checkpoint command at a terminal and answers its question.
#[cfg(target_os = "linux")]
fn at_a_terminal(workspace: &Workspace, arguments: &str, answer: &str) -> Option<(i32, String)> {
    let storage = workspace.data();
    let command = format!("checkpoint {arguments} --storage '{}'", storage.display());
    crate::cli::cli_terminal::at_a_terminal(workspace, &command, answer)
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_the_plan_and_asks_first() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    let is = |text: &str| assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), text);
    let Some((code, _)) = at_a_terminal(&workspace, "list", "") else {
        return;
    };
    assert_eq!(code, 0);
    workspace.write("a.txt", "two\n");
    for (command, shown, before, after) in [
        ("restore last", "content differs", "two\n", "one\n"),
        (
            "undo --force",
            "changed after the restore",
            "mine\n",
            "two\n",
        ),
        ("undo --json", "content differs", "two\n", "mine\n"),
    ] {
        workspace.write("a.txt", before);
        for (answer, code, text) in [("n\n", 1, before), ("y\n", 0, after)] {
            let (found, screen) = at_a_terminal(&workspace, command, answer).unwrap();
            assert_eq!(found, code, "{command}: {screen}");
            assert!(screen.contains(shown), "{command}: {screen}");
            is(text);
        }
    }
    let listed = json_of(&workspace, &["list"]);
    let (code, text) = at_a_terminal(&workspace, "prune --keep 0", "n\n").unwrap();
    assert!(
        code == 1 && text.contains("4 checkpoints would be removed"),
        "{text}"
    );
    assert_eq!(json_of(&workspace, &["list"]), listed);
    let (code, text) = at_a_terminal(&workspace, "prune --keep 0", "y\n").unwrap();
    assert!(
        code == 0 && text.contains("4 checkpoints removed"),
        "{text}"
    );
    // With nothing to do there is no question.
    json_of(&workspace, &["create"]);
    let (code, text) = at_a_terminal(&workspace, "restore last", "").unwrap();
    assert!(code == 0 && text.contains("already up to date"), "{text}");
    assert!(!text.contains("[y/N]"), "{text}");
}

/// The hint after an undo that kept a file is a command that undoes the same restore.
#[test]
fn the_hint_of_a_partial_undo_completes_it() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("d.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    for path in ["a.txt", "d.txt"] {
        workspace.write(path, "two\n");
    }
    json_of(&workspace, &["restore", "last", "--yes"]);
    workspace.write("a.txt", "three\n");
    let (_, text, error) = run(&workspace, &["undo", "--yes"]);
    let hint = error.split('`').nth(1).unwrap_or_default().to_owned();
    let words: Vec<&str> = hint.split(' ').collect();
    assert_eq!(
        words[..3],
        ["sightline", "checkpoint", "undo"],
        "{text}{error}"
    );
    assert_eq!(words.last(), Some(&"--force"), "{hint}");
    let (code, text, error) = run(&workspace, &[&words[2..], &["--yes"]].concat());
    assert_eq!(code, 0, "{text}{error}");
    for path in ["a.txt", "d.txt"] {
        assert_eq!(
            fs::read_to_string(workspace.path(path)).unwrap(),
            "two\n",
            "{path}"
        );
    }
}
