//! Compares texts line by line.

use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Number of bytes in which a NUL makes a file binary, as in git.
const BINARY_PROBE_BYTES: usize = 8000;
/// Size above which a file counts as binary, in bytes, as git's `core.bigFileThreshold`.
const MAX_TEXT_BYTES: usize = 512 * 1024 * 1024;
/// Maximum time to search for a shortest difference. After it, any difference is accepted.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Returns whether the content is binary.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content.len() > MAX_TEXT_BYTES
        || memchr::memchr(0, &content[..content.len().min(BINARY_PROBE_BYTES)]).is_some()
}

/// Splits the content into lines with their line breaks.
pub(super) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A range that differs on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangedRange {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// Returns the ranges that differ, in order. The result is a shortest difference unless the time
/// limit is reached.
pub(super) fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<ChangedRange> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new);
    let start = same.count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let same = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = same.take_while(|(old, new)| old == new).count();
    let old_rest = &old_rest[..old_rest.len() - end];
    let new_rest = &new_rest[..new_rest.len() - end];
    let mut ids = HashMap::new();
    let mut numbered = |lines: &[&'_ [u8]]| -> Vec<usize> {
        lines
            .iter()
            .map(|line| {
                let next = ids.len();
                *ids.entry(line.to_vec()).or_insert(next)
            })
            .collect()
    };
    let (old_ids, new_ids) = (numbered(old_rest), numbered(new_rest));
    // Lines that only occur on one side always differ, and are the most expensive.
    let keep = |ids: &[usize], other: &[usize]| -> Vec<(usize, usize)> {
        let known: std::collections::HashSet<&usize> = other.iter().collect();
        let kept = ids.iter().enumerate().filter(|(_, id)| known.contains(id));
        kept.map(|(at, id)| (at, *id)).collect()
    };
    let (old_kept, new_kept) = (keep(&old_ids, &new_ids), keep(&new_ids, &old_ids));
    let only_ids = |kept: &[(usize, usize)]| kept.iter().map(|(_, id)| *id).collect::<Vec<_>>();
    let deadline = Some(Instant::now() + TIME_LIMIT);
    let ops = capture_diff_slices_deadline(
        Algorithm::Myers,
        &only_ids(&old_kept),
        &only_ids(&new_kept),
        deadline,
    );
    let mut parts = Vec::new();
    let (mut old_at, mut new_at) = (start, start);
    let mut differ = |old: Range<usize>, new: Range<usize>| {
        if !old.is_empty() || !new.is_empty() {
            parts.push(ChangedRange { old, new });
        }
    };
    for op in ops {
        let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        else {
            continue;
        };
        for (old, new) in old_kept[old_index..old_index + len]
            .iter()
            .zip(&new_kept[new_index..new_index + len])
        {
            let (old, new) = (start + old.0, start + new.0);
            differ(old_at..old, new_at..new);
            (old_at, new_at) = (old + 1, new + 1);
        }
    }
    differ(old_at..old.len() - end, new_at..new.len() - end);
    parts
}

/// Returns the number of added and deleted lines.
pub(super) fn count(old: &[u8], new: &[u8]) -> (u64, u64) {
    let (old, new) = (lines(old), lines(new));
    changes(&old, &new)
        .iter()
        .fold((0, 0), |(added, gone), part| {
            (added + part.new.len() as u64, gone + part.old.len() as u64)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_late_nul_is_text_as_in_git() {
        let mut content = vec![b'a'; BINARY_PROBE_BYTES];
        content.push(0);
        assert!(!is_binary(&content));
        content[BINARY_PROBE_BYTES - 1] = 0;
        assert!(is_binary(&content));
    }

    #[test]
    fn a_missing_line_break_changes_a_line() {
        assert_eq!(count(b"a\nb", b"a\nb\n"), (1, 1));
        assert_eq!(count(b"", b"a"), (1, 0));
        assert_eq!(count(b"a\n\n", b""), (0, 2));
    }

    proptest! {
        /// The text between the ranges is equal, and no shorter difference exists.
        #[test]
        fn changes_are_a_shortest_difference(
            old in prop::collection::vec(0_u8..4, 0..12),
            new in prop::collection::vec(0_u8..4, 0..12),
        ) {
            let texts = |ids: &[u8]| ids.iter().map(|id| vec![b'a' + id, b'\n']).collect::<Vec<_>>();
            let (old, new) = (texts(&old), texts(&new));
            let old: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
            let new: Vec<&[u8]> = new.iter().map(Vec::as_slice).collect();
            let mut longest = vec![vec![0; new.len() + 1]; old.len() + 1];
            for a in 0..old.len() {
                for b in 0..new.len() {
                    longest[a + 1][b + 1] = if old[a] == new[b] {
                        longest[a][b] + 1
                    } else {
                        longest[a][b + 1].max(longest[a + 1][b])
                    };
                }
            }
            let parts = changes(&old, &new);
            let (mut old_at, mut new_at, mut same) = (0, 0, 0);
            for part in parts.iter().chain([&ChangedRange { old: old.len()..old.len(), new: new.len()..new.len() }]) {
                prop_assert_eq!(&old[old_at..part.old.start], &new[new_at..part.new.start]);
                same += part.old.start - old_at;
                (old_at, new_at) = (part.old.end, part.new.end);
            }
            prop_assert_eq!(same, longest[old.len()][new.len()]);
        }
    }
}
