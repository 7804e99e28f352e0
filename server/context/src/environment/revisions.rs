//! Reduces a block to the sections that a client does not know yet, for `sinceRevision`.
//!
//! One counter numbers both changes of the editor state and answered blocks. A client that holds
//! the block of revision 7 and is notified of revision 8 therefore knows that its block is stale.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};

use sightline_protocol::environment::{EnvironmentDetailsResult, Section, SectionId};

use super::{
    Block,
    render::{self, Delivery, SectionDraft},
};

/// Maximum answers remembered. A client with an older revision gets the whole block.
const MAX_ANSWERS: usize = 64;

/// Body of a section that became empty since the client's revision.
const EMPTY_BODY: &str = "(none)";

/// Fingerprint of a requested section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SectionFingerprint {
    id: SectionId,
    heading: String,
    /// Hash of the lasting part; `None` if the section has none.
    state: Option<u64>,
    /// Hash of the part shown once; `None` if there is none or it was consumed.
    news: Option<u64>,
}

impl SectionFingerprint {
    pub(super) fn new(
        id: SectionId,
        heading: String,
        draft: &SectionDraft,
        section: Option<&Section>,
    ) -> Self {
        let body = section.map(|section| &section.text);
        let (state, news) = match (id, &draft.state_lines) {
            // The time always differs, so it does not count as a change.
            (SectionId::CurrentTime, _) => (None, None),
            (_, None) => (body.map(hash), None),
            (_, Some(lines)) => {
                let state = (!lines.is_empty()).then(|| hash(lines));
                // The counts of a delivery distinguish two outputs of the same text.
                let shown = draft.delivered.iter().filter(|one| one.line.is_some());
                let shown: Vec<&Delivery> = shown.collect();
                let is_news = body.is_some() && !shown.is_empty();
                (state, is_news.then(|| hash(&(body, shown))))
            }
        };
        Self {
            id,
            heading,
            state,
            news,
        }
    }

    fn has_content(&self) -> bool {
        self.state.is_some() || self.news.is_some()
    }

    fn differs_from(&self, known: &Self) -> bool {
        (self.state, self.news) != (known.state, known.news)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The answers given so far.
#[derive(Debug, Default)]
pub struct Revisions {
    newest: u64,
    last_change: u64,
    answers: VecDeque<(u64, Vec<SectionFingerprint>)>,
}

impl Revisions {
    /// Records a change of the editor state or of the access rules. Returns the new revision.
    pub fn context_changed(&mut self) -> u64 {
        self.newest += 1;
        self.last_change = self.newest;
        self.newest
    }

    /// Returns the revision of the last change.
    pub fn last_change(&self) -> u64 {
        self.last_change
    }

    /// Returns the answer for a client that knows revision `since`: the changed sections and the
    /// time, or the whole block if that revision is not remembered. A section that became empty is
    /// returned as `(none)`.
    ///
    /// With `consumed`, terminal output and modified files in this block count as shown, so the
    /// same text is new when it occurs again.
    pub fn answer(
        &mut self,
        block: Block,
        since: Option<u64>,
        consumed: bool,
    ) -> EnvironmentDetailsResult {
        let mut result = match since.and_then(|since| self.known_at(since)) {
            Some(known) => changes(&block, known),
            None => block.result,
        };
        result.revision = self.remember(block.fingerprints, consumed);
        result
    }

    fn known_at(&self, revision: u64) -> Option<&[SectionFingerprint]> {
        let answer = self.answers.iter().find(|(known, _)| *known == revision);
        answer.map(|(_, fingerprints)| fingerprints.as_slice())
    }

    fn remember(&mut self, mut fingerprints: Vec<SectionFingerprint>, consumed: bool) -> u64 {
        if consumed {
            for fingerprint in &mut fingerprints {
                fingerprint.news = None;
            }
        }
        if let Some((revision, known)) = self.answers.back()
            && *revision == self.newest
            && *known == fingerprints
        {
            return self.newest;
        }
        self.newest += 1;
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back((self.newest, fingerprints));
        self.newest
    }
}

fn changes(block: &Block, known: &[SectionFingerprint]) -> EnvironmentDetailsResult {
    let mut result = EnvironmentDetailsResult::default();
    for fingerprint in &block.fingerprints {
        let mut sections = block.result.sections.iter();
        let section = sections.find(|section| section.id == fingerprint.id);
        let before = known.iter().find(|known| known.id == fingerprint.id);
        let is_new = fingerprint.id == SectionId::CurrentTime
            || before.is_none_or(|before| fingerprint.differs_from(before));
        if !is_new {
            continue;
        }
        match section {
            Some(section) => result.sections.push(section.clone()),
            None if before.is_some_and(SectionFingerprint::has_content) => {
                result.sections.push(emptied(fingerprint));
            }
            None => {}
        }
    }
    render::assemble(&mut result);
    result
}

fn emptied(fingerprint: &SectionFingerprint) -> Section {
    render::section(fingerprint.id, &fingerprint.heading, EMPTY_BODY, 0, false)
}
