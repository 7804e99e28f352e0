//! Hunks of a file are chosen.

use super::*;
use crate::checkpoints::picker::choice::SomeHunks;

/// A difference with three hunks of a file, the second of which is larger than the screen.
fn hunks() -> DiffCheckpointsResult {
    let mut result = difference();
    let mut text = "--- a/src/parser.rs\n+++ b/src/parser.rs\n".to_owned();
    for (number, lines) in [(1, 2), (2, 20), (3, 2)] {
        text.push_str(&format!("@@ -{number}0 +{number}0 @@\n"));
        text.extend((0..lines).map(|line| format!("+{number}.{line}\n")));
    }
    result.text = Some(text);
    result
}

/// Answers the request for the difference with three hunks.
fn compare_hunks(picker: &mut Picker) {
    let Some(Ask::Difference(compared)) = picker.missing() else {
        panic!("nothing to compare");
    };
    picker.answer(Answer::Difference(compared, Ok(hunks())));
}

#[test]
fn hunks_of_a_file_are_chosen() {
    let mut picker = previewing();
    compare_hunks(&mut picker);
    screen(&mut picker, 80, 14);
    press(&mut picker, "→ ");
    insta::assert_snapshot!(screen(&mut picker, 80, 14), @"
    Restore to before turn 3 of claude-2, 15:53, just now, on branch feature
    warning branch main is checked out now
    2 files to restore                  │ changes to revert
    > [~] write  src/parser.rs  content │ M src/parser.rs  +1 -1
      [x] delete src/new.rs  not in the │
          skip   big.bin  too large     │ --- a/src/parser.rs
                                        │ +++ b/src/parser.rs
                                        │>[ ] @@ -10 +10 @@
                                        │ +1.0
                                        │ +1.1
                                        │ [x] @@ -20 +20 @@
                                        │ +2.0
                                        │ +2.1
    enter restore  space toggle  ↑↓ hunk  PgUp PgDn scroll  ←→ to the side  esc list
    ");
    let some = |numbers: &[u32]| Choice {
        // The difference to the workspace is numbered, not that of the turn.
        id: "97bd00d4".repeat(5),
        files: Some(vec!["file:///w/src/new.rs".to_owned()]),
        hunks: vec![SomeHunks {
            uri: "file:///w/src/parser.rs".to_owned(),
            numbers: numbers.to_vec(),
            patch: hunks().text.unwrap().into(),
        }],
        ..Choice::default()
    };
    let asked = press(&mut picker, "\n");
    assert_eq!(asked, Some(Ask::Preview(some(&[2, 3]))));
    let asked = picker.answer(Answer::Preview(some(&[2, 3]), Ok(preview("t2"))));
    assert_eq!(asked, Some(Ask::Restore(some(&[2, 3]), "t2".to_owned())));

    // Only one hunk, of only one file.
    let mut picker = previewing();
    compare_hunks(&mut picker);
    press(&mut picker, "a→ ");
    let only = Choice {
        files: None,
        ..some(&[1])
    };
    assert_eq!(press(&mut picker, "\n"), Some(Ask::Preview(only.clone())));
    // Without it, nothing is left.
    let conflict = Error::new(ErrorKind::Conflict, "a file changed".to_owned());
    picker.answer(Answer::Preview(only, Err(conflict)));
    assert_eq!(picker.message.as_deref(), Some("a file changed"));
    assert!(
        picker.missing().is_some(),
        "the difference is compared again"
    );
    assert_eq!(press(&mut picker, "\n"), None);

    // All hunks are the file, and those of a turn are numbered as its changes.
    let mut picker = previewing();
    compare_hunks(&mut picker);
    press(&mut picker, "→  ");
    let asked = press(&mut picker, "\n");
    assert_eq!(
        asked,
        Some(Ask::Restore(whole("claude-2.3"), "t1".to_owned()))
    );
    let mut picker = previewing();
    press(&mut picker, "t");
    let only = Choice {
        only_turn: true,
        ..whole("claude-2.3")
    };
    picker.answer(Answer::Preview(only, Ok(preview("t2"))));
    compare_hunks(&mut picker);
    let Some(Ask::Preview(choice)) = press(&mut picker, "→ \n") else {
        panic!("no preview");
    };
    assert_eq!((&*choice.id, choice.only_turn), ("claude-2.3", true));
}

#[test]
fn the_cursor_moves_through_hunks_and_scrolls_in_large_ones() {
    let mut picker = previewing();
    compare_hunks(&mut picker);
    screen(&mut picker, 80, 14);
    press(&mut picker, "→");
    let hunk = |picker: &Picker| match &picker.screen {
        Screen::Preview(preview) => preview.hunk,
        _ => panic!("no preview"),
    };
    // The hunks begin at the lines 4, 7 and 28 of 31, of which 10 are shown.
    let mut seen = Vec::new();
    for _ in 0..30 {
        press(&mut picker, "j");
        seen.push((hunk(&picker), picker.scroll.0));
    }
    assert_eq!(seen[..3], [(1, 7), (1, 8), (1, 9)]);
    assert_eq!(seen[11..13], [(1, 18), (2, 21)]);
    assert_eq!(seen[29], (2, 21));
    let mut seen = Vec::new();
    for _ in 0..40 {
        press(&mut picker, "k");
        seen.push((hunk(&picker), picker.scroll.0));
    }
    assert_eq!(seen[..2], [(1, 18), (1, 17)]);
    assert_eq!(seen[11..14], [(1, 7), (0, 4), (0, 3)]);
    assert_eq!(seen[39], (0, 0));
    press(&mut picker, "⇟⇟⇟⇟");
    assert_eq!(hunk(&picker), 2);
    press(&mut picker, "←j");
    assert_eq!((hunk(&picker), picker.scroll), (0, (0, 0)));
}
