//! `sightline exec -- true`, from the start of the process to its end: with 100 denied files in a repository that
//! git tracks, with a server and without, compared with the command alone.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    progress,
    report::{Goal, Row, Series},
    session::{Session, timed},
    tree::Tree,
};

const PART: &str = "hook";
/// Denied files that git does not track.
const DENIED: usize = 100;
/// Commands per round.
const COMMANDS: usize = 10;
/// Milliseconds while a server runs, in a large tree.
const WITH_SERVER: Goal = Goal::Value {
    must: 15.0,
    aim: 6.0,
};
/// Milliseconds without a server, in a tree of 10,000 files.
const WITHOUT_SERVER: Goal = Goal::Value {
    must: 40.0,
    aim: 20.0,
};
/// Files of that tree.
const SMALL: usize = 10_000;

pub(super) fn measure(tree: &Tree, rounds: usize) -> Vec<Row> {
    progress(&format!("exec: {}", tree.name));
    let git = |arguments: &[&str]| tree.git("work/.git", arguments);
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    let folders = tree.files.iter().filter_map(|file| file.parent());
    let step = (tree.files.len() / DENIED).max(1);
    // In a small tree, some of these files share a folder.
    let denied: BTreeSet<PathBuf> = folders
        .step_by(step)
        .map(|folder| folder.join(".env"))
        .collect();
    for file in &denied {
        fs::write(file, "A=1\n").unwrap();
    }
    let mut rows = Vec::new();
    for with_server in [true, false] {
        let data = tree.path("xdg/sightline");
        let server = with_server.then(|| Session::start(Some(&tree.work()), &data));
        // The first command of a server reads the folders.
        run(
            tree,
            Path::new(env!("CARGO_BIN_EXE_sightline")),
            true,
            &mut Series::default(),
        );
        let mut series: [Series; 2] = Default::default();
        for _ in 0..rounds * COMMANDS {
            run(
                tree,
                Path::new(env!("CARGO_BIN_EXE_sightline")),
                true,
                &mut series[0],
            );
            run(tree, Path::new("true"), false, &mut series[1]);
        }
        if let Some(server) = server {
            server.end();
        }
        let (suffix, goal) = match with_server {
            true => ("a", WITH_SERVER),
            false => ("no", WITHOUT_SERVER.only_if(tree.count <= SMALL)),
        };
        let count = denied.len();
        let work = format!("a command without {count} denied files, {suffix} server");
        let row = Row::new(PART, work, &series[0]).of(tree);
        rows.push(
            row.against("true", &series[1])
                .goal(goal.only_if(tree.judged)),
        );
    }
    for file in &denied {
        fs::remove_file(file).unwrap();
    }
    fs::remove_dir_all(tree.work().join(".git")).unwrap();
    rows
}

fn run(tree: &Tree, program: &Path, is_ours: bool, series: &mut Series) {
    let mut command = Command::new(program);
    if is_ours {
        command.args(["exec", "--", "true"]);
    }
    command
        .current_dir(tree.work())
        .env("XDG_DATA_HOME", tree.path("xdg"))
        .stdin(Stdio::null());
    let output = timed(series, || command.output().unwrap());
    assert!(output.status.success(), "{output:?}");
}
