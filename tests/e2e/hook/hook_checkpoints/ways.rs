//! The ways back: a turn is reverted, hunks are restored, lines are blamed, and states are committed.

use serde_json::{Value, json};

use super::{ask, command, edit, stop, timeline::git};
use crate::{
    harness::{Server, Workspace},
    ipc::run,
};

fn numbered(changed: &[(usize, &str)]) -> String {
    (1..=30)
        .map(|line| {
            let new = changed.iter().find(|(at, _)| *at == line);
            new.map_or_else(|| format!("{line}\n"), |(_, text)| format!("{text}\n"))
        })
        .collect()
}

/// Two turns with edits of the user between and after them.
fn project() -> Workspace {
    let workspace = Workspace::new(&[
        (".clineignore", "*.key\n"),
        ("a.txt", &numbered(&[])),
        ("b.txt", "0\n"),
    ]);
    git(&workspace, &["init", "-q", "-b", "main"]);
    git(&workspace, &["add", "."]);
    git(&workspace, &["commit", "-qm", "one"]);
    ask(&workspace, "s1", "the first");
    edit(&workspace, "s1", "a.txt");
    workspace.write("a.txt", &numbered(&[(2, "one"), (20, "one, too")]));
    workspace.write("new.txt", "one\n");
    workspace.write("c.key", "secret\n");
    stop(&workspace, "s1");
    workspace.write(
        "a.txt",
        &numbered(&[(2, "one"), (10, "mine"), (20, "one, too")]),
    );
    ask(&workspace, "s1", "the second");
    edit(&workspace, "s1", "b.txt");
    workspace.write("b.txt", "two\n");
    stop(&workspace, "s1");
    workspace
}

fn read(workspace: &Workspace, name: &str) -> String {
    std::fs::read_to_string(workspace.path(name)).unwrap()
}

fn outcomes(result: &Value) -> Vec<(String, String)> {
    let outcomes = result["outcomes"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    outcomes
        .map(|one| (text(&one["path"]), text(&one["action"])))
        .collect()
}

#[test]
fn a_turn_is_reverted_and_later_edits_stay() {
    let workspace = project();
    let mut server = Server::initialized(workspace.initialize());
    let turn = json!({ "id": "claude-1.1", "only": "turn" });
    let preview = server.call("sightline/previewRestore", turn.clone());
    assert_eq!(preview["target"]["name"], "claude-1.1");
    assert_eq!(preview["changes"].as_array().unwrap().len(), 2, "{preview}");
    let mut restore = turn;
    restore["token"] = preview["token"].clone();
    let restored = server.call("sightline/restoreCheckpoint", restore);
    let expected = [("a.txt", "write"), ("new.txt", "delete")];
    let expected = expected.map(|(path, action)| (path.to_owned(), action.to_owned()));
    assert_eq!(outcomes(&restored), expected);
    assert_eq!(read(&workspace, "a.txt"), numbered(&[(10, "mine")]));
    assert_eq!(read(&workspace, "b.txt"), "two\n");
    server.call(
        "sightline/undoRestore",
        json!({ "undoId": restored["undoId"] }),
    );
    let all = [(2, "one"), (10, "mine"), (20, "one, too")];
    assert_eq!(read(&workspace, "a.txt"), numbered(&all));
    assert_eq!(read(&workspace, "new.txt"), "one\n");

    // By one of its checkpoints, too, but not by another one.
    let turns = server.call("sightline/listTurns", json!({}));
    let after = &turns["turns"][1]["after"];
    let params = json!({ "id": after, "only": "turn" });
    let preview = server.call("sightline/previewRestore", params);
    assert_eq!(preview["changes"].as_array().unwrap().len(), 2);
    let manual = server.call("sightline/createCheckpoint", json!({}));
    for (params, why) in [
        (
            json!({ "id": manual["id"], "only": "turn" }),
            "belongs to no turn",
        ),
        (
            json!({ "id": "claude-1.1", "only": "turn", "allRoots": true }),
            "allRoots",
        ),
        (
            json!({ "id": "claude-1.1", "only": "turn", "mode": "task", "taskId": "t" }),
            "mode",
        ),
        (json!({ "id": "claude-1.1", "hunks": [] }), "empty"),
        (
            json!({ "id": "claude-1.1", "hunks": [{ "path": "a.txt", "hunks": [] }] }),
            "no hunks",
        ),
        (
            json!({ "id": "claude-1.1", "hunks": [{ "path": "a.txt", "hunks": [3] }] }),
            "it has 2 hunks",
        ),
        (
            json!({ "id": "claude-1.1", "hunks": [{ "path": "c.key", "hunks": [1] }] }),
            "c.key",
        ),
        (
            json!({ "id": "claude-1.1", "hunks": [{ "path": "none", "hunks": [1] }] }),
            "none",
        ),
    ] {
        let error = server.refused("sightline/restoreCheckpoint", params.clone());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(why), "{params}: {message}");
    }
    assert_eq!(read(&workspace, "a.txt"), numbered(&all));
}

#[test]
fn hunks_of_a_turn_and_of_a_checkpoint_are_restored() {
    let workspace = project();
    let mut server = Server::initialized(workspace.initialize());
    let hunks = |server: &mut Server, from: &Value| {
        let params = json!({ "from": from, "contents": true, "paths": ["a.txt"] });
        let compared = server.call("sightline/diffCheckpoints", params);
        compared["files"][0]["hunks"].clone()
    };
    let turn = json!("claude-1.1");
    let expected = json!([
        { "number": 1, "before": [1, 5], "after": [1, 5] },
        { "number": 2, "before": [17, 7], "after": [17, 7] },
    ]);
    assert_eq!(hunks(&mut server, &turn), expected);
    let selected = json!([{ "path": "a.txt", "hunks": [2] }]);
    let restored = server.call(
        "sightline/restoreCheckpoint",
        json!({ "id": turn, "hunks": selected }),
    );
    assert_eq!(
        read(&workspace, "a.txt"),
        numbered(&[(2, "one"), (10, "mine")])
    );
    server.call(
        "sightline/undoRestore",
        json!({ "undoId": restored["undoId"] }),
    );
    let turns = server.call("sightline/listTurns", json!({}));
    let before = turns["turns"][1]["before"].clone();
    // The work tree has one more.
    assert_eq!(hunks(&mut server, &before).as_array().unwrap().len(), 3);
    let selected = json!([{ "path": "a.txt", "hunks": [1, 2] }]);
    server.call(
        "sightline/restoreCheckpoint",
        json!({ "id": before, "hunks": selected, "paths": ["b.txt"] }),
    );
    assert_eq!(read(&workspace, "a.txt"), numbered(&[(20, "one, too")]));
    assert_eq!(read(&workspace, "b.txt"), "0\n");
    assert_eq!(read(&workspace, "new.txt"), "one\n");
}

#[test]
fn lines_are_blamed_and_states_are_committed() {
    let workspace = project();
    let mut server = Server::initialized(workspace.initialize());
    let blamed = server.call("sightline/blame", json!({ "path": "a.txt" }));
    let line = |number: usize| &blamed["lines"][number - 1];
    assert_eq!(blamed["lines"].as_array().unwrap().len(), 30);
    assert_eq!(line(1), &json!({ "line": 1, "by": "unknown" }));
    for number in [2, 20] {
        let line = line(number);
        let who = (&line["by"], &line["turn"], &line["agent"]);
        assert_eq!(
            who,
            (&json!("agent"), &json!("claude-1.1"), &json!("claude"))
        );
        assert!(line["at"].is_i64());
    }
    assert_eq!(line(10)["by"], "user");
    let denied = server.refused("sightline/blame", json!({ "path": "c.key" }));
    assert_eq!(denied["data"]["kind"], "accessDenied");

    let after = json!({ "id": "claude-1.1+", "branch": "first" });
    let made = server.call("sightline/commitCheckpoint", after.clone());
    let show = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(workspace.root())
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let commit = made["commit"].as_str().unwrap();
    assert_eq!(
        show(&["log", "-1", "--format=%H %s", "first"]),
        format!("{commit} the first\n")
    );
    assert_eq!(
        show(&["diff", "--name-only", "main", "first"]),
        "a.txt\nnew.txt\n"
    );
    assert_eq!(
        show(&["show", "first:a.txt"]),
        numbered(&[(2, "one"), (20, "one, too")])
    );
    let again = server.refused("sightline/commitCheckpoint", after);
    assert_eq!(again["data"]["kind"], "conflict");
}

#[test]
fn the_commands_revert_blame_and_commit() {
    let workspace = project();
    let checkpoint =
        |arguments: &[&str]| command(&workspace, &[&["checkpoint"][..], arguments].concat());
    let all = numbered(&[(2, "one"), (10, "mine"), (20, "one, too")]);
    let text = checkpoint(&["restore", "claude-1.1", "--only", "turn", "--yes"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("Revert turn 1 of claude-1, "),
        "{text}"
    );
    assert!(
        lines[1].starts_with("2 paths restored; undo with"),
        "{text}"
    );
    assert_eq!(read(&workspace, "a.txt"), numbered(&[(10, "mine")]));
    checkpoint(&["undo", "--yes"]);
    assert_eq!(read(&workspace, "a.txt"), all);
    let hunks = ["restore", "claude-1.1", "--hunk", "a.txt:2", "--yes"];
    let text = checkpoint(&hunks);
    assert!(
        text.starts_with("Restore hunks to before turn 1 of claude-1, "),
        "{text}"
    );
    assert_eq!(
        read(&workspace, "a.txt"),
        numbered(&[(2, "one"), (10, "mine")])
    );
    checkpoint(&["undo", "--yes"]);
    let wrong = [
        "checkpoint",
        "restore",
        "claude-1.1",
        "--hunk",
        "a.txt:1,9",
        "--yes",
    ];
    let (code, _, error) = run(&workspace, &wrong);
    assert!(code == 2 && error.contains("hunk 9"), "{code}: {error}");
    assert_eq!(read(&workspace, "a.txt"), all);

    let text = checkpoint(&["list"]);
    assert!(text.contains("before a restore to claude-1.1"), "{text}");
    let mut undo_points = text.lines().filter(|line| line.contains("  before a"));
    assert!(undo_points.all(|line| !line.contains("+0 ~0 -0")), "{text}");
    let text = checkpoint(&["blame", "a.txt"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].starts_with("claude-1.1  ") && lines[1].ends_with("   2  one"),
        "{text}"
    );
    assert!(
        lines[9].starts_with("you  ") && lines[0].starts_with("?  "),
        "{text}"
    );
    let (code, _, error) = run(&workspace, &["checkpoint", "blame", "c.key"]);
    assert!(
        code != 0 && error.contains(".clineignore"),
        "{code}: {error}"
    );
    let text = checkpoint(&["commit", "claude-1.1+", "--branch", "first", "-m", "First"]);
    assert!(text.ends_with(" on the new branch first\n"), "{text}");
}

#[test]
fn hover_shows_the_author_of_a_line_if_a_setting_says_so() {
    let workspace = project();
    for (is_on, expected) in [(true, json!("Written in claude-1.1")), (false, Value::Null)] {
        let mut initialize = workspace.initialize();
        initialize["initializationOptions"]["checkpoints"]["blameHover"] = json!(is_on);
        let mut server = Server::initialized(initialize);
        let mut hover = |name: &str, line: u32| {
            let document = json!({ "uri": workspace.uri(name) });
            let position = json!({ "line": line, "character": 0 });
            let params = json!({ "textDocument": document, "position": position });
            server.call("textDocument/hover", params)["contents"]["value"].clone()
        };
        assert_eq!(hover("a.txt", 1), expected);
        assert_eq!(hover("a.txt", 0), Value::Null, "it is unknown");
        assert_eq!(hover("c.key", 0), Value::Null, "it is denied");
    }
}
