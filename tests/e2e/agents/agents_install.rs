//! What `sightline agents install`, `uninstall` and `status` say.

use std::fs;

use crate::agents::Home;

#[test]
fn uninstall_names_what_is_there() {
    let home = Home::new();
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let text = home.run(&["uninstall", "--agent", "claude"], 1);
    assert!(
        text.starts_with(
            "Claude Code: 6 hooks, MCP server -> ~/.claude/settings.json, ~/.claude.json\n"
        ),
        "{text}"
    );
}

#[test]
fn init_is_recommended_to_those_without_rules() {
    let home = Home::new();
    let install = ["install", "--agent", "claude"];
    let text = home.run(&install, 1);
    assert!(text.contains("`sightline init`"), "{text}");
    fs::write(home.workspace.root().join(".clineignore"), "").unwrap();
    let text = home.run(&install, 1);
    assert!(!text.contains("sightline init"), "{text}");
    assert!(text.contains("files that .clineignore names"), "{text}");
}
