//! The figures in `docs/benchmarks.md`: replaces the section between two marks, and
//! writes every sample and the plots to a folder beside it.

use std::{fs, path::Path};

use crate::{plot, report::Report};

const BEGIN: &str = "<!-- figures: written by `--docs` -->";
const END: &str = "<!-- end of figures -->";
/// Below `docs`.
const FOLDER: &str = "benchmarks";

/// Writes the results to the documents below `docs`.
pub(crate) fn write(report: &Report, docs: &Path) {
    let folder = docs.join(FOLDER);
    let pictures = plot::write(report, &folder);
    let samples = serde_json::to_string(&report.json()).unwrap();
    fs::write(folder.join("results.json"), samples + "\n").unwrap();

    let mut section = report.markdown();
    section.push_str(&format!(
        "\nEvery figure: [results.json]({FOLDER}/results.json).\n"
    ));
    for picture in pictures {
        let plot::Picture { file, heading } = picture;
        section.push_str(&format!("\n![{heading}]({FOLDER}/{file})\n"));
    }
    let page = docs.join("benchmarks.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    fs::write(page, format!("{before}{BEGIN}\n\n{section}\n{END}{after}")).unwrap();
}
