//! The `<environment_details>` block with its file list, built repeatedly by a warm
//! server. There is no comparable program.

use std::fs;

use serde_json::json;

use crate::{
    Run, progress,
    report::{Goal, Row, Series},
    session::Session,
    tree::Tree,
};

const PART: &str = "environment";
/// Blocks per round.
const BLOCKS: usize = 20;

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let mut rows = Vec::new();
    for count in run.sizes.trees.clone() {
        rows.push(measure(run.trees.get(count), run.rounds));
    }
    match &mut run.repository {
        Ok(tree) => rows.push(measure(tree, run.rounds)),
        Err(why) => run.report.skip("environment of this repository", why),
    }
    rows
}

fn measure(tree: &Tree, rounds: usize) -> Row {
    progress(&format!("{PART}: {}", tree.name));
    let mut server = Session::start(Some(&tree.work()), &tree.path("data"));
    let params = json!({ "includeFiles": true });
    let block = server.result("sightline/environmentDetails", &params);
    let text = block["text"].as_str().unwrap();
    let shown = text
        .lines()
        .filter(|line| line.contains("file_") || line.contains('/'));
    assert!(shown.count() > 10, "no list of files: {text}");
    let params = params.to_string();
    let mut series = Series::default();
    for _ in 0..rounds * BLOCKS {
        series
            .0
            .push(server.ask("sightline/environmentDetails", &params).1);
    }
    server.end();
    fs::remove_dir_all(tree.path("data")).unwrap();
    Row::new(PART, "environmentDetails with files, warm", &series)
        .of(tree)
        .goal(
            Goal::Value {
                must: 5.0,
                aim: 1.0,
            }
            .only_if(tree.judged),
        )
}
