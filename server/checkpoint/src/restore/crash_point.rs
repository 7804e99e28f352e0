//! Points where tests kill the process.

#[cfg(all(test, unix))]
use super::tests::crashes;

/// Marks a point where a kill must leave a recoverable state. Tests kill the process here.
pub(super) fn crash_point() {
    #[cfg(all(test, unix))]
    crashes::crash_point();
}

/// Same as [`crash_point`], for code that holds a lease on a file.
pub(super) fn crash_point_under_lease() {
    #[cfg(all(test, unix))]
    crashes::crash_point_under_lease();
}
