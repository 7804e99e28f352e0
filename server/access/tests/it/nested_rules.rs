//! Rule files below a root, and those of the main working tree of a git worktree.

use std::{fs, path::Path, time::Duration};

use sightline_testing::git;

use crate::scratch::*;
use sightline_access::{AccessView, ClockReading};
use sightline_base::{cancel::Cancel, path::RelPath};
use sightline_context::listing::{self, ListOptions};
use sightline_protocol::access::AccessKind::{self, Allowed, Denied, Outside};

fn rel(path: &str) -> RelPath {
    RelPath::new(Path::new(path)).unwrap()
}

/// Returns the verdict of every way to ask about a file below a root, which must be the same.
fn every_answer(view: &AccessView, path: &str) -> AccessKind {
    let answer = kind(view, path);
    let location = view.roots().locate(path).unwrap();
    let all = view.check_all(vec![path.to_owned(); 2], &Cancel::default());
    let denied = [
        view.check_entry(0, &rel(path), false).is_some(),
        view.require(&location, false).is_err(),
        view.open_for_read(&location, false).is_err(),
        all.unwrap().iter().any(|one| one.access == Denied),
        !view.check_command(&format!("cat {path}")).allowed,
        !lists(view, path),
    ];
    assert_eq!(denied, [answer == Denied; 6], "{path}");
    answer
}

fn lists(view: &AccessView, path: &str) -> bool {
    let options = ListOptions {
        recursive: true,
        ..ListOptions::default()
    };
    let all = listing::list(view, 0, &RelPath::default(), &options, &Cancel::default()).unwrap();
    all.entries.iter().any(|entry| entry.rel == rel(path))
}

fn later(seconds: u64) -> ClockReading {
    let ClockReading { monotonic, wall } = ClockReading::system();
    let wait = Duration::from_secs(seconds);
    ClockReading {
        monotonic: monotonic + wait,
        wall: wall + wait,
    }
}

#[test]
fn rules_below_a_root_apply_from_every_door() {
    let rows = [
        ("secret.txt", Allowed),
        ("pkg/secret.txt", Denied),
        ("pkg/sub/secret.txt", Denied),
        ("pkg/anch.txt", Denied),
        ("pkg/sub/anch.txt", Allowed),
        ("pkg/x.log", Denied),
        ("pkg/keep.log", Allowed),
        ("pkg/sub/x.log", Denied),
        ("pkg/included", Denied),
        ("included", Allowed),
        ("pkg/sub/a.deep", Denied),
        ("pkg/a.deep", Allowed),
        // A lower file lifts nothing of an upper one.
        ("pkg/a.key", Denied),
        ("pkg/ok.key", Allowed),
        ("pkg/.clineignore", Denied),
        ("pkg/Secret.TXT", Denied),
    ];
    let (_parent, root) = workspace(&rows.map(|(path, _)| (path, "x")));
    write(
        &root,
        &[
            (".clineignore", "*.key\n!ok.key\n"),
            (
                "pkg/.clineignore",
                "secret.txt\n/anch.txt\n*.log\n!keep.log\n!a.key\n!include more\n",
            ),
            ("pkg/more", "included\n"),
            ("pkg/sub/.clineignore", "*.deep\n!secret.txt\n!x.log\n"),
        ],
    );
    let view = view(&root);
    for (path, expected) in rows {
        assert_eq!(every_answer(&view, path), expected, "{path}");
    }
    let rule = ask(&view, "pkg/secret.txt").rule.unwrap();
    assert_eq!((rule.source.as_str(), rule.line), ("pkg/.clineignore", 1));
    let rule = ask(&view, "pkg/included").rule.unwrap();
    assert_eq!((rule.source.as_str(), rule.line), ("pkg/more", 1));
    // Paths that do not exist yet.
    assert_eq!(kind(&view, "pkg/new/secret.txt"), Denied);
    assert_eq!(kind(&view, "pkg\\secret.txt"), Denied);
    assert_eq!(kind(&view, "other/secret.txt"), Allowed);
}

#[test]
fn commands_that_read_folders_see_rules_below() {
    let (_parent, root) = workspace(&[
        ("pkg/.clineignore", "secret.txt\n"),
        ("pkg/secret.txt", "x"),
        ("src/a.rs", "x"),
    ]);
    let view = view(&root);
    let is_allowed = |command: &str| {
        let checked = view.check_command(command);
        checked.allowed
    };
    assert!(!is_allowed("grep -r x ."));
    assert!(!is_allowed("cat pkg/sec*"));
    assert!(is_allowed("grep -r x src"));
}

#[test]
fn unusable_rules_below_a_root_deny_their_folder() {
    let (_parent, root) = workspace(&[("pkg/a", "x"), ("b", "x")]);
    fs::write(root.join("pkg/.clineignore"), b"a\0b").unwrap();
    let view = view(&root);
    assert_eq!(kind(&view, "b"), Allowed);
    assert_eq!(kind(&view, "pkg"), Allowed);
    assert_eq!(kind(&view, "pkg/a"), Denied);
    let why = ask(&view, "pkg/a").reason.unwrap();
    assert!(why.contains("pkg/.clineignore"), "{why}");
    assert!(view.unusable(0).is_none());
    assert!(view.folder_rules(0, &rel("pkg"))[0].is_err());
}

#[test]
fn removed_rules_below_a_root_apply_for_a_while() {
    let (_parent, root) = workspace(&[("pkg/.clineignore", "a\n"), ("pkg/a", ""), ("pkg/b", "")]);
    let rules = root.join("pkg/.clineignore");
    let access = access(&[&root]);
    let ask = |access: &sightline_access::Access, at| {
        let view = access.view_at(at).0;
        ["pkg/a", "pkg/b"].map(|path| kind(&view, path))
    };
    assert_eq!(ask(&access, later(0)), [Denied, Allowed]);
    assert!(access.refresh_nested());
    assert!(!access.refresh_nested());
    assert!(access.watched_files().contains(&rules));
    fs::write(&rules, "").unwrap();
    assert_eq!(ask(&access, later(0)), [Denied, Allowed]);
    assert!(access.is_holding());
    fs::write(&rules, "b\n").unwrap();
    assert_eq!(ask(&access, later(0)), [Denied, Denied]);
    fs::remove_file(&rules).unwrap();
    let updated = access.updated(
        access.view().0.roots().clone(),
        Vec::new(),
        sightline_protocol::settings::Secrets::Allow,
    );
    assert_eq!(ask(&updated, later(0)), [Denied, Denied]);
    assert_eq!(ask(&updated, later(3)), [Allowed, Allowed]);
    assert!(!updated.is_holding());
    assert!(access.refresh_nested());
}

/// Nothing is below a file, so its rules are gone as if their file was deleted.
#[test]
fn rules_of_a_folder_that_became_a_file_are_gone() {
    let (_parent, root) = workspace(&[("pkg/.clineignore", "a\n"), ("pkg/a", "")]);
    let access = access(&[&root]);
    let ask = |at| kind(&access.view_at(at).0, "pkg/a");
    assert_eq!(ask(later(0)), Denied);
    fs::remove_dir_all(root.join("pkg")).unwrap();
    fs::write(root.join("pkg"), "").unwrap();
    // As while a file is saved.
    assert_eq!(ask(later(0)), Denied);
    assert_eq!(ask(later(3)), Allowed);
    let rules = root.join("pkg/.clineignore");
    assert!(!access.is_holding() && !access.watched_files().contains(&rules));
    fs::remove_file(root.join("pkg")).unwrap();
    write(&root, &[("pkg/.clineignore", "a\n")]);
    assert_eq!(ask(later(3)), Denied);
}

#[test]
fn rules_of_folders_outside_of_the_roots_apply() {
    let (parent, root) = workspace(&[("a", "")]);
    let other = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("other");
    write(
        &other,
        &[(".clineignore", "private/\n"), ("private/n", ""), ("b", "")],
    );
    let view = view(&root);
    let of = |path: &str| kind(&view, other.join(path).to_str().unwrap());
    assert_eq!(of("b"), Outside);
    assert_eq!(of("private/n"), Denied);
    let command = format!("grep -r x {}", other.display());
    let checked = view.check_command(&command);
    assert!(!checked.allowed);
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_around_rules_below_a_root() {
    let (_parent, root) = workspace(&[
        ("pkg/.clineignore", "secret\n"),
        ("pkg/secret", "x"),
        ("pkg/open", "x"),
        ("src/secret", "x"),
    ]);
    link("pkg", root.join("alias"));
    link("pkg/secret", root.join("direct"));
    link("../src/secret", root.join("pkg/aside"));
    link("../src", root.join("pkg/src"));
    let view = view(&root);
    // Entries are checked by name.
    assert_eq!(kind(&view, "direct"), Denied);
    assert!(!lists(&view, "direct"));
    assert_eq!(every_answer(&view, "pkg/aside"), Allowed);
    assert_eq!(kind(&view, "alias/secret"), Denied);
    assert_eq!(kind(&view, "alias/open"), Allowed);
    // By its written name.
    assert_eq!(kind(&view, "pkg/src/secret"), Denied);
    assert_eq!(kind(&view, "src/secret"), Allowed);
}

#[test]
fn rules_of_a_main_working_tree_apply_in_its_worktrees() {
    let (parent, root) = workspace(&[
        ("config/secret.txt", "x"),
        ("config/open.txt", "x"),
        ("pkg/secret.txt", "x"),
    ]);
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "."]);
    git::run(&root, &["commit", "-qm", "a"]);
    git::run(&root, &["worktree", "add", "-q", ".claude/worktrees/fix"]);
    git::run(&root, &["worktree", "add", "-q", "../beside"]);
    write(
        &root,
        &[
            (".clineignore", "/config/secret.txt\n"),
            ("pkg/.clineignore", "/secret.txt\n"),
        ],
    );
    let beside = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("beside");
    let inside = root.join(".claude/worktrees/fix");
    let asked = ["config/secret.txt", "pkg/secret.txt", "config/open.txt"];
    let from_main = view(&root);
    let at = |view: &AccessView, folder: &Path| {
        asked.map(|path| kind(view, folder.join(path).to_str().unwrap()))
    };
    assert_eq!(at(&from_main, &root), [Denied, Denied, Allowed]);
    assert_eq!(at(&from_main, &inside), [Denied, Denied, Allowed]);
    assert_eq!(at(&from_main, &beside), [Denied, Denied, Outside]);
    assert!(!lists(
        &from_main,
        ".claude/worktrees/fix/config/secret.txt"
    ));
    for root in [&inside, &beside, &beside.join("config")] {
        let view = view(root);
        assert_eq!(
            at(&view, &beside)[..2],
            [Denied, Denied],
            "{}",
            root.display()
        );
        assert_eq!(
            at(&view, &inside)[..2],
            [Denied, Denied],
            "{}",
            root.display()
        );
        assert!(!view.entry_rules(0).is_empty());
    }
    // Every door, in a worktree as the workspace.
    let view = view(&beside);
    assert_eq!(every_answer(&view, "config/secret.txt"), Denied);
    assert_eq!(every_answer(&view, "config/open.txt"), Allowed);
    fs::write(root.join(".clineignore"), b"\0").unwrap();
    assert!(crate::scratch::view(&beside).unusable(0).is_some());
}
