//! Hostile input: one function per entry point, which takes bytes and panics if an
//! invariant is violated.
//!
//! `tests/seeded.rs` runs these functions on stable, with the same input every time; the
//! targets in `fuzz/` run them guided by coverage. Cases they found are kept in
//! `cases/<target>/`.

#![allow(
    clippy::unwrap_used,
    reason = "a check that cannot go on fails, and says so by panicking"
)]

mod draw;

pub mod commands;
pub mod conversations;
pub mod frames;
pub mod logs;
pub mod params;
pub mod rules;
pub mod stored;

/// An entry point and its invariants.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the fuzz target and of its folder of cases.
    pub name: &'static str,
    /// Panics if an invariant is violated.
    pub run: fn(&[u8]),
    /// Number of inputs in a test run: a few seconds.
    pub cases: u32,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "frames",
        run: frames::run,
        cases: 40,
    },
    Target {
        name: "params",
        run: params::run,
        cases: 100,
    },
    Target {
        name: "rules",
        run: rules::run,
        cases: 100,
    },
    Target {
        name: "commands",
        run: commands::run,
        cases: 200,
    },
    Target {
        name: "conversations",
        run: conversations::run,
        cases: 3000,
    },
    Target {
        name: "logs",
        run: logs::run,
        cases: 60,
    },
    Target {
        name: "stored",
        run: stored::run,
        cases: 30,
    },
];
