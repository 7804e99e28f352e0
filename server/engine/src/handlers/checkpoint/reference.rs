//! References to checkpoints in requests: ids and their beginnings, `last`, and steps of an agent.

use sightline_checkpoint::{Checkpoint, Oid, Purpose};
use sightline_protocol::error::ErrorKind;

use crate::error::Error;

/// Message without any checkpoint.
pub const NONE_YET: &str = "no checkpoints yet; create one first";
/// Message of `last` with undo points, but no other checkpoint.
pub const ONLY_UNDO_POINTS: &str = "all checkpoints are undo points, which `last` never means; undo the last restore, or name one by its id";
/// Digits of the shortest beginning of an id.
const MIN_DIGITS: usize = 4;

/// How a request names a checkpoint.
pub(super) enum Reference {
    Id(Oid),
    /// The first digits of an id, in lower case.
    Beginning(String),
    /// The newest checkpoint that is not an undo point.
    Last,
    /// A step of the newest session of an agent, from 1.
    Step(usize),
}

impl Reference {
    /// Parses a reference. A leading `HEAD ` is ignored: stored tasks of Cline contain it.
    ///
    /// # Errors
    /// `notFound` for any other text.
    pub(super) fn parse(written: &str) -> Result<Self, Error> {
        let digits = written.strip_prefix("HEAD ").unwrap_or(written);
        if let Some(step) = digits.strip_prefix('#') {
            let number = step.parse().ok().filter(|step| *step > 0);
            return number.map(Self::Step).ok_or_else(|| no_step(step));
        }
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match digits.len() {
            _ if digits == "last" => Ok(Self::Last),
            40 if is_hex => Ok(Self::Id(digits.parse()?)),
            MIN_DIGITS..40 if is_hex => Ok(Self::Beginning(digits.to_ascii_lowercase())),
            _ => Err(unknown_checkpoint(written)),
        }
    }

    /// Selects a checkpoint. `listed` is sorted, newest first.
    ///
    /// # Errors
    /// `notFound`, or `invalidParams` if several ids match.
    pub(super) fn select<'c>(
        &self,
        written: &str,
        listed: impl DoubleEndedIterator<Item = &'c Checkpoint>,
    ) -> Result<Oid, Error> {
        let found = match self {
            Self::Id(id) => Some(*id),
            Self::Last => {
                let is_undo =
                    |one: &Checkpoint| matches!(one.metadata.purpose, Purpose::Undo { .. });
                let mut listed = listed.peekable();
                let why = listed.peek().map_or(NONE_YET, |_| ONLY_UNDO_POINTS);
                let newest = listed.find(|one| !is_undo(one));
                Some(
                    newest
                        .ok_or_else(|| Error::new(ErrorKind::NotFound, why))?
                        .id,
                )
            }
            Self::Step(step) => {
                let turns: Vec<_> = listed
                    .filter_map(|one| Some((one.metadata.turn.as_ref()?, one.id)))
                    .collect();
                let id = turns.first().and_then(|(newest, _)| {
                    let of_newest = turns.iter().rev().filter(|(turn, _)| {
                        (&turn.agent, &turn.session) == (&newest.agent, &newest.session)
                    });
                    of_newest.map(|(_, id)| *id).nth(step - 1)
                });
                return id.ok_or_else(|| no_step(&step.to_string()));
            }
            Self::Beginning(digits) => {
                let begins = |id: &str| id.to_ascii_lowercase().starts_with(digits.as_str());
                let mut matching = listed.filter(|one| {
                    begins(&one.id.to_string())
                        || one.metadata.imported.as_deref().is_some_and(begins)
                });
                let first = matching.next();
                if matching.next().is_some() {
                    let why = format!("{written:?} matches several checkpoints; use more digits");
                    return Err(Error::invalid(why));
                }
                first.map(|one| one.id)
            }
        };
        found.ok_or_else(|| unknown_checkpoint(written))
    }
}

/// Error of an id that no checkpoint has.
pub fn unknown_checkpoint(written: &str) -> Error {
    let why = format!("no checkpoint matches {written:?}; list the checkpoints to see their ids");
    Error::new(ErrorKind::NotFound, why)
}

fn no_step(step: &str) -> Error {
    unknown_checkpoint(&format!("#{step}"))
}
