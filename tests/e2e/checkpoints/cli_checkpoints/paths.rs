//! Path arguments, and commands without anything to act on.

use super::*;

#[test]
fn a_path_that_matches_nothing_is_a_negative_result() {
    let workspace = Workspace::new(&[
        (".clineignore", "secret\n"),
        ("a.txt", "one\n"),
        ("src/b", "b\n"),
    ]);
    let taken = json_of(&workspace, &["create"]);
    workspace.write("a.txt", "two\n");
    let listed = json_of(&workspace, &["list"]);
    let message =
        "path \"nosuch/path\" did not match any file in the checkpoint or in the workspace";
    for arguments in [
        &["restore", "last", "--yes", "a.txt", "nosuch/path"][..],
        &["restore", "last", "--dry-run", "nosuch/path"],
        &["restore", "last", "nosuch/path"],
        &["preview", "last", "nosuch/path"],
        &["diff", "last", "--", "nosuch/path"],
        &["diff", "last", "--patch", "--", "nosuch/path"],
        &["diff", "last", "last", "--", "nosuch/path"],
    ] {
        let (code, text, error) = run(&workspace, arguments);
        assert_eq!((code, &*text), (1, ""), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    // A file is no folder, and an empty path is not the current folder.
    for arguments in [
        &["restore", "last", "--yes"][..],
        &["preview", "last"],
        &["diff", "last", "--"],
    ] {
        for (path, expected, message) in [
            ("a.txt/", 1, "path \"a.txt/\" did not match any file"),
            ("", 2, "a path is empty; `.` is the current folder"),
        ] {
            let (code, text, error) = run(&workspace, &[arguments, &[path]].concat());
            assert_eq!((code, &*text), (expected, ""), "{arguments:?}: {error}");
            assert!(error.contains(message), "{arguments:?}: {error}");
        }
    }
    let json = ["restore", "last", "--json", "--yes", "nosuch/path"];
    let (code, _, error) = run(&workspace, &json);
    let error: Value = serde_json::from_str(&error).unwrap();
    let expected = json!({ "kind": "notFound", "message": message, "path": "nosuch/path" });
    assert_eq!((code, &error["error"]), (1, &expected));
    assert_eq!(json_of(&workspace, &["list"]), listed, "nothing was done");

    let mut server = Server::start(&workspace);
    let paths = json!(["a.txt", "nosuch/path"]);
    let taken = id(&taken);
    for (method, params) in [
        ("previewRestore", json!({ "id": taken, "paths": paths })),
        ("restoreCheckpoint", json!({ "id": taken, "paths": paths })),
        ("diffCheckpoints", json!({ "from": taken, "paths": paths })),
    ] {
        let error = server.refused(&format!("sightline/{method}"), params);
        assert_eq!(error["data"]["kind"], "notFound", "{method}: {error}");
        assert_eq!(error["data"]["path"], "nosuch/path", "{method}: {error}");
    }
    // Whether a denied path exists is not told.
    for (path, is_there) in [("secret", false), ("secret", true)] {
        if is_there {
            workspace.write("secret", "s\n");
        }
        let params = json!({ "from": taken, "paths": [path] });
        let compared = server.call("sightline/diffCheckpoints", params);
        assert_eq!(compared["files"], json!([]));
    }
}

#[test]
fn a_path_that_a_restore_leaves_alone_is_a_negative_result() {
    let workspace = Workspace::new(&[
        (".clineignore", "secret\n"),
        (".gitignore", "old/\nbuilt/\n"),
        ("a.txt", "one\n"),
        ("secret", "s\n"),
        ("old/x", "x\n"),
        ("node_modules/y", "y\n"),
    ]);
    let taken = json_of(&workspace, &["create"]);
    let taken = id(&taken);
    workspace.write("a.txt", "two\n");
    workspace.write("built/z", "z\n");
    let listed = json_of(&workspace, &["list"]);
    let mut server = Server::start(&workspace);
    for (path, why, kind) in [
        ("secret", ".clineignore:1", "accessDenied"),
        (".env", "secret", "accessDenied"),
        ("old", "(ignored)", "notFound"),
        ("old/x", "(ignored)", "notFound"),
        ("node_modules", "(excluded", "notFound"),
        ("built", "(ignored or skipped)", "notFound"),
    ] {
        workspace.write(".env", "A=1\n");
        for command in [
            &["restore", "last", "--yes", path][..],
            &["restore", "last", "--yes", "a.txt", path],
            &["restore", "last", "--dry-run", path],
            &["preview", "last", path],
        ] {
            let (code, text, error) = run(&workspace, command);
            assert_eq!((code, &*text), (1, ""), "{command:?}: {error}");
            assert!(
                error.contains(why) && error.contains(path),
                "{command:?}: {error}"
            );
        }
        for method in ["previewRestore", "restoreCheckpoint"] {
            let params = json!({ "id": taken, "paths": [path] });
            let error = server.refused(&format!("sightline/{method}"), params);
            assert_eq!(error["data"]["kind"], kind, "{method}: {error}");
            assert_eq!(error["data"]["path"], path, "{method}: {error}");
        }
    }
    assert_eq!(json_of(&workspace, &["list"]), listed, "nothing was done");
    // A new file is deleted, and one that is as in the checkpoint stays.
    workspace.write("new", "n\n");
    for (path, said) in [
        ("new", "1 path restored"),
        (".gitignore", "already up to date"),
    ] {
        let (code, text, error) = run(&workspace, &["restore", "last", "--yes", path]);
        assert!(code == 0 && text.contains(said), "{path}: {text}{error}");
    }
}

#[test]
fn paths_are_relative_to_the_current_folder_or_to_the_workspace() {
    let workspace = Workspace::new(&[
        (".clineignore", ""),
        ("both", "one\n"),
        ("src/deep/both", "one\n"),
        ("src/deep/file", "one\n"),
        ("src/other", "one\n"),
    ]);
    json_of(&workspace, &["create"]);
    let below = |arguments: &[&str]| {
        let mut command = command(&workspace, arguments);
        let output = command.current_dir(workspace.path("src/deep")).output();
        let output = output.unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), error)
    };
    let read = |path: &str| fs::read_to_string(workspace.path(path)).unwrap_or_default();
    for (written, restored) in [
        ("file", "src/deep/file"),
        ("src/deep/file", "src/deep/file"),
        ("src/other", "src/other"),
        ("../other", "src/other"),
        ("src", "src/other"),
        ("both", "src/deep/both"),
    ] {
        for is_deleted in [false, true] {
            let files = ["both", "src/deep/both", "src/deep/file", "src/other"];
            for path in files {
                workspace.write(path, "two\n");
            }
            if is_deleted {
                fs::remove_file(workspace.path(restored)).unwrap();
            }
            let (code, error) = below(&["restore", "last", "--yes", written]);
            assert_eq!(code, 0, "{written}: {error}");
            assert_eq!(read(restored), "one\n", "{written}");
            assert_eq!(read("both"), "two\n", "{written}");
        }
    }
    workspace.write("src/other", "two\n");
    let other = ["diff", "last", "--exit-code", "--", "src/other"];
    assert_eq!(below(&other).0, 1);
    let (code, error) = below(&["restore", "last", "--yes", "src/nosuch"]);
    assert!(
        code == 1 && error.contains("path \"src/nosuch\""),
        "{error}"
    );
    assert_eq!(
        below(&["restore", "last", "--yes", "../../../elsewhere"]).0,
        2
    );
}

/// A file above the size limit, which the agent deleted.
#[test]
fn a_restore_names_what_no_checkpoint_can_bring_back() {
    let workspace = Workspace::new(&[
        (".clineignore", ""),
        ("a.txt", "one\n"),
        ("big", "too large"),
    ]);
    let settings = workspace.data().join("config/sightline/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, "checkpoints.maxFileSize = 5\n").unwrap();
    json_of(&workspace, &["create"]);
    fs::remove_file(workspace.path("big")).unwrap();
    let reason = "missing, and not saved in the checkpoint (9 bytes, above the limit";
    for paths in [&[][..], &["big"]] {
        let arguments = [&["restore", "last", "--yes"], paths].concat();
        let (code, text, error) = run(&workspace, &arguments);
        assert_eq!(code, 1, "{text}{error}");
        assert!(text.contains(reason), "{text}{error}");
        assert!(!text.contains("up to date"), "{text}{error}");
    }
}

#[test]
fn without_a_terminal_nothing_to_do_needs_no_confirmation() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let is = |arguments: &[&str], expected: i32, message: &str| {
        let (code, text, error) = run(&workspace, arguments);
        assert_eq!(code, expected, "{arguments:?}: {error}");
        assert!(format!("{text}{error}").contains(message), "{text}{error}");
    };
    is(&["restore", "last"], 1, "no checkpoints yet");
    is(&["diff", "last"], 1, "no checkpoints yet");
    is(&["undo"], 1, "no restore to undo");
    json_of(&workspace, &["create"]);
    is(&["restore", "last"], 0, "already up to date");
    // It says with which state.
    is(&["restore", "last", "--yes"], 0, "Restore to checkpoint ");
    is(
        &["restore", "last", "--dry-run"],
        0,
        "Restore to checkpoint ",
    );
    is(&["prune", "--keep", "5"], 0, "0 checkpoints removed");
    is(&["undo"], 1, "no restore to undo");
    workspace.write("a.txt", "two\n");
    is(&["restore", "last"], 2, "cannot ask for confirmation");
    // `last` is never an undo point.
    is(&["restore", "last", "--yes"], 0, "1 path restored");
    let listed = json_of(&workspace, &["list"]);
    let first = id(&listed["checkpoints"][1]);
    is(&["delete", "--yes", first], 0, "1 checkpoint removed");
    is(&["restore", "last"], 1, "all checkpoints are undo points");
    // An id that matches nothing is the same failure in each command.
    let digits = "0123456789".repeat(4);
    for unknown in ["bogus", "9", "abcdef", "#7", &digits] {
        let message = format!(
            "no checkpoint matches {unknown:?} (use the name of a turn, at least 4 digits of an id, or `last`); `sightline checkpoint list` shows all"
        );
        for command in [
            "restore", "undo", "show", "diff", "preview", "delete", "label",
        ] {
            let text = if command == "label" { &["x"][..] } else { &[] };
            is(&[&[command, unknown], text].concat(), 3, &message);
        }
    }
}
