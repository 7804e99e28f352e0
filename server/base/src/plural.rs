//! Counts and ages in messages.

use std::fmt::Display;

/// Formats a count with its noun: `1 file`, `2 files`.
pub fn plural<N: PartialEq + From<u8> + Display>(count: N, noun: &str) -> String {
    let s = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// Formats how long ago a time was, such as `2 hours ago`. Times are in milliseconds since the Unix epoch.
pub fn ago(now: i64, then: i64) -> String {
    let minutes = now.saturating_sub(then) / 60_000;
    let (count, unit) = match minutes {
        ..1 => return "just now".to_owned(),
        1..60 => (minutes, "minute"),
        60..1440 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    format!("{} ago", plural(count, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_is_formatted() {
        let minute = 60_000;
        for (passed, expected) in [
            (-5, "just now"),
            (0, "just now"),
            (minute - 1, "just now"),
            (minute, "1 minute ago"),
            (59 * minute, "59 minutes ago"),
            (60 * minute, "1 hour ago"),
            (24 * 60 * minute - 1, "23 hours ago"),
            (24 * 60 * minute, "1 day ago"),
            (72 * 60 * minute, "3 days ago"),
        ] {
            assert_eq!(ago(1_000 + passed, 1_000), expected);
        }
        assert!(ago(i64::MAX, i64::MIN).ends_with("days ago"));
    }
}
