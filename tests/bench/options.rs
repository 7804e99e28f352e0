//! Command line options, and the sizes they select.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Parser, ValueEnum};

use crate::{
    Run, documents, plot,
    report::{Report, Row},
    rows::{
        access, checkpoints, conversation, environment, gateway, hook, instructions, listing,
        memory, round_trips, soak,
    },
};

/// Measure Sightline against comparable programs.
///
/// Paths are relative to the repository. The exit code is 1 if a required target was
/// missed.
#[derive(Parser)]
#[command(name = "cargo bench -p sightline --bench all --")]
pub(crate) struct Options {
    /// Also measure a tree of 100,000 files, which needs a gigabyte of temporary space
    /// and most of the time.
    #[arg(long, conflicts_with = "quick")]
    large: bool,
    /// Only check that everything works, with tiny inputs. The figures are meaningless
    /// and are not judged.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of rounds; use at least 5 for figures worth keeping.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Run only these parts.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Number of requests of the soak test.
    #[arg(long, value_name = "N")]
    requests: Option<usize>,
    /// Write all figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write plots to this folder.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Write the tables, figures and plots to `docs`.
    #[arg(long, conflicts_with = "quick")]
    docs: bool,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Checkpoints,
    Access,
    Listing,
    Environment,
    Hook,
    Gateway,
    Conversation,
    RoundTrips,
    Memory,
    Instructions,
    Soak,
}

impl Part {
    pub(crate) fn title(self) -> String {
        format!("{self:?}").to_uppercase()
    }

    pub(crate) fn run(self, run: &mut Run) -> Vec<Row> {
        match self {
            Self::Checkpoints => checkpoints::run(run),
            Self::Access => access::run(run),
            Self::Listing => listing::run(run),
            Self::Environment => environment::run(run),
            Self::Hook => hook::run(run),
            Self::Gateway => gateway::run(run),
            Self::Conversation => conversation::run(run),
            Self::RoundTrips => round_trips::run(run),
            Self::Memory => memory::run(run),
            Self::Instructions => instructions::run(run),
            Self::Soak => soak::run(run),
        }
    }

    pub(crate) fn needs_node(self) -> bool {
        matches!(self, Self::Access | Self::Conversation | Self::RoundTrips)
    }

    pub(crate) fn uses_repository(self) -> bool {
        matches!(self, Self::Checkpoints | Self::Listing | Self::Environment)
    }
}

/// Input sizes.
pub(crate) struct Sizes {
    /// Files of the trees for all measurements.
    pub(crate) trees: Vec<usize>,
    /// Files of the trees for the curve by size.
    pub(crate) curve: Vec<usize>,
    /// Paths checked at once.
    pub(crate) paths: usize,
    /// Messages of the conversation.
    pub(crate) messages: usize,
    /// Requests of the soak test.
    pub(crate) requests: usize,
}

impl Options {
    pub(crate) fn parts(&self) -> Vec<Part> {
        let all = Part::value_variants().iter().copied();
        all.filter(|part| self.only.is_empty() || self.only.contains(part))
            .collect()
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let (trees, curve) = match (self.quick, self.large) {
            (true, _) => (vec![300], vec![100, 300]),
            (_, false) => (vec![10_000], vec![1_000, 3_000, 10_000]),
            (_, true) => (
                vec![10_000, 100_000],
                vec![1_000, 3_000, 10_000, 30_000, 100_000],
            ),
        };
        let requests = match (self.quick, self.large) {
            (true, _) => 2_000,
            (_, false) => 20_000,
            (_, true) => 100_000,
        };
        Sizes {
            trees,
            curve,
            paths: if self.quick { 2_000 } else { 100_000 },
            messages: if self.quick { 100 } else { 2_000 },
            requests: self.requests.unwrap_or(requests),
        }
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 2 } else { 5 }).max(1)
    }

    pub(crate) fn pause(&self) -> Duration {
        Duration::from_millis(if self.quick { 50 } else { 3_000 })
    }

    /// Returns the options as a command line.
    pub(crate) fn text(&self) -> String {
        let mut text = "cargo bench -p sightline --bench all --".to_owned();
        for (name, given) in [("large", self.large), ("quick", self.quick)] {
            if given {
                text.push_str(&format!(" --{name}"));
            }
        }
        text.push_str(&format!(" --rounds {}", self.rounds()));
        for part in &self.only {
            let name = part.to_possible_value().unwrap();
            text.push_str(&format!(" --only {}", name.get_name()));
        }
        text
    }

    /// Writes the requested output.
    pub(crate) fn write(&self, report: &Report) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if let Some(file) = &self.json {
            let text = serde_json::to_string_pretty(&report.json()).unwrap();
            fs::write(here.join(file), text + "\n").unwrap();
        }
        if let Some(folder) = &self.svg {
            plot::write(report, &here.join(folder));
        }
        if self.docs {
            documents::write(report, &here.join("docs"));
        }
    }
}
