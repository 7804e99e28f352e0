//! Overhead of a small request and startup time, compared with a minimal server on npm's
//! `vscode-languageserver`.

use std::process::Command;

use serde_json::json;

use crate::{
    Run, progress,
    report::{Goal, Row, Series},
    session::{Session, node_command, storage},
};

const PART: &str = "round trips";
const NODE: &str = "node vscode-languageserver";
/// Requests in sequence. The servers take turns several times per round, because wakeup
/// times fluctuate.
const REQUESTS: usize = 50;
const TURNS: usize = 20;
/// Starts per round.
const STARTS: usize = 3;

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("notes.txt"), "text\n").unwrap();
    let data = folder.path().join("data");
    let ours = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sightline"));
        command.arg("--stdio");
        command
    };
    let node = || node_command("language-server.mjs");
    let open = |command| Session::open(command, Some(&work), &storage(&data));

    let uri = format!("file://{}", work.join("notes.txt").display());
    let path = json!({ "paths": ["notes.txt"] }).to_string();
    let hover =
        json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 0 } });
    let hover = hover.to_string();
    let mut servers = [open(ours()), open(node())];
    let mut start: [Series; 2] = Default::default();
    // Per round: the median, and the time exceeded by one request in a hundred.
    let mut own: [[Series; 2]; 2] = Default::default();
    let mut standard: [[Series; 2]; 2] = Default::default();
    for round in 0..=run.rounds {
        progress(&format!("{PART}: round {round}"));
        // Times of single requests, our own and standard ones.
        let mut took: [[Vec<f64>; 2]; 2] = Default::default();
        for turn in 0..TURNS * 2 {
            let who = (turn + round) % 2;
            let method = ["sightline/checkAccess", "bench/echo"][who];
            ask(&mut servers[who], method, &path, &mut took[who][0]);
            ask(
                &mut servers[who],
                "textDocument/hover",
                &hover,
                &mut took[who][1],
            );
        }
        // The first round warms up.
        if round == 0 {
            continue;
        }
        for (who, [asked, hovered]) in took.into_iter().enumerate() {
            note(&mut own[who], asked);
            note(&mut standard[who], hovered);
        }
        for at in 0..STARTS * 2 {
            let who = (at + round) % 2;
            let session = if who == 0 { open(ours()) } else { open(node()) };
            start[who].0.push(session.started);
            session.end();
        }
    }
    servers.into_iter().for_each(Session::end);
    let judged = run.judged();
    let row = |work: &str, [ours, theirs]: [&Series; 2], goal: Goal| {
        Row::new(PART, work, ours)
            .on("a folder with one file")
            .against(NODE, theirs)
            .goal(goal.only_if(judged))
    };
    let [own_ours, own_node] = &own;
    let [standard_ours, standard_node] = &standard;
    vec![
        row(
            "checkAccess of a path against an echo, median",
            [&own_ours[0], &own_node[0]],
            Goal::must(1.0),
        ),
        row(
            "checkAccess of a path against an echo, 99 %",
            [&own_ours[1], &own_node[1]],
            Goal::None,
        ),
        row(
            "hover that says nothing, median",
            [&standard_ours[0], &standard_node[0]],
            Goal::must(1.0),
        ),
        row(
            "hover that says nothing, 99 %",
            [&standard_ours[1], &standard_node[1]],
            Goal::None,
        ),
        row(
            "start to answer of initialize",
            [&start[0], &start[1]],
            Goal::ratio(0.1, 0.03),
        ),
    ]
}

/// Sends many requests and records their times.
fn ask(server: &mut Session, method: &str, params: &str, took: &mut Vec<f64>) {
    took.extend((0..REQUESTS).map(|_| server.ask(method, params).1));
}

/// Records the median and the 99th percentile.
fn note(series: &mut [Series; 2], mut took: Vec<f64>) {
    took.sort_by(f64::total_cmp);
    series[0].0.push(took[took.len() / 2]);
    series[1].0.push(took[took.len() * 99 / 100]);
}
