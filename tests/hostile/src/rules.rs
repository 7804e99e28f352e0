//! `.clineignore` text and paths: a path is denied if `git check-ignore` ignores it, and
//! every other text gets a verdict.

use std::{cell::OnceCell, fs, path::Path};

use sightline_access::{Access, RULE_FILE};
use sightline_base::path::{AbsPath, RelPath, Root, Roots};
use sightline_protocol::settings::Secrets;
use sightline_testing::git;
use tempfile::TempDir;

use crate::draw::Draw;

/// Single characters instead of whole patterns, so that every malformed pattern occurs.
/// No capital letters: with `core.ignorecase`, git does not fold case in brackets.
const CHARACTERS: &[u8] = b"ab.x/*?[]!^-\\# \t:{},\r\n\n/*";

/// Components of paths.
const NAMES: &[&str] = &[
    "a", "b", "ab", "a b", "x.a", "[", "a]", "-", "!a", "#", "\\", "{a}", "^", ":", "..a",
];

thread_local! {
    /// A repository, which is slower to create than to query.
    static GROUND: OnceCell<TempDir> = const { OnceCell::new() };
}

fn ground() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    git::init(folder.path());
    folder
}

/// Removes the files of the last case.
fn empty(root: &Path) {
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == ".git" => {}
            true => fs::remove_dir_all(entry.path()).unwrap(),
            false => fs::remove_file(entry.path()).unwrap(),
        }
    }
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    if draw.once_in(4) {
        return any_text(bytes);
    }
    let mut paths = Vec::new();
    for _ in 0..=draw.below(12) {
        let depth = 1 + draw.below(4);
        let parts: Vec<&str> = (0..depth).map(|_| draw.pick(NAMES)).collect();
        paths.push(parts.join("/"));
    }
    let mut text = Vec::new();
    while !draw.is_empty() && text.len() < 400 {
        text.push(draw.pick(CHARACTERS));
    }
    GROUND.with(|cell| {
        let folder = cell.get_or_init(ground);
        let root = sightline_base::path::canonicalize(folder.path()).unwrap();
        empty(&root);
        as_git_does(&root, &text, &paths);
    });
}

fn as_git_does(root: &Path, text: &[u8], paths: &[String]) {
    for path in paths {
        // Paths below another path's file are skipped.
        let _ = fs::create_dir_all(root.join(path).parent().unwrap());
        let _ = fs::write(root.join(path), "");
    }
    fs::write(root.join(RULE_FILE), text).unwrap();
    fs::write(root.join(".gitignore"), text).unwrap();
    let expected = git::check_ignore(root, true, paths);
    let access = access(root);
    let view = access.view().0;
    for (path, expected) in paths.iter().zip(expected) {
        let rel = RelPath::new(Path::new(path)).unwrap();
        let denial = view.check_entry(0, &rel, root.join(path).is_dir());
        let line = denial.map(|denial| denial.rule.map(|rule| rule.line));
        let expected = expected.filter(git::Line::ignores);
        assert_eq!(
            line,
            expected.map(|line| Some(line.number)),
            "{path:?} under {:?}",
            String::from_utf8_lossy(text)
        );
    }
}

/// Rules that are not text: they apply, or deny everything.
fn any_text(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let root = sightline_base::path::canonicalize(folder.path()).unwrap();
    fs::write(root.join(RULE_FILE), bytes).unwrap();
    fs::write(root.join("a"), "").unwrap();
    let access = access(&root);
    let view = access.view().0;
    for path in ["a", RULE_FILE, "b/c"] {
        let rel = RelPath::new(Path::new(path)).unwrap();
        let denial = view.check_entry(0, &rel, false);
        let is_denied = denial.is_some();
        assert!(
            is_denied || path != RULE_FILE || bytes.is_empty(),
            "the rules show themselves"
        );
        assert!(
            is_denied || view.unusable(0).is_none(),
            "{path} under unusable rules"
        );
        assert!(
            is_denied
                || !bytes.contains(&0)
                || bytes.starts_with(b"\xff\xfe")
                || bytes.starts_with(b"\xfe\xff")
        );
    }
}

fn access(root: &Path) -> Access {
    let roots = Roots::new(vec![Root::new(AbsPath::new(root).unwrap(), None)]);
    Access::new(roots.into(), Vec::new(), Secrets::Allow)
}
