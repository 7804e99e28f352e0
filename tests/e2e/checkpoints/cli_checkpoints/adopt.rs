//! `sightline checkpoint adopt`: the checkpoints of a folder that was moved.

use std::path::PathBuf;

use sightline_testing::files::{read, write};

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

/// Other clones and worktrees have the same first commit.
#[test]
fn the_store_of_another_clone_is_not_offered() {
    let workspace = Workspace::new(&[]);
    let first = project(&workspace, "first");
    let offers = |folder: &Path| at(&workspace, folder, &["adopt", "--dry-run"]).0 == 0;
    let clone = workspace.path("clone");
    git::run(&first, &["clone", "-q", ".", clone.to_str().unwrap()]);
    let worktree = workspace.path("worktree");
    git::run(
        &first,
        &["worktree", "add", "-q", worktree.to_str().unwrap()],
    );
    assert!(!offers(&clone) && !offers(&worktree), "the folder exists");
    assert_eq!(at(&workspace, &worktree, &["create"]).0, 0);
    // Times have seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(at(&workspace, &first, &["create"]).0, 0);
    let knows_creation = fs::metadata(&clone).unwrap().created().is_ok();
    // Another folder at its path has its store.
    let moved = workspace.path("moved");
    fs::rename(&first, &moved).unwrap();
    if knows_creation {
        assert!(!offers(&clone), "it existed at the last checkpoint");
    }
    assert!(!offers(&worktree), "a linked worktree is not the main one");
    assert!(offers(&moved));
    fs::create_dir(&first).unwrap();
    assert!(offers(&moved), "its own folder is elsewhere");
    let late = workspace.path("late");
    git::run(&moved, &["clone", "-q", ".", late.to_str().unwrap()]);
    assert!(
        !offers(&late),
        "the store belongs to the folder at its path"
    );
    fs::remove_dir(&first).unwrap();
    assert!(offers(&late), "the folder is gone");
    fs::remove_dir_all(&worktree).unwrap();
    assert!(
        offers(&late),
        "the store of a linked worktree is another one"
    );
    // A path that cannot be inspected may lead to the folder.
    let inside = project(&workspace, "above/inside");
    let target = workspace.path("target");
    git::run(&inside, &["clone", "-q", ".", target.to_str().unwrap()]);
    fs::rename(workspace.path("above"), workspace.path("away")).unwrap();
    assert!(offers(&target));
    std::os::unix::fs::symlink("above", workspace.path("above")).unwrap();
    assert!(!offers(&target));
}

/// A process that is killed at any call leaves the old store whole, or has adopted all of it.
#[test]
fn a_killed_adoption_is_none_or_complete() {
    if !crate::lifecycle::faults::has_strace() {
        return crate::lifecycle::faults::skipped("strace is not installed, or may not trace");
    }
    let workspace = Workspace::new(&[]);
    let old = project(&workspace, "old");
    for text in ["two\n", "three\n"] {
        fs::write(old.join("a.txt"), text).unwrap();
        assert_eq!(
            at(&workspace, &old, &["create", "--label", text.trim()]).0,
            0
        );
    }
    assert_eq!(at(&workspace, &old, &["restore", "last", "--yes"]).0, 0);
    fs::write(old.join("a.txt"), "four\n").unwrap();
    assert_eq!(at(&workspace, &old, &["restore", "last", "--yes"]).0, 0);
    let before = ids_at(&workspace, &old);
    let new = workspace.path("new");
    fs::rename(&old, &new).unwrap();
    assert_eq!(at(&workspace, &new, &["create"]).0, 0);
    let created = ids_at(&workspace, &new);
    let all = [created.clone(), before.clone()].concat();
    let data = read(&workspace.data());
    let restored = fs::read(new.join("a.txt")).unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let (mut none, mut complete) = (0, 0);
    for call in [
        "linkat", "rename", "unlinkat", "unlink", "rmdir", "mkdir", "fsync", "openat",
    ] {
        let step = if call == "openat" { 9 } else { 1 };
        for nth in (1..).step_by(step) {
            fs::remove_dir_all(workspace.data()).unwrap();
            for (name, content) in &data {
                write(&workspace.data().join(name), content);
            }
            fs::write(new.join("a.txt"), &restored).unwrap();
            let adopt = command(&workspace, &["adopt", "--yes"]);
            let mut strace = Command::new("strace");
            strace
                .args(["-f", "-qq", "-e", &format!("trace={call}"), "-e"])
                .arg(format!("inject={call}:signal=SIGKILL:when={nth}"))
                .arg("-o")
                .arg(log.path())
                .arg(adopt.get_program())
                .args(adopt.get_args())
                .current_dir(&new);
            for (name, value) in adopt.get_envs() {
                strace.env(name, value.unwrap_or_default());
            }
            let _ = strace.output().unwrap();
            if !fs::read_to_string(log.path()).unwrap().contains("SIGKILL") {
                break;
            }
            let what = format!("{call} {nth}");
            let found = ids_at(&workspace, &new);
            assert!(found == created || found == all, "{what}: {found:?}");
            if found == created {
                none += 1
            } else {
                complete += 1
            }
            let (code, _, error) = at(&workspace, &new, &["adopt", "--yes"]);
            assert!(code < 2, "{what}: {error}");
            assert_eq!(ids_at(&workspace, &new), all, "{what}");
            assert_eq!(at(&workspace, &new, &["verify"]).0, 0, "{what}");
            let (_, listed, _) = at(&workspace, &new, &["list"]);
            assert!(listed.contains("two") && listed.contains("three"), "{what}");
            let (code, _, error) = at(&workspace, &new, &["undo", "--yes"]);
            assert_eq!(code, 0, "{what}: {error}");
            assert_eq!(fs::read_to_string(new.join("a.txt")).unwrap(), "four\n");
            assert_eq!(stores(&workspace).len(), 1, "{what}");
        }
    }
    println!("{none} without, {complete} with the checkpoints");
    assert!(none > 5 && complete > 3, "{none}, {complete}");
}

#[test]
fn in_a_folder_without_checkpoints_those_of_the_folder_above_are_named() {
    let workspace = Workspace::new(&[("sub/a.txt", "one\n")]);
    let (code, _, error) = at(&workspace, &workspace.root(), &["create"]);
    assert_eq!(code, 0, "{error}");
    let sub = workspace.path("sub");
    for (arguments, expected) in [
        (&["restore", "last"][..], 1),
        (&["restore", "claude-1.1", "--yes"], 3),
        (&["preview", "last"], 1),
        (&["undo"], 1),
        (&["diff", "last"], 1),
        (&["show", "last"], 1),
    ] {
        let (code, _, error) = at(&workspace, &sub, arguments);
        assert_eq!(code, expected, "{arguments:?}: {error}");
        assert!(error.contains("those of the folder above"), "{error}");
    }
}
