//! The time section: `6/7/2025, 3:04:05 PM (Europe/Berlin, UTC+2:00)`.

use std::sync::LazyLock;

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};

use sightline_base::error::Error;

/// Bundled time zones. Used before the machine's, so that a named zone gives the same result
/// everywhere.
static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Returns the line for a time in milliseconds since the Unix epoch and an IANA time zone. Defaults
/// to the machine's time and zone.
///
/// # Errors
/// `invalidParams`, with the offending value.
pub(super) fn line(now: Option<i64>, zone: Option<&str>) -> Result<String, Error> {
    let timestamp = match now {
        Some(millis) => Timestamp::from_millisecond(millis).map_err(|_| {
            Error::invalid(format!(
                "invalid now: {millis} is not between the years -9999 and 9999; \
                 use milliseconds since the Unix epoch"
            ))
        })?,
        None => Timestamp::now(),
    };
    let zone = match zone {
        Some(name) => named(name)?,
        None => TimeZone::system(),
    };
    let offset = zone.to_offset_info(timestamp);
    let name = match zone.iana_name() {
        Some("Etc/Unknown" | "Etc/UTC") => "UTC",
        Some(name) => name,
        // A manually configured zone has rules, but no name.
        None => offset.abbreviation(),
    };
    let seconds = offset.offset().seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;

    let at = timestamp.to_zoned(zone.clone());
    Ok(format!(
        "{} ({name}, UTC{sign}{}:{:02})",
        at.strftime("%-m/%-d/%-Y, %-I:%M:%S %p"),
        minutes / 60,
        minutes % 60,
    ))
}

fn named(name: &str) -> Result<TimeZone, Error> {
    BUNDLED
        .get(name)
        .or_else(|_| TimeZone::get(name))
        .map_err(|_| {
            Error::invalid(format!(
                "unknown timeZone {name:?}; use an IANA name such as \"Europe/Berlin\""
            ))
        })
}

#[cfg(test)]
mod tests {
    use sightline_protocol::error::ErrorKind;

    use super::*;

    /// 2025-06-07T13:04:05Z and 2025-01-07T00:04:05Z.
    const SUMMER: i64 = 1_749_301_445_000;
    const WINTER: i64 = 1_736_208_245_999;

    #[test]
    fn zones_and_their_offsets() {
        for (now, zone, expected) in [
            (
                SUMMER,
                "Europe/Berlin",
                "6/7/2025, 3:04:05 PM (Europe/Berlin, UTC+2:00)",
            ),
            (
                WINTER,
                "Europe/Berlin",
                "1/7/2025, 1:04:05 AM (Europe/Berlin, UTC+1:00)",
            ),
            (
                WINTER,
                "europe/berlin",
                "1/7/2025, 1:04:05 AM (Europe/Berlin, UTC+1:00)",
            ),
            (SUMMER, "UTC", "6/7/2025, 1:04:05 PM (UTC, UTC+0:00)"),
            (WINTER, "UTC", "1/7/2025, 12:04:05 AM (UTC, UTC+0:00)"),
            (
                SUMMER,
                "Asia/Kolkata",
                "6/7/2025, 6:34:05 PM (Asia/Kolkata, UTC+5:30)",
            ),
            (
                SUMMER,
                "Asia/Kathmandu",
                "6/7/2025, 6:49:05 PM (Asia/Kathmandu, UTC+5:45)",
            ),
            (
                WINTER,
                "America/St_Johns",
                "1/6/2025, 8:34:05 PM (America/St_Johns, UTC-3:30)",
            ),
            (
                SUMMER,
                "America/St_Johns",
                "6/7/2025, 10:34:05 AM (America/St_Johns, UTC-2:30)",
            ),
            (
                SUMMER,
                "America/New_York",
                "6/7/2025, 9:04:05 AM (America/New_York, UTC-4:00)",
            ),
            // One second around the start of daylight saving time.
            (
                1_743_296_399_000,
                "Europe/Berlin",
                "3/30/2025, 1:59:59 AM (Europe/Berlin, UTC+1:00)",
            ),
            (
                1_743_296_400_000,
                "Europe/Berlin",
                "3/30/2025, 3:00:00 AM (Europe/Berlin, UTC+2:00)",
            ),
            (-1, "UTC", "12/31/1969, 11:59:59 PM (UTC, UTC+0:00)"),
            (
                -62_001_417_355_000,
                "UTC",
                "4/3/5, 12:04:05 AM (UTC, UTC+0:00)",
            ),
            (
                -62_190_762_955_000,
                "UTC",
                "4/3/-1, 12:04:05 PM (UTC, UTC+0:00)",
            ),
        ] {
            assert_eq!(line(Some(now), Some(zone)).unwrap(), expected);
        }
    }

    #[test]
    fn noon_is_pm() {
        assert_eq!(
            line(Some(1_736_251_200_000), Some("UTC")).unwrap(),
            "1/7/2025, 12:00:00 PM (UTC, UTC+0:00)"
        );
    }

    #[test]
    fn the_default_zone_is_named() {
        let line = line(None, None).unwrap();
        assert!(line.contains(", UTC") && line.ends_with(')'), "{line}");
    }

    #[test]
    fn errors_contain_the_invalid_value() {
        for zone in ["Mars/Olympus", "", "../../etc/passwd", "\0"] {
            let error = line(Some(0), Some(zone)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidParams);
            assert!(error.to_string().contains(&format!("{zone:?}")), "{error}");
        }
        for now in [i64::MAX, i64::MIN] {
            let error = line(Some(now), None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidParams);
            assert!(error.to_string().contains(&now.to_string()), "{error}");
        }
    }
}
