//! `sightline hook`, about files outside of the project of the session.

use serde_json::{Value, json};

use crate::{harness::Workspace, hook::hook_with};

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
