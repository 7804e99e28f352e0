//! Which build this is, as `build.rs` of this package found it.

/// What `initialize` answers, in the form of semantic versioning:
/// `0.1.0+1a2b3c4d5e`, or `0.1.0` of a build outside a git repository.
pub const VERSION: &str = env!("SIGHTLINE_VERSION");

/// What `--version` prints: `0.1.0 (1a2b3c4d5e 2026-01-31)`, with the day of
/// the commit; `0.1.0` of a build outside a git repository.
pub const LONG_VERSION: &str = env!("SIGHTLINE_LONG_VERSION");
