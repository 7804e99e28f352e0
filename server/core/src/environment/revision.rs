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
    render::{self, Delivery, Drawn},
};

/// Answers remembered; who asks about an older one gets the whole block.
const REMEMBERED: usize = 64;

/// What vanished since the revision a client knows.
const VANISHED: &str = "(none)";

/// What is remembered of a section that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Print {
    id: SectionId,
    heading: String,
    /// Hash of what stays true; `None` when the section had nothing such.
    state: Option<u64>,
    /// Hash of what is told once; `None` when there was none, or it was told.
    news: Option<u64>,
}

impl Print {
    pub(super) fn new(
        id: SectionId,
        heading: String,
        drawn: &Drawn,
        section: Option<&Section>,
    ) -> Self {
        let body = section.map(|section| &section.text);
        let (state, news) = match (id, &drawn.standing) {
            // The time is always different and never a change.
            (SectionId::CurrentTime, _) => (None, None),
            (_, None) => (body.map(hash), None),
            (_, Some(lines)) => {
                let state = (!lines.is_empty()).then(|| hash(lines));
                // The counts in a delivery tell apart two outputs of one text.
                let shown = drawn.delivered.iter().filter(|one| one.line.is_some());
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
    answers: VecDeque<(u64, Vec<Print>)>,
}

impl Revisions {
    /// What the editor shows has changed: the new revision.
    pub fn context_changed(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// The answer for a client that knows revision `since`: the sections that
    /// changed and the time; the whole block when that revision is not known.
    /// A section asked for both times that vanished comes back as `(none)`.
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
        result.revision = self.remember(block.prints, consumed);
        result
    }

    fn known_at(&self, revision: u64) -> Option<&[Print]> {
        let answer = self.answers.iter().find(|(known, _)| *known == revision);
        answer.map(|(_, prints)| prints.as_slice())
    }

    fn remember(&mut self, mut prints: Vec<Print>, consumed: bool) -> u64 {
        if consumed {
            for print in &mut prints {
                print.news = None;
            }
        }
        if let Some((revision, known)) = self.answers.back()
            && *revision == self.newest
            && *known == prints
        {
            return self.newest;
        }
        self.newest += 1;
        if self.answers.len() == REMEMBERED {
            self.answers.pop_front();
        }
        self.answers.push_back((self.newest, prints));
        self.newest
    }
}

fn changes(block: &Block, known: &[Print]) -> EnvironmentDetailsResult {
    let mut result = EnvironmentDetailsResult::default();
    for print in &block.prints {
        let mut sections = block.result.sections.iter();
        let section = sections.find(|section| section.id == print.id);
        let before = known.iter().find(|known| known.id == print.id);
        let is_new = print.id == SectionId::CurrentTime
            || before.is_none_or(|before| print.differs_from(before));
        if !is_new {
            continue;
        }
        match section {
            Some(section) => result.sections.push(section.clone()),
            None if before.is_some_and(Print::has_content) => {
                result.sections.push(vanished(print));
            }
            None => {}
        }
    }
    render::close(&mut result);
    result
}

fn vanished(print: &Print) -> Section {
    render::section(print.id, &print.heading, VANISHED, 0, false)
}
