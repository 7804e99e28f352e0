//! `sightline usage`: the tokens of requests through the gateway, and what they cost.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use sightline_base::{plural::plural, storage::Storage};
use sightline_engine::error::Error;
use sightline_protocol::error::ErrorKind;

use super::super::{DONE, log::since, offline, print, print_json};

/// Prices of a model in dollars for a million tokens: name, input, cache read, output. Prices of
/// providers on their pages of 2025-11 for requests of common sizes. Writing to a cache of
/// Anthropic costs 1.25 times the input, or twice for an hour; the others take no extra.
const PRICES: [(&str, f64, f64, f64); 20] = [
    ("claude-3-5-haiku", 0.8, 0.08, 4.0),
    ("claude-3-7-sonnet", 3.0, 0.3, 15.0),
    ("claude-haiku-4-5", 1.0, 0.1, 5.0),
    ("claude-opus-4", 15.0, 1.5, 75.0),
    ("claude-opus-4-1", 15.0, 1.5, 75.0),
    ("claude-sonnet-4", 3.0, 0.3, 15.0),
    ("claude-sonnet-4-5", 3.0, 0.3, 15.0),
    ("gemini-2.5-flash", 0.3, 0.03, 2.5),
    ("gemini-2.5-flash-lite", 0.1, 0.01, 0.4),
    ("gemini-2.5-pro", 1.25, 0.125, 10.0),
    ("gpt-4.1", 2.0, 0.5, 8.0),
    ("gpt-4.1-mini", 0.4, 0.1, 1.6),
    ("gpt-4o", 2.5, 1.25, 10.0),
    ("gpt-4o-mini", 0.15, 0.075, 0.6),
    ("gpt-5", 1.25, 0.125, 10.0),
    ("gpt-5-codex", 1.25, 0.125, 10.0),
    ("gpt-5-mini", 0.25, 0.025, 2.0),
    ("gpt-5-nano", 0.05, 0.005, 0.4),
    ("o3", 2.0, 0.5, 8.0),
    ("o4-mini", 1.1, 0.275, 4.4),
];

#[derive(clap::Args)]
pub(crate) struct Usage {
    /// First day: a date such as 2026-11-30, or an age such as 7d.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<i64>,
    /// File of a gateway that was started with --usage.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Print a row for each day, agent, model and conversation as JSON.
    #[arg(long)]
    json: bool,
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    at: i64,
    task: String,
    #[serde(default)]
    agent: Option<String>,
    upstream: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    is_subscription: bool,
    usage: Tokens,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    cache_write_hour: u64,
    output: u64,
    reasoning: u64,
}

impl Tokens {
    fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cache_write_hour += other.cache_write_hour;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }

    /// Returns the price in dollars, if that of the model is known.
    #[allow(clippy::cast_precision_loss, reason = "less than a cent")]
    fn cost(&self, model: &str) -> Option<f64> {
        let (_, input, cached, output) =
            PRICES.iter().find(|(name, ..)| is_version(model, name))?;
        let short = self.cache_write.saturating_sub(self.cache_write_hour) as f64;
        let written = short * 1.25 + self.cache_write_hour as f64 * 2.0;
        let dollars = (self.input as f64 + written) * input
            + self.cache_read as f64 * cached
            + self.output as f64 * output;
        Some(dollars / 1e6)
    }
}

/// Returns whether a model is this one, possibly with a date.
fn is_version(model: &str, name: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or_default();
    model.strip_prefix(name).is_some_and(|rest| {
        let digits = rest.replace('-', "");
        rest.is_empty()
            || rest == "-latest"
            || digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Key {
    day: String,
    agent: String,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    key: Key,
    requests: u64,
    usage: Tokens,
    /// In dollars; absent if a price is not known, and for subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

pub(crate) fn run(arguments: &Usage) -> Result<i32, Error> {
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => file_in(&offline::storage_dir(arguments.storage.as_deref())?)?,
    };
    // By default, there is none without requests.
    if arguments.file.is_some() && !file.exists() {
        let why = format!("cannot read {}: no such file", file.display());
        return Err(Error::new(ErrorKind::NotFound, why));
    }
    let records = read_all(&file)?;
    let first = arguments
        .since
        .and_then(|at| Timestamp::from_millisecond(at).ok());
    let rows = rows(&records, first.map(day).as_deref(), arguments.json);
    if arguments.json {
        print_json(&rows)?;
    } else {
        print(&table(&rows))?;
    }
    Ok(DONE)
}

fn file_in(storage: &Path) -> Result<PathBuf, Error> {
    Ok(Storage::open(storage)?.gateway().join("usage.jsonl"))
}

/// Returns the usage of this day as a sentence; `None` without requests.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn today(storage: &Path) -> Result<Option<String>, Error> {
    let records = read_all(&file_in(storage)?)?;
    let rows = rows(&records, Some(&day(Timestamp::now())), false);
    let mut usage = Tokens::default();
    for row in &rows {
        usage.add(&row.usage);
    }
    let requests = rows.iter().map(|row| row.requests).sum::<u64>();
    let costs: Vec<f64> = rows.iter().filter_map(|row| row.cost).collect();
    let sum: f64 = costs.iter().sum();
    let cost = match costs.len() {
        0 => String::new(),
        priced if priced == rows.len() => format!(", {}", dollars(sum)),
        _ => format!(", {} for the models with a known price", dollars(sum)),
    };
    let requests = plural(requests, "request");
    let input = usage.input + usage.cache_read + usage.cache_write;
    Ok((!rows.is_empty()).then(|| {
        format!(
            "{requests} today, {input} tokens in ({} from caches) and {} out{cost}; see `sightline usage`",
            usage.cache_read, usage.output
        )
    }))
}

fn read_all(file: &Path) -> Result<Vec<Record>, Error> {
    let mut older = file.as_os_str().to_owned();
    older.push(".1");
    let mut records = read(Path::new(&older))?;
    records.extend(read(file)?);
    Ok(records)
}

fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).date().to_string()
}

fn read(path: &Path) -> Result<Vec<Record>, Error> {
    let cannot_read =
        |why: String| Error::storage(format!("cannot read {}: {why}", path.display()));
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot_read(error.to_string())),
    };
    // A gateway that was killed may have left a part of a line.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line)
                .map_err(|error| cannot_read(format!("line {}: {error}", at + 1)))
        })
        .collect()
}

/// Adds the records up, by conversation too if `by_task`.
fn rows(records: &[Record], since: Option<&str>, by_task: bool) -> Vec<Row> {
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    for record in records {
        let day = Timestamp::from_millisecond(record.at)
            .map(day)
            .unwrap_or_default();
        if since.is_some_and(|since| *day < *since) {
            continue;
        }
        let key = Key {
            day,
            agent: record.agent.as_ref().unwrap_or(&record.upstream).clone(),
            model: record.model.clone().unwrap_or_default(),
            task: by_task.then(|| record.task.clone()),
        };
        let cost = match record.is_subscription {
            true => None,
            false => record.usage.cost(&key.model),
        };
        let row = rows.entry(key.clone()).or_insert(Row {
            key,
            requests: 0,
            usage: Tokens::default(),
            cost: Some(0.0),
        });
        row.requests += 1;
        row.usage.add(&record.usage);
        row.cost = row.cost.zip(cost).map(|(sum, more)| sum + more);
    }
    rows.into_values().collect()
}

/// Returns a sum of money. A small one is not nothing.
fn dollars(cost: f64) -> String {
    match cost > 0.0 && cost < 0.1 {
        true => format!("${cost:.4}"),
        false => format!("${cost:.2}"),
    }
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no requests through the gateway\n".to_owned();
    }
    let heads = [
        "day",
        "agent",
        "model",
        "requests",
        "input",
        "cache read",
        "cache write",
        "output",
        "reasoning",
        "cost",
    ];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let usage = &row.usage;
        [
            row.key.day.clone(),
            row.key.agent.clone(),
            row.key.model.clone(),
            row.requests.to_string(),
            usage.input.to_string(),
            usage.cache_read.to_string(),
            usage.cache_write.to_string(),
            usage.output.to_string(),
            usage.reasoning.to_string(),
            row.cost.map_or("-".to_owned(), dollars),
        ]
    }));
    let mut text = String::new();
    for line in &lines {
        for (at, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[at].len()).max().unwrap_or(0);
            let cell = match at {
                0..=2 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
            text.push_str(&cell);
            text.push_str(if at < 2 { "  " } else { "" });
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(model: &str, is_subscription: bool, usage: Tokens) -> Record {
        Record {
            at: 1_795_600_000_000,
            task: "t".to_owned(),
            agent: None,
            upstream: "anthropic".to_owned(),
            model: Some(model.to_owned()),
            is_subscription,
            usage,
        }
    }

    #[test]
    fn only_known_prices_are_added() {
        let usage = Tokens {
            input: 1_000_000,
            cache_read: 1_000_000,
            cache_write: 2_000_000,
            cache_write_hour: 1_000_000,
            output: 1_000_000,
            reasoning: 500_000,
        };
        let cost = |models: &[(&str, bool)]| {
            let records = models
                .iter()
                .map(|(model, paid)| record(model, *paid, usage));
            let rows = rows(&records.collect::<Vec<_>>(), None, false);
            rows[0].cost.map(|cost| (cost * 100.0).round() / 100.0)
        };
        // 3 + 0.3 + 3.75 + 6 + 15
        assert_eq!(cost(&[("claude-sonnet-4-5", false)]), Some(28.05));
        assert_eq!(
            cost(&[("claude-sonnet-4-5-20250929", false); 2]),
            Some(56.1)
        );
        assert_eq!(cost(&[("anthropic/claude-sonnet-4-5", false)]), Some(28.05));
        for model in [
            "claude-sonnet-5-5",
            "claude-sonnet-4-6",
            "gpt-5.5",
            "gpt-5-pro",
            "",
        ] {
            assert_eq!(cost(&[(model, false)]), None, "{model}");
        }
        assert_eq!(cost(&[("claude-sonnet-4-5", true)]), None);
    }
}
