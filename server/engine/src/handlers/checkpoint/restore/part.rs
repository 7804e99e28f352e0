//! What a restore covers: whole checkpoints, or the part that `only` and `hunks` select.

use sightline_base::path::{Location, RelPath};
use sightline_checkpoint::{
    Side,
    group::Found,
    restore::{Part, Scope},
};
use sightline_protocol::checkpoint::{FileHunks, RestoreOnly};

use super::{
    super::{
        checkpoint_context::{CheckpointContext, FoundTurn, Paths},
        reference::{Reference, TurnSide},
    },
    restore_roots::Restores,
};
use crate::error::Error;

/// The params of a restore that select files.
pub(super) struct Selection<'a> {
    pub(super) id: &'a str,
    pub(super) root: Option<&'a str>,
    pub(super) paths: Option<&'a [String]>,
    pub(super) all_roots: bool,
    pub(super) only: Option<RestoreOnly>,
    pub(super) hunks: Option<&'a [FileHunks]>,
}

impl Selection<'_> {
    /// Returns whether a part of the differences is selected.
    pub(super) fn is_part(&self) -> bool {
        self.only.is_some() || self.hunks.is_some()
    }

    /// Returns the checkpoint that is restored.
    pub(super) fn find(&self, cx: &CheckpointContext<'_>) -> Result<Found, Error> {
        match self.turn(cx)? {
            Some(turn) => turn
                .state(TurnSide::Before)?
                .ok_or_else(|| Error::invalid("the turn has no state before it")),
            None => cx.find(self.id, self.root),
        }
    }

    /// Returns the turn whose changes are reverted.
    fn turn(&self, cx: &CheckpointContext<'_>) -> Result<Option<FoundTurn>, Error> {
        let named = match Reference::parse(self.id)? {
            Reference::Turn(name, side) if self.only.is_some() || side == TurnSide::Before => {
                Some(name)
            }
            _ => None,
        };
        if !self.is_part() {
            return Ok(None);
        }
        match (named, self.only) {
            (Some(name), _) => Ok(Some(cx.turn(&name, self.root)?)),
            (None, None) => Ok(None),
            (None, Some(RestoreOnly::Turn)) => {
                let found = cx.find(self.id, self.root)?;
                let related = found.store.related()?;
                let Some(turn) = related.turn_of(&found.checkpoint) else {
                    let id = self.id;
                    let why = format!("{id} belongs to no turn; name a turn, such as claude-2.3");
                    return Err(Error::invalid(why));
                };
                Ok(Some(cx.turn(&turn.name, self.root)?))
            }
        }
    }

    /// Returns the restore of the checkpoint that [`Self::find`] returned.
    pub(super) fn restores<'c>(
        &self,
        cx: &'c CheckpointContext<'_>,
        found: Found,
    ) -> Result<Restores<'c>, Error> {
        if !self.is_part() {
            return Restores::named(cx, found, self.paths, self.all_roots);
        }
        if self.all_roots {
            let why = "`allRoots` cannot be combined with `only` and `hunks`";
            return Err(Error::invalid(why));
        }
        let until = match self.turn(cx)? {
            // It edited nothing, so there is nothing to revert.
            Some(turn) if turn.turn.before.is_none() => Side::Checkpoint(found.checkpoint.id),
            Some(turn) => match turn.state(TurnSide::After)? {
                Some(after) => Side::Checkpoint(after.checkpoint.id),
                None => Side::WorkTree,
            },
            None => Side::WorkTree,
        };
        let Some(hunks) = self.hunks else {
            let hunks = Vec::new();
            let scope = Scope::Part(Part { until, hunks });
            return Restores::of(cx, vec![found], self.paths, &scope);
        };
        let files = hunks.iter().map(|file| &file.path);
        let paths = files.chain(self.paths.unwrap_or_default());
        let paths: Vec<String> = paths.cloned().collect();
        let hunks = located(cx, &found, hunks)?;
        let scope = Scope::Part(Part { until, hunks });
        Restores::of(cx, vec![found], Some(&paths), &scope)
    }
}

/// Returns the files of hunks.
fn located(
    cx: &CheckpointContext<'_>,
    found: &Found,
    hunks: &[FileHunks],
) -> Result<Vec<(RelPath, Vec<u32>)>, Error> {
    let root = found.root;
    let mut files = Vec::with_capacity(hunks.len());
    for FileHunks { path, hunks } in hunks {
        let named = std::slice::from_ref(path);
        cx.require_known_paths(Some(named), std::slice::from_ref(found), true)?;
        let rel = match cx.paths(root, Some(named), true)? {
            Paths::Some(mut paths) if paths.len() == 1 => paths.remove(0),
            _ => {
                let why = format!("{path:?} is a folder; hunks are those of files");
                return Err(Error::invalid(why).with_path(path.clone()));
            }
        };
        if hunks.is_empty() {
            let why = format!("no hunks of {path:?} are named");
            return Err(Error::invalid(why));
        }
        let location = Location::Inside {
            root,
            rel: rel.clone(),
        };
        cx.view.require(&location, true)?;
        files.push((rel, hunks.clone()));
    }
    if files.is_empty() {
        return Err(Error::invalid("`hunks` is empty; omit it to restore all"));
    }
    Ok(files)
}
