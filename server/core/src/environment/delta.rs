//! What a client already knows of the block, for `sinceRevision`.
//!
//! One counter numbers both what the editor shows and the blocks that were
//! answered, so a client that holds a block of revision 7 and hears of
//! revision 8 knows that there is something new.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};

use sightline_protocol::environment::{EnvironmentDetailsResult, Section, SectionId};

use super::{
    Block,
    render::{self, Delivery, SectionDraft},
};

/// Answers remembered; who asks about an older one gets the whole block.
const MAX_ANSWERS: usize = 64;

/// What emptied since the revision a client knows.
const EMPTY_BODY: &str = "(none)";

/// What is remembered of a section that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SectionFingerprint {
    id: SectionId,
    heading: String,
    /// Hash of what stays true; `None` when the section had nothing such.
    state: Option<u64>,
    /// Hash of what is told once; `None` when there was none, or it was told.
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
            // The time is always different and never a change.
            (SectionId::CurrentTime, _) => (None, None),
            (_, None) => (body.map(hash), None),
            (_, Some(lines)) => {
                let state = (!lines.is_empty()).then(|| hash(lines));
                // The counts in a delivery tell apart two outputs of one text.
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
    answers: VecDeque<(u64, Vec<SectionFingerprint>)>,
}

impl Revisions {
    /// What the editor shows has changed: the new revision.
    pub fn context_changed(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// The answer for a client that knows revision `since`: the sections that
    /// changed and the time; the whole block when that revision is not known.
    /// A section asked for both times that emptied comes back as `(none)`.
    ///
    /// `consumed` says that terminal output and modified files of this block
    /// count as told, so that the same text is news when it comes again.
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
