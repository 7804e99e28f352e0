//! Compaction: replaces the older part of a conversation with a summary. One file per
//! method.

pub(crate) mod apply_compaction;
pub(crate) mod plan_compaction;
mod shared;
