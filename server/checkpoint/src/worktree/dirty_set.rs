//! Which paths changed since the last checkpoint.
//!
//! A checkpoint only scans the reported paths, so a source that misses a change would lose it. A
//! source that cannot be sure reports [`Changes::Unknown`].

use sightline_base::path::RelPath;

/// Changes since the last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Only these paths changed. A folder includes everything below it.
    Known(Vec<RelPath>),
    /// Anything may have changed.
    Unknown,
}

/// Reports changes in a root.
pub trait ChangeSource: Send + Sync {
    /// Takes all changes since the last call, including events that the system has not delivered
    /// yet: every write that finished before this call is included.
    fn take(&self) -> Changes;
    /// Returns changes that were taken and not used.
    fn put_back(&self, changes: Changes);
}
