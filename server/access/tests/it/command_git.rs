//! The check asks git which files a command would print. It runs nothing that the command names, and
//! refuses what it cannot determine.

use std::{fs, path::Path};

use sightline_testing::git;

use super::command_readers::{Workspace, assert_all_allowed, tracked, write};

fn assert_refused(workspace: &Workspace, commands: &[&str]) {
    let is_allowed = |command: &&&str| workspace.check(command).allowed;
    let allowed: Vec<_> = commands.iter().filter(is_allowed).collect();
    assert!(allowed.is_empty(), "{allowed:#?}");
}

/// Git accepts abbreviated options and clusters of letters.
#[cfg(unix)]
#[test]
fn asking_git_runs_and_writes_nothing_that_the_command_names() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let canary = root.parent().unwrap().join("canary");
    write(
        root,
        &[
            (".gitattributes", "* diff=x\n"),
            ("src/main.rs", "y"),
            (".env", "KEY=2"),
        ],
    );
    git::run(
        root,
        &[
            "config",
            "diff.x.textconv",
            &format!("touch {}; cat", canary.display()),
        ],
    );
    for command in [
        "git grep --open-files='touch X' --untracked K",
        "git grep --open-files-in-pager='touch X' --untracked K",
        "git grep --open='touch X' K HEAD",
        "git grep -iO'touch X' K",
        "git grep -O'touch X' --cached K",
        "git grep -nlO'touch X' K",
        "git grep -l --open-files='touch X' K",
        "git grep -e K '-wOtouch X'",
        "git grep --textconv K",
        "git grep --textc K",
        "git diff --output=X",
        "git diff --output X",
        "git diff --outp=X",
        "git diff --outp X",
        "git log -p --output X",
        "git log --output=X -p",
        "git show --outpu=X",
        "git stash show -p --output=X",
        "git diff-index -p --output=X HEAD",
        "git -c diff.external='touch X' diff",
        "git -c diff.external='touch X' diff --ext-diff",
        "git -c diff.external='touch X' log -p --ext-d",
        "git -c diff.x.textconv='touch X' diff --textconv",
        "git -c diff.x.textconv='touch X' show --textc",
        "git -c core.fsmonitor='touch X' diff",
        "git -c core.pager='touch X' -p diff",
        "git -c alias.d='!touch X' d",
        "git -c grep.fallbackToNoIndex=true -c core.pager='touch X' grep -O K",
        "git diff --textconv",
        "git log -p --textconv",
        "git archive --output=X HEAD",
        "git archive -oX HEAD",
        "git archive --outp X HEAD",
        "git archive --remote=. --exec='touch X' HEAD",
        "git format-patch -1 -o X",
        "git difftool -x 'touch X'",
        "git difftool --extcmd='touch X' -y",
        "GIT_EXTERNAL_DIFF='touch X' git diff",
        "GIT_TRACE=X git diff",
        "GIT_PAGER='touch X' git diff",
    ] {
        workspace.check(&command.replace('X', &canary.display().to_string()));
        assert!(!canary.exists(), "{command}");
    }
}

#[test]
fn options_in_other_spellings_hide_no_denied_file() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    write(root, &[(".env", "KEY=2")]);
    assert_refused(
        &workspace,
        &[
            "git log --patc",
            "git log -pw",
            "git log -wp",
            "git diff --stat --pat",
            "git diff --stat --no-stat",
            "git diff --stat -wp",
            "git add --pat",
            "git grep -l -Ocat KEY",
            "git grep -nlOcat KEY",
            "git grep --open-files=cat --untracked KEY",
            "git stash show --pat stash@{0}",
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "git diff --stat -w",
            "git diff -w -M90% -U5 --histogram -- src",
            "git grep -il KEY",
            "git grep -nw KEY -- src",
            "git grep -in -e KEY --and -e x -- src",
            "git log -n 5 --oneline --first-parent --no-merges",
            "git log -pw -- src",
            "git grep --open-files=cat KEY -- src",
        ],
    );
}

/// Files that git cannot name are not taken as none.
#[test]
fn a_question_that_git_does_not_answer_refuses() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    assert_refused(
        &workspace,
        &[
            "git grep KEY HEAD~99",
            "git grep --untracked KEY HEAD~99",
            "git grep --cached KEY HEAD~99",
        ],
    );
    fs::write(root.join(".git/index"), "damaged").unwrap();
    assert_refused(
        &workspace,
        &[
            "git grep KEY",
            "git grep --cached KEY",
            "git grep --untracked KEY",
            "git ls-files | xargs cat",
            "cat $(git ls-files)",
            "git diff",
        ],
    );
}

#[test]
fn git_compares_and_searches_files_without_a_repository() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let in_work_tree = [
        "git diff /dev/null .env",
        "git diff -- /dev/null .env",
        "git diff --no-index /dev/null .env",
        "git diff --no-ind /dev/null secrets",
        "git diff --no-index src secrets",
        "git grep --no-index KEY",
        "git grep --no-ind x secrets",
    ];
    let allowed = [
        "git diff --no-index src tests",
        "git diff /dev/null src/main.rs",
        "git grep --no-index KEY src",
        "git diff main -- src",
        "git status",
        "git diff",
    ];
    assert_refused(&workspace, &in_work_tree);
    assert_all_allowed(&workspace, &allowed);
    fs::remove_dir_all(root.join(".git")).unwrap();
    assert_refused(&workspace, &in_work_tree);
    assert_refused(
        &workspace,
        &[
            "git diff src/main.rs .env",
            "git -C src diff main.rs ../.env",
        ],
    );
    assert_all_allowed(&workspace, &allowed);
}

#[test]
fn options_and_variables_select_a_repository() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let sub = root.join("sub");
    write(&sub, &[(".env", "KEY=1"), ("a.rs", "x")]);
    git::run(&sub, &["init", "-q"]);
    git::run(&sub, &["add", "-f", "."]);
    git::run(&sub, &["commit", "-q", "-m", "first"]);
    write(&sub, &[(".env", "KEY=2")]);
    assert_refused(
        &workspace,
        &[
            "git --git-dir=sub/.git --work-tree=sub diff",
            "git --git-dir sub/.git --work-tree sub diff",
            "git --git-dir=sub/.git show",
            "GIT_DIR=sub/.git GIT_WORK_TREE=sub git diff",
            "env GIT_DIR=sub/.git git show",
            "export GIT_DIR=sub/.git; git show",
            "cd src && git --git-dir=../sub/.git --work-tree=../sub diff",
            "git --git-dir=$X diff",
            "GIT_INDEX_FILE=sub/.git/index git diff",
            "git -c core.worktree=sub diff",
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "git diff",
            "git --git-dir=.git diff",
            "git --git-dir=sub/.git --work-tree=sub diff -- a.rs",
            "git --git-dir=sub/.git log --oneline",
            "GIT_DIR=sub/.git git log",
            "git -c color.ui=never diff",
        ],
    );
}

#[test]
fn every_folder_that_git_could_run_in_counts() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    write(root, &[("src/own.pem", "KEY=1")]);
    git::run(root, &["add", "-f", "src/own.pem"]);
    let five = ["server", "tests", "server/tls", "src/util", "src"]
        .map(|dir| format!("if x; then cd ${{CWD}}/{dir}; fi; "))
        .concat();
    assert_refused(
        &workspace,
        &[
            &format!("{five}git grep KEY -- own.pem"),
            "if x; then cd src; fi; git grep KEY -- own.pem",
        ],
    );
}
