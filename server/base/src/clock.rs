//! The wall clock, in the unit of stored data and of the wire protocol.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time in milliseconds since the Unix epoch. Never negative: returns 0 when
/// the clock is set to an earlier time.
pub fn now_millis() -> i64 {
    now_nanos() / 1_000_000
}

/// Returns the current time in nanoseconds since the Unix epoch, as file stamps have it.
pub fn now_nanos() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        })
}

/// Converts a time to milliseconds since the Unix epoch. Returns `None` for an earlier time.
pub fn millis_of(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
