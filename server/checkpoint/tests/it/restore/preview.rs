//! Previews of restores and their tokens.

use std::fs;

use crate::restore_support::{Ground, all, named, some};
use sightline_checkpoint::restore::{Options, RestoreTarget};
use sightline_protocol::error::ErrorKind;

/// Asserts that a restore with this token fails and changes nothing.
fn assert_refused(ground: &Ground, wanted: &RestoreTarget, token: &str) {
    let options = Options {
        token: Some(token.to_owned()),
        ..Options::default()
    };
    let before = ground.tree();
    let refused = ground.try_restore(wanted, &[], &options).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(ground.tree(), before);
}

#[test]
fn a_token_covers_checkpoint_paths_and_modes() {
    let ground = Ground::new(&[("a", "1"), ("sub/b", "1")]);
    let first = ground.create();
    let second = ground.create();
    ground.write(&[("a", "2")]);
    let token = ground.preview(&all(first), &[]).token;
    assert_refused(&ground, &all(second), &token);
    assert_refused(&ground, &some(first, &["a"]), &token);
    let token = ground.preview(&some(first, &["a", "sub"]), &[]).token;
    assert_refused(&ground, &some(first, &["a", "sub/b"]), &token);
    let token = ground.preview(&all(first), &[]).token;
    ground.chmod("a", 0o755);
    assert_refused(&ground, &all(first), &token);
}

#[test]
fn the_preview_reports_folders_that_are_kept_for_ignored_files() {
    let ground = Ground::new(&[(".gitignore", "*.log\n"), ("place", "a file")]);
    let id = ground.create();
    ground.remove("place");
    // A checkpoint contains both as empty folders.
    ground.write(&[("place/x.log", "precious"), ("new/x.log", "precious")]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["new", "place"]);
    assert_eq!(preview.changes, []);
    ground.restore(id);
    for path in ["place/x.log", "new/x.log"] {
        assert_eq!(fs::read_to_string(ground.path(path)).unwrap(), "precious");
    }
}
