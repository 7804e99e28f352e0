//! An hour's work in minutes, and whether anything grew or was lost.
//!
//! Three clients, each with a server of its own, work on one folder
//! (`clients`); every answer is looked at. The command fails when an answer is
//! missing or wrong, a process is left or `git fsck` finds a fault; and a row says
//! whether a server holds more at the end than after half.

use crate::{
    Run, clients, progress,
    report::{Goal, Row, Series, Unit},
};

const PART: &str = "soak";
/// What a server's memory may grow by between half and end, besides a tenth of
/// it: what allocators keep comes and goes.
const SLACK_KILOBYTES: u64 = 8 * 1024;
/// What else it may hold more of.
const SLACK: u64 = 4;

pub(crate) fn run(run: &mut Run) -> Vec<Row> {
    let requests = run.sizes.requests;
    progress(&format!("{PART}: {requests} requests"));
    let report = clients::work(requests);
    for line in report.to_string().lines() {
        progress(&format!("{PART}: {line}"));
    }
    let megabytes = |at: usize| {
        let held = report.clients.iter().map(|seen| seen.held[at].kilobytes);
        Series(
            held.map(|kilobytes| kilobytes as f64 * 1024.0 / 1e6)
                .collect(),
        )
    };
    let steady = report.clients.iter().all(|seen| {
        let [_, half, end] = seen.held;
        end.kilobytes <= half.kilobytes + half.kilobytes / 10 + SLACK_KILOBYTES
            && end.files <= half.files + SLACK
            && end.threads <= half.threads + SLACK
    });
    let on = format!(
        "{} requests, {} servers",
        report.answers(),
        report.clients.len()
    );
    vec![
        Row::new(
            PART,
            "memory, open files and threads do not grow",
            &megabytes(2),
        )
        .on(on)
        .unit(Unit::Megabytes)
        .against("the same after half", &megabytes(1))
        .goal(Goal::Held(steady).only_if(run.judged())),
    ]
}
