//! Points where tests kill the process.

#[cfg(test)]
use super::crash_tests;

/// Marks a point where a kill must leave a recoverable state. Tests kill the process here.
pub(super) fn crash_point() {
    #[cfg(test)]
    crash_tests::crash_point();
}

/// Same as [`crash_point`], for code that holds a lease on a file.
pub(super) fn crash_point_under_lease() {
    #[cfg(test)]
    crash_tests::crash_point_under_lease();
}
