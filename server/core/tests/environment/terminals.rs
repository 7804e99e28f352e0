//! What terminals show and may not show.

use super::*;

#[test]
fn long_output_keeps_both_ends() {
    let mut world = World::new(&["app"], &[]);
    let output: String = (0..700).map(|n| format!("line {n}\n")).collect();
    world.terminals(&[("1", "make", true, &output)]);
    let body = world.body(SectionId::RunningTerminals);
    let lines: Vec<&str> = body.lines().collect();
    assert_eq!(lines.len(), 2 + 100 + 1 + 100);
    assert_eq!(lines[101], "line 99");
    assert_eq!(lines[102], "[... 500 lines not shown ...]");
    assert_eq!(lines[103], "line 600");
}

#[test]
fn a_terminal_without_a_command_goes_by_its_name() {
    let mut world = World::new(&["app"], &[]);
    let terminal = |id: &str, name: Option<&str>| Terminal {
        id: id.to_owned(),
        name: name.map(str::to_owned),
        is_busy: true,
        ..Terminal::default()
    };
    world
        .editor
        .set_terminals(vec![terminal("7", Some("zsh")), terminal("8", None)]);
    assert_eq!(
        world.body(SectionId::RunningTerminals),
        "## Original command: `zsh`\n## Original command: `terminal 8`"
    );
}

#[test]
fn escape_sequences_in_a_command_hide_nothing() {
    let mut world = denied_everywhere();
    world.terminals(&[
        ("1", "cat \u{1b}[31mx.secret\u{1b}[0m", true, "a"),
        ("5", "\u{1b}[1mmake\u{1b}[0m", true, ""),
    ]);
    assert_eq!(
        world.body(SectionId::RunningTerminals),
        "## Original command: `make`"
    );
}
