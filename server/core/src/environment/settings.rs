//! The settings of the block, total: every section has a rule.

use std::collections::BTreeMap;

use sightline_protocol::{
    environment::SectionId,
    settings::{EnvironmentSettings, IgnoredFiles, OutsideFiles},
};

/// Whether a section is shown, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRule {
    /// False leaves it out.
    pub enabled: bool,
    /// Its body is cut at about this many tokens.
    pub max_tokens: Option<u32>,
}

impl Default for SectionRule {
    fn default() -> Self {
        Self {
            enabled: true,
            max_tokens: None,
        }
    }
}

/// The settings of the block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockSettings {
    /// Sections that differ from the default rule.
    sections: BTreeMap<SectionId, SectionRule>,
    /// Denied entries of the file list; for whoever makes the list.
    pub ignored_files: IgnoredFiles,
    /// Open files outside every root.
    pub outside_files: OutsideFiles,
}

impl BlockSettings {
    /// What the client's settings come to.
    pub fn resolve(settings: Option<&EnvironmentSettings>) -> Self {
        let Some(settings) = settings else {
            return Self::default();
        };
        let rules = settings.sections.iter().flatten().map(|(id, section)| {
            let rule = SectionRule {
                enabled: section.enabled.unwrap_or(true),
                max_tokens: section.max_tokens,
            };
            (*id, rule)
        });
        Self {
            sections: rules.collect(),
            ignored_files: settings.ignored_files.unwrap_or_default(),
            outside_files: settings.outside_files.unwrap_or_default(),
        }
    }

    /// The rule of a section.
    pub fn rule(&self, id: SectionId) -> SectionRule {
        self.sections.get(&id).copied().unwrap_or_default()
    }
}
