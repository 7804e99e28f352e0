//! `sightline hook`, about files outside of the project of the session.

use serde_json::{Value, json};

use crate::{
    harness::{Workspace, program},
    hook::hook_with,
};

/// A project, and other folders next to it.
const FILES: &[(&str, &str)] = &[
    ("app/.git/HEAD", "ref: refs/heads/main\n"),
    ("app/.env", "KEY=1\n"),
    ("app/src/a.ts", "a\n"),
    ("home/.aws/credentials", "KEY\n"),
    ("home/.aws/config", "region\n"),
    ("other/.env", "KEY=1\n"),
    ("other/src/a.ts", "a\n"),
    ("shared/.clineignore", "plan*\n"),
    ("shared/plan.md", "plan\n"),
    ("shared/open.md", "open\n"),
];

/// Returns whether Claude Code's hook refuses a tool in a session of the folder.
fn refuses(workspace: &Workspace, dir: &str, tool: &str, arguments: &Value) -> bool {
    let input = json!({
        "session_id": "s", "cwd": workspace.path(dir), "tool_name": tool, "tool_input": arguments,
    });
    let said = hook_with(workspace, "PreToolUse", "claude", &input.to_string(), &[]);
    assert!(!said.contains("could not check"), "{arguments}: {said}");
    said.contains("\"deny\"")
}

#[test]
fn reads_of_folders_outside_of_the_project_are_checked() {
    let workspace = Workspace::new(FILES);
    let grep = |path: &str| {
        let path = workspace.path(path);
        json!({ "pattern": "KEY", "path": path, "output_mode": "content" })
    };
    let bash = |command: &str| json!({ "command": command });
    let refused = [
        ("Grep", grep("home/.aws")),
        ("Grep", grep("other")),
        ("Grep", grep("shared")),
        (
            "read_many_files",
            json!({ "include": ["src/*", "../other/**"] }),
        ),
        (
            "read_many_files",
            json!({ "include": [workspace.path("home/.aws/*")] }),
        ),
        ("x", json!({ "path": "../home/.aws/cred*" })),
        ("x", json!({ "path": workspace.path("shared/p*") })),
        ("Bash", bash("cat ../home/.aws/*")),
        ("Bash", bash("cd ../home/.aws && cat cred*")),
        ("Bash", bash("grep -r KEY ../other")),
        ("Bash", bash("cp -r ../other q")),
        ("Bash", bash("grep -r plan ../shared")),
    ];
    for (tool, arguments) in refused {
        let is_refused = refuses(&workspace, "app", tool, &arguments);
        assert!(is_refused, "{arguments}");
    }
    let allowed = [
        (
            "read_many_files",
            json!({ "include": ["src/*", "../other/src/**"] }),
        ),
        (
            "read_many_files",
            json!({ "include": ["../other/**/*.ts"] }),
        ),
        ("Grep", grep("other/src")),
        ("Grep", grep("shared/open.md")),
        (
            "Grep",
            json!({ "pattern": "KEY", "path": workspace.path("other") }),
        ),
        (
            "Glob",
            json!({ "pattern": "*", "path": workspace.path("home/.aws") }),
        ),
        ("x", json!({ "path": "../home/.aws/conf*" })),
        ("Bash", bash("ls -la ../home/.aws")),
        ("Bash", bash("cd ../home/.aws && cat conf*")),
        ("Bash", bash("grep -r a ../other/src")),
        ("Bash", bash("grep -r a ../other --include='*.ts'")),
        ("Bash", bash("cat ../shared/o*")),
        ("Bash", bash("find .. -name .env | head")),
    ];
    for (tool, arguments) in allowed {
        let is_refused = refuses(&workspace, "app", tool, &arguments);
        assert!(!is_refused, "{arguments}");
    }
}

/// A project with a folder whose rules would allow secrets, and a link to this folder.
fn with_folder(is_repository: bool) -> Workspace {
    let workspace = Workspace::new(&[
        ("app/.clineignore", "notes.md\n"),
        ("app/notes.md", "SECRET\n"),
        ("app/.env", "SECRET\n"),
        ("app/src/a.ts", "a\n"),
        ("app/pkg/.clineignore", "!.env\n!notes.md\nown.md\n"),
        ("app/pkg/.env", "SECRET\n"),
        ("app/pkg/own.md", "SECRET\n"),
        ("app/pkg/a.ts", "a\n"),
    ]);
    if is_repository {
        workspace.write("app/.git/HEAD", "ref: refs/heads/main\n");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("app/pkg", workspace.path("link")).unwrap();
    workspace
}

#[test]
fn a_folder_below_the_project_is_judged_by_the_rules_of_the_project() {
    for is_repository in [true, false] {
        let workspace = with_folder(is_repository);
        let bash = |command: &str| json!({ "command": command });
        let read = |path: &str| json!({ "file_path": workspace.path(path) });
        let refused = [
            ("Read", read("app/pkg/.env")),
            ("Read", read("app/.env")),
            ("Bash", bash("cat .env")),
            ("Bash", bash("cat own.md")),
            ("Bash", bash("cat $PWD/.env")),
            ("Bash", bash("grep -r SECRET .")),
        ];
        let parent = [
            "cat ../.env",
            "cat ../notes.md",
            "cat ../.e*",
            "grep -r SECRET ..",
            "cd .. && cat *.md",
        ];
        let parent = parent.map(|command| ("Bash", bash(command)));
        let allowed = [
            ("Bash", bash("cat a.ts")),
            ("Bash", bash("ls -la ..")),
            ("Bash", bash("grep -r a ../src")),
            ("Bash", bash("cat ../src/a.ts")),
        ];
        let dirs: &[&str] = if cfg!(unix) {
            &["app/pkg", "link"]
        } else {
            &["app/pkg"]
        };
        for dir in dirs {
            // The parent folder of a link is that of its target.
            let is_link = *dir == "link";
            let parent = parent.iter().filter(|_| !is_link);
            for (tool, arguments) in refused.iter().chain(parent) {
                let is_refused = refuses(&workspace, dir, tool, arguments);
                assert!(is_refused, "{dir}: {arguments}");
            }
        }
        for (tool, arguments) in allowed {
            let is_refused = refuses(&workspace, "app/pkg", tool, &arguments);
            assert!(!is_refused, "{arguments}");
        }
        let run = |arguments: &[&str]| {
            let mut command = program();
            command
                .args(arguments)
                .current_dir(workspace.path("app/pkg"));
            let output = command
                .env("XDG_DATA_HOME", workspace.data())
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        for path in [".env", "own.md", "../.env", "../notes.md"] {
            assert!(run(&["access", path]).starts_with("denied"), "{path}");
            assert_eq!(run(&["read", path]), "", "{path}");
            let command = format!("cat {path}");
            let answer = run(&["access", "--command", &command]);
            assert!(answer.starts_with("denied"), "{command}: {answer}");
        }
        let answer = run(&["access", "--command", "grep -rn SECRET ."]);
        assert!(answer.contains("\ninstead\tgrep --exclude="), "{answer}");
        assert_eq!(run(&["access", "--command", "cat a.ts"]), "allowed\n");
        assert!(run(&["access", "a.ts", "../src/a.ts"]).contains("allowed\t../src/a.ts"));
    }
}
