//! Plots of the checkpoint rows: cost by size of the tree, and by size of the change.

use std::{collections::BTreeSet, fs, path::Path};

use plotters::prelude::*;

use crate::report::{Report, Row};

/// Names and colors of lines, distinguishable with red-green color blindness.
const LINES: [(&str, RGBColor); 3] = [
    ("git add + commit", RGBColor(120, 120, 120)),
    ("sightline, scan", RGBColor(0, 114, 178)),
    ("sightline, watcher", RGBColor(213, 94, 0)),
];
/// Plots by size of the tree: file, heading, the work of the rows.
const OVER_SIZE: [(&str, &str, &str); 3] = [
    ("size-first", "First checkpoint", "first checkpoint"),
    (
        "size-nothing",
        "Checkpoint, nothing changed",
        "nothing changed",
    ),
    ("size-one", "Checkpoint, 1 file changed", "1 changed"),
];

/// A plot: its file and description.
pub(crate) struct Picture {
    pub(crate) file: String,
    pub(crate) heading: String,
}

type Points = Vec<(f64, f64)>;

/// Writes the plots that have enough rows to `folder`.
pub(crate) fn write(report: &Report, folder: &Path) -> Vec<Picture> {
    fs::create_dir_all(folder).unwrap();
    let rows: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| row.part == "checkpoints" && row.files.is_some())
        .collect();
    let mut pictures = Vec::new();
    let mut picture = |file: String, heading: String, axis: &str, lines: [Points; 3]| {
        if lines.iter().all(|points| points.len() < 2) {
            return;
        }
        let file = format!("{file}.svg");
        draw(&folder.join(&file), &heading, axis, &lines).unwrap();
        pictures.push(Picture { file, heading });
    };
    for (file, heading, work) in OVER_SIZE {
        let size = |row: &Row| row.files;
        let lines = lines(&rows, |row| row.work.split(',').next() == Some(work), size);
        picture(
            file.to_owned(),
            heading.to_owned(),
            "files in the tree",
            lines,
        );
    }
    let sizes: BTreeSet<usize> = rows.iter().filter_map(|row| row.files).collect();
    for size in sizes {
        let is_change = |row: &Row| row.files == Some(size) && row.work.contains(" changed, ");
        let lines = lines(&rows, is_change, |row| {
            row.changes.filter(|count| *count > 0)
        });
        let heading = format!("Checkpoint of a tree of {size} files");
        picture(format!("changes-{size}"), heading, "files changed", lines);
    }
    pictures
}

/// Returns the lines of the selected rows, by the value of `across`.
fn lines(
    rows: &[&Row],
    wanted: impl Fn(&Row) -> bool,
    across: impl Fn(&Row) -> Option<usize>,
) -> [Points; 3] {
    let mut lines: [Points; 3] = Default::default();
    for row in rows.iter().filter(|row| wanted(row)) {
        let Some(x) = across(row) else {
            continue;
        };
        let ours = usize::from(row.work.ends_with("watcher")) + 1;
        lines[ours].push((x as f64, row.ours.median()));
        // git was measured once for both.
        if let Some((_, theirs)) = row.peer.as_ref().filter(|_| ours == 1) {
            lines[0].push((x as f64, theirs.median()));
        }
    }
    for line in &mut lines {
        line.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    lines
}

/// Both axes are logarithmic, so factors are distances.
fn draw(
    file: &Path,
    heading: &str,
    axis: &str,
    lines: &[Points; 3],
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flatten();
    let range = |of: fn(&(f64, f64)) -> f64| {
        let low = points().map(of).fold(f64::INFINITY, f64::min);
        let high = points().map(of).fold(0.0, f64::max);
        // Whole powers of ten.
        10f64.powf(low.log10().floor())..10f64.powf(high.log10().ceil())
    };
    let root = SVGBackend::new(file, (720, 440)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(heading, ("sans-serif", 20))
        .margin(14)
        .margin_right(40)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            range(|point| point.0).log_scale(),
            range(|point| point.1).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc(axis)
        .y_desc("milliseconds, median")
        .x_labels(8)
        .y_labels(8)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .light_line_style(WHITE)
        .draw()?;
    for ((name, colour), points) in LINES.iter().zip(lines) {
        if points.is_empty() {
            continue;
        }
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style).point_size(4))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    root.present()?;
    Ok(())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library asks so")]
fn label(value: &f64) -> String {
    format!("{value}")
}
