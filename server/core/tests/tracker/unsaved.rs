//! Tests of unsaved text, and of saving it.

use super::*;

#[test]
fn unsaved_text_is_what_the_file_holds() {
    let mut desk = Desk::new();
    desk.write("a", "disk", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.unsaved.insert(desk.abs("a"), hash("typed"));
    desk.assert_users("a", 20.0);
    desk.track_with("a", ReadTool, 21.0, None, Some(hash("typed")));
    assert_eq!(desk.look(22.0), (vec![], vec![]));
    // Thrown away: the agent saw what no longer is.
    desk.unsaved.clear();
    desk.assert_users("a", 30.0);
}

#[test]
fn saving_what_the_agent_saw_is_no_edit() {
    let mut desk = Desk::new();
    desk.write("a", "disk\r\n", 0.0);
    desk.unsaved.insert(desk.abs("a"), hash("typed"));
    desk.track_with("a", ReadTool, 10.0, None, Some(hash("typed")));
    desk.unsaved.clear();
    desk.write("a", "typed\r\n", 20.0);
    let saved = |text| {
        let tracker = desk.tracker();
        tracker
            .saved(&desk.abs("a"), hash(text), &Cancel::default())
            .unwrap();
    };
    saved("typed");
    desk.assert_quiet(21.0);
    desk.write("a", "typed more\r\n", 30.0);
    saved("typed more");
    desk.assert_users("a", 31.0);
}

#[test]
fn saving_what_the_user_typed_is_no_second_edit() {
    let mut desk = Desk::new();
    desk.write("a", "disk", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.unsaved.insert(desk.abs("a"), hash("typed"));
    desk.assert_users("a", 20.0);
    // Not even when the agent is about to write.
    desk.track_with("a", ClineEdited, 21.0, None, Some(hash("typed")));
    desk.unsaved.clear();
    desk.write("a", "typed\n", 21.1);
    let tracker = desk.tracker();
    tracker
        .saved(&desk.abs("a"), hash("typed"), &Cancel::default())
        .unwrap();
    let told = (vec!["a".to_owned()], vec!["a".to_owned()]);
    assert_eq!(desk.look(21.2), told);
    assert_eq!(desk.look(60.0), told);
    assert_eq!(desk.sources(), [ReadTool, UserEdited, ClineEdited]);
}

#[test]
fn an_announced_text_may_be_saved_in_other_bytes() {
    let mut desk = Desk::new();
    desk.write("a", "disk", 0.0);
    desk.track("a", ReadTool, 10.0);
    desk.announce("a", "agent", 20.0);
    desk.write("a", "agent\n", 20.1);
    let tracker = desk.tracker();
    tracker
        .saved(&desk.abs("a"), hash("agent"), &Cancel::default())
        .unwrap();
    desk.assert_quiet(21.0);
    desk.unsaved.insert(desk.abs("a"), hash("typed"));
    desk.assert_users("a", 30.0);
}

// The stored files.
