//! Listing a tree: the first 200 entries and all of them, compared with `git ls-files`.

use std::fs;

use serde_json::json;

use crate::{
    Run, growth, progress,
    report::{Goal, Row, Series},
    session::{Session, result_of, timed},
    tree::{Tree, settle},
};

const PART: &str = "listing";
const GIT: [&str; 3] = ["ls-files", "-co", "--exclude-standard"];
const FIRST: usize = 200;
const FIRST_OVER_STDIO: &str = "first 200, listFiles over stdio";
/// More entries than any tree here has.
const EVERYTHING: usize = 1_000_000;
const EVERYTHING_TEXT: &str = "1000000";

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let mut rows = Vec::new();
    for count in run.sizes.trees.clone() {
        let tree = run.trees.get(count);
        rows.extend(measure(tree, run.rounds));
    }
    rows.extend(growth(&rows, FIRST_OVER_STDIO));
    match &mut run.repository {
        Ok(tree) => rows.extend(measure(tree, run.rounds)),
        Err(why) => run.report.skip("listing of this repository", why),
    }
    rows
}

fn measure(tree: &Tree, rounds: usize) -> Vec<Row> {
    progress(&format!("{PART}: {}", tree.name));
    // With all files tracked, and with none tracked.
    tree.git("listed", &["init", "-q"]);
    tree.git("listed", &["add", "-A"]);
    tree.git("new", &["init", "-q"]);
    let mut server = Session::start(Some(&tree.work()), &tree.path("data"));
    let all = json!({ "limit": EVERYTHING }).to_string();
    let first = json!({ "limit": FIRST }).to_string();
    let mut series: [Series; 6] = Default::default();
    settle();
    for _ in 0..=rounds {
        let [tracked, new, process, stdio, first_process, first_stdio] = &mut series;
        timed(tracked, || tree.git("listed", &GIT));
        timed(new, || tree.git("new", &GIT));
        timed(process, || {
            tree.sightline("data", &["list", "--limit", EVERYTHING_TEXT])
        });
        let (answer, elapsed) = server.ask("sightline/listFiles", &all);
        stdio.0.push(elapsed);
        assert_eq!(result_of(&answer)["truncated"], false);
        timed(first_process, || tree.sightline("data", &["list"]));
        first_stdio
            .0
            .push(server.ask("sightline/listFiles", &first).1);
    }
    server.end();
    for store in ["listed", "new", "data"] {
        fs::remove_dir_all(tree.path(store)).unwrap();
    }
    for series in &mut series {
        // The first round reads the folders from disk.
        series.0.remove(0);
    }
    let [tracked, new, process, stdio, first_process, first_stdio] = &series;
    let row = |work: &str, ours| Row::new(PART, work, ours).of(tree);
    let tracked = |row: Row| row.against("git ls-files -co, all tracked", tracked);
    let must = Goal::Ratio {
        must: Some(1.2),
        aim: None,
    }
    .only_if(tree.judged);
    vec![
        tracked(row("all, sightline list", process)),
        row("all, sightline list", process).against("git ls-files -co, nothing tracked", new),
        tracked(row("all, listFiles over stdio", stdio)).goal(must),
        tracked(row(
            &format!("first {FIRST}, sightline list"),
            first_process,
        )),
        tracked(row(FIRST_OVER_STDIO, first_stdio)),
    ]
}
