//! The store of checkpoints: a bare git repository with refs, packs and loose objects.

pub(crate) mod fsck;
pub(crate) mod git_config;
pub(crate) mod lock;
mod loose;
pub(crate) mod object;
pub(crate) mod object_reader;
mod pack_index;
pub(crate) mod pack_reader;
pub(crate) mod pack_writer;
pub(crate) mod packs;
pub(crate) mod reachable;
pub(crate) mod refs;
pub(crate) mod remote_refs;
pub(crate) mod repair;
pub(crate) mod repository;
#[cfg(test)]
mod tests;
pub(crate) mod uncompressed_packs;
