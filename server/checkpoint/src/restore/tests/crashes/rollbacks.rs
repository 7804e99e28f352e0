//! Restores that recovery rolls back.

use super::*;

#[test]
fn a_restore_whose_contents_are_lost_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let base = sightline_base::path::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    let fixture = Fixture::at(&base);
    let packs = || {
        let packs = fs::read_dir(fixture.checkpoints.git_dir().join("objects/pack")).unwrap();
        packs.map(|pack| pack.unwrap().path()).collect::<Vec<_>>()
    };
    fixture.write("lost", "this content is lost");
    fixture.create();
    let first = packs();
    fixture.write("a", "1");
    fixture.write("z", "1");
    fixture.create();
    fixture.write("a", "2");
    fixture.write("lost", "2");
    fixture.write("z", "2");
    let before = fixture.tree();
    // After a part of the steps.
    assert!(fixture.crashes("restore", 6));
    assert_ne!(fixture.tree(), before);
    for pack in first {
        fs::remove_file(pack).unwrap();
    }
    let recovered = Fixture::at(&base).recover().unwrap();
    assert!(!recovered.completed);
    assert_eq!(recovered.problems, Vec::new());
    assert_eq!(fixture.tree(), before);
}

#[test]
fn a_rollback_restores_the_permissions_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let base = sightline_base::path::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    let fixture = Fixture::at(&base);
    fixture.write("z", "this content is lost");
    fixture.create();
    let packs = fixture.checkpoints.git_dir().join("objects/pack");
    let packs = fs::read_dir(packs).unwrap();
    let first: Vec<PathBuf> = packs.map(|pack| pack.unwrap().path()).collect();
    fixture.write("a/kept", "");
    fixture.create();
    fixture.remove("z");
    fixture.write("a/private", "mine");
    fixture.chmod("a/private", 0o600);
    let before = fixture.tree();
    // Files are deleted first.
    assert!(fixture.crashes("restore", 3));
    assert!(!fixture.root.join("a/private").exists());
    for pack in first {
        fs::remove_file(pack).unwrap();
    }
    let recovered = Fixture::at(&base).recover().unwrap();
    assert!(!recovered.completed);
    assert_eq!(fixture.tree(), before);
}
