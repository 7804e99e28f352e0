//! `sightline checkpoint label`.

use super::*;

fn labels(workspace: &Workspace) -> Vec<Value> {
    let listed = json_of(workspace, &["list"]);
    let listed = listed["checkpoints"].as_array().unwrap();
    listed.iter().map(|one| one["label"].clone()).collect()
}

#[test]
fn a_label_is_set_and_removed() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let first = json_of(&workspace, &["create", "--label", "first"]);
    let second = json_of(&workspace, &["create"]);
    let (code, text, error) = run(&workspace, &["label", "last", "two\nlines \u{202e}"]);
    assert_eq!(code, 0, "{error}");
    assert!(text.starts_with(&id(&second)[..8]), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(
        labels(&workspace),
        [json!("two\nlines \u{202e}"), json!("first")]
    );
    // The id stays.
    let labelled = json_of(&workspace, &["label", &id(&first)[..8], "other"]);
    assert_eq!(labelled["id"], first["id"]);
    assert_eq!(labelled["label"], "other");
    let labelled = json_of(&workspace, &["label", "--remove", id(&first)]);
    assert!(labelled.get("label").is_none(), "{labelled}");
    assert_eq!(labels(&workspace)[1], Value::Null);
    assert_eq!(json_of(&workspace, &["verify"])["ok"], true);
    let long = "x".repeat(5000);
    for (arguments, code) in [
        (&["label", "last"][..], 2),
        (&["label", "last", "text", "--remove"], 2),
        (&["label", "last", &long], 3),
        (&["label", "0123456789", "text"], 3),
        (
            &["label", "0123456789012345678901234567890123456789", "a"],
            3,
        ),
    ] {
        assert_eq!(run(&workspace, arguments).0, code, "{arguments:?}");
    }
}

#[test]
fn a_damaged_line_hides_only_its_label() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    json_of(&workspace, &["create"]);
    json_of(&workspace, &["label", "last", "mine"]);
    let project = fs::read_dir(workspace.data().join("projects"));
    let project = project.unwrap().next().unwrap().unwrap().path();
    let file = project.join("checkpoints.git/labels");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("nonsense\n{text}0123 \"x\"\n")).unwrap();
    assert_eq!(labels(&workspace), ["mine"]);
    json_of(&workspace, &["label", "last", "again"]);
    assert_eq!(labels(&workspace), ["again"]);
    // It is removed with its checkpoint.
    json_of(&workspace, &["create"]);
    json_of(&workspace, &["label", "last", "new"]);
    let prune = ["prune", "--yes", "--keep", "1", "--labelled"];
    let (code, _, error) = run(&workspace, &prune);
    assert_eq!(code, 0, "{error}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("again") && text.contains("new"), "{text}");
}

#[test]
fn every_server_knows_the_label_at_once() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let taken = json_of(&workspace, &["create"]);
    let mut servers = [Server::start(&workspace), Server::start(&workspace)];
    let listed = |server: &mut Server| {
        let listed = server.call("sightline/listCheckpoints", json!({}));
        listed["checkpoints"][0]["label"].clone()
    };
    for server in &mut servers {
        assert_eq!(listed(server), Value::Null);
    }
    let params = json!({ "id": taken["id"], "label": "by request" });
    let labelled = servers[0].call("sightline/labelCheckpoint", params);
    assert_eq!(labelled["label"], "by request");
    assert_eq!(listed(&mut servers[1]), "by request");
    let command = json!({
        "command": "sightline.labelCheckpoint",
        "arguments": [{ "id": taken["id"], "label": "by command" }],
    });
    servers[1].call("workspace/executeCommand", command);
    assert_eq!(listed(&mut servers[0]), "by command");
    assert_eq!(labels(&workspace), ["by command"]);
    // An empty label is none.
    let params = json!({ "id": taken["id"], "label": " " });
    let labelled = servers[0].call("sightline/labelCheckpoint", params);
    assert!(labelled.get("label").is_none(), "{labelled}");
}

#[test]
fn a_label_protects_from_pruning() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "0\n")]);
    let mut ids = Vec::new();
    for number in 0..4 {
        workspace.write("a.txt", &format!("{number}\n"));
        ids.push(id(&json_of(&workspace, &["create"])).to_owned());
    }
    json_of(&workspace, &["label", &ids[0], "it works"]);
    let left = |workspace: &Workspace| -> Vec<String> {
        let listed = json_of(workspace, &["list"]);
        let all = listed["checkpoints"].as_array().unwrap();
        each(all, "id").into_iter().map(str::to_owned).collect()
    };
    for limit in [
        ["--keep", "1"],
        ["--older-than", "0s"],
        ["--max-bytes", "1"],
    ] {
        let (code, text, _) = run(&workspace, &[&["prune", "--dry-run"], &limit[..]].concat());
        let kept = "1 checkpoint with a label kept; --labelled removes them too";
        assert!(code == 0 && text.contains(kept), "{limit:?}: {text}");
        let dry = [&["prune", "--dry-run"], &limit[..]].concat();
        let pruned = json_of(&workspace, &dry);
        assert_eq!(pruned["keptLabelled"], 1, "{limit:?}: {pruned}");
        let removed = pruned["checkpoints"].as_array().unwrap();
        assert!(!removed.contains(&json!(ids[0])), "{limit:?}: {pruned}");
        let all = json_of(&workspace, &[&dry[..], &["--labelled"]].concat());
        assert!(
            all["checkpoints"]
                .as_array()
                .unwrap()
                .contains(&json!(ids[0]))
        );
        assert_eq!(all.get("keptLabelled"), None);
    }
    let pruned = json_of(&workspace, &["prune", "--yes", "--keep", "1"]);
    assert_eq!(
        (&pruned["removed"], &pruned["keptLabelled"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(left(&workspace), [ids[3].clone(), ids[0].clone()]);
    let pruned = json_of(&workspace, &["prune", "--yes", "--keep", "1", "--labelled"]);
    assert_eq!(pruned["removed"], 1);
    // One that is named is removed.
    json_of(&workspace, &["label", &ids[3], "last"]);
    json_of(&workspace, &["delete", "--yes", &ids[3]]);
    assert_eq!(left(&workspace), Vec::<String>::new());
}
