//! Compares access rules with recordings of Cline's `.clineignore`.

use std::{fs, sync::Arc};

use serde_json::Value;
use sightline_access::{Access, AccessView, ClockReading, REMOVAL_DELAY};
use sightline_base::path::{AbsPath, Root, Roots};
use sightline_protocol::{access::AccessKind, settings::Secrets};
use sightline_testing::{fixtures, git};

/// Paths with an intended difference: case, path, reason.
const PATH_DIFFERENCES: &[(&str, &str, &str)] = &[
    ("character-classes", "imgd.png", NEGATED),
    ("character-classes", "imga.png", NEGATED),
    ("directory-slash-needs-child", "secret/", NAMED_AS_FOLDER),
    ("fuzz/040", "a", NEGATED),
    ("fuzz/040", ".env/A/q.txt", NEGATED),
    ("fuzz/040", "A/src/x.JS", NEGATED),
    ("fuzz/040", "src/b/y.txt", NEGATED),
    ("fuzz/040", "x.js/b", NEGATED),
    ("fuzz/040", "node_modules/A", NEGATED),
    ("fuzz/040", "node_modules/node_modules/b", NEGATED),
    ("fuzz/040", "A", NEGATED),
    ("fuzz/040", "b", NEGATED),
    ("fuzz/040", "a/a", NEGATED),
    ("fuzz/043", "a/Src", ONLY_FOLDERS),
    ("fuzz/043", "a/node_modules", ONLY_FOLDERS),
    ("fuzz/043", "b/q.txt", ONLY_FOLDERS),
];
const NEGATED: &str = "git reads `[!a]` as anything but `a`, the recorded library as `!` or `a`";
const ONLY_FOLDERS: &str =
    "for git a pattern that ends in `**/` matches folders, for the recorded library files too";
const NAMED_AS_FOLDER: &str =
    "a path that ends in `/` names a folder, and `secret/` denies that before it exists";

/// Commands with an intended difference: command, reason.
const COMMAND_DIFFERENCES: &[(&str, &str)] = &[
    ("cat --flag=secret.txt", "values of options are paths too"),
    ("cat ${CWD}/secret.txt", "so are absolute paths"),
    (
        "cat \"secret.txt\"",
        "quotes are removed, as the shell does",
    ),
    ("cat 'secret.txt'", "quotes are removed, as the shell does"),
    ("echo hi | cat secret.txt", "every command of a pipe counts"),
    (
        "vim secret.txt",
        "any program counts, not only known readers",
    ),
    (
        "nl secret.txt",
        "any program counts, not only known readers",
    ),
    (
        "get-content secret.txt:stream",
        "a stream belongs to its file",
    ),
    ("cat C:secret.txt", "a path relative to a drive"),
    (
        "/bin/cat secret.txt",
        "the program may be named by its path",
    ),
    (
        "sudo cat secret.txt",
        "the program may stand behind another",
    ),
    ("cat<secret.txt", "redirections read"),
];

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .map(|items| items.iter().map(|item| item.as_str().unwrap()).collect())
        .unwrap_or_default()
}

struct Workspace {
    _parent: tempfile::TempDir,
    root: AbsPath,
    access: Access,
}

impl Workspace {
    fn new(input: &Value) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("ws");
        fs::create_dir(&folder).unwrap();
        for directory in strings(&input["directories"]) {
            fs::create_dir_all(folder.join(directory)).unwrap();
        }
        for (path, text) in input["files"].as_object().into_iter().flatten() {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_str().unwrap()).unwrap();
        }
        assert!(input.get("filesBase64").is_none(), "teach the test base64");
        let root = AbsPath::new(&folder).unwrap();
        let roots = Roots::new(vec![Root::new(root.clone(), None)]);
        Self {
            _parent: parent,
            root,
            access: Access::new(Arc::new(roots), Vec::new(), Secrets::Allow),
        }
    }

    /// Returns the rules after earlier rules have expired.
    fn view(&self) -> AccessView {
        self.access.view();
        let ClockReading { monotonic, wall } = ClockReading::system();
        let later = ClockReading {
            monotonic: monotonic + REMOVAL_DELAY,
            wall: wall + REMOVAL_DELAY,
        };
        self.access.view_at(later).0
    }

    fn written(&self, text: &str) -> String {
        text.replace("${CWD}", self.root.as_path().to_str().unwrap())
    }

    /// Converts to Cline's two results: it allows paths outside the roots.
    fn allows(&self, path: &str) -> bool {
        self.view().check_written(&self.written(path)).1.access != AccessKind::Denied
    }
}

#[test]
fn path_checks_match_recordings() {
    let Some(cases) = fixtures::load("cline/ignore.json") else {
        return;
    };
    let mut unused: Vec<_> = PATH_DIFFERENCES.to_vec();
    let mut judged = 0;
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let workspace = Workspace::new(&case["input"]);
        let mut compare = |input: &Value, expected: &Value| {
            for (path, allowed) in strings(&input["accessPaths"])
                .into_iter()
                .zip(expected["access"].as_array().into_iter().flatten())
            {
                judged += 1;
                let same = workspace.allows(path) == allowed.as_bool().unwrap();
                let known = unused.iter().position(|(a, b, _)| (*a, *b) == (name, path));
                assert_eq!(
                    same,
                    known.is_none(),
                    "{name}: {path:?}, recorded {allowed}"
                );
                if let Some(known) = known {
                    unused.remove(known);
                }
            }
            let paths = strings(&input["filterPaths"]);
            let kept: Vec<&str> = paths
                .into_iter()
                .filter(|path| workspace.allows(path))
                .collect();
            assert_eq!(kept, strings(&expected["filtered"]), "{name}");
        };
        compare(&case["input"], &case["expected"]);
        let changes = case["input"]["changes"].as_array().into_iter().flatten();
        let expected = case["expected"]["changes"].as_array().into_iter().flatten();
        for (change, expected) in changes.zip(expected) {
            let file = workspace.root.as_path().join(".clineignore");
            match change["content"].as_str() {
                Some(text) => fs::write(file, text).unwrap(),
                None => fs::remove_file(file).unwrap(),
            }
            compare(change, expected);
        }
    }
    assert!(judged > 1000, "only {judged} paths judged");
    assert!(unused.is_empty(), "no longer different: {unused:?}");
}

#[test]
fn command_checks_match_recordings() {
    let Some(cases) = fixtures::load("cline/ignore.json") else {
        return;
    };
    let mut unused: Vec<_> = COMMAND_DIFFERENCES.to_vec();
    let mut judged = 0;
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let workspace = Workspace::new(&case["input"]);
        let expected = case["expected"]["commands"].as_array();
        for (command, expected) in strings(&case["input"]["commands"])
            .into_iter()
            .zip(expected.into_iter().flatten())
        {
            judged += 1;
            let answer = workspace.view().check_command(&workspace.written(command));
            assert_eq!(answer.allowed, answer.denied.is_empty(), "{command}");
            let same = match expected.as_str() {
                None => answer.allowed,
                Some(path) => answer.denied.iter().any(|denied| denied.path == path),
            };
            let known = unused.iter().position(|(known, _)| *known == command);
            assert_eq!(
                same,
                known.is_none(),
                "{name}: {command:?}, recorded {expected}, answered {answer:?}"
            );
            if let Some(known) = known {
                unused.remove(known);
            }
        }
    }
    assert!(judged > 40, "only {judged} commands judged");
    assert!(unused.is_empty(), "no longer different: {unused:?}");
}

/// Paths for which git differs: case, path, reason.
const GIT_DIFFERENCES: &[(&str, &str, &str)] = &[(
    "unicode-patterns",
    "NAÏVE.txt",
    "git ignores the case of ASCII letters only",
)];

#[test]
fn recorded_tables_match_git() {
    let Some(cases) = fixtures::load("cline/ignore.json") else {
        return;
    };
    if !git::is_installed() {
        return;
    }
    let mut judged = 0;
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let rules = case["input"]["files"][".clineignore"]
            .as_str()
            .unwrap_or("");
        // Includes and an empty file have other semantics.
        if rules.is_empty() || rules.contains("!include") {
            continue;
        }
        let paths: Vec<&str> = strings(&case["input"]["accessPaths"])
            .into_iter()
            .filter(|path| is_plain(path))
            .collect();
        if paths.is_empty() {
            continue;
        }
        let ignored = ignored_by_git(rules, &paths);
        let workspace = Workspace::new(&case["input"]);
        for path in paths {
            judged += 1;
            let same = workspace.allows(path) != ignored.iter().any(|ignored| ignored == path);
            let known = GIT_DIFFERENCES
                .iter()
                .any(|(a, b, _)| (*a, *b) == (name, path));
            assert_eq!(same, !known, "{name}: {path:?}");
        }
    }
    assert!(judged > 1000, "only {judged} paths judged");
}

/// Returns whether git accepts this path unchanged.
fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', '$'])
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn ignored_by_git(rules: &str, paths: &[&str]) -> Vec<String> {
    let repository = tempfile::tempdir().unwrap();
    let folder = repository.path();
    git::init(folder);
    fs::write(
        folder.join(".git/info/exclude"),
        format!("{rules}\n.clineignore\n"),
    )
    .unwrap();
    let lines = git::check_ignore(folder, true, paths);
    let lines = paths.iter().zip(lines);
    lines
        .filter(|(_, line)| line.as_ref().is_some_and(git::Line::ignores))
        .map(|(path, _)| (*path).to_owned())
        .collect()
}
