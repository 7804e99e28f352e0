//! The answers of [`super::pattern`] against those of the real `git
//! check-ignore`, on generated rule files. Not the answer alone: the deciding
//! line and its pattern must be the same.

use std::{fs, process::Command};

use sightline_testing::git;

use super::{glob::Case, pattern::PatternSet};

const RULE_FILES: usize = 400;
const PATHS: usize = 64;

/// Numbers that look random and are the same on every run.
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

const NAMES: &[&str] = &[
    "a", "b", "ab", "abc", "B", "x.js", "x.ts", ".env", "日本", "naïve", "a b", "src", "{a}",
    "a,b", "[", "a]", "b1", "b-", "!a", "#a", "a*", "-", "^",
];

/// Pieces patterns are put together from. No capital letters: with
/// `core.ignorecase` git's own folding stops at brackets and at ASCII.
const PIECES: &[&str] = &[
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
];

const ENDS: &[&str] = &[
    "\n", "\n", "\n", "\r\n", "/\n", "  \n", "/**\n", "\\\n", "\t\n",
];

/// Returns whether `**` stands right behind literal text, which git reads in our way
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

fn rule_file(dice: &mut Dice, git_is_old: bool) -> Vec<u8> {
    let mut text = Vec::new();
    if dice.roll(8) == 0 {
        text.extend_from_slice(b"\xef\xbb\xbf");
    }
    for _ in 0..=dice.roll(12) {
        let start = text.len();
        match dice.roll(16) {
            0 => text.extend_from_slice(b"!"),
            1 => text.extend_from_slice(b"/"),
            2 => text.extend_from_slice(b"!/"),
            3 => text.extend_from_slice(b"**/"),
            4 => text.extend_from_slice(b"#"),
            _ => {}
        }
        for _ in 0..=dice.roll(4) {
            text.extend_from_slice(dice.pick(PIECES).as_bytes());
        }
        text.extend_from_slice(dice.pick(ENDS).as_bytes());
        if git_is_old && is_read_otherwise(&text[start..]) {
            text.truncate(start);
        }
    }
    if dice.roll(4) == 0 {
        text.pop();
    }
    text
}

fn paths(dice: &mut Dice, folders: &[String]) -> Vec<String> {
    (0..PATHS)
        .map(|_| {
            if dice.roll(4) == 0 {
                return dice.pick(folders).clone();
            }
            let depth = 1 + dice.roll(4);
            let parts: Vec<&str> = (0..depth).map(|_| *dice.pick(NAMES)).collect();
            parts.join("/")
        })
        .collect()
}

fn compare(seed: u64, case: Case) {
    if !git::is_installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let ignore_case = case == Case::Folded;
    git::init(folder);
    let git_is_old = git_is_old();
    let mut dice = Dice(seed);
    let mut folders = Vec::new();
    for _ in 0..80 {
        let depth = 1 + dice.roll(3);
        let parts: Vec<&str> = (0..depth).map(|_| *dice.pick(NAMES)).collect();
        let path = parts.join("/");
        fs::create_dir_all(folder.join(&path)).unwrap();
        folders.push(path);
    }
    let mut decided = 0;
    for _ in 0..RULE_FILES {
        let text = rule_file(&mut dice, git_is_old);
        fs::write(folder.join(".gitignore"), &text).unwrap();
        let paths = paths(&mut dice, &folders);
        let mut set = PatternSet::new(case);
        set.add_text(".gitignore", &text);
        let expected = git::check_ignore(folder, ignore_case, &paths);
        for (path, expected) in paths.iter().zip(expected) {
            let is_dir = folder.join(path).is_dir();
            let ours = set.deciding(path.as_bytes())[usize::from(is_dir)].map(|rule| git::Line {
                number: rule.line,
                pattern: rule.pattern.clone(),
            });
            decided += usize::from(ours.is_some());
            let own = walked(&set, path, is_dir);
            assert_eq!(
                own,
                ours.as_ref().map(|line| line.number),
                "{path:?} step by step"
            );
            assert_eq!(
                ours,
                expected,
                "{path:?} (folder: {is_dir}) under {:?}",
                String::from_utf8_lossy(&text)
            );
        }
    }
    // Rules that never match would prove nothing.
    assert!(decided > RULE_FILES * PATHS / 8, "only {decided} decided");
}

/// The line that decides, by asking for one folder after the other.
fn walked(set: &PatternSet, path: &str, is_dir: bool) -> Option<u32> {
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let ignored = above
        .filter_map(|folder| set.last_match(folder.as_bytes(), true))
        .find(|rule| !rule.negated);
    ignored
        .or_else(|| set.last_match(path.as_bytes(), is_dir))
        .map(|rule| rule.line)
}

#[test]
fn the_deciding_rule_is_gits() {
    compare(0x5eed, Case::Sensitive);
}

#[test]
fn the_deciding_rule_is_gits_when_case_is_ignored() {
    compare(0xca5e, Case::Folded);
}
