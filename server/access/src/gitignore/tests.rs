//! Tests of patterns and of the rules that decide.

use super::*;

fn set(text: &[u8]) -> PatternSet {
    PatternSet::access_rules(rule_lines("rules", text)).unwrap()
}

fn denies(set: &PatternSet, path: &str) -> bool {
    set.deciding(path.as_bytes()).as_file.is_ignore()
}

#[test]
fn the_deciding_line_is_reported() {
    let set = set(b"# first\n*.log  \n!keep.log\r\nbuild/\n");
    let verdict = set.deciding(b"a/X.LOG").as_file;
    let Match::Ignore(rule) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        (&*rule.source, rule.line, rule.pattern.as_str()),
        ("rules", 2, "*.log")
    );
    let verdict = set.deciding(b"keep.log").as_file;
    assert!(matches!(verdict, Match::Whitelist(rule) if rule.line == 3));
    let verdict = set.deciding(b"build/keep.log").as_file;
    assert!(matches!(verdict, Match::Ignore(rule) if rule.line == 4));
    assert!(set.deciding(b"build").as_file.is_none());
    assert!(set.deciding(b"build").as_dir.is_ignore());
}

#[test]
fn remembered_directories_change_no_answer() {
    let set = set(b"a/*\n!a/b\nc\n");
    for _ in 0..2 {
        assert!(denies(&set, "a/x/y"));
        assert!(!denies(&set, "a/b/y"));
        assert!(denies(&set, "a/b/c/d/e"));
    }
}

#[test]
fn invisible_characters_deny_more_and_never_less() {
    let set = set(".e\u{200b}nv\n*\u{200d}.k\n\u{200b}\n!a\u{200b}.k\n!b.k\n".as_bytes());
    for denied in [
        ".env",
        ".ENV",
        ".en\u{fe0f}v",
        "a.k",
        "x\u{200d}.k",
        "\u{200b}",
    ] {
        assert!(denies(&set, denied), "{denied:?}");
    }
    assert!(!denies(&set, "b.k"));
}

/// Git before 2.52 cut the literal start off and matched the rest like the start of a path.
#[test]
fn double_stars_after_text_mean_one_star() {
    let set = set(b"foo**/bar\n");
    for (path, expected) in [
        ("foobar", false),
        ("foo/bar", true),
        ("foox/bar", true),
        ("foo/x/bar", false),
        ("foox/y/bar", false),
    ] {
        assert_eq!(denies(&set, path), expected, "{path}");
    }
}

#[test]
fn bytes_that_are_not_utf8_deny_more_and_never_less() {
    let set = set(b"*.k\xe9y\n!\xe9.k\xe9y\n");
    assert!(denies(&set, "a.kéy"));
    assert!(denies(&set, "é.kéy"));
}

/// `globset` matches all of these.
#[test]
fn patterns_that_match_nothing_in_git_match_nothing() {
    let everything = set(b"*\n**\n/**\n**/*\n");
    assert!(everything.deciding(b"").as_dir.is_none());
    assert!(everything.deciding(b"a").as_file.is_ignore());
    for pattern in ["/**//", "**//", "a/**//"] {
        let set = set(pattern.as_bytes());
        for path in ["a", "a/b", "x/y/z"] {
            assert!(
                set.deciding(path.as_bytes()).as_dir.is_none(),
                "{pattern} on {path}"
            );
        }
    }
    // Git before 2.52 matched the directory `abc`.
    assert!(set(b"abc**//").deciding(b"abc").as_dir.is_none());
}

#[test]
fn a_pattern_over_a_limit_names_its_line() {
    let large = [b"a\n*".as_slice(), &b"x".repeat(10_000), b"\nb\n"].concat();
    let error = PatternSet::access_rules(rule_lines("rules", &large)).unwrap_err();
    let (source, line) = ("rules".into(), 2);
    assert_eq!(error, CompileError::TooLarge { source, line });
    let lenient = PatternSet::gitignore("rules", &large);
    assert!(lenient.last_match(b"a", false).is_ignore());
    assert!(lenient.last_match(b"b", false).is_ignore());
}

#[test]
fn rules_of_many_sets_keep_their_order() {
    let mut text = String::from("*.log\n");
    for number in 0..3 * MAX_SET_GLOBS {
        text.push_str(&format!("x{number}*y\n"));
    }
    text.push_str("!keep.log\n");
    let set = set(text.as_bytes());
    assert!(set.chunks.len() > 2);
    assert!(denies(&set, "a.log"));
    assert!(!denies(&set, "keep.log"));
    let verdict = set.deciding(b"x700zy").as_file;
    assert!(matches!(verdict, Match::Ignore(rule) if rule.line == 702));
}
