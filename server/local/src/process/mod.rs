//! The process: its log, its version, its ancestors, and when it exits.

pub mod ancestors;
pub mod detached;
pub mod logging;
pub mod parent_watch;
pub mod signals;
pub mod version;
