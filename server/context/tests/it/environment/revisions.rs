//! Incremental blocks.

use super::*;

fn ids(sections: &[Section]) -> Vec<SectionId> {
    sections.iter().map(|section| section.id).collect()
}

#[test]
fn only_changes_since_a_revision_are_returned() {
    let mut fixture = Fixture::new(&["app"], &[("app/a.txt", ""), ("app/b.txt", "")]);
    fixture.tabs(&["app/a.txt"]);
    let mut revisions = Revisions::default();
    let first = revisions.answer(fixture.build(), None, true);
    assert!(first.revision > 0);

    fixture.params.now = Some(1_749_301_446_000);
    let same = revisions.answer(fixture.build(), Some(first.revision), true);
    assert_eq!(ids(&same.sections), [SectionId::CurrentTime]);
    assert_eq!(same.revision, first.revision);
    assert!(same.text.contains("3:04:06 PM") && !same.text.contains("a.txt"));

    fixture.tabs(&["app/a.txt", "app/b.txt"]);
    let announced = revisions.context_changed();
    assert!(announced > first.revision);
    let changed = revisions.answer(fixture.build(), Some(first.revision), true);
    assert!(changed.revision >= announced);
    assert_eq!(
        ids(&changed.sections),
        [SectionId::OpenTabs, SectionId::CurrentTime]
    );
    assert_eq!(changed.sections[0].text, "a.txt\nb.txt");

    // Back to the first state: no change since the first revision.
    fixture.tabs(&["app/a.txt"]);
    let back = revisions.answer(fixture.build(), Some(first.revision), true);
    assert_eq!(ids(&back.sections), [SectionId::CurrentTime]);
    assert!(back.revision > changed.revision);
    let back = revisions.answer(fixture.build(), Some(changed.revision), true);
    assert_eq!(
        ids(&back.sections),
        [SectionId::OpenTabs, SectionId::CurrentTime]
    );
}

#[test]
fn an_unknown_revision_returns_everything() {
    let fixture = Fixture::new(&["app"], &[]);
    let mut revisions = Revisions::default();
    let first = revisions.answer(fixture.build(), None, true);
    for since in [0, first.revision + 1, u64::MAX] {
        let all = revisions.answer(fixture.build(), Some(since), true);
        assert_eq!(ids(&all.sections), ids(&first.sections));
    }
}

#[test]
fn old_revisions_are_dropped() {
    let fixture = Fixture::new(&["app"], &[]);
    let mut revisions = Revisions::default();
    let first = revisions.answer(fixture.build(), None, true);
    for _ in 0..100 {
        revisions.context_changed();
        revisions.answer(fixture.build(), None, true);
    }
    let answer = revisions.answer(fixture.build(), Some(first.revision), true);
    assert_eq!(ids(&answer.sections), ids(&first.sections));
}

#[test]
fn a_removed_section_is_reported_once() {
    let mut fixture = Fixture::new(&["app"], &[("app/a.txt", "")]);
    fixture.dirty("app/a.txt");
    let mut revisions = Revisions::default();
    let first = revisions.answer(fixture.build(), None, true);
    assert!(fixture.editor.save(&fixture.uri("app/a.txt")));
    let second = revisions.answer(fixture.build(), Some(first.revision), true);
    assert_eq!(
        ids(&second.sections),
        [SectionId::CurrentTime, SectionId::UnsavedFiles]
    );
    assert_eq!(second.sections[1].heading, "Unsaved Files");
    assert_eq!(second.sections[1].text, "(none)");
    let third = revisions.answer(fixture.build(), Some(second.revision), true);
    assert_eq!(ids(&third.sections), [SectionId::CurrentTime]);

    // A section that is not requested has not vanished.
    fixture.params.sections = Some(vec![SectionId::Mode]);
    let other = revisions.answer(fixture.build(), Some(first.revision), true);
    assert!(other.sections.is_empty(), "{:?}", other.sections);
}

#[test]
fn a_repeated_change_is_reported_again() {
    let mut fixture = Fixture::new(&["app"], &[("app/a.txt", "")]);
    fixture.modified = vec![("app/a.txt".to_owned(), false)];
    fixture.terminals(&[("1", "make", false, "done\n")]);
    let mut revisions = Revisions::default();

    // A preview does not deliver a change; a delivered one is not repeated.
    let peek = revisions.answer(fixture.build(), None, false);
    let again = revisions.answer(fixture.build(), Some(peek.revision), false);
    assert_eq!(ids(&again.sections), [SectionId::CurrentTime]);

    // Delivered, then the same output and the same file again.
    let block = fixture.build();
    for (id, received) in &block.delivered_terminals {
        fixture.editor.consume_terminal(id, *received);
    }
    let told = revisions.answer(block, None, true);
    fixture.terminals(&[("1", "make", false, "done\n")]);
    let more = revisions.answer(fixture.build(), Some(told.revision), true);
    assert_eq!(
        ids(&more.sections),
        [
            SectionId::InactiveTerminals,
            SectionId::RecentlyModified,
            SectionId::CurrentTime
        ]
    );

    // A delivered change without a new one is not reported.
    fixture.modified.clear();
    fixture.terminals(&[("1", "make", false, "")]);
    fixture.editor.consume_terminal("1", u64::MAX);
    let quiet = revisions.answer(fixture.build(), Some(more.revision), true);
    assert_eq!(ids(&quiet.sections), [SectionId::CurrentTime]);
}
