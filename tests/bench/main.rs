//! Benchmarks of Sightline against comparable programs, side by side in one run:
//!
//! ```text
//! npm ci --prefix tests/node
//! cargo bench -p sightline --bench all [-- --help]
//! ```
//!
//! Rounds are interleaved. Figures are medians, with minimum and maximum. Earlier writes
//! are synced before a measurement, and results are checked after the clock is stopped.
//! Start reading with `report` (rows and verdicts), `session` (servers under test) and
//! `tree` (work trees); then one file per part in `rows`. `docs/benchmarks/details.md` explains the rows.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on says so and ends"
)]

mod documents;
mod input;
mod options;
mod plot;
mod report;
mod rows;
mod session;
mod tree;
mod versions;

use std::{
    process::ExitCode,
    sync::LazyLock,
    time::{Duration, Instant},
};

use clap::Parser;

use options::{Options, Sizes};
use report::{Goal, Report, Row, Verdict};
use tree::{Tree, Trees};

/// State shared by the parts.
pub(crate) struct Run {
    pub(crate) sizes: Sizes,
    pub(crate) rounds: usize,
    /// Delay before a round that measures a tree at rest.
    pub(crate) pause: Duration,
    pub(crate) trees: Trees,
    /// This repository with its history, or why it is not available.
    pub(crate) repository: Result<Tree, String>,
    pub(crate) report: Report,
    pub(crate) quick: bool,
}

impl Run {
    /// Returns whether the inputs are those with targets.
    pub(crate) fn judged(&self) -> bool {
        !self.quick
    }
}

/// Start of the run.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Prints the current step and the elapsed time.
pub(crate) fn progress(what: &str) {
    eprintln!("  {:>5.0} s  {what}", STARTED.elapsed().as_secs_f64());
}

/// Compares a row of the largest tree with the same row of the smallest, among those with
/// targets.
pub(crate) fn growth(rows: &[Row], work: &str) -> Option<Row> {
    let mut same: Vec<&Row> = rows
        .iter()
        .filter(|row| row.work == work && row.judged)
        .collect();
    same.sort_by_key(|row| row.files);
    let (small, large) = (same.first()?, same.last()?);
    if small.files == large.files {
        return None;
    }
    let row = Row::new(large.part, format!("{work}, growth"), &large.ours)
        .on(&large.on)
        .against(format!("the same with {}", small.on), &small.ours)
        .goal(Goal::Ratio {
            must: None,
            aim: Some(1.5),
        });
    Some(row)
}

fn main() -> ExitCode {
    let options = Options::parse();
    LazyLock::force(&STARTED);
    let parts = options.parts();
    if let Some(part) = parts.iter().find(|part| part.needs_node())
        && let Err(why) = session::node_folder()
    {
        eprintln!("{part:?} compares with npm packages, but {why}");
        return ExitCode::from(2);
    }
    let mut run = Run {
        sizes: options.sizes(),
        rounds: options.rounds(),
        pause: options.pause(),
        trees: Trees::default(),
        repository: Err("no part of this run uses it".to_owned()),
        report: Report {
            date: versions::now(),
            options: options.text(),
            versions: versions::all(),
            ..Report::default()
        },
        quick: options.quick,
    };
    if parts.iter().any(|part| part.uses_repository()) {
        run.repository = Tree::of_this_repository();
    }
    println!("{}", run.report.options);
    for (name, version) in &run.report.versions {
        println!("{name}: {version}");
    }
    for part in parts {
        println!("\n{}", part.title());
        let began = Instant::now();
        let rows = part.run(&mut run);
        print!("{}", report::table(&rows));
        println!("({:.0} s)", began.elapsed().as_secs_f64());
        run.report.rows.extend(rows);
    }
    println!("\n{}", run.report.summary());
    for (part, why) in &run.report.skipped {
        println!("skipped: {part}: {why}");
    }
    println!("{:.0} s in all", STARTED.elapsed().as_secs_f64());
    options.write(&run.report);
    if run.report.with(Verdict::MustMissed).next().is_some() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
