//! Tests of deltas: blocks that contain only changed sections.

use super::*;

fn ids(sections: &[Section]) -> Vec<SectionId> {
    sections.iter().map(|section| section.id).collect()
}

#[test]
fn only_what_changed_since_a_revision_comes_back() {
    let mut world = World::new(&["app"], &[("app/a.txt", ""), ("app/b.txt", "")]);
    world.tabs(&["app/a.txt"]);
    let mut revisions = Revisions::default();
    let first = revisions.answer(world.build(), None, true);
    assert!(first.revision > 0);

    world.params.now = Some(1_749_301_446_000);
    let same = revisions.answer(world.build(), Some(first.revision), true);
    assert_eq!(ids(&same.sections), [SectionId::CurrentTime]);
    assert_eq!(same.revision, first.revision);
    assert!(same.text.contains("3:04:06 PM") && !same.text.contains("a.txt"));

    world.tabs(&["app/a.txt", "app/b.txt"]);
    let announced = revisions.context_changed();
    assert!(announced > first.revision);
    let changed = revisions.answer(world.build(), Some(first.revision), true);
    assert!(changed.revision >= announced);
    assert_eq!(
        ids(&changed.sections),
        [SectionId::OpenTabs, SectionId::CurrentTime]
    );
    assert_eq!(changed.sections[0].text, "a.txt\nb.txt");

    // Back in the first state: the delta from the first revision is empty.
    world.tabs(&["app/a.txt"]);
    let back = revisions.answer(world.build(), Some(first.revision), true);
    assert_eq!(ids(&back.sections), [SectionId::CurrentTime]);
    assert!(back.revision > changed.revision);
    let back = revisions.answer(world.build(), Some(changed.revision), true);
    assert_eq!(
        ids(&back.sections),
        [SectionId::OpenTabs, SectionId::CurrentTime]
    );
}

#[test]
fn an_unknown_revision_gets_everything() {
    let world = World::new(&["app"], &[]);
    let mut revisions = Revisions::default();
    let first = revisions.answer(world.build(), None, true);
    for since in [0, first.revision + 1, u64::MAX] {
        let all = revisions.answer(world.build(), Some(since), true);
        assert_eq!(ids(&all.sections), ids(&first.sections));
    }
}

#[test]
fn old_revisions_are_forgotten() {
    let world = World::new(&["app"], &[]);
    let mut revisions = Revisions::default();
    let first = revisions.answer(world.build(), None, true);
    for _ in 0..100 {
        revisions.context_changed();
        revisions.answer(world.build(), None, true);
    }
    let answer = revisions.answer(world.build(), Some(first.revision), true);
    assert_eq!(ids(&answer.sections), ids(&first.sections));
}

#[test]
fn a_section_that_vanished_says_so_once() {
    let mut world = World::new(&["app"], &[("app/a.txt", "")]);
    world.dirty("app/a.txt");
    let mut revisions = Revisions::default();
    let first = revisions.answer(world.build(), None, true);
    assert!(world.editor.save(&world.uri("app/a.txt")));
    let second = revisions.answer(world.build(), Some(first.revision), true);
    assert_eq!(
        ids(&second.sections),
        [SectionId::CurrentTime, SectionId::UnsavedFiles]
    );
    assert_eq!(second.sections[1].heading, "Unsaved Files");
    assert_eq!(second.sections[1].text, "(none)");
    let third = revisions.answer(world.build(), Some(second.revision), true);
    assert_eq!(ids(&third.sections), [SectionId::CurrentTime]);

    // Not asked for is not vanished.
    world.params.sections = Some(vec![SectionId::Mode]);
    let other = revisions.answer(world.build(), Some(first.revision), true);
    assert!(other.sections.is_empty(), "{:?}", other.sections);
}

#[test]
fn news_is_told_again_when_it_comes_again() {
    let mut world = World::new(&["app"], &[("app/a.txt", "")]);
    world.modified = vec![("app/a.txt".to_owned(), false)];
    world.terminals(&[("1", "make", false, "done\n")]);
    let mut revisions = Revisions::default();

    // A peek leaves it news; seen again, it is known.
    let peek = revisions.answer(world.build(), None, false);
    let again = revisions.answer(world.build(), Some(peek.revision), false);
    assert_eq!(ids(&again.sections), [SectionId::CurrentTime]);

    // Told, then the same output and the same file once more.
    let block = world.build();
    for (id, received) in &block.delivered_terminals {
        world.editor.consume_terminal(id, *received);
    }
    let told = revisions.answer(block, None, true);
    world.terminals(&[("1", "make", false, "done\n")]);
    let more = revisions.answer(world.build(), Some(told.revision), true);
    assert_eq!(
        ids(&more.sections),
        [
            SectionId::InactiveTerminals,
            SectionId::RecentlyModified,
            SectionId::CurrentTime
        ]
    );

    // Told and not come again is nothing to speak of.
    world.modified.clear();
    world.terminals(&[("1", "make", false, "")]);
    world.editor.consume_terminal("1", u64::MAX);
    let quiet = revisions.answer(world.build(), Some(more.revision), true);
    assert_eq!(ids(&quiet.sections), [SectionId::CurrentTime]);
}
