//! Rule files: valid content, includes, and when a change takes effect.

mod reloading;

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::scratch::*;
use sightline_access::{Access, ClockReading, REMOVAL_DELAY};
use sightline_base::path::{RelPath, Root, Roots};
use sightline_protocol::access::AccessKind;

// Rule files.

#[test]
fn included_rules_name_their_file() {
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

/// Invalid rules deny everything, and report the reason.
#[test]
fn invalid_rules_deny_everything() {
    let big = "x\n".repeat(150_000);
    let large = "#".repeat(200_000);
    let lines = "x\n".repeat(20_000);
    let many: String = (0..100).map(|n| format!("!include f{n}\n")).collect();
    let large_pattern = format!("a.txt\n*{}\n", "x".repeat(9_000));
    let cases: Vec<(&str, &[u8], &str)> = vec![
        (
            "large pattern",
            large_pattern.as_bytes(),
            "line 2 of .clineignore",
        ),
        ("too large", big.as_bytes(), "bytes"),
        ("NUL bytes", b"a\0b\n", "NUL"),
        ("include outside", b"!include ../x\n", "outside"),
        ("include far outside", b"!include sub/../../x\n", "outside"),
        ("too many includes", many.as_bytes(), "includes"),
        (
            "large include",
            b"a\n!include big\n",
            "more than 262144 bytes",
        ),
        (
            "large includes",
            b"!include b1\n!include b2\n!include b3\n!include b4\n!include b5\n!include b6\n",
            "more than 1048576 bytes",
        ),
        (
            "many patterns",
            b"!include l1\n!include l2\n!include l3\n",
            "more than 50000 patterns",
        ),
        ("damaged UTF-16", b"\xff\xfea\0\x00\xd8", "UTF-16"),
        ("UTF-32", b"\xff\xfe\0\0a\0\0\0\n\0\0\0", "UTF-16"),
        ("UTF-32, big", b"\0\0\xfe\xff\0\0\0a", "NUL"),
    ];
    for (name, rules, why) in cases {
        let (_parent, root) = workspace(&[("a", ""), ("big", &big)]);
        for n in 1..=6 {
            fs::write(root.join(format!("b{n}")), &large).unwrap();
            fs::write(root.join(format!("l{n}")), &lines).unwrap();
        }
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

/// A file included many times is compiled once, with the same decisions.
#[test]
fn a_repeated_include_is_compiled_once() {
    // 25,000 patterns: compiling them twice would reach the limit.
    let more: String = (0..24_999).map(|n| format!("x{n}\n")).collect();
    let rules = format!("x1\n!x2\n{}!x3\n", "!include more\n".repeat(500));
    let (_parent, root) = workspace(&[(".clineignore", &rules), ("more", &format!("{more}!x4\n"))]);
    let view = view(&root);
    let denied = ["x1", "x2", "x3", "x4", "x5"].map(|path| kind(&view, path));
    let (yes, no) = (AccessKind::Denied, AccessKind::Allowed);
    assert_eq!(denied, [yes, yes, no, no, yes]);
    let rule = ask(&view, "x1").rule.unwrap();
    assert_eq!((rule.source.as_str(), rule.line), ("more", 2));
    // Rules between two includes keep their position.
    fs::write(root.join("more"), "a\n").unwrap();
    for (rules, expected) in [
        ("!include more\n!a\n!include more\n", yes),
        ("!include more\n!include ./more\n!a\n", no),
        ("!a\n!include more\n", yes),
    ] {
        fs::write(root.join(".clineignore"), rules).unwrap();
        assert_eq!(kind(&crate::scratch::view(&root), "a"), expected, "{rules}");
    }
}

/// Rules at each limit, and one above it.
#[test]
fn limits_of_rules_are_exact() {
    for (bytes, expected) in [
        (256 * 1024, AccessKind::Allowed),
        (256 * 1024 + 1, AccessKind::Denied),
    ] {
        let (_parent, root) = workspace(&[(".clineignore", &"#".repeat(bytes))]);
        assert_eq!(kind(&view(&root), "a"), expected, "{bytes}");
    }
    for (files, expected) in [(64, AccessKind::Allowed), (65, AccessKind::Denied)] {
        let rules: String = (0..files).map(|n| format!("!include f{n}\n")).collect();
        let (_parent, root) = workspace(&[(".clineignore", &rules)]);
        assert_eq!(kind(&view(&root), "a"), expected, "{files}");
    }
}

#[cfg(unix)]
#[test]
fn special_rule_files_deny_everything() {
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
        assert!(answer.reason.unwrap().contains("cannot use"), "{name}");
    }
    // Unreadable.
    let (_parent, root) = workspace(&[("a", ""), (".clineignore", "x\n")]);
    let rules = root.join(".clineignore");
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&rules).is_err() {
        assert_eq!(kind(&view(&root), "a"), AccessKind::Denied);
    }
}

#[test]
fn files_without_rules() {
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
fn includes_resolve_from_the_root() {
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

// Changes to rule files.

#[test]
fn a_view_keeps_its_rules() {
    let (_parent, root) = workspace(&[(".clineignore", "a\n")]);
    let access = access(&[&root]);
    let old = access.view().0;
    fs::write(root.join(".clineignore"), "a\nb\n").unwrap();
    let new = access.view().0;
    assert_eq!(kind(&old, "b"), AccessKind::Allowed);
    assert_eq!(kind(&new, "b"), AccessKind::Denied);
}

#[test]
fn rules_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<sightline_access::Access>();
    shared::<sightline_access::AccessView>();
}

// Several roots.

/// Another root contains the target of a root that is a link.
#[cfg(unix)]
#[test]
fn the_outer_root_checks_entries_of_a_linked_root() {
    let (parent, outer) = workspace(&[
        (".clineignore", "sub/secret\n"),
        ("sub/secret", ""),
        ("sub/a", ""),
    ]);
    let by_link = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("by-link");
    link(outer.join("sub"), &by_link);
    let view = access(&[&by_link, &outer]).view().0;
    let denied = |name: &str| {
        let rel = RelPath::new(Path::new(name)).unwrap();
        view.check_entry(0, &rel, false).is_some()
    };
    assert!(denied("secret") && !denied("a"));
}

#[cfg(unix)]
#[test]
fn invalid_rules_make_inner_roots_unusable() {
    let (_parent, outer) = workspace(&[("inner/a", ""), ("b", "")]);
    let made = std::process::Command::new("mkfifo")
        .arg(outer.join(".clineignore"))
        .status();
    assert!(made.unwrap().success());
    let beside = tempfile::tempdir().unwrap();
    let roots = [&*outer.join("inner"), &outer, beside.path()];
    let view = access(&roots).view().0;
    let unusable = [0, 1, 2].map(|root| view.unusable(root).is_some());
    assert_eq!(unusable, [true, true, false]);
}
