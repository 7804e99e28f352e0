//! Settings of the block, with a rule for every section.

use std::collections::BTreeMap;

use sightline_protocol::{
    environment::SectionId,
    settings::{EnvironmentSettings, IgnoredFiles, OutsideFiles},
};

/// Whether a section is shown, and its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRule {
    /// Whether the section is shown.
    pub enabled: bool,
    /// Maximum size of the body, in estimated tokens.
    pub max_tokens: Option<u32>,
}

/// Default budget of the diagnostics, in estimated tokens.
const DIAGNOSTICS_TOKENS: u32 = 1_000;

impl SectionRule {
    /// Returns the rule of a section without settings.
    fn default_of(id: SectionId) -> Self {
        let is_diagnostics = id == SectionId::Diagnostics;
        Self {
            enabled: !is_diagnostics,
            max_tokens: is_diagnostics.then_some(DIAGNOSTICS_TOKENS),
        }
    }
}

/// Settings of the block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockSettings {
    /// Sections without the default rule.
    sections: BTreeMap<SectionId, SectionRule>,
    /// Treatment of denied entries in the file list; the caller that creates the list applies it.
    pub ignored_files: IgnoredFiles,
    /// Treatment of open files outside every root.
    pub outside_files: OutsideFiles,
}

impl BlockSettings {
    /// Resolves the client's settings.
    pub fn resolve(settings: Option<&EnvironmentSettings>) -> Self {
        let Some(settings) = settings else {
            return Self::default();
        };
        let rules = settings.sections.iter().flatten().map(|(id, section)| {
            let default = SectionRule::default_of(*id);
            let rule = SectionRule {
                enabled: section.enabled.unwrap_or(default.enabled),
                max_tokens: section.max_tokens.or(default.max_tokens),
            };
            (*id, rule)
        });
        Self {
            sections: rules.collect(),
            ignored_files: settings.ignored_files.unwrap_or_default(),
            outside_files: settings.outside_files.unwrap_or_default(),
        }
    }

    /// Returns the rule of a section.
    pub fn rule(&self, id: SectionId) -> SectionRule {
        let rule = self.sections.get(&id).copied();
        rule.unwrap_or_else(|| SectionRule::default_of(id))
    }
}
