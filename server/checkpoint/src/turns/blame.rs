//! Finds the author of each line of a file: a turn or the user, if that is known.
//!
//! The saved states of the file are compared one after the other. A line that appears between two states
//! belongs to the turn that was running from the one to the other, or to the user if none was running.
//! Where a state is missing, or a turn had no saved end, it is unknown.

use std::{collections::HashMap, sync::Arc};

use sightline_base::path::RelPath;
use sightline_protocol::checkpoint::{BlameAuthor, BlameLine};
use similar::DiffTag;

use super::{MAX_UNKNOWN, Turn, TurnName, log::Log, saved_name};
use crate::{
    checkpoints::Checkpoints,
    diff::{
        lines::{changes, is_binary, lines},
        renames::renames,
    },
    error::Error,
    job::Job,
    list::Filter,
    metadata::{Checkpoint, Purpose, excluded::ExcludedThen, to_i64},
    store::{
        object::{Kind, Oid, name_of},
        odb::Odb,
    },
    tree_diff::{Difference, Leaf, Tree, compare, find},
};

/// Position of a checkpoint in time, which several do not share.
type Instant = (u64, u64);
/// After every checkpoint.
const NOW: Instant = (u64::MAX, u64::MAX);

/// Time in which a turn may have changed files.
struct Span {
    name: TurnName,
    agent: String,
    start: Instant,
    end: Instant,
    /// Whether both ends are saved states.
    is_saved: bool,
}

/// A state of the file.
struct State {
    at: Instant,
    /// Index of its checkpoint, newest first. `None` for the work tree.
    checkpoint: Option<usize>,
    /// Id of the content. `None` if there was no such file.
    content: Option<Oid>,
}

impl Checkpoints {
    /// Returns the author of each line of a file, whose current content is `content`.
    ///
    /// # Errors
    /// `cancelled`; `storage`.
    pub fn blame(
        &self,
        job: &Job<'_>,
        path: &RelPath,
        content: &[u8],
    ) -> Result<Vec<BlameLine>, Error> {
        let mut checkpoints = self.list(&Filter::default())?;
        checkpoints.retain(|one| {
            !one.metadata.fetched && !matches!(one.metadata.purpose, Purpose::Imported)
        });
        let ids: Vec<Oid> = checkpoints.iter().map(|one| one.id).collect();
        let mut blamed = match self.repository()? {
            None => vec![BlameLine::default(); lines(content).len()],
            Some(repository) => {
                let blame = Blame {
                    job,
                    reader: repository.odb(),
                    spans: self.spans(&checkpoints)?,
                    checkpoints: checkpoints.iter().map(|one| &**one).collect(),
                    content,
                };
                self.unless_pruned(&ids, blame.run(path))?
            }
        };
        for (number, line) in (1..).zip(&mut blamed) {
            line.line = number;
        }
        Ok(blamed)
    }

    /// Returns when turns changed files.
    fn spans(&self, checkpoints: &[Arc<Checkpoint>]) -> Result<Vec<Span>, Error> {
        let mut named: HashMap<TurnName, [Option<Oid>; 2]> = HashMap::new();
        for one in checkpoints {
            if let Some(name) = saved_name(one) {
                let side = usize::from(one.metadata.turn_end);
                named.entry(name).or_default()[side].get_or_insert(one.id);
            }
        }
        let at: HashMap<Oid, Instant> = checkpoints
            .iter()
            .map(|one| (one.id, instant(one)))
            .collect();
        let log = Log::read(&self.state_dir())?;
        let mut spans = Vec::new();
        // Older turns ended before the oldest checkpoint.
        let oldest = checkpoints.last().map_or(0, |one| one.metadata.created);
        let is_recent = |turn: &Turn| turn.started + MAX_UNKNOWN >= oldest;
        for turn in log.turns(None).take_while(is_recent) {
            let [before, after] = named.remove(&turn.name).unwrap_or_default();
            spans.extend(span(
                &turn,
                turn.before.or(before),
                turn.after.or(after),
                &at,
            ));
        }
        // Turns that an older version did not record.
        let newest = |one: &Checkpoint| {
            let newer = checkpoints.iter().rev().map(|other| instant(other));
            newer.filter(|at| *at > instant(one)).min().unwrap_or(NOW)
        };
        let unrecorded = checkpoints.iter().filter(|one| {
            one.metadata.turn.is_some()
                && saved_name(one).is_none_or(|name| named.contains_key(&name))
        });
        spans.extend(unrecorded.map(|one| Span {
            name: TurnName::new("agent", 1, 1),
            agent: String::new(),
            start: instant(one),
            end: newest(one),
            is_saved: false,
        }));
        Ok(spans)
    }
}

fn instant(checkpoint: &Checkpoint) -> Instant {
    (checkpoint.metadata.created, checkpoint.metadata.sequence)
}

/// Returns when a turn changed files. `None` if it changed none.
fn span(
    turn: &Turn,
    before: Option<Oid>,
    after: Option<Oid>,
    at: &HashMap<Oid, Instant>,
) -> Option<Span> {
    let before = before?;
    let is_running = after.is_none() && turn.is_running();
    let end = match after {
        None if is_running => Some(NOW),
        None => None,
        Some(after) => at.get(&after).copied(),
    };
    let start = at.get(&before).copied();
    Some(Span {
        name: turn.name.clone(),
        agent: turn.agent.clone(),
        is_saved: start.is_some() && end.is_some(),
        start: start.unwrap_or((turn.started, 0)),
        end: end.unwrap_or(turn.ended.map_or(NOW, |ended| (ended, u64::MAX))),
    })
}

struct Blame<'a> {
    job: &'a Job<'a>,
    reader: Odb,
    spans: Vec<Span>,
    /// Newest first.
    checkpoints: Vec<&'a Checkpoint>,
    content: &'a [u8],
}

impl Blame<'_> {
    fn run(&self, path: &RelPath) -> Result<Vec<BlameLine>, Error> {
        let states = self.states(path)?;
        let mut blamed: HashMap<usize, (Option<Oid>, Vec<BlameLine>)> = HashMap::new();
        let mut last: Option<(State, Vec<u8>, Vec<BlameLine>)> = None;
        for state in states {
            self.job.cancel.check()?;
            let text = self.text(state.content)?;
            let found = match &last {
                None => vec![BlameLine::default(); lines(&text).len()],
                Some((older, _, known)) if older.content == state.content => known.clone(),
                Some((older, old, known)) => {
                    let mut found =
                        self.compared((old, known), &text, &self.between(older.at, state.at));
                    // What a restore brings back was written before.
                    if let Some((content, known)) = self.restored(older, &blamed) {
                        let back = self.text(*content)?;
                        bring_back(old, (&back, known), &text, &mut found);
                    }
                    found
                }
            };
            if let Some(index) = state.checkpoint {
                blamed.insert(index, (state.content, found.clone()));
            }
            last = Some((state, text, found));
        }
        Ok(last.map(|(_, _, found)| found).unwrap_or_default())
    }

    /// Returns the state that was restored right after this one, if it is an undo point.
    fn restored<'b>(
        &self,
        state: &State,
        blamed: &'b HashMap<usize, (Option<Oid>, Vec<BlameLine>)>,
    ) -> Option<&'b (Option<Oid>, Vec<BlameLine>)> {
        let undo = self.checkpoints[state.checkpoint?];
        let Purpose::Undo { restoring, .. } = &undo.metadata.purpose else {
            return None;
        };
        let restoring = (*restoring)?;
        let index = self.checkpoints.iter().position(|one| one.id == restoring);
        blamed.get(&index?)
    }

    /// Returns the saved states of the file, oldest first, and the current one. Follows renames.
    fn states(&self, path: &RelPath) -> Result<Vec<State>, Error> {
        let mut path = path.clone();
        let current = name_of(Kind::Blob, self.content);
        let mut states = vec![State {
            at: NOW,
            checkpoint: None,
            content: Some(current),
        }];
        let mut newer: Option<&Checkpoint> = None;
        for (index, checkpoint) in self.checkpoints.iter().enumerate() {
            self.job.cancel.check()?;
            let mut leaf = self.entry(checkpoint, &path)?;
            if leaf.is_none()
                && let Some(newer) = newer
                && states.last().is_some_and(|state| state.content.is_some())
                && let Some(old) = self.renamed(checkpoint, newer, &path)?
            {
                path = old;
                leaf = self.entry(checkpoint, &path)?;
            }
            newer = Some(checkpoint);
            let is_lost = leaf.is_none()
                && ExcludedThen::new(&checkpoint.metadata)
                    .reason(&path)
                    .is_some();
            if !is_lost {
                states.push(State {
                    at: instant(checkpoint),
                    checkpoint: Some(index),
                    content: leaf.map(|leaf| leaf.oid),
                });
            }
        }
        states.reverse();
        Ok(states)
    }

    fn entry(&self, checkpoint: &Checkpoint, path: &RelPath) -> Result<Option<Leaf>, Error> {
        Ok(find(&self.reader, checkpoint.tree, path)?.filter(Leaf::is_file))
    }

    /// Returns the name of a file before it was renamed.
    fn renamed(
        &self,
        older: &Checkpoint,
        newer: &Checkpoint,
        path: &RelPath,
    ) -> Result<Option<RelPath>, Error> {
        let (old, new) = (Tree::Stored(older.tree), Tree::Stored(newer.tree));
        let found: Vec<Difference> =
            compare(&self.reader, &old, &new, &[], self.job.cancel)?.leaves;
        let Some(at) = found.iter().position(|one| one.path == *path) else {
            return Ok(None);
        };
        let old = renames(&found).remove(&at);
        Ok(old.map(|old| found[old].path.clone()))
    }

    fn text(&self, content: Option<Oid>) -> Result<Vec<u8>, Error> {
        match content {
            None => Ok(Vec::new()),
            Some(oid) if oid == name_of(Kind::Blob, self.content) => Ok(self.content.to_vec()),
            Some(oid) => {
                let text = self.reader.blob(oid)?;
                Ok(if is_binary(&text) { Vec::new() } else { text })
            }
        }
    }

    /// Returns the author of the lines that appeared between two states.
    fn between(&self, start: Instant, end: Instant) -> BlameLine {
        let overlapping: Vec<&Span> = self
            .spans
            .iter()
            .filter(|span| span.start < end && start < span.end)
            .collect();
        let covers = |span: &&Span| span.is_saved && span.start <= start && end <= span.end;
        let mut line = BlameLine {
            at: (end != NOW).then(|| to_i64(end.0)),
            ..BlameLine::default()
        };
        if overlapping.is_empty() {
            line.by = BlameAuthor::User;
        } else if overlapping.iter().all(covers) {
            let agent = overlapping.first().map(|span| &span.agent);
            let is_one = overlapping.iter().all(|span| Some(&span.agent) == agent);
            line.by = BlameAuthor::Agent;
            line.agent = agent.filter(|_| is_one).cloned();
            line.turns = overlapping
                .iter()
                .map(|span| span.name.to_string())
                .collect();
            line.turn = line.turns.pop_if(|_| overlapping.len() == 1);
        } else {
            return BlameLine::default();
        }
        line
    }

    fn compared(
        &self,
        (old, known): (&[u8], &[BlameLine]),
        new: &[u8],
        appeared: &BlameLine,
    ) -> Vec<BlameLine> {
        let (old, new) = (lines(old), lines(new));
        let mut found = vec![appeared.clone(); new.len()];
        for op in changes(&old, &new) {
            if op.tag() == DiffTag::Equal {
                found[op.new_range()].clone_from_slice(&known[op.old_range()]);
            }
        }
        found
    }
}

/// Sets the authors of lines that are not in the old text, and that a restore brought back.
fn bring_back(
    old: &[u8],
    (back, known): (&[u8], &[BlameLine]),
    new: &[u8],
    found: &mut [BlameLine],
) {
    let (old, back, new) = (lines(old), lines(back), lines(new));
    let mut is_kept = vec![false; new.len()];
    for op in changes(&old, &new) {
        if op.tag() == DiffTag::Equal {
            is_kept[op.new_range()].fill(true);
        }
    }
    for op in changes(&back, &new) {
        if op.tag() == DiffTag::Equal {
            for (from, to) in op.old_range().zip(op.new_range()) {
                if !is_kept[to] {
                    found[to] = known[from].clone();
                }
            }
        }
    }
}
