//! Property tests: a restore reproduces the captured tree after random edits.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::PathBuf,
};

use crate::restore_support::Ground;
use proptest::prelude::*;

/// Edit of a path.
#[derive(Clone, Debug)]
enum Edit {
    File(Vec<u8>),
    Executable(Vec<u8>),
    Link(usize),
    Folder,
    Gone,
}

/// Few names, so that edits affect the same paths. Some are unusual.
const NAMES: &[&[u8]] = &[b"a", b"b c", b"not\xffutf8", b"-\n\"", b"A"];

fn place() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..NAMES.len(), 1..4)
}

fn edit() -> impl Strategy<Value = Edit> {
    let content = || prop::collection::vec(0_u8..3, 0..6);
    prop_oneof![
        3 => content().prop_map(Edit::File),
        1 => content().prop_map(Edit::Executable),
        1 => (0..NAMES.len()).prop_map(Edit::Link),
        1 => Just(Edit::Folder),
        2 => Just(Edit::Gone),
    ]
}

fn edits(most: usize) -> impl Strategy<Value = Vec<(Vec<usize>, Edit)>> {
    prop::collection::vec((place(), edit()), 0..most)
}

fn name(index: usize) -> &'static OsStr {
    OsStr::from_bytes(NAMES[index])
}

impl Edit {
    fn make(&self, ground: &Ground, place: &[usize]) {
        let mut at: PathBuf = ground.root.clone();
        for index in &place[..place.len() - 1] {
            at.push(name(*index));
            if fs::symlink_metadata(&at).is_ok_and(|found| !found.is_dir()) {
                fs::remove_file(&at).unwrap();
            }
            if !at.exists() {
                fs::create_dir(&at).unwrap();
            }
        }
        at.push(name(place[place.len() - 1]));
        match (fs::symlink_metadata(&at), self) {
            (Err(_), _) => {}
            // Existing files are overwritten, existing folders kept.
            (Ok(found), Self::File(_) | Self::Executable(_)) if found.is_file() => {}
            (Ok(found), Self::Folder) if found.is_dir() => {}
            (Ok(found), _) if found.is_dir() => fs::remove_dir_all(&at).unwrap(),
            (Ok(_), _) => fs::remove_file(&at).unwrap(),
        }
        let write = |content: &[u8], mode| {
            fs::write(&at, content).unwrap();
            fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
        };
        match self {
            Self::File(content) => write(content, 0o644),
            Self::Executable(content) => write(content, 0o755),
            Self::Link(to) => std::os::unix::fs::symlink(name(*to), &at).unwrap(),
            Self::Folder if !at.exists() => fs::create_dir(&at).unwrap(),
            Self::Folder | Self::Gone => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn restore_after_create_is_the_identity(
        first in edits(20),
        second in edits(20),
        third in edits(6),
    ) {
        let ground = Ground::new(&[]);
        for (place, edit) in &first {
            edit.make(&ground, place);
        }
        let id = ground.create();
        let then = ground.tree();
        for (place, edit) in &second {
            edit.make(&ground, place);
        }
        let changed = ground.tree();
        let preview = ground.preview(&crate::restore_support::all(id), &[]);
        prop_assert_eq!(&preview.conflicts, &Vec::new());
        let restored = ground.restore(id);
        prop_assert_eq!(&ground.tree(), &then);
        let previewed: Vec<_> = preview.changes.iter().map(|change| (&change.path, change.action)).collect();
        let done: Vec<_> = restored.outcomes.iter().map(|outcome| (&outcome.path, outcome.action)).collect();
        prop_assert_eq!(&previewed, &done);
        let Some(undo) = restored.undo else {
            prop_assert_eq!((&previewed.is_empty(), &then), (&true, &changed));
            return Ok(());
        };
        // After more edits, the undo still restores the state before the restore.
        for (place, edit) in &third {
            edit.make(&ground, place);
        }
        ground.restore(undo);
        prop_assert_eq!(&ground.tree(), &changed);
    }
}
