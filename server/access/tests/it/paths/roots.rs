//! Checks with several roots or none.

use super::*;
use sightline_protocol::settings::Secrets;

#[test]
fn every_root_that_contains_a_path_can_deny_it() {
    let (parent, outer) = workspace(&[
        (".clineignore", "denied-by-outer\nsub/closed/\n"),
        ("sub/.clineignore", "denied-by-inner\n"),
        ("sub/open/a", ""),
        ("sub/closed/a", ""),
    ]);
    let other = parent.path().join("other");
    write(&other, &[(".clineignore", "only-other\n")]);
    let inner = outer.join("sub");
    let access = access(&[&outer, &inner, &other]);
    let view = access.view().0;
    let ask = |path: &str| kind(&view, &outer.join(path).display().to_string());
    assert_eq!(ask("sub/denied-by-outer"), AccessKind::Denied);
    assert_eq!(ask("sub/denied-by-inner"), AccessKind::Denied);
    assert_eq!(ask("denied-by-inner"), AccessKind::Allowed);
    assert_eq!(ask("sub/closed/a"), AccessKind::Denied);
    assert_eq!(ask("sub/open/a"), AccessKind::Allowed);
    assert_eq!(ask("only-other"), AccessKind::Allowed);
    let rel = |path: &str| RelPath::new(Path::new(path)).unwrap();
    assert!(
        view.check_entry(1, &rel("denied-by-outer"), false)
            .is_some()
    );
    assert!(view.check_entry(1, &rel("closed/a"), false).is_some());
    assert!(
        view.check_entry(0, &rel("sub/denied-by-inner"), false)
            .is_some()
    );
    assert!(view.check_entry(0, &rel("sub/open/a"), false).is_none());
    assert!(view.check_entry(2, &rel("only-other"), false).is_some());
    assert!(view.check_entry(9, &rel("a"), false).is_some());
}

#[cfg(unix)]
#[test]
fn rules_of_the_target_root_apply_to_a_link() {
    let (parent, first) = workspace(&[("a", "")]);
    let second = parent.path().join("second");
    write(
        &second,
        &[(".clineignore", "*.key\n"), ("x.key", ""), ("b", "")],
    );
    link(&second, first.join("link"));
    let view = access(&[&first, &second]).view().0;
    assert_eq!(kind(&view, "link/x.key"), AccessKind::Denied);
    assert_eq!(kind(&view, "link/b"), AccessKind::Allowed);
}

#[test]
fn without_roots_only_the_opened_files_are_allowed() {
    let (_parent, folder) = workspace(&[
        (".clineignore", "*.key\n"),
        ("open.txt", ""),
        ("open.key", ""),
        ("other.txt", ""),
    ]);
    let open_files = ["open.txt", "open.key"].map(|name| abs(&folder.join(name)));
    let access = Access::new(
        Arc::new(Roots::default()),
        open_files.to_vec(),
        Secrets::Allow,
    );
    let view = access.view().0;
    let ask = |name: &str| kind(&view, &folder.join(name).display().to_string());
    assert_eq!(ask("open.txt"), AccessKind::Allowed);
    assert_eq!(ask("open.key"), AccessKind::Denied);
    assert_eq!(ask("other.txt"), AccessKind::Outside);
    assert_eq!(ask("other.key"), AccessKind::Denied);
    assert_eq!(kind(&view, "open.txt"), AccessKind::Denied);
    fs::write(folder.join(".clineignore"), "open.txt\n").unwrap();
    let (view, changed) = access.view();
    assert_eq!(
        kind(&view, &folder.join("open.txt").display().to_string()),
        AccessKind::Denied
    );
    assert!(changed.is_empty());
}

#[cfg(unix)]
#[test]
fn an_opened_link_is_checked_by_its_target() {
    let (_parent, folder) = workspace(&[(".clineignore", ".env\n"), (".env", ""), ("plain", "")]);
    link(".env", folder.join("notes"));
    link("plain", folder.join("fine"));
    let open_files = ["notes", "fine"].map(|name| abs(&folder.join(name)));
    let view = Access::new(
        Arc::new(Roots::default()),
        open_files.to_vec(),
        Secrets::Allow,
    )
    .view()
    .0;
    let ask = |name: &str| kind(&view, &folder.join(name).display().to_string());
    assert_eq!(ask("notes"), AccessKind::Denied);
    assert_eq!(ask("fine"), AccessKind::Allowed);
}
