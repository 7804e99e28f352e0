//! Compares texts line by line.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// Number of bytes in which a NUL makes a file binary, as in git.
const BINARY_PROBE_BYTES: usize = 8000;
/// Size above which a file counts as binary, in bytes, as git's `core.bigFileThreshold`.
const MAX_TEXT_BYTES: usize = 512 * 1024 * 1024;
/// Number of lines around the changed lines of a hunk.
const CONTEXT: usize = 3;
/// Maximum time to search for a shortest difference. After it, any difference is accepted.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Returns whether the content is binary.
pub fn is_binary(content: &[u8]) -> bool {
    content.len() > MAX_TEXT_BYTES
        || memchr::memchr(0, &content[..content.len().min(BINARY_PROBE_BYTES)]).is_some()
}

/// Splits the content into lines with their line breaks.
pub(crate) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Returns how to change the old lines to the new ones, in order. The result is a shortest difference
/// unless the content is large or the time limit is reached.
pub(crate) fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let deadline = Instant::now() + TIME_LIMIT;
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline))
}

/// Returns the hunks of [`changes`].
pub(crate) fn hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Vec<DiffOp>> {
    group_diff_ops(changes(old, new), CONTEXT)
}

/// Returns the new lines with the old ones in the hunks that `is_reverted` selects by their index.
pub(crate) fn revert_hunks(
    old: &[&[u8]],
    new: &[&[u8]],
    is_reverted: impl Fn(usize) -> bool,
) -> Vec<u8> {
    let mut text = Vec::new();
    let mut done = 0;
    for (index, hunk) in hunks(old, new).iter().enumerate() {
        for op in hunk {
            let range = op.new_range();
            text.extend(new[done..range.start].concat());
            done = range.end;
            text.extend(if is_reverted(index) {
                old[op.old_range()].concat()
            } else {
                new[range].concat()
            });
        }
    }
    text.extend(new[done..].concat());
    text
}

/// Returns the number of added and deleted lines.
pub(super) fn count(old: &[u8], new: &[u8]) -> (u64, u64) {
    changes(&lines(old), &lines(new))
        .iter()
        .filter(|op| op.tag() != DiffTag::Equal)
        .fold((0, 0), |(added, gone), op| {
            let (old, new) = (op.old_range().len(), op.new_range().len());
            (added + new as u64, gone + old as u64)
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
        /// Without a hunk the text stays new; with all it is the old one.
        #[test]
        fn reverted_hunks_are_those_that_are_named(
            old in prop::collection::vec(0_u8..4, 0..40),
            new in prop::collection::vec(0_u8..4, 0..40),
            named in prop::collection::vec(any::<bool>(), 0..5),
        ) {
            let texts = |ids: &[u8]| ids.iter().map(|id| vec![b'a' + id, b'\n']).collect::<Vec<_>>();
            let (old, new) = (texts(&old), texts(&new));
            let old: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
            let new: Vec<&[u8]> = new.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(revert_hunks(&old, &new, |_| false), new.concat());
            prop_assert_eq!(revert_hunks(&old, &new, |_| true), old.concat());
            let is_named = |index: usize| named.get(index).copied().unwrap_or_default();
            let half = revert_hunks(&old, &new, is_named);
            // The other hunks lead from the half to the new text and back.
            let all = hunks(&old, &new).len();
            prop_assert_eq!(half == new.concat(), (0..all).all(|index| !is_named(index)));
        }

        /// The operations cover both sides, and no shorter difference exists.
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
            let (mut old_at, mut new_at, mut same) = (0, 0, 0);
            for op in changes(&old, &new) {
                prop_assert_eq!((op.old_range().start, op.new_range().start), (old_at, new_at));
                if op.tag() == DiffTag::Equal {
                    prop_assert_eq!(&old[op.old_range()], &new[op.new_range()]);
                    same += op.old_range().len();
                }
                (old_at, new_at) = (op.old_range().end, op.new_range().end);
            }
            prop_assert_eq!((old_at, new_at), (old.len(), new.len()));
            prop_assert_eq!(same, longest[old.len()][new.len()]);
        }
    }
}
