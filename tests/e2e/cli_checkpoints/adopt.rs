//! `sightline checkpoint adopt`: the checkpoints of a folder that was moved.

use std::path::PathBuf;

use super::*;

/// Runs a checkpoint command in a folder with the data of the workspace.
fn at(workspace: &Workspace, folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    finished(
        command(workspace, arguments)
            .current_dir(folder)
            .output()
            .unwrap(),
    )
}

fn ids_at(workspace: &Workspace, folder: &Path) -> Vec<String> {
    let (code, text, error) = at(workspace, folder, &["list", "--json"]);
    assert_eq!(code, 0, "{error}");
    let listed: Value = serde_json::from_str(&text).unwrap();
    let all = listed["checkpoints"].as_array().unwrap();
    each(all, "id").into_iter().map(str::to_owned).collect()
}

fn stores(workspace: &Workspace) -> Vec<String> {
    let projects = fs::read_dir(workspace.data().join("projects")).unwrap();
    let names = projects.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Creates a repository with a commit and a checkpoint below the workspace.
fn project(workspace: &Workspace, name: &str) -> PathBuf {
    let folder = workspace.path(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.txt"), "one\n").unwrap();
    git::run(&folder, &["init", "-q"]);
    git::run(&folder, &["add", "-A"]);
    git::run(&folder, &["commit", "-qm", name]);
    let (code, _, error) = at(workspace, &folder, &["create"]);
    assert_eq!(code, 0, "{error}");
    folder
}

#[test]
fn the_checkpoints_of_a_moved_folder_are_adopted() {
    let workspace = Workspace::new(&[]);
    let old = project(&workspace, "old");
    let run = |folder: &Path, arguments: &[&str]| at(&workspace, folder, arguments);
    run(&old, &["label", "last", "it works"]);
    fs::write(old.join("a.txt"), "two\n").unwrap();
    assert_eq!(run(&old, &["restore", "last", "--yes"]).0, 0);
    let before = ids_at(&workspace, &old);
    assert_eq!(before.len(), 2);
    assert_eq!(run(&old, &["adopt", "--yes"]).0, 1, "nothing to adopt");

    let moved = workspace.path("new");
    fs::rename(&old, &moved).unwrap();
    let store = stores(&workspace).remove(0);
    let hint = format!(
        "2 checkpoints of {}, which no longer exists, may belong to this folder: `sightline checkpoint adopt`",
        old.display()
    );
    let (code, _, error) = run(&moved, &["list"]);
    assert!(code == 0 && error.contains(&hint), "{error}");
    // A checkpoint that is created first is kept.
    let (code, _, error) = run(&moved, &["create"]);
    assert!(code == 0 && error.contains(&hint), "{error}");
    let created = ids_at(&workspace, &moved);
    let (code, _, error) = run(&moved, &["adopt"]);
    assert!(code == 2 && error.contains("--yes"), "{error}");
    let (code, _, error) = run(&moved, &["adopt", "--dry-run"]);
    assert!(code == 0 && error.contains(&store), "{error}");
    assert_eq!(ids_at(&workspace, &moved), created, "nothing was adopted");

    let (code, text, error) = run(&moved, &["adopt", "--yes"]);
    assert_eq!((code, &*text), (0, "2 checkpoints adopted\n"), "{error}");
    assert_eq!(ids_at(&workspace, &moved), [created, before].concat());
    assert!(!stores(&workspace).contains(&store));
    assert_eq!(run(&moved, &["verify"]).0, 0);
    let (_, text, _) = run(&moved, &["list"]);
    assert!(text.contains("it works"), "{text}");
    // The undo of the restore at the old place.
    fs::write(moved.join("later"), "later\n").unwrap();
    let (code, _, error) = run(&moved, &["undo", "--yes"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(fs::read_to_string(moved.join("a.txt")).unwrap(), "two\n");
    assert!(moved.join("later").exists());
    assert_eq!(run(&moved, &["adopt", "--yes"]).0, 1);
}

#[test]
fn a_moved_folder_is_recognized_by_its_first_commit() {
    let workspace = Workspace::new(&[]);
    let first = project(&workspace, "first");
    let second = workspace.path("second");
    let copy = |to: &Path| {
        let from = workspace.path("original");
        let copied = Command::new("cp").arg("-r").arg(from).arg(to).status();
        assert!(copied.unwrap().success());
    };
    fs::rename(&first, workspace.path("original")).unwrap();
    copy(&second);
    assert_eq!(at(&workspace, &second, &["create"]).0, 0);
    fs::remove_dir_all(&second).unwrap();
    let unrelated = project(&workspace, "unrelated");
    assert_eq!(at(&workspace, &unrelated, &["adopt", "--yes"]).0, 1);
    // Two stores match: nothing is chosen.
    let new = workspace.path("new");
    copy(&new);
    fs::remove_dir_all(workspace.path("original")).unwrap();
    let (code, text, error) = at(&workspace, &new, &["adopt", "--yes"]);
    assert_eq!((code, &*text), (1, ""), "{error}");
    let names = stores(&workspace);
    for name in ["first-", "second-"] {
        let name = names.iter().find(|store| store.starts_with(name)).unwrap();
        assert!(error.contains(name), "{error}");
        let (code, text, error) = at(&workspace, &new, &["adopt", name, "--yes"]);
        assert_eq!((code, &*text), (0, "1 checkpoint adopted\n"), "{error}");
    }
    assert_eq!(ids_at(&workspace, &new).len(), 2);
    // The store of a folder that exists is not taken.
    let name = names.iter().find(|store| store.starts_with("unrelated-"));
    let (code, _, error) = at(&workspace, &new, &["adopt", name.unwrap(), "--yes"]);
    assert!(code == 3 && error.contains("still exists"), "{error}");
    assert_eq!(at(&workspace, &new, &["adopt", "nosuch", "--yes"]).0, 3);
}
