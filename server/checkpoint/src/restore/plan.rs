//! The plan of a restore: its steps, and the conflicts that are left as they are.
//!
//! Only files in the current scan are replaced or deleted, because the undo point contains those.
//! Anything else that is in the way is reported as a conflict. A file is deleted only if it did not
//! exist when the checkpoint was created: a file that was ignored, denied or skipped at that time is
//! missing from its tree, see [`ExcludedThen`].

use std::collections::{HashMap, HashSet};

use sightline_base::{
    fs::dir::{Dir, DirWalker, FileType, is_absent},
    path::RelPath,
};

mod exclusions;
pub(super) mod part;
pub(super) mod protected_paths;
pub(super) mod repository_folders;
mod token;
pub(super) mod undo_scope;

use super::{
    super::{
        job::Job,
        metadata::{Checkpoint, excluded::ExcludedThen},
        store::{
            object::{Mode, Oid},
            odb::Odb,
        },
        tree_diff::{Comparison, DeniedPaths, Difference, Leaf, Tree, compare, find, is_within},
        worktree::scan::Scan,
    },
    types::{Action, Change, Conflict, ConflictCause, Preview, UnsavedTexts},
};
use crate::error::Error;
use exclusions::{lost_conflicts, require_held, unreadable_conflicts};
use part::{Reverted, Selected};
use protected_paths::{ProtectedPaths, Protection, denied_conflict, rule_files};
use repository_folders::RepositoryFolders;
use token::plan_token;
use undo_scope::{Later, UndoScope, folders_above};

/// Change of one path.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) path: RelPath,
    /// Entry in the workspace.
    pub(super) before: Option<Leaf>,
    /// Entry in the checkpoint.
    pub(super) after: Option<Leaf>,
}

impl Step {
    pub(super) fn action(&self) -> Action {
        match self.after {
            Some(_) => Action::Write,
            None => Action::Delete,
        }
    }

    /// Returns whether only the executable bit differs.
    pub(super) fn changes_only_mode(&self) -> bool {
        matches!((&self.before, &self.after), (Some(before), Some(after))
            if before.is_file() && after.is_file() && before.oid == after.oid)
    }

    fn reason(&self) -> &'static str {
        let kind = |mode| match mode {
            Mode::File | Mode::Executable => 0,
            Mode::Link => 1,
            Mode::Folder => 2,
        };
        match (&self.before, &self.after) {
            (None, Some(after)) if after.mode == Mode::Folder => "the folder is missing",
            (None, _) => "missing",
            (Some(before), None) if before.mode == Mode::Folder => {
                "the folder is not in the checkpoint"
            }
            (Some(_), None) => "not in the checkpoint",
            (Some(before), Some(after)) if before.oid == after.oid => "executable bit differs",
            (Some(before), Some(after)) if kind(before.mode) == kind(after.mode) => {
                "content differs"
            }
            (Some(_), Some(after)) => match after.mode {
                Mode::Link => "a link in the checkpoint",
                Mode::Folder => "a folder in the checkpoint",
                Mode::File | Mode::Executable => "a file in the checkpoint",
            },
        }
    }
}

/// Steps and conflicts of a restore.
pub(super) struct Plan {
    /// Sorted by path.
    pub(super) steps: Vec<Step>,
    /// Folders that are not in the checkpoint: removed if they are empty after the steps.
    pub(super) folders: Vec<RelPath>,
    /// Paths that differ and are left as they are. Denied paths are only counted.
    pub(super) conflicts: Vec<Conflict>,
    /// All paths that differ and are left as they are, including denied ones.
    pub(super) left_alone: HashSet<RelPath>,
    /// Files that do not differ, but have unsaved text in the editor that is replaced. Sorted by
    /// path.
    pub(super) texts_only: Vec<(RelPath, Leaf)>,
    /// What the restore of a part changes.
    pub(super) selected: Selected,
    /// Hash of the plan and of the unsaved documents it affects.
    pub(super) token: String,
}

impl Plan {
    /// Returns whether there is nothing to change, neither on the disk nor in an editor.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.folders.is_empty() && self.texts_only.is_empty()
    }

    pub(super) fn preview(self) -> Preview {
        let changes = self.steps.iter().map(|step| Change {
            path: step.path.clone(),
            action: step.action(),
            reason: step.reason().to_owned(),
        });
        Preview {
            changes: changes.collect(),
            conflicts: self.conflicts,
            token: self.token,
        }
    }
}

/// Documents with unsaved text.
#[derive(Clone, Copy)]
pub(super) struct UnsavedDocuments<'a> {
    pub(super) texts: &'a UnsavedTexts,
    /// Whether to replace the unsaved text, and paths that changed after the restore to undo.
    /// Otherwise they are left as they are.
    pub(super) force: bool,
}

impl UnsavedDocuments<'_> {
    /// Returns whether a file with this content replaces another text of the editor. An editor
    /// that has not yet read a file again since the last restore often has the same text.
    pub(super) fn is_replaced(&self, path: &RelPath, by: Option<Leaf>) -> bool {
        let content = by.filter(Leaf::is_file).map(|leaf| leaf.oid);
        let text = self.texts.get(path);
        text.is_some_and(|text| text.is_none() || *text != content)
    }
}

/// What a plan depends on besides the two trees.
pub(super) struct Circumstances<'a> {
    pub(super) unsaved: UnsavedDocuments<'a>,
    /// Data directory of the server, if it is below the root.
    pub(super) own_data: Option<&'a RelPath>,
    /// Limits an undo to what the restore changed.
    pub(super) undo_scope: Option<&'a UndoScope>,
    /// Limits a restore to a part.
    pub(super) reverted: Option<&'a Reverted<'a>>,
}

/// Plans how to change the workspace, as scanned in `now`, to the checkpoint `target`, for the
/// paths in `wanted`.
pub(super) fn plan(
    job: &Job<'_>,
    reader: &Odb,
    walker: &mut DirWalker,
    (now, target): (&Scan, &Checkpoint),
    wanted: &[RelPath],
    circumstances: &Circumstances<'_>,
) -> Result<Plan, Error> {
    let Circumstances {
        unsaved,
        own_data,
        undo_scope,
        reverted,
    } = *circumstances;
    let (left, right) = (Tree::Seen(now.tree.clone()), Tree::Stored(target.tree));
    let mut found = compare(reader, &left, &right, wanted, job.cancel)?;
    let later = undo_scope.map_or_else(Later::default, |scope| scope.limit(&mut found));
    let selected = match reverted {
        Some(part) => part.select(job, reader, walker, (&mut found, &right), wanted)?,
        None => Selected::default(),
    };
    let is_in_scope = |path: &RelPath| {
        undo_scope.is_none_or(|scope| scope.contains(path))
            && (reverted.is_none() || selected.covers(path))
    };
    let from_rules = rule_files(job, reader, target.tree);
    let mut planner = Planner {
        job,
        reader,
        target: target.tree,
        walker,
        now,
        deleted: HashSet::new(),
        inodes: HashSet::new(),
        folders_gone: found.folders_gone.iter().cloned().collect(),
        parents: HashMap::new(),
        own_data,
        rule_files: &from_rules,
        not_held: Vec::new(),
    };
    let mut exclusions = ExcludedThen::new(&target.metadata);
    planner.not_held = unreadable_conflicts(job, reader, (now, target), wanted, &mut exclusions)?;
    let lost = lost_conflicts(job, planner.walker, target, wanted);
    planner.not_held.extend(lost);
    planner.not_held.retain(|one| is_in_scope(&one.path));
    let mut forced = planner.decide(&found, &mut exclusions, &HashMap::new())?;
    selected.complete(&mut forced);
    let after = |path: &RelPath| {
        let at = forced.steps.binary_search_by(|step| step.path.cmp(path));
        at.ok().and_then(|at| forced.steps[at].after)
    };
    let is_kept = |path: &&RelPath| is_in_scope(path) && unsaved.is_replaced(path, after(path));
    let unsaved_in_scope: Vec<&RelPath> = unsaved.texts.keys().filter(is_kept).collect();
    let same = same_on_disk(job, reader, target, &found, wanted, &unsaved_in_scope)?;
    let mut kept: HashMap<&RelPath, (&str, ConflictCause)> = HashMap::new();
    for (path, how) in &later.changed {
        kept.insert(path, (how, ConflictCause::ChangedSince));
    }
    // A path can be both. Unsaved text is in no checkpoint, so it is the reason to name.
    for path in &unsaved_in_scope {
        kept.insert(path, (UNSAVED, ConflictCause::Unsaved));
    }
    let of_steps = forced.steps.iter().map(|step| &step.path);
    let mut affected: Vec<&RelPath> = of_steps.filter(|path| kept.contains_key(path)).collect();
    affected.extend(same.iter().map(|(path, _)| path));
    let token = plan_token(target.id, wanted, &forced, &affected);
    let mut decisions = if unsaved.force || kept.is_empty() {
        forced
    } else {
        let mut decisions = planner.decide(&found, &mut exclusions, &kept)?;
        selected.complete(&mut decisions);
        decisions
    };
    let texts_only = if unsaved.force {
        same
    } else {
        decisions.report_unsaved(same);
        Vec::new()
    };
    decisions.left_alone.extend(later.unrelated);
    let mut folders = removed_folders(&found, &decisions.left_alone);
    // Only a step can empty a folder.
    let changed = folders_above(decisions.steps.iter().map(|step| &step.path));
    folders.retain(|folder| changed.contains(folder));
    if undo_scope.is_none() && reverted.is_none() {
        let conflicts = decisions.conflicts.iter().map(|one| &one.path);
        let leaves = found.leaves.iter().map(|one| &one.path);
        let planned = conflicts.chain(leaves).collect::<Vec<_>>();
        require_held(job, reader, target, wanted, &planned, &mut exclusions)?;
    }
    Ok(Plan {
        folders,
        steps: decisions.steps,
        conflicts: decisions.conflicts,
        left_alone: decisions.left_alone,
        texts_only,
        selected,
        token,
    })
}

/// Returns the files with unsaved text in the editor that do not differ from the checkpoint on
/// disk.
fn same_on_disk(
    job: &Job<'_>,
    reader: &Odb,
    target: &Checkpoint,
    found: &Comparison,
    wanted: &[RelPath],
    unsaved: &[&RelPath],
) -> Result<Vec<(RelPath, Leaf)>, Error> {
    let mut denied = DeniedPaths::new(job);
    let mut same = Vec::new();
    for &path in unsaved {
        job.cancel.check()?;
        let is_wanted = wanted.is_empty() || wanted.iter().any(|above| is_within(path, above));
        let differs = found
            .leaves
            .binary_search_by(|difference| difference.path.cmp(path))
            .is_ok();
        if !is_wanted || differs {
            continue;
        }
        let leaf = find(reader, target.tree, path)?.filter(Leaf::is_file);
        let is_shown = !denied.denies_versions(reader, path, false, [None, leaf]);
        same.extend(leaf.filter(|_| is_shown).map(|leaf| (path.clone(), leaf)));
    }
    same.sort_by(|(a, _), (b, _)| a.cmp(b));
    same.dedup_by(|(a, _), (b, _)| a == b);
    Ok(same)
}

/// Returns the folders to remove. Folders that are empty now are not included, as they have
/// steps.
pub(super) fn removed_folders(found: &Comparison, left_alone: &HashSet<RelPath>) -> Vec<RelPath> {
    let empty: HashSet<&RelPath> = found
        .leaves
        .iter()
        .filter(|difference| difference.left.is_some())
        .map(|difference| &difference.path)
        .collect();
    found
        .folders_gone
        .iter()
        .filter(|folder| !empty.contains(folder) && !left_alone.contains(*folder))
        .cloned()
        .collect()
}

#[derive(Debug, Default)]
struct Decisions {
    steps: Vec<Step>,
    conflicts: Vec<Conflict>,
    left_alone: HashSet<RelPath>,
}

impl Decisions {
    fn leave(&mut self, path: &RelPath, reason: impl Into<String>) {
        self.left_alone.insert(path.clone());
        self.conflicts.push(Conflict::new(path.clone(), reason));
    }

    /// Leaves a path that is changed only if forced.
    fn keep(&mut self, path: &RelPath, (why, cause): (&str, ConflictCause)) {
        self.left_alone.insert(path.clone());
        self.conflicts.push(Conflict {
            cause,
            ..Conflict::new(path.clone(), why)
        });
    }

    /// Reports documents whose files do not differ, and whose unsaved text is left as it is.
    fn report_unsaved(&mut self, same: Vec<(RelPath, Leaf)>) {
        self.conflicts
            .extend(same.into_iter().map(|(path, _)| Conflict {
                cause: ConflictCause::Unsaved,
                ..Conflict::new(path, UNSAVED)
            }));
        self.sort_conflicts();
    }

    fn sort_conflicts(&mut self) {
        // The count of denied paths, which has no path, comes last.
        self.conflicts
            .sort_by(|a, b| (a.path.is_root(), &a.path).cmp(&(b.path.is_root(), &b.path)));
    }
}

/// Why an open document and its file are left as they are.
const UNSAVED: &str = "unsaved text in the editor";

struct Planner<'a> {
    job: &'a Job<'a>,
    reader: &'a Odb,
    /// Tree of the checkpoint.
    target: Oid,
    walker: &'a mut DirWalker,
    now: &'a Scan,
    /// Files, links and empty folders that are deleted.
    deleted: HashSet<RelPath>,
    /// Inode numbers of those.
    inodes: HashSet<u64>,
    folders_gone: HashSet<RelPath>,
    /// Cache of [`Planner::parent_obstacle`].
    parents: HashMap<RelPath, Option<String>>,
    own_data: Option<&'a RelPath>,
    /// Files that contain access rules.
    rule_files: &'a [RelPath],
    /// Conflicts for files that the checkpoint does not hold: unreadable now, or missing.
    not_held: Vec<Conflict>,
}

impl Planner<'_> {
    fn decide(
        &mut self,
        found: &Comparison,
        exclusions: &mut ExcludedThen<'_>,
        kept: &HashMap<&RelPath, (&str, ConflictCause)>,
    ) -> Result<Decisions, Error> {
        let mut decisions = Decisions::default();
        let mut protected = ProtectedPaths {
            reader: self.reader,
            denied: DeniedPaths::new(self.job),
            own_data: self.own_data,
            rule_files: self.rule_files,
            repositories: RepositoryFolders::new(
                self.job,
                self.reader,
                self.target,
                self.walker,
                &self.now.repositories,
            ),
        };
        let mut denied_count = 0_u64;
        self.deleted.clear();
        self.inodes.clear();
        self.parents.clear();
        // Deletions are decided first: they make room for the writes.
        let mut writes = Vec::new();
        for difference in &found.leaves {
            self.job.cancel.check()?;
            let Difference { path, left, right } = difference;
            let is_dir = involves_empty_folder(difference);
            if let Some(protection) = protected.check(path, is_dir, [*left, *right]) {
                decisions.left_alone.insert(path.clone());
                match protection {
                    Protection::Denied => denied_count += 1,
                    Protection::Reported(conflict) => decisions.conflicts.push(conflict),
                }
                continue;
            }
            // A file that is ignored or skipped now is missing in the scan, but not deleted.
            let may_be_hidden = left.is_none() && right.is_some();
            if let Some(kept) = kept.get(path).filter(|_| !may_be_hidden) {
                decisions.keep(path, *kept);
            } else if right.is_some() {
                writes.push(difference);
            } else if let Some(why) = exclusions.reason(path) {
                decisions.leave(path, why);
            } else if is_dir && !self.is_empty(path) {
                decisions.leave(
                    path,
                    "the folder contains files that are in no checkpoint; left as it is",
                );
            } else {
                self.inodes.extend(left.iter().filter_map(Leaf::inode));
                self.deleted.insert(path.clone());
            }
        }
        let deletes: Vec<&Difference> = found
            .leaves
            .iter()
            .filter(|difference| {
                difference.right.is_none() && self.deleted.contains(&difference.path)
            })
            .collect();
        let mut steps: Vec<&Difference> = Vec::with_capacity(found.leaves.len());
        for difference in writes {
            self.job.cancel.check()?;
            let Difference { path, left, .. } = difference;
            match (self.obstacle(path, left.as_ref()), kept.get(path)) {
                (Some(why), _) => decisions.leave(path, why),
                (None, Some(kept)) => decisions.keep(path, *kept),
                (None, None) => steps.push(difference),
            }
        }
        steps.extend(deletes);
        steps.sort_by(|a, b| a.path.cmp(&b.path));
        decisions.steps = steps
            .into_iter()
            .map(|difference| Step {
                path: difference.path.clone(),
                before: difference.left,
                after: difference.right,
            })
            .collect();
        for Conflict { path, reason, .. } in &self.not_held {
            decisions.leave(path, reason);
        }
        decisions.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        decisions.conflicts.dedup();
        decisions.conflicts.extend(denied_conflict(denied_count));
        Ok(decisions)
    }

    /// Returns why `path` cannot be written, or `None`. `before` is its entry in the current scan.
    fn obstacle(&mut self, path: &RelPath, before: Option<&Leaf>) -> Option<String> {
        let parent = path.parent()?;
        if let Some(why) = self.parent_obstacle(&parent) {
            return Some(why);
        }
        if let Some(leaf) = before {
            let has_more = leaf.mode == Mode::Folder && !self.is_empty(path);
            return has_more.then(|| {
                "the folder at this path contains files that are in no checkpoint; left as it is".to_owned()
            });
        }
        let found = match self.walker.stat(path) {
            Ok(None) => return None,
            Ok(Some(found)) => found,
            Err(error) => return Some(format!("cannot inspect it: {error}; left as it is")),
        };
        if found.kind == FileType::Directory {
            // Not empty: the scan would have captured an empty folder.
            let is_removed = self.folders_gone.contains(path) && self.will_be_empty(path);
            return (!is_removed).then(|| {
                "the folder at this path contains files that are in no checkpoint; left as it is".to_owned()
            });
        }
        // On a case-insensitive file system, this can be the file that is deleted under another
        // spelling of the name.
        let name = path.to_wire().0.to_lowercase();
        let is_deleted = self.inodes.contains(&found.stamp.inode)
            && self.deleted.iter().any(|deleted| {
                deleted.to_wire().0.to_lowercase() == name
                    && matches!(self.walker.stat(deleted), Ok(Some(other)) if other == found)
            });
        if is_deleted {
            return None;
        }
        let (text, encoded) = path.to_wire();
        let skipped = self.now.skipped.iter();
        let why = skipped
            .into_iter()
            .find(|skipped| skipped.path == text && skipped.encoded == encoded)
            .map_or_else(
                || self.now.git_index.why_ignored(path),
                |skipped| skipped.reason.as_str(),
            );
        Some(format!(
            "the file at this path is in no checkpoint ({why}); left as it is"
        ))
    }

    /// Returns why nothing can be written into this folder, or `None`.
    fn parent_obstacle(&mut self, folder: &RelPath) -> Option<String> {
        let mut unknown = Vec::new();
        let mut place = Some(folder.clone());
        let mut known = None;
        while let Some(at) = place.filter(|at| !at.is_root()) {
            if let Some(obstacle) = self.parents.get(&at) {
                known.clone_from(obstacle);
                break;
            }
            place = at.parent();
            unknown.push(at);
        }
        // From the top, as an obstacle applies to everything below it.
        for at in unknown.into_iter().rev() {
            if known.is_none() && !self.deleted.contains(&at) {
                known = self.folder_obstacle(&at);
            }
            self.parents.insert(at, known.clone());
        }
        known
    }

    /// Checks a single folder for [`Self::parent_obstacle`].
    fn folder_obstacle(&mut self, folder: &RelPath) -> Option<String> {
        // Opening it follows no links.
        if self.walker.open_dir(folder).is_ok() {
            return None;
        }
        match self.walker.stat(folder) {
            Ok(Some(found)) if found.kind != FileType::Directory => {
                Some(format!("{folder} is not a folder; left as it is"))
            }
            Ok(_) => None,
            Err(error) => Some(format!("cannot inspect {folder}: {error}; left as it is")),
        }
    }

    fn is_empty(&mut self, folder: &RelPath) -> bool {
        match self.walker.open_dir(folder).and_then(Dir::names) {
            Ok(names) => names.is_empty(),
            Err(error) => is_absent(&error),
        }
    }

    /// Returns whether the folder will be empty after the deletions.
    fn will_be_empty(&mut self, folder: &RelPath) -> bool {
        let mut todo = vec![folder.clone()];
        while let Some(folder) = todo.pop() {
            let Ok(names) = self.walker.open_dir(&folder).and_then(Dir::names) else {
                return false;
            };
            for name in names {
                let path = folder.child(&name);
                if self.deleted.contains(&path) {
                    continue;
                }
                if !self.folders_gone.contains(&path) {
                    return false;
                }
                todo.push(path);
            }
        }
        true
    }
}

/// Returns whether one side is an empty folder.
pub(super) fn involves_empty_folder(difference: &Difference) -> bool {
    let sides = [&difference.left, &difference.right];
    let mut leaves = sides.into_iter().flatten();
    leaves.any(|leaf| leaf.mode == Mode::Folder)
}
