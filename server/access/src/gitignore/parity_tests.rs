//! Compares [`super`] with the real `git check-ignore` on generated rule files, and with the
//! `ignore` crate where that one differs from git. Not only the verdict must be equal: the deciding line and
//! its pattern too.

use std::{fs, process::Command};

use ignore::{Match, gitignore::GitignoreBuilder};
use serde_json::Value;
use sightline_testing::{fixtures, git};

use super::{PatternSet, Rule, glob::Case, rule_lines};

/// Rule files for each alphabet and each kind of case, and paths for each of them.
const RULE_FILES: usize = 200;
const PATHS: usize = 64;

/// Pseudorandom numbers, the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.roll(choices.len())]
    }
}

/// What names and patterns are made of. Patterns have no capital letters: with `core.ignorecase` git's own
/// folding stops at brackets and at ASCII.
struct Alphabet {
    names: &'static [&'static str],
    pieces: &'static [&'static str],
    ends: &'static [&'static str],
}

/// What people write.
const ORDINARY: Alphabet = Alphabet {
    names: &[
        "src",
        "lib",
        "main.rs",
        "mod.rs",
        "test_a.py",
        "x.min.js",
        "x.js",
        "y.js",
        "node_modules",
        "build",
        "dist",
        ".env",
        ".env.local",
        "README.md",
        "a.log",
        "b.log",
        "keys",
        "id_rsa",
        "cert.pem",
        "Cargo.toml",
        "1",
        "2",
        "v10",
        "日本.txt",
        "naïve.md",
    ],
    pieces: &[
        "src",
        "lib",
        "main",
        "mod",
        "test_",
        "x",
        "y",
        "node_modules",
        "build",
        "dist",
        "env",
        "local",
        "log",
        "keys",
        "id_",
        "cert",
        "*",
        "*",
        "*",
        "**/",
        "/**",
        "/",
        "/",
        "/",
        ".",
        ".",
        "*.js",
        "*.min.js",
        "*.log",
        "*.pem",
        ".env*",
        "?",
        "[0-9]",
        "[a-m]",
        "[!a]",
        "日本",
        "ï",
        "readme.md",
        "v1",
        "10",
    ],
    ends: &["\n", "\n", "\n", "/\n", "/*\n", "/**\n", ".*\n", "\r\n"],
};

/// All corners of the syntax.
const HOSTILE: Alphabet = Alphabet {
    names: &[
        "a", "b", "ab", "abc", "B", "x.js", "x.ts", ".env", "日本", "naïve", "a b", "src", "{a}",
        "a,b", "[", "a]", "b1", "b-", "!a", "#a", "a*", "-", "^", "a ", "\\a", "a\\", "*", "{a,b}",
        "a\tb", "_", "A", "Z9", "[a", "b\n", "..a", "x", "a?", "a.", "b..", "x.js.", "é", "©",
    ],
    pieces: &[
        "a",
        "b",
        "ab",
        "abc",
        "x.js",
        ".env",
        "日本",
        "naïve",
        "a b",
        "src",
        "{a}",
        "{a,b}",
        "a,b",
        "*",
        "*",
        "?",
        "**",
        "**",
        "/",
        "/",
        "/",
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-c]",
        "[]a]",
        "[]-]",
        "[a",
        "[",
        "]",
        "[[:alpha:]]",
        "[[:digit:]-]",
        "[![:space:]]",
        "[[:punct:]]",
        "[[:what:]]",
        "[[:alpha:]",
        "[a\\]b]",
        "[\\a-c]",
        "[c-a]",
        "[日]",
        "\\",
        "\\*",
        "\\a",
        "\\/",
        "\\[",
        "\\ ",
        " ",
        "-",
        "!",
        "#",
        ".",
        "1",
        "{",
        "}",
        "***",
        "\t",
        "[!-9]",
        "[^]]",
        "[!]]",
        "[--0]",
        "[!!]",
        "[^^]",
        "[*-z]",
        "[à-é]",
        "[!é]",
        "[a-é]",
        "[ÿ-é]",
        "[é-é]",
        "[é-z]",
        "[a-é-z]",
        "[.-0]",
        "[[:upper:]]",
        "[[:lower:]]",
        "[[:print:]]",
        "[[:graph:]]",
        "[[:cntrl:]]",
        "[[:blank:]]",
        "[[:alnum:]]",
        "[[:xdigit:]]",
        "[[:]",
        "[[::]]",
        "[\\\\]",
        "[a-]",
        "[!",
        "[]",
        "\\\\",
        "**/",
        "/**",
        "/**/",
        "*/",
        "_",
        "\u{b}",
        "(",
        ")",
        "+",
        "$",
        "|",
        "&&",
        "~~",
        "[&&~~]",
        "é",
    ],
    ends: &[
        "\n", "\n", "\n", "\r\n", "/\n", "  \n", "/**\n", "\\\n", "\t\n", " \r\n", "//\n",
    ],
};

/// Returns whether `**` follows literal text. Git matches that as described in `double_stars_after_text_mean_one_star`
/// from 2.52 on.
fn is_read_otherwise(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.strip_prefix(b"!").unwrap_or(line);
    let line = line.strip_prefix(b"/").unwrap_or(line);
    let wild = line.iter().position(|byte| b"*?[\\".contains(byte));
    wild.is_some_and(|at| at > 0 && line[at - 1] != b'/' && line[at..].starts_with(b"**"))
}

fn git_is_old() -> bool {
    let version = Command::new("git").arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) < (2, 52)
}

fn rule_file(dice: &mut Dice, alphabet: &Alphabet, git_is_old: bool) -> Vec<u8> {
    let mut text = Vec::new();
    if dice.roll(8) == 0 {
        text.extend_from_slice(b"\xef\xbb\xbf");
    }
    for _ in 0..=dice.roll(12) {
        let start = text.len();
        let prefix = match dice.roll(16) {
            0 => "!",
            1 => "/",
            2 => "!/",
            3 => "**/",
            4 => "#",
            5 => "\\#",
            6 => "\\!",
            _ => "",
        };
        text.extend_from_slice(prefix.as_bytes());
        for _ in 0..=dice.roll(4) {
            text.extend_from_slice(dice.pick(alphabet.pieces).as_bytes());
        }
        text.extend_from_slice(dice.pick(alphabet.ends).as_bytes());
        if git_is_old && is_read_otherwise(&text[start..]) {
            text.truncate(start);
        }
    }
    if dice.roll(4) == 0 {
        text.pop();
    }
    text
}

fn random_path(dice: &mut Dice, alphabet: &Alphabet, max_depth: usize) -> String {
    let depth = 1 + dice.roll(max_depth);
    let names: Vec<&str> = (0..depth).map(|_| *dice.pick(alphabet.names)).collect();
    names.join("/")
}

fn line_of(matched: Match<&Rule>) -> Option<git::Line> {
    matched.inner().map(|rule| git::Line {
        number: rule.line,
        pattern: rule.pattern.clone(),
    })
}

fn compare(seed: u64, alphabet: &Alphabet, case: Case) {
    if !git::is_installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    git::init(folder);
    let git_is_old = git_is_old();
    let mut dice = Dice(seed);
    let mut folders = Vec::new();
    for _ in 0..80 {
        let path = random_path(&mut dice, alphabet, 3);
        fs::create_dir_all(folder.join(&path)).unwrap();
        folders.push(path);
    }
    let mut decided = 0;
    for _ in 0..RULE_FILES {
        let text = rule_file(&mut dice, alphabet, git_is_old);
        fs::write(folder.join(".gitignore"), &text).unwrap();
        let paths: Vec<String> = (0..PATHS)
            .map(|_| {
                if dice.roll(4) == 0 {
                    return dice.pick(&folders).clone();
                }
                random_path(&mut dice, alphabet, 4)
            })
            .collect();
        let set = PatternSet::gitignore_with_case(".gitignore", &text, case);
        let expected = git::check_ignore(folder, case == Case::Folded, &paths);
        for (path, expected) in paths.iter().zip(expected) {
            let is_dir = folder.join(path).is_dir();
            let ours = line_of(set.deciding(path.as_bytes()).of(is_dir));
            decided += usize::from(ours.is_some());
            assert_eq!(
                line_of(walk(&set, path, is_dir)),
                ours,
                "{path:?} directory by directory"
            );
            assert_eq!(
                ours,
                expected,
                "{path:?} (directory: {is_dir}) under {:?}",
                String::from_utf8_lossy(&text)
            );
        }
    }
    // Rules that never match would prove nothing.
    assert!(decided > RULE_FILES * PATHS / 8, "only {decided} decided");
}

/// Returns the rule that decides, by asking for one directory after the other.
fn walk<'a>(set: &'a PatternSet, path: &str, is_dir: bool) -> Match<&'a Rule> {
    path.match_indices('/')
        .map(|(at, _)| set.last_match(&path.as_bytes()[..at], true))
        .find(Match::is_ignore)
        .unwrap_or_else(|| set.last_match(path.as_bytes(), is_dir))
}

#[test]
fn ordinary_rules_match_as_in_git() {
    compare(0x5eed, &ORDINARY, Case::Sensitive);
}

#[test]
fn ordinary_rules_match_as_in_git_when_case_is_ignored() {
    compare(0xca5e, &ORDINARY, Case::Folded);
}

#[test]
fn hostile_rules_match_as_in_git() {
    compare(0x5eed, &HOSTILE, Case::Sensitive);
}

#[test]
fn hostile_rules_match_as_in_git_when_case_is_ignored() {
    compare(0xca5e, &HOSTILE, Case::Folded);
}

/// A rule file about which `ignore::gitignore::Gitignore` was wrong.
struct Trap {
    name: &'static str,
    rules: &'static [u8],
    path: &'static str,
    /// Whether git denies the path; `None` where access rules differ from git on purpose.
    git: Option<bool>,
    ours: bool,
    ignore_crate: bool,
}

const fn trap(name: &'static str, rules: &'static [u8], path: &'static str) -> Trap {
    Trap {
        name,
        rules,
        path,
        git: Some(true),
        ours: true,
        ignore_crate: false,
    }
}

const TRAPS: &[Trap] = &[
    trap(
        "`!` below a denied directory",
        b"secret/\n!secret/ok.txt\n",
        "secret/ok.txt",
    ),
    Trap {
        ignore_crate: true,
        ..trap("POSIX classes", b"key[[:digit:]].pem\n", "key1.pem")
    },
    trap("braces are literal", b"{prod,dev}.env\n", "{prod,dev}.env"),
    trap("braces in `!`", b"*.env\n!{a,b}.env\n", "a.env"),
    trap("an unclosed brace", b"secret{1.txt\n", "secret{1.txt"),
    trap(
        "an unclosed bracket never matches",
        b"*.key\n![a.key\n",
        "[a.key",
    ),
    trap(
        "a descending range is its first character",
        b"[z-a]key\n",
        "zkey",
    ),
    Trap {
        ignore_crate: true,
        ..trap(
            "a line that is not UTF-8, and the next one",
            b"caf\xe9\nsecret.txt\n",
            "secret.txt",
        )
    },
    Trap {
        ignore_crate: true,
        ..trap("brackets never match `/`", b"*\n!a[!b]c\n", "a/c")
    },
    Trap {
        ignore_crate: true,
        ..trap("an escaped space, then a space", b"name\\  \n", "name ")
    },
    Trap {
        ignore_crate: true,
        ..trap("a tab at the end", b"name\t\n", "name\t")
    },
    trap("three stars", b"***/key\n", "a/b/key"),
    Trap {
        // Git before 2.52 denies this: it cut the literal start off.
        git: None,
        ours: false,
        ..trap("`**` after text", b"a/b**/key\n", "a/bx/y/key")
    },
    trap("a backslash in brackets", b"[\\]]x\n", "]x"),
    Trap {
        git: None,
        ..trap(
            "case beyond ASCII",
            "GEHÄLTER.txt\n".as_bytes(),
            "gehälter.TXT",
        )
    },
    Trap {
        git: None,
        ..trap(
            "accents in two spellings",
            "caf\u{e9}.txt\n".as_bytes(),
            "cafe\u{301}.txt",
        )
    },
    Trap {
        // A pattern over the size limit of `globset`; see `a_large_pattern`.
        git: None,
        ..trap("a pattern that is too large", b"*a", "secret.txt")
    },
    Trap {
        git: None,
        ours: false,
        ignore_crate: true,
        ..trap("the directory of the rules itself", b"**/*\n", "")
    },
];

/// Verdicts of git on the exclude list of Cline's checkpoints.
#[test]
fn recorded_exclude_lists_match_as_in_git() {
    let cases = fixtures::load("cline/checkpoint_exclusions.json").unwrap();
    let cases = cases.as_array().unwrap();
    let strings = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
    let list = cases
        .iter()
        .find(|case| case["kind"] == "patterns")
        .unwrap();
    let lines = strings(&list["expected"]["full"]).join("\n");
    let set = PatternSet::gitignore_with_case("exclude", lines.as_bytes(), Case::Sensitive);
    let mut count = 0;
    for case in cases.iter().filter(|case| case["kind"] == "paths") {
        assert_eq!(case["input"]["lfsPatterns"], Value::Array(Vec::new()));
        let paths = strings(&case["input"]["paths"]);
        let expected = case["expected"]["matchedPattern"].as_array().unwrap();
        for (path, pattern) in paths.iter().zip(expected) {
            let name = path.trim_end_matches('/');
            let rule = walk(&set, name, path.ends_with('/'));
            let ours = rule.inner().map(|rule| rule.pattern.as_str());
            assert_eq!(ours, pattern.as_str(), "{path}");
            count += 1;
        }
    }
    assert!(count > 200, "only {count} paths");
}

/// The rules of the row about a large pattern.
fn a_large_pattern(rules: &[u8]) -> Vec<u8> {
    [b"secret.txt\n".as_slice(), &rules.repeat(300_000), b"\n"].concat()
}

/// Why the crate's `Gitignore` is not used: many of these paths are denied by git and allowed by the crate. When
/// a row fails in the column of the crate, the crate was fixed there, as others were in 0.4.35.
#[test]
fn the_ignore_crate_allows_what_git_denies() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let has_git = git::is_installed();
    if has_git {
        git::init(folder);
    }
    for trap in TRAPS {
        let name = trap.name;
        let mut rules = trap.rules.to_vec();
        if !rules.ends_with(b"\n") {
            rules = a_large_pattern(&rules);
        }
        let file = folder.join(".gitignore");
        fs::write(&file, &rules).unwrap();
        let ours = PatternSet::access_rules(rule_lines(".clineignore", &rules));
        let ours = match &ours {
            Ok(set) => set.deciding(trap.path.as_bytes()).as_file.is_ignore(),
            // Everything is denied.
            Err(_) => true,
        };
        assert_eq!(ours, trap.ours, "{name}: access rules");

        let mut builder = GitignoreBuilder::new(folder);
        builder.case_insensitive(true).unwrap();
        // After an error, the matcher is still usable, without the invalid lines.
        let _ = builder.add(&file);
        let by_crate = builder.build().is_ok_and(|matcher| {
            matcher
                .matched_path_or_any_parents(folder.join(trap.path), false)
                .is_ignore()
        });
        assert_eq!(by_crate, trap.ignore_crate, "{name}: the ignore crate");

        if let (Some(denied), true) = (trap.git, has_git) {
            let line = git::check_ignore(folder, true, &[trap.path]).remove(0);
            assert_eq!(
                line.is_some_and(|line| line.ignores()),
                denied,
                "{name}: git"
            );
        }
    }
}
