//! Results and their verdicts: series of figures and rows, as a table and as JSON with
//! every figure.

use std::fmt;

use serde_json::{Value, json};

use crate::tree::Tree;

/// Version of the JSON format.
const SCHEMA: u32 = 1;
/// Columns of the table.
const COLUMNS: usize = 8;

/// The figures of one kind of work, in the order of measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(pub(crate) Vec<f64>);

impl Series {
    /// Returns the median; the mean of the two middle figures if their number is even.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[half],
            _ => f64::midpoint(sorted[half - 1], sorted[half]),
        }
    }

    fn low(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn high(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.median(), self.low(), self.high()].map(figure);
        write!(f, "{median} ({low}..{high})")
    }
}

/// Formats a figure with significant digits only.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Unit of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Megabytes,
    Instructions,
}

impl Unit {
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
            Self::Instructions => "instructions",
        }
    }
}

/// Target of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// None; the row is informative.
    None,
    /// Our median divided by the peer's.
    Ratio { must: Option<f64>, aim: Option<f64> },
    /// Our median itself.
    Value { must: f64, aim: f64 },
    /// A check that passed or failed.
    Held(bool),
}

impl Goal {
    /// A required ratio and a desired one.
    pub(crate) fn ratio(must: f64, aim: f64) -> Self {
        Self::Ratio {
            must: Some(must),
            aim: Some(aim),
        }
    }

    /// A required ratio.
    pub(crate) fn must(must: f64) -> Self {
        Self::Ratio {
            must: Some(must),
            aim: None,
        }
    }

    /// Returns this target if `judged`, else none.
    pub(crate) fn only_if(self, judged: bool) -> Self {
        if judged { self } else { Self::None }
    }

    fn limits(self) -> (Option<f64>, Option<f64>) {
        match self {
            Self::None | Self::Held(_) => (None, None),
            Self::Ratio { must, aim } => (must, aim),
            Self::Value { must, aim } => (Some(must), Some(aim)),
        }
    }
}

/// Result of comparing a row with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    None,
    AimReached,
    AimMissed,
    MustReached,
    MustMissed,
}

impl Verdict {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::AimReached => "aim reached",
            Self::AimMissed => "aim missed",
            Self::MustReached => "must reached",
            Self::MustMissed => "must MISSED",
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The part of the benchmarks.
    pub(crate) part: &'static str,
    /// The work that was measured.
    pub(crate) work: String,
    /// Its input: a tree, a conversation.
    pub(crate) on: String,
    /// Files of a generated tree.
    pub(crate) files: Option<usize>,
    /// Number of changed files, if any.
    pub(crate) changes: Option<usize>,
    pub(crate) unit: Unit,
    pub(crate) ours: Series,
    /// The compared program.
    pub(crate) peer: Option<(String, Series)>,
    pub(crate) goal: Goal,
    /// Returns whether the input has targets.
    pub(crate) judged: bool,
}

impl Row {
    pub(crate) fn new(part: &'static str, work: impl Into<String>, ours: &Series) -> Self {
        Self {
            part,
            work: work.into(),
            on: String::new(),
            files: None,
            changes: None,
            unit: Unit::Milliseconds,
            ours: ours.clone(),
            peer: None,
            goal: Goal::None,
            judged: false,
        }
    }

    /// Sets the work tree.
    pub(crate) fn of(mut self, tree: &Tree) -> Self {
        self.on.clone_from(&tree.name);
        self.files = tree.generated.then_some(tree.count);
        self.judged = tree.judged;
        self
    }

    pub(crate) fn on(mut self, what: impl Into<String>) -> Self {
        self.on = what.into();
        self
    }

    pub(crate) fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    pub(crate) fn against(mut self, name: impl Into<String>, series: &Series) -> Self {
        self.peer = Some((name.into(), series.clone()));
        self
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = goal;
        self
    }

    /// Our median divided by the peer's.
    fn ratio(&self) -> Option<f64> {
        let (_, theirs) = self.peer.as_ref()?;
        Some(self.ours.median() / theirs.median())
    }

    /// Ratios of the single rounds, if both sides took part in each.
    fn ratios(&self) -> Option<Series> {
        let (_, theirs) = self.peer.as_ref()?;
        if theirs.0.len() != self.ours.0.len() {
            return None;
        }
        let pairs = self.ours.0.iter().zip(&theirs.0);
        Some(Series(pairs.map(|(ours, theirs)| ours / theirs).collect()))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let value = match self.goal {
            Goal::None => return Verdict::None,
            Goal::Held(true) => return Verdict::MustReached,
            Goal::Held(false) => return Verdict::MustMissed,
            Goal::Ratio { .. } => self.ratio().unwrap_or(f64::NAN),
            Goal::Value { .. } => self.ours.median(),
        };
        match self.goal.limits() {
            (_, Some(aim)) if value <= aim => Verdict::AimReached,
            (Some(must), _) if value <= must => Verdict::MustReached,
            (Some(_), _) => Verdict::MustMissed,
            (None, _) => Verdict::AimMissed,
        }
    }

    fn limits_text(&self) -> String {
        let unit = match self.goal {
            Goal::Value { .. } => format!(" {}", self.unit.short()),
            _ => String::new(),
        };
        match self.goal.limits() {
            (Some(must), Some(aim)) => format!("{must}{unit} / {aim}{unit}"),
            (Some(must), None) => format!("{must}{unit} / –"),
            (None, Some(aim)) => format!("– / {aim}{unit}"),
            (None, None) => String::new(),
        }
    }

    /// The cells of the table.
    fn cells(&self) -> [String; COLUMNS] {
        let unit = self.unit.short();
        let (peer, theirs) = match &self.peer {
            Some((name, series)) => (name.clone(), series.to_string()),
            None => Default::default(),
        };
        let ratio = match (self.ratio(), self.ratios()) {
            (Some(ratio), Some(all)) => format!(
                "{} ({}..{})",
                figure(ratio),
                figure(all.low()),
                figure(all.high())
            ),
            (Some(ratio), None) => figure(ratio),
            (None, _) => String::new(),
        };
        let limits = self.limits_text();
        let verdict = match (self.verdict(), limits.as_str()) {
            (verdict, "") => verdict.text().to_owned(),
            (verdict, limits) => format!("{} ({limits})", verdict.text()),
        };
        [
            self.work.clone(),
            self.on.clone(),
            self.ours.0.len().to_string(),
            format!("{} {unit}", self.ours),
            peer,
            theirs,
            ratio,
            verdict,
        ]
    }

    fn json(&self) -> Value {
        let series = |name: &str, series: &Series| {
            json!({ "name": name, "median": series.median(), "min": series.low(),
                    "max": series.high(), "samples": series.0 })
        };
        let (must, aim) = self.goal.limits();
        json!({
            "part": self.part,
            "work": self.work,
            "on": self.on,
            "files": self.files,
            "changes": self.changes,
            "unit": self.unit.short(),
            "ours": series("sightline", &self.ours),
            "peer": self.peer.as_ref().map(|(name, theirs)| series(name, theirs)),
            "ratio": self.ratio(),
            "goal": match self.goal {
                Goal::None => None,
                Goal::Ratio { .. } => Some("ratio"),
                Goal::Value { .. } => Some("value"),
                Goal::Held(_) => Some("held"),
            },
            "must": must,
            "aim": aim,
            "verdict": self.verdict().text(),
        })
    }
}

/// All results of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Start time, to the second.
    pub(crate) date: String,
    /// Options of the run.
    pub(crate) options: String,
    /// Compared programs and the machine: names and versions.
    pub(crate) versions: Vec<(String, String)>,
    pub(crate) rows: Vec<Row>,
    /// Skipped parts and the reasons.
    pub(crate) skipped: Vec<(String, String)>,
}

/// Column headings.
const HEADS: [&str; COLUMNS] = [
    "work",
    "on",
    "samples",
    "ours: median (min..max)",
    "against",
    "theirs: median (min..max)",
    "ratio (of single rounds)",
    "verdict (must / aim)",
];

/// Formats rows as a table with columns of equal width.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let widths = lines.iter().map(|cells| cells[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut text = String::new();
    for cells in &lines {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

impl Report {
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        self.skipped.push((what.to_owned(), why.to_owned()));
    }

    /// Returns the rows with this verdict.
    pub(crate) fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.verdict() == verdict)
    }

    /// Returns the number of rows by verdict, and the rows that missed.
    pub(crate) fn summary(&self) -> String {
        let all = [
            Verdict::AimReached,
            Verdict::MustReached,
            Verdict::AimMissed,
            Verdict::MustMissed,
        ];
        let counts = all.map(|verdict| {
            let count = self.with(verdict).count();
            format!("{}: {count}", verdict.text())
        });
        let mut text = counts.join(", ");
        for row in self.with(Verdict::MustMissed) {
            text.push_str(&format!("\nmust MISSED: {}, {}", row.work, row.on));
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let pairs = |pairs: &[(String, String)]| -> Value {
            pairs
                .iter()
                .map(|(name, text)| (name.clone(), json!(text)))
                .collect()
        };
        json!({
            "schema": SCHEMA,
            "date": self.date,
            "options": self.options,
            "versions": pairs(&self.versions),
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "skipped": pairs(&self.skipped),
        })
    }

    /// Returns date, versions and the table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("Taken {} with `{}`:\n\n", self.date, self.options);
        for (name, version) in &self.versions {
            text.push_str(&format!("- {name}: {version}\n"));
        }
        let mut part = "";
        for row in &self.rows {
            if row.part != part {
                part = row.part;
                text.push_str(&format!("\n**{part}**\n\n| {} |\n", HEADS.join(" | ")));
                text.push_str(&format!("|{}\n", "---|".repeat(HEADS.len())));
            }
            let cells = row.cells().map(|cell| cell.replace('|', "\\|"));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text.push_str(&format!("\n{}.\n", self.summary().replace('\n', ";\n")));
        for (part, why) in &self.skipped {
            text.push_str(&format!("\nSkipped: {part}, {why}.\n"));
        }
        text
    }
}
