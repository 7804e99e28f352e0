//! Selects the messages shown in a prompt: limits their age, number and tokens, keeping the
//! newest.

use sightline_protocol::compaction::MessageFilter;

use sightline_base::error::Error;

/// Messages counted at a time, so that messages too old to fit are never counted.
const BATCH: usize = 64;

/// Returns the positions that pass the age and count limits, in order. `written` returns the
/// time of a message; ages are relative to `newest`.
pub(super) fn by_age_and_count(
    positions: Vec<usize>,
    written: impl Fn(usize) -> Option<f64>,
    newest: Option<f64>,
    filter: &MessageFilter,
) -> Vec<usize> {
    let mut passed = positions;
    if let (Some(max_age), Some(newest)) = (filter.max_age, newest) {
        let oldest = newest - max_age.max(0) as f64;
        passed.retain(|position| written(*position).is_none_or(|ts| ts >= oldest));
    }
    if let Some(max) = filter.max_messages {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        passed.drain(..passed.len().saturating_sub(max));
    }
    passed
}

/// Returns the newest of `positions` that fit into `limit` tokens. `tokens` counts several
/// positions at once.
///
/// # Errors
/// Errors of `tokens`.
pub(super) fn by_tokens(
    positions: &[usize],
    limit: u64,
    mut tokens: impl FnMut(&[usize]) -> Result<Vec<u64>, Error>,
) -> Result<Vec<usize>, Error> {
    let mut left = limit;
    let mut start = positions.len();
    for batch in positions.rchunks(BATCH) {
        let counts = tokens(batch)?;
        for count in counts.iter().rev() {
            let Some(rest) = left.checked_sub(*count) else {
                return Ok(positions[start..].to_vec());
            };
            left = rest;
            start -= 1;
        }
    }
    Ok(positions[start..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_and_count() {
        let written = [None, Some(1.0), Some(50.0), None, Some(90.0), Some(100.0)];
        let pass = |max_age, max_messages| {
            let filter = MessageFilter {
                max_tokens: None,
                max_messages,
                max_age,
            };
            let positions = (0..written.len()).collect();
            by_age_and_count(positions, |at| written[at], Some(100.0), &filter)
        };
        assert_eq!(pass(None, None), [0, 1, 2, 3, 4, 5]);
        assert_eq!(pass(Some(50), None), [0, 2, 3, 4, 5]);
        assert_eq!(pass(Some(49), Some(3)), [3, 4, 5]);
        assert_eq!(pass(Some(0), None), [0, 3, 5]);
        assert_eq!(pass(Some(i64::MIN), Some(1)), [5]);
        assert_eq!(pass(Some(i64::MAX), Some(u64::MAX)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(pass(None, Some(0)), [0; 0]);
    }

    #[test]
    fn tokens() {
        let positions: Vec<usize> = (10..210).collect();
        let mut asked = 0;
        let mut newest = |limit| {
            by_tokens(&positions, limit, |batch| {
                asked += batch.len();
                Ok(vec![10; batch.len()])
            })
            .unwrap()
        };
        assert_eq!(newest(0), [0; 0]);
        assert_eq!(newest(39), [207, 208, 209]);
        assert_eq!(newest(40).len(), 4);
        assert_eq!(asked, 3 * BATCH);
        let all = by_tokens(&positions, 2000, |batch| Ok(vec![10; batch.len()]));
        assert_eq!(all.unwrap(), positions);
    }
}
