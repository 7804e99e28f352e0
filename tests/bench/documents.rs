//! The figures in the documents: the rows that matter in `docs/benchmarks.md`, all of them in
//! `docs/benchmarks/details.md`, and every sample and the plots next to it.

use std::{fs, path::Path};

use crate::{
    plot,
    report::{Report, Row, figure},
};

const BEGIN: &str = "<!-- figures: written by `--docs` -->";
const END: &str = "<!-- end of figures -->";
/// Rows of `benchmarks.md`: description, work, and input.
const SUMMARY: [(&str, &str, &str); 10] = [
    ("First checkpoint", "first checkpoint", "100000 files"),
    (
        "Checkpoint in an editor, 1 file changed",
        "1 changed, watcher",
        "100000 files",
    ),
    (
        "Checkpoint without an editor, 1 file changed",
        "1 changed, command",
        "100000 files",
    ),
    ("Restore 100 files", "restore of 100", "100000 files"),
    (
        "Compare 100 files, with contents",
        "diff of 100 with contents",
        "100000 files",
    ),
    (
        "Environment block with a file list",
        "environmentDetails with files, warm",
        "100000 files",
    ),
    (
        "Check access of 100,000 paths, 50 patterns",
        "100000 paths x 50 patterns, checkAccess over stdio",
        "100000 empty files",
    ),
    (
        "Truncate a stored conversation",
        "truncate, stored, one message more",
        "2000 messages, 24 MB",
    ),
    (
        "Start the server",
        "start to answer of initialize",
        "a folder with one file",
    ),
    (
        "Memory, idle after the first checkpoint",
        "idle after the first checkpoint",
        "100000 files",
    ),
];

/// Writes the results to the documents below `docs`.
pub(crate) fn write(report: &Report, docs: &Path) {
    let folder = docs.join("benchmarks");
    let pictures = plot::write(report, &folder);
    let samples = serde_json::to_string(&report.json()).unwrap();
    fs::write(folder.join("results.json"), samples + "\n").unwrap();

    let mut details = report.markdown();
    details.push_str("\nEvery sample: [results.json](results.json).\n");
    for picture in pictures {
        let plot::Picture { file, heading } = picture;
        details.push_str(&format!("\n![{heading}]({file})\n"));
    }
    replace_figures(&folder.join("details.md"), &details);
    replace_figures(&docs.join("benchmarks.md"), &summary(report));
}

/// Returns the table of the rows that matter.
fn summary(report: &Report) -> String {
    let mut text = format!("Medians of {}, with `{}`:\n\n", report.date, report.options);
    text.push_str("| Work | On | Sightline | Compared with | Time of the other | Factor |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for (description, work, on) in SUMMARY {
        let is_row = |row: &&Row| row.work == work && row.on == on;
        let Some(row) = report.rows.iter().find(is_row) else {
            continue;
        };
        let unit = row.unit.short();
        let ours = row.ours.median();
        let (name, theirs, factor) = match &row.peer {
            Some((name, series)) => {
                let theirs = series.median();
                let factor = format!("{:.1}", theirs / ours);
                (name.as_str(), format!("{} {unit}", figure(theirs)), factor)
            }
            None => Default::default(),
        };
        let name = match name {
            "" => String::new(),
            name => format!("`{name}`"),
        };
        let ours = figure(ours);
        text.push_str(&format!(
            "| {description} | {on} | {ours} {unit} | {name} | {theirs} | {factor} |\n"
        ));
    }
    text
}

/// Replaces the section between the two marks.
fn replace_figures(page: &Path, section: &str) {
    let text = fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    fs::write(page, format!("{before}{BEGIN}\n\n{section}\n{END}{after}")).unwrap();
}
