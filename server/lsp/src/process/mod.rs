//! The process: its log, its version, and when it exits.

pub mod logging;
pub mod parent_watch;
pub mod signals;
pub mod version;
