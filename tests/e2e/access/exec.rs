//! `sightline exec`: commands that cannot open denied files (Linux).

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    process::{Command, Output, Stdio},
};

use sightline_testing::git;

use crate::harness::{Workspace, program};

mod with_server;

const SECRET: &str = "s3cret-value-of-a-denied-file";

/// A repository with denied files that git ignores, a denied folder of which git tracks one file,
/// and an untracked rule file.
fn workspace() -> Workspace {
    let workspace = Workspace::new(&[
        (".gitignore", ".env\nprivate/\nhome/\n"),
        (".clineignore", "private/\nmixed/\n"),
        (".env", SECRET),
        ("private/notes.md", SECRET),
        ("private/deep/more.md", SECRET),
        ("mixed/tracked.txt", "tracked\n"),
        ("mixed/untracked.txt", SECRET),
        ("src/a.ts", "a\n"),
    ]);
    let root = workspace.root();
    fs::create_dir(root.join("home")).unwrap();
    std::os::unix::fs::symlink("../.env", root.join("src/link")).unwrap();
    git::init(&root);
    git::run(
        &root,
        &["add", "-f", ".gitignore", "src/a.ts", "mixed/tracked.txt"],
    );
    git::run(&root, &["commit", "-qm", "start"]);
    workspace
}

fn with_identity(command: &mut Command) {
    for name in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{name}_NAME"), "A")
            .env(format!("GIT_{name}_EMAIL"), "a@b");
    }
}

/// Prepares the program, with the home directory and configuration in the workspace.
fn at_home(workspace: &Workspace) -> Command {
    let mut command = program();
    command
        .current_dir(workspace.root())
        .env("HOME", workspace.path("home"))
        .env("XDG_CONFIG_HOME", workspace.path("home/config"))
        .env("XDG_DATA_HOME", workspace.data())
        .stdin(Stdio::null());
    command
}

fn exec(workspace: &Workspace) -> Command {
    let mut command = at_home(workspace);
    with_identity(&mut command);
    command.arg("exec");
    command
}

fn shell(workspace: &Workspace, line: &str) -> Output {
    exec(workspace).args(["--shell", line]).output().unwrap()
}

/// Starts the program as opencode starts its shell.
fn as_shell(workspace: &Workspace, arguments: &[&str]) -> Output {
    let mut command = at_home(workspace);
    command
        .args(arguments)
        .env("SHELL", "/bin/sh")
        .env("OPENCODE_TERMINAL", "1");
    command.output().unwrap()
}

/// Returns whether this system can hide files. Prints the reason if not.
#[allow(clippy::print_stderr)]
fn can_hide(workspace: &Workspace) -> bool {
    let output = shell(workspace, "true");
    let reason = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(125) {
        eprintln!("skipped: {reason}");
        return false;
    }
    assert!(output.status.success(), "{reason}");
    true
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

#[test]
fn no_program_reads_a_denied_file() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    for line in [
        "cat .env",
        "cat < .env",
        "cat src/link",
        "cat private/notes.md mixed/untracked.txt",
        "cd private && cat *",
        "grep -rn value .",
        "find . -type f -exec cat {} +",
        "tar cf - .",
        "cp .env copy; cat copy",
        "ln .env other; cat other",
        "mv .env other; cat other",
        "mv private other; cat other/*",
        "python3 -c \"print(open('.'+'env').read())\"",
        "python3 -c \"import os; print(os.read(os.open('private/notes.md', os.O_RDONLY), 99))\"",
        "sh -c 'cat .e*'",
        "chmod 777 .env; cat .env",
        "umount .env; cat .env",
        "cat /proc/1/root$PWD/.env /proc/$PPID/root$PWD/.env /proc/$PPID/cwd/.env",
        "unshare -rm sh -c 'umount .env; cat .env'",
        "unshare -rm sh -c 'mkdir -p home/m; mount --bind . home/m; cat home/m/.env'",
        "unshare -rm sh -c 'mkdir -p home/m; mount --rbind . home/m; umount home/m/.env; cat home/m/.env'",
    ] {
        let output = shell(&workspace, line);
        let shown = text(&output);
        assert!(!shown.contains(SECRET), "{line}: {shown}");
        assert_ne!(output.status.code(), Some(125), "{line}: {shown}");
    }
    // The files are as they were, and readable.
    for path in [
        ".env",
        "private/notes.md",
        "private/deep/more.md",
        "mixed/untracked.txt",
    ] {
        assert_eq!(fs::read_to_string(workspace.path(path)).unwrap(), SECRET);
    }
    let seen = shell(
        &workspace,
        "cat src/a.ts mixed/tracked.txt; test -f .env && ls -A private",
    );
    assert_eq!(text(&seen), "a\ntracked\n");
}

/// A command can make git list a file that it cannot read. What git cannot print stays hidden.
#[test]
fn what_only_the_index_names_stays_hidden() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    for line in [
        "git add -fN .env mixed/untracked.txt",
        "git update-index --add --cacheinfo 100644,$(git hash-object -w /dev/null),.env",
        "git update-index --add --cacheinfo 100644,$(git hash-object -w /dev/null),private/notes.md",
    ] {
        let output = shell(&workspace, line);
        assert!(output.status.success(), "{line}: {}", text(&output));
        let shown = text(&shell(&workspace, "cat .env private/notes.md mixed/*"));
        assert!(!shown.contains(SECRET), "{line}: {shown}");
        assert!(shown.contains("tracked\n"), "{line}: {shown}");
    }
    git::run(&workspace.root(), &["reset", "-q"]);
    // What the user has staged, git can print.
    git::run(&workspace.root(), &["add", "-f", ".env"]);
    let output = shell(&workspace, "cat .env && git diff --quiet");
    assert_eq!(text(&output), SECRET);
    assert!(output.status.success());
    fs::write(workspace.path(".env"), format!("other {SECRET}")).unwrap();
    let shown = text(&shell(&workspace, "cat .env"));
    assert!(!shown.contains(SECRET), "{shown}");
}

/// A folder that the caller has open leads to the files that are covered for the command.
#[test]
fn open_folders_are_not_passed_on() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let words: Vec<String> = exec(&workspace)
        .get_args()
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    let line = format!(
        "exec 7<. 8<src/a.ts; {} {} --shell 'cat /proc/self/fd/7/.env; cat <&8'",
        program().get_program().display(),
        words.join(" ")
    );
    let mut outer = Command::new("sh");
    outer.args(["-c", &line]).current_dir(workspace.root());
    let inner = exec(&workspace);
    let variables = inner.get_envs();
    outer.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let shown = text(&outer.output().unwrap());
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.starts_with("a\n"), "{shown}");
}

/// The project that contains the current folder is hidden, not only the folder.
#[test]
fn a_folder_below_the_project_is_no_project() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    workspace.write("src/.clineignore", "!.env\nown.md\n");
    workspace.write("src/.env", SECRET);
    workspace.write("src/own.md", SECRET);
    for line in [
        "cat .env own.md ../.env ../private/notes.md",
        "cat $(dirname $PWD)/.env",
        "grep -rn value ..",
    ] {
        let mut command = exec(&workspace);
        command.current_dir(workspace.path("src"));
        let shown = text(&command.args(["--shell", line]).output().unwrap());
        assert!(!shown.contains(SECRET), "{line}: {shown}");
    }
}

/// A repository in the project has its own files, and the project around it is hidden too.
#[test]
fn a_nested_repository_hides_the_project_around_it() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    workspace.write("vendor/lib/.env", SECRET);
    workspace.write("vendor/lib/a.c", "a\n");
    git::init(&workspace.path("vendor/lib"));
    for line in [
        "cat .env ../../.env ../../private/notes.md ../../mixed/untracked.txt",
        "grep -rn value ../..",
        "cd ../.. && cat .env",
    ] {
        let mut command = exec(&workspace);
        command
            .current_dir(workspace.path("vendor/lib"))
            .env("HOME", "/nonexistent");
        let shown = text(&command.args(["--shell", line]).output().unwrap());
        assert!(!shown.contains(SECRET), "{line}: {shown}");
    }
    let mut command = exec(&workspace);
    command
        .current_dir(workspace.path("vendor/lib"))
        .env("HOME", "/nonexistent");
    let shown = text(
        &command
            .args(["cat", "a.c", "../../src/a.ts"])
            .output()
            .unwrap(),
    );
    assert_eq!(shown, "a\na\n");
}

#[test]
fn other_users_and_nested_calls_read_nothing_either() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let nested = format!(
        "{} exec --shell 'cat .env'",
        program().get_program().display()
    );
    let output = shell(&workspace, &nested);
    assert!(!text(&output).contains(SECRET), "{}", text(&output));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    if !rustix::process::getuid().is_root() {
        return;
    }
    // As a user, who may read everything.
    fs::set_permissions(workspace.root(), fs::Permissions::from_mode(0o777)).unwrap();
    let copy = workspace.path("home/sightline");
    fs::copy(program().get_program(), &copy).unwrap();
    let as_user = |line: &str| {
        let mut command = Command::new("setpriv");
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
        command
            .args(user)
            .arg(&copy)
            .args(["exec", "--shell", line])
            .current_dir(workspace.root())
            .env("HOME", "/nonexistent");
        command.output()
    };
    match as_user("id -u; cat .env src/a.ts") {
        Ok(output) if output.status.code() != Some(127) => {
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "65534\na\n",
                "{output:?}"
            );
        }
        other => return eprintln!("skipped: cannot run as another user: {other:?}"),
    }
    // It cannot list the folder, but open what it knows the name of.
    fs::write(workspace.path("src/.env"), SECRET).unwrap();
    fs::set_permissions(workspace.path("src"), fs::Permissions::from_mode(0o711)).unwrap();
    let shown = text(&as_user("cat src/.env; id -u").unwrap());
    assert!(
        !shown.contains(SECRET) && shown.contains("65534"),
        "{shown}"
    );
}

#[test]
fn git_works_and_keeps_denied_files_in_its_commits() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let root = workspace.root();
    for line in [
        "git status --short",
        "git diff",
        "git ls-files",
        "echo b >> src/a.ts && git add src && git commit -qm one",
        "echo c >> src/a.ts && git commit -qam two",
        "echo d >> src/a.ts && git stash -q && git stash pop -q",
        "git checkout -q . && git clean -fdnx",
        "git reset -q --hard HEAD~1",
        "git checkout -qb other && echo e >> mixed/tracked.txt && git commit -qam three",
        "git checkout -q - && git merge -q other && git rebase -q HEAD~1",
        "git log -p --oneline >/dev/null && git show --stat >/dev/null && git grep -q tracked",
    ] {
        let output = shell(&workspace, line);
        assert!(output.status.success(), "{line}: {}", text(&output));
        assert!(!text(&output).contains(SECRET), "{line}: {}", text(&output));
        let tracked = git::run(&root, &["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(tracked.contains("mixed/tracked.txt"), "{line}: {tracked}");
    }
    fs::remove_file(workspace.path("mixed/untracked.txt")).unwrap();
    let index = fs::read(root.join(".git/index")).unwrap();
    assert!(shell(&workspace, "git diff --quiet").status.success());
    assert_eq!(fs::read(root.join(".git/index")).unwrap(), index);
    let output = shell(
        &workspace,
        "git add -A && git commit -qm all && git status --short",
    );
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{}",
        text(&output)
    );
    let tracked = git::run(&root, &["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(
        tracked.contains(".clineignore") && !tracked.contains(".env"),
        "{tracked}"
    );
}

#[test]
fn rule_files_are_read_only() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let before = fs::read_to_string(workspace.path(".clineignore")).unwrap();
    for line in [
        "echo '!.env' >> .clineignore",
        "rm -f .clineignore",
        "mv src/a.ts .clineignore",
        "sed -i s/private/x/ .clineignore",
    ] {
        let output = shell(&workspace, line);
        assert!(!output.status.success(), "{line}");
        assert_eq!(
            fs::read_to_string(workspace.path(".clineignore")).unwrap(),
            before
        );
    }
}

#[test]
fn without_denied_files_nothing_changes_for_the_command() {
    let workspace = workspace();
    for path in [".env", ".clineignore", "private", "mixed/untracked.txt"] {
        let path = workspace.path(path);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    let line = "readlink /proc/self/ns/user";
    let own = fs::read_link("/proc/self/ns/user").unwrap();
    assert_eq!(text(&shell(&workspace, line)).trim(), own.to_str().unwrap());
    workspace.write(".env", SECRET);
    assert_ne!(text(&shell(&workspace, line)).trim(), own.to_str().unwrap());
}

#[test]
fn the_command_runs_as_without_it() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let run = |arguments: &[&str]| exec(&workspace).args(arguments).output().unwrap();
    let status = |arguments: &[&str]| run(arguments).status;
    assert_eq!(status(&["--", "sh", "-c", "exit 7"]).code(), Some(7));
    assert_eq!(
        status(&["--", "sh", "-c", "kill -TERM $$"]).signal(),
        Some(15)
    );
    for (program, code, message) in [
        ("no-such-program", 127, "no-such-program: command not found"),
        ("./no-such-program", 127, "cannot run ./no-such-program: "),
        ("./src/a.ts", 126, "cannot run ./src/a.ts: "),
        ("./src", 126, "cannot run ./src: "),
    ] {
        let output = run(&["--", program]);
        assert_eq!(output.status.code(), Some(code), "{program}");
        assert!(text(&output).contains(message), "{}", text(&output));
    }
    assert_eq!(status(&["--shell", "true", "two"]).code(), Some(125));
    // The project above the given folder.
    assert_eq!(
        status(&["--root", "src", "--", "cat", ".env"]).code(),
        Some(1)
    );
    // Standard streams, arguments, environment, user and process are those of the caller.
    let mut command = exec(&workspace);
    command.args([
        "--",
        "sh",
        "-c",
        "cat; printf '%s|' \"$@\"; echo $X $(id -u) $$",
        "sh",
        "a b",
        "--root",
    ]);
    command
        .env("X", "y z")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = child.id();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let user = rustix::process::getuid().as_raw();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("in\na b|--root|y z {user} {pid}\n")
    );
}

#[test]
fn nothing_runs_if_files_cannot_be_hidden() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let refused = |output: &Output, why: &str| {
        let shown = text(output);
        assert_eq!(output.status.code(), Some(125), "{why}: {shown}");
        assert!(
            shown.contains("nothing was run") && shown.contains(why),
            "{shown}"
        );
        assert!(!shown.contains("ran"), "{shown}");
    };
    // A container that allows no more namespaces.
    let mut command = Command::new("unshare");
    let line = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
    command
        .args(["-rU", "sh", "-c", line, "sh"])
        .arg(program().get_program());
    command
        .args(["exec", "--", "echo", "ran"])
        .current_dir(workspace.root());
    refused(&command.output().unwrap(), "user namespace");
    // The command would start in a folder that does not exist for it.
    let mut command = exec(&workspace);
    command
        .args(["--", "echo", "ran"])
        .current_dir(workspace.path("private/deep"));
    refused(&command.output().unwrap(), "the current folder is hidden");
    // Rules that cannot be read deny everything.
    fs::remove_file(workspace.path(".clineignore")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.path(".clineignore")).unwrap();
    refused(&shell(&workspace, "echo ran"), ".clineignore");
}

#[test]
fn commands_of_the_users_list_see_their_files() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let config = workspace.path("home/config/sightline/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let settings = "[access]\ncommands = \"hide\"\nvisibleTo = [\"cat .env\"]\n";
    fs::write(&config, settings).unwrap();
    for (line, is_visible) in [
        ("cat .env", true),
        ("cat  .env src/a.ts", true),
        ("cat src/a.ts .env", false),
        ("cat .env; cat .env", false),
        ("cat .env | cat", false),
        ("X=1 cat .env", false),
        ("cat .env > home/out", false),
        ("cat $(echo .env)", false),
    ] {
        for output in [shell(&workspace, line), as_shell(&workspace, &["-c", line])] {
            let shown = text(&output);
            assert_eq!(shown.contains(SECRET), is_visible, "{line}: {shown}");
        }
        // The check of commands has the same answer.
        let arguments = ["access", "--command", line];
        let check = at_home(&workspace).args(arguments).output().unwrap();
        assert_eq!(check.status.success(), is_visible, "{line}: {check:?}");
    }
    // Not from a project.
    fs::rename(&config, workspace.path(".sightline.toml")).unwrap();
    let shown = text(&shell(&workspace, "cat .env"));
    let is_reported = shown.contains("visibleTo");
    assert!(!shown.contains(SECRET) && is_reported, "{shown}");
}

#[test]
fn a_terminal_of_opencode_has_the_shell_of_the_user() {
    let workspace = workspace();
    let profile = workspace.path("home/.profile");
    fs::write(
        profile,
        format!(
            "echo profile of $0; cat {}/.env\n",
            workspace.root().display()
        ),
    )
    .unwrap();
    let shown = text(&as_shell(&workspace, &[]));
    assert!(
        shown.contains("profile of") && shown.contains(SECRET),
        "{shown}"
    );
    // Settings of the user decide whether files are hidden.
    let shown = text(&as_shell(&workspace, &["-c", "cat .env"]));
    assert!(shown.contains(SECRET), "{shown}");
}

#[test]
fn no_program_of_the_repository_runs() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let root = workspace.root();
    let seen = workspace.path("home/seen");
    let script = workspace.path("home/fetch.sh");
    fs::write(
        &script,
        format!("#!/bin/sh\necho ran > {}\n", seen.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    // The tree that a sparse index names is missing, as in a clone without it.
    let script = script.to_str().unwrap();
    for words in [
        &["sparse-checkout", "set", "--cone", "--sparse-index", "src"][..],
        &["config", "remote.origin.url", "."],
        &["config", "remote.origin.promisor", "true"],
        &["config", "remote.origin.uploadpack", script],
        &["config", "extensions.partialClone", "origin"],
        &["config", "core.repositoryFormatVersion", "1"],
    ] {
        git::run(&root, words);
    }
    let folder = root.join(".git/objects");
    for entry in fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().len() == 2 {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let shown = text(&shell(&workspace, "cat .env; echo done"));
    assert!(shown.contains("done") && !shown.contains(SECRET), "{shown}");
    assert!(!seen.exists());
}

#[test]
fn an_option_that_does_not_exist_is_not_the_program() {
    for command in [&["exec"][..], &["run"], &["mcp", "wrap"]] {
        let words = [command, &["--rot", "--", "true"]].concat();
        let output = program().args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("unexpected argument '--rot'"), "{error}");
    }
    // What follows the program is its own.
    let workspace = Workspace::new(&[("a.txt", "")]);
    let words = ["printf", "%s.", "--root", "--help"];
    let output = exec(&workspace).args(words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--root.--help.");
}
