//! Restores of a part: revert the changes between two states of files, and keep later ones.
//!
//! Each file is merged: the state after the changes is the base, the current state is one side, and the
//! state before the changes the other one.

use std::collections::{HashMap, HashSet};

use sightline_base::{fs::dir::DirWalker, path::RelPath};
use sightline_protocol::error::ErrorKind;

use super::{Decisions, Step};
use crate::{
    diff::{
        lines::{hunks, is_binary, lines, revert_hunks},
        renames::renames,
    },
    error::Error,
    job::Job,
    restore::types::{Conflict, Part},
    store::{
        object::{Kind, Mode, Oid, name_of},
        odb::Odb,
    },
    tree_diff::{Comparison, DeniedPaths, Difference, Leaf, Tree, compare},
};

/// The changes to revert.
pub(in crate::restore) struct Reverted<'a> {
    pub(in crate::restore) part: &'a Part,
    /// The state after the changes.
    pub(in crate::restore) base: Tree,
}

/// What a restore of a part changes.
#[derive(Default)]
pub(in crate::restore) struct Selected {
    /// Paths that are changed.
    covered: HashSet<RelPath>,
    conflicts: Vec<Conflict>,
    /// Paths that differ and are not part of it.
    unrelated: Vec<RelPath>,
    /// Entries that differ from those of the checkpoint.
    pub(in crate::restore) replaced: HashMap<RelPath, Leaf>,
    /// Merged contents, which no checkpoint holds.
    pub(in crate::restore) merged: HashMap<Oid, Vec<u8>>,
}

impl Selected {
    pub(super) fn covers(&self, path: &RelPath) -> bool {
        self.covered.contains(path)
    }

    /// Completes the decisions about the covered paths.
    pub(super) fn complete(&self, decisions: &mut Decisions) {
        replace(&mut decisions.steps, &self.replaced);
        let conflicting = self.conflicts.iter().map(|one| &one.path);
        decisions
            .left_alone
            .extend(conflicting.chain(&self.unrelated).cloned());
        decisions.conflicts.extend(self.conflicts.iter().cloned());
        decisions.sort_conflicts();
    }
}

/// Replaces the entries that steps write.
pub(in crate::restore) fn replace(steps: &mut [Step], replaced: &HashMap<RelPath, Leaf>) {
    for step in steps {
        if let Some(leaf) = replaced.get(&step.path) {
            step.after = Some(*leaf);
        }
    }
}

/// What a path becomes.
enum Resolution {
    /// As it is.
    Same,
    Changed(Option<Leaf>),
    Conflict(&'static str),
}

impl Reverted<'_> {
    /// Limits the differences between the workspace and the checkpoint `target`.
    pub(super) fn select(
        &self,
        job: &Job<'_>,
        reader: &Odb,
        walker: &mut DirWalker,
        (found, target): (&mut Comparison, &Tree),
        wanted: &[RelPath],
    ) -> Result<Selected, Error> {
        let changes = compare(reader, &self.base, target, wanted, job.cancel)?;
        let mut merger = Merger {
            job,
            reader,
            walker,
            selected: Selected::default(),
        };
        let mut changed: HashMap<RelPath, [Option<Leaf>; 2]> = changes
            .leaves
            .into_iter()
            .map(|Difference { path, left, right }| (path, [left, right]))
            .collect();
        if !self.part.hunks.is_empty() {
            let limited = merger.limit_to_hunks(&self.part.hunks, &changed)?;
            let is_limited = |path: &RelPath| {
                let mut files = limited.keys().map(RelPath::as_path);
                files.any(|file| path.as_path().starts_with(file))
            };
            changed.retain(|path, _| !is_limited(path));
            changed.extend(limited);
        }
        let mut denied = DeniedPaths::new(job);
        let moved = merger.moved_files(found, &changed, &mut denied)?;
        for difference in std::mem::take(&mut found.leaves) {
            job.cancel.check()?;
            let Difference { path, left, right } = &difference;
            let Some([base, theirs]) = changed.get(path) else {
                merger.selected.unrelated.push(difference.path);
                continue;
            };
            let is_dir = super::involves_empty_folder(&difference);
            // The planner counts denied paths without their names.
            let resolution = if denied.denies_versions(reader, path, is_dir, [*left, *right]) {
                Resolution::Changed(*right)
            } else if let Some(moved) = moved.get(path) {
                Resolution::Changed(*moved)
            } else {
                merger.resolve(path, [*left, *base, *theirs])?
            };
            let selected = &mut merger.selected;
            match resolution {
                Resolution::Same => selected.unrelated.push(difference.path),
                Resolution::Conflict(why) => selected.conflicts.push(Conflict::new(
                    difference.path,
                    format!("{why}; left as it is"),
                )),
                Resolution::Changed(leaf) => {
                    selected.covered.insert(path.clone());
                    if let Some(leaf) = leaf.filter(|_| !is_same(leaf, *right)) {
                        selected.replaced.insert(path.clone(), leaf);
                    }
                    found.leaves.push(difference);
                }
            }
        }
        let mut selected = merger.selected;
        let gone: HashSet<RelPath> = changes.folders_gone.into_iter().collect();
        found.folders_gone.retain(|folder| {
            let is_part = gone.contains(folder);
            if !is_part {
                selected.unrelated.push(folder.clone());
            }
            is_part
        });
        Ok(selected)
    }
}

struct Merger<'a> {
    job: &'a Job<'a>,
    reader: &'a Odb,
    walker: &'a mut DirWalker,
    selected: Selected,
}

impl Merger<'_> {
    /// Returns the changes of the named hunks only.
    fn limit_to_hunks(
        &mut self,
        named: &[(RelPath, Vec<u32>)],
        changed: &HashMap<RelPath, [Option<Leaf>; 2]>,
    ) -> Result<HashMap<RelPath, [Option<Leaf>; 2]>, Error> {
        let mut limited = HashMap::new();
        for (path, numbers) in named {
            self.job.cancel.check()?;
            let [base, theirs] = changed.get(path).copied().unwrap_or_default();
            let is_file = [base, theirs].iter().flatten().all(Leaf::is_file);
            let (new, old) = if is_file {
                (self.content(path, base)?, self.content(path, theirs)?)
            } else {
                Default::default()
            };
            let is_text = !is_binary(&new) && !is_binary(&old);
            let (new, old) = if is_text {
                (lines(&new), lines(&old))
            } else {
                Default::default()
            };
            let count = hunks(&old, &new).len();
            let exists = |number: &u32| (1..=count).contains(&(*number as usize));
            if let Some(number) = numbers.iter().find(|number| !exists(number)) {
                let hunks = if count == 1 { "hunk" } else { "hunks" };
                return Err(Error::new(
                    ErrorKind::InvalidParams,
                    format!(
                        "cannot restore hunk {number} of {path}: it has {count} {hunks}; nothing was changed"
                    ),
                ));
            }
            // An added or deleted file is one hunk.
            let part = match (base, theirs) {
                (Some(base), Some(_)) => {
                    let is_named =
                        |index| numbers.iter().any(|number| *number as usize == index + 1);
                    let text = revert_hunks(&old, &new, is_named);
                    Some(self.merged(base.mode, text))
                }
                _ => theirs,
            };
            limited.insert(path.clone(), [base, part]);
        }
        Ok(limited)
    }

    /// Returns what becomes of files that were renamed, and have changed since: they keep the current
    /// content under the old name.
    fn moved_files(
        &mut self,
        found: &Comparison,
        changed: &HashMap<RelPath, [Option<Leaf>; 2]>,
        denied: &mut DeniedPaths<'_>,
    ) -> Result<HashMap<RelPath, Option<Leaf>>, Error> {
        let mut changes: Vec<Difference> = changed
            .iter()
            .map(|(path, [base, theirs])| Difference {
                path: path.clone(),
                left: *theirs,
                right: *base,
            })
            .collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let mut moved = HashMap::new();
        for (new, old) in renames(&changes) {
            let (new, old) = (&changes[new], &changes[old]);
            let now = |path| {
                let at = found.leaves.binary_search_by(|one| one.path.cmp(path));
                at.ok().and_then(|at| found.leaves[at].left)
            };
            let Some(current) = now(&new.path).filter(Leaf::is_file) else {
                continue;
            };
            let is_free = matches!(self.walker.stat(&old.path), Ok(None));
            let is_changed = !is_same(Some(current), new.right);
            if !is_changed || !is_free || now(&old.path).is_some() {
                continue;
            }
            let versions = [Some(current), old.left];
            if [new, old]
                .iter()
                .any(|one| denied.denies_versions(self.reader, &one.path, false, versions))
            {
                continue;
            }
            let [base, theirs] = [new.right, old.left].map(|leaf| leaf.map(|leaf| leaf.mode));
            let mode = merged_side([Some(current.mode), base, theirs]).flatten();
            // The undo point, which has this content too, is not written yet.
            let content = self.content(&new.path, Some(current))?;
            let leaf = self.merged(mode.unwrap_or(current.mode), content);
            moved.insert(old.path.clone(), Some(leaf));
            moved.insert(new.path.clone(), None);
        }
        Ok(moved)
    }

    /// Merges one path, of which the current entry, the one after the changes and the one before
    /// them are given.
    fn resolve(
        &mut self,
        path: &RelPath,
        [now, base, theirs]: [Option<Leaf>; 3],
    ) -> Result<Resolution, Error> {
        if is_same(now, theirs) || is_same(base, theirs) {
            return Ok(Resolution::Same);
        }
        if is_same(now, base) {
            return Ok(Resolution::Changed(theirs));
        }
        let (Some(now), Some(base), Some(theirs)) = (now, base, theirs) else {
            return Ok(Resolution::Conflict(match (now, base) {
                (None, _) => "deleted later",
                (_, None) => "created again later",
                _ => "changed after it was created",
            }));
        };
        let modes = merged_side([now.mode, base.mode, theirs.mode]);
        let is_file = [now, base, theirs].iter().all(Leaf::is_file);
        let (Some(mode), true) = (modes, is_file) else {
            return Ok(Resolution::Conflict("changed later"));
        };
        let leaf = match merged_side([now.oid, base.oid, theirs.oid]) {
            Some(oid) => Leaf::stored(mode, oid),
            None => {
                let sides = [now, base, theirs];
                let texts = sides.map(|side| self.content(path, Some(side)));
                let [now, base, theirs] = texts;
                let (now, base, theirs) = (now?, base?, theirs?);
                if [&now, &base, &theirs].iter().any(|text| is_binary(text)) {
                    return Ok(Resolution::Conflict("a binary file that changed later"));
                }
                match merged_text(&now, &base, &theirs) {
                    Some(text) => self.merged(mode, text),
                    None => return Ok(Resolution::Conflict("the same lines changed later")),
                }
            }
        };
        Ok(if leaf.is_same(&now) {
            Resolution::Same
        } else {
            Resolution::Changed(Some(leaf))
        })
    }

    fn merged(&mut self, mode: Mode, text: Vec<u8>) -> Leaf {
        let oid = name_of(Kind::Blob, &text);
        self.selected.merged.insert(oid, text);
        Leaf::stored(mode, oid)
    }

    fn content(&mut self, path: &RelPath, leaf: Option<Leaf>) -> Result<Vec<u8>, Error> {
        let Some(leaf) = leaf else {
            return Ok(Vec::new());
        };
        if let Some(text) = self.selected.merged.get(&leaf.oid) {
            return Ok(text.clone());
        }
        leaf.content(self.reader, self.walker, path)
    }
}

fn is_same(one: Option<Leaf>, other: Option<Leaf>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(&other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Merges a value that is not merged line by line: now, after the changes, and before them.
fn merged_side<T: PartialEq>([now, base, theirs]: [T; 3]) -> Option<T> {
    if now == base {
        Some(theirs)
    } else if theirs == base || now == theirs {
        Some(now)
    } else {
        None
    }
}

/// Merges lines. `None` if both sides changed the same ones.
fn merged_text(now: &[u8], base: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    sightline_context::git::isolate();
    let mut sides = [(); 3].map(|()| git2::MergeFileInput::new());
    for (side, text) in sides.iter_mut().zip([base, now, theirs]) {
        side.content(text);
    }
    let merged = git2::merge_file(&sides[0], &sides[1], &sides[2], None).ok()?;
    merged.is_automergeable().then(|| merged.content().to_vec())
}
