//! References to checkpoints in requests: ids and their beginnings, `last`, and names of turns.

use sightline_checkpoint::{Checkpoint, Oid, Purpose, TurnName};
use sightline_protocol::error::ErrorKind;

use crate::error::Error;

/// Message without any checkpoint.
pub const NONE_YET: &str = "no checkpoints yet; create one first";
/// Message of `last` with undo points, but no other checkpoint.
pub const ONLY_UNDO_POINTS: &str = "all checkpoints are undo points, which `last` never means; undo the last restore, or name one by its id";
/// Digits of the shortest beginning of an id.
const MIN_DIGITS: usize = 4;

/// Which state a name of a turn means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnSide {
    Before,
    After,
}

/// How a request names a checkpoint.
pub(super) enum Reference {
    Id(Oid),
    /// The first digits of an id, in lower case.
    Beginning(String),
    /// The newest checkpoint that is not an undo point.
    Last,
    /// The state before or after a turn.
    Turn(TurnName, TurnSide),
}

impl Reference {
    /// Parses a reference. `claude-2.3` is a turn, `claude-2.3+` the state after it. A leading `HEAD ` is ignored: stored tasks of Cline contain it.
    ///
    /// # Errors
    /// `notFound` for any other text.
    pub(super) fn parse(written: &str) -> Result<Self, Error> {
        let digits = written.strip_prefix("HEAD ").unwrap_or(written);
        let (name, side) = match digits.strip_suffix('+') {
            Some(name) => (name, TurnSide::After),
            None => (digits, TurnSide::Before),
        };
        if let Ok(name) = name.parse() {
            return Ok(Self::Turn(name, side));
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
        listed: impl Iterator<Item = &'c Checkpoint>,
    ) -> Result<Oid, Error> {
        let found = match self {
            Self::Id(id) => Some(*id),
            // `find` looks it up in the record of turns.
            Self::Turn(..) => None,
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
