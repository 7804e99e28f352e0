//! Options and results of a comparison.

use sightline_base::path::RelPath;
pub use sightline_protocol::checkpoint::DifferenceStatus as Status;
use sightline_protocol::checkpoint::Hunk;
use similar::DiffOp;

/// Options of a diff.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// Only these paths and everything below them. Empty means all.
    pub paths: Vec<RelPath>,
    /// Whether to include contents.
    pub contents: bool,
    /// Maximum size of an included content, in bytes.
    pub max_file_bytes: u64,
    /// Maximum total size of the included contents, in bytes.
    pub max_total_bytes: u64,
}

/// Describes a hunk as a unified diff does.
pub(super) fn hunk(number: u32, ops: &[DiffOp]) -> Option<Hunk> {
    let (first, last) = (ops.first()?, ops.last()?);
    let lines = |start: usize, end: usize| {
        let first = if start == end { start } else { start + 1 };
        vec![first as u64, (end - start) as u64]
    };
    Some(Hunk {
        number,
        before: lines(first.old_range().start, last.old_range().end),
        after: lines(first.new_range().start, last.new_range().end),
    })
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// New path, or the old one of a deleted file.
    pub path: RelPath,
    /// Old path of a renamed file.
    pub old_path: Option<RelPath>,
    /// How the file differs.
    pub status: Status,
    /// git modes ("100644") of the old and new side.
    pub modes: (Option<&'static str>, Option<&'static str>),
    /// Whether one of the sides is binary.
    pub binary: bool,
    /// Number of added lines; 0 for binary files.
    pub additions: u64,
    /// Number of deleted lines; 0 for binary files.
    pub deletions: u64,
    /// Old content, if requested, present, and within the limits.
    pub before: Option<Vec<u8>>,
    /// New content.
    pub after: Option<Vec<u8>>,
    /// Changed parts of a text file, if contents are requested.
    pub hunks: Vec<Hunk>,
    /// Why requested contents are missing.
    pub omitted: Option<String>,
    /// Whether the file exists on both sides, but one of them did not capture it. The contents were
    /// not compared; `omitted` states the reason.
    pub uncaptured: bool,
}
