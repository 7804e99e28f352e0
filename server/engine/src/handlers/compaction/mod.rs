//! Compaction: replaces the older part of a conversation with a summary. One file per
//! method.

pub mod apply_compaction;
pub mod plan_compaction;
pub(super) mod shared;
