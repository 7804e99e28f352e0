//! The range of messages left out, and how it grows.

use serde::{Deserialize, Serialize};
use sightline_protocol::conversation::Keep;

use crate::wire::Role;

/// First and last index of the messages left out, both inclusive. The first two messages are
/// always kept, so a range that ends before index 2 is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedRange(pub [i64; 2]);

impl DeletedRange {
    /// Leaves nothing out.
    pub const EMPTY: Self = Self([2, 1]);

    /// Limits the range to the first `count` messages.
    #[must_use]
    pub fn clamped_to(self, count: usize) -> Self {
        let last = i64::try_from(count).unwrap_or(i64::MAX) - 1;
        let [first, end] = self.0;
        Self([first, end.min(last.max(Self::EMPTY.0[1]))])
    }

    /// Returns the index of the first message after the range.
    pub(super) fn first_kept_after(range: Option<Self>) -> usize {
        let end = range.unwrap_or(Self::EMPTY).0[1].max(1);
        usize::try_from(end).map_or(usize::MAX, |end| end.saturating_add(1))
    }
}

/// Extends the range so that `keep` of the remaining messages stay. The new range contains
/// `current`.
///
/// Messages are removed in pairs, so that user and assistant messages still alternate: the last
/// removed message is from the assistant.
pub(super) fn next_range(
    count: usize,
    current: Option<DeletedRange>,
    keep: Keep,
    role: impl Fn(usize) -> Option<Role>,
) -> DeletedRange {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    // Limits the index so that sums cannot overflow.
    let limit = i64::from(u32::MAX);
    let start = current.unwrap_or(DeletedRange::EMPTY).0[1].clamp(-limit, limit) + 1;
    let rest = count - start;
    let removed = match keep {
        Keep::None => rest.max(0),
        Keep::LastTwo => (rest - 2).max(0),
        // Round down to whole pairs, also for negative numbers.
        Keep::Half => rest.div_euclid(4) * 2,
        Keep::Quarter => (rest * 3).div_euclid(8) * 2,
    };
    let mut end = start + removed - 1;
    let last = usize::try_from(end).ok().and_then(role);
    if last.is_some_and(|role| role != Role::Assistant) {
        end -= 1;
    }
    DeletedRange([2, end.max(DeletedRange::EMPTY.0[1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_ends_with_an_assistant_message() {
        for (role, end) in [(Role::Assistant, 5), (Role::User, 4), (Role::Other, 4)] {
            let next = next_range(10, None, Keep::Half, |_| Some(role));
            assert_eq!(next, DeletedRange([2, end]), "{role:?}");
        }
    }

    #[test]
    fn the_range_is_clamped_to_the_message_count() {
        for (count, end) in [(0, 1), (1, 1), (2, 1), (3, 2), (10, 9), (11, 9)] {
            let within = DeletedRange([2, 9]).clamped_to(count);
            assert_eq!(within, DeletedRange([2, end]), "{count}");
        }
    }

    #[test]
    fn extreme_ranges_do_not_overflow() {
        for end in [i64::MIN, -5, 0, 1, 7, i64::MAX] {
            for keep in [Keep::None, Keep::LastTwo, Keep::Half, Keep::Quarter] {
                for count in [0, 1, 2, 9] {
                    let current = Some(DeletedRange([i64::MIN, end]));
                    let DeletedRange([first, last]) =
                        next_range(count, current, keep, |_| Some(Role::User));
                    assert_eq!(first, 2);
                    assert!(last >= 1);
                }
            }
            assert!(DeletedRange::first_kept_after(Some(DeletedRange([2, end]))) >= 2);
        }
    }
}
