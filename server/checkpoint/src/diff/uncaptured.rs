//! Files that exist on a side, although its tree does not hold them. They are not reported as added or
//! deleted.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use sightline_base::{
    fs::dir::{DirWalker, FileInfo, FileType},
    path::RelPath,
};

use super::file_diff::{FileDiff, Status};
use crate::{
    error::Error,
    job::Job,
    metadata::{Checkpoint, Skipped, excluded::ExcludedThen},
    store::object::Mode,
    tree_diff::{Difference, Leaf},
};

/// Tells what the tree of a side lacks.
pub(super) enum Lacking {
    /// The work tree, with the skipped paths of its scan.
    WorkTree(Arc<Vec<Skipped>>),
    /// A checkpoint, with the exclusions in its metadata.
    Checkpoint(Arc<Checkpoint>),
}

/// Removes the differences in files that exist on both sides and that one side did not capture.
/// Returns them as uncaptured.
pub(super) fn take(
    differences: &mut Vec<Difference>,
    (from, to): (&Lacking, &Lacking),
    walker: &mut DirWalker,
    job: &Job<'_>,
) -> Result<Vec<FileDiff>, Error> {
    let mut from = Finder::new(
        from,
        differences.iter().map(|new| (new, new.left, new.right)),
    );
    let mut to = Finder::new(to, differences.iter().map(|new| (new, new.right, new.left)));
    let mut files = Vec::new();
    let mut others = Vec::with_capacity(differences.len());
    for difference in differences.drain(..) {
        job.cancel.check()?;
        let path = &difference.path;
        let found = match (difference.left, difference.right) {
            (Some(held), None) => to.find(path, held, walker),
            (None, Some(held)) => from.find(path, held, walker),
            _ => None,
        };
        let Some(found) = found else {
            others.push(difference);
            continue;
        };
        let mode = |leaf: Option<Leaf>| leaf.map_or(found.mode, |leaf| Some(leaf.mode.octal()));
        files.push(FileDiff {
            status: if found.is_alike {
                Status::Modified
            } else {
                Status::TypeChanged
            },
            modes: (mode(difference.left), mode(difference.right)),
            path: difference.path,
            old_path: None,
            binary: false,
            additions: 0,
            deletions: 0,
            before: None,
            after: None,
            hunks: Vec::new(),
            omitted: Some(found.why),
            uncaptured: true,
        });
    }
    *differences = others;
    Ok(files)
}

/// A file that a side did not capture.
struct Found {
    /// Its mode, if known.
    mode: Option<&'static str>,
    /// Whether it is of the same type as the file of the other side, or of unknown type.
    is_alike: bool,
    why: String,
}

/// Finds the uncaptured files of a side.
enum Finder<'a> {
    WorkTree {
        reasons: HashMap<(&'a str, bool), &'a str>,
        /// Captured files that the other side does not have.
        new: HashSet<(u64, String)>,
    },
    Checkpoint {
        checkpoint: &'a Checkpoint,
        excluded: ExcludedThen<'a>,
    },
}

impl<'a> Finder<'a> {
    /// `differences` have the leaf of this side before the one of the other side.
    fn new<'d>(
        lacking: &'a Lacking,
        differences: impl Iterator<Item = (&'d Difference, Option<Leaf>, Option<Leaf>)>,
    ) -> Self {
        match lacking {
            Lacking::WorkTree(skipped) => Self::WorkTree {
                reasons: skipped
                    .iter()
                    .map(|skipped| ((skipped.path.as_str(), skipped.encoded), &*skipped.reason))
                    .collect(),
                new: differences
                    .filter(|(.., other)| other.is_none())
                    .filter_map(|(new, ours, _)| Some((ours?.inode()?, lower(&new.path))))
                    .collect(),
            },
            Lacking::Checkpoint(checkpoint) => Self::Checkpoint {
                checkpoint,
                excluded: ExcludedThen::new(&checkpoint.metadata),
            },
        }
    }

    /// Finds a file that the tree of this side does not hold. `held` is the one of the other side.
    fn find(&mut self, path: &RelPath, held: Leaf, walker: &mut DirWalker) -> Option<Found> {
        match self {
            Self::WorkTree { reasons, new } => {
                let found = walker.stat(path).ok().flatten();
                let found = found.filter(|found| found.kind != FileType::Directory)?;
                // On a case-insensitive file system, a renamed file is also found under its old name.
                if new.contains(&(found.stamp.inode, lower(path))) {
                    return None;
                }
                let reason = path.ancestors().find_map(|path| {
                    let (text, encoded) = path.to_wire();
                    reasons.get(&(text.as_str(), encoded)).copied()
                });
                let reason = reason.unwrap_or("ignored");
                Some(Found {
                    mode: Mode::of(&found).map(|mode| mode.octal()),
                    is_alike: is_alike(&found, &held),
                    why: format!("checkpoints do not capture the current file ({reason})"),
                })
            }
            Self::Checkpoint {
                checkpoint,
                excluded,
            } => {
                let id = checkpoint.id.to_string();
                let id = sightline_protocol::checkpoint::short_id(&id);
                let why = excluded.find(path)?;
                Some(Found {
                    mode: None,
                    is_alike: true,
                    why: format!("checkpoint {id} did not capture the file ({why})"),
                })
            }
        }
    }
}

fn is_alike(found: &FileInfo, held: &Leaf) -> bool {
    match found.kind {
        FileType::File => held.is_file(),
        FileType::Symlink => held.mode == Mode::Link,
        FileType::Directory | FileType::Special(_) => false,
    }
}

fn lower(path: &RelPath) -> String {
    path.to_wire().0.to_lowercase()
}
