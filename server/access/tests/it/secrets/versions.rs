//! Git commands and the versions of a file that they print.

use sightline_testing::git;

use super::contents::{PLAIN, TOKEN, view};
use crate::scratch::{workspace, write};

/// Git commands are judged by the versions that they print: here one of four commits has a secret, which no
/// longer is on the disk.
#[test]
fn git_commands_are_judged_by_the_versions_that_they_print() {
    let (_dir, root) = workspace(&[("a.js", "x\n"), (".npmrc", PLAIN)]);
    git::run(&root, &["init", "-q"]);
    let commit = |name: &str, files: &[(&str, &str)]| {
        write(&root, files);
        git::run(&root, &["add", "."]);
        git::run(&root, &["commit", "-q", "-m", name]);
    };
    commit("one", &[]);
    commit("secret", &[(".npmrc", TOKEN)]);
    commit("gone", &[(".npmrc", PLAIN)]);
    commit("more", &[("a.js", "y\n")]);
    write(&root, &[("a.js", "z\n"), ("b.js", "z\n")]);
    let check = |command: &str| view(&root).check_command(command);
    for command in [
        "git grep save-exact",
        "git show HEAD~3",
        "git show HEAD HEAD~3",
        "git log -p -1",
        "git log -p HEAD~3",
        "git log -p -- a.js",
        "git whatchanged -p -1",
        "git diff HEAD~3",
        "git diff HEAD~3 HEAD -- .npmrc",
        "git diff HEAD~1:.npmrc .npmrc",
        "git diff HEAD~3: HEAD:",
        "git diff HEAD~3:",
        "git diff-tree -p HEAD",
        "git diff-index -p HEAD~3",
        "git archive HEAD",
        "git archive --format=tar HEAD~3 .npmrc | tar xO",
        "git stash show -p",
        "git stash && git stash show -p",
        "git commit -v",
        "git status -v",
        "git add -p",
        "git add -A && git diff --cached",
        "git commit -am x && git show",
        "git commit -m x && git log -p -1",
        "git pull && git diff HEAD~1",
        "git switch -c new && git show",
        "git checkout HEAD~3 && git show",
        "git rebase HEAD && git show",
        "git checkout HEAD -- .npmrc",
        "git checkout -- .npmrc",
        "git checkout .npmrc a.js",
        "git restore .npmrc",
        "git restore --source=HEAD~3 .npmrc",
        "git restore --staged .npmrc",
        "git ls-files | xargs cat",
        "git diff --name-only HEAD~3 | xargs grep x",
    ] {
        let result = check(command);
        assert!(result.allowed, "{command}: {result:?}");
    }
    for command in [
        "git grep auth HEAD~2",
        "git grep auth HEAD HEAD~2",
        "git show HEAD~1",
        "git show HEAD~2",
        "git show HEAD HEAD~1",
        "git log -p",
        "git log -p -2",
        "git log -p --all -- .npmrc",
        "git log -L1,1:.npmrc",
        "git reflog -p",
        "git diff HEAD~2",
        "git diff -R HEAD~2 -- .npmrc",
        "git diff HEAD~2..HEAD~3",
        "git diff HEAD~2:.npmrc .npmrc",
        "git diff HEAD~2: HEAD:",
        "git diff HEAD~2:",
        "git format-patch HEAD^^ --stdout",
        "git diff-tree -p HEAD~1",
        "git diff-index -p HEAD~2",
        "git archive HEAD~2",
        "git format-patch -2 --stdout",
        "git format-patch HEAD~2 --stdout",
        "git format-patch --stdout HEAD~3..HEAD~2",
        "git format-patch --root --stdout HEAD",
        "git range-diff HEAD~3..HEAD~2 HEAD~3..HEAD",
        "git fast-export --all",
        "git bundle create /dev/stdout HEAD",
        "git cat-file --batch",
        "git blame HEAD~2 -- .npmrc",
        "git commit --amend -v",
        "git checkout HEAD~2 && git show",
        "git checkout HEAD~2 && git log -p -1",
        "git reset --soft HEAD~2 && git diff --cached",
        "git revert HEAD~1 && git show",
        "git rebase HEAD~2 && git show",
        "git pull . HEAD~2 && git show",
        "git checkout HEAD~2 -- .npmrc && cat .npmrc",
        "git checkout HEAD~2 .npmrc && cat .npmrc",
        "git restore -s HEAD~2 .npmrc && cat .npmrc",
        "git restore --source HEAD~2 -- .npmrc && cat .npmrc",
        "git ls-files | while read f; do git show HEAD~2:$f; done",
        "git ls-tree -r HEAD~2 | cut -f1 | xargs -n1 git cat-file -p",
    ] {
        assert!(!check(command).allowed, "{command}");
    }
    let reason = |command: &str| check(command).denied.remove(0).reason;
    let id = git::run(&root, &["rev-parse", "--short=10", "HEAD~2:.npmrc"]);
    assert_eq!(
        reason("git log -p"),
        format!(
            "`git log` would print `.npmrc`, which is hidden because the version {} contains a credential",
            id.trim()
        )
    );
    assert_eq!(
        reason("git show HEAD~2:.npmrc"),
        "`git show` would print `.npmrc`, which is hidden because `HEAD~2:.npmrc` contains a credential"
    );
    // The index alone.
    write(&root, &[(".npmrc", &format!("{PLAIN}{TOKEN}"))]);
    git::run(&root, &["add", ".npmrc"]);
    write(&root, &[(".npmrc", PLAIN)]);
    for (command, allowed) in [
        ("git grep save-exact", true),
        ("git grep --cached save-exact", false),
        ("git checkout -- .npmrc && cat .npmrc", false),
        ("git restore .npmrc && cat .npmrc", false),
        ("git restore --staged .npmrc", true),
        ("git archive HEAD", true),
        ("git commit -m x && git show", false),
        ("git stash && git stash show -p", false),
    ] {
        assert_eq!(check(command).allowed, allowed, "{command}");
    }
    let staged = git::run(&root, &["rev-parse", "--short=10", ":.npmrc"]);
    assert_eq!(
        reason("git commit -v"),
        format!(
            "`git commit` would print `.npmrc`, which is hidden because the version {} contains a credential",
            staged.trim()
        )
    );
    git::run(&root, &["update-index", "--assume-unchanged", ".npmrc"]);
    assert!(!check("git grep save-exact").allowed);
}

/// Git prints files that are in no index: deleted ones, those of trees, and operands that it compares with a version.
#[test]
fn git_commands_are_judged_by_files_that_are_not_tracked() {
    let (_dir, root) = workspace(&[
        ("a.txt", "a\n"),
        (".env", "A=1\n"),
        ("conf/local.txt", "x\n"),
        ("conf/old.env", "A=1\n"),
        ("private/n.md", "x\n"),
        (".clineignore", "/conf/local.txt\nprivate/\n"),
    ]);
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "."]);
    git::run(&root, &["commit", "-q", "-m", "one"]);
    git::run(&root, &["rm", "-q", "--cached", ".env"]);
    git::run(&root, &["mv", "conf/old.env", "conf/old.txt"]);
    write(&root, &[("conf/old.txt", "A=1\nB=2\n")]);
    git::run(&root, &["commit", "-q", "-am", "two"]);
    let check = |command: &str| view(&root).check_command(command);
    for command in [
        "git diff HEAD:a.txt .env",
        "git diff HEAD:a.txt -- private/n.md",
        "git diff HEAD~1: HEAD:",
        "git diff HEAD:conf HEAD~1:conf",
        "git diff HEAD:a.txt HEAD:conf && git diff HEAD:conf",
        "git diff HEAD~1:",
        "git grep x HEAD:conf",
        "git archive HEAD:conf",
        "cd private && git archive HEAD n.md",
        "ls private/* | while read f; do git show HEAD:$f; done",
        "git ls-files | xargs -I{} git show HEAD~1:{}",
        "git fast-export --all",
        "git format-patch -1 --stdout",
        "git log --remerge-diff -- .env",
        "git show $REV -- .env",
        "git range-diff HEAD~1..HEAD HEAD~1..HEAD -- .env",
    ] {
        assert!(!check(command).allowed, "{command}");
    }
    for command in [
        "git log --remerge-diff -- a.txt",
        "git diff HEAD:a.txt a.txt",
        "git diff HEAD:a.txt HEAD~1:a.txt",
        "ls conf/old* | while read f; do git show HEAD:$f; done",
        "cd conf && git archive HEAD old.txt",
        "git format-patch -1 --stdout -- a.txt",
    ] {
        let result = check(command);
        assert!(result.allowed, "{command}: {result:?}");
    }
}
