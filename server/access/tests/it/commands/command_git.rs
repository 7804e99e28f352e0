//! The check asks git which files a command would print. It runs nothing that the command names, and
//! refuses what it cannot determine.

use std::{fs, path::Path};

use sightline_testing::git;

use super::command_readers::{Workspace, assert_all_allowed, tracked, untracked, write};

pub(super) fn assert_refused(workspace: &Workspace, commands: &[&str]) {
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

/// The check runs git without programs that the repository configures.
#[cfg(unix)]
#[test]
fn asking_git_runs_no_configured_program() {
    use std::os::unix::fs::PermissionsExt;

    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let trap = root.join("trap.sh");
    let ran = root.join("ran");
    fs::write(
        &trap,
        format!("#!/bin/sh\necho \"$@\" >> '{}'\ncat\n", ran.display()),
    )
    .unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", trap),
        ("core.pager", trap),
        ("core.hooksPath", root.to_str().unwrap()),
        ("diff.external", trap),
        ("diff.x.textconv", trap),
        ("diff.x.command", trap),
        ("filter.x.clean", trap),
        ("filter.x.smudge", trap),
        ("filter.x.process", trap),
        ("filter.x.required", "true"),
        ("gpg.program", trap),
        ("log.showSignature", "true"),
    ] {
        git::run(root, &["config", key, value]);
    }
    write(
        root,
        &[
            (".gitattributes", "* filter=x diff=x\n"),
            ("src/main.rs", "y"),
            (".env", "KEY=2"),
        ],
    );
    for command in [
        "git diff",
        "git show",
        "git log -p",
        "git grep KEY",
        "git stash list -p",
        "git ls-files | xargs cat",
        "git add -A && git diff --cached",
        "git commit -am x && git show",
        "git stash -u && git stash show -p",
        "git reset --hard HEAD && git log -p",
        "git diff --submodule=diff",
    ] {
        assert!(
            !workspace.check(command).allowed || command.contains("stash"),
            "{command}"
        );
    }
    assert!(!ran.exists(), "{:?}", fs::read_to_string(&ran));
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
            "git diff --stat -wp",
            "git add --pat",
            "git grep -l -Ocat KEY",
            "git grep -nlOcat KEY",
            "git grep --open-files=cat --untracked KEY",
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
    git::run(root, &["clone", "-q", "--bare", ".", "../store.git"]);
    assert_refused(
        &workspace,
        &[
            "git -C ../store.git show HEAD:secrets/token.txt",
            "cd ../store.git && git show HEAD:secrets/token.txt",
            "cd ../store.git && git cat-file -p HEAD:secrets/token.txt",
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
            "git -C ../store.git show HEAD:src/main.rs",
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

/// What git prints is judged after the commands before it.
#[test]
fn earlier_commands_change_what_git_prints() {
    let workspace = untracked();
    let root = Path::new(&workspace.root);
    fs::write(root.join(".gitignore"), "node_modules/\n").unwrap();
    git::run(root, &["commit", "-qam", "second"]);
    write(root, &[("src/main.rs", "y")]);
    assert_refused(
        &workspace,
        &[
            "git add -A && git diff --cached",
            "git add -A && git commit -qm x && git show $(git rev-parse HEAD)",
            "git add . ; git diff --staged",
            "git add --all && git commit -m x && git show",
            "git add -N . && git diff",
            "git add server && git commit -qm x && git log -p -1",
            "git add $FILES && git diff --cached",
            "git add -- secrets && git diff --cached",
            "(git add -A; git stash) && git stash show -p",
            "git stash -u && git stash show -p --include-untracked",
            "git stash push --include-untracked && git stash show -p",
            "git -C src add -A && git diff --cached",
            "cd src && git add -A .. && git diff --cached",
            "git add -A && git diff --cached server",
            "git add -A && git grep --cached KEY",
            "git add -A && git ls-files | xargs cat",
            "git add -A && git archive HEAD",
            "if git add -A; then git diff --cached; fi",
            "sh -c 'git add -A' && git diff --cached",
            "git config alias.d 'show HEAD:.env' && git d",
            "git -c alias.d='show HEAD:.env' d",
            "git worktree add copy && cat copy/secrets/token.txt",
            "git clone -q . copy && cat copy/secrets/token.txt",
            "git clone -q . copy && grep -r x copy/secrets",
            "git worktree add -q ../copy HEAD && cat ../copy/secrets/token.txt",
            "git clone -q . /nowhere/copy; head -5 /nowhere/copy/secrets/token.txt",
            "git worktree add /nowhere/copy && cd /nowhere && sed -n 1p copy/secrets/token.txt",
            "git update-index --add .env && git diff --cached",
            "mv server backend && git add backend && git diff --cached",
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "git add -A && git commit -m x",
            "git add -A && git commit -m x && git show --stat",
            "git add -A && git diff --cached --stat",
            "git add src && git diff --cached",
            "git add -u && git diff --cached",
            "git add src README.md && git commit -m 'server' && git show",
            "git add -A && git diff --cached -- src",
            "git add -A && git diff --cached src README.md",
            "git commit -am x && git show",
            "git diff --cached && git add -A && git commit -m x",
            "cp -r src copy && git add copy && git diff --cached",
            "git stash && git stash show -p",
            "git stash && git stash pop && git diff",
            "git checkout -b new && git diff",
            "git fetch && git log --oneline",
            "git reset --soft HEAD~1 && git diff --cached",
            "git add -A && git log --oneline | head",
            "git add -A && git status",
            "mv src/main.rs src/lib.rs && cat src/lib.rs",
            "rm -rf docs && git diff",
            "git worktree add copy && cat copy/src/main.rs",
            "git worktree add -q ../copy HEAD && cat ../copy/src/main.rs ../copy/new.txt",
            "git clone -q . /nowhere/copy && ls /nowhere/copy/secrets && cat /nowhere/copy/README.md",
        ],
    );
}

#[test]
fn earlier_commands_change_tracked_files() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    git::run(root, &["branch", "old"]);
    write(root, &[(".env", "KEY=2")]);
    git::run(root, &["commit", "-qam", "second"]);
    write(root, &[("src/main.rs", "y")]);
    git::run(root, &["commit", "-qam", "third"]);
    write(root, &[("src/main.rs", "z")]);
    assert_refused(
        &workspace,
        &[
            "rm -rf server && git diff",
            "mv server backend && git diff",
            "mv server backend && git add -A && git diff --cached --no-renames",
            "mv server backend && cat backend/tls/cert.pem",
            "mv server backend && cat backend/tls/*",
            "mv server backend && grep -r x backend",
            "git rm -qr server && git diff --cached",
            "git checkout old && git diff HEAD@{1}",
            "git reset --hard HEAD~2 && git diff HEAD@{1}",
            "git reset HEAD~2 && git diff",
            "git checkout old && git log -p",
            "git revert --no-commit HEAD~1 && git diff --cached",
            "git pull && git log -p -1",
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "rm -rf docs && git diff",
            "git commit -am x && git show",
            "git stash && git stash show -p",
            "mv docs guides && git diff",
            "git commit -am x && git diff HEAD~1",
        ],
    );
    write(root, &[(".env", "KEY=3")]);
    assert_refused(
        &workspace,
        &[
            "git commit -am x && git show",
            "git commit -m x -- .env && git show",
            "git commit -qa -m x; git log -p -1",
            "git stash && git stash show -p",
            "git stash; git stash list -p",
            "git add -u && git diff --cached",
        ],
    );
}

/// What is ignored may be changed, too.
#[test]
fn earlier_commands_change_what_is_ignored() {
    let workspace = untracked();
    assert_refused(
        &workspace,
        &[
            "rm .gitignore && git add -A && git diff --cached",
            "sed -i /env/d .gitignore; git add . && git diff --cached",
            "echo > .git/info/exclude && git add . && git diff --cached",
            "git add -f . && git diff --cached",
            "git stash -a && git stash show -p --include-untracked",
            "git update-index --add .env && git diff --cached",
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "git add -A && git diff --cached",
            "git stash -u && git stash show -p --include-untracked",
            "echo dist >> .gitignore && git add -A && git commit -m x",
        ],
    );
}

/// Files of a repository without a work tree, and of submodules.
#[test]
fn git_is_judged_in_bare_repositories_and_submodules() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    git::run(root, &["clone", "-q", "--bare", ".", "mirror.git"]);
    let module = root.parent().unwrap().join("module");
    write(&module, &[(".env", "KEY=1"), ("a.rs", "x")]);
    git::run(&module, &["init", "-q"]);
    git::run(&module, &["add", "-f", "."]);
    git::run(&module, &["commit", "-q", "-m", "first"]);
    let url = module.to_str().unwrap();
    let allow = "protocol.file.allow=always";
    git::run(
        root,
        &["rm", "-q", "--cached", "-r", ".env", "secrets", "server"],
    );
    git::run(
        root,
        &["-c", allow, "submodule", "--quiet", "add", url, "lib"],
    );
    git::run(root, &["commit", "-q", "-m", "second"]);
    write(root, &[("lib/.env", "KEY=2")]);
    assert_refused(
        &workspace,
        &[
            "git -C mirror.git show",
            "cd mirror.git && git log -p",
            "cd mirror.git/refs && git log -p",
            "git --git-dir=mirror.git log -p",
            "git -C mirror.git grep x HEAD",
            "git -C mirror.git archive HEAD",
            "git -C mirror.git format-patch --root -1 --stdout",
            "cd .git && git log -p",
            "git clone -q --bare . other.git && git -C other.git log -p",
            "git submodule foreach git diff",
            "git submodule --quiet foreach --recursive 'git diff'",
            "git submodule foreach 'cat .env'",
            "git diff --submodule=diff",
            "git -c diff.submodule=diff diff",
            "git log -p --submodule=diff",
            "git grep --recurse-submodules KEY",
            "git ls-files --recurse-submodules | xargs cat",
            "cd lib && git diff",
            "git -C lib log -p",
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "git diff",
            "git diff --submodule",
            "git -C mirror.git log --oneline",
            "git submodule status",
            "git submodule foreach git status",
            "git submodule foreach 'git pull'",
            "git grep x",
        ],
    );
}

/// The id of a content does not say of which file it is.
#[test]
fn contents_named_by_their_id_are_refused() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let id = |name: &str| git::run(root, &["rev-parse", name]).trim().to_owned();
    let (blob, commit, tree) = (id("HEAD:.env"), id("HEAD"), id("HEAD:src"));
    assert_refused(
        &workspace,
        &[
            &format!("git show {blob}"),
            &format!("git show {}", &blob[..8]),
            &format!("git show {blob}^{{blob}}"),
            &format!("git cat-file -p {blob}"),
            &format!("X={}; git cat-file blob $X | head", &blob[..8]),
            &format!("git grep KEY {blob}"),
            "git tag secret HEAD:.env && git show secret",
            "git show :/first",
            "git grep -n -- KEY",
            "git grep -n -- \"$pattern\"",
            "git log -p -1 -S -- \"$commit\"",
            "for d in a b c d e; do (cd $d && git show HEAD -- ..); done",
            "for d in a b c d e src; do (cd $d && git show HEAD main.rs); done",
            &format!("git diff {} {blob}", id("HEAD:src/main.rs")),
        ],
    );
    write(root, &[("added", "x")]);
    assert_all_allowed(
        &workspace,
        &[
            &format!("git show {tree}"),
            &format!("git cat-file -t {blob}"),
            "git cat-file -p HEAD:src/main.rs",
            "git grep dead src",
            "git grep -n -- absent",
            "for d in a b c d e src; do (cd $d && git show HEAD -- .); done",
            &format!("git show --stat {commit}"),
            &format!("git diff {commit}"),
            &format!("git diff {}~0 -- src", &commit[..7]),
            "git diff added",
        ],
    );
}

/// Commands that print no content of a file that they name.
#[test]
fn what_git_prints_nothing_of_is_allowed() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let id = git::run(root, &["rev-parse", "HEAD:.env"]);
    let id = id.trim();
    assert_all_allowed(
        &workspace,
        &[
            "git hash-object .env",
            "git hash-object --no-filters .env src/main.rs",
            "git log -p --no-patch",
            "git log --patch -s --stat",
        ],
    );
    assert_refused(
        &workspace,
        &[
            "git hash-object -w .env",
            "git hash-object -tblob -w .env",
            "git archive HEAD",
            &format!("git cat-file -p {id}"),
            "git log --no-patch -p",
        ],
    );
}
