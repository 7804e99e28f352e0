//! An hour's work in minutes, and whether anything grew or was lost:
//!
//! ```text
//! cargo bench -p sightline --bench soak [-- REQUESTS]
//! ```
//!
//! REQUESTS is 100000 unless given. Three clients, each with a server of its
//! own, work on one folder (`clients.rs`); every answer is looked at. It ends
//! with an error when an answer is missing or wrong, a process is left, `git
//! fsck` finds a fault, or a server holds more at the end than after half.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on says so and ends"
)]

mod clients;

use std::time::Instant;

/// What a server's memory may grow by between half and end, besides a tenth of
/// it: what allocators keep comes and goes.
const SLACK_KILOBYTES: u64 = 8 * 1024;

fn main() {
    let asked = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let requests: usize = asked.unwrap_or(100_000);
    let started = Instant::now();
    let report = clients::work(requests);
    println!(
        "soak: {} requests answered in {:.0} s\n",
        report.answers(),
        started.elapsed().as_secs_f64()
    );
    print!("{report}");
    for seen in &report.clients {
        let [_, half, end] = seen.held;
        let most = half.kilobytes + half.kilobytes / 10 + SLACK_KILOBYTES;
        assert!(end.kilobytes <= most, "memory grew: {:?}", seen.held);
        assert!(
            end.files <= half.files + 4,
            "open files grew: {:?}",
            seen.held
        );
        assert!(
            end.threads <= half.threads + 4,
            "threads grew: {:?}",
            seen.held
        );
    }
    println!("\nno growth, no answer lost, no process left, git fsck clean");
}
