//! Searches.

use super::*;

#[test]
fn a_search_that_would_read_denied_files_is_refused() {
    let workspace = Workspace::new(FILES);
    workspace.write("app/[id]/secret.txt", "S\n");
    for (tool, arguments, refused) in [
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x" }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "." }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "sec*" }),
            true,
        ),
        ("search_file_content", json!({ "pattern": "x" }), true),
        ("read_many_files", json!({ "paths": ["**/*.txt"] }), true),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "" }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "app/[id]" }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "SEC*" }),
            true,
        ),
        ("read_many_files", json!({ "paths": ["SEC*"] }), true),
        ("read_many_files", json!({ "paths": ["app", "*.rs"] }), true),
        (
            "mcp__linear-notes__search_files",
            json!({ "query": "x" }),
            true,
        ),
        (
            "mcp__slack__grep",
            json!({ "path": ".", "pattern": "x" }),
            true,
        ),
        ("mcp__grep__searchGitHub", json!({ "query": "x" }), false),
        ("Bash", json!({ "command": "rg --iglob 'SEC*' x" }), true),
        (
            "Bash",
            json!({ "command": "rg --glob-case-insensitive -g 'SEC*' x" }),
            true,
        ),
        (
            "Bash",
            json!({ "command": "rg --iglob '!SECRET.TXT' x sub" }),
            false,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "*.rs secret*" }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": " . " }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "nope/.." }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "x:/.." }),
            true,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "%2E" }),
            true,
        ),
        (
            "grep",
            json!({ "pattern": "x", "include": "secret.txt" }),
            true,
        ),
        ("grep", json!({ "pattern": "x", "include": "!x" }), true),
        ("rg", json!({ "pattern": "x" }), true),
        (
            "grep_search",
            json!({ "pattern": "x", "exclude_pattern": "secret.txt" }),
            true,
        ),
        ("Read", json!({ "file_path": "%73ecret.txt" }), true),
        (
            "write_bash",
            json!({ "input": "cat secret.txt{enter}" }),
            true,
        ),
        ("Bash", json!({ "command": "grep -r . x:/.." }), false),
        ("mcp__github__search_code", json!({ "query": "x" }), false),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "sub/" }),
            false,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "*.{rs,md}" }),
            false,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "path": "sub" }),
            false,
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "*.rs" }),
            false,
        ),
        ("read_many_files", json!({ "paths": ["sub/*.txt"] }), false),
        ("WebSearch", json!({ "query": "x" }), false),
        ("Glob", json!({ "pattern": "**/*.txt" }), false),
    ] {
        assert_eq!(
            refuses(&workspace, tool, &arguments),
            refused,
            "{tool} {arguments}"
        );
    }
}

#[test]
fn a_refusal_says_what_to_do_instead() {
    let workspace = Workspace::new(FILES);
    for (tool, arguments) in [
        ("Read", json!({ "file_path": "secret.txt" })),
        ("Bash", json!({ "command": "cat secret.txt" })),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x", "glob": "secret*" }),
        ),
    ] {
        let input = json!({
            "cwd": workspace.root(), "tool_name": tool, "tool_input": arguments,
        });
        let said = hook_with(&workspace, "PreToolUse", "claude", &input.to_string(), &[]);
        let part =
            "secret.txt is hidden from agents: .clineignore:1: secret.txt; continue without it.";
        assert!(said.contains(part), "{tool}: {said}");
        assert!(!said.contains("Ask the user"), "{said}");
    }
    let workspace = Workspace::new(&[
        ("key.pem", "-----BEGIN PRIVATE KEY-----\n"),
        ("a.ts", "a\n"),
    ]);
    for (tool, arguments, instead) in [
        (
            "Bash",
            json!({ "command": "grep -rn x ." }),
            "; run instead: grep --exclude",
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "x" }),
            r#"Search instead with glob: \"!key.pem\""#,
        ),
    ] {
        let input = json!({
            "cwd": workspace.root(), "tool_name": tool, "tool_input": arguments,
        });
        let said = hook_with(&workspace, "PreToolUse", "claude", &input.to_string(), &[]);
        assert!(said.contains(instead), "{tool}: {said}");
    }
    // What the refusal names passes.
    for glob in ["!key.pem", "*.pem !key.pem"] {
        let arguments = json!({ "pattern": "x", "glob": glob, "output_mode": "content" });
        assert!(!refuses(&workspace, "Grep", &arguments), "{glob}");
    }
}

#[test]
fn searches_are_refused_only_for_files_that_they_print() {
    let workspace = Workspace::new(FILES);
    workspace.write("src/main.ts", "m\n");
    for (tool, arguments, refused) in [
        (
            "Grep",
            json!({ "pattern": "x", "output_mode": "content" }),
            true,
        ),
        (
            "Grep",
            json!({ "pattern": "x", "output_mode": "files_with_matches" }),
            false,
        ),
        (
            "Grep",
            json!({ "pattern": "x", "output_mode": "count" }),
            false,
        ),
        (
            "Grep",
            json!({ "pattern": "x", "type": "ts", "output_mode": "content" }),
            false,
        ),
        (
            "Grep",
            json!({ "pattern": "x", "type": "txt", "output_mode": "content" }),
            true,
        ),
        ("read_many_files", json!({ "include": ["**/*.ts"] }), false),
        ("read_many_files", json!({ "include": ["*.ts"] }), false),
        ("read_many_files", json!({ "include": ["**/*.txt"] }), true),
        ("read_many_files", json!({ "include": ["hidden/*"] }), true),
    ] {
        let found = refuses(&workspace, tool, &arguments);
        assert_eq!(found, refused, "{tool} {arguments}");
    }
}

#[test]
fn a_search_that_another_tool_calls_is_refused() {
    let workspace = Workspace::new(FILES);
    let inner = json!({ "tool": "grep", "parameters": { "pattern": "x" } });
    assert!(refuses(
        &workspace,
        "batch",
        &json!({ "tool_calls": [inner] })
    ));
    let inner = json!({ "tool": "grep", "parameters": { "pattern": "x", "path": "notes.txt" } });
    let calls = json!({ "tool_calls": [inner] });
    assert!(!refuses(&workspace, "batch", &calls));
}
