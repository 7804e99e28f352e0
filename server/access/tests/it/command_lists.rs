//! Rates of the command check on lists of commands.
//!
//! The lists are data: everyday commands that read no denied file, commands that name one, and
//! commands that read whole folders.

mod instead;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use sightline_access::Access;
use sightline_base::path::{AbsPath, Root, Roots};
use sightline_protocol::{access::CommandAccess, settings::Secrets};
use sightline_testing::git;

const INNOCENT: &str = include_str!("commands/innocent.txt");
const NAMED: &str = include_str!("commands/named.txt");
const RECURSIVE: &str = include_str!("commands/recursive.txt");
const OUTSIDE: &str = include_str!("commands/outside.txt");
const OUTSIDE_INNOCENT: &str = include_str!("commands/outside_innocent.txt");

/// Denied files, by built-in rules or by `private/`.
const DENIED_FILES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    "config/secrets.yml",
    "certs/server.pem",
    "id_rsa",
    "services/api/.env",
    "private/notes.md",
    "private/data.json",
];
/// Text that only denied files contain.
const MARKER: &str = "SECRET_TOKEN_VALUE";

struct Workspace {
    _parent: tempfile::TempDir,
    root: PathBuf,
    access: Access,
}

/// Whether git tracks the denied files, and whether there are rules of the user.
#[derive(Clone, Copy)]
struct Kind {
    tracked: bool,
    user_rules: bool,
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns the denied files. A private key in the top folder is read by `cat *`.
fn denied_files(kind: Kind) -> impl Iterator<Item = &'static str> {
    let files = DENIED_FILES.iter().copied();
    files.filter(move |path| kind.tracked || *path != "id_rsa")
}

fn write_denied(root: &Path, kind: Kind, version: &str) {
    for path in denied_files(kind) {
        let text = match Path::new(path).extension().and_then(|it| it.to_str()) {
            Some("json") => format!("{{\"KEY\": \"{MARKER}_{version}\"}}\n"),
            Some("yml") => format!("SECRET: {MARKER}_{version}\n"),
            _ => format!("SECRET={MARKER}_{version}\n"),
        };
        write(root, path, &text);
    }
}

fn workspace(kind: Kind) -> Workspace {
    let parent = tempfile::tempdir().unwrap();
    let root = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("ws");
    for (path, text) in [
        (
            "src/main.ts",
            "import { add } from './util/math'\nadd(1, 2)\n",
        ),
        (
            "src/util/math.ts",
            "export const add = (a: number, b: number) => a + b\n",
        ),
        ("src/app.py", "def main():\n    pass\n"),
        ("src/lib.rs", "fn main() {}\n"),
        ("tests/app.test.ts", "import '../src/main'\n"),
        ("docs/guide.md", "# Guide\n"),
        ("README.md", "# Readme\n"),
        (
            "package.json",
            "{\"name\": \"app\", \"version\": \"1.0.0\", \"scripts\": {\"build\": \"tsc\"}}\n",
        ),
        ("config/app.yml", "port: 80\n"),
        ("certs/server.crt", "certificate\n"),
        ("services/api/index.ts", "export {}\n"),
        ("Makefile", "build:\n\ttrue\n"),
        (".env.example", "SECRET=\n"),
        ("id_rsa.pub", "public\n"),
        ("node_modules/left-pad/index.js", "module.exports = 1\n"),
    ] {
        write(&root, path, text);
    }
    if kind.user_rules {
        write(&root, ".clineignore", "private/\n");
    }
    let mut ignored = "node_modules/\n".to_owned();
    if !kind.tracked {
        ignored.push_str(".env*\n!.env.example\nprivate/\n*.pem\nsecrets.yml\n");
    }
    write(&root, ".gitignore", &ignored);
    write_denied(&root, kind, "1");
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "."]);
    git::run(&root, &["commit", "-q", "-m", "first"]);
    write(
        &root,
        "src/main.ts",
        "import { add } from './util/math'\nadd(2, 2)\n",
    );
    write_denied(&root, kind, "2");
    git::run(&root, &["commit", "-q", "-a", "-m", "second"]);
    write(&root, "README.md", "# Readme\n\nMore.\n");
    write_denied(&root, kind, "3");
    git::run(&root, &["stash", "-q"]);
    git::run(&root, &["stash", "apply", "-q"]);
    write_outside(root.parent().unwrap());
    let roots = Roots::new(vec![Root::new(AbsPath::new(&root).unwrap(), None)]);
    Workspace {
        access: Access::new(Arc::new(roots), Vec::new(), Secrets::Deny),
        root,
        _parent: parent,
    }
}

/// Writes folders next to the workspace, with denied files by built-in rules and by rules in them.
fn write_outside(parent: &Path) {
    let secret = format!("key = \"{MARKER}\"\n");
    let crate_dir = "home/.cargo/registry/src/index/serde-1.0.0";
    for (path, text) in [
        ("home/.aws/config", "region = x\n"),
        ("home/.aws/credentials", &secret),
        ("home/.cargo/config.toml", "[build]\n"),
        ("home/.cargo/credentials.toml", &secret),
        (&format!("{crate_dir}/Cargo.toml"), "version = \"1.0.0\"\n"),
        (
            &format!("{crate_dir}/src/lib.rs"),
            "pub trait Serialize {}\n",
        ),
        (&format!("{crate_dir}/tests/key.pem"), "test key\n"),
        (
            "home/go/pkg/mod/example.com/lib@v1.0.0/a.go",
            "func a() {}\n",
        ),
        (
            "home/go/pkg/mod/example.com/lib@v1.0.0/test.key",
            "test key\n",
        ),
        ("home/notes/todo.txt", "todo\n"),
        ("lib/node_modules/tls/index.js", "module.exports = 1\n"),
        ("lib/node_modules/tls/test/key.pem", "test key\n"),
        (
            "lib/venv/lib/python3.12/site-packages/key.pem",
            "test key\n",
        ),
        ("log/a.txt", "error\n"),
        ("log/b.txt", "ok\n"),
        ("other/.env", &secret),
        ("other/README.md", "# Other\n"),
        ("other/src/a.ts", "export {}\n"),
        ("shared/.clineignore", "hidden*\n"),
        ("shared/hidden.txt", &secret),
        ("shared/open.md", "open\n"),
        ("shared/deep/.clineignore", "plan.md\n"),
        ("shared/deep/plan.md", &secret),
    ] {
        write(parent, path, text);
    }
    let other = parent.join("other");
    git::run(&other, &["init", "-q"]);
    git::run(&other, &["add", "."]);
    git::run(&other, &["commit", "-q", "-m", "first"]);
}

impl Workspace {
    fn check(&self, command: &str) -> CommandAccess {
        self.access.view().0.check_command(command)
    }

    /// Returns the commands of a list, with the folder `home` for `~`.
    fn commands_outside(&self, list: &str) -> Vec<String> {
        let home = self.root.parent().unwrap().join("home");
        let home = home.to_str().unwrap().replace('\\', "/");
        let commands = commands(list).into_iter();
        commands.map(|line| line.replace('~', &home)).collect()
    }
}

/// Returns the commands of a list.
fn commands(list: &str) -> Vec<String> {
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.replace('␤', "\n"))
        .collect()
}

/// Prints the rate of exceptions and fails above a limit in percent.
fn assert_rate(name: &str, exceptions: &[String], count: usize, percent: usize) {
    println!(
        "{name}: {} of {count}\n{}",
        exceptions.len(),
        exceptions.join("\n")
    );
    assert!(
        exceptions.len() * 100 <= count * percent,
        "{name}: {} of {count}:\n{}",
        exceptions.len(),
        exceptions.join("\n")
    );
}

fn refused(workspace: &Workspace, commands: &[String]) -> Vec<String> {
    let check = |command: &String| {
        let result = workspace.check(command);
        let reason = || {
            result
                .denied
                .iter()
                .map(|one| one.reason.clone())
                .collect::<Vec<_>>()
        };
        (!result.allowed).then(|| format!("{command:?} {:?}", reason()))
    };
    commands.iter().filter_map(check).collect()
}

fn passed(workspace: &Workspace, commands: &[String]) -> Vec<String> {
    let check = |command: &&String| workspace.check(command).allowed;
    commands
        .iter()
        .filter(check)
        .map(|command| format!("{command:?}"))
        .collect()
}

#[test]
fn innocent_commands_are_allowed() {
    let all = commands(INNOCENT);
    assert!(all.len() >= 300);
    for user_rules in [true, false] {
        let workspace = workspace(Kind {
            tracked: false,
            user_rules,
        });
        assert_rate("innocent refused", &refused(&workspace, &all), all.len(), 2);
    }
}

/// A tracked secret that did not change is not printed.
#[test]
fn git_commands_that_print_no_denied_file_are_allowed() {
    let all = commands(INNOCENT);
    let git_only: Vec<String> = all
        .into_iter()
        .filter(|line| line.starts_with("git "))
        .collect();
    let workspace = workspace(Kind {
        tracked: true,
        user_rules: true,
    });
    git::run(&workspace.root, &["commit", "-q", "-a", "-m", "third"]);
    for text in ["import './a'\n", "import './b'\n", "import './c'\n"] {
        write(&workspace.root, "src/main.ts", text);
        git::run(&workspace.root, &["commit", "-q", "-a", "-m", "more"]);
    }
    write(&workspace.root, "src/main.ts", "import './d'\n");
    assert_rate(
        "innocent git refused",
        &refused(&workspace, &git_only),
        git_only.len(),
        2,
    );
}

#[test]
fn commands_that_name_a_denied_file_are_denied() {
    let all = commands(NAMED);
    assert!(all.len() >= 300);
    let with_rules = workspace(Kind {
        tracked: true,
        user_rules: true,
    });
    assert_rate("named passed", &passed(&with_rules, &all), all.len(), 2);
    let built_in: Vec<String> = all
        .into_iter()
        .filter(|line| !line.contains("pri") && !line.contains("notes.md"))
        .collect();
    let without_rules = workspace(Kind {
        tracked: true,
        user_rules: false,
    });
    assert_rate(
        "named passed, built-in rules",
        &passed(&without_rules, &built_in),
        built_in.len(),
        2,
    );
}

#[test]
fn commands_that_read_folders_with_denied_files_are_denied() {
    let all = commands(RECURSIVE);
    assert!(all.len() >= 90);
    let with_rules = workspace(Kind {
        tracked: true,
        user_rules: true,
    });
    let passed_with_rules = passed(&with_rules, &all);
    assert_rate("recursive passed", &passed_with_rules, all.len(), 3);
    // Only `private` has Markdown files.
    let has_denied = |line: &String| !line.contains("md SECRET") && !line.contains("*.md");
    let built_in: Vec<String> = all.into_iter().filter(has_denied).collect();
    let without_rules = workspace(Kind {
        tracked: true,
        user_rules: false,
    });
    let passed = passed(&without_rules, &built_in);
    assert_rate(
        "recursive passed, built-in rules",
        &passed,
        built_in.len(),
        3,
    );
}

#[test]
fn the_same_rules_hold_outside_of_the_workspace() {
    for user_rules in [true, false] {
        let workspace = workspace(Kind {
            tracked: false,
            user_rules,
        });
        let leaking = workspace.commands_outside(OUTSIDE);
        let passed = passed(&workspace, &leaking);
        assert_rate("outside passed", &passed, leaking.len(), 0);
        let innocent = workspace.commands_outside(OUTSIDE_INNOCENT);
        let refused = refused(&workspace, &innocent);
        assert_rate("outside refused", &refused, innocent.len(), 0);
    }
}

#[test]
fn a_reason_names_the_file_and_the_rule() {
    let workspace = workspace(Kind {
        tracked: true,
        user_rules: true,
    });
    let result = workspace.check("grep -r KEY services");
    assert_eq!(result.denied[0].path, "services/api/.env");
    let reason = &result.denied[0].reason;
    assert!(
        reason.starts_with("`grep` would read `services/api/.env`, which built-in secrets line "),
        "{reason}"
    );
    assert!(!reason.contains(". "), "{reason}");
    for (command, path) in [
        ("cat */*.md", "private/notes.md"),
        ("cat **/*.json", "private/data.json"),
        ("for f in */*.md; do cat $f; done", "private/notes.md"),
        ("tmux new -d \"cat .env\"", ".env"),
        ("script -qc 'cat .env' x", ".env"),
        ("su -c \"cat .env\"", ".env"),
        ("echo .env | xargs -I{} sh -c 'cat {}'", ".env"),
    ] {
        assert_eq!(workspace.check(command).denied[0].path, path, "{command}");
    }
}
