//! Restores of a part that are killed.

use std::fs;

use super::{Fixture, take_kept};
use crate::restore::types::Scope;

#[test]
fn a_merge_killed_at_any_point_is_completed() {
    let numbers = |changed: &[(usize, &str)]| {
        let line = |at: usize| {
            let new = changed.iter().find(|(line, _)| *line == at);
            new.map_or_else(|| format!("{at}\n"), |(_, text)| format!("{text}\n"))
        };
        (1..20).map(line).collect::<String>()
    };
    let mut interrupted = 0;
    for at in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let base = sightline_base::path::canonicalize(folder.path()).unwrap();
        fs::create_dir(base.join("ws")).unwrap();
        let fixture = Fixture::at(&base);
        fixture.write("merged", &numbers(&[]));
        fixture.write("gone", "gone");
        fixture.write("moved", "moved");
        fixture.create();
        fixture.write("merged", &numbers(&[(2, "a much longer line of the turn")]));
        fixture.write("created", "new");
        fixture.remove("gone");
        fs::rename(fixture.root.join("moved"), fixture.root.join("renamed")).unwrap();
        fixture.create();
        fixture.write(
            "merged",
            &numbers(&[(2, "a much longer line of the turn"), (15, "mine")]),
        );
        fixture.write("renamed", "moved and mine");
        fixture.write("mine", "mine");
        let before = fixture.tree();
        if !fixture.crashes("revert", at) {
            break;
        }
        let found = Fixture::at(&fixture.base);
        if found.recover().is_none() && found.tree() == before {
            continue;
        }
        interrupted += 1;
        let mut recovered = found.tree();
        take_kept(&mut recovered);
        let names: Vec<_> = recovered
            .keys()
            .map(|path| path.to_str().unwrap())
            .collect();
        assert_eq!(names, ["gone", "merged", "mine", "moved"], "step {at}");
        let text = fs::read_to_string(found.root.join("merged")).unwrap();
        assert_eq!(text, numbers(&[(15, "mine")]), "step {at}");
        let moved = fs::read_to_string(found.root.join("moved")).unwrap();
        assert_eq!(moved, "moved and mine", "step {at}");
        let undo = found.checkpoints.last_undo().unwrap().unwrap();
        found.restore_in(undo, Scope::Undo);
        let mut undone = found.tree();
        take_kept(&mut undone);
        assert_eq!(undone, before, "step {at}: the undo");
    }
    assert!(interrupted > 5, "{interrupted} steps");
}
