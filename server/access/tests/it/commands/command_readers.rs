//! Checks commands that read whole directories.
#![cfg_attr(not(unix), allow(unused, reason = "many of these tests need Unix"))]

use std::{fs, path::Path, sync::Arc};

use sightline_testing::git;

use sightline_access::{Access, AccessView};
use sightline_base::path::{AbsPath, Root, Roots};
use sightline_protocol::settings::Secrets;
use sightline_protocol::{access::CommandAccess, settings::RecursiveReaders};

pub(super) struct Workspace {
    _parent: tempfile::TempDir,
    pub(super) root: String,
    pub(super) view: AccessView,
}

pub(super) fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Creates a project with typical rules. Git does not track the paths in `gitignore`.
fn workspace(gitignore: &str) -> Workspace {
    let parent = tempfile::tempdir().unwrap();
    let folder = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("ws");
    write(
        &folder,
        &[
            (".clineignore", ".env\nsecrets/\n*.pem\n"),
            (".gitignore", gitignore),
            (".env", "KEY=1"),
            ("secrets/token.txt", "x"),
            ("server/tls/cert.pem", "x"),
            ("server/app.py", "x"),
            ("src/main.rs", "x"),
            ("src/util/text.rs", "x"),
            ("tests/basic.rs", "x"),
            ("docs/guide.md", "x"),
            ("README.md", "x"),
            ("package.json", "{}"),
            ("Cargo.toml", ""),
            ("node_modules/left-pad/index.js", "x"),
        ],
    );
    git::run(&folder, &["init", "-q"]);
    git::run(&folder, &["add", "."]);
    git::run(&folder, &["commit", "-q", "-m", "first"]);
    let root = Root::new(AbsPath::new(&folder).unwrap(), None);
    let access = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow);
    Workspace {
        root: folder.to_str().unwrap().replace('\\', "/"),
        view: access.view().0,
        _parent: parent,
    }
}

/// Creates a project whose denied files are untracked.
pub(super) fn untracked() -> Workspace {
    workspace(".env\nsecrets/\n*.pem\nnode_modules/\n")
}

/// Creates a project whose denied files are tracked.
pub(super) fn tracked() -> Workspace {
    workspace("node_modules/\n")
}

impl Workspace {
    pub(super) fn check(&self, command: &str) -> CommandAccess {
        self.view
            .check_command(&command.replace("${CWD}", &self.root))
    }

    fn denied(&self, command: &str) -> Vec<String> {
        self.check(command)
            .denied
            .into_iter()
            .map(|one| one.path)
            .collect()
    }
}

fn assert_all_denied(workspace: &Workspace, commands: &[(&str, &str)]) {
    let mut missed = Vec::new();
    for (command, expected) in commands {
        let answer = workspace.check(command);
        let expected = expected.replace("${CWD}", &workspace.root);
        let below = format!("{expected}/");
        let names = answer.denied.iter().any(|one| {
            let path = one.path.replace('\\', "/");
            path == expected || path.starts_with(&below)
        });
        if !names || answer.allowed {
            missed.push(format!(
                "{command:?} should deny {expected:?}: {:?}",
                answer.denied
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

pub(super) fn assert_all_allowed(workspace: &Workspace, commands: &[&str]) {
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|command| {
            let answer = workspace.check(command);
            (!answer.allowed).then(|| format!("{command:?} denied {:?}", answer.denied))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        commands.len(),
        wrong.join("\n")
    );
}

/// Commands that read a directory, and a path that must be reported as denied.
const READERS: &[(&str, &str)] = &[
    ("grep -r KEY .", ".env"),
    ("grep -r KEY .", "secrets"),
    ("grep -rn KEY", ".env"),
    ("grep -R KEY ./", ".env"),
    ("grep --recursive KEY .", ".env"),
    ("grep --recurs KEY .", ".env"),
    ("grep -d recurse KEY .", ".env"),
    ("grep --directories=recurse KEY .", ".env"),
    ("grep -e KEY -r .", ".env"),
    ("grep -rn KEY server", "server"),
    ("grep -r KEY ${CWD}", "${CWD}/.env"),
    ("grep -r KEY ..", "../ws/.env"),
    ("cd src && grep -r KEY ..", "../.env"),
    ("sudo grep -r KEY .", ".env"),
    ("timeout 5 egrep -r KEY .", ".env"),
    ("echo x | grep -r KEY", ".env"),
    ("grep -r KEY . | head", ".env"),
    ("x=$(grep -r KEY .)", ".env"),
    ("sh -c 'grep -r KEY .'", ".env"),
    ("xargs grep -r KEY . < list", ".env"),
    ("grep -r --exclude=.env KEY .", "secrets"),
    (
        "grep -r --exclude-dir=.env --exclude-dir=secrets KEY .",
        ".env",
    ),
    ("grep -r --exclude=secrets --exclude=.env KEY .", "secrets"),
    ("grep -r --exclude=.env --include='.e*' KEY .", ".env"),
    ("grep -r KEY ser*", "server"),
    ("for d in src .; do grep -r KEY $d; done", ".env"),
    (
        "grep -r KEY $(git rev-parse --show-toplevel)",
        "${CWD}/.env",
    ),
    (
        "grep -r --exclude={.env,x} --exclude-dir=x KEY .",
        "secrets",
    ),
    ("find \"$DIR\" -name .env -exec cat {} +", ".env"),
    ("rgrep KEY .", ".env"),
    ("rg -uu KEY", ".env"),
    ("rg --no-ignore KEY", "secrets"),
    ("rg -u KEY .", "secrets"),
    ("rg --no-ignore --hidden KEY", ".env"),
    ("rg -uu KEY -g '!.env'", "secrets"),
    ("rg -g '.e*' KEY", ".env"),
    ("rg --no-ignore --files | xargs cat", "secrets"),
    ("ag -u KEY", ".env"),
    ("ack KEY", ".env"),
    ("fd -HI -x cat", ".env"),
    ("fd -u . -X head", ".env"),
    ("fd -HI | xargs cat", ".env"),
    ("find . -exec cat {} +", ".env"),
    ("find . -type f -exec grep KEY {} \\;", ".env"),
    ("find -type f -exec head -1 {} +", ".env"),
    ("find . -name '*.txt' -exec cat {} +", "secrets"),
    ("find . -name '.e*' -exec cat {} +", ".env"),
    ("find . -iname '.E*' -exec cat {} +", ".env"),
    ("find . -type f -not -name .env -exec cat {} +", "secrets"),
    (
        "find . -path ./secrets -prune -o -type f -exec cat {} +",
        ".env",
    ),
    (
        "find . -name node_modules -prune -o -type f -print0 | xargs -0 cat",
        ".env",
    ),
    (
        "find . -maxdepth 1 -type d -exec grep -r KEY {} +",
        "secrets",
    ),
    ("find . -maxdepth 1 -type f -exec cat {} +", ".env"),
    ("find . -type f | xargs grep KEY", ".env"),
    ("grep -rn KEY ${X:+foo}", ".env"),
    ("grep -rn KEY ${X+src}", ".env"),
    ("grep -rn KEY \"${a[@]}\"", ".env"),
    ("grep -rn KEY $(test -d zz && echo src)", ".env"),
    ("grep -rn KEY $(echo src | grep zz)", ".env"),
    ("find ${D:+src} -type f -exec cat {} +", ".env"),
    ("xargs grep -rn KEY < /dev/null", ".env"),
    ("cat list | xargs grep -rn KEY", ".env"),
    ("find zz | xargs grep -rn KEY", ".env"),
    ("find . -type f | sort | xargs cat", ".env"),
    (
        "find . -type f | while read -r f; do cat \"$f\"; done",
        ".env",
    ),
    ("cat $(find . -type f)", ".env"),
    ("for f in $(find . -type f); do cat $f; done", ".env"),
    ("find . -newer README.md -exec cat {} +", ".env"),
    ("find . -name .env -exec cat {} \\;", ".env"),
    (
        "find . -path ./secrets/token.txt -exec cat {} \\;",
        "secrets/token.txt",
    ),
    ("tar czf /tmp/x.tgz .", ".env"),
    ("tar -cf - . | ssh host 'cat > x'", ".env"),
    ("tar --create --file x.tar server", "server"),
    ("tar -C src -cf x.tar ..", "../.env"),
    (
        "tar czf x.tgz . --exclude=.env --exclude=secrets --exclude='*.pem'",
        ".env",
    ),
    ("tar czf x.tgz --exclude=.env .", "secrets"),
    ("zip -r x.zip .", ".env"),
    ("zip -qr x.zip . -x .env", "secrets"),
    ("7z a x.7z .", ".env"),
    ("cp -r . /tmp/x", ".env"),
    ("cp -a ./ /tmp/x", ".env"),
    ("cp -R server /tmp/x", "server"),
    ("cp -rt /tmp/x server", "server"),
    ("scp -r . host:x", ".env"),
    ("rsync -a ./ host:x", ".env"),
    ("rsync -avz --exclude=.env . /tmp/x", "secrets"),
    (
        "rsync -a --include=.env --exclude='.*' --exclude=secrets ./ /tmp/x",
        ".env",
    ),
    ("diff -r . /tmp/y", ".env"),
];

/// The same commands with the denied files excluded.
const EXCLUDED: &[&str] = &[
    "grep -r --exclude=.env --exclude-dir=secrets --exclude='*.pem' KEY .",
    "grep -r KEY . --exclude .env --exclude-dir secrets --exclude '*.pem'",
    "grep -rn --include='*.rs' KEY .",
    "grep -r --exclude-dir={secrets,node_modules} --exclude={.env,'*.pem'} KEY .",
    "grep -r KEY \"$DIR\"",
    "grep -rl KEY server",
    "find . -name .env",
    "find . \\( -name a -o -name .env \\) -print",
    "rg -uu -g '!{.env,secrets,*.pem}' KEY",
    "grep -r KEY src docs",
    "grep -rn KEY src/*.rs tests",
    "cd src && grep -r KEY .",
    "rg KEY",
    "rg KEY .",
    "rg -n 'fn main' -t rust",
    "rg -uu -g '!.env' -g '!secrets' -g '!*.pem' KEY",
    "rg --hidden --glob '!.env' KEY",
    "rg -g '*.rs' KEY",
    "rg --files | head",
    "rg --files | xargs wc -l",
    "ag KEY",
    "fd -e rs -x wc -l",
    "fd main",
    "find . -name '*.rs' -exec grep -n main {} +",
    "find . -name '*.rs' | xargs wc -l",
    "find . -type f -name '*.md' -print0 | xargs -0 grep KEY",
    "find src -type f -exec cat {} +",
    "find . -type f -not -name .env -not -path './secrets/*' -not -name '*.pem' -exec cat {} +",
    "find . \\( -name .env -o -name secrets -o -name '*.pem' \\) -prune -o -type f -exec cat {} +",
    "find . -path ./secrets -prune -o -name '*.rs' -print | xargs cat",
    "find . -not -name .env",
    "find . ! -name .env -print",
    "find . -type f -exec chmod 644 {} +",
    "find . -type f | wc -l",
    "find . -type d -empty -delete",
    "tar czf x.tgz src docs",
    "tar czf x.tgz --exclude=.env --exclude=secrets --exclude='*.pem' .",
    "tar --exclude=./.env --exclude ./secrets --exclude '*.pem' -czf x.tgz .",
    "tar xzf x.tgz",
    "tar tf x.tgz",
    "tar -C src -cf x.tar .",
    "zip -r x.zip src docs",
    "zip -r x.zip . -x .env 'secrets/*' '*.pem'",
    "7z a x.7z . -xr!.env -xr!secrets '-xr!*.pem'",
    "cp -r src /tmp/x",
    "cp README.md docs/guide.md /tmp",
    "rsync -a src/ host:x",
    "rsync -a --exclude=.env --exclude=/secrets --exclude='*.pem' ./ /tmp/x",
    "rsync -an ./ /tmp/x",
    "diff -r src tests",
    "diff -ru -x .env -x secrets -x '*.pem' . /tmp/y",
];

#[test]
fn readers_of_directories_with_denied_files_are_denied() {
    assert_all_denied(&untracked(), READERS);
}

#[test]
fn readers_that_exclude_denied_files_are_allowed() {
    assert_all_allowed(&untracked(), EXCLUDED);
}

/// Git is judged by the files that it would print.
#[test]
fn git_prints_tracked_files() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    assert_all_allowed(
        &workspace,
        &[
            "git diff",
            "git diff --stat -p",
            "git diff -- . ':!.env'",
            "git stash -p",
            "git log -p -- src",
            "git grep NOTHING",
        ],
    );
    write(root, &[(".env", "KEY=2"), ("secrets/token.txt", "y")]);
    git::run(root, &["stash", "-q"]);
    git::run(root, &["stash", "apply", "-q"]);
    assert_all_denied(
        &workspace,
        &[
            ("git grep KEY", ".env"),
            ("git -C src grep KEY ..", ".env"),
            ("git grep x -- server", "server/tls/cert.pem"),
            ("git show", ".env"),
            ("git show HEAD", "secrets"),
            ("git --no-pager show HEAD", ".env"),
            ("git diff", ".env"),
            ("git diff --stat -p", ".env"),
            ("git log -p", ".env"),
            ("git log --patch -3", ".env"),
            ("git stash -p", ".env"),
            ("git stash show -p", ".env"),
            ("git stash show -U1", ".env"),
            ("git stash list -m -p", ".env"),
            ("git reflog -p", ".env"),
            ("git reflog show --patch-with-stat", ".env"),
            ("git log --patch-with-raw", ".env"),
            ("git log --binary", ".env"),
            ("git diff --stat -U1", ".env"),
            ("git show --stat --binary", ".env"),
            ("git archive HEAD", ".env"),
            ("git archive --format=zip -o x.zip HEAD", ".env"),
            ("git format-patch -1", ".env"),
            ("git add -p", ".env"),
            ("git ls-files | xargs cat", ".env"),
            ("git diff --name-only | xargs cat", ".env"),
            ("git diff --stat | awk '{print $1}' | xargs cat", ".env"),
            ("cat $(git show --name-only --format= HEAD)", "secrets"),
            ("git log --name-only --format= -3 | xargs cat", ".env"),
            ("git grep -l KEY | xargs cat", ".env"),
            ("git status -s | awk '{print $2}' | xargs cat", ".env"),
            ("git diff-index HEAD | awk '{print $6}' | xargs cat", ".env"),
            ("compgen -G '.e*' | xargs cat", ".env"),
            ("tar xf a.tar && git diff", ".env"),
            ("git diff -- . ':!.env'", "secrets"),
            ("git cat-file --batch", ".env"),
            ("git cat-file -p $(cat ids)", ".env"),
            ("git rev-list --objects HEAD | git cat-file --batch", ".env"),
            ("rg KEY", "secrets"),
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            "git diff --stat",
            "git show --name-only",
            "git show HEAD:src/main.rs",
            "git show HEAD -- src",
            "git diff -- src docs",
            "git diff src/main.rs",
            "git log --oneline -5",
            "git log -m",
            "git reflog",
            "git reflog -5",
            "git stash push -m text",
            "git log -p -- src",
            "git grep KEY -- src '*.md'",
            "cd src && git grep KEY",
            "git grep KEY -- ':!.env' ':!secrets' ':!*.pem'",
            "git diff -- . ':(exclude).env' ':^secrets' ':!*.pem'",
            "git archive HEAD src docs",
            "git stash",
            "git stash show",
            "git ls-files",
            "git ls-files src | xargs wc -l",
            "git diff --name-only -- src | xargs cat",
            "git grep -l KEY -- src | xargs cat",
            "git log --oneline | xargs -n1 echo",
            "git hash-object --stdin < .env",
            "tar xf a.tar && git diff -- src",
            "tar xf a.tar && git status",
            "git status",
        ],
    );
}

/// Operands that look like patterns but are paths.
#[test]
fn a_pattern_does_not_hide_a_path() {
    let refused = [
        "grep KEY .env",
        "grep -e KEY .env",
        "grep --regexp=KEY .env",
        "grep --regex=KEY .env",
        "grep -f .env README.md",
        "grep -- KEY .env",
        "grep -A3 KEY .env",
        "grep -C .env README.md KEY .env",
        "grep $OPTIONS .env README.md",
        "grep {-e,KEY} .env",
        "grep * .env",
        "grep .e* README.md",
        "grep --color .env .env",
        "sudo grep KEY .env",
        "rg KEY .env",
        "rg -f .env src",
        "rg -g .env KEY",
        "git commit -F .env",
        "git checkout -m .env",
        "git log -L 1,5:.env",
        "git rm .env",
        "tar czf x.tgz -T .env",
        "tar czf x.tgz -X .env src",
        "rsync -a --exclude-from=.env src/ x",
        "x --ignore-file=.env",
        "ls .env | xargs cat",
        "jq . .env",
        "jq -f .env x",
        "jq -n --rawfile a .env .",
        "sed s/a/b/ .env",
        "sed -e s/a/b/ .env",
        "sed 'r .env' README.md",
        "sed 's/a/b/w .env' README.md",
        "sed -f .env README.md",
        "[ -f README.md ] && cat .env",
        "[ -f \"$(cat .env)\" ]",
        "test -n \"`cat .env`\"",
        "gh pr create --body-file .env",
        "gh gist create .env",
        "find .env -exec cat {} +",
        "zip -r x.zip .env -x README.md",
        "$RUN cat .env",
        "x=; $x cat .env",
    ];
    let workspace = untracked();
    for command in refused {
        assert!(!workspace.check(command).allowed, "{command}");
    }
}

#[test]
fn the_setting_allows_readers_but_not_denied_names() {
    let workspace = untracked();
    let allowed = |command: &str| {
        let answer = workspace
            .view
            .check_command_with(command, RecursiveReaders::Allow);
        answer.allowed
    };
    for command in [
        "grep -r KEY .",
        "tar cf x.tar .",
        "find . -exec cat {} +",
        "rg -uu KEY",
        "git show",
    ] {
        assert!(allowed(command), "{command}");
    }
    for command in [
        "grep -r KEY .env",
        "grep -r --include=.env KEY .",
        "find . -name .env -exec cat {} +",
        "rg -g .env KEY",
        "cp -r secrets /tmp",
    ] {
        assert!(!allowed(command), "{command}");
    }
}

#[test]
fn without_rules_all_directories_may_be_read() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join(".env"), "x").unwrap();
    let root = Root::new(AbsPath::new(parent.path()).unwrap(), None);
    let access = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow);
    let view = access.view().0;
    for command in ["grep -r x .", "find . -exec cat {} +", "git show"] {
        assert!(view.check_command(command).allowed, "{command}");
    }
}

/// Rules above a root apply in it, but commands do not run above it.
#[test]
fn commands_run_only_in_roots() {
    let parent = tempfile::tempdir().unwrap();
    let folder = sightline_base::path::canonicalize(parent.path()).unwrap();
    write(
        &folder,
        &[
            (".clineignore", "*.pem\n/only-top.txt\n"),
            ("other/a.pem", "x"),
            ("ws/b.txt", "x"),
            ("ws/only-top.txt", "x"),
        ],
    );
    let root = Root::new(AbsPath::new(&folder.join("ws")).unwrap(), None);
    let access = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow);
    let check = |command: &str| access.view().0.check_command(command).allowed;
    assert!(check("grep -r x ."));
    assert!(check("cat only-top.txt"));
    assert!(!check("cat c.pem"));
    fs::write(folder.join("ws/c.pem"), "x").unwrap();
    assert!(!check("grep -r x ."));
}

#[cfg(unix)]
#[test]
fn links_to_denied_files_are_denied() {
    let workspace = untracked();
    let src = Path::new(&workspace.root).join("src");
    std::os::unix::fs::symlink("../.env", src.join("link")).unwrap();
    assert_eq!(workspace.denied("grep -R KEY src"), ["src/link"]);
    assert!(
        workspace
            .denied("grep -R --exclude=link KEY src")
            .is_empty()
    );
}

/// A search that ends early has not found all denied files.
#[test]
fn a_folder_that_cannot_be_searched_completely_is_denied() {
    let parent = tempfile::tempdir().unwrap();
    let root = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("ws");
    let many: Vec<String> = (0..150).map(|at| format!("{at}/.env")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "x")).collect();
    for folder in [root.clone(), root.join("../outside")] {
        write(&folder, &many);
    }
    let roots = vec![Root::new(AbsPath::new(&root).unwrap(), None)];
    let access = Access::new(Arc::new(Roots::new(roots)), Vec::new(), Secrets::Deny);
    let view = access.view().0;
    for folder in [".", "../outside"] {
        for command in [
            "grep -v env | xargs cat",
            "grep -v env | xargs -n1 head",
            "grep -v env > l; cat $(find D | grep -v env)",
        ] {
            let command = format!("find D | {command}").replace('D', folder);
            let denied = view.check_command(&command).denied;
            assert_eq!(denied.len(), 1, "{command}: {denied:?}");
            assert!(
                denied[0].reason.contains("too large to check") && denied[0].path == folder,
                "{denied:?}"
            );
        }
        for command in [
            "find D | head",
            "find D | wc -l",
            "find D -name '*.rs' | xargs ls -l",
            "ls -R D | grep env",
        ] {
            let command = command.replace('D', folder);
            assert!(view.check_command(&command).allowed, "{command}");
        }
    }
}
