//! Version of this build, as determined by `build.rs`.

/// Version reported by `initialize`, as a semantic version: `0.1.0+1a2b3c4d5e`, or
/// `0.1.0` if built outside a git repository.
pub const VERSION: &str = env!("SIGHTLINE_VERSION");

/// Version printed by `--version`, with the commit date: `0.1.0 (1a2b3c4d5e 2026-01-31)`,
/// or `0.1.0` if built outside a git repository.
pub const LONG_VERSION: &str = env!("SIGHTLINE_LONG_VERSION");
