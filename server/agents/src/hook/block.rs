//! The text that a prompt event adds: the sections the model does not know yet, within a budget.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde::{Deserialize, Serialize};
use sightline_protocol::environment::{Mode, NO_OPEN_TABS, NO_VISIBLE_FILES, Section, SectionId};

use super::Markup;

/// Maximum length of the block, in characters. Claude Code and Codex cut texts of more than
/// 10,000 characters.
const MAX_CHARS: usize = 8000;
/// Maximum number of open tabs in a block that is too long.
const MAX_TABS: usize = 50;
/// Sections without which the block may have to do, least important first.
const OPTIONAL: &[SectionId] = &[
    SectionId::Files,
    SectionId::WorkspaceConfiguration,
    SectionId::CliTools,
    SectionId::InactiveTerminals,
    SectionId::RunningTerminals,
];

/// Hashes of the sections that a session has received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSections(BTreeMap<SectionId, u64>);

impl KnownSections {
    /// Returns the mode that the session was told last.
    pub fn mode(&self) -> Option<Mode> {
        let known = self.0.get(&SectionId::Mode)?;
        let modes = [(ACT, Mode::Act), (PLAN, Mode::Plan)];
        let mut told = modes.into_iter().filter(|(text, _)| hash(text) == *known);
        told.next().map(|(_, mode)| mode)
    }
}

/// What restores mean for a conversation, which stays as it is.
const RESTORED: &str =
    "Earlier changes and contents that you remember may not hold any more; read them again.";
const ACT: &str = "ACT MODE";
const PLAN: &str = "PLAN MODE\nPlan only: change nothing until the user ends plan mode.";

/// Returns the sections for an agent: with its own mode instead of a default one, and with
/// `restores`, one line for each restore.
pub fn told_sections(
    mut sections: Vec<Section>,
    mode: Option<Mode>,
    restores: &[String],
) -> Vec<Section> {
    let is_enabled = sections.iter().any(|section| section.id == SectionId::Mode);
    sections.retain(|section| section.id != SectionId::Mode);
    if let Some(mode) = mode.filter(|_| is_enabled) {
        let text = match mode {
            Mode::Act => ACT,
            Mode::Plan => PLAN,
        };
        sections.push(section(SectionId::Mode, "Current Mode", text));
    }
    if !restores.is_empty() {
        let restored = format!("{} {RESTORED}", restores.join("\n"));
        let mut known = sections.iter_mut();
        match known.find(|section| section.id == SectionId::RecentlyModified) {
            Some(section) => section.text = format!("{restored}\n{}", section.text),
            None => sections.push(section(
                SectionId::RecentlyModified,
                "Recently Modified Files",
                &restored,
            )),
        }
    }
    sections
}

fn section(id: SectionId, heading: &str, text: &str) -> Section {
    Section {
        id,
        heading: heading.to_owned(),
        text: text.to_owned(),
        tokens: 0,
        max_tokens: None,
        omitted: 0,
        derived: false,
    }
}

/// Returns whether a section says nothing to a session that knows none of its kind.
fn is_empty(section: &Section) -> bool {
    match section.id {
        SectionId::VisibleFiles => section.text == NO_VISIBLE_FILES,
        SectionId::OpenTabs => section.text == NO_OPEN_TABS,
        SectionId::Mode => section.text == ACT,
        _ => false,
    }
}

/// Returns the block with the sections that changed since `known`, which is updated. `None` if
/// nothing changed except the time.
pub fn context_block(
    sections: &[Section],
    known: &mut KnownSections,
    markup: Markup,
) -> Option<String> {
    let says_something =
        |section: &&Section| known.0.contains_key(&section.id) || !is_empty(section);
    // A modified file is listed once, until it is modified again.
    let now: BTreeMap<SectionId, u64> = sections
        .iter()
        .filter(says_something)
        .filter(|section| section.id != SectionId::RecentlyModified)
        .map(|section| (section.id, hash(&section.text)))
        .collect();
    let is_new = |section: &&Section| match section.id {
        SectionId::CurrentTime => false,
        id => known.0.get(&id) != now.get(&id) || id == SectionId::RecentlyModified,
    };
    let mut changed: Vec<Section> = sections.iter().filter(is_new).cloned().collect();
    let removed = known.0.keys().filter(|id| !now.contains_key(id));
    changed.extend(removed.filter_map(|id| empty_section(*id)));
    let knew_mode = known.0.contains_key(&SectionId::Mode);
    known.0 = now;
    if changed.is_empty() {
        return None;
    }
    // These go with a block, and are no reason for one.
    let others = sections.iter().filter(|section| match section.id {
        SectionId::CurrentTime => true,
        SectionId::Mode => !knew_mode && is_empty(section),
        _ => false,
    });
    for section in others {
        known.0.insert(section.id, hash(&section.text));
        changed.push(section.clone());
    }
    changed.sort_by_key(|section| section.id);
    Some(within_budget(changed, markup))
}

/// Returns the sections that say something to an agent whose mode is not known.
pub fn text_without_mode(sections: Vec<Section>, has_editor: bool) -> String {
    let mut sections = told_sections(sections, None, &[]);
    sections.retain(|section| has_editor || !is_empty(section));
    if sections.is_empty() {
        return String::new();
    }
    render(&sections, &[], Markup::Tagged)
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Returns a section that tells the model that its former content no longer holds.
fn empty_section(id: SectionId) -> Option<Section> {
    let heading = match id {
        SectionId::RunningTerminals => "Actively Running Terminals",
        SectionId::UnsavedFiles => "Unsaved Files",
        SectionId::Diagnostics => "Diagnostics",
        // Others are never empty, or were news.
        _ => return None,
    };
    Some(section(id, heading, "(none)"))
}

fn within_budget(mut sections: Vec<Section>, markup: Markup) -> String {
    let mut left_out = Vec::new();
    for id in OPTIONAL {
        if render(&sections, &left_out, markup).chars().count() <= MAX_CHARS {
            break;
        }
        sections.retain(|section| {
            let keep = section.id != *id;
            if !keep {
                let lines = section.text.lines().count();
                left_out.push(format!("{} ({lines} lines)", section.heading));
            }
            keep
        });
    }
    if render(&sections, &left_out, markup).chars().count() > MAX_CHARS {
        for section in &mut sections {
            if section.id == SectionId::OpenTabs {
                keep_lines(section, MAX_TABS);
            }
        }
    }
    // Long names: shortens the longest section until the block fits.
    while render(&sections, &left_out, markup).chars().count() > MAX_CHARS {
        let Some(longest) = sections.iter_mut().max_by_key(|section| section.text.len()) else {
            break;
        };
        match longest.text.lines().count() {
            0 | 1 => longest.text = "(too long)".to_owned(),
            lines => keep_lines(longest, lines / 2),
        }
    }
    render(&sections, &left_out, markup)
}

/// Keeps the first lines of a section, and says how many are left out.
fn keep_lines(section: &mut Section, max: usize) {
    let lines = section.text.lines().count();
    if lines > max {
        let kept: Vec<&str> = section.text.lines().take(max).collect();
        section.text = format!("{}\n({} more)", kept.join("\n"), lines - max);
    }
}

fn render(sections: &[Section], left_out: &[String], markup: Markup) -> String {
    let mut parts: Vec<String> = sections
        .iter()
        .map(|section| format!("# {}\n{}", section.heading, section.text))
        .collect();
    if !left_out.is_empty() {
        parts.push(format!("# Left Out\n{}", left_out.join("\n")));
    }
    marked_up(parts.join("\n\n"), markup)
}

/// Returns a text as it is written for an agent.
pub(super) fn marked_up(body: String, markup: Markup) -> String {
    match markup {
        Markup::Tagged => format!("<environment_details>\n{body}\n</environment_details>"),
        Markup::Headings => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(id: SectionId, text: &str) -> Section {
        Section {
            id,
            heading: format!("{id:?}"),
            text: text.to_owned(),
            tokens: 0,
            max_tokens: None,
            omitted: 0,
            derived: false,
        }
    }

    #[test]
    fn only_changes_are_repeated() {
        let mut known = KnownSections::default();
        let mut sections = vec![
            section(SectionId::OpenTabs, "a"),
            section(SectionId::CurrentTime, "1"),
            section(SectionId::UnsavedFiles, "a"),
        ];
        let first = context_block(&sections, &mut known, Markup::Tagged);
        assert_eq!(
            first.as_deref(),
            Some(
                "<environment_details>\n# OpenTabs\na\n\n# CurrentTime\n1\n\n# UnsavedFiles\na\n\
                 </environment_details>"
            )
        );
        sections[1].text = "2".to_owned();
        assert_eq!(context_block(&sections, &mut known, Markup::Headings), None);
        sections[0].text = "b".to_owned();
        sections.pop();
        assert_eq!(
            context_block(&sections, &mut known, Markup::Headings).as_deref(),
            Some("# OpenTabs\nb\n\n# CurrentTime\n2\n\n# Unsaved Files\n(none)")
        );
        sections.push(section(SectionId::Diagnostics, "a"));
        context_block(&sections, &mut known, Markup::Headings);
        sections.pop();
        assert_eq!(
            context_block(&sections, &mut known, Markup::Headings).as_deref(),
            Some("# CurrentTime\n2\n\n# Diagnostics\n(none)")
        );
        // What says nothing is no reason for a block.
        let nothing = [section(SectionId::OpenTabs, NO_OPEN_TABS)];
        let mut known = KnownSections::default();
        assert_eq!(context_block(&nothing, &mut known, Markup::Headings), None);
    }

    #[test]
    fn a_long_block_is_cut_to_the_budget() {
        let lines = |text: &str, count| vec![text; count].join("\n");
        let sections = [
            section(SectionId::VisibleFiles, &lines("visible", 2)),
            section(SectionId::OpenTabs, &lines(&"t".repeat(100), 70)),
            section(SectionId::RunningTerminals, &lines("output", 1000)),
        ];
        let text = context_block(&sections, &mut KnownSections::default(), Markup::Tagged);
        let text = text.unwrap();
        assert!(text.chars().count() <= MAX_CHARS, "{}", text.len());
        assert!(text.contains("RunningTerminals (1000 lines)"), "{text}");
        assert_eq!(text.matches(&"t".repeat(100)).count(), 70);
        let sections = [section(SectionId::OpenTabs, &lines(&"t".repeat(400), 70))];
        let text = context_block(&sections, &mut KnownSections::default(), Markup::Tagged);
        let text = text.unwrap();
        assert!(text.chars().count() <= MAX_CHARS, "{}", text.len());
        let one = [section(SectionId::OpenTabs, &"t".repeat(20_000))];
        let text = context_block(&one, &mut KnownSections::default(), Markup::Tagged);
        assert!(text.unwrap().contains("(too long)"));
    }
}
