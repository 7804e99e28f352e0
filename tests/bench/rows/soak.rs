//! Soak test: an hour's work in minutes, checking for growth and loss.
//!
//! Three clients, each with its own server, use one folder (`clients`); every response is
//! checked. The command fails if a response is missing or wrong, a process is left, or
//! `git fsck` finds an error. A row compares a server's resources at the end with those
//! after half of the requests.

use crate::{
    Run, progress,
    report::{Goal, Row, Series, Unit},
    rows::clients,
};

const PART: &str = "soak";
/// Allowed growth of a server's memory from half to end, in addition to a tenth of it:
/// allocator caches fluctuate.
const SLACK_KILOBYTES: u64 = 8 * 1024;
/// Allowed growth of other resources.
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
