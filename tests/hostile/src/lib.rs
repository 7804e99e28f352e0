//! Hostile input: for each door a function from bytes to nothing, which panics
//! when the door does not hold.
//!
//! The same functions are run by `tests/seeded.rs` (on stable, the same input on
//! every run) and by the targets in `fuzz/` (guided by coverage). What they find
//! is kept in `cases/<target>/`.

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

/// A door, and what is to hold whatever comes through it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of the fuzz target and of the folder of cases.
    pub name: &'static str,
    /// Panics when the door does not hold.
    pub run: fn(&[u8]),
    /// How many inputs a test tries: a few seconds' worth.
    pub cases: u32,
}

/// All of them.
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
