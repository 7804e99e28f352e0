//! How a block looks: headings, bodies, budgets, tags.

use sightline_protocol::environment::{EnvironmentDetailsResult, Section, SectionId};

use crate::{escape, plural::plural, tokens};

/// The name of the block's tag.
const TAG: &str = "environment_details";

/// Something that is shown once and then done with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DeliveredItem {
    /// Unread output of a terminal.
    Terminal {
        /// The terminal.
        id: String,
        /// Bytes it had ever received.
        received: u64,
    },
    /// A recently modified file, by the tracker's path.
    File(String),
}

/// What is delivered, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Delivery {
    /// DeliveredItem when this line of the body is shown; always when `None`.
    pub(super) line: Option<usize>,
    /// What.
    pub(super) what: DeliveredItem,
}

/// A section as its own file draws it: all of it, before any budget.
#[derive(Clone, Debug, Default)]
pub(super) struct SectionDraft {
    /// The body, line by line; none when there is nothing to say.
    pub(super) lines: Vec<String>,
    /// Entries left out.
    pub(super) omitted: u32,
    /// Derived instead of sent by the client.
    pub(super) derived: bool,
    /// What is done with once it was shown.
    pub(super) delivered: Vec<Delivery>,
    /// `None` when the whole body is a state. Otherwise the body is news, and
    /// these are the lines that stay true after the news was told.
    pub(super) state_lines: Option<Vec<String>>,
}

impl SectionDraft {
    /// A body of fixed text.
    pub(super) fn text(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// One more entry is left out.
    pub(super) fn omit(&mut self) {
        self.omitted = self.omitted.saturating_add(1);
    }
}

/// A section ready to be shown.
pub(super) struct RenderedSection {
    /// The section; `None` when there is nothing to say.
    pub(super) section: Option<Section>,
    /// Lines of the body that survived the budget.
    pub(super) lines: usize,
}

/// Cuts a body to its budget and makes it safe.
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
        section: (!draft.lines.is_empty())
            .then(|| section(id, heading, &body, omitted, draft.derived)),
        lines,
    }
}

/// A section with this body.
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
        tokens: tokens::estimate(&with_heading(heading, &text)),
        text,
        omitted,
        derived,
    }
}

/// As many whole lines as fit, and a closing line for the rest; how many lines
/// that are, and how many entries were cut.
fn within_budget(lines: &[String], max: u64) -> (String, usize, u32) {
    let whole = lines.join("\n");
    if tokens::estimate(&whole) <= max {
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
    let kept = ends.partition_point(|&end| tokens::estimate(&whole[..end]) <= max);
    let cut = lines[kept..].iter().filter(|line| !line.is_empty()).count();
    let shown = kept.checked_sub(1).map_or("", |last| &whole[..ends[last]]);
    let noun = plural(cut, "line", "lines");
    let body = format!(
        "{}\n({cut} more {noun} left out: over the budget of this section)",
        shown.trim_end()
    );
    (body, kept, u32::try_from(cut).unwrap_or(u32::MAX))
}

/// Puts the sections of `result` into its text.
pub(super) fn assemble(result: &mut EnvironmentDetailsResult) {
    let sections: Vec<String> = result
        .sections
        .iter()
        .map(|section| with_heading(&section.heading, &section.text))
        .collect();
    let tag = TAG;
    result.text = format!("<{tag}>\n{}\n</{tag}>", sections.join("\n\n").trim());
    result.tokens = tokens::estimate(&result.text);
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
    fn a_budget_cuts_at_whole_lines_and_counts_the_rest() {
        // A line and its break are nine bytes.
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
