mod hunks;

use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
};
use sightline_base::clock::now_millis;
use sightline_engine::{
    error::Error,
    render::{
        ADDED, REMOVED,
        timeline::{Clock, Row},
    },
};
use sightline_protocol::{
    checkpoint::{
        DiffCheckpointsResult, DifferenceStatus, FileDifference, PreviewRestoreResult,
        RestoreAction, RestoreChange, RestoreCheckpointResult, RestoreConflict, RestoreOutcome,
        RestoreTarget,
    },
    error::ErrorKind,
};

use super::{
    choice::Choice,
    draw::{Colors, draw},
    state::{Answer, Ask, Exit, Pane, Picker, Screen},
};

/// Two turns, what the user changed between them, and a checkpoint.
fn rows() -> Vec<Row> {
    let now = now_millis();
    let turn = |name: &str, prompt: &str, files: &str, paths: &[&str]| Row {
        at: now,
        id: name.to_owned(),
        is_turn: true,
        name: name.to_owned(),
        prompt: Some(prompt.to_owned()),
        counts: vec![(ADDED, "+31".to_owned()), (REMOVED, "−12".to_owned())],
        files: Some(files.to_owned()),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..Row::default()
    };
    vec![
        Row {
            outside: Some("you, or another program: 18 files".to_owned()),
            ..turn(
                "claude-2.3",
                "fix the parser test",
                "4 files",
                &["src/parser.rs"],
            )
        },
        turn(
            "codex-1.12",
            "rename the module in all files",
            "2 files",
            &["src/lib.rs"],
        ),
        Row {
            at: now,
            id: "3caa8f00".repeat(5),
            name: "3caa8f00".to_owned(),
            counts: vec![(ADDED, "+1".to_owned())],
            labels: vec!["it works".to_owned()],
            ..Row::default()
        },
    ]
}

fn press(picker: &mut Picker, keys: &str) -> Option<Ask> {
    let mut asked = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            '↓' => KeyCode::Down,
            '⇟' => KeyCode::PageDown,
            '⇞' => KeyCode::PageUp,
            '→' => KeyCode::Right,
            '←' => KeyCode::Left,
            key => KeyCode::Char(key),
        };
        asked = picker.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    asked
}

fn drawn(picker: &mut Picker, colors: bool, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(picker, Colors(colors), frame))
        .unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the screen as text, with a fixed time.
fn screen(picker: &mut Picker, width: u16, height: u16) -> String {
    let buffer = drawn(picker, false, width, height);
    let clock = Clock::now().time(now_millis());
    let rows = buffer.content().chunks(width.into());
    let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    let lines = lines.map(|line| line.replace(&clock, "15:53").trim_end().to_owned() + "\n");
    lines.collect()
}

fn difference() -> DiffCheckpointsResult {
    let file = FileDifference {
        path: "src/parser.rs".to_owned(),
        status: DifferenceStatus::Modified,
        additions: 1,
        deletions: 1,
        ..FileDifference::default()
    };
    let text = "diff --git a/src/parser.rs b/src/parser.rs\nindex 1..2 100644\n--- a/src/parser.rs\n\
                +++ b/src/parser.rs\n@@ -1,2 +1,2 @@\n a\n-\told\u{1b}[31m\n+\tnew\n";
    DiffCheckpointsResult {
        files: vec![file],
        text: Some(text.to_owned()),
    }
}

fn change(path: &str, action: RestoreAction, reason: &str) -> RestoreChange {
    RestoreChange {
        path: path.to_owned(),
        uri: format!("file:///w/{path}"),
        action,
        reason: reason.to_owned(),
        path_encoded: false,
    }
}

fn preview(token: &str) -> PreviewRestoreResult {
    PreviewRestoreResult {
        changes: vec![
            change("src/parser.rs", RestoreAction::Write, "content differs"),
            change("src/new.rs", RestoreAction::Delete, "not in the checkpoint"),
        ],
        conflicts: vec![RestoreConflict {
            path: "big.bin".to_owned(),
            reason: "too large".to_owned(),
            uri: "file:///w/big.bin".to_owned(),
            ..RestoreConflict::default()
        }],
        token: token.to_owned(),
        target: Some(RestoreTarget {
            id: "97bd00d4".repeat(5),
            name: Some("claude-2.3".to_owned()),
            created_at: now_millis(),
            branch: Some("feature".to_owned()),
            ..RestoreTarget::default()
        }),
        warnings: vec!["branch main is checked out now".to_owned()],
        ..PreviewRestoreResult::default()
    }
}

fn whole(id: &str) -> Choice {
    Choice {
        id: id.to_owned(),
        ..Choice::default()
    }
}

/// A picker that shows the preview of the first turn.
fn previewing() -> Picker {
    let mut picker = Picker::new(rows());
    let asked = press(&mut picker, "\n");
    assert_eq!(asked, Some(Ask::Preview(whole("claude-2.3"))));
    let answer = Answer::Preview(whole("claude-2.3"), Ok(preview("t1")));
    assert_eq!(picker.answer(answer), None);
    picker
}

fn restored() -> RestoreCheckpointResult {
    RestoreCheckpointResult {
        outcomes: vec![RestoreOutcome {
            ok: true,
            ..RestoreOutcome::default()
        }],
        undo_id: Some("abcdef0123".repeat(4)),
        ..RestoreCheckpointResult::default()
    }
}

/// Answers the request for the difference.
fn compare(picker: &mut Picker) {
    let Some(Ask::Difference(compared)) = picker.missing() else {
        panic!("nothing to compare");
    };
    picker.answer(Answer::Difference(compared, Ok(difference())));
    assert_eq!(picker.missing(), None);
}

#[test]
fn the_list_is_next_to_the_difference() {
    let mut picker = Picker::new(rows());
    compare(&mut picker);
    insta::assert_snapshot!(screen(&mut picker, 80, 12), @r"
    3 states to restore                 │ changed by claude-2.3
    > 15:53 claude-2.3 +31 −12 4 files  │ M src/parser.rs  +1 -1
        fix the parser test             │
        you, or another program: 18 file│ diff --git a/src/parser.rs b/src/parser.rs
      15:53 codex-1.12 +31 −12 2 files  │ --- a/src/parser.rs
        rename the module in all files  │ +++ b/src/parser.rs
      15:53 3caa8f00 +1                 │ @@ -1,2 +1,2 @@
        it works                        │  a
                                        │ -    old\u{1b}[31m
                                        │ +    new
                                        │
    ↑↓ select  → difference  / filter  enter preview  q quit
    ");
}

#[test]
fn notes_that_do_not_fit_are_on_the_next_line() {
    let mut rows = rows();
    rows[2].notes = vec!["before a restore to claude-2.3+, undone".to_owned()];
    let mut picker = Picker::new(rows);
    let shown = screen(&mut picker, 80, 12);
    assert!(
        shown.contains("\n    before a restore to claude-2.3+,│"),
        "{shown}"
    );
    let shown = screen(&mut picker, 160, 12);
    assert!(
        shown.contains(" before a restore to claude-2.3+, undone"),
        "{shown}"
    );
}

#[test]
fn the_preview_says_what_is_restored() {
    let mut picker = previewing();
    press(&mut picker, "↓ ");
    compare(&mut picker);
    insta::assert_snapshot!(screen(&mut picker, 100, 12), @r"
    Restore to before turn 3 of claude-2, 15:53, just now, on branch feature
    warning branch main is checked out now
    1 of 2 files to restore                      │ changes to revert
      [x] write  src/parser.rs  content differs  │ M src/parser.rs  +1 -1
    > [ ] delete src/new.rs  not in the checkpoin│
          skip   big.bin  too large              │ diff --git a/src/parser.rs b/src/parser.rs
                                                 │ --- a/src/parser.rs
                                                 │ +++ b/src/parser.rs
                                                 │ [ ] @@ -1,2 +1,2 @@
                                                 │  a
                                                 │ -    old\u{1b}[31m
    enter restore  space toggle  → hunks  a all  t revert turn  + after it  esc back
    ");
}

#[test]
fn the_end_offers_the_undo() {
    let mut picker = previewing();
    let asked = press(&mut picker, "\n");
    assert_eq!(
        asked,
        Some(Ask::Restore(whole("claude-2.3"), "t1".to_owned()))
    );
    // Cannot be left now.
    assert_eq!(press(&mut picker, "q\u{1b}"), None);
    assert!(picker.exit.is_none());
    picker.answer(Answer::Restored(whole("claude-2.3"), Ok(restored())));
    insta::assert_snapshot!(screen(&mut picker, 80, 6), @"
    1 file restored.

    It can be undone later: sightline checkpoint undo abcdef01


    u undo  enter done
    ");
    let Some(Ask::Undo { id, force: false }) = press(&mut picker, "u") else {
        panic!("no undo");
    };
    assert_eq!(Some(id), restored().undo_id);
    let undone = RestoreCheckpointResult {
        undo_id: Some("1234".to_owned()),
        ..restored()
    };
    picker.answer(Answer::Undone(Ok(undone.clone())));
    assert_eq!(press(&mut picker, "u"), None);
    press(&mut picker, "\n");
    assert!(matches!(picker.exit, Some(Exit::Done(result)) if result == undone));
}

#[test]
fn part_of_a_preview_is_previewed_before_it_is_restored() {
    let mut picker = previewing();
    let part = Choice {
        files: Some(vec!["file:///w/src/parser.rs".to_owned()]),
        ..whole("claude-2.3")
    };
    let asked = press(&mut picker, "↓ \n");
    assert_eq!(asked, Some(Ask::Preview(part.clone())));
    let mut result = preview("t2");
    result.changes.truncate(1);
    let asked = picker.answer(Answer::Preview(part.clone(), Ok(result)));
    assert_eq!(asked, Some(Ask::Restore(part.clone(), "t2".to_owned())));

    // Other changes than those that were shown are shown first.
    let mut picker = previewing();
    press(&mut picker, "↓ \n");
    let mut result = preview("t3");
    result.changes.truncate(1);
    result.changes[0].action = RestoreAction::Delete;
    assert_eq!(
        picker.answer(Answer::Preview(part.clone(), Ok(result))),
        None
    );
    let asked = press(&mut picker, "\n");
    assert_eq!(asked, Some(Ask::Restore(part, "t3".to_owned())));

    // No file.
    let mut picker = previewing();
    assert_eq!(press(&mut picker, "a\n"), None);
    assert!(picker.message.is_some());
}

#[test]
fn a_part_stays_a_part_after_another_preview_of_it() {
    let mut picker = previewing();
    let part = Choice {
        files: Some(vec!["file:///w/src/new.rs".to_owned()]),
        ..whole("claude-2.3")
    };
    press(&mut picker, " \n");
    let conflict = Error::new(ErrorKind::Conflict, "changed".to_owned());
    let mut result = preview("t2");
    result.changes.remove(0);
    picker.answer(Answer::Preview(part.clone(), Ok(result.clone())));
    let asked = picker.answer(Answer::Restored(part.clone(), Err(conflict)));
    assert_eq!(asked, Some(Ask::Preview(part.clone())));
    assert!(picker.message.is_some());
    picker.answer(Answer::Preview(part.clone(), Ok(result)));
    let asked = press(&mut picker, "\n");
    assert_eq!(asked, Some(Ask::Restore(part, "t2".to_owned())));
}

#[test]
fn the_state_after_the_turn_can_be_chosen() {
    let mut picker = previewing();
    let asked = press(&mut picker, "+");
    assert_eq!(asked, Some(Ask::Preview(whole("claude-2.3+"))));
    let mut after = preview("t2");
    after.target.as_mut().unwrap().name = Some("claude-2.3+".to_owned());
    picker.answer(Answer::Preview(whole("claude-2.3+"), Ok(after)));
    let asked = press(&mut picker, "+");
    assert_eq!(asked, Some(Ask::Preview(whole("claude-2.3"))));
}

#[test]
fn only_the_turn_can_be_reverted() {
    let mut picker = previewing();
    let only = Choice {
        only_turn: true,
        ..whole("claude-2.3")
    };
    assert_eq!(press(&mut picker, "t"), Some(Ask::Preview(only.clone())));
    picker.answer(Answer::Preview(only.clone(), Ok(preview("t2"))));
    let shown = screen(&mut picker, 100, 12);
    assert!(shown.contains("later changes are kept"), "{shown}");
    let asked = press(&mut picker, "\n");
    assert_eq!(asked, Some(Ask::Restore(only, "t2".to_owned())));
}

#[test]
fn an_answer_that_is_no_longer_awaited_is_ignored() {
    let mut picker = Picker::new(rows());
    press(&mut picker, "\n\u{1b}↓\n");
    picker.answer(Answer::Preview(whole("claude-2.3"), Ok(preview("t1"))));
    assert!(matches!(picker.screen, Screen::Previewing(..)));
    let nothing = PreviewRestoreResult::default();
    picker.answer(Answer::Preview(whole("codex-1.12"), Ok(nothing)));
    assert!(matches!(picker.screen, Screen::Browse));
    assert!(picker.message.is_some());
}

#[test]
fn the_filter_searches_names_prompts_labels_and_paths() {
    for (filter, names) in [
        ("claude", vec!["claude-2.3"]),
        ("RENAME", vec!["codex-1.12"]),
        ("works", vec!["3caa8f00"]),
        ("parser.rs", vec!["claude-2.3"]),
        ("another program", vec!["claude-2.3"]),
        ("nothing", vec![]),
    ] {
        let mut picker = Picker::new(rows());
        press(&mut picker, &format!("/{filter}"));
        let shown: Vec<_> = picker.shown().map(|row| row.name.clone()).collect();
        assert_eq!(shown, names, "{filter}");
        let title = screen(&mut picker, 80, 12);
        assert!(title.starts_with(&format!("/{filter}_")), "{title}");
        // The selected entry stays selected.
        press(&mut picker, "\n\u{1b}");
        assert_eq!(picker.matching.len(), 3);
        assert_eq!(
            picker.row().map(|row| &row.name),
            names
                .first()
                .or(Some(&"claude-2.3"))
                .map(|name| (*name).to_owned())
                .as_ref()
        );
    }
    let mut picker = Picker::new(rows());
    press(&mut picker, "/q\u{8}\u{8}q");
    assert!(matches!(picker.exit, Some(Exit::Cancelled)));
}

#[test]
fn a_thousand_entries_are_moved_through_by_pages() {
    let one = &rows()[1];
    let many = (0..1000).map(|at| Row {
        name: format!("codex-1.{at}"),
        ..one.clone()
    });
    let mut picker = Picker::new(many.collect());
    screen(&mut picker, 80, 24);
    press(&mut picker, "⇟");
    assert_eq!(picker.selected, 10);
    press(&mut picker, "⇟jk⇞");
    assert_eq!(picker.selected, 10);
    press(&mut picker, "G⇟");
    assert_eq!(picker.selected, 999);
    assert!(screen(&mut picker, 80, 24).contains("> 15:53 codex-1.999"));
    press(&mut picker, "g");
    assert_eq!(picker.selected, 0);
}

#[test]
fn the_difference_scrolls_in_both_directions() {
    let mut picker = Picker::new(rows());
    compare(&mut picker);
    screen(&mut picker, 80, 6);
    press(&mut picker, "→⇟");
    assert_eq!(picker.scroll, (3, 0));
    press(&mut picker, "G");
    assert_eq!(picker.scroll.0, 9 - 4);
    press(&mut picker, "→");
    assert_eq!(picker.scroll.1, 8);
    press(&mut picker, "←←");
    assert_eq!(picker.focus, Pane::List);
    press(&mut picker, "j");
    assert_eq!(picker.scroll, (0, 0));
}

#[test]
fn every_size_can_be_drawn() {
    let mut pickers = vec![Picker::new(rows()), Picker::new(Vec::new()), previewing()];
    let mut done = previewing();
    press(&mut done, "\n");
    done.answer(Answer::Restored(whole("claude-2.3"), Ok(restored())));
    pickers.push(done);
    for picker in &mut pickers {
        if picker.missing().is_some() {
            compare(picker);
        }
        for width in [1, 2, 20, 59, 60, 61, 80, 300] {
            for height in [1, 2, 3, 5, 24, 100] {
                drawn(picker, true, width, height);
                press(picker, "\t");
                drawn(picker, true, width, height);
            }
        }
    }
}

#[test]
fn without_colors_styles_are_left() {
    let mut picker = Picker::new(rows());
    compare(&mut picker);
    let colors = |buffer: &Buffer| buffer.content().iter().any(|cell| cell.fg != Color::Reset);
    assert!(colors(&drawn(&mut picker, true, 80, 24)));
    assert!(!colors(&drawn(&mut picker, false, 80, 24)));
}

#[test]
fn control_characters_are_escaped() {
    let mut picker = Picker::new(rows());
    let mut result = difference();
    result.files[0].path = "a\u{1b}]0;x\u{7}.rs".to_owned();
    let Some(Ask::Difference(compared)) = picker.missing() else {
        panic!("nothing to compare");
    };
    picker.answer(Answer::Difference(compared, Ok(result)));
    let shown = screen(&mut picker, 120, 24);
    assert!(shown.contains(r"a\u{1b}]0;x\u{7}.rs"), "{shown}");
    assert!(shown.contains(r"-    old\u{1b}[31m"), "{shown}");
}
