//! Unsaved text, and saving it.

use super::*;

#[test]
fn unsaved_text_is_the_file_content() {
    let mut fixture = Fixture::new();
    fixture.write("a", "disk", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.unsaved.insert(fixture.abs("a"), hash("typed"));
    fixture.assert_users("a", 20.0);
    fixture.track_with("a", ReadTool, 21.0, None, Some(hash("typed")));
    assert_eq!(fixture.look(22.0), (vec![], vec![]));
    // Discarded: the agent saw text that is gone.
    fixture.unsaved.clear();
    fixture.assert_users("a", 30.0);
}

#[test]
fn saving_text_the_agent_saw_is_not_an_edit() {
    let mut fixture = Fixture::new();
    fixture.write("a", "disk\r\n", 0.0);
    fixture.unsaved.insert(fixture.abs("a"), hash("typed"));
    fixture.track_with("a", ReadTool, 10.0, None, Some(hash("typed")));
    fixture.unsaved.clear();
    fixture.write("a", "typed\r\n", 20.0);
    let saved = |text| {
        let tracker = fixture.tracker();
        tracker
            .saved(&fixture.abs("a"), hash(text), &Cancel::default())
            .unwrap();
    };
    saved("typed");
    fixture.assert_quiet(21.0);
    fixture.write("a", "typed more\r\n", 30.0);
    saved("typed more");
    fixture.assert_users("a", 31.0);
}

#[test]
fn saving_user_text_is_not_a_second_edit() {
    let mut fixture = Fixture::new();
    fixture.write("a", "disk", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.unsaved.insert(fixture.abs("a"), hash("typed"));
    fixture.assert_users("a", 20.0);
    // Not even if the agent is about to write.
    fixture.track_with("a", ClineEdited, 21.0, None, Some(hash("typed")));
    fixture.unsaved.clear();
    fixture.write("a", "typed\n", 21.1);
    let tracker = fixture.tracker();
    tracker
        .saved(&fixture.abs("a"), hash("typed"), &Cancel::default())
        .unwrap();
    let told = (vec!["a".to_owned()], vec!["a".to_owned()]);
    assert_eq!(fixture.look(21.2), told);
    assert_eq!(fixture.look(60.0), told);
    assert_eq!(fixture.sources(), [ReadTool, UserEdited, ClineEdited]);
}

#[test]
fn an_announced_text_may_be_saved_in_other_bytes() {
    let mut fixture = Fixture::new();
    fixture.write("a", "disk", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.announce("a", "agent", 20.0);
    fixture.write("a", "agent\n", 20.1);
    let tracker = fixture.tracker();
    tracker
        .saved(&fixture.abs("a"), hash("agent"), &Cancel::default())
        .unwrap();
    fixture.assert_quiet(21.0);
    fixture.unsaved.insert(fixture.abs("a"), hash("typed"));
    fixture.assert_users("a", 30.0);
}

// The stored files.
