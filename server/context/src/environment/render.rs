//! Layout of a block: headings, bodies, budgets, tags.

use sightline_protocol::{
    decision::HiddenFile,
    environment::{EnvironmentDetailsResult, Section, SectionId},
};

use sightline_base::{escape, plural::plural};
use sightline_conversation::tokens::estimate;

/// Tag around the block.
const TAG: &str = "environment_details";

/// An item that is shown only once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DeliveredItem {
    Terminal {
        /// Terminal id.
        id: String,
        /// Total bytes received from it.
        received: u64,
    },
    /// A recently modified file, by the tracker's path.
    File(String),
}

/// An item, and the line that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Delivery {
    /// Line of the body that shows the item. `None` if it counts as delivered in any case.
    pub(super) line: Option<usize>,
    /// The item.
    pub(super) what: DeliveredItem,
}

/// A complete section, before its budget is applied.
#[derive(Clone, Debug, Default)]
pub(super) struct SectionDraft {
    /// Lines of the body. Empty if there is nothing to show.
    pub(super) lines: Vec<String>,
    /// Number of entries left out.
    pub(super) omitted: u32,
    /// Whether it is derived instead of sent by the client.
    pub(super) derived: bool,
    /// Items that are shown only once.
    pub(super) delivered: Vec<Delivery>,
    /// The lines that remain true after the section was shown once. `None` if that is the whole
    /// body.
    pub(super) state_lines: Option<Vec<String>>,
    /// Files whose contents were left out.
    pub(super) hidden: Vec<HiddenFile>,
}

impl SectionDraft {
    /// Creates a section with a fixed text.
    pub(super) fn text(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Counts an entry that is left out.
    pub(super) fn omit(&mut self) {
        self.omitted = self.omitted.saturating_add(1);
    }
}

/// A section after its budget is applied.
pub(super) struct RenderedSection {
    /// `None` if there is nothing to show.
    pub(super) section: Option<Section>,
    /// Lines of the body within the budget.
    pub(super) lines: usize,
}

/// Truncates a section to its budget and escapes it.
pub(super) fn render_section(
    id: SectionId,
    heading: &str,
    draft: &SectionDraft,
    max_tokens: Option<u32>,
) -> RenderedSection {
    let (body, lines, cut) = match max_tokens {
        Some(max) => within_budget(&draft.lines, u64::from(max)),
        None => (draft.lines.join("\n"), draft.lines.len(), 0),
    };
    let omitted = draft.omitted.saturating_add(cut);
    RenderedSection {
        section: (!draft.lines.is_empty()).then(|| Section {
            max_tokens,
            ..section(id, heading, &body, omitted, draft.derived)
        }),
        lines,
    }
}

/// Creates a section with an escaped body.
pub(super) fn section(
    id: SectionId,
    heading: &str,
    body: &str,
    omitted: u32,
    derived: bool,
) -> Section {
    let body = body.trim_start_matches('\n').trim_end();
    let text = escape::printable(body).into_owned();
    Section {
        id,
        heading: heading.to_owned(),
        tokens: estimate(&with_heading(heading, &text)),
        text,
        max_tokens: None,
        omitted,
        derived,
    }
}

/// Returns the lines that fit, with a note on the rest; the number of these lines; the number of
/// entries cut.
fn within_budget(lines: &[String], max: u64) -> (String, usize, u32) {
    let whole = lines.join("\n");
    if estimate(&whole) <= max {
        return (whole, lines.len(), 0);
    }
    let ends: Vec<usize> = lines
        .iter()
        .scan(0, |end, line| {
            let this = *end + line.len();
            *end = this + 1;
            Some(this)
        })
        .collect();
    let kept = ends.partition_point(|&end| estimate(&whole[..end]) <= max);
    let cut = lines[kept..].iter().filter(|line| !line.is_empty()).count();
    let shown = kept.checked_sub(1).map_or("", |last| &whole[..ends[last]]);
    let more = plural(cut, "more line");
    let body = format!(
        "{}\n({more} left out: over the budget of this section)",
        shown.trim_end()
    );
    (body, kept, u32::try_from(cut).unwrap_or(u32::MAX))
}

/// Joins the sections of `result` into its text.
pub(super) fn assemble(result: &mut EnvironmentDetailsResult) {
    let sections: Vec<String> = result
        .sections
        .iter()
        .map(|section| with_heading(&section.heading, &section.text))
        .collect();
    let tag = TAG;
    result.text = format!("<{tag}>\n{}\n</{tag}>", sections.join("\n\n").trim());
    result.tokens = estimate(&result.text);
}

fn with_heading(heading: &str, body: &str) -> String {
    format!("# {heading}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("line {n:03}")).collect()
    }

    #[test]
    fn a_budget_cuts_whole_lines_and_counts_the_rest() {
        // A line and its line break take nine bytes.
        let (body, kept, cut) = within_budget(&lines(10), 9);
        assert_eq!(
            body,
            "line 000\nline 001\nline 002\nline 003\n\
             (6 more lines left out: over the budget of this section)"
        );
        assert_eq!((kept, cut), (4, 6));
        let (body, kept, cut) = within_budget(&lines(4), 9);
        assert_eq!((body.lines().count(), kept, cut), (4, 4, 0));
    }

    #[test]
    fn an_empty_budget_leaves_only_the_count() {
        let (body, kept, cut) = within_budget(&lines(1), 0);
        assert_eq!(
            body.trim(),
            "(1 more line left out: over the budget of this section)"
        );
        assert_eq!((kept, cut), (0, 1));
    }

    #[test]
    fn sections_are_separated_by_one_blank_line() {
        let mut result = EnvironmentDetailsResult {
            sections: vec![
                section(SectionId::OpenTabs, "Tabs", "\na\n\nb\n\n", 0, false),
                section(SectionId::Mode, "Mode", "ACT", 0, false),
            ],
            ..EnvironmentDetailsResult::default()
        };
        assemble(&mut result);
        assert_eq!(
            result.text,
            "<environment_details>\n# Tabs\na\n\nb\n\n# Mode\nACT\n</environment_details>"
        );
    }
}
