//! Access checks: 100,000 paths against 50 patterns, compared with npm's `ignore`. Both
//! start cold, because `ignore` caches every path.
//!
//! The files exist, and are empty: we also resolve each path on disk, which `ignore` does
//! not.

use std::{fs, path::Path, sync::Arc};

use serde_json::json;
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
};
use sightline_protocol::{
    access::{AccessKind, PathAccess},
    settings::Secrets,
};

use crate::{
    Run, progress,
    report::{Goal, Row, Series},
    session::{Session, Worker, result_of, timed},
    tree::path_of,
};

const PART: &str = "access";

/// Common patterns, and as many that match folders and files of the tree.
pub(crate) fn patterns() -> Vec<String> {
    let written = [
        "*.log",
        "*.tmp",
        "node_modules/",
        "/target/",
        "**/dist/**",
        "build/",
        ".env",
        ".env.*",
        "*.py[cod]",
        "!keep.log",
        "/docs/*.md",
        "**/*.snap",
        "secret*/",
        "a/**/b",
        "*.{js}",
        "\\#odd",
        "tmp?/",
        "[Bb]in/",
        "*.min.*",
        "*.pem",
    ];
    let mut patterns: Vec<String> = written.map(str::to_owned).to_vec();
    for index in 1..=5 {
        patterns.push(format!("file_{index}00*.rs"));
        patterns.push(format!("!file_{index}001.rs"));
        patterns.push(format!("area{index}7/"));
        patterns.push(format!("/part{index}/module{index}/"));
        patterns.push(format!("**/area{index}_*/x"));
        patterns.push(format!("part*/module1{index}/area*/file_*9.rs"));
    }
    patterns
}

/// A folder with these empty files and rules.
pub(crate) fn folder_of(paths: &[String], patterns: &[String]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut above = String::new();
    for path in paths {
        let (parent, _) = path.rsplit_once('/').unwrap();
        if parent != above {
            parent.clone_into(&mut above);
            fs::create_dir_all(folder.path().join(parent)).unwrap();
        }
        fs::File::create(folder.path().join(path)).unwrap();
    }
    fs::write(folder.path().join(".clineignore"), patterns.join("\n")).unwrap();
    folder
}

/// Counts the denied paths, checked in this process.
fn denied(root: &Path, paths: Vec<String>) -> usize {
    let root = Root::new(AbsPath::new(root).unwrap(), None);
    let access = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow);
    let (view, _) = access.view();
    let answers = view.check_all(paths, &Cancel::default()).unwrap();
    let is_denied = |answer: &&PathAccess| answer.access == AccessKind::Denied;
    answers.iter().filter(is_denied).count()
}

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let count = run.sizes.paths;
    progress(&format!("{PART}: writing {count} empty files"));
    let paths: Vec<String> = (0..count).map(path_of).collect();
    let patterns = patterns();
    let tree = folder_of(&paths, &patterns);
    let root = fs::canonicalize(tree.path()).unwrap();
    let beside = tempfile::tempdir().unwrap();
    let file = |name: &str, lines: &[String]| {
        let path = beside.path().join(name);
        fs::write(&path, lines.join("\n")).unwrap();
        path
    };
    let command = json!({
        "op": "ignore",
        "patterns": file("patterns", &patterns),
        "paths": file("paths", &paths),
    });
    let params = json!({ "paths": paths }).to_string();

    let mut node = Worker::start();
    let mut server = Session::start(Some(&root), &beside.path().join("data"));
    let [mut ignore, mut in_process, mut over_stdio] = [const { Series(Vec::new()) }; 3];
    for round in 0..run.rounds {
        progress(&format!("{PART}: round {}", round + 1));
        let theirs = node.timed(&mut ignore, &command);
        let copies = paths.clone();
        let ours = timed(&mut in_process, || denied(&root, copies));
        assert_eq!(theirs["ignored"], ours, "verdicts differ from npm ignore's");
        let (answer, elapsed) = server.ask("sightline/checkAccess", &params);
        over_stdio.0.push(elapsed);
        let verdicts = result_of(&answer);
        let verdicts = verdicts["paths"].as_array().unwrap();
        let is_denied = verdicts
            .iter()
            .filter(|verdict| verdict["access"] == "denied");
        assert_eq!(is_denied.count(), ours);
    }
    let work = format!("{count} paths x {} patterns", patterns.len());
    let row = |how: &str, ours: &Series| {
        let mut row = Row::new(PART, format!("{work}, {how}"), ours)
            .on(format!("{count} empty files"))
            .against("npm ignore", &ignore)
            .goal(Goal::ratio(0.35, 0.2).only_if(run.judged()));
        row.files = Some(count);
        row
    };
    vec![
        row("in process", &in_process),
        row("checkAccess over stdio", &over_stdio),
    ]
}
