//! What turns changed: each turn itself, and others between the turns.
//!
//! The changes of an ended turn are recorded with it, so that a list reads no object of the store.

use std::collections::HashSet;

use sightline_base::path::RelPath;

use super::{
    Turn, TurnName,
    log::Event,
    log::Log,
    recorded::{ChangedFile, ChangedFiles, Outside, RecordedChanges},
};
use crate::{
    checkpoints::Checkpoints,
    diff::{DiffOptions, Status},
    error::Error,
    job::Job,
    named_path::NamedPath,
    store::object::Oid,
    tree_diff::{DeniedPaths, Side, Tree, shown_differences},
};

/// Maximum number of files that are recorded of a turn. The others are counted.
const MAX_FILES: usize = 200;
/// Number of turns next to those of a page that may have run at the same time.
const NEIGHBOURS: usize = 20;

/// A turn and what changed in it and before it.
#[derive(Clone, Debug)]
pub struct ListedTurn {
    /// The turn.
    pub turn: Turn,
    /// What it changed.
    pub own: ChangedFiles,
    /// What changed before it. `None` if nothing did, or that is not known.
    pub outside: Option<Outside>,
}

/// Selects turns to list.
#[derive(Clone, Debug, Default)]
pub struct TurnFilter {
    /// Only turns of this session, by its name or as the agent names it.
    pub session: Option<String>,
    /// Only turns that began before this one.
    pub before: Option<TurnName>,
    /// Maximum number of turns.
    pub limit: usize,
}

impl TurnFilter {
    fn selects(&self, turn: &Turn) -> bool {
        self.session
            .as_ref()
            .is_none_or(|session| *session == turn.session || *session == turn.name.session())
    }
}

impl Checkpoints {
    /// Lists turns with their changes, newest first.
    ///
    /// # Errors
    /// `accessDenied` while the access rules cannot be used; `cancelled`; `storage`.
    pub fn list_turns(&self, job: &Job<'_>, filter: &TurnFilter) -> Result<Vec<ListedTurn>, Error> {
        job.require_rules()?;
        let log = Log::read(&self.state_dir())?;
        let mut page: Vec<Turn> = Vec::new();
        let mut neighbours = match &filter.before {
            Some(name) => log.following(name, NEIGHBOURS),
            None => Vec::new(),
        };
        let mut older = log.turns(filter.before.as_ref());
        for turn in older.by_ref() {
            job.cancel.check()?;
            if page.len() == filter.limit || !filter.selects(&turn) {
                neighbours.push(turn);
            } else {
                page.push(turn);
            }
            if page.len() == filter.limit {
                break;
            }
        }
        neighbours.extend(older.take(NEIGHBOURS));
        let mut listed: Vec<ListedTurn> = Vec::with_capacity(page.len());
        for turn in page {
            job.cancel.check()?;
            let turn = self.completed(turn)?;
            listed.push(self.listed(job, &log, turn)?);
        }
        let others: Vec<(Turn, HashSet<RelPath>)> = listed
            .iter()
            .map(|one| (one.turn.clone(), paths_of(&one.own)))
            .chain(neighbours.into_iter().filter_map(|turn| {
                let paths = paths_of(&turn.changes.as_ref()?.own);
                Some((turn, paths))
            }))
            .collect();
        for one in &mut listed {
            mark_shared(one, &others);
        }
        Ok(listed)
    }

    /// Returns what a turn changed, with the turns that ran at the same time and changed the same files.
    ///
    /// # Errors
    /// Those of [`Self::list_turns`].
    pub fn listed_turn(&self, job: &Job<'_>, turn: &Turn) -> Result<ListedTurn, Error> {
        job.require_rules()?;
        let log = Log::read(&self.state_dir())?;
        let mut one = self.listed(job, &log, turn.clone())?;
        let older = log.turns(Some(&turn.name)).take(NEIGHBOURS);
        let mut others = Vec::new();
        for other in older.chain(log.following(&turn.name, NEIGHBOURS)) {
            if overlap(&other, turn) {
                let other = self.listed(job, &log, self.completed(other)?)?;
                others.push((other.turn, paths_of(&other.own)));
            }
        }
        mark_shared(&mut one, &others);
        Ok(one)
    }

    fn listed(&self, job: &Job<'_>, log: &Log, mut turn: Turn) -> Result<ListedTurn, Error> {
        let known = turn
            .changes
            .take()
            .filter(|known| Some(known.before) == turn.before && Some(known.after) == turn.after);
        let changes = match known {
            Some(known) => Some(known),
            None => self.changes_of(job, log, &turn)?,
        };
        let running = || match turn.before {
            Some(before) if turn.after.is_none() && turn.is_running() => {
                self.compared(job, before, &Side::WorkTree)
            }
            _ => Ok(ChangedFiles::default()),
        };
        let (own, outside) = match changes {
            Some(changes) => (changes.own, changes.outside),
            None => (running()?, None),
        };
        Ok(ListedTurn {
            turn,
            own: without_denied(job, own),
            outside: outside.map(|outside| Outside {
                files: without_denied(job, outside.files),
                ..outside
            }),
        })
    }

    /// Records the changes of a turn that ended.
    pub(super) fn record_changes(&self, job: &Job<'_>, name: &TurnName) -> Result<(), Error> {
        let log = Log::read(&self.state_dir())?;
        let Some(turn) = log.turn(name) else {
            return Ok(());
        };
        let Some(changes) = self.changes_of(job, &log, &turn)? else {
            return Ok(());
        };
        self.turn_writer()?.append(&[Event::Changes {
            name: name.clone(),
            changes,
        }])
    }

    /// Compares the states of a turn. `None` if one was not saved or was removed.
    fn changes_of(
        &self,
        job: &Job<'_>,
        log: &Log,
        turn: &Turn,
    ) -> Result<Option<RecordedChanges>, Error> {
        let (Some(before), Some(after)) = (turn.before, turn.after) else {
            return Ok(None);
        };
        let own = match self.compared(job, before, &Side::Checkpoint(after)) {
            Err(Error::NotFound(_)) => return Ok(None),
            own => own?,
        };
        let outside = match self.outside(job, log, turn, before) {
            Err(Error::NotFound(_)) => None,
            outside => outside?,
        };
        Ok(Some(RecordedChanges {
            before,
            after,
            own,
            outside,
        }))
    }

    fn outside(
        &self,
        job: &Job<'_>,
        log: &Log,
        turn: &Turn,
        before: Oid,
    ) -> Result<Option<Outside>, Error> {
        let first_edit = self.get(before)?;
        let until = first_edit.metadata.created;
        let recent: Vec<Turn> = log.turns(Some(&turn.name)).take(NEIGHBOURS).collect();
        let ended = recent.iter().filter_map(|one| {
            let at = one.ended.filter(|at| *at <= until)?;
            Some((at, one.after?))
        });
        let Some((since, end)) = ended.max_by_key(|(at, _)| *at) else {
            return Ok(None);
        };
        let last = self.get(end)?;
        let files = self.changed_paths(job, last.tree, first_edit.tree)?;
        let (from, to) = (last.metadata.head.clone(), first_edit.metadata.head.clone());
        if files.files.is_empty() && files.more == 0 && from == to {
            return Ok(None);
        }
        let newer = log.following(&turn.name, NEIGHBOURS);
        let running = recent.iter().chain(&newer).filter(|one| {
            one.started <= until && one.ended.is_none_or(|at| at > since) && one.before.is_some()
        });
        Ok(Some(Outside {
            files,
            turns: running.map(|one| one.name.clone()).collect(),
            from,
            to,
        }))
    }

    /// Compares a checkpoint with a side, with numbers of lines unless too many files differ.
    fn compared(&self, job: &Job<'_>, before: Oid, after: &Side) -> Result<ChangedFiles, Error> {
        if let Some(after) = after.checkpoint() {
            let (from, to) = (self.get(before)?.tree, self.get(after)?.tree);
            let paths = self.changed_paths(job, from, to)?;
            if paths.files.is_empty() || paths.more > 0 {
                return Ok(paths);
            }
        }
        let options = DiffOptions {
            paths: Vec::new(),
            contents: false,
            max_file_bytes: 0,
            max_total_bytes: 0,
        };
        let files = self.diff(job, &Side::Checkpoint(before), after, &options)?;
        let compared = files.into_iter().filter(|file| !file.uncaptured);
        Ok(cut(compared.map(|file| ChangedFile {
            path: NamedPath::of(&file.path),
            status: file.status,
            additions: file.additions,
            deletions: file.deletions,
            shared_with: Vec::new(),
        })))
    }

    /// Returns which paths differ between two stored trees, without reading contents.
    fn changed_paths(&self, job: &Job<'_>, from: Oid, to: Oid) -> Result<ChangedFiles, Error> {
        if from == to {
            return Ok(ChangedFiles::default());
        }
        let Some(repository) = self.repository()? else {
            return Ok(ChangedFiles::default());
        };
        let (left, right) = (Tree::Stored(from), Tree::Stored(to));
        let found = shown_differences(job, &repository.odb(), (&left, &right), &[])?;
        Ok(cut(found.into_iter().map(|difference| ChangedFile {
            path: NamedPath::of(&difference.path),
            status: match (difference.left, difference.right) {
                (None, _) => Status::Added,
                (_, None) => Status::Deleted,
                _ => Status::Modified,
            },
            additions: 0,
            deletions: 0,
            shared_with: Vec::new(),
        })))
    }
}

/// Removes what the access rules deny.
fn without_denied(job: &Job<'_>, mut changed: ChangedFiles) -> ChangedFiles {
    let mut denied = DeniedPaths::new(job);
    changed
        .files
        .retain(|file| file.path().is_some_and(|path| !denied.denies_file(&path)));
    changed
}

fn cut(mut files: impl Iterator<Item = ChangedFile>) -> ChangedFiles {
    ChangedFiles {
        files: files.by_ref().take(MAX_FILES).collect(),
        more: files.count() as u64,
    }
}

fn paths_of(changes: &ChangedFiles) -> HashSet<RelPath> {
    changes.files.iter().filter_map(ChangedFile::path).collect()
}

/// Names the turns that ran at the same time as this one and changed the same files.
fn mark_shared(one: &mut ListedTurn, others: &[(Turn, HashSet<RelPath>)]) {
    let at_once: Vec<_> = others
        .iter()
        .filter(|(other, _)| other.name != one.turn.name && overlap(other, &one.turn))
        .collect();
    for file in &mut one.own.files {
        let Some(path) = file.path() else { continue };
        let sharing = at_once.iter().filter(|(_, paths)| paths.contains(&path));
        file.shared_with = sharing.map(|(turn, _)| turn.name.clone()).collect();
    }
}

/// Returns whether two turns ran at the same time.
fn overlap(one: &Turn, other: &Turn) -> bool {
    let begins_before_end =
        |one: &Turn, other: &Turn| other.ended.is_none_or(|end| one.started < end);
    begins_before_end(one, other) && begins_before_end(other, one)
}
