//! Commands to run instead of a refused one. They are run: they succeed and print no denied text.
#![cfg_attr(
    not(target_os = "linux"),
    allow(unused, reason = "the commands are those of Linux")
)]

#[cfg(target_os = "linux")]
mod exact;

use std::{fs, path::Path, process::Command};

use sightline_testing::git;

use super::{Kind, MARKER, Workspace, workspace, write, write_denied};

/// Prints the files in `out`, whatever the command wrote there.
const FILES: &str = "find out -type f -exec cat {} +";
const TAR: &str = "tar xOf out";

/// The folder, the command, what the command to run instead starts with, and a command that prints
/// what it wrote.
const FIXED: &[(&str, &str, &str, &str)] = &[
    (".", "grep -rn = .", "grep --exclude=", ""),
    (
        ".",
        "grep -rn = services src",
        "grep --exclude=.env -rn",
        "",
    ),
    ("src", "grep -rn = ..", "grep --exclude=", ""),
    (
        ".",
        "grep -rn = --include=*.ts --include=.env services",
        "grep -rn = --include=*.ts --include=.env --exclude=.env services",
        "",
    ),
    (
        ".",
        "rg -. -g *.ts -g .env = services",
        "rg -. -g *.ts -g .env -g '!.env' = services",
        "",
    ),
    (".", "rgrep = services", "rgrep --exclude=.env", ""),
    (".", "rg -uu = .", "rg -g '!", ""),
    (
        ".",
        "cd services && rg -uu = .",
        "cd services && rg -g '!.env' -uu",
        "",
    ),
    (".", "ag --hidden = .", "ag --ignore ", ""),
    (".", "ack = .", "ack ", ""),
    (".", "ugrep -r. = .", "ugrep --exclude", ""),
    (
        ".",
        "fdfind -HI -t f . services src -x cat",
        "fdfind --exclude .env",
        "",
    ),
    (".", "diff -r left right", "diff -x .env", ""),
    (
        ".",
        "tar czf out services",
        "tar czf out --exclude=.env services",
        TAR,
    ),
    (
        "services",
        "tar czf ../out .",
        "tar czf ../out --exclude=.env .",
        TAR,
    ),
    (
        ".",
        "tar c services > out",
        "tar c --exclude=.env services",
        TAR,
    ),
    (".", "tar -czf out services", "tar --exclude=.env -czf", TAR),
    (
        ".",
        "tar --create --file=out services",
        "tar --exclude=.env --create",
        TAR,
    ),
    (
        "src",
        "tar cf ../out ../services",
        "tar cf ../out --exclude=.env",
        TAR,
    ),
    (
        ".",
        "zip -qr out.zip services",
        "zip -qr out.zip services -x",
        "unzip -p out.zip",
    ),
    (
        ".",
        "zip -qr out.zip .",
        "zip -qr out.zip . -x",
        "unzip -p out.zip",
    ),
    (
        ".",
        "7z a out.7z services",
        "7z a out.7z services '-xr!.env'",
        "7z x -so out.7z",
    ),
    (
        ".",
        "rsync -a services src out",
        "rsync --exclude=.env -a",
        FILES,
    ),
    (
        ".",
        "find services -type f -exec cat {} +",
        "find services -not -name .env",
        "",
    ),
    (
        ".",
        "find services -type f | xargs cat",
        "find services -not -name .env",
        "",
    ),
    (
        ".",
        "find . -type f -not -path './.git/*' | xargs cat",
        "find . -not -",
        "",
    ),
    (
        "src",
        "find .. -maxdepth 1 -type f | xargs cat",
        "find .. -maxdepth 1 -not -name",
        "",
    ),
    (
        "src",
        "find ../services -mindepth 1 -type f -exec cat {} +",
        "find ../services -mindepth 1 -not",
        "",
    ),
    (".", "git diff", "git diff -- . ':!", ""),
    (
        ".",
        "git diff HEAD~1 | head -200",
        "git diff HEAD~1 -- . ':!",
        "",
    ),
    (
        ".",
        "git diff services README.md",
        "git diff services README.md ':!services/api/.env'",
        "",
    ),
    (
        ".",
        "true -- x; git diff",
        "true -- x; git diff -- . ':!",
        "",
    ),
    (
        ".",
        "git diff -- services src",
        "git diff -- services src ':!services/api/.env'",
        "",
    ),
    ("src", "git diff HEAD~1", "git diff HEAD~1 -- :/ ':(top", ""),
    (".", "git show HEAD", "git show HEAD -- . ':!", ""),
    (".", "git log -p", "git log -p -- . ':!", ""),
    (".", "git reflog -p", "git reflog -p -- . ':!", ""),
    (".", "git grep S", "git grep S -- . ':!", ""),
    (
        "src",
        "git grep -n S -- ..",
        "git grep -n S -- .. ':(top",
        "",
    ),
    (
        ".",
        "git archive HEAD > out",
        "git archive HEAD -- . ':!",
        TAR,
    ),
    (
        ".",
        "git diff-tree -p HEAD",
        "git diff-tree -p HEAD -- . ':!",
        "",
    ),
    (
        ".",
        "git diff-index -p HEAD",
        "git diff-index -p HEAD -- . ':!",
        "",
    ),
    (".", "git diff-files -p", "git diff-files -p -- . ':!", ""),
    (
        ".",
        "git format-patch -q -1 --stdout",
        "git format-patch -q -1 --stdout -- . ':!",
        "",
    ),
    (
        ".",
        "git range-diff --creation-factor=999 HEAD~2..HEAD~1 HEAD~1..HEAD",
        "git range-diff --creation-factor=999 HEAD~2..HEAD~1 HEAD~1..HEAD -- .",
        "",
    ),
    (
        ".",
        "git fast-export HEAD",
        "git fast-export HEAD -- . ':!",
        "",
    ),
    (".", "git add -p", "git add -p -- . ':!", ""),
];

/// Commands that cannot leave out a file.
const NOT_FIXED: &[&str] = &[
    "cat .env",
    "grep -r KEY private src",
    "cp -r services src out",
    // Nothing would be left to read.
    "find . -name .env -exec cat {} +",
    "find . -name .env | xargs cat",
    "rg -uu -g .env =",
    "grep -r --include=.env = .",
    "ag -u = .",
    "ag -a --hidden --ignore .env = services",
    "git diff HEAD~1 -- .env",
    "git diff HEAD~1:services HEAD:services --",
    "git log --format=%h | xargs -n1 git show",
    "git log -p -- services/api/.env",
    "git stash show -p",
    "git stash list -p",
    "git status -vv",
    "git commit -v --dry-run",
    "git bundle create out --all",
    "git bundle create out --all -- src",
    "git pack-objects --all --stdout",
    "git checkout-index -a --prefix=out/",
    "git cat-file --batch --batch-all-objects",
    "git log -p --full-diff -- src",
];

fn with_markers() -> Workspace {
    let kind = Kind {
        tracked: true,
        user_rules: true,
    };
    let workspace = workspace(kind);
    let root = &workspace.root;
    for path in ["left/same", "right/same"] {
        write(root, path, "same\n");
    }
    for path in ["left/.env", "right/.env"] {
        write(root, path, &format!("{MARKER} {path}\n"));
    }
    write(root, "services/api/index.ts", "export const one = 1\n");
    git::run(root, &["add", "left/same", "right/same"]);
    git::run(root, &["commit", "-q", "-a", "-m", "third"]);
    write_denied(root, kind, "4");
    write(root, "services/api/index.ts", "export const two = 2\n");
    workspace
}

/// Runs a line and what prints its results. Returns whether the line succeeded without a warning, and
/// the printed text.
fn run(root: &Path, folder: &str, line: &str, printer: &str) -> (bool, String) {
    let shell = |dir: &Path, line: &str| {
        Command::new("bash")
            .args(["-o", "pipefail", "-c", line])
            .current_dir(dir)
            .env("HOME", root.join("docs"))
            .env("GIT_PAGER", "cat")
            .output()
            .unwrap()
    };
    clean(root);
    let result = shell(&root.join(folder), line);
    let printed = shell(root, printer);
    let warns = String::from_utf8_lossy(&result.stderr).contains("warning");
    let text = [result.stdout, result.stderr, printed.stdout].concat();
    (
        result.status.success() && !warns && (printer.is_empty() || printed.status.success()),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn clean(root: &Path) {
    let _ = fs::remove_dir_all(root.join("out"));
    for file in ["out", "out.zip", "out.7z"] {
        let _ = fs::remove_file(root.join(file));
    }
}

/// Programs that are not on every machine.
const OPTIONAL: [&str; 7] = ["rg", "ag", "ack", "ugrep", "fdfind", "rsync", "7z"];

fn is_installed(line: &str) -> bool {
    let is_found = |program: &str| {
        let found = Command::new("which").arg(program).output().unwrap();
        found.status.success() || program == "cd"
    };
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    let first = line.split(' ').next().unwrap_or_default();
    is_found(first) && words.all(|word| !OPTIONAL.contains(&word) || is_found(word))
}

#[cfg(target_os = "linux")]
#[test]
fn commands_to_run_instead_succeed_without_denied_text() {
    let mut missing = Vec::new();
    let mut wrong = Vec::new();
    let workspace = with_markers();
    let root = &workspace.root;
    for (folder, command, start, printer) in FIXED {
        clean(root);
        let prefix = format!("cd {folder} && ");
        let result = workspace.check(&format!("{prefix}{command}"));
        let found = result.instead.unwrap_or_default();
        let found = found.strip_prefix(&prefix).unwrap_or(&found);
        if result.allowed || start.is_empty() != found.is_empty() || !found.starts_with(start) {
            wrong.push(format!("{command}: {found:?} {:?}", result.denied));
            continue;
        }
        if found.is_empty() {
            continue;
        }
        if !workspace.check(&format!("{prefix}{found}")).allowed {
            wrong.push(format!("{command}: {found:?} is refused"));
        }
        if !is_installed(command) {
            missing.push(*command);
            continue;
        }
        let (_, before) = run(root, folder, command, printer);
        let (succeeds, after) = run(root, folder, found, printer);
        if !before.contains(MARKER) || !succeeds || after.contains(MARKER) {
            wrong.push(format!(
                "{command}: {found:?}, reads before: {}, succeeds: {succeeds}\n{after}",
                before.contains(MARKER)
            ));
        }
    }
    println!("not installed: {missing:#?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_that_cannot_leave_out_a_file_have_no_suggestion() {
    let workspace = with_markers();
    for command in NOT_FIXED {
        let result = workspace.check(command);
        assert!(!result.allowed, "{command}");
        assert_eq!(result.instead, None, "{command}");
    }
}

/// Every program for which there is a suggestion is run above.
#[test]
fn every_program_with_a_suggestion_is_tested() {
    let table = include_str!("../../../src/command/programs.table");
    let mut names = "";
    for line in table.lines() {
        if let Some(row) = line.strip_prefix('[') {
            names = row.trim_end_matches(']');
        }
        let is_tested = || {
            FIXED.iter().any(|(_, command, ..)| {
                let mut programs = names.split(' ');
                programs.any(|name| command.starts_with(&format!("{name} ")))
            })
        };
        assert!(!line.starts_with("hint_") || is_tested(), "{names}");
    }
}

/// `git log -L` prints lines of the files that it names only.
#[test]
fn ranges_of_lines_are_judged_by_their_files() {
    let workspace = with_markers();
    for command in [
        "git log -L1,1:src/main.ts",
        "git log -L 1,1:src/main.ts",
        "git log -p -L1,2:src/main.ts -L1,1:README.md HEAD~1",
    ] {
        let result = workspace.check(command);
        assert!(result.allowed, "{command}: {:?}", result.denied);
    }
    for command in [
        "git log -L1,1:.env",
        "git log -L1,1:src/main.ts -L 1,1:services/api/.env",
        "git log -L1,1:$FILE",
    ] {
        let result = workspace.check(command);
        assert!(!result.allowed, "{command}");
        assert_eq!(result.instead, None, "{command}");
    }
}
