//! Points where tests kill the process.

#[cfg(test)]
use super::tests::crashes;

/// Marks a point where a kill must leave a recoverable state. Tests kill the process here.
pub(super) fn crash_point() {
    #[cfg(test)]
    crashes::crash_point();
}

/// Same as [`crash_point`], for code that holds a lease on a file.
pub(super) fn crash_point_under_lease() {
    #[cfg(test)]
    crashes::crash_point_under_lease();
}
