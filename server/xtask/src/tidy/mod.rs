//! Rules for the source text of the repository, checked by `cargo xtask tidy`.
//!
//! A rule either finds problems, or measures figures with a limit: lines, circles, arrows and the
//! like. Figures that were over their limit when the rule was added are in `tidy.toml`. They may
//! only fall: `cargo xtask tidy --update` lowers them. Raising one is an edit of that file, with
//! the reason in the commit.

mod imports;
mod manifests;
#[cfg(test)]
mod tests;
mod text;

use std::{collections::BTreeMap, error::Error, fs, io, path::Path, process::Command};

use toml_edit::{DocumentMut, Item, Table};

/// Path of the recorded figures.
const FIGURES: &str = "server/xtask/tidy.toml";

/// Text files of the repository by path, relative to it and with `/`.
type Files = BTreeMap<String, String>;

/// A measured value.
struct Figure {
    /// Table in `tidy.toml`.
    rule: &'static str,
    /// Key in the table: a crate, a file or a folder.
    subject: String,
    value: usize,
    /// Limit without a recorded figure.
    limit: usize,
    /// What is counted, and where.
    detail: String,
}

fn figure(
    rule: &'static str,
    subject: &str,
    value: usize,
    limit: usize,
    detail: impl Into<String>,
) -> Figure {
    Figure {
        rule,
        subject: subject.to_owned(),
        value,
        limit,
        detail: detail.into(),
    }
}

/// What the rules found.
struct Report {
    problems: Vec<String>,
    /// Recorded figures that can be lower.
    lower: Vec<String>,
    /// The recorded figures, lowered.
    figures: String,
}

/// Arguments of `tidy`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Lower recorded figures to today's.
    #[arg(long)]
    update: bool,
}

/// Checks the repository.
///
/// # Errors
/// If a rule is broken, or the repository cannot be read.
pub(crate) fn run(repository: &Path, options: &Options) -> Result<(), Box<dyn Error>> {
    let files = read(repository)?;
    let report = check(&files)?;
    for problem in &report.problems {
        println!("{problem}");
    }
    if options.update {
        fs::write(repository.join(FIGURES), report.figures)?;
    } else if !report.lower.is_empty() {
        println!(
            "can be lower (`cargo xtask tidy --update`): {}",
            report.lower.join(", ")
        );
    }
    match report.problems.len() {
        0 => Ok(()),
        count => Err(format!("tidy found {count} problems").into()),
    }
}

/// Reads the text files that git does not ignore, without recorded data.
fn read(repository: &Path) -> Result<Files, Box<dyn Error>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(repository)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let mut files = Files::new();
    for path in String::from_utf8(output.stdout)?.split_terminator('\0') {
        if path.starts_with("tests/fixtures/") || path.starts_with("tests/transcripts/") {
            continue;
        }
        match fs::read_to_string(repository.join(path)) {
            Ok(text) => {
                files.insert(path.to_owned(), text);
            }
            // A deleted file, a link to a folder, or no text.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::IsADirectory
                        | io::ErrorKind::InvalidData
                ) => {}
            Err(error) => return Err(format!("cannot read {path}: {error}").into()),
        }
    }
    Ok(files)
}

/// Applies all rules.
fn check(files: &Files) -> Result<Report, Box<dyn Error>> {
    let recorded = files.get(FIGURES).map(String::as_str).unwrap_or_default();
    let mut recorded: DocumentMut = recorded
        .parse()
        .map_err(|error| format!("{FIGURES}: {error}"))?;
    let mut problems = text::words(files);
    problems.extend(manifests::check(files, recorded.get("floors"))?);
    let mut figures = text::figures(files);
    figures.extend(imports::figures(files));
    let mut lower = Vec::new();
    for figure in &figures {
        let known = recorded
            .get(figure.rule)
            .and_then(|table| table.get(&figure.subject)?.as_integer());
        let limit = known.map_or(figure.limit, |known| known as usize);
        if figure.value > limit {
            problems.push(format!(
                "{}: {}: {}, at most {limit} {}",
                figure.rule, figure.subject, figure.value, figure.detail
            ));
        }
    }
    for (rule, table) in recorded.iter_mut().filter(|(rule, _)| rule != "floors") {
        let table = table.as_table_mut().ok_or("a figure without a table")?;
        lower.extend(lowered(&rule, table, &figures));
    }
    Ok(Report {
        problems,
        lower,
        figures: recorded.to_string(),
    })
}

/// Lowers the recorded figures of a rule, and removes those that the limit allows. Returns their
/// names.
fn lowered(rule: &str, table: &mut Table, figures: &[Figure]) -> Vec<String> {
    let mut lower = Vec::new();
    table.retain(|subject, recorded| {
        let found = figures
            .iter()
            .find(|figure| figure.rule == rule && figure.subject == subject);
        let is_needed = found.is_some_and(|figure| figure.value > figure.limit);
        let value = found.map_or(0, |figure| figure.value as i64);
        let is_lower = recorded.as_integer().is_none_or(|known| value < known);
        if is_lower || !is_needed {
            lower.push(format!("{rule} of {subject} {value}"));
        }
        if is_lower {
            *recorded = Item::Value(value.into());
        }
        is_needed
    });
    lower
}

/// Returns the crates in `server` with their source files.
fn crates(files: &Files) -> BTreeMap<&str, Vec<(&str, &str)>> {
    let mut crates = BTreeMap::<&str, Vec<_>>::new();
    for (path, text) in files {
        let Some((name, file)) = path
            .strip_prefix("server/")
            .and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if file.ends_with(".rs") {
            crates.entry(name).or_default().push((file, text.as_str()));
        }
    }
    crates
}

/// Returns whether a source file contains tests only.
fn is_test(file: &str) -> bool {
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    folders.split('/').any(|folder| folder == "tests")
        || matches!(name, "tests.rs" | "testing.rs")
        || name.ends_with("_tests.rs")
}

/// Returns the code lines of a file, with their numbers: no blank lines, comments and test modules.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    let mut after_attribute = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let starts = after_attribute && line.starts_with("mod ") && line.ends_with('{');
        after_attribute = line == "#[cfg(test)]";
        is_test |= starts;
        let is_code = !is_test && !line.trim().is_empty() && !line.trim().starts_with("//");
        is_test &= line != "}";
        is_code.then_some((at + 1, line))
    })
}
