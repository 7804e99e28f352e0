//! Memory of a server after the first checkpoint of a tree.

use std::{fs, thread, time::Duration};

use serde_json::json;

use crate::{
    Run, progress,
    report::{Goal, Row, Series, Unit},
    session::Session,
    tree::Tree,
};

const PART: &str = "memory";
/// Maintenance starts after a second of idle time, and takes a while.
const IDLE: Duration = Duration::from_secs(5);
/// Size of the tree with a target.
const JUDGED: usize = 100_000;

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let mut rows = Vec::new();
    let (rounds, idle) = (run.rounds.min(3), IDLE.min(run.pause * 2));
    for count in run.sizes.trees.clone() {
        let measured = measure(run.trees.get(count), rounds, idle);
        if measured.is_empty() {
            run.report.skip(PART, "this system does not tell");
        }
        rows.extend(measured);
    }
    rows
}

fn measure(tree: &Tree, rounds: usize, idle: Duration) -> Vec<Row> {
    let mut series: [Series; 3] = Default::default();
    for round in 0..rounds {
        progress(&format!("{PART}: {}, round {}", tree.name, round + 1));
        let mut server = Session::start(Some(&tree.work()), &tree.path("data"));
        server.result("sightline/createCheckpoint", &json!({}));
        let Some(at_once) = server.memory("VmRSS") else {
            return Vec::new();
        };
        thread::sleep(idle);
        let figures = [
            server.memory("VmHWM"),
            Some(at_once),
            server.memory("VmRSS"),
        ];
        for (series, figure) in series.iter_mut().zip(figures) {
            series.0.extend(figure);
        }
        server.end();
        fs::remove_dir_all(tree.path("data")).unwrap();
    }
    let [most, at_once, idle] = &series;
    let row = |work: &str, series| Row::new(PART, work, series).of(tree).unit(Unit::Megabytes);
    let goal = Goal::Value {
        must: 60.0,
        aim: 40.0,
    };
    vec![
        row("at most, during the first checkpoint", most),
        row("right after the first checkpoint", at_once),
        row("idle after the first checkpoint", idle).goal(goal.only_if(tree.count >= JUDGED)),
    ]
}
