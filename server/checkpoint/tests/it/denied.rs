//! Checkpoints never contain denied content, or content from outside the workspace.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use crate::restore_support::{Ground, all};
use sightline_checkpoint::{Side, diff::patch};
use sightline_protocol::settings::Secrets;

/// Returns every object of every store as text.
fn objects(ground: &Ground) -> String {
    let mut all = String::new();
    let mut rest = vec![ground.data()];
    while let Some(folder) = rest.pop() {
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            let output = Command::new("git")
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("HOME", ground.data())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .arg("--git-dir")
                .arg(&folder)
                .args(["cat-file", "--batch-all-objects", "--batch"])
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            all.push_str(&String::from_utf8_lossy(&output.stdout));
            continue;
        }
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rest.push(path);
            }
        }
    }
    all
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn repository(git: &Path, excludes: &str) {
    write(&git.join("HEAD"), "ref: refs/heads/main\n");
    write(&git.join("info/exclude"), excludes);
}

#[test]
fn denied_and_outside_rule_texts_are_not_stored() {
    let ground = Ground::new(&[
        (
            ".clineignore",
            "# RULES-TEXT\n!include secret.txt\nsecret.txt\nhidden/.gitignore\n",
        ),
        ("secret.txt", "INCLUDED-TEXT\n"),
        ("hidden/.gitignore", "# DENIED-GITIGNORE\n*.log\n"),
        ("hidden/a", "1"),
        ("own/.gitignore", "# IGNORES-ITSELF\n.gitignore\n"),
        ("own/a", "1"),
        ("linked/a", "1"),
        ("folded/a", "1"),
        ("pointed/a", "1"),
        ("nested/a", "1"),
        ("KNOWN", "CAPTURED-TEXT"),
    ]);
    write(&ground.outside(".gitignore"), "# ABOVE-GITIGNORE\n*.tmp\n");
    repository(&ground.outside(".git"), "# ABOVE-EXCLUDES\n");
    let secret = ground.outside("secret");
    write(&secret.join("exclude"), "# LINKED-EXCLUDES\n");
    repository(&ground.path("linked/.git"), "");
    ground.remove("linked/.git/info/exclude");
    symlink(
        secret.join("exclude"),
        ground.path("linked/.git/info/exclude"),
    )
    .unwrap();
    repository(&ground.path("folded/.git"), "");
    ground.remove("folded/.git/info");
    symlink(&secret, ground.path("folded/.git/info")).unwrap();
    repository(&ground.outside("elsewhere"), "# POINTED-EXCLUDES\n");
    ground.write(&[("pointed/.git", "gitdir: ../../elsewhere\n")]);
    repository(&ground.path("nested/.git"), "# OWN-EXCLUDES\n");
    ground.create();
    let objects = objects(&ground);
    // Allowed texts and names are found, so the search is effective.
    for kept in ["CAPTURED-TEXT", "own/.gitignore"] {
        assert!(objects.contains(kept), "{kept}");
    }
    for secret in [
        "IGNORES-ITSELF",
        "OWN-EXCLUDES",
        "hidden/.gitignore",
        "RULES-TEXT",
        "INCLUDED-TEXT",
        "secret.txt",
        "DENIED-GITIGNORE",
        "ABOVE-GITIGNORE",
        "ABOVE-EXCLUDES",
        "LINKED-EXCLUDES",
        "POINTED-EXCLUDES",
    ] {
        assert!(!objects.contains(secret), "{secret}");
    }
}

#[test]
fn denied_excludes_are_not_stored() {
    let ground = Ground::new(&[(".clineignore", ".git/info/\n"), ("a", "1")]);
    repository(&ground.path(".git"), "# DENIED-EXCLUDES\n");
    ground.create();
    assert!(!objects(&ground).contains("DENIED-EXCLUDES"));
}

/// Returns the content of every file in the data directory that is not part of a store.
fn state(ground: &Ground) -> String {
    let mut all = String::new();
    let mut rest = vec![ground.data()];
    while let Some(folder) = rest.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rest.push(path);
            } else {
                all.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
            }
        }
    }
    all
}

#[test]
fn names_of_denied_paths_are_not_stored() {
    let ground = Ground::new(&[
        (".clineignore", "hush*\n*.hush\n"),
        (".gitignore", "*.log\nbuild/\n"),
        ("hush-folder/deep/file", "1"),
        ("sub/hush-file", "1"),
        ("sub/x.hush", "1"),
        ("sub/plain", "1"),
        ("sub/junk.log", "1"),
        ("build/tracked", "1"),
        ("build/tracked.hush", "1"),
    ]);
    ground.link("sub/plain", "hush-link");
    ground.git(&["init", "-q"]);
    ground.git(&["add", "-f", "build"]);
    ground.create();
    ground.write(&[("sub/more.hush", "2"), ("sub/plain", "2")]);
    ground.create();
    ground.checkpoints.save_stat_cache().unwrap();
    for held in [objects(&ground), state(&ground)] {
        assert!(!held.contains("hush"));
    }
    // Names that are not denied are found, so the search is effective.
    assert!(objects(&ground).contains("sub/junk.log"));
    assert!(state(&ground).contains("build/tracked"));
}

#[test]
fn paths_that_were_denied_are_kept_under_any_later_rules() {
    let ground = Ground::new(&[
        (".clineignore", "secret\n*.key\n"),
        ("secret/deep/file", "k"),
        ("sub/a.key", "k"),
        ("sub/b", "1"),
    ]);
    let id = ground.create();
    for rules in ["other\n", ""] {
        ground.write(&[("new", "1"), ("sub/secret", "1"), (".clineignore", rules)]);
        let mut conflicts = ground.preview(&all(id), &[]).conflicts;
        // The rule file itself is never restored.
        conflicts.retain(|conflict| conflict.path.to_string() != ".clineignore");
        let names: Vec<String> = conflicts
            .iter()
            .map(|conflict| conflict.path.to_string())
            .collect();
        assert_eq!(names, ["secret/deep/file", "sub/a.key"]);
        for conflict in conflicts {
            assert!(conflict.reason.contains("denied when"), "{conflict:?}");
        }
        ground.restore(id);
        assert_eq!(
            (ground.read("secret/deep/file"), ground.read("sub/a.key")),
            ("k".into(), "k".into())
        );
        assert!(!ground.exists("new") && !ground.exists("sub/secret"));
    }
}

#[test]
fn paths_that_were_ignored_are_kept_under_any_later_rules() {
    let ground = Ground::new(&[
        (".clineignore", "sub/.gitignore\n"),
        ("sub/.gitignore", "*.log\nout/\n"),
        ("sub/a.log", "1"),
        ("sub/out/deep/x", "1"),
        ("b", "1"),
    ]);
    let id = ground.create();
    ground.write(&[("sub/.gitignore", "\n"), ("sub/new.log", "1"), ("new", "1")]);
    ground.write(&[("sub/out/deep/x", "2"), ("sub/out/new", "1")]);
    ground.restore(id);
    assert!(ground.exists("sub/a.log"));
    assert_eq!(ground.read("sub/out/deep/x"), "2");
    // Nothing is known about a path below an ignored folder.
    assert!(ground.exists("sub/out/new"));
    // These did not exist, whether or not the rules of that time would have ignored them.
    assert!(!ground.exists("new") && !ground.exists("sub/new.log"));
}

/// The content of a link is the name of its target.
#[test]
fn a_diff_does_not_name_denied_link_targets() {
    let ground = Ground::new(&[
        ("secrets/key", "k"),
        ("plain/a", "1"),
        ("below/x", "1"),
        ("edited", "1"),
    ]);
    ground.link("secrets/key", "gone");
    ground.link("plain/a", "repointed");
    ground.link("plain/a", "open");
    ground.link("/etc/hosts", "outside");
    let before = ground.create();
    ground.write(&[(".clineignore", "secrets/\nabsent/\n"), ("edited", "2")]);
    for link in ["gone", "repointed", "open", "outside"] {
        ground.remove(link);
    }
    ground.link("./plain/../secrets/key", "repointed");
    ground.link(ground.path("secrets/key").to_str().unwrap(), "absolute");
    ground.link("../secrets", "below/folder");
    ground.link("below/folder/key", "through");
    ground.link("absent", "dangling");
    ground.link("plain", "open");
    ground.link("/etc/hostname", "outside");
    let now = ground.create();
    for to in [Side::WorkTree, Side::Checkpoint(now)] {
        let files = ground.diff(&Side::Checkpoint(before), &to);
        let text = String::from_utf8(patch(&files)).unwrap();
        assert!(
            !text.contains("secrets") && !text.contains("absent"),
            "{text}"
        );
        for file in &files {
            let name = file.path.to_string();
            let is_open = matches!(name.as_str(), "open" | "outside" | "edited");
            assert_eq!(file.omitted.is_none(), is_open, "{file:?}");
            let shown = file.before.is_some() || file.after.is_some();
            assert_eq!(shown, is_open, "{file:?}");
        }
        for shown in ["-plain/a", "+plain\n", "+/etc/hostname", "+2"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }
}

#[test]
fn secrets_are_not_stored_and_kept_by_restores() {
    let mut ground = Ground::new(&[
        (".env", "KEY=BUILT-IN-1"),
        ("a", "1"),
        ("keys/b.pem", "-----BEGIN PRIVATE KEY-----PEM-1"),
    ]);
    ground.secrets = Secrets::Deny;
    let id = ground.create();
    ground.write(&[(".env", "KEY=BUILT-IN-2"), ("a", "2"), ("id_rsa", "RSA-1")]);
    ground.remove("keys/b.pem");
    ground.restore(id);
    assert_eq!(
        (ground.read("a"), ground.read(".env")),
        ("1".to_owned(), "KEY=BUILT-IN-2".to_owned())
    );
    assert_eq!(ground.read("id_rsa"), "RSA-1");
    let stored = objects(&ground);
    for secret in ["BUILT-IN", "PEM-1", "RSA-1", "b.pem", "id_rsa"] {
        assert!(!stored.contains(secret), "{secret}");
    }
    // The checkpoint knows that it does not contain it.
    ground.secrets = Secrets::Allow;
    ground.restore(id);
    assert_eq!(ground.read(".env"), "KEY=BUILT-IN-2");
}

/// Such as one of a version without built-in rules.
#[test]
fn a_checkpoint_with_secrets_keeps_and_hides_the_current_ones() {
    let mut ground = Ground::new(&[(".env", "KEY=1"), ("a", "1")]);
    let id = ground.create();
    ground.write(&[(".env", "KEY=2"), ("a", "2")]);
    ground.secrets = Secrets::Deny;
    let diff = ground.diff(&Side::Checkpoint(id), &Side::WorkTree);
    assert_eq!(
        diff.iter()
            .map(|file| file.path.to_string())
            .collect::<Vec<_>>(),
        ["a"]
    );
    ground.restore(id);
    assert_eq!(
        (ground.read("a"), ground.read(".env")),
        ("1".to_owned(), "KEY=2".to_owned())
    );
    ground.secrets = Secrets::Allow;
    ground.restore(id);
    assert_eq!(ground.read(".env"), "KEY=1");
}

#[test]
fn restores_follow_the_access_rules_of_folders() {
    let ground = Ground::new(&[
        ("a", "1"),
        ("pkg/secret", "1"),
        ("pkg/b", "1"),
        ("pkg/more", "other\n"),
    ]);
    let id = ground.create();
    let rules = "secret\n!include more\n";
    ground.write(&[("pkg/.clineignore", rules), ("a", "2"), ("pkg/b", "2")]);
    ground.write(&[("pkg/secret", "2"), ("pkg/more", "none\n")]);
    let files = ground.diff(&Side::Checkpoint(id), &Side::WorkTree);
    let text = String::from_utf8(patch(&files)).unwrap();
    assert!(text.contains("pkg/b") && !text.contains("secret"), "{text}");
    ground.restore(id);
    let read = ["a", "pkg/b", "pkg/secret", "pkg/more"].map(|path| ground.read(path));
    assert_eq!(read, ["1", "1", "2", "none\n"]);
    assert_eq!(ground.read("pkg/.clineignore"), rules);
    assert!(!objects(&ground).contains("pkg/.clineignore"));
}

/// A rule may deny a file only with a secret in it.
#[test]
fn each_version_is_checked_by_its_content() {
    const PLAIN: &str = "save-exact=true\n";
    const TOKEN: &str = "//host/:_authToken=TOKEN-1\n";
    let mut ground = Ground::new(&[(".npmrc", PLAIN), ("a", "1"), ("keys/a.pem", TOKEN)]);
    ground.secrets = Secrets::Deny;
    let plain = ground.create();
    ground.write(&[(".npmrc", TOKEN), ("a", "2"), ("keys/a.pem", "x y\n")]);
    let secret = ground.create();
    let names = |ground: &Ground, to: &Side| {
        let diff = ground.diff(&Side::Checkpoint(plain), to);
        let names = diff.iter().map(|file| file.path.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    // What is secret now is in no diff, and the checkpoint of now does not contain it.
    assert_eq!(names(&ground, &Side::WorkTree), "a keys/a.pem");
    assert_eq!(names(&ground, &Side::Checkpoint(secret)), "a keys/a.pem");
    let stored = objects(&ground);
    assert!(stored.contains("save-exact") && !stored.contains("TOKEN-1"));
    // It is not replaced either.
    ground.restore(plain);
    assert_eq!(ground.read(".npmrc"), TOKEN);
    assert_eq!(ground.read("a"), "1");
    // A file that is no longer secret is captured, although the folder did not change.
    ground.write(&[(".npmrc", "save-exact=false\n")]);
    assert!(names(&ground, &Side::WorkTree).contains(".npmrc"));
    let later = ground.create();
    assert!(names(&ground, &Side::Checkpoint(later)).contains(".npmrc"));
    ground.restore(plain);
    assert_eq!(ground.read(".npmrc"), PLAIN);
    // A version that was captured while rules allowed it.
    ground.secrets = Secrets::Allow;
    ground.write(&[(".npmrc", TOKEN)]);
    let lifted = ground.create();
    ground.write(&[(".npmrc", PLAIN), ("a", "3")]);
    ground.secrets = Secrets::Deny;
    let diff = ground.diff(&Side::Checkpoint(lifted), &Side::WorkTree);
    assert_eq!(diff.len(), 1, "{diff:?}");
    ground.restore(lifted);
    assert_eq!(
        (ground.read("a"), ground.read(".npmrc")),
        ("1".to_owned(), PLAIN.to_owned())
    );
    ground.remove(".npmrc");
    ground.restore(lifted);
    assert!(!ground.path(".npmrc").exists());
    ground.restore(plain);
    assert_eq!(ground.read(".npmrc"), PLAIN);
    // It is captured no longer.
    ground.write(&[(".npmrc", TOKEN)]);
    let last = ground.create();
    let diff = ground.diff(&Side::Checkpoint(plain), &Side::Checkpoint(last));
    assert!(diff.iter().all(|file| file.path.to_string() != ".npmrc"));
}
