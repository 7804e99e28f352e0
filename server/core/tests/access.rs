//! The boundary: what is denied, under every spelling, at every moment.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use proptest::prelude::*;
use sightline_core::{
    access::{Access, AccessView, Verdict},
    path::{AbsPath, Location, RelPath, Root, Roots},
};
use sightline_protocol::{
    access::{AccessKind, PathAccess},
    error::ErrorKind,
};
use tempfile::TempDir;

fn abs(path: &Path) -> AbsPath {
    AbsPath::new(path).unwrap()
}

fn access(roots: &[&Path]) -> Access {
    let roots = roots
        .iter()
        .map(|path| Root::new(abs(path), None))
        .collect();
    Access::new(Arc::new(Roots::new(roots)), Vec::new())
}

fn view(root: &Path) -> AccessView {
    access(&[root]).view().0
}

fn ask(view: &AccessView, path: &str) -> PathAccess {
    view.check_written(path).1
}

fn kind(view: &AccessView, path: &str) -> AccessKind {
    ask(view, path).access
}

/// A folder of its own, `ws` in an otherwise empty one, without links above it.
fn workspace(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(parent.path()).unwrap().join("ws");
    fs::create_dir(&root).unwrap();
    write(&root, files);
    (parent, root)
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[cfg(unix)]
fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).unwrap();
}

// T12: the ways to spell a path.

#[test]
fn spellings_of_a_denied_path_are_denied() {
    let (_parent, root) = workspace(&[
        (".clineignore", "private/\n.env\n"),
        ("private/x", ""),
        (".env", ""),
        ("sub/a", ""),
    ]);
    let view = view(&root);
    let at = root.display();
    for path in [
        ".env",
        "./.env",
        "././/.env",
        "sub/../.env",
        "sub/../../ws/.env",
        "nowhere/../.env",
        ".ENV",
        ".env/",
        "sub/../private/x",
        "private",
        "private/",
        "private/not/there",
        "PRIVATE/x",
        "private\\x",
        ".\\.env",
        "sub\\..\\.env",
        &format!("{at}/.env"),
        &format!("{at}//sub/../.env"),
        &format!("file://{at}/.env"),
        &format!("FILE://{at}/%2e%65nv"),
        &format!("file://localhost{at}/.env"),
        &format!("file://{at}/sub/%2e%2e/.env"),
        &format!("file://{at}/sub%2f..%2f.env"),
        ".clineignore",
        "sub/.clineignore",
    ] {
        let answer = ask(&view, path);
        assert_eq!(answer.access, AccessKind::Denied, "{path}");
        assert_eq!(answer.path, path);
        assert!(answer.rule.is_some(), "{path}");
    }
}

#[test]
fn what_lies_outside_is_outside() {
    let (_parent, root) = workspace(&[(".clineignore", "*.key\n"), ("a", "")]);
    let view = view(&root);
    let at = root.display();
    for path in [
        "..",
        "../x",
        "../ws-backup/a",
        "sub/../../x",
        &format!("{at}-backup/a"),
        &format!("file://{at}-backup/a"),
        &format!("file://{at}/%2e%2e/x"),
        "/",
    ] {
        assert_eq!(kind(&view, path), AccessKind::Outside, "{path}");
    }
    for path in [
        "",
        ".",
        "a",
        "sub/..",
        "../ws",
        "../ws/a",
        "..a",
        "...",
        &at.to_string(),
    ] {
        assert_eq!(kind(&view, path), AccessKind::Allowed, "{path}");
    }
}

#[test]
fn what_makes_no_sense_is_denied_with_a_reason() {
    let (_parent, root) = workspace(&[]);
    let view = view(&root);
    let long = "a".repeat(100_000);
    for path in [
        "C:\\Users\\x",
        "c:/x",
        "file://server/share/x",
        "http://x/y",
        "untitled:Untitled-1",
        "a\0b",
        "file:///a%00b",
        &long,
    ] {
        let answer = ask(&view, path);
        assert_eq!(answer.access, AccessKind::Denied, "{path}");
        assert!(answer.reason.is_some() && answer.rule.is_none(), "{path}");
    }
    // A UNC path is a name with backslashes here, and stays in the root.
    assert_eq!(kind(&view, "\\\\server\\share\\x"), AccessKind::Allowed);
}

#[cfg(unix)]
#[test]
fn names_need_not_be_utf8() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let (_parent, root) = workspace(&[(".clineignore", "*.key\npriv*/\n")]);
    let view = view(&root);
    let check = |name: &[u8]| {
        view.check(&Location::Inside {
            root: 0,
            rel: RelPath::new(Path::new(OsStr::from_bytes(name))).unwrap(),
        })
    };
    assert!(matches!(check(b"a\xff.key"), Verdict::Denied(_)));
    assert!(matches!(check(b"A\xff.KEY"), Verdict::Denied(_)));
    assert!(matches!(check(b"priv\xff/a"), Verdict::Denied(_)));
    assert_eq!(check(b"a\xff.txt"), Verdict::Allowed);
}

#[test]
fn unicode_spellings_of_a_name_are_one_name() {
    let (_parent, root) = workspace(&[(".clineignore", "geheimnisträger\nnaïve.txt\n")]);
    let view = view(&root);
    for path in [
        "GEHEIMNISTRÄGER/x",
        "geheimnistra\u{308}ger",
        "NAÏVE.TXT",
        "nai\u{308}ve.txt",
    ] {
        assert_eq!(kind(&view, path), AccessKind::Denied, "{path}");
    }
    assert_eq!(kind(&view, "naive.txt"), AccessKind::Allowed);
}

#[test]
fn a_rule_for_folders_asks_the_disk() {
    let (_parent, root) = workspace(&[
        (".clineignore", "secret/\n*\n!keep/\n"),
        ("sub/keep", "a file"),
    ]);
    fs::create_dir(root.join("keep")).unwrap();
    let view = view(&root);
    assert_eq!(kind(&view, "keep"), AccessKind::Allowed);
    assert_eq!(kind(&view, "sub/keep"), AccessKind::Denied);

    let (_parent, root) = workspace(&[(".clineignore", "secret/\n"), ("a/secret", "")]);
    fs::create_dir(root.join("secret")).unwrap();
    let view = access(&[&root]).view().0;
    assert_eq!(kind(&view, "secret"), AccessKind::Denied);
    assert_eq!(kind(&view, "a/secret"), AccessKind::Allowed);
    assert_eq!(kind(&view, "b/secret"), AccessKind::Allowed);
    assert_eq!(kind(&view, "b/secret/x"), AccessKind::Denied);
}

// Links.

#[cfg(unix)]
#[test]
fn links_are_judged_by_where_they_lead() {
    let (parent, root) = workspace(&[
        (".clineignore", ".env\nprivate/\nhidden-link\n*.key\n"),
        (".env", ""),
        ("private/deep/x", ""),
        ("public/a", ""),
    ]);
    let outside = parent.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "").unwrap();
    link(".env", root.join("to-env"));
    link(root.join(".env"), root.join("to-env-absolute"));
    link("to-env", root.join("to-to-env"));
    link("private", root.join("to-private"));
    link("private/deep", root.join("to-deep"));
    link("private/../public", root.join("through-private"));
    link("not-yet.key", root.join("dangling-denied"));
    link("not-yet.txt", root.join("dangling"));
    link("loop-b", root.join("loop-a"));
    link("loop-a", root.join("loop-b"));
    link("public", root.join("hidden-link"));
    link("hidden-link", root.join("via-hidden"));
    link("public", root.join("to-public"));
    link(&outside, root.join("to-outside"));
    link("/", root.join("to-top"));
    link(&root, outside.join("back"));
    link(root.join(".env"), outside.join("back-env"));
    let view = view(&root);
    for (path, expected) in [
        ("to-env", AccessKind::Denied),
        ("to-env-absolute", AccessKind::Denied),
        ("to-to-env", AccessKind::Denied),
        ("to-private", AccessKind::Denied),
        ("to-private/deep/x", AccessKind::Denied),
        ("to-private/not/there", AccessKind::Denied),
        ("to-deep/x", AccessKind::Denied),
        ("to-deep/new", AccessKind::Denied),
        ("dangling-denied", AccessKind::Denied),
        ("dangling", AccessKind::Allowed),
        ("loop-a", AccessKind::Denied),
        ("loop-a/x", AccessKind::Denied),
        ("hidden-link/a", AccessKind::Denied),
        ("via-hidden/a", AccessKind::Denied),
        ("to-public", AccessKind::Allowed),
        ("to-public/a", AccessKind::Allowed),
        ("to-public/x.key", AccessKind::Denied),
        ("through-private/a", AccessKind::Allowed),
        ("to-outside", AccessKind::Outside),
        ("to-outside/f", AccessKind::Outside),
        ("to-outside/back/.env", AccessKind::Denied),
        ("to-outside/back/public/a", AccessKind::Allowed),
        ("to-outside/back-env", AccessKind::Denied),
        ("../outside/back/.env", AccessKind::Denied),
        ("../outside/back/private/deep/x", AccessKind::Denied),
        ("../outside/back-env", AccessKind::Denied),
        ("../outside/f", AccessKind::Outside),
        ("/proc/self/root/etc/hostname", AccessKind::Outside),
    ] {
        assert_eq!(kind(&view, path), expected, "{path}");
    }
    // `to-top` leads out and in again.
    let again = format!("to-top{}/.env", root.display());
    assert_eq!(kind(&view, &again), AccessKind::Denied);
    // The reason does not tell a denied name.
    let Verdict::Denied(denial) = view.check(&view.roots().locate("to-env").unwrap()) else {
        panic!("to-env is denied");
    };
    assert!(denial.reason.contains("leads"), "{}", denial.reason);
}

#[cfg(unix)]
#[test]
fn a_root_behind_a_link_is_known_by_all_its_paths() {
    let (parent, root) = workspace(&[(".clineignore", ".env\n"), (".env", ""), ("a", "")]);
    let alias = parent.path().join("alias");
    link(&root, &alias);
    let view = view(&alias);
    for base in [&root, &alias] {
        assert_eq!(
            kind(&view, &format!("{}/.env", base.display())),
            AccessKind::Denied
        );
        assert_eq!(
            kind(&view, &format!("{}/a", base.display())),
            AccessKind::Allowed
        );
    }
    assert_eq!(kind(&view, ".env"), AccessKind::Denied);
    assert_eq!(kind(&view, "a"), AccessKind::Allowed);
}

#[cfg(unix)]
#[test]
fn what_cannot_be_examined_is_denied() {
    use std::os::unix::fs::PermissionsExt;
    let (_parent, root) = workspace(&[("locked/a", "")]);
    let locked = root.join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Root can look into anything.
    if fs::read_dir(&locked).is_err() {
        let view = view(&root);
        assert_eq!(kind(&view, "locked/a"), AccessKind::Denied);
        assert!(ask(&view, "locked/a").reason.is_some());
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    let name = "n".repeat(300);
    assert_eq!(kind(&view(&root), &name), AccessKind::Denied);
}

// Several roots, and none.

#[test]
fn every_root_that_has_a_path_may_deny_it() {
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
fn a_link_from_one_root_into_another_meets_its_rules() {
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
    let loose = ["open.txt", "open.key"].map(|name| abs(&folder.join(name)));
    let access = Access::new(Arc::new(Roots::default()), loose.to_vec());
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
fn an_opened_file_that_is_a_link_is_judged_by_its_target() {
    let (_parent, folder) = workspace(&[(".clineignore", ".env\n"), (".env", ""), ("plain", "")]);
    link(".env", folder.join("notes"));
    link("plain", folder.join("fine"));
    let loose = ["notes", "fine"].map(|name| abs(&folder.join(name)));
    let view = Access::new(Arc::new(Roots::default()), loose.to_vec())
        .view()
        .0;
    let ask = |name: &str| kind(&view, &folder.join(name).display().to_string());
    assert_eq!(ask("notes"), AccessKind::Denied);
    assert_eq!(ask("fine"), AccessKind::Allowed);
}

// Rule files.

#[test]
fn an_include_brings_its_rules_and_its_name() {
    let (_parent, root) = workspace(&[
        (
            ".clineignore",
            "# ours\n*.log\n \t!include  rules/one.txt \r\n!keep.tmp\n",
        ),
        (
            "rules/one.txt",
            "\u{feff}*.tmp\r\n!keep.log\n!include two\n",
        ),
        ("two", "*.two\n"),
    ]);
    let view = view(&root);
    let rule = |path: &str| {
        ask(&view, path)
            .rule
            .map(|rule| (rule.source, rule.line, rule.pattern))
    };
    let of =
        |source: &str, line, pattern: &str| Some((source.to_owned(), line, pattern.to_owned()));
    assert_eq!(rule("a.log"), of(".clineignore", 2, "*.log"));
    assert_eq!(rule("a.tmp"), of("rules/one.txt", 1, "*.tmp"));
    assert_eq!(rule(".clineignore"), of("built-in", 0, ".clineignore"));
    assert_eq!(rule("keep.log"), None);
    assert_eq!(rule("keep.tmp"), None);
    assert_eq!(rule("a.two"), None);
    assert_eq!(kind(&view, "rules/one.txt"), AccessKind::Allowed);
}

/// Rules that cannot be understood deny everything, and say why.
#[test]
fn broken_rules_deny_everything() {
    let big = "x\n".repeat(600_000);
    let many: String = (0..100).map(|n| format!("!include f{n}\n")).collect();
    let cases: Vec<(&str, &[u8], &str)> = vec![
        ("too large", big.as_bytes(), "bytes"),
        ("NUL bytes", b"a\0b\n", "NUL"),
        ("include outside", b"!include ../x\n", "outside"),
        ("include far outside", b"!include sub/../../x\n", "outside"),
        ("too many includes", many.as_bytes(), "includes"),
        ("large include", b"a\n!include big\n", "bytes"),
        ("damaged UTF-16", b"\xff\xfea\0\x00\xd8", "UTF-16"),
    ];
    for (name, rules, why) in cases {
        let (_parent, root) = workspace(&[("a", ""), ("big", &big)]);
        fs::write(root.join(".clineignore"), rules).unwrap();
        let view = view(&root);
        for path in ["a", "not/there", "."] {
            let answer = ask(&view, path);
            assert_eq!(answer.access, AccessKind::Denied, "{name}: {path}");
            let reason = answer.reason.unwrap();
            assert!(reason.contains(why), "{name}: {reason}");
        }
        let rel = RelPath::new(Path::new("a")).unwrap();
        assert!(view.check_entry(0, &rel, false).is_some(), "{name}");
        assert!(!view.check_command("cat a").allowed, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn rule_files_that_are_no_files_deny_everything() {
    use std::os::unix::{fs::PermissionsExt, net::UnixListener};
    type Make = fn(&Path);
    let cases: &[(&str, Make)] = &[
        ("dangling", |root| {
            link("nowhere", root.join(".clineignore"))
        }),
        ("loop", |root| {
            link(".clineignore", root.join(".clineignore"))
        }),
        ("link to a folder", |root| {
            link("sub", root.join(".clineignore"))
        }),
        ("device", |root| {
            link("/dev/zero", root.join(".clineignore"))
        }),
        ("pipe", |root| {
            let path = root.join(".clineignore");
            let made = std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .unwrap();
            assert!(made.success());
        }),
        ("socket", |root| {
            UnixListener::bind(root.join(".clineignore")).unwrap();
        }),
        ("include of a pipe", |root| {
            fs::write(root.join(".clineignore"), "!include pipe\n").unwrap();
            let made = std::process::Command::new("mkfifo")
                .arg(root.join("pipe"))
                .status()
                .unwrap();
            assert!(made.success());
        }),
        ("include that leads out", |root| {
            fs::write(root.parent().unwrap().join("rules"), "x\n").unwrap();
            link("../rules", root.join("rules"));
            fs::write(root.join(".clineignore"), "!include rules\n").unwrap();
        }),
        ("include through a folder that leads out", |root| {
            fs::write(root.parent().unwrap().join("rules"), "x\n").unwrap();
            link("..", root.join("up"));
            fs::write(root.join(".clineignore"), "!include up/rules\n").unwrap();
        }),
    ];
    for (name, make) in cases {
        let (_parent, root) = workspace(&[("a", ""), ("sub/a", "")]);
        make(&root);
        let answer = ask(&view(&root), "a");
        assert_eq!(answer.access, AccessKind::Denied, "{name}");
        assert!(answer.reason.unwrap().contains("cannot be used"), "{name}");
    }
    // No permission to read it.
    let (_parent, root) = workspace(&[("a", ""), (".clineignore", "x\n")]);
    let rules = root.join(".clineignore");
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&rules).is_err() {
        assert_eq!(kind(&view(&root), "a"), AccessKind::Denied);
    }
}

#[test]
fn what_counts_as_no_rules() {
    for make in [
        (|_: &Path| {}) as fn(&Path),
        |root| fs::write(root.join(".clineignore"), "").unwrap(),
        |root| fs::create_dir(root.join(".clineignore")).unwrap(),
    ] {
        let (_parent, root) = workspace(&[("a", "")]);
        make(&root);
        let view = view(&root);
        assert_eq!(kind(&view, "a"), AccessKind::Allowed);
        assert_eq!(kind(&view, ".clineignore"), AccessKind::Allowed);
    }
}

#[test]
fn rules_written_by_windows_programs_are_read() {
    let text = "*.key\r\nprivate/\r\n";
    let units: Vec<u16> = std::iter::once(0xfeff).chain(text.encode_utf16()).collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for bytes in [little, big] {
        let (_parent, root) = workspace(&[]);
        fs::write(root.join(".clineignore"), bytes).unwrap();
        let view = view(&root);
        assert_eq!(kind(&view, "a.key"), AccessKind::Denied);
        assert_eq!(kind(&view, "private/x"), AccessKind::Denied);
        assert_eq!(kind(&view, "a"), AccessKind::Allowed);
    }
}

#[test]
fn includes_are_found_from_the_root() {
    let (_parent, root) = workspace(&[("sub/rules", "*.a\n"), ("rules", "*.b\n")]);
    let absolute = format!("!include {}\n", root.join("sub/rules").display());
    for (written, path) in [
        ("!include sub/rules\n", "x.a"),
        ("!include ./sub/../sub/rules\n", "x.a"),
        ("!include /rules\n", "x.b"),
        ("!include\trules\n", "x.b"),
        (absolute.as_str(), "x.a"),
    ] {
        fs::write(root.join(".clineignore"), written).unwrap();
        assert_eq!(kind(&view(&root), path), AccessKind::Denied, "{written}");
    }
}

// Freshness.

#[test]
fn a_change_is_seen_by_the_next_view_and_reported_once() {
    let (_parent, root) = workspace(&[]);
    let rules = root.join(".clineignore");
    let access = access(&[&root]);
    let state = || {
        let (view, changed) = access.view();
        let denied: String = ["a", "b", "c"]
            .into_iter()
            .filter(|path| kind(&view, path) == AccessKind::Denied)
            .collect();
        (denied, changed)
    };
    let expect = |denied: &str, changed: &[usize]| {
        assert_eq!(state(), (denied.to_owned(), changed.to_vec()));
        assert_eq!(state(), (denied.to_owned(), Vec::new()));
    };
    expect("", &[]);
    fs::write(&rules, "a\n").unwrap();
    expect("a", &[0]);
    // Same length, within the same tick of the clock.
    for _ in 0..50 {
        fs::write(&rules, "b\n").unwrap();
        expect("b", &[0]);
        fs::write(&rules, "c\n").unwrap();
        expect("c", &[0]);
    }
    // Same length, same times: only the content tells.
    let before = fs::metadata(&rules).unwrap().modified().unwrap();
    fs::write(&rules, "a\n").unwrap();
    fs::File::options()
        .write(true)
        .open(&rules)
        .unwrap()
        .set_modified(before)
        .unwrap();
    expect("a", &[0]);
    // Touched, but the same.
    fs::write(&rules, "a\n").unwrap();
    expect("a", &[]);
    // Replaced as editors do.
    fs::write(root.join("new"), "b\n").unwrap();
    fs::rename(root.join("new"), &rules).unwrap();
    expect("b", &[0]);
    fs::remove_file(&rules).unwrap();
    expect("", &[0]);
    fs::write(&rules, "!include more\n").unwrap();
    expect("", &[0]);
    fs::write(root.join("more"), "c\n").unwrap();
    expect("c", &[0]);
    fs::write(root.join("more"), "a\n").unwrap();
    expect("a", &[0]);
    fs::remove_file(root.join("more")).unwrap();
    expect("", &[0]);
    fs::write(&rules, "!include ../x\n").unwrap();
    expect("abc", &[0]);
    fs::write(&rules, "a\n").unwrap();
    expect("a", &[0]);
    assert!(access.watched_files().contains(&rules));
}

#[cfg(unix)]
#[test]
fn a_rule_file_behind_a_link_is_followed_when_it_changes() {
    let (parent, root) = workspace(&[]);
    let (one, two) = (parent.path().join("one"), parent.path().join("two"));
    fs::write(&one, "a\n").unwrap();
    fs::write(&two, "b\n").unwrap();
    let rules = root.join(".clineignore");
    link(&one, &rules);
    let access = access(&[&root]);
    assert_eq!(kind(&access.view().0, "a"), AccessKind::Denied);
    fs::remove_file(&rules).unwrap();
    link(&two, &rules);
    assert_eq!(kind(&access.view().0, "b"), AccessKind::Denied);
    fs::write(&two, "c\n").unwrap();
    assert_eq!(kind(&access.view().0, "c"), AccessKind::Denied);
    fs::remove_file(&two).unwrap();
    assert_eq!(kind(&access.view().0, "anything"), AccessKind::Denied);
}

/// While rules are rewritten again and again, nobody ever sees them absent.
#[test]
fn there_is_never_a_moment_without_rules() {
    let (_parent, root) = workspace(&[(".clineignore", "secret\nother-0\n")]);
    let access = access(&[&root]);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                for _ in 0..300 {
                    assert_eq!(kind(&access.view().0, "secret"), AccessKind::Denied);
                }
            });
        }
        for turn in 0..300 {
            let new = root.join("new");
            fs::write(&new, format!("secret\nother-{turn}\n")).unwrap();
            fs::rename(&new, root.join(".clineignore")).unwrap();
        }
    });
}

#[test]
fn a_view_keeps_its_rules() {
    let (_parent, root) = workspace(&[(".clineignore", "a\n")]);
    let access = access(&[&root]);
    let old = access.view().0;
    fs::write(root.join(".clineignore"), "b\n").unwrap();
    let new = access.view().0;
    assert_eq!(kind(&old, "a"), AccessKind::Denied);
    assert_eq!(kind(&new, "a"), AccessKind::Allowed);
    assert_eq!(kind(&new, "b"), AccessKind::Denied);
}

// Opening.

#[test]
fn a_file_is_opened_only_when_it_may_be_read() {
    let (parent, root) = workspace(&[
        (".clineignore", ".env\n"),
        (".env", "secret"),
        ("a", "text"),
        ("sub/b", ""),
    ]);
    fs::write(parent.path().join("out"), "outside").unwrap();
    let view = view(&root);
    let open = |path: &str, outside: bool| {
        view.open_for_read(&view.roots().locate(path).unwrap(), outside)
            .map(|mut opened| {
                let mut text = String::new();
                opened.file.read_to_string(&mut text).unwrap();
                assert_eq!(opened.metadata.len(), text.len() as u64);
                text
            })
    };
    assert_eq!(open("a", false).unwrap(), "text");
    let denied = open(".env", true).unwrap_err();
    assert_eq!(denied.kind, ErrorKind::AccessDenied);
    assert_eq!(denied.rule.unwrap().line, 1);
    assert_eq!(
        open("nothing", false).unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(open("a/b", false).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(open("sub", false).unwrap_err().kind, ErrorKind::Unsupported);
    assert_eq!(
        open("../out", false).unwrap_err().kind,
        ErrorKind::AccessDenied
    );
    assert_eq!(open("../out", true).unwrap(), "outside");
}

#[cfg(unix)]
#[test]
fn opening_waits_for_nothing_and_follows_no_link_to_a_denied_file() {
    let (_parent, root) = workspace(&[(".clineignore", ".env\n"), (".env", "secret")]);
    let pipe = root.join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    link(".env", root.join("link"));
    link("/dev/zero", root.join("zero"));
    let view = view(&root);
    let error = |path: &str| {
        view.open_for_read(&view.roots().locate(path).unwrap(), true)
            .unwrap_err()
            .kind
    };
    assert_eq!(error("pipe"), ErrorKind::Unsupported);
    assert_eq!(error("socket"), ErrorKind::Unsupported);
    assert_eq!(error("zero"), ErrorKind::Unsupported);
    assert_eq!(error("link"), ErrorKind::AccessDenied);
}

/// A file that is swapped with a link to a denied one as fast as possible is
/// never read as the denied one.
#[cfg(unix)]
#[test]
fn swapping_a_file_for_a_link_gains_nothing() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (_parent, root) = workspace(&[
        (".clineignore", ".env\nprivate/\n"),
        (".env", "secret"),
        ("private/f", "secret"),
        ("plain", "public"),
        ("public/f", "public"),
    ]);
    let access = access(&[&root]);
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        // Also when an assertion fails.
        let _done = Done(&done);
        threads.spawn(|| {
            let mut turn = 0_u32;
            while !done.load(Ordering::Relaxed) {
                turn += 1;
                let (file, folder) = if turn.is_multiple_of(2) {
                    (".env", "private")
                } else {
                    ("plain", "public")
                };
                link(file, root.join("new"));
                fs::rename(root.join("new"), root.join("swapped")).unwrap();
                link(folder, root.join("new"));
                fs::rename(root.join("new"), root.join("folder")).unwrap();
            }
        });
        let mut read = 0;
        for turn in 0..4_000 {
            let path = if turn % 2 == 0 { "swapped" } else { "folder/f" };
            let view = access.view().0;
            let Ok(mut opened) = view.open_for_read(&view.roots().locate(path).unwrap(), false)
            else {
                continue;
            };
            let mut text = String::new();
            opened.file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "public");
            read += 1;
        }
        assert!(read > 0, "nothing was ever read");
    });
}

// Properties.

/// A step of a path, as an attacker might spell it.
fn steps() -> impl Strategy<Value = Vec<&'static str>> {
    let names = prop::sample::select(vec![
        "a",
        "b",
        "A",
        "secret",
        "SECRET",
        "Secret",
        "x.key",
        "X.KEY",
        ".",
        "..",
        "",
        "to-a",
        "to-secret",
        "to-up",
        "loop",
        "to-out",
        "back",
        "new",
        "a\\secret",
        "..\\secret",
        "pub",
        "hole",
    ]);
    prop::collection::vec(names, 1..8)
}

#[cfg(unix)]
fn tangled() -> (TempDir, PathBuf) {
    let (parent, root) = workspace(&[
        (".clineignore", "secret\n*.key\n"),
        ("a/b/secret/x", "denied"),
        ("a/x.key", "denied"),
        ("secret/x.key", "denied"),
        ("secret/b", "denied"),
        ("a/b/pub", "public"),
        ("b/pub", "public"),
    ]);
    let out = parent.path().join("out");
    fs::create_dir(&out).unwrap();
    for folder in [
        root.clone(),
        root.join("a"),
        root.join("b"),
        root.join("a/b"),
        out.clone(),
    ] {
        link(root.join("a"), folder.join("to-a"));
        link("secret", folder.join("to-secret"));
        link("..", folder.join("to-up"));
        link("loop", folder.join("loop"));
        link(&out, folder.join("to-out"));
        link(&root, folder.join("back"));
        link("x.key", folder.join("hole"));
    }
    (parent, root)
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// However a path is spelled: what it opens is never a denied file.
    #[test]
    fn no_spelling_of_a_denied_file_is_allowed(steps in steps(), absolute in any::<bool>()) {
        thread_local! {
            static TANGLED: (TempDir, PathBuf) = tangled();
        }
        TANGLED.with(|(_parent, root)| {
            let mut written = steps.join("/");
            if absolute {
                written = format!("{}/{written}", root.display());
            }
            let view = view(root);
            let (location, answer) = view.check_written(&written);
            // What the operating system makes of the same words: as they are,
            // and as they are opened here, with the dots folded.
            let folded = location.as_ref().map(|location| view.roots().absolute(location));
            let opened = [Some(root.join(&written)), folded.map(|path| path.as_path().to_path_buf())];
            for path in opened.into_iter().flatten().skip(usize::from(written.contains(".."))) {
                let Ok(real) = fs::canonicalize(&path) else { continue };
                let denied = real.components().any(|part| {
                    let name = part.as_os_str().to_str().unwrap().to_lowercase();
                    name == "secret" || name.ends_with(".key") || name == ".clineignore"
                });
                if denied {
                    prop_assert_eq!(answer.access, AccessKind::Denied, "{:?} is {:?}", &written, &real);
                } else if !real.starts_with(root) {
                    prop_assert_ne!(answer.access, AccessKind::Allowed, "{:?} is {:?}", &written, &real);
                }
            }
            if let Some(location) = location
                && let Ok(mut opened) = view.open_for_read(&location, true)
            {
                let mut text = String::new();
                opened.file.read_to_string(&mut text).unwrap();
                prop_assert_ne!(text, "denied", "{:?}", &written);
            }
            // A shell may take the same words further than they can be folded.
            let command = format!("cat '{written}'");
            if let Ok(text) = fs::read_to_string(root.join(&written)) && text == "denied" {
                prop_assert!(!view.check_command(&command).allowed, "{}", command);
            }
            Ok(())
        })?;
    }
}
