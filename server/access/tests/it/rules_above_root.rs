//! Rule files in the directories above a root.

use std::{fs, path::Path, sync::Arc, time::Duration};

use crate::scratch::*;
use sightline_access::{Access, AccessView, ClockReading};
use sightline_base::{
    cancel::Cancel,
    path::{RelPath, Roots},
};
use sightline_context::listing::{self, ListOptions};
use sightline_protocol::{access::AccessKind, settings::Secrets};

/// Creates a root with two directories above it that have rules.
fn nested() -> (tempfile::TempDir, std::path::PathBuf) {
    let (parent, top) = workspace(&[
        (".clineignore", "*.key\n/mid/inner/closed/\n!include more\n"),
        ("more", "other\n"),
        ("mid/.clineignore", "*.pem\n"),
        ("mid/inner/.clineignore", "own\n"),
        ("mid/inner/.git/HEAD", ""),
        ("mid/inner/closed/a", ""),
        ("mid/inner/a.key", ""),
        ("mid/inner/a.pem", ""),
        ("mid/inner/open", ""),
        ("mid/inner/other", ""),
        ("mid/inner/own", ""),
    ]);
    let root = top.join("mid/inner");
    (parent, root)
}

fn names(view: &AccessView) -> Vec<&'static str> {
    let paths = ["a.key", "a.pem", "closed/a", "open", "other", "own"];
    let denied = paths.into_iter();
    denied
        .filter(|path| kind(view, path) == AccessKind::Denied)
        .collect()
}

const DENIED: [&str; 5] = ["a.key", "a.pem", "closed/a", "other", "own"];

#[test]
fn rules_above_a_root_apply() {
    let (_parent, root) = nested();
    let view = view(&root);
    assert_eq!(names(&view), DENIED);
    let source = |path: &str| ask(&view, path).rule.unwrap().source;
    let above = |path: &str| {
        sightline_base::path::canonicalize(root.join("../.."))
            .unwrap()
            .join(path)
    };
    assert_eq!(source("own"), ".clineignore");
    assert_eq!(Path::new(&source("a.key")), above(".clineignore"));
    assert_eq!(Path::new(&source("a.pem")), above("mid/.clineignore"));
    assert_eq!(Path::new(&source("other")), above("more"));
    let rel = |path: &str| RelPath::new(Path::new(path)).unwrap();
    assert!(view.check_entry(0, &rel("a.key"), false).is_some());
    assert!(view.check_entry(0, &rel("closed"), true).is_some());
    assert!(view.check_entry(0, &rel("open"), false).is_none());
    // Siblings of the root stay outside.
    let beside = root.join("../open").display().to_string();
    assert_eq!(kind(&view, &beside), AccessKind::Outside);
}

#[test]
fn lists_omit_files_denied_by_rules_above() {
    let (_parent, root) = nested();
    let view = view(&root);
    let options = ListOptions {
        recursive: true,
        ..ListOptions::default()
    };
    let top = RelPath::default();
    let list = listing::list(&view, 0, &top, &options, &Cancel::default()).unwrap();
    assert_eq!(list.omitted, 6);
    let text = format!("{list:?}");
    assert!(text.contains("open"), "{text}");
    for denied in ["a.key", "a.pem", "closed", "other"] {
        assert!(!text.contains(denied), "{denied}: {text}");
    }
}

#[test]
fn changes_above_a_root_are_detected_and_reported() {
    let (_parent, root) = nested();
    let access = access(&[&root]);
    let above = sightline_base::path::canonicalize(root.join("../..")).unwrap();
    let rules = above.join(".clineignore");
    let watched = access.watched_files();
    assert!(watched.contains(&rules));
    assert!(watched.contains(&above.parent().unwrap().join(".clineignore")));
    assert!(access.view().1.is_empty());
    fs::write(&rules, "open\n").unwrap();
    let (view, changed) = access.view();
    assert_eq!(changed, [0]);
    assert_eq!(kind(&view, "open"), AccessKind::Denied);
    assert_eq!(kind(&view, "a.key"), AccessKind::Denied);
    fs::remove_file(&rules).unwrap();
    let wait = Duration::from_secs(2);
    let ClockReading { monotonic, wall } = ClockReading::system();
    let (view, changed) = access.view_at(ClockReading {
        monotonic: monotonic + wait,
        wall: wall + wait,
    });
    assert_eq!(changed, [0]);
    assert_eq!(names(&view), ["a.pem", "own"]);
}

#[test]
fn invalid_rules_above_a_root_deny_everything() {
    let (_parent, root) = nested();
    fs::write(root.join("../.clineignore"), b"a\0b").unwrap();
    let view = view(&root);
    assert_eq!(kind(&view, "open"), AccessKind::Denied);
    let why = ask(&view, "open").reason.unwrap();
    let why = why.replace('\\', "/");
    assert!(why.contains("mid/.clineignore"), "{why}");
    assert!(view.unusable(0).is_some());
}

#[test]
fn rules_above_an_opened_file_apply() {
    let (_parent, root) = nested();
    let open_files = ["a.key", "open"].map(|name| abs(&root.join(name)));
    let view = Access::new(
        Arc::new(Roots::default()),
        open_files.to_vec(),
        Secrets::Allow,
    )
    .view()
    .0;
    let ask = |name: &str| kind(&view, &root.join(name).display().to_string());
    assert_eq!(ask("a.key"), AccessKind::Denied);
    assert_eq!(ask("open"), AccessKind::Allowed);
}

/// Rules above the link and above its target both apply.
#[cfg(unix)]
#[test]
fn rules_above_a_linked_root_apply() {
    let (parent, root) = nested();
    let elsewhere = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("elsewhere");
    write(&elsewhere, &[(".clineignore", "open\n")]);
    link(&root, elsewhere.join("link"));
    let view = view(&elsewhere.join("link"));
    assert_eq!(kind(&view, "open"), AccessKind::Denied);
    assert_eq!(names(&view).len(), DENIED.len() + 1);
}
