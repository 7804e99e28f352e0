//! What a restore would do, decided before anything is done.
//!
//! Only what the scan of this moment has captured is ever replaced or deleted:
//! the undo point holds that. Whatever else stands in the way stays, and is
//! named. Deleting asks the rules that were in force for the checkpoint too: what
//! it left alone then is not gone because its tree lacks it.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
};

use sha2::{Digest, Sha256};

use super::{
    super::{
        Checkpoint, Job,
        store::{
            object::{Mode, Oid},
            object_reader::ObjectReader,
        },
        tree_diff::{Comparison, DeniedPaths, Difference, Leaf, Tree, compare, find, is_within},
        worktree::{capture_filter::HistoricRules, reserved_names, scan::Scan},
    },
    Action, Change, Conflict, Preview,
    exclusions::{Then, unread},
    protected_paths::{Guard, Off, denied_paths, rule_files},
};
use crate::{
    error::Error,
    fs::dir::{Dir, Kind, Walker, is_absent},
    path::RelPath,
};

/// One path to be changed.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) path: RelPath,
    /// What stands there now.
    pub(super) before: Option<Leaf>,
    /// What will.
    pub(super) after: Option<Leaf>,
}

impl Step {
    pub(super) fn action(&self) -> Action {
        match self.after {
            Some(_) => Action::Write,
            None => Action::Delete,
        }
    }

    /// Why, for people.
    fn reason(&self) -> &'static str {
        let kind = |mode| match mode {
            Mode::File | Mode::Executable => 0,
            Mode::Link => 1,
            Mode::Folder => 2,
        };
        match (&self.before, &self.after) {
            (None, Some(after)) if after.mode == Mode::Folder => "the folder is gone",
            (None, _) => "it is gone",
            (Some(before), None) if before.mode == Mode::Folder => {
                "the checkpoint does not have this folder"
            }
            (Some(_), None) => "the checkpoint does not have it",
            (Some(before), Some(after)) if before.oid == after.oid => {
                "its permission to be executed differs"
            }
            (Some(before), Some(after)) if kind(before.mode) == kind(after.mode) => {
                "its content differs"
            }
            (Some(_), Some(after)) => match after.mode {
                Mode::Link => "it was a link",
                Mode::Folder => "it was a folder",
                Mode::File | Mode::Executable => "it was a file",
            },
        }
    }
}

/// What is done, and what is not.
#[derive(Debug)]
pub(super) struct Plan {
    /// By path.
    pub(super) steps: Vec<Step>,
    /// Folders the checkpoint does not have: removed once they are empty.
    pub(super) folders: Vec<RelPath>,
    /// Paths that differ and stay; what is denied is only counted.
    pub(super) conflicts: Vec<Conflict>,
    /// Every path that differs and stays.
    pub(super) left_alone: HashSet<RelPath>,
    /// Files that are as the checkpoint has them, while the editor holds other
    /// text that is to be given up; by path.
    pub(super) texts_only: Vec<(RelPath, Leaf)>,
    /// Names it, and what unsaved text keeps back unless it is forced.
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
            changed_since: false,
        });
        Preview {
            changes: changes.collect(),
            conflicts: self.conflicts,
            token: self.token,
        }
    }
}

/// Documents with unsaved text, and what becomes of it.
#[derive(Clone, Copy)]
pub(super) struct Unsaved<'a> {
    pub(super) paths: &'a [RelPath],
    /// It is given up; else their files stay.
    pub(super) force: bool,
}

/// Plans to bring what `now` saw to `target`, below `wanted`. `kept` is what
/// `target` holds.
pub(super) fn plan(
    job: &Job<'_>,
    reader: &ObjectReader,
    walker: &mut Walker,
    (now, target, kept): (&Scan, &Checkpoint, Tree),
    wanted: &[RelPath],
    (unsaved, own_data): (Unsaved<'_>, Option<&RelPath>),
) -> Result<Plan, Error> {
    let left = Tree::Seen(now.tree.clone());
    let found = compare(reader, &left, &kept, wanted, job.cancel)?;
    let from_rules = rule_files(job, reader, target.tree);
    let mut planner = Planner {
        job,
        walker,
        now,
        leaving: HashSet::new(),
        inodes: HashSet::new(),
        folders_gone: found.folders_gone.iter().cloned().collect(),
        parents: HashMap::new(),
        own_data,
        rule_files: &from_rules,
        unread: Vec::new(),
    };
    let gitignore = |path: &RelPath| match find(reader, target.tree, path)? {
        Some(leaf) if leaf.is_file() => reader.blob(leaf.oid).map(Some),
        _ => Ok(None),
    };
    let rules = HistoricRules::new(&target.metadata.rules, &now.rules, &gitignore)?;
    let mut then = Then::new(&target.metadata.skipped, rules);
    planner.unread = unread(job, reader, (now, target), wanted, &then)?;
    let without = planner.judge(&found, &mut then, &[])?;
    let same = same_on_disk(job, reader, target, &found, wanted, unsaved.paths)?;
    let names: HashSet<&RelPath> = unsaved.paths.iter().collect();
    let steps = without.steps.iter().map(|step| &step.path);
    let mut held: Vec<&RelPath> = steps.filter(|path| names.contains(path)).collect();
    held.extend(same.iter().map(|(path, _)| path));
    let token = token(target.id, wanted, &without, &held);
    let mut judged = match unsaved.force || unsaved.paths.is_empty() {
        true => without,
        false => planner.judge(&found, &mut then, unsaved.paths)?,
    };
    let texts_only = match unsaved.force {
        true => same,
        false => {
            judged.keep_texts(same);
            Vec::new()
        }
    };
    Ok(Plan {
        folders: folders(&found, &judged.left_alone),
        steps: judged.steps,
        conflicts: judged.conflicts,
        left_alone: judged.left_alone,
        texts_only,
        token,
    })
}

/// Files the checkpoint has just as they are on the disk, of which the editor
/// holds other text.
fn same_on_disk(
    job: &Job<'_>,
    reader: &ObjectReader,
    target: &Checkpoint,
    found: &Comparison,
    wanted: &[RelPath],
    unsaved: &[RelPath],
) -> Result<Vec<(RelPath, Leaf)>, Error> {
    let mut denied = DeniedPaths::new(job);
    let mut same = Vec::new();
    for path in unsaved {
        job.cancel.check()?;
        let is_wanted = wanted.is_empty() || wanted.iter().any(|above| is_within(path, above));
        let differs = found
            .leaves
            .binary_search_by(|difference| difference.path.cmp(path))
            .is_ok();
        if !is_wanted || differs || denied.denies(path, false) {
            continue;
        }
        let leaf = find(reader, target.tree, path)?;
        same.extend(leaf.filter(Leaf::is_file).map(|leaf| (path.clone(), leaf)));
    }
    same.sort_by(|(a, _), (b, _)| a.cmp(b));
    same.dedup_by(|(a, _), (b, _)| a == b);
    Ok(same)
}

/// The folders that go, without those that were empty: these have steps of
/// their own.
fn folders(found: &Comparison, left_alone: &HashSet<RelPath>) -> Vec<RelPath> {
    let leaves = found.leaves.iter();
    let empty: HashSet<&RelPath> = leaves
        .filter(|difference| difference.left.is_some())
        .map(|difference| &difference.path)
        .collect();
    let gone = found.folders_gone.iter();
    gone.filter(|folder| !empty.contains(folder) && !left_alone.contains(*folder))
        .cloned()
        .collect()
}

/// Any other outcome has another token.
fn token(target: Oid, wanted: &[RelPath], judged: &Judged, held: &[&RelPath]) -> String {
    let mut hash = Sha256::new();
    let mut piece = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let path_bytes = |path: &RelPath| path.as_path().as_os_str().as_encoded_bytes().to_vec();
    piece(target.as_bytes());
    piece(&(wanted.len() as u64).to_le_bytes());
    for path in wanted {
        piece(&path_bytes(path));
    }
    for step in &judged.steps {
        piece(&path_bytes(&step.path));
        for leaf in [&step.before, &step.after] {
            match leaf {
                Some(leaf) => {
                    piece(leaf.mode.octal().as_bytes());
                    piece(leaf.oid.as_bytes());
                }
                None => piece(b""),
            }
        }
    }
    piece(b"left alone");
    for conflict in &judged.conflicts {
        piece(&path_bytes(&conflict.path));
        piece(conflict.reason.as_bytes());
    }
    piece(b"unsaved");
    for path in held {
        piece(&path_bytes(path));
    }
    let digest = hash.finalize();
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[derive(Debug, Default)]
struct Judged {
    steps: Vec<Step>,
    conflicts: Vec<Conflict>,
    left_alone: HashSet<RelPath>,
}

impl Judged {
    fn leave(&mut self, path: &RelPath, reason: impl Into<String>) {
        self.left_alone.insert(path.clone());
        self.conflicts.push(Conflict {
            path: path.clone(),
            reason: reason.into(),
        });
    }

    /// Their files need no change; the text in the editor stays.
    fn keep_texts(&mut self, same: Vec<(RelPath, Leaf)>) {
        self.conflicts
            .extend(same.into_iter().map(|(path, _)| Conflict {
                path,
                reason: UNSAVED.to_owned(),
            }));
        // What has no name comes last.
        self.conflicts
            .sort_by(|a, b| (a.path.is_root(), &a.path).cmp(&(b.path.is_root(), &b.path)));
    }
}

/// Why the text of an open document, and its file, stay.
const UNSAVED: &str = "it has unsaved text in the editor";

struct Planner<'a> {
    job: &'a Job<'a>,
    walker: &'a mut Walker,
    now: &'a Scan,
    /// Files and links that go, or make way.
    leaving: HashSet<RelPath>,
    /// The numbers of those.
    inodes: HashSet<u64>,
    folders_gone: HashSet<RelPath>,
    /// What keeps anything from being written into a folder.
    parents: HashMap<RelPath, Option<String>>,
    own_data: Option<&'a RelPath>,
    /// Files that access rules come from.
    rule_files: &'a [RelPath],
    /// What stays because nobody knows what it holds.
    unread: Vec<Conflict>,
}

impl Planner<'_> {
    fn judge(
        &mut self,
        found: &Comparison,
        then: &mut Then<'_>,
        unsaved: &[RelPath],
    ) -> Result<Judged, Error> {
        let mut judged = Judged::default();
        let mut guard = Guard {
            denied: DeniedPaths::new(self.job),
            own_data: self.own_data,
            rule_files: self.rule_files,
        };
        let mut hidden = 0_u64;
        let unsaved: HashSet<&RelPath> = unsaved.iter().collect();
        self.leaving.clear();
        self.inodes.clear();
        self.parents.clear();
        // What goes is decided first: whether anything can take its place
        // depends on it.
        let mut writes = Vec::new();
        for difference in &found.leaves {
            self.job.cancel.check()?;
            let Difference { path, left, right } = difference;
            let is_dir = has_folder(difference);
            match guard.keeps_off(path, is_dir) {
                Some(Off::Denied) => {
                    judged.left_alone.insert(path.clone());
                    hidden += 1;
                    continue;
                }
                Some(Off::Named(why)) => {
                    judged.leave(path, why);
                    continue;
                }
                None => {}
            }
            if unsaved.contains(path) {
                judged.leave(path, UNSAVED);
            } else if right.is_some() {
                writes.push(difference);
            } else if let Some(why) = then.left_alone(path, is_dir)? {
                judged.leave(path, why);
            } else if is_dir && !self.is_empty(path) {
                judged.leave(path, "the folder holds files no checkpoint has");
            } else {
                self.inodes.extend(left.iter().filter_map(Leaf::inode));
                self.leaving.insert(path.clone());
            }
        }
        let deletes = found.leaves.iter().filter(|difference| {
            difference.right.is_none() && self.leaving.contains(&difference.path)
        });
        let deletes: Vec<&Difference> = deletes.collect();
        let mut steps: Vec<&Difference> = Vec::with_capacity(found.leaves.len());
        for difference in writes {
            self.job.cancel.check()?;
            let Difference { path, left, .. } = difference;
            match self.obstacle(path, left.as_ref()) {
                Some(why) => judged.leave(path, why),
                None => steps.push(difference),
            }
        }
        steps.extend(deletes);
        steps.sort_by(|a, b| a.path.cmp(&b.path));
        judged.steps = steps
            .into_iter()
            .map(|difference| Step {
                path: difference.path.clone(),
                before: difference.left,
                after: difference.right,
            })
            .collect();
        for Conflict { path, reason } in &self.unread {
            judged.leave(path, reason);
        }
        judged.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        judged.conflicts.extend(denied_paths(hidden));
        Ok(judged)
    }

    /// What keeps `path` from being written; `before` is captured now.
    fn obstacle(&mut self, path: &RelPath, before: Option<&Leaf>) -> Option<String> {
        let parent = path.parent()?;
        if let Some(why) = self.parent_obstacle(&parent) {
            return Some(why);
        }
        if let Some(leaf) = before {
            let has_more = leaf.mode == Mode::Folder && !self.is_empty(path);
            return has_more.then(|| "the folder there holds files no checkpoint has".to_owned());
        }
        let found = match self.walker.look(path) {
            Ok(None) => return None,
            Ok(Some(found)) => found,
            Err(error) => return Some(format!("it can't be looked at: {error}")),
        };
        if found.kind == Kind::Folder {
            // One in the way of a file; an empty one would have been captured.
            let goes = self.folders_gone.contains(path) && self.will_be_empty(path);
            return (!goes).then(|| "the folder there holds files no checkpoint has".to_owned());
        }
        // Only the case of the name changes, where that makes no difference.
        let name = path.to_wire().0.to_lowercase();
        let is_leaving = self.inodes.contains(&found.stamp.inode)
            && self.leaving.iter().any(|leaving| {
                leaving.to_wire().0.to_lowercase() == name
                    && matches!(self.walker.look(leaving), Ok(Some(other)) if other == found)
            });
        if is_leaving {
            return None;
        }
        let (text, encoded) = path.to_wire();
        let skipped = self.now.skipped.iter();
        let why = skipped
            .into_iter()
            .find(|skipped| skipped.path == text && skipped.encoded == encoded)
            .map_or("it is ignored", |skipped| skipped.reason.as_str());
        Some(format!(
            "what is there now is in no checkpoint ({why}), so it is kept"
        ))
    }

    /// What keeps anything from being written into this folder.
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
        // From the top: what is in the way above is in the way below.
        for at in unknown.into_iter().rev() {
            if known.is_none() && !self.leaving.contains(&at) {
                known = self.own_obstacle(&at);
            }
            self.parents.insert(at, known.clone());
        }
        known
    }

    /// As [`Self::parent_obstacle`], as far as it is about this folder itself.
    fn own_obstacle(&mut self, folder: &RelPath) -> Option<String> {
        // What can be entered is a folder, and no link leads there.
        if let Ok(dir) = self.walker.folder(folder) {
            return is_git_directory(dir)
                .then(|| format!("{folder} is a git repository's own data"));
        }
        match self.walker.look(folder) {
            Ok(Some(found)) if found.kind != Kind::Folder => {
                Some(format!("{folder} is no folder and is left alone"))
            }
            Ok(_) => None,
            Err(error) => Some(format!("{folder} can't be looked at: {error}")),
        }
    }

    fn is_empty(&mut self, folder: &RelPath) -> bool {
        match self.walker.folder(folder).and_then(Dir::names) {
            Ok(names) => names.is_empty(),
            Err(error) => is_absent(&error),
        }
    }

    /// Once everything that goes is gone?
    fn will_be_empty(&mut self, folder: &RelPath) -> bool {
        let mut todo = vec![folder.clone()];
        while let Some(folder) = todo.pop() {
            let Ok(names) = self.walker.folder(&folder).and_then(Dir::names) else {
                return false;
            };
            for name in names {
                let path = folder.child(&name);
                if self.leaving.contains(&path) {
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

/// One under another name than `.git`.
fn is_git_directory(dir: &Dir) -> bool {
    let mut names = reserved_names::GIT_DIRECTORY_ENTRIES.iter();
    names.all(|name| matches!(dir.look(OsStr::new(name)), Ok(Some(_))))
}

/// Is one side a folder with nothing in it?
fn has_folder(difference: &Difference) -> bool {
    let sides = [&difference.left, &difference.right];
    let mut leaves = sides.into_iter().flatten();
    leaves.any(|leaf| leaf.mode == Mode::Folder)
}

/// What an interrupted restore was about, as far as it may go on.
#[derive(Debug, Default)]
pub(super) struct Between {
    pub(super) steps: Vec<Step>,
    /// Folders that go once they are empty.
    pub(super) folders: Vec<RelPath>,
    /// Paths that are not touched whatever the trees have there; what is denied
    /// is only counted.
    pub(super) kept: Vec<Conflict>,
}

/// The steps from one stored tree to another, without those left alone, judged
/// as of now: the rules may be others than when the restore began, and the trees
/// not what this server stored.
pub(super) fn steps_between(
    job: &Job<'_>,
    reader: &ObjectReader,
    (from, to): (Oid, Oid),
    wanted: &[RelPath],
    (left_alone, own_data): (&HashSet<RelPath>, Option<&RelPath>),
) -> Result<Between, Error> {
    let (left, right) = (Tree::Stored(from), Tree::Stored(to));
    let found = compare(reader, &left, &right, wanted, job.cancel)?;
    let mut guard = Guard {
        denied: DeniedPaths::new(job),
        own_data,
        rule_files: &rule_files(job, reader, to),
    };
    let mut between = Between {
        folders: folders(&found, left_alone),
        ..Between::default()
    };
    between
        .folders
        .retain(|folder| guard.keeps_off(folder, true).is_none());
    let mut hidden = 0_u64;
    for difference in found.leaves {
        job.cancel.check()?;
        if left_alone.contains(&difference.path) {
            continue;
        }
        match guard.keeps_off(&difference.path, has_folder(&difference)) {
            Some(Off::Denied) => hidden += 1,
            Some(Off::Named(why)) => between.kept.push(Conflict {
                path: difference.path,
                reason: why.to_owned(),
            }),
            None => between.steps.push(Step {
                path: difference.path,
                before: difference.left,
                after: difference.right,
            }),
        }
    }
    between.kept.extend(denied_paths(hidden));
    Ok(between)
}
