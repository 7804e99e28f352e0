//! Journals that are invalid or whose checkpoints are missing.

use super::*;

#[test]
fn a_journal_of_deleted_checkpoints_is_moved_aside_once() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore", 3));
    let before = fixture.tree();
    let refs = fixture.checkpoints.git_dir().join("refs");
    fs::remove_dir_all(&refs).unwrap();
    fs::create_dir_all(refs.join("heads")).unwrap();
    let _ = fs::remove_file(fixture.checkpoints.git_dir().join("packed-refs"));
    let found = Fixture::at(&fixture.base);
    let error = found.job(|job| found.checkpoints.recover(job)).unwrap_err();
    assert!(error.to_string().contains(".corrupt-"), "{error}");
    assert_eq!(found.recover(), None);
    assert_eq!(found.tree(), before);
}

#[test]
fn an_invalid_journal_is_moved_aside_and_reported() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore", 3));
    let journal = fixture.checkpoints.state_dir().join("journal.json");
    fs::write(&journal, "{").unwrap();
    let error = fixture
        .job(|job| fixture.checkpoints.recover(job))
        .unwrap_err();
    assert!(error.to_string().contains(".corrupt-"), "{error}");
    assert!(!journal.exists());
    assert_eq!(fixture.recover(), None);
}

#[test]
fn a_journal_with_an_invalid_field_changes_nothing() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore", 1));
    let before = fixture.tree();
    let path = fixture.checkpoints.state_dir().join("journal.json");
    let valid: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let outside = serde_json::json!([{ "path": "../outside" }]);
    for (field, value) in [
        ("version", serde_json::json!(3)),
        ("paths", outside.clone()),
        ("leftAlone", outside),
    ] {
        let mut journal = valid.clone();
        assert!(journal.get(field).is_some(), "{field}");
        journal[field] = value;
        fs::write(&path, journal.to_string()).unwrap();
        let recovered = fixture.job(|job| fixture.checkpoints.recover(job));
        let error = recovered.unwrap_err();
        assert!(error.to_string().contains(".corrupt-"), "{field}: {error}");
        assert_eq!(fixture.recover(), None, "{field}");
        assert_eq!(fixture.tree(), before, "{field}");
    }
}
