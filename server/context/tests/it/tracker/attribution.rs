//! Attribution of edits to the agent and the user.

use super::*;

#[test]
fn announced_content_is_the_agents_at_any_time() {
    for (announced, written, looked) in [
        (20.0, 20.5, 21.0),
        (20.0, 500.0, 501.0),
        (500.0, 20.0, 501.0),
        (20.0, 20.5, 900.0),
    ] {
        let fixture = Fixture::new();
        fixture.write("a", "1", 0.0);
        fixture.track("a", ReadTool, 10.0);
        if announced < written {
            fixture.announce("a", "agent", announced);
            fixture.assert_quiet(announced + 0.1);
            fixture.write("a", "agent", written);
        } else {
            fixture.write("a", "agent", written);
            fixture.announce("a", "agent", announced);
        }
        fixture.assert_quiet(looked);
        fixture.write("a", "user", 1_000.0);
        fixture.assert_users("a", 1_001.0);
    }
}

#[test]
fn with_a_hash_everything_else_is_the_users() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.announce("a", "agent", 20.0);
    fixture.write("a", "user", 20.1);
    fixture.assert_users("a", 20.2);
}

#[test]
fn undoing_the_agents_write_is_an_edit() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.announce("a", "agent", 20.0);
    // No scan in between.
    fixture.write("a", "agent", 20.1);
    fixture.write("a", "1", 25.0);
    fixture.assert_users("a", 26.0);
}

#[test]
fn an_unnoticed_edit_under_the_agents_write_is_not_lost() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "user", 15.0);
    fixture.announce("a", "agent", 20.0);
    fixture.write("a", "agent", 20.1);
    // Reported, although the file now holds the agent's text.
    assert_eq!(fixture.look(21.0), (vec!["a".to_owned()], vec![]));
    assert_eq!(fixture.sources(), [ReadTool, UserEdited, ClineEdited]);
    assert_eq!(fixture.deliver(22.0), ["a"]);
    assert_eq!(fixture.look(23.0), (vec![], vec![]));
}

#[test]
fn a_scan_between_write_and_notification_is_harmless() {
    for hash_of in [None, Some(hash("agent"))] {
        let fixture = Fixture::new();
        fixture.write("a", "1", 0.0);
        fixture.track("a", ReadTool, 10.0);
        fixture.write("a", "agent", 20.0);
        fixture.assert_users("a", 20.1);
        fixture.track_with("a", ClineEdited, 20.2, hash_of, None);
        assert_eq!(fixture.look(20.3), (vec![], vec![]));
        assert_eq!(fixture.sources(), [ReadTool, ClineEdited]);
        let newest = fixture.tracker().records().unwrap().files.pop().unwrap();
        assert_eq!(newest.user_edit_date, None);
    }
}

#[test]
fn without_a_hash_existing_content_is_the_agents() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "agent", 15.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.assert_quiet(20.1);
    // The write arrived, so no other is expected.
    fixture.write("a", "user", 20.2);
    fixture.assert_users("a", 20.3);
}

#[test]
fn a_user_edit_is_not_attributed_to_the_next_agent_edit() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.write("a", "user", 12.0);
    fixture.assert_users("a", 13.0);
    fixture.track("a", ClineEdited, 20.0);
    let told = (vec!["a".to_owned()], vec!["a".to_owned()]);
    assert_eq!(fixture.look(20.1), told);
    assert_eq!(fixture.look(60.0), told);
    assert_eq!(fixture.sources(), [ReadTool, UserEdited, ClineEdited]);
}

#[test]
fn the_agent_may_revert_within_its_window() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.write("a", "2", 20.1);
    fixture.assert_quiet(20.2);
    fixture.write("a", "1", 20.3);
    fixture.assert_quiet(20.4);
    fixture.assert_quiet(60.0);
}

#[test]
fn agent_deletions_are_attributed_to_the_agent() {
    let fixture = Fixture::new();
    for name in ["before", "after"] {
        fixture.write(name, "1", 0.0);
        fixture.track(name, ReadTool, 10.0);
    }
    fs::remove_file(fixture.path("before")).unwrap();
    fixture.track("before", ClineEdited, 20.0);
    fixture.track("after", ClineEdited, 20.0);
    fs::remove_file(fixture.path("after")).unwrap();
    fixture.assert_quiet(20.5);
    fixture.assert_quiet(60.0);
}

#[test]
fn two_edits_in_a_row_are_both_the_agents() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    for (seconds, text) in [(20.0, "2"), (20.5, "3"), (30.0, "4")] {
        fixture.track("a", ClineEdited, seconds);
        fixture.write("a", text, seconds + 0.1);
    }
    fixture.assert_quiet(60.0);
    for (seconds, text) in [(70.0, "5"), (70.1, "6")] {
        fixture.announce("a", text, seconds);
        fixture.write("a", text, seconds + 0.05);
    }
    fixture.assert_quiet(90.0);
}

#[test]
fn reading_before_the_announced_write_keeps_it_expected() {
    for hash_of in [None, Some(hash("agent"))] {
        let fixture = Fixture::new();
        fixture.write("a", "1", 0.0);
        fixture.track_with("a", ClineEdited, 20.0, hash_of, None);
        fixture.track("a", ReadTool, 20.1);
        fixture.write("a", "agent", 20.2);
        fixture.assert_quiet(20.3);
    }
}

#[test]
fn a_pending_user_edit_survives_an_agent_edit_on_top() {
    for with_hash in [true, false] {
        let fixture = Fixture::new();
        fixture.write("a", "1", 0.0);
        fixture.track("a", ReadTool, 10.0);
        fixture.write("a", "user", 20.0);
        fixture.assert_users("a", 21.0);
        fixture.write("a", "agent", 30.0);
        let announced = with_hash.then(|| hash("agent"));
        fixture.track_with("a", ClineEdited, 30.1, announced, None);
        assert_eq!(fixture.look(31.0), (vec!["a".to_owned()], vec![]));
    }
}

#[test]
fn a_user_notification_within_the_agents_window_is_accepted() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.write("a", "user", 20.2);
    fixture.track("a", UserEdited, 20.3);
    let told = (vec!["a".to_owned()], vec!["a".to_owned()]);
    assert_eq!(fixture.look(20.4), told);
    assert_eq!(fixture.look(60.0), told);
}

#[test]
fn the_agent_may_revert_after_a_read_within_its_window() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.write("a", "2", 20.1);
    fixture.track("a", ReadTool, 20.2);
    fixture.write("a", "1", 20.3);
    fixture.assert_quiet(20.4);
}

#[test]
fn the_window_is_two_seconds_wide() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.track("a", ClineEdited, 20.0);
    fixture.write("a", "2", 22.0);
    fixture.assert_quiet(22.0);
}

#[test]
fn content_other_than_announced_is_not_marked_seen() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.track("a", ReadTool, 10.0);
    fixture.announce("a", "agent", 20.0);
    fixture.write("a", "user", 30.0);
    fixture.assert_users("a", 31.0);
    // With its old time, as by a tool that restores a file.
    fixture.write("a", "1", 0.0);
    assert_eq!(fixture.look(41.0), (vec![], vec![]));
}

#[test]
fn repeated_announced_content_is_the_users_after_a_read() {
    let fixture = Fixture::new();
    fixture.write("a", "1", 0.0);
    fixture.announce("a", "agent", 10.0);
    fixture.write("a", "agent", 10.1);
    fixture.track("a", ReadTool, 20.0);
    fixture.write("a", "other", 30.0);
    fixture.track("a", ReadTool, 31.0);
    fixture.write("a", "agent", 40.0);
    fixture.assert_users("a", 41.0);
}
