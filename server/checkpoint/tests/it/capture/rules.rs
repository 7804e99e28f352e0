//! Rules that apply to a capture.

use super::*;

#[test]
fn ignored_denied_and_excluded_entries_are_not_captured() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.log\n/out/\n!keep.log\n");
    bench.write(".clineignore", "secret/\n*.key\n");
    for path in [
        "a.log",
        "keep.log",
        "out/x",
        "sub/out/x",
        "secret/plan",
        "sub/a.key",
        "node_modules/m/index.js",
        "sub/node_modules/x",
        "Cargo.lock",
        ".vscode/settings.json",
    ] {
        bench.write(path, path);
    }
    bench.write("sub/.gitignore", "*.tmp\n.gitignore\n");
    bench.write("sub/b.tmp", "");
    let checkpoint = bench.create();
    assert_eq!(
        bench.files(&checkpoint),
        [
            ".gitignore",
            ".vscode/settings.json",
            "Cargo.lock",
            "keep.log",
            "sub/out/x"
        ]
    );
    let reason = "excluded by checkpoints.exclude";
    assert_eq!(
        reasons(&checkpoint),
        [("node_modules", reason), ("sub/node_modules", reason)]
    );
    // Not even as an unreachable object.
    let key = run(git(&bench.parent).current_dir(&bench.ws).args([
        "hash-object",
        "--no-filters",
        "sub/a.key",
    ]));
    let objects = bench.git_store(&["cat-file", "--batch-all-objects", "--batch-check"]);
    assert!(!objects.contains(key.trim()));
}

#[test]
fn changed_rules_apply_to_cached_entries() {
    let mut bench = Bench::new();
    for path in ["a.log", "b.txt", "deep/c.log", "deep/out/d.txt"] {
        bench.write(path, path);
    }
    let all = bench.files(&bench.create());
    assert_eq!(all.len(), 4);
    bench.write(".gitignore", "*.log\n");
    let expected = [".gitignore", "b.txt", "deep/out/d.txt"];
    assert_eq!(bench.files(&bench.create()), expected);
    bench.write("deep/.gitignore", "!c.log\nout\n");
    let expected = [".gitignore", "b.txt", "deep/.gitignore", "deep/c.log"];
    assert_eq!(bench.files(&bench.create()), expected);
    bench.write(".clineignore", "b.*\n");
    let expected = [".gitignore", "deep/.gitignore", "deep/c.log"];
    assert_eq!(bench.files(&bench.create()), expected);
    for file in [".gitignore", "deep/.gitignore", ".clineignore"] {
        fs::remove_file(bench.ws.join(file)).unwrap();
    }
    bench.settle_rules();
    assert_eq!(bench.files(&bench.create()), all);
    bench.settings.exclude.push("out".to_owned());
    assert_eq!(bench.files(&bench.create()), all[..3]);
    // A new repository: its own excludes apply.
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".git/info/exclude", "*.txt\n");
    assert_eq!(bench.files(&bench.create()), ["a.log", "deep/c.log"]);
    bench.write(".git/info/exclude", "a*\n");
    assert_eq!(bench.files(&bench.create()), ["b.txt", "deep/c.log"]);
    fs::remove_dir_all(bench.ws.join(".git")).unwrap();
    assert_eq!(bench.files(&bench.create()), all[..3]);
}

#[test]
fn rules_above_the_workspace_apply() {
    let bench = Bench::at("repo/ws");
    let repo = bench.parent.join("repo");
    git_in(&repo, &["init", "-q"]);
    fs::write(repo.join(".gitignore"), "*.log\n/ws/out\n").unwrap();
    bench.write("a.log", "");
    bench.write("out/x", "");
    bench.write("b", "");
    assert_eq!(bench.files(&bench.create()), ["b"]);
    fs::write(repo.join(".gitignore"), "b\n").unwrap();
    assert_eq!(bench.files(&bench.create()), ["a.log", "out/x"]);
}

#[test]
fn access_rules_of_folders_apply() {
    let bench = Bench::new();
    for path in ["a", "pkg/a", "pkg/b", "pkg/deep/a"] {
        bench.write(path, path);
    }
    let all = bench.files(&bench.create());
    bench.write("pkg/.clineignore", "a\n");
    assert_eq!(bench.files(&bench.create()), ["a", "pkg/b"]);
    // The folder keeps its stamp.
    bench.write("pkg/.clineignore", "/a\n!include more\n");
    assert_eq!(bench.files(&bench.create()), ["a", "pkg/b", "pkg/deep/a"]);
    bench.write("pkg/more", "b\n");
    bench.create();
    bench.write("pkg/more", "deep/\n");
    assert_eq!(bench.files(&bench.create()), ["a", "pkg/b", "pkg/more"]);
    // Rules that cannot be used are reported.
    bench.write("pkg/.clineignore", b"\0");
    let checkpoint = bench.create();
    assert_eq!(bench.files(&checkpoint), ["a"]);
    assert_eq!(
        reasons(&checkpoint),
        [("pkg", "its access rules cannot be used")]
    );
    for file in ["pkg/.clineignore", "pkg/more"] {
        fs::remove_file(bench.ws.join(file)).unwrap();
    }
    assert_eq!(bench.files(&bench.create()), all);
}

#[test]
fn access_rules_of_the_main_working_tree_apply_in_a_worktree() {
    let bench = Bench::at("main/.claude/worktrees/ws");
    let main = bench.parent.join("main");
    fs::remove_dir(&bench.ws).unwrap();
    fs::create_dir_all(main.join("config")).unwrap();
    fs::write(main.join("config/secret"), "1").unwrap();
    fs::write(main.join("config/open"), "1").unwrap();
    git_in(&main, &["init", "-q"]);
    git_in(&main, &["add", "config"]);
    git_in(&main, &["commit", "-qm", "a"]);
    git_in(&main, &["worktree", "add", "-q", ".claude/worktrees/ws"]);
    assert_eq!(bench.files(&bench.create()).len(), 2);
    fs::write(main.join(".clineignore"), "/config/secret\n").unwrap();
    assert_eq!(bench.files(&bench.create()), ["config/open"]);
    fs::write(main.join(".clineignore"), "/config/open\n").unwrap();
    assert_eq!(bench.files(&bench.create()), ["config/secret"]);
    fs::remove_file(main.join(".clineignore")).unwrap();
    fs::write(main.join("config/.clineignore"), "/secret\n").unwrap();
    assert_eq!(bench.files(&bench.create()), ["config/open"]);
}
