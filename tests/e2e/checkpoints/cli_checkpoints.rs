//! `sightline checkpoint`: checkpoints without an editor.

mod adopt;
mod confirmation;
mod labels;
mod output;
mod paths;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use sightline_testing::git;

use crate::{
    checkpoints::restores::{interrupt, read},
    checkpoints::{each, id},
    harness::{Server, Workspace, finished, holds_null, program},
};

#[cfg(unix)]
use crate::harness::{is_alive, wait};

fn command(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = program();
    command
        .args(["checkpoint", arguments[0], "--storage"])
        .arg(workspace.data())
        .args(&arguments[1..])
        .current_dir(workspace.root())
        .env("HOME", workspace.data())
        .env("XDG_CONFIG_HOME", workspace.data().join("config"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null());
    command
}

/// Returns exit code, stdout and stderr.
fn run(workspace: &Workspace, arguments: &[&str]) -> (i32, String, String) {
    finished(command(workspace, arguments).output().unwrap())
}

/// Returns the `--json` result of a command that must succeed.
fn json_of(workspace: &Workspace, arguments: &[&str]) -> Value {
    let arguments = [&arguments[..1], &["--json"], &arguments[1..]].concat();
    let (code, text, error) = run(workspace, &arguments);
    assert_eq!(code, 0, "{arguments:?}: {error}");
    let result = serde_json::from_str(&text).unwrap();
    assert!(!holds_null(&result), "{result}");
    result
}

#[test]
fn a_session_at_the_command_line() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n"), ("src/b", "b\n")]);
    let (code, text, error) = run(&workspace, &["list"]);
    assert_eq!((code, &*text), (0, ""));
    assert!(error.contains("no checkpoints yet"), "{error}");
    let first = json_of(
        &workspace,
        &["create", "--label", "before", "--task", "t-1"],
    );
    assert_eq!(
        (&first["label"], &first["taskId"]),
        (&json!("before"), &json!("t-1"))
    );
    let short = &id(&first)[..8];

    workspace.write("a.txt", "one\ntwo\n");
    workspace.write("new.txt", "new\n");
    let (code, text, _) = run(&workspace, &["diff", short]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.split_whitespace().last().unwrap())
        .collect();
    assert_eq!(lines, ["a.txt", "new.txt"], "{text}");
    let (code, patch, _) = run(&workspace, &["diff", "last", "--patch", "--", "a.txt"]);
    assert_eq!(code, 0);
    assert!(
        patch.contains("\n+two\n") && !patch.contains("new.txt"),
        "{patch}"
    );
    assert!(
        !patch.contains('\u{1b}'),
        "colours, and no terminal: {patch}"
    );

    let (code, text, _) = run(&workspace, &["preview", "last"]);
    assert_eq!(code, 0);
    assert!(
        text.contains("write   a.txt") && text.contains("delete  new.txt"),
        "{text}"
    );
    let (code, same, _) = run(&workspace, &["restore", "last", "--dry-run"]);
    assert_eq!((code, same), (0, text));
    let (code, text, _) = run(&workspace, &["restore", "--yes", short, "a.txt"]);
    assert_eq!(code, 0);
    assert!(text.contains("1 path restored"), "{text}");
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "one\n"
    );
    assert!(workspace.path("new.txt").exists());
    let (code, _, error) = run(&workspace, &["preview", short, "a.txt"]);
    assert_eq!(code, 0);
    assert!(error.contains("nothing to change"), "{error}");
    let (code, text, _) = run(&workspace, &["undo", "--dry-run"]);
    let (heading, change) = text.split_once('\n').unwrap();
    assert!(heading.starts_with("Undo the restore of "), "{text}");
    assert_eq!((code, &change[..14]), (0, "write   a.txt "), "{text}");
    let (code, _, error) = run(&workspace, &["undo", "--yes"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "one\ntwo\n"
    );

    let (code, text, _) = run(&workspace, &["list"]);
    assert_eq!(code, 0);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(
        text.contains("t-1  before") && text.contains("before a restore"),
        "{text}"
    );
    let (code, text, _) = run(&workspace, &["stats"]);
    assert!(code == 0 && text.starts_with("3 checkpoints, "), "{text}");
    let (code, text, _) = run(&workspace, &["verify"]);
    assert!(code == 0 && text.contains("intact"), "{text}");
    let (code, text, _) = run(
        &workspace,
        &["prune", "--yes", "--keep", "1", "--older-than", "30d"],
    );
    assert!(
        code == 0 && text.starts_with("0 checkpoints removed"),
        "{text}"
    );
}

#[test]
fn exit_codes_are_those_of_the_protocol() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    let unknown = "0123456789012345678901234567890123456789";
    for (arguments, code) in [
        (vec!["diff", "last"], 0),
        (vec!["diff", "--exit-code", "last"], 0),
        (vec!["show", "last"], 0),
        (vec!["show", unknown], 3),
        (vec!["delete", unknown, "--yes"], 3),
        (vec!["delete", "last"], 2),
        (vec!["list", "--color", "loud"], 2),
        (vec!["diff"], 2),
        (vec!["diff", unknown], 3),
        (vec!["diff", "abcdef"], 3),
        (vec!["diff", "nonsense"], 3),
        (vec!["restore", unknown, "--yes"], 3),
        (vec!["restore", "last", "--yes"], 0),
        (vec!["restore", "last", "--dry-run"], 0),
        (vec!["restore", "last", "--yes", "--token", "stale"], 3),
        (vec!["restore", "last", "--yes", "../elsewhere"], 2),
        (vec!["undo", unknown, "--yes"], 3),
        (vec!["prune", "--yes"], 2),
        (vec!["prune", "--yes", "--older-than", "soon"], 2),
        (vec!["nonsense"], 2),
    ] {
        let (found, _, error) = run(&workspace, &arguments);
        assert_eq!(found, code, "{arguments:?}: {error}");
        assert!(found < 2 || !error.is_empty(), "{arguments:?}");
    }
}

#[test]
fn damage_is_a_negative_result() {
    // Most of the pack, so that it is damaged.
    let mut state = 1_u64;
    let digits = std::iter::repeat_with(|| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        format!("{:08x}", state >> 32)
    });
    let digits: String = digits.take(5000).collect();
    let workspace = Workspace::new(&[(".clineignore", ""), ("keys/a.txt", &digits)]);
    json_of(&workspace, &["create"]);
    let project = fs::read_dir(workspace.data().join("projects"));
    let project = project.unwrap().next().unwrap().unwrap().path();
    let packs = project.join("checkpoints.git/objects/pack");
    for entry in fs::read_dir(packs).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "pack")
        {
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        }
    }
    let (code, text, _) = run(&workspace, &["verify"]);
    assert!(
        code == 1 && text.contains("the file keys/a.txt is damaged"),
        "{code}: {text}"
    );
    // Later rules hide its name, even in recorded problems.
    workspace.write(".clineignore", "/keys/a.*\n");
    let (code, text, _) = run(&workspace, &["verify"]);
    assert!(
        code == 1 && text.contains("access rules deny 1 more damaged path"),
        "{code}: {text}"
    );
    let (code, healed, error) = run(&workspace, &["create"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("was damaged"), "{error}");
    for shown in [text, healed, error] {
        assert!(!shown.contains("a.txt"), "{shown}");
    }
}

#[test]
fn a_store_moves_to_another_machine() {
    let here = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let taken = json_of(&here, &["create", "--label", "moved"]);
    let remote = here.data().with_extension("remote.git");
    fs::create_dir_all(&remote).unwrap();
    git::run(&remote, &["init", "-q", "--bare"]);
    let remote = remote.to_str().unwrap();
    for pushed in ["1 checkpoint pushed\n", "0 checkpoints pushed\n"] {
        assert_eq!(
            run(&here, &["push", remote]),
            (0, pushed.to_owned(), String::new())
        );
    }
    let there = Workspace::new(&[(".clineignore", ""), ("a.txt", "other\n")]);
    let (code, text, error) = run(&there, &["fetch", remote]);
    assert_eq!((code, &*text), (0, "1 checkpoint fetched\n"), "{error}");
    let listed = json_of(&there, &["list"]);
    assert_eq!(listed["checkpoints"][0]["label"], "moved");
    assert_eq!(listed["checkpoints"][0]["id"], taken["id"]);
    let (code, ..) = run(&there, &["restore", "last", "--yes"]);
    assert_eq!(code, 0);
    assert_eq!(fs::read_to_string(there.path("a.txt")).unwrap(), "one\n");
    let (code, _, error) = run(&there, &["fetch", "/nowhere/at/all"]);
    assert!(code == 3 && error.lines().count() == 1, "{error}");
    assert!(
        error.contains("cannot fetch checkpoints: '/nowhere/at/all'"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn ending_a_transfer_ends_git_too() {
    if !Path::new("/proc/self/stat").exists() {
        eprintln!("skipped: this system has no /proc to see git end in");
        return;
    }
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    for signal in ["-TERM", "-INT"] {
        // A remote that never responds, reached through a child process of git.
        let pid_file = workspace.data().join(format!("pid{signal}"));
        let ssh = format!(
            "echo $$ >'{}.new' && mv '{0}.new' '{0}' && exec sleep 600;",
            pid_file.display()
        );
        let mut pushing = command(&workspace, &["push", "ssh://remote.invalid/store"])
            .env("GIT_SSH_COMMAND", ssh)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !pid_file.exists() {
            assert_eq!(pushing.try_wait().unwrap(), None);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let pid = fs::read_to_string(pid_file).unwrap();
        assert!(is_alive(pid.trim()));
        let sent = Command::new("kill")
            .args([signal, &pushing.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(wait(&mut pushing, "a transfer that was stopped"), 3);
        let text = std::io::read_to_string(pushing.stderr.unwrap()).unwrap();
        assert!(text.contains("cancelled"), "{text}");
        for _ in 0..500 {
            if !is_alive(pid.trim()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!is_alive(pid.trim()), "ssh still runs");
    }
}

#[test]
fn skipped_files_are_printed() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n"), ("b.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    workspace.write(".gitignore", "/a.txt\n");
    workspace.write("a.txt", "two\n");
    workspace.write("b.txt", "two\n");
    let both = ["restore", "last", "a.txt", "b.txt", "--yes"];
    let (code, text, error) = run(&workspace, &both);
    assert_eq!(code, 0, "{error}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("Restore to checkpoint "), "{text}");
    assert!(
        lines[1].starts_with("1 path restored, 1 skipped; undo with `sightline checkpoint undo "),
        "{text}"
    );
    assert!(lines[2].starts_with("skip    a.txt  "), "{text}");
    assert!(lines[2].contains("ignored"), "{text}");
    let (code, text, _) = run(&workspace, &["restore", "last", "a.txt", "--yes"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("Restore to checkpoint "), "{text}");
    assert!(text.contains("\n0 paths restored, 1 skipped"), "{text}");
}

#[test]
fn nothing_to_undo_is_a_negative_result_and_an_empty_list_is_not() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let nothing = |arguments: &[&str], expected_code: i32, expected: &str| {
        let (code, text, error) = run(&workspace, arguments);
        assert_eq!((code, &*text), (expected_code, ""), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    nothing(&["undo", "--dry-run"], 1, "no restore to undo");
    nothing(&["list", "--task", "nope"], 0, "no checkpoints yet");
    json_of(&workspace, &["create", "--task", "t"]);
    nothing(&["undo", "--yes"], 1, "no restore to undo");
    nothing(
        &["list", "--task", "nope"],
        0,
        "no checkpoints of task nope",
    );
}

#[test]
fn an_interrupted_restore_is_completed_first() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n"), ("b.txt", "one\n")]);
    let taken = json_of(&workspace, &["create"]);
    let taken = id(&taken);
    // Each with its exit code: there is no difference once the restore is completed.
    let commands: [(&[&str], i32); 13] = [
        (&["diff", "--exit-code", taken], 0),
        (&["diff", "--patch", "--exit-code", taken], 0),
        (&["preview", taken], 0),
        (&["list"], 0),
        (&["stats"], 0),
        (&["verify"], 0),
        (&["create"], 0),
        (&["restore", "--dry-run", taken], 0),
        (&["restore", "--yes", taken], 0),
        (&["undo", "--dry-run"], 1),
        (&["prune", "--yes", "--keep", "100"], 0),
        (&["prune", "--dry-run", "--keep", "100"], 0),
        (&["push", "/nowhere/at/all"], 3),
    ];
    for (command, expected) in commands {
        workspace.write("a.txt", "two\n");
        workspace.write("b.txt", "two\n");
        let before = json_of(&workspace, &["create"]);
        interrupt(&workspace, taken, id(&before));
        let (code, text, error) = run(&workspace, command);
        assert_eq!(code, expected, "{command:?}: {text}{error}");
        let text = fs::read_to_string(workspace.path("b.txt")).unwrap();
        assert_eq!(text, "one\n", "{command:?}");
        assert!(error.contains("was completed"), "{command:?}: {error}");
    }
}

#[test]
fn nothing_to_restore_or_undo_is_success() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let taken = json_of(&workspace, &["create"]);
    workspace.write("a.txt", "two\n");
    let restored = json_of(&workspace, &["restore", "--yes", id(&taken)]);
    let undo_id = restored["undoId"].as_str().unwrap();
    let up_to_date = |arguments: &[&str]| {
        let (code, text, error) = run(&workspace, arguments);
        let text = format!("{text}{error}");
        assert!(
            code == 0 && text.contains("already up to date"),
            "{arguments:?}: {code} {text}"
        );
    };
    up_to_date(&["restore", "--yes", id(&taken)]);
    up_to_date(&["restore", "--dry-run", id(&taken)]);
    json_of(&workspace, &["undo", "--yes"]);
    up_to_date(&["undo", "--yes", undo_id]);
    up_to_date(&["undo", "--dry-run", undo_id]);
    // Without an id, the undo is undone.
    let (_, text, error) = run(&workspace, &["undo", "--dry-run"]);
    assert!(
        format!("{text}{error}").contains("this undoes an undo"),
        "{text}{error}"
    );
}

#[test]
fn the_undo_of_an_undo_says_how_to_undo_an_earlier_restore() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let one = json_of(&workspace, &["create"]);
    workspace.write("a.txt", "two\n");
    let two = json_of(&workspace, &["create"]);
    workspace.write("a.txt", "three\n");
    let restore = |taken: &Value| {
        let restored = json_of(&workspace, &["restore", "--yes", id(taken)]);
        restored["undoId"].as_str().unwrap()[..8].to_owned()
    };
    let warning = || {
        let (_, text, error) = run(&workspace, &["undo", "--dry-run"]);
        let text = format!("{text}{error}");
        let found = text.lines().find(|line| line.contains("undoes an undo"));
        found.map(str::to_owned)
    };
    let first = restore(&two);
    restore(&one);
    assert_eq!(warning(), None);
    json_of(&workspace, &["undo", "--yes"]);
    let expected = format!("To undo an earlier restore, undo {first}");
    assert!(warning().unwrap().ends_with(&expected), "{:?}", warning());
    // The restore is done again, so the next undo undoes it again.
    json_of(&workspace, &["undo", "--yes"]);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "one\n");
    assert_eq!(warning(), None);
    json_of(&workspace, &["undo", "--yes"]);
    json_of(&workspace, &["undo", "--yes", &first]);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "three\n");
    // There is no earlier one.
    assert!(
        warning().unwrap().ends_with("done again"),
        "{:?}",
        warning()
    );
}

#[test]
fn checkpoints_pruned_by_another_process_are_not_found() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    // The server has read all of them; some are pruned while it reads them again.
    for round in 0..8 {
        for number in 0..50 {
            workspace.write(&format!("d{number}/f"), &format!("{round} {number}\n"));
        }
        let old = server.call("sightline/createCheckpoint", json!({}));
        workspace.write("d1/f", "later\n");
        let new = server.call("sightline/createCheckpoint", json!({}));
        let old = json!({ "id": old["id"], "from": old["id"] });
        server.call("sightline/previewRestore", old.clone());
        let mut pruning = command(&workspace, &["prune", "--yes", "--keep", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        loop {
            let is_over = pruning.try_wait().unwrap();
            for method in ["previewRestore", "diffCheckpoints"] {
                let asked = server.request(&format!("sightline/{method}"), old.clone());
                match asked.unwrap() {
                    Ok(_) => assert_eq!(is_over, None, "{method}: it is gone"),
                    Err(error) => assert_eq!(error["data"]["kind"], "notFound", "{error}"),
                }
            }
            if let Some(status) = is_over {
                assert!(status.success());
                break;
            }
        }
        let error = server.refused("sightline/restoreCheckpoint", old);
        assert_eq!(error["data"]["kind"], "notFound", "{error}");
        let listed = server.call("sightline/listCheckpoints", json!({}));
        let listed = listed["checkpoints"].as_array().unwrap();
        assert_eq!(each(listed, "id"), [id(&new)]);
    }
}
