//! Restores of a part: the changes between two checkpoints, or hunks of them, are reverted, and later
//! ones are kept.

use std::fs;

use crate::restore_support::{Ground, all, named, rel, undo_of};
use sightline_checkpoint::{
    Oid, Side,
    restore::{Options, Part, RestoreTarget, Restored, Scope},
};
use sightline_protocol::error::ErrorKind;

fn part(id: Oid, until: Side, hunks: &[(&str, &[u32])]) -> RestoreTarget {
    let file = |(path, numbers): &(&str, &[u32])| (rel(path), numbers.to_vec());
    RestoreTarget {
        paths: hunks.iter().map(|(path, _)| rel(path)).collect(),
        scope: Scope::Part(Part {
            until,
            hunks: hunks.iter().map(file).collect(),
        }),
        ..all(id)
    }
}

/// Reverts a part, and checks that the preview says so and that the undo brings everything back.
fn reverted(ground: &Ground, wanted: &RestoreTarget) -> Restored {
    let before = ground.tree();
    let preview = ground.preview(wanted, &[]);
    assert_eq!(ground.tree(), before);
    let options = Options {
        token: Some(preview.token),
        ..Options::default()
    };
    let restored = ground.try_restore(wanted, &[], &options).unwrap();
    let planned: Vec<_> = preview
        .changes
        .iter()
        .map(|one| (&one.path, one.action))
        .collect();
    let done: Vec<_> = restored
        .outcomes
        .iter()
        .map(|one| (&one.path, one.action))
        .collect();
    assert_eq!(done, planned);
    assert_eq!(restored.conflicts, preview.conflicts);
    for outcome in &restored.outcomes {
        assert_eq!(outcome.error, None, "{}", outcome.path);
    }
    let after = ground.tree();
    if let Some(undo) = restored.undo {
        let undone = ground.try_restore(&undo_of(undo, &[]), &[], &Options::default());
        let undone = undone.unwrap();
        assert_eq!((undone.conflicts, ground.tree()), (Vec::new(), before));
        let redone = undo_of(undone.undo.unwrap(), &[]);
        ground
            .try_restore(&redone, &[], &Options::default())
            .unwrap();
        assert_eq!(ground.tree(), after);
    } else {
        assert_eq!(after, before);
    }
    restored
}

fn numbered(changed: &[(usize, &str)]) -> String {
    (1..=40)
        .map(|line| {
            let new = changed.iter().find(|(at, _)| *at == line);
            new.map_or_else(|| format!("line {line}\n"), |(_, text)| format!("{text}\n"))
        })
        .collect()
}

#[test]
fn later_edits_survive_and_other_files_stay() {
    let ground = Ground::new(&[
        ("merged", &numbered(&[])),
        ("same", "old"),
        ("later", "old"),
        ("gone", "gone"),
        ("dir/gone", "gone"),
        ("tool", "#!"),
        ("mode-later", "#!"),
        ("moved", "moved\n"),
    ]);
    ground.link("same", "link");
    let id = ground.create();
    ground.write(&[
        ("merged", &numbered(&[(3, "the turn")])),
        ("same", "new"),
        ("created", "new"),
        ("new/deep/created", "new"),
        ("touched", "new"),
    ]);
    ground.remove("gone");
    ground.remove("dir");
    ground.remove("link");
    ground.link("later", "link");
    ground.chmod("tool", 0o755);
    ground.chmod("mode-later", 0o755);
    fs::rename(ground.path("moved"), ground.path("renamed")).unwrap();
    let until = ground.create();
    let options = numbered(&[(1, "mine"), (3, "the turn"), (30, "mine, too")]);
    ground.write(&[
        ("merged", &options),
        ("later", "mine"),
        ("mine", "mine"),
        ("touched", "touched"),
        ("mode-later", "#! mine"),
        ("renamed", "moved, and mine\n"),
    ]);

    let restored = reverted(&ground, &part(id, Side::Checkpoint(until), &[]));
    assert_eq!(named(&restored.conflicts), ["touched"]);
    assert_eq!(
        ground.read("merged"),
        numbered(&[(1, "mine"), (30, "mine, too")])
    );
    for (path, text) in [
        ("same", "old"),
        ("later", "mine"),
        ("mine", "mine"),
        ("touched", "touched"),
        ("gone", "gone"),
        ("dir/gone", "gone"),
        ("mode-later", "#! mine"),
        ("moved", "moved, and mine\n"),
    ] {
        assert_eq!(ground.read(path), text, "{path}");
    }
    for path in ["created", "new", "renamed"] {
        assert!(!ground.exists(path), "{path}");
    }
    assert_eq!(
        (
            ground.mode("tool") & 0o111,
            ground.mode("mode-later") & 0o111
        ),
        (0, 0)
    );
    assert_eq!(
        fs::read_link(ground.path("link")).unwrap().to_str(),
        Some("same")
    );
    let again = reverted(&ground, &part(id, Side::Checkpoint(until), &[]));
    assert_eq!((again.outcomes.len(), again.undo), (0, None));
}

#[test]
fn a_file_that_cannot_be_merged_is_left_whole() {
    let ground = Ground::new(&[
        ("lines", &numbered(&[])),
        ("binary", "a\0b"),
        ("unchanged-binary", "a\0b"),
        ("deleted-later", "old\n"),
        ("back", "old\n"),
        ("type", "old\n"),
    ]);
    let id = ground.create();
    ground.write(&[
        ("lines", &numbered(&[(3, "the turn"), (30, "the turn")])),
        ("binary", "turn\0b"),
        ("unchanged-binary", "turn\0b"),
        ("deleted-later", "turn\n"),
        ("type", "turn\n"),
    ]);
    ground.remove("back");
    let until = ground.create();
    ground.write(&[
        ("lines", &numbered(&[(3, "mine"), (30, "the turn")])),
        ("binary", "mine\0b"),
        ("back", "mine\n"),
    ]);
    ground.remove("deleted-later");
    ground.remove("type");
    ground.link("lines", "type");
    let before = ground.tree();
    let wanted = part(id, Side::Checkpoint(until), &[]);
    let restored = reverted(&ground, &wanted);
    let conflicts = ["back", "binary", "deleted-later", "lines", "type"];
    assert_eq!(named(&restored.conflicts), conflicts);
    assert_eq!(ground.read("unchanged-binary"), "a\0b");
    let mut after = ground.tree();
    let mut before = before;
    after.remove(std::path::Path::new("unchanged-binary"));
    before.remove(std::path::Path::new("unchanged-binary"));
    assert_eq!(after, before);
    // Not even by force, which is for unsaved text.
    let options = Options {
        force: true,
        ..Options::default()
    };
    let forced = ground.try_restore(&wanted, &[], &options).unwrap();
    assert_eq!((forced.outcomes.len(), forced.conflicts.len()), (0, 5));
}

#[test]
fn unsaved_text_is_left_unless_forced() {
    let ground = Ground::new(&[("a", "old\n"), ("b", "old\n"), ("c", "old\n")]);
    let id = ground.create();
    ground.write(&[("a", "turn\n"), ("b", "turn\n")]);
    let until = ground.create();
    let wanted = part(id, Side::Checkpoint(until), &[]);
    let unsaved = ["a", "c"];
    let restored = ground
        .try_restore(&wanted, &unsaved, &Options::default())
        .unwrap();
    assert_eq!(named(&restored.conflicts), ["a"]);
    assert_eq!(
        (ground.read("a"), ground.read("b")),
        ("turn\n".into(), "old\n".into())
    );
    let options = Options {
        force: true,
        ..Options::default()
    };
    let restored = ground.try_restore(&wanted, &unsaved, &options).unwrap();
    let texts: Vec<_> = restored
        .texts
        .iter()
        .map(|one| (one.path.to_string(), one.content.clone()))
        .collect();
    assert_eq!(texts, [("a".to_owned(), Some("old\n".to_owned()))]);
}

#[test]
fn hunks_are_those_that_the_diff_numbers() {
    let ground = Ground::new(&[
        ("f", &numbered(&[])),
        ("other", &numbered(&[])),
        ("gone", "1\n2\n"),
    ]);
    let id = ground.create();
    let changes = [(2, "A"), (15, "B"), (16, "B2"), (35, "C")];
    ground.write(&[
        ("f", &numbered(&changes)),
        ("other", &numbered(&changes)),
        ("new", "1\n"),
    ]);
    ground.remove("gone");
    let diff = ground.diff(&Side::Checkpoint(id), &Side::WorkTree);
    let ranges = |path: &str| {
        let file = diff.iter().find(|file| file.path == rel(path)).unwrap();
        file.hunks
            .iter()
            .map(|hunk| [&hunk.before, &hunk.after].map(|side| [side[0], side[1]]))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ranges("f"),
        [[[1, 5], [1, 5]], [[12, 8], [12, 8]], [[32, 7], [32, 7]]]
    );
    assert_eq!(ranges("new"), [[[0, 0], [1, 1]]]);
    assert_eq!(ranges("gone"), [[[1, 2], [0, 0]]]);

    let before = ground.tree();
    for (path, number) in [("f", 0), ("f", 4), ("new", 2), ("missing", 1)] {
        let wanted = part(id, Side::WorkTree, &[("other", &[1]), (path, &[1, number])]);
        let error = ground
            .try_restore(&wanted, &[], &Options::default())
            .unwrap_err();
        assert_eq!(
            (error.kind(), ground.tree()),
            (ErrorKind::InvalidParams, before.clone()),
            "{path}"
        );
    }
    let wanted = part(
        id,
        Side::WorkTree,
        &[
            ("f", &[1, 3]),
            ("other", &[2]),
            ("new", &[1]),
            ("gone", &[1]),
        ],
    );
    reverted(&ground, &wanted);
    assert_eq!(ground.read("f"), numbered(&[(15, "B"), (16, "B2")]));
    assert_eq!(ground.read("other"), numbered(&[(2, "A"), (35, "C")]));
    assert!(ground.exists("gone") && !ground.exists("new"));
}

#[test]
fn hunks_of_a_turn_keep_later_edits() {
    let ground = Ground::new(&[("f", &numbered(&[]))]);
    let id = ground.create();
    ground.write(&[("f", &numbered(&[(2, "A"), (20, "B")]))]);
    let until = ground.create();
    ground.write(&[(
        "f",
        &format!("mine\n{}", numbered(&[(2, "A"), (20, "B"), (40, "mine")])),
    )]);
    reverted(&ground, &part(id, Side::Checkpoint(until), &[("f", &[2])]));
    assert_eq!(
        ground.read("f"),
        format!("mine\n{}", numbered(&[(2, "A"), (40, "mine")]))
    );
}

#[test]
fn a_denied_file_is_only_counted() {
    let ground = Ground::new(&[("secret", "old\n"), ("open", "old\n")]);
    let id = ground.create();
    ground.write(&[("secret", "turn\n"), ("open", "turn\n")]);
    let until = ground.create();
    ground.write(&[("secret", "mine\n"), (".clineignore", "secret\n")]);
    let restored = reverted(&ground, &part(id, Side::Checkpoint(until), &[]));
    let reasons: Vec<&str> = restored.conflicts.iter().map(|one| &*one.reason).collect();
    assert_eq!(
        reasons,
        ["access rules deny 1 path that may differ; left as they are"]
    );
    assert_eq!(
        (ground.read("secret"), ground.read("open")),
        ("mine\n".into(), "old\n".into())
    );
}
