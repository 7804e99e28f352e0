//! Restores of the workspace, their previews and their undo.

mod faults;
mod group;
mod kept;
mod part;
mod preview;
mod properties;
mod undo;

use std::fs;

use crate::restore_support::{Ground, Thing, all, counted, done, git, named, rel, some, undo_of};
use sightline_checkpoint::restore::{Action, Options, Scope};
use sightline_protocol::error::ErrorKind;

#[test]
fn a_restore_makes_the_previewed_changes() {
    let ground = Ground::new(&[("a", "1"), ("b/c", "2"), ("d", "3"), ("same", "4")]);
    let id = ground.create();
    let before = ground.tree();
    ground.write(&[("a", "changed"), ("new/file", "n")]);
    ground.remove("b");
    let preview = ground.preview(&all(id), &[]);
    let changes: Vec<_> = preview
        .changes
        .iter()
        .map(|change| (change.path.to_string(), change.action))
        .collect();
    let expected = vec![
        ("a".to_owned(), Action::Write),
        ("b/c".to_owned(), Action::Write),
        ("new/file".to_owned(), Action::Delete),
    ];
    assert_eq!(changes, expected);
    assert_eq!(preview.conflicts, Vec::new());
    let restored = ground.restore(id);
    assert_eq!(done(&restored.outcomes), expected);
    assert_eq!(ground.tree(), before);
    assert!(ground.preview(&all(id), &[]).changes.is_empty());
}

#[test]
fn a_restore_and_its_undo_can_be_undone() {
    let ground = Ground::new(&[("a", "1"), ("b", "1")]);
    let first = ground.create();
    ground.write(&[("a", "2"), ("c", "2")]);
    ground.remove("b");
    let second = ground.tree();
    let undo = ground.restore(first).undo.unwrap();
    assert_eq!(ground.checkpoints.last_undo().unwrap(), Some(undo));
    let redo = ground.restore(undo).undo.unwrap();
    assert_eq!(ground.tree(), second);
    assert_eq!(ground.checkpoints.last_undo().unwrap(), Some(redo));
    ground.restore(redo);
    assert_eq!(ground.read("a"), "1");
    assert!(!ground.exists("c"));
}

#[test]
fn a_restore_with_nothing_to_do_keeps_the_last_undo_point() {
    let ground = Ground::new(&[("a", "1"), ("b", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2")]);
    let undo = ground.restore(id).undo;
    assert_eq!(ground.checkpoints.last_undo().unwrap(), undo);
    // Another file differs.
    ground.write(&[("b", "2")]);
    let before = (ground.tree(), counted(&ground));
    let wanted = some(id, &["a"]);
    for token in [None, Some(ground.preview(&wanted, &[]).token)] {
        let options = Options {
            token,
            ..Options::default()
        };
        let nothing = ground.try_restore(&wanted, &[], &options).unwrap();
        assert_eq!((nothing.undo, nothing.outcomes), (None, Vec::new()));
        assert_eq!((ground.tree(), counted(&ground)), before);
        assert_eq!(ground.checkpoints.last_undo().unwrap(), undo);
    }
    // The same for the restore of an undo point.
    assert!(ground.restore(undo.unwrap()).undo.is_some());
    assert_eq!(ground.restore(undo.unwrap()).undo, None);
    assert_eq!(ground.read("a"), "2");
}

#[test]
fn a_restore_with_an_outdated_preview_changes_nothing() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2")]);
    let token = ground.preview(&all(id), &["a"]).token;
    let with = |token: &str| Options {
        token: Some(token.to_owned()),
        ..Options::default()
    };
    ground.write(&[("b", "2")]);
    let before = (ground.tree(), counted(&ground));
    let error = ground
        .try_restore(&all(id), &[], &with(&token))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!((ground.tree(), counted(&ground)), before);
    // Other paths, another content of the same file, an unknown token.
    let token = ground.preview(&some(id, &["a"]), &[]).token;
    let other = ground.try_restore(&some(id, &["b"]), &[], &with(&token));
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Conflict);
    ground.write(&[("c", "1"), ("a", "3")]);
    let changed = ground.try_restore(&some(id, &["a"]), &[], &with(&token));
    assert_eq!(changed.unwrap_err().kind(), ErrorKind::Conflict);
    // A change outside of the plan is allowed.
    let token = ground.preview(&some(id, &["a"]), &[]).token;
    ground.write(&[("c", "2")]);
    ground
        .try_restore(&some(id, &["a"]), &[], &with(&token))
        .unwrap();
    assert_eq!(
        (ground.read("a"), ground.read("c")),
        ("1".into(), "2".into())
    );
}

#[test]
fn restoring_some_paths_and_its_undo_leave_other_paths_as_they_are() {
    let ground = Ground::new(&[("src/a", "1"), ("src/b", "1"), ("other", "1")]);
    let id = ground.create();
    ground.write(&[
        ("src/a", "2"),
        ("src/new", "2"),
        ("other", "2"),
        ("srcx", "2"),
    ]);
    let restored = ground
        .try_restore(&some(id, &["src"]), &[], &Options::default())
        .unwrap();
    assert_eq!(restored.outcomes.len(), 2);
    assert_eq!(ground.read("src/a"), "1");
    assert_eq!(
        (ground.read("other"), ground.read("srcx")),
        ("2".into(), "2".into())
    );
    ground.write(&[("other", "3")]);
    let undo = restored.undo.unwrap();
    ground
        .try_restore(&undo_of(undo, &[]), &[], &Options::default())
        .unwrap();
    assert_eq!(
        (ground.read("src/a"), ground.read("src/new")),
        ("2".into(), "2".into())
    );
    assert_eq!(ground.read("other"), "3");
    // A restore of the undo point is not an undo.
    ground.restore(undo);
    assert_eq!(ground.read("other"), "2");
}

#[test]
fn unsaved_text_is_a_conflict_unless_forced() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("d", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2"), ("c", "2")]);
    ground.remove("d");
    let unsaved = ["a", "c", "d", "elsewhere"];
    let preview = ground.preview(&all(id), &unsaved);
    assert_eq!(named(&preview.conflicts), ["a", "c", "d"]);
    assert_eq!(preview.changes.len(), 1);
    let options = Options {
        token: Some(preview.token),
        ..Options::default()
    };
    let restored = ground.try_restore(&all(id), &unsaved, &options).unwrap();
    assert_eq!(done(&restored.outcomes), [("b".to_owned(), Action::Write)]);
    assert_eq!(restored.texts, Vec::new());
    assert_eq!(
        (ground.read("a"), ground.read("c")),
        ("2".into(), "2".into())
    );
    assert!(!ground.exists("d"));
    let options = Options {
        force: true,
        ..Options::default()
    };
    let restored = ground.try_restore(&all(id), &unsaved, &options).unwrap();
    let texts: Vec<_> = restored
        .texts
        .iter()
        .map(|text| (text.path.to_string(), text.content.as_deref()))
        .collect();
    let expected = [
        ("a".to_owned(), Some("1")),
        ("c".to_owned(), None),
        ("d".to_owned(), Some("1")),
    ];
    assert_eq!(texts, expected);
    assert_eq!(ground.read("a"), "1");
}

#[test]
fn folders_are_created_and_removed_with_their_files() {
    let ground = Ground::new(&[
        ("empty/inner/", ""),
        ("file", "f"),
        ("folder/x", "x"),
        ("shrinks/", ""),
    ]);
    ground.link("file", "link");
    let id = ground.create();
    let before = ground.tree();
    for path in ["empty", "file", "folder", "link"] {
        ground.remove(path);
    }
    ground.write(&[
        ("file/deep/er", "1"),
        ("folder", "a file"),
        ("link/", ""),
        ("new/a/b/c", "1"),
        ("new/empty/", ""),
        ("shrinks/s", "s"),
    ]);
    let undo_tree = ground.tree();
    let undo = ground.restore(id).undo.unwrap();
    assert_eq!(ground.tree(), before);
    ground.restore(undo);
    assert_eq!(ground.tree(), undo_tree);
    // Folders with ignored files are kept, even where a file should replace one.
    ground.write(&[
        (".gitignore", "*.o\n"),
        ("new/a/b.o", "o"),
        ("file/deep/d.o", "o"),
    ]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["file"]);
    ground.restore(id);
    assert_eq!(
        (ground.read("new/a/b.o"), ground.read("file/deep/d.o")),
        ("o".into(), "o".into())
    );
    assert!(!ground.exists("new/a/b") && !ground.exists("file/deep/er"));
}

#[test]
fn files_with_unusual_names_are_restored() {
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new(&[("a b\n\"c\\", "1"), ("-rf", "1"), ("%41", "1")]);
    let odd = std::ffi::OsStr::from_bytes(b"not\xffutf8");
    fs::create_dir(ground.root.join(odd)).unwrap();
    fs::write(ground.root.join(odd).join(odd), "1").unwrap();
    let id = ground.create();
    let before = ground.tree();
    fs::remove_dir_all(ground.root.join(odd)).unwrap();
    ground.write(&[("a b\n\"c\\", "2"), ("-rf", "2"), ("A", "2")]);
    let wanted = sightline_checkpoint::restore::RestoreTarget {
        id,
        paths: vec![
            rel("-rf"),
            sightline_base::path::RelPath::new(std::path::Path::new(odd)).unwrap(),
        ],
        scope: Scope::All,
    };
    let restored = ground
        .try_restore(&wanted, &[], &Options::default())
        .unwrap();
    assert_eq!(restored.outcomes.len(), 2);
    ground.restore(restored.undo.unwrap());
    assert!(!ground.root.join(odd).exists() && ground.read("-rf") == "2");
    ground.restore(id);
    assert_eq!(ground.tree(), before);
    assert!(matches!(
        ground.tree().get(&std::path::Path::new(odd).join(odd)),
        Some(Thing::File { .. })
    ));
}

#[test]
fn a_restore_reports_the_conflicts_of_its_preview() {
    let mut ground = Ground::new(&[("a", "1"), ("big", "1"), ("c", "1"), ("d/x", "1")]);
    ground.settings.max_file_size = 1000;
    let id = ground.create();
    let outside = ground.outside("outside");
    fs::create_dir(&outside).unwrap();
    ground.remove("d");
    ground.link(outside.to_str().unwrap(), "d");
    ground.write(&[
        (".gitignore", "/c\n/d\n"),
        ("a", "2"),
        ("big", &"y".repeat(5000)),
        ("c", "2"),
    ]);
    let preview = ground.preview(&all(id), &["a"]);
    assert_eq!(named(&preview.conflicts), ["a", "big", "c", "d/x"]);
    let restored = ground
        .try_restore(&all(id), &["a"], &Options::default())
        .unwrap();
    assert_eq!(restored.conflicts, preview.conflicts);
    assert_eq!(restored.outcomes.len(), preview.changes.len());
    // Conflicts are reported without changes too.
    let nothing = ground
        .try_restore(&some(id, &["big"]), &[], &Options::default())
        .unwrap();
    assert_eq!(nothing.outcomes, Vec::new());
    assert_eq!(named(&nothing.conflicts), ["big"]);
}

#[test]
fn a_preview_does_not_cover_documents_that_became_unsaved_later() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("same", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2")]);
    let token = ground.preview(&all(id), &[]).token;
    let before = (ground.tree(), counted(&ground));
    let options = |token: &str, force| Options {
        token: Some(token.to_owned()),
        force,
        ..Options::default()
    };
    for unsaved in ["a", "same"] {
        for force in [false, true] {
            let refused = ground.try_restore(&all(id), &[unsaved], &options(&token, force));
            assert_eq!(
                refused.unwrap_err().kind(),
                ErrorKind::Conflict,
                "{unsaved}"
            );
        }
    }
    assert_eq!((ground.tree(), counted(&ground)), before);
    // A preview with the document covers it, forced or not.
    let token = ground.preview(&all(id), &["a"]).token;
    let saved = ground.try_restore(&all(id), &[], &options(&token, false));
    assert_eq!(saved.unwrap_err().kind(), ErrorKind::Conflict);
    // Documents outside of the plan are allowed.
    let unsaved = ["a", "elsewhere"];
    let forced = ground.try_restore(&all(id), &unsaved, &options(&token, true));
    assert_eq!(forced.unwrap().outcomes.len(), 2);
    assert_eq!(ground.read("a"), "1");
}

#[test]
fn unsaved_text_of_an_unchanged_file_is_kept_or_replaced_with_force() {
    let ground = Ground::new(&[
        (".clineignore", "secret\n"),
        ("a", "1"),
        ("secret", "1"),
        ("z", "1"),
    ]);
    let id = ground.create();
    ground.write(&[("z", "2")]);
    let unsaved = ["a", "secret", "new"];
    let preview = ground.preview(&all(id), &unsaved);
    assert_eq!(named(&preview.conflicts), ["a"]);
    assert!(
        preview.conflicts[0].reason.contains("unsaved"),
        "{preview:?}"
    );
    let only_z = ground.preview(&some(id, &["z"]), &unsaved);
    assert_eq!(only_z.conflicts, Vec::new());
    let kept = ground
        .try_restore(&all(id), &unsaved, &Options::default())
        .unwrap();
    assert_eq!(named(&kept.conflicts), ["a"]);
    assert_eq!(done(&kept.outcomes), [("z".to_owned(), Action::Write)]);
    assert_eq!(kept.texts, Vec::new());
    // The text is replaced although no file is written.
    let options = Options {
        force: true,
        ..Options::default()
    };
    let before = ground.stamps(&ground.root);
    let forced = ground.try_restore(&all(id), &unsaved, &options).unwrap();
    assert_eq!(ground.stamps(&ground.root), before);
    assert_eq!(forced.conflicts, Vec::new());
    assert_eq!(done(&forced.outcomes), [("a".to_owned(), Action::Write)]);
    assert_eq!(forced.texts.len(), 1);
    assert_eq!(forced.texts[0].content.as_deref(), Some("1"));
}

#[test]
fn paths_and_folders_of_a_checkpoint_are_found() {
    let ground = Ground::new(&[
        (".gitignore", "/out\n"),
        ("out/x", "1"),
        ("a/b/c", "1"),
        ("empty/", ""),
    ]);
    let id = ground.create();
    ground.remove("a");
    let has = |path| ground.checkpoints.holds_folder(id, &rel(path)).unwrap();
    assert!(has("a") && has("a/b") && has("empty"));
    assert!(!has("out") && !has("a/b/c") && !has("a/b/c/d") && !has("empty/x"));
    let has = |path| ground.checkpoints.holds_path(id, &rel(path)).unwrap();
    assert!(has("a") && has("a/b/c") && has("empty"));
    assert!(!has("out/x") && !has("a/c") && !has("a/b/c/d") && !has("empty/x"));
}

/// Uses many files: a few existing objects may be stored again, as that is faster than a lookup.
#[test]
fn existing_objects_are_not_stored_again_when_many_files_changed() {
    let paths: Vec<String> = (0..400).map(|at| format!("{at}")).collect();
    let texts = |round: u32| -> Vec<String> {
        let text = |path: &String| format!("{path} of round {round}");
        paths.iter().map(text).collect()
    };
    let write = |ground: &Ground, round| {
        let texts = texts(round);
        let files = paths.iter().zip(&texts);
        let files: Vec<(&str, &str)> = files.map(|(path, text)| (&**path, &**text)).collect();
        ground.write(&files);
    };
    let ground = Ground::new(&[]);
    write(&ground, 1);
    ground.create();
    write(&ground, 2);
    let second = ground.create();
    write(&ground, 1);
    let stored = || -> usize {
        let counts = git(&ground.checkpoints.git_dir(), &["count-objects", "-v"]);
        let packed = counts
            .lines()
            .find_map(|line| line.strip_prefix("in-pack: "));
        packed.unwrap().parse().unwrap()
    };
    let before = stored();
    // The undo point has the same content as the first checkpoint.
    assert_eq!(ground.restore(second).outcomes.len(), 400);
    let more = stored() - before;
    assert!(more < 200, "{more} more objects");
}
