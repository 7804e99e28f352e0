//! Compares two checkpoints, or a checkpoint and the work tree.
//!
//! Only covers files and links, as git does. Paths that the current access rules deny are left out,
//! even if they were captured. They do not count as the old name of a renamed file either.

mod file_diff;
pub(crate) mod lines;
mod patch;
pub(crate) mod renames;
mod uncaptured;

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rayon::prelude::*;
use sightline_base::{fs::dir::DirWalker, path::RelPath, thread_pool};
use sightline_protocol::error::ErrorKind;

use file_diff::hunk;
pub use file_diff::{DiffOptions, FileDiff, Status};
pub use lines::is_binary;
pub use patch::patch;

use super::{
    checkpoints::Checkpoints,
    job::{Job, Progress},
    store::{
        object::{Mode, Oid},
        odb::Odb,
        repository::Repository,
    },
    tree_diff::{DeniedPaths, Difference, Leaf, Side, Tree, shown_differences},
};
use crate::error::Error;

use uncaptured::Lacking;

/// How often the work tree is scanned again when files change during the comparison.
const ATTEMPTS: usize = 3;
/// Files per parallel work item.
const CHUNK: usize = 16;

impl Checkpoints {
    /// Compares two sides without changing the workspace or the store. Leaves out denied paths.
    /// Returns the files sorted by path.
    ///
    /// # Errors
    /// `notFound` for an unknown checkpoint; `accessDenied` while the access rules cannot be used;
    /// `conflict` if files keep changing during the comparison; `cancelled`; `storage`.
    pub fn diff(
        &self,
        job: &Job<'_>,
        from: &Side,
        to: &Side,
        options: &DiffOptions,
    ) -> Result<Vec<FileDiff>, Error> {
        if from == to && *from == Side::WorkTree {
            return Ok(Vec::new());
        }
        job.require_rules()?;
        let sides = [from, to].into_iter();
        let ids: Vec<Oid> = sides.filter_map(Side::checkpoint).collect();
        if ids.len() < 2 {
            // A partly restored work tree is not a useful side.
            self.complete_interrupted_first(job)?;
        }
        let compare = || {
            let mut last = None;
            for _ in 0..ATTEMPTS {
                let trees = (self.tree(job, from)?, self.tree(job, to)?);
                let repository = self.existing_repository()?;
                match self.diff_trees(job, &repository, &trees, options) {
                    Err(error) if error.kind() == ErrorKind::Conflict => last = Some(error),
                    done => return done,
                }
            }
            Err(last.unwrap_or_else(Error::cancelled))
        };
        self.unless_pruned(&ids, compare())
    }

    /// Returns the tree of a side, and what the tree lacks.
    fn tree(&self, job: &Job<'_>, side: &Side) -> Result<(Tree, Lacking), Error> {
        Ok(match side {
            Side::Checkpoint(id) => {
                let checkpoint = self.get(*id)?;
                (
                    Tree::Stored(checkpoint.tree),
                    Lacking::Checkpoint(checkpoint),
                )
            }
            Side::WorkTree => {
                let scan = self.scan_worktree(job)?;
                (
                    Tree::Seen(Arc::clone(&scan.tree)),
                    Lacking::WorkTree(scan.skipped),
                )
            }
        })
    }

    fn diff_trees(
        &self,
        job: &Job<'_>,
        repository: &Repository,
        ((from, from_lacks), (to, to_lacks)): &((Tree, Lacking), (Tree, Lacking)),
        options: &DiffOptions,
    ) -> Result<Vec<FileDiff>, Error> {
        let reader = repository.odb();
        let mut differences = shown_differences(job, &reader, (from, to), &options.paths)?;
        let texts = SideContents::new(self, repository)?;
        let lacking = (from_lacks, to_lacks);
        let walker = &texts.walker;
        let mut uncaptured =
            uncaptured::take(&mut differences, lacking, &mut walker.borrow_mut(), job)?;
        let pairs = paired(&differences, &renames::renames(&differences));
        let wanted = self.wanted_contents(&texts, &pairs, options)?;
        let done = AtomicU64::new(0);
        thread_pool::start();
        let compared: Result<Vec<Vec<FileDiff>>, Error> = pairs
            .par_chunks(CHUNK)
            .zip(wanted.par_chunks(CHUNK))
            .map(|(pairs, wanted)| {
                let texts = SideContents::new(self, repository)?;
                let compare = |(pair, omitted): (&FilePair<'_>, &Option<String>)| {
                    job.cancel.check()?;
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    (job.progress)(Progress {
                        stage: "comparing",
                        done,
                        total: None,
                    });
                    pair.compare(&texts, options.contents, omitted.as_deref(), job)
                };
                pairs.iter().zip(wanted).map(compare).collect()
            })
            .collect();
        let mut files = compared?.concat();
        files.append(&mut uncaptured);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Returns for each pair why its requested contents are omitted.
    fn wanted_contents(
        &self,
        texts: &SideContents,
        pairs: &[FilePair<'_>],
        options: &DiffOptions,
    ) -> Result<Vec<Option<String>>, Error> {
        if !options.contents {
            return Ok(vec![None; pairs.len()]);
        }
        let mut room = options.max_total_bytes;
        let mut all = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let length = |of: Option<ContentSide<'_>>| of.map_or(Ok(0), |of| texts.len(of));
            let (old, new) = (length(pair.old_side())?, length(pair.new_side())?);
            let both = old.saturating_add(new);
            all.push(if old.max(new) > options.max_file_bytes {
                Some(format!(
                    "{} bytes, above the limit for one file",
                    old.max(new)
                ))
            } else if both > room {
                Some("the limit for the total size of contents is reached".to_owned())
            } else {
                room -= both;
                None
            });
        }
        Ok(all)
    }
}

/// The path and the entry of one side of a difference.
type ContentSide<'a> = (&'a RelPath, Leaf);

/// Old and new side of a file.
struct FilePair<'a> {
    /// The new side, or the only one.
    at: &'a Difference,
    /// The old side of a renamed file.
    from: Option<&'a Difference>,
}

/// Combines the two sides of renamed files. Sorted by path.
fn paired<'a>(differences: &'a [Difference], pairs: &HashMap<usize, usize>) -> Vec<FilePair<'a>> {
    let moved: HashSet<&usize> = pairs.values().collect();
    let all = differences.iter().enumerate();
    all.filter(|(index, _)| !moved.contains(index))
        .map(|(index, at)| FilePair {
            at,
            from: pairs.get(&index).map(|old| &differences[*old]),
        })
        .collect()
}

impl<'a> FilePair<'a> {
    fn old_side(&self) -> Option<ContentSide<'a>> {
        let from = self.from.unwrap_or(self.at);
        from.left.map(|leaf| (&from.path, leaf))
    }

    fn new_side(&self) -> Option<ContentSide<'a>> {
        self.at.right.map(|leaf| (&self.at.path, leaf))
    }

    fn compare(
        &self,
        texts: &SideContents,
        contents: bool,
        omitted: Option<&str>,
        job: &Job<'_>,
    ) -> Result<FileDiff, Error> {
        let left = self.from.unwrap_or(self.at).left;
        let right = self.at.right;
        let is_link = |leaf: &Leaf| leaf.mode == Mode::Link;
        let status = match (&left, &right) {
            (None, _) => Status::Added,
            (_, None) => Status::Deleted,
            _ if self.from.is_some() => Status::Renamed,
            (Some(left), Some(right)) if is_link(left) != is_link(right) => Status::TypeChanged,
            _ => Status::Modified,
        };
        let is_same = left.map(|leaf| leaf.oid) == right.map(|leaf| leaf.oid);
        let read = |of: Option<ContentSide<'_>>| of.map_or(Ok(Vec::new()), |of| texts.read(of));
        let (before, after) = match is_same {
            // Only read to be included, and to detect binary content.
            true => {
                let content = read(self.new_side())?;
                (content.clone(), content)
            }
            false => (read(self.old_side())?, read(self.new_side())?),
        };
        let binary = lines::is_binary(&before) || lines::is_binary(&after);
        let (additions, deletions) = match (binary, status) {
            (true, _) => (0, 0),
            // git counts a deleted and an added file.
            (_, Status::TypeChanged) => (
                lines::lines(&after).len() as u64,
                lines::lines(&before).len() as u64,
            ),
            _ => lines::count(&before, &after),
        };
        let mut denied = DeniedPaths::new(job);
        let mut leads_to_denied = |path: &RelPath, leaf: &Option<Leaf>, target: &[u8]| {
            leaf.as_ref().is_some_and(is_link) && denied.denies_target(path, target)
        };
        let old_path = &self.from.unwrap_or(self.at).path;
        let omitted = if leads_to_denied(old_path, &left, &before)
            || leads_to_denied(&self.at.path, &right, &after)
        {
            contents.then_some("a link to a path that access rules deny")
        } else {
            omitted
        };
        let keep = contents && omitted.is_none();
        let is_text = !binary && [left, right].iter().flatten().all(Leaf::is_file);
        let hunks = if keep && is_text && !is_same {
            lines::hunks(&lines::lines(&before), &lines::lines(&after))
        } else {
            Vec::new()
        };
        Ok(FileDiff {
            path: self.at.path.clone(),
            old_path: self.from.map(|from| from.path.clone()),
            status,
            modes: (
                left.map(|leaf| leaf.mode.octal()),
                right.map(|leaf| leaf.mode.octal()),
            ),
            binary,
            additions,
            deletions,
            before: (keep && left.is_some()).then_some(before),
            after: (keep && right.is_some()).then_some(after),
            hunks: (1..)
                .zip(&hunks)
                .filter_map(|(number, ops)| hunk(number, ops))
                .collect(),
            omitted: omitted.map(str::to_owned),
            uncaptured: false,
        })
    }
}

/// Reads contents from the store, or from the work tree if they are not stored.
struct SideContents {
    reader: Odb,
    walker: RefCell<DirWalker>,
}

impl SideContents {
    fn new(checkpoints: &Checkpoints, repository: &Repository) -> Result<Self, Error> {
        Ok(Self {
            reader: repository.odb(),
            walker: RefCell::new(checkpoints.walker()?),
        })
    }

    /// Returns the length of a content.
    fn len(&self, (_, leaf): ContentSide<'_>) -> Result<u64, Error> {
        match leaf.seen {
            Some((stamp, _)) => Ok(stamp.size),
            None => self.reader.blob_len(leaf.oid),
        }
    }

    fn read(&self, (path, leaf): ContentSide<'_>) -> Result<Vec<u8>, Error> {
        leaf.content(&self.reader, &mut self.walker.borrow_mut(), path)
    }
}
