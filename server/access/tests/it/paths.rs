//! Denied paths under every spelling and behind every link.
#![cfg_attr(not(unix), allow(unused, reason = "many of these tests need Unix"))]

mod roots;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::scratch::*;
use proptest::prelude::*;
use sightline_access::{Access, Verdict};
use sightline_base::{
    cancel::Cancel,
    path::{Location, RelPath, Roots},
};

use sightline_protocol::access::AccessKind;
use tempfile::TempDir;

// T12: path spellings.

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
    let uri = abs(&root).to_uri();
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
        &format!("{uri}/.env"),
        &format!("{uri}/%2e%65nv").replacen("file:", "FILE:", 1),
        &format!("{uri}/.env").replacen("file://", "file://localhost", 1),
        &format!("{uri}/sub/%2e%2e/.env"),
        &format!("{uri}/sub%2f..%2f.env"),
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
fn paths_outside_the_roots_are_outside() {
    let (_parent, root) = workspace(&[(".clineignore", "*.key\n"), ("a", "")]);
    let view = view(&root);
    let at = root.display();
    let uri = abs(&root).to_uri();
    for path in [
        "..",
        "../x",
        "../ws-backup/a",
        "sub/../../x",
        &format!("{at}-backup/a"),
        &format!("{uri}-backup/a"),
        &format!("{uri}/%2e%2e/x"),
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
fn invalid_paths_are_denied_with_a_reason() {
    let (_parent, root) = workspace(&[]);
    let view = view(&root);
    let long = "a".repeat(100_000);
    for path in [
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
    // Elsewhere, a UNC path is a name with backslashes, and stays in the root.
    let (of_windows, unc) = if cfg!(windows) {
        (AccessKind::Outside, AccessKind::Outside)
    } else {
        (AccessKind::Denied, AccessKind::Allowed)
    };
    for path in ["C:\\Users\\x", "c:/x", "file://server/share/x"] {
        assert_eq!(kind(&view, path), of_windows, "{path}");
    }
    assert_eq!(kind(&view, "\\\\server\\share\\x"), unc);
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
fn unicode_forms_of_a_name_are_equal() {
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
fn a_directory_rule_checks_the_file_type() {
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
fn links_are_checked_by_their_target() {
    let (parent, root) = workspace(&[
        (
            ".clineignore",
            ".env\nprivate/\nhidden-link\n*.key\nmiddle/held\n",
        ),
        (".env", ""),
        ("private/deep/x", ""),
        ("public/a", ""),
        ("public/held", ""),
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
    link("public", root.join("middle"));
    link("middle", root.join("to-middle"));
    link("nowhere/../to-env", root.join("up-from-nowhere"));
    link("public/a", root.join("chain-1"));
    for links in 2..=41 {
        let at = root.join(format!("chain-{links}"));
        link(format!("chain-{}", links - 1), at);
    }
    link(&outside, root.join("to-outside"));
    link("/", root.join("to-top"));
    link(&root, outside.join("back"));
    link(root.join(".env"), outside.join("back-env"));
    let view = view(&root);
    let expected = [
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
        ("public/held", AccessKind::Allowed),
        ("to-middle/a", AccessKind::Allowed),
        ("to-middle/held", AccessKind::Denied),
        ("up-from-nowhere", AccessKind::Denied),
        ("chain-40", AccessKind::Allowed),
        ("chain-41", AccessKind::Denied),
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
    ];
    let wrong = expected
        .iter()
        .filter(|(path, expected)| kind(&view, path) != *expected);
    assert_eq!(wrong.collect::<Vec<_>>(), [] as [&(&str, AccessKind); 0]);
    // `to-top` leaves the root and enters it again.
    let again = format!("to-top{}/.env", root.display());
    assert_eq!(kind(&view, &again), AccessKind::Denied);
    // The reason does not reveal a denied name.
    let Verdict::Denied(denial) = view.check(&view.roots().locate("to-env").unwrap()) else {
        panic!("to-env is denied");
    };
    assert!(denial.reason.contains("link"), "{}", denial.reason);
}

#[cfg(unix)]
#[test]
fn a_root_behind_a_link_matches_all_its_paths() {
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
fn unreadable_paths_are_denied() {
    use std::os::unix::fs::PermissionsExt;
    let (_parent, root) = workspace(&[("locked/a", "")]);
    let locked = root.join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser can read every directory.
    if fs::read_dir(&locked).is_err() {
        let view = view(&root);
        assert_eq!(kind(&view, "locked/a"), AccessKind::Denied);
        assert!(ask(&view, "locked/a").reason.is_some());
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    let name = "n".repeat(300);
    assert_eq!(kind(&view(&root), &name), AccessKind::Denied);
}

#[cfg(unix)]
#[test]
fn rules_of_the_target_root_apply_to_a_linked_root() {
    let (_parent, outer) = workspace(&[(".clineignore", "private/\n"), ("private/x", "")]);
    let inner = outer.join("open");
    link("private", &inner);
    let view = access(&[&outer, &inner]).view().0;
    let path = inner.join("x").display().to_string();
    assert_eq!(kind(&view, &path), AccessKind::Denied);
}

/// A view caches directories that are checked often.
#[cfg(unix)]
#[test]
fn repeated_checks_of_a_directory_agree() {
    let (_parent, root) = workspace(&[(".clineignore", ".env\n"), (".env", ""), ("sub/plain", "")]);
    link("../.env", root.join("sub/to-env"));
    link("../..", root.join("sub/out"));
    link("plain", root.join("sub/to-plain"));
    let long = format!("sub/{}", "n".repeat(300));
    let view = view(&root);
    for _ in 0..20 {
        for (path, expected) in [
            ("sub/plain", AccessKind::Allowed),
            ("sub/to-plain", AccessKind::Allowed),
            ("sub/missing", AccessKind::Allowed),
            ("sub/to-env", AccessKind::Denied),
            ("sub/out", AccessKind::Outside),
            (&long, AccessKind::Denied),
        ] {
            assert_eq!(kind(&view, path), expected, "{path}");
        }
    }
}

/// A missing path is denied as a directory if it is written as one.
#[test]
fn a_path_written_as_a_directory_is_checked_as_one() {
    let (_parent, root) = workspace(&[(".clineignore", "secrets/\n"), ("sub/a", "")]);
    let view = view(&root);
    let absolute = format!("{}/secrets/", root.display());
    let uri = format!("{}/secrets/", abs(&root).to_uri());
    for denied in [
        "secrets/",
        "secrets/.",
        "sub/secrets//",
        "sub\\secrets\\",
        &absolute,
        &uri,
    ] {
        assert_eq!(kind(&view, denied), AccessKind::Denied, "{denied}");
        assert_eq!(ask(&view, denied).rule.unwrap().pattern, "secrets/");
    }
    // Without the slash it may be created as a file.
    for allowed in ["secrets", "sub/", "secrets/..", "."] {
        assert_eq!(kind(&view, allowed), AccessKind::Allowed, "{allowed}");
    }
    #[cfg(unix)]
    {
        link("secrets", root.join("link"));
        assert_eq!(kind(&view, "link/"), AccessKind::Denied);
    }
}

/// Names that are equal on some file system.
#[test]
fn names_with_equal_case_folds_are_all_denied() {
    let (_parent, root) = workspace(&[(".clineignore", "straße.txt\n.env\n")]);
    let view = view(&root);
    for denied in ["STRAẞE.TXT", "strasse.txt", "Straße.txt", ".EN\u{200d}V"] {
        assert_eq!(kind(&view, denied), AccessKind::Denied, "{denied}");
    }
}

// Several roots, and no root.

// Properties.

/// A path component, as an attacker might spell it.
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

    /// Checking many paths in parallel, with whole directories read, gives the same results
    /// as checking each path alone.
    #[test]
    fn parallel_checks_equal_single_checks(paths in prop::collection::vec(steps(), 1_500)) {
        let (_parent, root) = tangled();
        let paths: Vec<String> = paths.iter().map(|steps| steps.join("/")).collect();
        let all = view(&root).check_all(paths.clone(), &Cancel::default()).unwrap();
        let each = paths.iter().map(|path| view(&root).check_written(path).1);
        for (together, alone) in all.iter().zip(each) {
            prop_assert_eq!(together, &alone);
        }
        prop_assert_eq!(all.len(), paths.len());
    }
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    /// No spelling of a path opens a denied file.
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
            // Resolve the spelling in two ways: by the operating system, and with the dots
            // folded as they are here.
            let folded = location.as_ref().map(|location| view.roots().absolute(location));
            let opened = [Some(root.join(&written)), folded.map(|path| path.as_path().to_path_buf())];
            for path in opened.into_iter().flatten().skip(usize::from(written.contains(".."))) {
                let Ok(real) = sightline_base::path::canonicalize(&path) else { continue };
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
                opened.read_to_string(&mut text).unwrap();
                prop_assert_ne!(text, "denied", "{:?}", &written);
            }
            // A shell may resolve spellings that cannot be folded.
            let command = format!("cat '{written}'");
            if let Ok(text) = fs::read_to_string(root.join(&written)) && text == "denied" {
                prop_assert!(!view.check_command(&command).allowed, "{}", command);
            }
            Ok(())
        })?;
    }
}

/// Links that were followed before are known, which changes no answer.
#[cfg(unix)]
#[test]
fn chains_of_links_have_the_same_answer_in_any_order() {
    let (_parent, root) = workspace(&[
        (".clineignore", "l/5\nsecret\n"),
        ("end", "x"),
        ("secret", "x"),
    ]);
    std::fs::create_dir(root.join("l")).unwrap();
    std::fs::create_dir(root.join("m")).unwrap();
    for at in 0..60 {
        link(format!("../l/{}", at + 1), root.join(format!("l/{at}")));
        link(format!("../m/{}", at + 1), root.join(format!("m/{at}")));
    }
    link("../end", root.join("l/60"));
    link("../secret", root.join("m/60"));
    link("../l/30", root.join("m/loop"));
    let asked: Vec<String> = (0..=60)
        .flat_map(|at| [format!("l/{at}"), format!("m/{at}")])
        .collect();
    let alone: Vec<AccessKind> = asked.iter().map(|path| kind(&view(&root), path)).collect();
    assert_eq!(alone[2 * 6], AccessKind::Denied, "too many links");
    assert_eq!(alone[2 * 30], AccessKind::Allowed);
    assert!(
        alone
            .iter()
            .skip(1)
            .step_by(2)
            .all(|kind| *kind == AccessKind::Denied)
    );
    let forward = view(&root);
    let found: Vec<AccessKind> = asked.iter().map(|path| kind(&forward, path)).collect();
    assert_eq!(found, alone);
    let backward = view(&root);
    let mut found: Vec<AccessKind> = asked
        .iter()
        .rev()
        .map(|path| kind(&backward, path))
        .collect();
    found.reverse();
    assert_eq!(found, alone);
    for path in ["l/30", "l/60"] {
        let location = backward.roots().locate(path).unwrap();
        let opened = backward.open_for_read(&location, false).unwrap();
        assert_eq!(opened.real(), root.join("end"));
    }
    // A link that is replaced during the check leads to what was checked, or to nothing.
    std::fs::remove_file(root.join("l/45")).unwrap();
    link("../secret", root.join("l/45"));
    let location = backward.roots().locate("l/30").unwrap();
    if let Ok(opened) = backward.open_for_read(&location, false) {
        assert_eq!(opened.real(), root.join("end"));
    }
}
